"""The original, prepared once, and the pair of original and masked data that every metric asks."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sdckit.core import checks
from sdckit.core.table import Table, match_keys, names_of
from sdckit.kernels.jit import count_special
from sdckit.kernels.packed_sort import SMALL
from sdckit.kernels.rank_distance import OrderedColumn, RankSums, gap_distance
from sdckit.kernels.rank_distance_batch import RULES, ColumnStack, StackOrder
from sdckit.kernels.scaling import spread
from sdckit.kernels.tie_rules import Alignment, TieSummary, distance, row_gaps2, summarise
from sdckit.kernels.weighted_ranks import WeightedRanks
from sdckit.progress import each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Bools, Floats, Int, Ints
    from sdckit.rules import Rules


@dataclass(frozen=True)
class Values:
    """A value of the whole file and one of each variable."""

    overall: float
    variables: Floats


@dataclass(frozen=True)
class Score:
    """What a metric found: its value, what random order and ties would make of it, and the counts."""

    value: Values
    used: Ints
    left_out: Ints
    random: Values | None = None
    tie_low: Values | None = None
    tie_high: Values | None = None
    records: Floats | None = None
    notes: tuple[str, ...] = ()
    parts: dict[str, float] = field(default_factory=dict)  # what the value is made of, by name
    told: str = ""  # what the value is about, where that depends on the data


class Original:
    """The original data, with whatever comparisons reuse: order, ranks, tie blocks, scales.

    Made by `prepare`; each piece is computed when first asked for.
    """

    def __init__(
        self,
        columns: Sequence[str],
        values: Floats,
        *,
        weights: Floats | None = None,
        table: Table | None = None,
        key: str | Sequence[str] | None = None,
        na: object = None,
    ) -> None:
        self.columns = tuple(columns)
        self.values = values
        self.weights = weights
        self.table = table
        self.key = key
        self.na = na
        self.n = len(values)
        self.found: dict[str, Any] = {}  # what a family of metrics computes once
        self._ordered: dict[int, OrderedColumn] = {}

    def __repr__(self) -> str:
        return f"Original({self.n} records, {len(self.columns)} variables)"

    @cached_property
    def missing(self) -> Bools:
        """Where cells are missing."""
        return np.isnan(self.values)

    @cached_property
    def turned(self) -> Floats:
        """One line per variable."""
        return np.ascontiguousarray(self.values.T)

    @cached_property
    def complete(self) -> bool:
        """True where no cell is missing."""
        return not count_special(self.turned.ravel())[0]

    def ordered(self, j: int) -> OrderedColumn:
        """The observed values of a column with their order."""
        if j not in self._ordered:
            self._ordered[j] = OrderedColumn(self.values[~self.missing[:, j], j])
        return self._ordered[j]

    @cached_property
    def stack(self) -> ColumnStack:
        """All columns of a short and complete file, ready for one call."""
        return ColumnStack([self.ordered(j) for j in range(len(self.columns))])

    @cached_property
    def spreads(self) -> Floats:
        """Standard deviation of each column (ddof 1; weighted where there are weights); NaN without one."""
        return np.where((~self.missing).sum(0) > 1, spread(self.values, self.weights), np.nan)

    @cached_property
    def all_vary(self) -> bool:
        """True where every column has a spread above 0."""
        return bool((self.spreads > 0).all())

    def take(self, rows: Ints) -> Original:
        """The original restricted to some records."""
        weights = None if self.weights is None else self.weights[rows]
        return Original(self.columns, np.asfortranarray(self.values[rows]), weights=weights)


def prepare(
    original: Any,
    *,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: Any = None,
    na: Any = None,
) -> Original:
    """Prepare original data once, to compare many masked versions with it.

    Parameters
    ----------
    original : table
        pandas, polars, pyarrow or numpy; an `Original` is returned as it is.
    columns : list of str, optional
        Variables to compare; by default all numeric columns that have no other role.
    key : str, optional
        Column that identifies records in both files; without it, rows are paired by order.
    weights : str or array, optional
        Survey weights, all above 0.
    na : number or list of numbers, optional
        Values that stand for a missing cell, such as -999.

    Returns
    -------
    Original

    Examples
    --------
    >>> import sdckit as sdc
    >>> original = sdc.prepare([10.0, 20.0, 30.0])
    >>> sdc.brmae(original, [20.0, 10.0, 30.0])
    0.5
    """
    if isinstance(original, Original):
        if columns is not None:
            raise ValueError("the original is prepared already; name its columns when you prepare it")
        if na is not None:
            raise ValueError("the original is prepared already; declare missing codes when you prepare it")
        return original
    return prepare_table(Table(original), columns=columns, key=key, weights=weights, na=na)


def prepare_table(table: Table, *, columns: Any, key: Any, weights: Any, na: Any, by: Any = None) -> Original:
    """The same for a table that is known to be one; strata are no variables."""
    named = [weights] if isinstance(weights, (str, int)) else []
    roles = [name for role in (key, by, named) for name in names_of(role)]
    checks.known_columns(roles, table.names)
    names = table.numeric(columns, leave_out=roles)
    values = table.floats(names, na)
    found = weight_values(table, weights)
    return Original(names, values, weights=found, table=table, key=key, na=na)


def weight_values(table: Table, weights: Any) -> Floats | None:
    """Survey weights by column name or as one number per record."""
    if weights is None:
        return None
    if isinstance(weights, (str, int)):
        name = str(weights)
        values = table.floats(table.numeric([name]))[:, 0]
    else:
        name, values = "weights", Table(weights).floats(["x1"])[:, 0]
        checks.same_length("weights", len(values), table.n)
    return checks.weights_of(values, name)


@dataclass(frozen=True)
class Counts:
    """How many cells of each variable were observed in both files, one of them, or neither."""

    both: Ints
    suppressed: Ints
    imputed: Ints
    neither: Ints


@dataclass
class Pair:
    """Original and masked data, rows aligned; answers what the metrics need and remembers it.

    `window` is the largest move in ranks that the method publishes, for all columns or for each of them;
    None where it publishes none. `rules` are the edit rules that everybody knows of, on some of the columns.
    """

    original: Original
    masked: Floats
    window: int | Floats | None = None
    rows: Ints | None = None  # of a larger pair that it is a part of
    rules: Rules | None = None
    _sums: dict[str, RankSums | list[RankSums]] = field(default_factory=dict)
    _summaries: dict[int, TieSummary] = field(default_factory=dict)
    _weighted: dict[tuple[int, str], tuple[float, float]] = field(default_factory=dict)
    _random: list[Ints] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)  # what a family of metrics computes together

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the variables."""
        return self.original.columns

    @property
    def p(self) -> int:
        """Number of variables."""
        return len(self.original.columns)

    @cached_property
    def missing(self) -> Bools:
        """Where masked cells are missing."""
        return np.isnan(self.masked)

    @cached_property
    def special(self) -> tuple[Int, Int]:
        """How many masked cells are missing, and how many infinite."""
        return count_special(self.turned.ravel())

    @cached_property
    def complete(self) -> bool:
        """True where no cell is missing in either file."""
        return self.original.complete and not self.special[0]

    @cached_property
    def turned(self) -> Floats:
        """One line per variable."""
        return np.ascontiguousarray(self.masked.T)

    @cached_property
    def counts(self) -> Counts:
        """Cells observed and missing, per variable."""
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

    def both(self, j: int) -> Bools | slice:
        """Rows of a variable that both files observe."""
        return slice(None) if self.complete else ~self.original.missing[:, j] & ~self.missing[:, j]

    def suppressed(self, j: int) -> Bools:
        """Rows of a variable that only the original has."""
        return ~self.original.missing[:, j] & self.missing[:, j]

    def cells(self, j: int) -> tuple[Floats, Floats, Floats | None]:
        """Original values, masked values and weights of the rows that both files observe."""
        rows = self.both(j)
        weights = self.original.weights
        return self.original.values[rows, j], self.masked[rows, j], None if weights is None else weights[rows]

    def ranked(self, j: int) -> tuple[OrderedColumn, Floats]:
        """The ordered original column and the masked values of the rows that both files observe."""
        column = self.original.ordered(j)
        if self.complete:
            return column, np.ascontiguousarray(self.masked[:, j])
        seen = ~self.original.missing[:, j]
        kept = ~self.missing[seen, j]
        return (column if kept.all() else column.restrict(kept)), self.masked[seen, j][kept]

    def alignment(self, j: int) -> Alignment:
        """Both columns in order, for what ties leave open; large, so not kept."""
        return Alignment(*self.ranked(j))

    def tie_summary(self, j: int) -> TieSummary:
        """Tie range and random level of a variable with at least two records."""
        if j not in self._summaries:
            self._summaries[j] = summarise(self.alignment(j))
        return self._summaries[j]

    def weighted(self, j: int, what: Literal["values", "levels"]) -> tuple[float, float]:
        """Weighted brMAE and brMSE of a variable, or their levels of unrelated order."""
        if (j, what) not in self._weighted:
            self._weighted[j, what] = getattr(self.weighted_ranks(j), what)()
        return self._weighted[j, what]

    def weighted_ranks(self, j: int) -> WeightedRanks:
        """Both columns in weighted order; large, so not kept."""
        x, y, weights = self.cells(j)
        return WeightedRanks(x, y, np.ones(x.size) if weights is None else weights)

    def gaps2(self, j: int, ties: str, rng: np.random.Generator | None = None) -> Ints:
        """Doubled rank difference of each record that both files observe; random ties are drawn once."""
        if ties != "random":
            return row_gaps2(*self.ranked(j), ties)
        if not self._random:
            self._random = [row_gaps2(*self.ranked(i), ties, rng) for i in range(self.p)]
        return self._random[j]

    def rank_values(self, what: str, ties: str, rng: np.random.Generator | None = None) -> Floats:
        """A property of `RankSums`, such as brMAE, of each variable."""
        if ties not in self._sums:
            self._sums[ties] = self._rank_sums(ties, rng)
        sums = self._sums[ties]
        if isinstance(sums, RankSums):
            return np.asarray(getattr(sums, what))
        return np.array([getattr(single, what) for single in sums])

    def _rank_sums(self, ties: str, rng: np.random.Generator | None) -> RankSums | list[RankSums]:
        if ties == "random":
            return [gap_distance(self.gaps2(j, ties, rng)) for j in range(self.p)]
        small = self.original.n < SMALL
        if ties in RULES and small and self.complete and self.original.n > 1:
            return self.stack_order.sums(ties)
        if small or self.p == 1:
            return [self._distance(j, ties) for j in range(self.p)]
        with ThreadPoolExecutor(min(self.p, os.cpu_count() or 1)) as pool:
            tasks = [pool.submit(self._distance, j, ties) for j in range(self.p)]
            return [task.result() for task in each("ranking", tasks)]

    @cached_property
    def stack_order(self) -> StackOrder:
        """All masked columns of a short and complete file, in order."""
        return self.original.stack.order(self.turned)

    def _distance(self, j: int, ties: str) -> RankSums:
        column, masked = self.ranked(j)
        return distance(column, masked, ties) if column.n > 1 else RankSums(column.n, 0, 0)

    def take(self, rows: Ints) -> Pair:
        """The pair restricted to some records."""
        masked = np.asfortranarray(self.masked[rows])
        return Pair(self.original.take(rows), masked, rows=rows, rules=self.rules)


def pair_of(
    original: Any,
    masked: Any,
    *,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: Any = None,
    na: Any = None,
) -> Pair:
    """Align masked data with the original: by key, or row by row."""
    prepared = prepare(original, columns=columns, key=key, weights=weights, na=na)
    if isinstance(original, Original) and weights is not None:
        prepared = with_weights(original, weights)
    table = Table(masked)
    absent = [name for name in prepared.columns if name not in table.names]
    if absent:
        raise ValueError(f"the masked data have no column {absent[0]!r}; they have: {', '.join(table.names)}")
    names = table.numeric(prepared.columns)
    values = table.floats(names, prepared.na if na is None else na)
    by = key if key is not None else prepared.key
    if by is not None and prepared.table is not None:
        values = np.asfortranarray(values[match_keys(prepared.table, table, by)])
    elif len(values) != prepared.n:
        raise ValueError(
            f"the masked data have {len(values)} records, the original {prepared.n}; "
            "give files with the same records"
        )
    checks.at_least_two(prepared.n)
    return Pair(prepared, values)


def with_weights(original: Original, weights: Any) -> Original:
    """The same prepared data with other weights."""
    if original.table is None:
        raise ValueError("these prepared data take no weights any more; give weights to prepare")
    found = weight_values(original.table, weights)
    return Original(
        original.columns,
        original.values,
        weights=found,
        table=original.table,
        key=original.key,
        na=original.na,
    )
