"""Models of a file: their matrix by formulaic, and weighted linear and logistic regression in each domain.

Standard errors are sandwich errors, robust (HC1) or clustered by unit.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core.cells import number_values
from sdckit.core.checks import NotApplicable, shown
from sdckit.core.text import plural
from sdckit.estimation.estimators import NO_VALUE, NO_WEIGHT, Figures, absent
from sdckit.estimation.parse import OWN, PLACEHOLDER
from sdckit.metrics.loss.propensity import logistic
from sdckit.rules.parse import quoted

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.estimation.parse import Formula, Request
    from sdckit.estimation.survey_file import SurveyFile


class Classes(NamedTuple):
    """Cells that name classes: the labels of all classes, and the number of each record's, -1 for none."""

    labels: Sequence[str]
    codes: Ints


class ModelMatrix(NamedTuple):
    """The response of a model, its terms as columns of a matrix, and their names."""

    response: Floats
    terms: Floats
    names: tuple[str, ...]


def model_matrix(formula: Formula, columns: Sequence[Floats | Classes]) -> ModelMatrix:
    """Return response and terms of a model for each record by formulaic, given the columns of its formula.

    Cells are floats, NaN where missing, or classes. A term that cannot be computed, such as the log of 0, is
    NaN or infinite.
    """
    terms, pandas = formula_terms(formula), _libraries()[1]
    data = pandas.DataFrame(
        {
            f"column_{j}_": pandas.Categorical.from_codes(one.codes, categories=list(one.labels))
            if isinstance(one, Classes)
            else one
            for j, one in enumerate(columns)
        }
    )
    try:
        with np.errstate(all="ignore"):
            found = terms.get_model_matrix(data, na_action="ignore", output="numpy", context=OWN)
    except Exception as error:  # of many types
        raise _formula_error(formula, error) from error
    left = np.asarray(found.lhs, np.float64).reshape(len(data), -1)
    if left.shape[1] != 1:
        raise ValueError(f"the response of model {formula.text!r} is no number; take a numeric column")
    names = tuple(_own_names(name, formula) for name in found.rhs.model_spec.column_names)
    return ModelMatrix(left[:, 0], np.ascontiguousarray(found.rhs, np.float64), names)


@lru_cache
def formula_terms(formula: Formula) -> Any:
    """Return the formula as formulaic reads it; raise ValueError where it is no formula of one response."""
    try:
        found = _libraries()[0].Formula(formula.code)
    except _libraries()[0].errors.FormulaicError as error:
        raise _formula_error(formula, error) from error
    if len(found.lhs) != 1:
        raise ValueError(
            f"the response of model {formula.text!r} has {len(found.lhs)} terms; write a sum as I(a + b)"
        )
    if not len(found.rhs):
        raise ValueError(f"model {formula.text!r} has no term; add one, or 1 for a mean")
    return found


def _formula_error(formula: Formula, error: Exception) -> ValueError:
    """Return the error for a formula that formulaic refuses, with the first line of its own words."""
    reason = _own_names((str(error).splitlines() or [type(error).__name__])[0], formula).rstrip(".")
    return ValueError(f"model {formula.text!r} cannot be computed: {reason}; correct the formula")


def _libraries() -> tuple[Any, Any]:
    """Return formulaic and pandas; raise ValueError where they are not installed."""
    try:
        return import_module("formulaic"), import_module("pandas")
    except ImportError as error:
        raise ValueError('models need the package formulaic; pip install "sdckit[models]"') from error


def _own_names(text: str, formula: Formula) -> str:
    """Return a text of formulaic with the names of columns in place of the placeholders."""

    def own_name(found: re.Match[str]) -> str:
        """Return the name that a placeholder stands for; a class of records may be called like one."""
        place = int(found[1])
        return quoted(formula.columns[place]) if place < len(formula.columns) else found[0]

    return PLACEHOLDER.sub(own_name, text)


# --- weighted regression ---

DEPENDENT = 1e-9  # of a term's length: what other terms do not explain of it
STEPS = 40  # of Newton's method, which needs about 8
HALVINGS = 30
CONVERGED = 1e-10  # of the largest coefficient


class ModelData(NamedTuple):
    """Response, terms, weights and units of the records that a model is fitted to; `units` may be None."""

    response: Floats
    terms: Floats
    weights: Floats
    units: Ints | None
    names: Sequence[str]

    def take(self, rows: Ints) -> ModelData:
        """Return the records in the given rows."""
        units = None if self.units is None else self.units[rows]
        return ModelData(self.response[rows], self.terms[rows], self.weights[rows], units, self.names)


def fit(kind: str, data: ModelData) -> tuple[Floats, Floats]:
    """Return the coefficients of a linear model or, for "logit", of a logistic one, and their errors.

    Least squares by a QR decomposition, the largest likelihood by Newton's method. Raises NotApplicable where
    coefficients are not determined, as under perfect separation.
    """
    if kind == "logit" and not np.isin(data.response, (0.0, 1.0)).all():
        raise NotApplicable("the response has values other than 0 and 1")
    if kind == "logit" and np.ptp(data.response) == 0:
        raise NotApplicable(f"the response is always {data.response[0]:g}")
    n, p = data.terms.shape
    if n <= p:
        raise NotApplicable(f"{n} {plural(n, 'record')} for {p} {plural(p, 'coefficient')}")
    scales = np.sqrt((data.terms**2).mean(0))
    if not scales.all():
        name = shown(data.names[int(np.argmin(scales))])  # that of a category is a cell
        raise NotApplicable(f"the term {name} is 0 in all records")
    terms = data.terms / scales
    if kind == "logit":
        _require_independent(terms, data.names)
        coefficients = _maximise(terms, data.response, data.weights)
        fitted = logistic(times(terms, coefficients))
        bread = np.linalg.inv(_information(terms, fitted, data.weights))
    else:
        roots = np.sqrt(data.weights)
        whole = triangle(np.column_stack([terms, data.response]) * roots[:, None])
        upper, projected = whole[:-1, :-1], whole[:-1, -1]
        # What is left of a term beside others grows by the root of the largest weight at most: most files
        # need no second decomposition.
        if _rest(upper, n).min() <= DEPENDENT * roots.max():
            _require_independent(terms, data.names)
        coefficients = np.asarray(np.linalg.solve(upper, projected), np.float64)
        fitted = times(terms, coefficients)
        inverse = np.linalg.inv(upper)
        bread = inverse @ inverse.T
    scores = terms * (data.weights * (data.response - fitted))[:, None]
    return coefficients / scales, _sandwich_errors(bread, scores, data.units) / scales


def _maximise(terms: Floats, response: Floats, weights: Floats) -> Floats:
    """Return the coefficients of largest likelihood; raise NotApplicable where it has no maximum."""
    coefficients = np.zeros(terms.shape[1])
    likelihood = _likelihood(terms, response, weights, coefficients)
    for _ in range(STEPS):
        fitted = logistic(times(terms, coefficients))
        gradient = cross(terms, weights * (response - fitted))
        try:
            step = np.linalg.solve(_information(terms, fitted, weights), gradient)
        except np.linalg.LinAlgError:
            break
        if np.abs(step).max() <= CONVERGED * max(1.0, np.abs(coefficients).max()):
            return coefficients + step
        for _ in range(HALVINGS):
            tried = _likelihood(terms, response, weights, coefficients + step)
            if tried >= likelihood - 1e-12 * abs(likelihood):
                break
            step /= 2
        coefficients, likelihood = coefficients + step, tried
    raise NotApplicable("the terms separate the response perfectly, so there are no coefficients")


def _information(terms: Floats, fitted: Floats, weights: Floats) -> Floats:
    """Return minus the second derivative of the log-likelihood."""
    return cross(terms * (weights * fitted * (1 - fitted))[:, None], terms)


def _likelihood(terms: Floats, response: Floats, weights: Floats, coefficients: Floats) -> float:
    """Return the weighted log-likelihood of a logistic regression."""
    predictor = times(terms, coefficients)
    return float((weights * (response * predictor - np.logaddexp(0.0, predictor))).sum())


def _require_independent(terms: Floats, names: Sequence[str]) -> None:
    """Raise NotApplicable where a term of mean square 1 follows from those before it."""
    rest = _rest(triangle(terms), len(terms))
    if rest.min() <= DEPENDENT:
        name = shown(names[int(np.argmax(rest <= DEPENDENT))])
        raise NotApplicable(f"the terms depend on each other: {name} follows from those before it")


def _rest(upper: Floats, n: int) -> Floats:
    """Return the root mean square of what terms before each one do not explain, from the triangle of a QR."""
    return np.asarray(np.abs(np.diag(upper)) / np.sqrt(n))


def _sandwich_errors(bread: Any, scores: Floats, units: Ints | None) -> Floats:
    """Return standard errors from the scores of records, n / (n - p), or of units, G/(G-1) (n-1)/(n-p)."""
    n, p = scores.shape
    factor = n / (n - p)
    if units is not None:
        groups = number_values(units)
        count = int(groups.max()) + 1
        if count < 2:
            return np.full(p, np.nan)
        scores = np.column_stack([np.bincount(groups, column, count) for column in scores.T])
        factor = count / (count - 1) * (n - 1) / (n - p)
    spread = times(scores, bread)
    return np.sqrt(factor * (spread * spread).sum(0))


# --- products and QR decompositions by blocks of rows, each small enough for BLAS to stay on one thread ---


CELLS = 8192  # of a block; OpenBLAS uses several threads from 9216


def times(matrix: Floats, other: Floats) -> Floats:
    """Return the product of a matrix with a small matrix or vector."""
    return np.concatenate([matrix[rows] @ other for rows in _blocks(matrix)])


def cross(matrix: Floats, other: Floats) -> Floats:
    """Return the product of the transposed matrix with a matrix or vector of as many rows."""
    return np.asarray(sum(matrix[rows].T @ other[rows] for rows in _blocks(matrix)))


def triangle(matrix: Floats) -> Floats:
    """Return the upper triangle R of the matrix's QR decomposition: that of the triangles of its blocks."""
    while True:
        parts = [np.asarray(np.linalg.qr(matrix[rows], mode="r")) for rows in _blocks(matrix)]
        if len(parts) == 1:
            return parts[0]
        matrix = np.concatenate(parts)


def _blocks(matrix: Floats) -> Iterator[slice]:
    """Yield the rows of each block: as many as cells allow, but more than twice the columns."""
    n, p = matrix.shape
    step = max(CELLS // max(p, 1), 2 * p + 1)
    return (slice(begin, begin + step) for begin in range(0, max(n, 1), step))


# --- coefficients in each domain ---

MOST_TERMS = 2000  # more take minutes and much memory
Levels = dict[tuple[str, str], list[str]]  # classes, by the text of a model and a column that it takes so


def levels_of(file: SurveyFile, requests: Sequence[Request]) -> Levels:
    """Return the classes of the columns that each model takes as categories, those of this file in order.

    These are columns that are no numbers, or stand in C(). Raises ValueError for a model with more terms than
    can be fitted.
    """
    found: Levels = {}
    for one in requests:
        if one.formula is None:
            continue
        names = [name for name in one.columns if name in one.formula.categories or not file.is_number(name)]
        own = {name: file.domains([name]).labels for name in names}
        found |= {(one.text, name): labels for name, labels in own.items()}
        count = 0
        for term in formula_terms(one.formula).rhs:
            inside = {one.columns[int(place)] for place in PLACEHOLDER.findall(str(term))}
            count += math.prod(len(own[name]) for name in inside & own.keys())
        if count > MOST_TERMS:
            raise ValueError(
                f"estimate {one.text!r} has up to {count:,} terms and at most {MOST_TERMS:,} are fitted; "
                "recode or leave out columns with many classes"
            )
    return found


def shared_levels(first: Levels, second: Levels) -> Levels:
    """Return the classes of both files, those of the first before others, so that both leave out the same."""
    return {
        key: list(dict.fromkeys([*first.get(key, []), *second.get(key, [])])) for key in {**first, **second}
    }


def model_data(file: SurveyFile, request: Request, levels: Levels) -> tuple[ModelData, Bools]:
    """Return the terms of a model for all records, and which records have a value of each of them."""
    assert request.formula is not None  # noqa: S101 - a model has one
    columns: list[Floats | Classes] = []
    known = np.ones(file.n, np.bool_)
    for name in request.columns:
        labels = levels.get((request.text, name))
        if labels is None:
            columns.append(file.numbers(name))
            continue
        own = file.domains([name])
        places = {label: place for place, label in enumerate(labels)}
        codes = np.array([*(places[label] for label in own.labels), -1], np.int64)[own.numbers]
        columns.append(Classes(labels, codes))
        known &= codes >= 0
    response, terms, names = model_matrix(request.formula, columns)
    weights = np.ones(file.n) if file.weights is None else file.weights
    seen = known & np.isfinite(response) & np.isfinite(terms).all(1)
    return ModelData(response, terms, weights, file.design.unit, names), seen


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
        present = (own.terms != 0).any(axis=0)
        names = [name for name, used in zip(data.names, present, strict=True) if used]
        for name in found.keys() - set(names):
            found[name].reasons[domain] = "no record of the domain has this class"
        try:
            if not own.response.size:
                raise NotApplicable(NO_WEIGHT if chosen.size else NO_VALUE)  # noqa: TRY301 - as fits do
            fitted = fit(request.kind, own._replace(terms=own.terms[:, present], names=names))
        except NotApplicable as reason:
            for figures in found.values():
                figures.reasons[domain] = str(reason)
            continue
        for name, value, error in zip(names, *fitted, strict=True):
            found[name].enter(domain, value, error)
    return found
