"""What runs in the Python processes of Spark's workers: tasks on blocks and buckets, and their errors."""

from __future__ import annotations

import base64
import gc
import pickle
import re
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sdckit.engines.spark_packing import batches_of, buckets_of, messages_of, packed_rows, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sdckit.engines.source import Source
    from sdckit.engines.transport import Block, First, Last, Reads, Stage

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
