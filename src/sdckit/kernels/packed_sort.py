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
def _ordered(bits: Int) -> Int:
    """Map the bits of a finite float64 to an integer of the same order; -0.0 and 0.0 map to 0."""
    sign = bits >> 63  # all bits set for negative values
    return ((bits & 0x7FFFFFFFFFFFFFFF) ^ sign) - sign


@inlined
def _flip(key: Int) -> Int:
    """Map an integer to the bits of a float64 of the same order, and back."""
    return key ^ ((key >> 63) & 0x7FFFFFFFFFFFFFFF)


@inlined
def _key(value: Int, low: Int, label: Int) -> Int:
    """Pack an ordered value, less its last bits, above a label, in a form that sorts as float64.

    The label is counted from 1, and `label_width` leaves room above the largest: so no key is 0, which
    is 0.0 as a float, nor -1, which is -0.0. Vectorised sorts turn one zero into the other, and a label
    would be lost. Nor is a key infinite or NaN: a label only fills bits that the largest floats have set.
    """
    return _flip((value & ~low) | (label + 1))


def label_width(largest: int) -> int:
    """How many bits of a key the labels from 0 to `largest` take; see `_key`."""
    return (largest + 2).bit_length()


@kernel
def fill_keys(bits: Ints, labels: Ints, width: int, keys: Ints) -> Int:
    """Write value-and-label keys in a form that sorts as float64; return the bits that were cut off."""
    low = (np.int64(1) << width) - 1
    cut = np.int64(0)
    for i in range(bits.size):
        value = _ordered(bits[i])
        cut |= value & low
        keys[i] = _key(value, low, labels[i])
    return cut


@kernel
def _fill_keys_apart(bits: Ints, labels: Ints, width: int, heavy: Int, keys: Ints) -> tuple[Int, Int]:
    """Write keys as above, those of the value `heavy` at the end; return (cut bits, rows in front)."""
    low = (np.int64(1) << width) - 1
    cut = np.int64(0)
    front = np.uint64(0)  # unsigned, so that no index needs a check for being negative
    back = np.uint64(bits.size - 1)
    for i in range(bits.size):
        value = _ordered(bits[i])
        cut |= value & low
        key = _key(value, low, labels[i])
        keys[front] = key  # written on both sides, kept on one: no branch to mispredict
        keys[back] = key
        is_heavy = np.uint64(value == heavy)
        front += np.uint64(1) - is_heavy
        back -= is_heavy
    return cut, np.int64(front)


@kernel
def flip_negatives(keys: Ints) -> None:
    """Turn keys from floats back into integers, as far as they are negative from the start on."""
    for j in range(keys.size):
        if keys[j] >= 0:
            break
        keys[j] = _flip(keys[j])


def sort_as_floats(keys: Ints) -> None:
    """Sort keys as float64, which is faster than as int64; leave integers."""
    keys.view(np.float64).sort()
    flip_negatives(keys)


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
        keys[i] = (np.int64(share) << width) | (labels[i] + 1)


def labels_of(keys: Ints, width: int) -> Ints:
    """The label of each key, like `label_of`, which is for kernels."""
    return (keys & ((np.int64(1) << width) - 1)) - 1


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
        return (
            self.keys & ((np.int64(1) << self.width) - 1)
        ) - 1  # `label_of`, without compiling it for arrays

    @property
    def stretches(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Begin and end of the keys before and after the heavy value."""
        return (0, self.heavy.start), (self.heavy.stop, self.keys.size)


def sort_keys(values: Floats, labels: Ints, keys: Ints, *, inside_ties: bool = True) -> SortedKeys:
    """Fill and sort `keys`; with `inside_ties=False` labels of equal values may stay unordered."""
    n = values.size
    bits = values.view(np.int64)
    width = label_width(n - 1)
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
    flip_negatives(keys[front:])
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
    found.keys[:] = labels[order] + 1  # counted from 1, as in a key
