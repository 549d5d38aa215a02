"""Record linkage attacks of an intruder: by nearest records, and by a published window of ranks.

An attack is prepared from a pair of files once and then asked, for any assignment of true records, how
often it finds them: for the real one, and for random ones to learn what chance alone would find. Records
that are equally good guesses share the credit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from sdckit.kernels import kd_tree
from sdckit.kernels.jit import kernel
from sdckit.kernels.rank_distance import OrderedColumn
from sdckit.kernels.scaling import powers_of_two, whitening_axes
from sdckit.metrics.risk import missing_cells

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.kernels.kd_tree import Tree
    from sdckit.metrics.pair import Pair

TOLERANCE = 1e-9  # squared distances that differ by less, relatively, are equal: rounding must not break ties
REGULAR = 1e-10  # share of the largest eigenvalue below which a direction has no variance
TYPICAL = 1_000  # records for a typical value
FARTHEST = 1e140  # standard deviations; squares of what lies beyond might leave the range of numbers


class Credits(NamedTuple):
    """Contribution of each record to the intruder's success.

    `expected` shares the credit among equals; `strict` counts only guesses without an equal,
    `optimistic` all that may be right.
    """

    expected: Floats
    strict: Floats
    optimistic: Floats


class Attack(Protocol):
    """Interface of a linkage attack."""

    def credits(self, truth: Ints) -> Credits:
        """Return the success of each query i if its true record were truth[i]."""
        ...


@dataclass(frozen=True)
class Nearest:
    """Link each record to the nearest one, or to the nearest few; distances are Euclidean."""

    targets: Floats
    queries: Floats
    places: int = 1
    known_tree: Tree | None = None

    @cached_property
    def complete(self) -> bool:
        """True where no cell is missing."""
        return not (np.isnan(self.targets).any() or np.isnan(self.queries).any())

    @cached_property
    def tree(self) -> Tree:
        """The k-d tree of the records that are searched."""
        return kd_tree.grow(self.targets) if self.known_tree is None else self.known_tree

    def credits(self, truth: Ints) -> Credits:
        """Return full credit where no record is nearer than the true one, shared among ties."""
        if self.complete:
            closer, tied = kd_tree.beaten(self.tree, self.queries, truth, TOLERANCE, self.places)
        else:
            closer, tied = missing_cells.beaten(self.targets, self.queries, truth, TOLERANCE, self.places)
        left = np.maximum(self.places - closer, 0)
        return Credits(
            np.minimum(1.0, left / np.maximum(tied, 1)) * (left > 0),
            ((left > 0) & (tied <= left)).astype(float),
            (left > 0).astype(float),
        )


@dataclass(frozen=True)
class Window:
    """Keep the records whose ranks lie within the published window in every variable; guess among them."""

    targets: Blocks
    queries: Blocks
    width: int | Floats  # one for all variables, or one for each

    @cached_property
    def boxes(self) -> tuple[Floats, Floats]:
        """First and last position that a record's value may have had, per variable."""
        return self.queries.first - self.width, self.queries.last + self.width

    @cached_property
    def candidates(self) -> Ints:
        """Number of records within each box."""
        low, high = self.boxes
        if self.targets.complete and self.queries.complete:
            return kd_tree.count_inside(kd_tree.grow(self.targets.first), self.targets.opening(low), high)
        return missing_cells.count_overlaps(self.targets.first, self.targets.last, low, high)

    def credits(self, truth: Ints) -> Credits:
        """Return the credit where the true record is a candidate, shared among all candidates."""
        low, high = self.boxes
        inside = missing_cells.overlaps(self.targets.first[truth], self.targets.last[truth], low, high)
        inside *= (~np.isnan(low) & ~np.isnan(self.targets.first[truth])).any(1)  # no guess without a value
        count = np.maximum(self.candidates, 1)
        return Credits(inside / count, inside * (count == 1.0), inside.astype(float))


@dataclass(frozen=True)
class Blocks:
    """Tie block of every cell within its variable, as positions from 0; NaN where a cell is missing."""

    first: Floats
    last: Floats
    columns: list[OrderedColumn]

    @cached_property
    def complete(self) -> bool:
        """True where no cell is missing."""
        return not np.isnan(self.first).any()

    @cached_property
    def middles(self) -> Floats:
        """Mid-ranks from 0 to the number of records, also with missing cells; exact without them."""
        sizes = np.array([max(column.n, 1) for column in self.columns])
        return (self.first + self.last + 1) * (len(self.first) / sizes / 2)

    def opening(self, positions: Floats) -> Floats:
        """Return where the tie blocks of these positions begin; positions below 0 stay."""
        found = positions.copy()
        for j, column in enumerate(self.columns):
            inside = (positions[:, j] >= 0) & (positions[:, j] < column.n)
            found[inside, j] = column.first[positions[inside, j].astype(np.int64)]
        return found


def blocks(values: Floats, columns: list[OrderedColumn], missing: Bools) -> Blocks:
    """Return the tie blocks of a file, given the order of its observed cells."""
    first = np.full(values.shape, np.nan)
    last = first.copy()
    for j, column in enumerate(columns):
        seen = ~missing[:, j]
        first[seen, j] = column.first[column.rank]
        last[seen, j] = column.last[column.rank]
    return Blocks(first, last, columns)


# --- the spaces in which records are compared ---------------------------------------------------------


class Scale(NamedTuple):
    """Scale of each column: a power of two and, in units of it, a typical value and 1/sd.

    Not the mean, which one enormous value takes far away from all others: differences between those would
    drown in rounding, and ties with them.
    """

    unit: Floats
    centre: Floats
    factor: Floats  # 0 for a column that does not vary
    mean: Floats  # standardised, too

    def apply(self, values: Floats) -> Floats:
        """Return deviations from the typical values in standard deviations; 0 in a constant column."""
        found = np.empty(values.shape)
        _scale(values, self.unit, self.centre, self.factor, found)
        return found


def scale_of(values: Floats) -> Scale:
    """Return the scale of a file, missing cells left out."""
    unit = powers_of_two(np.stack([np.fmax.reduce(values), np.fmin.reduce(values)]))
    unit[unit == 0] = 1.0
    some = np.sort(values[:: max(len(values) // TYPICAL, 1)] / unit, axis=0)  # NaN last
    centre = some[(~np.isnan(some)).sum(axis=0) // 2, np.arange(len(unit))]
    centre[np.isnan(centre)] = 0.0
    mean, sd = np.zeros(len(unit)), np.zeros(len(unit))
    _add_moments(values, unit, centre, mean, sd)
    factor = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
    return Scale(unit, centre, factor, mean * factor)


@kernel
def _add_moments(values: Floats, unit: Floats, centre: Floats, mean: Floats, sd: Floats) -> None:
    """Add mean and standard deviation of the deviations from each column's centre; 0 if constant."""
    n, p = values.shape
    for j in range(p):
        count, low, high = 0, np.inf, -np.inf
        for i in range(n):
            value = values[i, j] / unit[j] - centre[j]
            if value == value:  # noqa: PLR0124 - false for NaN
                count += 1
                mean[j] += value
                low, high = min(low, value), max(high, value)
        if low < high:
            mean[j] /= count
            for i in range(n):
                value = values[i, j] / unit[j] - centre[j] - mean[j]
                sd[j] += value * value if value == value else 0.0  # noqa: PLR0124
            sd[j] = math.sqrt(sd[j] / (count - 1))


@kernel
def _scale(values: Floats, unit: Floats, centre: Floats, factor: Floats, found: Floats) -> None:
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            value = values[i, j]
            if value == value:  # noqa: PLR0124 - false for NaN
                value = (value / unit[j] - centre[j]) * factor[j] if factor[j] > 0 else 0.0
            found[i, j] = math.copysign(FARTHEST, value) if abs(value) > FARTHEST else value


def original_scale(pair: Pair) -> Scale:
    """Return the scale of the original."""
    return remembered(pair.original.cache, "scale", lambda: scale_of(pair.original.values))


def standardised(pair: Pair) -> tuple[Floats, Floats]:
    """Return both files in standard deviations of the original; 0 for a constant variable."""
    original, scale = pair.original, original_scale(pair)
    ours = remembered(original.cache, "standardised", lambda: scale.apply(original.values))
    return ours, remembered(pair.cache, "standardised", lambda: scale.apply(pair.masked))


def breaks_rules(pair: Pair) -> bool:
    """Return True if the release breaks the edit rules, so that an intruder can use them to correct it."""

    def look() -> bool:
        rules = pair.rules
        return rules is not None and bool(rules.violations(pair.masked[:, _places(pair)]).any())

    return bool(remembered(pair.cache, "breaks rules", look))


def corrected(pair: Pair) -> tuple[Floats, Floats]:
    """Return both files standardised, with released records projected onto the edit rules."""

    def move() -> Floats:
        scale, masked = original_scale(pair), pair.masked.copy()
        if pair.rules is not None:
            places = _places(pair)
            masked[:, places] = pair.rules.projected(masked[:, places], pair.original.spreads[places])
        return scale.apply(masked)

    return standardised(pair)[0], remembered(pair.cache, "corrected", move)


def _places(pair: Pair) -> list[int]:
    """Return the columns of the edit rules."""
    return [] if pair.rules is None else [pair.columns.index(name) for name in pair.rules.columns]


def squared_lengths(pair: Pair) -> Floats:
    """Return each original's squared distance from the mean in variances; missing cells add 0."""
    points = standardised(pair)[0]
    found = np.zeros(len(points))
    _add_squared_lengths(points, original_scale(pair).mean, found)
    return found


@kernel
def _add_squared_lengths(points: Floats, centre: Floats, found: Floats) -> None:
    for i in range(len(points)):
        for j in range(points.shape[1]):
            difference = points[i, j] - centre[j]
            found[i] += difference * difference if difference == difference else 0.0  # noqa: PLR0124


def whitened(pair: Pair) -> tuple[Floats, Floats]:
    """Return both files in the principal directions of the release, with unit variance there.

    Directions without variance are left out: a total that is the sum of its parts tells nothing new.
    A missing cell stands at the release's mean, but a record without any value stands nowhere.
    """

    def turn() -> tuple[Floats, Floats]:
        scale = scale_of(pair.masked)
        ours, theirs = (
            np.where(np.isnan(values), scale.mean, scale.apply(values))
            for values in (pair.original.values, pair.masked)
        )
        release = theirs - scale.mean
        axes = whitening_axes(release.T @ release / max(len(release) - 1, 1), REGULAR)
        if not axes.size:
            axes = np.zeros((pair.p, 1))
        ours, theirs = _turned(ours, axes), _turned(theirs, axes)
        ours[pair.original.missing.all(axis=1)] = np.nan
        theirs[pair.missing.all(axis=1)] = np.nan
        return ours, theirs

    return remembered(pair.cache, "whitened", turn)


def _turned(values: Floats, axes: Floats) -> Floats:
    """Return a matrix product that is identical for equal rows to the last digit, unlike BLAS."""
    found = np.zeros((len(values), axes.shape[1]))
    _add_products(values, axes, found)
    return found


@kernel
def _add_products(values: Floats, axes: Floats, found: Floats) -> None:
    for i in range(len(values)):
        for j in range(len(axes)):
            for k in range(axes.shape[1]):
                found[i, k] += values[i, j] * axes[j, k]


def ordered_blocks(pair: Pair) -> tuple[Blocks, Blocks]:
    """Return the tie blocks of both files, each ranked separately."""

    def ours() -> Blocks:
        original = pair.original
        columns = [original.ordered(j) for j in range(pair.p)]
        return blocks(original.values, columns, original.missing)

    def theirs() -> Blocks:
        columns = [OrderedColumn(pair.masked[~pair.missing[:, j], j]) for j in range(pair.p)]
        return blocks(pair.masked, columns, pair.missing)

    return remembered(pair.original.cache, "blocks", ours), remembered(pair.cache, "blocks", theirs)


def remembered(store: dict[str, Any], name: str, compute: Callable[[], Any]) -> Any:
    """Return a cached value of the pair, computed on first use."""
    name = f"risk: {name}"
    if name not in store:
        store[name] = compute()
    return store[name]
