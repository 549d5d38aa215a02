"""Sorting a column together with a label per row, and finding its tie blocks, without argsort.

Sorting 64-bit keys is several times faster than an argsort, so a key carries both the value (its
high bits) and a label (its low bits): the row number, or the row's rank in another column. Values
that agree in the bits that were kept are *near ties*; they are looked at again, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdckit.compiled import Bools, Floats, Int, Ints, inlined, kernel

SMALL = 4096  # below this, sampling a column for a heavy value costs more than it saves
CHUNK = 1024
LONG_RUN = 64  # a longer run of near ties is sorted apart
QUANTISED = 1 << 22  # from here on, too few bits of a float64 fit beside the label


@inlined
def _ordered(bits: Int) -> Int:
    """Map the bits of a float64 to an integer of the same order; -0.0 becomes 0.0."""
    flipped = bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)
    return flipped + (flipped == -1)


@kernel
def fill_keys(bits: Ints, labels: Ints, width: int, keys: Ints) -> Int:
    """Write value-and-label keys; return the value bits that were cut off anywhere."""
    low = (np.int64(1) << width) - 1
    cut = np.int64(0)
    for i in range(bits.size):
        value = _ordered(bits[i])
        cut |= value & low
        keys[i] = (value & ~low) | labels[i]
    return cut


@kernel
def _fill_keys_apart(bits: Ints, labels: Ints, width: int, heavy: Int, keys: Ints) -> tuple[Int, Int]:
    """The same, but rows that hold the value `heavy` go to the end; return (cut bits, rows in front)."""
    low = (np.int64(1) << width) - 1
    cut = np.int64(0)
    front = np.int64(0)
    back = np.int64(bits.size - 1)
    for i in range(bits.size):
        value = _ordered(bits[i])
        cut |= value & low
        key = (value & ~low) | labels[i]
        keys[front] = key  # written on both sides, kept on one: no branch to mispredict
        keys[back] = key
        is_heavy = np.int64(value == heavy)
        front += 1 - is_heavy
        back -= is_heavy
    return cut, front


@kernel
def _count_cells(bits: Ints, counts: Ints) -> None:
    """Histogram of the 16 leading bits of the ordered values."""
    for i in range(bits.size):
        counts[(_ordered(bits[i]) >> 48) + 32768] += 1


@kernel
def _fill_quantised_keys(
    bits: Ints, labels: Ints, width: int, below: Floats, step: Floats, keys: Ints
) -> None:
    """Write keys whose high bits interpolate the column's own distribution function.

    Every operation is monotone in the value, rounding included, so the order is kept; unequal
    values may share a key, equal ones always do.
    """
    for i in range(bits.size):
        value = _ordered(bits[i])
        cell = (value >> 48) + 32768
        share = below[cell] + np.float64(value & 0xFFFFFFFFFFFF) * step[cell]
        keys[i] = (np.int64(share) << width) | labels[i]


@dataclass(frozen=True)
class SortedKeys:
    """Keys in order. `exact`: equal high bits are true ties; `heavy`: a slice of equal values."""

    keys: Ints
    width: int
    exact: bool
    heavy: slice

    @property
    def labels(self) -> Ints:
        """The label of each position."""
        return self.keys & ((np.int64(1) << self.width) - 1)


def sort_keys(values: Floats, labels: Ints, *, inside_ties: bool = True) -> SortedKeys:
    """Sort value-and-label keys; with `inside_ties=False` labels of equal values may stay unordered."""
    n = values.size
    bits = values.view(np.int64)
    width = max(n - 1, 1).bit_length()
    keys = np.empty(n, np.int64)
    nowhere = slice(0, 0)
    heavy = _heavy_value(values)
    if heavy is not None:
        target = np.int64(_ordered_bits(heavy))
        cut, front = _fill_keys_apart(bits, labels, width, target, keys)
        block = _sort_apart(keys, front, target >> width << width, inside_ties=inside_ties)
        return SortedKeys(keys, width, cut == 0, block)
    if n >= QUANTISED:
        below, step = _quantiser(bits, width)
        _fill_quantised_keys(bits, labels, width, below, step, keys)
        cut = 1
    else:
        cut = fill_keys(bits, labels, width, keys)
    keys.sort()
    return SortedKeys(keys, width, cut == 0, nowhere)


def _ordered_bits(value: float) -> int:
    bits = int(np.float64(value + 0.0).view(np.int64))
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


def _heavy_value(values: Floats) -> float | None:
    """A value that seems to fill at least an eighth of the column, from a sample of 64 rows."""
    if values.size < SMALL:
        return None
    sample = np.sort(values[:: values.size // 64][:64])
    found, counts = np.unique(sample, return_counts=True)
    heaviest = int(counts.argmax())
    return float(found[heaviest]) if counts[heaviest] >= 8 else None


def _sort_apart(keys: Ints, front: Int, target: Int, *, inside_ties: bool) -> slice:
    """Sort the front part and put the equal keys of the end into their place."""
    equal = np.sort(keys[front:]) if inside_ties else keys[front:].copy()
    keys[:front].sort()
    start = int(np.searchsorted(keys[:front], target))
    stop = start + equal.size
    keys[stop:] = keys[start:front].copy()
    keys[start:stop] = equal
    return slice(start, stop)


def _quantiser(bits: Ints, width: int) -> tuple[Floats, Floats]:
    counts = np.zeros(65536, np.int64)
    _count_cells(bits, counts)
    levels = float(1 << (62 - width)) / bits.size
    below = (np.cumsum(counts) - counts) * levels
    return below.astype(np.float64), (counts * (levels / 2.0**48)).astype(np.float64)


# Runs of equal high bits. Flags mark the stretches of CHUNK keys that hold a collision, so that
# the search for the runs can skip the others.


def no_flags(keys: Ints) -> Bools:
    """One flag for each stretch of keys."""
    return np.zeros(keys.size // CHUNK + 1, np.bool_)


@kernel
def flag_collisions(keys: Ints, width: int, flags: Bools) -> Int:
    """Flag and count the keys with the same high bits as the one before."""
    total = np.int64(0)
    for chunk in range(flags.size):
        found = np.int64(0)
        for j in range(max(chunk * CHUNK, 1), min((chunk + 1) * CHUNK, keys.size)):
            found += ((keys[j] ^ keys[j - 1]) >> width) == 0
        flags[chunk] = found > 0
        total += found
    return total


@kernel
def starts_of_keys(keys: Ints, width: int, start: Ints) -> None:
    """Position at which each run of equal high bits begins."""
    begin = np.int64(0)
    start[0] = 0
    for j in range(1, keys.size):
        fresh = np.int64(((keys[j] ^ keys[j - 1]) >> width) != 0)
        begin = max(begin, j * fresh)  # not an "if": mispredicted branches cost more than the sort
        start[j] = begin


@kernel
def _starts_of_values(keys: Ints, width: int, ordered: Floats, start: Ints, flags: Bools) -> Int:
    """The same from sorted values; flag and count the boundaries that the keys did not see."""
    begin = np.int64(0)
    total = np.int64(0)
    start[0] = 0
    for chunk in range(flags.size):
        unseen = np.int64(0)
        for j in range(max(chunk * CHUNK, 1), min((chunk + 1) * CHUNK, keys.size)):
            fresh = np.int64(ordered[j] != ordered[j - 1])
            unseen += fresh & (((keys[j] ^ keys[j - 1]) >> width) == 0)
            begin = max(begin, j * fresh)
            start[j] = begin
        flags[chunk] = unseen > 0
        total += unseen
    return total


@kernel
def collided_runs(keys: Ints, width: int, flags: Bools, limit: Int) -> Ints:
    """Begin and end of the (at most `limit`) runs of equal high bits that reach into a flagged stretch."""
    runs = np.empty((limit, 2), np.int64)
    count = 0
    end = 0
    for chunk in range(flags.size):
        if not flags[chunk]:
            continue
        for j in range(max(chunk * CHUNK, 1), min((chunk + 1) * CHUNK, keys.size)):
            if j >= end and (keys[j] ^ keys[j - 1]) >> width == 0:
                begin = j - 1
                while begin > 0 and (keys[begin] ^ keys[begin - 1]) >> width == 0:
                    begin -= 1
                end = j + 1
                while end < keys.size and (keys[end] ^ keys[end - 1]) >> width == 0:
                    end += 1
                runs[count, 0], runs[count, 1] = begin, end
                count += 1
    return runs[:count]


@kernel
def settle_run(
    keys: Ints, width: int, begin: int, end: int, row_of: Ints, values: Floats, start: Ints
) -> None:
    """Order one short run by its exact values (equal ones by label) and mark its true tie blocks."""
    low = (np.int64(1) << width) - 1
    for t in range(begin + 1, end):
        key = keys[t]
        value = values[row_of[key & low]]
        place = t
        while place > begin and values[row_of[keys[place - 1] & low]] > value:
            keys[place] = keys[place - 1]
            place -= 1
        keys[place] = key
    start[begin] = begin
    for t in range(begin + 1, end):
        same = values[row_of[keys[t] & low]] == values[row_of[keys[t - 1] & low]]
        start[t] = start[t - 1] if same else t


@kernel
def settle_runs(keys: Ints, width: int, runs: Ints, row_of: Ints, values: Floats, start: Ints) -> None:
    """Settle every run of a list."""
    for r in range(len(runs)):
        settle_run(keys, width, runs[r, 0], runs[r, 1], row_of, values, start)


def find_blocks(found: SortedKeys, row_of: Ints, values: Floats) -> Ints:
    """Start of the true tie block of each position; puts near ties into their exact order."""
    keys, width = found.keys, found.width
    start = np.empty(keys.size, np.int64)
    flags = no_flags(keys)
    collisions = 0 if found.exact else flag_collisions(keys, width, flags)
    if collisions > keys.size // 10:  # a second sort is cheaper than fetching every doubtful value
        if not _starts_of_values(keys, width, np.sort(values), start, flags):
            return start
    else:
        starts_of_keys(keys, width, start)
        if not collisions:
            return start
    runs = collided_runs(keys, width, flags, collisions)
    if (runs[:, 1] - runs[:, 0]).max() <= LONG_RUN:
        settle_runs(keys, width, runs, row_of, values, start)
    else:
        _sort_exactly(found, row_of, values)
        _starts_of_values(keys, width, np.sort(values), start, flags)
    return start


def _sort_exactly(found: SortedKeys, row_of: Ints, values: Floats) -> None:
    """Put the keys into exact order where the kept bits say too little: values that differ by ulps."""
    labels = np.empty(values.size, np.int64)
    labels[row_of] = np.arange(values.size)
    order = np.lexsort((labels, values))
    found.keys[:] = labels[order]


@kernel
def ends(start: Ints, last: Ints) -> None:
    """Last position of each tie block."""
    end = start.size - 1
    for j in range(start.size - 1, -1, -1):
        last[j] = end
        end = j - 1 if start[j] == j else end
