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

from sdckit.progress import STOPPING, track
from sdckit.selection.worker import Bench, Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Floats
    from sdckit.selection.checkpoint import Journal
    from sdckit.selection.plan import Cell
    from sdckit.selection.task import Task

LOOK = 0.1  # seconds between two looks at the progress
LONG = 500_000  # cells of a file, from which on threads serve better than processes
PATIENCE = 0.5  # seconds of work before the first look at how long all of it will take
WORTH = 3.0  # seconds of work left that another process is worth starting for
BATCH = 0.05  # seconds of work that are sent to another process at a time


def run(
    task: Task,
    cells: Sequence[Cell],
    entropy: int,
    workers: int,
    journal: Journal | None = None,
    bench: Bench | None = None,
) -> Floats:
    """Measure all cells that the journal does not have; one line of numbers for each.

    Every cell draws from its own stream, so that neither order nor number of workers matters. Processes
    stay on the bench, where there is one.
    """
    found = np.empty((len(cells), task.length))
    pending: deque[int] = deque()
    for place, cell in enumerate(cells):
        kept = journal.found.get(cell.key) if journal else None
        if kept is None:
            pending.append(place)
        else:
            found[place] = kept
    crew = Crew(task, cells, entropy, journal, pending, found, bench)
    todo = len(pending)
    with track("sweeping", todo) as report, ThreadPoolExecutor(workers) as pool:
        # Long columns keep compiled code busy, which runs beside Python; short ones need other processes.
        apart = task.whole.original.values.size < LONG
        threads = [pool.submit(crew.work)]
        threads += [pool.submit(crew.work_apart if apart else crew.work) for _ in range(workers - 1)]
        try:
            while not _over(threads):
                report(todo - len(crew.pending))
        except KeyboardInterrupt:
            STOPPING.set()  # nobody begins another part of a long cell
            raise
        finally:
            crew.stop.set()  # after Ctrl-C or an error everybody finishes the cell at hand
            wait(threads)
            STOPPING.clear()
        for thread in threads:
            thread.result()
    return found


@dataclass
class Crew:
    """Those who share the pending cells of a sweep, and where their numbers go."""

    task: Task
    cells: Sequence[Cell]
    entropy: int
    journal: Journal | None
    pending: deque[int]
    found: Floats
    bench: Bench | None = None
    stop: Event = field(default_factory=Event)
    empty: Event = field(default_factory=Event)
    lock: Lock = field(default_factory=Lock)
    begun: float = field(default_factory=time.monotonic)
    done: int = 0

    def take(self, most: int) -> list[int]:
        """The next cells; none when the sweep was stopped."""
        with self.lock:
            if not self.pending:
                self.empty.set()
            most = 0 if self.stop.is_set() else min(most, len(self.pending))
            return [self.pending.popleft() for _ in range(most)]

    def work(self) -> None:
        """Measure in this process."""
        while places := self.take(1):
            self.found[places[0]] = self.task.finished(self.cells[places[0]], self.entropy, self.journal)
            self.done += 1

    def work_apart(self) -> None:
        """Measure in another process, if there is enough left to do by the time it would be ready."""
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
                    self.found[places] = worker.measure([self.cells[place] for place in places])
                    self.done += len(places)
                if self.bench is not None:
                    self.bench.idle.append(worker)
                    leaving.pop_all()
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):  # it died, or could not begin
            self.pending.extend(places)
            self.work()

    def another(self) -> Worker | None:
        """A process from the bench, or a new one where that is worth its while."""
        if self.bench is not None and self.bench.idle:
            return self.bench.idle.pop()
        self.empty.wait(PATIENCE)
        if self.stop.is_set() or len(self.pending) * self.pace() < WORTH:
            return None
        return Worker(self.task, self.entropy, self.journal.path if self.journal else None).__enter__()

    def pace(self) -> float:
        """Seconds for a cell, as far as one can tell."""
        return (time.monotonic() - self.begun) / max(self.done, 1)


def _over(threads: list[Future[None]]) -> bool:
    """Wait a moment; whether all threads are done, or one has failed."""
    done, others = wait(threads, LOOK, FIRST_EXCEPTION)
    return not others or any(thread.exception() for thread in done)
