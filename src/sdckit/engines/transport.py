"""What an engine offers: a scan over blocks of rows, and exchanges of packed arrays between buckets.

A statistic is a set of tasks: picklable functions of numpy arrays. An engine runs them, on threads of one
machine (`local.py`) or on the workers of a cluster (`spark.py`), and returns their small results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from numpy.typing import NDArray

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats, Ints, UInt64s

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
    """Arrays on their way to a bucket; `kind` says to the receiving stage what they hold."""

    bucket: int
    kind: int
    arrays: tuple[Array, ...]


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
