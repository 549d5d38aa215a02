"""A job of Spark that can be watched, cancelled, and fails with the error that a worker raised."""

from __future__ import annotations

import uuid
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from sdckit import progress
from sdckit.engines.spark_worker import error_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext, StatusTracker

LOOKED = 0.2  # seconds between two looks at the job
WATCHED = 1.0  # seconds between two questions to Spark, which cost it time
CANCELLED = 150  # looks until a job that does not end is left alone
IDLE = 100  # looks until it is said that nothing runs


class Job:
    """Collects small results in a thread, so that it can be watched and cancelled.

    `tasks` is the number of its tasks; without it, those that Spark knows of.
    """

    def __init__(self, context: SparkContext, collect: Callable[[], list[Any]], tasks: int = 0) -> None:
        self.context, self.collect, self.tasks = context, collect, tasks
        self.group: str = f"sdckit-{uuid.uuid4()}"
        self.rows: list[Any] = []
        self.error: Exception | None = None
        self.done: float = 0.0  # share of the tasks
        self.busy: bool = False

    def run(self, step: str) -> list[Any]:
        """Return what is collected and show how many tasks are done; cancel the job at Ctrl-C."""
        from pyspark import InheritableThread  # noqa: PLC0415 - an optional package

        job = InheritableThread(target=self._collect, daemon=True)
        watch = InheritableThread(target=self._watch, args=(job,), daemon=True)
        job.start()
        watch.start()
        try:
            with progress.track(step, 1.0) as report:
                for look in count():
                    job.join(LOOKED)
                    report(self.done)
                    if not job.is_alive():
                        break
                    if look == IDLE and not self.busy:
                        progress.print_notice("waiting for Spark: no worker has a free core so far")
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
            self.rows = self.collect()
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits
            self.error = error

    def _watch(self, job: Any) -> None:
        """Keep the share of tasks done, which never falls: tasks of a lost worker run once more."""
        with suppress(Exception):  # without a connection to Java, the job says why
            while job.is_alive():
                self._look(self.context.statusTracker())
                job.join(WATCHED)

    def _look(self, tracker: StatusTracker) -> None:
        """Look once at the tasks that run and those that are done."""
        jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(self.group)))
        stages = {stage for found in jobs for stage in found.stageIds}
        known = list(filter(None, map(tracker.getStageInfo, stages)))
        total = self.tasks or sum(stage.numTasks for stage in known)
        done = sum(stage.numCompletedTasks for stage in known)
        self.busy = self.busy or done > 0 or any(stage.numActiveTasks for stage in known)
        self.done = max(self.done, min(done / max(total, 1), 1.0))

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
