"""Weighted linear and logistic regression with sandwich errors, robust (HC1) or clustered by unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.core.checks import NotApplicable
from sdckit.core.classes import number_values
from sdckit.core.quoting import shown
from sdckit.core.text import plural
from sdckit.metrics.estimates.row_blocks import cross, times, triangle
from sdckit.metrics.loss.propensity import logistic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Floats, Ints

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


class Fit(NamedTuple):
    """Coefficients of a model and their standard errors."""

    coefficients: Floats
    errors: Floats


def fit_linear(data: ModelData) -> Fit:
    """Return weighted least squares; raise NotApplicable where coefficients are not determined."""
    terms, scales = _scaled(data)
    roots = np.sqrt(data.weights)
    whole = triangle(np.column_stack([terms, data.response]) * roots[:, None])
    upper, projected = whole[:-1, :-1], whole[:-1, -1]
    # What is left of a term beside others grows by the root of the largest weight at most: most files need no
    # second decomposition.
    if _rest(upper, len(terms)).min() <= DEPENDENT * roots.max():
        _require_independent(terms, data.names)
    coefficients = np.asarray(np.linalg.solve(upper, projected), np.float64)
    scores = terms * (data.weights * (data.response - times(terms, coefficients)))[:, None]
    inverse = np.asarray(np.linalg.inv(upper), np.float64)
    return Fit(coefficients / scales, _sandwich_errors(inverse @ inverse.T, scores, data) / scales)


def fit_logistic(data: ModelData) -> Fit:
    """Return a logistic regression by Newton's method; raise NotApplicable under perfect separation."""
    if not np.isin(data.response, (0.0, 1.0)).all():
        raise NotApplicable("the response has values other than 0 and 1")
    if np.ptp(data.response) == 0:
        raise NotApplicable(f"the response is always {data.response[0]:g}")
    terms, scales = _scaled(data)
    _require_independent(terms, data.names)
    coefficients = _maximise(terms, data.response, data.weights)
    fitted = logistic(times(terms, coefficients))
    bread = np.asarray(np.linalg.inv(_information(terms, fitted, data.weights)), np.float64)
    scores = terms * (data.weights * (data.response - fitted))[:, None]
    return Fit(coefficients / scales, _sandwich_errors(bread, scores, data) / scales)


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


def _scaled(data: ModelData) -> tuple[Floats, Floats]:
    """Return terms with a mean square of 1 and their scales; raise NotApplicable where that cannot be."""
    n, p = data.terms.shape
    if n <= p:
        raise NotApplicable(f"{n} {plural(n, 'record')} for {p} {plural(p, 'coefficient')}")
    scales = np.sqrt((data.terms**2).mean(0))
    if not scales.all():
        name = shown(data.names[int(np.argmin(scales))])  # that of a category is a cell
        raise NotApplicable(f"the term {name} is 0 in all records")
    return data.terms / scales, scales


def _require_independent(terms: Floats, names: Sequence[str]) -> None:
    """Raise NotApplicable where a term of mean square 1 follows from those before it."""
    rest = _rest(triangle(terms), len(terms))
    if rest.min() <= DEPENDENT:
        name = shown(names[int(np.argmax(rest <= DEPENDENT))])
        raise NotApplicable(f"the terms depend on each other: {name} follows from those before it")


def _rest(upper: Floats, n: int) -> Floats:
    """Return the root mean square of what terms before each one do not explain, from the triangle of a QR."""
    return np.asarray(np.abs(np.diag(upper)) / np.sqrt(n))


def _sandwich_errors(bread: Floats, scores: Floats, data: ModelData) -> Floats:
    """Return standard errors from the scores of records, n / (n - p), or of units, G/(G-1) (n-1)/(n-p)."""
    n, p = scores.shape
    factor = n / (n - p)
    if data.units is not None:
        groups = number_values(data.units)
        count = int(groups.max()) + 1
        if count < 2:
            return np.full(p, np.nan)
        scores = np.column_stack([np.bincount(groups, column, count) for column in scores.T])
        factor = count / (count - 1) * (n - 1) / (n - p)
    spread = times(scores, bread)
    return np.sqrt(factor * (spread * spread).sum(0))
