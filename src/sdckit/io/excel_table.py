"""Tables in Excel and OpenDocument workbooks, read by fastexcel, an optional dependency.

Cells are typed one by one there, and a column may mix numbers with words such as NA: such columns are read
as a CSV would be, from the text of their cells.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core.checks import optional_package
from sdckit.io.cell_types import as_numbers, as_whole, damaged_error
from sdckit.io.csv_table import check_column_names, refuse_record
from sdckit.io.formats import DEFAULT, Dialect
from sdckit.io.memory import without_panic_messages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TIMES_ONLY = 1899  # the year of cells that have a time of day and no date
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # first bytes of .xls files, and of locked ones of any format
PROBE = """
import sys
try:
    import fastexcel
    workbook = fastexcel.read_excel(sys.stdin.buffer.read())
    for name in workbook.sheet_names:
        workbook.load_sheet(name, header_row=None, n_rows=1, dtypes="string")
except BaseException:
    pass
"""
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


def parse_excel(
    path: Path, data: bytes, dialect: Dialect = DEFAULT
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Return the table in a sheet of a workbook, and the text of the columns that hold text.

    The first row that is not empty has the names of the columns. Empty rows, and columns without a name
    and without cells, are left out; cells that hold an error, such as #N/A, are missing.

    Parameters
    ----------
    path, data
        The file, for errors, and its bytes.
    dialect
        Its `table` names the sheet where several hold cells.

    Returns
    -------
    tuple
        The table, and a table of text as it stands in the cells, or None if no column holds text.

    Raises
    ------
    ValueError
        The file is damaged or locked by a password, the sheet unknown or empty, or a name unclear.
    """
    workbook = _opened(path, data)
    sheet = _chosen_sheet(path, workbook, dialect.table)
    cells = _load(path, workbook, sheet, skip_rows=0, dtypes="string")
    filled = _has_text(cells).arg_true()
    if not len(filled):
        raise ValueError(f"sheet {sheet!r} of '{path}' is empty; give one with column names and records")
    top = int(filled[0])
    names, shown = [cell or "" for cell in cells.row(top)], cells[top + 1 :]
    places = [j for j, column in enumerate(shown) if names[j] or column.count()]
    refuse_record(path, [names[j] for j in places])
    check_column_names(path, [names[j] for j in places])
    rows = _has_text(shown)
    if not rows.any():
        return pl.DataFrame({names[j]: [] for j in places}), None
    empty = {j: "string" for j, column in enumerate(shown) if not column.count()}
    typed = _load(path, workbook, sheet, skip_rows=top + 1, dtypes=empty or None, schema_sample_rows=None)
    columns, texts = [], []
    for j in places:
        text = shown.to_series(j).filter(rows).alias(names[j])
        column = _typed_column(typed.to_series(j).filter(rows).alias(names[j]), text)
        if column is None:  # with decimal points, whatever a CSV would have
            column = as_numbers(text, replace(dialect, delimiter=None, decimal_comma=False))
            texts += [text] if column.dtype == pl.String or not dialect.decimal_comma else []
        columns.append(column)
    return pl.DataFrame(columns), pl.DataFrame(texts) if texts else None


@contextmanager
def _explain_workbook_errors(path: Path) -> Iterator[None]:
    """Turn any error of the library into one line: the file is locked, damaged or none of its format."""
    try:
        with without_panic_messages():
            yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the library is no Exception
        locked = "password" in str(error).lower()
        raise _locked_error(path) if locked else damaged_error(path, "Excel", "save") from error


def _opened(path: Path, data: bytes) -> Any:
    """Return an open workbook; raise ValueError for a damaged or locked one."""
    fastexcel = optional_package("fastexcel", "Excel files need the package fastexcel", "formats")
    if data.startswith(COMPOUND) and ENCRYPTED in data:
        raise _locked_error(path)
    _require_survivor(path, data)
    with _explain_workbook_errors(path):
        return fastexcel.read_excel(data)


def _require_survivor(path: Path, data: bytes) -> None:
    """Raise ValueError if the library ends a process that reads this file, which only another one survives.

    It does so where a damaged header, or one stray cell at the far end of a sheet, claims more memory than
    there is.
    """
    if not sys.executable:  # Python inside of another program
        return
    words = [sys.executable, "-P", "-c", PROBE]
    if subprocess.run(words, input=data, capture_output=True, check=False).returncode:  # noqa: S603 - our own
        raise ValueError(
            f"'{path}' claims more cells than fit into memory; delete stray cells far from the table, "
            "or save it as CSV"
        )


def _locked_error(path: Path) -> ValueError:
    """Return the error for a workbook with a password."""
    return ValueError(f"'{path}' is locked by a password; save it without one")


def _chosen_sheet(path: Path, workbook: Any, wanted: str | None) -> str:
    """Return the name of the sheet that is asked for, or of the only one with cells; ValueError else."""
    names: list[str] = workbook.sheet_names
    if wanted is not None:
        if wanted not in names:
            raise ValueError(
                f"'{path}' holds no sheet {wanted!r}; choose from: {', '.join(map(repr, names))}"
            )
        return wanted
    if len(names) > 1:
        first = names[:1]
        names = [name for name in names if _load(path, workbook, name, dtypes="string", n_rows=1).width]
        names = names or first
    if len(names) > 1:
        listed = ", ".join(map(repr, names))
        raise ValueError(
            f"'{path}' holds {len(names)} sheets with cells: {listed}; choose one, such as table={names[0]!r}"
        )
    if not names:
        raise ValueError(f"'{path}' holds no sheet; give one with column names and records")
    return names[0]


def _load(path: Path, workbook: Any, name: str, **options: Any) -> pl.DataFrame:
    """Return the cells of a sheet as a table without names of columns; ValueError for a damaged sheet."""
    with _explain_workbook_errors(path):
        found = workbook.load_sheet(name, header_row=None, **options)
        return pl.DataFrame(found.to_polars())


def _has_text(cells: pl.DataFrame) -> pl.Series:
    """Return True for each row that has a cell with more than blanks."""
    if not cells.width:
        return pl.Series([], dtype=pl.Boolean)
    return cells.select(pl.any_horizontal(pl.all().str.strip_chars().fill_null("") != "")).to_series()


def _typed_column(cells: pl.Series, shown: pl.Series) -> pl.Series | None:
    """Return a column of numbers, dates, times or truth values; None for one that holds a word."""
    if cells.dtype == pl.String or (cells.is_null() & (shown.str.strip_chars() != "")).any():
        return None
    if cells.dtype.is_numeric():
        return None if shown.is_in(["true", "false"]).any() else as_whole(cells)
    if cells.dtype != pl.Datetime or not cells.count():
        return cells
    if (cells.dt.year() == TIMES_ONLY).all():
        return cells.dt.time()
    return cells.dt.date() if (cells == cells.dt.truncate("1d")).all() else cells
