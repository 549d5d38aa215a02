"""Distribution functions and binned distributions of two columns, from stretches of their sorted values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.kernels.jit import Floats, kernel

if TYPE_CHECKING:
    from sdckit.kernels.jit import Ints

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
