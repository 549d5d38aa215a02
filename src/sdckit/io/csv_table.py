"""CSV: its dialect and its text."""

from __future__ import annotations

import csv
import io
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from sdckit.core.checks import refuse_patterns, shown, warn
from sdckit.core.text import shortened
from sdckit.io.atomic import POLARS_ERRORS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sdckit.io.atomic import AnyPath
    from sdckit.io.files import Source
    from sdckit.io.formats import Dialect


# What a spreadsheet program takes for a formula, not for a number; a line may break inside.
FORMULA = r"(?s:\s*(?:[=@].|[+-].*[^\d\s.,%+-]))"
TEXT = (pl.String, pl.Categorical, pl.Enum)


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
    return _escaped(table, [c.name for c in frame if c.dtype in TEXT]) if dialect.escape_formulas else table


def _escaped(table: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Put ' before cells of columns, and before names, that spreadsheet programs would run as formulas.

    Those that have a ' before a formula already get another one, so that all can be told apart when read.
    """
    cells = [table[name].cast(pl.String).str.replace(f"^('*{FORMULA})", "'$1") for name in columns]
    names = {name: f"'{name}" for name in table.columns if re.match(f"'*{FORMULA}", name)}
    return table.with_columns(cells).rename(names)


def _without_escapes(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table of text that `_escaped` was given."""
    names = {name: name[1:] for name in table.columns if re.match(f"'+{FORMULA}", name)}
    return table.with_columns(pl.all().str.replace(f"^'('*{FORMULA})", "$1")).rename(names)


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
    texts = [pl.Series(frame.columns), *(column.cast(pl.String) for column in frame if column.dtype in TEXT)]
    counts = {column.name: int(column.str.contains(f"^{FORMULA}").sum()) for column in texts}
    found = [f"{count} of {name!r}" if name else "a column's name" for name, count in counts.items() if count]
    if found:
        fact = "cells that begin with =, +, - or @ are run as formulas by spreadsheet programs"
        warn(f"{fact}: {shortened(found)}; change them (the commands have --escape-formulas)")


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


NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?")


def parse_csv(path: Path, data: bytes, dialect: Dialect) -> pl.DataFrame:
    """Return the cells of a CSV as text.

    Parameters
    ----------
    path, data
        The file, whose suffix gives the default delimiter, and its bytes.
    dialect
        How it is written.

    Returns
    -------
    polars.DataFrame
        Text, null where a cell is empty.

    Raises
    ------
    ValueError
        The file is empty, in another encoding, ragged, or with unclear column names.
    """
    table = _split_lines(path, _decode(path, data, dialect.encoding), dialect)
    return _without_escapes(table) if dialect.escape_formulas else table


def empty_error(path: Path) -> ValueError:
    """Return the error for a file without content."""
    return ValueError(f"'{path}' is empty; give a file with column names and records")


def _decode(path: Path, data: bytes, encoding: str) -> bytes:
    """Return the text of a file as UTF-8 without byte-order mark, lines ending in a line feed."""
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeError as error:
        where = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        raise ValueError(
            f"'{path}' is not {encoding} text{where}; "
            "set its encoding, such as encoding='latin-1' or encoding='utf-16'"
        ) from error
    if "\0" in text:
        raise ValueError(f"'{path}' holds zero bytes: no {encoding} text; set encoding='utf-16' or another")
    if "\n" not in text:
        text = text.replace("\r", "\n")  # line ends of old Macs
    if not text.strip():
        raise empty_error(path)
    return text.rstrip("\r\n").encode() + b"\n"


def _split_lines(path: Path, data: bytes, dialect: Dialect) -> pl.DataFrame:
    """Return a CSV as a table of text; raise ValueError for unclear names or lines of unequal length."""
    separator = dialect.separator(path)
    names = next(_csv_rows(path, data, separator))[1]
    refuse_record(path, names)
    check_column_names(path, names)
    if len(names) == 1 and dialect.delimiter is None and (other := re.search("[;,\t|]", names[0])):
        refuse_record(path, names[0].split(other[0]))
        raise ValueError(
            f"'{path}' has one column {names[0]!r} when split at {separator!r}; "
            f"set the delimiter, such as delimiter={other[0]!r}"
        )
    try:
        text = pl.read_csv(data, separator=separator, infer_schema=False)
    except POLARS_ERRORS as error:
        _check_rows(path, data, separator, len(names))
        reason = shown(str(error).split("\n", 1)[0])
        raise ValueError(
            f"'{path}' is no CSV table ({reason}); check quotation marks and delimiter"
        ) from error
    if text.width != len(names):
        raise ValueError(f"the header of '{path}' is unclear; put its names in quotation marks")
    short = len(names) > 1 and text.height > 0 and text[:, -1].null_count() > 0
    if short and (b'"' in data or data.count(separator.encode()) != (len(names) - 1) * (text.height + 1)):
        _check_rows(path, data, separator, len(names))
    text.columns = names
    return text


def _csv_rows(path: Path, data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the last line number and the cells of each record of a CSV, the header first."""
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n")
    reader = csv.reader(lines, delimiter=separator, strict=True)
    started = False
    try:
        for row in reader:
            started = started or bool(row)
            if started:
                yield reader.line_num, row
    except csv.Error as error:
        where = f"line {reader.line_num} of '{path}'"
        raise ValueError(f"{where} cannot be read ({error}); check its quotation marks") from error


def _check_rows(path: Path, data: bytes, separator: str, width: int) -> None:
    """Raise ValueError naming the first line of a CSV with more or fewer than `width` cells."""
    for line, row in _csv_rows(path, data, separator):
        if len(row) != width and (row or width > 1):
            raise ValueError(
                f"line {line} of '{path}' has not as many cells as the header ({len(row)}, not {width}); "
                "correct that line or set the delimiter"
            )


def refuse_record(path: AnyPath, names: Sequence[str]) -> None:
    """Raise ValueError if the first line of a file looks like a record, no cell of which is told.

    At least half of its cells are numbers then; numbers that only rise, as years do, may be names.
    """
    cells = [name.strip() for name in names if name.strip()]
    numbers = [cell for cell in cells if NUMBER.fullmatch(cell)]
    if not numbers or 2 * len(numbers) < len(cells):
        return
    whole = [int(cell) for cell in numbers if cell.isdecimal()]
    if len(whole) < len(numbers) or any(one >= other for one, other in pairwise(whole)):
        raise ValueError(
            f"the first line of '{path}' looks like a record ({len(numbers)} of {len(cells)} cells are "
            "numbers); add a first line with the names of the columns"
        )


def check_column_names(path: AnyPath, names: Sequence[str]) -> None:
    """Raise ValueError if a column of the file has no name or a pattern as its name, or two share one."""
    seen: set[str] = set()
    for place, name in enumerate(names, 1):
        if not name.strip():
            raise ValueError(
                f"column {place} of '{path}' has no name; name it in the first line (in R: row.names = FALSE)"
            )
        if name in seen:
            raise ValueError(f"'{path}' has two columns named {name!r}; rename one of them")
        seen.add(name)
    refuse_patterns(names, f" of '{path}'")
