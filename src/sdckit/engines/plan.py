"""Ranks of columns larger than memory: cuts, buckets, exchanges."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdckit.arrays import Floats, Ints
from sdckit.engines.transport import (
    Array,
    Block,
    Last,
    Message,
    Piece,
    Reads,
    Stage,
    Transport,
    by_bucket,
    joined,
    merged,
    places_by_number,
)
from sdckit.kernels import ranks as kernels
from sdckit.kernels.jit import kernel, plain
from sdckit.kernels.ranks import RankSums, mean_gap
from sdckit.metrics.blocks import CoupledColumns, largest_gap, part_sums, sum_of_gaps
from sdckit.progress import each, track

if TYPE_CHECKING:
    from sdckit.arrays import Bools


Numbers = NDArray[Any]  # int64 where rows are counted, float64 where weights are added up
NONE = np.empty(0)


class Rows(NamedTuple):
    """Rows of a variable with a value in both files, with their survey weights `t` and row numbers.

    Weights and row numbers have length 0 where they are not needed.
    """

    x: Floats
    y: Floats
    t: Floats
    row: Floats

    def take(self, chosen: Ints) -> Rows:
        """Return the rows with these numbers."""
        return Rows(*(column[chosen] if column.size else column for column in self))

    @property
    def turned(self) -> Rows:
        """The same rows with original and masked values exchanged."""
        return self._replace(x=self.y, y=self.x)

    def keys(self, ties: str) -> tuple[Floats, Floats, Floats]:
        """Return the columns that put rows in order: x, what comes next where it is equal, row number."""
        return self.x, {"values": self.y, "rows": NONE, "weights": self.t}[ties], self.row


def choose_splitters(sample: Rows, ties: str, parts: int) -> Rows:
    """Return distinct rows of a sample that cut both orders into about `parts` parts of equal size."""
    if parts < 2 or not sample.x.size:
        return sample.take(np.empty(0, np.int64))
    at = np.arange(1, parts) * sample.x.size // parts
    orders = [_sorted_keys(one.keys(ties)) for one in (sample, sample.turned)]
    return sample.take(np.unique(np.concatenate([order[at] for order in orders])))


def _sorted_keys(keys: tuple[Floats, Floats, Floats]) -> Ints:
    """Return row numbers in lexicographic order of keys."""
    return np.lexsort([key for key in reversed(keys) if key.size] or [NONE])


@dataclass(frozen=True)
class Splitters:
    """Rows that cut an order into buckets, by their keys: bucket b begins with splitter b - 1.

    `order` has the number that each splitter had before they were sorted.
    """

    first: Floats
    second: Floats
    row: Floats
    order: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of(cls, first: Floats, second: Floats, row: Floats) -> Splitters:
        """Return splitters in the order of their keys."""
        order = _sorted_keys((first, second, row))
        return cls(first[order], second[order] if second.size else second, row[order], order)

    @property
    def number(self) -> int:
        """Number of splitters; there is one bucket more."""
        return self.first.size

    @cached_property
    def values(self) -> Floats:
        """Distinct first values of the splitters, ascending."""
        return np.unique(self.first)

    @cached_property
    def value_of(self) -> Ints:
        """For each splitter, the number of its first value among the distinct ones."""
        return np.searchsorted(self.values, self.first)

    @cached_property
    def pair_of(self) -> Ints:
        """For each splitter, the number of its first two keys among the distinct ones."""
        new = (self.first[1:] != self.first[:-1]) | (self.second[1:] != self.second[:-1])
        return np.append(0, np.cumsum(new))[: self.number]

    def buckets(self, first: Floats, second: Floats, row: Floats) -> Ints:
        """Return the bucket of each row, given its keys."""
        return (kernels.number_buckets(first, second, row, self.first, self.second, self.row) + 1) >> 1


@kernel
def _places_among(
    first: Floats, second: Floats, buckets: Ints, cuts: Floats, seconds: Floats, number_of: Ints
) -> Ints:
    """Return 2k + 1 for rows equal to the k-th distinct splitter, and 2k for those just below it.

    Compared are the first keys; the second ones as well if they are given.
    """
    found = np.empty(first.size, np.int64)
    for i in range(first.size):
        at = buckets[i]
        found[i] = 2 * number_of[at - 1] + 2 if at > 0 else 0
        for place in (at - 1, at):
            same = 0 <= place < cuts.size and first[i] == cuts[place]
            if same and (not second.size or second[i] == seconds[place]):
                found[i] = 2 * number_of[place] + 1
    return found


@dataclass(frozen=True)
class Tally:
    """Numbers (or weights) of rows by bucket, by bucket of first values, and by bucket of pairs of keys.

    The latter two have a bucket for each distinct splitter and one for what lies before it.
    """

    buckets: Numbers
    values: Numbers
    pairs: Numbers

    @cached_property
    def before(self) -> Numbers:
        """Total before each bucket of rows, and after the last one."""
        return np.concatenate((self.buckets[:1] * 0, np.cumsum(self.buckets)))

    @cached_property
    def after(self) -> Numbers:
        """Total after each bucket of rows; its own sum, so that no digits are lost."""
        return np.append(np.cumsum(self.buckets[:0:-1])[::-1], self.buckets[:1] * 0)

    @cached_property
    def below(self) -> Numbers:
        """Total below each distinct first value."""
        return np.cumsum(self.values)[:-1:2]

    @cached_property
    def above(self) -> Numbers:
        """Total above each distinct first value."""
        return np.cumsum(self.values[::-1])[::-1][2::2]

    @cached_property
    def equal(self) -> Numbers:
        """Total at each distinct first value."""
        return self.values[1::2]

    @cached_property
    def pair_ends(self) -> Numbers:
        """Sum of the first and the last rank of the rows equal to each distinct pair of keys."""
        return 2 * np.cumsum(self.pairs)[:-1:2] + self.pairs[1::2] - 1


def tally(splitters: Splitters, rows: Rows, ties: str) -> list[Tally]:
    """Return the number and, where there are weights, the weight of rows in each bucket of an order."""
    first, second, row = rows.keys(ties)
    buckets = splitters.buckets(first, second, row)
    values = _places_among(first, NONE, buckets, splitters.first, NONE, splitters.value_of)
    size, found = 2 * splitters.values.size + 1, []
    pairs = np.empty(0, np.int64)
    if ties == "values":
        places = _places_among(first, second, buckets, splitters.first, splitters.second, splitters.pair_of)
        pairs = np.bincount(places, minlength=2 * int(splitters.pair_of.max(initial=-1)) + 3)
    for weights in (None, rows.t) if ties == "weights" else (None,):
        by_value = np.bincount(values, weights, size)
        found.append(Tally(np.bincount(buckets, weights, splitters.number + 1), by_value, pairs))
    return found


Part = dict[Any, Any]  # sums over some rows by name: whole numbers, rank sums by tie rule, floats


def add_parts(parts: Iterable[Part]) -> Part:
    """Return the sums of parts, and of "gap" the largest; original values by rank are in one part each."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for part in parts:
        for name, value in part.items():
            found[name].append(value)
    return {name: _added(name, values) for name, values in found.items()}


def _added(name: object, values: Sequence[Any]) -> Any:
    """Return the sum of numbers; floats are added without rounding errors that depend on their order."""
    if isinstance(values[0], RankSums):
        return RankSums(*map(sum, zip(*values, strict=True)))
    if isinstance(values[0], float):
        return math.fsum(values)
    return max(values) if name == "gap" else sum(values)


class RankedRows(NamedTuple):
    """Ranks and tie blocks of rows in both files, counted from 0, rows in masked order.

    A row has rank r in the original order, in the tie block of length `length` that begins at `begin`; in the
    masked order rank s, in the block of length `other_length` that begins at `other_begin`.
    """

    r: Ints
    begin: Ints
    length: Ints
    s: Ints
    other_begin: Ints
    other_length: Ints

    @property
    def middle_gaps2(self) -> Ints:
        """Twice the difference of each row's mid-ranks."""
        return 2 * (self.begin - self.other_begin) + self.length - self.other_length

    @property
    def tied(self) -> bool:
        """True if some row is tied with another in either file."""
        return bool((self.length > 1).any() or (self.other_length > 1).any())


def rank_part(rows: RankedRows, ends: Sequence[int], *, expected: bool) -> Part:
    """Return the sums of rank distances under mid-ranks, least and largest tie-breaking, and tie sums.

    `ends` are those of `_largest_gaps2`.
    """
    average = kernels.gap_distance(rows.middle_gaps2)
    ranks = dict.fromkeys(("average", "min", "max"), average)
    if rows.tied:
        gaps = np.empty(rows.r.size, np.int64)
        _largest_gaps2(*rows, ends[0], ends[1], gaps)
        ranks |= {"min": kernels.gap_distance(2 * (rows.r - rows.s)), "max": kernels.gap_distance(gaps)}
    floats = {"expected": float(_expected_sum(*rows[1:3], *rows[4:]))} if expected else {}
    return ranks | _tie_sums(rows.length, rows.other_length) | floats


def _tie_sums(lengths: Ints, others: Ints) -> dict[str, int]:
    """Return the sums of L**2 - 1 over rows, that is of L**3 - L over tie blocks, and rows of even blocks."""
    squares = (kernels.gap_distance(part).squared4 - part.size for part in (lengths, others))
    return {**dict(zip(("ties", "masked ties"), squares, strict=True)), "even": int((lengths % 2 == 0).sum())}


def row_order_part(rows: RankedRows) -> Part:
    """Return the sums of rank distances with ties in the order of rows, and in their reversed order."""
    last = 2 * (rows.middle_gaps2 - (rows.r - rows.s))
    return {"first": kernels.gap_distance(2 * (rows.r - rows.s)), "last": kernels.gap_distance(last)}


@kernel
def _largest_gaps2(
    r: Ints,
    begin: Ints,
    length: Ints,
    s: Ints,
    other: Ints,
    other_length: Ints,
    before: int,
    after: int,
    out: Ints,
) -> None:
    """Write twice the rank difference of each row for the tie-breaking of largest distance.

    Rows tied in the original are in descending masked order, and the other way round. Rows equal in both
    files, which are neighbours here, get opposite orders. Where the first or the last ones have others in
    the bucket before or after, `before` and `after` add up the first and last rank of all of them; else -1.
    """
    i = 0
    while i < r.size:
        end = i + 1
        while end < r.size and begin[end] == begin[i] and other[end] == other[i]:
            end += 1
        ends = r[i] + r[end - 1]
        if i == 0 and before >= 0:
            ends = before
        elif end == r.size and after >= 0:
            ends = after
        for t in range(i, end):
            ours = 2 * begin[t] + length[t] - 1 - (ends - r[t])
            theirs = 2 * other[t] + other_length[t] - 1 - s[t]
            out[t] = 2 * (ours - theirs)
        i = end


@kernel
def _expected_sum(begin: Ints, length: Ints, other: Ints, other_length: Ints) -> float:
    """Return the sum of E|R - S| over rows, blocks of rows added up apart to keep digits."""
    total = 0.0
    for first in range(0, begin.size, 256):
        part = 0.0
        for i in range(first, min(first + 256, begin.size)):
            part += mean_gap(begin[i], begin[i] + length[i] - 1, other[i], other[i] + other_length[i] - 1)
        total += part
    return total


@plain
def middle_rank(begin: int, length: int) -> int:
    """Return the rank in the middle of a tie block, the lower one of two."""
    return begin + ((length - 1) >> 1)


@plain
def level_of_block(begin: int, length: int, other: int, other_length: int) -> float:
    """Return 4 times what the masked block around its middle takes from the distances of an original block.

    The distances from all ranks of a block add up to more than those from its middle, for points inside the
    block only.
    """
    at = 2 * (begin - other) + length - 1
    if other_length == 1 or at > 2 * (other_length - 1):
        return 0.0
    inside = at * at - 2 * (other_length - 1) * at + 2 * other_length * (other_length - 1) + (at & 1)
    return float(length) * float(inside - 2 * other_length * abs(at - other_length + 1))


@kernel
def level_sum(first: int, begin: Ints, length: Ints, other: Ints, other_length: Ints) -> float:
    """Return 4 times what masked ties take from the distances of mid-ranks, over ranks from `first` on.

    `begin` and `length` are the original tie block that covers each rank, `other` and `other_length` the
    masked one. Each original block counts at one rank.
    """
    total = 0.0
    for i in range(begin.size):
        if first + i == middle_rank(begin[i], length[i]):
            total += level_of_block(begin[i], length[i], other[i], other_length[i])
    return total


def unrelated_ranks(n: int, part: Part) -> float:
    """Return the sum over original mid-ranks of their mean distance from all masked mid-ranks."""
    whole = 4 * n * (n * n - 1) // 3 - part["ties"] / 3 + part["even"]
    return (whole - part["level"]) / (4 * n)


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


class Counted(NamedTuple):
    """Tallies of some rows of a piece: numbers in both orders, weights, original values by masked ones.

    `crossed` has the number of original values in each bucket of the masked splitters' values, `shares` the
    sums of their weights (1 without weights) and of weight / |x|.
    """

    counts: tuple[Tally, Tally]
    weights: tuple[Tally, Tally] | None
    crossed: Numbers
    shares: tuple[Numbers, ...]


@dataclass(frozen=True)
class PiecePlan:
    """How a piece is cut into buckets, and how many rows (and which weight) each has.

    `n` is its number of rows with a value in both files. Its buckets have the numbers from `first_bucket` on.
    """

    piece: Piece
    wanted: Wanted
    n: int
    original: Splitters
    masked: Splitters
    first_bucket: int = 0
    counted: Counted | None = None

    @property
    def tallies(self) -> Counted:
        """What was counted of the rows."""
        assert self.counted is not None  # noqa: S101 - rows are counted before they are sent
        return self.counted

    @property
    def weights(self) -> tuple[Tally, Tally]:
        """Weights of rows in the original and in the masked order."""
        assert self.tallies.weights is not None  # noqa: S101 - a plan with weights
        return self.tallies.weights

    @property
    def buckets(self) -> int:
        """Number of buckets of rows."""
        return self.original.number + 1

    @cached_property
    def ranked(self) -> Splitters:
        """Masked splitters for rows whose original rank stands for their row number, which is not sent on."""
        if self.wanted.ties != "values":
            return self.masked
        # Each splitter is the first row of its bucket.
        before = self.tallies.counts[0].before
        return replace(self.masked, row=before[self.masked.order + 1].astype(np.float64))

    def rows(self, block: Block, only: Bools | None = None) -> Rows:
        """Return the rows of the piece in a block that have a value in both files."""
        inside = block.inside(self.piece.stratum)
        x, y = block.original[self.piece.variable][inside], block.masked[self.piece.variable][inside]
        seen = ~(np.isnan(x) | np.isnan(y))
        if only is not None:
            seen &= only[inside]
        row = np.arange(block.first, block.first + block.rows, dtype=np.float64)[inside][seen]
        t = NONE
        if block.weights is not None and self.wanted.ties == "weights":
            t = np.maximum(block.weights[inside][seen] / self.wanted.unit, kernels.LIGHTEST)
        return Rows(x[seen], y[seen], t, row)


def sample_rows(plans: Sequence[PiecePlan], shares: Sequence[float], block: Block) -> list[Rows]:
    """Return rows of each piece in a block, each row with the same chance.

    Which rows are drawn depends on the block's number alone, so that a task that runs again draws the same.
    """
    chances = np.random.default_rng(block.first).random(block.rows)
    return [plan.rows(block, chances < share) for plan, share in zip(plans, shares, strict=True)]


def cut(plan: PiecePlan, sample: Rows, bucket_rows: int) -> PiecePlan:
    """Return the plan with splitters drawn from a sample, so that a bucket has about `bucket_rows` rows."""
    ties = plan.wanted.ties
    rows = choose_splitters(sample, ties, -(-plan.n // bucket_rows))
    original = Splitters.of(*rows.keys(ties))
    masked = Splitters.of(*rows.take(original.order).turned.keys(ties))
    return replace(plan, original=original, masked=masked)


def count_rows(plans: Sequence[PiecePlan], block: Block) -> list[Counted]:
    """Return the tallies of each piece in a block."""
    return [_count(plan, plan.rows(block)) for plan in plans]


def _count(plan: PiecePlan, rows: Rows) -> Counted:
    """Return the tallies of some rows of a piece."""
    ties = plan.wanted.ties
    tallies = tally(plan.original, rows, ties), tally(plan.masked, rows.turned, ties)
    counts, *weighed = zip(*tallies, strict=True)
    crossed: list[Numbers] = [NONE]
    if plan.wanted.streams:
        buckets, values = kernels.value_buckets(rows.x, plan.masked.values), 2 * plan.masked.values.size + 1
        shares = shares_of(rows.x, rows.t)
        crossed = [np.bincount(buckets, share, values) for share in (None, *shares)]
    return Counted(counts, weighed[0] if weighed else None, crossed[0], tuple(crossed[1:]))


def shares_of(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weight of each value (1 without weights), and weight / |value|, 0 where it is 0."""
    weights = weights if weights.size else np.ones(values.size)
    sizes = np.abs(values)
    return weights, np.divide(weights, sizes, out=np.zeros(sizes.size), where=sizes > 0)


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
    order, start = kernels.sort_rows(*columns)
    first = int(counts.before[bucket])
    begin, length = start + first, kernels.block_lengths(start)
    values = columns[0][order[[0, -1]]]
    for place, value in ((bucket - 1, values[0]), (bucket, values[-1])):
        if 0 <= place < splitters.number and splitters.first[place] == value:
            at = splitters.value_of[place]
            stretch = slice(0, length[0]) if place < bucket else slice(start[-1], None)
            begin[stretch], length[stretch] = counts.below[at], counts.equal[at]
    return Ranks(order, first, begin, length)


def narrow(numbers: Ints) -> Array:
    """Return whole numbers from 0 on in as few bytes as they need, signed, to send less."""
    return numbers.astype(np.min_scalar_type(-1 - int(numbers.max(initial=0))))


class Points(NamedTuple):
    """Original values of a stretch, ascending: how many records each has, and their shares of two kinds."""

    values: Floats
    counts: Ints
    shares: Floats
    relative_shares: Floats


def send_values(plan: PiecePlan, rows: Rows) -> Iterator[Message]:
    """Yield distinct original values, sorted, to the buckets with the masked ones of the same stretch."""
    values = plan.masked.values
    new = np.flatnonzero(np.append(True, rows.x[1:] != rows.x[:-1]))
    x, counts = rows.x[new], np.diff(np.append(new, rows.x.size))
    weights = np.add.reduceat(rows.t, new) if rows.t.size else rows.t
    begins = np.append(0, np.searchsorted(x, values, side="right"))
    ends = np.append(np.searchsorted(x, values), x.size)
    for stretch in np.flatnonzero(ends > begins).tolist():
        chosen = slice(begins[stretch], ends[stretch])
        yield Message(
            plan.first_bucket + _bucket_of(plan, stretch),
            VALUES,
            (x[chosen], narrow(counts[chosen]), weights[chosen]),
        )


def _bucket_of(plan: PiecePlan, stretch: int) -> int:
    """Return the bucket of the masked order that holds the masked values of a stretch."""
    return int(np.searchsorted(plan.masked.value_of, stretch))


def values_part(plan: PiecePlan, at: int, messages: Sequence[Message], masked: Floats) -> Part:
    """Return the sums of the stretch that a bucket holds; `masked` are its masked values, sorted.

    A bucket that begins and ends at the same value holds no stretch.
    """
    values, value_of = plan.masked.values, plan.masked.value_of
    stretch = int(value_of[at - 1]) + 1 if at else 0
    if _bucket_of(plan, stretch) != at:
        return {}
    ends = (values[stretch - 1] if stretch else -np.inf, values[stretch] if stretch < values.size else np.inf)
    y = masked[slice(np.searchsorted(masked, ends[0], side="right"), np.searchsorted(masked, ends[1]))]
    points = _points(messages)
    if not y.size and not points.values.size and not np.isfinite(ends).all():
        return {}
    return _stretch_part(plan, stretch, ends, points, y)


def _points(messages: Sequence[Message]) -> Points:
    """Return the original values of a stretch from the messages of all buckets that have some."""
    values, numbers, weights = joined(messages, VALUES) or (NONE, NONE, NONE)
    order = np.argsort(values, kind="stable")
    counts = numbers.astype(np.int64)[order]
    shares = shares_of(values[order], weights[order] if weights.size else counts.astype(np.float64))
    return Points(values[order], counts, *shares)


def _stretch_part(
    plan: PiecePlan, stretch: int, ends: tuple[float, float], points: Points, y: Floats
) -> Part:
    """Return the largest gap and the sums of distances over a stretch of values."""
    place = 2 * stretch  # of the stretch among the buckets of values
    ours, theirs = int(plan.tallies.crossed[:place].sum()), int(plan.tallies.counts[1].values[:place].sum())
    up_to = ours + np.append(0.0, np.cumsum(points.counts)), theirs + np.arange(y.size + 1.0)
    gap = largest_gap(points.values, up_to[0], y, up_to[1])
    power = plan.wanted.power
    values, others = (np.ldexp(column, -power) for column in (points.values, y))
    low, high = (math.ldexp(end, -power) for end in _finite_ends(ends, points.values, y))
    sums = [
        kernels.cross_gap_part(
            values, share, others, low, high, *_below_and_above(total, place), theirs, plan.n
        )
        for share, total in zip(points[2:], plan.tallies.shares, strict=True)
    ]
    floats = dict(zip(("cross gaps", "relative cross gaps"), (one / plan.n for one in sums), strict=True))
    return {"gap": int(gap), **floats}


def _below_and_above(totals: Numbers, place: int) -> tuple[float, float]:
    """Return the sum of the totals before a place, and from it on."""
    return float(totals[:place].sum()), float(totals[place:].sum())


def _finite_ends(ends: tuple[float, float], x: Floats, y: Floats) -> tuple[float, float]:
    """Return the ends of a stretch; where one is infinite, the smallest or largest value in it instead."""
    lowest = min(x[0] if x.size else math.inf, y[0] if y.size else math.inf)
    highest = max(x[-1] if x.size else -math.inf, y[-1] if y.size else -math.inf)
    return ends[0] if math.isfinite(ends[0]) else lowest, ends[1] if math.isfinite(ends[1]) else highest


def largest_gap_at_splitters(plan: PiecePlan) -> Part:
    """Return the largest gap of counts up to a value, at the values of the masked splitters."""
    gaps = np.cumsum(plan.tallies.crossed)[1::2] - np.cumsum(plan.tallies.counts[1].values)[1::2]
    return {"gap": int(np.abs(gaps).max(initial=0))}


class RankRun(NamedTuple):
    """Values at consecutive ranks from `first` on, with the tie block that each belongs to.

    `own` is the value of the same record in the other file.
    """

    first: int
    values: Floats
    own: Floats
    begin: Ints
    length: Ints

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self.values.size

    def part(self, begin: int, end: int) -> RankRun:
        """Return the run restricted to the ranks from `begin` to `end` - 1."""
        inside = slice(begin - self.first, end - self.first)
        own = self.values[inside], self.own[inside]
        return RankRun(begin, *own, self.begin[inside], self.length[inside])


def coupled_sums(plan: PiecePlan, original: RankRun, masked: RankRun) -> Part:
    """Return the sums over the same ranks of the original and of the masked column."""
    floats = {
        "level": level_sum(original.first, original.begin, original.length, masked.begin, masked.length)
    }
    if plan.wanted.streams:
        power = plan.wanted.power
        x, own, y = (np.ldexp(column, -power) for column in (original.values, original.own, masked.values))
        gaps = sum_of_gaps(CoupledColumns(x, own, y, np.ones(y.size)))
        squares = part_sums(CoupledColumns(x[None], own[None], y[None], np.empty(0)), np.zeros(1, np.int32))
        marginal, permutation = (float(part[0]) for part in squares)
        floats |= {"quantile gaps": gaps, "marginal": marginal, "permutation": permutation}
    return floats


def send_runs(plan: PiecePlan, run: RankRun) -> Iterator[Message]:
    """Yield the run in parts to the masked buckets with the same ranks; values only if streams need them."""
    if plan.wanted.ties != "values":
        return
    borders = np.clip(plan.tallies.counts[1].before, run.first, run.first + run.size).tolist()
    for at, (begin, end) in enumerate(pairwise(borders)):
        if begin < end:
            part = run.part(begin, end)
            values = (part.values, part.own) if plan.wanted.streams else (NONE, NONE)
            back = np.arange(begin, end) - part.begin
            yield Message(plan.first_bucket + at, RUN, (*values, narrow(back), narrow(part.length)))


def couple_bucket(plan: PiecePlan, masked: RankRun, messages: Sequence[Message]) -> Part:
    """Return the sums over the ranks of a masked bucket, beside the original column at the same ranks."""
    # Parts come in the order of their ranks, which is that of the buckets that they come from.
    values, own, back, length = joined(messages, RUN)
    begin = masked.first + np.arange(masked.size) - back
    return coupled_sums(plan, RankRun(masked.first, values, own, begin, length.astype(np.int64)), masked)


def _send_ranked(plan: PiecePlan, rows: Rows, run: RankRun) -> Iterator[Message]:
    """Yield rows in original order to their buckets of the masked order, with ranks and tie blocks."""
    ranks = run.first + np.arange(run.size)
    back, length = narrow(ranks - run.begin), narrow(run.length)
    ranked = rows if rows.row.size else rows._replace(row=ranks.astype(np.float64))
    for bucket, chosen in places_by_number(plan.ranked.buckets(*ranked.turned.keys(plan.wanted.ties))):
        part, head = rows.take(chosen), np.array([run.first])
        blocks = back[chosen], length[chosen]
        yield Message(plan.first_bucket + bucket, RANKED, (head, part.y, part.row, narrow(chosen), *blocks))


def _read_ranked(messages: Sequence[Message]) -> Iterator[Array]:
    """Yield masked values, row numbers if they break ties, original ranks, begin and length of blocks."""
    found = []
    for head, y, row, offsets, back, length in (m.arrays for m in messages if m.kind == RANKED):
        ranks = offsets.astype(np.int64) + head[0]
        found.append((y, row, ranks, ranks - back, length.astype(np.int64)))
    yield from map(np.concatenate, zip(*found, strict=True))


def _rank_masked(plan: PiecePlan, at: int, messages: Sequence[Message]) -> tuple[Part, Floats]:
    """Return the sums of a bucket's rows, and its masked values in ascending order."""
    y, row, r, begin, length = _read_ranked(messages)
    second = row if row.size else r.astype(np.float64)
    ranks = rank_bucket(plan.masked, plan.tallies.counts[1], at, y, second)
    order = ranks.order
    s = ranks.first + np.arange(order.size)
    rows = RankedRows(r[order], begin[order], length[order], s, ranks.begin, ranks.length)
    if plan.wanted.ties == "rows":
        return row_order_part(rows), y
    ordered = y[order]
    coupled = couple_bucket(plan, RankRun(ranks.first, ordered, ordered, ranks.begin, ranks.length), messages)
    ends = [_ends_of_pair(plan, at - 1 - i, ordered[i], rows.begin[i]) for i in (0, -1)]
    return add_parts([rank_part(rows, ends, expected=plan.wanted.expected), coupled]), ordered


def _ends_of_pair(plan: PiecePlan, place: int, value: float, begin: int) -> int:
    """Return first plus last original rank of the rows equal to a masked splitter; -1 if this row is not."""
    if not 0 <= place < plan.masked.number or plan.masked.first[place] != value:
        return -1
    number, ours = plan.masked.order[place], plan.tallies.counts[0]
    if ours.below[plan.original.value_of[number]] != begin:
        return -1
    return int(ours.pair_ends[plan.original.pair_of[number]])


def empty_bucket_part(plan: PiecePlan, bucket: int) -> Part:
    """Return the sums of a bucket that got no messages: distances across its stretch of values."""
    return values_part(plan, bucket - plan.first_bucket, (), np.empty(0)) if plan.wanted.streams else {}


class Positions(NamedTuple):
    """Order of a bucket's rows, position of each in that order, and sums of distances from the middle."""

    order: Ints
    positions: Floats
    reach: float
    squares: float


def place_bucket(splitters: Splitters, weights: Tally, bucket: int, values: Floats, t: Floats) -> Positions:
    """Return the order of a bucket's rows and their weighted positions, ties sharing the middle of theirs."""
    order, start = kernels.sort_rows(values, t)
    below, above = kernels.weights_before_after(t[order])
    below += weights.before[bucket]
    above += weights.after[bucket]
    ends = start + kernels.block_lengths(start) - 1
    positions = (below[start] - above[ends]) / 2
    for place, stretch in ((bucket - 1, slice(0, ends[0] + 1)), (bucket, slice(start[-1], None))):
        if 0 <= place < splitters.number and splitters.first[place] == values[order[stretch]][0]:
            positions[stretch] = middle_of_value(splitters, weights, place)
    return Positions(order, positions, *_from_middle(t[order], (below - above) / 2))


def middle_of_value(splitters: Splitters, weights: Tally, place: int) -> float:
    """Return the position of all rows that have the value of a splitter."""
    at = splitters.value_of[place]
    return float(weights.below[at] - weights.above[at]) / 2


def _from_middle(weights: Floats, positions: Floats) -> tuple[float, float]:
    """Return the weighted sums of |position| and of position**2."""
    return float(np.sum(weights * np.abs(positions))), float(np.sum(weights * positions**2))


@dataclass(frozen=True)
class RankExchange:
    """The tasks of an exchange of some pieces: rows go to their bucket of the original order, then on."""

    plans: Sequence[PiecePlan]

    def _find(self, bucket: int) -> tuple[PiecePlan, int]:
        """Return the plan of a bucket, and the bucket's number within it."""
        plan = self.plans[bisect_right(self.plans, bucket, key=attrgetter("first_bucket")) - 1]
        return plan, bucket - plan.first_bucket

    def send(self, block: Block) -> Iterator[Message]:
        """Yield the rows of each bucket, with their numbers where these break ties."""
        for plan in self.plans:
            rows = plan.rows(block)
            buckets = plan.original.buckets(*rows.keys(plan.wanted.ties))
            sent = rows._replace(row=NONE) if plan.wanted.ties == "values" else rows
            for bucket, chosen in places_by_number(buckets):
                yield Message(plan.first_bucket + bucket, ROWS, tuple(sent.take(chosen)))

    def rank_original(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield masked values with original ranks and tie blocks and, if wanted, both columns in order."""
        plan, at = self._find(bucket)
        rows = Rows(*joined(messages, ROWS))
        ranks = rank_bucket(plan.original, plan.tallies.counts[0], at, *rows.keys(plan.wanted.ties))
        rows = rows.take(ranks.order)
        run = RankRun(ranks.first, rows.x, rows.y, ranks.begin, ranks.length)
        yield from _send_ranked(plan, rows, run)
        yield from send_runs(plan, run)
        if plan.wanted.streams:
            yield from send_values(plan, rows)
        wanted = np.array([rank for rank in plan.wanted.ranks if 0 <= rank - run.first < run.size], np.int64)
        if wanted.size:
            yield Message(bucket, ORDERED, (wanted, rows.x[wanted - run.first]))

    def rank_masked(self, bucket: int, messages: Sequence[Message]) -> Part:
        """Return the sums over the rows of a bucket of the masked order."""
        plan, at = self._find(bucket)
        parts = [
            dict(zip(*(array.tolist() for array in m.arrays), strict=True))
            for m in messages
            if m.kind == ORDERED
        ]
        masked = np.empty(0)
        if any(message.kind == RANKED for message in messages):
            part, masked = _rank_masked(plan, at, messages)
            parts.append(part)
        if plan.wanted.streams:
            parts.append(values_part(plan, at, messages, masked))
        return add_parts(parts)

    def place_original(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield masked values with weights and original positions, and the sums that are complete."""
        plan, at = self._find(bucket)
        rows = Rows(*joined(messages, ROWS))
        found = place_bucket(plan.original, plan.weights[0], at, rows.x, rows.t)
        rows = rows.take(found.order)
        buckets = plan.masked.buckets(*rows.turned.keys(plan.wanted.ties))
        yield from by_bucket(buckets + plan.first_bucket, RANKED, rows.y, rows.t, found.positions)
        yield Message(bucket, SUMS, (np.array([found.reach, found.squares]),))
        if plan.wanted.streams:
            yield from send_values(plan, rows)

    def place_masked(self, bucket: int, messages: Sequence[Message]) -> Part:
        """Return the sums over the rows of a bucket of the masked order, with weights."""
        plan, at = self._find(bucket)
        sums = [message.arrays[0].tolist() for message in messages if message.kind == SUMS]
        parts = [{"reach": reach, "squares": squares} for reach, squares in sums]
        masked = np.empty(0)
        arrays = joined(messages, RANKED)
        if arrays:
            y, t, positions = arrays
            found = place_bucket(plan.masked, plan.weights[1], at, y, t)
            gaps = positions[found.order] - found.positions
            absolute, squared = _from_middle(t[found.order], gaps)
            parts.append({"absolute": absolute, "squared": squared, "reach": found.reach})
            masked = y[found.order]
        if plan.wanted.streams:
            parts.append(values_part(plan, at, messages, masked))
        return add_parts(parts)


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


COUNTING = 0.3  # share of the progress that sampling and counting take, before the exchange


def measure_ranks(
    transport: Transport, sizes: Mapping[Piece, int], wanted: Mapping[Piece, Wanted]
) -> dict[Piece, RankTotals]:
    """Return the totals of each piece, given its number of rows with a value in both files."""
    nothing = Splitters.of(NONE, NONE, NONE)
    plans = [
        PiecePlan(piece, one, sizes[piece], nothing, nothing) for piece, one in wanted.items() if sizes[piece]
    ]
    found = {piece: RankTotals(0) for piece in wanted}
    for group in each("ranking", _groups(plans, together=transport.together)):
        names = tuple(dict.fromkeys(plan.piece.variable for plan in group))
        found |= _measure_group(transport, group, Reads(names, names))
    return found


def _groups(plans: Sequence[PiecePlan], *, together: bool) -> list[list[PiecePlan]]:
    """Return the plans that are exchanged in one go: all of them, or those of each variable."""
    groups: dict[str, list[PiecePlan]] = {}
    for plan in plans:
        groups.setdefault("" if together else plan.piece.variable, []).append(plan)
    return list(groups.values())


def _measure_group(transport: Transport, plans: Sequence[PiecePlan], reads: Reads) -> dict[Piece, RankTotals]:
    """Return the totals of some pieces that are exchanged together."""
    with track("ranking", 1.0) as report:
        report(0.0, COUNTING / 2)
        plans = _cut(transport, plans, reads)
        report(COUNTING / 2, COUNTING / 2)
        plans = _counted(transport, plans, reads)
        report(COUNTING, 1 - COUNTING)
        parts = _exchanged(transport, plans, reads)
    found = {}
    for plan in plans:
        buckets = range(plan.first_bucket, plan.first_bucket + plan.buckets)
        every = [parts.get(bucket) or empty_bucket_part(plan, bucket) for bucket in buckets]
        if plan.wanted.streams:
            every.append(largest_gap_at_splitters(plan))
        found[plan.piece] = _totals(plan, add_parts(every))
    return found


def _exchanged(transport: Transport, plans: Sequence[PiecePlan], reads: Reads) -> dict[int, Part]:
    """Return the sums over the rows of each bucket; either all pieces have weights or none."""
    tasks, weighted = RankExchange(plans), plans[0].wanted.ties == "weights"
    stage: Stage = tasks.place_original if weighted else tasks.rank_original
    last: Last = tasks.place_masked if weighted else tasks.rank_masked
    return transport.exchange(tasks.send, reads, [stage], last, step="ranking")


def _cut(transport: Transport, plans: Sequence[PiecePlan], reads: Reads) -> list[PiecePlan]:
    """Return the plans with splitters, drawn from a sample, where a piece is too large for a bucket."""
    large = [plan for plan in plans if plan.n > transport.bucket_rows]
    if not large:
        return list(plans)
    wanted = [max(LEAST_SAMPLE, SAMPLED * plan.n // transport.bucket_rows) for plan in large]
    shares = [number / plan.n for number, plan in zip(wanted, large, strict=True)]
    samples = transport.scan(partial(sample_rows, large, shares), reads, step="sampling")
    cuts = {}
    for plan, parts in zip(large, zip(*samples, strict=True), strict=True):
        rows = Rows(*map(np.concatenate, zip(*parts, strict=True)))
        cuts[plan.piece] = cut(plan, rows, transport.bucket_rows)
    return [cuts.get(plan.piece, plan) for plan in plans]


def _counted(transport: Transport, plans: Sequence[PiecePlan], reads: Reads) -> list[PiecePlan]:
    """Return the plans with the number of rows in each bucket, their buckets numbered one after the other."""
    found, first = [], 0
    blocks = transport.scan(partial(count_rows, plans), reads, step="counting")
    for plan, counted in zip(plans, reduce(merged, blocks), strict=True):
        found.append(replace(plan, first_bucket=first, counted=counted))
        first += plan.buckets
    return found


def _totals(plan: PiecePlan, part: Part) -> RankTotals:
    """Return the totals of a piece from the sum over all its rows."""
    sums = defaultdict(float, part)  # a piece whose rows are all in cells may have none of some sum
    ranked = {rule: one for rule, one in part.items() if isinstance(one, RankSums)}
    found: dict[str, Any] = {"power": plan.wanted.power}
    found["order_statistics"] = {rank: sums[rank] for rank in plan.wanted.ranks}
    if plan.wanted.streams:
        found["cross_gaps"] = sums["cross gaps"] * plan.wanted.unit
        found["relative_cross_gaps"] = sums["relative cross gaps"] * plan.wanted.unit
        found["largest_gap"] = part.get("gap", 0)
    if plan.wanted.ties == "weights":
        # A single record has none: its largest distance is 0.
        largest = sums["reach"], 4 * sums["squares"]
        losses = (
            kernels.shares_of_largest((sums["absolute"], sums["squared"]), largest)
            if min(largest) > 0
            else None
        )
        return RankTotals(plan.n, weighted=losses, **found)
    ties = part.get("ties", 0), part.get("masked ties", 0)
    if plan.wanted.expected:
        squared = ranked["average"].squared4 + sum(ties) / 3
        ranked["expected"] = RankSums(plan.n, 2 * sums["expected"], squared)
    if plan.wanted.ties == "values":
        found["unrelated_ranks"] = unrelated_ranks(plan.n, part)
    if plan.wanted.streams:
        found["quantile_gaps"] = sums["quantile gaps"]
        found |= {name: sums[name] for name in ("marginal", "permutation")}
    return RankTotals(plan.n, ranked, ties, **found)
