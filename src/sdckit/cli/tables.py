"""Tables and sentences that fit on the screen: no number is ever broken; what has no room goes below."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sdckit.core.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

WIDTH = 120  # characters of a line if the output is no terminal
NARROW = 80  # on screens of fewer characters sentences are wrapped here, on others by the terminal
TEXT = 20  # characters that a column of longer text has at least
HEAD = 12  # characters of the longest piece of a column's name that is not cut
GAP, EDGES = 3, 2  # characters between columns, and at both ends of a line
PIECE = re.compile(r"[^\s_-]*[_-]|[^\s_-]+")  # names of columns are broken after these marks


def screen_width() -> int:
    """Return the characters of a line: COLUMNS, else those of the terminal, else 120."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH


def console() -> Console:
    """Return the rich console for output, as wide as the screen."""
    from rich.console import Console  # noqa: PLC0415 - not needed for --help

    # Names of columns are not markup: "[/b]" is printed as it stands.
    return Console(width=screen_width(), highlight=False, markup=False, emoji=False)


def wrapped(text: str) -> str:
    """Return a sentence wrapped at blanks if the screen is narrow; words, as paths, stay whole."""
    width = screen_width()
    if width >= NARROW:
        return text
    return textwrap.fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


@dataclass(frozen=True)
class _Column:
    """A column of a table: its name, its cells as texts, and whether these are numbers."""

    head: str
    cells: tuple[str, ...]
    is_number: bool

    @property
    def natural(self) -> int:
        """Characters of the longest line of the column."""
        return max(_length(line) for line in [*self.head.split("\n"), *self.cells])

    @property
    def least(self) -> int:
        """Fewest characters that the column needs: those of its numbers, or some for text that is wrapped."""
        return self.natural if self.is_number else min(self.natural, TEXT)

    def with_broken_head(self) -> _Column:
        """Return the column with its name on several lines, as short as its numbers if possible."""
        if not self.is_number or "\n" in self.head:
            return self
        pieces = [
            piece[at : at + HEAD] for piece in PIECE.findall(self.head) for at in range(0, len(piece), HEAD)
        ]
        room = max(map(_length, [*self.cells, *pieces]), default=0)
        lines = [""]
        for piece in pieces:
            joined = f"{lines[-1]}{' ' if lines[-1][-1:].isalnum() else ''}{piece}"
            if lines[-1] and _length(joined) > room:
                lines.append(piece)
            else:
                lines[-1] = joined
        return _Column("\n".join(lines), self.cells, is_number=True)


def _length(text: str) -> int:
    """Return how many places of a terminal a text takes."""
    from rich.cells import cell_len  # noqa: PLC0415 - not needed for --help

    return cell_len(text)


def fitting_tables(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: int = 1,
    left: int = 0,
    labels: int = 1,
) -> list[Table]:
    """Return rich tables that fit on the screen: one if it can be, else each with the first columns again.

    Columns from the `right`-th on hold numbers, which are aligned right and never broken, but the last `left`
    ones, which hold text again. The first `labels` columns are repeated in every table.
    """
    numbers = range(right, len(heads) - left)
    cells = [tuple(printable(row[at]) for row in rows) for at in range(len(heads))]
    columns = [
        _Column(printable(head, lines=True), cells[at], is_number=at in numbers)
        for at, head in enumerate(heads)
    ]
    broken = [column.with_broken_head() for column in columns]
    for choice in (columns, broken):
        if _total(choice) <= screen_width():
            return [_rich_table(choice)]
    groups: list[list[_Column]] = [[]]
    for column in broken[labels:]:
        if groups[-1] and _total([*broken[:labels], *groups[-1], column]) > screen_width():
            groups.append([])
        groups[-1].append(column)
    return [_rich_table([*broken[:labels], *group]) for group in groups]


def _total(columns: Sequence[_Column]) -> int:
    """Return the fewest characters of a line that a table of these columns needs."""
    return sum(column.least + GAP for column in columns) - GAP + EDGES


def _rich_table(columns: Sequence[_Column]) -> Table:
    """Return a rich table of these columns without lines between them."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(
            column.head,
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number,
            min_width=column.least,
            overflow="fold",
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    return table
