"""Rank distances of many short columns at once: for a thousand records, calls cost more than sorting."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from sdckit.kernels.jit import Bools, Floats, Int, Ints, inner, kernel
from sdckit.kernels.near_ties import (
    count_collisions,
    label_of,
    order_and_mark_run,
    write_block_ends,
    write_block_starts,
)
from sdckit.kernels.packed_sort import label_width, labels_of, ordered_bits
from sdckit.kernels.rank_distance import OrderedColumn, tie_sum, to_middles2
from sdckit.kernels.rank_sums import RankSums
from sdckit.kernels.tie_rules import mean_gap

ShortKeys = npt.NDArray[np.uint32]

RULES = ("average", "first", "last", "expected")  # the tie rules that one sort by row answers
BY_ROW = ("average", "first", "last", "begin", "end")  # doubled ranks; first and last position of a tie block


class SortedStack:
    """Several short columns sorted (one line each), equal values by row, with the start of each tie block.

    `tied` marks the columns that may hold equal values; for these, `first` has the first position of the
    tie block of each position.
    """

    def __init__(self, values: Floats) -> None:
        self.n: int = values.shape[1]
        rows = np.arange(self.n)
        self.width: int = label_width(rows.size - 1)
        self.keys: Ints = np.empty(values.shape, np.int64)
        self.first: Ints = np.empty(values.shape, np.int64)
        short_keys = np.empty(values.shape, np.uint32)
        cut = _fill_short_keys(values.view(np.int64), self.width, short_keys)
        short_keys.sort()  # less than half the time of 64 bits
        self.keys[:] = short_keys
        self.tied: Bools = _find_stack_blocks(self.keys, self.width, cut, rows, values, self.first)

    def tie_blocks(self, j: Int) -> Ints:
        """Return the first position of each position's tie block in column j."""
        return self.first[j] if self.tied[j] else np.arange(self.n)


class ColumnStack:
    """Several short columns without missing cells, prepared so that one call measures them all.

    `values` has one line per column.
    """

    def __init__(self, values: Floats) -> None:
        self.values = values
        self.n: int = values.shape[1]
        self.sorted: SortedStack = SortedStack(values)
        self._tables: dict[str, Ints] = {}

    def by_row(self, what: str) -> Ints:
        """Return a quantity named in `BY_ROW`, such as doubled mid-ranks, of each row; a line per column."""
        if what not in self._tables:
            found = self.sorted
            self._tables[what] = _by_row(found.keys, found.width, found.first, found.tied, BY_ROW.index(what))
        return self._tables[what]

    def column(self, j: int) -> OrderedColumn:
        """Return column j as an `OrderedColumn`, without sorting it again."""
        order = labels_of(self.sorted.keys[j], self.sorted.width)
        return OrderedColumn(self.values[j], order, self.sorted.tie_blocks(j))

    @cached_property
    def tie_sums(self) -> list[int]:
        """Sum of L**3 - L over the tie blocks of length L, for each column."""
        return [tie_sum(self.sorted.tie_blocks(j)) for j in range(len(self.values))]

    def order(self, masked: Floats) -> StackOrder:
        """Sort the masked columns (one per row); return an object that compares their ranks with these."""
        return StackOrder(self, masked)


class StackOrder:
    """Masked columns, sorted, beside their originals; gives the rank distances of all columns."""

    def __init__(self, stack: ColumnStack, masked: Floats) -> None:
        self.stack = stack
        self.sorted: SortedStack = SortedStack(masked)

    def sums(self, ties: str) -> RankSums:
        """Return the rank distance sums of all columns, as arrays, under one of the tie rules in `RULES`."""
        ours = self.stack.by_row("average" if ties == "expected" else ties)
        found = self.sorted
        absolute2, squared4 = _stack_sums(
            found.keys, found.width, found.first, found.tied, ours, RULES.index(ties)
        )
        if ties != "expected":
            return RankSums(self.stack.n, absolute2, squared4)
        return self._expected(absolute2.astype(np.float64), squared4.astype(np.float64))

    def _expected(self, absolute2: Floats, squared4: Floats) -> RankSums:
        """Return mean rank distance sums over random tie-breakings, given those of mid-ranks."""
        begin, end = self.stack.by_row("begin"), self.stack.by_row("end")
        found = self.sorted
        for c in np.flatnonzero(found.tied | self.stack.sorted.tied):
            absolute, cubes = _expected_sums(
                found.keys[c], found.width, found.tie_blocks(c), begin[c], end[c]
            )
            absolute2[c] = 2 * absolute
            squared4[c] += (self.stack.tie_sums[c] + cubes) / 3
        return RankSums(self.stack.n, absolute2, squared4)


@kernel
def _by_row(keys: Ints, width: int, first: Ints, tied: Bools, what: int) -> Ints:
    """Return the quantity with number `what` in `BY_ROW` for each row; one line per column."""
    low = (np.int64(1) << width) - 1
    found = np.empty(keys.shape, np.int64)
    last = np.empty(keys.shape[1], np.int64)
    for c in range(len(keys)):
        if tied[c]:
            write_block_ends(first[c], last)
            _tied_by_row(keys[c], low, first[c], last, what, found[c])
        else:
            factor = 2 if what < 3 else 1
            for j in range(keys.shape[1]):
                found[c, label_of(keys[c, j], low)] = factor * j
    return found


@inner
def _tied_by_row(keys: Ints, low: Int, first: Ints, last: Ints, what: int, found: Ints) -> None:
    """Write the quantity with number `what` in `BY_ROW` for each row of a column with ties."""
    for j in range(keys.size):
        begin, end = first[j], last[j]
        row = label_of(keys[j], low)
        if what == 0:
            found[row] = begin + end
        elif what == 1:
            found[row] = 2 * j
        elif what == 2:
            found[row] = 2 * (begin + end - j)
        else:
            found[row] = begin if what == 3 else end


@kernel
def _fill_short_keys(bits: Ints, width: int, keys: ShortKeys) -> Bools:
    """Write 32-bit sort keys of each column (one line each); return which columns lost bits of their values.

    A key has the leading bits of the value's distance from the smallest value, in steps of the float64
    grid, above the row's label. Values that agree in these bits are compared exactly later.
    """
    lost = np.zeros(len(bits), np.bool_)
    for c in range(len(bits)):
        lowest, highest = ordered_bits(bits[c, 0]), ordered_bits(bits[c, 0])
        for i in range(bits.shape[1]):
            value = ordered_bits(bits[c, i])
            lowest, highest = min(lowest, value), max(highest, value)
        shift = np.uint64(0)
        while (np.uint64(highest - lowest) >> shift) >> np.uint64(32 - width):
            shift += np.uint64(1)
        cut = np.uint64(0)
        for i in range(bits.shape[1]):
            above = np.uint64(ordered_bits(bits[c, i]) - lowest)  # wraps around, and is right as unsigned
            cut |= above & ((np.uint64(1) << shift) - np.uint64(1))
            keys[c, i] = ((above >> shift) << np.uint64(width)) | np.uint64(i + 1)
        lost[c] = cut != 0
    return lost


@kernel
def _find_stack_blocks(keys: Ints, width: int, cut: Bools, rows: Ints, masked: Floats, first: Ints) -> Bools:
    """Sort near ties exactly and write the start of each tie block; return which columns may have ties."""
    tied = np.zeros(len(keys), np.bool_)
    for c in range(len(keys)):
        tied[c] = count_collisions(keys[c], width, 0, rows.size) > 0
        if tied[c] and not cut[c]:
            write_block_starts(keys[c], width, first[c])
        elif tied[c]:
            _find_column_blocks(keys[c], width, rows, masked[c], first[c])
    return tied


@inner
def _find_column_blocks(keys: Ints, width: int, rows: Ints, values: Floats, first: Ints) -> None:
    """Sort near ties of one column exactly and write the start of each position's tie block."""
    begin = 0
    while begin < keys.size:
        end = begin + 1
        while end < keys.size and (keys[end] ^ keys[begin]) >> width == 0:
            end += 1
        first[begin] = begin
        if end - begin > 1:
            order_and_mark_run(keys, width, begin, end, rows, values, first)
        begin = end


@kernel
def _stack_sums(keys: Ints, width: int, first: Ints, tied: Bools, original2: Ints, rule: int) -> Ints:
    """Return the rank distance sums of each column, given twice the original rank of each row."""
    low = (np.int64(1) << width) - 1
    sums = np.empty((2, len(keys)), np.int64)
    masked2 = np.empty(keys.shape[1], np.int64)
    plain2 = 2 * np.arange(keys.shape[1])
    for c in range(len(keys)):
        if not tied[c] or rule == 1:
            sums[0, c], sums[1, c] = _column_sums(keys[c], low, plain2, original2[c])
            continue
        masked2[:] = first[c]
        to_middles2(masked2)
        if rule == 2:
            masked2[:] = 2 * masked2 - plain2
        sums[0, c], sums[1, c] = _column_sums(keys[c], low, masked2, original2[c])
    return sums


@inner
def _column_sums(keys: Ints, low: Int, masked2: Ints, original2: Ints) -> tuple[Int, Int]:
    """Return the sums of |r - s| (doubled) and (r - s)**2 (times four) of a short column, within int64."""
    absolute = squared = np.int64(0)
    for j in range(keys.size):
        difference = original2[label_of(keys[j], low)] - masked2[j]
        absolute += abs(difference)
        squared += difference * difference
    return absolute, squared


@kernel
def _expected_sums(keys: Ints, width: int, first: Ints, begin: Ints, end: Ints) -> tuple[float, Int]:
    """Return the sum of E|R - S| over the rows, and the masked column's sum of L**3 - L over tie blocks.

    `begin` and `end` are the original tie block of each row.
    """
    low = (np.int64(1) << width) - 1
    total, cubes = 0.0, np.int64(0)
    last = np.empty(first.size, np.int64)
    write_block_ends(first, last)
    for j in range(keys.size):
        row = label_of(keys[j], low)
        length = last[j] - first[j] + 1
        cubes += length * length - 1  # over the whole block: L**3 - L
        total += mean_gap(begin[row], end[row], first[j], last[j])
    return total, cubes
