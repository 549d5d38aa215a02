"""Splitters of a variable, and the ranks and tie blocks that follow from counts of its buckets.

A row is (x, t, y): original value, an optional column that breaks ties (weights or row numbers), masked
value. The original order sorts rows by (x, t, y), the masked order by (y, t, x). The same splitter rows cut
both orders. Rows equal to a splitter form a cell: they are identical, so that they are counted and never
sent, and no heavy value can fill a bucket.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdckit.kernels.jit import Floats, Ints, kernel
from sdckit.kernels.lexicographic import number_buckets, value_buckets

Numbers = NDArray[Any]  # int64 where rows are counted, float64 where weights are added up
NONE = np.empty(0)


class Rows(NamedTuple):
    """Rows (x, t, y) of a variable with a value in both files; `t` has length 0 where nothing breaks ties."""

    x: Floats
    t: Floats
    y: Floats

    def take(self, chosen: Ints) -> Rows:
        """Return the rows with these numbers."""
        return Rows(*(column[chosen] if column.size else column for column in self))

    @property
    def turned(self) -> Rows:
        """The same rows with original and masked values exchanged."""
        return Rows(self.y, self.t, self.x)


def choose_splitters(sample: Rows, parts: int) -> Rows:
    """Return distinct rows of a sample that cut both orders into about `parts` parts of equal size."""
    if parts < 2 or not sample.x.size:
        return sample.take(np.empty(0, np.int64))
    at = np.arange(1, parts) * sample.x.size // parts
    middle = [sample.t] if sample.t.size else []
    orders = [np.lexsort((last, *middle, first)) for first, _, last in (sample, sample.turned)]
    chosen = np.concatenate([order[at] for order in orders])
    columns = np.unique(np.column_stack([c[chosen] for c in sample if c.size]), axis=0).T
    x, y = np.ascontiguousarray(columns[0]), np.ascontiguousarray(columns[-1])
    return Rows(x, np.ascontiguousarray(columns[1]) if middle else NONE, y)


@dataclass(frozen=True)
class Splitters:
    """Splitter rows in one of the two orders, with their distinct first values.

    `cells` has the number that each splitter has in the original order.
    """

    first: Floats
    middle: Floats
    last: Floats
    cells: Ints

    @classmethod
    def of(cls, rows: Rows) -> Splitters:
        """Return splitters sorted by (first, middle, last)."""
        middle = [rows.t] if rows.t.size else []
        order = np.lexsort((rows.y, *middle, rows.x))
        return cls(*rows.take(order), order)

    @property
    def rows(self) -> Rows:
        """The splitters as rows."""
        return Rows(self.first, self.middle, self.last)

    @property
    def number(self) -> int:
        """Number of splitters; there is one bucket more of rows between them."""
        return self.first.size

    @cached_property
    def values(self) -> Floats:
        """Distinct first values of the splitters, ascending."""
        return np.unique(self.first)

    @cached_property
    def value_of(self) -> Ints:
        """For each splitter, the number of its first value among the distinct ones."""
        return np.searchsorted(self.values, self.first)

    def buckets(self, rows: Rows) -> Ints:
        """Return the bucket of each row: even between splitters, odd for rows equal to one."""
        return number_buckets(*rows, self.first, self.middle, self.last)

    def values_of(self, rows: Rows, buckets: Ints) -> Ints:
        """Return the bucket of each row's first value among the distinct ones, given its bucket of rows."""
        return _buckets_of_values(rows.x, buckets, self.first, self.value_of)


@kernel
def _buckets_of_values(x: Floats, buckets: Ints, first: Floats, value_of: Ints) -> Ints:
    """Return 2k + 1 for rows whose x is the k-th distinct splitter value, and 2k for those just below it."""
    found = np.empty(x.size, np.int64)
    for i in range(x.size):
        at = buckets[i] >> 1
        if buckets[i] & 1 or (at < first.size and x[i] == first[at]):
            found[i] = 2 * value_of[at] + 1
        elif at > 0:
            found[i] = 2 * value_of[at - 1] + (1 if x[i] == first[at - 1] else 2)
        else:
            found[i] = 0
    return found


@dataclass(frozen=True)
class Tally:
    """Numbers (or weights) of rows by bucket of rows and by bucket of first values, in one order."""

    buckets: Numbers
    values: Numbers

    def plus(self, other: Tally) -> Tally:
        """Return the sum of two tallies."""
        return Tally(self.buckets + other.buckets, self.values + other.values)

    @cached_property
    def before(self) -> Numbers:
        """Total before each bucket of rows, and after the last one."""
        return np.concatenate((self.buckets[:1] * 0, np.cumsum(self.buckets)))

    @cached_property
    def after(self) -> Numbers:
        """Total after each bucket of rows; its own sum, so that no digits are lost."""
        return np.append(np.cumsum(self.buckets[:0:-1])[::-1], self.buckets[:1] * 0)

    @cached_property
    def below(self) -> Numbers:
        """Total below each distinct first value."""
        return np.cumsum(self.values)[:-1:2]

    @cached_property
    def above(self) -> Numbers:
        """Total above each distinct first value."""
        return np.cumsum(self.values[::-1])[::-1][2::2]

    @cached_property
    def equal(self) -> Numbers:
        """Total at each distinct first value."""
        return self.values[1::2]


def tally(splitters: Splitters, rows: Rows, weights: Floats | None = None) -> list[Tally]:
    """Return the number and, where there are weights, the weight of rows in each bucket of an order."""
    buckets = splitters.buckets(rows)
    by_value = splitters.values_of(rows, buckets)
    sizes = 2 * splitters.number + 1, 2 * splitters.values.size + 1
    return [
        Tally(np.bincount(buckets, each, sizes[0]), np.bincount(by_value, each, sizes[1]))
        for each in (None, *([] if weights is None else [weights]))
    ]


def count_values(values: Floats, splitters: Floats, shares: Iterable[Floats]) -> list[Numbers]:
    """Return the number of values in each bucket of distinct values, then the sums of their shares."""
    buckets = value_buckets(values, splitters)
    return [np.bincount(buckets, each, 2 * splitters.size + 1) for each in (None, *shares)]
