"""Tasks on the threads of one machine."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sdckit.engines.files import (
    MessageStore,
    SpillFolder,
    checked_scratch,
    exit_when_terminated,
    memory_in_use,
    return_freed_memory,
)
from sdckit.io.memory import memory_at_hand, memory_text
from sdckit.progress import STOPPING, track

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from sdckit.engines.source import Source
    from sdckit.engines.transport import Block, BlockRef, First, Last, Message, Reads, Stage
    from sdckit.io.atomic import AnyPath


Work = TypeVar("Work")
Result = TypeVar("Result")


class Workers:
    """Threads whose running items together need at most `limit` bytes; an item that needs more runs alone."""

    def __init__(self, threads: int, limit: int) -> None:
        self.threads, self.limit = threads, limit

    def run(
        self,
        work: Callable[[Work], Result],
        items: Sequence[Work],
        need: Callable[[Work], int],
        report: Callable[[float], None],
    ) -> list[Result]:
        """Return the result of the work on each item, in their order; `report` gets the share done.

        An error of an item reaches the caller as it is, after the items that are running have ended; so does
        Ctrl-C.
        """
        memory = _Memory(self.limit)
        results: list[Result] = []

        def work_on(item: Work) -> Result:
            """Return the result for one item, once there is memory for it."""
            with memory.reserved(need(item)):
                return work(item)

        pool = ThreadPoolExecutor(self.threads)
        try:
            tasks = [pool.submit(work_on, item) for item in items]
            for task in tasks:
                report(len(results) / len(tasks))
                results.append(task.result())
                if STOPPING.is_set():  # Ctrl-C raises in the main thread only
                    raise KeyboardInterrupt
        finally:
            memory.closed = True
            pool.shutdown(cancel_futures=True)
        report(1.0)
        return results


class _Memory:
    """A number of bytes that threads reserve parts of, waiting until there are enough."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used, self.closed = limit, 0, False
        self._freed = threading.Condition()

    @contextmanager
    def reserved(self, size: int) -> Iterator[None]:
        """Reserve bytes inside the `with`; raise KeyboardInterrupt if the work has been given up."""
        with self._freed:
            self._freed.wait_for(lambda: self.closed or not self.used or self.used + size <= self.limit)
            if self.closed:
                raise KeyboardInterrupt
            self.used += size
        try:
            yield
        finally:
            with self._freed:
                self.used -= size
                self._freed.notify_all()


CELL_BYTES = 32  # a cell as it is read: in the file's type, as float64, and two copies by a task
ROW_BYTES = 150  # that a task or stage needs a row at its peak, messages included (measured)
COPIES = 3  # of its messages that a stage has at its peak, if rows are wide
RUNNING, HELD = 0.5, 0.25  # shares of the memory: for running tasks, for messages in memory (of two stages)
AT_HAND = 0.75  # share of the memory at hand that is used where no limit is given
SPARE = 150_000_000  # bytes for code that is compiled and for memory that is freed late
LEAST = 50_000_000  # bytes for rows below which nothing is begun
FEW_ROWS = 1_000_000  # rows that a bucket should be able to hold, rather than to use more threads
FEWEST_ROWS = 1000  # rows of a block or bucket, at least

Item = TypeVar("Item")


class LocalTransport:
    """Runs tasks on threads over the blocks of a source, and exchanges messages by way of memory or files.

    Parameters
    ----------
    source
        The files.
    memory
        Limit in bytes on the resident memory of this process; by default, most of what is at hand.
    threads
        Number of threads; by default one a core, fewer where memory is short.
    scratch
        Folder for intermediate files, by default the system's for temporary files.
    """

    together = False  # one piece after the other, so that intermediate files stay small

    def __init__(
        self,
        source: Source,
        *,
        memory: int | None = None,
        threads: int | None = None,
        scratch: AnyPath | None = None,
    ) -> None:
        self.source, self.rows = source, source.rows
        self.scratch: Path = checked_scratch(scratch)
        left = memory_for_rows(memory)
        running = int(left * RUNNING)
        cores = max(1, min(os.cpu_count() or 1, running // (FEW_ROWS * ROW_BYTES)))
        self.workers: Workers = Workers(threads or cores, running)
        self.held: int = int(left * HELD)
        self.bucket_rows: int = max(running // (self.workers.threads * ROW_BYTES), FEWEST_ROWS)

    def scan(self, task: Callable[[Block], Any], reads: Reads, *, step: str) -> list[Any]:
        """Return the result of the task on each block of rows, in the order of the blocks."""
        self.source.require_columns(reads)
        blocks, need = self._blocks(reads)
        with track(step, 1) as report:
            found = self.workers.run(lambda ref: task(self.source.read(ref, reads)), blocks, need, report)
        self.source.require_unchanged()
        return found

    def exchange(
        self, first: First, reads: Reads, stages: Sequence[Stage], last: Last, *, step: str
    ) -> dict[int, Any]:
        """Return the result of the last stage for each bucket that got messages, by its number."""
        self.source.require_columns(reads)
        blocks, need = self._blocks(reads)
        found = exchange_items(
            lambda ref: first(self.source.read(ref, reads)),
            blocks,
            need,
            stages,
            last,
            step=step,
            workers=self.workers,
            held=self.held,
            scratch=self.scratch,
        )
        self.source.require_unchanged()
        return found

    def _blocks(self, reads: Reads) -> tuple[list[BlockRef], Callable[[BlockRef], int]]:
        """Return blocks that fit into memory with the columns to be read, and the bytes that one needs."""
        columns = len(reads.original) + len(reads.masked) + 2 * len(reads.cells)
        size = CELL_BYTES * columns + ROW_BYTES
        most = self.workers.limit // (self.workers.threads * size)
        rows = min(self.source.block_rows, max(most, FEWEST_ROWS))
        return self.source.blocks_of(rows), lambda ref: ref.rows * size


def memory_left(memory: int | None) -> int:
    """Return how many bytes this process may still take within a limit; of those at hand without one."""
    return_freed_memory()  # it is not in use, and would be counted
    return int(AT_HAND * memory_at_hand()) if memory is None else memory - memory_in_use()


def memory_for_rows(memory: int | None) -> int:
    """Return how many bytes of a memory limit are left for rows; raise ValueError if too few."""
    left = memory_left(memory) - SPARE
    if left < LEAST:
        used = memory_in_use()
        limit, least = left + SPARE + used, LEAST + SPARE + used
        raise ValueError(
            f"memory is {memory_text(limit)}, too little for this program and its rows; "
            f"give at least {memory_text(1.1 * least)}"
        )
    return left


def exchange_items(
    first: Callable[[Item], Iterable[Message]],
    items: Sequence[Item],
    need: Callable[[Item], int],
    stages: Sequence[Stage],
    last: Last,
    *,
    step: str,
    workers: Workers,
    held: int,
    scratch: Path,
) -> dict[int, Any]:
    """Send messages made from items through stages; return the result of the last stage by bucket.

    `need` says how many bytes the work on an item takes, `held` how many of messages stay in memory.
    """
    with track(step, len(stages) + 2) as report, exit_when_terminated(), SpillFolder(scratch) as folder:
        stores = [MessageStore(folder, f"stage{number}", held) for number in range(len(stages) + 1)]
        stores[0].senders = len(items)
        workers.run(
            lambda number: stores[0].add(number, first(items[number])),
            range(len(items)),
            lambda number: need(items[number]),
            report,
        )
        for number, stage in enumerate(stages):
            _run_stage(stage, stores[number], stores[number + 1], workers, _after(number + 1, report))
        store = stores[-1]
        return dict(
            zip(
                store.buckets,
                workers.run(
                    lambda bucket: last(bucket, store.take(bucket)),
                    store.buckets,
                    lambda bucket: _bytes_needed(store, bucket),
                    _after(len(stages) + 1, report),
                ),
                strict=True,
            )
        )


def _run_stage(
    stage: Stage, before: MessageStore, after: MessageStore, workers: Workers, report: Callable[[float], None]
) -> None:
    """Send each bucket's messages through a stage, and what it makes of them to the next store."""
    after.senders = len(before.buckets)
    workers.run(
        lambda bucket: after.add(bucket, stage(bucket, before.take(bucket))),
        before.buckets,
        lambda bucket: _bytes_needed(before, bucket),
        report,
    )


def _bytes_needed(store: MessageStore, bucket: int) -> int:
    """Return how many bytes a stage needs for a bucket: its messages and what it computes from them."""
    return max(ROW_BYTES * store.rows[bucket], COPIES * store.sizes[bucket])


def _after(steps: int, report: Callable[[float], None]) -> Callable[[float], None]:
    """Return a function that reports the share done of a step that comes after whole ones."""
    return lambda share: report(steps + share)
