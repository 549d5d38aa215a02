"""Columns that are published but were not masked: what a published cell says about its original.

Cells are compared after one conversion: 1, 1.0 and "1" are equal, dates and texts in ISO form are dates, all
else is text. The case of a column says how its published cells follow from the original ones:

a   equal in all records
b   a function of the original, such as a recoding, bands or rounding
c   equal or missing
d   equal in at least half of the records: a fact that may be wrong
e   none of these: no fact

A missing cell is a value like any other in cases a, b and d. A one-to-one change of distinct cells that does
not follow their order is a fresh numbering, which tells nothing (d or e).
"""

from __future__ import annotations

import math
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from sdckit.core.classes import class_numbers
from sdckit.core.table import is_missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import narwhals as nw

    from sdckit.core.table import Table
    from sdckit.kernels.jit import Ints
    from sdckit.metrics.original import Original

NUMBER, DAY, TEXT = 0, 1, 2  # kinds of converted cells, in the order in which they are sorted
NUMBER_LIKE = r"^[\s\d+\-.]"  # how a text begins that may be a number or a date


class UntouchedColumn(NamedTuple):
    """A published column that was not masked: its case, and the number of each cell in both files.

    Numbers are positions among the sorted distinct cells of both files; -1 stands for a missing cell.
    """

    name: str
    case: str
    original: Ints
    published: Ints


def untouched_column(name: str, original: nw.Series[Any], published: nw.Series[Any]) -> UntouchedColumn:
    """Return case and cells of a column from the original and the published one, with aligned rows."""
    x, y = polars_column(original), polars_column(published)
    if x.dtype == y.dtype and x.equals(y):
        cells = converted_numbers(x)[0]
        return UntouchedColumn(name, "a", cells, cells)
    ours, theirs = converted_numbers(x, y)
    return UntouchedColumn(name, column_case(ours, theirs), ours, theirs)


def column_case(x: Ints, y: Ints) -> str:
    """Return the case of a column, "a" to "e", from the numbers of its original and published cells."""
    same = x == y
    if same.all():
        return "a"
    if _is_function(x, y) and not _is_renumbering(x, y):
        return "b"
    if (same | (y == -1)).all():
        return "c"
    return "d" if 2 * np.count_nonzero(same) >= len(same) else "e"


def _is_function(x: Ints, y: Ints) -> bool:
    """Return True if equal cells of the first column always stand beside equal ones of the second."""
    image = np.empty(int(x.max()) + 2, np.int64)
    image[x + 1] = y
    return bool((image[x + 1] == y).all())


def _is_renumbering(x: Ints, y: Ints) -> bool:
    """Return True if all cells of both columns are distinct and neither rise nor fall together."""
    if min(x.min(), y.min()) < 0 or np.bincount(x).max() > 1 or np.bincount(y).max() > 1:
        return False
    steps = np.diff(y[np.argsort(x)])
    return not ((steps > 0).all() or (steps < 0).all())


# --- one conversion of cells ----------------------------------------------------------------------------


def polars_column(column: nw.Series[Any]) -> pl.Series:
    """Return a column of any table as a polars series, objects as they are."""
    try:
        return column.to_polars()
    except Exception:  # noqa: BLE001 - each library has its own errors for columns of mixed objects
        return pl.Series(column.name, column.to_list(), dtype=pl.Object)


def converted_numbers(*columns: pl.Series) -> list[Ints]:
    """Return each cell's position among the sorted distinct cells of all the columns; -1 if missing."""
    kinds = [column.dtype for column in columns]
    if all(kind.is_numeric() or kind == pl.Boolean for kind in kinds):
        whole = all((kind.is_integer() and kind != pl.UInt64) or kind == pl.Boolean for kind in kinds)
        together = pl.concat([_numbers(column, whole=whole) for column in columns])
    elif all(kind in (pl.Date, pl.Datetime) for kind in kinds):
        together = pl.concat([_days(column) for column in columns])
    elif all(kind in (pl.String, pl.Categorical, pl.Enum) for kind in kinds):
        texts = [column.cast(pl.String) for column in columns]
        if any(text.str.contains(NUMBER_LIKE).any() for text in texts):
            return _numbers_of_any_cells(texts)
        together = pl.concat(texts)
    else:
        return _numbers_of_any_cells(columns)
    ranks = together.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
    return np.split(ranks, np.cumsum([len(column) for column in columns])[:-1])


def _numbers(column: pl.Series, *, whole: bool) -> pl.Series:
    """Return a column of numbers as integers or floats of one type, null where a cell is missing."""
    if whole:
        return column.cast(pl.Int64).rename("")
    return (column.cast(pl.Float64).fill_nan(None) + 0.0).rename("")


def _days(column: pl.Series) -> pl.Series:
    """Return a column of dates or times as the number of microseconds since 1970, time zones left out."""
    return column.cast(pl.Datetime("us")).dt.replace_time_zone(None).to_physical().rename("")


def _numbers_of_any_cells(columns: Sequence[pl.Series]) -> list[Ints]:
    """Return `converted_numbers` of columns of any type, by converting each distinct cell."""
    found = [_distinct_cells(column) for column in columns]
    keys = [[converted(cell) for cell in distinct] for distinct, _ in found]
    order = {key: place for place, key in enumerate(sorted({k for part in keys for k in part if k}))}
    return [
        np.array([*(-1 if key is None else order[key] for key in part), -1], np.int64)[numbers]
        for part, (_, numbers) in zip(keys, found, strict=True)
    ]


def _distinct_cells(column: pl.Series) -> tuple[list[Any], Ints]:
    """Return the distinct cells of a column, and the position of each cell among them, -1 if missing."""
    if column.dtype == pl.Object or column.dtype.is_nested():
        cells: list[Any] = [None if is_missing(c) else c if _hashable(c) else repr(c) for c in column]
        places: dict[Any, int] = {}
        numbers = [-1 if c is None else places.setdefault((type(c), c), len(places)) for c in cells]
        return [cell for _, cell in places], np.array(numbers, np.int64)
    plain = column.fill_nan(None) if column.dtype.is_float() else column
    if plain.dtype in (pl.Categorical, pl.Enum):
        plain = plain.cast(pl.String)
    ranks = plain.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
    return plain.drop_nulls().unique().sort().to_list(), ranks


def _hashable(cell: Any) -> bool:
    """Return True if the cell can be a key of a dictionary."""
    try:
        hash(cell)
    except TypeError:
        return False
    return True


def converted(cell: Any) -> tuple[int, float | str] | None:
    """Return kind and value of a cell, so that 1, 1.0 and "1" are equal; None if it is missing."""
    if is_missing(cell):
        return None
    if isinstance(cell, str):
        return _converted_text(cell)
    if isinstance(cell, date):  # a datetime is one, too
        text = cell.isoformat()
        return DAY, text.removesuffix("T00:00:00")
    try:
        return NUMBER, float(cell)
    except (TypeError, ValueError):
        return TEXT, str(cell)


def _converted_text(text: str) -> tuple[int, float | str]:
    """Return the number or the day that a text says, or the text itself."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return NUMBER, number
    try:
        return DAY, date.fromisoformat(text).isoformat()
    except ValueError:
        return TEXT, text


# --- the columns of a file ------------------------------------------------------------------------------


def untouched_columns(
    original: Table, published: Table, names: Iterable[str], rows: Ints | None
) -> list[UntouchedColumn]:
    """Return the case and cells of columns that both tables have, from the file and the published file.

    `rows` gives the published row of each original; None where they are aligned.
    """
    found = []
    for name in names:
        column = published.column(name)
        there = column if rows is None else column[rows.tolist()]
        found.append(untouched_column(name, original.column(name), there))
    return found


def untouched_names(original: Original, published: Iterable[str], masked: Iterable[str] = ()) -> list[str]:
    """Return the published columns that the intruder knows and that no method changed."""
    others = {*original.columns, *masked}
    ours = () if original.table is None or original.table.frame is None else original.table.names
    return [n for n in original.roles.known_columns(published) if n not in others and n in ours]


def blocks_of_original(original: Original) -> Ints | None:
    """Return the class of each original by its known untouched columns, computed once; None without any.

    For releases that publish these columns as they are or recoded, as those of sweeps and searches do. The
    classes are kept where the table is not (`Original.without_table`).
    """
    if "blocks" not in original.kept:
        names = [] if original.table is None else untouched_names(original, original.table.names)
        numbers = [converted_numbers(polars_column(original.published_column(n)))[0] for n in names]
        classes = class_numbers([one + 1 for one in numbers], original.n) if numbers else None
        original.kept["blocks"] = classes if classes is None or classes.any() else None
    found: Ints | None = original.kept["blocks"]
    return found
