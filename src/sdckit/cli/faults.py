"""One line on an error that nobody expected: its type and where it arose, never its text."""

from __future__ import annotations

import traceback
from pathlib import Path

from sdckit.cli import terminal

PACKAGE = Path(__file__).parents[1]


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
