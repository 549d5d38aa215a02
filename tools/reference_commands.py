"""The pages of the reference on the command line: every command with its options, and how commands end."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import click

from reference_text import MADE, block, page, plain, table
from sdckit.cli import sdckit as group

if TYPE_CHECKING:
    from collections.abc import Iterator

START = """\
`sdckit COMMAND --help` prints the same in the terminal. Options may stand before or after files. One that is
repeatable may be given several times. How commands end: [exit codes](exit-codes.md); what
`--json` prints: [JSON](json.md); the same options in a file: [job files](job-file.md)."""
EXITS = {
    "0": "all went well; also if the reader of a pipe, such as `head`, left early, or output is closed",
    "1": "a limit is not met, also together with earlier releases; cells of a record that left or joined "
    "follow from two of them; a checked file is none of the releases; a "
    "file made again is not the same",
    "2": "input, options or files are wrong, or the system refused something, such as text on a full disk",
    "70": "a fault of sdckit itself; `SDCKIT_TRACEBACK=1` shows more than the one line, which tells no cell",
    "129": "the terminal was closed (SIGHUP)",
    "130": "Ctrl-C, also inside compiled code, which is left at the next point where it can be stopped",
    "143": "the system asked the process to end (SIGTERM)",
}
END = """\
A command that does not end with 0 prints one line that says why and what to do. It changes no input and
leaves no half-written file: a file is written under a temporary name, `.sdckit-*.part`, that its owner alone
can read, and renamed when it is whole and within its limits. What a killed process left under such a name is
deleted by the next command that writes into that folder. Finished runs of a sweep or search survive; the same
command resumes.

Characters of names and cells that a terminal would obey or that turn text round are printed as `\\u202e`; in
JSON they stand for the same text."""


def commands() -> str:
    """Return the page on all commands."""
    found = list(walk("sdckit", group))
    names = table(
        ["command", "what it does"],
        [
            [f"[`{name}`](#{name.replace(' ', '-')})", plain(command.get_short_help_str(200))]
            for name, command in found[1:]
        ],
    )
    return page("# Commands", MADE, START, names, *(one_command(name, command) for name, command in found))


def walk(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command with its full name, then those below it."""
    yield name, command
    if isinstance(command, click.Group):
        for own, below in command.commands.items():
            yield from walk(f"{name} {own}", below)


def one_command(name: str, command: click.Command) -> str:
    """Return the section on one command: what it does, its options, examples."""
    context = click.Context(command, info_name=name, terminal_width=1000, **group.context_settings)
    words = " ".join([name, *command.collect_usage_pieces(context)])
    command._help_option = None  # noqa: SLF001 - click keeps that of the context that asked first
    options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
    records = [option.get_help_record(context) for option in options]
    listed = table(
        ["option", "what it is"],
        [[f"`{words}`", plain(" ".join(text.split()))] for words, text in filter(None, records)],
    )
    help_text = plain(inspect.cleandoc(command.help or "").replace("\f", "").replace("\b\n", ""))
    return page(f"## `{name}`", block(words, "text"), help_text, listed, _examples(command.epilog or ""))


def _examples(epilog: str) -> str:
    """Return the examples at the end of a command's help as a block of code."""
    lines = inspect.cleandoc(epilog.replace("\b\n", "")).replace("Examples:\n", "")
    return block(inspect.cleandoc(lines), "sh") if lines else ""


def exit_codes() -> str:
    """Return the page on how commands end."""
    rows = [[f"`{code}`", text] for code, text in EXITS.items()]
    return page("# Exit codes", MADE, table(["exit code", "when"], rows), END)
