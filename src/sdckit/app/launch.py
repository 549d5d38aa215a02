"""Start the page: check what was asked for, listen, say where, open the browser, and serve until the end."""

from __future__ import annotations

import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdckit import terminal
from sdckit.app.folders import start_folder
from sdckit.app.guards import HOST, Address, Guard
from sdckit.app.server import PageServer
from sdckit.core.checks import hidden_cells
from sdckit.io import files

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

PAGES = "sdckit.app.pages"  # imported when the browser has been opened, which takes as long
WAITING = 1024  # connections that the system may hold until the server takes them
REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={url}">'


def run_app(
    data: Path | None,
    *,
    port: int | None = None,
    browser: bool = True,
    preview: bool = True,
    idle: float = 60.0,
    finish: bool = False,
    make: Callable[[Path, Path | None, bool], tuple[ASGIApp, Any]] | None = None,
) -> None:
    """Serve the page until Ctrl-C, SIGTERM, or until it was idle for long enough.

    Parameters
    ----------
    data
        The file to open first, if any.
    port
        The port of 127.0.0.1; a random free one if not given.
    browser
        Open the browser.
    preview
        Show the first rows of the file.
    idle
        Minutes without a request and without running work after which the page ends.
    finish
        Finish running work before Ctrl-C ends the page; else it is stopped, and what it measured is kept.
    make
        Returns the application and its session, which has `busy` and `close`, for a start folder, a file and
        `preview`; by default the page's.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C ended the page.
    OSError
        The file cannot be read, or the port is in use.
    ValueError
        An option or the suffix of the file is wrong.
    """
    check_idle(idle)
    if data is not None:
        check_data(data)
    start = start_folder(data)
    with ExitStack() as at_end:
        at_end.enter_context(hidden_cells())
        listening = at_end.enter_context(listen(port))
        address = Address(listening.getsockname()[1])
        print(address.url, flush=True)  # noqa: T201 - the address holds nothing to escape
        if sys.stderr.isatty():
            terminal.print_to_stderr("note", "the address works once; Ctrl-C ends the page")
        redirect = Redirect(address.url) if browser and has_screen() else None
        if redirect is not None:
            at_end.callback(redirect.delete)
            redirect.open()
        app, work = (make or make_page)(start, None if data is None else data.resolve(), preview)
        at_end.callback(work.close)
        guard = Guard(app, address)
        server = PageServer(
            guard, lambda: _look_after(guard, work, redirect) > idle * 60, lambda: finish and work.busy()
        )
        server.run([listening])
    for number in server.signals[:1]:
        end_by_signal(number)


def make_page(start: Path, data: Path | None, preview: bool) -> tuple[ASGIApp, Any]:  # noqa: FBT001 - one caller
    """Return the application of the page and its session."""
    pages = import_module(PAGES)
    session = pages.Session(start, data, preview)
    return pages.make_app(session), session


def _look_after(guard: Guard, work: Any, redirect: Redirect | None) -> float:
    """Return the seconds for which nobody used the page; delete the redirect file when it was used."""
    if redirect is not None and guard.address.used:
        redirect.delete()
    if guard.active or work.busy():
        guard.last = time.monotonic()
    return time.monotonic() - guard.last


def end_by_signal(number: int) -> None:
    """End the command as the signal that ended the page would have ended it."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt("the page is closed; finished runs of a search are kept")
    sys.exit(128 + number)


def check_idle(idle: float) -> None:
    """Raise ValueError unless `idle` is a number of minutes above 0."""
    if not (math.isfinite(idle) and idle > 0):
        raise ValueError(f"--idle is {idle:g}; give a number of minutes above 0")


def check_data(data: Path) -> None:
    """Raise an error if the file to be opened first is missing, no file, or of unknown suffix."""
    with files.explain_read_errors(data):
        files.check_readable(data)
        data.stat()
        if not data.is_file():
            raise ValueError(f"'{data}' is no file; name one that holds a table")
        data.open("rb").close()


def listen(port: int | None) -> socket.socket:
    """Return a socket that listens on a port of this machine alone; a random free port if none is given.

    Parameters
    ----------
    port
        The port, or None.

    Returns
    -------
    socket.socket
        It takes connections from now on, even before the server runs.

    Raises
    ------
    OSError
        The port is in use, or not for this user.
    ValueError
        There is no such port.
    """
    if port is not None and not 1 <= port <= 65535:
        raise ValueError(f"there is no port {port}; give --port a number from 1 to 65535, or leave it out")
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it would let others take the port over
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port or 0))
        listening.listen(WAITING)
    except OSError as error:
        listening.close()
        reason = (error.strerror or "unknown reason").lower()
        raise OSError(
            f"cannot use port {port or 'of any number'}: {reason}; give another --port, or none"
        ) from error
    return listening


def has_screen() -> bool:
    """Return True if a browser can show a window."""
    if os.name != "posix" or sys.platform == "darwin":
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


class Redirect:
    """A private file that sends the browser to the page: all users see the words of commands, but not files.

    Parameters
    ----------
    url
        The address, token included.
    """

    def __init__(self, url: str) -> None:
        self.folder: Path = Path(tempfile.mkdtemp(prefix="sdckit-"))  # for its owner alone
        self.file: Path = self.folder / "open.html"
        handle = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as out:
            out.write(REDIRECT.format(url=url))

    def open(self) -> None:
        """Open the file in the browser by another process, as browsers may print, and block."""
        nothing = subprocess.DEVNULL
        words = [sys.executable, "-I", "-m", "webbrowser", self.file.as_uri()]
        try:
            subprocess.Popen(  # noqa: S603 - our own words
                words, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
            )
        except OSError:
            terminal.print_to_stderr("note", "no browser could be opened; open the address above")

    def delete(self) -> None:
        """Delete the file and its folder, if they are still there."""
        shutil.rmtree(self.folder, ignore_errors=True)
