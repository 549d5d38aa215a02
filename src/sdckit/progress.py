"""Progress bars and progress callbacks for long computations; silent unless switched on."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.progress import Progress

SHOW_AFTER = 2.0  # seconds before anything is shown
ESTIMATED = 0.01  # share of the work from which on the time left is estimated
PLAIN_STEP = 5.0  # seconds between lines where stderr is not a terminal

STOPPING = threading.Event()  # set while threads are to leave their work

Item = TypeVar("Item")

ProgressCallback = Callable[[str, float], None]  # gets the name of the step and the share done of the whole


class Report(Protocol):
    """Function that takes the amount of work done, the size of the next step, and perhaps its name."""

    def __call__(self, done: float, ahead: float = 1.0, what: str | None = None, /) -> None:
        """Report progress."""


_enabled = False
_notices = False


class _Thread(threading.local):
    """Progress state of one thread: its callback, and the step of the running computation.

    A step is the meter that shows it and the shares of the whole work at which it begins and ends.
    """

    step: tuple[_Meter, float, float] | None = None
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
    _this.callback = before if callback is None else callback
    try:
        yield
    finally:
        _this.callback = before


@contextmanager
def track(what: str, total: float) -> Iterator[Report]:
    """Yield a function `report(done)` that shows how much of `total` is done, and the time left.

    A bar appears once the work has lasted two seconds. Inside another `track`, the outer bar moves on by
    shares of its current step, so that one bar shows all of a command; it never moves back. Threads other
    than the main one show nothing, unless `reported_to` was called in them: the thread that started them
    knows how many of their steps are done.
    """
    if _this.callback is None and not _on_main_thread():
        yield lambda _done, _ahead=1.0, _what=None: None
        return
    outer, total = _this.step, max(total, 1e-12)
    meter, low, high = outer or (_Meter(what), 0.0, 1.0)

    def report(done: float, ahead: float = 1.0, what: str | None = None) -> None:
        """Show the amount of work that is done; work inside the next step moves the bar by `ahead`."""
        begin, end = (low + (high - low) * min(part / total, 1.0) for part in (done, done + ahead))
        _this.step = (meter, begin, end)
        meter.show(begin, what)

    _this.step = (meter, low, low + (high - low) / max(total, 1.0))
    try:
        yield report
        if outer is None:
            meter.finish()
    finally:
        if _this.step is not None and _this.step[0] is meter:  # else a loop left by an error ends late
            _this.step = outer
        if outer is None:
            meter.close()


def seconds_left(elapsed: float, share: float) -> float | None:
    """Return how many seconds work will still take, from those it took so far; None at its very start."""
    return elapsed * (1 - share) / share if share >= ESTIMATED else None


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
    """Progress of one computation: its label, the share done, its start time and, once drawn, its bar."""

    def __init__(self, what: str) -> None:
        self.what, self.share = what, 0.0
        self.started = self.printed = time.monotonic()
        self.bar: Progress | None = None
        self._call_back()

    def _call_back(self) -> None:
        """Pass the name of the step and the share done to the callback, if there is one."""
        if _this.callback is not None:
            _this.callback(self.what, self.share)

    def show(self, share: float, what: str | None = None) -> None:
        """Report the share done, and show it as a bar or as lines after two seconds; `what` is a new label.

        A share below an earlier one is not shown: a step that holds several computations begins again.
        """
        self.share, self.what = max(self.share, share), what or self.what
        self._call_back()
        now = time.monotonic()
        if not _enabled or now - self.started < SHOW_AFTER or not _on_main_thread():
            return
        if sys.stderr.isatty():
            self._draw()
        elif now - self.printed >= PLAIN_STEP or self.printed == self.started:
            self.printed = now
            left = seconds_left(now - self.started, self.share)
            known = "" if left is None else f", about {left:.0f} s left"
            print(f"{self.what}: {self.share:.0%}{known}", file=sys.stderr)  # noqa: T201

    def _draw(self) -> None:
        """Draw the progress bar on the terminal, or update it, with the share done."""
        if self.bar is None:
            from rich.console import Console  # noqa: PLC0415 - only for long work
            from rich.progress import Progress  # noqa: PLC0415

            self.bar = Progress(console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task(self.what, total=1.0)
        self.bar.update(self.task, completed=self.share, description=self.what)

    def finish(self) -> None:
        """Tell the callback that all is done."""
        self.share = 1.0
        self._call_back()

    def close(self) -> None:
        """Remove the progress bar from the terminal, if one was drawn."""
        if self.bar is not None:
            self.bar.stop()
