"""A pair of original and masked data with aligned rows: the input of every metric."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np

from sdckit.core import checks
from sdckit.core.disclosure import Disclosure
from sdckit.core.roles import match_keys
from sdckit.core.table import Table
from sdckit.core.warning_texts import warn
from sdckit.kernels.jit import count_special
from sdckit.kernels.ranks import RULES, SMALL, OrderedColumn, RankSums, StackOrder, gap_distance
from sdckit.kernels.tie_rules import AlignedColumn, TieSummary, distance, row_gaps2, summarise
from sdckit.kernels.weighted_ranks import WeightedRanks
from sdckit.metrics.blocks.cell_sums import CellSums, cell_sums
from sdckit.metrics.blocks.correlations import Correlations, correlations_of
from sdckit.metrics.blocks.coupled_columns import CoupledColumns, couple_quantiles, split_sums
from sdckit.metrics.blocks.scaled_numbers import Scaled
from sdckit.metrics.counts import Counts
from sdckit.metrics.original import Original
from sdckit.metrics.query_sample import Queries, QuerySample
from sdckit.metrics.variable_pair import VariablePair
from sdckit.progress import each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sdckit.kernels.jit import Bools, Floats, Int, Ints
    from sdckit.rules.rules import Rules


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
    _sums: dict[str, RankSums | list[RankSums]] = field(default_factory=dict)
    _summaries: dict[int, TieSummary] = field(default_factory=dict)
    _weighted: dict[tuple[int, str], tuple[float, float]] = field(default_factory=dict)
    _random: list[Ints] = field(default_factory=list)
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
        names = self.original.table_names if self.table is None else self.table.names
        return frozenset(self.original.roles.known_columns([*self.columns, *names]))

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
        return self._weights_of([self.both(j) for j in range(self.p)])

    @property
    def suppressed_weight(self) -> Floats:
        """Summed weight of the cells missing in the masked file only, for each variable."""
        return self._weights_of([self.suppressed(j) for j in range(self.p)])

    def both(self, j: int) -> Bools | slice:
        """Return True for each record with a value of variable j in both files; a slice if all have one."""
        return slice(None) if self.complete else ~self.original.missing[:, j] & ~self.missing[:, j]

    def suppressed(self, j: int) -> Bools:
        """Return True for each record in which only the original has a value of variable j."""
        return ~self.original.missing[:, j] & self.missing[:, j]

    def _weights_of(self, chosen: Sequence[Bools | slice]) -> Floats:
        """Return the summed weights of the chosen records of each variable."""
        weights = np.ones(self.n) if self.original.weights is None else self.original.weights
        return np.array([weights[rows].sum() for rows in chosen])

    def cells(self, j: int) -> tuple[Floats, Floats, Floats | None]:
        """Return original values, masked values and weights of variable j where both files have a value."""
        rows = self.both(j)
        weights = self.original.weights
        return self.original.values[rows, j], self.masked[rows, j], None if weights is None else weights[rows]

    def ranked(self, j: int) -> tuple[OrderedColumn, Floats]:
        """Return the sorted original column j and the masked values, where both files have a value."""
        column = self.original.ordered(j)
        if self.complete:
            return column, np.ascontiguousarray(self.masked[:, j])
        seen = ~self.original.missing[:, j]
        kept = ~self.missing[seen, j]
        return (column if kept.all() else column.restrict(kept)), self.masked[seen, j][kept]

    def alignment(self, j: int) -> AlignedColumn:
        """Return both columns of variable j sorted, to compute tie ranges; large, so not cached."""
        return AlignedColumn(*self.ranked(j))

    def tie_summary(self, j: int) -> TieSummary:
        """Return variable j's range of brMAE and brMSE over tie-breakings, and values in unrelated order."""
        if j not in self._summaries:
            self._summaries[j] = summarise(self.alignment(j))
        return self._summaries[j]

    def weighted_losses(self, j: int, what: Literal["values", "unrelated_values"]) -> tuple[float, float]:
        """Return weighted brMAE and brMSE of variable j, as measured or in unrelated order."""
        if (j, what) not in self._weighted:
            self._weighted[j, what] = getattr(self.weighted_ranks(j), what)()
        return self._weighted[j, what]

    def weighted_ranks(self, j: int) -> WeightedRanks:
        """Return both columns of variable j in weighted order; large, so not cached."""
        x, y, weights = self.cells(j)
        return WeightedRanks(x, y, np.ones(x.size) if weights is None else weights)

    def doubled_rank_gaps(self, j: int, ties: str, rng: np.random.Generator | None = None) -> Ints:
        """Return twice the difference of each record's ranks in both files, for variable j."""
        if ties != "random":
            return row_gaps2(*self.ranked(j), ties)
        if not self._random:
            self._random = [row_gaps2(*self.ranked(i), ties, rng) for i in range(self.p)]
        return self._random[j]

    def rank_values(self, what: str, ties: str, rng: np.random.Generator | None = None) -> Floats:
        """Return brMAE ("absolute"), brMSE ("squared") or another property of `RankSums` per variable."""
        if ties not in self._sums:
            self._sums[ties] = self._rank_sums(ties, rng)
        sums = self._sums[ties]
        if isinstance(sums, RankSums):
            return np.asarray(getattr(sums, what))
        return np.array([getattr(single, what) for single in sums])

    def _rank_sums(self, ties: str, rng: np.random.Generator | None) -> RankSums | list[RankSums]:
        """Return the sums of rank differences of all variables under a tie rule."""
        if ties == "random":
            return [gap_distance(self.doubled_rank_gaps(j, ties, rng)) for j in range(self.p)]
        small = self.original.n < SMALL
        if ties in RULES and small and self.complete and self.original.n > 1:
            return self.stack_order.sums(ties)
        if small or self.p == 1:
            return [self._rank_distance(j, ties) for j in range(self.p)]
        with ThreadPoolExecutor(min(self.p, os.cpu_count() or 1)) as pool:
            tasks = [pool.submit(self._rank_distance, j, ties) for j in range(self.p)]
            return [task.result() for task in each("ranking", tasks)]

    @cached_property
    def stack_order(self) -> StackOrder:
        """All masked columns of a short file without missing cells, sorted in one compiled call."""
        return self.original.stack.compare(self.by_variable)

    def _rank_distance(self, j: int, ties: str) -> RankSums:
        """Return the sums of rank differences of variable j under a tie rule; 0 below two records."""
        column, masked = self.ranked(j)
        return distance(column, masked, ties) if column.n > 1 else RankSums(column.n, 0, 0)

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
    def cell_sums(self) -> CellSums:
        """Sums of costs and weights, and counts of cells, of each variable."""
        return cell_sums(self.original.by_variable, self.by_variable, self.original.weights)

    @cached_property
    def split_sums(self) -> tuple[Scaled, Scaled]:
        """Each variable's sums of both parts of the squared error, marginal and permutation."""
        return split_sums(self._coupled_columns())

    def _coupled_columns(self) -> Iterator[CoupledColumns]:
        """Yield sorted original columns beside sorted masked ones, several variables at once if complete."""
        if not self.complete or self.weighted:
            for j in range(self.p):
                x, own, y, weights = couple_quantiles(*self.cells(j))
                yield CoupledColumns(x[None], own[None], y[None], weights)
            return
        several = max(1, CELLS_AT_ONCE // self.n)
        for begin in range(0, self.p, several):
            y = self.by_variable[begin : begin + several]
            x, positions = self.original.sorted_columns(begin, len(y))
            yield CoupledColumns(x, np.take(y, positions), np.sort(y), np.empty(0))

    @cached_property
    def unrelated_squares(self) -> Scaled:
        """Each variable's squared error for an unrelated order: the mean over all permutations."""
        return Scaled.stack([self.variable(j).unrelated_squares() for j in range(self.p)])

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
    def correlations(self) -> Correlations:
        """Correlations of the variables in both files, over the records complete in both."""
        return Correlations(*map(correlations_of, self.complete_values()))

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
        masked = np.asfortranarray(self.masked[rows])
        part = original or self.original.take(rows)
        return Pair(
            part,
            masked,
            rows=rows,
            rules=self.rules,
            disclosure=self.disclosure,
            whole=self,
            sample=self.sample,
        )

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
        return replace(pair, masked=np.asfortranarray(pair.masked[rows]), places=rows)
    pair = replace(_require_same_length(pair), by_position=True)
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
    pair = _require_same_length(_read_pair(original, Table(masked)))
    if rows is None:
        return replace(pair, by_position=True)
    places = np.argsort(checks.checked_order(rows, original.n))
    return replace(pair, masked=np.asfortranarray(pair.masked[places]), places=places)


def _read_pair(original: Original, table: Table) -> Pair:
    """Return the pair with the original's variables read from the masked table, rows in its order."""
    names = list(original.columns)
    if table.frame is not None or names != table.names:  # else an array of the same shape
        checks.require_masked_columns(names, table.names)
        names = table.numeric_columns(names)
    return Pair(original, table.floats(names, original.roles.na), table=table)


def _require_same_length(pair: Pair) -> Pair:
    """Return the pair unchanged; raise ValueError if the files differ in their number of records."""
    checks.require_same_records(len(pair.masked), pair.original.n)
    return pair
