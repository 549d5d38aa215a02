"""Exact sums, and columns scaled by powers of two."""

from __future__ import annotations

import numpy as np

from sdckit.arrays import Floats, Int32s, Ints
from sdckit.kernels.jit import kernel


def powers_of_two(values: Floats) -> Floats:
    """Return for each column the largest power of two up to its largest absolute value; 1/2 for zeros.

    Dividing a column by it changes no digit, and sums of squares then stay within the range of numbers.
    """
    return np.exp2(np.frexp(np.fmax.reduce(np.abs(values), axis=0, initial=0.0))[1] - 1)


def deviations(values: Floats, weights: Floats | None = None) -> Floats:
    """Return observed cells minus their column's mean; 0 for missing cells and in a constant column."""
    return deviations_from(values, centres(values, weights))


def centres(values: Floats, weights: Floats | None = None) -> Floats:
    """Return the mean of each column's observed cells; NaN for a constant column."""
    seen = ~np.isnan(values)
    share = seen if weights is None else seen * weights[:, None]
    mean = (np.where(seen, values, 0.0) * share).sum(0) / np.maximum(share.sum(0), np.finfo(float).tiny)
    # The mean of equal values can miss them by a last bit, and no spread must grow from that.
    constant = np.fmin.reduce(values, axis=0) == np.fmax.reduce(values, axis=0)
    return np.where(constant, np.nan, mean)


def deviations_from(values: Floats, means: Floats) -> Floats:
    """Return observed cells minus the mean of their column; 0 for missing cells and where the mean is NaN."""
    return np.where(~np.isnan(values) & ~np.isnan(means), values - means, 0.0)


def spread(values: Floats, weights: Floats | None = None) -> Floats:
    """Return the standard deviation (ddof 1) of each column's observed cells; 0 for fewer than two.

    With weights, n/(n - 1) times the weighted mean of squares: the same where all weights are equal.
    """
    seen = ~np.isnan(values)
    unit = powers_of_two(values)
    squares = deviations(values / unit, weights) ** 2
    if weights is None:
        return unit * spread_of_sums(squares.sum(0), seen.sum(0))
    share = seen * weights[:, None]
    return unit * spread_of_sums((squares * share).sum(0), seen.sum(0), share.sum(0))


def spread_of_sums(squares: Floats, count: Ints, weight: Floats | None = None) -> Floats:
    """Return standard deviations from sums of squared deviations, which are weighted if `weight` is given.

    `count` is the number of observed cells of each column and `weight` their summed weight.
    """
    free = np.maximum(count - 1, 1)
    if weight is None:
        return np.sqrt(squares / free)
    mean = squares / np.maximum(weight, np.finfo(float).tiny)
    return np.sqrt(mean * (free + 1) / free)


def standardise(values: Floats, *, ddof: int = 1) -> Floats:
    """Return columns with mean 0 and standard deviation 1 over observed cells; 0 in a constant column.

    Missing cells stay NaN.
    """
    seen = ~np.isnan(values)
    centred = deviations(values / powers_of_two(values))
    size = np.sqrt((centred**2).sum(0) / np.maximum(seen.sum(0) - ddof, 1))
    return np.where(seen, centred / np.where(size > 0, size, 1.0), np.nan)


def standardise_like(values: Floats, original: Floats) -> Floats:
    """Return columns less the mean of the original's, in units of its standard deviations (ddof 1).

    A column that is constant in the original keeps its unit.
    """
    constant = original.min(0) == original.max(0)
    centre = np.where(constant, original[0], original.mean(0))
    return (values - centre) / np.where(constant, 1.0, spread(original))


def whitening_axes(covariance: Floats, smallest: float) -> Floats:
    """Return axes, one per column, on which data of this covariance are uncorrelated with variance 1.

    Directions with less than `smallest` times the largest variance are left out.
    """
    sizes, axes = np.linalg.eigh(covariance)
    kept = sizes > smallest * max(sizes.max(initial=0.0), 0.0)
    return axes[:, kept] / np.sqrt(sizes[kept])


EXPONENTS = 2048  # of float64, those of infinite numbers included
DIGITS, HALF = 52, 26  # binary digits after the first one, and those of the lower part of a number
BELOW = 1074  # numbers are whole multiples of 2**-1074
MOST = 1 << 35  # numbers that may be added before a part of a sum could overflow


@kernel
def _add_digits(bits: Ints, upper: Ints, lower: Ints) -> None:
    """Add the digits of each number to the sums of its exponent: its upper and its lower half."""
    for i in range(bits.size):
        exponent = (bits[i] >> DIGITS) & (EXPONENTS - 1)
        digits = bits[i] & ((1 << DIGITS) - 1)
        if exponent == EXPONENTS - 1:
            continue  # NaN, a missing cell
        if exponent > 0:
            digits |= 1 << DIGITS
        else:
            exponent = 1
        if bits[i] < 0:
            upper[exponent] -= digits >> HALF
            lower[exponent] -= digits & ((1 << HALF) - 1)
        else:
            upper[exponent] += digits >> HALF
            lower[exponent] += digits & ((1 << HALF) - 1)


def exact_sum(values: Floats) -> int:
    """Return the sum of the finite numbers of an array, missing ones left out, in units of 2**-1074."""
    if values.size > MOST:
        raise ValueError(f"an array of {values.size} numbers is too long for an exact sum; add up its parts")
    upper, lower = np.zeros(EXPONENTS, np.int64), np.zeros(EXPONENTS, np.int64)
    _add_digits(np.ascontiguousarray(values, np.float64).view(np.int64), upper, lower)
    total = 0
    for exponent in np.flatnonzero(upper | lower).tolist():
        total += ((int(upper[exponent]) << HALF) + int(lower[exponent])) << (exponent - 1)
    return total


def rounded_mean(total: int, n: int) -> float:
    """Return an exact sum divided by n, rounded once; NaN for n = 0."""
    return total / (n << BELOW) if n else float("nan")


NOTHING = np.empty(0)


@kernel
def cell_moments(
    cells: Int32s,
    weights: Floats,
    values: Floats,
    others: Floats,
    slopes: Floats,
    centres: Floats,
    shifts: Floats,
) -> tuple[Floats, Floats]:
    """Return each cell's sum and sum of squares of w (a - slope b - centre) - shift over its records.

    `slopes`, `centres` and `shifts` have a number for each cell; without `others` (b) or `weights`, which are
    empty then, b is 0 and w is 1.
    """
    sums, squares = np.zeros(shifts.size), np.zeros(shifts.size)
    for i in range(cells.size):
        cell = cells[i]
        rest = values[i] - centres[cell]
        if others.size:
            rest -= slopes[cell] * others[i]
        if weights.size:
            rest *= weights[i]
        rest -= shifts[cell]
        sums[cell] += rest
        squares[cell] += rest * rest
    return sums, squares
