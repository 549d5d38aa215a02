"""Exact rank distances of a variable in two exchanges, under every tie rule.

First rows (x, t, y) go to their bucket of the original order, which gives the original rank and tie block of
each; then masked value, rank and block go to the bucket of the masked order, which gives the other rank and
the sums. Cells, rows equal to a splitter, are known from counts alone. See `cuts.py` for orders and buckets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.engines.cuts import NONE, Numbers, Rows, Splitters, Tally, choose_splitters, count_values, tally
from sdckit.engines.transport import Array, Block, Message, Piece
from sdckit.kernels.lexicographic import block_lengths, group_rows, sort_rows
from sdckit.kernels.weighted_ranks import LIGHTEST

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats, Ints

SAMPLED = 200  # rows of a sample for each bucket: their numbers of rows then vary by about 7 %
LEAST_SAMPLE = 2_000
ROWS, RANKED, RUN, VALUES, SUMS, ORDERED = range(6)  # kinds of messages


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a piece.

    `ties` is the column that breaks ties: "values" (the value in the other file), "rows" for the rules first
    and last, or "weights" for weighted ranks. `unit` is the power of two that weights are divided by, `power`
    the exponent of the one that values are divided by. `streams` asks for sums over both columns in ascending
    order, `expected` for that tie rule, `ranks` for the original values at these ranks.
    """

    ties: str = "values"
    expected: bool = False
    streams: bool = False
    unit: float = 1.0
    power: int = 0
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True)
class PiecePlan:
    """How a piece is cut into buckets, and how many rows (and which weight) each has.

    `n` is its number of rows with a value in both files. Its buckets have the numbers from `first_bucket` on.
    `crossed` has the number of original values in each bucket of the masked splitters' values, `shares` the
    sums of their weights (1 without weights) and of weight / |x|.
    """

    piece: Piece
    wanted: Wanted
    n: int
    original: Splitters
    masked: Splitters
    first_bucket: int = 0
    counts: tuple[Tally, Tally] | None = None
    weights: tuple[Tally, Tally] | None = None
    crossed: Numbers = field(default_factory=lambda: NONE)
    shares: tuple[Numbers, ...] = ()

    @property
    def tallies(self) -> tuple[Tally, Tally]:
        """Numbers of rows in the original and in the masked order."""
        if self.counts is None:
            raise RuntimeError("the rows of this plan have not been counted")
        return self.counts

    @property
    def buckets(self) -> int:
        """Number of buckets of rows that are sent."""
        return self.original.number + 1

    def rows(self, block: Block, only: Bools | None = None) -> Rows:
        """Return the rows of the piece in a block that have a value in both files."""
        inside = block.inside(self.piece.stratum)
        x, y = block.original[self.piece.variable][inside], block.masked[self.piece.variable][inside]
        seen = ~(np.isnan(x) | np.isnan(y))
        if only is not None:
            seen &= only[inside]
        t = NONE
        if self.wanted.ties == "rows":
            t = np.arange(block.first, block.first + block.rows, dtype=np.float64)[inside][seen]
        elif block.weights is not None and self.wanted.ties == "weights":
            t = np.maximum(block.weights[inside][seen] / self.wanted.unit, LIGHTEST)
        return Rows(x[seen], t, y[seen])


@dataclass(frozen=True)
class Sampling:
    """A task that draws rows of some pieces from each block, each row with the same chance.

    Which rows are drawn depends on their numbers alone, so that a task that runs again draws the same ones.
    """

    plans: Sequence[PiecePlan]
    shares: Sequence[float]

    def __call__(self, block: Block) -> list[Rows]:
        """Return the drawn rows of each piece."""
        numbers = scrambled(np.arange(block.first, block.first + block.rows, dtype=np.uint64))
        chances = (numbers >> np.uint64(11)) * 2.0**-53
        return [
            plan.rows(block, chances < share) for plan, share in zip(self.plans, self.shares, strict=True)
        ]


def scrambled(numbers: Array) -> Array:
    """Return 64-bit numbers that look random, one for each given number (the finaliser of SplitMix64)."""
    found = numbers * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(found ^ (found >> np.uint64(31)))


def cut(plan: PiecePlan, sample: Rows, bucket_rows: int) -> PiecePlan:
    """Return the plan with splitters drawn from a sample, so that a bucket has about `bucket_rows` rows."""
    rows = choose_splitters(sample, -(-plan.n // bucket_rows))
    original = Splitters.of(rows)
    return replace(plan, original=original, masked=Splitters.of(original.rows.turned))


class Counted(NamedTuple):
    """Tallies of some rows of a piece: numbers in both orders, weights, original values by masked ones."""

    counts: tuple[Tally, Tally]
    weights: tuple[Tally, Tally] | None
    crossed: Numbers
    shares: tuple[Numbers, ...]

    def plus(self, other: Counted) -> Counted:
        """Return the sum with the tallies of other rows."""
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = _sums_of_tallies(self.weights, other.weights)
        shares = tuple(a + b for a, b in zip(self.shares, other.shares, strict=True))
        return Counted(
            _sums_of_tallies(self.counts, other.counts), weights, self.crossed + other.crossed, shares
        )


def _sums_of_tallies(ours: tuple[Tally, Tally], theirs: tuple[Tally, Tally]) -> tuple[Tally, Tally]:
    """Return the sums of two pairs of tallies."""
    return ours[0].plus(theirs[0]), ours[1].plus(theirs[1])


@dataclass(frozen=True)
class Counting:
    """A task that counts the rows of each bucket, for several pieces."""

    plans: Sequence[PiecePlan]

    def __call__(self, block: Block) -> list[Counted]:
        """Return the tallies of each piece in a block."""
        return [_count(plan, plan.rows(block)) for plan in self.plans]


def _count(plan: PiecePlan, rows: Rows) -> Counted:
    """Return the tallies of some rows of a piece."""
    weights = rows.t if plan.wanted.ties == "weights" else None
    tallies = tally(plan.original, rows, weights), tally(plan.masked, rows.turned, weights)
    counts, *weighed = zip(*tallies, strict=True)
    crossed = [NONE]
    if plan.wanted.streams:
        crossed = count_values(rows.x, plan.masked.values, shares_of(rows))
    return Counted(counts, weighed[0] if weighed else None, crossed[0], tuple(crossed[1:]))


def count_rows(plan: PiecePlan) -> Counted:
    """Return the tallies of a piece that is not cut, from its number of rows."""
    every = Tally(np.array([plan.n]), np.array([plan.n]))
    return Counted((every, every), None, NONE, ())


def shares_of(rows: Rows) -> tuple[Floats, Floats]:
    """Return the weight of each row (1 without weights), and weight / |x|, 0 where x is 0."""
    weights = rows.t if rows.t.size else np.ones(rows.x.size)
    sizes = np.abs(rows.x)
    return weights, np.divide(weights, sizes, out=np.zeros(sizes.size), where=sizes > 0)


def with_counts(plans: Sequence[PiecePlan], counted: Sequence[Counted]) -> list[PiecePlan]:
    """Return the plans with their tallies, and with the numbers of their buckets one after the other."""
    found, first = [], 0
    for plan, tallies in zip(plans, counted, strict=True):
        found.append(replace(plan, first_bucket=first, **tallies._asdict()))
        first += plan.buckets
    return found


@dataclass(frozen=True)
class Sending:
    """The first step of the exchange: rows go to their bucket of the original order."""

    plans: Sequence[PiecePlan]

    def __call__(self, block: Block) -> Iterator[Message]:
        """Yield the rows of each bucket; those equal to a splitter are left out."""
        for plan in self.plans:
            rows = plan.rows(block)
            for bucket, chosen in by_bucket(plan.original, rows):
                yield Message(plan.first_bucket + bucket, ROWS, tuple(rows.take(chosen)))


def by_bucket(splitters: Splitters, rows: Rows) -> Iterator[tuple[int, Ints]]:
    """Yield the number of each bucket between splitters that has rows, and the numbers of its rows."""
    if not splitters.number:
        yield from [(0, np.arange(rows.x.size))] if rows.x.size else []
        return
    order, starts = group_rows(splitters.buckets(rows), 2 * splitters.number + 1)
    for bucket in range(splitters.number + 1):
        begin, end = starts[2 * bucket], starts[2 * bucket + 1]
        if end > begin:
            yield bucket, order[begin:end]


@dataclass(frozen=True)
class PiecesByBucket:
    """Plans of pieces, to be found by the number of a bucket."""

    plans: Sequence[PiecePlan]

    @cached_property
    def _firsts(self) -> list[int]:
        """First bucket of each plan, ascending."""
        return [plan.first_bucket for plan in self.plans]

    def find(self, bucket: int) -> tuple[PiecePlan, int]:
        """Return the plan of a bucket, and the bucket's number within it."""
        plan = self.plans[bisect_right(self._firsts, bucket) - 1]
        return plan, bucket - plan.first_bucket


def joined(messages: Sequence[Message], kind: int) -> list[Array]:
    """Return the arrays of all messages of a kind, put together; an empty list if there are none."""
    found = [message.arrays for message in messages if message.kind == kind]
    return [one[0] if len(found) == 1 else np.concatenate(one) for one in zip(*found, strict=True)]


class Ranks(NamedTuple):
    """Sorted rows of a bucket: where they begin in their order, and the tie block that each belongs to."""

    order: Ints
    first: int
    begin: Ints
    length: Ints


def rank_bucket(splitters: Splitters, counts: Tally, bucket: int, *columns: Floats) -> Ranks:
    """Return the order of a bucket's rows, sorted by the columns, with the tie blocks of the first column.

    The values of the splitters at both ends may go on in other buckets: their blocks follow from counts.
    """
    order, start = sort_rows(*columns)
    first = int(counts.before[2 * bucket])
    begin, length = start + first, block_lengths(start)
    values = columns[0][order[[0, -1]]]
    for place, value in ((bucket - 1, values[0]), (bucket, values[-1])):
        if 0 <= place < splitters.number and splitters.first[place] == value:
            at = splitters.value_of[place]
            stretch = slice(0, length[0]) if place < bucket else slice(start[-1], None)
            begin[stretch], length[stretch] = counts.below[at], counts.equal[at]
    return Ranks(order, first, begin, length)


def narrow(numbers: Ints) -> Array:
    """Return whole numbers from 0 on in 32 bits if they fit, to send fewer bytes."""
    return numbers.astype(np.uint32) if numbers.size and numbers.max() < 2**32 else numbers
