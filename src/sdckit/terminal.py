"""What the commands print: aligned tables for people, JSON and CSV for machines, one line for errors."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console
    from rich.table import Table

    from sdckit.evaluation import Evaluation

WIDTH = 120  # where the output is no terminal


def console(*, stderr: bool = False) -> Console:
    """The screen; a fixed width where the output goes into a file or a pipe."""
    from rich.console import Console  # noqa: PLC0415 - not needed for --help

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else WIDTH, highlight=False, soft_wrap=False)


def say(text: str) -> None:
    """Print a line of text as it is."""
    print(text)  # noqa: T201 - printing is this module's job


def complain(kind: str, text: str) -> None:
    """Print one line on stderr."""
    print(f"{kind}: {' '.join(str(text).split())}", file=sys.stderr)  # noqa: T201


def number(value: float | None) -> str:
    """Four significant digits; a dash where there is no value."""
    if value is None or math.isnan(value):
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 1e6 or abs(value) < 1e-4:
        return f"{value:.3e}"
    return f"{value:,.4f}" if abs(value) < 100 else f"{value:,.1f}"


def grid(columns: list[str], rows: list[list[str]], *, right: int = 1, title: str | None = None) -> Table:
    """A plain table; the columns from the `right`-th on hold numbers."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place >= right else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def evaluation_table(result: Evaluation) -> Table:
    """Whole-file values with what they mean."""
    rows = []
    for row in result.summary.iter_rows(named=True):
        ties = "-" if row["tie_low"] is None else f"{number(row['tie_low'])} to {number(row['tie_high'])}"
        meaning = result.meaning[row["metric"]].split(";")[0]  # the rest stands in the other columns
        rows.append(
            [row["metric"], number(row["value"]), number(row["random"]), ties, meaning]
        )
    table = grid(["metric", "value", "random order", "tie range", "what it means"], rows)
    table.columns[-1].justify = "left"
    table.columns[-1].ratio = 1
    table.expand = True
    for column in table.columns[:-1]:
        column.no_wrap = True
    return table


def crossed(result: Evaluation, rows_by: str) -> Table:
    """One row per variable or stratum, one column per metric."""
    import polars as pl  # noqa: PLC0415

    other = "stratum" if rows_by == "variable" else "variable"
    part = result.table.filter((pl.col(other) == "all") & (pl.col(rows_by) != "all"))
    metrics = result.summary["metric"].to_list()
    labels = part[rows_by].unique(maintain_order=True).to_list()
    values = {(row[rows_by], row["metric"]): row["value"] for row in part.iter_rows(named=True)}
    rows = [[label, *(number(values[label, metric]) for metric in metrics)] for label in labels]
    return grid([rows_by, *metrics], rows)


def frame_table(frame: pl.DataFrame, columns: list[str]) -> Table:
    """A dataframe as text."""
    rows = [[_cell(row[name]) for name in columns] for row in frame.iter_rows(named=True)]
    return grid(columns, rows)


def _cell(value: Any) -> str:
    return number(value) if value is None or isinstance(value, float) else str(value)


def as_json(content: Any) -> str:
    """JSON without NaN, which is no JSON."""
    return json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_plain(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None if math.isnan(content) else str(content)
    return content
