"""Cells of a CSV as text: numbers in their shortest form, original text where nothing changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from sdckit.core.text import shortened
from sdckit.core.warning_texts import warn

FORMULA = (
    r"^\s*(?:[=@].|[+-].*[^\d\s.,%+-])"  # what a spreadsheet program takes for a formula, not for a number
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from sdckit.io.dialect import Dialect
    from sdckit.io.source import Source


def text_cells(
    frame: pl.DataFrame, source: Source | None, whole: Collection[str], dialect: Dialect
) -> pl.DataFrame:
    """Return the table as it is written to a CSV, with numbers as text and missing codes put back."""
    kept = _unchanged_text(frame, source, dialect)
    cells = {c.name: _cell_text(c, dialect, whole=c.name in whole) for c in frame if c.name not in kept}
    table = pl.DataFrame(
        [kept[c.name] if c.name in kept else _restore_missing_codes(c, cells[c.name], source) for c in frame]
    )
    if table.width == 1 and table.dtypes[0] == pl.String:
        table = table.select(pl.all().fill_null(""))  # written as "", since readers skip a blank line
    return table


def _unchanged_text(frame: pl.DataFrame, source: Source | None, dialect: Dialect) -> dict[str, pl.Series]:
    """Return, by column name, the text in the source file of the columns whose values did not change."""
    if source is None or source.text is None:
        return {}
    kept = {}
    for column in frame:
        name = column.name
        if name not in source.text.columns:
            continue
        before = source.frame[name]
        same_marks = column.dtype == pl.String or source.dialect.decimal_comma == dialect.decimal_comma
        if same_marks and column.dtype == before.dtype and column.equals(before):
            kept[name] = source.text[name]
    return kept


def _restore_missing_codes(column: pl.Series, shown: pl.Series, source: Source | None) -> pl.Series:
    """Put missing codes such as NA or -999 back where the cell is still missing.

    Other unchanged cells do not keep their text, which would distinguish them from changed ones.
    """
    name = shown.name
    if source is None or source.text is None or name not in source.text.columns:
        return shown
    before, text = source.frame[name], source.text[name]
    if not before.dtype.is_numeric() or before.len() != shown.len():
        return shown
    absent = before.is_null() | before.cast(pl.Float64).is_nan()
    coded = shown.is_null() & absent & text.is_not_null()
    if column.dtype.is_numeric() and source.dialect.missing:
        coded |= text.is_in(source.dialect.missing) & (column == before).fill_null(value=False)
    return text.zip_with(coded, shown.cast(pl.String)) if coded.any() else shown


def _cell_text(column: pl.Series, dialect: Dialect, *, whole: bool) -> pl.Series:
    """Return the column with numbers as text, in the decimal mark of the dialect; without ".0" if `whole`."""
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        raise ValueError(
            f"column {column.name!r} of type {column.dtype} has no place in a CSV; drop it or write Parquet"
        )
    if column.dtype.is_float():
        column = column.fill_nan(None).cast(pl.String)
        if whole:
            column = column.str.strip_suffix(".0").replace("-0", "0")
    elif column.dtype.is_decimal():
        column = column.cast(pl.String)
    else:
        return column
    return column.str.replace(".", ",", literal=True) if dialect.decimal_comma else column


def warn_of_formulas(frame: pl.DataFrame) -> None:
    """Warn of texts in a table to be handed out as CSV that a spreadsheet program runs as formulas.

    They begin with =, +, - or @; plain numbers and single signs do not count.
    """
    texts = [
        column.cast(pl.String) for column in frame if column.dtype in (pl.String, pl.Categorical, pl.Enum)
    ]
    counts = {
        column.name: int(column.str.contains(FORMULA).sum()) for column in [pl.Series(frame.columns), *texts]
    }
    found = [f"{count} of {name!r}" if name else "a column's name" for name, count in counts.items() if count]
    if found:
        fact = "cells that begin with =, +, - or @ are run as formulas by spreadsheet programs"
        warn(f"{fact}: {shortened(found)}; change them before the file is handed out")


def csv_bytes(path: Path, table: pl.DataFrame, dialect: Dialect) -> bytes:
    """Return the bytes of a CSV file, given its cells as text."""
    text = table.write_csv(separator=dialect.separator(path), quote_style="necessary")
    try:
        return text.encode(dialect.encoding)
    except UnicodeEncodeError as error:
        letter = text[error.start]
        raise ValueError(
            f"could not write '{path}': {dialect.encoding} has no {letter!r}; set encoding='utf-8'"
        ) from error
