"""Classes of equal records: numbers that are the same for records equal in all that is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.classes import number_values
from sdckit.kernels.jit import UInt64s, kernel

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints
    from sdckit.risk.credits import Credits

SHORT = 2**20  # different last digits of marks that are compared first


@kernel
def _add_marks(bits: UInt64s, marks: UInt64s) -> None:
    """Mix the bits of each row's cells into its mark (splitmix64)."""
    for j in range(bits.shape[1]):
        for i in range(len(bits)):
            x = (marks[i] ^ bits[i, j]) + np.uint64(0x9E3779B97F4A7C15)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            marks[i] = x ^ (x >> np.uint64(31))


def row_marks(*parts: Floats | Ints | UInt64s) -> UInt64s:
    """Return a pseudo-random number for each record, equal for records with equal cells in all parts.

    Missing cells are equal to each other. Two of a million different records share a number with a
    probability below 1e-7.
    """
    marks = np.zeros(len(parts[0]), np.uint64)
    for part in parts:
        cells = part.reshape(len(part), -1)
        if cells.dtype.kind == "f":
            cells = np.where(np.isnan(cells), np.nan, cells + 0.0)  # one kind of NaN, and no -0.0
        if cells.shape[1]:
            _add_marks(np.ascontiguousarray(cells).view(np.uint64), marks)
    return marks


def rows_like(marks: UInt64s, rows: Ints) -> Ints:
    """Return all rows whose mark is that of one of the given rows, in ascending order."""
    short = (marks & np.uint64(SHORT - 1)).astype(np.int64)
    seen = np.zeros(SHORT, np.bool_)
    seen[short[rows]] = True
    some = np.flatnonzero(seen[short])  # few, so that whole marks are compared for few
    return some[np.isin(marks[some], marks[rows])]


class RecordClasses:
    """Records grouped by equal labels: each record's class and the number of records in it."""

    def __init__(self, labels: Ints | UInt64s) -> None:
        self.numbers: Ints = number_values(labels)
        self.sizes: Ints = np.bincount(self.numbers)
        self.alone: bool = bool(self.sizes.max(initial=1) == 1)

    @property
    def firsts(self) -> Ints:
        """A record of each class."""
        found = np.empty(len(self.sizes), np.int64)
        found[self.numbers] = np.arange(len(self.numbers))
        return found

    def means(self, values: Floats) -> Floats:
        """Return the values, each replaced by the mean over its class."""
        if self.alone:
            return values
        sums = np.bincount(self.numbers, weights=values)
        return np.asarray((sums / self.sizes)[self.numbers])

    def single(self, values: Floats) -> Floats:
        """Return the values, 0 for records that have an equal."""
        return values if self.alone else values * (self.sizes[self.numbers] == 1)

    def shared(self, credits_of_each: Credits) -> Credits:
        """Return the success of each query, shared among the queries of its class."""
        return type(credits_of_each)(
            self.means(credits_of_each.expected),
            self.single(credits_of_each.strict),
            self.means(credits_of_each.optimistic),
        )
