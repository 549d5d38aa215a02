"""Rank correlations of the metrics over masked files: with the amount of masking, and with each other.

`measured` has one row per masked file: `dataset`, `method`, `setting` (a point of the method's grid),
`replication` (from 1) and the losses, `brmae_<ties>` and `brmse_<ties>` for each rule for ties, `mae`,
`mse`, `il1` and `il1s`.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from sdckit.core import checks
from sdckit.metrics import METRICS
from sdckit.paper.design import NOTE_METHODS

if TYPE_CHECKING:
    from sdckit.arrays import Floats

BOUNDED = tuple(name for name, metric in METRICS.items() if metric.in_paper and metric.bounded)
UNBOUNDED = tuple(name for name, metric in METRICS.items() if metric.in_paper and not metric.bounded)
TIES = ("first", "average", "expected")
NO_TIES = "-"  # an unbounded loss against the grid involves no ranks of records
SERIES = ["dataset", "method", "replication"]
CASE = ["dataset", "method", "ties", "metric", "reference"]
SHARES = {
    **dict.fromkeys(["dataset", "method", "other_method", "metric", "other_metric"], pl.String),
    "pairs": pl.Int64,
    "share": pl.Float64,
}


class _Case(NamedTuple):
    """One correlation of a series: the two columns to correlate, and the labels of the result."""

    column: str
    other: str
    ties: str
    metric: str
    reference: str


def _correlation_cases() -> list[_Case]:
    """Return all correlations of the study: metrics with the grid, bounded with unbounded metrics."""
    found = [
        _Case(f"{metric}_{ties}", "setting", ties, metric, "parameter") for ties in TIES for metric in BOUNDED
    ]
    found += [_Case(metric, "setting", NO_TIES, metric, "parameter") for metric in UNBOUNDED]
    found += [
        _Case(metric, f"{bounded}_{ties}", ties, metric, bounded)
        for ties in TIES
        for bounded in BOUNDED
        for metric in UNBOUNDED
    ]
    return found


def spearman(column: str, other: str) -> pl.Expr:
    """Return a polars expression for Spearman's correlation of two columns, with mid-ranks for ties.

    0 means no monotone relation, 1 the same order, -1 the reversed order; null where a column is
    constant, holds a missing value or has fewer than two rows, because there is no answer then.

    Examples
    --------
    >>> frame = pl.DataFrame({"a": [1.0, 2.0, 2.0, 4.0], "b": [1.0, 3.0, 2.0, 4.0]})
    >>> round(frame.select(spearman("a", "b")).item(), 4)
    0.9487
    """
    pair = [pl.col(name).cast(pl.Float64) for name in (column, other)]
    # Polars ranks NaN as the largest number and skips null; a series with either has no correlation here.
    whole = pl.all_horizontal(*(values.is_not_null() & values.is_not_nan() for values in pair)).all()
    return pl.when(whole).then(pl.corr(*pair, method="spearman").fill_nan(None))


def correlations(measured: pl.DataFrame) -> pl.DataFrame:
    """Return Spearman correlations of metrics with the grid, and of bounded with unbounded metrics.

    1 means that both order the masked files of a series in the same way, 0 that their orders have
    nothing in common. A series is one replication of a method on a dataset over the whole grid.

    Returns
    -------
    polars.DataFrame
        `dataset`, `method`, `ties` ("first", "average", "expected"; "-" for an unbounded metric
        against the grid), `metric`, `reference` ("parameter", "brmae" or "brmse"), `replication`,
        `spearman` (null where there is none).
    """
    cases = _correlation_cases()
    labels = pl.DataFrame(cases, schema=_Case._fields, orient="row").with_row_index("case")
    values = [spearman(case.column, case.other).alias(str(i)) for i, case in enumerate(cases)]
    found = measured.group_by(SERIES, maintain_order=True).agg(values)
    long = found.unpivot(index=SERIES, variable_name="case", value_name="spearman")
    return (
        long.with_columns(pl.col("case").cast(pl.UInt32))
        .join(labels, on="case", maintain_order="left")
        .select(*CASE, "replication", "spearman")
    )


def summarise_replications(found: pl.DataFrame) -> pl.DataFrame:
    """Return extremes, quartiles and median of the correlations over the replications (R's type 7).

    Returns
    -------
    polars.DataFrame
        `dataset`, `method`, `ties`, `metric`, `reference`, `replications` (those that have a
        correlation), `min`, `q25`, `median`, `q75`, `max`.
    """
    value = pl.col("spearman")
    quartile = {"q25": 0.25, "median": 0.5, "q75": 0.75}
    return found.group_by(CASE, maintain_order=True).agg(
        value.count().alias("replications"),
        value.min().alias("min"),
        *(value.quantile(share, "linear").alias(name) for name, share in quartile.items()),
        value.max().alias("max"),
    )


def disagreement(
    measured: pl.DataFrame,
    *,
    ties: str = "first",
    replication: int = 1,
    methods: tuple[str, ...] = NOTE_METHODS,
) -> pl.DataFrame:
    """Return how often two metrics order two masked files of different methods differently.

    0 means that they always agree on which of the two lost more, 1/2 what two unrelated metrics
    reach, 1 that they always contradict each other. Correlations within a method cannot show this:
    there, more masking is more loss for every metric.

    Parameters
    ----------
    measured, ties, replication
        The masked files, the rule for ties of the bounded metrics, and which replication to take.
    methods : tuple of str
        Methods to compare; those without files are passed over.

    Returns
    -------
    polars.DataFrame
        `dataset`, `method` and `other_method` (both "all" over all pairs of methods), `metric` and
        `other_metric` (any two of the six), `pairs` of masked files, `share` ordered differently.

    Notes
    -----
    A pair that one metric ties and the other does not counts one half, a pair that both tie 0: the
    share is the mean of |sign - other sign| / 2. Every pair of files counts the same, so methods
    with many grid points weigh most. On Tarragona, brMAE and MSE order 12 % of the pairs
    differently, MAE and MSE 8 %.
    """
    checks.one_of("rule for ties", ties, TIES)
    chosen = measured.filter(pl.col("method").is_in(methods), replication=replication)
    rows: list[dict[str, Any]] = []
    for dataset in chosen["dataset"].unique(maintain_order=True):
        rows += _shares_by_methods(chosen.filter(dataset=dataset), ties, methods)
    by_methods = pl.DataFrame(rows, schema=SHARES)
    overall = by_methods.group_by("dataset", "metric", "other_metric", maintain_order=True).agg(
        pl.lit("all").alias("method"),
        pl.lit("all").alias("other_method"),
        pl.col("pairs").sum(),
        (pl.col("share") * pl.col("pairs")).sum() / pl.col("pairs").sum(),
    )
    return pl.concat([overall.select(by_methods.columns), by_methods]).with_columns(
        pl.col("share").fill_nan(None)
    )


def _shares_by_methods(files: pl.DataFrame, ties: str, methods: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the shares of differently ordered files of one data set for every two methods."""
    parts = {method: _losses_by_metric(files.filter(method=method), ties) for method in methods}
    present = [method for method in methods if parts[method]["mae"].size]
    return [
        {"dataset": files["dataset"][0], "method": method, "other_method": other} | row
        for method, other in combinations(present, 2)
        for row in _shares_ordered_differently(parts[method], parts[other])
    ]


def _losses_by_metric(files: pl.DataFrame, ties: str) -> dict[str, Floats]:
    """Return the losses of masked files as one array per metric, under one rule for ties."""
    columns = {metric: f"{metric}_{ties}" for metric in BOUNDED} | {metric: metric for metric in UNBOUNDED}
    return {metric: files[column].to_numpy() for metric, column in columns.items()}


def _shares_ordered_differently(files: dict[str, Floats], others: dict[str, Floats]) -> list[dict[str, Any]]:
    """Return, for each two metrics, the share of pairs of files that they order differently."""
    signs = {metric: np.sign(np.subtract.outer(files[metric], others[metric])) for metric in files}
    return [
        {
            "metric": metric,
            "other_metric": other,
            "pairs": signs[metric].size,
            "share": float(np.abs(signs[metric] - signs[other]).mean()) / 2,
        }
        for metric, other in combinations(signs, 2)
    ]
