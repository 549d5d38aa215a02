"""Progress of long work: silent in the library unless a caller or the command line asks for it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.progress import Progress

PATIENCE = 2.0  # seconds before anything is shown
TELLING = 0.01  # share of the work from which on the time left can be told
PLAIN_STEP = 5.0  # seconds between lines where stderr is not a terminal

STOPPING = threading.Event()  # set while threads are to leave their work

Item = TypeVar("Item")

ProgressCallback = Callable[[str, float], None]  # gets the name of a step and the share of it that is done

_enabled = False
_notices = False


class _Thread(threading.local):
    """Progress state of a thread: its work, and the function to report to."""

    meter: _Meter | None = None
    callback: ProgressCallback | None = None


_this = _Thread()


def show_progress(on: bool = True) -> None:  # noqa: FBT001, FBT002 - reads as a switch
    """Show progress of long work from now on (`sdc.show_progress()` in a notebook or script)."""
    global _enabled  # noqa: PLW0603 - one switch for the process, set by the command line
    _enabled = on


def show_notices(on: bool = True) -> None:  # noqa: FBT001, FBT002 - as above
    """Show from now on the notices that progress would show, and no progress."""
    global _notices  # noqa: PLW0603 - as above
    _notices = on


def notice(text: str) -> None:
    """Print a line on a terminal, where notices or progress are shown; files and pipes get none."""
    if (_enabled or _notices) and sys.stderr.isatty():
        print(text, file=sys.stderr)  # noqa: T201


@contextmanager
def reported_to(callback: ProgressCallback | None) -> Iterator[None]:
    """Call a function with the progress of this thread's work in the block; None changes nothing."""
    before = _this.callback
    _this.callback = callback or before
    try:
        yield
    finally:
        _this.callback = before


@contextmanager
def track(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """Yield `report(done)`; it shows a bar with the time left once the work has lasted two seconds.

    Inside the work of another `track`, it refines the step that the outer one is at. Work on other
    threads than the main one is silent, unless `reported_to` was called there: the thread that started
    them knows how many of their steps are done.
    """
    if _this.callback is None and not _on_main_thread():
        yield lambda _done: None
        return
    outer, total = _this.meter, max(total, 1e-12)
    if outer is not None:
        begun = outer.done
        yield lambda done: outer.show(begun + min(done / total, 1.0))
        return
    _this.meter = meter = _Meter(what, total)
    try:
        yield meter.report
    finally:
        _this.meter = None
        meter.close()


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


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
        if _this.callback is not None:
            _this.callback(self.what, min(done / self.total, 1.0))
        now = time.monotonic()
        if not _enabled or now - self.started < PATIENCE or not _on_main_thread():
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
