"""What runs inside the workers of a Spark cluster."""

from __future__ import annotations

import base64
import gc
import pickle
import re
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sdckit.engines.transport import Letter, Message, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from sdckit.engines.source import Source
    from sdckit.engines.transport import Block, First, Last, Reads, Stage


if TYPE_CHECKING:
    Bytes = NDArray[np.uint8]
    Head = tuple[int, int, int, int, int]  # bucket, origin, sequence, part, kind

PART = 8 << 20  # bytes of a row's payload, at most
BATCH = 16 << 20  # bytes from which on rows leave as a batch

HEAD = ("bucket", "origin", "sequence", "part", "kind")
ORDER = HEAD[:4]  # rows sorted by these columns are messages in the order of their origin
TYPES = (pa.int32(), pa.int64(), pa.int64(), pa.int32(), pa.int32())
SCHEMA = pa.schema([*zip(HEAD, TYPES, strict=True), ("payload", pa.binary())])
SQL_SCHEMA = "bucket int, origin long, sequence long, part int, kind int, payload binary"


def packed_rows(origin: int, messages: Iterable[Message]) -> Iterator[tuple[Head, Bytes]]:
    """Yield the rows of the messages that a block or bucket of that number makes: head and payload."""
    for sequence, message in enumerate(messages):
        payload = np.frombuffer(pack(Letter(origin, sequence, message)), np.uint8)
        for part, begin in enumerate(range(0, payload.size, PART)):
            yield (message.bucket, origin, sequence, part, message.kind), payload[begin : begin + PART]


def batches_of(rows: Iterable[tuple[Head, Bytes]]) -> Iterator[pa.RecordBatch]:
    """Yield rows in batches of about `BATCH` bytes."""
    kept: list[tuple[Head, Bytes]] = []
    size = 0
    for row in rows:
        kept.append(row)
        size += row[1].size
        if size >= BATCH:
            yield _batch(kept)
            kept, size = [], 0
    if kept:
        yield _batch(kept)


def _batch(rows: list[tuple[Head, Bytes]]) -> pa.RecordBatch:
    """Return rows as one batch."""
    columns = zip(*(head for head, _ in rows), strict=True)
    heads = [pa.array(column, kind) for column, kind in zip(columns, TYPES, strict=True)]
    ends = np.cumsum([0, *(payload.size for _, payload in rows)], dtype=np.int32)
    data = np.concatenate([payload for _, payload in rows])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.RecordBatch.from_arrays(
        [*heads, pa.Array.from_buffers(pa.binary(), len(rows), buffers)], schema=SCHEMA
    )


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Head, pa.Buffer]]:
    """Yield the rows of batches: head and payload, which is not copied."""
    for batch in batches:
        heads = zip(*(batch.column(name).to_pylist() for name in HEAD), strict=True)
        payloads = batch.column("payload")
        # Arrow copies the value of a cell; a slice of the buffer behind the column is a view.
        _, ends, data = payloads.buffers()
        width = np.int64 if pa.types.is_large_binary(payloads.type) else np.int32
        places = np.frombuffer(ends, width)[payloads.offset :].tolist()
        for place, head in enumerate(heads):
            yield head, data.slice(places[place], places[place + 1] - places[place])


def buckets_of(
    rows: Iterable[tuple[Head, pa.Buffer]],
) -> Iterator[tuple[int, Iterator[tuple[Head, pa.Buffer]]]]:
    """Yield each bucket's number and rows, of rows that are sorted by `ORDER`."""
    return groupby(rows, key=lambda row: row[0][0])


def messages_of(rows: Iterable[tuple[Head, pa.Buffer]]) -> list[Message]:
    """Return the messages of a bucket, of rows that are sorted by `ORDER`."""
    found = []
    for _, parts in groupby(rows, key=lambda row: row[0][1:3]):
        (_, payload), *more = parts
        if more:
            whole = [payload, *map(itemgetter(1), more)]
            payload = np.concatenate([np.frombuffer(part, np.uint8) for part in whole])
        found += [letter.message for letter in unpack(payload)]
    return found


if TYPE_CHECKING:
    Batches = Iterator[pa.RecordBatch]

RESULTS = "place long, result binary"  # a block's or bucket's number and its pickled result
_RESULTS = pa.schema([("place", pa.int64()), ("result", pa.binary())])
_MARKED = re.compile(r"sdckit-error:([A-Za-z0-9+/=]+):")


@dataclass(frozen=True)
class Scan:
    """Runs a task on each block of rows."""

    source: Source
    reads: Reads
    task: Callable[[Block], Any]

    def __call__(self, batches: Batches) -> Batches:
        """Take batches of block numbers, yield the result of each block."""
        freeze_modules()
        with described_errors():
            for number in _numbers(batches):
                yield _result(number, self.task(_read(self.source, number, self.reads)))


@dataclass(frozen=True)
class SendBlocks:
    """Makes the messages of each block of rows."""

    source: Source
    reads: Reads
    first: First

    def __call__(self, batches: Batches) -> Batches:
        """Take batches of block numbers, yield batches of messages."""
        freeze_modules()
        with described_errors():
            for number in _numbers(batches):
                block = _read(self.source, number, self.reads)
                yield from batches_of(packed_rows(number, self.first(block)))


@dataclass(frozen=True)
class SendBuckets:
    """Makes new messages from those of each bucket."""

    stage: Stage

    def __call__(self, batches: Batches) -> Batches:
        """Take batches of sorted messages, yield batches of messages."""
        freeze_modules()
        with described_errors():
            for bucket, rows in buckets_of(rows_of(batches)):
                # No name is bound to the messages: they go as soon as the stage no longer needs them.
                yield from batches_of(packed_rows(bucket, self.stage(bucket, messages_of(rows))))


@dataclass(frozen=True)
class Finish:
    """Makes the result of each bucket."""

    last: Last

    def __call__(self, batches: Batches) -> Batches:
        """Take batches of sorted messages, yield the result of each bucket."""
        freeze_modules()
        with described_errors():
            for bucket, rows in buckets_of(rows_of(batches)):
                yield _result(bucket, self.last(bucket, messages_of(rows)))


def _numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """Yield the block numbers of batches."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _read(source: Source, number: int, reads: Reads) -> Block:
    """Return the block of that number; raise OSError that names this worker if a file is out of reach."""
    try:
        return source.read(source.blocks[number], reads)
    except OSError as error:
        path = f"'{error.filename}'" if error.filename else "the data"
        raise OSError(
            f"the worker at {socket.gethostname()} cannot read {path} ({error.strerror or error}); "
            "keep files where all workers find them under the same path"
        ) from error


def _result(place: int, result: object) -> pa.RecordBatch:
    """Return a batch with the pickled result of a block or bucket."""
    columns = [pa.array([place], pa.int64()), pa.array([pickle.dumps(result)], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_RESULTS)


@cache
def freeze_modules() -> None:
    """Take all that is loaded at the first task out of garbage collection.

    Spark collects garbage after every task, which took most of the time of a small one.
    """
    gc.freeze()


@contextmanager
def described_errors() -> Iterator[None]:
    """Raise errors again in a form that `error_in` finds in the text that Spark makes of them."""
    try:
        yield
    except Exception as error:
        try:
            pickled = pickle.dumps(error)
            pickle.loads(pickled)  # noqa: S301 - made above; some errors cannot be read back
        except Exception:  # noqa: BLE001 - whatever it is, the text remains
            pickled = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
        raise RuntimeError(f"sdckit-error:{base64.b64encode(pickled).decode()}:") from error


def error_in(text: str) -> Exception | None:
    """Return the error that a worker raised, from the text of the failed job; None if there is none."""
    found = _MARKED.search(text)
    # Unpickled is only what our own tasks have pickled.
    return pickle.loads(base64.b64decode(found[1])) if found else None  # noqa: S301


def facts(_: object) -> tuple[str, str, str | None, str]:
    """Return a worker's host, its Python, and its versions of sdckit (None without) and numpy."""
    import socket  # noqa: PLC0415 - this function is sent to workers that may lack everything else
    import sys  # noqa: PLC0415

    try:
        import numpy as np  # noqa: PLC0415

        import sdckit  # noqa: PLC0415
    except ImportError:
        return socket.gethostname(), sys.executable, None, ""
    return socket.gethostname(), sys.executable, sdckit.__version__, np.__version__


facts.__module__ = "__main__"  # so that it is sent as code, not as the name of a module to import
