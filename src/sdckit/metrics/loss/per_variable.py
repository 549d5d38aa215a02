"""Helpers of metrics with one value per variable: scores, explaining sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.metrics.averages import mean_over_variables, penalise_suppressed
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sdckit.kernels.jit import Floats
    from sdckit.metrics.comparison import Comparison, VariableComparison


def measure_variables(
    measure: Callable[[VariableComparison], float], comparison: Comparison, *, least: int = 1
) -> Floats:
    """Return what `measure` finds for each variable; NaN with fewer than `least` shared cells."""
    variables = np.full(comparison.p, np.nan)
    for j in np.flatnonzero(comparison.counts.both >= least).tolist():
        variables[j] = measure(comparison.variable(j))
    return variables


def score_variables(
    comparison: Comparison,
    variables: Floats,
    *,
    missing: str = "pairwise",
    notes: Sequence[str] = (),
    per_record: bool = False,
) -> Score:
    """Return the score of a metric with a value per variable, whose mean is the file's value."""
    if missing == "penalise":
        variables = penalise_suppressed(comparison, variables)
    extra: dict[str, Any] = {"records": np.full(comparison.n, np.nan)} if per_record else {}
    none = np.zeros(comparison.p, np.int64)
    return Score(
        Values(mean_over_variables(variables), variables),
        comparison.counts.both,
        none,
        notes=tuple(notes),
        **extra,
    )


def explain_value(score: Score, sentence: str, kept: str) -> str:
    """Return `sentence` with the score's value filled in; the text `kept` for the value 0."""
    value = score.value.overall
    if math.isnan(value):
        return "there are no records to compare"
    return kept if value == 0 else sentence.format(value)
