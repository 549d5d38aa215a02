"""The command that describes data, and starts a job file."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from sdckit import terminal
from sdckit.core.description import describe_table, lowered_options
from sdckit.core.roles import asked_roles
from sdckit.core.table import Table
from sdckit.core.text import number
from sdckit.io import files
from sdckit.request.checks import check, check_output
from sdckit.request.draft import draft_text
from sdckit.request.options import OPTIONS
from sdckit.request.results import as_json, data_facts
from sdckit.request.toml import input_section, write_job
from sdckit.request.words import quoted_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table as RichTable

    from sdckit.core.description import Description
    from sdckit.request.options import Request


def run_describe(request: Request) -> None:
    """Read a file, and print its columns, their roles and recodings worth trying."""
    checked, path = check(request), request.output
    if path:
        check_output(path, [request.data], overwrite=request.overwrite, suffixes=(".toml",))
    source = files.read(request.data, checked.dialect)
    roles = checked.with_columns_of(request, source.frame.columns).roles
    table = Table(source.frame)
    found = describe_table(table, asked_roles(table, **roles), source.labelled)
    if path:
        content = draft_text(found, path, input_section(request, path.parent), request.data)
        write_job(path, content, overwrite=request.overwrite)
    show(found, request, data_facts(table.n, request.data))
    if path and not (request.as_json or request.as_csv):
        terminal.print_note(f"wrote {path}: edit it, then sdckit run {shlex.quote(str(path))}")


def show(found: Description, request: Request, about: Mapping[str, Any]) -> None:
    """Print a description as tables and sentences, JSON or CSV; `about` begins the JSON."""
    if request.as_json:
        terminal.print_line(as_json(dict(about) | found.to_dict()))
    elif request.as_csv:
        terminal.print_csv(found.table)
    else:
        terminal.print_tables([_columns_table(found)])
        if found.recodings.height:
            terminal.print_tables([_recodings_table(found)])
        if found.steps.height:
            terminal.print_tables([_steps_table(found)])
        for note in found.notes:
            terminal.print_note(note)
        terminal.print_note(f"options for these roles: {options_text(found.options)}")
        if found.steps.height:
            lowered = options_text(lowered_options(found.options, found.steps))
            terminal.print_note(
                f"options that bring the floor to {number(found.steps['floor'][-1])}: {lowered}"
            )


def _columns_table(found: Description) -> RichTable:
    """Return the rich table of the columns; a question mark follows a role that is not decided."""
    rows = [
        [
            row["column"],
            row["type"],
            f"{row['role']}{'' if row['decided'] else '?'}",
            *(f"{row[name]:,}" for name in ("missing", "distinct", "unique")),
            number(row["floor_without"]),
            row["reason"],
        ]
        for row in found.table.iter_rows(named=True)
    ]
    heads = ["column", "type", "role", "missing", "distinct", "once", "floor without", "why"]
    return terminal.table_of(heads, rows, right=3, left=1)


def _recodings_table(found: Description) -> RichTable:
    """Return the rich table of recodings, with figures of the file and of the column before and after."""
    rows = [
        [
            f"--recode {shlex.quote(row['column'] + '=' + row['recode'])}",
            *(f"{row[f'uniques_{when}']:.1%}" for when in ("before", "after")),
            *(number(row[f"{what}_{when}"]) for what in ("floor", "alone") for when in ("before", "after")),
        ]
        for row in found.recodings.iter_rows(named=True)
    ]
    heads = ["recoding", "uniques", "after", "floor", "after", "floor alone", "after"]
    return terminal.table_of(heads, rows)


def _steps_table(found: Description) -> RichTable:
    """Return the rich table of steps by which the floor goes down, one after the other."""
    rows = [["as it is", f"{found.uniques:.1%}", number(found.floor)]]
    for row in found.steps.iter_rows(named=True):
        value = row["value"] if row["option"] == "recode" else quoted_name(row["value"])
        step = f"--{row['option']} {shlex.quote(value)}"
        rows.append([step, f"{row['uniques']:.1%}", number(row["floor"])])
    return terminal.table_of(["one after the other", "uniques", "floor"], rows)


def options_text(options: dict[str, list[str]]) -> str:
    """Return the options of the command line that give these roles."""
    words = []
    for option, names in options.items():
        if option == "recode":
            words += [f"--recode {shlex.quote(name)}" for name in names]
        else:
            quoted = ",".join(map(quoted_name, names)) if OPTIONS[option].kind == "names" else names[0]
            words.append(f"--{option} {shlex.quote(quoted)}")
    return " ".join(words) or "none are needed"
