"""A k-d tree that counts the records closer to a query than its true record, and those at equal distance.

A linkage attack does not need the nearest neighbour itself. The distance to the true record is known, so
a search stops at the first record that is closer; under strong masking this is nearly at once. Records at
the same distance are counted only where no record is closer.

The tree is balanced: every node halves its records at the median of its widest side, records are stored
in the order of the leaves, and node i has the children 2i + 1 and 2i + 2.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.kernels.jit import Floats, Int, Ints, inlined, inner, kernel
from sdckit.progress import STOPPING, each

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 64  # most records in a leaf
PART = 20_000  # queries per task where there are many
BRANCHES = 16  # subtrees built in parallel; a power of two
SAMPLE = 64  # values from which a median is estimated
DEEP = 128  # size of the stack of nodes to visit; a tree of 2**60 records needs less


Scratch = tuple[Ints, Floats]  # stack of nodes to visit; distances of a leaf's records


class Tree(NamedTuple):
    """A balanced k-d tree: records in the order of the leaves, and the bounding box of every node."""

    points: Floats  # record x variable
    rows: Ints  # the row of each record in the data
    starts: Ints  # node x 2: where its records begin and end
    low: Floats  # node x variable
    high: Floats
    axis: Ints  # the variable at which a node is split, -1 for a leaf
    cut: Floats  # the value at which it is split
    leaves: Floats  # leaf x variable x record: a scan works on many records at once
    leaf: Ints  # the leaf of each record


def build(points: Floats) -> Tree:
    """Return the k-d tree of points without missing cells."""
    n, p = points.shape
    depth = max(0, math.ceil(math.log2(n / WIDTH)))
    leaves = 2**depth
    nodes = 2 * leaves - 1
    tree = Tree(
        np.array(points, order="C"),
        np.arange(n),
        np.zeros((nodes, 2), np.int64),
        np.empty((nodes, p)),
        np.empty((nodes, p)),
        np.full(nodes, -1),
        np.zeros(nodes),
        np.empty((leaves, p, WIDTH)),
        np.empty(n, np.int64),
    )
    tree.starts[0, 1] = n
    tree.low[0], tree.high[0] = zip(*((column.min(), column.max()) for column in tree.points.T), strict=True)
    branches = BRANCHES if n >= 2 * PART else 1
    _split_branch(tree, 0, branches - 1)
    if branches > 1:
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(
                pool.map(lambda root: _split_branch(tree, root, nodes), range(branches - 1, 2 * branches - 1))
            )
    else:
        _split_branch(tree, 0, nodes)
    _fit_boxes(tree.low, tree.high)
    return tree


def _split_branch(tree: Tree, root: int, end: int) -> None:
    """Split a node and all nodes below it whose numbers are less than `end`; allocates the scratch arrays."""
    _split_node(tree, root, end, np.empty(DEEP, np.int64), np.empty(SAMPLE))


# Kernels read the arrays of a tree once, and get scratch arrays from their caller: both compile much
# faster than an access to the tree for every value, and than allocating memory.


@kernel
def _split_node(tree: Tree, root: int, end: int, stack: Ints, sample: Floats) -> None:
    """Split a node at the median of its widest side, and all nodes below it numbered less than `end`.

    The widest side is that of a box cut from the parent's, which needs no pass over the records.
    """
    points, rows, starts, low, high = tree.points, tree.rows, tree.starts, tree.low, tree.high
    axes, cuts, leaves, leaf_of = tree.axis, tree.cut, tree.leaves, tree.leaf
    nodes, p = low.shape
    stack[0] = root
    size = 1 if root < end else 0
    while size > 0:
        size -= 1
        node = stack[size]
        first, last = starts[node, 0], starts[node, 1]
        if 2 * node + 2 >= nodes:
            _fill_leaf(points, first, last, node - nodes // 2, leaves, leaf_of, low[node], high[node])
            continue
        axis: Int = np.int64(0)  # a plain 0 would be compiled twice, as a constant and as a number
        for j in range(1, p):
            if high[node, j] - low[node, j] > high[node, axis] - low[node, axis]:
                axis = j
        middle = (first + last) // 2
        partition_at(points, rows, axis, first, last, middle, sample)
        axes[node] = axis
        cuts[node] = points[middle, axis]
        for child in range(2 * node + 1, 2 * node + 3):
            for j in range(p):
                low[child, j], high[child, j] = low[node, j], high[node, j]
            starts[child, 0], starts[child, 1] = first, last
            if child < end:
                stack[size] = child
                size += 1
        high[2 * node + 1, axis] = low[2 * node + 2, axis] = cuts[node]
        starts[2 * node + 1, 1] = starts[2 * node + 2, 0] = middle


@inlined
def _fill_leaf(
    points: Floats, first: int, last: int, leaf: int, leaves: Floats, leaf_of: Ints, low: Floats, high: Floats
) -> None:
    """Copy the records first..last-1 into a leaf, and write the corners of their bounding box."""
    for i in range(first, last):
        leaf_of[i] = leaf
    for j in range(points.shape[1]):
        lowest, highest = np.inf, -np.inf
        for i in range(first, last):
            value = points[i, j]
            leaves[leaf, j, i - first] = value
            lowest, highest = min(lowest, value), max(highest, value)
        for i in range(last - first, WIDTH):
            leaves[leaf, j, i] = np.nan  # NaN fails all comparisons: neither near nor far
        low[j], high[j] = lowest, highest


@kernel
def _fit_boxes(low: Floats, high: Floats) -> None:
    """Set the box of each inner node, in place, to the smallest one around those of its children."""
    for node in range(len(low) // 2 - 1, -1, -1):
        for j in range(low.shape[1]):
            low[node, j] = min(low[2 * node + 1, j], low[2 * node + 2, j])
            high[node, j] = max(high[2 * node + 1, j], high[2 * node + 2, j])


@inner
def _pivot(points: Floats, axis: Int, left: int, right: int, middle: int, sample: Floats) -> float:
    """Return a value near the one that will be at position `middle`, estimated from a small sample."""
    size = right - left + 1
    count = min(len(sample), size // len(sample))
    if count < 3:
        return points[(left + right) // 2, axis]
    for k in range(count):  # sorted by insertion: np.sort would take long to compile
        value = points[left + (2 * k + 1) * size // (2 * count), axis]
        i = k
        while i > 0 and sample[i - 1] > value:
            sample[i] = sample[i - 1]
            i -= 1
        sample[i] = value
    return sample[(middle - left) * count // size]


@inner
def partition_at(
    points: Floats, rows: Ints, axis: Int, first: int, last: int, middle: int, sample: Floats
) -> None:
    """Reorder records first..last-1 in place so that position `middle` has its value in sorted order."""
    left, right = first, last - 1
    while left < right:
        pivot = _pivot(points, axis, left, right, middle, sample)
        i, j = left, right
        while i <= j:
            while points[i, axis] < pivot:
                i += 1
            while points[j, axis] > pivot:
                j -= 1
            if i <= j:
                for c in range(points.shape[1]):
                    points[i, c], points[j, c] = points[j, c], points[i, c]
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            break


@inlined
def _distance_to_box(low: Floats, high: Floats, node: int, point: Floats) -> float:
    """Return the squared distance from a point to a node's box; 0 inside it."""
    total = 0.0
    for j in range(len(point)):
        outside = max(max(low[node, j] - point[j], 0.0), point[j] - high[node, j])  # noqa: PLW3301
        total += outside * outside
    return total


@inlined
def _leaf_distances(leaf: Floats, point: Floats, distances: Floats) -> None:
    """Write the squared distances of a leaf's records to a point, added up column after column."""
    for i in range(WIDTH):
        distances[i] = 0.0
    for j in range(len(point)):
        for i in range(WIDTH):
            difference = leaf[j, i] - point[j]
            distances[i] += difference * difference


@inlined
def _count_within(distances: Floats, limit: float, farthest: float) -> tuple[Int, Int]:
    """Return how many distances are below `limit`, and how many are at most `farthest`."""
    closer = within = np.int64(0)
    for i in range(WIDTH):
        closer += distances[i] < limit
        within += distances[i] <= farthest
    return closer, within


@inlined
def _count_around(
    tree: Tree, point: Floats, nearest: float, farthest: float, places: int, start: int, scratch: Scratch
) -> tuple[Int, Int]:
    """Return how many records are nearer than `nearest`, counting up to `places`, and up to `farthest`.

    The search begins with the leaf `start`.
    """
    axes, cuts, leaves, low, high = tree.axis, tree.cut, tree.leaves, tree.low, tree.high
    stack, distances = scratch
    inside = len(axes) // 2  # nodes that are no leaves
    closer = within = np.int64(0)
    leaf, size = start, 1
    stack[0] = 0
    while leaf >= 0:
        _leaf_distances(leaves[leaf], point, distances)
        here = _count_within(distances, nearest, farthest)
        closer, within = closer + here[0], within + here[1]
        leaf = -1
        while leaf < 0 and size > 0 and closer < places:
            size -= 1
            node = stack[size]
            if _distance_to_box(low, high, node, point) > farthest:
                continue
            while node < inside:
                beyond = point[axes[node]] - cuts[node]
                right = beyond >= 0
                if beyond * beyond <= farthest:
                    stack[size] = 2 * node + 1 + (not right)
                    size += 1
                node = 2 * node + 1 + right
            if node - inside != start:
                leaf = node - inside
    return closer, within


@kernel
def _count_closer(
    tree: Tree, queries: Floats, truth: Ints, tolerance: float, places: int, found: Ints, scratch: Scratch
) -> None:
    """Write for each query how many records are closer than the true one (up to `places`), and how many tie.

    `truth` gives the positions of the true records in the tree. Under strong masking, half of the true
    record's neighbours are closer to the query than the true record is: their leaf is searched first.
    """
    points, leaf_of = tree.points, tree.leaf
    for k in range(len(queries)):
        point = queries[k]
        own = 0.0
        for j in range(len(point)):
            difference = points[truth[k], j] - point[j]
            own += difference * difference
        nearest, farthest = own * (1 - tolerance), own * (1 + tolerance)
        closer, within = _count_around(tree, point, nearest, farthest, places, leaf_of[truth[k]], scratch)
        found[0, k] = min(closer, places)
        found[1, k] = within - closer if closer < places else 0


def count_closer(tree: Tree, queries: Floats, truth: Ints, tolerance: float, places: int = 1) -> Ints:
    """Return how many records are closer to each query than its true one (up to `places`), and how many tie.

    `truth` gives the rows of the true records; the true one is among those that tie. Squared distances that
    differ by less than the tolerance, relative to their size, are equal. The second count is 0 where the
    first has reached `places`.
    """
    found = np.empty((2, len(queries)), np.int64)
    order, place = order_by_place(tree.rows, truth)

    def work(begin: int, end: int) -> None:  # neighbours in sequence: their leaves stay in the cache
        """Count for some of the queries, in the order of their true records, leaf by leaf."""
        part = order[begin:end]
        counts = np.empty((2, part.size), np.int64)
        scratch = (np.empty(DEEP, np.int64), np.empty(WIDTH))
        true = place[truth[part]]
        _count_closer(tree, queries.take(part, axis=0), true, tolerance, places, counts, scratch)
        found[0, part], found[1, part] = counts

    in_parts(truth.size, work)
    return found


def order_by_place(rows: Ints, truth: Ints) -> tuple[Ints, Ints]:
    """Return the queries in the order of their true records in a tree, and the place of each row there.

    `rows` are the rows in the order of the tree, `truth` the true row of each query.
    """
    place = np.empty(rows.size, np.int64)
    place[rows] = np.arange(rows.size)
    if truth.size == rows.size and bool((np.bincount(truth, minlength=rows.size) == 1).all()):
        query_of = np.empty_like(truth)
        query_of[truth] = np.arange(truth.size)
        return query_of[rows], place  # without sorting
    return np.argsort(place[truth]), place


def in_parts(n: int, work: Callable[[int, int], None], size: int = PART) -> None:
    """Call `work(begin, end)` for slices of n rows: at once if few, else in parallel with progress."""
    if n < 2 * size:
        work(0, n)
        return
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        parts = [pool.submit(work, begin, min(begin + size, n)) for begin in range(0, n, size)]
        for task in each("linking", parts):
            task.result()
            if STOPPING.is_set():  # Ctrl-C raises in the main thread only
                raise KeyboardInterrupt
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C only the running parts are finished


@inlined
def _box_relation(tree: Tree, node: int, low: Floats, high: Floats) -> int:
    """Return 1 if a node's box lies inside the other box, -1 if it lies outside, 0 if they overlap."""
    place = 1
    for j in range(len(low)):
        if tree.low[node, j] > high[j] or tree.high[node, j] < low[j]:
            place = -1
            break
        if tree.low[node, j] < low[j] or tree.high[node, j] > high[j]:
            place = 0
    return place


@inlined
def _in_box(point: Floats, low: Floats, high: Floats) -> bool:
    """Return True if a point lies in a box, edges included."""
    inside = True
    for j in range(len(point)):
        inside &= (low[j] <= point[j]) & (point[j] <= high[j])
    return inside


@kernel
def _count_inside(tree: Tree, low: Floats, high: Floats, found: Ints) -> None:
    """Write the number of the tree's records that lie in each box, edges included."""
    nodes = len(tree.axis) // 2  # that are no leaves
    stack = np.empty(DEEP, np.int64)
    for k in range(len(low)):
        size = 1
        stack[0] = 0
        found[k] = 0
        while size > 0:
            size -= 1
            node = stack[size]
            place = _box_relation(tree, node, low[k], high[k])
            if place > 0:
                found[k] += tree.starts[node, 1] - tree.starts[node, 0]
            elif place == 0 and node < nodes:
                stack[size], stack[size + 1] = 2 * node + 1, 2 * node + 2
                size += 2
            elif place == 0:
                for i in range(tree.starts[node, 0], tree.starts[node, 1]):
                    found[k] += _in_box(tree.points[i], low[k], high[k])


def count_inside(tree: Tree, low: Floats, high: Floats) -> Ints:
    """Return the number of the tree's records that lie in each box, edges included."""
    found = np.empty(len(low), np.int64)
    in_parts(
        len(low), lambda begin, end: _count_inside(tree, low[begin:end], high[begin:end], found[begin:end])
    )
    return found
