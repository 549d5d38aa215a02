"""Output files and printed overview of the command `sweep`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import polars as pl

from sdckit.cli.terminal import table_of
from sdckit.core import registry
from sdckit.io import atomic, drafts, files, output_folder
from sdckit.report import charts
from sdckit.selection.sweep_folder import PLAN
from sdckit.selection.sweep_result import overview

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from sdckit.selection.sweep_result import Sweep

PRIVATE = "private"
EXACT = "estimates.csv"  # in the private folder
FORMATS = ("parquet", "csv")


def check_folder(folder: Path, data: Path) -> None:
    """Raise an error unless the folder is new, empty or of an earlier sweep, and holds no input."""
    drafts.sweep_drafts(folder)
    begun = folder.is_dir() and {file.name for file in folder.iterdir()} == {PRIVATE}
    if not begun:  # else a sweep was killed before it wrote a result
        output_folder.check_folder(folder, f"{PRIVATE}/{PLAN}")
    for file in (path for form in FORMATS for path in _output_files(folder, form)):
        if file.exists() and data.exists() and file.samefile(data):
            raise ValueError(f"'{file}' is the input, which is never changed; choose another folder with -o")


def _output_files(folder: Path, form: str) -> list[Path]:
    """Return the paths of table, summary and chart in a folder; `form` is the table's suffix."""
    return [folder / f"sweep.{form}", folder / "summary.csv", folder / "sweep.svg"]


def write_files(found: Sweep, folder: Path, form: str) -> list[Path]:
    """Write table, summary and chart of a sweep, all or none; delete an earlier table in another format.

    Exact losses over declared estimates go to the private folder.
    """
    table, summary, picture = _output_files(folder, form)
    public, private = found.public(), folder / PRIVATE / EXACT
    exact = found.table.filter(pl.col("metric").is_in(list(registry.estimate_losses())))
    with ExitStack() as drafted:  # which are renamed when all of them are whole
        drafted.enter_context(files.write_draft(table, public.table, overwrite=True))
        drafted.enter_context(files.write_draft(summary, public.summary, overwrite=True))
        draft = drafted.enter_context(atomic.atomic(picture, overwrite=True))
        draft.write_text(charts.svg(public.plot()), encoding="utf-8")
        if exact.height:
            drafted.enter_context(files.write_draft(private, exact, overwrite=True, private=True))
    if not exact.height:
        private.unlink(missing_ok=True)
    for other in FORMATS:
        if other != form:
            (folder / f"sweep.{other}").unlink(missing_ok=True)
    return [table, summary, picture]


def overview_table(found: Sweep) -> Table:
    """Return a rich table of each method's measures at both ends of its grid: medians of replications."""
    names, rows = overview(found.summary)
    return table_of(names, rows, right=2)
