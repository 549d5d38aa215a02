"""Stages of the exchange that ranks rows without weights: by original value, then by masked value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sdckit.engines.cuts import Rows
from sdckit.engines.plan import (
    ORDERED,
    RANKED,
    ROWS,
    SUMS,
    PiecePlan,
    PiecesByBucket,
    by_bucket,
    joined,
    narrow,
    rank_bucket,
)
from sdckit.engines.rank_parts import Part, RankedRows, add_parts, rank_part, row_order_part
from sdckit.engines.runs import RankRun, couple_bucket, read_sums, send_runs
from sdckit.engines.transport import Message
from sdckit.engines.values import send_values, values_part

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints


@dataclass(frozen=True)
class RankOriginal:
    """Ranks the rows of a bucket of the original order, and sends them on to buckets of the masked order."""

    pieces: PiecesByBucket

    def __call__(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield masked values with original ranks and tie blocks and, if wanted, both columns in order."""
        plan, at = self.pieces.find(bucket)
        rows = Rows(*joined(messages, ROWS))
        ranks = rank_bucket(plan.original, plan.tallies[0], at, rows.x, rows.t, rows.y)
        rows = rows.take(ranks.order)
        run = RankRun(ranks.first, rows.x, rows.y, ranks.begin, ranks.length)
        yield from _send_ranked(plan, rows, run)
        yield from send_runs(plan, run, bucket)
        if plan.wanted.streams:
            yield from send_values(plan, rows)
        wanted = [rank for rank in plan.wanted.ranks if 0 <= rank - run.first < run.size]
        if wanted:
            yield Message(bucket, ORDERED, (np.array(wanted), rows.x[np.array(wanted) - run.first]))


def _send_ranked(plan: PiecePlan, rows: Rows, run: RankRun) -> Iterator[Message]:
    """Yield rows in original order to their buckets of the masked order, with ranks and tie blocks."""
    back = run.first + np.arange(run.size) - run.begin
    for bucket, chosen in by_bucket(plan.masked, rows.turned):
        part = rows.take(chosen)
        head = np.array([run.first])
        blocks = (narrow(back[chosen]), narrow(run.length[chosen])) if run.tied else (head[:0], head[:0])
        yield Message(plan.first_bucket + bucket, RANKED, (head, part.y, part.t, narrow(chosen), *blocks))


def _read_ranked(messages: Sequence[Message]) -> tuple[Floats, Floats, Ints, Ints, Ints]:
    """Return masked values, column that breaks ties, original ranks, and begin and length of tie blocks."""
    found: list[tuple[Floats, Floats, Ints, Ints, Ints]] = []
    for head, y, t, offsets, back, length in (m.arrays for m in messages if m.kind == RANKED):
        ranks = offsets.astype(np.int64) + head[0]
        tied = back.size > 0
        begin = ranks - back.astype(np.int64) if tied else ranks
        found.append((y, t, ranks, begin, length.astype(np.int64) if tied else np.ones(y.size, np.int64)))
    y, t, ranks, begin, length = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return y, t, ranks, begin, length


@dataclass(frozen=True)
class RankMasked:
    """Ranks the rows of a bucket of the masked order, and adds up rank distances and sums of both orders."""

    pieces: PiecesByBucket

    def __call__(self, bucket: int, messages: Sequence[Message]) -> Part:
        """Return the sums over the rows of a bucket."""
        plan, at = self.pieces.find(bucket)
        parts = [read_sums(m) for m in messages if m.kind == SUMS]
        parts += [
            Part(ordered=dict(zip(*map(list, m.arrays), strict=True))) for m in messages if m.kind == ORDERED
        ]
        masked = np.empty(0)
        if any(message.kind == RANKED for message in messages):
            part, masked = _rank_masked(plan, at, messages)
            parts.append(part)
        if plan.wanted.streams:
            parts.append(values_part(plan, at, messages, masked))
        return add_parts(parts)


def _rank_masked(plan: PiecePlan, at: int, messages: Sequence[Message]) -> tuple[Part, Floats]:
    """Return the sums of a bucket's rows, and its masked values in ascending order."""
    y, t, r, begin, length = _read_ranked(messages)
    second = t if t.size else r.astype(np.float64)
    ranks = rank_bucket(plan.masked, plan.tallies[1], at, y, second)
    order = ranks.order
    s = ranks.first + np.arange(order.size)
    rows = RankedRows(r[order], begin[order], length[order], s, ranks.begin, ranks.length)
    if plan.wanted.ties == "rows":
        return row_order_part(rows), y
    ordered = y[order]
    coupled = couple_bucket(plan, RankRun(ranks.first, ordered, ordered, ranks.begin, ranks.length), messages)
    return add_parts([rank_part(rows, expected=plan.wanted.expected), coupled]), ordered


def empty_bucket_part(plan: PiecePlan, bucket: int) -> Part:
    """Return the sums of a bucket that got no messages: distances across its stretch of values."""
    return values_part(plan, bucket - plan.first_bucket, (), np.empty(0)) if plan.wanted.streams else Part()
