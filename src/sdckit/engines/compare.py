"""Losses of two files larger than memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from sdckit.core.checks import NotApplicable
from sdckit.engines.plan import RankTotals, Wanted, measure_ranks
from sdckit.engines.scan import (
    Basis,
    DetailTotals,
    ScanTotals,
    SecondScan,
    merge_scans,
    scan_block,
    shared_power,
)
from sdckit.engines.transport import Piece, Reads, Transport, merged
from sdckit.kernels.ranks import (
    TIES,
    RankSums,
    TieSummary,
    level_without_midranks,
    midrank_level,
)
from sdckit.kernels.sums import powers_of_two
from sdckit.metrics.blocks import (
    NOT_ZERO,
    CellSums,
    Correlations,
    Cost,
    FileCorrelations,
    QuantileGap,
    Scaled,
    edge_positions,
    edges_between,
    share_of_weight,
    squared_cost,
    unrelated_weight,
    variable_scales,
    without_rounding,
)
from sdckit.metrics.pair import ColumnFacts, Counts, MeanAndSpread
from sdckit.progress import track

if TYPE_CHECKING:
    from sdckit.arrays import Floats
    from sdckit.core.registry import Metric
    from sdckit.engines.scan import Group
    from sdckit.metrics.blocks import Dominance


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
        return variable_scales(self.spreads)

    @property
    def cell_sums(self) -> CellSums:
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
    def split_sums(self) -> tuple[Scaled, Scaled]:
        """Each variable's sums of both parts of the squared error, marginal and permutation."""
        sums, powers = np.zeros((2, self.p)), np.zeros(self.p, np.int32)
        for j in np.flatnonzero(self.counts.both).tolist():
            found = self.ranks_of(j)
            sums[0, j] = _known(found.marginal, "a split of the squared error")
            sums[1, j] = _known(found.permutation, "a split of the squared error")
            powers[j] = 2 * found.power
        marginal, permutation = sums
        return Scaled(marginal, powers), Scaled(without_rounding(marginal, permutation), powers)

    @property
    def unrelated_squares(self) -> Scaled:
        """Each variable's squared error for an unrelated order: the mean over all permutations."""
        return Scaled(self.second.squares, 2 * shared_power(self.totals))

    @property
    def second(self) -> DetailTotals:
        """Totals of the second scan."""
        return _known(self.details, "a metric of the second pass")

    @property
    def correlations(self) -> Correlations:
        """Correlations of the variables in both files, over the records complete in both."""
        moments = self.totals.complete_original, self.totals.complete_masked
        products = _known(self.second.products, "a correlation")
        norms = [np.sqrt(one.squares) for one in moments]
        return Correlations(*map(FileCorrelations, norms, products))


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

    def unrelated_cells(self, cost: Cost, zeros: str) -> tuple[float, float]:
        """Return the sums of costs and of weights, as means over permutations of the masked values."""
        file, j = self.file, self.j
        used = file.cell_sums.used(cost, zeros)[j]
        if not used or (cost.scale == "spread" and not file.spreads[j] > 0):
            return np.nan, 0.0
        if cost.scale != "value":
            return self._unrelated_sum(cost), float(file.kept_weight[j])
        costly = float(file.cell_sums.sums[j, NOT_ZERO])
        share = 0.0 if zeros == "drop" else float(file.totals.masked_zeros[j] / file.counts.both[j])
        weight = unrelated_weight(costly, float(file.cell_sums.zero_weights[j]), share)
        return self._unrelated_sum(cost) if costly else 0.0, weight

    def _unrelated_sum(self, cost: Cost) -> float:
        """Return the sum of costs in unrelated order over the cells that have a cost."""
        if cost.of is squared_cost:
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

    def dominance(self, cost: Cost) -> Dominance:
        """Return the largest contributions of records to the sums that a loss publishes."""
        return _known(self.file.second.dominance.get(cost), "a check for dominating records")[self.j]

    def distribution_gap(self) -> float:
        """Return the largest distance of the distribution functions in both files."""
        found = self.file.ranks_of(self.j)
        return share_of_weight(_known(found.largest_gap, "a gap of distributions"), found.n)

    def bin_weights(self) -> tuple[Floats, Floats]:
        """Return the weight of original and of masked values in quantile bins of the original."""
        return _known(self.file.second.bins[self.j], "a binned distribution")

    def quantile_gap(self) -> QuantileGap:
        """Return the mean distance of original and masked values at the same quantile."""
        found, j = self.file.ranks_of(self.j), self.j
        columns = self.file.totals.shared_original, self.file.totals.shared_masked
        unit = float(powers_of_two(np.array([one.largest[j] for one in columns])))
        low = min(one.low[j] / unit / 4 for one in columns)
        high = max(one.high[j] / unit / 4 for one in columns)
        mean = _known(found.quantile_gaps, "a distance of quantiles") / found.n
        return QuantileGap(float(np.ldexp(mean, found.power - 2) / unit), float(high - low), unit)

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
    costs: tuple[Cost, ...] = ()  # losses that one record may dominate

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
            low, high, _ = edge_positions(int(totals.both[j]))
            ranks = tuple(np.union1d(low, high).tolist())
        return Wanted(expected="expected" in asked.rules, streams=asked.streams, power=power, ranks=ranks)

    def _edges(self, group: Group, ranks: Mapping[Piece, RankTotals]) -> list[Floats | None]:
        """Return the bin edges of each variable; None where no bins are asked for."""
        return [_bin_edges(ranks.get(Piece(name, group))) for name in self.variables]


def _bin_edges(ranks: RankTotals | None) -> Floats | None:
    """Return bin edges from original values at their ranks; None where these were not asked for."""
    if ranks is None or not ranks.order_statistics:
        return None
    low, high, shares = edge_positions(ranks.n)
    values = ranks.order_statistics
    ours, theirs = (np.array([values[rank] for rank in at.tolist()]) for at in (low, high))
    return edges_between(ours, theirs, shares)
