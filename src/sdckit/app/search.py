"""The server's side of a search: its process is started, followed and stopped; several pages may watch it."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sdckit.app.child import SAFE_PATH, child_environment
from sdckit.core.process_group import NEW_GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sdckit.request.toml import Job

PROGRAM = (SAFE_PATH, "-m", "sdckit.app.search_process")
LONGEST_LINE = 1 << 24  # bytes of a line that the process prints
STOPPING = 15.0  # seconds after which a process that was asked to end is killed; it keeps finished runs, too
GONE = "the search ended unexpectedly; finished runs are kept, and going on continues with them"


@dataclass(frozen=True)
class MethodState:
    """How many settings of a method are measured, of how many expected, and if that is all."""

    method: str
    title: str
    done: int
    expected: int
    finished: bool


@dataclass(frozen=True)
class SearchState:
    """What is known of the last search: `outcome` is "done", "stopped" or "error", empty before its end.

    `seconds_left` is None as long as nothing is known about it. `error` is one line, as the command line
    prints it.
    """

    running: bool = False
    stopping: bool = False
    step: str = ""
    share: float = 0.0
    seconds_left: float | None = None
    methods: tuple[MethodState, ...] = ()
    warnings: tuple[str, ...] = ()
    outcome: str = ""
    error: str | None = None

    def after(self, line: Mapping[str, Any]) -> SearchState:
        """Return the state after a line that the process has printed."""
        content = {name: value for name, value in line.items() if name != "kind"}
        match line["kind"]:
            case "progress":
                methods = tuple(MethodState(**one) for one in content.pop("methods"))
                return replace(self, **content, methods=methods)
            case "warning":
                return replace(self, warnings=(*self.warnings, content["text"]))
            case "error":
                return replace(self, outcome="error", error=content["text"])
        return replace(self, outcome=line["kind"])

    def ended(self) -> SearchState:
        """Return the state after the end of the process, which may have been killed."""
        left = replace(self, running=False, stopping=False, seconds_left=None)
        if self.outcome:
            return left
        return (
            replace(left, outcome="stopped") if self.stopping else replace(left, outcome="error", error=GONE)
        )


class RunningSearch:
    """The search of a server, at most one at a time; at each change `state` is replaced, `version` raised."""

    def __init__(self, start: Path) -> None:
        self.start_folder = start
        self.state: SearchState = SearchState()
        self.version: int = 0
        self._changed = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        """True from the start of a search to the end of its process."""
        return self.state.running

    def start(self, job: Job) -> bool:
        """Start the search of a job whose paths are relative to the start folder; False if one is running."""
        if self.running:
            return False
        self._set(SearchState(running=True))
        self._work = asyncio.create_task(self._run(json.dumps(job.content).encode() + b"\n"))
        return True

    async def stop(self) -> None:
        """Stop the search, if one is running, and wait for the end of its process; finished runs are kept."""
        if self._work is None or not self.running:
            return
        if not self.state.stopping:
            self._set(replace(self.state, stopping=True))
            self._close_input()
        done, _ = await asyncio.wait([self._work], timeout=STOPPING)
        if not done:
            self._kill()
            await asyncio.wait([self._work])

    async def wait_for_change(self, version: int) -> int:
        """Return the version once it is another one than the given one; any number of tasks may wait."""
        while self.version == version:
            await self._changed.wait()
        return self.version

    def _set(self, state: SearchState) -> None:
        """Replace the state and wake those that wait for a change."""
        self.state, self.version = state, self.version + 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def _run(self, job: bytes) -> None:
        """Start the process, send it the job and follow it to its end."""
        try:
            self._process = process = await self._start_process()
            if process.stdin is None or process.stdout is None:
                return
            process.stdin.write(job)
            if self.state.stopping:
                self._close_input()
            async for line in process.stdout:
                self._set(self.state.after(json.loads(line)))
            await process.wait()
        except OSError as error:
            self._set(replace(self.state, outcome="error", error=f"the search could not be started: {error}"))
        finally:
            self._kill()
            self._process = None
            self._set(self.state.ended())

    async def _start_process(self) -> asyncio.subprocess.Process:
        """Start the process of a search in the start folder."""
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # a traceback may hold cells of the file
            cwd=self.start_folder,
            env=child_environment(),
            limit=LONGEST_LINE,
            start_new_session=True,  # Ctrl-C reaches the server only
            creationflags=NEW_GROUP,
        )

    def _close_input(self) -> None:
        """Close the standard input of the process, which interrupts its search."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _kill(self) -> None:
        """Kill the process if it has not ended; its runs so far are kept, and its worker processes end."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
