"""Propensity scores: how well a model separates masked from original records."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.core.registry import Parameter
from sdckit.kernels.sums import standardise, whitening_axes
from sdckit.metrics.loss.moments import SINGULAR, complete_values, whole_file_score
from sdckit.metrics.pair import metric
from sdckit.metrics.score import sentence_of

if TYPE_CHECKING:
    from sdckit.arrays import Floats
    from sdckit.metrics.pair import Comparison
    from sdckit.metrics.score import Score

MODELS = ("quadratic", "main", "cart")
RIDGE = 1e-10  # beside weights p(1 - p) of up to 1/4
FLAT = 1e-11  # mean gradient at which the model is fitted
LEAF = 20  # records that a leaf has at least
LEAF_SHARE = 0.01  # share of all records that a leaf has at least


def model_columns(table: Floats, model: str) -> Floats:
    """Return the model's standardised predictors: the varying columns, for "quadratic" also products."""
    z = _varying_columns(table)
    if model == "main":
        return z
    first, second = np.triu_indices(z.shape[1])  # squares and products of two
    return np.hstack((z, _varying_columns(z[:, first] * z[:, second])))


def _varying_columns(table: Floats) -> Floats:
    """Return the columns that vary, standardised."""
    return standardise(table[:, np.fmin.reduce(table) < np.fmax.reduce(table)])


def whiten(columns: Floats) -> Floats:
    """Return uncorrelated columns of variance 1 with the same span, redundant directions left out."""
    if not columns.shape[1]:
        return columns
    return columns @ whitening_axes(columns.T @ columns / len(columns), SINGULAR)


def fit_logistic(columns: Floats, target: Floats) -> Floats:
    """Return the fitted probabilities of a logistic regression with intercept (Newton's method).

    The columns are white, so the ridge weighs the variance of the linear predictor: as if p(1 - p)
    were larger by `RIDGE` everywhere. It matters only where the files can be separated perfectly; there
    the predictor stops growing once its gain per record falls below the ridge, near +-30.
    """
    n = target.size
    matrix = np.column_stack((np.ones(n), columns))
    penalty = np.full(matrix.shape[1], RIDGE * n)
    penalty[0] = 0.0
    start = target.mean()
    coefficients = np.zeros(matrix.shape[1])
    coefficients[0] = math.log(start / (1 - start))
    value = _penalised_likelihood(matrix, target, penalty, coefficients)
    for _ in range(100):
        fitted = logistic(matrix @ coefficients)
        gradient = matrix.T @ (target - fitted) - penalty * coefficients
        if np.abs(gradient).max() <= FLAT * n:
            break
        curvature = (matrix.T * (fitted * (1 - fitted))) @ matrix + np.diag(penalty)
        step = np.linalg.lstsq(curvature, gradient)[0]
        for _ in range(30):
            trial = _penalised_likelihood(matrix, target, penalty, coefficients + step)
            if trial >= value:
                break
            step /= 2
        else:
            break  # no step gains anything: rounding is all that is left
        coefficients, value = coefficients + step, trial
    return logistic(matrix @ coefficients)


def logistic(predictor: Floats) -> Floats:
    """Return 1 / (1 + exp(-eta)) without overflow."""
    small = np.exp(-np.abs(predictor))
    return np.where(predictor < 0, small, 1.0) / (1.0 + small)


def _penalised_likelihood(matrix: Floats, target: Floats, penalty: Floats, coefficients: Floats) -> float:
    """Return the log-likelihood of a logistic regression less its ridge penalty."""
    predictor = matrix @ coefficients
    gain = target * predictor - np.logaddexp(0.0, predictor)
    return float(gain.sum() - (penalty * coefficients**2).sum() / 2)


def fit_tree(table: Floats, target: Floats) -> tuple[Floats, int]:
    """Return the fitted probabilities of a classification tree, and its number of leaves."""
    needs = "pmse with model='cart' needs the package scikit-learn"
    trees = checks.optional_package("sklearn.tree", needs, "stats")
    leaf = max(LEAF, math.ceil(LEAF_SHARE * target.size))
    tree = trees.DecisionTreeClassifier(min_samples_leaf=leaf, random_state=0)
    tree.fit(table, target)
    return tree.predict_proba(table)[:, 1], int(tree.get_n_leaves())


def _require_enough_records(model: str, records: int, parameters: int) -> None:
    """Raise NotApplicable if the stacked records are too few for the model."""
    if model == "cart" and records < 2 * LEAF:
        raise checks.NotApplicable(
            f"pmse with model=cart needs at least {LEAF} complete records and the data have {records // 2}; "
            "use model=main"
        )
    if model != "cart" and parameters >= records / 2:
        remedy = "model=main or fewer columns" if model == "quadratic" else "fewer columns"
        raise checks.NotApplicable(
            f"pmse with model={model} has {parameters} parameters for {records} stacked records; use {remedy}"
        )


def propensities(x: Floats, y: Floats, model: str) -> tuple[Floats, dict[str, float]]:
    """Return each stacked record's fitted probability of being masked, and the model's size."""
    table = np.vstack((x, y))
    target = np.repeat([0.0, 1.0], [len(x), len(y)])
    columns = table.shape[1]
    _require_enough_records(
        model, len(table), 1 + columns + (model == "quadratic") * columns * (columns + 1) // 2
    )
    if model == "cart":
        fitted, leaves = fit_tree(table, target)
        return fitted, {"leaves": float(leaves)}
    white = whiten(model_columns(table, model))
    return fit_logistic(white, target), {"parameters": 1.0 + white.shape[1]}


def score_pmse(comparison: Comparison, *, model: str = "quadratic", detail: bool = False, **_: bool) -> Score:
    """Return the score of pMSE divided by its largest value, from 0 to 1."""
    checks.one_of("model", model, MODELS)
    x, y = complete_values("pmse", comparison)
    fitted, about = propensities(x, y, model)
    n, share = fitted.size, len(y) / fitted.size
    raw = float(((fitted - share) ** 2).sum() / n)
    parts = {"pmse": raw}
    free = about.get("parameters", 1.0) - 1
    notes = []
    if free:
        parts["ratio"] = raw / (free * (1 - share) ** 2 * share / n)
        if parts["ratio"] < 1:
            notes.append(
                f"a pmse ratio of {parts['ratio']:.2g} is no proof of utility: where masked records are "
                "paired with original ones it lies far below 1 of itself"
            )
    if model == "main":
        notes.append("pmse with model=main sees means alone: microaggregated and permuted columns score 0")
    value = min(1.0, raw / (share * (1 - share)))
    return whole_file_score("pmse", comparison, value, parts=parts | about, notes=notes, detail=detail)


@metric(
    title="pMSE, propensity score mean squared error",
    place=90,
    needs="table",
    score=score_pmse,
    explain=partial(
        sentence_of,
        text="the model separates masked from original records to {:.2%}, where 0% is a random guess and "
        "100% certainty",
        kept="the model cannot separate masked from original records at all",
    ),
    reference="Woo, Reiter, Oganian & Karr 2009, doi:10.29012/jpc.v1i1.568",
    parameters=(Parameter("model", str, "quadratic", "model that separates the files", choices=MODELS),),
    by_variable=False,
    paired=False,
    default=False,
)
def pmse(original: Any, masked: Any, *, model: str = "quadratic") -> float:
    """How well a model separates masked from original records: 0 not at all, 1 perfectly.

    0 means that the model cannot separate the files, 1 that it never errs. A small value is no
    proof of utility: records that are paired score far less than a fresh sample would, and a model sees
    only what it is built from. Main effects score 0 for microaggregation and for columns permuted
    independently, whatever these destroyed.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy; `original` may be a `Microdata`. Records with a missing cell in
        either file are left out; weights play no part.
    model : str
        "quadratic": logistic regression on the standardised columns, their squares and their products;
        "main": on the columns alone; "cart": a classification tree whose leaves hold at least 1 % of
        the stacked records and at least 20 of them (needs scikit-learn: the extra "stats").

    Returns
    -------
    float
        pMSE / (c (1 - c)). The score's parts hold pMSE itself, its standardised ratio, and the
        number of the model's parameters or leaves.

    Notes
    -----
    pMSE is the mean of (p - c)**2 over the N stacked records, p the fitted probability that a record
    is a masked one, c the share of masked records. The ratio is pMSE / ((k - 1) (1 - c)**2 c / N) with k
    parameters, 1 on average for synthetic data drawn from a true model; two independent samples
    score about 2. Redundant columns do not count as parameters. A ridge of 1e-10 on the variance of the
    linear predictor keeps the model finite where the files can be separated perfectly, and changes
    no printed digit elsewhere.

    References
    ----------
    Woo, Reiter, Oganian & Karr 2009, Global measures of data utility for microdata masked for
    disclosure limitation, doi:10.29012/jpc.v1i1.568.
    Snoke, Raab, Nowok, Dibben & Slavkovic 2018, General and specific utility measures for synthetic
    data, doi:10.1111/rssa.12358.

    Examples
    --------
    >>> import sdckit as sdc
    >>> round(sdc.pmse([1, 2, 3, 4], [2, 3, 4, 5], model="main"), 4)
    0.1672
    """
