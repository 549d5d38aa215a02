"""Totals, means, shares, ratios, correlations and Gini coefficients with Taylor-linearised errors.

Each estimate is replaced by the weighted sum of its residuals, to first order, whose variance is that of a
total: units are drawn with replacement within strata, and there is no correction for finite populations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.estimates.figures import Figures

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats
    from sdckit.metrics.estimates.sample import Sample


def total(sample: Sample) -> Figures:
    """Return the weighted sum of a column in each domain."""
    (y,) = sample.columns
    values, variances = sample.grouping.totals(y, sample.weights)
    return sample.explained(Figures(values, np.sqrt(variances), sample.records), alone=True)


def mean(sample: Sample) -> Figures:
    """Return the weighted mean of a column in each domain."""
    (y,) = sample.columns
    means = sample.means(y)
    return sample.figures(means, sample.grouping.residual_variances(y, sample.weights, means), sample.size)


def ratio(sample: Sample) -> Figures:
    """Return the weighted sum of a column over that of another one in each domain."""
    a, b = sample.columns
    below = sample.totals(b)
    values = sample.totals(a) / np.where(below == 0, np.nan, below)
    none = np.zeros(values.size)
    variances = sample.grouping.residual_variances(a, sample.weights, none, b, values)
    found = sample.figures(values, variances, below)
    found.withhold((below == 0) & (sample.size > 0), "the denominator is 0")
    return found


def correlation(sample: Sample) -> Figures:
    """Return the weighted correlation of two columns in each domain, its error linearised.

    A record's residual is u v - r (u**2 + v**2) / 2, u and v its standardised values.
    """
    (u, u_varies), (v, v_varies) = (_standardised(sample, column) for column in sample.columns)
    products = u * v
    values = sample.means(products)
    squares = np.square(u, out=u)  # in place, as new arrays take most of the time in large files
    squares += np.square(v, out=v)
    none = np.zeros(values.size)
    variances = sample.grouping.residual_variances(products, sample.weights, none, squares, values / 2)
    found = sample.figures(values, variances, sample.size)
    found.withhold(~(u_varies & v_varies) & (sample.records > 0), "a column is constant")
    return found


def _standardised(sample: Sample, column: Floats) -> tuple[Floats, Bools]:
    """Return a column with mean 0 and variance 1 in domains where it varies, 0 elsewhere, and which vary."""
    at = sample.grouping.at_records
    found = column - at(sample.means(column))
    spread = np.sqrt(sample.means(found * found))
    varies = spread > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        found /= at(spread)
    if not varies.all() or sample.grouping.some_outside:
        np.nan_to_num(found, copy=False, posinf=0.0, neginf=0.0)
    return found, varies


def gini(sample: Sample) -> Figures:
    """Return the Gini coefficient in each domain: the mean difference of two records over twice the mean.

    A record's residual is the sum of its differences to all others, less the coefficient times (total + size
    * value), over (size * total).
    """
    (y,) = sample.columns
    size, total, differences = sample.size, sample.totals(y), sample.ordering.differences()
    scale = np.where(total > 0, size * total, np.nan)
    values = sample.totals(differences) / (2 * scale)
    variances = sample.grouping.residual_variances(
        differences, sample.weights, values * total, y, values * size
    )
    found = sample.figures(values, variances, scale)
    found.withhold((total <= 0) & (size > 0), "the total is not above 0")
    return found
