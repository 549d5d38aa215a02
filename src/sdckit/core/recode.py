"""Recode columns that are published unmasked: bands, rounding, merged rare categories, coarser dates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl

from sdckit.core import cells, checks
from sdckit.core.cells import cell_numbers, date_format
from sdckit.core.table import Table, decimals_of, replaced_series, round_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.arrays import Bools, Floats, Ints

OTHER = "other"
SIZED = ("band", "round", "rare", "year")  # followed by a number, as in rare:20; years may be
DATES = ("year", "quarter", "month")
WAYS = "a width such as 5, 'round:100', 'rare:20', 'year', 'year:10', 'quarter' or 'month'"


@dataclass(frozen=True)
class Recoding:
    """One recoding of a column: its way (band, round, rare, year, quarter or month) and its size."""

    column: str
    way: str
    size: float = 0.0

    def __str__(self) -> str:
        size = repr(int(self.size) if self.size == int(self.size) else self.size)  # in full: it is read again
        if self.way == "band":
            return size
        return f"{self.way}:{size}" if self.size else self.way


def recode(data: Any, recodings: Mapping[str, Any], *, na: Any = None) -> Any:
    """Return a copy of the data with coarser values in some columns; missing cells stay missing.

    Parameters
    ----------
    data : table
        pandas, polars or pyarrow.
    recodings : dict
        How to recode each column: a number is the width of bands, each published as its lower end;
        "round:100" rounds to multiples; "rare:20" merges categories with fewer than 20 records into one,
        "other" (in a column of numbers, the first of 9, 99, 999 ... above all values); "year", "year:10",
        "quarter" and "month" shorten dates, also those written as text or as numbers such as 20240131.
    na : number or list of numbers, optional
        Numbers that stand for missing cells, which stay as they are.

    Returns
    -------
    table
        Of the type of `data`.

    Raises
    ------
    ValueError
        A column is unknown, or a recoding changes no cell or does not fit the column.

    Examples
    --------
    >>> import polars as pl, sdckit as sdc
    >>> data = pl.DataFrame({"age": [31, 34, 38], "born": ["1989-05-01", "1986-12-31", "1982-01-09"]})
    >>> sdc.recode(data, {"age": 5, "born": "year"}).rows()
    [(30, 1989), (30, 1986), (35, 1982)]
    """
    table = Table(data)
    found = recode_columns(table, parse_recodings(recodings), checks.missing_codes(na))
    return table.with_columns(found.values())


def parse_recodings(given: Any) -> tuple[Recoding, ...]:
    """Return the recodings of a dictionary such as {"age": 5, "town": "rare:20"}; parsed ones unchanged."""
    if given is None or (isinstance(given, tuple) and all(isinstance(one, Recoding) for one in given)):
        return given or ()
    if not isinstance(given, Mapping):
        raise TypeError(f"recode is {type(given).__name__}; give a dict such as {{'age': 5, 'born': 'year'}}")
    return tuple(_parse_recoding(str(column), way) for column, way in given.items())


def _parse_recoding(column: str, given: Any) -> Recoding:
    """Return one checked recoding from a width or a text such as "rare:20"; raise ValueError for others."""
    text = str(given).strip()
    way, _, size = text.partition(":")
    if text in DATES:
        return Recoding(column, text)
    if not size and checks.as_number(given) is not None:
        way, size = "band", text
    number = checks.as_number(size)
    if way not in SIZED or number is None:
        raise ValueError(f"recoding of {column!r} is {given!r}; give {WAYS}")
    whole = way in {"rare", "year"}
    if number <= 0 or (whole and (number < 2 or not number.is_integer())):
        least = "a whole number of at least 2" if whole else "a number above 0"
        raise ValueError(f"recoding of {column!r} is {given!r}; give {least}")
    return Recoding(column, way, number)


def recode_columns(
    table: Table, recodings: Iterable[Recoding], na: Sequence[float] = ()
) -> dict[str, nw.Series[Any]]:
    """Return the recoded columns by name; raise ValueError for one that does not fit its column."""
    return {one.column: recode_column(table.column(one.column), one, na) for one in recodings}


def recode_column(column: nw.Series[Any], recoding: Recoding, na: Sequence[float] = ()) -> nw.Series[Any]:
    """Return one column recoded; raise ValueError if the recoding fits no cell or not the type."""
    gaps = cells.missing_cells(column)
    if column.dtype.is_numeric():
        gaps = gaps | np.isin(column.to_numpy(), list(na))
    if gaps.all():
        raise ValueError(f"column {recoding.column!r} has no cell with a value to recode; leave it out")
    if recoding.way in DATES:
        return _shorten_dates(column, recoding, gaps)
    if recoding.way == "rare":
        return _merge_rare(column, recoding, gaps)
    return _coarsen_numbers(column, recoding, gaps)


def _no_cell_error(recoding: Recoding, reason: str) -> ValueError:
    """Return the error for a recoding that would change nothing."""
    return ValueError(
        f"recoding {recoding.column!r} by {recoding} changes no cell: {reason}; "
        "give a larger number or leave it out"
    )


def _wrong_type_error(recoding: Recoding, needed: str) -> TypeError:
    """Return the error for a recoding of a column of another type."""
    return TypeError(f"recoding {recoding.column!r} by {recoding} needs {needed}; give another recoding")


# --- numbers ---


def _coarsen_numbers(column: nw.Series[Any], recoding: Recoding, gaps: Bools) -> nw.Series[Any]:
    """Return a numeric column in bands or rounded, whole numbers as such where the size is whole."""
    if not column.dtype.is_numeric() or cells.beyond_floats(column):
        raise _wrong_type_error(recoding, "a column of numbers")
    old = cells.as_floats(column)
    new = np.where(gaps, old, multiples(old, recoding.size, lower=recoding.way == "band"))
    if np.array_equal(old, new, equal_nan=True):
        raise _no_cell_error(recoding, "all values are such multiples")
    return replaced_series(column, new + 0.0, decimals_of(np.array([recoding.size])))


def multiples(values: Floats, size: float, *, lower: bool) -> Floats:
    """Return each value as a multiple of the size: the next lower one, or the nearest (half to even)."""
    steps = values / size
    nearest = np.round(steps)
    if lower:
        exact = np.abs(steps - nearest) <= 1e-9 * np.maximum(1, np.abs(steps))  # 0.3 is three times 0.1
        nearest = np.where(exact, nearest, np.floor(steps))
    return round_column(nearest * size, decimals_of(np.array([size])))


# --- categories ---


def _merge_rare(column: nw.Series[Any], recoding: Recoding, gaps: Bools) -> nw.Series[Any]:
    """Return a column with its rare categories merged, and further ones until the merged one is not rare."""
    if column.dtype.is_nested() or column.dtype in {nw.Object, nw.Unknown}:
        raise _wrong_type_error(recoding, "text or numbers")
    numbers = cell_numbers(column)
    rare = rare_numbers(numbers[~gaps], int(recoding.size))
    merged = np.isin(numbers, rare) & ~gaps
    if not merged.any():
        raise _no_cell_error(recoding, f"every value has at least {recoding.size:g} records")
    if column.dtype.is_numeric() and not cells.beyond_floats(column):
        values = cells.as_floats(column)
        values[merged] = _other_number(values)
        return replaced_series(column, values, 0)
    backend = column.implementation
    keep = nw.new_series(column.name, (~merged).tolist(), nw.Boolean, backend=backend)
    other = nw.new_series(column.name, [OTHER] * len(column), nw.String, backend=backend)
    return cells.as_text(column).zip_with(keep, other)


def rare_numbers(numbers: Ints, least: int) -> Ints:
    """Return the numbers of the categories with fewer records than `least`, rarest first.

    Where these together have too few records, too, the next larger categories are added.
    """
    counts = np.bincount(numbers)
    order = np.argsort(counts, kind="stable")
    order = order[counts[order] > 0]
    rare = int((counts[order] < least).sum())
    together = np.cumsum(counts[order])
    if rare and together[rare - 1] < least:
        rare = min(int(np.searchsorted(together, least)) + 1, len(order))
    found: Ints = order[:rare]
    return found


def _other_number(values: Floats) -> float:
    """Return the first of 9, 99, 999 ... above all finite values, the code of merged categories."""
    number, largest = 9.0, np.max(values[np.isfinite(values)], initial=0.0)
    while number <= largest:
        number = 10 * number + 9
    return number


# --- dates ---


def _shorten_dates(column: nw.Series[Any], recoding: Recoding, gaps: Bools) -> nw.Series[Any]:
    """Return years as whole numbers, quarters as 2024-Q1, months as 2024-01."""
    days = _as_days(column, gaps)
    if days is None:
        raise _wrong_type_error(recoding, "dates")
    if recoding.way == "year":
        years = days.dt.year().cast(pl.Int64)
        years = years if not recoding.size else years // int(recoding.size) * int(recoding.size)
        plain = column.implementation.is_pandas() and days.null_count()  # numpy has no missing whole number
        cells_of_years = years.cast(pl.Float64 if plain else pl.Int64).to_list()
        kind = nw.Float64 if plain else nw.Int64
        return nw.new_series(column.name, cells_of_years, kind, backend=column.implementation)
    if recoding.way == "month":
        texts = days.dt.strftime("%Y-%m")
    else:
        texts = days.dt.strftime("%Y-Q") + days.dt.quarter().cast(pl.String)
    return nw.new_series(column.name, texts.to_list(), nw.String, backend=column.implementation)


def _as_days(column: nw.Series[Any], gaps: Bools) -> pl.Series | None:
    """Return a column of dates, of text or of numbers such as 20240131 as dates; None if there are none."""
    kind = column.dtype
    if kind == nw.Date or kind == nw.Datetime:  # noqa: PLR1714 - a set would look for the same unit of time
        return column.to_polars().cast(pl.Date)
    if kind in {nw.Object, nw.Unknown}:
        found = [None if gap else cell for cell, gap in zip(column.to_list(), gaps, strict=True)]
        days = all(cell is None or isinstance(cell, date) for cell in found)
        return pl.Series([cell and cell.isoformat()[:10] for cell in found]).str.to_date() if days else None
    if not (kind.is_integer() or kind.is_float() or kind == nw.String):
        return None
    return _parse_days(column, gaps)


def _parse_days(column: nw.Series[Any], gaps: Bools) -> pl.Series | None:
    """Return text or whole numbers as dates; None if a cell is no date."""
    texts = column.to_polars()
    if texts.dtype != pl.String:
        texts = texts.cast(pl.Int64, strict=False).cast(pl.String)
    texts = texts.str.strip_chars()
    texts = texts.set(pl.Series(gaps) | (texts == "").fill_null(value=True), None)
    form = "%Y%m%d" if column.dtype.is_numeric() else date_format(texts.drop_nulls())
    if form is None:
        return None
    kind = pl.Datetime if "%H" in form else pl.Date
    days = texts.str.strptime(kind, form, strict=False)
    return days.cast(pl.Date) if days.null_count() == texts.null_count() else None
