"""Progress bars and progress callbacks for long computations; silent in scripts unless switched on.

Notebooks show a bar without being asked, which is gone when the work is done.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.progress import Progress

SHOW_AFTER = 2.0  # seconds before anything is shown
ESTIMATED = 0.01  # share of the work from which on the time left is estimated
PLAIN_STEP = 5.0  # seconds between lines where stderr is not a terminal
NOTEBOOK_STEP = 0.2  # seconds between two drawings of the bar in a notebook

STOPPING = threading.Event()  # set while threads are to leave their work

Item = TypeVar("Item")

ProgressCallback = Callable[[str, float], None]  # gets the name of the step and the share done of the whole


class Report(Protocol):
    """Function that takes the amount of work done, the size of the next step, and perhaps its name."""

    def __call__(self, done: float, ahead: float = 1.0, what: str | None = None, /) -> None:
        """Report progress."""


_enabled: bool | None = None  # None: in notebooks only
_notices = False


class _Thread(threading.local):
    """Progress state of one thread: its callback, and the step of the running computation.

    A step is the meter that shows it and the shares of the whole work at which it begins and ends.
    """

    step: tuple[_Meter, float, float] | None = None
    callback: ProgressCallback | None = None


_this = _Thread()


def show_progress(on: bool = True) -> None:  # noqa: FBT001, FBT002 - reads as a switch
    """Switch the progress bars of long computations on, or off with `on=False` (`sdc.show_progress()`).

    Without a call, notebooks show them and scripts do not.
    """
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
        self.notebook_bar: _NotebookBar | None = None
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
        if _enabled is False or now - self.started < SHOW_AFTER or not _on_main_thread():
            return
        first, since = self.printed == self.started, now - self.printed
        if _in_notebook():
            if first or since >= NOTEBOOK_STEP:
                self.printed = now
                self._draw_in_notebook(self._words(now))
        elif not _enabled:
            return
        elif sys.stderr.isatty():
            self._draw()
        elif first or since >= PLAIN_STEP:
            self.printed = now
            print(self._words(now), file=sys.stderr)  # noqa: T201

    def _words(self, now: float) -> str:
        """Return the label, the share done and the time left as text."""
        left = seconds_left(now - self.started, self.share)
        known = "" if left is None else f", about {left:.0f} s left"
        return f"{self.what}: {self.share:.0%}{known}"

    def _draw_in_notebook(self, words: str) -> None:
        """Draw the bar below the cell that runs, or update it."""
        if self.notebook_bar is None:
            self.notebook_bar = _NotebookBar()
        self.notebook_bar.draw(words, self.share)

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
        """Remove the progress bar, if one was drawn."""
        if self.bar is not None:
            self.bar.stop()
        if self.notebook_bar is not None:
            self.notebook_bar.clear()


def _in_notebook() -> bool:
    """Return True if this process runs the cells of a notebook; IPython is not imported for the question."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class _NotebookBar:
    """A progress bar below the cell of a notebook that runs; the notebook's program need not be named."""

    def __init__(self) -> None:
        self.output: Any = None

    def draw(self, words: str, share: float) -> None:
        """Show the words and a bar of so large a share."""
        text = escape(words)
        self._show(words, f'<progress max="1" value="{share:.4f}" aria-label="{text}"></progress> {text}')

    def clear(self) -> None:
        """Leave nothing of the bar; other output of the cell stays."""
        self._show("", "")

    def _show(self, words: str, html: str) -> None:
        """Show text and HTML in the place of the bar, which the first call makes."""
        bundle = {"text/plain": words, "text/html": html}
        if self.output is None:
            show: Any = import_module("IPython.display").display
            self.output = show(bundle, raw=True, display_id=True)
        else:
            self.output.update(bundle, raw=True)
