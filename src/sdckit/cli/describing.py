"""The commands that describe data and run job files."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from sdckit.cli import json_output, parsing, request, terminal
from sdckit.cli.request import input_section, job_of_options, words_of_job
from sdckit.core.checks import number
from sdckit.core.description import describe_table, lowered_options
from sdckit.core.roles import asked_roles
from sdckit.core.table import Table
from sdckit.io import files
from sdckit.job.draft import draft_text
from sdckit.job.fields import LEFT_OUT
from sdckit.job.toml import job_text, public_job_text, read_job, write_job

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from rich.table import Table as RichTable

    from sdckit.core.description import Description


SUFFIXES = (".toml",)
FLAGS = ("overwrite", "quiet", "as_json", "as_csv")  # options of `run` that it hands on


def run_job(path: Path, group: click.Group, given: Mapping[str, Any]) -> None:
    """Run `sdckit run`: read a job, and run its command with the options that the job stands for."""
    terminal.check_format(dict(given))
    job = read_job(path)
    command = group.commands[job.command]
    flags = [_flag(name) for name in FLAGS if given[name]]
    words = [*flags, *words_of_job(job, command)]
    with command.make_context(job.command, words, parent=click.get_current_context().parent) as context:
        command.invoke(context)


def check_target(given: Mapping[str, Any], inputs: Iterable[Path]) -> None:
    """Raise an error for a job file that could not be written, if --save-job names one."""
    if given["save_job"]:
        request.check_output(given["save_job"], inputs, overwrite=given["overwrite"], suffixes=SUFFIXES)


def keep_job(given: Mapping[str, Any], columns: Collection[str]) -> str:
    """Return the options of the running command as a report shows them; write them with --save-job.

    `columns` are those of the original file. Options that no job has are left out with a note.
    """
    context = click.get_current_context()
    path = given["save_job"]
    options = dict(given) | context.params
    shown = public_job_text(job_of_options(context.command, options, columns=columns))
    if path is None:
        return shown
    job = job_of_options(context.command, options, path.parent, columns)
    write_job(path, job_text(job), overwrite=given["overwrite"])
    if not given["quiet"]:
        terminal.print_to_stderr("note", f"wrote {path}")
        for name, reason in LEFT_OUT.items():
            if given.get(name) and name != "save_job":
                terminal.print_to_stderr("note", f"{_flag(name)} is not part of the job: {reason}")
    return shown


def _flag(name: str) -> str:
    """Return an option as it is written on the command line."""
    return f"--{name.removeprefix('as_').replace('_', '-')}"


DEFAULTS = {"metrics": (), "ties": "average", "missing": "pairwise", "seed": None, "rules": ()}
SINGLE = ("unit", "weights")  # options that name one column


def run(data: Path, given: dict[str, Any]) -> None:
    """Run `sdckit describe`: read a file, and print its columns, their roles and recodings worth trying."""
    checked = request.check_options(given | DEFAULTS)
    path = given["output"]
    if path:
        request.check_output(path, [data], overwrite=given["overwrite"], suffixes=SUFFIXES)
    source = files.read(data, checked.dialect)
    checked = checked.with_columns_of(given, source.frame.columns)
    table = Table(source.frame)
    found = describe_table(table, asked_roles(table, **checked.roles), source.labelled)
    if path:
        content = draft_text(found, path, input_section(data, given, path.parent), data)
        write_job(path, content, overwrite=given["overwrite"])
    show(found, given, json_output.data_facts(table.n, data))
    if path and not (given["as_json"] or given["as_csv"]):
        terminal.print_note(f"wrote {path}: edit it, then sdckit run {shlex.quote(str(path))}")


def show(found: Description, given: dict[str, Any], about: Mapping[str, Any]) -> None:
    """Print a description as tables and sentences, JSON or CSV; `about` begins the JSON."""
    if given["as_json"]:
        terminal.print_line(json_output.as_json(dict(about) | found.to_dict()))
    elif given["as_csv"]:
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
        value = row["value"] if row["option"] == "recode" else parsing.quoted_name(row["value"])
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
            quoted = names[0] if option in SINGLE else ",".join(map(parsing.quoted_name, names))
            words.append(f"--{option} {shlex.quote(quoted)}")
    return " ".join(words) or "none are needed"
