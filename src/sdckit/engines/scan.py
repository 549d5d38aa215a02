"""What one or two scans of all rows give: cells, moments, correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np

from sdckit.engines.transport import merged, places_by_number
from sdckit.kernels.sums import spread_of_sums
from sdckit.metrics.blocks import (
    ALL,
    IL1,
    IL1S,
    MAE,
    MSE,
    CellSums,
    Cost,
    Dominance,
    bin_weights,
    cell_sums,
    dominance,
    normed_products,
    stream_power,
    unrelated_squares,
    variable_scales,
)
from sdckit.metrics.pair import Counts, VariablePair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.engines.transport import Block


@dataclass(frozen=True)
class ColumnMoments:
    """Count, weight, mean, sum of squared deviations, smallest and largest value of several columns.

    The mean is `origin + offset`, where the origin is a value of the column: in data like 1e9 + small the
    offset keeps digits that the mean has no place for. Origin and offset count in units of 2**power and
    `squares` in units of 4**power; the power is 0 for all but extreme columns. Columns without a value have
    a smallest value of infinity and a largest of minus infinity.
    """

    count: Ints
    weight: Floats
    origin: Floats
    offset: Floats
    squares: Floats
    power: NDArray[np.int32]
    low: Floats
    high: Floats

    @classmethod
    def of(cls, values: Floats, seen: Bools, weights: Floats | None = None) -> ColumnMoments:
        """Return the moments of a block's seen cells; `values` has one row per column."""
        low = np.min(values, axis=1, initial=np.inf, where=seen)
        high = np.max(values, axis=1, initial=-np.inf, where=seen)
        count = seen.sum(1)
        largest = np.where(count > 0, np.maximum(np.abs(low), np.abs(high)), 1.0)
        power = np.concatenate([stream_power(one) for one in largest[:, None]])
        origin = np.ldexp(np.where(count > 0, low, 0.0), -power)
        if power.any():
            values = np.ldexp(values, -power[:, None])
        shares = seen.astype(np.float64) if weights is None else seen * weights
        gaps = np.where(seen, values - origin[:, None], 0.0)
        weight = shares.sum(1)
        offset = np.divide((gaps * shares).sum(1), weight, out=np.zeros(count.size), where=weight > 0)
        squares = ((gaps - offset[:, None]) ** 2 * shares).sum(1)
        return cls(count, weight, origin, offset, squares, power, low, high)

    def merge(self, other: ColumnMoments) -> ColumnMoments:
        """Return the moments of two blocks together."""
        power = np.where(self.count == 0, other.power, self.power)
        power = np.where((self.count > 0) & (other.count > 0), np.maximum(power, other.power), power)
        ours, theirs = self._in_unit(power), other._in_unit(power)
        origin = np.where(self.count > 0, ours[0], theirs[0])
        first, second = ((begin - origin) + offset for begin, offset, _ in (ours, theirs))
        first = np.where(self.count > 0, first, second)
        second = np.where(other.count > 0, second, first)
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros(weight.size), where=weight > 0)
        gap = second - first
        return ColumnMoments(
            count=self.count + other.count,
            weight=weight,
            origin=origin,
            offset=first + gap * share,
            squares=ours[2] + theirs[2] + gap * gap * share * self.weight,
            power=power,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
        )

    def _in_unit(self, power: NDArray[np.int32]) -> tuple[Floats, Floats, Floats]:
        """Return origin, offset and squares in units of other powers of two."""
        up = self.power - power
        return np.ldexp(self.origin, up), np.ldexp(self.offset, up), np.ldexp(self.squares, 2 * up)

    @property
    def means(self) -> Floats:
        """Mean of each column; 0 for one without a value."""
        found: Floats = np.ldexp(self.origin + self.offset, self.power)
        return found

    @property
    def variances(self) -> Floats:
        """Mean squared deviation of each column, in units of 4**power; 0 for one without a value."""
        return np.divide(self.squares, self.weight, out=np.zeros(self.weight.size), where=self.weight > 0)

    def spreads(self, *, weighted: bool) -> Floats:
        """Return the standard deviation (ddof 1) of each column; 0 for fewer than two values."""
        found: Floats = np.ldexp(
            spread_of_sums(self.squares, self.count, self.weight if weighted else None), self.power
        )
        return found

    @property
    def constant(self) -> Bools:
        """True for each column whose values are all equal, and for one without a value."""
        return self.low >= self.high

    @property
    def largest(self) -> Floats:
        """Largest absolute value of each column; 0 for one without a value."""
        return np.where(self.count > 0, np.maximum(np.abs(self.low), np.abs(self.high)), 0.0)


Group = int | None  # number of a stratum; None for the whole file


@dataclass(frozen=True)
class ScanTotals:
    """Counts, sums and moments of the variables of a group of records; arrays have one entry per variable.

    `original` are moments of all original values, weighted; `shared_original` and `shared_masked` those of
    the cells that both files have, without weights; `relative` those of masked values in cells that IL1
    counts. `complete_original` and `complete_masked` are of the records without a missing cell in either
    file. `heaviest` is the largest weight of a shared cell, `masked_zeros` the number of shared cells with
    a masked value of 0.
    """

    n: int
    both: Ints
    suppressed: Ints
    imputed: Ints
    suppressed_weight: Floats
    cells: CellSums
    original: ColumnMoments
    shared_original: ColumnMoments
    shared_masked: ColumnMoments
    relative: ColumnMoments
    complete_original: ColumnMoments
    complete_masked: ColumnMoments
    heaviest: Floats
    masked_zeros: Ints

    @classmethod
    def of(cls, x: Floats, y: Floats, weights: Floats | None) -> ScanTotals:
        """Return the totals of a block of records; `x` and `y` have one row per variable."""
        seen, kept = ~np.isnan(x), ~np.isnan(y)
        both, gone = seen & kept, seen & ~kept
        whole = np.broadcast_to(both.all(0), both.shape)
        shares = np.ones(x.shape[1]) if weights is None else weights
        return cls(
            n=x.shape[1],
            both=both.sum(1),
            suppressed=gone.sum(1),
            imputed=(~seen & kept).sum(1),
            suppressed_weight=(gone * shares).sum(1),
            cells=cell_sums(x, y, weights),
            original=ColumnMoments.of(x, seen, weights),
            shared_original=ColumnMoments.of(x, both),
            shared_masked=ColumnMoments.of(y, both),
            relative=ColumnMoments.of(y, both & ((x != 0) | (y == 0))),
            complete_original=ColumnMoments.of(x, whole),
            complete_masked=ColumnMoments.of(y, whole),
            heaviest=(both * shares).max(axis=1, initial=0.0),
            masked_zeros=(both & (y == 0)).sum(1),
        )

    @cached_property
    def counts(self) -> Counts:
        """Numbers of observed and missing cells of each variable."""
        neither = self.n - self.both - self.suppressed - self.imputed
        return Counts(self.both, self.suppressed, self.imputed, neither)

    @property
    def kept_weight(self) -> Floats:
        """Summed weight of the cells that both files have, for each variable."""
        return self.cells.sums[:, ALL]

    def spreads(self, *, weighted: bool) -> Floats:
        """Return the standard deviation of each original variable; NaN with fewer than two values."""
        return np.where(self.original.count > 1, self.original.spreads(weighted=weighted), np.nan)


def scan_block(variables: Sequence[str], block: Block) -> dict[Group, ScanTotals]:
    """Return the totals of each stratum of a block, which together are the file's; of all without strata."""
    return {
        group: ScanTotals.of(x, y, weights)
        for group, x, y, weights in _groups(block, variables)
        if group is not None or block.strata is None
    }


def _groups(block: Block, variables: Sequence[str]) -> Iterator[tuple[Group, Floats, Floats, Floats | None]]:
    """Yield both matrices, with one row per variable, and weights of a block (None) and of each stratum."""
    x, y = (
        np.array([columns[name] for name in variables], np.float64).reshape(len(variables), block.rows)
        for columns in (block.original, block.masked)
    )
    yield None, x, y, block.weights
    for stratum, rows in () if block.strata is None else places_by_number(block.strata):
        yield stratum, x[:, rows], y[:, rows], None if block.weights is None else block.weights[rows]


def merge_scans(blocks: Sequence[Mapping[Group, ScanTotals]]) -> dict[Group, ScanTotals]:
    """Return the totals of the whole file (None) and of each stratum from those of all blocks in order."""
    found: dict[Group, ScanTotals] = dict(reduce(merged, blocks))
    if None not in found:
        strata = sorted(group for group in found if group is not None)
        found[None] = reduce(merged, [found[stratum] for stratum in strata])
    return found


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
        return {
            group: self._details(x, y, weights, self.bases[group])
            for group, x, y, weights in _groups(block, self.variables)
        }

    def _details(self, x: Floats, y: Floats, weights: Floats | None, basis: Basis) -> DetailTotals:
        """Return the details of the records of one group."""
        columns = []
        for j, rows in enumerate(~(np.isnan(x) | np.isnan(y))):
            shares = None if weights is None else weights[rows]
            spread, scale = float(basis.spreads[j]), float(basis.scales[j])
            columns.append(VariablePair(x[j, rows], y[j, rows], shares, spread, scale))
        units = {"spread": basis.spreads, "raw": np.ones(len(columns))}
        complete = np.asarray(~(np.isnan(x) | np.isnan(y)).any(0))
        files = ((x, basis.totals.complete_original), (y, basis.totals.complete_masked))
        first, second = (_normed(*one, complete) for one in files) if self.products else (None, None)
        return DetailTotals(
            {unit: np.array([*map(_arctan_sum, columns, units[unit])]) for unit in self.units},
            np.array([_unrelated_squares(column, j, basis) for j, column in enumerate(columns)]),
            [_bins(column, edges) for column, edges in zip(columns, basis.edges, strict=True)],
            {
                cost: [
                    dominance(column.cells(cost, "keep"), *basis.means(cost, j))
                    for j, column in enumerate(columns)
                ]
                for cost in self.costs
            },
            None if first is None or second is None else (first, second),
        )


def _arctan_sum(column: VariablePair, unit: float) -> float:
    """Return the sum of bounded changes of a variable; 0 where its unit is NaN."""
    return 0.0 if np.isnan(unit) else column.arctan_sum(unit)


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


def _normed(values: Floats, moments: ColumnMoments, complete: Bools) -> Floats:
    """Return the sums of products of one file's deviations from its means, divided by their norms."""
    scaled = np.ldexp(values[:, complete], -moments.power[:, None])
    centred = (scaled - moments.origin[:, None]) - moments.offset[:, None]
    return normed_products(np.ascontiguousarray(centred.T), np.sqrt(moments.squares))
