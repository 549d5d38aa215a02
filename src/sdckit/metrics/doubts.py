"""Signs that a masked file was not masked, or that its rows are not paired with the right records.

Warnings name columns, never the value of a cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl

from sdckit.core.cells import sample_rows
from sdckit.core.checks import warn
from sdckit.core.guesses import guess_column
from sdckit.core.roles import MEASURED, warn_of_undecided

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from sdckit.arrays import Ints
    from sdckit.core.roles import Roles
    from sdckit.core.table import Table
    from sdckit.metrics.pair import Pair

IDENTICAL = "the masked file is identical to the original in every compared column; mask it first"
MOVED = 0.2  # share of rows with another value, from which on a column looks shuffled
SAMPLE = 1_000  # rows that are compared first: most columns differ there


def warn_of_doubts(pair: Pair, *, paired: bool = True) -> None:
    """Warn of unmasked columns, copies of original columns, and rows that look wrongly paired.

    `paired` is False where masked rows stand for no original record.
    """
    texts = dropped_doubts(pair.original.roles, published_names(pair))
    texts += [*unmasked_doubts(pair), *copy_doubts(pair)] if paired else []
    if paired and pair.by_position:
        texts += order_doubts(pair)
    for text in texts:
        warn(text)


def warn_of_published(pair: Pair, skip: Iterable[str] = ()) -> None:
    """Warn of the columns in the masked file whose role is undecided, those in `skip` excepted."""
    names, found = published_names(pair), pair.original.roles.undecided
    warn_of_undecided((one for one in found if one.column in names and one.column not in skip), MEASURED)


def require_published(roles: Roles, published: Collection[str]) -> None:
    """Raise ValueError if the intruder is said to know a column that the masked file does not have."""
    absent = [name for name in roles.known or () if name not in published]
    if absent:
        raise ValueError(
            f"known names {', '.join(map(repr, absent))}, which the masked file does not have; "
            "leave out of known= what is not published"
        )


def published_names(pair: Pair) -> Collection[str]:
    """Return the names of the columns of the masked file."""
    return pair.columns if pair.table is None or pair.table.frame is None else pair.table.names


def dropped_doubts(roles: Roles, published: Collection[str]) -> list[str]:
    """Return a warning that names columns of the masked file that were to be dropped."""
    found = ", ".join(repr(name) for name in roles.drop if name in published)
    return [f"the masked file still has columns to be dropped: {found}; remove them first"] if found else []


def unmasked_doubts(pair: Pair) -> list[str]:
    """Return a warning if the compared columns are identical, or unchanged in more than half of the cells."""
    same, cells = unchanged_cells(pair)
    if (same == cells).all() and np.array_equal(pair.original.missing, pair.missing):
        return [IDENTICAL]
    ours = pair.original.values
    varies = np.fmin.reduce(ours, initial=np.inf) < np.fmax.reduce(ours, initial=-np.inf)
    found = [repr(name) for name, one in zip(pair.columns, varies & (2 * same > cells), strict=True) if one]
    if not found:
        return []
    return [f"more than half of the cells are as in the original: {', '.join(found)}; mask more strongly"]


def unchanged_cells(pair: Pair) -> tuple[Ints, Ints]:
    """Return, per compared column, the number of cells equal to the original and of cells with a value."""
    return (pair.original.values == pair.masked).sum(axis=0), (~pair.original.missing).sum(axis=0)


# --- copies of original columns ---


def copy_doubts(pair: Pair) -> list[str]:
    """Return a warning that names columns of the masked file that repeat an original one of another name."""
    ours, theirs = pair.original.table, pair.table
    if ours is None or theirs is None or theirs.frame is None:
        return []
    found = [
        f"{copy!r} repeats {name!r}"
        for copy in theirs.numeric_names
        if copy not in pair.columns
        for name in _repeated_variables(pair, theirs.column(copy))
        if name != copy
    ]
    if not found:
        return []
    return [f"the masked file has columns with original values: {', '.join(found)}; drop them"]


def _repeated_variables(pair: Pair, column: nw.Series[Any]) -> Iterator[str]:
    """Yield the names of the compared columns whose original values are those of a masked column."""
    cells = np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)
    cells = cells if pair.places is None else cells[pair.places]
    n = pair.original.n
    few = np.arange(n) if n <= SAMPLE else sample_rows(n, SAMPLE)
    for j, name in enumerate(pair.columns):
        values = pair.original.values[:, j]
        if all(np.array_equal(values[at], cells[at], equal_nan=True) for at in (few, slice(None))):
            seen = values[~np.isnan(values)]
            if seen.size and (seen != seen[0]).any():  # equal constants say nothing
                yield name


# --- rows in another order ---


def order_doubts(pair: Pair) -> list[str]:
    """Return warnings of rows that are paired by position though a column or an index says otherwise.

    Columns that are not compared have the same values in both files, in another order: each value once, or
    many in other rows. Of numbers only those count that look like identifiers, or that are said to be
    untouched: others may be masked by swapping.
    """
    ours, theirs = pair.original.table, pair.table
    if ours is None or theirs is None or ours.frame is None or theirs.frame is None:
        return []
    untouched = {*pair.original.roles.untouched, *pair.original.roles.by}
    unique, moved = [], []
    for name in [name for name in ours.names if name in theirs.names and name not in pair.columns]:
        one, other = (_comparable_cells(table, name) for table in (ours, theirs))
        if one is None or other is None or one.dtype != other.dtype or len(one) != len(other):
            continue
        text = one.dtype == pl.String
        if _reordered(one, other) and (text or guess_column(ours.column(name)).role == "key"):
            unique.append(repr(name))
        far = (text or name in untouched) and one.ne_missing(other).sum() > MOVED * len(one)
        if far and one.sort().equals(other.sort()):
            moved.append(repr(name))
    if unique:
        fact = f"the values of {', '.join(unique)} are unique, the same in both files and in another order"
        return [f"{fact}, and rows are paired by position; name it as key="]
    if moved:
        fact = f"the values of {', '.join(moved)} are the same in both files, but in another order"
        return [f"{fact}, as if rows were shuffled; give their order or a key="]
    return []


def _comparable_cells(table: Table, name: str) -> pl.Series | None:
    """Return a column as a polars series that can be sorted; None for nested and binary cells."""
    column = table.column(name)
    if column.dtype.is_nested() or column.dtype in {nw.Object, nw.Unknown, nw.Binary, nw.Boolean}:
        return None
    cells = column.to_polars()
    return cells.cast(pl.Float64) if column.dtype.is_numeric() else cells.cast(pl.String)


def _reordered(one: pl.Series, other: pl.Series) -> bool:
    """Return True if two columns have the same values, each once, in another order."""
    if one.has_nulls() or other.has_nulls() or one.equals(other):
        return False
    if one[:SAMPLE].is_duplicated().any() or one.n_unique() < len(one):
        return False
    return one.sort().equals(other.sort(), check_names=False)
