"""Costs of cells and their sums over a pair of files: one pass serves MAE, MSE, IL1 and IL1s."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sdckit.kernels.jit import Floats, Ints, inlined, kernel
from sdckit.kernels.tie_rules import mean_cross_gap

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair

# The two costs of a cell: for arrays as they stand, compiled for the kernel that adds them up.


def absolute_cost(x: Any, y: Any, scale: Any) -> Any:
    """Return |x - y| / scale, for arrays or numbers."""
    return abs(x - y) / scale


def squared_cost(x: Any, y: Any, scale: Any) -> Any:
    """Return (x - y)**2 / scale, for arrays or numbers."""
    return (x - y) * (x - y) / scale


_absolute, _squared = inlined(absolute_cost), inlined(squared_cost)


@dataclass(frozen=True)
class Cost:
    """Cost of a cell and its divisor: 1, the cell's own size, or sqrt(2) standard deviations of its variable.

    `place` is the column of `_cell_sums` that adds it up.
    """

    of: Callable[[Any, Any, Any], Any]
    scale: Literal["none", "value", "spread"]
    place: int

    def unrelated_sum(self, x: Floats, y: Floats, shares: Floats) -> float:
        """Return the sum of shares[i] times the mean cost of x[i] against all of y: unrelated order."""
        if self.of is squared_cost:
            with np.errstate(over="ignore"):  # beyond the range of numbers the level is infinite
                return float(np.sum(shares * ((x - y.mean()) ** 2 + y.var())))
        order = np.argsort(x, kind="stable")
        return float(mean_cross_gap(x[order], shares[order], np.sort(y)))


MAE, MSE = Cost(absolute_cost, "none", 0), Cost(squared_cost, "none", 1)
IL1, IL1S = (
    Cost(absolute_cost, "value", 2),
    Cost(absolute_cost, "spread", 0),
)  # a scale of all cells divides their sum
ALL, NOT_ZERO, ZERO = 3, 4, 5  # columns of the sums that hold weights: of all cells, of x != 0, of x = y = 0
SEEN, KEPT, CHANGED = range(3)  # columns of the counts: cells in both files, x = y = 0, x = 0 but y not


@kernel
def _cell_sums(x: Floats, y: Floats, weights: Floats, sums: Floats, counts: Ints) -> None:
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


def sums_and_counts(pair: Pair) -> tuple[Floats, Ints]:
    """Return the sums of costs and weights and the counts of cells of each variable, computed once."""
    if "cells" not in pair.cache:
        weights = np.empty(0) if pair.original.weights is None else pair.original.weights
        sums, counts = np.zeros((pair.p, 6)), np.zeros((pair.p, 3), np.int64)
        _cell_sums(pair.original.by_variable, pair.by_variable, weights, sums, counts)
        pair.cache["cells"] = sums, counts
    found: tuple[Floats, Ints] = pair.cache["cells"]
    return found


def variable_scales(original: Original) -> Floats:
    """Return sqrt(2) standard deviations of each variable, computed once; 1 where there is no spread.

    NaN where they exceed the largest float, so that no quotient looks like a value.
    """
    if "scales" not in original.cache:
        spreads = original.spreads
        found = np.where(spreads > 0, math.sqrt(2) * spreads, 1.0)
        original.cache["scales"] = np.where(np.isinf(found), np.nan, found)
    scales: Floats = original.cache["scales"]
    return scales
