"""The log of --log: one JSON object on a line for each event, appended to a file.

It holds no cell of the data, as no message quotes one while a log is kept, no seed and no private place.
"""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sdckit.cli.log_secrets import HIDDEN, SECRET, Secrets
from sdckit.core.quoting import hidden_cells
from sdckit.core.text import printable_content
from sdckit.core.version import VERSION
from sdckit.io.drafts import BINARY, PRIVATE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BEGIN = b'{"time": "'  # of every line


class WorkLog:
    """A log of one run of a command: `write` appends an event to its file."""

    def __init__(self, path: Path) -> None:
        self.path, self.began = path, time.monotonic()
        self.secrets = Secrets()
        self.outputs: dict[Path, object] = {}  # files that the command is to write, and what they are before
        try:
            if path.exists() and _first_bytes(path) not in (b"", BEGIN):
                raise ValueError(f"'{path}' is no log of sdckit; choose another file with --log")
            self.append(b"")
        except OSError as error:
            raise ValueError(f"cannot write the log '{path}' ({error.strerror}); choose another") from error

    def append(self, line: bytes) -> None:
        """Append bytes to the file, which is made if needed, at once: lines of two commands do not mix."""
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | BINARY, PRIVATE)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)

    def write(self, event: str, **facts: Any) -> None:
        """Append an event with its facts; a disk that is full by now does not stop the work."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = {"time": now, "event": event} | self.secrets.hidden_in(facts)
        line = json.dumps(printable_content(entry), ensure_ascii=False, default=str)
        try:
            self.append(f"{line}\n".encode(errors="backslashreplace"))
        except OSError as error:
            click.echo(f"warning: cannot write the log '{self.path}' ({error.strerror})", err=True)

    def finish(self, code: object, text: str) -> None:
        """Append how the command ended: exit code, seconds, files written, and the error if there is one."""
        facts = {"result": "done" if code == 0 else "not done", "exit_code": code}
        written = [path for path, before in self.outputs.items() if _stamp(path) != before]
        spent = {"seconds": round(time.monotonic() - self.began, 3), "files": _sizes(written)}
        self.write("end", **facts, **({"error": text} if text else {}), **spent)


def begin(context: click.Context) -> None:
    """Open the log if the command names one, and write which command runs, on which files."""
    held, path = context.obj, context.params.get("log")
    files = list(_paths(context))
    if path is not None:
        for parameter, file in files:
            if file.resolve() == path.resolve():
                name = parameter.human_readable_name if _is_input(parameter) else parameter.opts[-1]
                raise ValueError(f"--log names the same file as {name}; choose another file with --log")
        held.log = WorkLog(path)
        context.with_resource(hidden_cells())  # warnings and errors are logged as they are printed
    if held is not None and held.log is not None:
        held.log.secrets.add(context.params)
        public = [(parameter, file) for parameter, file in files if parameter.name not in SECRET]
        held.log.outputs |= {file: _stamp(file) for parameter, file in public if not _is_input(parameter)}
        held.log.write(
            "start",
            version=VERSION,
            command=f"sdckit {context.info_name}",
            options=dict(_options(context)),
            files=_sizes(file for parameter, file in public if _is_input(parameter)),
        )


def note(texts: Iterable[str], event: str = "note") -> None:
    """Append texts to the log of the running command, if it has one, each as an event."""
    context = click.get_current_context(silent=True)
    log: WorkLog | None = getattr(context and context.obj, "log", None)
    if log is not None:
        for text in texts:
            log.write(event, text=text)


def _options(context: click.Context) -> Iterator[tuple[str, Any]]:
    """Yield options and arguments that are not the default ones; seeds and private places have no value."""
    for parameter in context.command.params:
        name = str(parameter.name)
        value = context.params.get(name)
        unset = value is None or value is False or value in ((), parameter.default)
        if unset or name == "log":
            continue
        shown: Any = list(map(str, value)) if isinstance(value, tuple) else value
        if name == "settings":  # may name strata, which are values of cells
            shown = [f"{word.partition('=')[0]}={HIDDEN}" if ":" in word else word for word in shown]
        yield max(parameter.opts, key=len), HIDDEN if name in SECRET else shown


def _paths(context: click.Context) -> Iterator[tuple[click.Parameter, Path]]:
    """Yield the files that options and arguments name, but the log itself."""
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Path) and parameter.name != "log":
                yield parameter, one


def _is_input(parameter: click.Parameter) -> bool:
    """Return True for an argument, which names a file to read; options name files to write."""
    return parameter.param_type_name == "argument"


def _first_bytes(path: Path) -> bytes:
    """Return as many bytes from the start of a file as every log begins with."""
    with path.open("rb") as file:
        return file.read(len(BEGIN))


def _stamp(path: Path) -> object:
    """Return what changes when a file is written; None for one that does not exist."""
    found = path.stat() if path.exists() else None
    return found and (found.st_ino, found.st_size, found.st_mtime_ns)


def _sizes(paths: Iterable[Path]) -> dict[str, int]:
    """Return the bytes of each file that exists."""
    return {str(path): path.stat().st_size for path in paths if path.is_file()}
