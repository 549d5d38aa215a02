"""Printed output of the commands: tables, JSON, CSV and one-line errors."""

from __future__ import annotations

import ast
import json
import math
import os
import re
import shlex
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from sdckit.core.text import number, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from rich.console import Console
    from rich.table import Table

    from sdckit.core.parameters import Parameter
    from sdckit.core.registry import Method
    from sdckit.metrics.evaluation import Evaluation

WIDTH = 120  # where the output is no terminal
MANY = 10  # so many names are listed in full
LABEL = 12  # width of the first column of cards
ARGUMENT = re.compile(  # of the library's functions that read and write files, as its errors name them
    r"\b(data|decimal_comma|delimiter|encoding|key|na|overwrite)=(True|\[.*?\]|'[^']*'|\"[^\"]*\")?"
)


def console() -> Console:
    """Return the console; where the output is not a terminal, COLUMNS or 120 characters wide."""
    from rich.console import Console  # noqa: PLC0415 - not needed for --help

    told = os.environ.get("COLUMNS", "")
    width = int(told) if told.isdecimal() and int(told) else WIDTH
    # Names of columns are not markup: "[/b]" is printed as it stands.
    return Console(width=None if sys.stdout.isatty() else width, highlight=False, markup=False, emoji=False)


def say(text: str) -> None:
    """Print a line of text unchanged."""
    print(text)  # noqa: T201 - printing is this module's job


def _flag(argument: re.Match[str]) -> str:
    """Return the command-line option for an argument of the library, such as --na NA for na=['NA']."""
    flag = "--" + argument[1].replace("_", "-")
    if argument[2] in {None, "True"}:
        return flag
    value = ast.literal_eval(argument[2])
    words = [value] if isinstance(value, str) else value
    return " ".join(f"{flag} {shlex.quote(word) if word.isprintable() else repr(word)}" for word in words)


def with_flags(text: str) -> str:
    """Return an error of the library with the arguments in its remedy, its last part, as options."""
    fact, mark, remedy = text.rpartition("; ")
    return f"{fact}{mark}{ARGUMENT.sub(_flag, remedy)}" if mark else text


def complain(kind: str, text: str) -> None:
    """Print one line on stderr."""
    print(f"{kind}: {' '.join(with_flags(str(text)).split())}", file=sys.stderr)  # noqa: T201


def check_format(given: dict[str, Any]) -> None:
    """Raise an error for two output formats."""
    if given["as_json"] and given["as_csv"]:
        raise ValueError("--json and --csv exclude each other; give one of them")


def listed(names: Sequence[str], *, whole: bool = False) -> str:
    """Join names; of a long list the first ones, unless `whole`."""
    if whole or len(names) <= MANY:
        return ", ".join(names) or "none"
    return shortened(names, MANY - 1)


class Warnings:
    """Warnings of a command, each shown once, and held back until the input has passed all checks."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.held = True

    def add(self, text: str) -> None:
        """Record a warning; show it at once if warnings are no longer held back."""
        if text not in self.seen:
            self.seen.append(text)
            if not self.held:
                complain("warning", text)

    def release(self) -> None:
        """Show the warnings held back, and from now on each at once."""
        if self.held:
            self.held = False
            for text in self.seen:
                complain("warning", text)


def grid(columns: list[str], rows: list[list[str]], *, right: int = 1) -> Table:
    """Return a plain table; the columns from the `right`-th on hold numbers."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place >= right else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def evaluation_table(result: Evaluation) -> Table:
    """Return a table of whole-file values with their meaning."""
    tied = result.summary["tie_low"].is_not_null().any()
    rows = []
    for row in result.summary.iter_rows(named=True):
        ties = "-" if row["tie_low"] is None else f"{number(row['tie_low'])} to {number(row['tie_high'])}"
        meaning = result.meaning[row["metric"]].split(";")[0]  # the rest stands in the other columns
        figures = [number(row["value"]), number(row["random"]), *([ties] if tied else [])]
        rows.append([row["metric"], *figures, meaning])
    columns = ["metric", "value", "random order", *(["tie range"] if tied else []), "what it means"]
    table = grid(columns, rows)
    table.columns[-1].justify = "left"
    table.columns[-1].ratio = 1
    table.expand = True
    for column in table.columns[:-1]:
        column.no_wrap = True
    return table


def crossed(result: Evaluation, rows_by: str) -> list[Table]:
    """Return tables with one row per variable or stratum and one column per metric, as wide as the screen."""
    import polars as pl  # noqa: PLC0415

    other = "stratum" if rows_by == "variable" else "variable"
    part = result.table.filter((pl.col(other) == "all") & (pl.col(rows_by) != "all"))
    metrics = part["metric"].unique(maintain_order=True).to_list()  # some have a value for the file only
    labels = part[rows_by].unique(maintain_order=True).to_list()
    values = {(row[rows_by], row["metric"]): row["value"] for row in part.iter_rows(named=True)}
    room = console().width - max(map(len, [rows_by, *labels]), default=0)
    tables, shown = [], []
    for place, metric in enumerate(metrics):
        shown.append(metric)
        following = metrics[place + 1 : place + 2]
        if not following or sum(max(len(name), 9) + 3 for name in [*shown, *following]) > room:
            rows = [[label, *(number(values.get((label, name))) for name in shown)] for label in labels]
            tables.append(grid([rows_by, *shown], rows))
            shown = []
    return tables


def rank_tables(ranks: pl.DataFrame) -> list[Table]:
    """Return the rank statistics in three tables that fit a screen."""
    distances = ["variable", "n", *(name for name in ranks.columns if name.startswith("rank_"))]
    rules = ["min", "average", "expected", "max"]
    absolute = ["variable", *(f"brmae_{rule}" for rule in rules)]
    squared = ["variable", *(f"brmse_{rule}" for rule in [*rules, "tie_sd"])]
    return [
        grid(
            [name.replace("_", "\n", 1) for name in names],
            [[_cell(row[name]) for name in names] for row in ranks.iter_rows(named=True)],
        )
        for names in (distances, absolute, squared)
    ]


def _cell(value: Any) -> str:
    return number(value) if value is None or isinstance(value, float) else str(value)


def cards(heads: list[str], bodies: list[dict[str, str]]) -> str:
    """Return one paragraph per entry: its name, then a line per fact, as wide as the screen."""
    width = min(console().width, WIDTH)
    lines = []
    for head, body in zip(heads, bodies, strict=True):
        lines.append(head)
        for label, text in body.items():
            start = f"  {label:<{LABEL}}"
            lines += textwrap.wrap(text, width, initial_indent=start, subsequent_indent=" " * len(start))
        lines.append("")
    return "\n".join(lines).rstrip()


def as_json(content: Any) -> str:
    """Return JSON text with null for NaN."""
    return json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_plain(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None if math.isnan(content) else str(content)
    return content


def parameter_text(parameter: Parameter) -> str:
    """Return a parameter with its default and range, as text."""
    from sdckit.core.parameters import range_text  # noqa: PLC0415 - not needed for --help

    span = f",{range_text(parameter)}" if parameter.low is not None else ""
    choices = f": {' or '.join(parameter.choices)}" if parameter.choices else span
    default = f"{parameter.default:g}" if isinstance(parameter.default, float) else parameter.default
    default = "none" if default in ((), {}) else default
    return f"{parameter.name}={default} ({parameter.text}{choices})"


def rows_text(method: Method) -> str:
    """Return whether the rows of a method stand for original records, as text."""
    if method.paired:
        return "paired"
    unless = f" unless {method.paired_by} is set" if method.paired_by else ""
    return f"stand for no original record{unless}"


def show_result(
    result: Evaluation,
    given: dict[str, Any],
    *,
    heads: Sequence[str] = (),
    extra: Sequence[Any] = (),
    notes: Sequence[str] = (),
    more: dict[str, Any] | None = None,
) -> None:
    """Print an evaluation as a table, JSON or CSV."""
    everything = [*result.notes, *notes]
    if given["as_json"]:
        content = {"table": result.table.rows(named=True), "meaning": result.meaning, "notes": everything}
        content["parts"] = result.parts
        say(as_json(content | (more or {})))
    elif given["as_csv"]:
        say(result.table.write_csv().rstrip("\n"))
    elif not given["quiet"]:
        for head in heads:
            say(head)
        screen = console()
        for table in (evaluation_table(result), *extra):
            screen.print(table)
        for note in everything:
            say(f"note: {note}")


def show_results(results: dict[str, Evaluation], given: dict[str, Any], *, notes: Sequence[str]) -> None:
    """Print the evaluations of several files: one line each, or as JSON or CSV."""
    import polars as pl  # noqa: PLC0415

    if given["as_json"]:
        files = {
            name: {"table": r.table.rows(named=True), "meaning": r.meaning} for name, r in results.items()
        }
        say(as_json({"files": files, "notes": list(notes)}))
    elif given["as_csv"]:
        tables = [
            result.table.select(pl.lit(name).alias("file"), pl.all()) for name, result in results.items()
        ]
        say(pl.concat(tables).write_csv().rstrip("\n"))
    elif not given["quiet"]:
        values = {name: dict(r.summary.select("metric", "value").rows()) for name, r in results.items()}
        metrics = list(dict.fromkeys(metric for found in values.values() for metric in found))
        rows = [[metric, *(number(found.get(metric)) for found in values.values())] for metric in metrics]
        console().print(grid(["metric", *values], rows))
        for note in notes:
            say(f"note: {note}")


def show_rows(rows: list[dict[str, str]], given: dict[str, bool]) -> None:
    """Print a list of metrics or methods as a table, JSON or CSV."""
    check_format(given)
    if given["as_json"]:
        say(as_json(rows))
    elif given["as_csv"]:
        import polars as pl  # noqa: PLC0415

        say(pl.DataFrame(rows).write_csv().rstrip("\n"))
    else:
        heads = [" - ".join(list(row.values())[:2]) for row in rows]
        say(cards(heads, [dict(list(row.items())[2:]) for row in rows]))
