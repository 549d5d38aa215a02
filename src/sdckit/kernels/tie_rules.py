"""Rank distances under every tie rule, their range over all tie-breakings, variance and null levels.

The theorems behind this module: expectation under independent random tie-breaking is additive
over records; the least and the largest distance over all tie-breakings are attained by
lexicographic and anti-lexicographic order; and min <= average <= expected <= max <= 1.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from sdckit.kernels.jit import Floats, Ints, kernel
from sdckit.kernels.ranks import (
    OrderedColumn,
    RankSums,
    average_distance,
    block_ends,
    gap_distance,
    has_ties,
    largest_absolute,
    largest_squared,
    mean_gap,
    sorted_rows,
    tie_sum,
)

Number = TypeVar("Number", np.int64, np.float64)

TIES = ("average", "expected", "random", "first", "last", "min", "max")


def distance(
    column: OrderedColumn, masked: Floats, ties: str = "average", rng: np.random.Generator | None = None
) -> RankSums:
    """Return the sums of absolute and squared rank differences of one column under a rule of `TIES`."""
    if ties == "average":
        return average_distance(column, masked)
    if ties in {"min", "max", "expected"}:
        alignment = AlignedColumn(column, masked)
        return {"min": alignment.least, "max": alignment.largest, "expected": alignment.expected}[ties]()
    return gap_distance(row_gaps2(column, masked, ties, rng))


def row_gaps2(
    column: OrderedColumn, masked: Floats, ties: str, rng: np.random.Generator | None = None
) -> Ints:
    """Return twice the rank difference of each row, for every tie rule that assigns ranks."""
    if ties in {"min", "max"}:
        alignment = AlignedColumn(column, masked)
        ours, theirs = alignment.least_ranks() if ties == "min" else alignment.largest_ranks()
        return alignment.to_rows(2 * (ours - theirs))
    return column.ranks2(ties, rng) - OrderedColumn(masked).ranks2(ties, rng)


class AlignedColumn:
    """A masked column sorted beside its original ranks; gives their rank distance under each tie rule.

    Equal masked values are in original order.
    """

    def __init__(self, column: OrderedColumn, masked: Floats) -> None:
        self.column = column
        self.n: int = column.n
        self.label: Ints
        self.first: Ints
        self.label, self.first = sorted_rows(masked[column.order])
        self.tied: bool = has_ties(self.first)

    @cached_property
    def last(self) -> Ints:
        """Last position of the masked tie block that each masked position is in."""
        return block_ends(self.first)

    @property
    def has_ties(self) -> bool:
        """True if the original or the masked column has ties, so that tie rules can differ."""
        return self.tied or self.column.tied

    def to_rows(self, by_position: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return values given by masked position in the order of the rows."""
        rows = np.empty_like(by_position)
        rows[self.column.order[self.label]] = by_position
        return rows

    def least_ranks(self) -> tuple[Ints, Ints]:
        """Return both ranks of each record, in masked order, for the tie-breaking of least distance."""
        original = np.empty(self.n, np.int64)
        _least_ranks(self.label, self.column.first, np.zeros(self.n, np.int64), original)
        return original, np.arange(self.n)

    def largest_ranks(self) -> tuple[Ints, Ints]:
        """Return both ranks of each record, in masked order, for the tie-breaking of largest distance."""
        original = np.empty(self.n, np.int64)
        masked = np.empty(self.n, np.int64)
        _largest_ranks(
            self.label, self.first, self.last, self.column.first, np.zeros(self.n, np.int64), original, masked
        )
        return original, masked

    def least(self) -> RankSums:
        """Return the least rank distance sums over all tie-breakings."""
        original, masked = self.least_ranks()
        return gap_distance(2 * (original - masked))

    def largest(self) -> RankSums:
        """Return the largest rank distance sums over all tie-breakings."""
        original, masked = self.largest_ranks()
        return gap_distance(2 * (original - masked))

    def average(self) -> RankSums:
        """Return the rank distance sums between mid-ranks."""
        return gap_distance(self.column.middle2[self.label] - (self.first + self.last))

    def expected(self) -> RankSums:
        """Return the mean rank distance sums over independent random tie-breakings of both columns."""
        middle = self.average()
        absolute = float(np.sum(self.expected_absolute()))
        spread = tie_sum(self.column.first) + tie_sum(self.first)
        return RankSums(self.n, 2 * absolute, middle.squared4 + spread / 3)

    def expected_absolute(self) -> Floats:
        """Return E|R - S|, the mean over random tie-breakings, for each masked position."""
        out = np.empty(self.n, np.float64)
        _expected_absolute(
            self.column.first[self.label], self.column.last[self.label], self.first, self.last, out
        )
        return out

    def expected_squared(self) -> Floats:
        """Return E(R - S)**2, the mean over random tie-breakings, for each masked position."""
        middle = (self.column.middle2[self.label] - self.first - self.last) / 2.0
        lengths = self.column.last[self.label] - self.column.first[self.label] + 1.0
        others = self.last - self.first + 1.0
        return middle**2 + (lengths**2 - 1) / 12 + (others**2 - 1) / 12

    def squared_variance(self) -> float:
        """Return the exact variance of brMSE under independent random tie-breaking; 0 without ties."""
        if self.n < 2 or not self.has_ties:
            return 0.0
        return 4.0 * self._product_variance() / largest_squared(self.n) ** 2

    def _product_variance(self) -> float:
        """Return the variance of the sum of R * S over random tie-breakings."""
        block, other = self.column.first[self.label], self.first
        length = self.column.last[self.label] - block + 1.0
        other_length = self.last - other + 1.0
        middle = self.column.middle2[self.label] / 2.0
        other_middle = (self.first + self.last) / 2.0
        total = np.sum((length + 1) * length / 12 * _squares_within(block, other_middle) / length)
        total += np.sum(
            (other_length + 1) * other_length / 12 * _squares_within(other, middle) / other_length
        )
        _, index, count = np.unique(block * self.n + other, return_index=True, return_counts=True)
        variance = (length[index] ** 2 - 1) / 12 * (other_length[index] ** 2 - 1) / 12
        free = (length[index] - 1) * (other_length[index] - 1)
        joint = np.divide(count * (count - 1.0) * variance, free, out=np.zeros_like(variance), where=free > 0)
        return float(total + np.sum(count * variance + joint))


def _squares_within(block: Ints, values: Floats) -> Floats:
    """Return the sum of squares round the mean of each block, repeated on every row of the block."""
    _, number = np.unique(block, return_inverse=True)
    count = np.bincount(number)
    mean = np.bincount(number, weights=values) / count
    squares: Floats = np.bincount(number, weights=(values - mean[number]) ** 2).astype(np.float64)
    return squares[number]


@kernel
def _least_ranks(label: Ints, block: Ints, used: Ints, original: Ints) -> None:
    """Write original ranks for least distance: records tied in the original ascend by masked position."""
    for j in range(label.size):
        begin = block[label[j]]
        original[j] = begin + used[begin]
        used[begin] += 1


@kernel
def _largest_ranks(
    label: Ints, first: Ints, last: Ints, block: Ints, used: Ints, original: Ints, masked: Ints
) -> None:
    """Write both ranks of each record for largest distance: records tied in the original descend by masked.

    Records that share both their original and their masked tie block get opposite orders.
    """
    end = label.size
    while end > 0:
        begin = end - 1
        block_start = block[label[begin]]
        while begin > first[end - 1] and block[label[begin - 1]] == block_start:
            begin -= 1
        for t in range(begin, end):
            original[t] = block_start + used[block_start] + t - begin
            masked[t] = first[t] + last[t] - t
        used[block_start] += end - begin
        end = begin


@kernel
def _expected_absolute(a: Ints, b: Ints, c: Ints, d: Ints, out: Floats) -> None:
    """Write E|R - S| of each record, for R uniform on the integers a..b and S on c..d."""
    for j in range(a.size):
        out[j] = mean_gap(a[j], b[j], c[j], d[j])


# Levels of an unrelated masked column: the mean over all ways to pair the two columns.


@kernel
def cross_gap_part(
    points: Floats,
    weights: Floats,
    others: Floats,
    low: float,
    high: float,
    below: float,
    above: float,
    passed: int,
    count: int,
) -> float:
    """Return the part of the sum of weights[i] |points[i] - others[j]| that lies between two values.

    Each distance is the length of the stretch between its ends, so the sum adds up over stretches of values.
    `points` and `others` are the sorted values from `low` to `high`; points below the stretch have the total
    weight `below`, all others `above`; `passed` of the `count` others lie below it.
    """
    total = 0.0
    i = j = 0
    previous = low
    while i < points.size or j < others.size:
        if j == others.size or (i < points.size and points[i] <= others[j]):
            here = points[i]
            total += (here - previous) * (below * (count - passed - j) + above * (passed + j))
            below += weights[i]
            above -= weights[i]
            i += 1
        else:
            here = others[j]
            total += (here - previous) * (below * (count - passed - j) + above * (passed + j))
            j += 1
        previous = here
    if high > previous:
        total += (high - previous) * (below * (count - passed - j) + above * (passed + j))
    return total


@kernel
def mean_cross_gap(points: Floats, weights: Floats, others: Floats) -> float:
    """Return the sum over i of weights[i] times the mean over j of |points[i] - others[j]|; both sorted."""
    above = 0.0
    for k in range(weights.size):
        above += weights[k]
    low, n = min(points[0], others[0]), others.size
    return cross_gap_part(points, weights, others, low, low, 0.0, above, 0, n) / n


def untied_level(n: int) -> tuple[float, float]:
    """Return the expected brMAE and brMSE of a random order of n records without ties."""
    return ((n * n - 1) / 3 / largest_absolute(n), 0.5) if n > 1 else (float("nan"), float("nan"))


def random_level(alignment: AlignedColumn, ties: str) -> tuple[float, float]:
    """Return the expected brMAE and brMSE of a masked column whose order is unrelated to the original's.

    Rules that break ties at random score as without ties, mid-ranks score less. For first, last,
    min and max no formula is known where there are ties: NaN.
    """
    if ties != "average" or not alignment.has_ties:
        return level_without_midranks(alignment.n, ties, has_ties=alignment.has_ties)
    original = alignment.column.middle2 / 2.0
    masked = (alignment.first + alignment.last) / 2.0
    lost = tie_sum(alignment.column.first) + tie_sum(alignment.first)
    return midrank_level(alignment.n, mean_cross_gap(original, np.ones(alignment.n), masked), lost)


def level_without_midranks(n: int, ties: str, *, has_ties: bool) -> tuple[float, float]:
    """Return brMAE and brMSE in unrelated order where no mid-rank is needed; NaN without a formula."""
    if n < 2 or not has_ties or ties in {"random", "expected"}:
        return untied_level(n)
    return float("nan"), float("nan")


def midrank_level(n: int, cross_gap: float, lost: int) -> tuple[float, float]:
    """Return brMAE and brMSE in unrelated order under mid-ranks.

    `cross_gap` is `mean_cross_gap` of the mid-ranks of both columns, `lost` the sum of their `tie_sum`.
    """
    return cross_gap / largest_absolute(n), 0.5 - lost / (4 * n * (n * n - 1))


class TieSummary(NamedTuple):
    """Effect of ties in one column: least and largest rank distance, and the level of unrelated order."""

    has_ties: bool
    least: RankSums
    largest: RankSums
    levels: dict[str, tuple[float, float]]


def summarise(alignment: AlignedColumn) -> TieSummary:
    """Return the least, largest and random levels of an alignment's rank distance, without its arrays."""
    least = alignment.least()
    largest = alignment.largest() if alignment.has_ties else least
    levels = {ties: random_level(alignment, ties) for ties in TIES}
    return TieSummary(alignment.has_ties, least, largest, levels)
