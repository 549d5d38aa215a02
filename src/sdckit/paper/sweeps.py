"""A sweep over the maskings of the study, with the study's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.paper.design import UNTAILED
from sdckit.selection.sweeping import sweep

if TYPE_CHECKING:
    from sdckit.metrics.original import Original

KEYS = ["dataset", "method", "parameters", "setting"]  # of a setting
SEED = 20  # of a study on public data, so that everybody sees the same figures


def swept(original: Original, plan: dict[str, list[Any]], **how: Any) -> pl.DataFrame:
    """Return a sweep with one row per masked file, with the study's names of methods."""
    no_tails = pl.col("parameters").str.contains("tails=0,", literal=True)
    return (
        sweep(original, plan, **how)
        .table.pivot("metric", index=[*KEYS, "replication"], values="value", maintain_order=True)
        .with_columns(method=pl.when(no_tails).then(pl.lit(UNTAILED)).otherwise("method"))
    )
