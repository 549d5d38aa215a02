"""Cells of a column as arrays: missing ones, whole numbers, samples, distinct values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl

from sdckit.core.table import LARGEST_INTEGER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sdckit.kernels.jit import Bools, Floats, Ints

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


def all_whole(values: Floats) -> bool:
    """Return True if all values are whole numbers."""
    return bool((values == np.floor(values)).all())


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
