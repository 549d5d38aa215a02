"""What is printed on the terminal, the texts of errors, and how signals and faults end a command."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import textwrap
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sdckit.core.text import printable
from sdckit.request.options import with_flags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    from rich.table import Table


WIDTH = 120  # characters of a line if the output is no terminal
TEXT = 20  # characters that a column of longer text has at least
LONGEST = 1_000  # characters of an error or a warning
PACKAGE = Path(__file__).parent
STANDARD = 3  # input, output and errors
GONE = {
    "--log": "no log is kept; write `2> FILE` after the command to keep its warnings and errors",
    "--ranks": "no table of ranks is made; write --variables --metrics rank_mae,brmae",
}
EXPECTED = (click.ClickException, MemoryError, ValueError, TypeError, OSError)  # errors that get one line
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
    if as_json:
        from sdckit.request.results import as_json as text_of  # noqa: PLC0415 - not needed for --help

        print_line(text_of(rows))
    elif as_csv:
        import polars as pl  # noqa: PLC0415

        print_csv(pl.DataFrame(rows))
    return as_json or as_csv


def usage_error_text(error: click.ClickException) -> str:
    """Return the text of a click error as one line in the style of this package."""
    if isinstance(error, click.NoSuchOption) and error.option_name in GONE:
        return f"{error.option_name} is gone: {GONE[error.option_name]}"
    text = re.sub(
        r"\. \(?Did you mean (.*?)\?\)?$", r" (did you mean \1?)", error.format_message().rstrip(".")
    )
    context = getattr(error, "ctx", None)
    return f"{text[:1].lower()}{text[1:]}; see {context.command_path if context else 'sdckit'} --help"


def error_text(error: BaseException) -> str:
    """Return the text that the command line prints for one of the expected errors."""
    if isinstance(error, click.ClickException):
        return usage_error_text(error)
    if isinstance(error, MemoryError):
        return "not enough memory for these data; use fewer columns or a larger machine"
    system = isinstance(error, OSError) and error.errno is not None
    return f"{error}; check disk space and permissions" if system else str(error)


def prepare_streams() -> None:
    """Replace closed streams by the null device, and print characters that an encoding lacks as escapes.

    Else the next file that is opened would take the place of a closed stream, and get what libraries print.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) < STANDARD:
        os.set_inheritable(handle, True)
    os.close(handle)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - until the end
    with suppress(AttributeError, ValueError):  # a replaced stream
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


class Ended(SystemExit):
    """The end of a command by a signal; its notes say what is left."""


def exit_on_signals() -> None:
    """Let signals that end the process clean up first, as Ctrl-C does; those that are ignored stay so."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        with suppress(ValueError):  # a thread that is not the main one
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _end)


def _end(number: int, _frame: object) -> None:
    """Raise the end of a command by a signal."""
    raise Ended(128 + number)


def discard_output(name: str) -> None:
    """Send what is left to be printed on a stream, which takes no more, to the null device."""
    with suppress(AttributeError, OSError, ValueError):  # a replaced stream has no handle
        os.dup2(os.open(os.devnull, os.O_WRONLY), getattr(sys, name).fileno())


def finish(code: int | str | None) -> None:
    """End the process with an exit code, also where a stream takes no more text."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except (OSError, ValueError):
            discard_output(name)
    sys.exit(code)


def fault_text(error: BaseException) -> str:
    """Return the type of an error and the innermost line of this package that it passed.

    Parameters
    ----------
    error
        The error; its message is left out, as it may hold a value of the file.

    Returns
    -------
    str
        Such as "KeyError at sdckit/app/panel.py:88".

    Examples
    --------
    >>> fault_text(KeyError("a value"))
    'KeyError outside of sdckit'
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    places = [
        f"{path.relative_to(PACKAGE.parent).as_posix()}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if (path := Path(frame.f_code.co_filename)).is_relative_to(PACKAGE)
    ]
    return (
        f"{type(error).__name__} at {places[-1]}" if places else f"{type(error).__name__} outside of sdckit"
    )


def print_fault(error: BaseException) -> None:
    """Print one line on an error to standard error."""
    print_to_stderr("internal error", fault_text(error))
