"""A k-d tree for what a linkage attack asks: whether anybody is closer than the truth, and how many tie.

Nobody needs the nearest neighbour itself. The distance to the true record is known, so a search stops
at the first record that is closer than that; under strong masking this is nearly at once. Only records
that nobody beats need a count of those at the same distance.

The tree is balanced: every node halves its records at the median of its widest side, records lie in
the order of the leaves, and a node's number tells its place (its children are 2i + 1 and 2i + 2).
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

WIDTH = 64  # places for records in a leaf
PART = 20_000  # queries at a time, where there are many
BRANCHES = 16  # that grow at the same time; a power of two
SAMPLE = 64  # values to guess a median from
DEEP = 128  # room for the nodes still to visit; a tree of 2**60 records needs less


Scratch = tuple[Ints, Floats]  # nodes still to visit, distances of a leaf's records


class Tree(NamedTuple):
    """Records in the order of the leaves, with the box of every node."""

    points: Floats  # record x variable
    rows: Ints  # the row of each record in the data
    starts: Ints  # node x 2: where its records begin and end
    low: Floats  # node x variable
    high: Floats
    axis: Ints  # the side that a node halves, -1 for a leaf
    cut: Floats  # and where
    leaves: Floats  # leaf x variable x place: a scan works on many records at once
    leaf: Ints  # the leaf of each record


def grow(points: Floats) -> Tree:
    """Build the tree of points without missing cells."""
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
    _split_below(tree, 0, branches - 1)
    if branches > 1:
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(
                pool.map(lambda root: _split_below(tree, root, nodes), range(branches - 1, 2 * branches - 1))
            )
    else:
        _split_below(tree, 0, nodes)
    _fit_boxes(tree.low, tree.high)
    return tree


def _split_below(tree: Tree, root: int, end: int) -> None:
    """Halve a node and those below it, as far as their numbers are less than `end`."""
    _split(tree, root, end, np.empty(DEEP, np.int64), np.empty(SAMPLE))


# Kernels take the arrays out of a tree once, and get room to work in from their caller: both are much
# faster to compile than to reach into the tree for every value, and to ask for memory.


@kernel
def _split(tree: Tree, root: int, end: int, stack: Ints, sample: Floats) -> None:
    """Halve a node and those below it, as far as their numbers are less than `end`.

    The widest side is that of a box cut from the parent's, which costs no look at the records.
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
            _fill(points, first, last, node - nodes // 2, leaves, leaf_of, low[node], high[node])
            continue
        axis: Int = np.int64(0)  # a plain 0 would be compiled twice, as a constant and as a number
        for j in range(1, p):
            if high[node, j] - low[node, j] > high[node, axis] - low[node, axis]:
                axis = j
        middle = (first + last) // 2
        halve(points, rows, axis, first, last, middle, sample)
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
def _fill(
    points: Floats, first: int, last: int, leaf: int, leaves: Floats, leaf_of: Ints, low: Floats, high: Floats
) -> None:
    """Lay out the records first..last-1 in a leaf, and measure their box."""
    for i in range(first, last):
        leaf_of[i] = leaf
    for j in range(points.shape[1]):
        lowest, highest = np.inf, -np.inf
        for i in range(first, last):
            value = points[i, j]
            leaves[leaf, j, i - first] = value
            lowest, highest = min(lowest, value), max(highest, value)
        for i in range(last - first, WIDTH):
            leaves[leaf, j, i] = np.nan  # an empty place is neither near nor far
        low[j], high[j] = lowest, highest


@kernel
def _fit_boxes(low: Floats, high: Floats) -> None:
    """Give each node the smallest box around those of its children."""
    for node in range(len(low) // 2 - 1, -1, -1):
        for j in range(low.shape[1]):
            low[node, j] = min(low[2 * node + 1, j], low[2 * node + 2, j])
            high[node, j] = max(high[2 * node + 1, j], high[2 * node + 2, j])


@inner
def _pivot(points: Floats, axis: Int, left: int, right: int, middle: int, sample: Floats) -> float:
    """A value that will probably come to lie near the middle: from a sample, or a single one of few."""
    size = right - left + 1
    count = min(len(sample), size // len(sample))
    if count < 3:
        return points[(left + right) // 2, axis]
    for k in range(count):  # sorted as it is drawn: np.sort would take longer to compile than to save
        value = points[left + (2 * k + 1) * size // (2 * count), axis]
        i = k
        while i > 0 and sample[i - 1] > value:
            sample[i] = sample[i - 1]
            i -= 1
        sample[i] = value
    return sample[(middle - left) * count // size]


@inner
def halve(points: Floats, rows: Ints, axis: Int, first: int, last: int, middle: int, sample: Floats) -> None:
    """Reorder records first..last-1 so that none before `middle` is above it, and none after is below."""
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
def _to_box(low: Floats, high: Floats, node: int, point: Floats) -> float:
    """Squared distance from a point to a node's box."""
    total = 0.0
    for j in range(len(point)):
        outside = max(max(low[node, j] - point[j], 0.0), point[j] - high[node, j])  # noqa: PLW3301
        total += outside * outside
    return total


@inlined
def _scan(leaf: Floats, point: Floats, distances: Floats) -> None:
    """Squared distances of a leaf's records to a point, added up column after column."""
    for i in range(WIDTH):
        distances[i] = 0.0
    for j in range(len(point)):
        for i in range(WIDTH):
            difference = leaf[j, i] - point[j]
            distances[i] += difference * difference


@inlined
def _count(distances: Floats, limit: float, farthest: float) -> tuple[Int, Int]:
    """How many distances are below the limit, and how many at most the farthest."""
    closer = within = np.int64(0)
    for i in range(WIDTH):
        closer += distances[i] < limit
        within += distances[i] <= farthest
    return closer, within


@inlined
def _search(
    tree: Tree, point: Floats, nearest: float, farthest: float, places: int, start: int, scratch: Scratch
) -> tuple[Int, Int]:
    """Count the records nearer than `nearest`, until there are `places`, and those up to `farthest`.

    The search begins with the leaf `start`.
    """
    axes, cuts, leaves, low, high = tree.axis, tree.cut, tree.leaves, tree.low, tree.high
    stack, distances = scratch
    inside = len(axes) // 2  # nodes that are no leaves
    closer = within = np.int64(0)
    leaf, size = start, 1
    stack[0] = 0
    while leaf >= 0:
        _scan(leaves[leaf], point, distances)
        here = _count(distances, nearest, farthest)
        closer, within = closer + here[0], within + here[1]
        leaf = -1
        while leaf < 0 and size > 0 and closer < places:
            size -= 1
            node = stack[size]
            if _to_box(low, high, node, point) > farthest:
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
def _beaten(
    tree: Tree, queries: Floats, begin: int, tolerance: float, places: int, found: Ints, scratch: Scratch
) -> None:
    """For each query: how many records are closer (up to `places`), and how many tie.

    The true records are those of the tree from place `begin` on. Where the masking is strong, half of the
    truth's own neighbours are closer to the query than the truth is: their leaf is asked first.
    """
    points, leaf_of = tree.points, tree.leaf
    for k in range(len(queries)):
        point = queries[k]
        own = 0.0
        for j in range(len(point)):
            difference = points[begin + k, j] - point[j]
            own += difference * difference
        nearest, farthest = own * (1 - tolerance), own * (1 + tolerance)
        closer, within = _search(tree, point, nearest, farthest, places, leaf_of[begin + k], scratch)
        found[0, k] = min(closer, places)
        found[1, k] = within - closer if closer < places else 0


def beaten(tree: Tree, queries: Floats, truth: Ints, tolerance: float, places: int = 1) -> Ints:
    """How many records are closer to each query than its true one (at most `places`); below, how many tie.

    `truth` gives the rows of the true records, each once; the true one is among those that tie. Squared
    distances that differ by less than the tolerance, relative to their size, are equal. The second count is
    0 where the first has reached `places`.
    """
    found = np.empty((2, len(queries)), np.int64)
    asks = np.empty_like(truth)
    asks[truth] = np.arange(truth.size)

    def work(begin: int, end: int) -> None:  # neighbours one after the other: their leaves are in the cache
        part = asks[tree.rows[begin:end]]
        counts = np.empty((2, part.size), np.int64)
        scratch = (np.empty(DEEP, np.int64), np.empty(WIDTH))
        _beaten(tree, queries.take(part, axis=0), begin, tolerance, places, counts, scratch)
        found[0, part], found[1, part] = counts

    in_parts(truth.size, work)
    return found


def in_parts(n: int, work: Callable[[int, int], None], size: int = PART) -> None:
    """Do compiled work on rows begin..end-1: a few at once, many part by part on all cores, with progress."""
    if n < 2 * size:
        work(0, n)
        return
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        parts = [pool.submit(work, begin, min(begin + size, n)) for begin in range(0, n, size)]
        for task in each("linking", parts):
            task.result()
            if STOPPING.is_set():  # on a thread that Ctrl-C does not reach
                raise KeyboardInterrupt
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C only the parts at hand are finished


@inlined
def _place(tree: Tree, node: int, low: Floats, high: Floats) -> int:
    """Where a node's box lies: 1 within the other box, -1 apart from it, 0 across its edge."""
    place = 1
    for j in range(len(low)):
        if tree.low[node, j] > high[j] or tree.high[node, j] < low[j]:
            place = -1
            break
        if tree.low[node, j] < low[j] or tree.high[node, j] > high[j]:
            place = 0
    return place


@inlined
def _inside(point: Floats, low: Floats, high: Floats) -> bool:
    """Whether a point lies in a box, edges included."""
    inside = True
    for j in range(len(point)):
        inside &= (low[j] <= point[j]) & (point[j] <= high[j])
    return inside


@kernel
def _count_inside(tree: Tree, low: Floats, high: Floats, found: Ints) -> None:
    """How many records lie in each box, edges included."""
    nodes = len(tree.axis) // 2  # that are no leaves
    stack = np.empty(DEEP, np.int64)
    for k in range(len(low)):
        size = 1
        stack[0] = 0
        found[k] = 0
        while size > 0:
            size -= 1
            node = stack[size]
            place = _place(tree, node, low[k], high[k])
            if place > 0:
                found[k] += tree.starts[node, 1] - tree.starts[node, 0]
            elif place == 0 and node < nodes:
                stack[size], stack[size + 1] = 2 * node + 1, 2 * node + 2
                size += 2
            elif place == 0:
                for i in range(tree.starts[node, 0], tree.starts[node, 1]):
                    found[k] += _inside(tree.points[i], low[k], high[k])


def count_inside(tree: Tree, low: Floats, high: Floats) -> Ints:
    """How many records of the tree lie in each box, edges included."""
    found = np.empty(len(low), np.int64)
    in_parts(
        len(low), lambda begin, end: _count_inside(tree, low[begin:end], high[begin:end], found[begin:end])
    )
    return found
