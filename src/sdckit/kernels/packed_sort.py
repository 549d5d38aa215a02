"""Sorting a column together with a label per row, and finding its tie blocks, without argsort.

Sorting 64-bit keys is several times faster than an argsort, so a key carries both the value (its
high bits) and a label (its low bits): the row number, or the row's rank in another column. Values
that agree in the bits that were kept are *near ties*; they are compared again, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdckit.kernels.buffers import borrowed
from sdckit.kernels.jit import Bools, Floats, Int, Ints, inlined, kernel
from sdckit.kernels.near_ties import (
    all_short,
    collided_runs,
    empty_flags,
    flag_collisions,
    flag_split_runs,
    order_and_mark_runs,
    write_block_starts,
)

SMALL = 4096  # rows below which sampling a column for a heavy value costs more than it saves
QUANTISED = 1 << 24  # rows from which on too few bits of a float64 fit beside the label


@inlined
def ordered_bits(bits: Int) -> Int:
    """Map the bits of a finite float64 to an integer of the same order; -0.0 and 0.0 map to 0."""
    sign = bits >> 63  # all bits set for negative values
    return ((bits & 0x7FFFFFFFFFFFFFFF) ^ sign) - sign


@inlined
def _flip(key: Int) -> Int:
    """Map an integer to float64 bits that sort in the same order; applied twice, it returns the integer."""
    return key ^ ((key >> 63) & 0x7FFFFFFFFFFFFFFF)


@inlined
def _key(value: Int, low: Int, label: Int) -> Int:
    """Return a key: the high bits of an ordered value above a label, in a form that sorts as float64.

    The label is counted from 1, and `label_width` leaves room above the largest: so no key is 0, which
    is 0.0 as a float, nor -1, which is -0.0. Vectorised sorts turn one zero into the other, and a label
    would be lost. Nor is a key infinite or NaN: a label only fills bits that the largest floats have set.
    """
    return _flip((value & ~low) | (label + 1))


def label_width(largest: int) -> int:
    """Return how many low bits of a key the labels from 0 to `largest` take."""
    return (largest + 2).bit_length()


@kernel
def fill_keys(bits: Ints, labels: Ints, width: int, keys: Ints) -> Int:
    """Write a key (value's high bits, then label) for each value; return the bits that were cut off."""
    low = (np.int64(1) << width) - 1
    cut = np.int64(0)
    for i in range(bits.size):
        value = ordered_bits(bits[i])
        cut |= value & low
        keys[i] = _key(value, low, labels[i])
    return cut


@kernel
def _fill_keys_apart(bits: Ints, labels: Ints, width: int, heavy: Int, keys: Ints) -> tuple[Int, Int]:
    """Write keys, those of the value `heavy` at the end; return the cut-off bits and the rows in front."""
    low = (np.int64(1) << width) - 1
    cut = np.int64(0)
    front = np.uint64(0)  # unsigned, so that no index needs a check for being negative
    back = np.uint64(bits.size - 1)
    for i in range(bits.size):
        value = ordered_bits(bits[i])
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
    """Turn sorted keys from float order back into integers, in place; only leading negatives differ."""
    for j in range(keys.size):
        if keys[j] >= 0:
            break
        keys[j] = _flip(keys[j])


def sort_as_floats(keys: Ints) -> None:
    """Sort keys in place as float64, which is faster than as int64; leave them as integers."""
    keys.view(np.float64).sort()
    flip_negatives(keys)


@kernel
def _count_leading_bits(bits: Ints, counts: Ints) -> None:
    """Add each value to the histogram of the 16 leading bits of ordered values."""
    for i in range(bits.size):
        counts[(ordered_bits(bits[i]) >> 48) + 32768] += 1


@kernel
def _fill_quantised_keys(
    bits: Ints, labels: Ints, width: int, below: Floats, step: Floats, keys: Ints
) -> None:
    """Write keys: the value's position in the column's distribution in the high bits, then the label.

    Every operation is monotone in the value, rounding included, so the order is kept; unequal
    values may share a key, equal ones always do.
    """
    for i in range(bits.size):
        value = ordered_bits(bits[i])
        cell = (value >> 48) + 32768
        share = below[cell] + np.float64(value & 0xFFFFFFFFFFFF) * step[cell]
        keys[i] = (np.int64(share) << width) | (labels[i] + 1)


def labels_of(keys: Ints, width: int) -> Ints:
    """Return the label (row number or rank, from 0) of each key in an array."""
    return (keys & ((np.int64(1) << width) - 1)) - 1


@dataclass
class SortedKeys:
    """Sorted keys of a column; `exact`: equal high bits are ties; `heavy`: slice of one frequent value."""

    keys: Ints
    width: int
    exact: bool
    heavy: slice
    quantised: bool = False  # high bits follow the distribution: unequal values far apart may share them

    @property
    def labels(self) -> Ints:
        """The label (row number or rank) of each sorted key."""
        return labels_of(self.keys, self.width)

    @property
    def stretches(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Begin and end of the keys before the heavy value, and of those after it."""
        return (0, self.heavy.start), (self.heavy.stop, self.keys.size)


def sort_keys(values: Floats, labels: Ints, keys: Ints, *, inside_ties: bool = True) -> SortedKeys:
    """Pack each value and its label into a key, and sort the keys in place; return them with their width.

    With `inside_ties=False` the labels of equal values may stay unordered.
    """
    n = values.size
    bits = values.view(np.int64)
    width = label_width(n - 1)
    heavy = heavy_value(values)
    if heavy is not None:
        target = np.int64(ordered_bits(np.float64(heavy).view(np.int64)))
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
    """Return some 64 values of a column, evenly spaced."""
    return values[:: max(values.size // 64, 1)]


def heavy_value(values: Floats) -> float | None:
    """Return a value that seems to fill at least an eighth of the column, judged by a sample, or None."""
    if values.size < SMALL:
        return None
    found, counts = np.unique(sample_of(values), return_counts=True)
    heaviest = int(counts.argmax())
    return float(found[heaviest]) if counts[heaviest] >= 8 else None


def _sort_apart(keys: Ints, front: Int, high: Int, width: int, *, inside_ties: bool) -> slice | None:
    """Sort the front keys and insert the equal keys at the end; return their slice, or None if ambiguous.

    Ambiguous means that another value has the same high bits, so that the slice is not known.
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
    """Return, for each pattern of 16 leading bits, the line that maps its values to even sort keys."""
    counts = np.zeros(65536, np.int64)
    _count_leading_bits(bits, counts)
    levels = float(1 << (62 - width)) / bits.size
    below = (np.cumsum(counts) - counts) * levels
    # A little less than the distance to the next cell: a rounded sum must not pass that cell's first key.
    return below.astype(np.float64), (counts * (levels / 2.0**48 * (1 - 2.0**-20))).astype(np.float64)


def find_blocks(
    found: SortedKeys, row_of: Ints, values: Floats, start: Ints, flagged: tuple[Bools, int] | None = None
) -> None:
    """Write the first position of each position's tie block into `start`; sort near ties by exact value.

    `flagged` are the flags and the number of collisions, where they are known already.
    """
    keys, width = found.keys, found.width
    flags, doubtful = flagged or (empty_flags(keys), 0)
    if found.exact:
        flags[:], doubtful = False, 0
    elif flagged is None:
        doubtful = sum(int(flag_collisions(keys, width, *part, flags)) for part in found.stretches)
    sort_again = False
    if doubtful > keys.size // 10:  # a second sort is cheaper than reading every doubtful value
        sort_again = found.quantised or not _on_coarse_grid(values, width)
        flags[:] = False
        doubtful = 0
    if sort_again:
        _write_value_starts(values, start)
        doubtful = int(flag_split_runs(keys, width, start, flags))
    else:
        write_block_starts(keys, width, start)
    heavy = found.heavy
    runs = collided_runs(keys, width, flags, doubtful, start, sort_again, heavy.start, heavy.stop)
    if all_short(runs):
        order_and_mark_runs(keys, width, runs, row_of, values, start)
    else:
        sort_exactly(found, row_of, values)
        _write_value_starts(values, start)


@kernel
def _count_off_grid(values: Floats, scale: float) -> Int:
    """Return how many values are not the float nearest to a multiple of 1/scale."""
    found = np.int64(0)
    for i in range(values.size):
        found += np.rint(values[i] * scale) / scale != values[i]
    return found


def _on_coarse_grid(values: Floats, width: int) -> bool:
    """Return True if all values have up to three decimals and differ in the key's high bits if unequal."""
    sample = sample_of(values)
    for scale in (10.0, 100.0, 1000.0):
        with np.errstate(over="ignore"):
            fits = (np.rint(sample * scale) / scale == sample).all()
        if fits:
            largest = max(abs(float(values.max())), abs(float(values.min())))
            return largest * 2.0 ** (width - 52) < 0.5 / scale and not _count_off_grid(values, scale)
    return False


def _write_value_starts(values: Floats, start: Ints) -> None:
    """Write the start of each position's tie block, by sorting the values themselves."""
    with borrowed(values.size) as bits:
        ordered = bits.view(np.float64)
        np.add(values, 0.0, out=ordered)  # -0.0 becomes 0.0, so that equal values have equal bits
        ordered.sort()
        write_block_starts(bits, 0, start)


def sort_exactly(found: SortedKeys, row_of: Ints, values: Floats) -> None:
    """Sort the keys in place by exact value and label, where their high bits are not enough."""
    labels = np.empty(values.size, np.int64)
    labels[row_of] = np.arange(values.size)
    order = np.lexsort((labels, values))
    found.keys[:] = labels[order] + 1  # counted from 1, as in a key
