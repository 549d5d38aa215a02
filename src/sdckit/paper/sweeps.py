"""Measure masked files of the study, with the study's names of methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.paper.design import UNTAILED
from sdckit.selection.microdata import Microdata

if TYPE_CHECKING:
    from sdckit.metrics.original import Original

KEYS = ["dataset", "method", "parameters", "setting"]  # columns that identify a setting
SEED = 20  # fixed, as the data are public: every run of the study gives the same figures


def measure_files(
    original: Original, plan: dict[str, list[Any]], *, name: str, **options: Any
) -> pl.DataFrame:
    """Run a sweep; return a table with one row per masked file and one column per metric."""
    no_tails = pl.col("parameters").str.contains("tails=0,", literal=True)
    return (
        Microdata(original, name=name)
        .sweep(plan, **options)
        .table.pivot("metric", index=[*KEYS, "replication"], values="value", maintain_order=True)
        .with_columns(method=pl.when(no_tails).then(pl.lit(UNTAILED)).otherwise("method"))
    )
