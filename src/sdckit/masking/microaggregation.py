"""Microaggregation: replace records by the mean of their group of at least k records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit import progress
from sdckit.core.in_blocks import InBlocks
from sdckit.core.parameters import Parameter
from sdckit.core.registry import method
from sdckit.kernels.mdav.groups import mdav_groups, mdav_points
from sdckit.masking.group_means import (
    AGGREGATE,
    GAPS,
    GROUP_SIZE,
    each_by_itself,
    notes_on_medians,
    publish,
    rows_alike,
    run_aggregates,
    share_of_groups,
    whole_median_notes,
    window_zero,
    with_empty_records,
)

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints

WEIGHTS = Parameter("variable_weights", dict, {}, "weight of a variable in distances, 1 if not given", low=0)


def mdav_numbers(
    values: Floats,
    *,
    k: int = 3,
    variable_weights: Floats | None = None,
    gaps: str = "alike",
    basis: Floats | None = None,
    **_published: object,
) -> Ints:
    """Return the number of each record's MDAV group; -1 without any value, unless gaps="alike"."""
    points = basis
    if variable_weights is not None:
        points = weighted_points(mdav_points(values) if basis is None else basis, variable_weights)
    return with_empty_records(values, mdav_groups(values, k, points), k, gaps)


def weighted_points(points: Floats, weights: Floats) -> Floats:
    """Return the points with each column times the square root of its weight; weight 0 drops it."""
    used = weights > 0
    if not used.any():
        raise ValueError("all variable_weights are 0; give at least one variable a weight above 0")
    return np.ascontiguousarray(points[:, used] * np.sqrt(weights[used] / weights.max()))


@method(
    title="MDAV microaggregation",
    place=10,
    colour="blue",
    parameters=(GROUP_SIZE, WEIGHTS, AGGREGATE, GAPS),
    default=True,
    keeps=(
        "column means (aggregate=mean, gaps=merge)",
        "column means (aggregate=mean, complete data)",
        "group sizes k to 2k-1 (complete data)",
        "equal records in groups of at least k (gaps=alike)",
    ),
    basis=mdav_points,
    group_size="k",
    groups=mdav_numbers,
    release_notes=notes_on_medians,
    largest_linkage=share_of_groups,
    alike=rows_alike,
    in_blocks=InBlocks(how="groups", needs="squares", notes=whole_median_notes),
    reference="Domingo-Ferrer & Mateo-Sanz 2002, doi:10.1109/69.979982",
)
def mdav(
    values: Floats,
    *,
    k: int = 3,
    variable_weights: Floats | None = None,
    aggregate: str = "mean",
    gaps: str = "alike",
    basis: Floats | None = None,
    groups: Ints | None = None,
) -> Floats:
    """Replace each record by the mean of a group of at least k similar records.

    Column means are kept (with the mean, in complete files) and no published value stands for fewer than
    k records; variances shrink, the more so the larger k is. Not for files whose columns should be
    masked one at a time (see `individual_ranking`), nor for columns of codes, whose means say nothing.

    Parameters
    ----------
    values : array of shape (n, p)
        The records; NaN is a missing cell.
    k : int
        Smallest group size; 1 leaves the values as they are.
    variable_weights : array of p numbers, optional
        How much each variable counts in distances; only their ratios matter. A variable of weight 0
        plays no part in forming groups, but is published as the others are.
    aggregate : "mean" or "median"
        What is published of a group; the median of an even number of values is the mean of the middle
        two, and that of an odd number an original value. Medians do not keep column means.
    gaps : "alike", "merge" or "suppress"
        What becomes of a variable that some records of a group miss. "alike": all records of a group are
        published alike. Missing cells are filled with what the group publishes if at least max(k, 3) of its
        records have a value; else the variable is suppressed in the whole group. With the other two a
        missing cell stays missing, which tells records of a group apart. "merge": where fewer than k records
        have a value, in this variable alone, the group and the nearest ones with a value (by their
        standardised centroids) publish one aggregate of all their values, k or more; only where the whole
        file has fewer than k values do cells become missing. "suppress": there the group's cells become
        missing.
    basis : array, optional
        `mdav_points(values)`, where it is known.
    groups : array of n integers, optional
        The number of each record's group, -1 for none, where they are known.

    Returns
    -------
    array of shape (n, p)
        Group means, or medians, of the original values; for missing cells see `gaps`.

    Notes
    -----
    Columns are standardised by mean and standard deviation. While at least 3k records are left: take the
    record farthest from their centroid with its k - 1 nearest, then the record farthest from that one
    with its k - 1 nearest. Of the last 2k to 3k - 1 records, the one farthest from the centroid and its
    k - 1 nearest form a group, the rest another. Of equal distances the smallest row number wins; they
    are compared as computed, so distances that are equal in exact arithmetic may differ in their last
    bit, and then that bit decides, not the row. With missing cells, a distance is taken over the
    variables both records have and scaled up to the number of all of them. Records without any value
    stay out and are published without any; with gaps="alike" k or more of them form groups of their own,
    and fewer join, of the smallest groups, the one nearest to the mean of all records. A squared
    distance is the sum of w_j (x_j - y_j)^2 over the variables j with weights w_j. Merging goes through
    the groups with 1 to k - 1 values of a variable in the order in which they were formed. A group is
    merged with the one whose centroid is nearest, and with all that this one was merged with before,
    until there are k values; of equal distances the group formed first wins, and a centroid without any
    value of a variable counts as the mean of all records there. Every value of merged groups is
    published as the same aggregate, so that no difference of two published values leads to a small
    group.

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
    if groups is None:
        groups = mdav_numbers(values, k=k, variable_weights=variable_weights, gaps=gaps, basis=basis)
    points = basis
    if gaps == "merge" and variable_weights is not None:
        points = mdav_points(values) if basis is None else basis
        points = points * np.sqrt(variable_weights / variable_weights.max())
    return publish(values, groups, k, aggregate, gaps=gaps, points=points)


@method(
    title="individual ranking",
    place=10,
    colour="sky",
    parameters=(GROUP_SIZE, AGGREGATE),
    default=True,
    keeps=(
        "column means (aggregate=mean)",
        "order of each column, ties apart",
        "group sizes k to 2k-1 in each column",
    ),
    group_size="k",
    release_notes=notes_on_medians,
    window=window_zero,
    one_by_one=each_by_itself,
    in_blocks=InBlocks(how="ranks", notes=whole_median_notes),
    reference="Defays & Nanopoulos 1993; Domingo-Ferrer & Mateo-Sanz 2002, doi:10.1109/69.979982",
)
def individual_ranking(values: Floats, *, k: int = 3, aggregate: str = "mean") -> Floats:
    """Replace each value by the mean of k neighbouring values of its column.

    Column means (with the mean) and each column's order are kept, so little information is lost; for
    the same reason it protects little. Not for files in which several columns together identify a
    record: the groups differ from column to column (see `mdav`).

    Parameters
    ----------
    values : array of shape (n, p)
        The records; NaN is a missing cell.
    k : int
        Smallest group size; 1 leaves the values as they are.
    aggregate : "mean" or "median"
        What is published of a group; the median of an even number of values is the mean of the middle
        two, and that of an odd number an original value. Medians do not keep column means.

    Returns
    -------
    array of shape (n, p)
        Group means, or medians. A missing cell stays missing, which tells the records of a group apart; a
        column with fewer than k values becomes missing.

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
                masked[order, j] = run_aggregates(column[order], starts, k, aggregate)
            report(j + 1)
    return masked
