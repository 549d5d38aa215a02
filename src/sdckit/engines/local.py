"""Tasks on the threads of one machine, and messages between them in memory or in files."""

from __future__ import annotations

import errno
import os
import pickle
import tempfile
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sdckit.engines.files import checked_scratch, exit_when_terminated, memory_in_use, return_freed_memory
from sdckit.io.memory import memory_at_hand, memory_text
from sdckit.progress import STOPPING, track

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sdckit.engines.source import Source
    from sdckit.engines.transport import Block, BlockRef, First, Last, Message, Reads, Stage
    from sdckit.io.atomic import AnyPath


Item = TypeVar("Item")
Result = TypeVar("Result")

CELL_BYTES = 32  # a cell as it is read: in the file's type, as float64, and two copies by a task
ROW_BYTES = 150  # that a task or stage needs a row at its peak, messages included (measured)
COPIES = 3  # of its messages that a stage has at its peak, if rows are wide
RUNNING, HELD = 0.5, 0.25  # shares of the memory: for running tasks, for messages in memory (of two stages)
AT_HAND = 0.75  # share of the memory at hand that is used where no limit is given
SPARE = 150_000_000  # bytes for code that is compiled and for memory that is freed late
LEAST = 50_000_000  # bytes for rows below which nothing is begun
FEW_ROWS = 1_000_000  # rows that a bucket should be able to hold, rather than to use more threads
FEWEST_ROWS = 1000  # rows of a block or bucket, at least
WRITE_BYTES = 1 << 20  # smaller messages are written together
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


class MessageStore:
    """Messages for the buckets of one stage, added by any thread and taken bucket by bucket.

    Messages are held in memory up to `limit` bytes; then all of them are appended to one file a bucket in a
    private folder. `senders` is the number of blocks or buckets that add messages.
    """

    def __init__(self, files: Path, limit: int, senders: int) -> None:
        self.files, self.limit, self.senders = files, limit, senders
        self.sizes: dict[int, int] = defaultdict(int)  # bytes of each bucket's messages
        self.rows: dict[int, int] = defaultdict(int)  # length of the longest array of each message, added up
        self.finished = 0  # senders that have added all
        self._held: dict[int, list[bytes]] = defaultdict(list)
        self._held_bytes = 0
        self._lock = threading.Lock()

    @property
    def buckets(self) -> list[int]:
        """Numbers of the buckets that messages were added for."""
        return sorted(self.sizes)

    def need(self, bucket: int) -> int:
        """Return how many bytes a stage needs for a bucket: its messages and what it computes from them."""
        return max(ROW_BYTES * self.rows[bucket], COPIES * self.sizes[bucket])

    def add(self, origin: int, messages: Iterable[Message]) -> None:
        """Add the messages of a block or bucket."""
        for place, message in enumerate(messages):
            packed = pickle.dumps((origin, place, message), pickle.HIGHEST_PROTOCOL)
            with self._lock:
                self.sizes[message.bucket] += len(packed)
                self.rows[message.bucket] += max((len(array) for array in message.arrays), default=0)
                self._held[message.bucket].append(packed)
                self._held_bytes += len(packed)
                if self._held_bytes > self.limit:
                    self._write()
        with self._lock:
            self.finished += 1

    def take(self, bucket: int) -> list[Message]:
        """Return the messages of a bucket in the order of their origin, and forget them."""
        with self._lock:
            held = self._held.pop(bucket, [])
            self._held_bytes -= sum(map(len, held))
        found = []
        while held:  # Unpickled is only what was pickled above.
            found.append(pickle.loads(held.pop()))  # noqa: S301
        path = self._file(bucket)
        if path.exists():
            with path.open("rb") as file:
                while file.peek(1):
                    found.append(pickle.load(file))  # noqa: S301
            path.unlink()  # its space is needed by the next stage
        return [message for _, _, message in sorted(found, key=itemgetter(0, 1))]

    def _file(self, bucket: int) -> Path:
        """Return the path of the file of a bucket."""
        return self.files.with_name(f"{self.files.name}-{bucket}")

    def _write(self) -> None:
        """Append all messages that are held in memory to the files of their buckets."""
        try:
            for bucket, packed in self._held.items():
                with self._file(bucket).open("ab", buffering=WRITE_BYTES) as file:
                    file.writelines(packed)
        except OSError as error:
            raise self._write_error(error) from error
        self._held.clear()
        self._held_bytes = 0
        return_freed_memory()  # else stages would come on top of it

    def _write_error(self, error: OSError) -> OSError:
        """Return a one-line error for a full disk, with the space that is needed; other errors unchanged."""
        if error.errno not in FULL:
            return error
        needed = sum(self.sizes.values()) * self.senders / max(self.finished, 1)
        reason = (error.strerror or "no space left").lower()
        return OSError(
            f"could not write intermediate files to '{self.files.parent.parent}': {reason}; about "
            f"{memory_text(needed)} are needed: free some space or name another folder with scratch="
        )


@dataclass
class Workers:
    """Threads whose running items together need at most `limit` bytes; an item that needs more runs alone.

    `held` is the number of bytes of messages that stay in memory, `scratch` the folder for the others.
    """

    threads: int
    limit: int
    held: int
    scratch: Path

    def run(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        need: Callable[[Item], int],
        report: Callable[[float], None],
    ) -> list[Result]:
        """Return the result of the work on each item, in their order; `report` gets the share done.

        `need` says how many bytes the work on an item takes. An error of an item reaches the caller as it is,
        after the items that are running have ended; so does Ctrl-C.
        """
        largest = max(map(need, items), default=1)
        results: list[Result] = []
        pool = ThreadPoolExecutor(max(1, min(self.threads, self.limit // largest)))
        try:
            tasks = [pool.submit(work, item) for item in items]
            for task in tasks:
                report(len(results) / len(tasks))
                results.append(task.result())
                if STOPPING.is_set():  # Ctrl-C raises in the main thread only
                    raise KeyboardInterrupt
        finally:
            pool.shutdown(cancel_futures=True)
        report(1.0)
        return results

    def exchange(
        self,
        first: Callable[[Item], Iterable[Message]],
        items: Sequence[Item],
        need: Callable[[Item], int],
        stages: Sequence[Stage],
        last: Last,
        *,
        step: str,
    ) -> dict[int, Any]:
        """Send messages made from items through stages; return the result of the last stage by bucket."""
        with (
            track(step, len(stages) + 2) as report,
            exit_when_terminated(),
            tempfile.TemporaryDirectory(
                prefix="sdckit-", dir=self.scratch, ignore_cleanup_errors=True
            ) as folder,
        ):
            store = MessageStore(Path(folder, "blocks"), self.held, len(items))
            numbers = range(len(items))
            self.run(lambda i: store.add(i, first(items[i])), numbers, lambda i: need(items[i]), report)
            for number, stage in enumerate(stages, 1):
                after = MessageStore(Path(folder, f"stage{number}"), self.held, len(store.buckets))
                self._run_stage(stage, store, after, _after(number, report))
                store = after
            results = self.run(
                lambda bucket: last(bucket, store.take(bucket)),
                store.buckets,
                store.need,
                _after(len(stages) + 1, report),
            )
        return dict(zip(store.buckets, results, strict=True))

    def _run_stage(
        self, stage: Stage, before: MessageStore, after: MessageStore, report: Callable[[float], None]
    ) -> None:
        """Send each bucket's messages through a stage, and what it makes of them to the next store."""

        def work(bucket: int) -> None:
            """Send the messages of a bucket."""
            after.add(bucket, stage(bucket, before.take(bucket)))

        self.run(work, before.buckets, before.need, report)


def _after(steps: int, report: Callable[[float], None]) -> Callable[[float], None]:
    """Return a function that reports the share done of a step that comes after whole ones."""
    return lambda share: report(steps + share)


def workers_within(memory: int | None, row_bytes: int, scratch: AnyPath | None) -> Workers:
    """Return workers within a limit on the resident memory of this process, most of what is at hand for None.

    There is a thread for each core, fewer where `FEW_ROWS` rows of so many bytes each would be too large.
    """
    left = memory_for_rows(memory)
    running = int(left * RUNNING)
    threads = max(1, min(os.cpu_count() or 1, running // (FEW_ROWS * row_bytes)))
    return Workers(threads, running, int(left * HELD), checked_scratch(scratch))


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
        self.workers: Workers = workers_within(memory, ROW_BYTES, scratch)
        self.workers.threads = threads or self.workers.threads
        self.bucket_rows: int = max(self.workers.limit // (self.workers.threads * ROW_BYTES), FEWEST_ROWS)

    def scan(self, task: Callable[[Block], Any], reads: Reads, *, step: str) -> list[Any]:
        """Return the result of the task on each block of rows, in the order of the blocks."""
        blocks, need = self._blocks(reads)
        with track(step, 1) as report:
            found = self.workers.run(lambda ref: task(self.source.read(ref, reads)), blocks, need, report)
        self.source.require_unchanged()
        return found

    def exchange(
        self, first: First, reads: Reads, stages: Sequence[Stage], last: Last, *, step: str
    ) -> dict[int, Any]:
        """Return the result of the last stage for each bucket that got messages, by its number."""
        blocks, need = self._blocks(reads)
        found = self.workers.exchange(
            lambda ref: first(self.source.read(ref, reads)), blocks, need, stages, last, step=step
        )
        self.source.require_unchanged()
        return found

    def _blocks(self, reads: Reads) -> tuple[list[BlockRef], Callable[[BlockRef], int]]:
        """Return blocks that fit into memory with the columns to be read, and the bytes that one needs."""
        self.source.require_columns(reads)
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
