"""Read Stata, SPSS and SAS files by pyreadstat, an optional dependency loaded on first use."""

from __future__ import annotations

import codecs
import io
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core.checks import optional_package
from sdckit.io.cell_types import as_whole, damaged_error
from sdckit.io.statfiles import dates
from sdckit.io.statfiles.meta import FAMILIES, PROGRAMS, Meta, claimed_records, is_sound

if TYPE_CHECKING:
    from pathlib import Path

_PARSERS = {".sav": "sav/zsav", ".zsav": "sav/zsav", ".xpt": "xport"}  # of others, their suffix
XPT_BLOCK = 80


def import_pyreadstat() -> Any:
    """Return pyreadstat; raise ValueError with the install command where it is missing."""
    needs = "Stata, SPSS and SAS files need the package pyreadstat"
    return optional_package("pyreadstat.pyreadstat", needs, "formats")


def read(path: Path, data: bytes, encoding: str | None = None) -> tuple[pl.DataFrame, Meta]:
    """Return the table in a file's bytes, with codes as missing cells, and its metadata.

    Parameters
    ----------
    path, data
        The file, whose suffix is that of its format, and its bytes.
    encoding
        Encoding of its texts, for files that name none or a wrong one.

    Returns
    -------
    tuple
        The table, dates as dates and whole numbers as such, and labels, formats and missing codes.
    """
    cells, described = _parse(path, data, encoding)
    family = FAMILIES[path.suffix.lower()]
    kinds, formats = described.readstat_variable_types, _filled(described.original_variable_types)
    declared = {name: list(found) for name, found in described.missing_ranges.items()}
    numbers, codes, columns = {}, {}, []
    for name, values in cells.items():
        if kinds[name] == "string":
            columns.append(pl.Series(name, values, pl.String).fill_null(""))
            continue
        column, coded = _split_off_codes(name, values, whole=kinds[name].startswith("int"), declared=declared)
        if coded is not None:
            codes[name] = coded
        unit = dates.unit_of(family, formats.get(name))
        if unit is not None:
            numbers[name] = column
            column = dates.to_dates(column, family, unit)
        columns.append(as_whole(column))
    frame = pl.DataFrame(columns)
    meta = Meta(
        family,
        labels=_filled(described.column_names_to_labels),
        value_labels={name: dict(found) for name, found in described.variable_value_labels.items() if found},
        formats=formats,
        informats=_filled(described.original_variable_informats),
        measures=_filled(described.variable_measure),
        widths=_filled(described.variable_display_width),
        kinds=dict(kinds),
        storage=dict(described.variable_storage_width),
        declared=declared,
        codes=codes,
        numbers=numbers,
        file_label=described.file_label,
        table_name=described.table_name,
        notes=tuple(described.notes),
        response_sets=tuple(described.mr_sets),
    )
    return frame, replace(meta, labelled=_categorical_columns(frame, meta))


def _filled(table: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a dictionary that are not empty."""
    return {name: value for name, value in table.items() if value}


def _parse(path: Path, data: bytes, encoding: str | None) -> tuple[dict[str, list[Any]], Any]:
    """Return columns and metadata of a file as pyreadstat gives them; raise ValueError for a damaged file."""
    parse = import_pyreadstat().parser_entry_point  # read_xport and read_por hide the missing codes
    suffix = path.suffix.lower()
    xml = data.startswith(b"<stata_dta>")
    cut = (xml and not data.endswith(b"</stata_dta>")) or (suffix == ".xpt" and len(data) % XPT_BLOCK)
    damaged = damaged_error(path, PROGRAMS[FAMILIES[suffix]])
    if suffix in {".sav", ".zsav"} and not is_sound(data):
        raise damaged
    try:
        claimed = claimed_records(suffix, data)
        with warnings.catch_warnings(action="error"):
            found = parse(
                io.BytesIO(data),
                _PARSERS.get(suffix, suffix[1:]),
                encoding=encoding and codecs.lookup(encoding).name,
                user_missing=True,
                disable_datetime_conversion=True,
                output_format="dict",
            )
    except MemoryError:
        raise
    except Exception as error:
        reason = str(error).split("\n", 1)[0].lower()
        if "encoding" in reason or "character set" in reason:
            raise ValueError(f"'{path}': {reason}; set its encoding, such as encoding='latin-1'") from error
        raise damaged from error
    rows = len(next(iter(found[0].values()), ()))
    if cut or not all(found[0]) or claimed not in {None, rows} or not found[0]:  # a name may be lost, too
        raise damaged
    return found


def _split_off_codes(
    name: str, cells: list[Any], *, whole: bool, declared: dict[str, list[dict[str, Any]]]
) -> tuple[pl.Series, pl.Series | None]:
    """Return the numbers of a column, null where missing, and the missing codes of its cells."""
    letters = None
    if any(isinstance(cell, str) for cell in cells):
        letters = pl.Series(name, [cell if isinstance(cell, str) else None for cell in cells], pl.String)
        cells = [None if isinstance(cell, str) else cell for cell in cells]
    numbers = pl.Series(name, cells, pl.Int64 if whole else pl.Float64)
    if not whole:
        numbers = numbers.fill_nan(None)
    if name not in declared:
        return numbers, letters
    coded = is_declared(numbers, declared[name])
    return numbers.set(coded, None), numbers.set(~coded, None)


def is_declared(numbers: pl.Series, ranges: list[dict[str, Any]]) -> pl.Series:
    """Return True for each number within the ranges that SPSS declares missing."""
    found = pl.repeat(False, len(numbers), eager=True)
    for limits in ranges:
        found |= numbers.is_between(limits["lo"], limits["hi"]).fill_null(False)
    return found


def _categorical_columns(frame: pl.DataFrame, meta: Meta) -> tuple[str, ...]:
    """Return the numeric columns of which every value has a label."""
    found = []
    for name, labels in meta.value_labels.items():
        column = frame[name]
        if column.dtype.is_numeric() and column.count():
            known = {float(value) for value in labels if not isinstance(value, str)}
            if all(float(value) in known for value in column.drop_nulls().unique()):
                found.append(name)
    return tuple(name for name in frame.columns if name in found)
