"""Issue warnings that point at the caller's line, and collect warnings as texts."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

PACKAGE = str(Path(__file__).parent.parent)


def warn(text: str) -> None:
    """Issue a UserWarning that points at the line outside the package from which the package was called."""
    frame = _outside_caller()
    issued = frame.f_globals.setdefault("__warningregistry__", {})  # lets Python's filters skip repetitions
    warnings.warn_explicit(text, UserWarning, *_file_and_line(frame), registry=issued)


@contextmanager
def collect_warnings(texts: list[str]) -> Iterator[None]:
    """Add the texts of warnings raised in a `with` block to a list, and issue each once at its end.

    They point at the line that called the package, wherever in the package they were raised.
    """
    seen: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            yield
    finally:
        for entry in seen:
            if str(entry.message) not in texts:
                texts.append(str(entry.message))
                warnings.warn_explicit(entry.message, entry.category, *_file_and_line(_outside_caller()))


def _file_and_line(frame: FrameType) -> tuple[str, int]:
    """Return the file name and line number of a stack frame."""
    return frame.f_code.co_filename, frame.f_lineno


def _outside_caller() -> FrameType:
    """Return the stack frame outside the package from which the package was called."""
    found = frame = sys._getframe(1)  # noqa: SLF001 - the standard way to a caller's line
    while frame.f_back is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            found = frame.f_back
        frame = frame.f_back
    return found
