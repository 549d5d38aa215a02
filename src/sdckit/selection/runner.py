"""Threads and processes that measure the pending runs of a sweep."""

from __future__ import annotations

import pickle
import time
from collections import deque
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.compile_time import CLOCK
from sdckit.progress import STOPPING, track
from sdckit.selection.worker import Worker, WorkerPool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Floats
    from sdckit.selection.checkpoint import Checkpoint
    from sdckit.selection.plan import Run
    from sdckit.selection.task import Task

LOOK = 0.1  # seconds between two looks at the progress
LONG = 500_000  # cells of a file, from which on threads serve better than processes
PATIENCE = 0.5  # seconds of work before the first look at how long all of it will take
WORTH = 3.0  # seconds of work left that another process is worth starting for
BATCH = 0.05  # seconds of work that are sent to another process at a time


def run_all(
    task: Task,
    runs: Sequence[Run],
    entropy: int,
    workers: int,
    checkpoint: Checkpoint | None = None,
    processes: WorkerPool | None = None,
) -> Floats:
    """Measure all runs that the checkpoint does not have; return one line of numbers per run.

    Every run draws from its own stream, so that neither order nor number of workers matters. Processes
    stay in the pool, where there is one.
    """
    found = np.empty((len(runs), task.length))
    pending: deque[int] = deque()
    for place, run in enumerate(runs):
        kept = checkpoint.kept.get(run.key) if checkpoint else None
        if kept is None:
            pending.append(place)
        else:
            found[place] = kept
    runner = Runner(task, runs, entropy, checkpoint, pending, found, processes)
    todo = len(pending)
    with track("sweeping", todo) as report, ThreadPoolExecutor(workers) as pool:
        # Long columns keep compiled code busy, which runs beside Python; short ones need other processes.
        apart = task.whole.original.values.size < LONG
        threads = [pool.submit(runner.work)]
        threads += [pool.submit(runner.work_apart if apart else runner.work) for _ in range(workers - 1)]
        try:
            while not _over(threads):
                report(todo - len(runner.pending))
        except KeyboardInterrupt:
            STOPPING.set()  # nobody begins another part of a long run
            raise
        finally:
            runner.stop.set()  # after Ctrl-C or an error everybody finishes the run at hand
            wait(threads)
            STOPPING.clear()
        for thread in threads:
            thread.result()
    return found


def _working_time() -> float:
    """A clock, in seconds, that stands still while kernels are compiled."""
    return time.monotonic() - CLOCK.seconds


@dataclass
class Runner:
    """Threads and processes that measure the pending runs, and the array that takes their numbers."""

    task: Task
    runs: Sequence[Run]
    entropy: int
    checkpoint: Checkpoint | None
    pending: deque[int]
    found: Floats
    processes: WorkerPool | None = None
    stop: Event = field(default_factory=Event)
    empty: Event = field(default_factory=Event)
    lock: Lock = field(default_factory=Lock)
    begun: float = field(default_factory=_working_time)
    compiled: float = field(default_factory=lambda: CLOCK.seconds)  # before this began
    done: int = 0

    def take(self, most: int) -> list[int]:
        """Return the next runs; none when the sweep was stopped."""
        with self.lock:
            if not self.pending:
                self.empty.set()
            most = 0 if self.stop.is_set() else min(most, len(self.pending))
            return [self.pending.popleft() for _ in range(most)]

    def work(self) -> None:
        """Measure runs in this process."""
        while places := self.take(1):
            self.found[places[0]] = self.task.finished(self.runs[places[0]], self.entropy, self.checkpoint)
            self.done += 1

    def work_apart(self) -> None:
        """Measure runs in another process, if enough will be left when it is ready."""
        try:
            worker = self.another()
        except OSError:  # no process to be had: the others do without
            return
        if worker is None:
            return
        places: list[int] = []
        try:
            with ExitStack() as leaving:
                leaving.push(worker)
                while places := self.take(max(1, int(BATCH / self.pace())) if self.done else 1):
                    self.found[places] = worker.measure([self.runs[place] for place in places])
                    self.done += len(places)
                if self.processes is not None:
                    self.processes.idle.append(worker)
                    leaving.pop_all()
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):  # it died, or could not begin
            self.pending.extend(places)
            self.work()

    def another(self) -> Worker | None:
        """Return a process from the pool, or a new one where that pays off.

        Where kernels had to be compiled, methods to come will need others, and each process would
        compile those: a new one must be worth that time, too.
        """
        if self.processes is not None and self.processes.idle:
            return self.processes.idle.pop()
        self.await_kernels()
        worth = WORTH + CLOCK.seconds - self.compiled
        if self.stop.is_set() or len(self.pending) * self.pace() < worth:
            return None
        return Worker(self.task, self.entropy, self.checkpoint.path if self.checkpoint else None).__enter__()

    def await_kernels(self) -> None:
        """Wait until no kernel was compiled for a moment: another process would compile the same ones."""
        last = -1.0
        while last < CLOCK.seconds and not (self.stop.is_set() or self.empty.is_set()):
            last = CLOCK.seconds
            self.empty.wait(PATIENCE)

    def pace(self) -> float:
        """Return the estimated seconds per run."""
        return max(_working_time() - self.begun, 1e-9) / max(self.done, 1)


def _over(threads: list[Future[None]]) -> bool:
    """Wait briefly; return True if all threads are done or one has failed."""
    done, others = wait(threads, LOOK, FIRST_EXCEPTION)
    return not others or any(thread.exception() for thread in done)
