"""Messages packed as rows of Arrow batches, so that a cluster moves few large rows instead of many numbers.

A row is a message or, if it has more than `PART` bytes, a part of one. Its payload is a line of JSON that
names the types and shapes of the arrays, and their bytes, each padded to eight bytes: a receiver looks at the
arrays where they lie, without a copy.
"""

from __future__ import annotations

import json
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sdckit.engines.transport import Array, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Head = tuple[int, int, int, int, int]  # bucket, origin, sequence, part, kind

PART = 8 << 20  # bytes of a row's payload, at most
BATCH = 16 << 20  # bytes from which on rows leave as a batch
WORD = 8  # bytes that arrays are aligned to

HEAD = ("bucket", "origin", "sequence", "part", "kind")
ORDER = HEAD[:4]  # rows sorted by these columns are messages in the order of their origin
TYPES = (pa.int32(), pa.int64(), pa.int64(), pa.int32(), pa.int32())
SCHEMA = pa.schema([*zip(HEAD, TYPES, strict=True), ("payload", pa.binary())])
SQL_SCHEMA = "bucket int, origin long, sequence long, part int, kind int, payload binary"


def pack(arrays: Iterable[Array]) -> Bytes:
    """Return arrays as one array of bytes, whose length is a multiple of eight."""
    arrays = [np.ascontiguousarray(array).reshape(np.shape(array)) for array in arrays]
    for array in arrays:
        if array.dtype.hasobject:
            raise TypeError(f"an array of type {array.dtype} cannot be sent; send numbers")
    head = json.dumps([(array.dtype.str, array.shape) for array in arrays]).encode()
    head += b" " * (-len(head) % WORD)
    parts: list[bytes | Bytes] = [len(head).to_bytes(WORD, "little"), head]
    for array in arrays:
        parts += [array.reshape(-1).view(np.uint8), bytes(-array.nbytes % WORD)]
    return np.concatenate([np.frombuffer(part, np.uint8) for part in parts])


def unpack(payload: Any) -> tuple[Array, ...]:
    """Return the arrays of a payload as views of its bytes; they cannot be written to."""
    length = int.from_bytes(memoryview(payload)[:WORD], "little")
    place, arrays = WORD + length, []
    for kind, shape in json.loads(bytes(memoryview(payload)[WORD:place])):
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(payload, np.dtype(kind), count, place).reshape(shape)
        arrays.append(array if array.flags.aligned else array.copy())
        place += array.nbytes + -array.nbytes % WORD
    return tuple(arrays)


def packed_rows(origin: int, messages: Iterable[Message]) -> Iterator[tuple[Head, Bytes]]:
    """Yield the rows of the messages that a block or bucket of that number makes: head and payload."""
    for sequence, message in enumerate(messages):
        payload = pack(message.arrays)
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
        (head, payload), *more = parts
        if more:
            whole = [payload, *map(itemgetter(1), more)]
            payload = np.concatenate([np.frombuffer(part, np.uint8) for part in whole])
        found.append(Message(head[0], head[4], unpack(payload)))
    return found
