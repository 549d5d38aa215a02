"""Estimates of the original beside those of the masked file: `estimates`, and those that are declared."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks, notebook, registry
from sdckit.core.table import USUAL_KIND, Table, kind_of, names_of
from sdckit.core.text import number
from sdckit.estimation.estimators import ABSENT, FACTOR, Row, Rows, column_figures, name_of_row, rows_of
from sdckit.estimation.guards import Guards, Protection
from sdckit.estimation.models import Levels, coefficients, formula_terms, levels_of, shared_levels
from sdckit.estimation.parse import parse_estimates
from sdckit.estimation.survey_file import WHOLE, Options, SurveyFile, survey_files
from sdckit.io.table_result import TableResult
from sdckit.metrics.loss.moments import overlap

if TYPE_CHECKING:
    from sdckit.arrays import Ints
    from sdckit.core.registry import Metric
    from sdckit.estimation.parse import Request
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.rules.rules import Rules


def estimates(
    original: Any,
    masked: Any,
    estimates: str | Iterable[str],
    *,
    weights: Any = None,
    by: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | None = None,
    population: str | None = None,
    unit: str | None = None,
    na: Any = None,
    replications: Sequence[Any] = (),
) -> Estimates:
    """Compare what users of a file compute: totals, means, quantiles, models, before and after masking.

    Each file's estimates are computed by itself, so rows need not be aligned, and the files may differ in
    their number of records.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy; `original` may be a `Microdata`, whose weights, unit and missing
        codes are taken then.
    estimates : str or list of str
        `total(turnover) by sector`, `mean(wages)`, `median(wages) by sector, size`, `quantile(wages, 0.9)`,
        `share(profit > 0)`, `ratio(wages, employees)`, `gini(income)`, `correlation(a, b)`,
        `model: log(profit) ~ log(turnover) + sector` (linear) and `logit: exporter ~ log(turnover)` (of 0 and
        1). Columns after `by` form domains; a model has a row for each coefficient. Odd names stand in
        backquotes. Functions in formulas are log, log2, log10, exp, sqrt, abs, C, I, center, scale and poly.
    weights : str or array, optional
        Survey weights, at least 0: a column of both files, or one number per record in the order of both.
    by : str or list of str, optional
        Columns whose values form the domains of estimates without a `by` of their own.
    strata : str or list of str, optional
        Columns of the strata in which the sample was drawn, for standard errors.
    population : str, optional
        Column with the number of units in the population of each record's stratum, for a finite-population
        correction: errors shrink by the share that was drawn.
    unit : str, optional
        Column of the units that were drawn, such as households or firms with several records; errors are
        clustered by them.
    na : number or list of numbers, optional
        Values that stand for a missing cell. Records without a value of a column are left out.
    replications : list of tables, optional
        Further maskings of the same original by the same method, to show the spread of masked estimates.

    Returns
    -------
    Estimates
        With `table` and `summary`.

    Notes
    -----
    Totals, means, shares, ratios, correlations and Gini coefficients have linearised (Taylor) standard
    errors: units drawn with replacement within strata, a finite-population correction only where `population`
    is given, and records outside a domain counted as 0. Quantiles have Woodruff's intervals. Linear and
    logistic models have sandwich errors, HC1 or, with `unit`, clustered; they leave strata and the population
    aside. Intervals are value -+ 1.96 standard errors.

    The overlap is that of `ci_overlap`. With replications, `spread` is the standard deviation of the masked
    estimate over the maskings, and `se_inflated` the square root of the original's squared error plus the
    mean squared change over all maskings, so that noise, bias and lost variance of a masking all count.

    References
    ----------
    Woodruff 1952, Confidence intervals for medians and other position measures, JASA 47.
    Karr, Kohnen, Oganian, Reiter & Sanil 2006, doi:10.1198/000313006X124640.

    Examples
    --------
    >>> import sdckit as sdc
    >>> original = sdc.load_sample()
    >>> masked = sdc.Microdata(original, key="firm", weights="weight", by="sector").mask("mdav", k=10)
    >>> found = sdc.estimates(original, masked, ["total(turnover) by sector"], weights="weight")
    >>> found.table.columns[:4]
    ['estimate', 'domain', 'original', 'se_original']
    """
    requests = parse_estimates(estimates, tuple(names_of(by)))
    ours, (theirs, *others) = survey_files(
        original,
        [masked, *replications],
        weights=weights,
        strata=strata,
        population=population,
        unit=unit,
        na=na,
    )
    files = (ours, theirs, *others)
    for file in files:
        require_readable(file, requests)
    levels: Levels = {}
    for file in files:
        levels = shared_levels(levels, levels_of(file, requests))
    first, *found = (measure(file, requests, levels) for file in files)
    return Estimates(comparison_table(first, found[0], found[1:]), kind=kind_of(ours.table.frame))


# --- the result ---


HEAD = ("estimate", "original", "masked", "change", "s.e.", "overlap", "reason")
SHOWN = 10  # rows of the table in a text, those that changed most


@dataclass(frozen=True)
class Estimates(TableResult):
    """Estimates of the original and of the masked file, row by row.

    `table` has a row for each estimate and domain ("all" for all records) with the columns estimate, domain,
    original, se_original, masked, se_masked, change (in percent of the original), change_in_se (in standard
    errors of the original), overlap (of the 95 % intervals, from 0 to 1; 0 where the masked file has no such
    estimate), the ends of these intervals, spread and the inflated error and interval (with replications),
    sign ("kept" or "changed"), significance ("kept", "lost", "gained" or "none"), the records behind each
    estimate, and the reason where something is absent. `guards` has what may be published of each row,
    nothing of those that it does not have. `computable` is False if users do not get the weights or units:
    then figures of the masked file tell these, and are not published. `kind` is the type of the original's
    dataframe, which `to_frame` returns.
    """

    table: pl.DataFrame
    guards: Guards = field(default_factory=dict, repr=False)
    computable: bool = field(default=True, repr=False)
    kind: str = field(default=USUAL_KIND, repr=False, compare=False)

    @property
    def some_withheld(self) -> bool:
        """True if some row may not be published: then no exact figure over all rows may be, either."""
        return len(self.guards) < self.table.height or any(one.reason for one in self.guards.values())

    @property
    def summary(self) -> dict[str, Any]:
        """What became of all estimates, as a dict.

        `estimates` counts the rows, `without_value` those that cannot be compared. `worst` names the estimate
        with the smallest overlap and, among equals, the largest change; `worst_overlap`, `median_overlap`,
        `mean_overlap`, `worst_change_in_se` and `median_change_in_se` (of absolute values) are over rows.
        `outside_1_se` is the share that moved by more than one standard error, `overlap_below_half` the share
        with an overlap below 0.5; `sign_changed`, `significance_lost` and `significance_gained` are counts.
        """
        rows = self.table.filter(pl.col("overlap").is_not_null())
        moved = pl.col("change_in_se").abs()
        worst = rows.sort("overlap", moved.fill_null(float("inf")), descending=[False, True]).head(1)
        found = rows.select(
            worst_overlap=pl.col("overlap").min(),
            median_overlap=pl.col("overlap").median(),
            mean_overlap=pl.col("overlap").mean(),
            worst_change_in_se=moved.max(),
            median_change_in_se=moved.median(),
            outside_1_se=(moved > 1).mean(),
            overlap_below_half=(pl.col("overlap") < 0.5).mean(),
        )
        return {
            "estimates": self.table.height,
            "without_value": self.table.height - rows.height,
            "worst": _name(worst.row(0, named=True)) if worst.height else None,
            **found.row(0, named=True),
            "sign_changed": (self.table["sign"] == "changed").sum(),
            "significance_lost": (self.table["significance"] == "lost").sum(),
            "significance_gained": (self.table["significance"] == "gained").sum(),
        }

    def __repr__(self) -> str:
        """Return the rows with the smallest overlap, one line each, and a line that sums up."""
        lines = [
            f"{name}: {original} -> {masked}, {change}, {moved} s.e., overlap {overlap}"
            + (f" ({reason})" if reason else "")
            for name, original, masked, change, moved, overlap, reason in self._rows()
        ]
        return "\n".join([*lines, *self._sentences()])

    def _rows(self) -> list[list[str]]:
        """Return the cells of the rows with the smallest overlap as texts, in the order of `HEAD`."""
        return [
            [
                _name(row),
                number(row["original"]),
                number(row["masked"]),
                "-" if row["change"] is None else f"{row['change']:+.2f} %",
                number(row["change_in_se"]),
                number(row["overlap"]),
                row["reason"] or "",
            ]
            for row in self.table.sort("overlap", nulls_last=True).head(SHOWN).iter_rows(named=True)
        ]

    def _sentences(self) -> list[str]:
        """Return how many rows are not shown, and the line that sums up."""
        left, found = self.table.height - SHOWN, self.summary
        more = [f"and {left} more with a larger overlap"] if left > 0 else []
        if found["worst"] is None:
            return [*more, f"no overlap: {found['estimates']} estimates cannot be compared"]
        below, outside = (found[name] or 0.0 for name in ("overlap_below_half", "outside_1_se"))
        middle, least = (number(found[name]) for name in ("median_overlap", "worst_overlap"))
        text = f"overlap {middle} in the median and {least} at worst; {below:.0%} below 0.5, "
        return [*more, f"{text}{outside:.0%} moved by more than 1 s.e."]

    def _repr_html_(self) -> str:
        """Return what `print` shows, for notebooks."""
        rows = notebook.table(HEAD, self._rows(), right=HEAD[1:-1])
        return notebook.block(rows, notebook.paragraphs(self._sentences()))


def _name(row: dict[str, Any]) -> str:
    """Return estimate and domain of a row of the table as one text."""
    return name_of_row(row["estimate"], row["domain"])


# --- change, overlap, sign and significance ---


ROUNDING = 1e-10  # of an estimate: what sums in another order may differ by, and no sampling error
FLOATS = (  # columns of the table, in the order of `_figures`
    *("original", "se_original", "masked", "se_masked", "change", "change_in_se", "overlap"),
    *("low_original", "high_original", "low_masked", "high_masked"),
    *("spread", "se_inflated", "low_inflated", "high_inflated"),
)
SCHEMA: dict[str, Any] = {
    "estimate": pl.String,
    "domain": pl.String,
    **dict.fromkeys(FLOATS, pl.Float64),
    "sign": pl.String,
    "significance": pl.String,
    "records_original": pl.Int64,
    "records_masked": pl.Int64,
    "reason": pl.String,
}


def comparison_table(original: Rows, masked: Rows, replications: Sequence[Rows] = ()) -> pl.DataFrame:
    """Return a row for each estimate and domain of either file; `replications` are of further maskings."""
    rows = []
    for key in _keys(original, masked):
        ours, theirs = original.get(key, ABSENT), masked.get(key, ABSENT)
        values = [one.get(key, ABSENT).value for one in (masked, *replications)] if replications else []
        rows.append((*key, *_figures(ours, theirs), *_inflated(ours, theirs, values), *_words(ours, theirs)))
    return pl.DataFrame(rows, SCHEMA, orient="row").with_columns(pl.col(FLOATS).fill_nan(None))


def _keys(original: Rows, masked: Rows) -> list[tuple[str, str]]:
    """Return estimates and domains of both files, those of one estimate together.

    Those of the masked file come first: in an order that is public, the others would stand out.
    """
    texts: dict[str, dict[tuple[str, str], None]] = {}
    for key in (*masked, *original):
        texts.setdefault(key[0], {}).setdefault(key)
    return [key for keys in texts.values() for key in keys]


def _figures(ours: Row, theirs: Row) -> tuple[float, ...]:
    """Return values and errors, change in percent and in standard errors, overlap, and both intervals."""
    gap = theirs.value - ours.value
    change = 0.0 if gap == 0 else 100 * gap / abs(ours.value) if ours.value else math.nan
    some_error = ours.error > ROUNDING * abs(ours.value)
    in_errors = gap / ours.error if some_error else 0.0 if gap == 0 else math.nan
    ends = (ours.low, ours.high, theirs.low, theirs.high)
    return (
        *(ours.value, ours.error, theirs.value, theirs.error, change, in_errors),
        *(interval_overlap(ours, theirs), *ends),
    )


def interval_overlap(ours: Row, theirs: Row) -> float:
    """Return the overlap of both intervals; NaN without one in the original, 0 without one in the masked.

    Intervals that are equal up to rounding overlap by 1, even if they have no length, as those of a constant.
    """
    if math.isnan(ours.low) or math.isnan(ours.high):
        return math.nan
    if math.isnan(theirs.low) or math.isnan(theirs.high):
        return 0.0
    ends = (ours.low, ours.high), (theirs.low, theirs.high)
    if all(math.isclose(one, other, rel_tol=ROUNDING) for one, other in zip(*ends, strict=True)):
        return 1.0
    return overlap(*ends)


def _inflated(ours: Row, theirs: Row, values: Sequence[float]) -> tuple[float, float, float, float]:
    """Return the spread of the masked estimate over maskings, and error and interval that know of it.

    The inflated variance is the original's plus the mean squared change over the maskings.
    """
    found = np.array([value for value in values if not math.isnan(value)])
    if found.size < 2:
        return (math.nan,) * 4
    error = math.sqrt(ours.error**2 + float(((found - ours.value) ** 2).mean()))
    half = FACTOR * error
    return float(found.std(ddof=1)), error, theirs.value - half, theirs.value + half


def _words(ours: Row, theirs: Row) -> tuple[str | None, str | None, int, int, str | None]:
    """Return what became of sign and significance, the records of both files, and reasons."""
    sign = significance = None
    if not math.isnan(ours.value + theirs.value):
        sign = "kept" if np.sign(ours.value) == np.sign(theirs.value) else "changed"
    if not math.isnan(ours.low + ours.high + theirs.low + theirs.high):
        before, after = (row.low > 0 or row.high < 0 for row in (ours, theirs))  # 0 lies outside
        significance = (("none", "gained"), ("lost", "kept"))[before][after]
    reason = ours.reason
    if reason != theirs.reason:
        parts = (("original", ours), ("masked", theirs))
        reason = "; ".join(f"{which}: {row.reason}" for which, row in parts if row.reason)
    return sign, significance, ours.records, theirs.records, reason or None


# --- all estimates of a file ---


def measure(file: SurveyFile, requests: Sequence[Request], levels: Levels) -> Rows:
    """Return all estimates of a file; `levels` are the classes of the columns in models."""
    found: Rows = {}
    for one in requests:
        labels = file.grouping(one.by).labels
        if one.formula is None:
            found |= rows_of(one.text, labels, column_figures(file, one))
            continue
        for term, figures in coefficients(file, one, levels).items():
            found |= rows_of(f"{one.text} [{term}]", labels, figures)
    return found


def require_readable(file: SurveyFile, requests: Iterable[Request]) -> None:
    """Raise ValueError or TypeError if the file lacks a column of an estimate, or has text for numbers."""
    for one in requests:
        try:
            file.require([*one.columns, *one.by])
            if one.formula is not None:
                formula_terms(one.formula)
            names = () if one.condition and one.condition.other.kind == "text" else one.columns
            for name in names if one.formula is None else ():  # models take any column
                if not file.is_number(name):
                    file.table.numeric_columns([name])  # raises
        except (ValueError, TypeError) as error:
            raise type(error)(f"estimate {one.text!r}: {error}") from error


# --- estimates that the owner of a file declares: measured once in the original, and in each masked file ---


KEPT = "estimates"  # under this name, prepared data and pairs keep what was measured


class Declared:
    """Declared estimates with their values in the original.

    Columns that are recoded are taken as they are published, in the original as well: users can ask about
    age groups only, if these are what they get.
    """

    def __init__(self, requests: Sequence[Request], file: SurveyFile) -> None:
        self.requests = requests
        self.file = file
        self.levels: Levels = levels_of(file, requests)
        self.rows: Rows = measure(file, requests, self.levels)
        self._protections: dict[tuple[tuple[str, ...], ...], Protection] = {}

    def rows_of(self, file: SurveyFile) -> Rows:
        """Return the estimates of a masked file."""
        require_readable(file, self.requests)
        return measure(file, self.requests, shared_levels(self.levels, levels_of(file, self.requests)))

    def overlaps(self, masked: Rows) -> dict[tuple[str, str], float]:
        """Return the overlap of the intervals of each estimate that has one in the original."""
        found = {key: interval_overlap(ours, masked.get(key, ABSENT)) for key, ours in self.rows.items()}
        return {key: value for key, value in found.items() if not np.isnan(value)}

    @property
    def beside(self) -> set[str]:
        """Columns of weights and units."""
        return {name for name in (self.file.options.weights, self.file.options.unit) if name is not None}

    def protection(self, rules: Rules | None) -> Protection:
        """Return what guards the estimates in public, found once for the columns that rules tie."""
        sums = () if rules is None else tuple(rule.columns for rule in rules.rules if rule.equality)
        if sums not in self._protections:
            found = Protection(self.file, self.requests, self.levels, self.rows, sums)
            self._protections[sums] = found
        return self._protections[sums]

    def may_publish_mean(self, rules: Rules | None) -> bool:
        """Return True if the mean loss is one of enough estimates of which the original withholds none."""
        count = sum(not np.isnan(row.low + row.high) for row in self.rows.values())
        guards = self.protection(rules).first.values()
        return count >= checks.FEWEST_REPORTED and not any(guard.reason for guard in guards)

    def take(self, rows: Ints) -> Declared:
        """Return the same estimates of some of the records."""
        table = Table(self.file.table.take(self.file.table.names, rows))
        return Declared(self.requests, SurveyFile(table, "original", self.file.options))

    @cached_property
    def digest(self) -> bytes:
        """Digest of the estimates, of the sampling, and of the columns that they are computed from."""
        found = hashlib.sha256(repr(([one.text for one in self.requests], self.file.options)).encode())
        for name in self.file.table.names:
            if self.file.is_number(name):
                found.update(name.encode() + self.file.numbers(name).tobytes())
                continue
            domains = self.file.domains([name])
            found.update(repr((name, domains.labels)).encode() + domains.numbers.tobytes())
        return found.digest()


def declared_of(original: Original) -> Declared | None:
    """Return the declared estimates of prepared data, measured once; None without any.

    Raises ValueError or TypeError for an estimate that the data or their roles do not allow.
    """
    if original.roles.estimates and KEPT not in original.kept:
        requests, roles = parse_estimates(original.roles.estimates), original.roles
        file = published_survey(original, requests)
        needed = [*_columns_of(requests), *roles.columns_with("weights"), *roles.columns_with("unit")]
        kept = Table(file.table.take(list(dict.fromkeys(needed))))
        if file.table.frame is None:
            kept.names = list(dict.fromkeys(needed))  # an array's columns are numbered anew
        original.kept[KEPT] = Declared(requests, SurveyFile(kept, "original", file.options))
    found: Declared | None = original.kept.get(KEPT)
    return found


def published_survey(
    original: Original,
    requests: Sequence[Request],
    *,
    all_need: str = "estimates need",
    each: str = "estimate {!r}",
) -> SurveyFile:
    """Return prepared data as a survey, with recoded columns as they are published.

    Raises ValueError or TypeError for an estimate that the data or their roles do not allow; `all_need` and
    `each`, with the text of one put in, are the words for what asks.
    """
    roles, table = original.roles, original.table
    if table is None:
        raise ValueError("the prepared data have no table to read columns from; prepare the table anew")
    if original.weights is not None and roles.weights is None:
        raise ValueError(
            f"{all_need} the weights in a column and they are given as numbers; add a column and name it"
        )
    options = survey_options(original)
    require_readable(SurveyFile(table, "original", options), requests)
    for one in requests:
        hidden = [name for name in _columns_of([one]) if name not in roles.published(table.names)]
        if hidden:
            raise ValueError(
                f"{each.format(one.text)} needs column {hidden[0]!r}, which is not published; publish it or "
                "leave the estimate out"
            )
    if original.recoded:
        table = Table(table.with_columns(original.recoded.values()))
    return SurveyFile(table, "original", options)


def survey_options(original: Original) -> Options:
    """Return weights, unit and missing codes of prepared data."""
    return Options(weights=original.roles.weights, unit=original.roles.unit, na=original.roles.na)


def _columns_of(requests: Iterable[Request]) -> list[str]:
    """Return the columns that estimates name, each once."""
    return list(dict.fromkeys(name for one in requests for name in (*one.columns, *one.by)))


def masked_rows(pair: Pair, metric: str) -> tuple[Declared, Rows]:
    """Return the declared estimates of a pair and their values in its masked file, measured once.

    Raises NotApplicable, in the name of the metric that asks, where none are declared.
    """
    if KEPT not in pair.cache:
        declared = declared_of(pair.original if pair.whole is None else pair.whole.original)
        if declared is None:
            raise checks.NotApplicable(
                f"{metric} needs estimates that users of the file compute; name them with estimates="
            )
        if pair.rows is not None:  # a stratum, measured once for all masked files
            if KEPT not in pair.original.kept:
                pair.original.kept[KEPT] = declared.take(pair.rows)
            declared = pair.original.kept[KEPT]
        pair.cache[KEPT] = declared, declared.rows_of(_masked_file(declared, pair))
    found: tuple[Declared, Rows] = pair.cache[KEPT]
    return found


def comparison_of(pair: Pair, metrics: Iterable[Metric]) -> Estimates | None:
    """Return the figures of both files where one of the metrics is about declared estimates, else None."""
    named = [one.name for one in metrics if one.role == KEPT]
    if not named:
        return None
    declared, masked = masked_rows(pair, named[0])
    kept = set(pair.original.roles.published(declared.beside))
    computable = not declared.beside or (declared.beside == kept and _named_table(pair, kept) is not None)
    totals = pair.disclosure.calibrated
    exact = parse_estimates(totals) if totals else ()
    guards = declared.protection(pair.rules).guards(masked, exact)
    return Estimates(comparison_table(declared.rows, masked), guards, computable, pair.original.kind)


def withheld_losses(original: Original, rules: Rules | None) -> frozenset[str]:
    """Return the losses over declared estimates that a map of settings does not publish; none without any.

    The largest loss is an exact figure of one estimate, the mean one of several.
    """
    declared = declared_of(original)
    if declared is None:
        return frozenset()
    names = registry.estimate_losses()
    return names - {KEPT} if declared.may_publish_mean(rules) else names


def withheld_rows_of_losses(
    found: Estimates | None, metrics: Iterable[Metric], groups: Iterable[str]
) -> frozenset[tuple[str, str, str]]:
    """Return metric, stratum and variable of the losses over estimates of a file that are not published.

    The mean loss is published if there are enough estimates and none is withheld. What may be published of
    strata is not looked into.
    """
    if found is None:
        return frozenset()
    names = [one.name for one in metrics if one.role == KEPT]
    mean = found.table["overlap"].count() >= checks.FEWEST_REPORTED and not found.some_withheld
    rows = {(name, place, WHOLE) for name in names for place in groups}
    return frozenset(rows - {(KEPT, WHOLE, WHOLE)} if mean else rows)


def _named_table(pair: Pair, names: set[str]) -> Table | None:
    """Return the masked file if its columns have names, these among them; else None."""
    table = pair.table
    return table if table is not None and table.frame is not None and names <= set(table.names) else None


def _masked_file(declared: Declared, pair: Pair) -> SurveyFile:
    """Return the masked file as a survey.

    All its columns count where it is whole. In a sweep, in a stratum, and where weights or units are not
    published, masked values stand beside the original's other columns.
    """
    if pair.rows is None and (table := _named_table(pair, declared.beside)) is not None:
        return SurveyFile(table, "masked", declared.file.options)
    known = set(declared.file.table.names)
    columns = [(j, name) for j, name in enumerate(pair.columns) if name in known]
    return declared.file.replaced({name: np.ascontiguousarray(pair.masked[:, j]) for j, name in columns})
