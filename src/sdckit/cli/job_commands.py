"""Run a job, and keep the options of a command as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sdckit.cli import request, terminal
from sdckit.cli.job_options import job_of_options, words_of_job
from sdckit.job.fields import LEFT_OUT
from sdckit.job.read import read_job
from sdckit.job.write import job_text, public_job_text, write_job

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

SUFFIXES = (".toml",)
FLAGS = ("overwrite", "quiet", "as_json", "as_csv")  # options of `run` that it hands on


def run(path: Path, group: click.Group, given: Mapping[str, Any]) -> None:
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
