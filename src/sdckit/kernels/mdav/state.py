"""State that the exact MDAV algorithms share: groups, ungrouped records, centroid and distance list.

The groups are those of the textbook loop, bit for bit: the centroid is a running sum divided by a
count, squared Euclidean distances are added up column by column in float64, and every tie goes to
the smallest row number.

The record farthest from the centroid comes from a list sorted by the distance to an *earlier*
centroid: no record can be farther from the new one than that distance plus the drift between the two.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Floats, Int, Ints, inlined, kernel

RESORT = 4  # the list is sorted again once RESORT x (records left + FEW) entries were inspected
FEW = 500  # in small files a sort costs more than inspecting some more entries
SLACK = 1 + 1e-9  # factor far above the rounding of a distance, so that a bound never excludes the answer
TINY = 1e-150  # as SLACK, added, for distances whose squares underflow

# Counters: records left, groups formed, first list entry not grouped, list length, entries inspected since
# the last sort, nodes or blocks visited.
LEFT, FORMED, HEAD, LISTED, LOOKED, WORK = range(6)


class MdavState(NamedTuple):
    """The state of MDAV on a complete file: groups formed, running sums, distances, heap and counters."""

    points: Floats  # rows x columns, standardised by the caller
    slots: Ints  # where each row is kept, -1 once it is grouped
    total: Floats  # column sums of the ungrouped records
    centres: Floats  # the present centroid, and the one by which the list is sorted
    reach: Floats  # distances to the latter, largest first
    order: Ints  # the rows in that order
    near: Floats  # heap of the smallest distances seen in a search, largest on top
    group: Ints  # the rows in that heap; a group being formed
    groups: Ints  # the answer: a group number for each row
    counters: Ints


def start(points: Floats, k: int) -> MdavState:
    """Return the initial MDAV state for points without missing cells (n >= k >= 2): no record is grouped."""
    n, p = points.shape
    return MdavState(
        points=np.ascontiguousarray(points),
        slots=np.arange(n),
        total=np.cumsum(points, axis=0)[-1],  # row after row, as the running sum goes on
        centres=np.empty((2, p)),
        reach=np.empty(n),
        order=np.empty(n, np.int64),
        near=np.empty(k),
        group=np.empty(k, np.int64),
        groups=np.empty(n, np.int64),
        counters=np.array([n, 0, 0, 0, RESORT * (n + FEW) + 1, 0]),
    )


def resort_if_needed(state: MdavState) -> bool:
    """Sort the ungrouped records by distance to the present centroid, if the old order is too old.

    Return whether they were sorted.
    """
    if not needs_resort(state.counters):
        return False
    left = int(state.counters[LEFT])
    state.centres[1] = state.total / left
    list_ungrouped(state.slots, state.points, state.centres[1], state.order, state.reach)
    distances, rows = np.sqrt(state.reach[:left]), state.order[:left].copy()
    order = np.argsort(-distances)
    state.reach[:left] = distances[order]
    state.order[:left] = rows[order]
    state.counters[HEAD : LOOKED + 1] = 0, left, 0
    return True


@kernel
def needs_resort(counters: Ints) -> bool:
    """Return True if so many list entries were inspected that sorting the list again is cheaper."""
    return counters[LOOKED] > RESORT * (counters[LEFT] + FEW)


@kernel
def list_ungrouped(slots: Ints, points: Floats, centre: Floats, order: Ints, reach: Floats) -> None:
    """Write the ungrouped rows and their squared distances to the centroid, unsorted."""
    size = 0
    for row in range(len(slots)):
        if slots[row] >= 0:
            order[size] = row
            reach[size] = squared_distance(points, row, centre)
            size += 1


@inlined
def squared_distance(points: Floats, row: Int, point: Floats) -> float:
    """Return the squared distance of a row to `point`, added up column after column."""
    total = 0.0
    for j in range(len(point)):
        difference = points[row, j] - point[j]
        total += difference * difference
    return total


@inlined
def farthest_from_centroid(state: MdavState, patience: int) -> Int:
    """Return the ungrouped row farthest from the centroid of all these; -1 after `patience` list entries."""
    counters, slots, order = state.counters, state.slots, state.order
    centre = state.centres[0]
    for j in range(len(centre)):
        centre[j] = state.total[j] / counters[LEFT]
    drift = sqrt(squared_distance(state.centres, 1, centre))
    while slots[order[counters[HEAD]]] < 0:
        counters[HEAD] += 1
    best, found, bound = -1.0, len(slots), -1.0
    for i in range(counters[HEAD], counters[LISTED]):
        if (state.reach[i] + drift) * SLACK + TINY < bound:
            break
        counters[LOOKED] += 1
        patience -= 1
        if patience < 0:
            return -1
        row = order[i]
        if slots[row] >= 0:
            distance = squared_distance(state.points, row, centre)
            if distance > best or (distance == best and row < found):
                best, found, bound = distance, row, sqrt(distance)
    return found


@inlined
def clear_heap(near: Floats, group: Ints, size: int, no_row: int) -> None:
    """Empty the heap of nearest records: infinite distances and the row number `no_row`."""
    for i in range(size):
        near[i], group[i] = inf, no_row


@kernel
def replace_largest(near: Floats, group: Ints, size: int, distance: float, row: Int) -> None:
    """Replace the top of the heap of nearest records by `row`; equal distances compare by row."""
    top, child = 0, 1
    while child < size:
        other = child + 1
        if other < size and (
            near[other] > near[child] or (near[other] == near[child] and group[other] > group[child])
        ):
            child = other
        if near[child] < distance or (near[child] == distance and group[child] < row):
            break
        near[top], group[top] = near[child], group[child]
        top, child = child, 2 * child + 1
    near[top], group[top] = distance, row


@inlined
def sort_rows(group: Ints, size: int) -> None:
    """Sort the first `size` row numbers in place (a shell sort: short to compile)."""
    gap = size // 2
    while gap > 0:
        for i in range(gap, size):
            row, j = group[i], i
            while j >= gap and group[j - gap] > row:
                group[j] = group[j - gap]
                j -= gap
            group[j] = row
        gap //= 2


@inlined
def number_group(state: MdavState, row: Int, k: int) -> None:
    """Give `row` and the k - 1 records of the heap a group number, and subtract them from the column sums."""
    group = state.group
    group[k - 1] = row
    sort_rows(group, k)
    for i in range(k):
        state.groups[group[i]] = state.counters[FORMED]
        for j in range(len(state.total)):
            state.total[j] -= state.points[group[i], j]
    state.counters[FORMED] += 1


@inlined
def group_the_rest(slots: Ints, groups: Ints, number: Int) -> None:
    """Give all records without a group the same group number."""
    for row in range(len(slots)):
        if slots[row] >= 0:
            groups[row] = number
