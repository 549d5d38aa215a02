"""Buckets of neighbouring values: each holds an interval of a column's ranks, whatever blocks the file has.

Splitters from a sample cut a column (within a stratum) into cells: the values between two splitters, and
those equal to one. A bucket is a run of cells. A value so frequent that its cell fills a bucket is cut by
rank: equal values are ranked by row number, and how many of them lie in earlier blocks is known from counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sdckit.engines.transport import Reads
from sdckit.engines.whole_columns import strata_in
from sdckit.kernels.draws import CellDraws
from sdckit.kernels.lexicographic import value_buckets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sdckit.engines.transport import Block, Transport
    from sdckit.kernels.jit import Floats, Ints

FULL = 0.7  # share of the largest size of a bucket that is aimed at: samples miss it now and then
PER_BUCKET = 64  # sampled values to a bucket
CHOICE = CellDraws.of(b"sample")  # which rows are sampled: the same in all engines, and no secret


def values_by_piece(block: Block, names: Sequence[str]) -> Iterator[tuple[int, Ints, Floats]]:
    """Yield number, rows within the block and values of each piece: a column in a stratum, without gaps."""
    p = len(names)
    for stratum, rows in strata_in(block):
        for j, name in enumerate(names):
            values = block.original[name][rows]
            seen = ~np.isnan(values)
            yield stratum * p + j, rows[seen], values[seen]


@dataclass(frozen=True)
class SampleValues:
    """Task: the values of rows that are chosen by their number alone, by piece."""

    names: tuple[str, ...]
    rate: float

    def __call__(self, block: Block) -> dict[int, Floats]:
        """Return the sampled values of each piece of the block."""
        chosen = CHOICE.uniforms(np.arange(block.first, block.first + block.rows), 0) < self.rate
        return {piece: values[chosen[rows]] for piece, rows, values in values_by_piece(block, self.names)}


@dataclass(frozen=True)
class CountCells:
    """Task: how many values of a block lie in each cell of each piece."""

    names: tuple[str, ...]
    splitters: tuple[Floats, ...]

    def __call__(self, block: Block) -> tuple[int, dict[int, Ints]]:
        """Return the number of the block's first row, and the counts of each piece."""
        return block.first, {
            piece: np.bincount(
                value_buckets(values, self.splitters[piece]), minlength=2 * len(self.splitters[piece]) + 1
            )
            for piece, _, values in values_by_piece(block, self.names)
        }


@dataclass(frozen=True)
class PieceBuckets:
    """The buckets of a piece, numbered from `base` on; bucket b has the ranks starts[b] to starts[b + 1] - 1.

    `bucket` is the first bucket of each cell, `before` the number of values in a cell that is cut by rank
    before each block, by the block's first row.
    """

    base: int
    splitters: Floats
    bucket: Ints
    starts: Ints
    first_rank: Ints  # of each cell
    cut: frozenset[int]  # cells that are cut by rank
    before: Mapping[int, Mapping[int, int]]

    @property
    def n(self) -> int:
        """Number of values."""
        return int(self.starts[-1])

    def of_values(self, values: Floats, block: int) -> Ints:
        """Return the bucket of each value of a block, from its first row's number; values in row order."""
        cells = value_buckets(values, self.splitters)
        found = self.bucket[cells]
        for cell in self.cut:
            here = np.flatnonzero(cells == cell)
            ranks = self.first_rank[cell] + self.before[block].get(cell, 0) + np.arange(here.size)
            found[here] = self.of_ranks(ranks) - self.base
        return found + self.base

    def of_ranks(self, ranks: Ints) -> Ints:
        """Return the bucket of each rank."""
        return np.searchsorted(self.starts, ranks, "right") - 1 + self.base

    def interval(self, bucket: int) -> tuple[int, int]:
        """Return the first rank of a bucket and the one after its last."""
        return int(self.starts[bucket - self.base]), int(self.starts[bucket - self.base + 1])


@dataclass(frozen=True)
class Buckets:
    """The buckets of all pieces of a file, numbered through."""

    pieces: tuple[PieceBuckets, ...]

    def piece_of(self, bucket: int) -> int:
        """Return the number of the piece that a bucket belongs to."""
        bases = [one.base for one in self.pieces]
        return int(np.searchsorted(bases, bucket, "right")) - 1


def find_buckets(transport: Transport, names: tuple[str, ...], sizes: Sequence[int], largest: int) -> Buckets:
    """Return buckets of at most about `largest` values for pieces of these sizes, by a sample and a count."""
    wanted = [max(1, -(-n // max(int(FULL * largest), 1))) for n in sizes]
    splitters = _splitters(transport, names, sizes, wanted)
    task = CountCells(names, splitters)
    counts = dict(transport.scan(task, Reads(names), step="counting ranks"))
    pieces: list[PieceBuckets] = []
    base = 0
    for piece, cuts in enumerate(splitters):
        empty = np.zeros(2 * len(cuts) + 1, np.int64)
        by_block = {first: found.get(piece, empty) for first, found in sorted(counts.items())}
        made = _piece_buckets(base, cuts, by_block, largest)
        pieces.append(made)
        base += len(made.starts) - 1
    return Buckets(tuple(pieces))


def _splitters(
    transport: Transport, names: tuple[str, ...], sizes: Sequence[int], wanted: Sequence[int]
) -> tuple[Floats, ...]:
    """Return the values that cut each piece into so many buckets, from a sample; none for one bucket."""
    rates = [PER_BUCKET * buckets / n for n, buckets in zip(sizes, wanted, strict=True) if buckets > 1]
    if not rates:
        return tuple(np.empty(0) for _ in sizes)
    task = SampleValues(names, min(1.0, max(rates)))
    parts: list[list[Floats]] = [[] for _ in sizes]
    for found in transport.scan(task, Reads(names), step="sampling"):
        for piece, values in found.items():
            parts[piece].append(values)
    result = []
    for values, buckets in zip(parts, wanted, strict=True):
        ordered = np.sort(np.concatenate(values)) if values else np.empty(0)
        places = np.arange(1, buckets) * ordered.size // buckets
        result.append(np.unique(ordered[places]) if ordered.size else np.empty(0))
    return tuple(result)


def _piece_buckets(base: int, splitters: Floats, by_block: Mapping[int, Ints], largest: int) -> PieceBuckets:
    """Return the buckets of a piece from the counts of its cells by block."""
    total = np.sum(list(by_block.values()), axis=0)
    bucket = np.zeros(len(total), np.int64)
    starts, held, cut = [0], 0, set()
    ranks = np.append(0, np.cumsum(total))
    for cell, (first, end) in enumerate(pairwise(ranks.tolist())):
        if held and held + end - first > largest:
            starts.append(first)
            held = 0
        bucket[cell] = len(starts) - 1
        held += end - first
        if cell % 2 and end - first > largest:
            cut.add(cell)
            starts.extend(range(first + largest, end, largest))
            held = end - starts[-1]
    before = {}
    passed = np.zeros(len(total), np.int64)
    for first, counts in by_block.items():
        before[first] = {cell: int(passed[cell]) for cell in cut}
        passed = passed + counts
    return PieceBuckets(
        base, splitters, bucket, np.array([*starts, int(ranks[-1])]), ranks[:-1], frozenset(cut), before
    )
