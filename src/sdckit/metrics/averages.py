"""Means over variables, over cells and over the variables of a record, where cells may be missing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.score import Values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.metrics.pair import Pair

    Rows = Bools | Ints | slice


def mean_of(variables: Floats) -> float:
    """Return the mean over the variables that have a value; NaN where none has."""
    known = [value for value in variables.tolist() if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def pooled(sums: Floats, weights: Floats) -> Values:
    """Return the mean over the cells of each variable and over all cells, from sums; NaN without a cell."""
    known = weights > 0
    if known.all():
        return Values(float(sums.sum() / weights.sum()), sums / weights)
    overall = float(sums[known].sum() / weights[known].sum()) if known.any() else math.nan
    return Values(overall, divided(sums, weights))


def divided(total: Floats, count: Floats) -> Floats:
    """Return each total divided by its count; NaN where the count is 0."""
    return np.divide(total, count, out=np.full(total.size, np.nan), where=count > 0)


def record_means(n: int, costs: Iterable[tuple[Rows, Floats | float]]) -> Floats:
    """Return the mean cost of each record over the variables in which it has one; NaN where it has none.

    `costs` has, for each variable, some rows and the cost of each.
    """
    total, count = np.zeros(n), np.zeros(n)
    for rows, cost in costs:
        total[rows] += cost
        count[rows] += 1
    return divided(total, count)


def weights_of(pair: Pair) -> Floats:
    """Return the weight of each record; ones where there are no weights."""
    return np.ones(pair.original.n) if pair.original.weights is None else pair.original.weights


def suppressed_weight(pair: Pair) -> Floats:
    """Return the weight of the cells of each variable that are missing in the masked file only."""
    return np.array([weights_of(pair)[pair.suppressed(j)].sum() for j in range(pair.p)])


def penalised(pair: Pair, variables: Floats, empty: Bools | None = None) -> Floats:
    """Add the suppressed cells of a variable to its mean as complete losses.

    Variables in `empty`, by default those that are NaN, have too few cells for a value: nothing but
    their suppressed cells counts.
    """
    empty = np.isnan(variables) if empty is None else empty
    kept = np.array([weights_of(pair)[pair.both(j)].sum() for j in range(pair.p)])
    gone = suppressed_weight(pair)
    shares = kept * np.where(empty, 0.0, variables) + gone
    return np.divide(shares, kept + gone, out=np.full(pair.p, np.nan), where=~empty | (gone > 0))
