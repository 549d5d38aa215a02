"""Folders of Parquet files."""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

import narwhals as nw
import numpy as np
import polars as pl

from sdckit.core.checks import quoted
from sdckit.core.table import Table, replaced_series
from sdckit.io import atomic as drafts
from sdckit.io.atomic import sha256_of
from sdckit.io.cell_types import damaged_error
from sdckit.io.csv_table import check_column_names
from sdckit.io.files import Source, explain_read_errors
from sdckit.io.formats import PARQUET_SUFFIXES
from sdckit.io.memory import BEYOND_MEMORY, require_memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sdckit.arrays import Floats
    from sdckit.io.atomic import AnyPath
    from sdckit.io.formats import Dialect


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
        except (*drafts.POLARS_ERRORS, OSError) as error:
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
    paths = [path for one in paths_of(given) for path in _files_at(one)]
    if not paths:
        raise ValueError("the list of Parquet files is empty; name at least one")
    found = [_open(path) for path in paths]
    for path, (_, schema) in zip(paths, found, strict=True):
        _require_same_schema(paths[0], found[0][1], path, schema)
    return ParquetFiles(tuple(file for file, _ in found), found[0][1])


def paths_of(given: Any) -> list[Path]:
    """Return the paths of data that are given as one path or as a list of them."""
    return [Path(one) for one in (given if isinstance(given, (list, tuple)) else [given])]


def read_folder(path: Path, dialect: Dialect) -> Source:
    """Return all Parquet files of a folder as one table, with the digest of the folder that was read."""
    found = find_files(path)
    require_memory(f"'{path}'", 8 * found.rows * len(found.schema), BEYOND_MEMORY)
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
    except (*drafts.POLARS_ERRORS, OSError) as error:
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


STATM = "/proc/self/statm"  # where Linux says how many pages of memory a process has
UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
UNKNOWN_USE = 3 * 10**8  # bytes that this program is taken to use where the system does not say
EVALUATE_BYTES = 700  # that evaluating a numeric cell and its masked value takes in memory, about


def parse_memory(text: str | float) -> int:
    """Return an amount of memory such as "4GB" or "512 MiB" in bytes; raise ValueError for other text.

    Examples
    --------
    >>> parse_memory("1.5GB")
    1500000000
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]i?B)\s*", str(text), re.IGNORECASE)
    size = 0 if found is None else int(float(found[1]) * UNITS.get(found[2].upper(), 0))
    if not size:
        raise ValueError(f"memory is {text!r}; give a number with MB, GB, MiB or GiB, such as 4GB")
    return size


def memory_in_use() -> int:
    """Return the resident memory of this process in bytes; its peak where the system says no more."""
    try:
        pages = int(Path(STATM).read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        pass
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return UNKNOWN_USE
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def return_freed_memory() -> None:
    """Return memory that was freed to the system at once, where C's library offers it (glibc does)."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)


def choose_engine(paths: Sequence[Path], memory: int) -> Literal["memory", "local"]:
    """Return the engine for files: "memory" if evaluating them fits into so many bytes, else "local".

    With the default metrics, it takes about 700 bytes for each row and numeric column of the original
    (measured on 500,000 to 1,000,000 rows of 4 and 8 columns). Files other than Parquet are always read into
    memory.
    """
    given = paths[0]
    if not given.is_dir() and given.suffix.lower() not in PARQUET_SUFFIXES:
        return "memory"
    files = find_files(given)
    needed = files.rows * len(files.table.numeric_names) * EVALUATE_BYTES
    return "memory" if needed <= memory else "local"


def checked_scratch(scratch: AnyPath | None) -> Path:
    """Return the folder for intermediate files, the system's by default; raise OSError if unusable."""
    folder = Path(tempfile.gettempdir() if scratch is None else scratch)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"no folder '{folder}' for intermediate files; create it or name another with scratch="
        )
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise type(error)(
            f"cannot write to the folder '{folder}' for intermediate files: {reason}; "
            "name another with scratch="
        ) from error
    return folder


@contextmanager
def exit_when_terminated() -> Iterator[None]:
    """Let SIGTERM end the program as Ctrl-C does inside the `with`, so that files are removed.

    Handlers that the program has set itself stay, and only the main thread can set one.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def leave(number: int, _frame: Any) -> None:
        """End the program with the exit code of a signal."""
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


PART = "part-{:015d}.parquet"  # by the number of its first row, so that names sort as rows do


def published_type(kind: pl.DataType, decimals: int | None) -> pl.DataType:
    """Return the type of a masked column: that of the original where it can hold the masked values."""
    if kind.is_integer():
        return kind if decimals == 0 else pl.Float64()
    if isinstance(kind, pl.Decimal):
        return kind if decimals is not None and decimals <= kind.scale else pl.Float64()
    return kind


@dataclass(frozen=True)
class PartWriter:
    """Write stretches of rows as Parquet files: masked columns, and the others as they are.

    `columns` are the published ones in their order, `types` those of the masked ones, `decimals` how many
    decimals the masked columns are rounded to.
    """

    files: ParquetFiles
    folder: str
    columns: tuple[str, ...]
    types: Mapping[str, pl.DataType]
    decimals: Mapping[str, int] = field(default_factory=dict)
    schema: Any = None  # an Arrow schema, where it says more than the types
    keeps_missing: bool = True  # False where missing cells are published as masked, see `Method.alike`

    def write(self, first: int, masked: Floats, original: Floats) -> None:
        """Write the rows from number `first` on, given their masked and their original values.

        A cell that is missing in the original is written as it was: null, NaN or a code; as masked unless
        `keeps_missing`.
        """
        frame = self.files.read(first, len(masked), self.columns)
        columns = [
            self._column(frame[name], masked[:, j], original[:, j])
            for j, name in enumerate(self.types)
            if name in frame.columns
        ]
        target = Path(self.folder) / PART.format(first)
        hidden = target.with_name(f".{secrets.token_hex(8)}.part")
        with refused_writes(target.parent.parent):  # the folder of the output
            frame.with_columns(columns).write_parquet(hidden, arrow_schema=self.schema)
            hidden.replace(target)  # a task that runs twice writes the same

    def _column(self, old: pl.Series, values: Floats, original: Floats) -> pl.Series:
        """Return a column with masked values in the published type, missing cells as they were."""
        kind, name = self.types[old.name], old.name
        made = replaced_series(nw.from_native(old, series_only=True), values, self.decimals.get(name))
        try:
            fresh: pl.Series = made.to_native().cast(kind)
            lost = kind == pl.Float32 and bool(fresh.is_infinite().any())
        except pl.exceptions.InvalidOperationError:
            lost = True
        if lost:
            low, high = np.fmin.reduce(values), np.fmax.reduce(values)
            raise ValueError(
                f"column {name!r} has masked values from {low:g} to {high:g}, which {kind} cannot hold; "
                "write the original with a wider type, or weaken the masking"
            )
        missing = np.isnan(original) & self.keeps_missing
        return fresh.zip_with(pl.Series(~missing), old.cast(kind)) if missing.any() else fresh


@contextmanager
def refused_writes(path: Path) -> Iterator[None]:
    """Turn an error of the operating system or of polars while writing into one line with a remedy."""
    try:
        with drafts.explain_write_errors(path):
            yield
    except drafts.POLARS_ERRORS as error:
        reason = str(error).splitlines()[0]  # polars may hide why the system refused
        raise OSError(
            f"could not write to '{path}': no space left, or {reason}; free some space or use another folder"
        ) from error


@dataclass(frozen=True)
class Output:
    """Where a masked file goes: one file, or a folder of part files; checked before any work."""

    path: Path
    overwrite: bool = False

    @property
    def is_file(self) -> bool:
        """True for one file, by its suffix; a folder has none."""
        return self.path.suffix.lower() in PARQUET_SUFFIXES

    def check(self, originals: Sequence[str]) -> None:
        """Raise an error if the output cannot be written, or would replace what it is made from."""
        inside = [Path(one).resolve() for one in originals]
        target = self.path.resolve()
        if target in inside or any(target in one.parents for one in inside):
            raise ValueError(f"'{self.path}' holds the original data; choose another name for the output")
        if self.is_file:
            drafts.check_target(self.path, self.overwrite, PARQUET_SUFFIXES)
        elif self.path.exists() and not (self.overwrite and self.path.is_dir()):
            raise FileExistsError(
                f"'{self.path}' exists already; choose another name or overwrite it (overwrite=True)"
            )
        elif self.path.is_dir() and {one.suffix.lower() for one in self.path.iterdir()} - {*PARQUET_SUFFIXES}:
            raise FileExistsError(
                f"'{self.path}' holds other files than Parquet files, which overwriting would remove; "
                "choose another name"
            )
        elif not self.path.parent.is_dir():
            raise FileNotFoundError(
                f"no folder '{self.path.parent}' to write '{self.path.name}' into; create it first"
            )

    @contextmanager
    def parts(self, schema: Any = None) -> Iterator[Path]:
        """Yield a folder for part files; make the output of them if the `with` block raises no error.

        After any error, Ctrl-C included, the folder is deleted and the output is as it was.
        """
        target = Path(os.path.realpath(self.path))
        with ExitStack() as stack:
            with drafts.explain_write_errors(self.path):
                drafts.sweep_drafts(target.parent)
                folder = stack.enter_context(drafts.draft_folder(target.parent))
            with exit_when_terminated():
                yield folder
            _remove_strays(folder)
            if self.is_file:
                self._write_file(sorted(folder.iterdir()), schema)
            else:
                with drafts.explain_write_errors(self.path):
                    _move_folder(folder, target, overwrite=self.overwrite)

    def _write_file(self, parts: Sequence[Path], schema: Any) -> None:
        """Write the rows of all part files, in their order, as one file."""
        with drafts.atomic(self.path, self.overwrite) as temporary:
            rows = pl.scan_parquet(list(parts), glob=False, hive_partitioning=False)
            rows.sink_parquet(temporary, arrow_schema=schema)


def _remove_strays(folder: Path) -> None:
    """Delete what tasks that were stopped have left in a folder of part files."""
    for stray in folder.glob(".*"):
        stray.unlink()


def _move_folder(folder: Path, target: Path, *, overwrite: bool) -> None:
    """Rename a folder to its target, which takes the place of an older one if `overwrite`."""
    old = target.with_name(f".sdckit-{secrets.token_hex(8)}.old")
    if overwrite and target.exists():
        target.rename(old)
    try:
        folder.chmod(drafts.usual_folder_mode(folder.parent))
        folder.rename(target)
        drafts.sync_folder(target.parent)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise
    with suppress(OSError):
        shutil.rmtree(old)


def required_schema(files: ParquetFiles, columns: Mapping[str, pl.DataType], masked: Sequence[str]) -> Any:
    """Return an Arrow schema of columns that keeps which of the original must not be null; None if all may.

    Masked columns may be null, since a method or a repair can suppress cells. Needs pyarrow, and is None
    without it.
    """
    if find_spec("pyarrow") is None:
        return None
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    original = pq.read_schema(files.paths[0])
    strict = {field.name for field in original if not field.nullable} - set(masked)
    if not strict & set(columns):
        return None
    plain = pa.schema(pl.Schema(columns))
    return pa.schema([field.with_nullable(field.name not in strict) for field in plain])


def require_packages() -> None:
    """Raise ImportError if a package that Spark needs is missing."""
    for name in ("pyspark", "pyarrow", "pandas"):
        if find_spec(name) is None:
            raise ImportError(f'there is no {name}; run pip install "sdckit[spark]"')
