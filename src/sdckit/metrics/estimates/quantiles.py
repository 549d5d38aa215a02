"""Quantiles with Woodruff's intervals: the interval of a share, read back through the distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.estimates.figures import FACTOR, Figures

if TYPE_CHECKING:
    from sdckit.metrics.estimates.sample import Sample

NO_END = "an end of the interval lies beyond the data, so no standard error"


def quantile(sample: Sample, level: float) -> Figures:
    """Return the quantile of a column in each domain, its interval and its standard error by Woodruff.

    The quantile q is the smallest value at which the weighted distribution function F reaches `level`. The
    share of values up to q is a mean with a linearised standard error s; the interval has the quantiles of
    F(q) - 1.96 s and F(q) + 1.96 s as ends, and the standard error is its length over 2 * 1.96. This is what
    `svyquantile(interval.type = "mean", qrule = "math", df = Inf)` of the R package survey computes.
    """
    (y,) = sample.columns
    grouping, ordering = sample.grouping, sample.ordering
    values = ordering.quantiles(np.full(grouping.count, level))
    below = (y <= grouping.at_records(values)).astype(float)
    shares = sample.means(below)
    with np.errstate(divide="ignore", invalid="ignore"):
        variances = grouping.residual_variances(below, sample.weights, shares)
        half = FACTOR * np.sqrt(variances) / sample.size
    low, high = ordering.quantiles(shares - half), ordering.quantiles(shares + half)
    found = Figures(values, (high - low) / (2 * FACTOR), sample.records, low, high)
    beyond = np.isnan(found.errors) & ~np.isnan(half) & (sample.records > 1)
    found.withhold(beyond, NO_END, value=False)
    return sample.explained(found)
