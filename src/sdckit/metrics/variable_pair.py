"""One variable of two files in memory, over the records with a value in both: what loss metrics ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.scaling import powers_of_two, spread
from sdckit.metrics.blocks import distributions
from sdckit.metrics.blocks.cell_sums import MSE, Cost, arctan_changes
from sdckit.metrics.blocks.contributions import Dominance, dominance
from sdckit.metrics.blocks.coupled_columns import QuantileGap, quantile_gap
from sdckit.metrics.blocks.scaled_numbers import Scaled
from sdckit.metrics.blocks.variable_cells import VariableCells
from sdckit.metrics.counts import ColumnFacts, MeanAndSpread

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats


@dataclass(frozen=True)
class VariablePair:
    """Original values, masked values and weights of one variable; all have the same length.

    `spread` is the standard deviation of the original variable and `scale` the divisor of its costs in IL1s.
    """

    x: Floats
    y: Floats
    weights: Floats | None
    spread: float
    scale: float

    @property
    def facts(self) -> ColumnFacts:
        """Number of records, which column is constant, and the heaviest weight."""
        n, weights = self.x.size, self.weights
        ours, theirs = (bool((values == values[:1]).all()) for values in (self.x, self.y))
        if weights is None:
            return ColumnFacts(n, ours, theirs, 1.0, float(n))
        return ColumnFacts(n, ours, theirs, float(weights.max(initial=0.0)), float(weights.sum()))

    def cells(self, cost: Cost, zeros: str) -> VariableCells:
        """Return the cells with the cost of each, ready to be counted one by one."""
        return VariableCells(
            self.x, self.y, self.weights, cost, zeros=zeros, spread=self.spread, scale=self.scale
        )

    def unrelated_cells(self, cost: Cost, zeros: str) -> tuple[float, float]:
        """Return the sums of costs and of weights, as means over permutations of the masked values."""
        return self.cells(cost, zeros).unrelated_totals()

    def unrelated_squares(self) -> Scaled:
        """Return the sum of squared errors, as a mean over permutations of the masked values."""
        if not self.x.size:
            return Scaled.of(np.zeros(()))
        unit = powers_of_two(np.concatenate([self.x, self.y]))
        weights = np.ones(self.x.size) if self.weights is None else self.weights
        found = MSE.unrelated_sum(self.x / unit, self.y / unit, weights)
        return Scaled(np.array(found), np.array(2 * (np.frexp(unit)[1] - 1), np.int32))

    def arctan_sum(self, unit: float) -> float:
        """Return the weighted sum of the changes of cells, bounded by the arctangent in this unit."""
        changes = arctan_changes(self.x, self.y, unit)
        return float(changes.sum() if self.weights is None else (self.weights * changes).sum())

    def dominance(self, cost: Cost) -> Dominance:
        """Return the largest contributions of records to the sums that a loss publishes."""
        cells = self.cells(cost, "keep")
        x, y = self.x[cells.counts], self.y[cells.counts]
        with np.errstate(over="ignore", invalid="ignore"):
            means = (float(x.mean()), float(y.mean())) if x.size else (0.0, 0.0)
        return dominance(cells, *means)

    def distribution_gap(self) -> float:
        """Return the largest distance of the distribution functions in both files."""
        return distributions.distribution_gap(self.x, self.y, self.weights)

    def bin_weights(self) -> tuple[Floats, Floats]:
        """Return the weight of original and of masked values in quantile bins of the original."""
        edges = distributions.bin_edges(self.x)
        ours, theirs = (distributions.bin_weights(v, edges, self.weights) for v in (self.x, self.y))
        return ours, theirs

    def quantile_gap(self) -> QuantileGap:
        """Return the mean distance of original and masked values at the same quantile."""
        return quantile_gap(self.x, self.y, self.weights)

    def means_and_spreads(self) -> tuple[MeanAndSpread, MeanAndSpread]:
        """Return mean and standard deviation in both files, without weights."""
        ours, theirs = (
            MeanAndSpread(float(values.mean()), float(spread(values[:, None])[0]))
            for values in (self.x, self.y)
        )
        return ours, theirs
