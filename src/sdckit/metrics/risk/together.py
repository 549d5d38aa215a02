"""Several releases of one file together: attacks of an intruder who can align their records.

What one release leaves open another may tell: the facts of all of them hold at once, and noise that is drawn
anew for each release averages out. So each release is attacked inside the facts of all, and so are the mean
of the releases and their mean weighted by precision, 1 / mean squared change of each variable.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.core.classes import class_numbers
from sdckit.kernels.candidates import Side
from sdckit.kernels.scaling import powers_of_two
from sdckit.metrics.pair import Pair
from sdckit.metrics.risk.distances import original_scale
from sdckit.metrics.risk.facts import CERTAIN, Facts, facts_of
from sdckit.metrics.risk.linkage_scores import BOTH, applicable_attacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.risk.attack_results import AttackResult
    from sdckit.metrics.risk.facts import Sides

FILES = ("standardised", "corrected", "whitened", "blocks", "breaks rules", "untouched")  # not of the facts
NO_CHANGE = 1e-300  # mean squared change, relative to the variable's size, below which its inverse overflows


class JointAttack(NamedTuple):
    """The result of an attack on releases that are known together, and what it attacks."""

    label: str  # such as "dbrl of release 2" or "dbrl of the mean"
    target: str  # such as "release 2" or "the mean of the releases"
    result: AttackResult


def attacks_together(pairs: Sequence[Pair]) -> Iterator[JointAttack]:
    """Yield the results of all attacks on several releases inside the facts that hold for all of them."""
    shared = common_facts([facts_of(pair) for pair in pairs])
    for number, pair in enumerate(pairs, 1):
        yield from _attacks_on(_inside(pair, shared), f"release {number}", f"release {number}")
    paired = [pair for pair in pairs if pair.disclosure.paired]
    for label, mean in mean_releases(paired).items() if len(paired) > 1 else ():
        joint = Pair(pairs[0].original, mean, table=pairs[0].table)
        yield from _attacks_on(_inside(joint, shared), f"the {label}", f"the {label} of the releases")


def _attacks_on(pair: Pair, label: str, target: str) -> Iterator[JointAttack]:
    """Yield the results of all attacks on a pair; a plain guess is the same for all releases."""
    for result in applicable_attacks(pair, BOTH):
        if result.name == "guess":
            yield JointAttack("guess", "all releases", result)
        else:
            yield JointAttack(f"{result.name} of {label}", target, result)


def _inside(pair: Pair, shared: Facts) -> Pair:
    """Return a pair whose attacks run inside the shared facts; its own order and places are kept."""
    own = pair.cache.get("risk: facts")
    kept = {f"risk: {name}": pair.cache[f"risk: {name}"] for name in FILES if f"risk: {name}" in pair.cache}
    facts = shared if own is None else replace(shared, blocks=own.blocks, places=own.places)
    return replace(pair, cache={**kept, "risk: facts": facts})


def common_facts(found: Sequence[Facts]) -> Facts:
    """Return the facts that several releases give together; doubtful columns (case d) are left out."""
    ours, theirs = zip(*(facts.runs[CERTAIN] for facts in found), strict=True)
    n = found[0].n
    labels = [np.concatenate([a.blocks, b.blocks]) for a, b in zip(ours, theirs, strict=True)]
    blocks = np.split(class_numbers(labels, 2 * n), 2)
    sides: Sides = _joined(ours, blocks[0]), _joined(theirs, blocks[1])
    return Facts({CERTAIN: sides})


def _joined(sides: Sequence[Side], blocks: Ints) -> Side:
    """Return one file's part of the facts of all releases, from those of each and the joint blocks."""
    low, high = (
        np.ascontiguousarray(np.concatenate(ends, axis=1))
        for ends in ([side.low for side in sides], [side.high for side in sides])
    )
    return Side(blocks, low, high)


def mean_releases(pairs: Sequence[Pair]) -> dict[str, Floats]:
    """Return the mean of the masked files, and their mean weighted by the precision of each variable."""
    tables = [pair.masked for pair in pairs]
    weights = precisions(pairs)
    return {
        "mean": weighted_mean(tables, np.ones_like(weights)),
        "weighted mean": weighted_mean(tables, weights),
    }


def weighted_mean(tables: Sequence[Floats], weights: Floats) -> Floats:
    """Return the mean of n x p tables over their observed cells, weighted by a row of weights each."""
    total, weight = np.zeros(tables[0].shape), np.zeros(tables[0].shape)
    for table, row in zip(tables, weights, strict=True):
        seen = ~np.isnan(table)
        total += np.where(seen, table, 0.0) * row
        weight += seen * row
    return np.asfortranarray(np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), np.nan))


def precisions(pairs: Sequence[Pair]) -> Floats:
    """Return 1 / mean squared change of each variable (columns) in each release (rows).

    Where releases publish a variable unchanged, they alone count for it.
    """
    changes = np.array([_mean_squared_changes(pair) for pair in pairs])
    unchanged = changes < NO_CHANGE
    found = np.where(unchanged.any(axis=0), unchanged, 1 / np.where(unchanged, 1.0, changes))
    unit = powers_of_two(found)  # no digit changes, and weighted sums stay in range
    return np.asarray(found / np.where(unit > 0, unit, 1.0))


def _mean_squared_changes(pair: Pair) -> Floats:
    """Return the mean squared change of each variable over cells of both files; infinite without any.

    In units of the original variable's size, a power of two, so that squares stay in range.
    """
    unit = original_scale(pair).unit
    with np.errstate(over="ignore"):
        squares = (pair.masked / unit - pair.original.values / unit) ** 2
    seen = ~np.isnan(squares)
    counts = seen.sum(axis=0)
    sums = np.array([squares[seen[:, j], j].sum() for j in range(pair.p)])
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
