"""The server's side of a search or a release: its process is started, followed and stopped."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit.core.process_group import NEW_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PROGRAM = ("-P", "-m", "sdckit.app.child")  # -P: import nothing from the start folder, whatever lies in it
LONGEST_LINE = 1 << 26  # bytes of a line that the process prints
STOPPING = 15.0  # seconds after which a process that was asked to end is killed; it keeps finished runs, too
RELEASING = "Writing and measuring the file …"
GONE = {
    "search": "the search ended unexpectedly; finished runs are kept, and going on continues with them",
    "release": "the release ended without a message; try it again, or run the copied command in a terminal",
}


@dataclass(frozen=True)
class RunState:
    """What is known of the last run: `outcome` is "done", "stopped" or "error", empty before its end.

    `seconds_left` is None as long as nothing is known about it. `error` is one line, as the command line
    prints it. `methods` says of each method how many settings are measured, of how many expected, and if that
    is all. `result` is what a release has measured; `report` the SHA-256 of its report, empty without one.
    """

    running: bool = False
    stopping: bool = False
    step: str = ""
    share: float = 0.0
    seconds_left: float | None = None
    methods: Sequence[Mapping[str, Any]] = ()
    warnings: tuple[str, ...] = ()
    outcome: str = ""
    error: str = ""
    result: Mapping[str, Any] | None = None
    report: str = ""

    def after(self, line: Mapping[str, Any]) -> RunState:
        """Return the state after a line that the process has printed."""
        content = {name: value for name, value in line.items() if name != "kind"}
        match line["kind"]:
            case "progress":
                return replace(self, **content)
            case "warning":
                return replace(self, warnings=(*self.warnings, content["text"]))
            case "error":
                return replace(self, outcome="error", error=content["text"])
        return replace(self, outcome=line["kind"], **content)

    def ended(self, gone: str) -> RunState:
        """Return the state after the end of the process, which may have been killed."""
        left = replace(self, running=False, stopping=False, seconds_left=None)
        if self.outcome:
            return left
        return replace(left, outcome="stopped") if self.stopping else left.failed(gone)

    def failed(self, text: str) -> RunState:
        """Return the state with an error."""
        return replace(self, outcome="error", error=text)


class Running:
    """The searches, or the releases, of a server, one at a time; `changed` is called after each change.

    Attributes
    ----------
    about
        What the last run was started for.
    runs
        Number of runs that have ended.
    """

    def __init__(self, start: Path, work: str, changed: Callable[[], None] = lambda: None) -> None:
        self.start_folder = start
        self.work = work
        self.changed = changed
        self.state: RunState = RunState()
        self.about: Any = None
        self.runs: int = 0
        self._task: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        """True from the start of a run to the end of its process."""
        return self.state.running

    def start(self, task: Mapping[str, Any], about: Any = None) -> bool:
        """Start a run in the start folder; False if one is running."""
        if self.running:
            return False
        self.about = about
        self._set(RunState(running=True))
        line = json.dumps({"work": self.work, **task}).encode() + b"\n"
        self._task = asyncio.create_task(self._run(line))
        return True

    async def stop(self) -> None:
        """Stop the run, if there is one, and wait for the end of its process; finished work is kept."""
        if self._task is None or not self.running:
            return
        if not self.state.stopping:
            self._set(replace(self.state, stopping=True))
            self._close_input()
        done, _ = await asyncio.wait([self._task], timeout=STOPPING)
        if not done:
            self._kill()
            await asyncio.wait([self._task])

    def interrupt(self) -> None:
        """Interrupt a run as Ctrl-C does, without waiting: no file is left half written."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                try:
                    self._process.send_signal(signal.SIGINT)
                except ValueError:  # Windows sends none: what was written so far is left as a draft
                    self._process.terminate()

    def _set(self, state: RunState) -> None:
        """Replace the state, and say so."""
        self.state = state
        self.changed()

    async def _run(self, task: bytes) -> None:
        """Start the process, send it the task and follow it to its end."""
        try:
            self._process = process = await self._start_process()
            if process.stdin is None or process.stdout is None:
                return
            process.stdin.write(task)
            if self.state.stopping:
                self._close_input()
            async for line in process.stdout:
                self._set(self.state.after(json.loads(line)))
            await process.wait()
        except OSError as error:
            self._set(self.state.failed(f"the {self.work} could not be started: {error}"))
        finally:
            self._kill()
            self._process = None
            self.runs += 1
            self._set(self.state.ended(GONE[self.work]))

    async def _start_process(self) -> asyncio.subprocess.Process:
        """Start the process in the start folder, where it finds the same modules."""
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # a traceback may hold cells of the file
            cwd=self.start_folder,
            env=_environment(),
            limit=LONGEST_LINE,
            start_new_session=True,  # Ctrl-C reaches the server only
            creationflags=NEW_GROUP,
        )

    def _close_input(self) -> None:
        """Close the standard input of the process, which interrupts it."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _kill(self) -> None:
        """Kill the process if it has not ended; its runs so far are kept, and its worker processes end."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()


def _environment() -> dict[str, str]:
    """Return the environment of a process that works in another folder and finds the same modules."""
    places = [str(Path(path).absolute()) for path in sys.path if path]
    # Windows would print to pipes in the encoding of its language.
    return os.environ | {"PYTHONPATH": os.pathsep.join(places), "PYTHONIOENCODING": "utf-8"}
