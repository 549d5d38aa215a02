"""Cells of one variable in both files: which are counted, and what each costs by itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats
    from sdckit.metrics.blocks.cell_sums import Cost


class VariableCells:
    """Cells of one variable, which of them are counted, and the divisor of each cell's cost.

    `spread` is the original variable's standard deviation and `scale` its divisor from `variable_scales`.
    """

    def __init__(
        self,
        x: Floats,
        y: Floats,
        weights: Floats | None,
        cost: Cost,
        *,
        zeros: str,
        spread: float,
        scale: float,
    ) -> None:
        self.x = x
        self.y = y
        n = self.x.size
        self.cost = cost
        self.zeros = zeros
        self.weights: Floats = np.ones(n) if weights is None else weights
        self.counts: Bools = np.ones(n, np.bool_)
        self.scale: Floats = np.ones(n)
        self.constant: bool = False
        if cost.scale == "value":
            self.counts = self.x != 0 if zeros == "drop" else (self.x != 0) | (self.y == 0)
            self.scale = np.where(self.x == 0, 1.0, np.abs(self.x))
        elif cost.scale == "spread":
            self.constant = spread == 0
            self.counts[:] = not math.isnan(spread)
            self.scale[:] = scale

    @property
    def has_unrelated_level(self) -> bool:
        """True if the variable has cells that count, and a scale if its costs have one."""
        return not self.constant and bool(self.counts.any())

    @property
    def costly(self) -> Bools:
        """True for each cell that has a cost against any masked value: a zero has no relative change."""
        return self.x != 0 if self.cost.scale == "value" else np.ones(self.x.size, np.bool_)

    @property
    def zero_share(self) -> float:
        """Share of the masked values against which a zero counts as kept."""
        return 0.0 if self.zeros == "drop" else float(np.mean(self.y == 0))

    def costs(self) -> Floats:
        """Return the cost of each cell; infinite for changed cells of a constant variable."""
        if self.constant:
            return np.where(self.x == self.y, 0.0, np.inf)
        with np.errstate(over="ignore"):  # beyond the range of numbers a cost is infinite
            found: Floats = self.cost.of(self.x, self.y, self.scale)
        return found

    def unrelated_totals(self) -> tuple[float, float]:
        """Return the sums of cell losses and of their weights, as means over permutations of masked values.

        A zero has no relative change unless it meets another zero, so the number of cells that
        count is a mean, too.
        """
        if not self.has_unrelated_level:
            return math.nan, 0.0
        rows = self.costly
        weights = self.weights[rows]
        zeros = 0.0 if rows.all() else float(self.weights[~rows].sum())
        weight = unrelated_weight(float(weights.sum()), zeros, self.zero_share if zeros else 0.0)
        if not weights.size:
            return 0.0, weight
        return self.cost.unrelated_sum(self.x[rows], self.y, weights / self.scale[rows]), weight


def unrelated_weight(costly: float, zeros: float, zero_share: float) -> float:
    """Return the mean weight of counted cells over permutations of the masked values.

    `costly` is the weight of the cells that have a cost, `zeros` that of the others, which count if they meet
    one of the share of masked values that are 0.
    """
    return costly + zeros * zero_share
