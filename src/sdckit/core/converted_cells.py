"""One conversion by which cells are compared: 1, 1.0 and "1" are equal, dates are dates, all else is text."""

from __future__ import annotations

import math
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core.table import Table, is_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import narwhals as nw

    from sdckit.kernels.jit import Ints, UInt64s

NUMBER, DAY, TEXT = 0, 1, 2  # kinds of converted cells, in the order in which they are sorted
NUMBER_LIKE = r"^[\s\d+\-.]"  # how a text begins that may be a number or a date


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
        cells: list[Any] = [
            None if is_missing(c) else c if _hashable(c) else repr(c) for c in column.to_list()
        ]
        places: dict[Any, int] = {}
        numbers = [-1 if c is None else places.setdefault((type(c), c), len(places)) for c in cells]
        return [cell for _, cell in places], np.array(numbers, np.int64)
    plain = column.fill_nan(None) if column.dtype.is_float() else column
    if plain.dtype in (pl.Categorical, pl.Enum):
        plain = plain.cast(pl.String)
    ranks = plain.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
    return plain.drop_nulls().unique().sort().to_list(), ranks


def cell_marks(column: pl.Series) -> UInt64s:
    """Return a pseudo-random number for each cell, the same for cells that are equal once converted.

    It depends on the cell alone, so that marks of columns read in parts, or of other types, can be compared.
    A missing cell has the mark 0. Two different cells of a million share a mark with a chance below 1e-7.
    """
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return _number_marks(column)
    distinct, places = _distinct_cells(column)
    keys = [converted(cell) for cell in distinct]
    marks = np.zeros(len(keys) + 1, np.uint64)  # the last is that of missing cells, at -1
    for kind in (NUMBER, DAY, TEXT):
        rows = [row for row, key in enumerate(keys) if key is not None and key[0] == kind]
        values = [key[1] for key in keys if key is not None and key[0] == kind]
        if kind == NUMBER:
            marks[rows] = _number_marks(pl.Series(values, dtype=pl.Float64))
        else:
            marks[rows] = pl.Series(values, dtype=pl.String).hash(kind).to_numpy() | np.uint64(1)
    return marks[places]


def _number_marks(column: pl.Series) -> UInt64s:
    """Return the marks of numbers: those of integers and of equal floats are the same."""
    floats = column.cast(pl.Float64).fill_nan(None)
    bits = (floats.fill_null(0.0).to_numpy() + 0.0).view(np.uint64)  # no -0.0
    if column.dtype in (pl.Int64, pl.UInt64):  # beyond 2**53 integers differ where their floats do not
        lost = column.cast(pl.Int128) - floats.fill_null(0.0).cast(pl.Int128)
        bits = bits + lost.fill_null(0).cast(pl.Int64).to_numpy().view(np.uint64)
    marks = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    marks = (marks ^ (marks >> np.uint64(32))) | np.uint64(1)
    return np.where(floats.is_null().to_numpy(), np.uint64(0), marks)


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


def as_polars(data: Any) -> pl.DataFrame:
    """Return a table of any type as a polars frame."""
    table = Table(data)
    if table.frame is None:
        return pl.DataFrame({name: table.array[:, j] for j, name in enumerate(table.names)})
    return pl.DataFrame([polars_column(table.column(name)) for name in table.names])
