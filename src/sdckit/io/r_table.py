"""Tables in R's files .rds and .rda: data frames with factors, dates and missing cells, read by rdata."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core.checks import optional_package
from sdckit.io.cell_types import as_whole, damaged_error
from sdckit.io.formats import DEFAULT, Dialect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NA_PAYLOAD = 1954  # lower half of the bits of R's NA of doubles; another NaN is a result such as 0/0
LATIN_1, UTF_8, ASCII = 1 << 2, 1 << 3, 1 << 6  # flags of a text on its encoding
MOST_SECONDS = 2.5e11  # up to the year 9999, as far as calendars go
NO_INTEGER64 = np.iinfo(np.int64).min
KINDS = {10: "logical", 13: "integer", 14: "double", 16: "character"}  # types of vectors, by R's numbers
LIST = 19


def import_rdata() -> Any:
    """Return the package rdata; raise ValueError with the install command where it is missing."""
    return optional_package("rdata", "R files need the package rdata", "formats")


def parse_r(path: Path, data: bytes, dialect: Dialect = DEFAULT) -> pl.DataFrame:
    """Return the data frame in the bytes of an R file.

    Factors become their labels, dates and times such, NA null; row names are left out.

    Parameters
    ----------
    path, data
        The file, for errors, and its bytes.
    dialect
        Its `table` names the data frame where there are several; its encoding is that of old files.

    Raises
    ------
    ValueError
        The file is damaged, has no data frame or several, or a column that is no vector.
    """
    parser = import_rdata().parser
    with _explain_r_errors(path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files whose name does not tell their format
            found = parser.parse_data(data)
        objects = _objects(found.object)
    one = _chosen(path, objects, dialect.table)
    with _explain_r_errors(path):
        return _Frame(path, dialect, getattr(found.extra, "encoding", None)).table(one)


class _RefusedError(ValueError):
    """Error for an object of R that a sound file holds and that is no table of vectors."""


@contextmanager
def _explain_r_errors(path: Path) -> Iterator[None]:
    """Turn errors on a damaged R file into one line."""
    try:
        yield
    except (MemoryError, _RefusedError):
        raise
    except Exception as error:
        raise damaged_error(path, "R", "save") from error


def _objects(top: Any) -> dict[str, Any]:
    """Return the objects of a file by name; the one of an .rds file has none."""
    if top.info.type.value != 2 or top.tag is None:  # a list of names and values, as save() writes it
        return {"": top}
    return dict(_entries(top))


def _entries(pairs: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and values of R's list of pairs."""
    while pairs is not None and isinstance(pairs.value, tuple):
        symbol = pairs.tag if pairs.tag.referenced_object is None else pairs.tag.referenced_object
        yield symbol.value.value.decode("utf-8", "replace"), pairs.value[0]
        pairs = pairs.value[1]


def _chosen(path: Path, objects: dict[str, Any], wanted: str | None) -> Any:
    """Return the data frame that is asked for, or the only one; raise ValueError with the names else."""
    tables = {name: one for name, one in objects.items() if "data.frame" in _classes(one)}
    if not tables:
        raise ValueError(f"'{path}' holds no data frame; save one, such as with saveRDS(data, 'data.rds')")
    if wanted is None or list(tables) == [""]:
        if len(tables) == 1:
            return next(iter(tables.values()))
        names = list(map(repr, tables))
        fact = f"'{path}' holds {len(names)} data frames: {', '.join(names)}"
        raise ValueError(f"{fact}; choose one, such as table={names[0]}")
    if wanted not in tables:
        names = list(map(repr, tables))
        raise ValueError(f"'{path}' holds no data frame {wanted!r}; choose from: {', '.join(names)}")
    return tables[wanted]


def _attributes(one: Any) -> dict[str, Any]:
    """Return the attributes of an R object by name."""
    return dict(_entries(one.attributes))


def _classes(one: Any) -> list[str]:
    """Return the names of the classes of an R object."""
    found = _attributes(one).get("class")
    return [] if found is None else [cell.value.decode("utf-8", "replace") for cell in found.value]


class _Frame:
    """Converts the columns of a data frame of one file."""

    def __init__(self, path: Path, dialect: Dialect, encoding: str | None) -> None:
        self.path = path
        given = dialect.encoding if dialect.encoding != DEFAULT.encoding else None
        self.native = given or encoding or DEFAULT.encoding

    def table(self, frame: Any) -> pl.DataFrame:
        """Return an R data frame as a table."""
        names = [str(name) for name in self._texts(_attributes(frame)["names"])] if frame.value else []
        pairs = zip(names, frame.value, strict=True)
        columns = [self._column(name, one) for name, one in pairs]
        if not columns:
            raise _RefusedError(f"the data frame in '{self.path}' has no columns; give one with records")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise _RefusedError(f"'{self.path}' has two columns named {twice!r}; rename one of them")
        return pl.DataFrame(columns)

    def _column(self, name: str, one: Any) -> pl.Series:
        """Return one column; raise ValueError for a list, a matrix or another type without a place here."""
        kind, classes, about = KINDS.get(one.info.type.value), _classes(one), _attributes(one)
        if kind is None or "dim" in about or "POSIXlt" in classes:
            what = "a list" if one.info.type.value == LIST else "no plain vector"
            raise _RefusedError(
                f"column {name!r} of '{self.path}' is {what}; drop it or convert it before saving"
            )
        if kind == "character":
            return pl.Series(name, self._texts(one), pl.String)
        if "factor" in classes:
            return self._factor(name, one, about)
        column = _numbers(name, one.value, integer64="integer64" in classes)
        if "Date" in classes:
            return column.cast(pl.Float64).floor().cast(pl.Int32, strict=False).cast(pl.Date)
        if "POSIXct" in classes:
            return _times(column, self._zone(about))
        return as_whole(column)

    def _factor(self, name: str, one: Any, about: dict[str, Any]) -> pl.Series:
        """Return the labels of a factor."""
        labels = pl.Series(name, self._texts(about["levels"]), pl.String)
        numbers = _numbers(name, one.value, integer64=False)
        return (
            labels.gather((numbers - 1).cast(pl.UInt32))
            if len(labels)
            else pl.Series(name, [None] * len(numbers), pl.String)
        )

    def _zone(self, about: dict[str, Any]) -> str | None:
        """Return the time zone of a column of times; None for the local one of any reader."""
        found = self._texts(about["tzone"]) if "tzone" in about else [None]
        return found[0] or None if found else None

    def _texts(self, one: Any) -> list[str | None]:
        """Return the texts of a vector of R, each in its own encoding; None for NA."""
        try:
            return [None if cell.value is None else self._text(cell) for cell in one.value]
        except UnicodeDecodeError as error:
            raise _RefusedError(
                f"'{self.path}' holds text that is not {self.native}; "
                "set its encoding, such as encoding='latin-1'"
            ) from error

    def _text(self, cell: Any) -> str:
        """Return one text, decoded by its flags."""
        flags = cell.info.gp
        if flags & (UTF_8 | ASCII):
            return str(cell.value.decode("utf-8"))
        return str(cell.value.decode("cp1252" if flags & LATIN_1 else self.native))


def _numbers(name: str, values: Any, *, integer64: bool) -> pl.Series:
    """Return a vector of R as a series, null for NA; NaN that is not NA stays NaN."""
    if integer64:
        whole = np.ascontiguousarray(values).view(np.int64)
        return _with_nulls(pl.Series(name, whole), whole == NO_INTEGER64)
    if isinstance(values, np.ma.MaskedArray):
        return _with_nulls(pl.Series(name, values.data), np.ma.getmaskarray(values))
    cells = np.ascontiguousarray(values)
    if cells.dtype.kind != "f":
        return pl.Series(name, cells)
    absent = np.isnan(cells) & ((cells.view(np.uint64) & 0xFFFFFFFF) == NA_PAYLOAD)
    return _with_nulls(pl.Series(name, cells), absent)


def _with_nulls(column: pl.Series, absent: Any) -> pl.Series:
    """Return the series with null where `absent`."""
    return column.set(pl.Series(absent), None) if absent.any() else column


def _times(seconds: pl.Series, zone: str | None) -> pl.Series:
    """Return seconds since 1970 as points in time, in the time zone of the column."""
    known = seconds.cast(pl.Float64).fill_nan(None)
    known = known.set(known.abs() > MOST_SECONDS, None)
    times = (known * 1_000_000).round().cast(pl.Int64).cast(pl.Datetime("us"))
    try:
        return times.dt.replace_time_zone("UTC").dt.convert_time_zone(zone or "UTC")
    except pl.exceptions.PolarsError:  # a zone that only the system of the file knows
        return times.dt.replace_time_zone("UTC")
