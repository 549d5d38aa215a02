"""Cells as numbers and as classes: text that stands for numbers, missing codes, equal cells."""

from __future__ import annotations

import math
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from sdckit.core.table import LARGEST_INTEGER, Table, is_missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.arrays import Bools, Floats, Ints, UInt64s


PLAIN = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
OTHERWISE = r"^[+-]?([0-9]{1,3}([,. '][0-9]{3})+|[0-9]+)([.,][0-9]+)?$"  # 1,234.5 or 1.234,5 or 1,5 or +5
CURRENCY = (
    r"([A-Z]{0,3}\p{Sc}|(?i:AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|MXN|NOK|NZD|PLN|RON|SEK|TRY|USD|ZAR"
    r"|euros?|dollars?|pounds?|francs?|kr\.?|zł))"
)
FIGURE = r"([0-9]{1,3}([,. '\x{a0}\x{202f}][0-9]{3})+([.,][0-9]*)?|[0-9]+[.,]?[0-9]*|[.,][0-9]+)"
MARKED = (  # $5, -$5, 12 EUR, 5%
    rf"^[+-]?\s*{CURRENCY}\s*[+-]?{FIGURE}$"
    rf"|^[+-]?{FIGURE}\s*({CURRENCY}|[%‰]|(?i:percent|per cent|p\.?c\.?))$"
)
CODE = r"^-?0[0-9]"  # a cell such as 007 makes its column one of codes
DATES = {  # day before month before year; months first only where no day fits
    "%Y-%m-%d": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "%Y-%m-%d %H:%M:%S": r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$",
    "%Y-%m-%dT%H:%M:%S": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$",
    "%Y/%m/%d": r"^[0-9]{4}/[0-9]{2}/[0-9]{2}$",
    "%d.%m.%Y": r"^[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}$",
    "%d/%m/%Y": r"^[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}$",
    "%m/%d/%Y": r"^[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}$",
    "%d-%m-%Y": r"^[0-9]{1,2}-[0-9]{1,2}-[0-9]{4}$",
}


def date_format(cells: pl.Series) -> str | None:
    """Return the format in which all text cells are dates, such as "%Y-%m-%d"; None if there is none."""
    for form, pattern in DATES.items():
        if cells.str.contains(pattern).all():
            kind = pl.Datetime if "%H" in form else pl.Date
            if not cells.str.strptime(kind, form, strict=False).null_count():
                return form
    return None


def are_numbers(cells: pl.Series, *, decimal_comma: bool = False) -> tuple[pl.Series, pl.Series]:
    """Return for text cells whether each is a plain number, and whether it is one with marks or grouping."""
    plain = cells.str.replace(",", ".", literal=True) if decimal_comma else cells
    return plain.str.contains(PLAIN), cells.str.contains(OTHERWISE) | cells.str.contains(MARKED)


def is_mostly_numbers(cells: pl.Series, *, decimal_comma: bool = False) -> bool:
    """Return True if at least half of the text cells are numbers, and none is a code such as 007."""
    plain, marked = are_numbers(cells, decimal_comma=decimal_comma)
    numbers = int((plain | marked).sum())
    return len(cells) > 0 and 2 * numbers >= len(cells) and not cells.str.contains(CODE).any()


FIRST_DAY, LAST_DAY = 18000101, 22001231  # calendar dates written as whole numbers


def missing_cells(column: nw.Series[Any]) -> Bools:
    """Return True for each cell of a column that is null, or NaN in a column of floats."""
    gaps: Bools = column.is_null().to_numpy().astype(np.bool_)
    return gaps | np.isnan(column.to_numpy()) if column.dtype.is_float() else gaps


def observed(column: nw.Series[Any]) -> nw.Series[Any]:
    """Return the cells of a column that are not missing; empty text is missing, too."""
    gaps = missing_cells(column)
    if column.dtype == nw.String:
        gaps = gaps | column.str.strip_chars().__eq__("").fill_null(value=True).to_numpy().astype(np.bool_)
    return column.filter((~gaps).tolist()) if gaps.any() else column


def beyond_floats(column: nw.Series[Any]) -> bool:
    """Return True if a column holds whole numbers beyond 2**53, which float64 cannot tell apart."""
    if not column.dtype.is_integer():
        return False
    low, high = column.min(), column.max()
    return low is not None and bool(low < -LARGEST_INTEGER or high > LARGEST_INTEGER)


def as_floats(column: nw.Series[Any], na: Iterable[float] = ()) -> Floats:
    """Return a numeric column as floats, NaN in missing cells."""
    values = np.array(column.cast(nw.Float64).to_numpy(), np.float64)
    for code in na:
        values[values == code] = np.nan
    return values


def sample_rows(n: int, size: int) -> Ints:
    """Return the numbers of `size` different rows of n, always the same ones, in order."""
    rows: Ints = np.sort(np.random.default_rng(0).choice(n, size, replace=False, shuffle=False))
    return rows


def sample_text(column: nw.Series[Any], size: int) -> pl.Series:
    """Return at most `size` cells of a column as text without blanks at their ends."""
    few = column if len(column) <= size else column[sample_rows(len(column), size)]
    return pl.Series("cell", as_text(few).to_list(), pl.String, strict=False).str.strip_chars()


def as_text(column: nw.Series[Any]) -> nw.Series[Any]:
    """Return a column as text, missing cells as they were: pandas 2 would make the text "None" of them."""
    if column.dtype == nw.String:
        return column
    texts, missing = column.cast(nw.String), column.is_null()
    if not missing.any():
        return texts
    none = nw.new_series(column.name, [None] * len(column), nw.String, backend=column.implementation)
    return texts.zip_with(~missing, none)


def have_same_digits(values: Floats, least: int) -> bool:
    """Return True if all numbers have the same number of digits, at least `least`, and are 50 or more."""
    low, high = values.min(), values.max()
    return bool(values.size >= 50 and low >= 10 ** (least - 1) and len(f"{low:.0f}") == len(f"{high:.0f}"))


def count_distinct(values: Floats) -> int:
    """Return how many values are distinct."""
    return int(pl.Series(values).n_unique())


def are_calendar_dates(values: Floats) -> bool:
    """Return True if all whole numbers are dates written as year, month and day: 20240131."""
    if values.min() < FIRST_DAY or values.max() > LAST_DAY:
        return False
    month, day = values // 100 % 100, values % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


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
            None if is_missing(c) else c if hashable(c) else repr(c) for c in column.to_list()
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


def hashable(cell: Any) -> bool:
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


LARGEST = 2**62  # products of class counts beyond it would overflow


class Uniques(NamedTuple):
    """Share of the records that stand alone in their class, and the mean of 1 / class size, the floor."""

    share: float
    floor: float


def cell_numbers(column: nw.Series[Any]) -> Ints:
    """Return a number for each cell of a column, the same for equal cells, 0 for missing ones.

    Cells are compared after one conversion: 1, 1.0 and "1" are equal.
    """
    return converted_numbers(polars_column(column))[0] + 1


def class_numbers(columns: Iterable[Ints], n: int) -> Ints:
    """Return a class number from 0 for each of n records, equal where all the numbered columns are equal."""
    found: Ints = np.zeros(n, np.int64)
    for numbers in columns:
        if n and int(found.max()) == n - 1:  # all records stand alone already
            break
        count = int(numbers.max(initial=0)) + 1
        if (int(found.max(initial=0)) + 1) * count >= LARGEST:
            found = number_values(found)
        found = number_values(found * count + numbers)
    return found


def class_sizes(numbers: Ints) -> Ints:
    """Return for each record how many records its class has."""
    sizes: Ints = np.bincount(numbers)[numbers]
    return sizes


def uniques_of(numbers: Ints) -> Uniques:
    """Return the share of records alone in their class, and the mean of 1 / class size."""
    sizes = np.bincount(numbers)
    return Uniques(float((sizes == 1).sum() / numbers.size), float((sizes > 0).sum() / numbers.size))


def number_values(values: Any) -> Ints:
    """Return the rank from 0 of each value among the distinct ones; NaN cells are equal."""
    if values.dtype.kind == "i" and values.size:
        low, high = int(values.min()), int(values.max())
        if high - low < 4 * values.size:  # a table of all possible values is faster than sorting
            seen = np.zeros(high - low + 1, np.int64)
            seen[values - low] = 1
            return np.asarray((np.cumsum(seen) - 1)[values - low], np.int64)
        return pl.Series(values).rank("dense").to_numpy().astype(np.int64) - 1  # sorts in several threads
    return np.asarray(np.unique(values, return_inverse=True)[1], np.int64).reshape(-1)


def same_values(written: pl.DataFrame, frame: pl.DataFrame, name: str) -> bool:
    """Return True if two tables hold the same numbers in a column."""
    ours, theirs = (one[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for one in (frame, written))
    return np.array_equal(ours, theirs, equal_nan=True)
