"""Costs of cells and their sums over blocks of records: one pass serves MAE, MSE, IL1 and IL1s."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from sdckit.kernels.jit import Floats, Ints, inlined, kernel
from sdckit.kernels.tie_rules import mean_cross_gap

if TYPE_CHECKING:
    from collections.abc import Callable

# The two costs of a cell: for arrays as they stand, compiled for the kernel that adds them up.


def absolute_cost(x: Any, y: Any, scale: Any) -> Any:
    """Return |x - y| / scale, for arrays or numbers."""
    return abs(x - y) / scale


def squared_cost(x: Any, y: Any, scale: Any) -> Any:
    """Return (x - y)**2 / scale, for arrays or numbers."""
    return (x - y) * (x - y) / scale


def arctan_changes(x: Floats, y: Floats, unit: float) -> Floats:
    """Return (2/pi) arctan(|x - y| / unit) for each cell; for unit 0, 1 where the cell changed."""
    if unit == 0:
        return (x != y).astype(np.float64)
    with np.errstate(over="ignore"):
        found: Floats = np.arctan(np.abs(x - y) / unit) * (2 / np.pi)
    return found


_absolute, _squared = inlined(absolute_cost), inlined(squared_cost)


@dataclass(frozen=True)
class Cost:
    """Cost of a cell and its divisor: 1, the cell's own size, or sqrt(2) standard deviations of its variable.

    `place` is the column of `CellSums.sums` that adds it up.
    """

    of: Callable[[Any, Any, Any], Any]
    scale: Literal["none", "value", "spread"]
    place: int

    def unrelated_sum(self, x: Floats, y: Floats, shares: Floats) -> float:
        """Return the sum of shares[i] times the mean cost of x[i] against all of y: unrelated order."""
        if self.of is squared_cost:
            with np.errstate(over="ignore"):
                return unrelated_squares(x, shares, y.mean(), y.var())
        order = np.argsort(x, kind="stable")
        return float(mean_cross_gap(x[order], shares[order], np.sort(y)))


def unrelated_squares(x: Floats, shares: Floats, mean: float, variance: float) -> float:
    """Return the sum of shares[i] times the mean of (x[i] - y)**2, from mean and variance of all y.

    Sums of blocks of x add up. Beyond the range of numbers the sum is infinite.
    """
    with np.errstate(over="ignore"):
        return float(np.sum(shares * ((x - mean) ** 2 + variance)))


MAE, MSE = Cost(absolute_cost, "none", 0), Cost(squared_cost, "none", 1)
IL1, IL1S = (
    Cost(absolute_cost, "value", 2),
    Cost(absolute_cost, "spread", 0),
)  # a scale of all cells divides their sum
ALL, NOT_ZERO, ZERO = 3, 4, 5  # columns of the sums that hold weights: of all cells, of x != 0, of x = y = 0
SEEN, KEPT, CHANGED = range(3)  # columns of the counts: cells in both files, x = y = 0, x = 0 but y not


@kernel
def _add_cells(x: Floats, y: Floats, weights: Floats, sums: Floats, counts: Ints) -> None:
    """Add costs, weights and counts of the cells observed in both files to the sums of each variable.

    An empty `weights` stands for ones. Blocks are added up apart, so that the rounding errors of a long
    column do not pile up.
    """
    for j in range(len(x)):
        for begin in range(0, x.shape[1], 256):
            plain = square = relative = every = not_zero = zero = 0.0
            kept = changed = missing = 0
            end = min(begin + 256, x.shape[1])
            for i in range(begin, end):
                a, b = x[j, i], y[j, i]
                if np.isnan(a) or np.isnan(b):
                    missing += 1
                    continue
                w = weights[i] if weights.size else 1.0
                every += w
                plain += w * _absolute(a, b, 1.0)
                square += w * _squared(a, b, 1.0)
                if a != 0:
                    not_zero += w
                    relative += w * _absolute(a, b, abs(a))
                elif b == 0:
                    zero += w
                    kept += 1
                else:
                    changed += 1
            sums[j, 0] += plain
            sums[j, 1] += square
            sums[j, 2] += relative
            sums[j, ALL] += every
            sums[j, NOT_ZERO] += not_zero
            sums[j, ZERO] += zero
            counts[j, SEEN] += end - begin - missing
            counts[j, KEPT] += kept
            counts[j, CHANGED] += changed


class CellSums(NamedTuple):
    """Sums of costs and weights, and counts of cells, of each variable; those of blocks add up.

    Columns of `sums` are the places of the costs, then `ALL`, `NOT_ZERO` and `ZERO`; those of `counts` are
    `SEEN`, `KEPT` and `CHANGED`.
    """

    sums: Floats
    counts: Ints

    def used(self, cost: Cost, zeros: str) -> Ints:
        """Return each variable's number of cells that count; a changed zero has no relative change."""
        seen, kept, changed = self.counts.T
        if cost.scale != "value":
            return seen
        return seen - changed - kept if zeros == "drop" else seen - changed

    @property
    def zero_weights(self) -> Floats:
        """Summed weight of the cells with an original value of 0, for each variable."""
        return self.sums[:, ALL] - self.sums[:, NOT_ZERO]


def cell_sums(x: Floats, y: Floats, weights: Floats | None) -> CellSums:
    """Return the sums and counts of a block of records; `x` and `y` have one row per variable."""
    found = CellSums(np.zeros((len(x), 6)), np.zeros((len(x), 3), np.int64))
    _add_cells(x, y, np.empty(0) if weights is None else weights, *found)
    return found


def variable_scales(spreads: Floats) -> Floats:
    """Return sqrt(2) standard deviations of each variable; 1 where there is no spread.

    NaN where they exceed the largest float, so that no quotient looks like a value.
    """
    with np.errstate(over="ignore"):
        found = np.where(spreads > 0, math.sqrt(2) * spreads, 1.0)
    return np.where(np.isinf(found), np.nan, found)
