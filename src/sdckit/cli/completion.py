"""Completion in shells: names of methods, metrics and columns, and files that can be read.

It answers while somebody types, so that nothing heavy is imported: names come from a file that
`tools/make_reference.py` writes, and columns from the first line of the data. Whatever goes wrong, nothing is
proposed.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from sdckit.io.suffixes import CSV_SUFFIXES, PARQUET_SUFFIXES, READABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

VARIABLE = "_SDCKIT_COMPLETE"  # set by the shell while it asks
NAMES = Path(__file__).with_name("names.json")
PLAIN = re.compile(r"[\w.-]+")  # names that a shell takes without quotation marks
HEADER = 1_000_000  # characters in which the names of the columns must end


def prepare() -> None:
    """Teach click's completion for bash to leave no blank after names that a value follows."""
    if VARIABLE in os.environ:
        add_completion_class(_Bash)


class _Bash(BashComplete):
    """Completion in bash, which takes = for the end of a word."""

    source_template = BashComplete.source_template.replace(
        "    return 0", '    [[ "${COMPREPLY[0]}" == *[=.] ]] && compopt -o nospace\n\n    return 0', 1
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, those that bash cut at = put together, and the one at it."""
        words, incomplete = super().get_completion_args()
        joined: list[str] = []
        for word in words:
            if joined and (word == "=" or joined[-1].endswith("=")) and not joined[-1].startswith("--"):
                joined[-1] += word
            else:
                joined.append(word)
        if joined and joined[-1].endswith("=") and joined[-1] != "=":
            incomplete = joined.pop() + incomplete
        return joined, incomplete


class DataPath(click.Path):
    """The path of a file; shells propose those with the suffix of a format that can be read."""

    def __init__(self, *suffixes: str) -> None:
        super().__init__(path_type=Path)
        self.suffixes = suffixes  # those of all formats if none is given

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the files that can be read; where there are folders, too, the shell lists all files."""
        folder, begin = os.path.split(incomplete)
        try:
            found = [entry for entry in Path(folder or ".").iterdir() if entry.name.startswith(begin)]
            shown = [entry for entry in found if begin or not entry.name.startswith(".")]
            if not any(entry.is_dir() for entry in shown):
                names = sorted(entry.name for entry in shown if self.fits(entry))
                if names:
                    return [CompletionItem(os.path.join(folder, name)) for name in names]  # noqa: PTH118 - ./ stays
        except OSError:
            pass
        return super().shell_complete(ctx, param, incomplete)

    def fits(self, path: Path) -> bool:
        """Return True for a file whose name ends in a suffix that can be read."""
        return path.name.lower().endswith(self.suffixes or READABLE)


def words(*known: str) -> Completer:
    """Return a completion by these words."""
    return lambda _ctx, _param, incomplete: _beginning_with(incomplete, known)


def columns(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Propose columns of the data file that stands before; of a list, its last name."""
    return _in_list(incomplete, {name: "" for name in _columns_of(ctx) if PLAIN.fullmatch(name)})


def metrics(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Propose metrics; of a list, its last name."""
    return _in_list(incomplete, {name: one["text"] for name, one in _names("metrics").items()})


def metric(family: str | None = None, end: str = "") -> Completer:
    """Return a completion by the metrics of a family, each followed by `end`."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Propose a metric."""
        known = {name: one for name, one in _names("metrics").items() if family in (None, one["family"])}
        return _beginning_with(incomplete, {f"{name}{end}": one["text"] for name, one in known.items()})

    return complete


def methods(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Propose a method."""
    return _beginning_with(incomplete, {name: one["text"] for name, one in _names("methods").items()})


def grids(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Propose a method, and once it is there one of its parameters, such as mdav.k=."""
    name, dot, _ = incomplete.partition(".")
    known = _names("methods")
    if not dot:
        return _beginning_with(incomplete, {f"{name}.": one["text"] for name, one in known.items()})
    parameters = known.get(name, {}).get("parameters", {})
    return _beginning_with(incomplete, {f"{name}.{one}=": text for one, text in parameters.items()})


def settings(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Propose a parameter of the method that is named before, or of any if none is."""
    named = ctx.params.get("method") or ctx.params.get("made_by")
    known = _names("methods")
    chosen = [known[named]] if named in known else known.values()
    return _beginning_with(
        incomplete, {f"{name}=": text for one in chosen for name, text in one["parameters"].items()}
    )


def _beginning_with(incomplete: str, known: Iterable[str] | dict[str, str]) -> list[CompletionItem]:
    """Return the names that begin with what is typed, with their texts if these are given."""
    texts = known if isinstance(known, dict) else {}
    begun = [name for name in known if name.startswith(incomplete)] if "=" not in incomplete else []
    return [CompletionItem(name, help=texts.get(name)) for name in begun]  # a value after = is not known


def _in_list(incomplete: str, known: dict[str, str]) -> list[CompletionItem]:
    """Return names for the last place of a list with commas, without those that it has already."""
    before, comma, last = incomplete.rpartition(",")
    free = {name: text for name, text in known.items() if name not in before.split(",")}
    begun = _beginning_with(last, free)
    return [CompletionItem(f"{before}{comma}{item.value}", help=item.help) for item in begun]


def _names(kind: str) -> dict[str, Any]:
    """Return the methods or the metrics with their texts; none if their file cannot be read."""
    try:
        return dict(json.loads(NAMES.read_text(encoding="utf-8"))[kind])
    except (OSError, ValueError, KeyError):
        return {}


def _columns_of(ctx: click.Context) -> list[str]:
    """Return the names of the columns of the first data file on the command line; none on any error."""
    named = [ctx.params.get("data"), ctx.params.get("original"), *ctx.args]
    paths = [Path(word) for word in named if word]
    path = next((path for path in paths if DataPath().fits(path) and path.exists()), None)
    if path is None:
        return []
    try:
        return header_of(path, ctx.params)
    except Exception:  # noqa: BLE001 - a file may be broken in any way, and the user is typing
        return []


def header_of(path: Path, given: dict[str, Any]) -> list[str]:
    """Return the names of the columns of a file, from its first bytes alone; none for other formats."""
    name = path.name.lower()
    if name.endswith(PARQUET_SUFFIXES):
        import polars as pl  # noqa: PLC0415 - only for these files

        return list(pl.read_parquet_schema(path))
    if not name.endswith(CSV_SUFFIXES):
        return []
    from sdckit.io.packing import content_of, is_packed  # noqa: PLC0415 - only for these files

    usual = "\t" if ".tsv" in name else ";" if given.get("decimal_comma") else ","
    encoding = codecs.lookup(given.get("encoding") or "utf-8").name
    with path.open("rb") as raw:
        content = content_of(path, raw) if is_packed(path) else raw
        text = io.TextIOWrapper(content, "utf-8-sig" if encoding == "utf-8" else encoding, newline="")
        lines = text.read(HEADER).splitlines(keepends=True)
    return next(csv.reader(lines, delimiter=given.get("delimiter") or usual), [])
