"""Helpers of metrics with one value per variable: pairing by quantile, scores, explaining sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.metrics.averages import mean_over_variables, penalise_suppressed
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sdckit.kernels.jit import Floats
    from sdckit.metrics.pair import Pair

    Column = Callable[[Floats, Floats, Floats | None], float]


class CoupledColumns(NamedTuple):
    """Values of two columns at the same quantiles, cut into pieces of equal weight in both.

    `x` are original values in ascending order; `own` is the masked value of the same record, `y` the masked
    value at the same quantile; `weights` is the size of each piece. Without weights a piece is a record.
    """

    x: Floats
    own: Floats
    y: Floats
    weights: Floats


def couple_quantiles(x: Floats, y: Floats, weights: Floats | None) -> CoupledColumns:
    """Return two columns coupled by quantile: the k-th smallest of one beside that of the other."""
    if weights is None or not x.size:
        order = np.argsort(x, kind="stable")  # sums of ties, rounded alike on every CPU
        return CoupledColumns(x[order], y[order], np.sort(y), np.ones(x.size))
    by_x, by_y = np.lexsort((y, x)), np.lexsort((x, y))
    ends_x, ends_y = np.cumsum(weights[by_x]), np.cumsum(weights[by_y])
    ends_y = np.minimum(ends_y, ends_x[-1])  # the same total, added up in another order
    ends_y[-1] = ends_x[-1]
    ends = np.union1d(ends_x, ends_y)
    rows_x, rows_y = by_x[np.searchsorted(ends_x, ends)], by_y[np.searchsorted(ends_y, ends)]
    return CoupledColumns(x[rows_x], y[rows_x], y[rows_y], np.diff(ends, prepend=0.0))


def measure_variables(column: Column, pair: Pair, *, least: int = 1) -> Floats:
    """Return `column(x, y, weights)` for each variable; NaN with fewer than `least` shared cells."""
    variables = np.full(pair.p, np.nan)
    for j in np.flatnonzero(pair.counts.both >= least):
        variables[j] = column(*pair.cells(int(j)))
    return variables


def score_variables(
    pair: Pair,
    variables: Floats,
    *,
    missing: str = "pairwise",
    notes: Sequence[str] = (),
    per_record: bool = False,
) -> Score:
    """Return the score of a metric with a value per variable, whose mean is the file's value."""
    if missing == "penalise":
        variables = penalise_suppressed(pair, variables)
    extra: dict[str, Any] = {"records": np.full(pair.original.n, np.nan)} if per_record else {}
    none = np.zeros(pair.p, np.int64)
    return Score(
        Values(mean_over_variables(variables), variables), pair.counts.both, none, notes=tuple(notes), **extra
    )


def explain_value(score: Score, sentence: str, kept: str) -> str:
    """Return `sentence` with the score's value filled in; the text `kept` for the value 0."""
    value = score.value.overall
    if math.isnan(value):
        return "there are no records to compare"
    return kept if value == 0 else sentence.format(value)
