"""Worker processes that measure runs of a sweep, for data where Python's lock would slow threads down.

A worker is started as `python -m sdckit.selection.worker`, so that the caller's script needs no
`if __name__ == "__main__"`. It ends when its parent process does.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, Self

from sdckit.core.process_group import NEW_GROUP
from sdckit.selection.checkpoint import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from sdckit.arrays import Floats
    from sdckit.selection.plan import Run
    from sdckit.selection.task import Task


GONE = (EOFError, pickle.UnpicklingError)  # the parent process ended, perhaps while it was writing


class Worker:
    """Handle of a worker process: starts it, sends it runs through a pipe, and reads the measured numbers."""

    def __init__(self, task: Task, entropy: int, checkpoint: Path | None) -> None:
        paths = os.pathsep.join(path for path in sys.path if path)
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-P", "-m", "sdckit.selection.worker"],  # -P: import nothing from here
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": paths},
            start_new_session=True,  # Ctrl-C reaches the caller only
            creationflags=NEW_GROUP,
        )
        self._task = task.without_table(), entropy, checkpoint

    def measure(self, runs: Sequence[Run]) -> list[Floats]:
        """Send runs to the process; return one array of numbers per run, already added to the checkpoint."""
        self._send(runs)
        answer = pickle.load(self.process.stdout)  # type: ignore[arg-type]  # noqa: S301 - our own process
        if isinstance(answer, Exception):
            raise answer
        found: list[Floats] = answer
        return found

    def _send(self, content: object) -> None:
        """Pickle an object into the standard input of the process."""
        stream = self.process.stdin
        if stream is not None:
            pickle.dump(content, stream)
            stream.flush()

    def __enter__(self) -> Self:
        try:
            self._send(self._task)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError, ValueError):
            self.process.communicate()  # closes the input, which ends the process
        self.process.wait()


class WorkerPool:
    """Idle worker processes, kept for the next runs of the same task; all end with the `with` block."""

    def __init__(self) -> None:
        self.idle: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self.idle:
            self.idle.pop().__exit__(kind, error, trace)


def serve() -> None:
    """Run a worker process: read pickled runs from standard input and write their numbers until it ends."""
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # keep what libraries print out of the answers
    try:
        task, entropy, path = pickle.load(questions)  # noqa: S301 - from our parent process
    except GONE:
        return
    keep: Any = Checkpoint(path, task.length, append=True) if path else nullcontext()
    with keep as checkpoint:
        while True:
            try:
                runs = pickle.load(questions)  # noqa: S301
            except GONE:
                return
            answer: list[Floats] | Exception
            try:
                answer = [task.measure_and_record(run, entropy, checkpoint) for run in runs]
            except Exception as error:  # noqa: BLE001 - raised again by the caller
                answer = error
            with suppress(BrokenPipeError):
                pickle.dump(answer, answers)
                answers.flush()


if __name__ == "__main__":
    serve()
