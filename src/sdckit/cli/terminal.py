"""What is printed on the terminal."""

from __future__ import annotations

import ast
import math
import os
import re
import shlex
import shutil
import sys
import textwrap
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from sdckit.cli import json_output
from sdckit.cli.streams import Ended
from sdckit.core.checks import as_sentence, number, plural, printable, shortened
from sdckit.core.registry import public_value
from sdckit.core.scenarios import exposed_content, exposed_of, meets_limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl
    from rich.table import Table

    from sdckit.metrics.evaluation_result import Evaluation, Knowledge


WIDTH = 120  # characters of a line if the output is no terminal
TEXT = 20  # characters that a column of longer text has at least
MANY = 10  # largest number of names that are listed in full
LONGEST = 1_000  # characters of an error or a warning
LABEL = 12  # characters of the labels in lists of metrics and methods
ARGUMENT = re.compile(  # of the library's functions, as its errors and notes name them
    r"\b(columns|confidential|data|decimal_comma|delimiter|drop|encoding|engine|estimates|groups|key"
    r"|made_by|max_loss|known|method|na|overwrite|private|recode|scratch|table|unit|unknown|untouched|weights)=(True|\[.*?\]|'[^']*'|\"[^\"]*\")?"
)
LEVEL = re.compile(
    "unrelated|^guessing among|^ties leave"
)  # parts of explanations that state a level or a range
ESTIMATES = 12  # declared estimates in a table, those that changed most
OTHER_NAMES = {
    "method": "made-by",
    "made_by": "made-by-command",
    "estimates": "estimate",
}  # options that are not named like their argument


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


def _option_for(argument: re.Match[str]) -> str:
    """Return the command-line option for an argument of the library, such as --na NA for na=['NA']."""
    flag = "--" + OTHER_NAMES.get(argument[1], argument[1].replace("_", "-"))
    if argument[2] in {None, "True"}:
        return flag
    try:
        value = ast.literal_eval(argument[2])
    except (SyntaxError, ValueError):  # no argument, but a name that looks like one
        return argument[0]
    words = [value] if isinstance(value, str) else value
    return " ".join(f"{flag} {shlex.quote(word) if word.isprintable() else repr(word)}" for word in words)


def with_options(text: str) -> str:
    """Return an error or a note of the library with Python arguments in its remedy replaced by options."""
    fact, mark, remedy = text.rpartition("; ")
    return f"{fact}{mark}{ARGUMENT.sub(_option_for, remedy)}" if mark else text


def one_line(text: str) -> str:
    """Return an error or a warning as the command line prints it: on one line of some length, with options.

    What is too long is cut in the middle, as the remedy stands at the end.
    """
    line = printable(" ".join(with_options(str(text)).split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST * 3 // 4]} … {line[-LONGEST // 4 :]}"


def print_to_stderr(kind: str, text: str) -> None:
    """Print one line to standard error: its kind, such as "error", and the text with options."""
    line = one_line(text)
    with suppress(OSError, ValueError):  # an exit code is left where this stream takes no text
        print(f"{kind}: {line}", file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def resumable(folder: Path | None) -> Iterator[None]:
    """Let Ctrl-C or a signal inside the `with` say that finished runs are kept in a folder, if any."""
    try:
        yield
    except (KeyboardInterrupt, Ended) as stop:
        if folder is not None:
            stop.add_note(f"finished runs are in '{folder}'; the same command resumes")
        raise


def check_format(given: dict[str, Any]) -> None:
    """Raise ValueError if both JSON and CSV output are asked for."""
    if given["as_json"] and given["as_csv"]:
        raise ValueError("--json and --csv exclude each other; give one of them")


def join_names(names: Sequence[str], *, whole: bool = False) -> str:
    """Return names joined by commas; of more than ten names only the first, unless `whole`."""
    if whole or len(names) <= MANY:
        return ", ".join(names) or "none"
    return shortened(names, MANY - 1)


def _without_levels(meaning: str) -> str:
    """Return the explanation of a value without the parts that other columns of the table have."""
    first, *rest = meaning.split("; ")
    return "; ".join([first, *(part for part in rest if not LEVEL.search(part))])


def evaluation_table(result: Evaluation) -> Table:
    """Return a rich table of an evaluation's whole-file values with their meaning."""
    tied = result.summary["tie_low"].is_not_null().any()
    rows = []
    for row in result.summary.iter_rows(named=True):
        ties = "-" if row["tie_low"] is None else f"{number(row['tie_low'])} to {number(row['tie_high'])}"
        meaning = _without_levels(result.meaning[row["metric"]])
        figures = [number(row["value"]), number(row["random"]), *([ties] if tied else [])]
        rows.append([row["metric"], *figures, meaning])
    columns = ["metric", "value", "by chance", *(["tie range"] if tied else []), "what it means"]
    table = table_of(columns, rows, left=1)
    table.columns[-1].ratio = 1
    table.expand = True
    return table


def table_by(result: Evaluation, rows_by: str) -> Table:
    """Return a rich table with one row per variable or stratum and one column per metric."""
    import polars as pl  # noqa: PLC0415

    other = "stratum" if rows_by == "variable" else "variable"
    part = result.table.filter((pl.col(other) == "all") & (pl.col(rows_by) != "all"))
    metrics = part["metric"].unique(maintain_order=True).to_list()  # some have a value for the file only
    labels = part[rows_by].unique(maintain_order=True).to_list()
    values = {(row[rows_by], row["metric"]): row["value"] for row in part.iter_rows(named=True)}
    rows = [[label, *(number(values.get((label, name))) for name in metrics)] for label in labels]
    return table_of([rows_by, *metrics], rows)


def detail_tables(result: Evaluation, given: dict[str, Any]) -> list[Table]:
    """Return the tables by variable and by stratum that the options ask for."""
    asked = {"variable": given["variables"], "stratum": given["by"]}
    return [table_by(result, rows_by) for rows_by, wanted in asked.items() if wanted]


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


def publishable(result: Evaluation, given: dict[str, Any]) -> Evaluation:
    """Return the evaluation without figures that one record dominates, unless --private-output is given."""
    from sdckit.metrics.evaluation_result import public_evaluation  # noqa: PLC0415 - not needed for --help

    return result if given.get("private_output") else public_evaluation(result)


def knowledge_lines(knowledge: Knowledge | None) -> list[str]:
    """Return two lines: what the risks assume the intruder to know, and the columns published unmasked."""
    if knowledge is None:
        return []
    return [f"Risk {knowledge.sentence}.", as_sentence(knowledge.unmasked_sentence)]


def exposed_lines(result: Evaluation, about: Mapping[str, Any]) -> list[str]:
    """Return a line on the exposed records of a file; `about` has the number of all. None if not measured."""
    found = exposed_of(result.parts)
    return [] if found is None else [as_sentence(found.sentence(about.get("n")))]


def scenario_tables(result: Evaluation) -> list[Table]:
    """Return a rich table of the scenarios: what is known, each risk, its limit, and whether it is met."""
    if result.scenarios is None:
        return []
    words = {True: "met", False: "not met", None: "-"}
    rows = [
        [name, known, risk, number(value), number(limit), words[met]]
        for name, known, risk, value, limit, met, *_ in result.scenarios.rows()
    ]
    heads = ["scenario", "intruder knows", "risk", "value", "limit", "limit is"]
    return [table_of(heads, rows, right=3, left=1)]


def estimate_tables(result: Evaluation) -> list[Table]:
    """Return a rich table of the declared estimates that changed most, with exact figures."""
    if result.estimates is None:
        return []
    found = result.estimates.table.sort("overlap", nulls_last=True, maintain_order=True)
    heads = {"original": "original", "masked": "masked", "change": "change, %", "change_in_se": "in s.e."}
    columns = [*heads, "overlap"]
    rows = [
        [row["estimate"], row["domain"], *(number(row[name]) for name in columns)]
        for row in found.head(ESTIMATES).iter_rows(named=True)
    ]
    names = ["estimate", "domain", *(heads.get(name, name) for name in columns)]
    table = table_of(names, rows, right=2)
    shown = f"{len(rows)} of {found.height}" if found.height > len(rows) else str(found.height)
    table.title = f"{shown} declared {plural(found.height, 'estimate')}, least overlap first; for you alone"
    table.title_justify, table.title_style = "left", ""
    return [table]


def show_result(
    result: Evaluation,
    given: dict[str, Any],
    *,
    heads: Sequence[str] = (),
    extra: Sequence[Any] = (),
    notes: Sequence[str] = (),
    more: dict[str, Any] | None = None,
    about: Mapping[str, Any],
    verdicts: Sequence[Verdict] = (),
) -> None:
    """Print an evaluation as a table, JSON or CSV, with notes; `about` is what `file_facts` returns."""
    everything = [*result.notes, *notes]
    if given["as_json"] or given["as_csv"]:
        result = publishable(result, given)
    if given["as_json"]:
        content = (
            json_output.evaluation_content(result, given)
            | {"notes": everything}
            | json_output.limits_content(verdicts, given)
        )
        print_line(json_output.as_json(dict(about) | content | (more or {})))
    elif given["as_csv"]:
        print_csv(result.table)
    elif not given["quiet"]:
        known = knowledge_lines(result.knowledge)
        for line in [*heads[:1], *exposed_lines(result, about), *heads[1:], *known]:
            print_note(line)
        print_tables([evaluation_table(result), *scenario_tables(result), *estimate_tables(result), *extra])
        for one in verdicts:
            print_note(one.line)
        for note in everything:
            print_note(f"note: {note}")


def print_notes(notes: Sequence[str], given: dict[str, Any]) -> None:
    """Print notes, one on a line, unless --quiet is given."""
    for note in notes if not given["quiet"] else ():
        print_note(f"note: {note}")


def show_results(
    results: dict[str, Evaluation],
    given: dict[str, Any],
    *,
    notes: Sequence[str],
    about: Mapping[str, Any],
    verdicts: Sequence[Verdict] = (),
) -> None:
    """Print the evaluations of several files as one table, JSON or CSV, with notes."""
    import polars as pl  # noqa: PLC0415

    if given["as_json"] or given["as_csv"]:
        results = {name: publishable(result, given) for name, result in results.items()}
    if given["as_json"]:
        files = {
            name: exposed_content(r.parts)
            | {
                "table": r.table.rows(named=True),
                "meaning": r.meaning,
                "knowledge": json_output.known_columns(r),
            }
            for name, r in results.items()
        }
        content = {"files": files, "notes": list(notes)} | json_output.limits_content(verdicts, given)
        print_line(json_output.as_json(dict(about) | content))
    elif given["as_csv"]:
        tables = [
            result.table.select(pl.lit(name).alias("file"), pl.all()) for name, result in results.items()
        ]
        print_csv(pl.concat(tables))
    elif not given["quiet"]:
        values = {name: dict(r.summary.select("metric", "value").rows()) for name, r in results.items()}
        metrics = list(dict.fromkeys(metric for found in values.values() for metric in found))
        rows = [[metric, *(number(found.get(metric)) for found in values.values())] for metric in metrics]
        for name, result in results.items():
            for line in exposed_lines(result, about):
                print_note(f"{name}: {line}")
        known = [result.knowledge for result in results.values()]
        for line in dict.fromkeys(line for one in known for line in knowledge_lines(one)):
            print_note(line)
        print_tables([table_of(["metric", *values], rows)])
        for one in verdicts:
            print_note(one.line)
        for note in notes:
            print_note(f"note: {note}")


def show_rows(rows: list[dict[str, str]], given: dict[str, bool]) -> bool:
    """Print rows as JSON or CSV if the options ask for one of them; return whether they do."""
    check_format(given)
    if given["as_json"]:
        print_line(json_output.as_json(rows))
    elif given["as_csv"]:
        import polars as pl  # noqa: PLC0415

        print_csv(pl.DataFrame(rows))
    return given["as_json"] or given["as_csv"]


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


def print_held_warnings() -> None:
    """Print all warnings held back so far, and let later ones be printed at once."""
    click.get_current_context().obj.show()


@contextmanager
def warnings_named_after(file: str) -> Iterator[None]:
    """Begin the errors and warnings that are raised in a `with` block with the name of a file."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            yield
        except (ValueError, TypeError) as error:
            raise ValueError(f"'{file}': {error}") from error
    for entry in seen:
        warnings.warn(f"'{file}': {entry.message}", stacklevel=2)


@dataclass(frozen=True)
class Verdict:
    """A limit and the measured value that counts against it: of an estimate, the upper end of its interval.

    `value` is NaN where there is none, and the limit is then missed. `withheld` is True for a figure that one
    record dominates.
    """

    metric: str
    value: float
    limit: float
    estimated: bool = False
    withheld: bool = False
    file: str | None = None  # of several

    @property
    def met(self) -> bool:
        """True if the value is there and at most the limit."""
        return meets_limit(self.value, self.limit)

    @property
    def fact(self) -> str:
        """The comparison in words, such as "linkage is 0.0832, at most 0.1"."""
        start = f"{self.file}: " if self.file else ""
        if math.isnan(self.value):
            return f"{start}{self.metric} has no value, and its limit is {self.limit:g}"
        interval = " at the upper end of its interval" if self.estimated else ""
        compared = "at most" if self.met else "above"
        value = f"{number(public_value(self.metric, self.value))}{interval}"
        value = "withheld" if self.withheld else value
        return f"{start}{self.metric} is {value}, {compared} {self.limit:g}"

    @property
    def line(self) -> str:
        """The line to print: whether the limit is met, and the comparison."""
        return f"limit {'met' if self.met else 'missed'}: {self.fact}"

    def to_dict(self, *, private: bool) -> dict[str, Any]:
        """Return the verdict as a JSON-ready dict; without `private`, a withheld value is None."""
        value = self.value if private else None if self.withheld else public_value(self.metric, self.value)
        found = {"metric": self.metric, "value": value, "limit": self.limit, "met": self.met}
        return found | ({"file": self.file} if self.file else {})
