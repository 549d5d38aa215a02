"""Sums of rank distances as exact integers (floats under the rule expected), and their largest values."""

from __future__ import annotations

from typing import Any, NamedTuple


def largest_absolute(n: int) -> int:
    """Return the largest possible sum of |r - s| over two rankings of n records."""
    return n * n // 2


def largest_squared(n: int) -> int:
    """Return the largest possible sum of (r - s)**2 over two rankings of n records."""
    return n * (n * n - 1) // 3


class RankSums(NamedTuple):
    """Sums of |r - s| (doubled) and of (r - s)**2 (times four) over the records of a column.

    The sums are numbers for one column, arrays for several columns.
    """

    n: int
    absolute2: Any
    squared4: Any

    @property
    def absolute(self) -> Any:
        """brMAE of the column: 0 keeps every rank, 1 is the largest possible distance."""
        return self.absolute2 / (2 * largest_absolute(self.n)) if self.n > 1 else float("nan")

    @property
    def squared(self) -> Any:
        """brMSE of the column: 0 keeps every rank, 1 is the full reversal."""
        return self.squared4 / (4 * largest_squared(self.n)) if self.n > 1 else float("nan")

    @property
    def mean_absolute(self) -> Any:
        """rMAE of the column, the mean of |r - s| in ranks: 0 keeps every rank."""
        return self.absolute2 / (2 * self.n) if self.n > 1 else float("nan")

    @property
    def mean_squared(self) -> Any:
        """rMSE of the column, the mean of (r - s)**2 in squared ranks: 0 keeps every rank."""
        return self.squared4 / (4 * self.n) if self.n > 1 else float("nan")
