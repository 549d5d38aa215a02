"""Second scan over blocks of rows: sums that need means, standard deviations or bin edges of the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sdckit.engines.scan import Group, ScanTotals, rows_by_stratum, stacked
from sdckit.metrics.blocks.cell_sums import IL1, IL1S, MAE, MSE, Cost, unrelated_squares, variable_scales
from sdckit.metrics.blocks.contributions import Dominance, dominance
from sdckit.metrics.blocks.correlations import normed_products
from sdckit.metrics.blocks.coupled_columns import stream_power
from sdckit.metrics.blocks.distributions import bin_weights
from sdckit.metrics.variable_pair import VariablePair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sdckit.engines.moments import ColumnMoments
    from sdckit.engines.transport import Block
    from sdckit.kernels.jit import Bools, Floats

Edges = Sequence["Floats | None"]  # bin edges of each variable, None where no bins are asked for
COSTS = (MAE, MSE, IL1, IL1S)


@dataclass(frozen=True)
class Basis:
    """What the second scan needs to know of a group of records, from the totals of the first."""

    totals: ScanTotals
    spreads: Floats
    scales: Floats
    power: NDArray[np.int32]
    edges: Edges

    @classmethod
    def of(cls, totals: ScanTotals, *, weighted: bool, edges: Edges | None = None) -> Basis:
        """Return the basis of a group; without bin edges no bins are counted."""
        spreads = totals.spreads(weighted=weighted)
        none: list[Floats | None] = [None] * spreads.size
        return cls(
            totals, spreads, variable_scales(spreads), shared_power(totals), none if edges is None else edges
        )

    def means(self, cost: Cost, j: int) -> tuple[float, float]:
        """Return the means of original and masked values of variable j over the cells that a cost counts."""
        masked = self.totals.relative if cost == IL1 else self.totals.shared_masked
        return float(self.totals.shared_original.means[j]), float(masked.means[j])


def shared_power(totals: ScanTotals) -> NDArray[np.int32]:
    """Return the power of two in whose unit squares of each variable's shared cells count."""
    largest = np.maximum(totals.shared_original.largest, totals.shared_masked.largest)
    return np.concatenate([stream_power(one) for one in largest[:, None]])


@dataclass(frozen=True)
class DetailTotals:
    """Sums of a group of records that need its means, standard deviations or bin edges.

    `arctan` are sums of bounded changes by unit, "spread" or "raw"; `squares` the squared errors in
    unrelated order, in units of 4**power; `bins` the weights of both columns in each bin; `products` the
    sums of normed products over complete records, None where they are not asked for.
    """

    arctan: Mapping[str, Floats]
    squares: Floats
    bins: Sequence[tuple[Floats, Floats] | None]
    dominance: Mapping[Cost, Sequence[Dominance]]
    products: tuple[Floats, Floats] | None

    def merge(self, other: DetailTotals) -> DetailTotals:
        """Return the totals of two blocks together."""
        products = None
        if self.products is not None and other.products is not None:
            products = (self.products[0] + other.products[0], self.products[1] + other.products[1])
        return DetailTotals(
            {unit: sums + other.arctan[unit] for unit, sums in self.arctan.items()},
            self.squares + other.squares,
            [
                None if ours is None or theirs is None else (ours[0] + theirs[0], ours[1] + theirs[1])
                for ours, theirs in zip(self.bins, other.bins, strict=True)
            ],
            {
                cost: [one.merge(more) for one, more in zip(found, other.dominance[cost], strict=True)]
                for cost, found in self.dominance.items()
            },
            products,
        )


@dataclass(frozen=True)
class SecondScan:
    """Task that returns the details of a block for the whole file (None) and each stratum.

    `units` are those of bounded changes, among "spread" and "raw"; `costs` are the losses whose dominance is
    measured; `products` is True if correlations are asked for.
    """

    variables: tuple[str, ...]
    bases: Mapping[Group, Basis]
    units: tuple[str, ...] = ("spread", "raw")
    costs: tuple[Cost, ...] = COSTS
    products: bool = True

    def __call__(self, block: Block) -> dict[Group, DetailTotals]:
        """Return the details of the block and of each of its strata."""
        x, y = stacked(block, self.variables)
        found: dict[Group, DetailTotals] = {None: self._details(x, y, block.weights, self.bases[None])}
        for stratum, rows in rows_by_stratum(block.strata) if block.strata is not None else ():
            weights = None if block.weights is None else block.weights[rows]
            found[stratum] = self._details(x[:, rows], y[:, rows], weights, self.bases[stratum])
        return found

    def _details(self, x: Floats, y: Floats, weights: Floats | None, basis: Basis) -> DetailTotals:
        """Return the details of the records of one group."""
        columns = list(_shared_cells(x, y, weights, basis))
        units = {"spread": basis.spreads, "raw": np.ones(len(columns))}
        return DetailTotals(
            {unit: _arctan_sums(columns, units[unit]) for unit in self.units},
            np.array([_unrelated_squares(column, j, basis) for j, column in enumerate(columns)]),
            [_bins(column, edges) for column, edges in zip(columns, basis.edges, strict=True)],
            {
                cost: [
                    dominance(column.cells(cost, "keep"), *basis.means(cost, j))
                    for j, column in enumerate(columns)
                ]
                for cost in self.costs
            },
            _products(x, y, basis.totals) if self.products else None,
        )


def _shared_cells(x: Floats, y: Floats, weights: Floats | None, basis: Basis) -> Iterator[VariablePair]:
    """Yield the cells of each variable that both files have."""
    for j in range(len(x)):
        rows = ~np.isnan(x[j]) & ~np.isnan(y[j])
        shares = None if weights is None else weights[rows]
        yield VariablePair(x[j, rows], y[j, rows], shares, float(basis.spreads[j]), float(basis.scales[j]))


def _arctan_sums(columns: Sequence[VariablePair], units: Floats) -> Floats:
    """Return the sum of bounded changes of each variable; 0 where its unit is NaN."""
    return np.array(
        [0.0 if np.isnan(unit) else one.arctan_sum(unit) for one, unit in zip(columns, units, strict=True)]
    )


def _unrelated_squares(column: VariablePair, j: int, basis: Basis) -> float:
    """Return the sum over a block of mean squared distances from all masked values of the file."""
    masked, power = basis.totals.shared_masked, int(basis.power[j])
    x, mean = np.ldexp(column.x, -power), np.ldexp(masked.means[j], -power)
    variance = np.ldexp(masked.variances[j], 2 * (masked.power[j] - power))
    weights = np.ones(x.size) if column.weights is None else column.weights
    return unrelated_squares(x, weights, float(mean), float(variance))


def _bins(column: VariablePair, edges: Floats | None) -> tuple[Floats, Floats] | None:
    """Return the weight of a block's original and masked values in each bin; None without edges."""
    if edges is None:
        return None
    return bin_weights(column.x, edges, column.weights), bin_weights(column.y, edges, column.weights)


def _products(x: Floats, y: Floats, totals: ScanTotals) -> tuple[Floats, Floats]:
    """Return the sums of normed products of both files over the complete records of a block."""
    complete = np.asarray(~(np.isnan(x) | np.isnan(y)).any(0))
    return (
        _normed(x, complete, totals.complete_original),
        _normed(y, complete, totals.complete_masked),
    )


def _normed(values: Floats, complete: Bools, moments: ColumnMoments) -> Floats:
    """Return the sums of products of one file's deviations from its means, divided by their norms."""
    scaled = np.ldexp(values[:, complete], -moments.power[:, None])
    centred = (scaled - moments.origin[:, None]) - moments.offset[:, None]
    return normed_products(np.ascontiguousarray(centred.T), np.sqrt(moments.squares))


def merge_details(blocks: Sequence[Mapping[Group, DetailTotals]]) -> dict[Group, DetailTotals]:
    """Return the details of the whole file and of each stratum from those of all blocks in order."""
    found: dict[Group, DetailTotals] = {}
    for block in blocks:
        for group, totals in block.items():
            found[group] = found[group].merge(totals) if group in found else totals
    return found
