"""Progress of long work: silent in the library, on stderr when the command line asks for it."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.progress import Progress

PATIENCE = 2.0  # seconds before anything is shown
TELLING = 0.01  # share of the work from which on the time left can be told
PLAIN_STEP = 5.0  # seconds between lines where stderr is not a terminal

STOPPING = threading.Event()  # set while threads are to leave their work

Item = TypeVar("Item")

_enabled = False
_current: _Meter | None = None


def show_progress(on: bool = True) -> None:  # noqa: FBT001, FBT002 - reads as a switch
    """Show progress of long work from now on (`sdc.show_progress()` in a notebook or script)."""
    global _enabled  # noqa: PLW0603 - one switch for the process, set by the command line
    _enabled = on


@contextmanager
def track(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """Yield `report(done)`; it shows a bar with the time left once the work has lasted two seconds.

    Inside the work of another `track`, it refines the step that the outer one is at. Work on other
    threads than the main one is silent: whoever started them knows how many of their steps are done.
    """
    global _current  # noqa: PLW0603 - there is one screen
    if threading.current_thread() is not threading.main_thread():
        yield lambda _done: None
        return
    outer, total = _current, max(total, 1e-12)
    if outer is not None:
        begun = outer.done
        yield lambda done: outer.show(begun + min(done / total, 1.0))
        return
    _current = meter = _Meter(what, total)
    try:
        yield meter.report
    finally:
        _current = None
        meter.close()


def each(what: str, items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items, showing progress."""
    with track(what, len(items)) as report:
        for place, item in enumerate(items):
            report(place)
            yield item


class _Meter:
    def __init__(self, what: str, total: float) -> None:
        self.what, self.total, self.done = what, total, 0.0
        self.started = self.printed = time.monotonic()
        self.bar: Progress | None = None

    def report(self, done: float) -> None:
        self.done = done
        self.show(done)

    def show(self, done: float) -> None:
        now = time.monotonic()
        if not _enabled or now - self.started < PATIENCE:
            return
        if sys.stderr.isatty():
            self._draw(done)
        elif now - self.printed >= PLAIN_STEP or self.printed == self.started:
            self.printed = now
            share = min(done / self.total, 1.0)
            left = (now - self.started) * (1 - share) / max(share, 1e-9)
            known = f", about {left:.0f} s left" if share >= TELLING else ""
            print(f"{self.what}: {share:.0%}{known}", file=sys.stderr)  # noqa: T201

    def _draw(self, done: float) -> None:
        if self.bar is None:
            from rich.console import Console  # noqa: PLC0415 - only for long work
            from rich.progress import Progress  # noqa: PLC0415

            self.bar = Progress(console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task(self.what, total=self.total)
        self.bar.update(self.task, completed=done)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()
