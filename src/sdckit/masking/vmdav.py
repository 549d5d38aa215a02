"""V-MDAV: microaggregation with groups that grow by records much nearer to them than to other records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdckit import progress
from sdckit.core.parameters import Parameter
from sdckit.core.registry import method
from sdckit.kernels.jit import Floats, Int, Ints, inner, kernel
from sdckit.kernels.mdav.groups import SEARCHES, STEP, ProgressShare, mdav_points
from sdckit.kernels.mdav.missing import BUILT, MissingTree, build_tree, delete, find_nearest, needs_tree
from sdckit.kernels.mdav.state import FORMED, HEAD, LEFT, WORK, clear_heap
from sdckit.masking.group_means import (
    GAPS,
    GROUP_SIZE,
    publish,
    rows_alike,
    share_of_groups,
    with_empty_records,
)


class VmdavState(NamedTuple):
    """State of V-MDAV between calls of `grow_groups`: groups formed, the group being formed."""

    order: Ints  # all rows, the farthest from the centroid first
    near: Floats  # heap of the smallest distances seen in a search, largest on top
    found: Ints  # the rows in that heap
    members: Ints  # the group being formed
    groups: Ints  # the answer, -1 for a record in no group yet
    counters: Ints  # as those of MDAV


def start(points: Floats, k: int) -> VmdavState:
    """Return the initial V-MDAV state for points with at least one value in each record (n >= k >= 2)."""
    n, p = points.shape
    seen = ~np.isnan(points)
    reach = np.zeros(n)
    for j in range(p):  # the centroid of standardised data is 0
        reach += np.where(seen[:, j], points[:, j] * points[:, j], 0.0)
    reach *= p / seen.sum(axis=1)
    counters = np.zeros(BUILT + 1, np.int64)
    counters[LEFT] = n
    return VmdavState(
        order=np.argsort(-reach, kind="stable"),
        near=np.empty(k),
        found=np.empty(k, np.int64),
        members=np.empty(2 * k, np.int64),
        groups=np.full(n, -1),
        counters=counters,
    )


@inner
def search(state: VmdavState, tree: MissingTree, first: int, last: int, size: int) -> None:
    """Set the heap to the `size` ungrouped records nearest to any of the members first..last-1."""
    clear_heap(state.near, state.found, size, len(tree.points))
    for m in range(first, last):
        state.counters[WORK] += find_nearest(tree, state.members[m], state.near, state.found, size)


@inner
def join_group(state: VmdavState, tree: MissingTree, row: Int) -> None:
    """Give `row` the number of the group being formed, and delete it from the tree."""
    state.groups[row] = state.counters[FORMED]
    state.counters[LEFT] -= 1
    delete(tree, row)


@inner
def grow_group(state: VmdavState, tree: MissingTree, k: int, share: float) -> None:
    """Add records to a group of k that are nearer to it than `share` of their nearest squared distance."""
    near, found, members = state.near, state.found, state.members
    for size in range(k, 2 * k - 1):
        search(state, tree, 0, size, 1)
        inside, members[size] = near[0], found[0]
        search(state, tree, size, size + 1, 1)
        if not inside < share * near[0]:
            return
        join_group(state, tree, members[size])


@kernel
def grow_groups(state: VmdavState, tree: MissingTree, k: int, gamma: float, work: int) -> bool:
    """Form groups; return True if fewer than 2k records are left, False after `work` nodes or for a tree."""
    counters, members = state.counters, state.members
    counters[WORK] = 0
    while counters[LEFT] >= 2 * k:
        if counters[WORK] >= work or needs_tree(counters):
            return False
        while state.groups[state.order[counters[HEAD]]] >= 0:
            counters[HEAD] += 1
        members[0] = state.order[counters[HEAD]]
        search(state, tree, 0, 1, k - 1)
        for m in range(1, k):
            members[m] = state.found[m - 1]
        for m in range(k):
            join_group(state, tree, members[m])
        if gamma > 0:
            grow_group(state, tree, k, gamma * gamma)
        counters[FORMED] += 1
    return True


def vmdav_numbers(
    values: Floats,
    *,
    k: int = 3,
    gamma: float = 0.2,
    gaps: str = "alike",
    basis: Floats | None = None,
    **_published: object,
) -> Ints:
    """Return the number of each record's V-MDAV group; -1 without any value, unless gaps="alike"."""
    present = ~np.isnan(values).all(axis=1)
    groups = np.full(len(values), -1)
    if k == 1:
        groups[present] = np.arange(np.count_nonzero(present))
        return groups
    points = (mdav_points(values) if basis is None else basis)[present]
    groups[present] = with_leftovers(points, group_points(points, k, float(gamma)), k)
    return with_empty_records(values, groups, k, gaps)


def group_points(points: Floats, k: int, gamma: float) -> Ints:
    """Return the V-MDAV group of each point; -1 for those that are left when fewer than 2k are."""
    state = start(points, k)
    tree = None
    with progress.track("V-MDAV", 1.0) as report:
        share = ProgressShare(report, state.counters, SEARCHES)
        while tree is None or not grow_groups(state, tree, k, gamma, max(1, STEP // points.shape[1])):
            share.show()
            if tree is None or needs_tree(state.counters):
                tree = build_tree(points, np.flatnonzero(state.groups < 0))
                state.counters[BUILT] = state.counters[LEFT]
        report(1.0)
    return state.groups


def with_leftovers(points: Floats, groups: Ints, k: int) -> Ints:
    """Return the groups with ungrouped records added: as a group if k or more, else to the nearest one."""
    groups = groups.copy()
    left = np.flatnonzero(groups < 0)
    if len(left) >= k:
        groups[left] = groups.max() + 1
        return groups
    kept = groups >= 0
    numbers, seen = groups[kept], ~np.isnan(points[kept])
    centres = np.empty((groups.max() + 1, points.shape[1]))
    for j in range(points.shape[1]):
        counts = np.bincount(numbers, seen[:, j], len(centres))
        sums = np.bincount(numbers, np.where(seen[:, j], points[kept, j], 0.0), len(centres))
        centres[:, j] = np.divide(sums, counts, out=np.full(len(centres), np.nan), where=counts > 0)
    for row in left:
        gaps = centres - points[row]
        shared = (~np.isnan(gaps)).sum(axis=1)
        squares = np.nansum(gaps * gaps, axis=1) / np.maximum(shared, 1)
        groups[row] = np.argmin(np.where(shared > 0, squares, np.inf))
    return groups


@method(
    title="V-MDAV microaggregation",
    place=20,
    parameters=(
        GROUP_SIZE,
        Parameter("gamma", float, 0.2, "how readily groups grow beyond k; 0 is never", low=0),
        GAPS,
    ),
    keeps=(
        "column means (gaps=merge)",
        "column means (complete data)",
        "group sizes of at least k",
        "equal records in groups of at least k (gaps=alike)",
    ),
    basis=mdav_points,
    group_size="k",
    groups=vmdav_numbers,
    largest_linkage=share_of_groups,
    alike=rows_alike,
    reference="Solanas & Martinez-Balleste 2006, COMPSTAT",
)
def vmdav(
    values: Floats,
    *,
    k: int = 3,
    gamma: float = 0.2,
    gaps: str = "alike",
    basis: Floats | None = None,
    groups: Ints | None = None,
) -> Floats:
    """Replace each record by the mean of a group of k or more records, larger where the data are dense.

    Column means are kept (in complete files) and no published value stands for fewer than k records. It
    suits data in clusters of uneven size, which groups of exactly k would tear apart; elsewhere `mdav`
    loses less. Not for files with many independent columns and more than some 100,000 records: no tree
    helps there, and time grows with the square of the number of records (see `blocked_mdav`).

    Parameters
    ----------
    values : array of shape (n, p)
        The records; NaN is a missing cell.
    k : int
        Smallest group size; 1 leaves the values as they are.
    gamma : float
        A record joins a group if its distance to it is less than gamma times its distance to the nearest
        other record; 0 leaves all groups at k. About 0.2 suits scattered data, about 1.1 clusters.
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
        Group means of the original values; for missing cells see `gaps`.

    Notes
    -----
    Columns are standardised by mean and standard deviation, and the centroid is computed once. While
    at least 2k records are left: the one farthest from the centroid forms a group with its k - 1
    nearest. While the group has fewer than 2k - 1 records, the record e outside that is nearest to one
    of its members, at a distance d, joins it if d < gamma d', where d' is the distance of e to the nearest
    other record without a group. Of the last records, k or more form a group; fewer join the groups with
    the nearest centroids, which makes these larger than 2k - 1 at times, but never than 3k - 2. All other
    groups have k to 2k - 1 records. Ties, of distances as computed, missing cells and groups with too few
    values of a variable are treated as by `mdav`. The rule for the last records follows a secondary source:
    the original article, which may go on until fewer than k are left, could not be consulted.

    References
    ----------
    Solanas & Martinez-Balleste 2006, V-MDAV: a multivariate microaggregation with variable group size,
    COMPSTAT.

    Examples
    --------
    >>> values = np.array([[1.0], [2.0], [3.0], [3.5], [20.0], [21.0], [31.0]])
    >>> vmdav(values, k=2, gamma=0.2).ravel()
    array([ 1.5 ,  1.5 ,  3.25,  3.25, 24.  , 24.  , 24.  ])
    """
    if groups is None:
        groups = vmdav_numbers(values, k=k, gamma=gamma, gaps=gaps, basis=basis)
    return publish(values, groups, k, gaps=gaps, points=basis)
