"""Texts on which columns of a file were masked and how many of their cells are unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sdckit.cli import terminal
from sdckit.core.text import plural
from sdckit.metrics.doubts import unchanged_cells

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from sdckit.metrics.pair import Pair


def idle_columns(pair: Pair) -> list[str]:
    """Return the names of the masked columns in which every cell is equal to the original."""
    same, cells = unchanged_cells(pair)
    return [name for name, s, n in zip(pair.columns, same, cells, strict=True) if s == n]


def columns_note(
    masked: Sequence[str],
    columns: Sequence[str],
    published: Sequence[str],
    *,
    idle: Collection[str] = (),
    numbered: Collection[str] = (),
    whole: bool = False,
) -> str:
    """Return a note on what happened to a table's columns; many masked ones are shortened unless `whole`.

    `published` are the columns that are left, `numbered` those of them that have fresh numbers, `idle` those
    that masking left as they were.
    """
    kept = [name for name in columns if name in published and name not in masked]
    lists = {
        "masked": [name for name in masked if name not in idle],
        "not changed by the method": [name for name in masked if name in idle],
        "not masked": [name for name in kept if name not in numbered],
        "numbered anew": [name for name in kept if name in numbered],
        "not published": [name for name in columns if name not in published],
    }
    return "; ".join(
        f"{what}: {terminal.join_names(found, whole=whole or what != 'masked')}"
        for what, found in lists.items()
        if found or what == "masked"
    )


def unchanged_cells_note(pair: Pair) -> str:
    """Return a note on how many cells of the masked columns are equal to the original."""
    same, cells = unchanged_cells(pair)
    columns = f"{len(cells)} masked {plural(len(cells), 'column')}"
    return f"{same.sum()} of {cells.sum()} cells in {columns} are equal to the original"


def roles_facts(masked: Iterable[str]) -> dict[str, str]:
    """Return, for a report, the names of the masked variables; the others stand beside its headline."""
    return {"variables": ", ".join(masked)}
