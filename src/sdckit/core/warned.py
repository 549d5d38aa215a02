"""Collect warnings as texts for the caller, besides issuing them as usual."""

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
    """Warn; the warning points at the line that called the package, however deep in it this is."""
    frame = _caller()
    said = frame.f_globals.setdefault("__warningregistry__", {})  # so that Python's filters know it again
    warnings.warn_explicit(text, UserWarning, *_line(frame), registry=said)


@contextmanager
def collected(texts: list[str]) -> Iterator[None]:
    """Add the warnings of a block to a list, and issue each once when the block has ended.

    They then point at the line that called the package, however deep in it they arose.
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
                warnings.warn_explicit(entry.message, entry.category, *_line(_caller()))


def _line(frame: FrameType) -> tuple[str, int]:
    """Return file and line of a call."""
    return frame.f_code.co_filename, frame.f_lineno


def _caller() -> FrameType:
    """Return the call into the package, the outermost one."""
    found = frame = sys._getframe(1)  # noqa: SLF001 - the standard way to a caller's line
    while frame.f_back is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            found = frame.f_back
        frame = frame.f_back
    return found
