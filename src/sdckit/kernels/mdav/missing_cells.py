"""Exact MDAV on a file with missing cells: distances over the columns that both records have.

The groups are those of the textbook loop, bit for bit. Its centroid is the mean of the values left, added up
row after row, which takes time for every record; a running sum is nearly the same, and as a rule one record
is farther from it than any other by more than the two can differ. Only if not, the rows are added up.

The record farthest from the centroid comes from a list sorted by the distance to an earlier centroid, as in
`state`; other records come from searches in a tree.
"""

from __future__ import annotations

from math import inf, isnan, nan, sqrt
from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Floats, Int, Ints, inlined, inner, kernel
from sdckit.kernels.mdav.missing_search import find_farthest, find_nearest
from sdckit.kernels.mdav.missing_tree import BUILT, MissingTree, build_tree, delete, needs_tree
from sdckit.kernels.mdav.state import (
    FEW,
    FORMED,
    HEAD,
    LEFT,
    LISTED,
    LOOKED,
    RESORT,
    SLACK,
    TINY,
    WORK,
    clear_heap,
    group_the_rest,
    needs_resort,
)

LIST_LIMIT = 1000  # entries of the sorted list inspected before the tree is searched for the farthest record
UNIT = 2.0**-53  # largest relative error of rounding


class MissingState(NamedTuple):
    """The state of MDAV on a file with missing cells, between calls of `advance`."""

    points: Floats  # rows x columns, standardised by the caller, NaN for a missing cell
    rows: Ints  # the rows that were left when the tree was built, in order
    total: Floats  # column sums of the ungrouped records, by subtracting those that were grouped since
    observed: Floats  # how many values each of these has
    doubt: Floats  # how far each of these can be from the sum of the rows left, in order
    stretch: Floats  # largest factor from a distance of two centroids to that of their distances to a record
    centres: Floats  # the present centroid, and the one by which the list is sorted
    reach: Floats  # distances to the latter, largest first
    order: Ints  # the rows in that order
    near: Floats  # heap of the smallest distances seen in a search, largest on top
    group: Ints  # the rows in that heap; a group being formed
    groups: Ints  # the answer: a group number for each row
    counters: Ints  # as in `state`, and how many `rows` there are


def start(points: Floats, k: int) -> MissingState:
    """Return the initial MDAV state for points, NaN for a missing cell (n >= k >= 2)."""
    n, p = points.shape
    return MissingState(
        points=np.ascontiguousarray(points),
        rows=np.empty(n, np.int64),
        total=np.empty(p),
        observed=np.empty(p),
        doubt=np.empty(p),
        stretch=np.empty(1),
        centres=np.empty((2, p)),
        reach=np.empty(n),
        order=np.empty(n, np.int64),
        near=np.empty(k),
        group=np.empty(k, np.int64),
        groups=np.full(n, -1),
        counters=np.array([n, 0, 0, 0, RESORT * (n + FEW) + 1, 0, 0, 0]),
    )


def build(part: MissingState) -> MissingTree:
    """Return the tree of the ungrouped records, and add up their values anew."""
    rows = np.flatnonzero(part.groups < 0)
    tree, n, p = build_tree(part.points, rows), len(rows), len(part.total)
    part.rows[:n], part.counters[BUILT] = rows, n
    add_up(part, tree.slots)
    values = part.points[rows]
    seen = ~np.isnan(values)
    # Each addition is rounded: in the sum, in as many subtractions from it, and in the sum of rows left.
    part.doubt[:] = 4 * n * UNIT * np.abs(values).sum(axis=0, where=seen)
    widths = seen.sum(axis=1)
    part.stretch[0] = sqrt(p / widths[widths > 0].min(initial=p))
    return tree


def advance(part: MissingState, tree: MissingTree, k: int, work: int) -> bool:
    """Form groups until about `work` nodes were visited; return True once every record has its group."""
    if needs_resort(part.counters):
        resort(part, tree.slots)
    return form_groups(part, tree, k, work)


def resort(part: MissingState, slots: Ints) -> None:
    """Sort the ungrouped records by distance to the present centroid."""
    left = int(part.counters[LEFT])
    set_centroid(part)
    part.centres[1] = part.centres[0]
    rows = part.rows[: part.counters[BUILT]]
    rows = rows[slots[rows] >= 0]
    list_distances(part, rows)
    distances = part.reach[:left].copy()
    order = np.argsort(-distances)
    part.reach[:left], part.order[:left] = distances[order], rows[order]
    part.counters[HEAD : LOOKED + 1] = 0, left, 0


@inlined
def shared_distance(points: Floats, row: Int, point: Floats) -> float:
    """Return the squared distance over columns both have, scaled to all columns; -1 if they share none."""
    total, shared = 0.0, 0
    for j in range(len(point)):
        difference = points[row, j] - point[j]
        seen = not isnan(difference)
        total += difference * difference if seen else 0.0  # no branch: its outcome is hard to predict
        shared += seen
    return total * (len(point) / shared) if shared else -1.0


@kernel
def list_distances(part: MissingState, rows: Ints) -> None:
    """Write the distance (not squared) of each row to the centroid, -1 for a record without any value."""
    for i in range(len(rows)):
        distance = shared_distance(part.points, rows[i], part.centres[1])
        part.reach[i] = sqrt(distance) if distance >= 0 else -1.0


@kernel
def add_up(part: MissingState, slots: Ints) -> None:
    """Set the column sums of the ungrouped records and the numbers of values, row after row."""
    total, observed = part.total, part.observed
    total[:], observed[:] = 0.0, 0.0
    for i in range(part.counters[BUILT]):
        row = part.rows[i]
        if slots[row] >= 0:
            for j in range(len(total)):
                value = part.points[row, j]
                seen = not isnan(value)
                total[j] += value if seen else 0.0
                observed[j] += seen


@kernel
def set_centroid(part: MissingState) -> float:
    """Set the centroid to the sums over the numbers of values; return how far it can be from the exact one.

    A column of which no value is left is NaN there.
    """
    squares = 0.0
    for j in range(len(part.total)):
        part.centres[0, j] = part.total[j] / part.observed[j] if part.observed[j] > 0 else nan
        error = part.doubt[j] / max(part.observed[j], 1.0)
        squares += error * error
    return sqrt(squares) * part.stretch[0]


@inner
def same_record(points: Floats, one: Int, two: Int) -> bool:
    """Return True if two records have the same values and miss the same cells."""
    same = True
    for j in range(points.shape[1]):
        a, b = points[one, j], points[two, j]
        same &= (a == b) | (isnan(a) & isnan(b))
    return same


@inner
def farthest_in_list(part: MissingState, slots: Ints, error: float) -> tuple[Int, bool]:
    """Return the ungrouped row farthest from the centroid, and whether another centroid could have another.

    The other centroid changes distances by up to `error`. The row is -1 if too many have to be inspected.
    """
    points, counters, order, centre = part.points, part.counters, part.order, part.centres[0]
    drift = sqrt(max(shared_distance(part.centres, 1, centre), 0.0)) * part.stretch[0]
    while slots[order[counters[HEAD]]] < 0:
        counters[HEAD] += 1
    best, rival, bound = -2.0, -2.0, -inf
    found: Int = np.int64(len(points))
    for i in range(counters[HEAD], counters[LISTED]):
        if (part.reach[i] + drift) * SLACK + TINY + 2 * error < bound:
            break
        counters[LOOKED] += 1
        if i - counters[HEAD] >= LIST_LIMIT:
            return np.int64(-1), True
        row = order[i]
        if slots[row] < 0:
            continue
        distance = shared_distance(points, row, centre)
        if distance == best and same_record(points, row, found):
            found = min(found, row)  # as far from any centroid
        elif distance > best or (distance == best and row < found):
            best, rival, found = distance, best, row
            bound = sqrt(best) if best >= 0 else -inf
        else:
            rival = max(rival, distance)
    return found, sqrt(max(rival, 0.0)) * SLACK + TINY + 2 * error >= bound


@inner
def farthest_from_centroid(part: MissingState, tree: MissingTree) -> Int:
    """Return the ungrouped row farthest from the exact centroid of all these."""
    error = set_centroid(part)
    found, doubtful = farthest_in_list(part, tree.slots, error)
    if doubtful:
        add_up(part, tree.slots)
        set_centroid(part)
        if found >= 0:
            found, doubtful = farthest_in_list(part, tree.slots, 0.0)
        if found < 0:
            found, work = find_farthest(tree, part.centres[0])
            part.counters[WORK] += work
    return found


@inner
def form_group(part: MissingState, tree: MissingTree, row: Int, k: int) -> None:
    """Group `row` with its k - 1 nearest records, and delete them from sums and tree."""
    near, group, counters = part.near, part.group, part.counters
    clear_heap(near, group, k - 1, len(part.points))
    counters[WORK] += find_nearest(tree, row, near, group, k - 1)
    group[k - 1] = row
    for i in range(k):
        part.groups[group[i]] = counters[FORMED]
        delete(tree, group[i])
        for j in range(len(part.total)):
            value = part.points[group[i], j]
            if not isnan(value):
                part.total[j] -= value
                part.observed[j] -= 1
    counters[FORMED] += 1
    counters[LEFT] -= k


@kernel
def form_groups(part: MissingState, tree: MissingTree, k: int, work: int) -> bool:
    """Form groups; return True once all are formed, False after `work` nodes or if a sort or tree is due."""
    counters = part.counters
    counters[WORK] = 0
    while counters[LEFT] >= 2 * k:
        if counters[WORK] >= work or needs_resort(counters) or needs_tree(counters):
            return False
        row = farthest_from_centroid(part, tree)
        form_group(part, tree, row, k)
        if counters[LEFT] >= 2 * k:
            row, visited = find_farthest(tree, part.points[row])
            counters[WORK] += visited
            form_group(part, tree, row, k)
    group_the_rest(tree.slots, part.groups, counters[FORMED])
    return True
