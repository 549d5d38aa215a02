"""The maskings of the study, and a sweep over them under the study's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.selection.sweeping import sweep

if TYPE_CHECKING:
    from sdckit.metrics.original import Original

SWAPPING = {"p": "0.001:0.3:0.001", "bound": "exclusive", "start": "highest"}
GRIDS: dict[str, tuple[str, dict[str, Any]]] = {  # what the tables call it: the method and its grid
    "mdav": ("mdav", {"k": "1:30"}),
    "noise": ("noise", {"percent": "1:300"}),
    "correlated_noise": ("correlated_noise", {"percent": "1:300", "scale": "variance"}),
    "rank_swap": ("rank_swap", {"tails": 0.05, **SWAPPING}),
    "rank_swap_no_tails": ("rank_swap", {"tails": 0.0, **SWAPPING}),  # ours, beside the note's four
}
KEYS = ["dataset", "method", "parameters", "setting"]  # of a setting
SEED = 20  # of a study on public data, so that everybody sees the same figures


def swept(original: Original, plan: dict[str, list[Any]], **how: Any) -> pl.DataFrame:
    """A sweep with one row per masked file, under the study's names of methods."""
    no_tails = pl.col("parameters").str.contains("tails=0,", literal=True)
    return (
        sweep(original, plan, **how)
        .table.pivot("metric", index=[*KEYS, "replication"], values="value", maintain_order=True)
        .with_columns(method=pl.when(no_tails).then(pl.lit("rank_swap_no_tails")).otherwise("method"))
    )
