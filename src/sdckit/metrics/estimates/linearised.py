"""Totals, means, shares, ratios, correlations and Gini coefficients with Taylor-linearised errors.

Each estimate is replaced by the weighted sum of its residuals, to first order, whose variance is that of a
total: units are drawn with replacement within strata, and there is no correction for finite populations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.estimates.figures import Figures

if TYPE_CHECKING:
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
    grouping = sample.grouping
    centred = [column - grouping.at_records(sample.means(column)) for column in sample.columns]
    spreads = [np.sqrt(sample.means(column * column)) for column in centred]
    with np.errstate(divide="ignore", invalid="ignore"):
        u, v = (column / grouping.at_records(spread) for column, spread in zip(centred, spreads, strict=True))
    constant = ~np.all([spread > 0 for spread in spreads], axis=0)
    if constant.any() or grouping.some_outside:
        u, v = (np.nan_to_num(part, posinf=0.0, neginf=0.0) for part in (u, v))
    values = sample.means(u * v)
    residuals = u * v - grouping.at_records(values) * (u * u + v * v) / 2
    found = sample.figures(values, grouping.variances(residuals, sample.weights), sample.size)
    found.withhold(constant & (sample.records > 0), "a column is constant")
    return found


def gini(sample: Sample) -> Figures:
    """Return the Gini coefficient in each domain: the mean difference of two records over twice the mean.

    A record's residual is the sum of its differences to all others over (size * total), less the coefficient
    times (1 / size + value / total).
    """
    (y,) = sample.columns
    grouping, size = sample.grouping, sample.size
    total = sample.totals(y)
    below, part = sample.ordering.cumulated()
    at = grouping.at_records
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = y * (2 * below - at(size)) + at(total) - 2 * part
        values = sample.totals(differences) / (2 * size * total)
        residuals = differences / at(size * total) - at(values) * (1 / at(size) + y / at(total))
    residuals = np.nan_to_num(residuals, posinf=0.0, neginf=0.0)
    found = sample.figures(values, grouping.variances(residuals, sample.weights), 1.0)
    found.withhold((total <= 0) & (size > 0), "the total is not above 0")
    return found
