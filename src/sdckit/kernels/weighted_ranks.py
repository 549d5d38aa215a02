"""Rank distances under survey weights, where a record takes up as much room as its weight.

The position of a record is the weight below its value plus half the weight tied with it. The
extension of brMAE and brMSE to weights is ours; with equal weights both are as without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.rank_distance import OrderedColumn

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints

PERMUTATIONS = (9, 99)  # fewest and most random pairings behind a level of unrelated order
ENOUGH = 1_000_000  # records in all pairings together


class WeightedRanks:
    """One variable: its original and masked order and the gaps between weighted positions."""

    def __init__(self, x: Floats, y: Floats, weights: Floats) -> None:
        self.original, self.masked, self.weights = OrderedColumn(x), OrderedColumn(y), weights
        self.positions = _positions(self.original, self.original.order, weights)
        self.gap = self.positions - _positions(self.masked, self.masked.order, weights)

    def largest(self) -> tuple[float, float]:
        """The largest weighted sums of |R - S| and (R - S)**2."""
        reach = _reach(self.original, self.original.order, self.weights)
        reach += _reach(self.masked, self.masked.order, self.weights)
        return reach, self._largest_squared()

    def _largest_squared(self) -> float:
        return float(self.weights.sum() ** 3 - np.sum(self.weights**3)) / 3

    def values(self) -> tuple[float, float]:
        """Weighted brMAE and brMSE."""
        return _shares(self.gap, self.weights, *self.largest())

    def record_costs(self) -> tuple[Floats, Floats]:
        """Each record's share of both; their weighted means are the values."""
        absolute, squared = self.largest()
        total = self.weights.sum()
        return np.abs(self.gap) * total / absolute, self.gap**2 * total / squared

    def levels(self) -> tuple[float, float]:
        """Both values for a masked order that is unrelated to the original: means over random pairings.

        The same pairings at every call, so that a table repeats itself. No column is sorted again:
        a random pairing hands the places of the masked order to the records at random.
        """
        n = self.original.n
        rng = np.random.default_rng(0)
        fixed = _reach(self.original, self.original.order, self.weights)
        found = []
        for _ in range(int(np.clip(ENOUGH // n, *PERMUTATIONS))):
            rows = rng.permutation(n)
            gap = self.positions - _positions(self.masked, rows, self.weights)
            reach = fixed + _reach(self.masked, rows, self.weights)
            found.append(_shares(gap, self.weights, reach, self._largest_squared()))
        absolute, squared = np.mean(found, axis=0).tolist()
        return absolute, squared


def _shares(gap: Floats, weights: Floats, absolute: float, squared: float) -> tuple[float, float]:
    """Weighted sums of |gap| and gap**2 as shares of their largest values; rounding stays below 1."""
    return (
        min(float(np.sum(weights * np.abs(gap))) / absolute, 1.0),
        min(float(np.sum(weights * gap**2)) / squared, 1.0),
    )


def _positions(column: OrderedColumn, rows: Ints, weights: Floats) -> Floats:
    """Weighted position of each record, if `rows` are the records in the order of the column."""
    above = np.concatenate(([0.0], np.cumsum(weights[rows])))
    positions = np.empty(column.n)
    positions[rows] = (above[column.first] + above[column.last + 1]) / 2
    return positions


def _reach(column: OrderedColumn, rows: Ints, weights: Floats) -> float:
    """A, the weighted distance of all positions from the middle, ties broken by weight."""
    ordered = weights[rows]
    if column.tied:
        ordered = ordered[np.lexsort((ordered, column.first))]
    positions = np.cumsum(ordered) - ordered / 2
    return float(np.sum(ordered * np.abs(positions - ordered.sum() / 2)))
