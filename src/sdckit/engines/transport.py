"""Blocks of rows, messages that tasks send to buckets, and what an engine offers to tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sdckit.kernels.ranks import group_rows

if TYPE_CHECKING:
    from sdckit.arrays import Bools, Floats, Ints, UInt64s


Array = NDArray[Any]


class BlockRef(NamedTuple):
    """A stretch of consecutive rows of a file: the number of its first row, and how many there are."""

    first: int
    rows: int


class Reads(NamedTuple):
    """Names of the columns to read from the original and from the masked file.

    `cells` are columns of any type that are read from both files as marks: equal cells have equal marks.
    """

    original: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """Columns of consecutive rows as float64, NaN where a cell is missing.

    `first` is the number of the first row in the file, counted from 0. `strata` has the stratum number of
    each row, None without strata. `cells` has the marks of both files' cells in columns of any type.
    """

    first: int
    rows: int
    original: Mapping[str, Floats]
    masked: Mapping[str, Floats]
    weights: Floats | None = None
    strata: Ints | None = None
    cells: Mapping[str, tuple[UInt64s, UInt64s]] = field(default_factory=dict)

    def inside(self, stratum: int | None) -> Bools | slice:
        """Return which rows belong to a stratum; a slice of all rows for the whole file (None)."""
        return slice(None) if stratum is None or self.strata is None else self.strata == stratum


class Piece(NamedTuple):
    """One variable within the whole file (stratum None) or within the stratum of that number."""

    variable: str
    stratum: int | None = None


class Message(NamedTuple):
    """Arrays or tables on their way to a bucket; `kind` says to the receiving stage what they hold."""

    bucket: int
    kind: int
    arrays: tuple[Any, ...]


First = Callable[[Block], Iterable[Message]]  # a block of rows, to messages
Stage = Callable[[int, Sequence[Message]], Iterable[Message]]  # number and messages of a bucket, to messages
Last = Callable[[int, Sequence[Message]], Any]  # number and messages of a bucket, to a small result


class Transport(Protocol):
    """What an engine offers to the statistics.

    `bucket_rows` is the number of rows that one bucket should hold at most, so that the memory limit is kept.
    `together` is True if many pieces are best exchanged in one go, False if one after the other.
    """

    rows: int
    bucket_rows: int
    together: bool

    def scan(self, task: Callable[[Block], Any], reads: Reads, *, step: str) -> list[Any]:
        """Return the result of the task on each block of rows, in the order of the blocks."""

    def exchange(
        self, first: First, reads: Reads, stages: Sequence[Stage], last: Last, *, step: str
    ) -> dict[int, Any]:
        """Return the result of the last stage for each bucket that got messages, by its number.

        Messages reach a stage in the order of their origin (number of the block or bucket, then the order in
        which it made them), so that no result depends on the order of arrival.
        """


def _both(one: Any, other: Any) -> Any:
    """Return bits that both numbers of each place have."""
    return tuple(a & b for a, b in zip(one, other, strict=True))


MERGED_BY: dict[str, Callable[[Any, Any], Any]] = {
    "low": np.fmin,
    "high": np.fmax,
    "heaviest": np.maximum,
    "fits": _both,
}


def merged(one: Any, other: Any) -> Any:
    """Return two results of a task, from different rows, as one.

    Numbers and arrays add up, but for fields in `MERGED_BY`; what has a method `merge` knows by itself, and
    what is in one mapping only stays as it is.
    """
    if one is None or other is None:
        return None
    if hasattr(one, "merge"):
        return one.merge(other)
    if isinstance(one, Mapping):
        alone = {key: value for key, value in other.items() if key not in one}
        return {key: merged(one[key], other[key]) if key in other else one[key] for key in one} | alone
    names = getattr(one, "_fields", None) or tuple(getattr(one, "__dataclass_fields__", ()))
    if names:
        parts = ((MERGED_BY.get(name, merged), getattr(one, name), getattr(other, name)) for name in names)
        return type(one)(*(merge(a, b) for merge, a, b in parts))
    if isinstance(one, (tuple, list)):
        return type(one)(merged(a, b) for a, b in zip(one, other, strict=True))
    return one + other


def scanned(transport: Transport, task: Callable[[Block], Any], names: Sequence[str], step: str) -> Any:
    """Return the results of a task on all blocks, with some columns of the original, merged into one."""
    return reduce(merged, transport.scan(task, Reads(tuple(names)), step=step))


def matrix_of(block: Block, names: Sequence[str]) -> Floats:
    """Return columns of the original in a block as an n x p matrix."""
    found = np.empty((block.rows, len(names)), order="F")
    for j, name in enumerate(names):
        found[:, j] = block.original[name]
    return found


def strata_in(block: Block) -> Iterator[tuple[int, Ints]]:
    """Yield the number of each stratum that has rows in a block, with these rows; 0 without strata."""
    strata = np.zeros(block.rows, np.int64) if block.strata is None else block.strata
    yield from places_by_number(strata)


def places_by_number(numbers: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each number that occurs in an array, in ascending order, with the places where it stands."""
    order, starts = group_rows(numbers, int(numbers.max(initial=-1)) + 1)
    for number in np.flatnonzero(np.diff(starts)).tolist():
        yield number, order[starts[number] : starts[number + 1]]


def by_bucket(buckets: Ints, kind: int, *arrays: Array) -> Iterator[Message]:
    """Yield arrays, cut by the bucket of each entry, in the order of the buckets and of the entries."""
    for number, chosen in places_by_number(buckets):
        yield Message(number, kind, tuple(array[chosen] for array in arrays))


def joined(messages: Sequence[Message], kind: int) -> list[Array]:
    """Return the arrays of all messages of a kind, one after the other; an empty list if there are none."""
    found = [message.arrays for message in messages if message.kind == kind]
    return [one[0] if len(found) == 1 else np.concatenate(one) for one in zip(*found, strict=True)]
