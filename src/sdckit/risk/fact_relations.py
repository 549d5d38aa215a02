"""Relations between the cells of one variable in both files, as intervals: the parts of facts.

A relation gives each original and each published record an interval; a published record may stand for an
original one where the two overlap. A record that a relation says nothing of has the interval -inf to inf. A
relation is a fact only if it holds for every true pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.risk.distances import TieBlocks

ROUNDING = 1e-9  # relative widening of half a base, for what floating point makes of halves


class Relation(NamedTuple):
    """Ends of the intervals of original and of published records, one number each per record."""

    low: Floats
    high: Floats
    published_low: Floats
    published_high: Floats

    @property
    def holds(self) -> bool:
        """True if the intervals of every true pair overlap."""
        return bool(((self.low <= self.published_high) & (self.published_low <= self.high)).all())

    @property
    def excludes(self) -> bool:
        """True if some pair of records is excluded."""
        return bool(self.low.max() > self.published_high.min() or self.published_low.max() > self.high.min())


def relation(original: Floats, published: Floats) -> Relation:
    """Return the relation of equal numbers, NaN fitting everything."""
    ours, theirs = np.isnan(original), np.isnan(published)
    return Relation(
        np.where(ours, -np.inf, original),
        np.where(ours, np.inf, original),
        np.where(theirs, -np.inf, published),
        np.where(theirs, np.inf, published),
    )


def place_facts(x: Ints, y: Ints) -> tuple[Ints | None, list[Relation]]:
    """Return what the places of missing cells tell: a class equal in all true pairs, or relations.

    `x` and `y` are 0 where a cell is observed, and else the number of its missing code. Missing stays
    missing (suppression), observed stays observed (imputation), or both; with the codes if these stay, too.
    """
    if not (x.any() or y.any()):
        return None, []
    for ours, theirs in ((x, y), ((x > 0).astype(np.int64), (y > 0).astype(np.int64))):
        if (ours == theirs).all():
            return theirs, []
    return None, [*_first_that_holds(x, y, stays="missing"), *_first_that_holds(x, y, stays="observed")]


def _first_that_holds(x: Ints, y: Ints, *, stays: str) -> Iterator[Relation]:
    """Yield the relation between places with codes, else that without, if one of them holds."""
    for ours, theirs in ((x.astype(float), y.astype(float)), ((x > 0).astype(float), (y > 0).astype(float))):
        found = place_relation(ours, theirs, stays=stays)
        if found.holds:
            yield found
            return


def place_relation(x: Floats, y: Floats, *, stays: str) -> Relation:
    """Return the relation that missing stays missing, or that observed stays observed.

    `x` and `y` are 0 where a cell is observed, and else the number of its missing code.
    """
    if stays == "missing":
        return relation(np.where(x > 0, x, np.nan), y)
    return relation(x, np.where(y > 0, y, np.nan))


def zero_relations(x: Floats, y: Floats) -> tuple[Relation, Relation, Relation]:
    """Return the relations that 0 stays 0, that only 0 becomes 0, and both in one; a missing cell fits."""
    ours = np.where(np.isnan(x), np.nan, x == 0)
    theirs = np.where(np.isnan(y), np.nan, y == 0)
    kept = relation(np.where(ours == 1, 1.0, np.nan), theirs)
    converse = relation(ours, np.where(theirs == 1, 1.0, np.nan))
    return kept, converse, relation(ours, theirs)


def zero_classes(y: Floats) -> Ints:
    """Return 1 for each published cell that is 0, 2 for a missing one and 0 for all others."""
    return np.where(np.isnan(y), 2, y == 0).astype(np.int64)


def zero_facts(x: Floats, y: Floats, *, equal_places: bool) -> tuple[Ints | None, list[Relation], bool]:
    """Return what kept zeros tell: a class or relations; and True if a true pair breaks "0 stays 0"."""
    kept, converse, both = zero_relations(x, y)
    if kept.holds and converse.holds:
        if equal_places:  # missing cells fit missing ones only
            return zero_classes(y), [], False
        return None, [both], False
    return None, [one for one in (kept, converse) if one.holds], not kept.holds


def base_relation(x: Floats, y: Floats, half: Floats) -> Relation:
    """Return the relation of a variable rounded to a base: at most half of it away; a missing cell fits."""
    ours, theirs = relation(x, y), ROUNDING * np.abs(x)
    slack = half + ROUNDING * np.fmax(half, np.abs(y))
    return Relation(
        np.where(np.isnan(x), -np.inf, ours.low - theirs),
        np.where(np.isnan(x), np.inf, ours.high + theirs),
        np.where(np.isnan(y), -np.inf, ours.published_low - slack),
        np.where(np.isnan(y), np.inf, ours.published_high + slack),
    )


def window_relation(ours: TieBlocks, theirs: TieBlocks, j: int, width: float) -> Relation:
    """Return the relation of a window of ranks: blocks of ties, the published one widened, overlap."""
    first, last = relation(ours.first[:, j], theirs.first[:, j]), relation(ours.last[:, j], theirs.last[:, j])
    return Relation(first.low, last.high, first.published_low - width, last.published_high + width)


def spread_over_strata(parts: Sequence[tuple[Ints, Relation]], n: int, *, apart: bool) -> list[Relation]:
    """Return relations of n records from those within strata: one for all, or one for each stratum.

    With `apart`, pairs across strata are not judged; else the blocks of other facts separate strata.
    """
    groups = [[part] for part in parts] if apart else [list(parts)]
    found = []
    for group in groups:
        ends = [np.full(n, sign * np.inf) for sign in (-1, 1, -1, 1)]
        for rows, one in group:
            for end, values in zip(ends, one, strict=True):
                end[rows] = values
        found.append(Relation(*ends))
    return found


def same_stratum_in_blocks(labels: Ints, blocks: Ints | None) -> bool:
    """Return True if each block has records of one stratum only."""
    if blocks is None:
        return not labels.any()
    seen = np.full(int(blocks.max()) + 1, -1)
    seen[blocks] = labels
    return bool((seen[blocks] == labels).all())


def stratum_numbers(parts: Sequence[tuple[Any, ...]], n: int) -> Ints:
    """Return the number of the stratum of each of n records."""
    labels = np.zeros(n, np.int64)
    for number, (rows, *_) in enumerate(parts):
        labels[rows] = number
    return labels
