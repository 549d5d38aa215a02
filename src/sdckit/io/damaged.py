"""The error for a damaged file, in the same words for all formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike


def damaged_error(path: str | PathLike[str], form: str, again: str = "export") -> ValueError:
    """Return the error for a file that is not a whole one of its format; `again` is how a new one is made."""
    return ValueError(
        f"'{path}' is no whole {form} file (cut off, damaged or another format); copy or {again} it again"
    )
