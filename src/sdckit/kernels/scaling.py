"""Deviations, standard deviations and scales of columns, without overflow; exactly 0 for constant columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints


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
