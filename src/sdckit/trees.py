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

from sdckit.compiled import Floats, Int, Ints, inlined, kernel
from sdckit.progress import each

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 64  # places for records in a leaf
PART = 20_000  # queries at a time, where there are many
DEEP = 128  # room for the nodes still to visit; a tree of 2**60 records needs less


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
        np.full((leaves, p, WIDTH), np.inf),  # an empty place is infinitely far away
        np.empty(n, np.int64),
    )
    _split_all(tree)
    return tree


@kernel
def _split_all(tree: Tree) -> None:
    """Give every node its records, its box and the side that it halves."""
    points, rows, starts = tree.points, tree.rows, tree.starts
    nodes, p = tree.low.shape
    starts[0, 1] = len(points)
    for node in range(nodes):
        first, last = starts[node]
        for j in range(p):
            low, high = np.inf, -np.inf
            for i in range(first, last):
                low, high = min(low, points[i, j]), max(high, points[i, j])
            tree.low[node, j], tree.high[node, j] = low, high
        if 2 * node + 2 < nodes:
            axis, width = 0, -1.0
            for j in range(p):
                if tree.high[node, j] - tree.low[node, j] > width:
                    axis, width = j, tree.high[node, j] - tree.low[node, j]
            middle = (first + last) // 2
            _halve(points, rows, axis, first, last, middle)
            tree.axis[node] = axis
            tree.cut[node] = points[middle, axis] if middle < last else np.inf
            starts[2 * node + 1, 0], starts[2 * node + 1, 1] = first, middle
            starts[2 * node + 2, 0], starts[2 * node + 2, 1] = middle, last
        else:
            leaf = node - nodes // 2
            for i in range(first, last):
                tree.leaf[i] = leaf
                for j in range(p):
                    tree.leaves[leaf, j, i - first] = points[i, j]


@kernel
def _halve(points: Floats, rows: Ints, axis: int, first: int, last: int, middle: int) -> None:
    """Reorder records first..last-1 so that none before `middle` is above it, and none after is below."""
    left, right = first, last - 1
    while left < right:
        pivot = points[(left + right) // 2, axis]
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
        outside = max(low[node, j] - point[j], 0.0, point[j] - high[node, j])
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


@kernel
def _search(
    tree: Tree, point: Floats, nearest: float, farthest: float, places: int, stack: Ints, distances: Floats
) -> tuple[Int, Int]:
    """Count the records nearer than `nearest`, until there are `places`, and those up to `farthest`."""
    inside = len(tree.axis) // 2  # nodes that are no leaves
    closer = tied = np.int64(0)
    size = 1
    stack[0] = 0
    while size > 0 and closer < places:
        size -= 1
        node = stack[size]
        if _to_box(tree.low, tree.high, node, point) > farthest:
            continue
        while node < inside:
            beyond = point[tree.axis[node]] - tree.cut[node]
            right = beyond >= 0
            if beyond * beyond <= farthest:
                stack[size] = 2 * node + 1 + (not right)
                size += 1
            node = 2 * node + 1 + right
        _scan(tree.leaves[node - inside], point, distances)
        for i in range(WIDTH):
            closer += distances[i] < nearest
            tied += (distances[i] >= nearest) & (distances[i] <= farthest)
    return closer, tied


@kernel
def _beaten(tree: Tree, queries: Floats, begin: int, tolerance: float, places: int, found: Ints) -> None:
    """For each query: how many records are closer (up to `places`), and how many tie.

    The true records are those of the tree from place `begin` on. Where the masking is strong, half of the
    truth's own neighbours are closer to the query than the truth is: their leaf is asked first.
    """
    stack, distances = np.empty(DEEP, np.int64), np.empty(WIDTH)
    for k in range(len(queries)):
        point = queries[k]
        own = 0.0
        for j in range(len(point)):
            difference = tree.points[begin + k, j] - point[j]
            own += difference * difference
        nearest, farthest = own * (1 - tolerance), own * (1 + tolerance)
        closer: Int = np.int64(0)
        tied: Int = np.int64(0)
        _scan(tree.leaves[tree.leaf[begin + k]], point, distances)
        for i in range(WIDTH):
            closer += distances[i] < nearest
        if closer < places:
            closer, tied = _search(tree, point, nearest, farthest, places, stack, distances)
        if closer >= places:
            closer, tied = np.int64(places), np.int64(0)
        found[k, 0], found[k, 1] = closer, tied


def beaten(tree: Tree, queries: Floats, truth: Ints, tolerance: float, places: int = 1) -> Ints:
    """How many records are closer to each query than its true one (at most `places`), and how many tie.

    `truth` gives the rows of the true records, each once; the true one is among those that tie. Squared
    distances that differ by less than the tolerance, relative to their size, are equal. The second count is
    0 where the first has reached `places`.
    """
    found = np.empty((len(queries), 2), np.int64)
    asks = np.empty_like(truth)
    asks[truth] = np.arange(truth.size)
    order = asks[tree.rows]  # neighbours one after the other find their part of the tree in the cache

    def work(begin: int, end: int) -> None:
        part = order[begin:end]
        counts = np.empty((part.size, 2), np.int64)
        _beaten(tree, queries[part], begin, tolerance, places, counts)
        found[part] = counts

    in_parts(truth.size, work)
    return found


def in_parts(n: int, work: Callable[[int, int], None]) -> None:
    """Do compiled work on rows begin..end-1: a few at once, many part by part on all cores, with progress."""
    if n < 2 * PART:
        work(0, n)
        return
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        parts = [pool.submit(work, begin, min(begin + PART, n)) for begin in range(0, n, PART)]
        for task in each("linking", parts):
            task.result()
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
