"""What reproduces the work on the page: the same job as a line for the shell."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from sdckit.app.opened_job import COMMAND
from sdckit.request.options import job_options
from sdckit.request.toml import Job
from sdckit.request.words import words_of_job

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DESCRIBED = ("input", "roles", "recode")  # sections that `sdckit describe` has options for
OUTPUT = "--output"
SHORT = {OUTPUT: "-o"}


def command_text(job: Job, extra: Sequence[str] = ()) -> str:
    """Return the line of `sdckit recommend` that does what a job says, to be run in the start folder.

    `extra` has further words, such as --save-job and a path.
    """
    return shlex.join(command_words(job, extra))


def command_words(job: Job, extra: Sequence[str] = ()) -> list[str]:
    """Return the words of that line: the data and the file to write first, lists of columns in one word."""
    return ["sdckit", COMMAND, *_arranged(job, extra)]


def describe_text(job: Job, extra: Sequence[str] = ()) -> str:
    """Return the line of `sdckit describe` for the file of a job, with the roles that the job gives."""
    content = {name: section for name, section in job.content.items() if name in (*DESCRIBED, "command")}
    return shlex.join(["sdckit", "describe", *_arranged(Job(job.command, content, job.folder), extra)])


def _arranged(job: Job, extra: Sequence[str]) -> list[str]:
    """Return the words of a job in the order that people write them, without -- unless it is needed."""
    words = words_of_job(job)
    data = words.pop()
    options = list(_joined(words[:-1]))  # without the last word, --, that comes before the data
    first = [option for option in options if option[0] == OUTPUT]
    rest = [option for option in options if option[0] != OUTPUT]
    ordered = [word for option in (*first, *rest) for word in _option_words(*option)]
    if data.startswith("-"):
        return [*ordered, *extra, "--", data]
    return [data, *ordered, *extra]


def _joined(words: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Yield options with their values, None for a flag; names of columns are joined by commas."""
    listing = {f"--{field.key}" for field in job_options(COMMAND) if field.kind == "names"}
    found: dict[str, list[str | None]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        found.setdefault(name, []).append(value if equals else None)
    for name, values in found.items():
        if name in listing:
            yield name, ",".join(value for value in values if value is not None)
        else:
            yield from ((name, value) for value in values)


def _option_words(name: str, value: str | None) -> list[str]:
    """Return the words of one option; a value that is empty or begins with a dash is tied to its name."""
    if value is None:
        return [name]
    if not value or value.startswith("-"):
        return [f"{name}={value}"]
    return [SHORT.get(name, name), value]
