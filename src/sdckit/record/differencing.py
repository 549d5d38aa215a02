"""Subtract two published files: what they tell of cells that only one of their originals has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sdckit.kernels.jit import Bools, Floats, Ints

NEAR = 0.1  # a guess within this share of a cell tells it
ALLOWED = 0.1  # by how much the share of such guesses may exceed that of one guess for everybody
EXACT = 1e-6  # a guess within this share of a cell tells all of it
ROUNDING = 1e-12  # of a sum, relative to the sum of absolute values


class Side(NamedTuple):
    """One of two published files, in the order of its original: n records, p columns that both files have.

    `original` is NaN where it is missing or not known any more; `apart` marks cells that the original of the
    other file has not: of records that left or joined, and those that changed.
    """

    published: Floats
    original: Floats
    apart: Bools

    @property
    def known(self) -> Bools:
        """Cells that are apart and whose original is known."""
        return self.apart & ~np.isnan(self.original)


class Partition(NamedTuple):
    """Groups of the records of both files, by columns that both publish unmasked: a number each."""

    before: Ints
    after: Ints


@dataclass(frozen=True)
class Differences:
    """What subtracting two files tells of the cells that are in the original of one of them alone.

    `share` of the known cells are guessed within 10 %, `constant` by one guess for everybody; `exact` counts
    cells that follow to the last digit, without knowing any other record.
    """

    cells: int = 0
    share: float = 0.0
    constant: float = 0.0
    exact: int = 0

    @property
    def tell(self) -> bool:
        """True if the files tell more than a release may."""
        return self.exact > 0 or self.share - self.constant > ALLOWED

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return {"cells": self.cells, "share": self.share, "constant": self.constant, "exact": self.exact}


def subtract(
    before: Side, after: Side, partitions: Sequence[Partition], *, alike: bool = False
) -> Differences:
    """Guess the cells that are apart from the two published files alone, by every kind of difference.

    0 means that nothing follows, a share of 1 that every such cell is told within 10 %. Each kind of guess is
    made in the whole files and in each partition, and the best one counts; so does the best of the guesses
    that are the same for everybody. `alike` says that both files were masked by the same method: where the
    original of the earlier one is not known any more, it kept totals if the later one does.
    """
    exact = np.zeros(before.apart.shape, bool), np.zeros(after.apart.shape, bool)
    best = {"guess": 0.0, "constant": 0.0}
    for partition in [_whole(before, after), *partitions]:
        hits: dict[str, list[Bools]] = {name: [np.empty(0, bool)] for name in GUESSES | CONSTANTS}
        for cut in _cuts(before, after, partition):
            for found, told in zip(exact, _told(cut, alike=alike), strict=True):
                found[told, cut.column] = True
            for name, guess in (GUESSES | CONSTANTS).items():
                hits[name] += cut.hits(guess(cut))
        for name, parts in hits.items():
            of_kind, right = "guess" if name in GUESSES else "constant", np.concatenate(parts)
            best[of_kind] = max(best[of_kind], right.mean() if len(right) else 0.0)
    cells = int(before.known.sum() + after.known.sum())
    followed = int(exact[0].sum() + exact[1].sum())
    return Differences(cells, float(best["guess"]), float(best["constant"]), followed)


def _whole(before: Side, after: Side) -> Partition:
    """Return the partition that has all records in one group."""
    return Partition(np.zeros(len(before.published), np.int64), np.zeros(len(after.published), np.int64))


@dataclass(frozen=True)
class _Cut:
    """One column of both files in one group: published cells, and rows whose cells are apart."""

    column: int
    sides: tuple[Side, Side]
    rows: tuple[Ints, Ints]  # of the group
    apart: tuple[Ints, Ints]

    @cached_property
    def published(self) -> tuple[Floats, Floats]:
        """The published cells of the earlier and of the later file that are not missing."""
        cells = [side.published[rows, self.column] for side, rows in zip(self.sides, self.rows, strict=True)]
        return cells[0][~np.isnan(cells[0])], cells[1][~np.isnan(cells[1])]

    @cached_property
    def unmatched(self) -> tuple[Floats, Floats]:
        """The values that each file has more often than the other, as often as it has them more."""
        first, second = self.published
        values, places = np.unique(np.concatenate([first, second]), return_inverse=True)
        counts = [np.bincount(part, minlength=len(values)) for part in np.split(places, [len(first)])]
        more = counts[0] - counts[1]
        return np.repeat(values, np.maximum(more, 0)), np.repeat(values, np.maximum(-more, 0))

    @cached_property
    def slack(self) -> float:
        """What rounding errors of a sum amount to."""
        return ROUNDING * float(sum(np.abs(cells).sum() for cells in self.published))

    def truth(self, which: int) -> Floats:
        """Return the original cells that are apart; NaN where they are not known."""
        return self.sides[which].original[self.apart[which], self.column]

    def hits(self, guesses: tuple[float, float]) -> list[Bools]:
        """Return which of the known cells are guessed within 10 %, of both files."""
        found = []
        for which, guess in enumerate(guesses):
            truth = self.truth(which)
            truth = truth[~np.isnan(truth)]
            found.append(np.abs(guess - truth) <= NEAR * np.abs(truth) + self.slack)
        return found

    def total_error(self, which: int) -> float:
        """Return by how much a total differs from that of the original; NaN if that is not known."""
        cells = self.sides[which].original[self.rows[which], self.column]
        known = ~np.isnan(cells)
        if not known.any():
            return np.nan
        return abs(float(self.published[which].sum() - cells[known].sum()))


def _cuts(before: Side, after: Side, partition: Partition) -> Iterator[_Cut]:
    """Yield each column in each group that has cells apart."""
    groups = np.union1d(partition.before[before.apart.any(1)], partition.after[after.apart.any(1)])
    members = [_members(codes, groups) for codes in partition]
    for rows in zip(*members, strict=True):
        for j in range(before.published.shape[1]):
            apart = rows[0][before.apart[rows[0], j]], rows[1][after.apart[rows[1], j]]
            if len(apart[0]) or len(apart[1]):
                yield _Cut(j, (before, after), (rows[0], rows[1]), apart)


def _members(codes: Ints, groups: Ints) -> list[Ints]:
    """Return the rows of each of some groups."""
    order = np.argsort(codes, kind="stable")
    ends = [np.searchsorted(codes[order], groups, side) for side in ("left", "right")]
    return [order[start:end] for start, end in zip(*ends, strict=True)]


def _by_sums(cut: _Cut) -> tuple[float, float]:
    """Guess by the difference of sums, split equally; also of means times sizes, which are sums of groups.

    With leavers and joiners, each is taken for an average record, and what this leaves unexplained is split.
    """
    first, second = cut.published
    left, joined = (len(rows) for rows in cut.apart)
    if not len(first) + len(second):
        return np.nan, np.nan
    average = (first.sum() + second.sum()) / (len(first) + len(second))
    rest = (first.sum() - second.sum() - (left - joined) * average) / (left + joined)
    return average + rest, average - rest


def _by_values(cut: _Cut) -> tuple[float, float]:
    """Guess by the values that one file has more often than the other: the one with most of them near it."""
    return _crowded(cut.unmatched[0]), _crowded(cut.unmatched[1])


def _crowded(values: Floats) -> float:
    """Return the value that is a good guess for most of the values, the least of several; NaN without any."""
    if not len(values):
        return np.nan
    ordered = np.sort(values)
    ends = np.sort([ordered / (1 + NEAR), ordered / (1 - NEAR)], axis=0)
    near = np.searchsorted(ordered, ends[1], "right") - np.searchsorted(ordered, ends[0], "left")
    return float(ordered[np.argmax(near)])


def _most_frequent(values: Floats) -> float:
    """Return the most frequent value, the least of several; NaN without any."""
    if not len(values):
        return np.nan
    distinct, counts = np.unique(values, return_counts=True)
    return float(distinct[np.argmax(counts)])


def _median(values: Floats) -> float:
    """Return the median; NaN without values."""
    return float(np.median(values)) if len(values) else np.nan


def _of_each(constant: Callable[[Floats], float]) -> Callable[[_Cut], tuple[float, float]]:
    """Return a guess that is the same for everybody in a group, from the file that he is in."""
    return lambda cut: (constant(cut.published[0]), constant(cut.published[1]))


GUESSES = {"sums": _by_sums, "values": _by_values}
CONSTANTS = {
    one.__name__: _of_each(one) for one in (_median, _most_frequent, _crowded)
}  # what an intruder guesses who has no second file


def _told(cut: _Cut, *, alike: bool) -> tuple[Ints, Ints]:
    """Return the rows of both files whose cell follows to the last digit and alone.

    A single value that only one file has is that of the single record that is apart. A difference of totals
    is the cell of the only record that is apart, if both files keep their totals; if they do not, a guess
    that is right is so by chance.
    """
    none = cut.apart[0][:0]
    found = [none, none]
    values, sums = cut.unmatched, _by_sums(cut)
    for which in (0, 1):
        if len(cut.apart[which]) != 1:
            continue
        truth = float(cut.truth(which)[0])
        by_value = len(values[which]) == 1 and _same(float(values[which][0]), truth, cut.slack)
        only = not len(cut.apart[1 - which])
        if by_value or (only and _same(sums[which], truth, cut.slack) and _keeps_totals(cut, sums, alike)):
            found[which] = cut.apart[which]
    return found[0], found[1]


def _same(guess: float, truth: float, slack: float) -> bool:
    """Return True if a guess is a cell to the last digit, or nothing is known against it."""
    return not abs(guess - truth) > EXACT * abs(truth) + slack and not np.isnan(guess)


def _keeps_totals(cut: _Cut, sums: tuple[float, float], alike: bool) -> bool:  # noqa: FBT001 - passed on
    """Return True if both files have the totals of their originals."""
    errors = [cut.total_error(which) for which in (0, 1)]
    if not any(np.isnan(errors)):
        return max(errors) <= EXACT * abs(sums[0 if len(cut.apart[0]) else 1]) + cut.slack
    return alike and bool(np.nanmin(errors) <= NEAR * abs(sums[0]))
