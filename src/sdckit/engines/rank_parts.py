"""Partial sums of rank distances over some rows of a variable, added up over buckets and cells."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Ints, kernel, plain
from sdckit.kernels.ranks import RankSums, gap_distance, mean_gap

NOTHING = RankSums(0, 0, 0)


@dataclass(frozen=True)
class Part:
    """Sums over some rows: rank distances by tie rule, exact whole numbers, floats, and largest values."""

    ranks: Mapping[str, RankSums] = field(default_factory=dict)
    whole: Mapping[str, int] = field(default_factory=dict)
    floats: Mapping[str, float] = field(default_factory=dict)
    largest: Mapping[str, int] = field(default_factory=dict)
    ordered: Mapping[int, float] = field(default_factory=dict)  # original values by rank


def add_parts(parts: Iterable[Part]) -> Part:
    """Return the sum of parts; floats are added without rounding errors that depend on their order."""
    ranks: dict[str, RankSums] = defaultdict(lambda: NOTHING)
    whole: dict[str, int] = defaultdict(int)
    floats: dict[str, list[float]] = defaultdict(list)
    largest: dict[str, int] = defaultdict(int)
    ordered: dict[int, float] = {}
    for part in parts:
        for rule, sums in part.ranks.items():
            ranks[rule] = RankSums(*(a + b for a, b in zip(ranks[rule], sums, strict=True)))
        for name, number in part.whole.items():
            whole[name] += number
        for name, value in part.floats.items():
            floats[name].append(value)
        for name, number in part.largest.items():
            largest[name] = max(largest[name], number)
        ordered |= part.ordered
    sums_of_floats = {name: math.fsum(values) for name, values in floats.items()}
    return Part(dict(ranks), dict(whole), sums_of_floats, dict(largest), ordered)


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


def rank_part(rows: RankedRows, *, expected: bool) -> Part:
    """Return the sums of rank distances under mid-ranks, least and largest tie-breaking, and tie sums."""
    average = gap_distance(rows.middle_gaps2)
    ranks = dict.fromkeys(("average", "min", "max"), average)
    if rows.tied:
        gaps = np.empty(rows.r.size, np.int64)
        _largest_gaps2(*rows, gaps)
        ranks |= {"min": gap_distance(2 * (rows.r - rows.s)), "max": gap_distance(gaps)}
    floats = {"expected": float(_expected_sum(*rows[1:3], *rows[4:]))} if expected else {}
    return Part(ranks, _tie_sums(rows.length, rows.other_length), floats)


def _tie_sums(lengths: Ints, others: Ints) -> dict[str, int]:
    """Return the sums of L**2 - 1 over rows, that is of L**3 - L over tie blocks, and rows of even blocks."""
    squares = (gap_distance(part).squared4 - part.size for part in (lengths, others))
    return {**dict(zip(("ties", "masked ties"), squares, strict=True)), "even": int((lengths % 2 == 0).sum())}


def row_order_part(rows: RankedRows) -> Part:
    """Return the sums of rank distances with ties in the order of rows, and in their reversed order."""
    last = 2 * (rows.middle_gaps2 - (rows.r - rows.s))
    return Part({"first": gap_distance(2 * (rows.r - rows.s)), "last": gap_distance(last)})


@kernel
def _largest_gaps2(
    r: Ints, begin: Ints, length: Ints, s: Ints, other: Ints, other_length: Ints, out: Ints
) -> None:
    """Write twice the rank difference of each row for the tie-breaking of largest distance.

    Rows tied in the original are in descending masked order, and the other way round. Rows equal in both
    files, which are neighbours here, get opposite orders.
    """
    i = 0
    while i < r.size:
        end = i + 1
        while end < r.size and begin[end] == begin[i] and other[end] == other[i]:
            end += 1
        for t in range(i, end):
            ours = 2 * begin[t] + length[t] - 1 - (r[i] + r[end - 1] - r[t])
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
    whole = 4 * n * (n * n - 1) // 3 - part.whole["ties"] / 3 + part.whole["even"]
    return (whole - part.floats["level"]) / (4 * n)
