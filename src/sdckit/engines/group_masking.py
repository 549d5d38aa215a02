"""Masking by ranks, tails and groups of files larger than memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.engines.plan import NONE, Splitters
from sdckit.engines.transport import Message, Reads, by_bucket, joined, matrix_of, merged, scanned, strata_in
from sdckit.kernels.draws import CellDraws
from sdckit.kernels.ranks import sorted_rows
from sdckit.kernels.sums import deviations_from, exact_sum, rounded_mean
from sdckit.masking import microaggregation
from sdckit.masking.coding import column_tails, joined_codes, median_rank
from sdckit.masking.mask_table import apply
from sdckit.masking.swapping import partner_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sdckit.arrays import Floats, Ints
    from sdckit.core.registry import Method, WholeColumns
    from sdckit.engines.row_parts import RowParts
    from sdckit.engines.transport import Block, Transport
    from sdckit.masking.coding import Tail


FULL_BUCKET = 0.7  # share of the largest size of a bucket that is aimed at: samples miss it now and then
PER_BUCKET = 64  # sampled values to a bucket
CHOICE = CellDraws.of(b"sample")  # which rows are sampled: the same in all engines, and no secret


def values_by_piece(block: Block, names: Sequence[str]) -> Iterator[tuple[int, Ints, Floats]]:
    """Yield number, rows within the file and values of each piece: a column in a stratum, without gaps."""
    for stratum, rows in strata_in(block):
        for j, name in enumerate(names):
            values = block.original[name][rows]
            seen = ~np.isnan(values)
            yield stratum * len(names) + j, rows[seen] + block.first, values[seen]


def sample_values(names: Sequence[str], rate: float, block: Block) -> dict[int, Floats]:
    """Return values and numbers of rows that are chosen by their number alone, by piece."""
    chosen = CHOICE.uniforms(np.arange(block.first, block.first + block.rows), 0) < rate
    return {
        piece: np.stack([values, rows])[:, chosen[rows - block.first]]
        for piece, rows, values in values_by_piece(block, names)
    }


def count_values(names: Sequence[str], splitters: Sequence[Splitters], block: Block) -> dict[int, Ints]:
    """Return how many values of a block lie in each bucket of each piece."""
    return {
        piece: np.bincount(
            splitters[piece].buckets(values, NONE, rows.astype(np.float64)),
            minlength=splitters[piece].number + 1,
        )
        for piece, rows, values in values_by_piece(block, names)
    }


@dataclass(frozen=True)
class PieceBuckets:
    """The buckets of a piece, numbered from `base` on; bucket b has the ranks starts[b] to starts[b + 1] - 1.

    Equal values are in the order of their rows.
    """

    base: int
    splitters: Splitters
    starts: Ints

    def of_values(self, values: Floats, rows: Ints) -> Ints:
        """Return the bucket of each value, given its row."""
        return self.splitters.buckets(values, NONE, rows.astype(np.float64)) + self.base

    def of_ranks(self, ranks: Ints) -> Ints:
        """Return the bucket of each rank."""
        return np.searchsorted(self.starts, ranks, "right") - 1 + self.base


@dataclass(frozen=True)
class Buckets:
    """The buckets of all pieces of a file, numbered through."""

    pieces: tuple[PieceBuckets, ...]

    def piece_of(self, bucket: int) -> int:
        """Return the number of the piece that a bucket belongs to."""
        return int(np.searchsorted([one.base for one in self.pieces], bucket, "right")) - 1

    def first_rank(self, bucket: int) -> int:
        """Return the first rank of a bucket."""
        piece = self.pieces[self.piece_of(bucket)]
        return int(piece.starts[bucket - piece.base])


def find_buckets(transport: Transport, names: tuple[str, ...], sizes: Sequence[int], largest: int) -> Buckets:
    """Return buckets of at most about `largest` values for pieces of these sizes, by a sample and a count."""
    wanted = [max(1, -(-n // max(int(FULL_BUCKET * largest), 1))) for n in sizes]
    rates = [PER_BUCKET * buckets / n for n, buckets in zip(sizes, wanted, strict=True) if buckets > 1]
    samples = []
    if rates:
        task = partial(sample_values, names, min(1.0, max(rates)))
        samples = transport.scan(task, Reads(names), step="sampling")
    splitters = []
    for piece, buckets in enumerate(wanted):
        values, rows = np.hstack([np.empty((2, 0)), *(one[piece] for one in samples if piece in one)])
        order = np.lexsort((rows, values))
        chosen = order[np.unique(np.arange(1, buckets) * order.size // buckets)] if order.size else order
        splitters.append(Splitters.of(values[chosen], NONE, rows[chosen]))
    counts = scanned(transport, partial(count_values, names, splitters), names, "counting ranks")
    base, pieces = 0, []
    for piece, cuts in enumerate(splitters):
        numbers = counts.get(piece, np.zeros(cuts.number + 1, np.int64))
        pieces.append(PieceBuckets(base, cuts, np.append(0, np.cumsum(numbers))))
        base += len(numbers)
    return Buckets(tuple(pieces))


Ranks = dict[int, set[int]]  # wanted ranks of each piece
Found = dict[int, dict[int, float]]  # values by piece and rank


def send_wanted(names: Sequence[str], buckets: Buckets, wanted: Ints, block: Block) -> Iterator[Message]:
    """Yield the values of those buckets that hold a wanted rank."""
    for piece, rows, values in values_by_piece(block, names):
        found = buckets.pieces[piece].of_values(values, rows)
        chosen = np.isin(found, wanted)
        yield from by_bucket(found[chosen], 0, values[chosen])


def values_in_bucket(buckets: Buckets, ranks: Ranks, bucket: int, messages: Sequence[Message]) -> Found:
    """Return the value at each wanted rank of a bucket, by its piece."""
    piece, first = buckets.piece_of(bucket), buckets.first_rank(bucket)
    ordered = np.sort(joined(messages, 0)[0])
    inside = {rank for rank in ranks[piece] if 0 <= rank - first < ordered.size}
    return {piece: {rank: float(ordered[rank - first]) for rank in inside}}


def values_at_ranks(
    transport: Transport, names: tuple[str, ...], sizes: Sequence[int], ranks: Ranks
) -> Found:
    """Return the values at some ranks, from 0, of pieces with so many values."""
    none: Found = {piece: {} for piece in ranks}
    if not any(ranks.values()):
        return none
    buckets = find_buckets(transport, names, sizes, transport.bucket_rows)
    wanted = np.concatenate(
        [buckets.pieces[piece].of_ranks(np.array([*some], np.int64)) for piece, some in ranks.items()]
    )
    first = partial(send_wanted, names, buckets, wanted)
    last = partial(values_in_bucket, buckets, ranks)
    found = transport.exchange(first, Reads(names), [], last, step="finding cuts")
    return reduce(merged, found.values(), none)


class Beyond(NamedTuple):
    """Number and exact sum of the values from a cut on, seen from the side of the tail."""

    number: int = 0
    total: int = 0


Cuts = tuple[
    float, float
]  # least coded value of the upper and of the lower tail, each seen from its own side


def sum_tails(names: Sequence[str], cuts: Sequence[Cuts], block: Block) -> dict[int, tuple[Beyond, Beyond]]:
    """Return number and exact sum of the values of each piece beyond the cuts of both tails."""
    return {
        piece: (_beyond(values, cuts[piece][0]), _beyond(-values, cuts[piece][1]))
        for piece, _, values in values_by_piece(block, names)
    }


def _beyond(values: Floats, cut: float) -> Beyond:
    """Return number and exact sum of the values from a cut on."""
    chosen = values[values >= cut]
    return Beyond(chosen.size, exact_sum(chosen))


def with_codes(
    transport: Transport,
    names: tuple[str, ...],
    columns: list[WholeColumns],
    options: Sequence[Mapping[str, Any]],
) -> list[WholeColumns]:
    """Return the facts on each stratum with the codes of its columns, for the options of each stratum."""
    p = len(names)
    sizes = [int(n) for one in columns for n in one.seen]
    tails = [
        pair
        for chosen in options
        for pair in column_tails(p, **{name: chosen[name] for name in ("top", "bottom", "above", "below")})
    ]
    replaces = [str(chosen["replace"]) for chosen in options for _ in range(p)]
    pieces = list(zip(sizes, tails, replaces, strict=True))
    ranks = {piece: _wanted_ranks(*one) for piece, one in enumerate(pieces)}
    values = values_at_ranks(transport, names, sizes, ranks)
    cuts = [_cuts(pair, n, values[piece]) for piece, (n, pair, _) in enumerate(pieces)]
    sums = scanned(transport, partial(sum_tails, names, cuts), names, "adding up tails")
    means, codes, few = [float(mean) for one in columns for mean in one.means], [], []
    for piece, (n, pair, how) in enumerate(pieces):
        beyond = sums.get(piece, (Beyond(), Beyond()))
        middle = means[piece] if how == "mean" else values[piece].get(median_rank(n), math.nan)
        upper, lower = (
            (cut, tail.code(cut, how, found.number, rounded_mean(found.total, found.number)))
            for cut, tail, found in zip(cuts[piece], pair, beyond, strict=True)
        )
        codes.append(joined_codes(upper, lower, middle))
        few.append(
            any(
                tail.by_limit and 0 < found.number < microaggregation.FEWEST
                for tail, found in zip(pair, beyond, strict=True)
            )
        )
    return [
        replace(one, codes=tuple(codes[i * p : (i + 1) * p]), few_coded=any(few[i * p : (i + 1) * p]))
        for i, one in enumerate(columns)
    ]


def _wanted_ranks(n: int, tails: tuple[Tail, Tail], how: str) -> set[int]:
    """Return the ranks at which tails of n values begin by their shares, and maybe the median's."""
    upper, lower = (tail.count(n) for tail in tails)
    found = ({n - upper} if upper else set()) | ({lower - 1} if lower else set())
    return found | ({median_rank(n)} if how == "limit" and n else set())


def _cuts(tails: tuple[Tail, Tail], n: int, values: Mapping[int, float]) -> Cuts:
    """Return the least coded value of each tail, seen from its own side."""
    upper, lower = tails
    high, low = values.get(n - upper.count(n), math.nan), values.get(lower.count(n) - 1, math.nan)
    return upper.cut(n, high), lower.cut(n, -low)


VALUES, PARTNERS, ROWS, MOVED = range(4)  # kinds of messages
STRETCH = 1 << 20  # ranks whose partners are sent at once


@dataclass(frozen=True)
class Swap:
    """Rank swapping of one piece: number of values, largest move, direction, and the draws."""

    n: int
    window: int
    downwards: bool
    draws: CellDraws

    def partners(self) -> Iterator[tuple[int, Ints]]:
        """Yield the first rank of each stretch and the ranks that its ranks swap with."""
        first = 0
        for found in partner_ranks(self.n, self.window, self.draws.sequence(), STRETCH):
            end = first + found.size
            if self.downwards:
                yield self.n - end, (self.n - 1 - found)[::-1]
            else:
                yield first, found
            first = end


@dataclass(frozen=True)
class Runs:
    """Runs of k neighbouring ranks of a piece with n values, what is left over in the last run."""

    n: int
    k: int
    aggregate: str

    @property
    def last(self) -> int:
        """First rank of the last run."""
        return max(self.n // self.k - 1, 0) * self.k

    def begins(self, ranks: Ints) -> Ints:
        """Return the first rank of the run that each rank belongs to."""
        return np.minimum(ranks // self.k * self.k, self.last)

    def published(self, first: int, values: Floats) -> Floats:
        """Return what is published of ascending values from rank `first` on, which make whole runs."""
        starts = np.arange(first, min(self.last, first + values.size - 1) + 1, self.k) - first
        return microaggregation.run_aggregates(values, starts, self.k, self.aggregate)


@dataclass(frozen=True)
class RankMasking:
    """Masking of each column within a stratum, a piece, by its ranks: swaps of ranks, or runs of them."""

    names: tuple[str, ...]
    buckets: Buckets
    parts: RowParts
    pieces: Mapping[int, Swap | Runs]  # those that have enough values

    @property
    def stages(self) -> list[Callable[[int, Sequence[Message]], Iterator[Message]]]:
        """Stages that values pass on their way from the buckets of ranks to their rows."""
        swaps = isinstance(next(iter(self.pieces.values()), None), Swap)
        return [self.send_swapped, self.return_swapped] if swaps else [self.send_runs, self.return_runs]

    def send_values(self, block: Block) -> Iterator[Message]:
        """Yield each value of a block with its row to the bucket of its rank, and the partners of ranks."""
        for piece, rows, values in values_by_piece(block, self.names):
            if piece in self.pieces:
                buckets = self.buckets.pieces[piece].of_values(values, rows)
                yield from by_bucket(buckets, VALUES, values, rows)
        swaps = [(piece, one) for piece, one in self.pieces.items() if isinstance(one, Swap)]
        for number, (piece, swap) in enumerate(swaps):
            planned_at = number * self.parts.rows // len(swaps)
            if block.first <= planned_at < block.first + block.rows:
                for first, partners in swap.partners():
                    ranks = np.arange(first, first + partners.size)
                    owners = self.buckets.pieces[piece].of_ranks(ranks)
                    yield from by_bucket(owners, PARTNERS, ranks, partners)

    def _sorted(self, messages: Sequence[Message]) -> tuple[Floats, Ints]:
        """Return the values of a bucket in ascending order, equal ones by row, and their rows."""
        values, rows = joined(messages, VALUES) or (NONE, np.empty(0, np.int64))
        order = sorted_rows(values)[0]
        return values[order], rows[order]

    def send_swapped(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield each value to the rank that it swaps with, and the rows in the order of ranks."""
        values, rows = self._sorted(messages)
        if not values.size:
            return
        piece, first = self.buckets.pieces[self.buckets.piece_of(bucket)], self.buckets.first_rank(bucket)
        ranks, partners = joined(messages, PARTNERS)
        to = np.empty(values.size, np.int64)
        to[ranks - first] = partners
        yield Message(bucket, ROWS, (rows,))
        owner = piece.of_ranks(to)
        yield from by_bucket(owner, MOVED, to - piece.starts[owner - piece.base], values)

    def return_swapped(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the values that arrived at the ranks of a bucket to the rows of these ranks."""
        (rows,) = joined(messages, ROWS)
        places, moved = joined(messages, MOVED)
        values = np.empty(rows.size)
        values[places] = moved
        yield from self.parts.sent(self.buckets.piece_of(bucket) % len(self.names), rows, values)

    def _runs(self, bucket: int) -> Runs:
        """Return the runs of the piece that a bucket belongs to."""
        found = self.pieces[self.buckets.piece_of(bucket)]
        assert isinstance(found, Runs)  # noqa: S101 - a method has swaps or runs
        return found

    def send_runs(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield sorted values to the bucket in which their run begins."""
        values, rows = self._sorted(messages)
        ranks = self.buckets.first_rank(bucket) + np.arange(values.size)
        begins = self._runs(bucket).begins(ranks)
        owner = self.buckets.pieces[self.buckets.piece_of(bucket)].of_ranks(begins)
        yield from by_bucket(owner, MOVED, ranks, values, rows)

    def return_runs(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the aggregates of the runs that begin in a bucket to their rows."""
        ranks, values, rows = joined(messages, MOVED)
        order = np.argsort(ranks)  # messages come in the order of their buckets' numbers
        published = self._runs(bucket).published(int(ranks[order[0]]), values[order])
        yield from self.parts.sent(self.buckets.piece_of(bucket) % len(self.names), rows[order], published)


class Node(NamedTuple):
    """A cut of records: those go to `low` whose score along a direction is at most `cut`, the rest to `high`.

    Without a direction, the score is the squared distance from the mean of all. A child is another cut, or
    None for a block; blocks are numbered from left to right.
    """

    direction: Floats | None
    cut: float
    low: Node | None
    high: Node | None


def scores(points: Floats, direction: Floats | None) -> Floats:
    """Return the position of each point along a direction; missing cells count as 0, the mean of all.

    Added up column by column: a matrix product may round a record differently in a block of another length.
    Without a direction, return squared distances from the mean of all.
    """
    if direction is None:
        return microaggregation.squared_lengths(points)
    found = np.zeros(len(points))
    for j, loading in enumerate(direction):
        found += np.nan_to_num(points[:, j], nan=0.0) * loading
    return found


def grow(points: Floats, blocks: int) -> Node | None:
    """Return a tree that cuts a sample of points into so many blocks of about the same size.

    The points farthest from the mean of all, 0, make the last block, as cuts through the sparse outside would
    cost more than all others. Every other part is cut across its first principal component, so that its
    halves hold whole numbers of blocks.
    """
    return (_cut(points, blocks, blocks - 1, None) if blocks > 1 else None) or _grown(points, blocks)


def _grown(points: Floats, blocks: int) -> Node | None:
    """Return a tree of a part of the sample."""
    if blocks == 1 or len(points) < 2:
        return None
    direction = microaggregation.first_direction(np.nan_to_num(points, nan=0.0))
    return _cut(points, blocks, blocks // 2, direction)


def _cut(points: Floats, blocks: int, low: int, direction: Floats | None) -> Node | None:
    """Return the tree with `low` of the blocks below a cut; None for points that all have equal scores."""
    along = scores(points, direction)
    cut = float(np.partition(along, place := max(len(points) * low // blocks - 1, 0))[place])
    below = along <= cut
    if below.all():
        return None
    return Node(direction, cut, _grown(points[below], low), _grown(points[~below], blocks - low))


def count_blocks(tree: Node | None) -> int:
    """Return the number of blocks of a tree."""
    return 1 if tree is None else count_blocks(tree.low) + count_blocks(tree.high)


def blocks_of_points(tree: Node | None, points: Floats) -> Ints:
    """Return the number of the block of each point."""
    found = np.zeros(len(points), np.int64)
    if tree is not None:
        below = scores(points, tree.direction) <= tree.cut
        found[below] = blocks_of_points(tree.low, points[below])
        found[~below] = blocks_of_points(tree.high, points[~below]) + count_blocks(tree.low)
    return found


def without_small_blocks(tree: Node | None, counts: Sequence[int], fewest: int) -> Node | None:
    """Return a tree whose blocks all have at least `fewest` records, from the records of each block.

    A block that is too small is given up, together with its cut: its records go where the other cuts say.
    """
    left = iter(counts)

    def joined_blocks(node: Node | None) -> tuple[Node | None, int]:
        """Return a part of the tree and the least number of records in any of its blocks."""
        if node is None:
            return None, next(left)
        low, high = joined_blocks(node.low), joined_blocks(node.high)
        if min(low[1], high[1]) >= fewest:
            return node._replace(low=low[0], high=high[0]), min(low[1], high[1])
        if low[0] or high[0]:
            return max(low, high, key=itemgetter(1))  # the other one is a block that is too small
        return None, low[1] + high[1]

    return joined_blocks(tree)[0]


EXACT = 1_000_000  # most records among which MDAV forms groups at once
PER_BLOCK, MOST = 400, 500_000  # sampled records for each block, and at most
FULL_BLOCK = 0.95  # share of the largest size of a block that is aimed at: samples miss it now and then


@dataclass(frozen=True)
class Scale:
    """How records of a stratum are compared: columns standardised by mean and deviation (ddof 0) of all."""

    powers: Floats
    centres: Floats
    sizes: Floats

    @classmethod
    def of(cls, whole: WholeColumns) -> Scale:
        """Return the scale that follows from facts on a stratum's columns."""
        assert whole.products is not None  # noqa: S101 - asked for in the registry
        sizes = np.sqrt(np.diag(whole.products) / np.maximum(whole.seen, 1))
        return cls(whole.powers, whole.centres, np.where(sizes > 0, sizes, 1.0))

    def points(self, values: Floats) -> Floats:
        """Return records as MDAV compares them; missing cells stay NaN."""
        centred = deviations_from(values / self.powers, self.centres) / self.sizes
        return np.ascontiguousarray(np.where(np.isnan(values), np.nan, centred))


def present_records(block: Block, names: Sequence[str]) -> Iterator[tuple[int, Ints, Floats]]:
    """Yield number, rows and values of the records of each stratum in a block that have a value."""
    values = matrix_of(block, names)
    present = np.asarray((~np.isnan(values)).any(axis=1))
    for stratum, rows in strata_in(block):
        chosen = rows[present[rows]]
        yield stratum, chosen, values[chosen]


def sample_records(names: Sequence[str], rates: Sequence[float], block: Block) -> dict[int, Floats]:
    """Return records of each stratum that are chosen by their row number alone."""
    draws = CHOICE.uniforms(np.arange(block.first, block.first + block.rows), 0)
    return {
        stratum: values[draws[rows] < rates[stratum]]
        for stratum, rows, values in present_records(block, names)
    }


@dataclass(frozen=True)
class GroupMasking:
    """Masking by groups within blocks of similar records, which trees say; blocks are numbered through."""

    method: Method
    names: tuple[str, ...]
    options: Sequence[Mapping[str, Any]]  # of each stratum, as the two below
    scales: tuple[Scale, ...]
    trees: tuple[Node | None, ...]

    @property
    def bases(self) -> Ints:
        """Number of the first block of each stratum, and the number of all blocks at the end."""
        return np.cumsum([0, *(count_blocks(tree) for tree in self.trees)])

    def _blocks(self, stratum: int, values: Floats) -> Ints:
        """Return the block of each record of a stratum."""
        found = blocks_of_points(self.trees[stratum], self.scales[stratum].points(values))
        return found + self.bases[stratum]

    def count(self, block: Block) -> Ints:
        """Return how many records of a block of rows go to each block of similar ones."""
        total = np.zeros(self.bases[-1], np.int64)
        for stratum, _, values in present_records(block, self.names):
            total += np.bincount(self._blocks(stratum, values), minlength=len(total))
        return total

    def counted(self, transport: Transport) -> list[list[int]]:
        """Return the number of records in each block of each stratum, by a scan."""
        counts = scanned(transport, self.count, self.names, "counting records").tolist()
        return [counts[a:b] for a, b in pairwise(self.bases)]

    def send(self, block: Block) -> Iterator[Message]:
        """Yield each record with its row number to its block."""
        for stratum, rows, values in present_records(block, self.names):
            yield from by_bucket(self._blocks(stratum, values), 0, rows + block.first, *values.T)

    def group(self, parts: RowParts, number: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Form groups within a block of similar records, and yield what is published to their rows."""
        rows, *columns = joined(messages, 0)
        order = np.argsort(rows)
        values = np.asfortranarray(np.column_stack(columns)[order])
        stratum = int(np.searchsorted(self.bases, number, "right")) - 1
        options = dict(self.options[stratum])
        if "block" in options:
            options["block"] = len(values)
        points = self.scales[stratum].points(values)
        several = self.trees[stratum] is not None
        groups = microaggregation.groups_in_block(values, options["k"], points) if several else None
        rng = np.random.default_rng(0)  # no method that forms groups draws
        masked = apply(self.method, values, options, rng, names=self.names, basis=points, groups=groups)
        yield from parts.sent(0, rows[order], *masked.T)


def find_blocks(
    transport: Transport,
    names: tuple[str, ...],
    columns: Sequence[WholeColumns],
    method: Method,
    options: Sequence[Mapping[str, Any]],
) -> tuple[GroupMasking, list[list[str]]]:
    """Return the blocks in which a method forms groups, and notes on them for each stratum."""
    scales = tuple(Scale.of(one) for one in columns)
    wanted = [
        _blocks_wanted(transport, method, one.present, chosen)
        for one, chosen in zip(columns, options, strict=True)
    ]
    found = GroupMasking(method, names, options, scales, (None,) * len(wanted))
    if max(wanted) == 1:
        return found, [[] for _ in wanted]
    samples = _samples(transport, names, columns, wanted)
    parts = zip(scales, samples, wanted, strict=True)
    found = replace(found, trees=tuple(grow(scale.points(some), count) for scale, some, count in parts))
    counts = found.counted(transport)
    trees = tuple(
        without_small_blocks(tree, sizes, 3 * chosen["k"])
        for tree, sizes, chosen in zip(found.trees, counts, options, strict=True)
    )
    if any(count_blocks(one) < len(sizes) for one, sizes in zip(trees, counts, strict=True)):
        found = replace(found, trees=trees)
        counts = found.counted(transport)
    notes = map(_notes, samples, options, counts)
    return found, list(notes)


def _blocks_wanted(transport: Transport, method: Method, n: int, options: Mapping[str, Any]) -> int:
    """Return into how many blocks n records are cut; ValueError for too many records in one block."""
    if "block" in options:
        largest = microaggregation.largest_block(options["k"], options["block"])
        return 1 if n <= largest else -(-n // max(int(FULL_BLOCK * largest), 1))
    most = min(EXACT, transport.bucket_rows)
    if n > most:
        raise ValueError(
            f"{method.name} would form groups among {n:,} records at once, and {most:,} are the most here; "
            "use blocked_mdav, or strata (by)"
        )
    return 1


def _samples(
    transport: Transport, names: tuple[str, ...], columns: Sequence[WholeColumns], wanted: Sequence[int]
) -> list[Floats]:
    """Return a sample of the records of each stratum that is cut into several blocks; empty for others."""
    sizes = [min(max(microaggregation.SAMPLE, PER_BLOCK * blocks), MOST) for blocks in wanted]
    rates = tuple(
        min(1.0, size / max(one.present, 1)) if blocks > 1 else 0.0
        for size, one, blocks in zip(sizes, columns, wanted, strict=True)
    )
    found = transport.scan(partial(sample_records, names, rates), Reads(names), step="sampling")
    none = np.empty((0, len(names)))
    return [
        np.concatenate([none, *(one[stratum] for one in found if stratum in one)])
        for stratum in range(len(wanted))
    ]


def _notes(sample: Floats, options: Mapping[str, Any], sizes: Sequence[int]) -> list[str]:
    """Return notes on the blocks of a stratum and on what they cost, measured on a sample; none for one."""
    if len(sizes) == 1 or options["k"] == 1:
        return []
    rows = np.unique(
        np.linspace(0, len(sample) - 1, min(microaggregation.SAMPLE, len(sample))).astype(np.int64)
    )
    block = -(-len(rows) // len(sizes))
    said = f"groups were formed within {len(sizes)} blocks of {min(sizes):,} to {max(sizes):,} records"
    return [
        said,
        microaggregation.loss_note(sample[rows], options, block, microaggregation.sample_words(len(rows))),
    ]
