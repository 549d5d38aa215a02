"""Optimal univariate microaggregation: groups of at least k values with the least sum of squares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sdckit import progress
from sdckit.core.registry import method
from sdckit.kernels.jit import Floats, Ints, kernel
from sdckit.kernels.scaling import powers_of_two
from sdckit.masking.group_means import GROUP_SIZE, each_by_itself, run_aggregates, window_zero

CELLS = 100_000_000  # steps between two checks for Ctrl-C: a fraction of a second


class PathState(NamedTuple):
    """State of the shortest-path search for optimal groups, between calls of `extend_path`."""

    values: Floats  # sorted
    costs: Floats  # least squares of the first i values, for the last 2k of i, less what all have in common
    sizes: npt.NDArray[np.int32]  # of the last group of the best path to each value
    shares: Floats  # 1/size


def start(ordered: Floats, k: int) -> PathState:
    """Return the initial state of the search for groups of at least k sorted values."""
    costs = np.full(2 * k, np.inf)
    costs[0] = 0.0
    return PathState(ordered, costs, np.zeros(len(ordered) + 1, np.int32), 1 / np.arange(1.0, 2 * k))


@kernel
def extend_path(path: PathState, k: int, begin: int, end: int) -> None:
    """Find the size of the best last group for each of the first `begin` to `end` - 1 values.

    Squares are gathered from the last value downwards as deviations from a running mean: no term is
    negative, so that nothing cancels, however large the values. What all costs in use have in common
    is subtracted at times, so that small squares are not lost to rounding in the sum of all.
    """
    values, costs, slots = path.values, path.costs, 2 * k
    for j in range(begin, end):
        mean, within, best, size = 0.0, 0.0, np.inf, 0
        for s in range(min(slots - 1, j)):
            value = values[j - 1 - s]
            gap = value - mean
            mean += gap * path.shares[s]
            within += gap * (value - mean)
            if s >= k - 1:
                cost = costs[(j - 1 - s) % slots] + within
                if cost < best:
                    best, size = cost, s + 1
        costs[j % slots], path.sizes[j] = best, size
        if j % slots == 0 and best < np.inf:
            least = costs.min()
            for i in range(slots):
                costs[i] -= least


def optimal_sizes(ordered: Floats, k: int) -> Ints:
    """Return the sizes of the optimal groups of sorted values; ties give the smallest last group."""
    path, n = start(ordered, k), len(ordered)
    step = max(1, CELLS // (4 * k))
    with progress.track("optimal groups", n) as report:
        for begin in range(1, n + 1, step):
            extend_path(path, k, begin, min(begin + step, n + 1))
            report(min(begin + step, n))
    return path_sizes(path.sizes, k)


@kernel
def path_sizes(sizes: npt.NDArray[np.int32], k: int) -> Ints:
    """Return the sizes of the groups on the best path, in order, given the best last group at each value."""
    found = np.empty(len(sizes) // k, np.int64)
    count, at = 0, len(sizes) - 1
    while at > 0:
        found[count] = sizes[at]
        at -= sizes[at]
        count += 1
    return found[:count][::-1].copy()


@method(
    title="optimal univariate microaggregation",
    place=30,
    parameters=(GROUP_SIZE,),
    keeps=("column means", "order of each column, ties apart", "group sizes k to 2k-1 in each column"),
    group_size="k",
    window=window_zero,
    one_by_one=each_by_itself,
    reference="Hansen & Mukherjee 2003, doi:10.1109/TKDE.2003.1208020",
)
def optimal_univariate(values: Floats, *, k: int = 3) -> Floats:
    """Replace each value by the mean of its group in the optimal grouping of its column.

    Of all ways to put a column's values into groups of at least k, this one has the least sum of squared
    deviations from the group means. Column means and each column's order are kept. It loses less than
    `individual_ranking` and, for the same reason, protects even less: not for files in which several
    columns together identify a record (see `mdav`).

    Parameters
    ----------
    values : array of shape (n, p)
        The records; NaN is a missing cell.
    k : int
        Smallest group size; 1 leaves the values as they are.

    Returns
    -------
    array of shape (n, p)
        Group means. A missing cell stays missing; a column with fewer than k values becomes missing.

    Notes
    -----
    The best groups are runs of k to 2k - 1 sorted values, so they are a shortest path from 0 to n with an
    arc from i to j for i + k <= j <= i + 2k - 1, whose length is the sum of squares within values i + 1 to
    j. Time grows with n times k. Equal values are ordered by row number and may fall into two groups.

    References
    ----------
    Hansen & Mukherjee 2003, doi:10.1109/TKDE.2003.1208020

    Examples
    --------
    >>> values = np.array([[1.0, 2, 3, 10, 11, 12, 13, 30, 31, 32]]).T
    >>> optimal_univariate(values, k=3).ravel()
    array([ 2. ,  2. ,  2. , 11.5, 11.5, 11.5, 11.5, 31. , 31. , 31. ])
    """
    if k == 1:
        return values.copy()
    masked = np.full_like(values, np.nan)
    n, p = values.shape
    for j in progress.each("optimal groups", range(p)):
        column = np.ascontiguousarray(values[:, j])
        order = np.argsort(column, kind="stable")  # NaN comes last
        order = order[: n - np.count_nonzero(np.isnan(column))]
        if len(order) >= k:
            ordered = column[order]
            sizes = optimal_sizes(ordered / powers_of_two(ordered), k)
            masked[order, j] = run_aggregates(ordered, np.cumsum(sizes) - sizes, k)
    return masked
