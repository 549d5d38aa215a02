"""Threads that work on items one by one, within a limit on the memory that running items need."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from sdckit.progress import STOPPING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """Threads whose running items together need at most `limit` bytes; an item that needs more runs alone."""

    def __init__(self, threads: int, limit: int) -> None:
        self.threads, self.limit = threads, limit

    def run(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        need: Callable[[Item], int],
        report: Callable[[float], None],
    ) -> list[Result]:
        """Return the result of the work on each item, in their order; `report` gets the share done.

        An error of an item reaches the caller as it is, after the items that are running have ended; so does
        Ctrl-C.
        """
        memory = _Memory(self.limit)
        results: list[Result] = []

        def work_on(item: Item) -> Result:
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
