"""Searches in a forest: records that fit a query's intervals, and those closer than its true record.

Kernels read the arrays of a forest once, and get scratch arrays from their caller: both compile much faster
than an access to the forest for every value, and than allocating memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.jit import Floats, Int, Ints, UInt64s, inlined, kernel
from sdckit.kernels.kd_tree import DEEP, WIDTH

if TYPE_CHECKING:
    from sdckit.kernels.forest import Forest

AT_ONCE = 4  # variables that are added to distances before these are compared with the limit

Scratch = tuple[Ints, Ints, Floats]  # nodes to visit; shared variables; distances of a leaf's records
Nodes = tuple[Floats, Floats, Ints, Floats]  # boxes, axes and cuts of nodes
Query = tuple[Floats, Floats, Floats]  # values, and the ends of intervals


def scratch_for(p: int) -> Scratch:
    """Return the scratch arrays of a search among records with p variables."""
    return np.empty(DEEP, np.int64), np.empty(p, np.int64), np.empty(WIDTH)


# --- records that fit the intervals -------------------------------------------------------------------


@inlined
def _drop_outside(columns: Floats, size: Int, low: Floats, high: Floats, values: Floats) -> None:
    """Set the values of a leaf's records to NaN whose intervals do not overlap those given."""
    q = len(low)
    for d in range(q):
        lower, upper = columns[d * size :], columns[(q + d) * size :]
        for i in range(size):
            fits = (lower[i] <= high[d]) & (upper[i] >= low[d])
            values[i] = values[i] if fits else np.nan


@inlined
def _count_fitting(
    columns: Floats, size: Int, low: Floats, high: Floats, marks: UInt64s, flags: Floats
) -> tuple[Int, np.uint64]:
    """Return how many of a leaf's records fit the intervals, and the sum of their marks."""
    for i in range(size):
        flags[i] = 0.0
    _drop_outside(columns, size, low, high, flags)
    count, total = np.int64(0), np.uint64(0)
    for i in range(size):
        fits = flags[i] == 0.0
        count += fits
        total += marks[i + 1] - marks[i] if fits else np.uint64(0)
    return count, total


@inlined
def _interval_relation(
    ends: tuple[Floats, Floats, Floats, Floats], node: Int, low: Floats, high: Floats
) -> int:
    """Return 1 if all of a node's records fit the intervals, -1 if none can, else 0."""
    first_low, last_high, last_low, first_high = ends
    outside, inside = False, True
    for d in range(len(low)):
        outside |= (first_low[node, d] > high[d]) | (last_high[node, d] < low[d])
        inside &= (last_low[node, d] <= high[d]) & (first_high[node, d] >= low[d])
    return -1 if outside else int(inside)


@kernel
def count_fitting(
    forest: Forest,
    marks: UInt64s,
    queries: tuple[Floats, Floats, Ints],
    found: Ints,
    sums: UInt64s,
    scratch: Scratch,
) -> None:
    """Write the number of records that fit each query, and the sum of their marks.

    The forest is one of records without variables. `queries` are the ends of intervals, and the first group
    of the query's block and the one after the last. `marks` are summed up to each record.
    """
    columns, starts, roots = forest.columns, forest.starts, forest.roots
    ends = forest.low, forest.high, forest.last_low, forest.first_high
    lower, upper, spans = queries
    q, (stack, _, flags) = lower.shape[1], scratch
    for k in range(len(lower)):
        found[k], sums[k] = 0, 0
        for group in range(spans[k, 0], spans[k, 1]):
            stack[0] = roots[group]
            size = 1
            while size > 0:
                size -= 1
                node = stack[size]
                place = _interval_relation(ends, node, lower[k], upper[k])
                first, last = starts[node, 0], starts[node, 1]
                child = 2 * node - roots[group] + 1
                if place > 0:
                    found[k] += last - first
                    sums[k] += marks[last] - marks[first]
                elif place == 0 and child < roots[group + 1]:
                    stack[size], stack[size + 1] = child, child + 1
                    size += 2
                elif place == 0:
                    here = columns[first * 2 * q :]
                    count, total = _count_fitting(
                        here, last - first, lower[k], upper[k], marks[first:], flags
                    )
                    found[k] += count
                    sums[k] += total


# --- records closer than the true one -----------------------------------------------------------------


@kernel
def own_distances(true: Query, queries: Query, found: Floats) -> None:
    """Write the squared distance of each query to its true record over shared cells, scaled to all cells.

    It is infinite without a shared cell, and NaN where intervals exclude the true record.
    """
    values, first, last = true
    points, low, high = queries
    p, q = points.shape[1], low.shape[1]
    for k in range(len(points)):
        total, shared, fits = 0.0, 0, True
        for j in range(p):
            difference = values[k, j] - points[k, j]
            if difference == difference:  # noqa: PLR0124 - false for NaN
                total += difference * difference
                shared += 1
        for d in range(q):
            fits &= (first[k, d] <= high[k, d]) & (last[k, d] >= low[k, d])
        distance = total * (p / shared) if shared else np.inf
        found[k] = distance if fits else np.nan


@inlined
def _add_squares(columns: Floats, size: Int, point: Floats, shared: Ints, distances: Floats) -> None:
    """Add the squared differences of a leaf's records to a point, variable after variable; NaN adds 0."""
    for s in range(len(shared)):
        value, column = point[shared[s]], columns[shared[s] * size :]
        for i in range(size):
            difference = column[i] - value
            square = difference * difference
            distances[i] += square if square == square else 0.0  # noqa: PLR0124 - false for NaN


@inlined
def _rescale(columns: Floats, size: Int, shared: Ints, distances: Floats) -> None:
    """Scale the distances of a leaf's records from the cells that they have to all of `shared`."""
    for i in range(size):
        cells = 0
        for s in range(len(shared)):
            value = columns[shared[s] * size + i]
            cells += value == value  # noqa: PLR0124 - false for NaN
        distances[i] = distances[i] * (len(shared) / cells) if cells else np.inf


@inlined
def _any_in_reach(
    columns: Floats, size: Int, point: Floats, shared: Ints, reach: float, distances: Floats
) -> bool:
    """Write the sums of squared differences of a leaf's records; return False if all are beyond `reach`.

    The sums are not complete then.
    """
    for i in range(size):
        distances[i] = 0.0
    done, near = 0, True
    while done < len(shared) and near:
        _add_squares(columns, size, point, shared[done : done + AT_ONCE], distances)
        done += AT_ONCE
        count = 0
        for i in range(size):
            count += distances[i] <= reach
        near = count > 0
    return near


@inlined
def _is_far(nodes: Nodes, node: Int, query: Query, shared: Ints, reach: float) -> bool:
    """Return True if a node's box is beyond `reach`, over shared variables, or none of its records fits."""
    low, high, _, _ = nodes
    point, lower, upper = query
    p, total, outside = len(point), 0.0, False
    for s in range(len(shared)):
        j = shared[s]
        gap = max(max(low[node, j] - point[j], 0.0), point[j] - high[node, j])  # noqa: PLW3301
        total += gap * gap
    for d in range(len(lower)):
        outside |= (low[node, p + d] > upper[d]) | (high[node, p + d] < lower[d])
    return (total > reach) | outside


@inlined
def _descend(
    nodes: Nodes, node: Int, span: tuple[Int, Int], point: Floats, reach: float, stack: Ints, size: Int
) -> tuple[Int, Int]:
    """Return the leaf below a node on the point's side of all cuts, and the number of nodes to visit.

    The other sides are put on the stack, if in reach; and both, without a leaf (-1), where the point's side
    is unknown. `span` is the root of the tree and the node after its last.
    """
    _, _, axes, cuts = nodes
    root, end = span
    child = 2 * node - root + 1
    while child < end:
        beyond = point[axes[node]] - cuts[node]
        if beyond == beyond:  # noqa: PLR0124 - false for NaN
            right = beyond >= 0
            stack[size] = child + (not right)
            size += beyond * beyond <= reach
            node = child + right
            child = 2 * node - root + 1
        else:
            stack[size], stack[size + 1] = child, child + 1
            size += 2
            node, child = np.int64(-1), end
    return node, size


@inlined
def _count_in_tree(
    forest: Forest,
    group: Int,
    query: Query,
    limits: tuple[float, float, Int],
    start: Int,
    shared: Ints,
    scratch: Scratch,
) -> tuple[Int, Int]:
    """Return how many records of a group are nearer than the first limit, and up to the second.

    `limits` ends with the number of nearer ones that suffices. The leaf `start`, if it is not -1, is searched
    first.
    """
    columns, starts, roots, mixed = forest.columns, forest.starts, forest.roots, forest.mixed
    nodes = forest.low, forest.high, forest.axis, forest.cut
    point, lower, upper = query
    nearest, farthest, places = limits
    stack, _, distances = scratch
    p, q = len(point), len(lower)
    closer = within = np.int64(0)
    leaf: Int = start
    size: Int = np.int64(1)
    stack[0] = roots[group]
    while (leaf >= 0 or size > 0) and closer < places:
        if leaf < 0:
            size -= 1
            if not _is_far(nodes, stack[size], query, shared, farthest):
                span = roots[group], roots[group + 1]
                leaf, size = _descend(nodes, stack[size], span, point, farthest, stack, size)
                leaf = -1 if leaf == start else leaf
        if leaf >= 0:
            first, width = starts[leaf, 0], starts[leaf, 1] - starts[leaf, 0]
            here = columns[first * (p + 2 * q) :]
            if _any_in_reach(here, width, point, shared, farthest, distances):
                if mixed[group] or len(shared) == 0:
                    _rescale(here, width, shared, distances)
                _drop_outside(here[p * width :], width, lower, upper, distances)
                for i in range(width):
                    closer += distances[i] < nearest
                    within += distances[i] <= farthest
            leaf = np.int64(-1)
    return closer, within


@kernel
def count_closer(
    forest: Forest,
    queries: Query,
    distances: Floats,
    homes: Ints,
    tolerance: float,
    places: int,
    found: Ints,
    scratch: Scratch,
) -> None:
    """Write how many candidates are closer to each query than its true one (to `places`), and how many tie.

    `distances` are those of the true records, which need not be in the forest; NaN where facts exclude it.
    `homes` has, for each query, the leaf to search first (-1 for none), the group to search first, and the
    groups of its block: the first and the one after the last.
    """
    order = forest.order
    points, low, high = queries
    p, shared = points.shape[1], scratch[1]
    for k in range(len(points)):
        query, own = (points[k], low[k], high[k]), distances[k]
        leaf, home, head = homes[k, 0], homes[k, 1], homes[k, 2]
        groups = homes[k, 3] - head
        closer = within = np.int64(0)
        for turn in range(groups):
            group = head + (home - head + turn) % groups
            count = 0
            for s in range(p):
                j = shared[count] = order[group, s]
                count += j >= 0 and points[k, j] == points[k, j]  # false for NaN
            if closer < places and ((own < np.inf and count > 0) or own == np.inf):
                reach = own * max(count, 1) / p
                limits = reach * (1 - tolerance), reach * (1 + tolerance), places - closer
                start = leaf if turn == 0 else np.int64(-1)
                here = _count_in_tree(forest, group, query, limits, start, shared[:count], scratch)
                closer, within = closer + here[0], within + here[1]
        known = closer < places and own == own  # noqa: PLR0124 - false for NaN
        found[0, k] = closer if known else places
        found[1, k] = within - closer if known else 0


# --- the nearest records ------------------------------------------------------------------------------


@inlined
def _least_distance(
    forest: Forest, group: Int, query: Query, least: float, shared: Ints, scratch: Scratch
) -> float:
    """Return the smallest squared distance to a group's records that fit, or `least` if that is smaller."""
    columns, starts, roots, mixed = forest.columns, forest.starts, forest.roots, forest.mixed
    nodes = forest.low, forest.high, forest.axis, forest.cut
    point, lower, upper = query
    stack, _, distances = scratch
    p, q = len(point), len(lower)
    size: Int = np.int64(1)
    stack[0] = roots[group]
    while size > 0:
        size -= 1
        if not _is_far(nodes, stack[size], query, shared, least):
            span = roots[group], roots[group + 1]
            leaf, size = _descend(nodes, stack[size], span, point, least, stack, size)
            if leaf >= 0:
                first, width = starts[leaf, 0], starts[leaf, 1] - starts[leaf, 0]
                here = columns[first * (p + 2 * q) :]
                if _any_in_reach(here, width, point, shared, least, distances):
                    if mixed[group]:
                        _rescale(here, width, shared, distances)
                    _drop_outside(here[p * width :], width, lower, upper, distances)
                    for i in range(width):
                        near = distances[i] < least  # false for NaN
                        least = distances[i] if near else least
    return least


@inlined
def _shared_cells(order: Ints, point: Floats, shared: Ints) -> Int:
    """Write the variables that a point and some records of a group have; return their number."""
    count = 0
    for s in range(len(point)):
        j = shared[count] = order[s]
        count += j >= 0 and point[j] == point[j]  # false for NaN
    return np.int64(count)


@kernel
def count_nearest(
    forest: Forest,
    queries: Query,
    further: tuple[Floats, Floats],
    spans: Ints,
    tolerance: float,
    found: Ints,
    scratch: Scratch,
) -> None:
    """Write how many records that fit are nearest to each query, and how many of these fit further intervals.

    `further` are the ends of intervals in place of those of the queries. `spans` are the first group of each
    query's block and the one after the last.
    """
    order = forest.order
    points, low, high = queries
    p, shared = points.shape[1], scratch[1]
    most = np.int64(len(forest.rows) + 1)
    for k in range(len(points)):
        query, narrow = (points[k], low[k], high[k]), (points[k], further[0][k], further[1][k])
        least = np.inf
        for group in range(spans[k, 0], spans[k, 1]):
            count = _shared_cells(order[group], points[k], shared)
            if count > 0:
                reach = _least_distance(forest, group, query, least * count / p, shared[:count], scratch)
                least = min(least, reach * p / count)
        found[0, k] = found[1, k] = 0
        for group in range(spans[k, 0], spans[k, 1]):
            count = _shared_cells(order[group], points[k], shared)
            if count > 0 or least == np.inf:
                limits = -1.0, least * max(count, 1) / p * (1 + tolerance), most
                none = np.int64(-1)
                found[0, k] += _count_in_tree(forest, group, query, limits, none, shared[:count], scratch)[1]
                found[1, k] += _count_in_tree(forest, group, narrow, limits, none, shared[:count], scratch)[1]
