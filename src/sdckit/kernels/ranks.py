"""Sort columns, rank them under any rule for ties, and measure distances of ranks."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from sdckit.arrays import Bools, Floats, Int, Ints, UInt64s
from sdckit.kernels.jit import inlined, inner, kernel
from sdckit.kernels.sums import powers_of_two

Labels = npt.NDArray[Any]  # of unsigned integers
Sums = tuple[Any, Any, Any]  # of |r - s|, and of (r - s)**2 in two halves; ranks doubled

SMALL = 4096  # rows below which numpy sorts a single column: a kernel takes longer to compile than it saves
BITS = 8  # bits of a digit: its 256 places stay in the fastest cache
SPARE = 4  # bits beyond those that number the rows: so many leading bits tell most values apart
WIDE = 60  # bits of keys on both sides of 0: sign and exponent take so many that further ones must do that
MOVES = 8  # steps a row, on average, after which the sort by few digits is given up
COUNTABLE = 1 << 16  # values on a grid of fewer places are counted instead of sorted
RULES = ("average", "first", "last", "expected")  # the tie rules that one sort by row answers


# --- sums of rank distances ---------------------------------------------------------------------------


def largest_absolute(n: int) -> int:
    """Return the largest possible sum of |r - s| over two rankings of n records."""
    return n * n // 2


def largest_squared(n: int) -> int:
    """Return the largest possible sum of (r - s)**2 over two rankings of n records."""
    return n * (n * n - 1) // 3


class RankSums(NamedTuple):
    """Sums of |r - s| (doubled) and of (r - s)**2 (times four) over the records of a column.

    They are exact integers, floats under the rule expected: numbers for one column, arrays for several.
    """

    n: int
    absolute2: Any
    squared4: Any

    @property
    def absolute(self) -> Any:
        """brMAE of the column: 0 keeps every rank, 1 is the largest possible distance."""
        return self.absolute2 / (2 * largest_absolute(self.n)) if self.n > 1 else float("nan")

    @property
    def squared(self) -> Any:
        """brMSE of the column: 0 keeps every rank, 1 is the full reversal."""
        return self.squared4 / (4 * largest_squared(self.n)) if self.n > 1 else float("nan")

    @property
    def mean_absolute(self) -> Any:
        """rMAE of the column, the mean of |r - s| in ranks: 0 keeps every rank."""
        return self.absolute2 / (2 * self.n) if self.n > 1 else float("nan")

    @property
    def mean_squared(self) -> Any:
        """rMSE of the column, the mean of (r - s)**2 in squared ranks: 0 keeps every rank."""
        return self.squared4 / (4 * self.n) if self.n > 1 else float("nan")


@inlined
def mean_gap(a: int, b: int, c: int, d: int) -> float:
    """Return E|R - S| for independent R uniform on the integers a..b and S on c..d.

    Disjoint parts of the two intervals contribute the distance of their middles, the common part
    of m positions contributes m(m*m - 1)/3; all terms are positive, so nothing cancels.
    """
    if b < c or d < a:
        return abs((a + b) - (c + d)) / 2.0
    low, high = max(a, c), min(b, d)
    length, other, common = b - a + 1.0, d - c + 1.0, high - low + 1.0
    total = common * (common * common - 1.0) / 3.0
    total += max(c - a, 0) * other * ((c + d) - (a + c - 1)) / 2.0
    total += max(b - d, 0) * other * ((d + 1 + b) - (c + d)) / 2.0
    total += common * max(a - c, 0) * ((low + high) - (c + a - 1)) / 2.0
    total += common * max(d - b, 0) * ((b + 1 + d) - (low + high)) / 2.0
    return total / (length * other)


@inlined
def _add_gap(sums: Sums, gap2: Any) -> Sums:
    """Return the sums with one more doubled rank difference.

    Squares are added in two halves of 32 bits: over ten million rows their sum can need more than 63 bits.
    """
    square = gap2 * gap2
    return sums[0] + abs(gap2), sums[1] + (square & 0xFFFFFFFF), sums[2] + (square >> 32)


@kernel
def _gap_sums(gaps2: Ints) -> Sums:
    """Return the sums of |d| and of d**2 (in two halves) over doubled rank differences d."""
    sums: Sums = np.int64(0), np.int64(0), np.int64(0)
    for i in range(gaps2.size):
        sums = _add_gap(sums, gaps2[i])
    return sums


def _rank_sums(n: int, sums: Sums) -> RankSums:
    """Return `RankSums` of n records, with squares put together from halves."""
    return RankSums(n, int(sums[0]), (int(sums[2]) << 32) + int(sums[1]))


def gap_distance(gaps2: Ints) -> RankSums:
    """Return the rank distance sums of a column, given twice the rank difference of each record."""
    return _rank_sums(gaps2.size, _gap_sums(gaps2))


def tie_sum(first: Ints) -> int:
    """Return the sum of L**3 - L over tie blocks of length L, from the start of each position's block."""
    opens = np.flatnonzero(first == np.arange(first.size))
    lengths, counts = np.unique(np.diff(np.append(opens, first.size)), return_counts=True)
    return sum(
        count * (length**3 - length) for length, count in zip(lengths.tolist(), counts.tolist(), strict=True)
    )


# --- sorting ------------------------------------------------------------------------------------------


class Grid(NamedTuple):
    """The keys of a column: integers in the order of the values, from 0, without the bits that all share."""

    least: np.uint64  # the smallest value as an ordered integer
    shift: np.uint64  # low bits that no two values differ in
    width: int  # bits of the largest key


@inlined
def _ordered(bits: Int) -> np.uint64:
    """Map the bits of a finite float64 to an unsigned integer of the same order; -0.0 maps as 0.0 does."""
    sign = bits >> 63  # all bits set for negative values
    return np.uint64(((bits & 0x7FFFFFFFFFFFFFFF) ^ sign) - sign) ^ np.uint64(1 << 63)


def grid_of(values: Floats) -> Grid:
    """Return the grid of a column."""
    least, shift, width = _find_grid(values.view(np.int64))
    return Grid(np.uint64(least), np.uint64(shift), width)  # compiled code returns plain integers


@kernel
def _find_grid(bits: Ints) -> Grid:
    """Return the grid of a column, given the bits of its values."""
    start = _ordered(bits[0])
    least, most, differ = start, start, np.uint64(0)
    for i in range(bits.size):
        value = _ordered(bits[i])
        least, most = min(least, value), max(most, value)
        differ |= value ^ start
    shift, width = np.uint64(0), 0
    while differ and not (differ >> shift) & np.uint64(1):
        shift += np.uint64(1)
    rest = (most - least) >> shift
    while rest:
        rest >>= np.uint64(1)
        width += 1
    return Grid(least, shift, width)


@inlined
def _key(bits: Int, grid: Grid) -> np.uint64:
    """Return the key of a value."""
    return (_ordered(bits) - grid.least) >> grid.shift


@inner
def _sort_digit(keys: UInt64s, labels: Labels, low: int, place: Ints, to: UInt64s, out: Labels) -> None:
    """Copy keys and labels in the order of one digit, the bits from `low` on."""
    shift, mask = np.uint64(low), np.uint64((1 << BITS) - 1)
    place[:] = 0
    for i in range(keys.size):
        place[(keys[i] >> shift) & mask] += 1
    here = np.int64(0)
    for digit in range(place.size):  # a count becomes the first place
        here, place[digit] = here + place[digit], here
    for i in range(keys.size):
        key = keys[i]
        digit = (key >> shift) & mask
        goal = np.uint64(place[digit])  # unsigned, so that no index needs a check for being negative
        place[digit] += 1
        to[goal], out[goal] = key, labels[i]


@inner
def _insert(keys: UInt64s, labels: Labels, moves: int) -> bool:
    """Sort nearly sorted keys with their labels by insertion; return False after `moves` steps."""
    for i in range(1, keys.size):
        key = keys[i]
        if keys[i - 1] > key:
            label, place = labels[i], i
            while place > 0 and keys[place - 1] > key:
                keys[place], labels[place] = keys[place - 1], labels[place - 1]
                place -= 1
            keys[place], labels[place] = key, label
            moves -= i - place
            if moves < 0:
                return False
    return True


@kernel
def sort_keys(keys: UInt64s, labels: Labels, width: int, to: UInt64s, out: Labels) -> tuple[UInt64s, Labels]:
    """Return keys of `width` bits, sorted, and their labels, equal keys in the order given; uses up all four.

    Few leading digits put most keys into place, and insertion the others. Where too many share these digits,
    as beside a value that is far away, the keys are sorted by all digits.
    """
    place, spare = np.empty(1 << BITS, np.int64), SPARE
    if width > WIDE:
        spare += BITS
    enough = min(width, spare)
    while keys.size >> (enough - spare) and enough < width:
        enough += 1
    while True:
        digits = (enough + BITS - 1) // BITS
        low = max(width - digits * BITS, 0)
        for digit in range(digits):
            _sort_digit(keys, labels, low + digit * BITS, place, to, out)
            keys, labels, to, out = to, out, keys, labels
        if low == 0 or _insert(keys, labels, MOVES * keys.size):
            return keys, labels
        enough = width


@kernel
def _write_keys(bits: Ints, grid: Grid, keys: UInt64s) -> None:
    """Write the key of each value."""
    for i in range(bits.size):
        keys[i] = _key(bits[i], grid)


def _sorted_labels(values: Floats, grid: Grid, labels: Labels) -> tuple[UInt64s, Labels]:
    """Return the sorted keys of a column and the label of each; the labels given are used up."""
    keys = np.empty(values.size, np.uint64)
    _write_keys(values.view(np.int64), grid, keys)
    return sort_keys(keys, labels, grid.width, np.empty_like(keys), np.empty_like(labels))


def _label_type(largest: int) -> Any:
    """Return the type of labels up to `largest`: short ones take half the memory."""
    return np.uint32 if largest < 1 << 32 else np.uint64


@kernel
def _write_starts(keys: UInt64s, first: Ints) -> None:
    """Write for each position where its tie block begins."""
    begin: Int = np.int64(0)
    first[:1] = 0
    for j in range(1, keys.size):
        begin = j if keys[j] != keys[j - 1] else begin  # no "if" statement, which is hard to predict
        first[j] = begin


@kernel
def _write_ends(first: Ints, last: Ints) -> None:
    """Write the last position of each position's tie block, given the first one."""
    end = first.size - 1
    for j in range(first.size - 1, -1, -1):
        last[j] = end
        end = j - 1 if first[j] == j else end


def block_ends(first: Ints) -> Ints:
    """Return the last position of each position's tie block, given the first one."""
    last = np.empty_like(first)
    _write_ends(first, last)
    return last


def sorted_rows(values: Floats) -> tuple[Ints, Ints]:
    """Return the row numbers in the order of their values (ties by row), and the start of each tie block."""
    if values.size < SMALL:
        order = np.argsort(values, kind="stable")
        return order, _starts(values[order])
    rows = np.arange(values.size, dtype=_label_type(values.size))
    keys, rows = _sorted_labels(values, grid_of(values), rows)
    first = np.empty(values.size, np.int64)
    _write_starts(keys, first)
    return rows.astype(np.int64), first


def _starts(ordered: Floats) -> Ints:
    """Return the start of each position's tie block in sorted values."""
    opens = np.ones(ordered.size, np.bool_)
    opens[1:] = ordered[1:] != ordered[:-1]
    return np.maximum.accumulate(np.where(opens, np.arange(ordered.size), 0))


# --- one column ---------------------------------------------------------------------------------------


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

    @cached_property
    def tied(self) -> bool:
        """True if some values are equal."""
        return has_ties(self.first)

    @cached_property
    def rank(self) -> Ints:
        """Position of each row in the order, ties by row."""
        rank = np.empty(self.n, np.int64)
        rank[self.order] = np.arange(self.n)
        return rank

    @cached_property
    def last(self) -> Ints:
        """Last position of the tie block that each sorted position is in."""
        return block_ends(self.first)

    @cached_property
    def middle2(self) -> Ints:
        """Twice the mid-rank (from 0) of each sorted position."""
        return self.first + self.last

    @cached_property
    def row_middle2(self) -> Ints:
        """Twice the mid-rank (from 0) of each row."""
        found = np.empty(self.n, np.int64)
        _write_ranks2(self.order, self.first, 0, found)
        return found

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


def has_ties(first: Ints) -> bool:
    """Return True if any tie block is longer than one position, given the start of each position's block."""
    return bool((first != np.arange(first.size)).any())


@kernel
def _write_ranks2(order: Ints, first: Ints, rule: int, ranks2: Ints) -> None:
    """Write twice the rank of each row, under the rule with this number in `RULES` (not expected)."""
    end: Int = np.int64(order.size - 1)
    for j in range(order.size - 1, -1, -1):
        middle2 = first[j] + end
        ranks2[order[j]] = middle2 if rule == 0 else 2 * j if rule == 1 else 2 * (middle2 - j)
        end = j - 1 if first[j] == j else end


def average_distance(column: OrderedColumn, masked: Floats) -> RankSums:
    """Return the rank distance sums of a masked column under mid-ranks; it is sorted once at most."""
    n = column.n
    if n < SMALL:
        return gap_distance(column.row_middle2 - OrderedColumn(masked).row_middle2)
    bits, grid = masked.view(np.int64), grid_of(masked)
    if 1 << grid.width <= min(COUNTABLE, n):
        counts = np.zeros(1 << grid.width, np.int64)
        return _rank_sums(n, _counted_sums(bits, grid, counts, column.row_middle2))
    labels = column.row_middle2.astype(_label_type(2 * n))
    return _rank_sums(n, _sorted_sums(*_sorted_labels(masked, grid, labels)))


@kernel
def _sorted_sums(keys: UInt64s, middle2: Labels) -> Sums:
    """Return mid-rank distance sums, given the masked column's sorted keys and original mid-ranks."""
    sums: Sums = np.int64(0), np.int64(0), np.int64(0)
    begin, n = 0, keys.size
    while begin < n:
        end = begin + 1
        while end < n and keys[end] == keys[begin]:
            end += 1
        for j in range(begin, end):
            sums = _add_gap(sums, np.int64(middle2[j]) - (begin + end - 1))
        begin = end
    return sums


@kernel
def _counted_sums(bits: Ints, grid: Grid, counts: Ints, middle2: Ints) -> Sums:
    """Return mid-rank distance sums of a masked column with few possible keys, whose counts are 0 so far."""
    for i in range(bits.size):
        counts[_key(bits[i], grid)] += 1
    begin: Int = np.int64(0)
    for c in range(counts.size):  # a count becomes a doubled mid-rank
        begin, counts[c] = begin + counts[c], 2 * begin + counts[c] - 1
    sums: Sums = np.int64(0), np.int64(0), np.int64(0)
    for i in range(bits.size):
        sums = _add_gap(sums, middle2[i] - counts[_key(bits[i], grid)])
    return sums


# --- many short columns at once: for a thousand records, calls cost more than sorting -------------------


class ColumnStack:
    """Several short columns without missing cells, sorted (one line each), equal values by row."""

    def __init__(self, values: Floats) -> None:
        self.values = values
        self.order: Ints = np.empty(values.shape, np.int64)  # row numbers in the order of their values
        self.first: Ints = np.empty(values.shape, np.int64)  # first position of each position's tie block
        _sort_stack(values.view(np.int64), self.order, self.first)
        self._ranks2: dict[str, Ints] = {}

    def column(self, j: int) -> OrderedColumn:
        """Return column j as an `OrderedColumn`, without sorting it again."""
        return OrderedColumn(self.values[j], self.order[j], self.first[j])

    def ranks2(self, ties: str) -> Ints:
        """Return twice the rank of each row under the tie rule average, first or last."""
        if ties not in self._ranks2:
            ranks = np.empty(self.order.shape, np.int64)
            _write_stack_ranks2(self.order, self.first, RULES.index(ties), ranks)
            self._ranks2[ties] = ranks  # only now: another thread may read it while the kernel writes
        return self._ranks2[ties]

    @cached_property
    def blocks(self) -> tuple[Ints, Ints]:
        """First and last position of the tie block of each row."""
        begin, end = np.empty_like(self.first), np.empty_like(self.first)
        np.put_along_axis(begin, self.order, self.first, axis=1)
        np.put_along_axis(end, self.order, np.stack([block_ends(first) for first in self.first]), axis=1)
        return begin, end

    @cached_property
    def tie_sums(self) -> Ints:
        """Sum of L**3 - L over the tie blocks of length L, for each column."""
        return np.array([tie_sum(first) for first in self.first])

    def distances(self, masked: ColumnStack, ties: str) -> RankSums:
        """Return the rank distance sums of all columns, as arrays, under one of the tie rules in `RULES`."""
        rule = "average" if ties == "expected" else ties
        absolute2, squared4 = _stack_sums(self.ranks2(rule), masked.order, masked.first, RULES.index(rule))
        n = self.values.shape[1]
        lost = self.tie_sums + masked.tie_sums if ties == "expected" else np.zeros(1, np.int64)
        if not lost.any():
            return RankSums(n, absolute2, squared4)
        expected = _expected_sums(*self.blocks, masked.order, masked.first, lost)
        return RankSums(n, np.where(lost > 0, 2 * expected, absolute2), squared4 + lost / 3)


@kernel
def _sort_stack(bits: Ints, order: Ints, first: Ints) -> None:
    """Write the order of the rows of each column (one line each), and the start of each tie block."""
    n = bits.shape[1]
    keys, to = np.empty(n, np.uint64), np.empty(n, np.uint64)
    rows, out = np.empty(n, np.uint32), np.empty(n, np.uint32)
    for c in range(len(bits)):
        grid = _find_grid(bits[c])
        for i in range(n):
            keys[i], rows[i] = _key(bits[c, i], grid), i
        sorted_keys, sorted_rows = sort_keys(keys, rows, grid.width, to, out)
        order[c] = sorted_rows
        _write_starts(sorted_keys, first[c])


@kernel
def _write_stack_ranks2(order: Ints, first: Ints, rule: int, ranks2: Ints) -> None:
    """Write twice the rank of each row of each column, see `_write_ranks2`."""
    for c in range(len(order)):
        _write_ranks2(order[c], first[c], rule, ranks2[c])


@kernel
def _stack_sums(ranks2: Ints, order: Ints, first: Ints, rule: int) -> Ints:
    """Return each column's sums of |r - s| (doubled) and of (r - s)**2 (times four), within int64.

    Of the original twice the rank of each row is given; of the masked file order and tie blocks, and how
    these are ranked, by the rule's number in `RULES`.
    """
    sums = np.zeros((2, len(order)), np.int64)
    for c in range(len(order)):
        absolute = squared = np.int64(0)
        last: Int = np.int64(order.shape[1] - 1)
        for j in range(order.shape[1] - 1, -1, -1):
            middle2 = first[c, j] + last
            theirs2 = middle2 if rule == 0 else 2 * j if rule == 1 else 2 * (middle2 - j)
            gap2 = ranks2[c, order[c, j]] - theirs2
            absolute += abs(gap2)
            squared += gap2 * gap2
            last = j - 1 if first[c, j] == j else last
        sums[0, c], sums[1, c] = absolute, squared
    return sums


@kernel
def _expected_sums(begin: Ints, end: Ints, order: Ints, first: Ints, lost: Ints) -> Floats:
    """Return each tied column's sum of E|R - S|, added in masked order; 0 for columns that lose nothing."""
    sums = np.zeros(len(order))
    for c in range(len(order)):
        start, n = 0, order.shape[1] if lost[c] > 0 else 0
        while start < n:
            stop = start + 1
            while stop < n and first[c, stop] == start:
                stop += 1
            for j in range(start, stop):
                row = order[c, j]
                sums[c] += mean_gap(begin[c, row], end[c, row], start, stop - 1)
            start = stop
    return sums


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
    """Return each value's bucket: 2k + 1 if it equals splitter k, 2k if it lies just below it."""
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


Number = TypeVar("Number", np.int64, np.float64)

TIES = ("average", "expected", "random", "first", "last", "min", "max")


def distance(
    column: OrderedColumn, masked: Floats, ties: str = "average", rng: np.random.Generator | None = None
) -> RankSums:
    """Return the sums of absolute and squared rank differences of one column under a rule of `TIES`."""
    if ties == "average":
        return average_distance(column, masked)
    if ties in {"min", "max", "expected"}:
        alignment = AlignedColumn(column, masked)
        return {"min": alignment.least, "max": alignment.largest, "expected": alignment.expected}[ties]()
    return gap_distance(row_gaps2(column, masked, ties, rng))


def row_gaps2(
    column: OrderedColumn, masked: Floats, ties: str, rng: np.random.Generator | None = None
) -> Ints:
    """Return twice the rank difference of each row, for every tie rule that assigns ranks."""
    if ties in {"min", "max"}:
        alignment = AlignedColumn(column, masked)
        ours, theirs = alignment.least_ranks() if ties == "min" else alignment.largest_ranks()
        return alignment.to_rows(2 * (ours - theirs))
    return column.ranks2(ties, rng) - OrderedColumn(masked).ranks2(ties, rng)


class AlignedColumn:
    """A masked column sorted beside its original ranks; gives their rank distance under each tie rule.

    Equal masked values are in original order.
    """

    def __init__(self, column: OrderedColumn, masked: Floats) -> None:
        self.column = column
        self.n: int = column.n
        self.label: Ints
        self.first: Ints
        self.label, self.first = sorted_rows(masked[column.order])
        self.tied: bool = has_ties(self.first)

    @cached_property
    def last(self) -> Ints:
        """Last position of the masked tie block that each masked position is in."""
        return block_ends(self.first)

    @property
    def has_ties(self) -> bool:
        """True if the original or the masked column has ties, so that tie rules can differ."""
        return self.tied or self.column.tied

    def to_rows(self, by_position: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return values given by masked position in the order of the rows."""
        rows = np.empty_like(by_position)
        rows[self.column.order[self.label]] = by_position
        return rows

    def least_ranks(self) -> tuple[Ints, Ints]:
        """Return both ranks of each record, in masked order, for the tie-breaking of least distance."""
        original = np.empty(self.n, np.int64)
        _least_ranks(self.label, self.column.first, np.zeros(self.n, np.int64), original)
        return original, np.arange(self.n)

    def largest_ranks(self) -> tuple[Ints, Ints]:
        """Return both ranks of each record, in masked order, for the tie-breaking of largest distance."""
        original = np.empty(self.n, np.int64)
        masked = np.empty(self.n, np.int64)
        _largest_ranks(
            self.label, self.first, self.last, self.column.first, np.zeros(self.n, np.int64), original, masked
        )
        return original, masked

    def least(self) -> RankSums:
        """Return the least rank distance sums over all tie-breakings."""
        original, masked = self.least_ranks()
        return gap_distance(2 * (original - masked))

    def largest(self) -> RankSums:
        """Return the largest rank distance sums over all tie-breakings."""
        original, masked = self.largest_ranks()
        return gap_distance(2 * (original - masked))

    def average(self) -> RankSums:
        """Return the rank distance sums between mid-ranks."""
        return gap_distance(self.column.middle2[self.label] - (self.first + self.last))

    def expected(self) -> RankSums:
        """Return the mean rank distance sums over independent random tie-breakings of both columns."""
        middle = self.average()
        absolute = float(np.sum(self.expected_absolute()))
        spread = tie_sum(self.column.first) + tie_sum(self.first)
        return RankSums(self.n, 2 * absolute, middle.squared4 + spread / 3)

    def expected_absolute(self) -> Floats:
        """Return E|R - S|, the mean over random tie-breakings, for each masked position."""
        out = np.empty(self.n, np.float64)
        _expected_absolute(
            self.column.first[self.label], self.column.last[self.label], self.first, self.last, out
        )
        return out

    def expected_squared(self) -> Floats:
        """Return E(R - S)**2, the mean over random tie-breakings, for each masked position."""
        middle = (self.column.middle2[self.label] - self.first - self.last) / 2.0
        lengths = self.column.last[self.label] - self.column.first[self.label] + 1.0
        others = self.last - self.first + 1.0
        return middle**2 + (lengths**2 - 1) / 12 + (others**2 - 1) / 12


@kernel
def _least_ranks(label: Ints, block: Ints, used: Ints, original: Ints) -> None:
    """Write original ranks for least distance: records tied in the original ascend by masked position."""
    for j in range(label.size):
        begin = block[label[j]]
        original[j] = begin + used[begin]
        used[begin] += 1


@kernel
def _largest_ranks(
    label: Ints, first: Ints, last: Ints, block: Ints, used: Ints, original: Ints, masked: Ints
) -> None:
    """Write both ranks of each record for largest distance: records tied in the original descend by masked.

    Records that share both their original and their masked tie block get opposite orders.
    """
    end = label.size
    while end > 0:
        begin = end - 1
        block_start = block[label[begin]]
        while begin > first[end - 1] and block[label[begin - 1]] == block_start:
            begin -= 1
        for t in range(begin, end):
            original[t] = block_start + used[block_start] + t - begin
            masked[t] = first[t] + last[t] - t
        used[block_start] += end - begin
        end = begin


@kernel
def _expected_absolute(a: Ints, b: Ints, c: Ints, d: Ints, out: Floats) -> None:
    """Write E|R - S| of each record, for R uniform on the integers a..b and S on c..d."""
    for j in range(a.size):
        out[j] = mean_gap(a[j], b[j], c[j], d[j])


# Levels of an unrelated masked column: the mean over all ways to pair the two columns.


@kernel
def cross_gap_part(
    points: Floats,
    weights: Floats,
    others: Floats,
    low: float,
    high: float,
    below: float,
    above: float,
    passed: int,
    count: int,
) -> float:
    """Return the part of the sum of weights[i] |points[i] - others[j]| that lies between two values.

    Each distance is the length of the stretch between its ends, so the sum adds up over stretches of values.
    `points` and `others` are the sorted values from `low` to `high`; points below the stretch have the total
    weight `below`, all others `above`; `passed` of the `count` others lie below it.
    """
    total = 0.0
    i = j = 0
    previous = low
    while i < points.size or j < others.size:
        if j == others.size or (i < points.size and points[i] <= others[j]):
            here = points[i]
            total += (here - previous) * (below * (count - passed - j) + above * (passed + j))
            below += weights[i]
            above -= weights[i]
            i += 1
        else:
            here = others[j]
            total += (here - previous) * (below * (count - passed - j) + above * (passed + j))
            j += 1
        previous = here
    if high > previous:
        total += (high - previous) * (below * (count - passed - j) + above * (passed + j))
    return total


@kernel
def mean_cross_gap(points: Floats, weights: Floats, others: Floats) -> float:
    """Return the sum over i of weights[i] times the mean over j of |points[i] - others[j]|; both sorted."""
    above = 0.0
    for k in range(weights.size):
        above += weights[k]
    low, n = min(points[0], others[0]), others.size
    return cross_gap_part(points, weights, others, low, low, 0.0, above, 0, n) / n


def untied_level(n: int) -> tuple[float, float]:
    """Return the expected brMAE and brMSE of a random order of n records without ties."""
    return ((n * n - 1) / 3 / largest_absolute(n), 0.5) if n > 1 else (float("nan"), float("nan"))


def random_level(alignment: AlignedColumn, ties: str) -> tuple[float, float]:
    """Return the expected brMAE and brMSE of a masked column whose order is unrelated to the original's.

    Rules that break ties at random score as without ties, mid-ranks score less. For first, last,
    min and max no formula is known where there are ties: NaN.
    """
    if ties != "average" or not alignment.has_ties:
        return level_without_midranks(alignment.n, ties, has_ties=alignment.has_ties)
    original = alignment.column.middle2 / 2.0
    masked = (alignment.first + alignment.last) / 2.0
    lost = tie_sum(alignment.column.first) + tie_sum(alignment.first)
    return midrank_level(alignment.n, mean_cross_gap(original, np.ones(alignment.n), masked), lost)


def level_without_midranks(n: int, ties: str, *, has_ties: bool) -> tuple[float, float]:
    """Return brMAE and brMSE in unrelated order where no mid-rank is needed; NaN without a formula."""
    if n < 2 or not has_ties or ties in {"random", "expected"}:
        return untied_level(n)
    return float("nan"), float("nan")


def midrank_level(n: int, cross_gap: float, lost: int) -> tuple[float, float]:
    """Return brMAE and brMSE in unrelated order under mid-ranks.

    `cross_gap` is `mean_cross_gap` of the mid-ranks of both columns, `lost` the sum of their `tie_sum`.
    """
    return cross_gap / largest_absolute(n), 0.5 - lost / (4 * n * (n * n - 1))


class TieSummary(NamedTuple):
    """Effect of ties in one column: least and largest rank distance, and the level of unrelated order."""

    has_ties: bool
    least: RankSums
    largest: RankSums
    levels: dict[str, tuple[float, float]]


def summarise(alignment: AlignedColumn) -> TieSummary:
    """Return the least, largest and random levels of an alignment's rank distance, without its arrays."""
    least = alignment.least()
    largest = alignment.largest() if alignment.has_ties else least
    levels = {ties: random_level(alignment, ties) for ties in TIES}
    return TieSummary(alignment.has_ties, least, largest, levels)


PERMUTATIONS = (9, 99)  # fewest and most random pairings for a level of unrelated order
ENOUGH = 1_000_000  # records in all pairings together
LIGHTEST = 1e-300  # smallest weight as a share of the largest; smaller ones would underflow to 0


class WeightedRanks:
    """Weighted rank positions of one variable, original and masked, and the gaps between them.

    Weights count in units of a power of two next to the largest of them, so that no scale of the weights
    changes a digit or leaves the range of numbers. Positions count from the middle of the weight: half of
    the weight below less half of the weight above. Both are sums of weights and neither is a difference
    from the total, in which the rounding of one heavy record would exceed all others.
    """

    def __init__(self, x: Floats, y: Floats, weights: Floats) -> None:
        self.original: OrderedColumn = OrderedColumn(x)
        self.masked: OrderedColumn = OrderedColumn(y)
        self.weights: Floats = np.maximum(weights / powers_of_two(weights), LIGHTEST)
        self.positions: Floats = _positions(self.original, self.original.order, self.weights)
        self.gap: Floats = self.positions - _positions(self.masked, self.masked.order, self.weights)
        self.reach: float
        self.largest_squared: float
        self.reach, self.largest_squared = _distances_from_middle(
            self.original, self.original.order, self.weights
        )

    def largest(self) -> tuple[float, float]:
        """Return the largest possible weighted sums of |R - S| and (R - S)**2."""
        return self.reach + _distances_from_middle(self.masked, self.masked.order, self.weights)[
            0
        ], self.largest_squared

    def values(self) -> tuple[float, float]:
        """Return weighted brMAE and brMSE: 0 keeps every rank, 1 is the largest possible distance."""
        return _shares(self.gap, self.weights, *self.largest())

    def record_costs(self) -> tuple[Floats, Floats]:
        """Return each record's cost in brMAE and in brMSE; their weighted means are the two values."""
        absolute, squared = self.largest()
        total = self.weights.sum()
        return np.abs(self.gap) * total / absolute, self.gap**2 * total / squared

    def unrelated_values(self) -> tuple[float, float]:
        """Return weighted brMAE and brMSE of an unrelated masked order: means over random pairings.

        The pairings are the same at every call, so that results can be repeated. No column is sorted again:
        a random pairing assigns the positions of the masked order to the records at random.
        """
        n = self.original.n
        rng = np.random.default_rng(0)
        found = []
        for _ in range(int(np.clip(ENOUGH // n, *PERMUTATIONS))):
            rows = rng.permutation(n)
            gap = self.positions - _positions(self.masked, rows, self.weights)
            reach = self.reach + _distances_from_middle(self.masked, rows, self.weights)[0]
            found.append(_shares(gap, self.weights, reach, self.largest_squared))
        absolute, squared = np.mean(found, axis=0).tolist()
        return absolute, squared


def _shares(gap: Floats, weights: Floats, absolute: float, squared: float) -> tuple[float, float]:
    """Return weighted sums of |gap| and gap**2 as shares of their largest values, at most 1."""
    sums = float(np.sum(weights * np.abs(gap))), float(np.sum(weights * gap**2))
    return shares_of_largest(sums, (absolute, squared))


def shares_of_largest(sums: tuple[float, float], largest: tuple[float, float]) -> tuple[float, float]:
    """Return both sums as shares of their largest values, at most 1: rounding could exceed it."""
    return min(sums[0] / largest[0], 1.0), min(sums[1] / largest[1], 1.0)


def _positions(column: OrderedColumn, rows: Ints, weights: Floats) -> Floats:
    """Return the weighted position of each record, if `rows` are the records in the order of the column."""
    below, above = weights_before_after(weights[rows])
    positions = np.empty(column.n)
    positions[rows] = (below[column.first] - above[column.last]) / 2
    return positions


def weights_before_after(ordered: Floats) -> tuple[Floats, Floats]:
    """Return the total weight of the records before each one, and of those after it."""
    below, above = np.zeros(ordered.size), np.zeros(ordered.size)
    np.cumsum(ordered[:-1], out=below[1:])
    above[:-1] = np.cumsum(ordered[:0:-1])[::-1]
    return below, above


def _distances_from_middle(column: OrderedColumn, rows: Ints, weights: Floats) -> tuple[float, float]:
    """Return A, the weighted sum of |position|, with ties broken by weight, and 4 times that of squares.

    B is the same of squared distances, (W**3 - sum of w**3) / 12 whatever the order.
    """
    ordered = weights[rows]
    if column.tied:
        ordered = ordered[np.lexsort((ordered, column.first))]
    below, above = weights_before_after(ordered)
    positions = (below - above) / 2
    return float(np.sum(ordered * np.abs(positions))), 4 * float(np.sum(ordered * positions**2))
