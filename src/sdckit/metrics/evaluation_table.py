"""The table of an evaluation: its columns, and the rows of each score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from sdckit.core.registry import Metric
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.comparison import Comparison
    from sdckit.metrics.score import Score

SCHEMA: dict[Any, Any] = {  # typed for polars, which takes more kinds of keys than text
    "metric": pl.String,
    "family": pl.String,
    "variable": pl.String,
    "stratum": pl.String,
    "value": pl.Float64,
    "random": pl.Float64,
    "tie_low": pl.Float64,
    "tie_high": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "n_used": pl.Int64,
    "n_left_out": pl.Int64,
    "n_suppressed": pl.Int64,
    "n_imputed": pl.Int64,
    "n_both_missing": pl.Int64,
}
WHOLE = (pl.col("variable") == "all") & (pl.col("stratum") == "all")  # the rows of the whole file
FIGURES = [name for name, kind in SCHEMA.items() if kind != pl.String]


def tidy_table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return rows of the evaluation as a polars table with the columns and types of `SCHEMA`."""
    floats = {name: pl.Float64 if name in FIGURES else kind for name, kind in SCHEMA.items()}
    return pl.DataFrame(rows, schema=floats).with_columns(pl.col(pl.Float64).fill_nan(None)).cast(SCHEMA)


def table_figures(comparison: Comparison, score: Score) -> Floats:
    """Return the numbers of a score as a matrix: a row for the whole file, then one per variable."""
    levels = (score.value, score.random, score.tie_low, score.tie_high)
    counts = comparison.counts
    numbers = (score.used, score.left_out, counts.suppressed, counts.imputed, counts.neither)
    none = np.full(comparison.p, np.nan)
    columns = [*(none if level is None else level.variables for level in levels), none, none, *numbers]
    return np.vstack([whole_file_figures(comparison, score), np.array(columns, np.float64).T])


def whole_file_figures(comparison: Comparison, score: Score) -> list[float]:
    """Return the numbers of a score for the whole file, in the order of `FIGURES`."""
    levels = (score.value, score.random, score.tie_low, score.tie_high)
    found = [math.nan if level is None else level.overall for level in levels]
    found += [math.nan, math.nan] if score.estimate is None else score.estimate[:2]
    found += [sum(score.used.tolist()), sum(score.left_out.tolist())]  # faster than numpy for a few columns
    if comparison.complete:
        return [*found, 0.0, 0.0, 0.0]
    counts = comparison.counts
    return [*found, *(float(cells.sum()) for cells in (counts.suppressed, counts.imputed, counts.neither))]


def table_rows(metric: Metric, stratum: str, comparison: Comparison, score: Score) -> list[dict[str, Any]]:
    """Return the rows of the evaluation's table for one metric in one stratum."""
    label = {"metric": metric.name, "family": metric.family, "stratum": stratum}
    return [
        {**label, "variable": variable, **dict(zip(FIGURES, line, strict=True))}
        for variable, line in zip(
            ["all", *comparison.columns], table_figures(comparison, score).tolist(), strict=True
        )
        if variable == "all" or metric.by_variable
    ]
