"""Microaggregation: records in groups of at least k, each published as its group's mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit import progress
from sdckit.masking.partition import mdav_groups, standardise
from sdckit.registry import Parameter, method

if TYPE_CHECKING:
    from sdckit.compiled import Floats, Ints

GROUP_SIZE = Parameter("k", int, 3, "smallest group size", low=1, grid=range(2, 31))


def share_of_groups(options: dict[str, Any]) -> float:
    """At most one record of each group is found, and there are at most n/k groups."""
    return float(1 / options["k"])


def no_move(_options: dict[str, Any], _values: Floats) -> int:
    """A mean stays among the ranks of those it stands for."""
    return 0


@method(
    title="MDAV microaggregation",
    parameters=(GROUP_SIZE,),
    default=True,
    keeps=("column means", "group sizes k to 2k-1"),
    basis=standardise,
    group_size="k",
    ceiling=share_of_groups,
    reference="Domingo-Ferrer & Mateo-Sanz 2002, doi:10.1109/69.979982",
)
def mdav(values: Floats, *, k: int = 3, basis: Floats | None = None) -> Floats:
    """Replace each record by the mean of a group of at least k similar records.

    Column means are kept (where no cell is missing) and no published record stands for fewer than k;
    variances shrink, the more so the larger k is. Not for files whose columns should be masked one at
    a time (see `individual_ranking`), nor for columns of codes, whose means say nothing.

    Parameters
    ----------
    values : array of shape (n, p)
        The records; NaN is a missing cell.
    k : int
        Smallest group size; 1 leaves the values as they are.
    basis : array, optional
        `standardise(values)`, where it is known.

    Returns
    -------
    array of shape (n, p)
        Group means of the original values. A missing cell stays missing. A cell becomes missing where
        fewer than k of its group's records have a value in that column.

    Notes
    -----
    Columns are standardised by mean and standard deviation. While at least 3k records are left: take
    the record farthest from their centroid with its k - 1 nearest, then the record farthest from that
    one with its k - 1 nearest. Of the last 2k to 3k - 1 records, the one farthest from the centroid
    and its k - 1 nearest form a group, the rest another. Ties go to the smallest row number. With
    missing cells, a distance is taken over the variables both records have and scaled to all of them;
    records without any value stay out.

    References
    ----------
    Domingo-Ferrer & Mateo-Sanz 2002, doi:10.1109/69.979982; the algorithm as in Domingo-Ferrer &
    Torra 2005, doi:10.1007/s10618-005-0007-5.

    Examples
    --------
    >>> values = np.array([[1.0, 10.0], [2.0, 14.0], [8.0, 90.0], [9.0, 70.0], [1.5, 12.0], [8.5, 80.0]])
    >>> mdav(values, k=3)
    array([[ 1.5, 12. ],
           [ 1.5, 12. ],
           [ 8.5, 80. ],
           [ 8.5, 80. ],
           [ 1.5, 12. ],
           [ 8.5, 80. ]])
    """
    if k == 1:
        return values.copy()
    groups = mdav_groups(values, k, basis)
    order = np.argsort(groups, kind="stable")
    order = order[np.count_nonzero(groups < 0) :]
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    masked = np.full_like(values, np.nan)
    masked[order] = run_means(values[order], starts, k)
    return masked


@method(
    title="individual ranking",
    parameters=(GROUP_SIZE,),
    default=True,
    keeps=("column means", "order of each column, ties apart", "group sizes k to 2k-1 in each column"),
    group_size="k",
    window=no_move,
    reference="Defays & Nanopoulos 1993; Domingo-Ferrer & Mateo-Sanz 2002, doi:10.1109/69.979982",
)
def individual_ranking(values: Floats, *, k: int = 3) -> Floats:
    """Replace each value by the mean of k neighbouring values of its column.

    Column means and each column's order are kept, so little information is lost; for the same reason
    it protects little. Not for files in which several columns together identify a record: the groups
    differ from column to column (see `mdav`).

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
    A column is sorted, equal values by row number, and cut into runs of k values; what is left over
    joins the last run.

    References
    ----------
    Domingo-Ferrer & Mateo-Sanz 2002, doi:10.1109/69.979982

    Examples
    --------
    >>> individual_ranking(np.array([[5.0], [1.0], [9.0], [2.0], [8.0]]), k=2).ravel()
    array([7.33333333, 1.5       , 7.33333333, 1.5       , 7.33333333])
    """
    if k == 1:
        return values.copy()
    masked = np.full_like(values, np.nan)
    n, p = values.shape
    with progress.track("individual ranking", p) as report:
        for j in range(p):
            column = np.ascontiguousarray(values[:, j])
            order = np.argsort(column, kind="stable")  # NaN comes last
            order = order[: n - np.count_nonzero(np.isnan(column))]
            if len(order) >= k:
                starts = np.arange(len(order) // k) * k
                masked[order, j] = run_means(column[order], starts, k)
            report(j + 1)
    return masked


def run_means(values: Floats, starts: Ints, k: int) -> Floats:
    """The mean of each run of rows that begins at one of `starts`, in place of each observed value.

    A run with fewer than k observed values in a column is NaN there.
    """
    observed = ~np.isnan(values)
    largest = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)
    unit = np.exp2(np.maximum(np.frexp(largest)[1] - 960, 0))  # 1, except where a sum could overflow
    values = values / unit
    counts = np.add.reduceat(observed, starts, axis=0, dtype=np.int64)
    means = np.add.reduceat(np.where(observed, values, 0.0), starts, axis=0) / np.maximum(counts, 1)
    # A mean lies between its smallest and largest value; rounding could leave that interval, and
    # equal values, whose mean is that very value, would come back changed.
    means = np.clip(means, np.fmin.reduceat(values, starts, axis=0), np.fmax.reduceat(values, starts, axis=0))
    means[counts < k] = np.nan
    repeated = np.repeat(means, np.diff(starts, append=len(values)), axis=0)
    return np.where(observed, repeated, np.nan) * unit
