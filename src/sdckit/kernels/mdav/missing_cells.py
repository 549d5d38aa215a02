"""MDAV on a file with missing cells: scans of all ungrouped records, over the columns both records have."""

from __future__ import annotations

from math import inf, isnan, nan
from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Floats, Ints, inlined, inner, kernel
from sdckit.kernels.mdav.state import FORMED, LEFT, replace_largest


class PartialState(NamedTuple):
    """The state of MDAV on a file with missing cells (NaN), between calls of `advance`."""

    points: Floats  # rows x columns, standardised by the caller
    rows: Ints  # the rows left, in order
    centre: Floats
    near: Floats
    group: Ints
    groups: Ints  # the answer, -1 for a record not yet grouped
    counters: Ints


def start(points: Floats, k: int) -> PartialState:
    """Return the initial MDAV state for points with at least one value in each record (n >= k >= 2)."""
    n, p = points.shape
    return PartialState(
        points=np.ascontiguousarray(points),
        rows=np.arange(n),
        centre=np.empty(p),
        near=np.empty(k),
        group=np.empty(k, np.int64),
        groups=np.full(n, -1),
        counters=np.array([n, 0]),
    )


@inner
def shared_distance(points: Floats, row: int, point: Floats) -> float:
    """Return the squared distance over columns both have, scaled to all columns; -1 if they share none."""
    total, shared = 0.0, 0
    for j in range(len(point)):
        difference = points[row, j] - point[j]
        seen = not isnan(difference)
        total += difference * difference if seen else 0.0  # no branch: its outcome is hard to predict
        shared += seen
    return total * (len(point) / shared) if shared else -1.0


@inlined
def set_centroid(part: PartialState) -> None:
    """Set the centroid: each column's mean over the values observed among the ungrouped records."""
    points, rows, left = part.points, part.rows, part.counters[LEFT]
    for j in range(len(part.centre)):
        total, observed = 0.0, 0
        for i in range(left):
            value = points[rows[i], j]
            seen = not isnan(value)
            total += value if seen else 0.0
            observed += seen
        part.centre[j] = total / observed if observed else nan


@inlined
def farthest_record(part: PartialState, point: Floats) -> int:
    """Return the ungrouped record farthest from `point`; records without a common column come last."""
    points, rows = part.points, part.rows
    best, found = -2.0, len(points)
    for i in range(part.counters[LEFT]):
        distance = shared_distance(points, rows[i], point)
        if distance > best:
            best, found = distance, rows[i]
    return found


@inlined
def form_group(part: PartialState, row: int, k: int) -> None:
    """Group `row` with its k - 1 nearest records and remove them from the ungrouped rows."""
    near, group, rows, counters = part.near, part.group, part.rows, part.counters
    points, groups = part.points, part.groups
    point = points[row]
    for i in range(k - 1):
        near[i], group[i] = inf, len(points)
    for i in range(counters[LEFT]):
        other = rows[i]
        distance = shared_distance(points, other, point)
        if distance < 0:
            distance = inf  # no column in common: grouped with `row` only if no other record is left
        if other != row and (distance < near[0] or (distance == near[0] and other < group[0])):
            replace_largest(near, group, k - 1, distance, other)
    group[k - 1] = row
    for i in range(k):
        groups[group[i]] = counters[FORMED]
    counters[FORMED] += 1
    kept = 0
    for i in range(counters[LEFT]):
        rows[kept] = rows[i]
        if groups[rows[i]] < 0:
            kept += 1
    counters[LEFT] = kept


@kernel
def advance(part: PartialState, k: int, rounds: int) -> bool:
    """Run at most `rounds` rounds of two groups each; return True once every record has its group."""
    counters = part.counters
    while counters[LEFT] >= 2 * k:
        if rounds == 0:
            return False
        rounds -= 1
        set_centroid(part)
        point = part.centre
        for _ in range(2 if counters[LEFT] >= 3 * k else 1):
            row = farthest_record(part, point)
            form_group(part, row, k)
            point = part.points[row]
    for i in range(counters[LEFT]):
        part.groups[part.rows[i]] = counters[FORMED]
    return True
