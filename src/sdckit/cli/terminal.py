"""What is printed on the terminal."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from contextlib import suppress
from typing import TYPE_CHECKING

from sdckit.core.text import printable
from sdckit.request.options import with_flags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    from rich.table import Table


WIDTH = 120  # characters of a line if the output is no terminal
TEXT = 20  # characters that a column of longer text has at least
LONGEST = 1_000  # characters of an error or a warning
EXCLUDE = "--json and --csv exclude each other; give one of them"
LABEL = 12  # characters of the labels in lists of metrics and methods


def print_line(text: str) -> None:
    """Print lines of text to standard output, with characters escaped that terminals would obey."""
    print(printable(text, lines=True))  # noqa: T201 - printing is this module's job


def print_csv(table: pl.DataFrame) -> None:
    """Print a table as CSV to standard output, each record on one line."""
    import polars as pl  # noqa: PLC0415 - not needed for --help

    texts = [column for column in table if column.dtype == pl.String]
    safe = [pl.Series(c.name, [text and printable(text) for text in c], pl.String) for c in texts]
    print_line(table.with_columns(safe).write_csv().rstrip("\n"))


def screen_width() -> int:
    """Return the characters of a line: COLUMNS, else those of the terminal, else 120."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH


def table_of(heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: int = 1, left: int = 0) -> Table:
    """Return a rich table without lines between its columns.

    Columns from the `right`-th on hold numbers, which are aligned right and never broken, but the last `left`
    ones, which hold text again. Text and names of columns are wrapped where the screen has no room.
    """
    from rich import box  # noqa: PLC0415 - not needed for --help
    from rich.cells import cell_len  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, head in enumerate(heads):
        longest = max((cell_len(printable(row[at])) for row in rows), default=0)
        is_number = right <= at < len(heads) - left
        table.add_column(
            printable(head, lines=True),
            justify="right" if is_number else "left",
            min_width=longest if is_number else min(longest, TEXT),
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(printable, row))
    return table


def print_tables(tables: Sequence[Table]) -> None:
    """Print rich tables, one below the other; the terminal wraps lines that are still too long."""
    from rich.console import Console  # noqa: PLC0415 - not needed for --help

    # Names of columns are not markup: "[/b]" is printed as it stands.
    screen = Console(width=screen_width(), highlight=False, markup=False, emoji=False)
    for table in tables:
        screen.print(table, crop=False)


def print_note(text: str) -> None:
    """Print a text as one line to standard output, whatever names it holds."""
    print_line(printable(text))


def one_line(text: str) -> str:
    """Return an error or a warning as the command line prints it: on one line of some length, with options.

    What is too long is cut in the middle, as the remedy stands at the end.
    """
    line = printable(" ".join(with_flags(str(text)).split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST * 3 // 4]} … {line[-LONGEST // 4 :]}"


def print_to_stderr(kind: str, text: str) -> None:
    """Print one line to standard error: its kind, such as "error", and the text with options."""
    line = one_line(text)
    with suppress(OSError, ValueError):  # an exit code is left where this stream takes no text
        print(f"{kind}: {line}", file=sys.stderr, flush=True)  # noqa: T201


def card_text(head: str, card: Mapping[str, Sequence[str]]) -> str:
    """Return a head, then each label with its lines, wrapped; labels without lines are left out."""
    width = min(screen_width(), WIDTH)
    lines = textwrap.wrap(head, width)
    for label, texts in card.items():
        for text, start in zip(
            texts, [f"  {label:<{LABEL}}", *[" " * (LABEL + 2)] * len(texts)], strict=False
        ):
            lines += textwrap.wrap(text, width, initial_indent=start, subsequent_indent=" " * (LABEL + 2))
    return "\n".join(lines)


def list_text(texts: Mapping[str, str], shorter: Mapping[str, str]) -> str:
    """Return a line for each name with its text; all have the shorter one if a line would not fit."""
    width = screen_width()
    start = max(map(len, texts)) + 2
    chosen = texts if max(map(len, texts.values())) + start <= width else shorter
    lines = []
    for name, text in chosen.items():
        lines += textwrap.wrap(text, width, initial_indent=f"{name:<{start}}", subsequent_indent=" " * start)
    return "\n".join(lines)


class Warnings:
    """Collected warnings of a command, each printed once, and not before the input has passed all checks."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.held: bool = True

    def add(self, text: str) -> None:
        """Record a warning; print it at once if warnings are no longer held back."""
        if text not in self.seen:
            self.seen.append(text)
            if not self.held:
                print_to_stderr("warning", text)

    def show(self) -> None:
        """Print the warnings held back so far; later ones are printed at once."""
        if self.held:
            self.held = False
            for text in self.seen:
                print_to_stderr("warning", text)


def show_rows(rows: list[dict[str, str]], *, as_json: bool, as_csv: bool) -> bool:
    """Print rows as JSON or CSV if one of them is asked for; return whether it is."""
    if as_json and as_csv:
        raise ValueError(EXCLUDE)
    if as_json:
        from sdckit.request.results import as_json as text_of  # noqa: PLC0415 - not needed for --help

        print_line(text_of(rows))
    elif as_csv:
        import polars as pl  # noqa: PLC0415

        print_csv(pl.DataFrame(rows))
    return as_json or as_csv
