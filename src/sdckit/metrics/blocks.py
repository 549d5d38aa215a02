"""What losses ask of blocks of rows: sums of cells, columns side by side, contributions, distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from sdckit.arrays import Floats, Ints
from sdckit.kernels.jit import inlined, kernel, plain
from sdckit.kernels.ranks import mean_cross_gap
from sdckit.kernels.sums import deviations, powers_of_two

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from sdckit.arrays import Bools
    from sdckit.metrics.pair import VariablePair


LOWEST = -(2**20)  # below the exponent of any product of a few floats


@dataclass(frozen=True)
class Scaled:
    """Arrays of numbers `mantissas` times 2 to the `exponents`."""

    mantissas: Floats
    exponents: NDArray[np.int32]

    @classmethod
    def of(cls, values: Floats) -> Scaled:
        """Return floats as scaled numbers; no digit changes."""
        return cls(*np.frexp(values))

    @classmethod
    def gaps(cls, x: Floats, y: Floats) -> Scaled:
        """Return |x - y|, also where that exceeds the largest float."""
        gaps = np.abs(x - y)
        beyond = np.isinf(gaps)
        found = cls.of(np.where(beyond, np.abs(x / 2 - y / 2), gaps))
        return cls(found.mantissas, found.exponents + beyond.astype(np.int32))

    @classmethod
    def stack(cls, parts: list[Scaled]) -> Scaled:
        """Return one array of several scaled numbers or arrays of the same length."""
        return cls(
            np.array([part.mantissas for part in parts]),
            np.array([part.exponents for part in parts], np.int32),
        )

    def __mul__(self, other: Scaled) -> Scaled:
        return Scaled(self.mantissas * other.mantissas, self.exponents + other.exponents)

    def __truediv__(self, other: Scaled) -> Scaled:
        return Scaled(self.mantissas / other.mantissas, self.exponents - other.exponents)

    def minus(self, other: Scaled) -> Scaled:
        """Return the differences from other scaled numbers."""
        return Scaled.stack([self, Scaled(-other.mantissas, other.exponents)]).sum()

    def __getitem__(self, chosen: NDArray[np.bool_]) -> Scaled:
        return Scaled(self.mantissas[chosen], self.exponents[chosen])

    def in_one_unit(self) -> Scaled:
        """Return numbers that share the largest exponent along the first axis; far smaller ones vanish."""
        top = np.max(self.exponents, axis=0, where=self.mantissas != 0, initial=LOWEST)
        return Scaled(np.ldexp(self.mantissas, self.exponents - top), np.asarray(top, np.int32))

    def sum(self) -> Scaled:
        """Return the sum over the first axis."""
        parts = self.in_one_unit()
        return Scaled(parts.mantissas.sum(axis=0), parts.exponents)

    def floats(self) -> Floats:
        """Return the numbers as floats, infinite beyond the largest one."""
        found: Floats = np.ldexp(self.mantissas, self.exponents)
        return found


# The two costs of a cell: for arrays as they stand, compiled for the kernel that adds them up.


def absolute_cost(x: Any, y: Any, scale: Any) -> Any:
    """Return |x - y| / scale, for arrays or numbers."""
    return abs(x - y) / scale


def squared_cost(x: Any, y: Any, scale: Any) -> Any:
    """Return (x - y)**2 / scale, for arrays or numbers."""
    return (x - y) * (x - y) / scale


def arctan_changes(x: Floats, y: Floats, unit: float) -> Floats:
    """Return (2/pi) arctan(|x - y| / unit) for each cell; for unit 0, 1 where the cell changed."""
    if unit == 0:
        return (x != y).astype(np.float64)
    with np.errstate(over="ignore"):
        found: Floats = np.arctan(np.abs(x - y) / unit) * (2 / np.pi)
    return found


_absolute, _squared = inlined(absolute_cost), inlined(squared_cost)


@dataclass(frozen=True)
class Cost:
    """Cost of a cell and its divisor: 1, the cell's own size, or sqrt(2) standard deviations of its variable.

    `place` is the column of `CellSums.sums` that adds it up.
    """

    of: Callable[[Any, Any, Any], Any]
    scale: Literal["none", "value", "spread"]
    place: int

    def unrelated_sum(self, x: Floats, y: Floats, shares: Floats) -> float:
        """Return the sum of shares[i] times the mean cost of x[i] against all of y: unrelated order."""
        if self.of is squared_cost:
            with np.errstate(over="ignore"):
                return unrelated_squares(x, shares, y.mean(), y.var())
        order = np.argsort(x, kind="stable")
        return float(mean_cross_gap(x[order], shares[order], np.sort(y)))


def unrelated_squares(x: Floats, shares: Floats, mean: float, variance: float) -> float:
    """Return the sum of shares[i] times the mean of (x[i] - y)**2, from mean and variance of all y.

    Sums of blocks of x add up. Beyond the range of numbers the sum is infinite.
    """
    with np.errstate(over="ignore"):
        return float(np.sum(shares * ((x - mean) ** 2 + variance)))


MAE, MSE = Cost(absolute_cost, "none", 0), Cost(squared_cost, "none", 1)
IL1, IL1S = (
    Cost(absolute_cost, "value", 2),
    Cost(absolute_cost, "spread", 0),
)  # a scale of all cells divides their sum
ALL, NOT_ZERO, ZERO = 3, 4, 5  # columns of the sums that hold weights: of all cells, of x != 0, of x = y = 0
SEEN, KEPT, CHANGED = range(3)  # columns of the counts: cells in both files, x = y = 0, x = 0 but y not


@kernel
def _add_cells(x: Floats, y: Floats, weights: Floats, sums: Floats, counts: Ints) -> None:
    """Add costs, weights and counts of the cells observed in both files to the sums of each variable.

    An empty `weights` stands for ones. Blocks are added up apart, so that the rounding errors of a long
    column do not pile up.
    """
    for j in range(len(x)):
        for begin in range(0, x.shape[1], 256):
            plain = square = relative = every = not_zero = zero = 0.0
            kept = changed = missing = 0
            end = min(begin + 256, x.shape[1])
            for i in range(begin, end):
                a, b = x[j, i], y[j, i]
                if np.isnan(a) or np.isnan(b):
                    missing += 1
                    continue
                w = weights[i] if weights.size else 1.0
                every += w
                plain += w * _absolute(a, b, 1.0)
                square += w * _squared(a, b, 1.0)
                if a != 0:
                    not_zero += w
                    relative += w * _absolute(a, b, abs(a))
                elif b == 0:
                    zero += w
                    kept += 1
                else:
                    changed += 1
            sums[j, 0] += plain
            sums[j, 1] += square
            sums[j, 2] += relative
            sums[j, ALL] += every
            sums[j, NOT_ZERO] += not_zero
            sums[j, ZERO] += zero
            counts[j, SEEN] += end - begin - missing
            counts[j, KEPT] += kept
            counts[j, CHANGED] += changed


class CellSums(NamedTuple):
    """Sums of costs and weights, and counts of cells, of each variable; those of blocks add up.

    Columns of `sums` are the places of the costs, then `ALL`, `NOT_ZERO` and `ZERO`; those of `counts` are
    `SEEN`, `KEPT` and `CHANGED`.
    """

    sums: Floats
    counts: Ints

    def used(self, cost: Cost, zeros: str) -> Ints:
        """Return each variable's number of cells that count; a changed zero has no relative change."""
        seen, kept, changed = self.counts.T
        if cost.scale != "value":
            return seen
        return seen - changed - kept if zeros == "drop" else seen - changed

    @property
    def zero_weights(self) -> Floats:
        """Summed weight of the cells with an original value of 0, for each variable."""
        return self.sums[:, ALL] - self.sums[:, NOT_ZERO]


def cell_sums(x: Floats, y: Floats, weights: Floats | None) -> CellSums:
    """Return the sums and counts of a block of records; `x` and `y` have one row per variable."""
    found = CellSums(np.zeros((len(x), 6)), np.zeros((len(x), 3), np.int64))
    _add_cells(x, y, np.empty(0) if weights is None else weights, *found)
    return found


def variable_scales(spreads: Floats) -> Floats:
    """Return sqrt(2) standard deviations of each variable; 1 where there is no spread.

    NaN where they exceed the largest float, so that no quotient looks like a value.
    """
    with np.errstate(over="ignore"):
        found = np.where(spreads > 0, math.sqrt(2) * spreads, 1.0)
    return np.where(np.isinf(found), np.nan, found)


ROUNDING = 1e-14  # share of MSE below which a part is the rounding error of the other


class CoupledColumns(NamedTuple):
    """Values of two columns at the same quantiles, cut into pieces of equal weight in both.

    `x` are original values in ascending order; `own` is the masked value of the same record, `y` the masked
    value at the same quantile; `weights` is the size of each piece. Without weights a piece is a record.
    """

    x: Floats
    own: Floats
    y: Floats
    weights: Floats


def couple_quantiles(x: Floats, y: Floats, weights: Floats | None) -> CoupledColumns:
    """Return two columns coupled by quantile: the k-th smallest of one beside that of the other."""
    if weights is None or not x.size:
        order = np.argsort(x, kind="stable")  # sums of ties, rounded alike on every CPU
        return CoupledColumns(x[order], y[order], np.sort(y), np.ones(x.size))
    by_x, by_y = np.lexsort((y, x)), np.lexsort((x, y))
    ends_x, ends_y = np.cumsum(weights[by_x]), np.cumsum(weights[by_y])
    ends_y = np.minimum(ends_y, ends_x[-1])  # the same total, added up in another order
    ends_y[-1] = ends_x[-1]
    ends = np.union1d(ends_x, ends_y)
    rows_x, rows_y = by_x[np.searchsorted(ends_x, ends)], by_y[np.searchsorted(ends_y, ends)]
    return CoupledColumns(x[rows_x], y[rows_x], y[rows_y], np.diff(ends, prepend=0.0))


# --- mean distance at the same quantile ---


class QuantileGap(NamedTuple):
    """Mean distance of two columns at the same quantile and their joint range, both in 4 units.

    The unit is a power of two next to the largest absolute value. So neither number exceeds 1, and no sum
    leaves the range of numbers.
    """

    mean: float
    span: float
    unit: float

    @property
    def distance(self) -> float:
        """Mean distance in the units of the data."""
        return 4 * (self.unit * self.mean)

    @property
    def share_of_span(self) -> float:
        """Mean distance as a share of the joint range, 0 where that is 0."""
        return min(1.0, self.mean / self.span) if self.span > 0 else 0.0


def sum_of_gaps(pieces: CoupledColumns) -> float:
    """Return the weighted sum of |x - y| over coupled columns or a stretch of them."""
    return float((pieces.weights * np.abs(pieces.x - pieces.y)).sum())


def quantile_gap(x: Floats, y: Floats, weights: Floats | None) -> QuantileGap:
    """Return the mean distance between the values of two columns at the same quantile."""
    unit = float(powers_of_two(np.concatenate([x, y])))
    x, y = x / unit / 4, y / unit / 4
    pieces = couple_quantiles(x, y, weights)
    span = max(x.max(), y.max()) - min(x.min(), y.min())
    return QuantileGap(sum_of_gaps(pieces) / float(pieces.weights.sum()), float(span), unit)


# --- both parts of the squared error ---


def stream_power(largest: Floats) -> NDArray[np.int32]:
    """Return the power of two in whose unit columns count, from their largest absolute values.

    0 for all columns but those whose squares might leave the range of numbers.
    """
    if ((largest > 1e-140) & (largest < 1e140)).all():
        return np.zeros(largest.shape, np.int32)
    found: NDArray[np.int32] = np.clip(np.frexp(largest)[1], -1000, 1000)
    return found


def split_sums(columns: Iterable[CoupledColumns]) -> tuple[Scaled, Scaled]:
    """Return both parts of the squared error, marginal and permutation, of whole columns."""
    found: list[tuple[Floats, ...]] = []
    powers: list[NDArray[np.int32]] = []
    for pieces in columns:
        power, ends = np.zeros(len(pieces.x), np.int32), [0, -1]
        if pieces.x.size:
            power = stream_power(np.abs(np.hstack([pieces.x[:, ends], pieces.y[:, ends]])).max(1))
        found.append(part_sums(pieces, power))
        powers.append(2 * power)
    marginal, permutation = (np.concatenate(part) for part in zip(*found, strict=True))
    exponents = np.concatenate(powers)
    return Scaled(marginal, exponents), Scaled(without_rounding(marginal, permutation), exponents)


def part_sums(pieces: CoupledColumns, power: NDArray[np.int32]) -> tuple[Floats, Floats]:
    """Return both parts of the squared error, marginal and permutation, in units of 4**power.

    The columns are rows of matrices and each has one sum. Sums of stretches add up.
    """
    x, own, y, weights = pieces
    if power.any():
        x, own, y = (np.ldexp(part, -power[:, None]) for part in (x, own, y))
    sums = np.zeros((len(x), 2))
    _add_parts(x, own, y, weights, sums)
    return sums[:, 0], sums[:, 1]


def without_rounding(marginal: Floats, permutation: Floats) -> Floats:
    """Return the permutation parts of whole columns, 0 where only the other part's rounding is left."""
    return np.where(permutation < ROUNDING * marginal, 0.0, permutation)


@plain
def parts_of_square(x: float, own: float, y: float) -> tuple[float, float]:
    """Return both parts of a record's squared error, marginal and permutation.

    With `own` instead of `y` the squares would add up to MSE, so the permutation part is
    (x - own)**2 - (x - y)**2. Factored, every factor is as small as the changes are: large values
    with small changes lose no digits, and where the order is kept all terms are 0.
    """
    apart = x - y
    return apart * apart, (y - own) * ((x - own) + apart)


@kernel
def _add_parts(x: Floats, own: Floats, y: Floats, weights: Floats, sums: Floats) -> None:
    """Add both parts of the squared error of each row to the sums; empty `weights` stand for ones.

    Blocks are added up apart, so that the rounding errors of a long column do not pile up.
    """
    for j in range(len(x)):
        for begin in range(0, x.shape[1], 256):
            marginal = permutation = 0.0
            for i in range(begin, min(begin + 256, x.shape[1])):
                w = weights[i] if weights.size else 1.0
                squares = parts_of_square(x[j, i], own[j, i], y[j, i])
                marginal += w * squares[0]
                permutation += w * squares[1]
            sums[j, 0] += marginal
            sums[j, 1] += permutation


class VariableCells:
    """Cells of one variable, which of them are counted, and the divisor of each cell's cost."""

    def __init__(self, values: VariablePair, cost: Cost, zeros: str) -> None:
        self.x, self.y, self.cost, self.zeros = values.x, values.y, cost, zeros
        n = self.x.size
        self.weights: Floats = np.ones(n) if values.weights is None else values.weights
        self.counts: Bools = np.ones(n, np.bool_)
        self.scale: Floats = np.ones(n)
        self.constant: bool = False
        if cost.scale == "value":
            self.counts = self.x != 0 if zeros == "drop" else (self.x != 0) | (self.y == 0)
            self.scale = np.where(self.x == 0, 1.0, np.abs(self.x))
        elif cost.scale == "spread":
            self.constant = values.spread == 0
            self.counts[:] = not math.isnan(values.spread)
            self.scale[:] = values.scale

    @property
    def has_unrelated_level(self) -> bool:
        """True if the variable has cells that count, and a scale if its costs have one."""
        return not self.constant and bool(self.counts.any())

    @property
    def costly(self) -> Bools:
        """True for each cell that has a cost against any masked value: a zero has no relative change."""
        return self.x != 0 if self.cost.scale == "value" else np.ones(self.x.size, np.bool_)

    @property
    def zero_share(self) -> float:
        """Share of the masked values against which a zero counts as kept."""
        return 0.0 if self.zeros == "drop" else float(np.mean(self.y == 0))

    def costs(self) -> Floats:
        """Return the cost of each cell; infinite for changed cells of a constant variable."""
        if self.constant:
            return np.where(self.x == self.y, 0.0, np.inf)
        with np.errstate(over="ignore"):  # beyond the range of numbers a cost is infinite
            found: Floats = self.cost.of(self.x, self.y, self.scale)
        return found

    def unrelated_totals(self) -> tuple[float, float]:
        """Return the sums of cell losses and of their weights, as means over permutations of masked values.

        A zero has no relative change unless it meets another zero, so the number of cells that
        count is a mean, too.
        """
        if not self.has_unrelated_level:
            return math.nan, 0.0
        rows = self.costly
        weights = self.weights[rows]
        zeros = 0.0 if rows.all() else float(self.weights[~rows].sum())
        weight = unrelated_weight(float(weights.sum()), zeros, self.zero_share if zeros else 0.0)
        if not weights.size:
            return 0.0, weight
        return self.cost.unrelated_sum(self.x[rows], self.y, weights / self.scale[rows]), weight


def unrelated_weight(costly: float, zeros: float, zero_share: float) -> float:
    """Return the mean weight of counted cells over permutations of the masked values.

    `costly` is the weight of the cells that have a cost, `zeros` that of the others, which count if they meet
    one of the share of masked values that are 0.
    """
    return costly + zeros * zero_share


class Contributions(NamedTuple):
    """Sum of the sizes of contributions, the largest, and sum and second largest in units of the largest.

    In these units no sum overflows; both are 0 where all contributions are 0.
    """

    total: float
    largest: float
    shares: float
    second: float

    @classmethod
    def of(cls, values: Floats) -> Contributions:
        """Return the largest contributions among the values of a block; NaN counts 0."""
        sizes = np.abs(values)
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(sizes.sum()):  # the test is cheaper than the replacement
                sizes = np.nan_to_num(sizes)
        at = int(np.argmax(sizes)) if sizes.size else 0
        largest = float(sizes[at]) if sizes.size else 0.0
        if largest == 0:
            return cls(0.0, 0.0, 0.0, 0.0)
        shares = sizes / largest
        second = max(shares[:at].max(initial=0.0), shares[at + 1 :].max(initial=0.0))
        return cls(float(sizes.sum()), largest, float(shares.sum()), float(second))

    def merge(self, other: Contributions) -> Contributions:
        """Return the largest contributions of two blocks together."""
        high, low = (self, other) if self.largest >= other.largest else (other, self)
        if low.largest == 0:
            return high
        unit = low.largest / high.largest
        second = max(high.second, unit)  # the second largest of the lower block is below its largest
        return Contributions(self.total + other.total, high.largest, high.shares + unit * low.shares, second)


class LargestRecord(NamedTuple):
    """Original and masked value of the record with the largest original value, and the scale of its cost."""

    x: float
    y: float
    scale: float


class Dominance(NamedTuple):
    """Contributions of records to a variable's costs, to their level in unrelated order, and to its variance.

    `squares` is None for costs whose scale is no standard deviation; `largest` is None without counted cells.
    """

    costs: Contributions
    unrelated: Contributions
    squares: Contributions | None
    largest: LargestRecord | None

    @property
    def sums(self) -> list[Contributions]:
        """Contributions to each sum that is published or follows from what is."""
        found = [self.costs, self.unrelated]
        return found if self.squares is None else [*found, self.squares]

    def merge(self, other: Dominance) -> Dominance:
        """Return the dominance in two blocks together."""
        squares = self.squares
        if squares is not None and other.squares is not None:
            squares = squares.merge(other.squares)
        largest = self.largest
        if largest is None or (other.largest is not None and abs(other.largest.x) > abs(largest.x)):
            largest = other.largest
        costs, unrelated = self.costs.merge(other.costs), self.unrelated.merge(other.unrelated)
        return Dominance(costs, unrelated, squares, largest)


def dominance(cells: VariableCells, x_mean: float, y_mean: float) -> Dominance:
    """Return the contributions of a block's records, given the means of the counted cells of the file."""
    cost, counts = cells.cost, cells.counts
    x, y, scale = cells.x[counts], cells.y[counts], cells.scale[counts]
    with np.errstate(over="ignore", invalid="ignore"):
        costs = Contributions.of(cells.costs()[counts] * cells.weights[counts])
        unrelated = Contributions.of(cost.of(x, y_mean, scale))
        squares = Contributions.of(squared_cost(x, x_mean, 1.0)) if cost == IL1S else None
    if not x.size:
        return Dominance(costs, unrelated, squares, None)
    i = int(np.argmax(np.abs(x)))
    return Dominance(costs, unrelated, squares, LargestRecord(float(x[i]), float(y[i]), float(scale[i])))


MOST_BINS = 20


# --- Kolmogorov-Smirnov ---


@kernel
def largest_gap(x: Floats, ends_x: Floats, y: Floats, ends_y: Floats) -> float:
    """Return the largest |weight of x up to v - weight of y up to v| over the values v of a stretch.

    Both columns are sorted; all values equal to one of the stretch are in it. `ends_x[i]` is the weight below
    the stretch plus that of its i smallest values, from i = 0 to all of them. The largest of all stretches is
    that of the file.
    """
    i = j = 0
    largest = 0.0
    while i < x.size or j < y.size:
        here = x[i] if j == y.size or (i < x.size and x[i] <= y[j]) else y[j]
        while i < x.size and x[i] == here:
            i += 1
        while j < y.size and y[j] == here:
            j += 1
        largest = max(largest, abs(ends_x[i] - ends_y[j]))
    return largest


def distribution_gap(x: Floats, y: Floats, weights: Floats | None) -> float:
    """Return the largest distance between the distribution functions of two columns, from 0 to 1."""
    (x, ends_x), (y, ends_y) = (_sorted_with_ends(values, weights) for values in (x, y))
    return share_of_weight(largest_gap(x, ends_x, y, ends_y), ends_x[-1])


def share_of_weight(gap: float, total: float) -> float:
    """Return a difference of weights as a share of their total, at most 1."""
    return float(min(1.0, gap / total))


def _sorted_with_ends(values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Return values in ascending order, and the summed weight of the first 0, 1, 2, ... of them."""
    order = np.argsort(values, kind="stable")
    ends = np.arange(1.0, values.size + 1) if weights is None else np.cumsum(weights[order])
    return values[order], np.concatenate(([0.0], ends))


# --- binned distributions ---


def edge_positions(n: int) -> tuple[Ints, Ints, Floats]:
    """Return where the bin edges of n records lie between the sorted values.

    Each edge lies between the values of the first and of the second rank (from 0), at a share of the way.
    """
    bins = min(MOST_BINS, math.isqrt(n))
    exact = np.linspace(0, 1, bins + 1) * (n - 1)
    low = np.floor(exact).astype(np.int64)
    return low, np.minimum(low + 1, n - 1), exact - low


def edges_between(low: Floats, high: Floats, shares: Floats) -> Floats:
    """Return the bin edges at shares of the way from low to high values; equal edges once.

    Counted from the nearer end, so that an edge between equal values equals them.
    """
    gaps = high - low
    return np.unique(np.where(shares < 0.5, low + gaps * shares, high - gaps * (1 - shares)))


def bin_edges(x: Floats) -> Floats:
    """Return quantiles of a column as bin edges, its smallest and largest value included."""
    low, high, shares = edge_positions(x.size)
    ordered = np.partition(x, np.union1d(low, high))
    return edges_between(ordered[low], ordered[high], shares)


def bin_numbers(values: Floats, edges: Floats) -> Any:
    """Return the bin number of each value: 0 below the first edge, then bins closed on the right."""
    found = np.searchsorted(edges, values)
    found[values == edges[0]] = 1
    found[values > edges[-1]] = edges.size + 1
    return found


def bin_weights(values: Floats, edges: Floats, weights: Floats | None) -> Floats:
    """Return the summed weight of the values in each bin; those of blocks add up."""
    return np.bincount(bin_numbers(values, edges), weights, edges.size + 2).astype(np.float64)


def hellinger_distance(p: Floats, q: Floats) -> float:
    """Return the Hellinger distance of two lists of shares; exactly 0 for equal lists."""
    return float(min(1.0, math.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2)))


class FileCorrelations(NamedTuple):
    """Correlations of the columns of a file over its complete records.

    `norms` are roots of sums of squared deviations, each in a unit of its own: 0 for a constant column, whose
    correlations are 0.
    """

    norms: Floats
    products: Floats


class Correlations(NamedTuple):
    """Correlations in both files over the records without a missing cell in either."""

    original: FileCorrelations
    masked: FileCorrelations


def normed_products(centred: Floats, norms: Floats) -> Floats:
    """Return the sums of products of a block's deviations, each divided by its column's norm."""
    normed = centred / np.where(norms > 0, norms, 1.0)
    products: Floats = normed.T @ normed
    return products


def correlations_of(values: Floats) -> FileCorrelations:
    """Return the correlations of the columns of a matrix without missing cells."""
    centred = deviations(values / powers_of_two(values))
    norms = np.sqrt((centred**2).sum(0))
    return FileCorrelations(norms, normed_products(centred, norms))
