"""Run the release in a process of its own: the command that can be copied, with its JSON read back."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sdckit.app.child import SAFE_PATH, child_environment
from sdckit.io.atomic import sha256_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

WARNING, ERROR = "warning: ", "error: "
FAILED = "the release ended without a message; try it again, or run the copied command in a terminal"


class ReleaseRun:
    """The command that writes a release: whether it runs, and what the last one printed."""

    def __init__(self, start: Path, changed: Callable[[], None] = lambda: None) -> None:
        self.start = start
        self.changed = changed
        self.result: dict[str, Any] | None = None  # the JSON of a release that was written
        self.warnings: list[str] = []  # of the last run
        self.error: str = ""
        self.about: Any = None  # what the last run was started for
        self.report: Path | None = None  # of a release that was written
        self.report_digest: str = ""  # its SHA-256
        self._asked_report: Path | None = None
        self.number: int = 0  # of runs that have ended
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """True while the command runs."""
        return self._task is not None and not self._task.done()

    def shown(self) -> dict[str, Any]:
        """Return what the event stream says about it."""
        text = "Writing and measuring the file …" if self.running else self.error
        return {"running": self.running, "finished": self.number, "text": text}

    def begin(self, words: Sequence[str], report: Path | None, about: Any = None) -> None:
        """Start the command with words of the command line, in the start folder; it must not run yet.

        The file at the path of the report is not read before the command has written it: it may be any file.
        """
        self.result, self.error, self.warnings, self.about = None, "", [], about
        self.report, self._asked_report = None, report
        self._task = asyncio.create_task(self._run([*words, "--json"]))

    async def _run(self, words: Sequence[str]) -> None:
        """Run the command and read what it prints."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *(SAFE_PATH, "-m", "sdckit.cli", *words),
                cwd=self.start,
                env=child_environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            printed, said = await self._process.communicate()
            self._read(
                self._process.returncode, printed.decode(errors="replace"), said.decode(errors="replace")
            )
        except OSError as error:
            self.error = f"the release could not be started: {error}"
        finally:
            self.number += 1
            self.changed()

    def _read(self, code: int | None, printed: str, said: str) -> None:
        """Take over the JSON of a release that was written, or the line that says why there is none."""
        lines = [line for line in said.splitlines() if line.strip()]
        if code == 0:
            with suppress(ValueError):
                self.result = json.loads(printed)
        if self.result is not None:
            self.warnings = [line for line in lines if line.startswith(WARNING)]
            self._take_report()
        else:
            self.error = lines[-1].removeprefix(ERROR) if lines else FAILED

    def _take_report(self) -> None:
        """Take over the report that the command has written."""
        with suppress(OSError):
            if self._asked_report is not None:
                self.report_digest = sha256_of(self._asked_report)
                self.report = self._asked_report

    def close(self) -> None:
        """Stop a running command as Ctrl-C does: no file is left half written."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                try:
                    self._process.send_signal(signal.SIGINT)
                except ValueError:  # Windows sends none: what was written so far is left as a draft
                    self._process.terminate()
