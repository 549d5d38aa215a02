"""Types of cells in files, and text that stands for numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from sdckit.core.cells import MARKED, OTHERWISE, are_numbers, is_mostly_numbers
from sdckit.core.checks import cells_are_quoted, plural, shown
from sdckit.io.csv_table import DEFAULT, Dialect

if TYPE_CHECKING:
    from collections.abc import Collection
    from os import PathLike

    from sdckit.io.files import Source


COMMA = r"^-?[0-9]+,[0-9]+$"
OWN_CODES = "declare the codes of missing cells, or correct the file"
FEW = 3  # different words that are taken for missing codes at most


def find_text_numbers(source: Source, *, skip: Collection[str] = ()) -> dict[str, tuple[str, str]]:
    """Return, for each mostly numeric text column, why it was read as text and a remedy."""
    found = {}
    for column in source.frame:
        if column.dtype == pl.String and column.name not in skip:
            doubt = _reason_and_remedy(column, source)
            if doubt is not None:
                found[column.name] = doubt
    return found


def _reason_and_remedy(column: pl.Series, source: Source) -> tuple[str, str] | None:
    """Return why a column of numbers was read as text, and a remedy; None for a true text column."""
    comma = source.dialect.decimal_comma
    cells = column.alias("cell").drop_nulls().str.strip_chars()
    cells = cells.filter(~cells.is_in(["", *source.dialect.missing]))
    if not is_mostly_numbers(cells, decimal_comma=comma):
        return None
    if source.text is None:
        return "the file stores it so", "store it as numbers first"
    odd = cells.filter(~are_numbers(cells, decimal_comma=comma)[0])
    if len(odd):
        return _reason_of_odd_cells(odd, comma=comma)
    if comma and cells.str.contains(".", literal=True).any():
        return "of the points in its numbers", "write plain numbers"
    return "of integers with more than 18 digits", "name it as key= or drop it"


def _reason_of_odd_cells(odd: pl.Series, *, comma: bool) -> tuple[str, str]:
    """Return the reason and the remedy for a column of numbers with cells that are no plain number."""
    words = odd.value_counts(name="n").sort(["n", "cell"], descending=[True, False])
    names, counts = words["cell"].to_list(), words["n"].to_list()
    like = f"of {_in_marks(names[0])} and the like in {len(odd)} {plural(len(odd), 'cell')}"
    if not comma and odd.str.contains(COMMA).all():
        return like, "set decimal_comma=True or write plain numbers"
    marked = odd.str.contains(MARKED)
    if marked.all():
        return like, "write plain numbers"
    if marked.any() or odd.str.contains(OTHERWISE).any() or len(names) > FEW:
        return like, "write plain numbers, or declare missing codes with na="
    listed = " and ".join(
        f"{_in_marks(name)} in {count} {plural(count, 'cell')}"
        for name, count in zip(names, counts, strict=True)
    )
    return f"of {listed}", f"declare it with na={names!r}" if cells_are_quoted() else OWN_CODES


def _in_marks(cell: str) -> str:
    """Return a cell in single quotation marks, or a remark in its place."""
    return shown(f"'{cell}'")


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
