"""Losses of two files larger than memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from sdckit.core.checks import NotApplicable
from sdckit.engines.plan import RankTotals, Wanted, measure_ranks
from sdckit.engines.transport import Piece, Reads, Transport, merged, places_by_number
from sdckit.kernels.ranks import TIES, RankSums, TieSummary, level_without_midranks, midrank_level
from sdckit.kernels.sums import powers_of_two, spread_of_sums
from sdckit.metrics import blocks as formulas
from sdckit.metrics.pair import ColumnFacts, Counts, MeanAndSpread, VariablePair
from sdckit.progress import track

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.core.registry import Metric
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
        power = np.concatenate([formulas.stream_power(one) for one in largest[:, None]])
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
    cells: formulas.CellSums
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
            cells=formulas.cell_sums(x, y, weights),
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
        return self.cells.sums[:, formulas.ALL]

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
COSTS = (formulas.MAE, formulas.MSE, formulas.IL1, formulas.IL1S)


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
            totals,
            spreads,
            formulas.variable_scales(spreads),
            shared_power(totals),
            none if edges is None else edges,
        )

    def means(self, cost: formulas.Cost, j: int) -> tuple[float, float]:
        """Return the means of original and masked values of variable j over the cells that a cost counts."""
        masked = self.totals.relative if cost == formulas.IL1 else self.totals.shared_masked
        return float(self.totals.shared_original.means[j]), float(masked.means[j])


def shared_power(totals: ScanTotals) -> NDArray[np.int32]:
    """Return the power of two in whose unit squares of each variable's shared cells count."""
    largest = np.maximum(totals.shared_original.largest, totals.shared_masked.largest)
    return np.concatenate([formulas.stream_power(one) for one in largest[:, None]])


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
    dominance: Mapping[formulas.Cost, Sequence[formulas.Dominance]]
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
    costs: tuple[formulas.Cost, ...] = COSTS
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
                    formulas.dominance(column.cells(cost, "keep"), *basis.means(cost, j))
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
    return formulas.unrelated_squares(x, weights, float(mean), float(variance))


def _bins(column: VariablePair, edges: Floats | None) -> tuple[Floats, Floats] | None:
    """Return the weight of a block's original and masked values in each bin; None without edges."""
    if edges is None:
        return None
    return formulas.bin_weights(column.x, edges, column.weights), formulas.bin_weights(
        column.y, edges, column.weights
    )


def _normed(values: Floats, moments: ColumnMoments, complete: Bools) -> Floats:
    """Return the sums of products of one file's deviations from its means, divided by their norms."""
    scaled = np.ldexp(values[:, complete], -moments.power[:, None])
    centred = (scaled - moments.origin[:, None]) - moments.offset[:, None]
    return formulas.normed_products(np.ascontiguousarray(centred.T), np.sqrt(moments.squares))


T = TypeVar("T")


def _known(value: T | None, what: str) -> T:
    """Return a total; raise NotApplicable, naming what it is for, where the engine has none."""
    if value is None:
        raise NotApplicable(f"{what} cannot be computed for data read in blocks; leave it out")
    return value


@dataclass(frozen=True)
class EngineComparison:
    """Answers about the whole file or one stratum; see `Pair` for what each is.

    `details` is None where no second scan was run, `ranks` has None for variables without an exchange.
    """

    columns: tuple[str, ...]
    weighted: bool
    totals: ScanTotals
    details: DetailTotals | None
    ranks: Sequence[RankTotals | None]

    # --- records, variables and missing cells ---

    in_memory = None

    @property
    def n(self) -> int:
        """Number of records."""
        return self.totals.n

    @property
    def p(self) -> int:
        """Number of variables."""
        return len(self.columns)

    @property
    def complete(self) -> bool:
        """True if neither file has a missing cell."""
        return bool((self.totals.both == self.n).all())

    @property
    def counts(self) -> Counts:
        """Numbers of observed and missing cells of each variable."""
        return self.totals.counts

    @property
    def kept_weight(self) -> Floats:
        """Summed weight of the cells that both files have, for each variable."""
        return self.totals.kept_weight

    @property
    def suppressed_weight(self) -> Floats:
        """Summed weight of the cells missing in the masked file only, for each variable."""
        return self.totals.suppressed_weight

    @property
    def complete_records(self) -> int:
        """Number of records without a missing cell in either file."""
        return int(self.totals.complete_original.count[0])

    def variable(self, j: int) -> EngineVariable:
        """Return what answers questions about variable j alone."""
        return EngineVariable(self, j)

    # --- cells ---

    @cached_property
    def spreads(self) -> Floats:
        """Standard deviation (ddof 1, weighted) of each original variable; NaN below two values."""
        return self.totals.spreads(weighted=self.weighted)

    @property
    def all_vary(self) -> bool:
        """True where every original variable has a standard deviation above 0."""
        return bool((self.spreads > 0).all())

    @cached_property
    def scales(self) -> Floats:
        """Divisor of each variable's costs in IL1s: sqrt(2) standard deviations."""
        return formulas.variable_scales(self.spreads)

    @property
    def cell_sums(self) -> formulas.CellSums:
        """Sums of costs and weights, and counts of cells, of each variable."""
        return self.totals.cells

    # --- ranks ---

    def rank_values(self, what: str, ties: str, rng: np.random.Generator | None = None) -> Floats:
        """Return brMAE ("absolute"), brMSE ("squared") or another property of `RankSums` per variable."""
        del rng
        return np.array([getattr(self._rank_sums(j, ties), what) for j in range(self.p)])

    def _rank_sums(self, j: int, ties: str) -> RankSums:
        """Return the sums of rank distances of variable j under a tie rule; 0 below two records."""
        if self.counts.both[j] < 2:
            return RankSums(int(self.counts.both[j]), 0, 0)
        return _known(self.ranks_of(j).sums.get(ties), f"the tie rule {ties!r}")

    def ranks_of(self, j: int) -> RankTotals:
        """Return the totals of variable j that need its values in order."""
        return _known(self.ranks[j], "a comparison of sorted values")

    def tie_summary(self, j: int) -> TieSummary:
        """Return variable j's range of brMAE and brMSE over tie-breakings, and values in unrelated order."""
        found = self.ranks_of(j)
        lost = sum(_known(found.tie_sums, "the number of ties"))
        levels = {ties: level_without_midranks(found.n, ties, has_ties=lost > 0) for ties in TIES}
        if lost:
            gap = _known(found.unrelated_ranks, "an unrelated order")
            levels["average"] = midrank_level(found.n, gap, lost)
        return TieSummary(lost > 0, self._rank_sums(j, "min"), self._rank_sums(j, "max"), levels)

    def weighted_losses(self, j: int, what: Literal["values", "unrelated_values"]) -> tuple[float, float]:
        """Return weighted brMAE and brMSE of variable j; NaN in unrelated order, which needs all records."""
        if what == "unrelated_values":
            return np.nan, np.nan
        return _known(self.ranks_of(j).weighted, "a weighted rank distance")

    # --- squared errors and moments ---

    @property
    def split_sums(self) -> tuple[formulas.Scaled, formulas.Scaled]:
        """Each variable's sums of both parts of the squared error, marginal and permutation."""
        sums, powers = np.zeros((2, self.p)), np.zeros(self.p, np.int32)
        for j in np.flatnonzero(self.counts.both).tolist():
            found = self.ranks_of(j)
            sums[0, j] = _known(found.marginal, "a split of the squared error")
            sums[1, j] = _known(found.permutation, "a split of the squared error")
            powers[j] = 2 * found.power
        marginal, permutation = sums
        return formulas.Scaled(marginal, powers), formulas.Scaled(
            formulas.without_rounding(marginal, permutation), powers
        )

    @property
    def unrelated_squares(self) -> formulas.Scaled:
        """Each variable's squared error for an unrelated order: the mean over all permutations."""
        return formulas.Scaled(self.second.squares, 2 * shared_power(self.totals))

    @property
    def second(self) -> DetailTotals:
        """Totals of the second scan."""
        return _known(self.details, "a metric of the second pass")

    @property
    def correlations(self) -> formulas.Correlations:
        """Correlations of the variables in both files, over the records complete in both."""
        moments = self.totals.complete_original, self.totals.complete_masked
        products = _known(self.second.products, "a correlation")
        norms = [np.sqrt(one.squares) for one in moments]
        return formulas.Correlations(*map(formulas.FileCorrelations, norms, products))


@dataclass(frozen=True)
class EngineVariable:
    """Answers about one variable; see `VariablePair` for what each is."""

    file: EngineComparison
    j: int

    @property
    def facts(self) -> ColumnFacts:
        """Number of records, which column is constant, and the heaviest weight."""
        totals, j = self.file.totals, self.j
        return ColumnFacts(
            int(totals.both[j]),
            bool(totals.shared_original.constant[j]),
            bool(totals.shared_masked.constant[j]),
            float(totals.heaviest[j]),
            float(totals.kept_weight[j]),
        )

    def unrelated_cells(self, cost: formulas.Cost, zeros: str) -> tuple[float, float]:
        """Return the sums of costs and of weights, as means over permutations of the masked values."""
        file, j = self.file, self.j
        used = file.cell_sums.used(cost, zeros)[j]
        if not used or (cost.scale == "spread" and not file.spreads[j] > 0):
            return np.nan, 0.0
        if cost.scale != "value":
            return self._unrelated_sum(cost), float(file.kept_weight[j])
        costly = float(file.cell_sums.sums[j, formulas.NOT_ZERO])
        share = 0.0 if zeros == "drop" else float(file.totals.masked_zeros[j] / file.counts.both[j])
        weight = formulas.unrelated_weight(costly, float(file.cell_sums.zero_weights[j]), share)
        return self._unrelated_sum(cost) if costly else 0.0, weight

    def _unrelated_sum(self, cost: formulas.Cost) -> float:
        """Return the sum of costs in unrelated order over the cells that have a cost."""
        if cost.of is formulas.squared_cost:
            squares = self.file.unrelated_squares
            return float(np.ldexp(squares.mantissas[self.j], squares.exponents[self.j]))
        ranks = self.file.ranks_of(self.j)
        found = ranks.relative_cross_gaps if cost.scale == "value" else ranks.cross_gaps
        total = float(np.ldexp(_known(found, "an unrelated order"), ranks.power))
        return total / float(self.file.scales[self.j]) if cost.scale == "spread" else total

    def arctan_sum(self, unit: float) -> float:
        """Return the weighted sum of the changes of cells, bounded by the arctangent in this unit."""
        name = "spread" if unit == self.file.spreads[self.j] else "raw"
        return float(_known(self.file.second.arctan.get(name), "a bounded change")[self.j])

    def dominance(self, cost: formulas.Cost) -> formulas.Dominance:
        """Return the largest contributions of records to the sums that a loss publishes."""
        return _known(self.file.second.dominance.get(cost), "a check for dominating records")[self.j]

    def distribution_gap(self) -> float:
        """Return the largest distance of the distribution functions in both files."""
        found = self.file.ranks_of(self.j)
        return formulas.share_of_weight(_known(found.largest_gap, "a gap of distributions"), found.n)

    def bin_weights(self) -> tuple[Floats, Floats]:
        """Return the weight of original and of masked values in quantile bins of the original."""
        return _known(self.file.second.bins[self.j], "a binned distribution")

    def quantile_gap(self) -> formulas.QuantileGap:
        """Return the mean distance of original and masked values at the same quantile."""
        found, j = self.file.ranks_of(self.j), self.j
        columns = self.file.totals.shared_original, self.file.totals.shared_masked
        unit = float(powers_of_two(np.array([one.largest[j] for one in columns])))
        low = min(one.low[j] / unit / 4 for one in columns)
        high = max(one.high[j] / unit / 4 for one in columns)
        mean = _known(found.quantile_gaps, "a distance of quantiles") / found.n
        return formulas.QuantileGap(float(np.ldexp(mean, found.power - 2) / unit), float(high - low), unit)

    def means_and_spreads(self) -> tuple[MeanAndSpread, MeanAndSpread]:
        """Return mean and standard deviation in both files, without weights."""
        ours, theirs = (
            MeanAndSpread(float(one.means[self.j]), float(one.spreads(weighted=False)[self.j]))
            for one in (self.file.totals.shared_original, self.file.totals.shared_masked)
        )
        return ours, theirs


SCANNING = 0.15  # share of the progress that each of the two scans takes
ROW_RULES = frozenset({"first", "last"})  # tie rules that depend on the order of rows
RANDOM = "ties='random' cannot be computed for data read in blocks; use expected, its mean"


@dataclass(frozen=True)
class Questions:
    """What the metrics of an evaluation ask: tie rules, sorted columns, bins, products of variables."""

    rules: frozenset[str] = frozenset()
    streams: bool = False
    bins: bool = False
    products: bool = False
    units: tuple[str, ...] = ()  # of changes bounded by the arctangent
    costs: tuple[formulas.Cost, ...] = ()  # losses that one record may dominate

    @classmethod
    def of(cls, metrics: Sequence[Metric], ties: str) -> Questions:
        """Return what these metrics ask; raise NotApplicable for a tie rule that no engine offers."""
        ranked = [metric for metric in metrics if metric.needs == "ranks"]
        rules = frozenset(str(metric.fixed_options.get("ties", ties)) for metric in ranked)
        if "random" in rules:
            raise NotApplicable(RANDOM)
        needs = {metric.needs for metric in metrics if metric.family == "loss"}
        names = {metric.name.partition(":")[0] for metric in metrics}
        scales = [m.fixed_options.get("scale", "spread") for m in metrics if "il_variables" in m.name]
        costs = [metric.dominated.args[0] for metric in metrics if isinstance(metric.dominated, partial)]
        return cls(
            rules,
            bool(needs & {"cells", "columns"}),
            "hellinger" in names,
            "moments" in needs,
            tuple(dict.fromkeys(scales)),
            tuple(dict.fromkeys(costs)),
        )

    @property
    def details(self) -> bool:
        """True if a second scan is needed."""
        return self.streams or self.bins or self.products


@dataclass(frozen=True)
class Comparing:
    """A comparison in progress: where it runs, which variables, and what is asked."""

    transport: Transport
    variables: tuple[str, ...]
    weighted: bool
    questions: Questions

    @property
    def reads(self) -> Reads:
        """The variables in both files."""
        return Reads(self.variables, self.variables)

    def run(self) -> dict[Group, EngineComparison]:
        """Return the comparison of the whole file (None) and of each stratum (its number)."""
        with track("reading", 1.0) as report:
            report(0.0, SCANNING)
            blocks = self.transport.scan(partial(scan_block, self.variables), self.reads, step="reading")
            totals = merge_scans(blocks)
            report(SCANNING, 1.0 - 2 * SCANNING, "ranking")
            ranks = self._rank_totals(totals)
            bases = {
                group: Basis.of(found, weighted=self.weighted, edges=self._edges(group, ranks))
                for group, found in totals.items()
            }
            report(1.0 - SCANNING, SCANNING, "measuring")
            details = self._details(bases) if self.questions.details else {}
        return {
            group: EngineComparison(
                self.variables,
                self.weighted,
                totals[group],
                details.get(group),
                [ranks.get(Piece(name, group)) for name in self.variables],
            )
            for group in totals
        }

    def _details(self, bases: Mapping[Group, Basis]) -> dict[Group, DetailTotals]:
        """Return what needs means, standard deviations or bin edges, from a second scan."""
        asked = self.questions
        second = SecondScan(self.variables, bases, asked.units, asked.costs, products=asked.products)
        details: dict[Group, DetailTotals] = reduce(
            merged, self.transport.scan(second, self.reads, step="measuring")
        )
        return details

    def _rank_totals(self, totals: Mapping[Group, ScanTotals]) -> dict[Piece, RankTotals]:
        """Return the totals of each variable that need its values in order, where any metric asks for one."""
        if not (self.questions.rules or self.questions.streams):
            return {}
        sizes = {
            Piece(name, group): int(found.both[j])
            for group, found in totals.items()
            for j, name in enumerate(self.variables)
        }
        wanted = {
            Piece(name, group): self._wanted(found, j)
            for group, found in totals.items()
            for j, name in enumerate(self.variables)
        }
        ranks = measure_ranks(self.transport, sizes, wanted)
        if self.weighted or not self.questions.rules & ROW_RULES:
            return ranks
        by_row = measure_ranks(self.transport, sizes, dict.fromkeys(wanted, Wanted(ties="rows")))
        return {
            piece: replace(found, sums={**found.sums, **by_row[piece].sums}) for piece, found in ranks.items()
        }

    def _wanted(self, totals: ScanTotals, j: int) -> Wanted:
        """Return what is wanted of a variable."""
        asked = self.questions
        power = int(shared_power(totals)[j])
        if self.weighted:
            unit = float(powers_of_two(totals.heaviest[j : j + 1]))
            return Wanted("weights", streams=asked.streams, unit=unit, power=power)
        ranks: tuple[int, ...] = ()
        if asked.bins and totals.both[j]:
            low, high, _ = formulas.edge_positions(int(totals.both[j]))
            ranks = tuple(np.union1d(low, high).tolist())
        return Wanted(expected="expected" in asked.rules, streams=asked.streams, power=power, ranks=ranks)

    def _edges(self, group: Group, ranks: Mapping[Piece, RankTotals]) -> list[Floats | None]:
        """Return the bin edges of each variable; None where no bins are asked for."""
        return [_bin_edges(ranks.get(Piece(name, group))) for name in self.variables]


def _bin_edges(ranks: RankTotals | None) -> Floats | None:
    """Return bin edges from original values at their ranks; None where these were not asked for."""
    if ranks is None or not ranks.order_statistics:
        return None
    low, high, shares = formulas.edge_positions(ranks.n)
    values = ranks.order_statistics
    ours, theirs = (np.array([values[rank] for rank in at.tolist()]) for at in (low, high))
    return formulas.edges_between(ours, theirs, shares)
