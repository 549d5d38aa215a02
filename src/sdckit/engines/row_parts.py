"""Values on their way back to rows: parts of consecutive rows, each finished and written by one task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sdckit.engines.transport import BlockRef, Message
from sdckit.engines.whole_columns import places_by_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.engines.finishing import Finish, FinishCounts
    from sdckit.engines.transport import Array, Block
    from sdckit.kernels.jit import Floats, Ints

TOUCH = -1  # kind of a message that only says that a part of rows exists


@dataclass(frozen=True)
class RowParts:
    """Parts of `width` consecutive rows of a file with `rows` rows."""

    rows: int
    width: int

    @classmethod
    def of(cls, rows: int, columns: int, largest: int) -> RowParts:
        """Return parts with so few rows that all their columns fit where `largest` rows of one do."""
        return cls(rows, max(1, min(rows, 3 * largest // (3 + 2 * columns))))

    def ref(self, part: int) -> BlockRef:
        """Return the rows of a part."""
        first = part * self.width
        return BlockRef(first, min(self.width, self.rows - first))

    def touches(self, block: Block, bucket: int) -> Message:
        """Return a message to a bucket that names the parts that begin in a block.

        A part whose cells are all missing gets no value, and must be written all the same.
        """
        first = -(-block.first // self.width)
        last = -(-(block.first + block.rows) // self.width)
        return Message(bucket, TOUCH, (np.arange(first, last),))

    def passed_on(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield a message to each part that the messages name."""
        for message in messages:
            if message.kind == TOUCH:
                for part in message.arrays[0].tolist():
                    yield Message(part, TOUCH, ())

    def sent(self, kind: int, rows: Ints, *columns: Floats) -> Iterator[Message]:
        """Yield values with their row numbers to the parts that hold these rows."""
        yield from by_bucket(rows // self.width, kind, rows, *columns)


def by_bucket(buckets: Ints, kind: int, *arrays: Array) -> Iterator[Message]:
    """Yield arrays, cut by the bucket of each entry, in the order of the buckets and of the entries."""
    for number, chosen in places_by_number(buckets):
        yield Message(number, kind, tuple(array[chosen] for array in arrays))


def joined(messages: Sequence[Message], kind: int, arrays: int) -> tuple[Array, ...]:
    """Return the arrays of all messages of a kind, one after the other; empty if there is no message."""
    found = [message.arrays for message in messages if message.kind == kind]
    if not found:
        return tuple(np.empty(0) for _ in range(arrays))
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


@dataclass(frozen=True)
class FinishPart:
    """Last stage: put the values of a part of rows together, finish and write them.

    The kind of a message is the number of its column, or ALL for values of all columns.
    """

    finish: Finish
    parts: RowParts

    def __call__(self, part: int, messages: Sequence[Message]) -> FinishCounts:
        """Return what was counted while the part was finished."""
        ref = self.parts.ref(part)
        masked = np.full((ref.rows, len(self.finish.names)), np.nan, order="F")
        for message in messages:
            if message.kind != TOUCH:
                rows = message.arrays[0] - ref.first
                for j, values in enumerate(message.arrays[1:], message.kind):
                    masked[rows, j] = values
        return self.finish.part(ref, masked)
