"""Write files of Stata and SPSS."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from sdckit.core.checks import warn
from sdckit.core.text import plural
from sdckit.io.cell_types import LARGEST
from sdckit.io.statfiles import XPT_BLOCK, dates, import_pyreadstat, is_declared
from sdckit.io.statfiles.meta import Meta, check_names, check_types, fit_metadata, without_columns

if TYPE_CHECKING:
    from pathlib import Path


HEADER = 2048  # bytes of a file within which the times stand
_STATA, _STATA_TIME = rb"(<timestamp>\x11)\d\d \w{3} \d{4} \d\d:\d\d", rb"\g<1>01 Jan 1980 00:00"
_SAS, _SAS_TIME = rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d", b"01JAN80:00:00:00"
_SPSS, _SPSS_TIME = rb"(?s)\A(.{92})\d\d \w{3} \d\d\d\d:\d\d:\d\d", rb"\g<1>01 Jan 8000:00:00"
STAMPS = {
    ".dta": (_STATA, _STATA_TIME),
    ".xpt": (_SAS, _SAS_TIME),
    ".sav": (_SPSS, _SPSS_TIME),
    ".zsav": (_SPSS, _SPSS_TIME),
}
XPT_TIMES = (144, 160, 464, 480)  # where a SAS transport file has its times; text of labels is left alone


def clear_times(draft: Path, suffix: str) -> None:
    """Replace the times of writing in a file by one date, so that the same table gives the same bytes."""
    pattern, fixed = STAMPS[suffix]
    with draft.open("rb+") as handle:
        header = handle.read(HEADER)
        if suffix == ".xpt":
            changed = bytearray(header)
            for start in XPT_TIMES:
                here = slice(start, start + len(fixed))
                if re.fullmatch(pattern, header[here]):
                    changed[here] = fixed
        else:
            changed = bytearray(re.sub(pattern, fixed, header, count=1))
        handle.seek(0)
        handle.write(changed)


_LONGS = (-(2**31) + 1, 2**31 - 28)  # what Stata takes for a whole number; those above are its missing codes
_RANGES = {"stata": (0.0, 8.98e307), "spss": (0.0, 1.79e308), "sas": (5.4e-79, 7.2e75)}
_STATA_14 = 14  # the format that every Stata since 2015 reads
_STATA_NAME = 32
_STATA_FIELD = 129  # bytes of a name in that format
_OLD_XPT = (8, 40, 200)  # letters of a name, of a label, of a text that every SAS reads


class _StoredColumn(NamedTuple):
    """A column in the form in which it is stored: cells, format, missing codes and width."""

    cells: pl.Series
    format: str | None
    letters: pl.Series | None  # missing codes of Stata and SAS, where a cell has one
    width: int


def write(
    draft: Path, path: Path, frame: pl.DataFrame, before: pl.DataFrame | None = None, meta: Meta | None = None
) -> None:
    """Write a table with the labels, formats and missing codes of the table it was made from.

    Parameters
    ----------
    draft, path
        Where to write, and the final path, whose suffix is that of the format.
    frame
        The table.
    before, meta
        What it was made from, as `read` gave it.

    Raises
    ------
    ValueError
        A name or a value has no place in the format.
    OSError
        The system refused to write.
    """
    check_names(path, frame.columns)
    check_types(path, frame)
    if before is None:
        before = pl.DataFrame()
    changed = [c.name for c in frame if c.name in before.columns and _kind(c) != _kind(before[c.name])]
    meta = None if meta is None else without_columns(meta, changed)  # such as dates recoded to years
    kept = fit_metadata(path, frame, meta)
    columns = [_stored_column(path, column, before, meta, kept) for column in frame]
    forms = {c.cells.name: c.format for c in columns if c.format}
    options = {"column_labels": kept.labels, "file_label": kept.file_label or "", "variable_format": forms}
    suffix = path.suffix.lower()
    try:
        if suffix == ".dta":
            _write_stata(draft, columns, kept, options)
        elif suffix == ".xpt":
            _write_sas(draft, columns, kept, options)
        else:
            _write_spss(draft, columns, kept, options | {"compress": suffix == ".zsav"})
        clear_times(draft, suffix)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        reason = str(error).split("\n", 1)[0].lower()
        if "unable to write" in reason:
            raise _find_write_error(draft) from error
        raise ValueError(f"could not write '{path}' ({reason}); use another format") from error


def _kind(column: pl.Series) -> str:
    """Return whether a column holds dates or times, numbers, or something else, such as text."""
    return "time" if column.dtype.is_temporal() else "numbers" if column.dtype.is_numeric() else "other"


def _stored_column(
    path: Path, column: pl.Series, before: pl.DataFrame, meta: Meta | None, kept: Meta
) -> _StoredColumn:
    """Return a column in the form in which the file stores it; ValueError for values without a place."""
    name, form = column.name, kept.formats.get(column.name)
    same = name in before.columns and column.dtype == before[name].dtype and column.equals(before[name])
    if isinstance(column.dtype, (pl.String, pl.Categorical, pl.Enum)):
        return _stored_text(path, column.cast(pl.String).fill_null(""), form, kept)
    if column.dtype.is_temporal():
        if same and name in kept.numbers:
            column = kept.numbers[name]
        else:
            column, given = dates.to_numbers(column, kept.family)
            form = form if dates.unit_of(kept.family, form) else given
    whole = column.dtype.is_integer() or column.dtype == pl.Boolean or form == "%td"
    numbers = _checked_numbers(path, column, kept)
    kind = kept.kinds.get(name) if meta is not None else None
    if kept.family == "stata" and (kind or "int" * whole).startswith("int") and _are_longs(numbers):
        numbers = numbers.cast(pl.Int32)
    if kept.family == "spss" and whole and form is None:
        form = "F8.0" if (numbers.drop_nulls().abs() < 1e7).all() else "F17.0"
    return _restore_missing_codes(path, _StoredColumn(numbers, form, None, 8), kept)


def _stored_text(path: Path, cells: pl.Series, form: str | None, kept: Meta) -> _StoredColumn:
    """Return a text column in stored form, padded to its earlier width in SPSS and SAS files."""
    if cells.str.contains("\0", literal=True).any():
        raise ValueError(f"column {cells.name!r} holds zero bytes, which '{path}' cannot; remove them")
    width = int(cells.str.len_bytes().max() or 1)  # type: ignore[arg-type]
    wanted = kept.storage.get(cells.name, 0)
    if kept.family != "stata" and wanted > width:  # there, blanks fill up every text
        missing = wanted - int(cells.str.len_bytes()[0])
        cells, width = cells.scatter(0, cells[0] + " " * missing), wanted
    return _StoredColumn(cells, form, None, max(width, 1))


def _checked_numbers(path: Path, column: pl.Series, kept: Meta) -> pl.Series:
    """Return a column as floats; raise ValueError for numbers that the format cannot hold."""
    numbers = column.cast(pl.Float64).fill_nan(None)
    sizes = numbers.drop_nulls().abs()
    low, high = _RANGES[kept.family]
    ends: list[Any] = [column.min(), column.max()] if column.dtype.is_integer() else []
    if any(abs(int(end or 0)) > LARGEST for end in ends):
        raise ValueError(
            f"column {column.name!r} has integers beyond 2**53, which lose digits in '{path}'; "
            "store them as text"
        )
    if (sizes > high).any() or ((sizes > 0) & (sizes < low)).any():
        raise ValueError(
            f"column {column.name!r} has numbers too large or too small for '{path}'; write CSV or Parquet"
        )
    return numbers


def _are_longs(numbers: pl.Series) -> bool:
    """Return True if all numbers are whole and in the range of Stata's type long."""
    present = numbers.drop_nulls()
    return bool(present.is_between(*_LONGS).all() and (present == present.floor()).all())


def _restore_missing_codes(path: Path, column: _StoredColumn, kept: Meta) -> _StoredColumn:
    """Return the column with missing codes put back where a cell is still missing; warn of clashes."""
    numbers, name = column.cells, column.cells.name
    ranges = kept.declared.get(name, [])
    clash = int(is_declared(numbers, ranges).sum()) if ranges else 0
    if clash:
        warn(
            f"column {name!r} has {clash} {plural(clash, 'value')} that '{path}' declares missing; "
            "draw again, or keep such values out of its missing codes"
        )
    codes = kept.codes.get(name)
    if codes is None or len(codes) != len(numbers):
        return column
    if codes.dtype != pl.String:
        return column._replace(cells=codes.cast(pl.Float64).zip_with(numbers.is_null(), numbers))
    return column._replace(letters=codes.set(numbers.is_not_null(), None))


def _write_stata(draft: Path, columns: list[_StoredColumn], kept: Meta, options: dict[str, Any]) -> None:
    """Write columns to a Stata file."""
    series, letters = [], {}
    for column in columns:
        name = column.cells.name
        labelled = {value for value in kept.value_labels.get(name, ()) if isinstance(value, str)}
        used = set() if column.letters is None else set(column.letters.drop_nulls())
        if not labelled | used:
            series.append(column.cells)
            continue
        letters[name] = sorted(labelled | used)
        cells = column.cells.to_list()
        if column.letters is not None:
            cells = [n if letter is None else letter for n, letter in zip(cells, column.letters, strict=True)]
        series.append(pl.Series(name, cells, pl.Object))
    tables: dict[str, dict[str, Any]] = {
        "missing_user_values": letters,
        "variable_value_labels": {  # pyreadstat needs integers
            name: {value if isinstance(value, str) else int(value): text for value, text in found.items()}
            for name, found in kept.value_labels.items()
        },
    }
    tables |= {option: table for option, table in options.items() if isinstance(table, dict)}
    short = _short_names([cells.name for cells in series], kept.value_labels)
    tables = {
        option: {short[name]: value for name, value in table.items() if name in short}
        for option, table in tables.items()
    }
    series = [cells.alias(short[cells.name]) for cells in series]
    _call_pyreadstat(draft, "write_dta", series, version=_STATA_14, **options | tables)
    if any(name != stand_in for name, stand_in in short.items()):  # write the true names over the stand-ins
        data = bytearray(draft.read_bytes())
        start = data.index(b"<varnames>") + len(b"<varnames>")
        names = b"".join(name.encode().ljust(_STATA_FIELD, b"\0") for name in short)
        data[start : start + len(names)] = names
        draft.write_bytes(data)


def _short_names(names: list[str], labelled: dict[str, Any]) -> dict[str, str]:
    """Return, for each column, a short stand-in where its label-set name would be too long for Stata."""
    room = _STATA_NAME - len(str(len(names)))
    long = {name: f"_sdckit{i}" for i, name in enumerate(names) if name in labelled and len(name) > room}
    while set(long.values()) & set(names):
        long = {name: f"{stand_in}_" for name, stand_in in long.items()}
    return {name: long.get(name, name) for name in names}


def _write_spss(draft: Path, columns: list[_StoredColumn], kept: Meta, options: dict[str, Any]) -> None:
    """Write columns to an SPSS file."""
    _call_pyreadstat(
        draft,
        "write_sav",
        [column.cells for column in columns],
        **options,
        note=list(kept.notes) or None,
        variable_value_labels=kept.value_labels,
        missing_ranges=kept.declared,
        variable_display_width=kept.widths,
        variable_measure={name: m for name, m in kept.measures.items() if m != "undetermined"},
    )


def _write_sas(draft: Path, columns: list[_StoredColumn], kept: Meta, options: dict[str, Any]) -> None:
    """Write columns to a SAS transport file, in the old version if names, labels and texts fit it."""
    names, labels, widths = _OLD_XPT
    plain = all(len(c.cells.name) <= names and c.width <= widths for c in columns)
    old = plain and all(len(label.encode()) <= labels for label in kept.labels.values())
    _call_pyreadstat(
        draft,
        "write_xport",
        [column.cells for column in columns],
        **options,
        table_name=kept.table_name,
        variable_informat=kept.informats,
        file_format_version=5 if old else 8,
    )
    _complete_xpt(draft, columns)


def _complete_xpt(draft: Path, columns: list[_StoredColumn]) -> None:
    """Write letter codes of missing cells into an XPT file and check that all records are there."""
    data = bytearray(draft.read_bytes())
    start = data.find(b"HEADER RECORD*******OBS") + XPT_BLOCK
    widths = np.array([column.width for column in columns])
    positions = np.cumsum(widths) - widths
    rows, length = len(columns[0].cells), int(widths.sum())
    if len(data) < start + rows * length:
        raise _find_write_error(draft)
    for place, column in zip(positions.tolist(), columns, strict=True):
        for row, letter in enumerate(() if column.letters is None else column.letters):
            if letter is not None:
                data[start + row * length + place] = ord(letter)
    draft.write_bytes(data)


def _call_pyreadstat(draft: Path, how: str, series: list[pl.Series], **options: Any) -> None:
    """Call a writing function of pyreadstat by name, with the columns as one table."""
    getattr(import_pyreadstat(), how)(pl.DataFrame(series), str(draft), **options)


def _find_write_error(draft: Path) -> OSError:
    """Return the operating-system error behind a failed write, which pyreadstat does not pass on."""
    try:
        with draft.open("ab") as handle:
            handle.write(bytes(1 << 20))
    except OSError as error:
        return error
    return OSError("could not write the file; check disk space and permissions")
