"""Masking of groups, ranks and tails larger than memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.engines.plan import NONE, Splitters
from sdckit.engines.row_parts import RowParts, by_bucket, joined, matrix_of, strata_in
from sdckit.engines.transport import (
    Message,
    Node,
    Reads,
    blocks_of_points,
    count_blocks,
    grow,
    merged,
    without_small_blocks,
)
from sdckit.kernels.draws import CellDraws
from sdckit.kernels.ranks import sorted_rows
from sdckit.kernels.sums import deviations_from, exact_sum, rounded_mean
from sdckit.masking.coding import column_tails, joined_codes, median_rank
from sdckit.masking.mask_table import apply
from sdckit.masking.microaggregation import (
    FEWEST,
    SAMPLE,
    groups_in_block,
    largest_block,
    loss_note,
    run_aggregates,
    sample_words,
)
from sdckit.masking.swapping import partner_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sdckit.arrays import Floats, Ints
    from sdckit.core.registry import Method, WholeColumns
    from sdckit.engines.transport import Block, Transport
    from sdckit.masking.coding import Codes, Tail


FULL_BUCKET = 0.7  # share of the largest size of a bucket that is aimed at: samples miss it now and then
PER_BUCKET = 64  # sampled values to a bucket
CHOICE = CellDraws.of(b"sample")  # which rows are sampled: the same in all engines, and no secret


def values_by_piece(block: Block, names: Sequence[str]) -> Iterator[tuple[int, Ints, Floats]]:
    """Yield number, rows within the block and values of each piece: a column in a stratum, without gaps."""
    p = len(names)
    for stratum, rows in strata_in(block):
        for j, name in enumerate(names):
            values = block.original[name][rows]
            seen = ~np.isnan(values)
            yield stratum * p + j, rows[seen], values[seen]


@dataclass(frozen=True)
class SampleValues:
    """Task: values and numbers of rows that are chosen by their number alone, by piece."""

    names: tuple[str, ...]
    rate: float

    def __call__(self, block: Block) -> dict[int, tuple[Floats, Ints]]:
        """Return the sampled values of each piece of the block, and their rows."""
        chosen = CHOICE.uniforms(np.arange(block.first, block.first + block.rows), 0) < self.rate
        return {
            piece: (values[chosen[rows]], rows[chosen[rows]] + block.first)
            for piece, rows, values in values_by_piece(block, self.names)
        }


@dataclass(frozen=True)
class CountValues:
    """Task: how many values of a block lie in each bucket of each piece."""

    names: tuple[str, ...]
    splitters: tuple[Splitters, ...]

    def __call__(self, block: Block) -> dict[int, Ints]:
        """Return the counts of each piece."""
        return {
            piece: np.bincount(
                self.splitters[piece].buckets(values, NONE, (rows + block.first).astype(np.float64)),
                minlength=self.splitters[piece].number + 1,
            )
            for piece, rows, values in values_by_piece(block, self.names)
        }


@dataclass(frozen=True)
class PieceBuckets:
    """The buckets of a piece, numbered from `base` on; bucket b has the ranks starts[b] to starts[b + 1] - 1.

    Equal values are in the order of their rows.
    """

    base: int
    splitters: Splitters
    starts: Ints

    @property
    def n(self) -> int:
        """Number of values."""
        return int(self.starts[-1])

    def of_values(self, values: Floats, rows: Ints) -> Ints:
        """Return the bucket of each value, given its row."""
        return self.splitters.buckets(values, NONE, rows.astype(np.float64)) + self.base

    def of_ranks(self, ranks: Ints) -> Ints:
        """Return the bucket of each rank."""
        return np.searchsorted(self.starts, ranks, "right") - 1 + self.base

    def interval(self, bucket: int) -> tuple[int, int]:
        """Return the first rank of a bucket and the one after its last."""
        return int(self.starts[bucket - self.base]), int(self.starts[bucket - self.base + 1])


@dataclass(frozen=True)
class Buckets:
    """The buckets of all pieces of a file, numbered through."""

    pieces: tuple[PieceBuckets, ...]

    def piece_of(self, bucket: int) -> int:
        """Return the number of the piece that a bucket belongs to."""
        bases = [one.base for one in self.pieces]
        return int(np.searchsorted(bases, bucket, "right")) - 1


def find_buckets(transport: Transport, names: tuple[str, ...], sizes: Sequence[int], largest: int) -> Buckets:
    """Return buckets of at most about `largest` values for pieces of these sizes, by a sample and a count."""
    wanted = [max(1, -(-n // max(int(FULL_BUCKET * largest), 1))) for n in sizes]
    splitters = _splitters(transport, names, sizes, wanted)
    found = reduce(merged, transport.scan(CountValues(names, splitters), Reads(names), step="counting ranks"))
    counts = [found.get(piece, np.zeros(cuts.number + 1, np.int64)) for piece, cuts in enumerate(splitters)]
    bases = np.cumsum([0, *(len(one) for one in counts)]).tolist()
    return Buckets(
        tuple(
            PieceBuckets(base, cuts, np.append(0, np.cumsum(numbers)))
            for base, cuts, numbers in zip(bases, splitters, counts, strict=False)
        )
    )


def _splitters(
    transport: Transport, names: tuple[str, ...], sizes: Sequence[int], wanted: Sequence[int]
) -> tuple[Splitters, ...]:
    """Return what cuts each piece into so many buckets, from a sample; nothing for one bucket."""
    rates = [PER_BUCKET * buckets / n for n, buckets in zip(sizes, wanted, strict=True) if buckets > 1]
    parts: list[list[tuple[Floats, Ints]]] = [[(NONE, np.empty(0, np.int64))] for _ in sizes]
    if rates:
        task = SampleValues(names, min(1.0, max(rates)))
        for found in transport.scan(task, Reads(names), step="sampling"):
            for piece, sample in found.items():
                parts[piece].append(sample)
    result = []
    for part, buckets in zip(parts, wanted, strict=True):
        values, rows = (np.concatenate(columns) for columns in zip(*part, strict=True))
        order = np.lexsort((rows, values))
        chosen = order[np.unique(np.arange(1, buckets) * order.size // buckets)] if order.size else order
        result.append(Splitters.of(values[chosen], NONE, rows[chosen].astype(np.float64)))
    return tuple(result)


Ranks = dict[int, set[int]]  # wanted ranks of each piece
Found = dict[int, dict[int, float]]  # values by piece and rank


@dataclass(frozen=True)
class SendWanted:
    """First step: send the values of those buckets that hold a wanted rank."""

    names: tuple[str, ...]
    buckets: Buckets
    wanted: frozenset[int]

    def __call__(self, block: Block) -> Iterator[Message]:
        """Yield the messages of a block of rows."""
        for piece, rows, values in values_by_piece(block, self.names):
            found = self.buckets.pieces[piece].of_values(values, rows + block.first)
            for message in by_bucket(found, 0, values):
                if message.bucket in self.wanted:
                    yield message


@dataclass(frozen=True)
class ValuesAtRanks:
    """Last stage: the values at the wanted ranks of a bucket."""

    buckets: Buckets
    ranks: Mapping[int, set[int]]

    def __call__(self, bucket: int, messages: Sequence[Message]) -> dict[int, float]:
        """Return the value at each wanted rank of the bucket."""
        piece = self.buckets.piece_of(bucket)
        first, end = self.buckets.pieces[piece].interval(bucket)
        ordered = np.sort(joined(messages, 0, 1)[0])
        return {rank: float(ordered[rank - first]) for rank in self.ranks[piece] if first <= rank < end}


def values_at_ranks(
    transport: Transport, names: tuple[str, ...], sizes: Sequence[int], ranks: Ranks
) -> Found:
    """Return the values at some ranks, from 0, of pieces with so many values."""
    result: Found = {piece: {} for piece in ranks}
    if not any(ranks.values()):
        return result
    buckets = find_buckets(transport, names, sizes, transport.bucket_rows)
    wanted = {
        int(number)
        for piece, some in ranks.items()
        for number in buckets.pieces[piece].of_ranks(np.array(sorted(some), np.int64))
    }
    first = SendWanted(names, buckets, frozenset(wanted))
    last = ValuesAtRanks(buckets, ranks)
    for bucket, found in transport.exchange(first, Reads(names), [], last, step="finding cuts").items():
        result[buckets.piece_of(bucket)] |= found
    return result


class Beyond(NamedTuple):
    """Number and exact sum of the values from a cut on, seen from the side of the tail."""

    number: int = 0
    total: int = 0


@dataclass(frozen=True)
class SumTails:
    """Task: number and exact sum of the values of each piece beyond the cuts of both tails."""

    names: tuple[str, ...]
    cuts: tuple[tuple[float, float], ...]  # of each piece, each seen from its own side

    def __call__(self, block: Block) -> dict[int, tuple[Beyond, Beyond]]:
        """Return counts and sums of the pieces of a block."""
        return {
            piece: (_beyond(values, self.cuts[piece][0]), _beyond(-values, self.cuts[piece][1]))
            for piece, _, values in values_by_piece(block, self.names)
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
    tails = [pair for chosen in options for pair in _tails(chosen, p)]
    replaces = [str(chosen["replace"]) for chosen in options for _ in range(p)]
    ranks = {
        piece: _wanted_ranks(tails[piece], n, limit=replaces[piece] == "limit")
        for piece, n in enumerate(sizes)
    }
    values = values_at_ranks(transport, names, sizes, ranks)
    cuts = [_cuts(tails[piece], n, values[piece]) for piece, n in enumerate(sizes)]
    sums = _sum_tails(transport, names, cuts)
    means = [float(mean) for one in columns for mean in one.means]
    codes: list[Codes] = []
    for piece, n in enumerate(sizes):
        middle = means[piece] if replaces[piece] == "mean" else values[piece].get(median_rank(n), math.nan)
        ends = [
            (cut, tail.code(cut, replaces[piece], found.number, rounded_mean(found.total, found.number)))
            for cut, tail, found in zip(cuts[piece], tails[piece], sums[piece], strict=True)
        ]
        codes.append(joined_codes(ends[0], ends[1], middle))
    few = [
        any(t.by_limit and 0 < b.number < FEWEST for t, b in zip(tails[piece], sums[piece], strict=True))
        for piece in range(len(sizes))
    ]
    return [
        replace(one, codes=tuple(codes[i * p : (i + 1) * p]), few_coded=any(few[i * p : (i + 1) * p]))
        for i, one in enumerate(columns)
    ]


def _tails(options: Mapping[str, Any], p: int) -> list[tuple[Tail, Tail]]:
    """Return both tails of each of p columns as options ask for them."""
    chosen = {name: options[name] for name in ("top", "bottom", "above", "below")}
    return column_tails(p, **chosen)


def _wanted_ranks(tails: tuple[Tail, Tail], n: int, *, limit: bool) -> set[int]:
    """Return the ranks at which tails of n values begin by their shares, and maybe the median's."""
    upper, lower = (tail.count(n) for tail in tails)
    found = ({n - upper} if upper else set()) | ({lower - 1} if lower else set())
    return found | ({median_rank(n)} if limit and n else set())


def _cuts(tails: tuple[Tail, Tail], n: int, values: Mapping[int, float]) -> tuple[float, float]:
    """Return the least coded value of each tail, seen from its own side."""
    upper, lower = tails
    high, low = values.get(n - upper.count(n), math.nan), values.get(lower.count(n) - 1, math.nan)
    return upper.cut(n, high), lower.cut(n, -low)


def _sum_tails(
    transport: Transport, names: tuple[str, ...], cuts: Sequence[tuple[float, float]]
) -> list[tuple[Beyond, Beyond]]:
    """Return number and exact sum of the values in both tails of each piece."""
    task = SumTails(names, tuple(cuts))
    found = reduce(merged, transport.scan(task, Reads(names), step="adding up tails"))
    return [found.get(piece, (Beyond(), Beyond())) for piece in range(len(cuts))]


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
class SendValues:
    """First step: send each value with its row to the bucket of its rank, and the partners of ranks."""

    names: tuple[str, ...]
    buckets: Buckets
    parts: RowParts
    skipped: frozenset[int] = frozenset()  # pieces with too few values
    swaps: Mapping[int, Swap] | None = None

    def __call__(self, block: Block) -> Iterator[Message]:
        """Yield the messages of a block of rows."""
        for piece, rows, values in values_by_piece(block, self.names):
            if piece not in self.skipped:
                buckets = self.buckets.pieces[piece].of_values(values, rows + block.first)
                yield from by_bucket(buckets, VALUES, values, rows + block.first)
        for number, (piece, swap) in enumerate((self.swaps or {}).items()):
            planned_at = number * self.parts.rows // len(self.swaps or ())
            if block.first <= planned_at < block.first + block.rows:
                yield from self._partners(piece, swap)

    def _partners(self, piece: int, swap: Swap) -> Iterator[Message]:
        """Yield the partners of all ranks of a piece to the buckets that hold these ranks."""
        found = self.buckets.pieces[piece]
        for first, partners in swap.partners():
            ranks = np.arange(first, first + partners.size)
            yield from by_bucket(found.of_ranks(ranks), PARTNERS, ranks, partners)


def _sorted(messages: Sequence[Message]) -> tuple[Floats, Ints]:
    """Return the values of a bucket in ascending order, equal ones by row, and their rows."""
    values, rows = joined(messages, VALUES, 2)
    order = sorted_rows(values)[0]
    return values[order], rows[order].astype(np.int64)


@dataclass(frozen=True)
class SwapValues:
    """Stage: send each value to the rank that it swaps with, and keep the rows in the order of ranks."""

    buckets: Buckets

    def __call__(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the messages of a bucket of ranks."""
        values, rows = _sorted(messages)
        if not values.size:
            return
        piece = self.buckets.pieces[self.buckets.piece_of(bucket)]
        first = piece.interval(bucket)[0]
        ranks, partners = joined(messages, PARTNERS, 2)
        to = np.empty(values.size, np.int64)
        to[ranks - first] = partners
        yield Message(bucket, ROWS, (rows,))
        owner = piece.of_ranks(to)
        yield from by_bucket(owner, MOVED, to - piece.starts[owner - piece.base], values)


@dataclass(frozen=True)
class ReturnSwapped:
    """Stage: hand the values that arrived at the ranks of a bucket to the rows of these ranks."""

    buckets: Buckets
    parts: RowParts
    columns: int

    def __call__(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the messages of a bucket of ranks."""
        (rows,) = joined(messages, ROWS, 1)
        if rows.size:
            places, moved = joined(messages, MOVED, 2)
            values = np.empty(rows.size)
            values[places] = moved
            yield from self.parts.sent(self.buckets.piece_of(bucket) % self.columns, rows, values)


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
        return run_aggregates(values, starts, self.k, self.aggregate)


@dataclass(frozen=True)
class SendRuns:
    """Stage: send sorted values to the bucket in which their run begins."""

    buckets: Buckets
    runs: Mapping[int, Runs]

    def __call__(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the messages of a bucket of ranks."""
        values, rows = _sorted(messages)
        if not values.size:
            return
        number = self.buckets.piece_of(bucket)
        piece = self.buckets.pieces[number]
        ranks = piece.interval(bucket)[0] + np.arange(values.size)
        owner = piece.of_ranks(self.runs[number].begins(ranks))
        yield from by_bucket(owner, MOVED, ranks, values, rows)


@dataclass(frozen=True)
class AverageRuns:
    """Stage: aggregate the runs that begin in a bucket and hand the results to their rows."""

    buckets: Buckets
    parts: RowParts
    runs: Mapping[int, Runs]
    columns: int

    def __call__(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the messages of a bucket of ranks."""
        ranks, values, rows = joined(messages, MOVED, 3)
        if not ranks.size:
            return
        order = np.argsort(ranks)  # messages come in the order of their buckets' numbers
        number = self.buckets.piece_of(bucket)
        published = self.runs[number].published(int(ranks[order[0]]), values[order])
        yield from self.parts.sent(number % self.columns, rows[order], published)


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
    present = np.flatnonzero(~np.isnan(values).all(axis=1))
    for stratum, rows in strata_in(block):
        chosen = np.intersect1d(rows, present, assume_unique=True)
        yield stratum, chosen, values[chosen]


@dataclass(frozen=True)
class SampleRecords:
    """Task: records of each stratum that are chosen by their row number alone."""

    names: tuple[str, ...]
    rates: tuple[float, ...]

    def __call__(self, block: Block) -> dict[int, Floats]:
        """Return the sampled records of each stratum in the block."""
        draws = CHOICE.uniforms(np.arange(block.first, block.first + block.rows), 0)
        return {
            stratum: values[draws[rows] < self.rates[stratum]]
            for stratum, rows, values in present_records(block, self.names)
        }


@dataclass(frozen=True)
class Blocks:
    """Trees that say to which block a record goes, by stratum; blocks are numbered through."""

    trees: tuple[Node | int, ...]
    scales: tuple[Scale, ...]

    @property
    def bases(self) -> Ints:
        """Number of the first block of each stratum, and the number of all blocks at the end."""
        return np.cumsum([0, *(count_blocks(tree) for tree in self.trees)])

    def of(self, stratum: int, values: Floats) -> Ints:
        """Return the block of each record of a stratum."""
        found = blocks_of_points(self.trees[stratum], self.scales[stratum].points(values))
        return found + self.bases[stratum]

    def stratum_of(self, number: int) -> int:
        """Return the stratum of a block."""
        return int(np.searchsorted(self.bases, number, "right")) - 1


@dataclass(frozen=True)
class CountRecords:
    """Task: how many records of a block of rows go to each block of similar records."""

    names: tuple[str, ...]
    blocks: Blocks

    def __call__(self, block: Block) -> Ints:
        """Return the number of records for each block of similar ones."""
        total = np.zeros(self.blocks.bases[-1], np.int64)
        for stratum, _, values in present_records(block, self.names):
            total += np.bincount(self.blocks.of(stratum, values), minlength=len(total))
        return total


@dataclass(frozen=True)
class SendRecords:
    """First step: send each record with its row number to its block."""

    names: tuple[str, ...]
    blocks: Blocks

    def __call__(self, block: Block) -> Iterator[Message]:
        """Yield the messages of a block of rows."""
        for stratum, rows, values in present_records(block, self.names):
            yield from by_bucket(self.blocks.of(stratum, values), 0, rows + block.first, *values.T)


@dataclass(frozen=True)
class GroupRecords:
    """Stage: form groups within a block of similar records and hand what is published to their rows."""

    method: Method
    names: tuple[str, ...]
    options: tuple[Mapping[str, Any], ...]
    blocks: Blocks
    parts: RowParts

    def __call__(self, number: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the messages of a block of similar records."""
        rows, *columns = joined(messages, 0, 1 + len(self.names))
        if not rows.size:
            return
        order = np.argsort(rows)
        values = np.asfortranarray(np.column_stack(columns)[order])
        stratum = self.blocks.stratum_of(number)
        options = dict(self.options[stratum])
        if "block" in options:
            options["block"] = len(values)
        points = self.blocks.scales[stratum].points(values)
        several = isinstance(self.blocks.trees[stratum], Node)
        groups = groups_in_block(values, options["k"], points) if several else None
        rng = np.random.default_rng(0)  # no method that forms groups draws
        masked = apply(self.method, values, options, rng, names=self.names, basis=points, groups=groups)
        yield from self.parts.sent(0, rows[order].astype(np.int64), *masked.T)


def find_blocks(
    transport: Transport,
    names: tuple[str, ...],
    columns: Sequence[WholeColumns],
    method: Method,
    options: Sequence[Mapping[str, Any]],
) -> tuple[Blocks, list[list[str]]]:
    """Return the blocks in which a method forms groups, and notes on them for each stratum."""
    scales = tuple(Scale.of(one) for one in columns)
    wanted = [
        _blocks_wanted(transport, method, one.present, chosen)
        for one, chosen in zip(columns, options, strict=True)
    ]
    if max(wanted) == 1:
        return Blocks(tuple(0 for _ in wanted), scales), [[] for _ in wanted]
    samples = _samples(transport, names, columns, wanted)
    trees = tuple(
        grow(scale.points(sample), count)
        for scale, sample, count in zip(scales, samples, wanted, strict=True)
    )
    found = Blocks(trees, scales)
    counts = _records_by_block(transport, names, found)
    merged = tuple(
        without_small_blocks(tree, sizes, 3 * chosen["k"])
        for tree, sizes, chosen in zip(trees, counts, options, strict=True)
    )
    if any(count_blocks(one) < len(sizes) for one, sizes in zip(merged, counts, strict=True)):
        found = Blocks(merged, scales)
        counts = _records_by_block(transport, names, found)
    notes = [
        _notes(sample, chosen, sizes) for sample, chosen, sizes in zip(samples, options, counts, strict=True)
    ]
    return found, notes


def _records_by_block(transport: Transport, names: tuple[str, ...], blocks: Blocks) -> list[list[int]]:
    """Return the number of records in each block of each stratum, by a scan."""
    found = transport.scan(CountRecords(names, blocks), Reads(names), step="counting records")
    counts = np.sum(found, axis=0).tolist()
    return [counts[a:b] for a, b in pairwise(blocks.bases)]


def _blocks_wanted(transport: Transport, method: Method, n: int, options: Mapping[str, Any]) -> int:
    """Return into how many blocks n records are cut; ValueError for too many records in one block."""
    if "block" in options:
        largest = largest_block(options["k"], options["block"])
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
    sizes = [min(max(SAMPLE, PER_BLOCK * blocks), MOST) for blocks in wanted]
    rates = tuple(
        min(1.0, size / max(one.present, 1)) if blocks > 1 else 0.0
        for size, one, blocks in zip(sizes, columns, wanted, strict=True)
    )
    parts: list[list[Floats]] = [[np.empty((0, len(names)))] for _ in wanted]
    for found in transport.scan(SampleRecords(names, rates), Reads(names), step="sampling"):
        for stratum, values in found.items():
            parts[stratum].append(values)
    return [np.concatenate(some) for some in parts]


def _notes(sample: Floats, options: Mapping[str, Any], sizes: Sequence[int]) -> list[str]:
    """Return notes on the blocks of a stratum and on what they cost, measured on a sample; none for one."""
    if len(sizes) == 1 or options["k"] == 1:
        return []
    rows = np.unique(np.linspace(0, len(sample) - 1, min(SAMPLE, len(sample))).astype(np.int64))
    block = -(-len(rows) // len(sizes))
    said = f"groups were formed within {len(sizes)} blocks of {min(sizes):,} to {max(sizes):,} records"
    return [said, loss_note(sample[rows], options, block, sample_words(len(rows)))]
