"""Rank distances of many short columns at once: for a thousand records, calls cost more than sorting."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.jit import Bools, Floats, Int, Ints, kernel
from sdckit.kernels.near_ties import count_collisions, ends, label_of, settle_run, starts_of_keys
from sdckit.kernels.packed_sort import fill_keys, label_width, sort_as_floats
from sdckit.kernels.rank_distance import OrderedColumn, RankSums, middle_sums, tie_sum, to_middles2
from sdckit.kernels.tie_rules import mean_gap

if TYPE_CHECKING:
    from collections.abc import Sequence

RULES = ("average", "first", "last", "expected")  # the tie rules that one sort by row answers


class ColumnStack:
    """Several short columns of one length, prepared so that one call measures them all."""

    def __init__(self, columns: Sequence[OrderedColumn]) -> None:
        self.columns = columns
        self.n = columns[0].n
        self.rows = np.arange(self.n)
        self._tables: dict[str, Ints] = {}

    def by_row(self, what: str) -> Ints:
        """Begin or end of each original value's tie block, or its doubled rank; one line per column."""
        if what not in self._tables:
            self._tables[what] = np.stack([_by_row(column, what) for column in self.columns])
        return self._tables[what]

    @cached_property
    def tie_sums(self) -> list[int]:
        """T of each original column, see `tie_sum`."""
        return [tie_sum(column.first) for column in self.columns]

    def order(self, masked: Floats) -> StackOrder:
        """Sort the masked columns, one line each."""
        return StackOrder(self, masked)


def _by_row(column: OrderedColumn, what: str) -> Ints:
    if what in {"begin", "end"}:
        return (column.first if what == "begin" else column.last)[column.rank]
    return column.ranks2(what)


class StackOrder:
    """Masked columns in order, equal values by row, with the tie block of each position."""

    def __init__(self, stack: ColumnStack, masked: Floats) -> None:
        self.stack = stack
        self.width = label_width(stack.n - 1)
        self.keys = np.empty(masked.shape, np.int64)
        self.first = np.empty(masked.shape, np.int64)
        cut = _fill_stack(masked.view(np.int64), stack.rows, self.width, self.keys)
        sort_as_floats(self.keys)
        self.tied = _settle_stack(self.keys, self.width, cut, stack.rows, masked, self.first)

    def sums(self, ties: str) -> RankSums:
        """Rank distances of all columns under one of `RULES`, as arrays."""
        ours = self.stack.by_row("average" if ties == "expected" else ties)
        sums = _stack_sums(self.keys, self.width, self.first, self.tied, ours, RULES.index(ties))
        absolute2, squared4 = sums[:, 0], sums[:, 1] + (sums[:, 2] << 32)
        if ties != "expected":
            return RankSums(self.stack.n, absolute2, squared4)
        return self._expected(absolute2.astype(np.float64), squared4.astype(np.float64))

    def _expected(self, absolute2: Floats, squared4: Floats) -> RankSums:
        """From distances of mid-ranks to mean distances over random tie-breakings."""
        begin, end = self.stack.by_row("begin"), self.stack.by_row("end")
        for c, column in enumerate(self.stack.columns):
            if self.tied[c] or column.tied:
                absolute, cubes = _expected_sums(self.keys[c], self.width, self.first[c], begin[c], end[c])
                absolute2[c] = 2 * absolute
                squared4[c] += (self.stack.tie_sums[c] + cubes) / 3
        return RankSums(self.stack.n, absolute2, squared4)


@kernel
def _fill_stack(bits: Ints, labels: Ints, width: int, keys: Ints) -> Ints:
    cut = np.empty(len(bits), np.int64)
    for c in range(len(bits)):
        cut[c] = fill_keys(bits[c], labels, width, keys[c])
    return cut


@kernel
def _settle_stack(keys: Ints, width: int, cut: Ints, rows: Ints, masked: Floats, first: Ints) -> Bools:
    """Put near ties into exact order and find the tie blocks; tell which columns may have any."""
    tied = np.zeros(len(keys), np.bool_)
    for c in range(len(keys)):
        tied[c] = count_collisions(keys[c], width, 0, rows.size) > 0
        if not tied[c]:
            first[c] = rows
        elif not cut[c]:
            starts_of_keys(keys[c], width, first[c])
        else:
            _settle_column(keys[c], width, rows, masked[c], first[c])
    return tied


@kernel
def _settle_column(keys: Ints, width: int, rows: Ints, values: Floats, first: Ints) -> None:
    """The same for a column with near ties: each run of equal high bits is looked at exactly."""
    begin = 0
    while begin < keys.size:
        end = begin + 1
        while end < keys.size and (keys[end] ^ keys[begin]) >> width == 0:
            end += 1
        first[begin] = begin
        if end - begin > 1:
            settle_run(keys, width, begin, end, rows, values, first)
        begin = end


@kernel
def _stack_sums(keys: Ints, width: int, first: Ints, tied: Bools, ours2: Ints, rule: int) -> Ints:
    """Sums of each column; `ours2` is the doubled original rank of each row."""
    sums = np.empty((len(keys), 3), np.int64)
    theirs2 = np.empty(keys.shape[1], np.int64)
    plain2 = 2 * np.arange(keys.shape[1])
    for c in range(len(keys)):
        if not tied[c] or rule == 1:
            sums[c] = middle_sums(keys[c], width, plain2, 0, ours2[c])
            continue
        theirs2[:] = first[c]
        to_middles2(theirs2)
        if rule == 2:
            theirs2[:] = 2 * theirs2 - plain2
        sums[c] = middle_sums(keys[c], width, theirs2, 0, ours2[c])
    return sums


@kernel
def _expected_sums(keys: Ints, width: int, first: Ints, begin: Ints, end: Ints) -> tuple[float, Int]:
    """Sum of E|R - S| over the rows, and T of the masked column, see `tie_sum`.

    `begin` and `end` are the original tie block of each row.
    """
    low = (np.int64(1) << width) - 1
    total, cubes = 0.0, np.int64(0)
    last = np.empty(first.size, np.int64)
    ends(first, last)
    for j in range(keys.size):
        row = label_of(keys[j], low)
        length = last[j] - first[j] + 1
        cubes += length * length - 1  # over the whole block: L**3 - L
        total += mean_gap(begin[row], end[row], first[j], last[j])
    return total, cubes
