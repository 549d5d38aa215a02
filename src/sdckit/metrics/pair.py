"""An original and a masked file side by side: what each loss asks of them, and how scores are averaged."""

from __future__ import annotations

import inspect
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import narwhals as nw
import numpy as np

from sdckit.core import checks
from sdckit.core.checks import NotApplicable, warn
from sdckit.core.registry import MISSING_RULE, Function, Metric, file_metric, parameter_value
from sdckit.core.roles import match_keys
from sdckit.core.table import Table
from sdckit.kernels import ranks as kernels
from sdckit.kernels.jit import count_special
from sdckit.kernels.sums import powers_of_two, spread
from sdckit.masking.disclosure import Disclosure
from sdckit.metrics import blocks
from sdckit.metrics.original import Original, rows_of
from sdckit.metrics.score import Queries, QuerySample, Score, Values
from sdckit.progress import each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sdckit.arrays import Bools, Floats, Int, Ints
    from sdckit.engines.compare import EngineComparison, EngineVariable
    from sdckit.rules.rules import Rules


@dataclass(frozen=True)
class Counts:
    """Numbers of cells of each variable observed in both files, in one of them, or in neither."""

    both: Ints
    suppressed: Ints
    imputed: Ints
    neither: Ints


class ColumnFacts(NamedTuple):
    """Facts about a variable in the records with a value in both files.

    `original_constant` and `masked_constant` are True if all values are equal. `heaviest` is the largest
    weight of a record and `weight` the sum of all; without weights, every record has weight 1.
    """

    records: int
    original_constant: bool
    masked_constant: bool
    heaviest: float
    weight: float


class MeanAndSpread(NamedTuple):
    """Mean and standard deviation (ddof 1) of a column, without weights."""

    mean: float
    spread: float


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

    def cells(self, cost: blocks.Cost, zeros: str) -> blocks.VariableCells:
        """Return the cells with the cost of each, ready to be counted one by one."""
        return blocks.VariableCells(self, cost, zeros)

    def unrelated_cells(self, cost: blocks.Cost, zeros: str) -> tuple[float, float]:
        """Return the sums of costs and of weights, as means over permutations of the masked values."""
        return self.cells(cost, zeros).unrelated_totals()

    def unrelated_squares(self) -> blocks.Scaled:
        """Return the sum of squared errors, as a mean over permutations of the masked values."""
        if not self.x.size:
            return blocks.Scaled.of(np.zeros(()))
        unit = powers_of_two(np.concatenate([self.x, self.y]))
        weights = np.ones(self.x.size) if self.weights is None else self.weights
        found = blocks.MSE.unrelated_sum(self.x / unit, self.y / unit, weights)
        return blocks.Scaled(np.array(found), np.array(2 * (np.frexp(unit)[1] - 1), np.int32))

    def arctan_sum(self, unit: float) -> float:
        """Return the weighted sum of the changes of cells, bounded by the arctangent in this unit."""
        changes = blocks.arctan_changes(self.x, self.y, unit)
        return float(changes.sum() if self.weights is None else (self.weights * changes).sum())

    def dominance(self, cost: blocks.Cost) -> blocks.Dominance:
        """Return the largest contributions of records to the sums that a loss publishes."""
        cells = self.cells(cost, "keep")
        x, y = self.x[cells.counts], self.y[cells.counts]
        with np.errstate(over="ignore", invalid="ignore"):
            means = (float(x.mean()), float(y.mean())) if x.size else (0.0, 0.0)
        return blocks.dominance(cells, *means)

    def distribution_gap(self) -> float:
        """Return the largest distance of the distribution functions in both files."""
        return blocks.distribution_gap(self.x, self.y, self.weights)

    def bin_weights(self) -> tuple[Floats, Floats]:
        """Return the weight of original and of masked values in quantile bins of the original."""
        edges = blocks.bin_edges(self.x)
        ours, theirs = (blocks.bin_weights(v, edges, self.weights) for v in (self.x, self.y))
        return ours, theirs

    def quantile_gap(self) -> blocks.QuantileGap:
        """Return the mean distance of original and masked values at the same quantile."""
        return blocks.quantile_gap(self.x, self.y, self.weights)

    def means_and_spreads(self) -> tuple[MeanAndSpread, MeanAndSpread]:
        """Return mean and standard deviation in both files, without weights."""
        ours, theirs = (
            MeanAndSpread(float(values.mean()), float(spread(values[:, None])[0]))
            for values in (self.x, self.y)
        )
        return ours, theirs


CELLS_AT_ONCE = 1 << 18  # in columns that are sorted together
UNDISCLOSED = Disclosure()  # nothing is published about the masking


@dataclass
class Pair:
    """Original and masked data with aligned rows; computes and caches what metrics need.

    `window` is the largest move in ranks that the method publishes, for all columns or for each of them;
    None where it publishes none. `rules` are published edit rules on some of the columns. `disclosure` is
    what else is published about the masking. `by_position` is True where rows are paired by their order, so
    that the order of the published rows may tell something; sweeps and searches judge shuffled rows. `places`
    gives the row of the masked table for each original, None where they are aligned. `whole` is the pair of
    the whole file, for that of a stratum with the row numbers `rows`. `sample` says on how many records
    linkage is estimated; it may grow, and what was found on the smaller sample is used again.
    """

    original: Original
    masked: Floats
    window: int | Floats | None = None
    rows: Ints | None = None  # row numbers in the whole file, for the pair of a stratum
    rules: Rules | None = None
    table: Table | None = None  # the masked data as they were given
    disclosure: Disclosure = UNDISCLOSED
    by_position: bool = False
    places: Ints | None = None
    strata: Sequence[tuple[str, Ints]] = ()  # name and rows of each stratum that was masked separately
    whole: Pair | None = None
    marks: Mapping[str, Ints] | None = None  # of missing cells, see `missing_marks`; None: as in the original
    sample: QuerySample | None = None  # None: linkage is measured on all records
    remask: Callable[[np.random.Generator], Floats] | None = None  # masks the file with other draws
    trial: bool = False  # one of many settings that a search tries: fewer shadows
    ranks: dict[Any, Any] = field(default_factory=dict)  # what was found of ranks, by what was asked
    cache: dict[str, Any] = field(default_factory=dict)  # intermediate results that several metrics share

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the variables."""
        return self.original.columns

    @property
    def p(self) -> int:
        """Number of variables."""
        return len(self.original.columns)

    @property
    def n(self) -> int:
        """Number of records."""
        return self.original.n

    @property
    def weighted(self) -> bool:
        """True if records have survey weights."""
        return self.original.weights is not None

    @property
    def in_memory(self) -> Pair:
        """The pair itself, which holds both files as arrays."""
        return self

    @cached_property
    def known_names(self) -> frozenset[str]:
        """Names of the published columns, variables and others, that the intruder knows."""
        if self.whole is not None:
            return self.whole.known_names
        return frozenset(self.original.roles.known_columns([*self.columns, *self.published]))

    @property
    def published(self) -> Sequence[str]:
        """Names of all columns of the masked table; of the original's where the pair has numbers only."""
        return self.original.table_names if self.table is None else self.table.names

    @cached_property
    def known_variables(self) -> list[int]:
        """Positions of the variables that the intruder knows."""
        return [j for j, name in enumerate(self.columns) if name in self.known_names]

    @cached_property
    def missing(self) -> Bools:
        """True for each masked cell of the n x p matrix that is missing."""
        return np.isnan(self.masked)

    @cached_property
    def special_counts(self) -> tuple[Int, Int]:
        """Number of masked cells that are missing, and number that are infinite."""
        return count_special(self.by_variable.ravel())

    @cached_property
    def complete(self) -> bool:
        """True if neither file has a missing cell."""
        return self.original.complete and not self.special_counts[0]

    @cached_property
    def by_variable(self) -> Floats:
        """Masked values as a contiguous p x n matrix, one row per variable."""
        return np.ascontiguousarray(self.masked.T)

    @cached_property
    def counts(self) -> Counts:
        """Numbers of observed and missing cells of each variable."""
        if self.complete:
            none = np.zeros(self.p, np.int64)
            return Counts(np.full(self.p, self.original.n), none, none, none)
        ours, theirs = self.original.missing, self.missing
        return Counts(
            both=(~ours & ~theirs).sum(0),
            suppressed=(~ours & theirs).sum(0),
            imputed=(ours & ~theirs).sum(0),
            neither=(ours & theirs).sum(0),
        )

    @property
    def kept_weight(self) -> Floats:
        """Summed weight of the cells that both files have, for each variable."""
        if not self.weighted:
            return self.counts.both.astype(np.float64)
        return self._weights_of(self.both)

    @property
    def suppressed_weight(self) -> Floats:
        """Summed weight of the cells missing in the masked file only, for each variable."""
        return self._weights_of(self.suppressed)

    def both(self, j: int) -> Bools | slice:
        """Return True for each record with a value of variable j in both files; a slice if all have one."""
        return slice(None) if self.complete else ~self.original.missing[:, j] & ~self.missing[:, j]

    def suppressed(self, j: int) -> Bools:
        """Return True for each record in which only the original has a value of variable j."""
        return ~self.original.missing[:, j] & self.missing[:, j]

    def _weights_of(self, chosen: Callable[[int], Bools | slice]) -> Floats:
        """Return the summed weights of the chosen records of each variable."""
        weights = np.ones(self.n) if self.original.weights is None else self.original.weights
        return np.array([weights[chosen(j)].sum() for j in range(self.p)])

    def cells(self, j: int) -> tuple[Floats, Floats, Floats | None]:
        """Return original values, masked values and weights of variable j where both files have a value."""
        rows = self.both(j)
        weights = self.original.weights
        return self.original.values[rows, j], self.masked[rows, j], None if weights is None else weights[rows]

    def ranked(self, j: int) -> tuple[kernels.OrderedColumn, Floats]:
        """Return the sorted original column j and the masked values, where both files have a value."""
        column = self.original.ordered(j)
        if self.complete:
            return column, np.ascontiguousarray(self.masked[:, j])
        seen = ~self.original.missing[:, j]
        kept = ~self.missing[seen, j]
        return (column if kept.all() else column.restrict(kept)), self.masked[seen, j][kept]

    def alignment(self, j: int) -> kernels.AlignedColumn:
        """Return both columns of variable j sorted, to compute tie ranges; large, so not cached."""
        return kernels.AlignedColumn(*self.ranked(j))

    def tie_summary(self, j: int) -> kernels.TieSummary:
        """Return variable j's range of brMAE and brMSE over tie-breakings, and values in unrelated order."""
        found: kernels.TieSummary = self._once(("ties", j), lambda: kernels.summarise(self.alignment(j)))
        return found

    def weighted_losses(self, j: int, what: Literal["values", "unrelated_values"]) -> tuple[float, float]:
        """Return weighted brMAE and brMSE of variable j, as measured or in unrelated order."""
        if (what, j) not in self.ranks:
            self.ranks[what, j] = getattr(self.weighted_ranks(j), what)()
        found: tuple[float, float] = self.ranks[what, j]
        return found

    def weighted_ranks(self, j: int) -> kernels.WeightedRanks:
        """Return both columns of variable j in weighted order; large, so not cached."""
        x, y, weights = self.cells(j)
        return kernels.WeightedRanks(x, y, np.ones(x.size) if weights is None else weights)

    def doubled_rank_gaps(self, j: int, ties: str, rng: np.random.Generator | None = None) -> Ints:
        """Return twice the difference of each record's ranks in both files, for variable j."""
        if ties != "random":
            return kernels.row_gaps2(*self.ranked(j), ties)
        drawn: list[Ints] = self._once(
            ties, lambda: [kernels.row_gaps2(*self.ranked(i), ties, rng) for i in range(self.p)]
        )
        return drawn[j]

    def rank_values(self, what: str, ties: str, rng: np.random.Generator | None = None) -> Floats:
        """Return brMAE ("absolute"), brMSE ("squared") or another property of `RankSums` per variable."""
        sums = self._once(("sums", ties), lambda: self._rank_sums(ties, rng))
        if isinstance(sums, kernels.RankSums):
            return np.asarray(getattr(sums, what))
        return np.array([getattr(single, what) for single in sums])

    def _once(self, asked: Any, find: Callable[[], Any]) -> Any:
        """Return what a function finds of ranks, called at the first time only."""
        if asked not in self.ranks:
            self.ranks[asked] = find()
        return self.ranks[asked]

    def _rank_sums(self, ties: str, rng: np.random.Generator | None) -> Any:
        """Return the `RankSums` of all variables under a tie rule, as one or as a list of them."""
        if ties == "random":
            return [kernels.gap_distance(self.doubled_rank_gaps(j, ties, rng)) for j in range(self.p)]
        small = self.original.n < kernels.SMALL
        if ties in kernels.RULES and small and self.complete and self.original.n > 1:
            return self.original.stack.distances(self.stack, ties)
        if small or self.p == 1:
            return [self._rank_distance(j, ties) for j in range(self.p)]
        with ThreadPoolExecutor(min(self.p, os.cpu_count() or 1)) as pool:
            tasks = [pool.submit(self._rank_distance, j, ties) for j in range(self.p)]
            return [task.result() for task in each("ranking", tasks)]

    @cached_property
    def stack(self) -> kernels.ColumnStack:
        """All masked columns of a short file without missing cells, sorted in one compiled call."""
        return kernels.ColumnStack(self.by_variable)

    def _rank_distance(self, j: int, ties: str) -> kernels.RankSums:
        """Return the sums of rank differences of variable j under a tie rule; 0 below two records."""
        column, masked = self.ranked(j)
        return kernels.distance(column, masked, ties) if column.n > 1 else kernels.RankSums(column.n, 0, 0)

    # --- cells ---

    @property
    def spreads(self) -> Floats:
        """Standard deviation (ddof 1, weighted) of each original variable; NaN below two values."""
        return self.original.spreads

    @property
    def all_vary(self) -> bool:
        """True where every original variable has a standard deviation above 0."""
        return self.original.all_vary

    @property
    def scales(self) -> Floats:
        """Divisor of each variable's costs in IL1s: sqrt(2) standard deviations."""
        return self.original.scales

    def variable(self, j: int) -> VariablePair:
        """Return the values of variable j that both files have, which answer what metrics ask about it."""
        return VariablePair(*self.cells(j), float(self.spreads[j]), float(self.scales[j]))

    @cached_property
    def cell_sums(self) -> blocks.CellSums:
        """Sums of costs and weights, and counts of cells, of each variable."""
        return blocks.cell_sums(self.original.by_variable, self.by_variable, self.original.weights)

    @cached_property
    def split_sums(self) -> tuple[blocks.Scaled, blocks.Scaled]:
        """Each variable's sums of both parts of the squared error, marginal and permutation."""
        return blocks.split_sums(self._coupled_columns())

    def _coupled_columns(self) -> Iterator[blocks.CoupledColumns]:
        """Yield sorted original columns beside sorted masked ones, several variables at once if complete."""
        if not self.complete or self.weighted:
            for j in range(self.p):
                x, own, y, weights = blocks.couple_quantiles(*self.cells(j))
                yield blocks.CoupledColumns(x[None], own[None], y[None], weights)
            return
        several = max(1, CELLS_AT_ONCE // self.n)
        for begin in range(0, self.p, several):
            y = self.by_variable[begin : begin + several]
            x, positions = self.original.sorted_columns(begin, len(y))
            yield blocks.CoupledColumns(x, np.take(y, positions), np.sort(y), np.empty(0))

    @cached_property
    def unrelated_squares(self) -> blocks.Scaled:
        """Each variable's squared error for an unrelated order: the mean over all permutations."""
        return blocks.Scaled.stack([self.variable(j).unrelated_squares() for j in range(self.p)])

    @cached_property
    def complete_rows(self) -> Ints:
        """Row numbers of the records without a missing cell in either file."""
        if self.complete:
            return np.arange(self.n)
        return np.flatnonzero(~(self.original.missing | self.missing).any(1))

    @property
    def complete_records(self) -> int:
        """Number of records without a missing cell in either file."""
        return self.complete_rows.size

    def complete_values(self) -> tuple[Floats, Floats]:
        """Return original and masked values of the records complete in both files."""
        chosen = slice(None) if self.complete else self.complete_rows
        x, y = self.original.values[chosen], self.masked[chosen]
        # One layout for both: sums are then added in one order, and equal files give equal sums.
        return np.ascontiguousarray(x), np.ascontiguousarray(y)

    @cached_property
    def correlations(self) -> blocks.Correlations:
        """Correlations of the variables in both files, over the records complete in both."""
        return blocks.Correlations(*map(blocks.correlations_of, self.complete_values()))

    def disclose(self, disclosure: Disclosure) -> None:
        """Set what is published about the masking; results that other knowledge led to are forgotten."""
        if disclosure != self.disclosure:
            self.cache.clear()
        self.disclosure = disclosure
        self.strata = self.original.strata if disclosure.by else ()

    def queries(self, chosen: Bools) -> Queries:
        """Return those of the chosen records that are looked up: all, or as many as the sample has."""
        records = int(chosen.sum())
        if self.sample is None or self.sample.size >= records:
            return Queries(chosen, records)
        first = 0 if self.rows is None else int(self.rows[0])
        order = self.sample.order(self.original.n, self.original.cache, first)
        return Queries(order[chosen[order]][: self.sample.size], records, self.sample)

    def take(self, rows: Ints, original: Original | None = None) -> Pair:
        """Return the pair restricted to the given row numbers."""
        part = original or self.original.take(rows)
        masked = rows_of(self.masked, rows)
        pair = Pair(part, masked, rows=rows, rules=self.rules, whole=self, sample=self.sample)
        pair.disclosure = self.disclosure
        return pair

    @property
    def parts(self) -> list[tuple[str, Pair]]:
        """Name and pair of each stratum; empty without strata."""
        return [(name, self.take(rows, part)) for name, rows, part in self.original.parts]


def pair_of(original: Any, masked: Any, *, rows: Any = None, paired: bool = True, **roles: Any) -> Pair:
    """Return the pair of original and masked data, rows aligned by key, or by order without a key.

    `rows` gives the original row of each masked one, where the rows were shuffled; no key is needed then.
    Rows that are `paired` by order though pandas' labels say otherwise are warned of.
    """
    prepared = Original.of(original, **roles, warn=False)
    if rows is not None:
        return pair_by_row(prepared, masked, rows=rows)
    pair = _read_pair(prepared, Table(masked))
    if prepared.roles.key and prepared.table is not None:
        assert pair.table is not None  # noqa: S101 - it has just been set
        rows = match_keys(prepared.table, pair.table, prepared.roles.key)
        return replace(pair, masked=rows_of(pair.masked, rows), places=rows)
    checks.require_same_records(len(pair.masked), prepared.n)
    pair = replace(pair, by_position=True)
    if paired and _same_labels_in_other_order(prepared.table, pair.table):
        warn(
            "both tables have the same index labels in another order, and rows are paired by position; "
            "sort both alike, or give key="
        )
    return pair


def _same_labels_in_other_order(*tables: Table | None) -> bool:
    """Return True for two pandas tables whose unique index labels are the same, but in another order."""
    ours, theirs = (getattr(None if table is None else table.native, "index", None) for table in tables)
    if not (nw.dependencies.is_pandas_index(ours) and nw.dependencies.is_pandas_index(theirs)):
        return False
    if ours.equals(theirs) or len(ours) != len(theirs):
        return False
    return bool(ours.is_unique and theirs.is_unique and ours.isin(theirs).all())


def pair_by_row(original: Original, masked: Any, *, rows: Any = None) -> Pair:
    """Return the pair of original and masked data, rows aligned by order even where there is a key.

    `rows` gives the original row of each masked one, where the rows were shuffled.
    """
    pair = _read_pair(original, Table(masked))
    checks.require_same_records(len(pair.masked), original.n)
    if rows is None:
        return replace(pair, by_position=True)
    places = np.argsort(checks.checked_order(rows, original.n))
    return replace(pair, masked=rows_of(pair.masked, places), places=places)


def _read_pair(original: Original, table: Table) -> Pair:
    """Return the pair with the original's variables read from the masked table, rows in its order."""
    names = list(original.columns)
    if table.frame is not None or names != table.names:  # else an array of the same shape
        checks.require_masked_columns(names, table.names)
        names = table.numeric_columns(names)
    return Pair(original, table.floats(names, original.roles.na), table=table)


def require_in_memory(comparison: Comparison, what: str) -> Pair:
    """Return both files as arrays; raise NotApplicable, saying what needs them, where there are none."""
    pair = comparison.in_memory
    if pair is None:
        raise NotApplicable(f"{what} needs both files in memory and these are read in blocks; leave it out")
    return pair


if TYPE_CHECKING:
    Rows = Bools | Ints | slice
    # What metrics ask of two files, in memory or read in blocks. Where an engine has no answer, it raises
    # NotApplicable, and `evaluate` leaves the metric out with a note.
    Comparison: TypeAlias = Pair | EngineComparison
    VariableComparison: TypeAlias = VariablePair | EngineVariable


def mean_over_variables(variables: Floats) -> float:
    """Return the mean of the variables' values that are not NaN; NaN where all are."""
    known = [value for value in variables.tolist() if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def pooled_means(sums: Floats, weights: Floats) -> Values:
    """Return sum / weight for each variable and for all cells together; NaN where the weight is 0."""
    known = weights > 0
    if known.all():
        return Values(float(sums.sum() / weights.sum()), sums / weights)
    overall = float(sums[known].sum() / weights[known].sum()) if known.any() else math.nan
    return Values(overall, divide_or_nan(sums, weights))


def divide_or_nan(total: Floats, count: Floats) -> Floats:
    """Return each total divided by its count; NaN where the count is 0."""
    return np.divide(total, count, out=np.full(total.size, np.nan), where=count > 0)


def record_means(n: int, costs: Iterable[tuple[Rows, Floats | float]]) -> Floats:
    """Return the mean cost of each of n records over its variables; NaN for a record without a cost.

    `costs` has, for each variable, some rows and the cost of each.
    """
    total, count = np.zeros(n), np.zeros(n)
    for rows, cost in costs:
        total[rows] += cost
        count[rows] += 1
    return divide_or_nan(total, count)


def penalise_suppressed(comparison: Comparison, variables: Floats, empty: Bools | None = None) -> Floats:
    """Return each variable's mean with its suppressed cells counted as 1, the largest loss.

    Variables in `empty`, by default those that are NaN, have too few cells for a value: only their
    suppressed cells count.
    """
    if not comparison.counts.suppressed.any():
        return variables
    empty = np.isnan(variables) if empty is None else empty
    kept, gone = comparison.kept_weight, comparison.suppressed_weight
    shares = kept * np.where(empty, 0.0, variables) + gone
    return np.divide(shares, kept + gone, out=np.full(comparison.p, np.nan), where=~empty | (gone > 0))


LOSS: dict[str, Any] = {"family": "loss", "bounds": (0.0, 1.0), "best": 0.0}


def metric(
    *, score: Callable[..., Score], explain: Callable[[Score], str], **properties: Any
) -> Callable[[Function], Function]:
    """Return a decorator that makes a public function of a score and files both in `METRICS`.

    The decorated function has the signature and the docstring, and no body. `original`, `masked` and, if it
    takes them, `weights` make the pair of files; its other parameters are options of the score. `properties`
    are those of `Metric`, by default those of a loss from 0 to 1; the rule for missing cells is added.
    """

    def register(stated: Function) -> Function:
        """Return the public function, filed under its own name."""
        signature = inspect.signature(stated)

        @wraps(stated)
        def measure(*tables: Any, **options: Any) -> float:
            """Return the value of the whole file."""
            given = signature.bind(*tables, **options).arguments
            roles = {"weights": given.pop("weights")} if "weights" in given else {}
            paired = made.paired or made.family == "risk"
            pair = pair_of(given.pop("original"), given.pop("masked"), paired=paired, **roles)
            if made.family == "risk":  # losses check their options themselves
                given = {name: parameter_value(known[name], value) for name, value in given.items()}
            return score(pair, **given).value.overall

        function = cast("Function", measure)
        found = {**LOSS, "random": "rng" in signature.parameters, **properties}
        if "missing" in signature.parameters:
            found["parameters"] = (*properties.get("parameters", ()), MISSING_RULE)
        made = Metric(name=stated.__name__, score=score, explain=explain, function=measure, **found)
        known = {parameter.name: parameter for parameter in made.parameters}
        file_metric(made)
        return function

    return register
