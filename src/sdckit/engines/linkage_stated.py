"""What a method states of its own masking: half a rounding base, and the largest move in ranks.

What follows is a fact only if it holds for every true pair, which a scan over all blocks checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.engines.linkage_scan import records_of
from sdckit.risk.distances import TieBlocks
from sdckit.risk.facts import Relation, base_relation, window_relation

if TYPE_CHECKING:
    from sdckit.core.disclosure import Disclosure
    from sdckit.engines.linkage_scan import PairTotals, Records
    from sdckit.engines.linkage_spaces import RankFunction, Spaces
    from sdckit.engines.transport import Block, Reads, Transport
    from sdckit.kernels.jit import Bools, Floats

BASE, WINDOW = "base", "window"
SPARE_RANKS = 2  # by which a window computed from a sample may be too small, times records per sampled one


class Stated(NamedTuple):
    """A bound on how far the values of a variable moved: half a rounding base, or a number of ranks."""

    kind: str
    variable: int
    bound: float
    ranks: tuple[RankFunction, RankFunction] | None = None  # of the variable in both files, for a window

    def relation(self, records: Records) -> Relation:
        """Return the relation of original and published cells, given as true pairs."""
        x, y = records.x[:, self.variable], records.y[:, self.variable]
        if self.ranks is None:
            return base_relation(x, y, np.full(x.size, self.bound))
        ours, theirs = (
            _columns_of_one(*one.tie_blocks(values)) for one, values in zip(self.ranks, (x, y), strict=True)
        )
        return window_relation(ours, theirs, 0, self.bound)


def _columns_of_one(first: Floats, last: Floats) -> TieBlocks:
    """Return first and last ranks of one variable as those of a file that has no other."""
    return TieBlocks(first[:, None], last[:, None], [])


@dataclass(frozen=True)
class StatedCheck:
    """A task that returns which stated bounds hold for all true pairs of a block."""

    known: tuple[str, ...]
    stated: tuple[Stated, ...]

    def __call__(self, block: Block) -> Bools:
        """Return True for each bound that holds."""
        records = records_of(block, self.known, ())
        return np.array([one.relation(records).holds for one in self.stated], np.bool_)


def stated_facts(
    disclosure: Disclosure,
    variables: Sequence[str],
    known: Sequence[str],
    totals: PairTotals,
    sample: Records,
) -> Iterator[tuple[str, int, float]]:
    """Yield kind, number of the known variable and bound of what the method states for the whole file."""
    if disclosure.by or disclosure.rules is not None:
        return  # bounds differ by stratum, and repair to rules may have moved values beyond them
    spreads = dict(zip(known, totals.original.spreads(weighted=False), strict=True))
    # Two values with the column's standard deviation stand for it: a base depends on nothing else.
    pair = np.array([[0.0, spreads.get(name, 1.0) * np.sqrt(2)] for name in variables]).T
    yield from _bounds(BASE, disclosure.half_width("all", pair, variables), variables, known)
    columns = dict(zip(known, sample.x.T, strict=True))
    none = np.zeros(len(sample.x))
    values = np.column_stack([columns.get(name, none) for name in variables])
    for kind, j, width in _bounds(WINDOW, disclosure.width("all", values, variables), variables, known):
        wide = _width_in_file(width, sample.x[:, j], totals.n, int(totals.original.count[j]))
        if wide < totals.n:
            yield kind, j, wide


def _bounds(
    kind: str, found: Any, variables: Sequence[str], known: Sequence[str]
) -> Iterator[tuple[str, int, float]]:
    """Yield kind, number and bound of each known variable; nothing where none is stated."""
    if found is not None:
        bounds = np.broadcast_to(np.asarray(found, np.float64), len(variables))
        yield from ((kind, j, float(bounds[list(variables).index(name)])) for j, name in enumerate(known))


def _width_in_file(width: float, sample: Floats, n: int, count: int) -> float:
    """Return a window of ranks in n records, `count` of them with a value, from that in a sample."""
    if len(sample) == n:
        return width
    larger = max(n / len(sample), count / max(int((~np.isnan(sample)).sum()), 1))
    return larger * (width + SPARE_RANKS) + SPARE_RANKS


def checked_facts(
    transport: Transport,
    reads: Reads,
    stated: Iterator[tuple[str, int, float]],
    spaces: Spaces,
) -> tuple[tuple[Stated, ...], tuple[str, ...]]:
    """Return the stated bounds that hold for every true pair, and names of those that do not."""
    known = reads.original
    facts = tuple(
        Stated(kind, j, bound, (spaces.ranks[0][j], spaces.ranks[1][j]) if kind == WINDOW else None)
        for kind, j, bound in stated
    )
    if not facts:
        return (), ()
    blocks = transport.scan(StatedCheck(known, facts), reads, step="checking what the method states")
    holds = np.all(blocks, axis=0)
    kept = tuple(one for one, good in zip(facts, holds, strict=True) if good)
    broken = [one for one, good in zip(facts, holds, strict=True) if not good]
    return kept, tuple(f"{one.kind} of {known[one.variable]}" for one in broken)
