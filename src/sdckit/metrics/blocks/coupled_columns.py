"""Two columns side by side at the same quantiles: their mean distance, and both parts of the squared error.

Sums of stretches of quantiles add up, if all stretches count in the same unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.kernels.jit import Floats, kernel, plain
from sdckit.kernels.scaling import powers_of_two
from sdckit.metrics.blocks.scaled_numbers import Scaled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

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
