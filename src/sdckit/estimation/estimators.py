"""Estimates in each domain of a file with their standard errors: totals, means, quantiles and others.

Totals, means, shares, ratios, correlations and Gini coefficients have Taylor-linearised errors: each estimate
is replaced by the weighted sum of its residuals, to first order, whose variance is that of a total. Units are
drawn with replacement within strata; where the file names the population of each stratum, the variance is
reduced by the share that was drawn. Quantiles have Woodruff's intervals.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.estimation.survey_file import WHOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.estimation.parse import Request
    from sdckit.estimation.survey_file import Grouping, SurveyFile

CONFIDENCE = 0.95
FACTOR = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)  # standard errors on either side of an estimate
NO_VALUE = "no record has a value"
NO_WEIGHT = "all weights are 0"
ONE_RECORD = "one record, so no standard error"
ONE_UNIT = "a stratum has one unit, so no standard error"


@dataclass
class Figures:
    """An estimate in each domain: value, standard error, interval, records used; NaN without a value.

    `reasons` says for the number of a domain why its value or standard error is absent.
    """

    values: Floats
    errors: Floats
    records: Ints
    low: Floats = field(default_factory=lambda: np.empty(0))
    high: Floats = field(default_factory=lambda: np.empty(0))
    reasons: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.low.size:
            self.low, self.high = self.values - FACTOR * self.errors, self.values + FACTOR * self.errors

    def withhold(self, domains: Bools, reason: str, *, value: bool = True) -> None:
        """Remove the standard errors of some domains, and their values unless `value` is False."""
        if not domains.any():
            return
        for domain in np.flatnonzero(domains):
            self.reasons.setdefault(int(domain), reason)
        for part in (self.errors, self.low, self.high, *((self.values,) if value else ())):
            part[domains] = np.nan

    def enter(self, domain: int, value: float, error: float) -> None:
        """Enter the value of a domain with its standard error and interval."""
        self.values[domain], self.errors[domain] = value, error
        self.low[domain], self.high[domain] = value - FACTOR * error, value + FACTOR * error
        if np.isnan(error):
            self.reasons[domain] = "one unit, so no standard error"


def absent(count: int, records: Ints) -> Figures:
    """Return figures without a value, to be filled in where there is one."""
    nothing = [np.full(count, np.nan) for _ in range(4)]
    return Figures(nothing[0], nothing[1], records, nothing[2], nothing[3])


# --- records that have a value of an estimate's columns, with their weights, by domain ---


class Sample:
    """Columns of numbers on the records that have all of them; others count as 0 and weigh nothing.

    `columns` has no NaN, `weights` is None where all records weigh 1, `seen` is None where all count.
    """

    def __init__(self, grouping: Grouping, weights: Floats | None, *columns: Floats) -> None:
        self.grouping = grouping
        self.columns, self.weights = list(columns), weights
        self.seen: Bools | None = None
        sums = [float(column.sum()) for column in columns]  # NaN with a missing cell, and fast
        if np.isnan(sums).any():
            seen = np.asarray(~np.isnan(columns).any(0))
            self.seen, self.columns = seen, [np.where(seen, column, 0.0) for column in columns]
            self.weights = seen.astype(float) if weights is None else np.where(seen, weights, 0.0)
        elif grouping.some_outside:
            self.seen = grouping.numbers < grouping.count

    @cached_property
    def size(self) -> Floats:
        """Sum of the weights of each domain."""
        return self.grouping.sums(self.weights)

    @cached_property
    def records(self) -> Ints:
        """Number of records of each domain that have the values."""
        return self.grouping.records if self.seen is None else self.grouping.count_records(self.seen)

    @cached_property
    def ordering(self) -> Ordering:
        """The records sorted by the first column within each domain."""
        return Ordering(self.grouping, self.weights, self.columns[0])

    def totals(self, values: Floats) -> Floats:
        """Return the weighted sum of the values in each domain."""
        return self.grouping.sums(values, self.weights)

    def means(self, values: Floats) -> Floats:
        """Return the weighted mean of the values in each domain."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.totals(values) / self.size

    def figures(self, values: Floats, variances: Floats, scale: Floats | float) -> Figures:
        """Return estimates whose errors are the roots of the given variances over `scale`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.sqrt(variances) / np.abs(scale)
        return self.explained(Figures(values, errors, self.records))

    def explained(self, figures: Figures, *, alone: bool = False) -> Figures:
        """Return the figures with a reason where a domain has none; `alone` if one record has an error."""
        figures.withhold(self.records == 0, NO_VALUE)
        figures.withhold((self.size <= 0) & (self.records > 0), NO_WEIGHT)
        if not alone:
            figures.withhold(self.records == 1, ONE_RECORD, value=False)
        figures.withhold(np.isnan(figures.errors) & ~np.isnan(figures.values), ONE_UNIT, value=False)
        return figures


# --- records sorted by value within each domain ---


ROUNDING = 1e-12  # of a sum of weights, which may be this much too small


class Ordering:
    """The records of a file, sorted by domain and by their values within it; `weights` may be None."""

    def __init__(self, grouping: Grouping, weights: Floats | None, values: Floats) -> None:
        self.grouping, self.weights, self.values = grouping, weights, values

    @cached_property
    def order(self) -> Ints:
        """Row numbers by domain and value; records without a value or a weight come at any place."""
        found = self.grouping.by_domain.copy()
        values = self.values[found]
        for begin, end in self.grouping.slices():
            found[begin:end] = found[begin:end][np.argsort(values[begin:end])]
        return found

    def differences(self) -> Floats:
        """Return for each record the weighted sum of its absolute differences to all others of its domain."""
        y, weights = self.values, self.weights
        found = np.zeros(y.size)
        for begin, end in self.grouping.slices():
            rows = self.order[begin:end]
            values, own = y[rows], np.ones(rows.size) if weights is None else weights[rows]
            size, total = np.cumsum(own), np.cumsum(own * values)  # of the records up to each one
            if rows.size:
                found[rows] = values * (2 * size - size[-1]) + total[-1] - 2 * total
        return found

    @cached_property
    def _distributions(self) -> list[Distribution]:
        """The values of each domain that have a weight."""
        y, weights = self.values, self.weights
        if weights is None:
            values = y[self.grouping.by_domain]
            return [Distribution(np.sort(values[begin:end]), None) for begin, end in self.grouping.slices()]
        found: list[Distribution] = []
        for begin, end in self.grouping.slices():
            rows = self.order[begin:end]
            own = weights[rows]
            if not own.all():
                rows, own = rows[own > 0], own[own > 0]
            found.append(Distribution(y[rows], np.cumsum(own)))
        return found

    def quantiles(self, shares: Floats) -> Floats:
        """Return each domain's smallest value at which its distribution function reaches a share.

        NaN where the domain is empty or the share is not within 0 and 1.
        """
        found = np.full(shares.size, np.nan)
        for domain, (share, own) in enumerate(zip(shares.tolist(), self._distributions, strict=True)):
            if own.values.size and 0 <= share <= 1:
                found[domain] = own.quantile(share * (1 - ROUNDING))
        return found


class Distribution(NamedTuple):
    """Values in ascending order, and the cumulated weights of their records; None where each weighs 1."""

    values: Floats
    weights: Floats | None

    def quantile(self, share: float) -> float:
        """Return the smallest value at which the cumulated weight reaches a share of the whole."""
        if self.weights is None:
            return float(self.values[max(math.ceil(share * self.values.size) - 1, 0)])
        place = int(self.weights.searchsorted(share * self.weights[-1]))
        return float(self.values[min(place, self.values.size - 1)])


# --- linearised estimates ---


def total(sample: Sample) -> Figures:
    """Return the weighted sum of a column in each domain."""
    (y,) = sample.columns
    values, variances = sample.grouping.totals(y, sample.weights)
    return sample.explained(Figures(values, np.sqrt(variances), sample.records), alone=True)


def mean(sample: Sample) -> Figures:
    """Return the weighted mean of a column in each domain."""
    (y,) = sample.columns
    means = sample.means(y)
    return sample.figures(means, sample.grouping.residual_variances(y, sample.weights, means), sample.size)


def ratio(sample: Sample) -> Figures:
    """Return the weighted sum of a column over that of another one in each domain."""
    a, b = sample.columns
    below = sample.totals(b)
    values = sample.totals(a) / np.where(below == 0, np.nan, below)
    none = np.zeros(values.size)
    variances = sample.grouping.residual_variances(a, sample.weights, none, b, values)
    found = sample.figures(values, variances, below)
    found.withhold((below == 0) & (sample.size > 0), "the denominator is 0")
    return found


def correlation(sample: Sample) -> Figures:
    """Return the weighted correlation of two columns in each domain, its error linearised.

    A record's residual is u v - r (u**2 + v**2) / 2, u and v its standardised values.
    """
    (u, u_varies), (v, v_varies) = (_standardised(sample, column) for column in sample.columns)
    products = u * v
    values = sample.means(products)
    squares = np.square(u, out=u)  # in place, as new arrays take most of the time in large files
    squares += np.square(v, out=v)
    none = np.zeros(values.size)
    variances = sample.grouping.residual_variances(products, sample.weights, none, squares, values / 2)
    found = sample.figures(values, variances, sample.size)
    found.withhold(~(u_varies & v_varies) & (sample.records > 0), "a column is constant")
    return found


def _standardised(sample: Sample, column: Floats) -> tuple[Floats, Bools]:
    """Return a column with mean 0 and variance 1 in domains where it varies, 0 elsewhere, and which vary."""
    at = sample.grouping.at_records
    found = column - at(sample.means(column))
    spread = np.sqrt(sample.means(found * found))
    varies = spread > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        found /= at(spread)
    if not varies.all() or sample.grouping.some_outside:
        np.nan_to_num(found, copy=False, posinf=0.0, neginf=0.0)
    return found, varies


def gini(sample: Sample) -> Figures:
    """Return the Gini coefficient in each domain: the mean difference of two records over twice the mean.

    A record's residual is the sum of its differences to all others, less the coefficient times (total + size
    * value), over (size * total).
    """
    (y,) = sample.columns
    size, total, differences = sample.size, sample.totals(y), sample.ordering.differences()
    scale = np.where(total > 0, size * total, np.nan)
    values = sample.totals(differences) / (2 * scale)
    variances = sample.grouping.residual_variances(
        differences, sample.weights, values * total, y, values * size
    )
    found = sample.figures(values, variances, scale)
    found.withhold((total <= 0) & (size > 0), "the total is not above 0")
    return found


# --- quantiles with Woodruff's intervals ---


NO_END = "an end of the interval lies beyond the data, so no standard error"


def quantile(sample: Sample, level: float) -> Figures:
    """Return the quantile of a column in each domain, its interval and its standard error by Woodruff.

    The quantile q is the smallest value at which the weighted distribution function F reaches `level`. The
    share of values up to q is a mean with a linearised standard error s; the interval has the quantiles of
    F(q) - 1.96 s and F(q) + 1.96 s as ends, and the standard error is its length over 2 * 1.96. This is what
    `svyquantile(interval.type = "mean", qrule = "math", df = Inf)` of the R package survey computes.
    """
    (y,) = sample.columns
    grouping, ordering = sample.grouping, sample.ordering
    values = ordering.quantiles(np.full(grouping.count, level))
    below = (y <= grouping.at_records(values)).astype(float)
    shares = sample.means(below)
    with np.errstate(divide="ignore", invalid="ignore"):
        variances = grouping.residual_variances(below, sample.weights, shares)
        half = FACTOR * np.sqrt(variances) / sample.size
    low, high = ordering.quantiles(shares - half), ordering.quantiles(shares + half)
    found = Figures(values, (high - low) / (2 * FACTOR), sample.records, low, high)
    beyond = np.isnan(found.errors) & ~np.isnan(half) & (sample.records > 1)
    found.withhold(beyond, NO_END, value=False)
    return sample.explained(found)


# --- estimates as rows ---


ESTIMATORS: dict[str, Callable[[Sample], Figures]] = {
    "total": total,
    "mean": mean,
    "share": mean,
    "ratio": ratio,
    "correlation": correlation,
    "gini": gini,
}
RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


class Row(NamedTuple):
    """One estimate in one domain of one file; NaN where there is no value, and then a reason."""

    value: float
    error: float
    low: float
    high: float
    records: int
    reason: str = ""


ABSENT = Row(math.nan, math.nan, math.nan, math.nan, 0, "no such domain")
Rows = dict[tuple[str, str], Row]  # by the text of the estimate and the label of the domain


def column_figures(file: SurveyFile, request: Request) -> Figures:
    """Return an estimate, which is no model, in each domain of a file."""
    sample = sample_of(file, request)
    if request.kind in {"median", "quantile"}:
        return quantile(sample, request.level)
    return ESTIMATORS[request.kind](sample)


def sample_of(file: SurveyFile, request: Request) -> Sample:
    """Return the cells of an estimate with weights and domains; kept for others on the same columns."""
    key = (request.columns, request.condition, request.by)
    if key not in file.cache:
        columns = [_indicator(file, request)] if request.condition else map(file.numbers, request.columns)
        file.cache[key] = Sample(file.grouping(request.by), file.weights, *columns)
    sample: Sample = file.cache[key]
    return sample


def _indicator(file: SurveyFile, request: Request) -> Floats:
    """Return 1 for each record that meets the condition, 0 for others, NaN where a cell is missing."""
    condition, (name, *others) = request.condition, request.columns
    assert condition is not None  # noqa: S101 - a share has one
    compare = RELATIONS[condition.relation]
    if condition.other.kind == "text":
        classes = file.domains([name])
        meets = np.array([*(compare(label, condition.other.says) for label in classes.labels), np.nan])
        return np.asarray(meets[classes.numbers], np.float64)
    left = file.numbers(name)
    right: Any = file.numbers(others[0]) if others else float(condition.other.says)
    if condition.negative:
        right = -right
    found = np.asarray(compare(left, right), np.float64)
    found[np.isnan(left) | np.isnan(right)] = np.nan
    return found


def rows_of(text: str, labels: Sequence[str], figures: Figures) -> Rows:
    """Return the rows of an estimate in all domains."""
    parts = (figures.values, figures.errors, figures.low, figures.high, figures.records)
    reasons = [figures.reasons.get(domain, "") for domain in range(len(labels))]
    cells = zip(*(part.tolist() for part in parts), reasons, strict=True)
    return {(text, label): Row._make(row) for label, row in zip(labels, cells, strict=True)}


def name_of_row(estimate: str, domain: str) -> str:
    """Return estimate and domain of a row as one text."""
    return estimate if domain == WHOLE else f"{estimate}, {domain}"
