"""Runs of sorted keys with equal high bits: true ties, or near ties that are compared exactly."""

from __future__ import annotations

import numpy as np

from sdckit.kernels.jit import Bools, Floats, Int, Ints, inlined, inner, kernel

CHUNK = 256  # keys per flag
LONG_RUN = 64  # longer runs of near ties are not sorted by insertion

# A collision is a key with the same high bits as the key before it. Flags mark the stretches of CHUNK keys
# that hold a collision, so that the search for the runs can skip the others.


def empty_flags(keys: Ints) -> Bools:
    """Return False for each stretch of `CHUNK` keys; True will mark a stretch with equal high bits."""
    return np.zeros(keys.size // CHUNK + 1, np.bool_)


@inlined
def label_of(key: Int, low: Int) -> Int:
    """Return the row number or rank, counted from 0, that is packed into the low bits of a sort key."""
    return (key & low) - 1


@inlined
def value_at(key: Int, low: Int, row_of: Ints, values: Floats) -> float | np.float64:
    """Return the exact value of the row that the label in a key stands for."""
    return values[row_of[label_of(key, low)]]


@inner
def count_collisions(keys: Ints, width: int, begin: int, end: int) -> Int:
    """Return how many of keys[begin:end] have the same high bits as the key before."""
    part = keys[max(begin - 1, 0) : end]  # a slice: its loop is vectorised
    found = np.int64(0)
    for t in range(part.size - 1):
        found += ((part[t] ^ part[t + 1]) >> width) == 0
    return found


@kernel
def flag_collisions(keys: Ints, width: int, begin: int, end: int, flags: Bools) -> Int:
    """Flag the stretches of keys[begin:end] with equal neighbouring high bits; return how many there are."""
    total = np.int64(0)
    for chunk in range(begin // CHUNK, -(-end // CHUNK)):
        found = count_collisions(keys, width, max(chunk * CHUNK, begin), min((chunk + 1) * CHUNK, end))
        flags[chunk] |= found > 0
        total += found
    return total


@kernel
def write_block_starts(keys: Ints, width: int, start: Ints) -> None:
    """Write for each position where its run of keys with equal high bits begins."""
    begin = np.int64(0)
    start[:1] = 0
    for j in range(1, keys.size):
        fresh = np.int64(((keys[j] ^ keys[j - 1]) >> width) != 0)
        begin = max(begin, j * fresh)  # not an "if": mispredicted branches cost more than the sort
        start[j] = begin


@kernel
def flag_split_runs(keys: Ints, width: int, start: Ints, flags: Bools) -> Int:
    """Flag and count the true tie-block boundaries that lie inside runs of equal high bits."""
    total = np.int64(0)
    for chunk in range(flags.size):
        first = max(chunk * CHUNK - 1, 0)
        part, begins = keys[first : (chunk + 1) * CHUNK], start[first : (chunk + 1) * CHUNK]
        found = np.int64(0)
        for t in range(part.size - 1):
            found += (((part[t] ^ part[t + 1]) >> width) == 0) & (begins[t + 1] == first + t + 1)
        flags[chunk] = found > 0
        total += found
    return total


def collided_runs(
    keys: Ints, width: int, flags: Bools, limit: Int, start: Ints, proven: bool, skip_from: int, skip_to: int
) -> Ints:
    """Return begin and end of the (at most `limit`) runs of equal high bits in flagged stretches.

    With `proven`, `start` holds the true tie blocks, and only runs with a boundary inside are found.
    The heavy value, from `skip_from` to `skip_to`, is no such run: no other value shares its high bits.
    """
    runs = np.empty((limit, 2), np.int64)
    return runs[: _find_runs(keys, width, flags, start, proven, skip_from, skip_to, runs)]


@kernel
def _find_runs(
    keys: Ints, width: int, flags: Bools, start: Ints, proven: bool, skip_from: int, skip_to: int, runs: Ints
) -> int:
    """Write begin and end of each run of sort keys with equal high bits; return the number of runs."""
    count = 0
    end = 0
    for chunk in range(flags.size):
        if not flags[chunk]:
            continue
        for j in range(max(chunk * CHUNK, 1), min((chunk + 1) * CHUNK, keys.size)):
            if (keys[j] ^ keys[j - 1]) >> width == 0 and j >= end and (not proven or start[j] == j):
                if skip_from < j < skip_to:
                    continue
                begin = j - 1
                while begin > 0 and (keys[begin] ^ keys[begin - 1]) >> width == 0:
                    begin -= 1
                end = j + 1
                while end < keys.size and (keys[end] ^ keys[end - 1]) >> width == 0:
                    end += 1
                runs[count, 0], runs[count, 1] = begin, end
                count += 1
    return count


@inner
def order_run(keys: Ints, width: int, begin: int, end: int, row_of: Ints, values: Floats) -> None:
    """Sort one run of keys in place by their exact values, equal ones by label (Shell's sort)."""
    low = (np.int64(1) << width) - 1
    gap = 1
    while 9 * gap < end - begin:  # short runs, which are the rule, are sorted by insertion alone
        gap = 3 * gap + 1
    while gap > 0:
        for t in range(begin + gap, end):
            key = keys[t]
            value = value_at(key, low, row_of, values)
            place = t
            while place >= begin + gap:
                other = keys[place - gap]
                before = value_at(other, low, row_of, values)
                if before < value or (before == value and other < key):
                    break
                keys[place] = other
                place -= gap
            keys[place] = key
        gap //= 3


@kernel
def order_and_mark_runs(
    keys: Ints, width: int, runs: Ints, row_of: Ints, values: Floats, start: Ints
) -> None:
    """Sort each run of nearly equal keys by exact values, and write the first position of each tie block."""
    for r in range(len(runs)):
        order_and_mark_run(keys, width, runs[r, 0], runs[r, 1], row_of, values, start)


@inner
def order_and_mark_run(
    keys: Ints, width: int, begin: int, end: int, row_of: Ints, values: Floats, start: Ints
) -> None:
    """Sort one run of keys by exact values, and write where its true tie blocks begin."""
    if not _mark_blocks(keys, width, begin, end, row_of, values, start):
        order_run(keys, width, begin, end, row_of, values)
        _mark_blocks(keys, width, begin, end, row_of, values, start)


@inner
def _mark_blocks(
    keys: Ints, width: int, begin: int, end: int, row_of: Ints, values: Floats, start: Ints
) -> bool:
    """Write where the true tie blocks of one run begin; return False if its values are not in order."""
    low = (np.int64(1) << width) - 1
    block = begin
    previous = value_at(keys[begin], low, row_of, values)
    start[begin] = begin
    for t in range(begin + 1, end):
        value = value_at(keys[t], low, row_of, values)
        if value < previous:
            return False
        if value > previous:
            block = t
        start[t] = block
        previous = value
    return True


def all_short(runs: Ints) -> bool:
    """Return True if all runs are short enough to be sorted by insertion."""
    return bool((runs[:, 1] - runs[:, 0]).max(initial=0) <= LONG_RUN)


@kernel
def write_block_ends(start: Ints, last: Ints) -> None:
    """Write the last position of each position's tie block, given the first one."""
    end = start.size - 1
    for j in range(start.size - 1, -1, -1):
        last[j] = end
        end = j - 1 if start[j] == j else end
