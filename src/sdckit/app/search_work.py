"""The work of the search process: the search of a job, with its progress and warnings sent as they come."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

from sdckit.app.opened_job import open_job
from sdckit.cli.options import EXPECTED, error_text
from sdckit.cli.terminal import one_line
from sdckit.core.registry import short_title
from sdckit.core.roles import require_decided
from sdckit.progress import seconds_left
from sdckit.request.toml import check_job
from sdckit.selection.runner import in_use
from sdckit.selection.search import Search
from sdckit.selection.task import available_cores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sdckit.selection.search import MethodProgress

    Send = Callable[..., None]  # takes the kind of a line, and its content as keywords

INTERVAL = 0.25  # seconds between two lines of progress
PATIENCE = 10.0  # seconds to wait for an earlier search in the same folder, which is about to end
LOOKING = 0.1  # seconds between two looks at that folder


def run(content: dict[str, Any], send: Send) -> str | None:
    """Run the search of a job; return the line that `sdckit recommend` prints for an error, None without."""
    warned: list[str] = []

    def show(message: Warning | str, *_: object, **_more: object) -> None:
        """Send a warning, each once."""
        text = one_line(str(message))
        if text not in warned:
            warned.append(text)
            send("warning", text=text)

    warnings.showwarning = show
    try:
        _search(content, Follower(send))
    except EXPECTED as error:
        return one_line(error_text(error))
    return None


def _search(content: dict[str, Any], follower: Follower) -> None:
    """Run the search of a job as `sdckit recommend` does, up to the release; raise its errors."""
    opened = open_job(check_job(content))
    options = opened.search_options()
    folder, workers = options.pop("folder"), options.pop("workers") or available_cores()
    if folder is None:
        raise ValueError("[private] folder is missing, in which finished runs are kept; name one")
    original = opened.prepare()
    require_decided(original.roles.undecided)
    search = Search.of(original, **options)
    wait_for_others(folder)
    follower.begun = time.monotonic()
    search.run(folder, None, workers, follower.progress, follower.observe)
    follower.send_progress()


def wait_for_others(folder: Path) -> None:
    """Wait until no other search works in a folder, but not for long."""
    deadline = time.monotonic() + PATIENCE
    while in_use(folder) and time.monotonic() < deadline:
        time.sleep(LOOKING)


class Follower:
    """Takes how far a search and its methods are, and sends both a few times a second."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.methods: list[dict[str, Any]] = []
        self.step, self.share = "", 0.0
        self.begun, self.sent = time.monotonic(), 0.0

    def observe(self, methods: list[MethodProgress]) -> None:
        """Take how far each method is; it is sent with the next line of progress."""
        self.methods = [
            {
                "method": one.method,
                "title": short_title(one.method),
                "done": one.done,
                "expected": one.expected,
                "finished": one.finished,
            }
            for one in methods
        ]

    def progress(self, step: str, share: float) -> None:
        """Take the name of the step and the share done, and send them unless a line was sent just now."""
        self.step, self.share = step, share
        if time.monotonic() - self.sent >= INTERVAL:
            self.send_progress()

    def send_progress(self) -> None:
        """Send how far the search is."""
        self.sent = time.monotonic()
        left = seconds_left(self.sent - self.begun, self.share)
        self.send("progress", step=self.step, share=self.share, seconds_left=left, methods=self.methods)
