"""Types of cells in files, and text that stands for numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from sdckit.io.formats import DEFAULT, Dialect

if TYPE_CHECKING:
    from collections.abc import Collection
    from os import PathLike


def damaged_error(path: str | PathLike[str], form: str, again: str = "export") -> ValueError:
    """Return the error for a file that is not a whole one of its format; `again` is how a new one is made."""
    return ValueError(
        f"'{path}' is no whole {form} file (cut off, damaged or another format); copy or {again} it again"
    )


LARGEST = 2**53  # beyond it, doubles do not represent every whole number
_INTEGER = r"^(0|-?[1-9][0-9]*)$"
_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NOT_FINITE = r"^-?(?i:nan|inf|infinity)$"


def as_numbers(column: pl.Series, dialect: Dialect = DEFAULT) -> pl.Series:
    """Return a text column as integers or floats if every cell is a number or missing, else as text."""
    cells = column.str.strip_chars()
    cells = cells.set(cells.is_in(["", *_codes_that_are_words(dialect.missing)]), None)
    if cells.str.contains(_INTEGER).all():
        numbers = cells.cast(pl.Int64, strict=False)
        beyond = numbers.null_count() > cells.null_count()
        return column if beyond or numbers.null_count() == cells.len() else numbers
    if dialect.decimal_comma:
        if cells.str.contains(".", literal=True).any():  # it may group thousands
            return column
        cells = cells.str.replace(",", ".", literal=True)
    finite = cells.str.contains(_NUMBER)
    if not finite.any() or not (finite | cells.str.contains(_NOT_FINITE)).all():
        return column
    return cells.cast(pl.Float64)


def _codes_that_are_words(codes: Collection[str]) -> list[str]:
    """Return the missing codes that are not numbers; numeric codes are declared with `na`."""
    return [code for code in codes if not re.match(_NUMBER, code)]


def as_whole(column: pl.Series) -> pl.Series:
    """Return a float column as integers if all its values are whole numbers below 2**53."""
    if not column.dtype.is_float() or column.null_count() == len(column):
        return column
    present = column.drop_nulls()
    fine = (present.abs() < LARGEST).all() and (present == present.floor()).all()
    return column.cast(pl.Int64) if fine else column
