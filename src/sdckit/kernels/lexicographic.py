"""Cut rows of several columns into buckets of lexicographic order, and sort the rows of a bucket.

Splitters are rows themselves. Bucket 2i holds the rows between splitters i - 1 and i, bucket 2i + 1 the rows
equal to splitter i. An array of length 0 stands for a middle column that is not used.
"""

from __future__ import annotations

import numpy as np

from sdckit.kernels.jit import Floats, Int, Ints, inlined, inner, kernel
from sdckit.kernels.ranks import block_ends, sorted_rows

FEW = 0.1  # share of tied rows up to which only these are sorted once more


@inlined
def _compared(a: float, b: float, c: float, x: float, t: float, y: float) -> int:
    """Return -1, 0 or 1 if the row (a, b, c) is before, equal to or after the row (x, t, y)."""
    if a != x:
        return -1 if a < x else 1
    if b != t:
        return -1 if b < t else 1
    if c != y:
        return -1 if c < y else 1
    return 0


@inner
def _bucket(x: float, t: float, y: float, first: Floats, middle: Floats, last: Floats) -> Int:
    """Return the bucket of the row (x, t, y) among the splitters."""
    low, high = np.int64(0), np.int64(first.size)
    while low < high:
        half = (low + high) >> 1
        found = _compared(first[half], middle[half] if middle.size else 0.0, last[half], x, t, y)
        if found == 0:
            return 2 * half + 1
        if found < 0:
            low = half + 1
        else:
            high = half
    return 2 * low


@kernel
def number_buckets(x: Floats, t: Floats, y: Floats, first: Floats, middle: Floats, last: Floats) -> Ints:
    """Return the bucket of each row (x, t, y) among splitters in lexicographic order."""
    buckets = np.empty(x.size, np.int64)
    for i in range(x.size):
        buckets[i] = _bucket(x[i], t[i] if t.size else 0.0, y[i], first, middle, last)
    return buckets


@kernel
def value_buckets(values: Floats, splitters: Floats) -> Ints:
    """Return the bucket of each value among distinct splitters in ascending order."""
    buckets = np.empty(values.size, np.int64)
    for i in range(values.size):
        low, high = np.int64(0), np.int64(splitters.size)
        while low < high:
            half = (low + high) >> 1
            if splitters[half] < values[i]:
                low = half + 1
            else:
                high = half
        buckets[i] = 2 * low + (low < splitters.size and splitters[low] == values[i])
    return buckets


@kernel
def group_rows(buckets: Ints, number: int) -> tuple[Ints, Ints]:
    """Return the row numbers ordered by bucket, and where each bucket starts, with the end of the last."""
    starts = np.zeros(number + 1, np.int64)
    for i in range(buckets.size):
        starts[buckets[i] + 1] += 1
    for b in range(number):
        starts[b + 1] += starts[b]
    rows = np.empty(buckets.size, np.int64)
    place = starts[:-1].copy()
    for i in range(buckets.size):
        rows[place[buckets[i]]] = i
        place[buckets[i]] += 1
    return rows, starts


def sort_rows(first: Floats, *others: Floats) -> tuple[Ints, Ints]:
    """Return the rows in lexicographic order, and the start of the tie block of the first column at each.

    Rows equal in all columns keep their order. Untied columns are sorted once; where few rows are tied,
    only these are sorted by the other columns.
    """
    order, start = sorted_rows(first)
    others = tuple(other for other in others if other.size)
    tied = _tied_positions(start)
    if not tied.size or not others:
        return order, start
    if tied.size <= FEW * first.size:
        rows = order[tied]
        keys = [other[rows] for other in reversed(others)]
        order[tied] = rows[np.lexsort((*keys, start[tied]))]
        return order, start
    order = np.arange(first.size)
    for column in reversed((first, *others)):
        again, start = sorted_rows(column[order])
        order = order[again]
    return order, start


def _tied_positions(start: Ints) -> Ints:
    """Return the positions whose tie block is longer than one, given the start of each position's block."""
    opens = np.append(start == np.arange(start.size), True)
    return np.flatnonzero(~(opens[:-1] & opens[1:]))


def block_lengths(start: Ints) -> Ints:
    """Return the length of the tie block at each position, given the start of each position's block."""
    return block_ends(start) - start + 1
