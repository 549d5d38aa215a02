"""Spaces in which intruders compare records: standard deviations, principal axes, ranks.

Only variables that the intruder knows have a column in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.kernels.jit import kernel
from sdckit.kernels.rank_distance import OrderedColumn
from sdckit.kernels.scaling import powers_of_two, whitening_axes

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.metrics.pair import Pair

REGULAR = 1e-10  # share of the largest eigenvalue below which a direction has no variance
TYPICAL = 1_000  # records from which the typical value of a column is taken
FARTHEST = 1e140  # standard deviations; squares of what lies beyond might leave the range of numbers


@dataclass(frozen=True)
class TieBlocks:
    """First and last rank, from 0, of the values equal to each cell's, per variable; NaN if missing."""

    first: Floats
    last: Floats
    columns: list[OrderedColumn]

    @cached_property
    def complete(self) -> bool:
        """True where no cell is missing."""
        return not np.isnan(self.first).any()

    @cached_property
    def mid_ranks(self) -> Floats:
        """Mid-rank of each cell, scaled to 0 up to the number of records where cells are missing."""
        sizes = np.array([max(column.n, 1) for column in self.columns])
        return (self.first + self.last + 1) * (len(self.first) / sizes / 2)

    def block_starts(self, positions: Floats) -> Floats:
        """Return the first rank of the equal values at each given rank; ranks below 0 stay."""
        found = positions.copy()
        for j, column in enumerate(self.columns):
            inside = (positions[:, j] >= 0) & (positions[:, j] < column.n)
            found[inside, j] = column.first[positions[inside, j].astype(np.int64)]
        return found


def tie_blocks(values: Floats, columns: list[OrderedColumn], missing: Bools) -> TieBlocks:
    """Return first and last rank of the values equal to each cell's, from the sorted columns."""
    n, p = values.shape
    found = np.full((2, p, n), np.nan)
    for j, column in enumerate(columns):
        rows = column.order if column.n == n else np.flatnonzero(~missing[:, j])[column.order]
        _write_tie_blocks(rows, column.first, column.last, found[0, j], found[1, j])
    return TieBlocks(np.ascontiguousarray(found[0].T), np.ascontiguousarray(found[1].T), columns)


@kernel
def _write_tie_blocks(rows: Ints, first: Ints, last: Ints, firsts: Floats, lasts: Floats) -> None:
    """Write the ends of the tie block at each rank to the row that has this rank."""
    for i in range(len(rows)):
        firsts[rows[i]], lasts[rows[i]] = first[i], last[i]


class Scale(NamedTuple):
    """Unit (a power of two), typical value and 1 / standard deviation of each column, to scale values.

    The typical value is not the mean: one enormous value would move the mean far from all others, whose
    differences, and so their ties, would be lost in rounding.
    """

    unit: Floats
    centre: Floats
    factor: Floats  # 0 for a column that does not vary
    mean: Floats  # standardised, too

    def apply(self, values: Floats) -> Floats:
        """Return deviations from the typical values in standard deviations; 0 in a constant column."""
        found = np.empty(values.shape)
        _write_scaled(values, self.unit, self.centre, self.factor, found)
        return found


def column_scale(values: Floats) -> Scale:
    """Return typical value and standard deviation of each column, missing cells left out."""
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
    """Add mean and standard deviation of each column's deviations from its centre; 0 if constant."""
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
def _write_scaled(values: Floats, unit: Floats, centre: Floats, factor: Floats, found: Floats) -> None:
    """Write the standardised values to `found`, cut at +-1e140; 0 in a constant column."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            value = values[i, j]
            if value == value:  # noqa: PLR0124 - false for NaN
                value = (value / unit[j] - centre[j]) * factor[j] if factor[j] > 0 else 0.0
            found[i, j] = math.copysign(FARTHEST, value) if abs(value) > FARTHEST else value


def original_scale(pair: Pair) -> Scale:
    """Return typical value and standard deviation of each original column, computed once."""
    return cached_value(pair.original.cache, "scale", lambda: column_scale(pair.original.values))


def standardised_variables(pair: Pair) -> tuple[Floats, Floats]:
    """Return all variables of both files in standard deviations of the original; 0 if constant."""
    original, scale = pair.original, original_scale(pair)
    ours = cached_value(original.cache, "standardised", lambda: scale.apply(original.values))
    return ours, cached_value(pair.cache, "standardised", lambda: scale.apply(pair.masked))


def standardised(pair: Pair) -> tuple[Floats, Floats]:
    """Return the known variables of both files in standard deviations of the original; 0 if constant."""
    ours, theirs = standardised_variables(pair)
    return known_columns(pair, ours), known_columns(pair, theirs)


def known_columns(pair: Pair, values: Floats) -> Floats:
    """Return the columns of the variables that the intruder knows."""
    known = pair.known_variables
    return values if len(known) == pair.p else np.ascontiguousarray(values[:, known])


def breaks_rules(pair: Pair) -> bool:
    """Return True if masked records break the edit rules, so that they were not repaired."""

    def any_violation() -> bool:
        """Return True if any masked record breaks an edit rule."""
        rules = pair.rules
        return rules is not None and bool(rules.violations(pair.masked[:, _rule_columns(pair)]).any())

    return bool(cached_value(pair.cache, "breaks rules", any_violation))


def _rule_columns(pair: Pair) -> list[int]:
    """Return the column numbers of the variables in the edit rules."""
    return [] if pair.rules is None else [pair.columns.index(name) for name in pair.rules.columns]


def squared_lengths(pair: Pair) -> Floats:
    """Return each original record's squared standardised distance from the mean; missing cells add 0."""
    points = standardised_variables(pair)[0]
    found = np.zeros(len(points))
    _add_squared_lengths(points, original_scale(pair).mean, found)
    return found


@kernel
def _add_squared_lengths(points: Floats, centre: Floats, found: Floats) -> None:
    """Add each record's squared distance from the centre to `found`; missing cells add 0."""
    for i in range(len(points)):
        for j in range(points.shape[1]):
            difference = points[i, j] - centre[j]
            found[i] += difference * difference if difference == difference else 0.0  # noqa: PLR0124


class Whitening(NamedTuple):
    """Scale of the columns of a masked file, and its principal axes, scaled to unit variance there."""

    scale: Scale
    axes: Floats

    def apply(self, values: Floats) -> Floats:
        """Return records along the axes, missing cells at the mean; NaN for a record without any value."""
        found = _exact_product(_filled(self.scale, values), self.axes)
        found[np.isnan(values).all(axis=1)] = np.nan
        return found


def _filled(scale: Scale, values: Floats) -> Floats:
    """Return standardised values with missing cells at the mean."""
    return np.where(np.isnan(values), scale.mean, scale.apply(values))


def release_products(scale: Scale, masked: Floats) -> Floats:
    """Return the sums of products of standardised deviations, for each two columns of some records."""
    release = _filled(scale, masked) - scale.mean
    return np.asarray(release.T @ release)


def whitening_of(scale: Scale, products: Floats, n: int) -> Whitening:
    """Return the axes of a masked file from its scale and sums of products of deviations of n records."""
    axes = whitening_axes(products / max(n - 1, 1), REGULAR)
    return Whitening(scale, axes if axes.size else np.zeros((len(products), 1)))


def whitened(pair: Pair) -> tuple[Floats, Floats]:
    """Return both files along the masked file's principal axes, scaled to unit variance there.

    Directions without variance are left out, such as that of a total that is the sum of its parts. A missing
    cell is set to the masked file's mean; a record without any value is NaN.
    """

    def whiten_files() -> tuple[Floats, Floats]:
        """Return both files along the masked file's principal axes, scaled to unit variance."""
        files = [known_columns(pair, values) for values in (pair.original.values, pair.masked)]
        scale = column_scale(files[1])
        axes = whitening_of(scale, release_products(scale, files[1]), len(files[1]))
        ours, theirs = (axes.apply(values) for values in files)
        return ours, theirs

    return cached_value(pair.cache, "whitened", whiten_files)


def _exact_product(values: Floats, axes: Floats) -> Floats:
    """Return the matrix product, identical to the last digit for equal rows, unlike BLAS."""
    found = np.zeros((len(values), axes.shape[1]))
    _add_products(values, axes, found)
    return found


@kernel
def _add_products(values: Floats, axes: Floats, found: Floats) -> None:
    """Add the matrix product of `values` and `axes` to `found`, in a fixed order of summation."""
    for i in range(len(values)):
        for j in range(len(axes)):
            for k in range(axes.shape[1]):
                found[i, k] += values[i, j] * axes[j, k]


def tie_blocks_of_files(pair: Pair) -> tuple[TieBlocks, TieBlocks]:
    """Return first and last rank of the values equal to each cell's, in the original and masked file."""

    def original_blocks() -> TieBlocks:
        """Return first and last rank of the values equal to each cell's in the original file."""
        original = pair.original
        columns = [original.ordered(j) for j in range(pair.p)]
        return tie_blocks(original.values, columns, original.missing)

    def masked_blocks() -> TieBlocks:
        """Return first and last rank of the values equal to each cell's in the masked file."""
        return tie_blocks_of_values(pair.masked)

    return cached_value(pair.original.cache, "blocks", original_blocks), cached_value(
        pair.cache, "blocks", masked_blocks
    )


def tie_blocks_of_values(values: Floats) -> TieBlocks:
    """Return first and last rank of the values equal to each cell's, each column ranked by itself."""
    missing = np.isnan(values)
    columns = [OrderedColumn(values[~missing[:, j], j]) for j in range(values.shape[1])]
    return tie_blocks(values, columns, missing)


def mid_ranks(pair: Pair) -> tuple[Floats, Floats]:
    """Return the known variables of both files as mid-ranks, each file ranked by itself."""
    ours, theirs = tie_blocks_of_files(pair)
    return known_columns(pair, ours.mid_ranks), known_columns(pair, theirs.mid_ranks)


def cached_value(store: dict[str, Any], name: str, compute: Callable[[], Any]) -> Any:
    """Return the value stored under a name in a cache; compute and store it if absent."""
    name = f"risk: {name}"
    if name not in store:
        store[name] = compute()
    return store[name]
