"""V-MDAV: microaggregation with groups that grow by records much nearer to them than to other records."""

from __future__ import annotations

from math import inf, isnan, sqrt
from typing import NamedTuple

import numpy as np

from sdckit import progress
from sdckit.core.parameters import Parameter
from sdckit.core.registry import method
from sdckit.kernels.jit import Floats, Ints, inner, kernel
from sdckit.kernels.mdav.groups import CELLS, mdav_points
from sdckit.kernels.mdav.state import SLACK
from sdckit.masking.group_means import GAPS, GROUP_SIZE, publish, share_of_groups

LEFT, FORMED, HEAD = range(3)  # counters: records left, groups formed, position in the sorted list


class VmdavState(NamedTuple):
    """State of V-MDAV between calls of `grow_groups`: records left, groups formed, the group being formed."""

    points: Floats  # the ungrouped records, rows ascending, standardised
    rows: Ints  # their rows
    order: Ints  # all rows, the farthest from the centroid first
    from_seed: Floats  # squared distance of each record left to the one a group grows round
    near: Floats  # the smallest of these, sorted
    members: Ints  # the group being formed, as places among the ungrouped records
    groups: Ints  # the answer, -1 for a record in no group yet
    counters: Ints


def start(points: Floats, k: int) -> VmdavState:
    """Return the initial V-MDAV state for points with at least one value in each record (n >= k >= 2)."""
    n, p = points.shape
    seen = ~np.isnan(points)
    reach = np.zeros(n)
    for j in range(p):  # the centroid of standardised data is 0
        reach += np.where(seen[:, j], points[:, j] * points[:, j], 0.0)
    reach *= p / seen.sum(axis=1)
    return VmdavState(
        points=points.copy(),
        rows=np.arange(n),
        order=np.argsort(-reach, kind="stable"),
        from_seed=np.empty(n),
        near=np.empty(k),
        members=np.empty(2 * k, np.int64),
        groups=np.full(n, -1),
        counters=np.array([n, 0, 0]),
    )


@inner
def distance_between(points: Floats, one: int, other: int, complete: int, limit: float) -> float:
    """Return the squared distance of two records; infinite if they share no variable.

    For complete data the sum stops as soon as it exceeds `limit`.
    """
    total, shared, width = 0.0, 0, points.shape[1]
    if complete:
        for j in range(width):
            difference = points[one, j] - points[other, j]
            total += difference * difference
            if total > limit:
                break
    else:
        for j in range(width):
            difference = points[one, j] - points[other, j]
            seen = not isnan(difference)
            total += difference * difference if seen else 0.0
            shared += seen
        total = total * (width / shared) if shared else inf
    return total


@inner
def seed_group(state: VmdavState, seed: int, k: int, complete: int) -> None:
    """Start a group with record `seed` and its k - 1 nearest; store all distances from the seed."""
    points, near, members, from_seed = state.points, state.near, state.members, state.from_seed
    count = 0
    for i in range(state.counters[LEFT]):
        from_seed[i] = distance = distance_between(points, i, seed, complete, inf)
        if i == seed or (count == k - 1 and distance >= near[count - 1]):
            continue
        place = count = min(count + 1, k - 1)
        while place > 1 and near[place - 2] > distance:
            near[place - 1], members[place - 1] = near[place - 2], members[place - 2]
            place -= 1
        near[place - 1], members[place - 1] = distance, i
    members[k - 1] = seed


@inner
def nearest_outside(state: VmdavState, size: int, complete: int) -> tuple[int, float]:
    """Return the ungrouped record nearest to any group member, and that squared distance.

    A record farther from the seed than the group's radius plus the best distance so far cannot be nearer
    to a member; with missing cells the triangle inequality fails and every record is measured.
    """
    points, members, from_seed = state.points, state.members, state.from_seed
    radius, bound = 0.0, inf
    for m in range(size):
        radius = max(radius, sqrt(from_seed[members[m]]))
    best, found = inf, -1
    for i in range(state.counters[LEFT]):
        if from_seed[i] > bound or state.groups[state.rows[i]] >= 0:
            continue
        for m in range(size):
            distance = distance_between(points, i, members[m], complete, best)
            if distance < best or found < 0:
                best, found = distance, i
        if complete:
            bound = (radius + sqrt(best)) ** 2 * SLACK
    return found, best


@inner
def is_apart(state: VmdavState, place: int, inside: float, share: float, complete: int) -> bool:
    """Return True if `inside` is less than `share` of every squared distance to other ungrouped records."""
    if share == 0:
        return False
    from_seed = state.from_seed
    low, high = 0.0, inf
    if complete:  # a record near enough to matter is about as far from the seed
        away, near = sqrt(from_seed[place]), sqrt(inside / share)
        low, high = max(away - near, 0.0) ** 2 / SLACK, (away + near) ** 2 * SLACK
    for i in range(state.counters[LEFT]):
        if from_seed[i] < low or from_seed[i] > high or i == place or state.groups[state.rows[i]] >= 0:
            continue
        if not inside < share * distance_between(state.points, i, place, complete, inf):
            return False
    return True


@inner
def remove_grouped(state: VmdavState) -> None:
    """Remove the records that now have a group from the list of ungrouped records, in place."""
    kept = 0
    for i in range(state.counters[LEFT]):
        if state.groups[state.rows[i]] < 0:
            state.rows[kept] = state.rows[i]
            for j in range(state.points.shape[1]):
                state.points[kept, j] = state.points[i, j]
            kept += 1
    state.counters[LEFT] = kept


@kernel
def grow_groups(state: VmdavState, k: int, gamma: float, complete: int, rounds: int) -> bool:
    """Form at most `rounds` groups; return True once fewer than 2k records are left."""
    counters, groups, rows, members = state.counters, state.groups, state.rows, state.members
    while counters[LEFT] >= 2 * k:
        if rounds == 0:
            return False
        rounds -= 1
        while groups[state.order[counters[HEAD]]] >= 0:
            counters[HEAD] += 1
        seed_group(state, np.searchsorted(rows[: counters[LEFT]], state.order[counters[HEAD]]), k, complete)
        for m in range(k):
            groups[rows[members[m]]] = counters[FORMED]
        size = k
        while size < 2 * k - 1:
            place, inside = nearest_outside(state, size, complete)
            if not is_apart(state, place, inside, gamma * gamma, complete):
                break
            members[size] = place
            groups[rows[place]] = counters[FORMED]
            size += 1
        counters[FORMED] += 1
        remove_grouped(state)
    return True


def vmdav_numbers(
    values: Floats, *, k: int = 3, gamma: float = 0.2, basis: Floats | None = None, **_published: object
) -> Ints:
    """Return the number of each record's V-MDAV group; -1 for a record without any value."""
    present = ~np.isnan(values).all(axis=1)
    groups = np.full(len(values), -1)
    if k == 1:
        groups[present] = np.arange(np.count_nonzero(present))
        return groups
    points = (mdav_points(values) if basis is None else basis)[present]
    state = start(points, k)
    complete, n = int(not np.isnan(points).any()), len(points)
    with progress.track("V-MDAV", n * n) as report:  # a round's cost grows with the ungrouped records
        left = n
        while not grow_groups(
            state, k, float(gamma), complete, max(1, CELLS // (left * points.shape[1] * 5))
        ):
            left = int(state.counters[LEFT])
            report(n * n - left * left)
    groups[present] = with_leftovers(points, state.groups, k)
    return groups


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
    keeps=("column means (gaps=merge)", "group sizes of at least k"),
    basis=mdav_points,
    group_size="k",
    groups=vmdav_numbers,
    largest_linkage=share_of_groups,
    reference="Solanas & Martinez-Balleste 2006, COMPSTAT",
)
def vmdav(
    values: Floats,
    *,
    k: int = 3,
    gamma: float = 0.2,
    gaps: str = "merge",
    basis: Floats | None = None,
    groups: Ints | None = None,
) -> Floats:
    """Replace each record by the mean of a group of k or more records, larger where the data are dense.

    Column means are kept and no published value stands for fewer than k records.
    It suits data in clusters of uneven size, which groups of exactly k would tear apart; elsewhere `mdav`
    loses less. Time grows with the square of the number of records: not for files of more than some
    100,000 (see `mdav` and `blocked_mdav`).

    Parameters
    ----------
    values : array of shape (n, p)
        The records; NaN is a missing cell.
    k : int
        Smallest group size; 1 leaves the values as they are.
    gamma : float
        A record joins a group if its distance to it is less than gamma times its distance to the nearest
        other record; 0 leaves all groups at k. About 0.2 suits scattered data, about 1.1 clusters.
    gaps : "merge" or "suppress"
        What becomes of a variable of which fewer than k records of a group have a value. "merge": in this
        variable alone, the group and the nearest ones with a value (by their standardised centroids)
        publish one aggregate of all their values, k or more; only where the whole file has fewer than k
        values do cells become missing. "suppress": the group's cells become missing.
    basis : array, optional
        `mdav_points(values)`, where it is known.
    groups : array of n integers, optional
        The number of each record's group, -1 for none, where they are known.

    Returns
    -------
    array of shape (n, p)
        Group means of the original values. A missing cell stays missing; for groups with fewer than k
        values of a variable see `gaps`.

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
        groups = vmdav_numbers(values, k=k, gamma=gamma, basis=basis)
    return publish(values, groups, k, gaps=gaps, points=basis)
