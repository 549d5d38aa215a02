"""Keys of Parquet files: found to be unique, and used to bring masked rows into the original's order."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks
from sdckit.core.roles import unique_names
from sdckit.engines.local import CELL_BYTES, HELD, ROW_BYTES, RUNNING, exchange_items, memory_for_rows
from sdckit.engines.parquet_files import ParquetFiles, find_files
from sdckit.engines.source import BLOCK_ROWS, Source
from sdckit.engines.spill import checked_scratch
from sdckit.engines.transport import BlockRef, Message
from sdckit.engines.workers import Workers
from sdckit.io.atomic import atomic
from sdckit.progress import track

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.engines.transport import Last, Stage
    from sdckit.io.atomic import AnyPath

ROW = "number of the original's row"
KEY = "column of the key"
BUCKET = "number of the bucket"
ORIGINAL, MASKED = 0, 1  # kinds of messages
MATCHING = 0.3  # share of the progress at which rows are written
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
    removes. Keys that are missing, repeat or do not match are counted and refused before.

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
        with track("matching keys", 1.0) as report:
            report(0.0, MATCHING)
            work.require_matching_keys()
            report(MATCHING, 1.0 - MATCHING, "aligning rows")
            work.write_rows(folder)
        return Source.of(original, folder, block_rows=block_rows)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def require_unique_key(
    files: ParquetFiles, key: Any, scratch: Path, *, memory: int | None = None, block_rows: int = BLOCK_ROWS
) -> None:
    """Raise ValueError if a key of original files is missing or repeats, within a limit on memory."""
    _Alignment.of(files, files, key, scratch, memory, block_rows).require_unique_keys()


@dataclass(frozen=True)
class _Alignment:
    """Original and masked files, their key, and the rows, memory, threads and folder to be used."""

    original: ParquetFiles
    masked: ParquetFiles
    key: tuple[str, ...]
    rows: int  # of a block, a bucket and an aligned file
    memory: int
    threads: int
    scratch: Path

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
        left = memory_for_rows(memory)
        width = CELL_BYTES * len(masked.schema) + ROW_BYTES
        threads = max(1, min(os.cpu_count() or 1, int(left * RUNNING) // (block_rows * width)))
        rows = min(block_rows, max(int(left * RUNNING) // (threads * width), 1))
        return cls(original, masked, names, rows, left, threads, scratch)

    def require_unique_keys(self) -> None:
        """Raise ValueError unless every key of the original is there, and once."""
        label, rows = ", ".join(self.key), self.original.rows
        checks.require_complete_keys(_count_missing(self.original, self.key), label, "original")
        found = self._exchange(self._send_keys, [], _compare_keys, "checking keys", (ORIGINAL,))
        again = sum(repeated for repeated, _, _ in found.values())
        checks.require_unique_keys(rows - again, rows, label, "original")

    def require_matching_keys(self) -> None:
        """Raise ValueError unless every key is there, once, and in both files."""
        label, both = ", ".join(self.key), (("original", self.original), ("masked", self.masked))
        for name, files in both:
            checks.require_complete_keys(_count_missing(files, self.key), label, name)
        ours, theirs = self.original.rows, self.masked.rows
        if None in self._types:  # such as numbers and texts
            checks.require_matching_keys(ours, ours, theirs, label)
        found = self._exchange(self._send_keys, [], _compare_keys, "matching keys")
        *repeated, absent = np.sum(list(found.values()), axis=0).tolist()
        for again, (name, files) in zip(repeated, both, strict=True):
            checks.require_unique_keys(files.rows - again, files.rows, label, name)
        checks.require_matching_keys(absent, ours, theirs, label)

    def write_rows(self, folder: Path) -> None:
        """Write the masked rows in the original's order, so many to a file."""

        def write(number: int, messages: Sequence[Message]) -> None:
            """Write the rows of one file, sorted by the number of the original's row."""
            frame = _frames(messages, MASKED).sort(ROW).drop(ROW)
            with atomic(folder / f"part-{number:06d}.parquet") as draft:
                frame.write_parquet(draft)

        self._exchange(lambda item: self._send(item, whole=True), [self._join], write, "aligning rows")

    @cached_property
    def _types(self) -> list[pl.DataType | None]:
        """Type in which cells of each key column are compared; None where those of the files never match."""
        return [_common_type(self.original.schema[name], self.masked.schema[name]) for name in self.key]

    def _exchange(
        self,
        first: Any,
        stages: Sequence[Stage],
        last: Last,
        step: str,
        kinds: Sequence[int] = (ORIGINAL, MASKED),
    ) -> dict[int, Any]:
        """Send blocks of one file or both through stages; return the last stage's results by bucket."""
        rows = {ORIGINAL: self.original.rows, MASKED: self.masked.rows}
        items = [
            (kind, BlockRef(begin, min(self.rows, rows[kind] - begin)))
            for kind in kinds
            for begin in range(0, rows[kind], self.rows)
        ]
        running = int(self.memory * RUNNING)
        return exchange_items(
            first,
            items,
            lambda _: running // self.threads,
            stages,
            last,
            step=step,
            workers=Workers(self.threads, running),
            held=int(self.memory * HELD),
            scratch=self.scratch,
        )

    def _send_keys(self, item: tuple[int, BlockRef]) -> Iterator[Message]:
        """Yield the keys of a block by bucket."""
        return self._send(item, whole=False)

    def _send(self, item: tuple[int, BlockRef], *, whole: bool) -> Iterator[Message]:
        """Yield the keys of a block by bucket; if `whole`, also masked rows or row numbers."""
        kind, ref = item
        files = (self.original, self.masked)[kind]
        more = list(files.schema) if whole and kind == MASKED else []
        block = files.read(*ref, list(dict.fromkeys([*self.key, *more])))
        cells = [_comparable(pl.col(name), one) for name, one in zip(self.key, self._types, strict=True)]
        keys = block.select(cell.alias(f"{KEY} {i}") for i, cell in enumerate(cells))
        frame = keys.hstack(block.select(more))
        if whole and kind == ORIGINAL:
            frame = keys.with_columns(pl.int_range(ref.first, ref.first + ref.rows).alias(ROW))
        buckets = -(-max(self.original.rows, self.masked.rows) // self.rows)
        yield from _messages(frame, keys.hash_rows(seed=0) % buckets, kind)

    def _join(self, _: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the masked rows of a bucket of keys, with the numbers of their original rows, by file."""
        keys = [f"{KEY} {i}" for i in range(len(self.key))]
        found = _frames(messages, ORIGINAL).join(_frames(messages, MASKED), on=keys).drop(keys)
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


def _compare_keys(_: int, messages: Sequence[Message]) -> tuple[int, int, int]:
    """Return how many keys repeat in the original and in the masked data, and are not in the latter."""
    ours, theirs = _frames(messages, ORIGINAL), _frames(messages, MASKED)
    absent = (
        ours.join(theirs, on=ours.columns, how="anti").height if ours.width and theirs.width else ours.height
    )
    return ours.height - _distinct(ours), theirs.height - _distinct(theirs), absent


def _distinct(frame: pl.DataFrame) -> int:
    """Return the number of distinct rows of a table."""
    return frame.n_unique() if frame.width else 0


def _messages(frame: pl.DataFrame, buckets: pl.Series, kind: int) -> Iterator[Message]:
    """Yield the rows of a table in a message for each bucket."""
    parts = frame.with_columns(buckets.alias(BUCKET)).partition_by(BUCKET, as_dict=True, include_key=False)
    for (bucket,), part in parts.items():
        stream = io.BytesIO()
        part.write_ipc_stream(stream)
        # One row of many bytes, since the length of arrays stands for the number of rows.
        yield Message(int(bucket), kind, (np.frombuffer(stream.getbuffer(), np.uint8)[None, :],))


def _frames(messages: Sequence[Message], kind: int) -> pl.DataFrame:
    """Return the rows of all messages of a kind; a table without columns if there is none."""
    streams = [io.BytesIO(message.arrays[0].tobytes()) for message in messages if message.kind == kind]
    return pl.concat([pl.read_ipc_stream(stream) for stream in streams]) if streams else pl.DataFrame()
