"""Whether texts may quote cells of the data: errors and warnings of the commands do, the page does not."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SWITCH = "SDCKIT_QUOTE_CELLS"  # of the environment, so that processes started later follow it, too
NEVER = "never"
HIDDEN = "(not shown)"


def cells_are_quoted() -> bool:
    """Return False where errors, warnings and notes must not hold a cell of the data."""
    return os.environ.get(SWITCH) != NEVER


@contextmanager
def hidden_cells() -> Iterator[None]:
    """Let no message quote a cell, in this process and in those that it starts inside of the block."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = NEVER
    try:
        yield
    finally:
        os.environ.pop(SWITCH)
        if before is not None:
            os.environ[SWITCH] = before


def quoted(cell: object) -> str:
    """Return a cell in quotation marks for a message, or a remark in its place.

    Parameters
    ----------
    cell
        A cell of the data, or a text made of cells, such as the name of a stratum.

    Returns
    -------
    str
        Such as "'north'", or "(not shown)".

    Examples
    --------
    >>> quoted("north")
    "'north'"
    """
    return shown(repr(cell))


def shown(text: object) -> str:
    """Return a text that holds cells, such as a number or a list of strata, or a remark in its place."""
    return str(text) if cells_are_quoted() else HIDDEN


def refuse_patterns(names: Iterable[str], where: str = "") -> None:
    """Raise ValueError for a name that polars takes for a pattern of names: *, or one from ^ to $.

    No way of asking for the exact name helps: functions of a single column look it up by its name, too.
    """
    for name in names:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise ValueError(f"a column{where} is named {name!r}, which stands for other names; rename it")
