"""Which figures may be published: those that no single record dominates."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from sdckit.core import registry
from sdckit.core.checks import FEWEST_REPORTED
from sdckit.metrics.blocks import Contributions, squared_cost

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.core.registry import Metric
    from sdckit.evaluation.result import Evaluation
    from sdckit.metrics.blocks import Cost, LargestRecord
    from sdckit.metrics.pair import Comparison, Pair
    from sdckit.rules.rules import Rules


PERCENT = 10.0  # the largest contribution must not be known to within this share of it
HALF = 2 + 1e-9  # largest contributions in their sum where one of them has half; rounding does not decide

Row = tuple[str, str, str]  # metric, stratum, variable


def fails_p_rule(contributions: Contributions, percent: float = PERCENT) -> bool:
    """Return True if the second largest contributor learns the largest contribution to within `percent` %.

    The sum is known, so the largest one is what is left of it after the second; what the others contribute
    hides it.
    """
    others = contributions.shares - 1.0 - contributions.second
    return contributions.largest > 0 and others < percent / 100


def is_dominated(contributions: Contributions) -> bool:
    """Return True if one contribution exceeds half of their sum, or if the p % rule fails."""
    return contributions.largest > 0 and (contributions.shares < HALF or fails_p_rule(contributions))


def cell_is_dominated(cost: Cost, comparison: Comparison, j: int) -> bool:
    """Return True if variable j's sum of costs, or its level in unrelated order, gives a record away.

    The standard deviation that IL1s divides by is a sum over records, too, and follows from IL1s and MAE.
    """
    found = comparison.variable(j).dominance(cost)
    if found.largest is None:
        return False
    return any(map(is_dominated, found.sums)) or _largest_follows(cost, found.costs, found.largest)


def _largest_follows(cost: Cost, costs: Contributions, record: LargestRecord) -> bool:
    """Return True if the largest value follows within `PERCENT` % from its published value and the sum.

    No change is larger than the sum of all. In a group that is published as its mean, the largest record has
    at least half of the absolute changes of the group, and of the squared ones: so an intruder adds
    between half of the sum and all of it to the published value.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        shares = np.array([0.5, 1.0]) * (np.float64(costs.total) * record.scale)
        low, high = abs(record.y) + (np.sqrt(shares) if cost.of is squared_cost else shares)
    size, margin = abs(record.x), PERCENT / 100 * abs(record.x)
    return bool(costs.largest > 0 and low <= size + margin and high >= size - margin)


def dominated_rows(groups: Sequence[tuple[str, Comparison]], metrics: Iterable[Metric]) -> frozenset[Row]:
    """Return metric, stratum and variable of the rows to withhold; `groups` has the whole file first.

    A sum is withheld with each of its parts: the whole file with a variable or a stratum, since otherwise
    the part would follow by subtraction.
    """
    found: set[Row] = set()
    for metric in metrics:
        if metric.dominated is None:
            continue
        for stratum, comparison in groups:
            names = [name for j, name in enumerate(comparison.columns) if metric.dominated(comparison, j)]
            found |= {(metric.name, place, name) for place in (stratum, "all") for name in names}
            found |= {(metric.name, place, "all") for place in (stratum, "all") if names}
    return frozenset(found)


WHOLE = (pl.col("variable") == "all") & (pl.col("stratum") == "all")  # the rows of the whole file
WITHHELD = "withheld: one record dominates this figure, or values of the original could be computed from it"
WITHHELD_FIGURES = ["value", "random", "tie_low", "tie_high", "ci_low", "ci_high"]


def public_evaluation(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with the figures that one record dominates replaced by None.

    Losses over declared estimates are rounded (see `registry.public_value`).
    """
    evaluation = replace(evaluation, table=rounded_losses(evaluation.table))
    if not evaluation.dominated:
        return evaluation
    rows = pl.DataFrame(
        sorted(evaluation.dominated), schema=["metric", "stratum", "variable"], orient="row"
    ).with_columns(withheld=True)
    marked = evaluation.table.join(
        rows, on=["metric", "stratum", "variable"], how="left", maintain_order="left"
    )
    hidden = pl.col("withheld").fill_null(value=False)
    figures: list[Any] = [pl.when(~hidden).then(pl.col(name)).alias(name) for name in WITHHELD_FIGURES]
    names = marked.filter(hidden & WHOLE)["metric"].to_list()
    return replace(
        evaluation,
        table=marked.with_columns(figures).drop("withheld"),
        meaning=evaluation.meaning | dict.fromkeys(names, WITHHELD),
        parts={name: {} if name in names else parts for name, parts in evaluation.parts.items()},
    )


def rounded_losses(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table of measures with losses over declared estimates rounded as they may be published."""
    named = pl.col("metric").is_in(list(registry.estimate_losses()))
    figures = [name for name in WITHHELD_FIGURES if name in table.columns]
    return table.with_columns(
        pl.when(named).then(pl.col(name).round(registry.PUBLIC_DECIMALS)).otherwise(name).alias(name)
        for name in figures
    )


DIGITS = 2  # significant digits of a published figure of the original, at most
EXPOSED = 2000  # records of a variable that are attacked, those with the largest values
QUARTERS = {"q1": 0.25, "median": 0.5, "q3": 0.75}
SEARCHED = 5000  # records that are searched for linear combinations of variables
TINY = 1e-300
CLOSE = 1e-6  # relative error with which a linear combination holds
CORRELATION_STEP, COARSEST_CORRELATION = 0.01, 0.2


@dataclass
class Figure:
    """A figure of original records, and the step to whose multiples it is rounded; infinite: withheld.

    `moved` has, by variable, the figure after a record of that variable is moved: up in the first row, down
    in the second, with a column for each attacked record.
    """

    value: float
    step: float
    coarsest: float
    moved: dict[str, Floats] = field(default_factory=dict)

    @property
    def withheld(self) -> bool:
        """True if the figure is not published."""
        return not (self.step <= self.coarsest and math.isfinite(self.value))

    @property
    def published(self) -> float | None:
        """The rounded figure; None if it is withheld."""
        return None if self.withheld else float(f"{round(self.value / self.step) * self.step:.12g}") + 0.0

    def withhold(self) -> None:
        """Publish nothing."""
        self.step = math.inf

    def coarsen(self) -> None:
        """Round to the next larger step, such as 20 after 10 and 50 after 20."""
        self.step = round_step(1.5 * self.step)

    def changes(self, variable: str) -> Bools:
        """Return where the published figure changes if a record of the variable moves up, and down."""
        return np.asarray(np.rint(self.moved[variable] / self.step) != np.rint(self.value / self.step))


def round_step(least: float) -> float:
    """Return the smallest number of the series 1, 2, 5, 10, 20, ... that is not below `least`.

    Infinite, which withholds a figure, for a number so small that its digits are not exact.
    """
    if not sys.float_info.min <= least < math.inf:
        return math.inf
    size = 10.0 ** math.floor(math.log10(least))
    return float(f"{next((f for f in (1, 2, 5) if f * size >= 0.999 * least), 10) * size:.12g}")


def figure(value: float, contributions: Floats) -> Figure:
    """Return a figure with two significant digits; withheld if few records contribute or one dominates."""
    usable = np.isfinite(value) and value != 0
    step = round_step(10.0 ** (math.floor(math.log10(abs(value))) - DIGITS + 1)) if usable else math.inf
    return Figure(value, math.inf if tells_a_record(contributions) else step, abs(value))


def tells_a_record(contributions: Floats) -> bool:
    """Return True if fewer than ten records contribute to a sum, or if one of them dominates it."""
    few = int(np.count_nonzero(contributions)) < FEWEST_REPORTED
    return few or is_dominated(Contributions.of(contributions))


@dataclass(frozen=True)
class Column:
    """Observed values of a variable, their differences from the mean, and the records that are attacked.

    `records` has the row number of each value in the file, `exposed` the positions among the values of those
    attacked, and `moves` their moves, up in the first row and down in the second.
    """

    values: Floats
    records: Ints
    gaps: Floats
    exposed: Ints
    moves: Floats

    @classmethod
    def of(cls, cells: Floats) -> Column:
        """Return a column of a file without its missing cells."""
        records = np.flatnonzero(~np.isnan(cells))
        values = cells[records]
        gaps = values - (values.mean() if values.size else 0.0)
        exposed = np.arange(values.size)
        if values.size > EXPOSED:
            exposure = np.nan_to_num(np.abs(values) * np.abs(gaps)) + np.abs(values)
            exposed = np.argpartition(-exposure, EXPOSED)[:EXPOSED]
        moves = PERCENT / 100 * np.abs(values[exposed])
        return cls(values, records, gaps, exposed, np.stack([moves, -moves]))

    @property
    def thin(self) -> bool:
        """True if fewer than ten values differ from 0, so that nothing of the variable is published."""
        return int(np.count_nonzero(self.values)) < FEWEST_REPORTED

    @property
    def squares(self) -> float:
        """Sum of the squared differences from the mean."""
        return float(self.gaps @ self.gaps)

    def moved_squares(self, gaps: Floats, squares: float, n: int) -> Floats:
        """Return the sum of squares of n records, `squares`, after each move of a record with these gaps."""
        return np.maximum(squares + 2 * self.moves * gaps + self.moves**2 * (1 - 1 / n), 0.0)


def figures_of_column(name: str, column: Column) -> dict[str, Figure]:
    """Return total, standard deviation and quartiles of a variable, each withheld if it tells a record."""
    values, n = column.values, column.values.size
    if column.thin:
        return {}
    total = figure(float(values.sum()), values)
    total.moved[name] = total.value + column.moves
    sd = figure(math.sqrt(column.squares / (n - 1)), column.gaps**2)
    moved = column.moved_squares(column.gaps[column.exposed], column.squares, n)
    sd.moved[name] = np.sqrt(moved / (n - 1))
    return {"sd": sd, **_quartiles(name, column), "total": total}


def _quartiles(name: str, column: Column) -> dict[str, Figure]:
    """Return the quartiles, each as the mean of the ten records around it; none of fewer than 40 records."""
    values, n = column.values, column.values.size
    if n < 4 * FEWEST_REPORTED:
        return {}
    starts = [round(share * n) - FEWEST_REPORTED // 2 for share in QUARTERS.values()]
    ends = [start + FEWEST_REPORTED for start in starts]
    order = np.argpartition(values, [place for place in (*starts, *ends) if place < n])
    found = {}
    for quarter, start, end in zip(QUARTERS, starts, ends, strict=True):
        band = order[start:end]
        one = figure(float(values[band].mean()), values[band])
        inside = np.isin(column.exposed, band)
        one.moved[name] = one.value + np.where(inside, column.moves / FEWEST_REPORTED, 0.0)
        found[quarter] = one
    return found


def correlation_figure(names: Sequence[str], columns: Sequence[Column]) -> Figure:
    """Return the correlation of two variables, rounded to 0.01; withheld if it tells a record."""
    ours, theirs = (column.records for column in columns)
    places = [np.arange(ours.size)] * 2
    if not np.array_equal(ours, theirs):
        _, *places = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    n = places[0].size
    withheld = Figure(math.nan, math.inf, COARSEST_CORRELATION)
    if n < FEWEST_REPORTED or any(column.thin for column in columns):
        return withheld
    gaps = [column.values[at] - column.values[at].mean() for column, at in zip(columns, places, strict=True)]
    squares = [float(one @ one) for one in gaps]
    product, scale = float(gaps[0] @ gaps[1]), math.sqrt(squares[0]) * math.sqrt(squares[1])
    if not 0 < scale < math.inf or any(map(tells_a_record, (gaps[0] * gaps[1], gaps[0] ** 2, gaps[1] ** 2))):
        return withheld
    found = Figure(product / scale, CORRELATION_STEP, COARSEST_CORRELATION)
    for own, other in ((0, 1), (1, 0)):
        column = columns[own]
        full = np.zeros((2, column.values.size))  # differences from the mean, of both variables
        full[0, places[own]], full[1, places[own]] = gaps[own], gaps[other]
        moved = product + column.moves * full[1, column.exposed]
        sizes = column.moved_squares(full[0, column.exposed], squares[own], n)
        figures = moved / (np.sqrt(sizes) * math.sqrt(squares[other]))
        in_both = np.isin(column.exposed, places[own])
        found.moved[names[own]] = np.where(in_both, figures, found.value)
    return found


def withhold_linked(
    totals: Mapping[str, Figure], matrix: Floats, names: Sequence[str], sums: Iterable[Iterable[str]]
) -> None:
    """Withhold the totals from which a withheld one would follow.

    A variable follows from others in the same of the given sums, such as "total = a + b", and from those of
    which it is a linear combination in the file: `matrix` has a column for each of the names.
    """
    groups = [[name for name in group if name in totals] for group in sums]
    rows = matrix[~np.isnan(matrix).any(axis=1)][:SEARCHED]
    gone: list[str] = []
    while new := [name for name, one in totals.items() if one.withheld and name not in gone]:
        for name in new:
            shown = [other for other in names if other in totals and not totals[other].withheld]
            linked = {other for group in groups if name in group for other in group}
            for other in linked.union(_combined(name, shown, names, rows)):
                totals[other].withhold()
        gone += new


def _combined(name: str, others: Sequence[str], names: Sequence[str], rows: Floats) -> list[str]:
    """Return those of the other variables of which the named one is a linear combination in all rows."""
    values = rows[:, names.index(name)]
    columns = rows[:, [names.index(other) for other in others]]
    if len(rows) <= len(others) or not others:
        return []
    scales = np.abs(columns).max(axis=0) + TINY  # a column of zeros
    factors = np.linalg.lstsq(columns / scales, values, rcond=None)[0]
    missed = np.abs(columns / scales @ factors - values)
    if (missed > CLOSE * (np.abs(values) + np.median(np.abs(values)))).any():
        return []
    return [other for other, f in zip(others, factors, strict=True) if abs(f) > CLOSE * np.abs(factors).max()]


def coarsen_until_protected(figures: Mapping[str, Sequence[Figure]]) -> None:
    """Coarsen the figures of each variable until no record is told; they may share correlations."""
    while sum(_coarsen_once(name, own) for name, own in figures.items()):
        pass


def _coarsen_once(variable: str, figures: Sequence[Figure]) -> bool:
    """Coarsen the figures that tell the first record that is told; return False if there is none."""
    shown = [one for one in figures if not one.withheld and variable in one.moved]
    if not shown:
        return False
    changes = np.stack([one.changes(variable) for one in shown])  # figures x directions x records
    told = changes.any(axis=0).all(axis=0)
    if not told.any():
        return False
    record = int(np.argmax(told))
    way = int(np.argmin(changes[:, :, record].sum(axis=0)))
    for one, changed in zip(shown, changes[:, way, record], strict=True):
        if changed:
            one.coarsen()
    return True


NAMES = ("mean", "sd", "q1", "median", "q3", "total")
CORRELATED = 12  # variables whose correlations are computed, the first ones
CORRELATION = "correlation"
NOTHING = (None, None)

Key = tuple[str, ...]  # the name of a statistic, and the variables that it is about
Values = dict[Key, tuple[float | None, float | None]]  # a figure and the step to which it is rounded


class Statistic(NamedTuple):
    """A statistic of a variable in the original and in the masked file.

    `before` is None where it is withheld, else a multiple of `step`, which is None for exact figures.
    """

    variable: str
    statistic: str
    before: float | None
    after: float | None
    step: float | None = None


class Correlation(NamedTuple):
    """The correlation of two variables in the original and in the masked file, as in `Statistic`."""

    variable: str
    other: str
    before: float | None
    after: float | None
    step: float | None = None


@dataclass(frozen=True)
class Statistics:
    """Statistics of all variables, and correlations of the first twelve.

    Where they are not `exact`, those of the original are rounded, and none tells a record (see
    `guarded_figures`); the mean is then the rounded total by the number of values.
    """

    rows: tuple[Statistic, ...]
    correlations: tuple[Correlation, ...]
    exact: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, JSON-ready."""
        return {
            "exact": self.exact,
            "variables": [row._asdict() for row in self.rows],
            "correlations": [row._asdict() for row in self.correlations],
        }


def statistics_of(pair: Pair, *, exact: bool = False) -> Statistics:
    """Return statistics of the original and the masked file, without weights.

    Parameters
    ----------
    pair : Pair
        Original and masked data.
    exact : bool
        Leave the figures of the original as they are, neither rounded nor withheld; never publish them.

    Returns
    -------
    Statistics
    """
    names, values = pair.columns, pair.original.values
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        kept, key = (
            pair.original.cache,
            f"guarded statistics {() if pair.rules is None else pair.rules.texts}",
        )
        if not exact and key not in kept:  # computed once for all masked files
            kept[key] = guarded_values(names, values, pair.rules)
        before: Values = exact_values(names, values) if exact else kept[key]
        after = exact_values(names, pair.masked)

    def figures(*key: str) -> tuple[float | None, float | None, float | None]:
        """Return a figure before masking, after it, and the step to which the first is rounded."""
        value, step = before.get(key, NOTHING)
        return value, after[key][0], step

    couples = combinations(names[:CORRELATED], 2)
    return Statistics(
        rows=tuple(Statistic(name, what, *figures(what, name)) for name in names for what in NAMES),
        correlations=tuple(Correlation(*two, *figures(CORRELATION, *two)) for two in couples),
        exact=exact,
    )


def exact_values(names: Sequence[str], values: Floats) -> Values:
    """Return all statistics of a file as they are; None where one has no finite value."""
    found: dict[Key, float] = {}
    columns = [values[:, j] for j in range(len(names))]
    for name, column in zip(names, columns, strict=True):
        found |= {(what, name): one for what, one in _column_values(column[~np.isnan(column)]).items()}
    for j, k in combinations(range(min(len(names), CORRELATED)), 2):
        both = ~np.isnan(columns[j]) & ~np.isnan(columns[k])
        found[CORRELATION, names[j], names[k]] = math.nan
        if both.sum() > 1:
            x, y = (columns[at][both] - columns[at][both].mean() for at in (j, k))
            found[CORRELATION, names[j], names[k]] = float(x @ y / (np.sqrt(x @ x) * np.sqrt(y @ y)))
    return {key: (value if math.isfinite(value) else None, None) for key, value in found.items()}


def _column_values(values: Floats) -> dict[str, float]:
    """Return mean, standard deviation (ddof 1), quartiles and total of observed values by name."""
    if not values.size:
        return dict.fromkeys(NAMES, math.nan)
    quartiles = np.quantile(values, list(QUARTERS.values()))
    spread = float(values.std(ddof=1)) if values.size > 1 else math.nan
    found = {"mean": float(values.mean()), "sd": spread, "total": float(values.sum())}
    return found | dict(zip(QUARTERS, map(float, quartiles), strict=True))


def guarded_values(names: Sequence[str], values: Floats, rules: Rules | None = None) -> Values:
    """Return the statistics of an original that can be published, rounded so that none tells a record."""
    columns = {name: Column.of(values[:, j]) for j, name in enumerate(names)}
    own = {name: figures_of_column(name, column) for name, column in columns.items()}
    found: dict[Key, Figure] = {
        (what, name): one for name, figures in own.items() for what, one in figures.items()
    }
    for two in combinations(names[:CORRELATED], 2):
        found[CORRELATION, *two] = correlation_figure(two, [columns[name] for name in two])
    coarsen_until_protected({name: [one for key, one in found.items() if name in key[1:]] for name in names})
    totals = {name: figures["total"] for name, figures in own.items() if figures}
    # With a tolerance, a withheld total would follow up to rounding: it counts as a sum, too.
    sums = [] if rules is None else [rule.columns for rule in rules.rules if rule.equality]
    withhold_linked(totals, values, list(names), sums)
    shown: Values = {key: (one.published, None if one.withheld else one.step) for key, one in found.items()}
    for name, one in totals.items():
        n, total = columns[name].values.size, one.published
        mean = NOTHING if total is None else (float(f"{total / n:.{DIGITS}g}"), one.step / n)
        shown["mean", name] = mean  # in two digits
    return shown
