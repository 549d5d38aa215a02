"""The Score of the literature: one weighted mean of information loss and disclosure risk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.core.registry import METRICS
from sdckit.kernels.sums import deviations, powers_of_two
from sdckit.metrics.pair import Pair, pair_of
from sdckit.risk.distances import mean_or_nan

if TYPE_CHECKING:
    from sdckit.arrays import Floats

WEIGHTS = (0.5, 0.125, 0.125, 0.25)


def weighted_score(
    il: float, dld: float, pld: float, id_: float, *, weights: Sequence[float] = WEIGHTS
) -> float:
    """Return the weighted mean of loss, distance-based and probabilistic linkage, and interval disclosure.

    >>> round(weighted_score(0.30, 0.20, 0.10, 0.40), 4)
    0.2875
    """
    shares = [checks.checked_share("a weight", weight) for weight in weights]
    if len(shares) != 4 or not math.isclose(math.fsum(shares), 1.0):
        raise ValueError(f"the weights are {tuple(weights)!r}; give four that sum to 1")
    return math.fsum(weight * part for weight, part in zip(shares, (il, dld, pld, id_), strict=True))


def score(original: Any, masked: Any, *, weights: Sequence[float] = WEIGHTS) -> float:
    """Weighted mean of information loss and disclosure risk, for ranking methods as the literature does.

    0 means neither loss nor risk, 1 the largest of both; neither is ever reached. Unchanged data and
    data without any trace of the original both score about 0.5, so the number alone says nothing about
    one release: look at the parts. The formula could not be checked against its primary source and is
    experimental; for the same reason it is no metric of `evaluate`.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be a `Microdata`.
    weights : sequence of four numbers
        Weights of information loss, distance-based linkage, probabilistic linkage and interval
        disclosure; they sum to 1. Later papers use others.

    Returns
    -------
    float
        0.5 IL + 0.125 DLD + 0.125 PLD + 0.25 ID with the default weights.

    Notes
    -----
    IL is the mean of five terms: mean variation |a - b| / |a| of the cells, of the means, of the variances
    and of the covariances (variances among them), leaving out changed zeros, and the mean absolute change
    of the correlations. Each term is cut at 1 here, since none but the last has a largest value. A term
    that the data do not have, such as correlations of a single variable, is left out. DLD is `dbrl`, ID
    is `rid`. There is no probabilistic linkage here: its weight goes to the distance-based one. Survey
    weights change nothing.

    References
    ----------
    Domingo-Ferrer & Torra 2001, A quantitative comparison of disclosure control methods for microdata,
    in Confidentiality, Disclosure and Data Access, Elsevier.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.score([1, 2, 3, 4], [1, 2, 3, 4])
    0.5
    """
    pair = pair_of(original, masked)
    linked = METRICS["dbrl"].score(pair).value.overall
    enclosed = METRICS["rid"].score(pair).value.overall
    return weighted_score(information_loss(pair), linked, linked, enclosed, weights=weights)


def information_loss(pair: Pair) -> float:
    """Return the mean of the five `loss_terms`, each cut at 1; NaN where there is none."""
    terms = [min(1.0, term) for term in loss_terms(pair).values() if not math.isnan(term)]
    return math.fsum(terms) / len(terms) if terms else math.nan


def loss_terms(pair: Pair) -> dict[str, float]:
    """Return relative changes of cells, means, variances, covariances and correlations; NaN without data."""
    unit = powers_of_two(pair.original.values)  # relative changes have no unit, and squares stay in range
    x, y = pair.original.values / unit, pair.masked / unit
    both = ~np.isnan(x) & ~np.isnan(y)
    x, y = np.where(both, x, np.nan), np.where(both, y, np.nan)
    pairs = list(combinations_with_replacement(range(pair.p), 2))
    covariances = np.array([[_covariance_and_correlation(file, *ij) for ij in pairs] for file in (x, y)])
    same = np.array([i == j for i, j in pairs])
    moves = np.abs(covariances[0, ~same, 1] - covariances[1, ~same, 1])
    return {
        "cells": _mean_relative_change(x[both], y[both]),
        "means": _mean_relative_change(
            *(np.array([mean_or_nan(column[~np.isnan(column)]) for column in file.T]) for file in (x, y))
        ),
        "variances": _mean_relative_change(*covariances[:, same, 0]),
        "covariances": _mean_relative_change(*covariances[..., 0]),
        "correlations": mean_or_nan(moves[~np.isnan(moves)]),
    }


def _mean_relative_change(ours: Floats, theirs: Floats) -> float:
    """Return the mean of |a - b| / |a|; unchanged zeros count 0, changed zeros are left out."""
    counts = (ours != 0) | (theirs == 0)
    changes = (np.abs(ours - theirs) / np.where(ours == 0, 1.0, np.abs(ours)))[counts]
    return mean_or_nan(changes[~np.isnan(changes)])


def _covariance_and_correlation(values: Floats, i: int, j: int) -> tuple[float, float]:
    """Return covariance and correlation of columns i and j over the records that have both."""
    u, v = values[~np.isnan(values[:, [i, j]]).any(1)][:, [i, j]].T
    if u.size < 2:
        return math.nan, math.nan
    u, v = deviations(u[:, None])[:, 0], deviations(v[:, None])[:, 0]
    scale = math.sqrt((u @ u) * (v @ v))
    return float(u @ v / (u.size - 1)), float(u @ v / scale) if scale > 0 else math.nan
