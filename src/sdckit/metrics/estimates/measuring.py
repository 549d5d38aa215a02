"""Estimates of one file as rows: what is estimated, in which domain, with which error."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.metrics.estimates import linearised
from sdckit.metrics.estimates.formula import formula_terms
from sdckit.metrics.estimates.models import Levels, coefficients
from sdckit.metrics.estimates.quantiles import quantile
from sdckit.metrics.estimates.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sdckit.kernels.jit import Floats
    from sdckit.metrics.estimates.figures import Figures
    from sdckit.metrics.estimates.parse import Request
    from sdckit.metrics.estimates.survey_file import SurveyFile

ESTIMATORS: dict[str, Callable[[Sample], Figures]] = {
    "total": linearised.total,
    "mean": linearised.mean,
    "share": linearised.mean,
    "ratio": linearised.ratio,
    "correlation": linearised.correlation,
    "gini": linearised.gini,
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


def measure(file: SurveyFile, requests: Sequence[Request], levels: Levels) -> Rows:
    """Return all estimates of a file; `levels` are the classes of the columns in models."""
    found: Rows = {}
    for one in requests:
        labels = file.grouping(one.by).labels
        if one.formula is None:
            found |= _rows(one.text, labels, _estimator(one)(sample_of(file, one)))
            continue
        for term, figures in coefficients(file, one, levels).items():
            found |= _rows(f"{one.text} [{term}]", labels, figures)
    return found


def require_readable(file: SurveyFile, requests: Iterable[Request]) -> None:
    """Raise ValueError or TypeError if the file lacks a column of an estimate, or has text for numbers."""
    for one in requests:
        try:
            file.require([*one.columns, *one.by])
            if one.formula is not None:
                formula_terms(one.formula)
            for name in _number_columns(one):
                if not file.is_number(name):
                    file.table.numeric_columns([name])  # raises
        except (ValueError, TypeError) as error:
            raise type(error)(f"estimate {one.text!r}: {error}") from error


def _number_columns(request: Request) -> tuple[str, ...]:
    """Return the columns of an estimate that need numbers; in models and beside a text, none."""
    condition = request.condition
    if request.formula is not None:
        return ()
    return () if condition is not None and condition.other.kind == "text" else request.columns


def _estimator(request: Request) -> Callable[[Sample], Figures]:
    """Return the function that computes an estimate."""
    if request.kind in {"median", "quantile"}:
        return partial(quantile, level=request.level)
    return ESTIMATORS[request.kind]


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


def _rows(text: str, labels: Sequence[str], figures: Figures) -> Rows:
    """Return the rows of an estimate in all domains."""
    parts = (figures.values, figures.errors, figures.low, figures.high, figures.records)
    reasons = [figures.reasons.get(domain, "") for domain in range(len(labels))]
    cells = zip(*(part.tolist() for part in parts), reasons, strict=True)
    return {(text, label): Row._make(row) for label, row in zip(labels, cells, strict=True)}
