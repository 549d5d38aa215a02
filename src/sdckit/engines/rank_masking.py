"""Rank swapping and individual ranking of files that do not fit into memory, exactly as in memory.

Values go to buckets of ranks and are sorted there; new values go by rank to the bucket that holds their
rows, and from there to parts of rows. Which ranks swap does not depend on the values: one task for each
column draws it, and sends it to the buckets in stretches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.engines.row_parts import RowParts, by_bucket, joined
from sdckit.engines.transport import Message
from sdckit.engines.value_buckets import values_by_piece
from sdckit.kernels.ranks import sorted_rows
from sdckit.masking.group_means import run_aggregates
from sdckit.masking.swapping_kernels import partner_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sdckit.engines.transport import Block
    from sdckit.engines.value_buckets import Buckets
    from sdckit.kernels.draws import CellDraws
    from sdckit.kernels.jit import Floats, Ints

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
        yield self.parts.touches(block, 0)
        for piece, rows, values in values_by_piece(block, self.names):
            if piece not in self.skipped:
                buckets = self.buckets.pieces[piece].of_values(values, block.first)
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
    parts: RowParts

    def __call__(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the messages of a bucket of ranks."""
        yield from touched(bucket, messages)
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
        yield from self.parts.passed_on(messages)
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

    def begin(self, rank: int) -> int:
        """Return the first rank of the run that a rank belongs to."""
        return min(rank // self.k * self.k, self.last)

    def end(self, rank: int) -> int:
        """Return the rank after the run that a rank belongs to."""
        return self.n if rank >= self.last else self.begin(rank) + self.k

    def published(self, first: int, values: Floats) -> Floats:
        """Return what is published of ascending values from rank `first` on, which make whole runs."""
        starts = np.arange(first, min(self.last, first + values.size - 1) + 1, self.k) - first
        return run_aggregates(values, starts, self.k, self.aggregate)


@dataclass(frozen=True)
class SendRuns:
    """Stage: send sorted values to the bucket in which their run begins."""

    buckets: Buckets
    parts: RowParts
    runs: Mapping[int, Runs]

    def __call__(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the messages of a bucket of ranks."""
        yield from touched(bucket, messages)
        values, rows = _sorted(messages)
        if not values.size:
            return
        number = self.buckets.piece_of(bucket)
        piece, runs = self.buckets.pieces[number], self.runs[number]
        first, end = piece.interval(bucket)
        begin = runs.begin(first)
        cut = min(runs.end(first), end) if begin < first else first  # up to there, an earlier bucket's run
        if cut > first:
            owner = int(piece.of_ranks(np.array([begin]))[0])
            yield Message(owner, MOVED, (np.array([first]), values[: cut - first], rows[: cut - first]))
        if end > cut:
            yield Message(bucket, MOVED, (np.array([cut]), values[cut - first :], rows[cut - first :]))


@dataclass(frozen=True)
class AverageRuns:
    """Stage: aggregate the runs that begin in a bucket and hand the results to their rows."""

    buckets: Buckets
    parts: RowParts
    runs: Mapping[int, Runs]
    columns: int

    def __call__(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the messages of a bucket of ranks."""
        yield from self.parts.passed_on(messages)
        found = sorted(
            (message for message in messages if message.kind == MOVED), key=lambda one: int(one.arrays[0][0])
        )
        if not found:
            return
        firsts, values, rows = joined(found, MOVED, 3)
        number = self.buckets.piece_of(bucket)
        published = self.runs[number].published(int(firsts[0]), values)
        yield from self.parts.sent(number % self.columns, rows, published)


def touched(bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages that name parts of rows again, to the same bucket of the next stage."""
    for message in messages:
        if message.kind < 0:
            yield message._replace(bucket=bucket)


def stages_of(
    how: str, buckets: Buckets, parts: RowParts, columns: int, runs: Mapping[int, Runs]
) -> list[Any]:
    """Return the stages of rank swapping ("swap") or individual ranking ("runs")."""
    if how == "swap":
        return [SwapValues(buckets, parts), ReturnSwapped(buckets, parts, columns)]
    return [SendRuns(buckets, parts, runs), AverageRuns(buckets, parts, runs, columns)]
