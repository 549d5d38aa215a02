"""Mask a file again by a command of the user's own, for `evaluate --made-by-command`, and only there.

The command is a list of words, started without a shell in a private folder that is removed afterwards. It
gets a copy of the original, writes the masked file, and prints into nothing. It never gets a seed of a
release: the number it may ask for is the intruder's own, and public.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sdckit.core import checks
from sdckit.core.process_group import NEW_GROUP
from sdckit.evaluation.measure import MadeByError
from sdckit.io import files
from sdckit.io.atomic import PRIVATE_FOLDER, draft_folder, sweep_drafts
from sdckit.io.files import cast_empty_columns
from sdckit.io.formats import CSV_SUFFIXES, PARQUET_SUFFIXES, Dialect
from sdckit.request.options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import polars as pl

    from sdckit.io.files import Source
    from sdckit.request.options import Request

OPTION = "--made-by-command"
WHO = f"the command of {OPTION}"
SECONDS = 60.0  # that a run may take, if the user says nothing else
LONGEST = 1e6  # seconds; systems wait no longer than that
NEEDED = ("input", "output")
PLACE = re.compile(r"\{(input|output|seed|here)\}")
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "R_LIBS_USER", "SYSTEMROOT", "PATHEXT", "USERPROFILE")
TEMPORARY = ("TMPDIR", "TEMP", "TMP")
LARGEST_SEED = 2**31 - 1  # which every program takes
GUARD = Path(__file__).with_name("folder_guard.py")


@dataclass(frozen=True)
class Command:
    """Words of a command, with places such as {input} in them, and the seconds that a run may take."""

    words: tuple[str, ...]
    seconds: float

    def filled(self, **values: object) -> list[str]:
        """Return the words with values in their places."""
        return [PLACE.sub(lambda place: str(values[place[1]]), word) for word in self.words]


def checked_command(request: Request) -> Command | None:
    """Return the command of the options, None without one; raise ValueError for one that cannot work."""
    text, seconds = request.made_by_command, request.made_by_seconds
    if text is None:
        if seconds is not None:
            raise ValueError(f"--made-by-seconds needs a command; give it with {OPTION}")
        return None
    for option in ("made_by", "settings", "unpaired", "save_job"):
        if getattr(request, option):
            flag = OPTIONS[option].flag
            why = "no job file starts a program" if option == "save_job" else "both say how it was masked"
            raise ValueError(f"{OPTION} and {flag} exclude each other, as {why}; drop one of them")
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"{OPTION} has an open quotation mark or backslash; close it") from error
    lacking = [f"{{{name}}}" for name in NEEDED if not any(f"{{{name}}}" in word for word in words)]
    if lacking:
        example = '"Rscript {here}/mask.R {input} {output} {seed}"'
        raise ValueError(f"{OPTION} has no {' and no '.join(lacking)}; write it as in {example}")
    return Command(words, _checked_seconds(seconds))


def _checked_seconds(given: str | None) -> float:
    """Return the seconds that a run may take; raise ValueError unless they are a number above 0."""
    number = SECONDS if given is None else checks.as_number(given)
    if number is None or not 0 < number <= LONGEST:
        raise ValueError(f"--made-by-seconds is {given!r}; give a number above 0, such as {SECONDS:g}")
    return number


@contextmanager
def masking_by_command(command: Command | None, source: Source) -> Iterator[MaskingCommand | None]:
    """Yield a function that masks the original by a command, in a folder that vanishes; None without one."""
    if command is None:
        yield None
        return
    home = Path(tempfile.gettempdir())
    sweep_drafts(home)
    with draft_folder(home) as folder, _guarded(folder) as guard:
        yield MaskingCommand(command, source, folder.resolve(), guard)


@contextmanager
def _guarded(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that removes a folder when this one ends in any way, even if it is killed."""
    with subprocess.Popen(  # noqa: S603 - our own words
        [sys.executable, "-I", "-S", str(GUARD), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=NEW_GROUP,
    ) as guard:
        yield guard


@dataclass(frozen=True)
class MaskingCommand:
    """A function of table and random generator that masks the original by running a command."""

    command: Command
    source: Source
    folder: Path
    guard: subprocess.Popen[bytes]

    def __call__(self, _table: object, rng: np.random.Generator) -> pl.DataFrame:
        """Return the table that the command writes; raise MadeByError, on one line, if it does not."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        place.chmod(PRIVATE_FOLDER)  # a umask may have taken even the owner's rights
        try:
            original = self._write_original(place)
            output = place / f"output{original.suffix}"
            seed = int(rng.integers(LARGEST_SEED))
            words = self.command.filled(input=original, output=output, seed=seed, here=Path.cwd())
            self._run(words, place)
            return self._read(output)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _write_original(self, place: Path) -> Path:
        """Write the original to a folder: as it is if CSV or Parquet, else as CSV; return its path."""
        suffix = self.source.path.suffix.lower()
        path = place / f"input{suffix if self.copied else '.csv'}"
        if self.copied:
            shutil.copyfile(self.source.path, path)
        else:
            files.write(path, self.source.frame, private=True)
        return path

    @property
    def copied(self) -> bool:
        """True if the command gets the file of the original as it is."""
        suffix = self.source.path.suffix.lower()
        return self.source.path.is_file() and suffix in {*CSV_SUFFIXES, *PARQUET_SUFFIXES}

    def _run(self, words: list[str], place: Path) -> None:
        """Run the command in a folder; raise MadeByError if it cannot start, fails or takes too long."""
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own command, without a shell
                words,
                cwd=place,
                env=_environment(place),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # it may print cells of the original
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                creationflags=NEW_GROUP,
                preexec_fn=self._announced if hasattr(os, "fork") else None,  # noqa: PLW1509 - see there
            )
        except OSError as error:
            self._tell_guard(0)
            reason = "was not found" if isinstance(error, FileNotFoundError) else "cannot be started"
            remedy = "give the name of a program, or its path from {here}"
            raise MadeByError(f"{WHO} {reason}: {self.command.words[0]!r}; {remedy}") from error
        try:
            code = process.wait(self.command.seconds)
        except subprocess.TimeoutExpired as error:
            fact = f"{WHO} did not end within {self.command.seconds:g} seconds"
            raise MadeByError(f"{fact}; raise --made-by-seconds or mend it") from error
        finally:
            _end(process)
            self._tell_guard(0)
        if code:
            end = f"exit code {code}" if code > 0 else f"signal {-code}"
            remedy = "try it by hand; it starts in an empty folder, so name your own files from {here}"
            raise MadeByError(f"{WHO} ended with {end}; {remedy}")

    def _announced(self) -> None:
        """Tell the guard, as the new process, before the command runs in it.

        This program may be killed before it learns the number itself. With other threads about, nothing here
        may take a lock.
        """
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the guard may have been killed
        self._tell_guard(os.getpid())
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)

    def _tell_guard(self, group: int) -> None:
        """Tell the guard of the folder which process group is running; 0 for none."""
        assert self.guard.stdin is not None  # noqa: S101 - it was started with one
        with suppress(OSError):  # the guard was killed; the next start cleans up
            os.write(self.guard.stdin.fileno(), f"{group}\n".encode())

    def _read(self, output: Path) -> pl.DataFrame:
        """Return the table that the command wrote; raise MadeByError if there is none."""
        if not output.is_file():
            raise MadeByError(f"{WHO} ended without writing {{output}}; let it write the masked file there")
        given = self.source.dialect
        dialect = given if self.copied else Dialect(missing=given.missing)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a file that is read again and again
                made = files.read(output, dialect).frame
        except (OSError, ValueError) as error:  # may quote cells
            kind = "Parquet" if output.suffix in PARQUET_SUFFIXES else "CSV"
            fact = f"{WHO} wrote a file that cannot be read as {kind}"
            raise MadeByError(f"{fact}; let it write {{output}} in the form of {{input}}") from error
        return cast_empty_columns(made, self.source.frame)


def _environment(place: Path) -> dict[str, str]:
    """Return the environment of the command: nothing but what programs need to start."""
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return passed | dict.fromkeys(TEMPORARY, str(place))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started."""
    with suppress(OSError):  # all of them have ended
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:  # Windows
            process.kill()
    process.wait()
