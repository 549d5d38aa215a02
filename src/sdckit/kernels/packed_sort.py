"""Sorting a column together with a label per row, and finding its tie blocks, without argsort.

Sorting 64-bit keys is several times faster than an argsort, so a key carries both the value (its
high bits) and a label (its low bits): the row number, or the row's rank in another column. Values
that agree in the bits that were kept are *near ties*; they are looked at again, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdckit.kernels.buffers import borrowed
from sdckit.kernels.jit import Bools, Floats, Int, Ints, inlined, kernel
from sdckit.kernels.near_ties import (
    _flag_unseen,
    all_short,
    collided_runs,
    flag_collisions,
    no_flags,
    settle_runs,
    starts_of_keys,
)

SMALL = 4096  # below this, sampling a column for a heavy value costs more than it saves
QUANTISED = 1 << 24  # from here on, too few bits of a float64 fit beside the label


@inlined
def _flip(bits: Int) -> Int:
    """Map the bits of a float64 to an integer of the same order, and back."""
    return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)


@inlined
def _ordered(bits: Int) -> Int:
    """The same, with -0.0 as 0.0."""
    flipped = _flip(bits)
    return flipped + (flipped == -1)


@kernel
def fill_keys(bits: Ints, labels: Ints, width: int, keys: Ints) -> Int:
    """Write value-and-label keys in a form that sorts as float64; return the bits that were cut off."""
    low = (np.int64(1) << width) - 1
    cut = np.int64(0)
    for i in range(bits.size):
        value = _ordered(bits[i])
        cut |= value & low
        keys[i] = _flip((value & ~low) | labels[i])
    return cut


@kernel
def _fill_keys_apart(bits: Ints, labels: Ints, width: int, heavy: Int, keys: Ints) -> tuple[Int, Int]:
    """The same, but rows that hold the value `heavy` go to the end; return (cut bits, rows in front)."""
    low = (np.int64(1) << width) - 1
    cut = np.int64(0)
    front = np.uint64(0)  # unsigned, so that no index needs a check for being negative
    back = np.uint64(bits.size - 1)
    for i in range(bits.size):
        value = _ordered(bits[i])
        cut |= value & low
        key = _flip((value & ~low) | labels[i])
        keys[front] = key  # written on both sides, kept on one: no branch to mispredict
        keys[back] = key
        is_heavy = np.uint64(value == heavy)
        front += np.uint64(1) - is_heavy
        back -= is_heavy
    return cut, np.int64(front)


@kernel
def _flip_negatives(keys: Ints, end: int) -> None:
    """Turn the first keys, up to `end`, from floats back into integers."""
    for j in range(end):
        keys[j] = _flip(keys[j])


@kernel
def _as_integers(keys: Ints) -> None:
    """Turn keys sorted as floats back into integers, in ascending order."""
    end = 0
    while end < keys.size and keys[end] < 0:
        end += 1
    # The key -1 is -0.0 as a float, which is not told from the key 0: at most one of each.
    if end + 1 < keys.size and keys[end + 1] < 0:
        keys[end], keys[end + 1] = keys[end + 1], keys[end]
        end += 1
    _flip_negatives(keys, end)


@kernel
def _all_as_integers(keys: Ints) -> None:
    for row in range(len(keys)):
        _as_integers(keys[row])


def sort_as_floats(keys: Ints) -> None:
    """Sort keys, or each row of them, as float64, which is faster than as int64; leave integers."""
    keys.view(np.float64).sort()
    if keys.size and keys[..., :2].min() < 0:
        _all_as_integers(keys.reshape(-1, keys.shape[-1]))


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


@dataclass
class SortedKeys:
    """Keys in order. `exact`: equal high bits are true ties; `heavy`: a slice of equal values."""

    keys: Ints
    width: int
    exact: bool
    heavy: slice
    quantised: bool = False  # high bits follow the distribution: unequal values far apart may share them

    @property
    def labels(self) -> Ints:
        """The label of each position."""
        return self.keys & ((np.int64(1) << self.width) - 1)

    @property
    def stretches(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Begin and end of the keys before and after the heavy value."""
        return (0, self.heavy.start), (self.heavy.stop, self.keys.size)


def sort_keys(values: Floats, labels: Ints, keys: Ints, *, inside_ties: bool = True) -> SortedKeys:
    """Fill and sort `keys`; with `inside_ties=False` labels of equal values may stay unordered."""
    n = values.size
    bits = values.view(np.int64)
    width = max(n - 1, 1).bit_length()
    heavy = heavy_value(values)
    if heavy is not None:
        target = np.int64(_ordered(np.float64(heavy).view(np.int64)))
        cut, front = _fill_keys_apart(bits, labels, width, target, keys)
        block = _sort_apart(keys, front, target >> width, width, inside_ties=inside_ties)
        if block is not None:
            return SortedKeys(keys, width, cut == 0, block)
    if n >= QUANTISED:
        below, step = _quantiser(bits, width)
        _fill_quantised_keys(bits, labels, width, below, step, keys)
        cut = 1
    else:
        cut = fill_keys(bits, labels, width, keys)
    sort_as_floats(keys)
    return SortedKeys(keys, width, cut == 0, slice(0, 0), quantised=n >= QUANTISED)


def sample_of(values: Floats) -> Floats:
    """Some 64 values, evenly spaced."""
    return values[:: max(values.size // 64, 1)]


def heavy_value(values: Floats) -> float | None:
    """A value that seems to fill at least an eighth of the column, from a sample."""
    if values.size < SMALL:
        return None
    found, counts = np.unique(sample_of(values), return_counts=True)
    heaviest = int(counts.argmax())
    return float(found[heaviest]) if counts[heaviest] >= 8 else None


def _sort_apart(keys: Ints, front: Int, high: Int, width: int, *, inside_ties: bool) -> slice | None:
    """Sort the front part and put the equal keys of the end into their place.

    None where another value has the same high bits: then the place is not known.
    """
    sort_as_floats(keys[:front])
    if high < 0:
        _flip_negatives(keys[front:], keys.size - int(front))
    start, end = np.searchsorted(keys[:front], np.array([high, high + 1]) << width)
    if start != end:
        return None
    equal = np.sort(keys[front:]) if inside_ties else keys[front:].copy()
    stop = int(start) + equal.size
    keys[stop:] = keys[start:front].copy()
    keys[start:stop] = equal
    return slice(int(start), stop)


def _quantiser(bits: Ints, width: int) -> tuple[Floats, Floats]:
    counts = np.zeros(65536, np.int64)
    _count_cells(bits, counts)
    levels = float(1 << (62 - width)) / bits.size
    below = (np.cumsum(counts) - counts) * levels
    # A little less than the way to the next cell: a rounded sum must not pass that cell's first key.
    return below.astype(np.float64), (counts * (levels / 2.0**48 * (1 - 2.0**-20))).astype(np.float64)


def find_blocks(
    found: SortedKeys, row_of: Ints, values: Floats, start: Ints, flagged: tuple[Bools, int] | None = None
) -> None:
    """Write the start of each position's true tie block; puts near ties into their exact order.

    `flagged` are the flags and the number of collisions, where they are known already.
    """
    keys, width = found.keys, found.width
    flags, doubtful = flagged or (no_flags(keys), 0)
    if found.exact:
        flags[:], doubtful = False, 0
    elif flagged is None:
        doubtful = sum(int(flag_collisions(keys, width, *part, flags)) for part in found.stretches)
    sort_again = False
    if doubtful > keys.size // 10:  # a second sort is cheaper than fetching every doubtful value
        sort_again = found.quantised or not _on_coarse_grid(values, width)
        flags[:] = False
        doubtful = 0
    if sort_again:
        _starts_of_values(values, start)
        doubtful = int(_flag_unseen(keys, width, start, flags))
    else:
        starts_of_keys(keys, width, start)
    heavy = found.heavy
    runs = collided_runs(keys, width, flags, doubtful, start, sort_again, heavy.start, heavy.stop)
    if all_short(runs):
        settle_runs(keys, width, runs, row_of, values, start)
    else:
        sort_exactly(found, row_of, values)
        _starts_of_values(values, start)


@kernel
def _off_grid(values: Floats, scale: float) -> Int:
    """How many values are not the float nearest to a whole number of steps of 1/scale."""
    found = np.int64(0)
    for i in range(values.size):
        found += np.rint(values[i] * scale) / scale != values[i]
    return found


def _on_coarse_grid(values: Floats, width: int) -> bool:
    """Whether all values have up to three decimals, far enough apart for the high bits to tell them."""
    sample = sample_of(values)
    for scale in (10.0, 100.0, 1000.0):
        with np.errstate(over="ignore"):
            fits = (np.rint(sample * scale) / scale == sample).all()
        if fits:
            largest = max(abs(float(values.max())), abs(float(values.min())))
            return largest * 2.0 ** (width - 52) < 0.5 / scale and not _off_grid(values, scale)
    return False


def _starts_of_values(values: Floats, start: Ints) -> None:
    """Start of each tie block from the sorted values themselves."""
    with borrowed(values.size) as bits:
        ordered = bits.view(np.float64)
        np.add(values, 0.0, out=ordered)  # -0.0 becomes 0.0, so that equal values have equal bits
        ordered.sort()
        starts_of_keys(bits, 0, start)


def sort_exactly(found: SortedKeys, row_of: Ints, values: Floats) -> None:
    """Put the keys into exact order where the kept bits say too little: values that differ by ulps."""
    labels = np.empty(values.size, np.int64)
    labels[row_of] = np.arange(values.size)
    order = np.lexsort((labels, values))
    found.keys[:] = labels[order]
