"""Tasks, messages between them, and what is kept in files in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sdckit.kernels.ranks import RankSums  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.masking.microaggregation import first_direction, squared_lengths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.arrays import Bools, Floats, Ints, UInt64s


@dataclass(frozen=True)
class RankTotals:
    """Totals of a piece over its records with a value in both files.

    Parameters
    ----------
    n
        Number of records with a value in both files.
    sums
        Sums of rank distances by tie rule: "average", "expected", "min", "max"; also "first", "last".
    tie_sums
        Sum of L**3 - L over the tie blocks (of length L) of the original and of the masked column.
    unrelated_ranks
        Sum over the original mid-ranks of their mean distance from all masked mid-ranks: `mean_cross_gap` of
        the mid-ranks with weight 1. Needed with ties only.
    weighted
        Weighted brMAE and brMSE; None without weights.
    largest_gap
        Largest difference, over all values v, of the numbers of original and of masked values up to v.
    power
        Values counted in units of 2**power in the sums below, so that none leaves the range of numbers:
        `stream_power` of the column's largest absolute value, 0 for all but extreme columns.
    quantile_gaps
        Sum of |x(i) - y(i)|, both columns sorted, in units of 2**power.
    marginal, permutation
        Sums of both parts of the squared error, in units of 4**power.
    cross_gaps
        Sum over the original values of their mean distance from all masked values, in units of 2**power,
        each times its weight.
    relative_cross_gaps
        The same over the original values other than 0, each times its weight / |x|.
    order_statistics
        Original values by rank (from 0, in ascending order, among the records with a value in both files).

    A total that was not asked for, or that this engine cannot deliver, is None.
    """

    n: int
    sums: Mapping[str, RankSums] = field(default_factory=dict)
    tie_sums: tuple[int, int] | None = None
    unrelated_ranks: float | None = None
    weighted: tuple[float, float] | None = None
    largest_gap: int | None = None
    power: int = 0
    quantile_gaps: float | None = None
    marginal: float | None = None
    permutation: float | None = None
    cross_gaps: float | None = None
    relative_cross_gaps: float | None = None
    order_statistics: Mapping[int, float] = field(default_factory=dict)


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


def unpack(data: Any) -> Iterator[Letter]:
    """Yield the messages that were packed into bytes, one after the other.

    Their arrays share the memory where it lies as their types ask for.
    """
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
            array = octets[at * WORD : at * WORD + size].view(kind_of_array).reshape(shape)
            arrays.append(array if array.flags.aligned else array.copy())
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


@dataclass(frozen=True)
class Node:
    """A cut: records go to `low` if their score along a direction is at most `cut`, else to `high`.

    Without a direction, the score is the squared distance from the mean of all. A child is another node, or
    the number of a block.
    """

    direction: Floats | None
    cut: float
    low: Node | int
    high: Node | int


def scores(points: Floats, direction: Floats | None) -> Floats:
    """Return the position of each point along a direction; missing cells count as 0, the mean of all.

    Added up column by column: a matrix product may round a record differently in a block of another length.
    Without a direction, return squared distances from the mean of all.
    """
    if direction is None:
        return squared_lengths(points)
    found = np.zeros(len(points))
    for j, loading in enumerate(direction):
        found += np.nan_to_num(points[:, j], nan=0.0) * loading
    return found


def grow(points: Floats, blocks: int) -> Node | int:
    """Return a tree that cuts a sample of points into so many blocks of about the same size.

    The points farthest from the mean of all, 0, make the last block, as cuts through the sparse outside would
    cost more than all others. Every other part is cut across its first principal component, so that its
    halves hold whole numbers of blocks.
    """
    tree: Node | int | None = None
    if blocks > 1:
        tree = _cut(points, blocks, blocks - 1, None)
    return _numbered(_grown(points, blocks) if tree is None else tree, 0)[0]


def _grown(points: Floats, blocks: int) -> Node | int:
    """Return a tree of a part of the sample, all of whose blocks have the number 0."""
    if blocks == 1 or len(points) < 2:
        return 0
    tree = _cut(points, blocks, blocks // 2, first_direction(np.nan_to_num(points, nan=0.0)))
    return 0 if tree is None else tree


def _cut(points: Floats, blocks: int, low: int, direction: Floats | None) -> Node | None:
    """Return the tree with `low` of the blocks below a cut; None for points that all have equal scores."""
    along = scores(points, direction)
    cut = float(np.partition(along, place := max(len(points) * low // blocks - 1, 0))[place])
    below = along <= cut
    if below.all():
        return None
    return Node(direction, cut, _grown(points[below], low), _grown(points[~below], blocks - low))


def _numbered(tree: Node | int, first: int) -> tuple[Node | int, int]:
    """Return a tree with its blocks numbered from left to right, and the next free number."""
    if not isinstance(tree, Node):
        return first, first + 1
    low, middle = _numbered(tree.low, first)
    high, end = _numbered(tree.high, middle)
    return replace(tree, low=low, high=high), end


def count_blocks(tree: Node | int) -> int:
    """Return the number of blocks of a tree."""
    return count_blocks(tree.low) + count_blocks(tree.high) if isinstance(tree, Node) else 1


def blocks_of_points(tree: Node | int, points: Floats) -> Ints:
    """Return the number of the block of each point."""
    found = np.empty(len(points), np.int64)
    waiting: list[tuple[Node | int, Ints]] = [(tree, np.arange(len(points)))]
    while waiting:
        node, rows = waiting.pop()
        if not isinstance(node, Node):
            found[rows] = node
            continue
        below = scores(points[rows], node.direction) <= node.cut
        waiting += [(node.low, rows[below]), (node.high, rows[~below])]
    return found


def without_small_blocks(tree: Node | int, counts: Sequence[int], fewest: int) -> Node | int:
    """Return a tree whose blocks all have at least `fewest` records, from the records of each block.

    A block that is too small is given up, together with its cut: its records go where the other cuts say.
    """

    def joined(node: Node | int) -> tuple[Node | int, int]:
        """Return a part of the tree and the least number of records in any of its blocks."""
        if not isinstance(node, Node):
            return 0, counts[node]
        low, high = joined(node.low), joined(node.high)
        if min(low[1], high[1]) >= fewest:
            return replace(node, low=low[0], high=high[0]), min(low[1], high[1])
        if isinstance(low[0], Node) or isinstance(high[0], Node):
            return max(low, high, key=itemgetter(1))  # the other one is a block that is too small
        return 0, low[1] + high[1]

    return _numbered(joined(tree)[0], 0)[0]
