"""Open original and masked data on an engine: which one, which files, and the roles of their columns."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks
from sdckit.core.engine_choice import ENGINES, is_path, is_spark_frame
from sdckit.core.prepared import PreparedTable
from sdckit.core.table import Table, names_of
from sdckit.engines.parquet_files import find_files
from sdckit.engines.sizes import choose_engine, parse_memory
from sdckit.engines.source import BLOCK_ROWS, Source
from sdckit.engines.spark_packages import require_packages
from sdckit.engines.spill import checked_scratch, exit_when_terminated
from sdckit.io.atomic import AnyPath  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.io.files import read
from sdckit.io.memory import memory_at_hand
from sdckit.io.suffixes import PARQUET_SUFFIXES
from sdckit.metrics.original import Original

if TYPE_CHECKING:
    from sdckit.core.roles import Roles
    from sdckit.engines.transport import Transport

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
        paths = data[0] if isinstance(data[0], (list, tuple)) else [data[0]]
        return replace(self, engine=choose_engine(paths, limit))

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

    def prepared(self, table: pl.DataFrame, columns: Any = None) -> Original:
        """Return rows of the original, prepared with the roles that were given."""
        return Original.of(table, columns=columns, **self.options, warn=False)


@contextmanager
def opened(settings: Settings, original: Any, masked: Any, options: Mapping[str, Any]) -> Iterator[Opened]:
    """Open the data on the engine local or spark; intermediate files are removed at the end."""
    options = with_columns_of_array(original, options)
    with settings.folder() as scratch:
        source = aligned_files(settings, original, masked, options.get("key"), scratch)
        yield _opened(settings, source, options, scratch)


def with_columns_of_array(data: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return options with all columns of an array named, since none of them has another role."""
    array = isinstance(data, (np.ndarray, list, tuple)) and not is_path(data)
    return {**options, "columns": Table(data).names} if array and options.get("columns") is None else options


def is_parquet(data: Any) -> bool:
    """Return True for the path of a Parquet file or a folder, or a list of them."""
    if not is_path(data):
        return False
    paths = map(Path, data if isinstance(data, (list, tuple)) else [data])
    return all(path.is_dir() or path.suffix.lower() in PARQUET_SUFFIXES for path in paths)


def _opened(settings: Settings, source: Source, options: Mapping[str, Any], scratch: Path) -> Opened:
    """Return files on the engine local or spark, with roles settled by a sample of rows."""
    given = {name: options[name] for name in ROLES if options.get(name) is not None}
    columns, disclosed = options.get("columns"), options.get("disclosure")
    if disclosed is not None:  # as in memory: what was masked is measured, within the strata of the masking
        columns = (list(disclosed.columns) or None) if columns is None else columns
        given |= {"by": list(disclosed.by)} if disclosed.by and "by" not in given else {}
    weights = options.get("weights")
    if weights is not None and not isinstance(weights, str):
        raise TypeError("weights of files are a column; give its name")
    rows = Original.of(source.sample(SAMPLED), columns=columns, **given, warn=False)
    source = source.with_roles(weights=weights, by=rows.roles.by or None, na=options.get("na"))
    transport = transport_on(settings, source, scratch)
    return Opened(str(settings.engine), transport, source, rows, given, settings.memory)


def transport_on(settings: Settings, source: Source, scratch: Path) -> Transport:
    """Return the transport of the engine for the files of a source."""
    if settings.engine == "spark":
        require_packages()
        from sdckit.engines.spark import SparkTransport  # noqa: PLC0415 - an optional package

        return SparkTransport(source, master=settings.master)
    from sdckit.engines.local import LocalTransport  # noqa: PLC0415 - not needed on Spark

    return LocalTransport(source, memory=settings.memory, scratch=scratch)


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
    from sdckit.engines.alignment import align_by_key  # noqa: PLC0415 - only with a key

    return align_by_key(ours, theirs, names_of(key), scratch, memory=settings.memory, block_rows=BLOCK_ROWS)


def file_of(data: Any, scratch: Path, name: str) -> Any:
    """Return the paths of Parquet files with the data; a table is written to the scratch folder."""
    if isinstance(data, PreparedTable):
        raise TypeError("prepared data are in memory; give the table itself, or use engine='memory'")
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
    for path in map(Path, data if isinstance(data, (list, tuple)) else [data]):
        if path.is_file() and not is_parquet(path):
            raise ValueError(f"'{path}' is no Parquet file; write it as Parquet, or use engine='memory'")


def _spark_files(original: Any, masked: Any, key: Any, scratch: Path) -> Source:
    """Return Spark frames as Parquet files that were written by the workers."""
    from sdckit.engines.spark_frames import aligned_source  # noqa: PLC0415 - an optional package

    if not is_spark_frame(original) or not (masked is None or is_spark_frame(masked)):
        raise TypeError("one of the data is a Spark DataFrame, the other is not; give both as DataFrames")
    names = [] if key is None else names_of(key)
    if len(names) > 1:
        raise ValueError(f"the key is {', '.join(names)}; on Spark it is one column")
    return aligned_source(original, masked, names[0] if names else None, scratch)
