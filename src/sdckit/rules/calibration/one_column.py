"""Least change of one column whose domains do not overlap: one factor for all cells of a domain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats

NOISE = 1e-12  # share of a sum of sizes that the rounding of floats can explain


def nearest(values: Floats, weights: Floats, low: Floats, high: Floats, target: float) -> Floats | None:
    """Return the values with the least change that gives them a weighted total; None if that is impossible.

    Least is sum of weight * change² / |value|. Without limits each value is multiplied by one factor; with
    them, by a factor so that the total holds once each product is moved into its limits.

    Parameters
    ----------
    values, weights
        The cells of a domain, none of them missing, and their weights.
    low, high
        The limits of each cell; equal where it must not change.
    target
        The weighted total.

    Returns
    -------
    numpy.ndarray or None
        The new values.

    Notes
    -----
    The total grows with the factor and is linear between the factors at which a cell reaches a limit. The
    two of these that enclose the target are found by bisection, and the factor between them is exact.

    Examples
    --------
    >>> import numpy as np
    >>> cells, one = np.array([1.0, 2.0, 7.0]), np.ones(3)
    >>> print(nearest(cells, one, 0 * one, 7 * one, 11.5))
    [1.5 3.  7. ]
    """
    noise = NOISE * float(weights @ np.maximum(np.abs(low), np.abs(high)))
    if not float(weights @ low) - noise <= target <= float(weights @ high) + noise:
        return None
    sizes = np.where(low < high, np.abs(values), 0.0)
    moving = sizes > 0
    lowest, highest = np.full(values.size, -np.inf), np.full(values.size, np.inf)
    lowest[moving] = (low - values)[moving] / sizes[moving]
    highest[moving] = (high - values)[moving] / sizes[moving]
    edges = np.unique(np.concatenate([lowest[moving], highest[moving]]))
    if not edges.size:
        return values
    first, last = 0, edges.size - 1
    while last - first > 1:
        middle = (first + last) // 2
        at = np.clip(values + edges[middle] * sizes, low, high)
        first, last = (middle, last) if float(weights @ at) <= target else (first, middle)
    found = np.clip(values + edges[first] * sizes, low, high)
    free = moving & (lowest <= edges[first]) & (highest >= edges[last])
    slope = float(weights[free] @ sizes[free])
    rate = edges[first]
    for _ in range(2 if slope > 0 else 0):  # the second time corrects the rounding of the first
        rate += (target - math.fsum(weights * found)) / slope
        found[free] = np.clip(values + rate * sizes, low, high)[free]
    return found
