"""The transport on a Spark cluster: tasks read their blocks themselves, Spark schedules and shuffles.

No row of the data passes through Java before it is packed, and only small results reach the driver. An
exchange sorts each partition by bucket and origin of its messages, on disk if need be, so that a Python
worker holds the messages of one bucket at a time.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sdckit.engines.spark_job import Job
from sdckit.engines.spark_packing import ORDER, SQL_SCHEMA
from sdckit.engines.spark_session import context_of, own_session, quiet, require_workers, spark_session
from sdckit.engines.spark_worker import RESULTS, Finish, Scan, SendBlocks, SendBuckets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from sdckit.engines.source import Source
    from sdckit.engines.transport import Block, First, Last, Reads, Stage

BYTES_A_ROW = 256  # of a bucket: messages, the same joined, sort keys, ranks and the next messages
WORKER_BYTES = 600 << 20  # that a bucket may take of a Python worker's 1 GB; the rest are code and batches
SMALL_BUCKET = 100_000  # rows below which a block or bucket is not worth a task
TASKS_A_CORE = 4
SCAN_TASKS = 64  # into which a scan is cut if there are so many blocks, even on few cores
MOST_PARTITIONS = 4096


class SparkTransport:
    """Scans and exchanges on the workers of a Spark cluster.

    Parameters
    ----------
    source
        The aligned Parquet files, on paths that every worker can read.
    session
        A Spark session to use as it is. Without it, the active one, or one that is started.
    master
        Address of the cluster for a session that is started: `spark://host:7077`; all cores of this
        machine without it.
    partitions
        Number of partitions of an exchange; chosen by size without it.
    """

    together = True

    def __init__(
        self,
        source: Source,
        session: SparkSession | None = None,
        master: str | None = None,
        *,
        partitions: int | None = None,
    ) -> None:
        shared = session or spark_session(master)
        self.context: Any = context_of(shared)
        require_workers(self.context)
        self.rows, self.partitions = source.rows, partitions
        self.session: Any = own_session(shared)
        self.cores: int = max(self.context.defaultParallelism, 1)
        fair = self.rows // (self.cores * TASKS_A_CORE)  # so that all cores have work
        worthwhile = max(fair, SMALL_BUCKET)
        self.bucket_rows: int = min(WORKER_BYTES // BYTES_A_ROW, worthwhile)
        self.source: Source = replace(source, block_rows=min(source.block_rows, worthwhile))

    def scan(self, task: Callable[[Block], Any], reads: Reads, *, step: str) -> list[Any]:
        """Return the result of the task on each block of rows, in the order of the blocks."""
        with quiet():
            frame = self._blocks().mapInArrow(Scan(self.source, reads, task), RESULTS)
        results = self._results(frame, self._block_partitions, step)
        return [results[number] for number in range(len(self.source.blocks))]

    def exchange(
        self, first: First, reads: Reads, stages: Sequence[Stage], last: Last, *, step: str
    ) -> dict[int, Any]:
        """Return the result of the last stage for each bucket that got messages, by its number."""
        partitions = self.partitions or self._partitions(reads)
        with quiet():
            frame = self._blocks().mapInArrow(SendBlocks(self.source, reads, first), SQL_SCHEMA)
            for stage in stages:
                frame = _shuffled(frame, partitions).mapInArrow(SendBuckets(stage), SQL_SCHEMA)
            frame = _shuffled(frame, partitions).mapInArrow(Finish(last), RESULTS)
        tasks = self._block_partitions + partitions * (len(stages) + 1)
        return dict(sorted(self._results(frame, tasks, step).items()))

    @property
    def _block_partitions(self) -> int:
        """Number of tasks that a scan of all blocks is cut into."""
        return max(1, min(len(self.source.blocks), max(SCAN_TASKS, self.cores * TASKS_A_CORE)))

    def _blocks(self) -> DataFrame:
        """Return the numbers of all blocks as a frame."""
        return self.session.range(0, len(self.source.blocks), 1, self._block_partitions)

    def _partitions(self, reads: Reads) -> int:
        """Return the number of partitions for the buckets of some columns: one bucket in each, about.

        It is a prime number: buckets that are numbered in steps, such as even numbers only, still reach all.
        """
        columns = max(len(reads.original), len(reads.masked), 1)
        buckets = columns * -(-self.rows // self.bucket_rows)
        return _prime_from(max(1, min(buckets, MOST_PARTITIONS)))

    def _results(self, frame: DataFrame, tasks: int, step: str) -> dict[int, Any]:
        """Return the results of blocks or buckets by number; raise the error that a worker raised."""
        rows = Job(self.context, frame.collect, tasks).run(step)
        self.source.require_unchanged()
        # Unpickled is only what our own tasks have pickled.
        return {row.place: pickle.loads(bytes(row.result)) for row in rows}  # noqa: S301


def _shuffled(frame: DataFrame, partitions: int) -> DataFrame:
    """Return messages with those of a bucket together, in the order of their origin."""
    return frame.repartitionById(partitions, "bucket").sortWithinPartitions(*ORDER)


def _prime_from(number: int) -> int:
    """Return the smallest prime number that is not below a number, or 1."""
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number += 1
    return number
