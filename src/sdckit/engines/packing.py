"""Messages packed into bytes, for files and for the shuffle of a cluster, and unpacked in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.engines.transport import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sdckit.engines.transport import Array

WORD = 8  # arrays begin at multiples of so many bytes, as their types ask for


class Letter(NamedTuple):
    """A message with its origin, the number of a block or bucket, and its place among those of the origin."""

    origin: int
    place: int
    message: Message


def pack(letter: Letter) -> bytearray:
    """Return a message as bytes: bucket, kind, origin, place, types and shapes of its arrays, their data."""
    bucket, kind, arrays = letter.message
    words = [bucket, kind, letter.origin, letter.place, len(arrays)]
    for array in arrays:
        words += [_type_number(array.dtype), array.ndim, *array.shape]
    parts: list[bytes | memoryview] = [np.array(words, np.int64).tobytes()]
    for array in arrays:
        parts += [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, bytes(-array.nbytes % WORD)]
    return bytearray().join(parts)


def unpack(data: bytearray | Array) -> Iterator[Letter]:
    """Yield the messages that were packed into bytes, one after the other; their arrays share the memory."""
    octets = np.frombuffer(data, np.uint8)
    words = octets.view(np.int64)
    at = 0
    while at < words.size:
        bucket, kind, origin, place, count = words[at : at + 5].tolist()
        at += 5
        forms = []
        for _ in range(count):
            number, ndim = words[at : at + 2].tolist()
            forms.append((_type_of(number), words[at + 2 : at + 2 + ndim].tolist()))
            at += 2 + ndim
        arrays = []
        for kind_of_array, shape in forms:
            size = int(np.prod(shape, dtype=np.int64)) * kind_of_array.itemsize
            arrays.append(octets[at * WORD : at * WORD + size].view(kind_of_array).reshape(shape))
            at += -(-size // WORD)
        yield Letter(origin, place, Message(bucket, kind, tuple(arrays)))


def messages_in_order(letters: Iterable[Letter]) -> list[Message]:
    """Return messages in the order of their origin, and there in the order in which they were made."""
    return [letter.message for letter in sorted(letters, key=lambda one: (one.origin, one.place))]


def _type_number(kind: np.dtype[np.generic]) -> int:
    """Return the text of a type, such as <f8, as a whole number."""
    return int.from_bytes(kind.str.encode().ljust(WORD), "little")


def _type_of(number: int) -> np.dtype[np.generic]:
    """Return the type whose text is given as a whole number."""
    return np.dtype(number.to_bytes(WORD, "little").decode().strip())
