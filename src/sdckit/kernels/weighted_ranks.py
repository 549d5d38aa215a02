"""Rank distances under survey weights, where a record occupies as many positions as its weight.

The position of a record is the weight below its value plus half the weight tied with it. The
extension of brMAE and brMSE to weights is this package's own; equal weights give the unweighted values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.ranks import OrderedColumn
from sdckit.kernels.scaling import powers_of_two

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints

PERMUTATIONS = (9, 99)  # fewest and most random pairings for a level of unrelated order
ENOUGH = 1_000_000  # records in all pairings together
LIGHTEST = 1e-300  # smallest weight as a share of the largest; smaller ones would underflow to 0


class WeightedRanks:
    """Weighted rank positions of one variable, original and masked, and the gaps between them.

    Weights count in units of a power of two next to the largest of them, so that no scale of the weights
    changes a digit or leaves the range of numbers. Positions count from the middle of the weight: half of
    the weight below less half of the weight above. Both are sums of weights and neither is a difference
    from the total, in which the rounding of one heavy record would exceed all others.
    """

    def __init__(self, x: Floats, y: Floats, weights: Floats) -> None:
        self.original: OrderedColumn = OrderedColumn(x)
        self.masked: OrderedColumn = OrderedColumn(y)
        self.weights: Floats = np.maximum(weights / powers_of_two(weights), LIGHTEST)
        self.positions: Floats = _positions(self.original, self.original.order, self.weights)
        self.gap: Floats = self.positions - _positions(self.masked, self.masked.order, self.weights)
        self.reach: float
        self.largest_squared: float
        self.reach, self.largest_squared = _distances_from_middle(
            self.original, self.original.order, self.weights
        )

    def largest(self) -> tuple[float, float]:
        """Return the largest possible weighted sums of |R - S| and (R - S)**2."""
        return self.reach + _distances_from_middle(self.masked, self.masked.order, self.weights)[
            0
        ], self.largest_squared

    def values(self) -> tuple[float, float]:
        """Return weighted brMAE and brMSE: 0 keeps every rank, 1 is the largest possible distance."""
        return _shares(self.gap, self.weights, *self.largest())

    def record_costs(self) -> tuple[Floats, Floats]:
        """Return each record's cost in brMAE and in brMSE; their weighted means are the two values."""
        absolute, squared = self.largest()
        total = self.weights.sum()
        return np.abs(self.gap) * total / absolute, self.gap**2 * total / squared

    def unrelated_values(self) -> tuple[float, float]:
        """Return weighted brMAE and brMSE of an unrelated masked order: means over random pairings.

        The pairings are the same at every call, so that results can be repeated. No column is sorted again:
        a random pairing assigns the positions of the masked order to the records at random.
        """
        n = self.original.n
        rng = np.random.default_rng(0)
        found = []
        for _ in range(int(np.clip(ENOUGH // n, *PERMUTATIONS))):
            rows = rng.permutation(n)
            gap = self.positions - _positions(self.masked, rows, self.weights)
            reach = self.reach + _distances_from_middle(self.masked, rows, self.weights)[0]
            found.append(_shares(gap, self.weights, reach, self.largest_squared))
        absolute, squared = np.mean(found, axis=0).tolist()
        return absolute, squared


def _shares(gap: Floats, weights: Floats, absolute: float, squared: float) -> tuple[float, float]:
    """Return weighted sums of |gap| and gap**2 as shares of their largest values, at most 1."""
    sums = float(np.sum(weights * np.abs(gap))), float(np.sum(weights * gap**2))
    return shares_of_largest(sums, (absolute, squared))


def shares_of_largest(sums: tuple[float, float], largest: tuple[float, float]) -> tuple[float, float]:
    """Return both sums as shares of their largest values, at most 1: rounding could exceed it."""
    return min(sums[0] / largest[0], 1.0), min(sums[1] / largest[1], 1.0)


def _positions(column: OrderedColumn, rows: Ints, weights: Floats) -> Floats:
    """Return the weighted position of each record, if `rows` are the records in the order of the column."""
    below, above = weights_before_after(weights[rows])
    positions = np.empty(column.n)
    positions[rows] = (below[column.first] - above[column.last]) / 2
    return positions


def weights_before_after(ordered: Floats) -> tuple[Floats, Floats]:
    """Return the total weight of the records before each one, and of those after it."""
    below, above = np.zeros(ordered.size), np.zeros(ordered.size)
    np.cumsum(ordered[:-1], out=below[1:])
    above[:-1] = np.cumsum(ordered[:0:-1])[::-1]
    return below, above


def _distances_from_middle(column: OrderedColumn, rows: Ints, weights: Floats) -> tuple[float, float]:
    """Return A, the weighted sum of |position|, with ties broken by weight, and 4 times that of squares.

    B is the same of squared distances, (W**3 - sum of w**3) / 12 whatever the order.
    """
    ordered = weights[rows]
    if column.tied:
        ordered = ordered[np.lexsort((ordered, column.first))]
    below, above = weights_before_after(ordered)
    positions = (below - above) / 2
    return float(np.sum(ordered * np.abs(positions))), 4 * float(np.sum(ordered * positions**2))
