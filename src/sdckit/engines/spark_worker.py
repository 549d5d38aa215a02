"""What runs inside the workers of a Spark cluster."""

from __future__ import annotations

import base64
import gc
import pickle
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from sdckit.engines.source import Source
    from sdckit.engines.transport import Block, First, Last, Message, Reads, Stage

    Row = tuple[int, int, int, int, bytes]  # bucket, origin, number of the message, part, payload
    Batches = Iterator[pa.RecordBatch]

PART = 8 << 20  # bytes of a row's payload, at most
BATCH = 16 << 20  # bytes from which on rows leave as a batch

ORDER = ("bucket", "origin", "message", "part")  # rows sorted by these are messages in order of their origin
TYPES = (pa.int32(), pa.int64(), pa.int64(), pa.int32(), pa.binary())
SCHEMA = pa.schema(list(zip((*ORDER, "payload"), TYPES, strict=True)))
SQL_SCHEMA = "bucket int, origin long, message long, part int, payload binary"
RESULTS = "place long, result binary"  # a block's or bucket's number and its pickled result
_RESULTS = pa.schema([("place", pa.int64()), ("result", pa.binary())])
_MARKED = re.compile(r"sdckit-error:([A-Za-z0-9+/=]+):")


def packed_rows(origin: int, messages: Iterable[Message]) -> Iterator[Row]:
    """Yield the rows of the messages that a block or bucket of that number makes."""
    for number, message in enumerate(messages):
        packed = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        for part, begin in enumerate(range(0, len(packed), PART)):
            yield message.bucket, origin, number, part, packed[begin : begin + PART]


def batches_of(rows: Iterable[Row]) -> Batches:
    """Yield rows in batches of about `BATCH` bytes."""
    kept: list[Row] = []
    size = 0
    for row in rows:
        kept.append(row)
        size += len(row[-1])
        if size >= BATCH:
            yield _batch(kept, SCHEMA)
            kept, size = [], 0
    if kept:
        yield _batch(kept, SCHEMA)


def _batch(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as one batch."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def messages_by_bucket(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[Message]]]:
    """Yield each bucket's number and messages, of batches whose rows are sorted by `ORDER`."""
    rows = (row for one in batches for row in zip(*(column.to_pylist() for column in one), strict=True))
    for bucket, some in groupby(rows, key=itemgetter(0)):
        yield bucket, _unpacked(some)


def _unpacked(rows: Iterable[Row]) -> Iterator[Message]:
    """Yield the messages of a bucket; unpickled is only what our own tasks have pickled."""
    for _, parts in groupby(rows, key=itemgetter(1, 2)):
        yield pickle.loads(b"".join(part[-1] for part in parts))  # noqa: S301


@dataclass(frozen=True)
class InWorker:
    """Runs work on batches in a worker, with errors that the driver finds."""

    work: Callable[[Batches], Batches]

    def __call__(self, batches: Batches) -> Batches:
        """Take batches, yield batches."""
        freeze_modules()
        with described_errors():
            yield from self.work(batches)


def scan(source: Source, reads: Reads, task: Callable[[Block], Any], batches: Batches) -> Batches:
    """Take batches of block numbers, yield the result of the task on each block."""
    for number, block in _blocks(source, reads, batches):
        yield _batch([(number, pickle.dumps(task(block)))], _RESULTS)


def send_blocks(source: Source, reads: Reads, first: First, batches: Batches) -> Batches:
    """Take batches of block numbers, yield batches of messages."""
    for number, block in _blocks(source, reads, batches):
        yield from batches_of(packed_rows(number, first(block)))


def send_buckets(stage: Stage, batches: Batches) -> Batches:
    """Take batches of sorted messages, yield batches of new messages that a stage makes of each bucket's."""
    for bucket, messages in messages_by_bucket(batches):
        # No name is bound to the list of messages: they go as soon as the stage no longer needs them.
        yield from batches_of(packed_rows(bucket, stage(bucket, list(messages))))


def finish(last: Last, batches: Batches) -> Batches:
    """Take batches of sorted messages, yield the result of each bucket."""
    for bucket, messages in messages_by_bucket(batches):
        yield _batch([(bucket, pickle.dumps(last(bucket, list(messages))))], _RESULTS)


def _blocks(source: Source, reads: Reads, batches: Batches) -> Iterator[tuple[int, Block]]:
    """Yield the blocks of some numbers; raise OSError that names this worker if a file is out of reach."""
    for number in (number for batch in batches for number in batch.column(0).to_pylist()):
        try:
            yield number, source.read(source.blocks[number], reads)
        except OSError as error:
            path = f"'{error.filename}'" if error.filename else "the data"
            raise OSError(
                f"the worker at {socket.gethostname()} cannot read {path} ({error.strerror or error}); "
                "keep files where all workers find them under the same path"
            ) from error


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
