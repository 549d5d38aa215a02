"""Spark DataFrames as aligned Parquet files, which tasks read by themselves; and files as DataFrames."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from sdckit.engines.source import Source
from sdckit.engines.spark_job import Job
from sdckit.engines.spark_session import context_of, quiet, require_workers
from sdckit.engines.spark_worker import described_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

GROUP = 1 << 20  # rows of a row group, at most
GROUP_BYTES = 64 << 20
SIDES = ("original", "masked")
_WRITTEN = pa.schema([("part", pa.int64()), *((side, pa.string()) for side in SIDES)])
WRITTEN = "part long, original string, masked string"


def aligned_source(
    original: DataFrame, masked: DataFrame | None, key: str | None, scratch: str | Path
) -> Source:
    """Write DataFrames as Parquet files whose rows correspond, and return their source.

    Parameters
    ----------
    original, masked
        The data, and optionally their masked version, joined by the key.
    key
        Column that names each record; needed with two DataFrames, whose rows have no order.
    scratch
        Folder that this machine and all workers find under the same path; the caller removes it.

    Raises
    ------
    ValueError
        There is no key, it does not name records one by one, or there are no rows.
    OSError
        A worker cannot write to the folder, or this machine cannot see what it wrote.
    """
    folder = Path(scratch)
    if "://" in str(scratch):
        raise ValueError(f"scratch is {scratch}; name a folder that all workers see, such as /mnt/shared/tmp")
    if masked is not None and key is None:
        raise ValueError("rows of two Spark DataFrames have no order; name the column of records with key=")
    context = context_of(original.sparkSession)
    require_workers(context)
    with quiet():
        frame, others = _named(original, "o"), []
        if masked is not None and key is not None:
            frame, others = _joined(original, masked, key), masked.columns
        writes = WriteParts(str(folder), tuple(original.columns), tuple(others))
        frame = frame.mapInArrow(writes, WRITTEN)
    parts = sorted(Job(context, frame.collect).run("writing Parquet files"))
    if not parts:
        raise ValueError("the Spark DataFrame has no rows")
    paths = [[folder / side / part[side] for part in parts if part[side]] for side in SIDES]
    _keep_only(folder, set(chain(*paths)))
    return Source.of(paths[0], paths[1] or None)


def frame_of(session: SparkSession, folder: str | Path) -> DataFrame:
    """Return the Parquet files of a folder as a Spark DataFrame."""
    return session.read.parquet(Path(folder).absolute().as_uri())


def _keep_only(folder: Path, wanted: set[Path]) -> None:
    """Remove files of attempts that failed; raise OSError if wanted ones are not seen from here."""
    there = {path for side in SIDES for path in folder.glob(f"{side}/*")}
    if wanted - there:
        lost = min(wanted - there)
        raise OSError(f"a worker wrote '{lost}', which is not seen from here; name a folder that all share")
    for path in there - wanted:
        path.unlink()


def _named(frame: DataFrame, letter: str) -> DataFrame:
    """Return a frame with its columns named by place: o0, o1, ..."""
    return frame.toDF(*(f"{letter}{place}" for place in range(len(frame.columns))))


def _joined(original: DataFrame, masked: DataFrame, key: str) -> DataFrame:
    """Return both frames side by side, rows in an order that a second run finds as well."""
    for name, frame in zip(SIDES, (original, masked), strict=True):
        if key not in frame.columns:
            raise ValueError(f"the {name} DataFrame has no column {key!r}; name one that both have with key=")
    left, right = _named(original, "o"), _named(masked, "m")
    ours = left[f"o{original.columns.index(key)}"]
    theirs = right[f"m{masked.columns.index(key)}"]
    _require_keys(left.select(ours.alias("key")), right.select(theirs.alias("key")), key)
    count = int(str(original.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    # A number of partitions that is asked for is kept by Spark, also where it adapts plans to sizes.
    left, right = left.repartition(count, ours), right.repartition(count, theirs)
    return left.join(right, ours == theirs).sortWithinPartitions(ours)


def _require_keys(ours: DataFrame, theirs: DataFrame, key: str) -> None:
    """Raise ValueError if a key is missing, stands in several records, or in one of the frames only."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - an optional package

    kinds = [frame.schema["key"].dataType.simpleString() for frame in (ours, theirs)]
    if kinds[0] != kinds[1]:
        raise ValueError(f"key {key!r} is {kinds[0]} in the original and {kinds[1]} in the masked data")

    def side(frame: DataFrame, of_ours: int) -> DataFrame:
        """Return keys with the number of records they stand for on each side."""
        return frame.select("key", F.lit(of_ours).alias("ours"), F.lit(1 - of_ours).alias("theirs"))

    def count(what: Column) -> Column:
        """Return the number of keys for which something is true."""
        return F.coalesce(F.sum(what.cast("long")), F.lit(0))

    keys = side(ours, 1).unionAll(side(theirs, 0)).groupBy("key").agg(F.sum("ours"), F.sum("theirs"))
    keys = keys.toDF("key", "ours", "theirs")
    present = keys["key"].isNotNull()
    facts = {
        "records without a key": F.coalesce(F.sum(F.when(~present, keys["ours"] + keys["theirs"])), F.lit(0)),
        "keys of several records": count(present & ((keys["ours"] > 1) | (keys["theirs"] > 1))),
        "keys in the original only": count(present & (keys["theirs"] == 0)),
        "keys in the masked data only": count(present & (keys["ours"] == 0)),
    }
    (found,) = Job(context_of(ours.sparkSession), keys.agg(*facts.values()).collect).run("matching keys")
    wrong = [f"{number} {fact}" for fact, number in zip(facts, found, strict=True) if number]
    if wrong:
        raise ValueError(f"key {key!r} does not match records one by one: {', '.join(wrong)}; correct them")


@dataclass(frozen=True)
class WriteParts:
    """Writes each partition of a joined frame as a file of original and a file of masked rows."""

    folder: str
    original: tuple[str, ...]
    masked: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of a partition, yield the names of its files; none for a partition without rows."""
        from pyspark import TaskContext  # noqa: PLC0415 - an optional package

        task: Any = TaskContext.get()
        # Each attempt writes files of its own: one that is given up may still be running.
        name = f"part-{task.partitionId():05}-{task.taskAttemptId()}.parquet"
        with described_errors():
            if self._write(name, batches):
                row = [task.partitionId(), name, name if self.masked else None]
                columns = [pa.array([cell], kind) for cell, kind in zip(row, _WRITTEN.types, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=_WRITTEN)

    def _write(self, name: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Write the rows of a partition; return how many. Leave no file if that fails."""
        cut, rows = len(self.original), 0
        files = [_File(Path(self.folder, "original", name), self.original, slice(0, cut))]
        if self.masked:
            files.append(_File(Path(self.folder, "masked", name), self.masked, slice(cut, None)))
        try:
            for table in _row_groups(batches):
                rows += table.num_rows
                for file in files:
                    file.write(table)
            for file in files:
                file.close()
        except BaseException:
            for file in files:
                file.abandon()
            raise
        return rows


class _File:
    """A Parquet file that gets some columns of tables, renamed."""

    def __init__(self, path: Path, names: Sequence[str], columns: slice) -> None:
        self.path, self.names, self.columns = path, list(names), columns
        self.file: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """Write rows as one row group."""
        table = table.select(table.column_names[self.columns]).rename_columns(self.names)
        if self.file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.file = pq.ParquetWriter(self.path, table.schema)
        self.file.write_table(table)

    def close(self) -> None:
        """Finish the file."""
        if self.file is not None:
            self.file.close()

    def abandon(self) -> None:
        """Remove the file."""
        with suppress(Exception):
            self.close()
        self.path.unlink(missing_ok=True)


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches joined to tables of the size of a row group."""
    kept: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            kept.append(batch)
        if sum(one.num_rows for one in kept) >= GROUP or sum(one.nbytes for one in kept) >= GROUP_BYTES:
            yield pa.Table.from_batches(kept)
            kept = []
    if kept:
        yield pa.Table.from_batches(kept)
