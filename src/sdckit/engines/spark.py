"""The transport on a Spark cluster: tasks read their blocks themselves, Spark schedules and shuffles.

No row of the data passes through Java before it is packed, and only small results reach the driver. An
exchange sorts each partition by bucket and origin of its messages, on disk if need be, so that a Python
worker holds the messages of one bucket at a time.
"""

from __future__ import annotations

import pickle
import uuid
from typing import TYPE_CHECKING, Any

from sdckit import progress
from sdckit.engines.packing import ORDER, SQL_SCHEMA
from sdckit.engines.spark_session import own_session, quiet, require_workers, spark_session
from sdckit.engines.spark_worker import RESULTS, Finish, Scan, SendBlocks, SendBuckets, error_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from sdckit.engines.source import Source
    from sdckit.engines.transport import Block, First, Last, Reads, Stage

BYTES_A_ROW = 256  # of a bucket: messages, the same joined, sort keys, ranks and the next messages
WORKER_BYTES = 600 << 20  # that a bucket may take of a Python worker's 1 GB; the rest are code and batches
SMALL_BUCKET = 100_000  # rows below which a bucket is not worth a task
TASKS_A_CORE = 4
MOST_PARTITIONS = 4096
LOOKED = 0.2  # seconds between two looks at the tasks that are done
CANCELLED = 60  # looks until a cancelled job is taken to be over


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
        with quiet():
            require_workers(shared.sparkContext)
        self.source, self.rows, self.partitions = source, source.rows, partitions
        self.session = own_session(shared)
        self.context = shared.sparkContext
        self.cores = max(self.context.defaultParallelism, 1)
        fair = self.rows // (self.cores * TASKS_A_CORE)  # so that all cores have work
        self.bucket_rows = min(WORKER_BYTES // BYTES_A_ROW, max(fair, SMALL_BUCKET))

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
        return max(1, min(len(self.source.blocks), max(64, self.cores * TASKS_A_CORE)))

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
        rows = Job(self.session, frame).run(tasks, step)
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


class Job:
    """A job of Spark that runs in a thread, so that it can be watched and cancelled."""

    def __init__(self, session: SparkSession, frame: DataFrame) -> None:
        self.context, self.frame = session.sparkContext, frame
        self.group = f"sdckit-{uuid.uuid4()}"
        self.rows: list[Row] = []
        self.error: Exception | None = None
        self.done = 0

    def run(self, tasks: int, step: str) -> list[Row]:
        """Return the rows of the frame and show how many tasks are done; cancel the job at Ctrl-C."""
        from pyspark import InheritableThread  # noqa: PLC0415 - an optional package

        job = InheritableThread(target=self._collect, daemon=True)
        watch = InheritableThread(target=self._watch, args=(job,), daemon=True)
        job.start()
        watch.start()
        try:
            with progress.track(step, tasks) as report:
                while job.is_alive():
                    job.join(LOOKED)
                    report(min(self.done, tasks))
        except BaseException:
            self._cancel(job)
            raise
        watch.join()
        if self.error is not None:
            raise _described(self.error) from self.error
        return self.rows

    def _collect(self) -> None:
        """Run the job and keep its rows or its error."""
        try:
            self.context.setJobGroup(self.group, "sdckit", interruptOnCancel=True)
            self.rows = self.frame.collect()
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits
            self.error = error

    def _watch(self, job: Any) -> None:
        """Keep the number of tasks done, which never falls: tasks of a lost worker run once more."""
        tracker = self.context.statusTracker()
        while job.is_alive():
            jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(self.group)))
            stages = {stage for found in jobs for stage in found.stageIds}
            known = filter(None, map(tracker.getStageInfo, stages))
            self.done = max(self.done, sum(stage.numCompletedTasks for stage in known))
            job.join(LOOKED)

    def _cancel(self, job: Any) -> None:
        """Cancel the job; from another thread, as this one may be in the middle of a call to Java."""
        from pyspark import InheritableThread  # noqa: PLC0415 - an optional package

        def ask() -> None:
            for _ in range(CANCELLED):  # more than once: a job may not have begun when it is cancelled
                self.context.cancelJobGroup(self.group)
                job.join(LOOKED)
                if not job.is_alive():
                    return

        asking = InheritableThread(target=ask, daemon=True)
        asking.start()
        asking.join()


def _described(error: Exception) -> Exception:
    """Return the error that a worker raised; else Spark's own, in one line."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return error_in(text) or RuntimeError(f"the Spark job failed: {lines[0] if lines else type(error)}")
