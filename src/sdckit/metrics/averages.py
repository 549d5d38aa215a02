"""Means over variables, over cells and over the variables of a record, where cells may be missing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.score import Values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.metrics.comparison import Comparison

    Rows = Bools | Ints | slice


def mean_over_variables(variables: Floats) -> float:
    """Return the mean of the variables' values that are not NaN; NaN where all are."""
    known = [value for value in variables.tolist() if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def pooled_means(sums: Floats, weights: Floats) -> Values:
    """Return sum / weight for each variable and for all cells together; NaN where the weight is 0."""
    known = weights > 0
    if known.all():
        return Values(float(sums.sum() / weights.sum()), sums / weights)
    overall = float(sums[known].sum() / weights[known].sum()) if known.any() else math.nan
    return Values(overall, divide_or_nan(sums, weights))


def divide_or_nan(total: Floats, count: Floats) -> Floats:
    """Return each total divided by its count; NaN where the count is 0."""
    return np.divide(total, count, out=np.full(total.size, np.nan), where=count > 0)


def record_means(n: int, costs: Iterable[tuple[Rows, Floats | float]]) -> Floats:
    """Return the mean cost of each of n records over its variables; NaN for a record without a cost.

    `costs` has, for each variable, some rows and the cost of each.
    """
    total, count = np.zeros(n), np.zeros(n)
    for rows, cost in costs:
        total[rows] += cost
        count[rows] += 1
    return divide_or_nan(total, count)


def add_suppressed(comparison: Comparison, costs: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return each variable's summed costs and weights with its suppressed cells added at cost 1."""
    gone = comparison.suppressed_weight
    return costs + gone, weights + gone


def penalise_suppressed(comparison: Comparison, variables: Floats, empty: Bools | None = None) -> Floats:
    """Return each variable's mean with its suppressed cells counted as 1, the largest loss.

    Variables in `empty`, by default those that are NaN, have too few cells for a value: only their
    suppressed cells count.
    """
    if not comparison.counts.suppressed.any():
        return variables
    empty = np.isnan(variables) if empty is None else empty
    kept, gone = comparison.kept_weight, comparison.suppressed_weight
    shares = kept * np.where(empty, 0.0, variables) + gone
    return np.divide(shares, kept + gone, out=np.full(comparison.p, np.nan), where=~empty | (gone > 0))
