"""Where the tails of columns begin and what replaces them, for files that do not fit into memory.

The values at the ranks in question come from an exchange, counts and means beyond them from a scan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.engines.row_parts import by_bucket, joined
from sdckit.engines.transport import Reads
from sdckit.engines.value_buckets import find_buckets, values_by_piece
from sdckit.kernels.sums import exact_sum, rounded_mean
from sdckit.masking.coding import column_tails
from sdckit.masking.group_means import FEWEST
from sdckit.masking.tail_codes import joined_codes, median_rank

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sdckit.core.in_blocks import WholeColumns
    from sdckit.engines.transport import Block, Message, Transport
    from sdckit.engines.value_buckets import Buckets
    from sdckit.kernels.jit import Floats
    from sdckit.masking.tail_codes import Codes, Tail

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
        for piece, _, values in values_by_piece(block, self.names):
            found = self.buckets.pieces[piece].of_values(values, block.first)
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
    sums = [(Beyond(), Beyond()) for _ in cuts]
    for found in transport.scan(SumTails(names, tuple(cuts)), Reads(names), step="adding up tails"):
        for piece, both in found.items():
            sums[piece] = (_plus(sums[piece][0], both[0]), _plus(sums[piece][1], both[1]))
    return sums


def _plus(one: Beyond, other: Beyond) -> Beyond:
    """Return number and sum of two sets of values together."""
    return Beyond(one.number + other.number, one.total + other.total)
