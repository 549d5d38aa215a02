"""A search or a release as a process of its own: reads what to do, and prints progress as lines of JSON.

It is started as `python -m sdckit.app.child` in the folder that paths are relative to. Its standard input has
the task as one line of JSON and stays open: where it ends, because the server died or stops the work, that is
interrupted as by Ctrl-C. Finished runs of a search are kept; a release is written whole or not at all.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from sdckit.app.work import Send

CHUNK = 65_536  # bytes read at a time


def sender_to(stream: TextIO) -> Send:
    """Return a function that prints lines of JSON to a stream."""

    def send(kind: str, **content: Any) -> None:
        """Print one line; nothing happens where nobody reads it any more."""
        with suppress(OSError, ValueError):
            print(json.dumps({"kind": kind} | content), file=stream, flush=True)

    return send


def read_line(handle: int) -> bytes:
    """Return the first line of a file descriptor; a buffered reader would hold a lock at the exit."""
    found = b""
    while b"\n" not in found and (chunk := os.read(handle, CHUNK)):
        found += chunk
    return found


def interrupt_at_end(handle: int) -> None:
    """Interrupt the main thread as Ctrl-C does once a file descriptor has been read to its end."""
    with suppress(OSError):
        while os.read(handle, CHUNK):
            pass
    signal.raise_signal(signal.SIGINT)


def run_to_end(send: Send, interrupted: threading.Event) -> int:
    """Do the task on standard input and send how it ended; return the exit code."""
    handle, text = sys.stdin.fileno(), ""
    found: dict[str, Any] = {}
    try:
        task = json.loads(read_line(handle))
        threading.Thread(target=interrupt_at_end, args=(handle,), daemon=True).start()
        from sdckit.app import work  # noqa: PLC0415 - takes a second, and can be interrupted here

        text, found = work.run(task, send)
        stopped = bool(text) and interrupted.is_set()
    except BaseException:
        stopped = interrupted.is_set()  # an import that is interrupted may end with any error
        if not stopped:
            raise
    if stopped:
        send("stopped")
        return 130
    if text:
        send("error", text=text)
        return 2
    send("done", **found)
    return 0


def main() -> None:
    """Run the process."""
    send = sender_to(sys.stdout)
    sys.stdout = sys.stderr  # keep what libraries print out of the lines
    interrupted = threading.Event()

    def interrupt(*_: object) -> None:
        """Raise KeyboardInterrupt in the main thread, once: what ends then needs some time."""
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)  # also where the shell that started the server ignores them
    sys.exit(run_to_end(send, interrupted))


if __name__ == "__main__":
    main()
