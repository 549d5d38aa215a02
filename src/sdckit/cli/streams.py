"""Standard streams that are closed or full, signals that end a command, and faults that end it."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path

from sdckit.cli import terminal

PACKAGE = Path(__file__).parents[1]
STANDARD = 3  # input, output and errors


def prepare_streams() -> None:
    """Replace closed streams by the null device, and print characters that an encoding lacks as escapes.

    Else the next file that is opened would take the place of a closed stream, and get what libraries print.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) < STANDARD:
        os.set_inheritable(handle, True)
    os.close(handle)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - until the end
    with suppress(AttributeError, ValueError):  # a replaced stream
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


class Ended(SystemExit):
    """The end of a command by a signal; its notes say what is left."""


def exit_on_signals() -> None:
    """Let signals that end the process clean up first, as Ctrl-C does; those that are ignored stay so."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        with suppress(ValueError):  # a thread that is not the main one
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _end)


def _end(number: int, _frame: object) -> None:
    """Raise the end of a command by a signal."""
    raise Ended(128 + number)


def discard_output(name: str) -> None:
    """Send what is left to be printed on a stream, which takes no more, to the null device."""
    with suppress(AttributeError, OSError, ValueError):  # a replaced stream has no handle
        os.dup2(os.open(os.devnull, os.O_WRONLY), getattr(sys, name).fileno())


def finish(code: int | str | None) -> None:
    """End the process with an exit code, also where a stream takes no more text."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except (OSError, ValueError):
            discard_output(name)
    sys.exit(code)


def fault_text(error: BaseException) -> str:
    """Return the type of an error and the innermost line of this package that it passed.

    Parameters
    ----------
    error
        The error; its message is left out, as it may hold a value of the file.

    Returns
    -------
    str
        Such as "KeyError at sdckit/app/panel.py:88".

    Examples
    --------
    >>> fault_text(KeyError("a value"))
    'KeyError outside of sdckit'
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    places = [
        f"{path.relative_to(PACKAGE.parent).as_posix()}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if (path := Path(frame.f_code.co_filename)).is_relative_to(PACKAGE)
    ]
    return (
        f"{type(error).__name__} at {places[-1]}" if places else f"{type(error).__name__} outside of sdckit"
    )


def print_fault(error: BaseException) -> None:
    """Print one line on an error to standard error."""
    terminal.print_to_stderr("internal error", fault_text(error))
