"""Parquet files that hold one table: found, checked, and read by stretches of rows."""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import polars as pl

from sdckit.core.quoting import quoted
from sdckit.core.table import Table
from sdckit.io.atomic import POLARS_ERRORS
from sdckit.io.csv_table import check_column_names
from sdckit.io.damaged import damaged_error
from sdckit.io.digest import sha256_of
from sdckit.io.files import explain_read_errors
from sdckit.io.source import Source
from sdckit.io.suffixes import PARQUET_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sdckit.io.dialect import Dialect

STRETCHES = 64  # stretches of consecutive rows that a sample is made of, at most
OPEN_FILES = 32  # footers that are kept parsed
TAIL = 8  # a Parquet file ends with the length of its footer and a mark of four letters


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file as it was when it was first seen: its rows, size, time of change and footer's sum."""

    path: str
    rows: int
    size: int
    changed: int
    footer: int

    def require_unchanged(self) -> None:
        """Raise ValueError if the file has another size or time of change than when it was first seen."""
        with explain_read_errors(self.path):
            now = Path(self.path).stat()
        if (now.st_size, now.st_mtime_ns) != (self.size, self.changed):
            raise self._changed_error()

    def require_same_footer(self) -> None:
        """Raise ValueError if the file has changed, also where its size and time are the same."""
        self.require_unchanged()
        if _footer_sum(self.path) != self.footer:
            raise self._changed_error()

    def read(self, first: int, rows: int, columns: Sequence[str]) -> pl.DataFrame:
        """Return some columns of consecutive rows; raise ValueError if the file changed or is damaged."""
        self.require_unchanged()
        try:
            found = _scan(self.path, self.size, self.changed).slice(first, rows).select(columns).collect()
        except (*POLARS_ERRORS, OSError) as error:
            self.require_unchanged()
            raise damaged_error(self.path, "Parquet") from error
        if found.height != rows:
            raise self._changed_error()
        return found

    def _changed_error(self) -> ValueError:
        """Return the error for a file that changed after it was first seen."""
        return ValueError(f"'{self.path}' changed while it was read; start again when it is complete")


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files with the same columns that hold one table, row numbers running through all of them."""

    files: tuple[ParquetFile, ...]
    schema: Mapping[str, pl.DataType]

    @cached_property
    def _ends(self) -> list[int]:
        """Number of rows up to the end of each file."""
        return list(accumulate(file.rows for file in self.files))

    @property
    def rows(self) -> int:
        """Number of rows of all files."""
        return self._ends[-1]

    @property
    def paths(self) -> list[str]:
        """Paths of the files, in the order of their rows."""
        return [file.path for file in self.files]

    @property
    def table(self) -> Table:
        """A table without rows that has the columns and types of the files."""
        return Table(pl.DataFrame(schema=dict(self.schema)))

    def read(self, first: int, rows: int, columns: Sequence[str]) -> pl.DataFrame:
        """Return some columns of consecutive rows, from as many files as they lie in."""
        parts, place, end = [], bisect_right(self._ends, first), first + rows
        while first < end:
            file, begin = self.files[place], self._ends[place] - self.files[place].rows
            taken = min(end, begin + file.rows) - first
            if taken:
                parts.append(file.read(first - begin, taken, columns))
            first, place = first + taken, place + 1
        return parts[0] if len(parts) == 1 else pl.concat(parts)

    def scan(self) -> pl.LazyFrame:
        """Return all rows as a lazy frame."""
        return pl.scan_parquet(self.paths, glob=False, hive_partitioning=False)

    def sample(self, n: int) -> pl.DataFrame:
        """Return about n rows with all columns, in stretches spread evenly over the files."""
        names = list(self.schema)
        if self.rows <= n:
            return self.read(0, self.rows, names)
        count = min(STRETCHES, n)
        length = n // count
        begins = [(self.rows - length) * i // max(count - 1, 1) for i in range(count)]
        return pl.concat([self.read(begin, length, names) for begin in begins])

    def require_unchanged(self) -> None:
        """Raise ValueError if one of the files has changed since it was first seen."""
        for file in self.files:
            file.require_same_footer()


def find_files(given: Any) -> ParquetFiles:
    """Return the Parquet files of a path, a folder or a list of paths; raise an error for unusable ones.

    The files of a folder are taken in the order of their names, hidden ones and those that begin with an
    underscore left out.
    """
    several = isinstance(given, (list, tuple))
    paths = [path for one in (given if several else [given]) for path in _files_at(Path(one))]
    if not paths:
        raise ValueError("the list of Parquet files is empty; name at least one")
    found = [_open(path) for path in paths]
    for path, (_, schema) in zip(paths, found, strict=True):
        _require_same_schema(paths[0], found[0][1], path, schema)
    return ParquetFiles(tuple(file for file, _ in found), found[0][1])


def read_folder(path: Path, dialect: Dialect) -> Source:
    """Return all Parquet files of a folder as one table, with the digest of the folder that was read."""
    found = find_files(path)
    source = Source(found.scan().collect(), None, path, dialect, sha256=sha256_of(path))
    found.require_unchanged()
    if find_files(path).paths != found.paths:
        raise ValueError(f"files of '{path}' came or went while it was read; start again when it is complete")
    return source


def _files_at(path: Path) -> Iterable[Path]:
    """Return a path itself, or the Parquet files in it if it is a folder; raise ValueError for none."""
    if not path.is_dir():
        return [path]
    with explain_read_errors(path):
        inside = sorted(one for one in path.iterdir() if not one.name.startswith((".", "_")))
    found = [one for one in inside if one.suffix.lower() in PARQUET_SUFFIXES and one.is_file()]
    if not found:
        folder = next((one.name for one in inside if one.is_dir()), None)
        hint = f" (it has folders, such as {quoted(folder)})" if folder else ""  # a name may be a cell: a=5
        raise ValueError(
            f"the folder '{path}' holds no Parquet file{hint}; name one that holds files ending in .parquet"
        )
    return found


def _open(path: Path) -> tuple[ParquetFile, dict[str, pl.DataType]]:
    """Return a file with what it looked like when it was opened, and its schema."""
    with explain_read_errors(path):
        seen = path.stat()
        footer = _footer_sum(str(path))
    try:
        lazy = _scan(str(path), seen.st_size, seen.st_mtime_ns)
        schema, rows = lazy.collect_schema(), lazy.select(pl.len()).collect().item()
    except (*POLARS_ERRORS, OSError) as error:
        raise damaged_error(path, "Parquet") from error
    check_column_names(path, schema.names())
    return ParquetFile(str(path), rows, seen.st_size, seen.st_mtime_ns, footer), dict(schema)


@lru_cache(maxsize=OPEN_FILES)
def _scan(path: str, size: int, changed: int) -> pl.LazyFrame:  # noqa: ARG001 - other files are parsed anew
    """Return a file as a lazy frame, which keeps the footer that it parsed."""
    return pl.scan_parquet(path, glob=False, hive_partitioning=False)


def _footer_sum(path: str) -> int:
    """Return a checksum of the footer of a Parquet file; of its last bytes if it is none."""
    with open(path, "rb") as file:  # noqa: PTH123 - in explain_read_errors, with the path as given
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - TAIL, 0))
        length = int.from_bytes(file.read(4), "little") + TAIL
        file.seek(max(size - length, 0))
        return crc32(file.read(length))


def _require_same_schema(
    first: Path, schema: Mapping[str, pl.DataType], path: Path, other: Mapping[str, pl.DataType]
) -> None:
    """Raise ValueError if two files differ in the name or type of a column."""
    for name in dict.fromkeys([*schema, *other]):
        ours, theirs = schema.get(name), other.get(name)
        if ours != theirs:
            facts = (f"'{first}' {_has(name, ours)}", f"'{path}' {_has(name, theirs)}")
            raise ValueError(f"{facts[0]} and {facts[1]}; give files with the same columns")


def _has(name: str, kind: pl.DataType | None) -> str:
    """Return in words whether a file has a column, and of which type."""
    return f"has no column {name!r}" if kind is None else f"has column {name!r} as {kind}"
