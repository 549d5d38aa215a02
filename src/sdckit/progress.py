"""Progress bars and progress callbacks for long computations; silent unless switched on."""

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

SHOW_AFTER = 2.0  # seconds before anything is shown
ESTIMATED = 0.01  # share of the work from which on the time left is estimated
PLAIN_STEP = 5.0  # seconds between lines where stderr is not a terminal

STOPPING = threading.Event()  # set while threads are to leave their work

Item = TypeVar("Item")

ProgressCallback = Callable[[str, float], None]  # gets the name of a step and the share of it that is done

_enabled = False
_notices = False


class _Thread(threading.local):
    """Progress state of one thread: the meter of its running computation and its callback."""

    meter: _Meter | None = None
    callback: ProgressCallback | None = None


_this = _Thread()


def show_progress(on: bool = True) -> None:  # noqa: FBT001, FBT002 - reads as a switch
    """Switch the progress bars of long computations on, or off with `on=False` (`sdc.show_progress()`)."""
    global _enabled  # noqa: PLW0603 - one switch for the process, set by the command line
    _enabled = on


def show_notices(on: bool = True) -> None:  # noqa: FBT001, FBT002 - as above
    """Switch one-line notices on terminals on or off, without switching progress bars on."""
    global _notices  # noqa: PLW0603 - as above
    _notices = on


def print_notice(text: str) -> None:
    """Print a line to stderr if it is a terminal and notices or progress bars are switched on."""
    if (_enabled or _notices) and sys.stderr.isatty():
        print(text, file=sys.stderr)  # noqa: T201


@contextmanager
def reported_to(callback: ProgressCallback | None) -> Iterator[None]:
    """Call `callback(step, share done)` as this thread progresses inside the `with`; None changes nothing."""
    before = _this.callback
    _this.callback = callback or before
    try:
        yield
    finally:
        _this.callback = before


@contextmanager
def track(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """Yield a function `report(done)` that shows how much of `total` is done, and the time left.

    A bar appears once the work has lasted two seconds. Inside another `track`, the outer bar moves on by
    shares of its current step. Threads other than the main one show nothing, unless `reported_to` was
    called in them: the thread that started them knows how many of their steps are done.
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
    """Return True if the calling thread is the main thread of the process."""
    return threading.current_thread() is threading.main_thread()


def each(what: str, items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items of a sequence one by one and show how many are done, labelled `what`."""
    with track(what, len(items)) as report:
        for place, item in enumerate(items):
            report(place)
            yield item


class _Meter:
    """Progress of one computation: its label, amount of work, start time and, once drawn, its bar."""

    def __init__(self, what: str, total: float) -> None:
        self.what, self.total, self.done = what, total, 0.0
        self.started = self.printed = time.monotonic()
        self.bar: Progress | None = None

    def report(self, done: float) -> None:
        """Set the amount of work that is done, and show it."""
        self.done = done
        self.show(done)

    def show(self, done: float) -> None:
        """Pass the share done to the callback, and show it as a bar or as lines after two seconds."""
        if _this.callback is not None:
            _this.callback(self.what, min(done / self.total, 1.0))
        now = time.monotonic()
        if not _enabled or now - self.started < SHOW_AFTER or not _on_main_thread():
            return
        if sys.stderr.isatty():
            self._draw(done)
        elif now - self.printed >= PLAIN_STEP or self.printed == self.started:
            self.printed = now
            share = min(done / self.total, 1.0)
            left = (now - self.started) * (1 - share) / max(share, 1e-9)
            known = f", about {left:.0f} s left" if share >= ESTIMATED else ""
            print(f"{self.what}: {share:.0%}{known}", file=sys.stderr)  # noqa: T201

    def _draw(self, done: float) -> None:
        """Draw the progress bar on the terminal, or update it, with the amount of work done."""
        if self.bar is None:
            from rich.console import Console  # noqa: PLC0415 - only for long work
            from rich.progress import Progress  # noqa: PLC0415

            self.bar = Progress(console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task(self.what, total=self.total)
        self.bar.update(self.task, completed=done)

    def close(self) -> None:
        """Remove the progress bar from the terminal, if one was drawn."""
        if self.bar is not None:
            self.bar.stop()
