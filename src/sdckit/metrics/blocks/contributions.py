"""Largest contributions of single records to a sum, combined over blocks of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.metrics.blocks.cell_sums import IL1S, squared_cost

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.blocks.variable_cells import VariableCells


class Contributions(NamedTuple):
    """Sum of the sizes of contributions, the largest, and sum and second largest in units of the largest.

    In these units no sum overflows; both are 0 where all contributions are 0.
    """

    total: float
    largest: float
    shares: float
    second: float

    @classmethod
    def of(cls, values: Floats) -> Contributions:
        """Return the largest contributions among the values of a block; NaN counts 0."""
        sizes = np.abs(values)
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(sizes.sum()):  # the test is cheaper than the replacement
                sizes = np.nan_to_num(sizes)
        at = int(np.argmax(sizes)) if sizes.size else 0
        largest = float(sizes[at]) if sizes.size else 0.0
        if largest == 0:
            return cls(0.0, 0.0, 0.0, 0.0)
        shares = sizes / largest
        second = max(shares[:at].max(initial=0.0), shares[at + 1 :].max(initial=0.0))
        return cls(float(sizes.sum()), largest, float(shares.sum()), float(second))

    def merge(self, other: Contributions) -> Contributions:
        """Return the largest contributions of two blocks together."""
        high, low = (self, other) if self.largest >= other.largest else (other, self)
        if low.largest == 0:
            return high
        unit = low.largest / high.largest
        second = max(high.second, unit)  # the second largest of the lower block is below its largest
        return Contributions(self.total + other.total, high.largest, high.shares + unit * low.shares, second)


class LargestRecord(NamedTuple):
    """Original and masked value of the record with the largest original value, and the scale of its cost."""

    x: float
    y: float
    scale: float


class Dominance(NamedTuple):
    """Contributions of records to a variable's costs, to their level in unrelated order, and to its variance.

    `squares` is None for costs whose scale is no standard deviation; `largest` is None without counted cells.
    """

    costs: Contributions
    unrelated: Contributions
    squares: Contributions | None
    largest: LargestRecord | None

    @property
    def sums(self) -> list[Contributions]:
        """Contributions to each sum that is published or follows from what is."""
        found = [self.costs, self.unrelated]
        return found if self.squares is None else [*found, self.squares]

    def merge(self, other: Dominance) -> Dominance:
        """Return the dominance in two blocks together."""
        squares = self.squares
        if squares is not None and other.squares is not None:
            squares = squares.merge(other.squares)
        largest = self.largest
        if largest is None or (other.largest is not None and abs(other.largest.x) > abs(largest.x)):
            largest = other.largest
        costs, unrelated = self.costs.merge(other.costs), self.unrelated.merge(other.unrelated)
        return Dominance(costs, unrelated, squares, largest)


def dominance(cells: VariableCells, x_mean: float, y_mean: float) -> Dominance:
    """Return the contributions of a block's records, given the means of the counted cells of the file."""
    cost, counts = cells.cost, cells.counts
    x, y, scale = cells.x[counts], cells.y[counts], cells.scale[counts]
    with np.errstate(over="ignore", invalid="ignore"):
        costs = Contributions.of(cells.costs()[counts] * cells.weights[counts])
        unrelated = Contributions.of(cost.of(x, y_mean, scale))
        squares = Contributions.of(squared_cost(x, x_mean, 1.0)) if cost == IL1S else None
    if not x.size:
        return Dominance(costs, unrelated, squares, None)
    i = int(np.argmax(np.abs(x)))
    return Dominance(costs, unrelated, squares, LargestRecord(float(x[i]), float(y[i]), float(scale[i])))
