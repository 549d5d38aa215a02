"""What a process of the page does: a search or a release, with progress and warnings sent as they come."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit import terminal
from sdckit.app.job import open_job
from sdckit.core.registry import short_title
from sdckit.core.roles import require_decided
from sdckit.io.atomic import sha256_of
from sdckit.progress import seconds_left
from sdckit.request import run as request_run
from sdckit.request.results import as_json
from sdckit.request.toml import check_job, request_of_job
from sdckit.selection.runner import in_use
from sdckit.selection.search import Search
from sdckit.selection.task import available_cores
from sdckit.terminal import EXPECTED, error_text, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sdckit.selection.search import MethodProgress

    Send = Callable[..., None]  # takes the kind of a line, and its content as keywords

INTERVAL = 0.25  # seconds between two lines of progress
PATIENCE = 10.0  # seconds to wait for an earlier search in the same folder, which is about to end
LOOKING = 0.1  # seconds between two looks at that folder


def run(task: Mapping[str, Any], send: Send) -> tuple[str, dict[str, Any]]:
    """Do a task; return the line that the command line prints for an error, empty without, and the result."""
    warned: list[str] = []

    def show(message: Warning | str, *_: object, **_more: object) -> None:
        """Send a warning, each once."""
        text = one_line(str(message))
        if text not in warned:
            warned.append(text)
            send("warning", text=text)

    warnings.showwarning = show
    try:
        if task["work"] == "search":
            _search(task["job"], Follower(send))
            return "", {}
        return "", _release(task["job"], task["save_job"], overwrite=task["overwrite"])
    except EXPECTED as error:
        missed = "not met: " if getattr(error, "exit_code", 2) == 1 else ""
        return one_line(f"{missed}{error_text(error)}"), {}
    except Exception as error:  # noqa: BLE001 - a fault, whose text may hold cells
        return f"internal error: {terminal.fault_text(error)}; report it", {}


def _release(job: dict[str, Any], save_job: str, *, overwrite: bool) -> dict[str, Any]:
    """Write the release of a job as `sdckit run` does; return its JSON and the SHA-256 of its report.

    The file at the path of the report is not read before the release has written it: it may be any file.
    """
    saved = Path(save_job) if save_job else None
    request = request_of_job(check_job(job), save_job=saved, overwrite=overwrite, as_json=True, quiet=True)
    found = request_run.run(request)
    if found.missed:
        raise found.missed
    report = sha256_of(request.report) if request.report else ""
    return {"result": json.loads(as_json(found.to_dict())), "report": report}


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
        self.methods = [asdict(one) | {"title": short_title(one.method)} for one in methods]

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
