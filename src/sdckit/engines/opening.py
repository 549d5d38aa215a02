"""Choose the engine and open data with it, rows of both files side by side."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks
from sdckit.core.roles import unique_names
from sdckit.core.table import ENGINES, Table, is_path, is_spark_frame, names_of
from sdckit.engines import local
from sdckit.engines.files import (
    ParquetFiles,
    checked_scratch,
    choose_engine,
    exit_when_terminated,
    find_files,
    parse_memory,
    paths_of,
    require_packages,
)
from sdckit.engines.source import BLOCK_ROWS, Source
from sdckit.engines.transport import BlockRef, Message
from sdckit.io.atomic import AnyPath, atomic
from sdckit.io.files import read
from sdckit.io.formats import PARQUET_SUFFIXES
from sdckit.io.memory import memory_at_hand
from sdckit.metrics.original import Original

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.roles import Roles
    from sdckit.engines.local import Workers
    from sdckit.engines.transport import Last, Stage, Transport


ROW = "number of the original's row"
BUCKET = "number of the bucket"
ORIGINAL, MASKED, FAILED = range(3)  # kinds of messages
TEXTS = (pl.String, pl.Categorical, pl.Enum)


def align_by_key(
    original: Any,
    masked: Any,
    key: Any,
    scratch: AnyPath,
    *,
    memory: int | None = None,
    block_rows: int = BLOCK_ROWS,
) -> Source:
    """Return the source of original files and masked ones whose rows are brought into the same order.

    The masked rows are written once as Parquet files into a new folder inside `scratch`, which the caller
    removes. Keys that are missing, repeat or do not match are counted and refused.

    Parameters
    ----------
    original, masked
        A file, a folder of Parquet files or a list of paths.
    key
        Columns that together identify a record in both.
    scratch
        Folder for the aligned files and for intermediate ones.
    memory
        Limit in bytes on the memory of this process; by default, most of what is at hand.
    block_rows
        Rows that are read at a time, and rows of an aligned file.

    Raises
    ------
    ValueError
        A key is missing, repeats, or is in one of the files only.
    """
    place = checked_scratch(scratch)
    work = _Alignment.of(find_files(original), find_files(masked), key, place, memory, block_rows)
    folder = Path(tempfile.mkdtemp(prefix="sdckit-aligned-", dir=place))
    try:
        work.write_rows(folder)
        return Source.of(original, folder, block_rows=block_rows)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def require_unique_key(
    files: ParquetFiles, key: Any, scratch: Path, *, memory: int | None = None, block_rows: int = BLOCK_ROWS
) -> None:
    """Raise ValueError if a key of original files is missing or repeats, within a limit on memory."""
    work = _Alignment.of(files, files, key, scratch, memory, block_rows)
    label = work.checked_label((("original", files),))

    def count(_: int, messages: Sequence[Message]) -> int:
        """Return how many keys of a bucket repeat."""
        return _repeated(_joined(messages, ORIGINAL), work.names)

    found = work.exchange((ORIGINAL,), [], count, "checking keys")
    checks.require_unique_keys(files.rows - sum(found.values()), files.rows, label, "original")


@dataclass(frozen=True)
class _Alignment:
    """Original and masked files, their key, rows of a block, a bucket and an aligned file, and threads."""

    original: ParquetFiles
    masked: ParquetFiles
    key: tuple[str, ...]
    rows: int
    workers: Workers

    @classmethod
    def of(
        cls,
        original: ParquetFiles,
        masked: ParquetFiles,
        key: Any,
        scratch: Path,
        memory: int | None,
        block_rows: int,
    ) -> _Alignment:
        """Return the work on files with as many rows at a time and threads as the memory allows."""
        names = unique_names(key)
        checks.require_known(names, list(original.schema))
        checks.require_masked_key(names, list(masked.schema))
        width = local.CELL_BYTES * len(masked.schema) + local.ROW_BYTES
        workers = local.workers_within(memory, width, scratch)
        rows = min(block_rows, max(workers.limit // (workers.threads * width), 1))
        return cls(original, masked, names, rows, workers)

    def checked_label(self, sides: Iterable[tuple[str, ParquetFiles]]) -> str:
        """Return the key in words; raise ValueError if a record of one of the files has none."""
        label = ", ".join(self.key)
        for name, files in sides:
            checks.require_complete_keys(_count_missing(files, self.key), label, name)
        return label

    def write_rows(self, folder: Path) -> None:
        """Write the masked rows in the original's order; raise ValueError unless keys match one by one."""
        both = (("original", self.original), ("masked", self.masked))
        label, ours = self.checked_label(both), self.original.rows
        if None in self._types:  # such as numbers and texts
            checks.require_matching_keys(ours, ours, self.masked.rows, label)

        def write(number: int, messages: Sequence[Message]) -> Any:
            """Write the rows of one file, sorted by the number of the original's row; return failed keys."""
            failed = [message.arrays[0] for message in messages if message.kind == FAILED]
            if failed:
                return np.sum(failed, axis=0)
            with atomic(folder / f"part-{number:06d}.parquet") as draft:
                _joined(messages, MASKED).sort(ROW).drop(ROW).write_parquet(draft)
            return 0, 0, 0

        found = self.exchange((ORIGINAL, MASKED), [self._join], write, "aligning rows")
        *repeated, absent = np.sum(list(found.values()), axis=0).tolist()
        for again, (name, files) in zip(repeated, both, strict=True):
            checks.require_unique_keys(files.rows - again, files.rows, label, name)
        checks.require_matching_keys(absent, ours, self.masked.rows, label)

    @cached_property
    def _types(self) -> list[pl.DataType | None]:
        """Type in which cells of each key column are compared; None where those of the files never match."""
        return [_common_type(self.original.schema[name], self.masked.schema[name]) for name in self.key]

    @property
    def names(self) -> list[str]:
        """Names of the key's columns beside those of the masked file."""
        return [f"column {i} of the key" for i in range(len(self.key))]

    def exchange(
        self, kinds: Sequence[int], stages: Sequence[Stage], last: Last, step: str
    ) -> dict[int, Any]:
        """Send blocks of one file or both through stages; return the last stage's results by bucket."""
        rows = {ORIGINAL: self.original.rows, MASKED: self.masked.rows}
        items = [
            (kind, BlockRef(begin, min(self.rows, rows[kind] - begin)))
            for kind in kinds
            for begin in range(0, rows[kind], self.rows)
        ]
        size = self.workers.limit // self.workers.threads
        return self.workers.exchange(self._send, items, lambda _: size, stages, last, step=step)

    def _send(self, item: tuple[int, BlockRef]) -> Iterator[Message]:
        """Yield the keys of a block by bucket, with masked rows or numbers of original ones."""
        kind, ref = item
        files = (self.original, self.masked)[kind]
        more = list(files.schema) if kind == MASKED else []
        block = files.read(*ref, list(dict.fromkeys([*self.key, *more])))
        cells = [_comparable(pl.col(name), one) for name, one in zip(self.key, self._types, strict=True)]
        keys = block.select(cell.alias(name) for cell, name in zip(cells, self.names, strict=True))
        row = pl.int_range(ref.first, ref.first + ref.rows).alias(ROW)
        frame = keys.hstack(block.select(more)) if kind == MASKED else keys.with_columns(row)
        buckets = -(-max(self.original.rows, self.masked.rows) // self.rows)
        yield from _messages(frame, keys.hash_rows(seed=0) % buckets, kind)

    def _join(self, _: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the masked rows of a bucket of keys, with the numbers of their original rows, by file.

        If keys repeat or are in the original only, yield how many do.
        """
        ours, theirs = _joined(messages, ORIGINAL), _joined(messages, MASKED)
        keys = self.names if theirs.width else []
        absent = ours.join(theirs, on=keys, how="anti").height if keys and ours.width else ours.height
        failed = np.array([_repeated(ours, self.names), _repeated(theirs, self.names), absent])
        if failed.any():
            yield Message(0, FAILED, (failed,))
        elif ours.width:
            found = ours.join(theirs, on=keys).drop(keys)
            yield from _messages(found, found[ROW] // self.rows, MASKED)


def _count_missing(files: ParquetFiles, key: Sequence[str]) -> int:
    """Return in how many rows a column of the key is null, or NaN in a column of floats."""
    gaps = [
        pl.col(name).is_null() | (pl.col(name).is_nan() if files.schema[name].is_float() else pl.lit(False))
        for name in key
    ]
    return int(files.scan().select(pl.any_horizontal(gaps).sum()).collect(engine="streaming").item())


def _common_type(one: pl.DataType, other: pl.DataType) -> pl.DataType | None:
    """Return the type in which cells of two types are compared; None if they never match."""
    if one in TEXTS and other in TEXTS:
        return pl.String()
    if one.is_numeric() and other.is_numeric():
        empty = [pl.DataFrame(schema={"": kind}) for kind in (one, other)]
        return pl.concat(empty, how="vertical_relaxed").dtypes[0]
    return one if one == other else None


def _comparable(cell: pl.Expr, kind: pl.DataType | None) -> pl.Expr:
    """Return key cells in a common type, -0.0 as 0.0."""
    assert kind is not None  # noqa: S101 - other keys were refused
    return cell.cast(kind) + 0.0 if kind.is_float() else cell.cast(kind)


def _messages(frame: pl.DataFrame, buckets: pl.Series, kind: int) -> Iterator[Message]:
    """Yield the rows of a table in a message for each bucket."""
    parts = frame.with_columns(buckets.alias(BUCKET)).partition_by(BUCKET, as_dict=True, include_key=False)
    for (bucket,), part in parts.items():
        yield Message(int(bucket), kind, (part,))


def _joined(messages: Sequence[Message], kind: int) -> pl.DataFrame:
    """Return the rows of all messages of a kind; a table without columns if there is none."""
    tables = [message.arrays[0] for message in messages if message.kind == kind]
    return pl.concat(tables) if tables else pl.DataFrame()


def _repeated(frame: pl.DataFrame, key: Sequence[str]) -> int:
    """Return how many rows of a table have a key that an earlier one has."""
    return frame.height - frame.select(key).n_unique() if frame.width else 0


SAMPLED = 20_000  # rows from which roles of columns are guessed
SHARE = 0.7  # of the memory at hand that a file in memory may take
ROLES = ("key", "weights", "by", "na", "untouched", "known", "unknown", "confidential", "unit", "drop")


@dataclass(frozen=True)
class Local:
    """The engine that reads Parquet files in blocks of rows, for files that do not fit into memory.

    `memory` is its limit in bytes or as in "4GB"; by default, what is at hand. `scratch` is a folder for
    intermediate files, which are removed; by default the system's.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.Local(memory="4GB")
    Local(memory='4GB', scratch=None)
    """

    memory: int | str | None = None
    scratch: AnyPath | None = None


@dataclass(frozen=True)
class Spark:
    """The engine that works on a Spark cluster.

    `master` is its address, such as "spark://host:7077"; by default a session on this machine. `scratch` is a
    folder for intermediate files, which all workers see and which are removed; by default the system's.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.Spark(master="local[2]")
    Spark(master='local[2]', scratch=None)
    """

    master: str | None = None
    scratch: AnyPath | None = None


@dataclass(frozen=True)
class Settings:
    """Where to work: the engine (None: chosen by size), bytes of memory, Spark's master, a scratch folder."""

    engine: str | None = None
    memory: int | None = None
    master: str | None = None
    scratch: Path | None = None

    @classmethod
    def of(
        cls, engine: str | None, *, memory: Any = None, master: str | None = None, scratch: Any = None
    ) -> Settings:
        """Return checked settings; raise ValueError for those that do not go together."""
        if engine is not None:
            checks.one_of("engine", engine, ENGINES)
        if master is not None and engine not in {None, "spark"}:
            raise ValueError(
                f"a master is for the engine spark and the engine is {engine}; leave one of them out"
            )
        chosen = "spark" if master is not None else engine
        if memory is not None and chosen not in {None, "local"}:
            raise ValueError(
                f"a memory limit is for the engine local and the engine is {chosen}; leave one of them out"
            )
        size = memory if memory is None or isinstance(memory, int) else parse_memory(memory)
        return cls(chosen, size, master, None if scratch is None else checked_scratch(scratch))

    @classmethod
    def named(cls, engine: Settings | Local | Spark | str | None) -> Settings:
        """Return the settings of an engine, given as an object or by its name; None leaves it open."""
        if isinstance(engine, Settings):
            return engine
        if isinstance(engine, Local):
            return cls.of("local", memory=engine.memory, scratch=engine.scratch)
        if isinstance(engine, Spark):
            return cls.of("spark", master=engine.master, scratch=engine.scratch)
        return cls.of(engine)

    def for_data(self, *data: Any) -> Settings:
        """Return the settings with an engine: the given one, or one that fits the size of the data."""
        if self.engine is not None:
            return self
        if any(is_spark_frame(one) for one in data):
            return replace(self, engine="spark")
        if not is_path(data[0]):
            return replace(self, engine="memory")
        limit = int(memory_at_hand() * SHARE) if self.memory is None else self.memory
        return replace(self, engine=choose_engine(paths_of(data[0]), limit))

    def for_output(self, data: Any, output: Any) -> Settings:
        """Return the settings for masking data into a file or, which needs blocks of rows, into a folder."""
        if self.engine is None and output is not None and not Path(output).suffix and is_parquet(data):
            return replace(self, engine="local")
        return self.for_data(data)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Yield a new folder for intermediate files, which is removed after the `with` block."""
        folders = tempfile.TemporaryDirectory(prefix="sdckit-", dir=self.scratch)
        with exit_when_terminated(), folders as folder:
            yield Path(folder)


@dataclass(frozen=True)
class Opened:
    """Original and masked files on the engine local or spark, with the roles of their columns."""

    engine: str
    transport: Transport
    source: Source
    rows: Original  # some rows of the original, by which roles were settled
    options: Mapping[str, Any]  # roles of columns as they were given
    memory: int | None = None  # limit in bytes on the memory of this process

    @property
    def roles(self) -> Roles:
        """Roles of the columns."""
        return self.rows.roles


@contextmanager
def opened(settings: Settings, original: Any, masked: Any, options: Mapping[str, Any]) -> Iterator[Opened]:
    """Open the data on the engine local or spark, with roles settled by a sample of rows.

    Intermediate files are removed at the end.
    """
    options = with_columns_of_array(original, options)
    with settings.folder() as scratch:
        source = aligned_files(settings, original, masked, options.get("key"), scratch)
        given = {name: options[name] for name in ROLES if options.get(name) is not None}
        columns, disclosed = options.get("columns"), options.get("disclosure")
        if disclosed is not None:  # as in memory: what was masked is measured, within strata of the masking
            columns = (list(disclosed.columns) or None) if columns is None else columns
            given |= {"by": list(disclosed.by)} if disclosed.by and "by" not in given else {}
        weights = options.get("weights")
        if weights is not None and not isinstance(weights, str):
            raise TypeError("weights of files are a column; give its name")
        rows = Original.of(source.original.sample(SAMPLED), columns=columns, **given, warn=False)
        source = source.with_roles(weights=weights, by=rows.roles.by or None, na=options.get("na"))
        transport = transport_on(settings, source, scratch)
        yield Opened(str(settings.engine), transport, source, rows, given, settings.memory)


def with_columns_of_array(data: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return options with all columns of an array named, since none of them has another role."""
    array = isinstance(data, (np.ndarray, list, tuple)) and not is_path(data)
    return {**options, "columns": Table(data).names} if array and options.get("columns") is None else options


def is_parquet(data: Any) -> bool:
    """Return True for the path of a Parquet file or a folder, or a list of them."""
    if not is_path(data):
        return False
    return all(path.is_dir() or path.suffix.lower() in PARQUET_SUFFIXES for path in paths_of(data))


def transport_on(settings: Settings, source: Source, scratch: Path) -> Transport:
    """Return the transport of the engine for the files of a source."""
    if settings.engine == "spark":
        require_packages()
        from sdckit.engines.spark import SparkTransport  # noqa: PLC0415 - an optional package

        return SparkTransport(source, master=settings.master)
    return local.LocalTransport(source, memory=settings.memory, scratch=scratch)


def table_of(data: Any) -> Any:
    """Return data as a table in memory: files are read, tables stay as they are."""
    if is_spark_frame(data):
        raise TypeError("a Spark DataFrame is not read into memory; use the engine spark")
    if not is_path(data):
        return data
    if isinstance(data, (list, tuple)) or Path(data).is_dir():
        return find_files(data).scan().collect()
    return read(data).frame


def aligned_files(settings: Settings, original: Any, masked: Any, key: Any, scratch: Path) -> Source:
    """Return original and masked data as Parquet files with corresponding rows; frames are written first."""
    if is_spark_frame(original) or is_spark_frame(masked):
        if settings.engine != "spark":
            raise TypeError(f"a Spark DataFrame needs the engine spark, not {settings.engine}")
        return _spark_files(original, masked, key, scratch)
    ours = file_of(original, scratch, "original")
    theirs = None if masked is None else file_of(masked, scratch, "masked")
    if key is None or theirs is None:
        return Source.of(ours, theirs, block_rows=BLOCK_ROWS)

    return align_by_key(ours, theirs, names_of(key), scratch, memory=settings.memory, block_rows=BLOCK_ROWS)


def file_of(data: Any, scratch: Path, name: str) -> Any:
    """Return the paths of Parquet files with the data; a table is written to the scratch folder."""
    if not is_path(data):
        path = scratch / f"{name}.parquet"
        table = Table(data)
        frame = None if table.frame is None else table.frame.to_polars()
        (pl.DataFrame(table.array, table.names) if frame is None else frame).write_parquet(path)
        return path
    require_parquet(data)
    return data


def require_parquet(data: Any) -> None:
    """Raise ValueError for the path of a file that is no Parquet file, by its suffix."""
    for path in paths_of(data):
        if path.is_file() and not is_parquet(path):
            raise ValueError(f"'{path}' is no Parquet file; write it as Parquet, or use engine='memory'")


def _spark_files(original: Any, masked: Any, key: Any, scratch: Path) -> Source:
    """Return Spark frames as Parquet files that were written by the workers."""
    from sdckit.engines.spark import aligned_source  # noqa: PLC0415 - an optional package

    if not is_spark_frame(original) or not (masked is None or is_spark_frame(masked)):
        raise TypeError("one of the data is a Spark DataFrame, the other is not; give both as DataFrames")
    names = [] if key is None else names_of(key)
    if len(names) > 1:
        raise ValueError(f"the key is {', '.join(names)}; on Spark it is one column")
    return aligned_source(original, masked, names[0] if names else None, scratch)
