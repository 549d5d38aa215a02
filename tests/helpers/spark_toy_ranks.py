"""A toy statistic with two exchanges: the distances of global ranks, and tasks that die or fail on demand."""

import os
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from sdckit.engines.transport import Block, BlockRef, Message, Reads

READS = Reads(("x",), ("y",))
HANGING = 120  # seconds after which something is taken to hang
LOST = 300  # seconds after which a task that waits for its end gives up
SALT = 449  # with it, each of three stages has a task that fails, one of them twice in a row


@dataclass(frozen=True)
class ArraySource:
    """Two arrays in place of files."""

    x: np.ndarray
    y: np.ndarray
    block_rows: int

    def require_unchanged(self):
        """Arrays in memory do not change."""

    @property
    def rows(self):
        return self.x.size

    @property
    def blocks(self):
        step = self.block_rows
        return [BlockRef(first, min(step, self.rows - first)) for first in range(0, self.rows, step)]

    def read(self, ref, reads):
        rows = slice(ref.first, ref.first + ref.rows)
        columns = {name: getattr(self, name)[rows] for name in (*reads.original, *reads.masked)}
        return Block(*ref, {n: columns[n] for n in reads.original}, {n: columns[n] for n in reads.masked})


@dataclass(frozen=True)
class Count:
    """Number of values of x and y in each bucket."""

    cuts: np.ndarray

    def __call__(self, block):
        sides = (block.original["x"], block.masked["y"])
        return [np.bincount(np.searchsorted(self.cuts, v), minlength=self.cuts.size + 1) for v in sides]


@dataclass(frozen=True)
class ByX:
    """Sends (x, y) to the bucket of x."""

    cuts: np.ndarray
    pieces: int = 1  # messages from a block to a bucket

    def __call__(self, block):
        x, y = block.original["x"], block.masked["y"]
        yield from sent(np.searchsorted(self.cuts, x), (x, y), self.pieces)


@dataclass(frozen=True)
class ByY:
    """Ranks x and sends (y, rank) to the bucket of y."""

    cuts: np.ndarray
    before: np.ndarray  # values of x in earlier buckets

    def __call__(self, bucket, messages):
        x, y = joined(messages)
        ranks = self.before[bucket] + np.argsort(np.argsort(x, kind="stable"), kind="stable")
        order = np.argsort(ranks)
        y, ranks = y[order], ranks[order]
        yield from sent(np.searchsorted(self.cuts, y), (y, ranks), 1)


@dataclass(frozen=True)
class Distances:
    """Ranks y; returns the sum of the distances of ranks, and a checksum of what came in which order."""

    before: np.ndarray

    def __call__(self, bucket, messages):
        y, ranks = joined(messages)
        order = np.argsort(y, kind="stable")
        other = self.before[bucket] + np.arange(y.size)
        return int(np.abs(ranks[order] - other).sum()), zlib.crc32(y.tobytes() + ranks.tobytes())


def sent(buckets, arrays, pieces):
    for bucket in np.unique(buckets).tolist():
        rows = np.flatnonzero(buckets == bucket)
        for part in np.array_split(rows, pieces):
            yield Message(bucket, 7, tuple(array[part] for array in arrays))


def joined(messages):
    assert all(message.kind == 7 for message in messages)
    return [np.concatenate(arrays) for arrays in zip(*(one.arrays for one in messages), strict=True)]


def tasks(cuts, counts, pieces=1):
    """The tasks of the exchange, given the counts of all blocks."""
    x, y = (np.concatenate([[0], np.cumsum(side)]) for side in np.sum(counts, 0))
    return ByX(cuts, pieces), ByY(cuts, x), Distances(y)


def by_numpy(x, y):
    """The sum of the distances of ranks, ties in the order of rows, then of the other rank."""
    r = np.argsort(np.argsort(x, kind="stable"))
    s = np.empty(x.size, np.int64)
    s[np.lexsort((r, y))] = np.arange(x.size)
    return int(np.abs(r - s).sum())


@dataclass(frozen=True)
class Killed:
    """Runs a task; where it is first run, writes the number of its process and waits to be killed.

    With `done`, it has run the task by then.
    """

    task: object
    mark: Path
    done: bool = False

    def __call__(self, *arguments):
        if self.done and not self.mark.exists():
            self.task(*arguments)
        try:
            with self.mark.open("x") as file:
                file.write(f"{os.getpid()}\n")
        except FileExistsError:
            return self.task(*arguments)
        time.sleep(LOST)
        raise AssertionError("nobody killed this process")


def wait_until(true):
    """Wait until a function returns True."""
    deadline = time.monotonic() + HANGING
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def begun(mark):
    """The number of the process that runs a task which waits to be killed."""
    wait_until(lambda: mark.exists() and mark.read_text().endswith("\n"))
    return int(mark.read_text())


def kill(mark, victim):
    """Kill the process that runs a task which waits for it, or the executor above it."""
    process = psutil.Process(begun(mark))
    if victim == "executor":
        process = next(one for one in process.parents() if "java" in one.name())
    process.kill()


@dataclass(frozen=True)
class Failing:
    """Runs a task; a share of the attempts fails, drawn by name and place, but not the fourth in a row."""

    task: object
    name: str
    folder: Path
    share: float = 0.05

    def __call__(self, *arguments):
        from pyspark import TaskContext

        context = TaskContext.get()
        drawn = (f"{self.name}{SALT}", context.partitionId(), context.attemptNumber())
        seed = zlib.crc32(repr(drawn).encode())
        if context.attemptNumber() < 3 and np.random.default_rng(seed).random() < self.share:
            (self.folder / f"{self.name}-{seed}").touch()
            raise RuntimeError("a task failed by chance")
        return self.task(*arguments)


@dataclass(frozen=True)
class Refuses:
    """A source of one block, and a task that finds something wrong in it."""

    rows: int = 10
    block_rows: int = 10
    blocks: tuple = (BlockRef(0, 10),)

    def read(self, ref, _reads):
        return Block(*ref, {}, {})

    def __call__(self, _block):
        raise ValueError("column 'x' has 3 infinite values; remove them")


@dataclass(frozen=True)
class Absent:
    """A source whose file is on another machine."""

    rows: int = 10
    block_rows: int = 10
    blocks: tuple = (BlockRef(0, 10),)

    def read(self, _ref, _reads):
        return Path("/nowhere/big.parquet").read_bytes()
