"""Ranks, tie rules and rank distances: the sums behind brMAE and brMSE.

All ranks are 0-based here. A tie block is the interval [first, last] of positions that equal
values share. Its mid-rank is (first + last) / 2; it is kept doubled, so that sums stay exact
integers for every tie rule that assigns ranks or half ranks.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sdckit.kernels.buffers import borrowed
from sdckit.kernels.jit import Bools, Floats, Int, Ints, inlined, inner, kernel
from sdckit.kernels.near_ties import (
    CHUNK,
    all_short,
    collided_runs,
    count_collisions,
    empty_flags,
    label_of,
    order_run,
    value_at,
    write_block_ends,
    write_block_starts,
)
from sdckit.kernels.packed_sort import (
    SMALL,
    SortedKeys,
    fill_keys,
    find_blocks,
    heavy_value,
    label_width,
    sample_of,
    sort_as_floats,
    sort_keys,
)
from sdckit.kernels.rank_sums import RankSums

Sums = tuple[Int, Int, Int]  # of |r - s|, and of (r - s)**2 in two halves; ranks doubled
COUNTABLE = 1 << 16  # integers of a narrower range are counted instead of sorted


def tie_sum(first: Ints) -> int:
    """Return the sum of L**3 - L over tie blocks of length L, from the start of each position's block."""
    opens = np.flatnonzero(first == np.arange(first.size))
    lengths, counts = np.unique(np.diff(np.append(opens, first.size)), return_counts=True)
    return sum(
        count * (length**3 - length) for length, count in zip(lengths.tolist(), counts.tolist(), strict=True)
    )


def sorted_rows(values: Floats) -> tuple[Ints, Ints]:
    """Return the row numbers in the order of their values (ties by row), and the start of each tie block.

    Short columns need no kernel: those take longer to compile than they save.
    """
    if values.size < SMALL:
        order = np.argsort(values, kind="stable")
        return order, _starts(values[order])
    rows = np.arange(values.size)
    first = np.empty(values.size, np.int64)
    with borrowed(values.size) as keys:
        found = sort_keys(values, rows, keys)
        find_blocks(found, rows, values, first)
        return found.labels, first


def _starts(ordered: Floats) -> Ints:
    """Return the start of each position's tie block in sorted values."""
    opens = np.ones(ordered.size, np.bool_)
    opens[1:] = ordered[1:] != ordered[:-1]
    return np.maximum.accumulate(np.where(opens, np.arange(ordered.size), 0))


class OrderedColumn:
    """A column without missing cells with its order, ranks and tie blocks; computed once, used often."""

    def __init__(self, values: Floats, order: Ints | None = None, first: Ints | None = None) -> None:
        self.values: Floats = np.ascontiguousarray(values, dtype=np.float64)
        self.n: int = self.values.size
        self.order: Ints
        self.first: Ints
        if order is None:
            self.order, self.first = sorted_rows(self.values)
        else:
            self.order, self.first = order, _starts(self.values[order]) if first is None else first
        self.tied: bool = bool(has_ties(self.first))
        self.rank: Ints = np.empty(self.n, np.int64)
        self.rank[self.order] = np.arange(self.n)

    @cached_property
    def last(self) -> Ints:
        """Last position of the tie block that each sorted position is in."""
        last = np.empty(self.n, np.int64)
        write_block_ends(self.first, last)
        return last

    @cached_property
    def middle2(self) -> Ints:
        """Twice the mid-rank (from 0) of each sorted position."""
        return self.first + self.last

    @cached_property
    def row_middle2(self) -> Ints:
        """Twice the mid-rank (from 0) of each row."""
        return self.middle2[self.rank]

    @cached_property
    def sorted(self) -> Floats:
        """The values in ascending order."""
        return self.values[self.order]

    def restrict(self, keep: Bools) -> OrderedColumn:
        """Return the column with only the rows in `keep`, without sorting again."""
        position = np.cumsum(keep) - 1
        return OrderedColumn(self.values[keep], position[self.order[keep[self.order]]])

    def ranks2(self, ties: str, rng: np.random.Generator | None = None) -> Ints:
        """Return twice the rank of each row under the tie rule average, first, last or random."""
        if ties == "average":
            return self.row_middle2
        if ties == "first":
            return 2 * self.rank
        if ties == "last":
            return 2 * (self.row_middle2 - self.rank)
        if ties != "random" or rng is None:
            raise ValueError(f"no ranks of one column alone under ties={ties!r}")
        shuffled = np.lexsort((rng.random(self.n), self.first))
        ranks = np.empty(self.n, np.int64)
        ranks[self.order[shuffled]] = np.arange(self.n)
        return 2 * ranks


# Sums of |r - s| and of (r - s)**2 are exact integers. Squares are summed in two halves of 32 bits: over
# ten million rows their sum can need more than 63 bits.


@inlined
def _low_half(square: Int) -> Int:
    """Return the lower 32 bits of a square."""
    return square & 0xFFFFFFFF


@inlined
def _high_half(square: Int) -> Int:
    """Return a square without its lower 32 bits, shifted down by 32."""
    return square >> 32


@kernel
def has_ties(start: Ints) -> bool | np.bool_:
    """Return True if any tie block is longer than one position, given the start of each position's block."""
    shared = np.int64(0)
    for j in range(start.size):
        shared += start[j] != j
    return shared > 0


@inner
def _untied_sums(keys: Ints, width: int, begin: int, end: int, tied: bool, middle2: Ints) -> Sums:
    """Return rank distance sums over masked positions begin..end-1, as if no masked values were tied."""
    low = (np.int64(1) << width) - 1
    absolute = squared_low = squared_high = np.int64(0)
    part = keys[begin:end]  # a slice: its loop is vectorised
    for t in range(part.size):
        label = label_of(part[t], low)
        difference = (middle2[label] if tied else 2 * label) - 2 * (begin + t)
        absolute += abs(difference)
        squared_low += _low_half(difference * difference)
        squared_high += _high_half(difference * difference)
    return absolute, squared_low, squared_high


@kernel
def _block_sums(keys: Ints, width: int, begin: int, end: int, tied: bool, middle2: Ints) -> Sums:
    """Return rank distance sums over one tie block of the masked column, positions begin..end-1."""
    low = (np.int64(1) << width) - 1
    absolute = squared_low = squared_high = np.int64(0)
    part = keys[begin:end]
    for t in range(part.size):
        label = label_of(part[t], low)
        difference = (middle2[label] if tied else 2 * label) - (begin + end - 1)
        absolute += abs(difference)
        squared_low += _low_half(difference * difference)
        squared_high += _high_half(difference * difference)
    return absolute, squared_low, squared_high


@kernel
def to_middles2(start: Ints) -> None:
    """Replace the start of each position's tie block, in place, by the block's doubled mid-rank."""
    end = np.int64(start.size - 1)
    for j in range(start.size - 1, -1, -1):
        begin = start[j]
        start[j] = begin + end
        opens = -np.int64(begin == j)  # all bits set where a block begins: selects without a branch
        end = ((j - 1) & opens) | (end & ~opens)


@kernel
def middle_sums(keys: Ints, width: int, masked2: Ints, factor: int, middle2: Ints) -> Sums:
    """Return rank distance sums over all positions, given the doubled masked mid-rank of each.

    The doubled original mid-rank is `factor` times the label or, where that is 0, looked up.
    """
    low = (np.int64(1) << width) - 1
    absolute = squared_low = squared_high = np.int64(0)
    for j in range(keys.size):
        label = label_of(keys[j], low)
        difference = (middle2[label] if factor == 0 else factor * label) - masked2[j]
        absolute += abs(difference)
        squared_low += _low_half(difference * difference)
        squared_high += _high_half(difference * difference)
    return absolute, squared_low, squared_high


@kernel
def _gap_sums(gaps2: Ints) -> Sums:
    """Return the sums of |d| and of d**2 (in two halves) over doubled rank differences d."""
    absolute = squared_low = squared_high = np.int64(0)
    for i in range(gaps2.size):
        difference = gaps2[i]
        absolute += abs(difference)
        squared_low += _low_half(difference * difference)
        squared_high += _high_half(difference * difference)
    return absolute, squared_low, squared_high


@kernel
def singles_and_flags(
    keys: Ints, width: int, begin: int, end: int, tied: bool, middle2: Ints, flags: Bools
) -> tuple[Int, Int, Int, Int]:
    """Return rank distance sums as if without ties and the number of collisions, and flag the latter."""
    absolute = squared_low = squared_high = collisions = np.int64(0)
    for chunk in range(begin // CHUNK, -(-end // CHUNK)):
        first, last = max(chunk * CHUNK, begin), min((chunk + 1) * CHUNK, end)
        sums = _untied_sums(keys, width, first, last, tied, middle2)
        absolute, squared_low, squared_high = (
            absolute + sums[0],
            squared_low + sums[1],
            squared_high + sums[2],
        )
        found = count_collisions(keys, width, first, last)
        flags[chunk] |= found > 0
        collisions += found
    return absolute, squared_low, squared_high, collisions


@kernel
def _run_corrections(
    keys: Ints, width: int, runs: Ints, row_of: Ints, values: Floats, tied: bool, middle2: Ints
) -> Sums:
    """Return what to add to the tie-free rank distance sums for the ties and disorder inside runs."""
    low = (np.int64(1) << width) - 1
    absolute = squared_low = squared_high = np.int64(0)
    for r in range(len(runs)):
        begin, end = runs[r, 0], runs[r, 1]
        sums = _untied_sums(keys, width, begin, end, tied, middle2)
        absolute, squared_low, squared_high = (
            absolute - sums[0],
            squared_low - sums[1],
            squared_high - sums[2],
        )
        order_run(keys, width, begin, end, row_of, values)
        block = begin
        for t in range(begin + 1, end + 1):
            if t == end or value_at(keys[t], low, row_of, values) != value_at(
                keys[block], low, row_of, values
            ):
                sums = _block_sums(keys, width, block, t, tied, middle2)
                absolute += sums[0]
                squared_low += sums[1]
                squared_high += sums[2]
                block = t
    return absolute, squared_low, squared_high


def _rank_sums(n: int, parts: list[Sums]) -> RankSums:
    """Return `RankSums` of n records as the total of partial sums, with squares put together from halves."""
    absolute, squared_low, squared_high = (sum(int(part[i]) for part in parts) for i in range(3))
    return RankSums(n, absolute, (squared_high << 32) + squared_low)


def gap_distance(gaps2: Ints) -> RankSums:
    """Return the rank distance sums of a column, given twice the rank difference of each record."""
    return _rank_sums(gaps2.size, [_gap_sums(gaps2)])


def average_distance(column: OrderedColumn, masked: Floats) -> RankSums:
    """Return the rank distance sums of a masked column under mid-ranks; it is sorted once at most."""
    if column.n < SMALL:
        return gap_distance(column.row_middle2 - OrderedColumn(masked).row_middle2)
    whole = _seem_whole(masked)
    counted = _counted_distance(column, masked) if whole else None
    if counted is not None:
        return counted
    with borrowed(column.n) as keys:
        found = _whole_distance(column, masked, keys) if whole and column.tied else None
        if found is not None:
            return found
        return _sorted_distance(column, masked, sort_keys(masked, column.rank, keys, inside_ties=False))


def _whole_distance(column: OrderedColumn, masked: Floats, keys: Ints) -> RankSums | None:
    """Return mid-rank distance sums for values whose low bits are all 0, such as whole numbers, or None.

    Equal keys are ties then and the row of a key is not needed, so the label can be the mid-rank itself,
    which saves a look-up in a large table. None for other values, and if one value fills much of the column.
    """
    width = label_width(2 * column.n - 2)
    if heavy_value(masked) is not None:
        return None
    if fill_keys(masked.view(np.int64), column.row_middle2, width, keys):
        return None
    sort_as_floats(keys)
    with borrowed(column.n) as start:
        write_block_starts(keys, width, start)
        to_middles2(start)
        return _rank_sums(column.n, [middle_sums(keys, width, start, 1, column.middle2)])


def _sorted_distance(column: OrderedColumn, masked: Floats, found: SortedKeys) -> RankSums:
    """Return the rank distance sums under mid-ranks, given the sorted keys of the masked column."""
    keys, width, heavy = found.keys, found.width, found.heavy
    tied, middle2 = column.tied, column.middle2
    flags = empty_flags(keys)
    parts = [singles_and_flags(keys, width, *part, tied, middle2, flags) for part in found.stretches]
    doubtful = sum(int(part[3]) for part in parts)
    if doubtful <= column.n // 10:
        runs = collided_runs(keys, width, flags, doubtful, keys, False, heavy.start, heavy.stop)
        if all_short(runs):
            sums: list[Sums] = [part[:3] for part in parts]
            sums.append(_block_sums(keys, width, heavy.start, heavy.stop, tied, middle2))
            sums.append(_run_corrections(keys, width, runs, column.order, masked, tied, middle2))
            return _rank_sums(column.n, sums)
    with borrowed(column.n) as start:
        find_blocks(found, column.order, masked, start, (flags, doubtful))
        to_middles2(start)
        return _rank_sums(column.n, [middle_sums(keys, width, start, 0 if tied else 2, middle2)])


@kernel
def _count_whole(values: Floats, lowest: float, counts: Ints) -> bool:
    """Count how often each whole number occurs; return False as soon as a value is not a whole number."""
    for i in range(values.size):
        offset = np.int64(values[i] - lowest)
        counts[offset] += 1
        if offset + lowest != values[i]:
            return False
    return True


@kernel
def _counted_sums(values: Floats, lowest: float, counts: Ints, middle2: Ints) -> Sums:
    """Return mid-rank distance sums, given how often each whole number occurs in the masked column."""
    begin = np.int64(0)
    for c in range(counts.size):  # a count becomes a doubled mid-rank
        begin, counts[c] = begin + counts[c], 2 * begin + counts[c] - 1
    absolute = squared_low = squared_high = np.int64(0)
    for i in range(values.size):
        difference = middle2[i] - counts[np.int64(values[i] - lowest)]
        absolute += abs(difference)
        squared_low += _low_half(difference * difference)
        squared_high += _high_half(difference * difference)
    return absolute, squared_low, squared_high


def _seem_whole(values: Floats) -> bool:
    """Return True if a long column seems to hold whole numbers only, judged by a sample."""
    sample = sample_of(values)
    return values.size >= SMALL and bool((sample == np.floor(sample)).all())


def _lowest_and_highest(values: Floats) -> tuple[float, float]:
    """Return the smallest and the largest value as Python floats."""
    return float(values.min()), float(values.max())  # Python's floats overflow without a warning


def _counted_distance(column: OrderedColumn, masked: Floats) -> RankSums | None:
    """Return mid-rank distance sums of whole numbers in a narrow range, by counting them; else None."""
    for part in (sample_of(masked), masked):  # a sample first: it excludes most columns
        lowest, highest = _lowest_and_highest(part)
        if highest - lowest >= min(COUNTABLE, column.n):
            return None
    if lowest != np.floor(lowest):
        return None
    counts = np.zeros(int(highest - lowest) + 1, np.int64)
    if not _count_whole(masked, lowest, counts):
        return None
    return _rank_sums(column.n, [_counted_sums(masked, lowest, counts, column.row_middle2)])
