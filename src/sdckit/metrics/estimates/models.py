"""Coefficients of models in each domain of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.checks import NotApplicable
from sdckit.metrics.estimates.figures import FACTOR, NO_VALUE, NO_WEIGHT, Figures, absent
from sdckit.metrics.estimates.formula import Classes, count_terms
from sdckit.metrics.estimates.model_matrix import model_matrix
from sdckit.metrics.estimates.regression import Fit, ModelData, fit_linear, fit_logistic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.kernels.jit import Bools
    from sdckit.metrics.estimates.formula import Cells
    from sdckit.metrics.estimates.parse import Request
    from sdckit.metrics.estimates.survey_file import SurveyFile

FITS = {"model": fit_linear, "logit": fit_logistic}
MOST_TERMS = 2000  # more take minutes and much memory
NO_LEVEL = "no record of the domain has this class"
Levels = dict[tuple[str, str], list[str]]  # classes, by the text of a model and a column that it takes so


def levels_of(file: SurveyFile, requests: Sequence[Request]) -> Levels:
    """Return the classes of the columns that each model takes as categories, those of this file in order.

    Raises ValueError for a model with more terms than can be fitted.
    """
    found: Levels = {}
    for one in requests:
        if one.formula is not None:
            own = {name: file.domains([name]).labels for name in _categories(file, one)}
            found |= {(one.text, name): labels for name, labels in own.items()}
            counts = {name: len(labels) for name, labels in own.items()}
            _require_few_terms(one.text, count_terms(one.formula, counts))
    return found


def _require_few_terms(text: str, count: int) -> None:
    """Raise ValueError if a model has too many terms."""
    if count > MOST_TERMS:
        raise ValueError(
            f"estimate {text!r} has up to {count:,} terms and at most {MOST_TERMS:,} are fitted; recode or "
            "leave out columns with many classes"
        )


def shared_levels(first: Levels, second: Levels) -> Levels:
    """Return the classes of both files, those of the first before others, so that both leave out the same."""
    return {
        key: list(dict.fromkeys([*first.get(key, []), *second.get(key, [])])) for key in {**first, **second}
    }


def model_data(file: SurveyFile, request: Request, levels: Levels) -> tuple[ModelData, Bools]:
    """Return the terms of a model for all records, and which records have a value of each of them."""
    assert request.formula is not None  # noqa: S101 - a model has one
    columns = [_cells(file, name, levels.get((request.text, name))) for name in request.columns]
    matrix = model_matrix(request.formula, columns)
    weights = np.ones(file.n) if file.weights is None else file.weights
    seen = np.isfinite(matrix.response) & np.isfinite(matrix.terms).all(1)
    for column in columns:
        if isinstance(column, Classes):
            seen &= column.codes >= 0
    return ModelData(matrix.response, matrix.terms, weights, file.design.unit, matrix.names), seen


def coefficients(file: SurveyFile, request: Request, levels: Levels) -> dict[str, Figures]:
    """Return the figures of each coefficient of a model, by the name of its term."""
    data, seen = model_data(file, request, levels)
    grouping = file.grouping(request.by)
    records = grouping.count_records(seen & (data.weights > 0))
    found = {name: absent(grouping.count, records.copy()) for name in data.names}
    for domain, (begin, end) in enumerate(grouping.slices()):
        rows = grouping.by_domain[begin:end]
        chosen = rows[seen[rows]]
        own = data.take(chosen[data.weights[chosen] > 0])
        _fill(found, domain, own, request.kind, weightless=chosen.size > 0)
    return found


def _fill(found: Mapping[str, Figures], domain: int, data: ModelData, kind: str, *, weightless: bool) -> None:
    """Fit a model in one domain and enter its coefficients, or the reason why there are none."""
    present: Bools = np.asarray((data.terms != 0).any(axis=0))
    for name, used in zip(data.names, present, strict=True):
        if not used:
            found[name].reasons[domain] = NO_LEVEL
    names = [name for name, used in zip(data.names, present, strict=True) if used]
    try:
        if not data.response.size:
            raise NotApplicable(NO_WEIGHT if weightless else NO_VALUE)  # noqa: TRY301 - as fits do
        fit = FITS[kind](data._replace(terms=data.terms[:, present], names=names))
    except NotApplicable as error:
        for figures in found.values():
            figures.reasons[domain] = str(error)
        return
    _enter({name: found[name] for name in names}, domain, fit)


def _enter(found: Mapping[str, Figures], domain: int, fit: Fit) -> None:
    """Enter coefficients and their intervals into the figures of a domain."""
    for figures, value, error in zip(found.values(), fit.coefficients, fit.errors, strict=True):
        figures.values[domain], figures.errors[domain] = value, error
        figures.low[domain], figures.high[domain] = value - FACTOR * error, value + FACTOR * error
        if np.isnan(error):
            figures.reasons[domain] = "one unit, so no standard error"


def _categories(file: SurveyFile, request: Request) -> list[str]:
    """Return the columns of a model that are no numbers, or stand in C()."""
    assert request.formula is not None  # noqa: S101 - a model has one
    inside = request.formula.categories
    return [name for name in request.columns if name in inside or not file.is_number(name)]


def _cells(file: SurveyFile, name: str, labels: Sequence[str] | None) -> Cells:
    """Return the cells of a column as floats or, where labels of classes are given, as these."""
    if labels is None:
        return file.numbers(name)
    own = file.domains([name])
    places = {label: place for place, label in enumerate(labels)}
    numbers = np.array([*(places[label] for label in own.labels), -1], np.int64)
    return Classes(tuple(labels), numbers[own.numbers])
