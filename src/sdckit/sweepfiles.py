"""What the command `sweep` leaves in its folder, and what it prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from sdckit import files, folders, outputs, plots, terminal

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from sdckit.sweeping import Sweep

PRIVATE = "private"
FORMATS = ("parquet", "csv")


def check_folder(folder: Path) -> None:
    """Take a new or empty folder, or that of an earlier sweep; never anybody else's."""
    folders.check(folder, PRIVATE)


def write(found: Sweep, folder: Path, form: str) -> list[Path]:
    """Write table, summary and picture."""
    written = [folder / f"sweep.{form}", folder / "summary.csv", folder / "sweep.svg"]
    files.write(written[0], found.table, overwrite=True)
    files.write(written[1], found.summary, overwrite=True)
    with outputs.atomic(written[-1], overwrite=True) as draft:
        draft.write_text(plots.svg(found.plot()), encoding="utf-8")
    return written


def overview(found: Sweep) -> Table:
    """What each method costs at both ends of its grid: medians over the replications."""
    summary = found.summary
    metrics = summary["metric"].unique(maintain_order=True).to_list()
    rows = []
    for method in summary["method"].unique(maintain_order=True):
        part = summary.filter(pl.col("method") == method)
        settings = part["parameters"].unique(maintain_order=True)
        for setting in dict.fromkeys([settings[0], settings[-1]]):
            values = dict(part.filter(pl.col("parameters") == setting).select("metric", "value").rows())
            rows.append([method, setting, *(terminal.number(values[metric]) for metric in metrics)])
    return terminal.grid(["method", "parameters", *metrics], rows, right=2)
