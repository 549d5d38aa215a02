"""Construction of the k-d tree of `tree_search`: records sorted into leaves, boxes fitted around them."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Bools, Floats, Int, Ints, Singles, inlined, kernel, uncounted, uncounted_inner
from sdckit.kernels.mdav.float32_copy import RoundedCopy, set_absolute_margin
from sdckit.kernels.mdav.lanes import LANES
from sdckit.kernels.mdav.state import MdavState  # noqa: TC001 - kernels read it
from sdckit.kernels.trees import SAMPLE, partition_at

WIDTH = LANES  # records in a leaf, and children of a node: as many as are measured at once
DEEP = 256  # size of the stack of nodes to visit; a tree of 2**60 records needs less
AT_ONCE = 200_000  # records sorted into a tree between two checks for Ctrl-C


class Tree(NamedTuple):
    """The ungrouped records, in the leaves of a k-d tree whose nodes have 16 children.

    Nodes are numbered level by level, the leaves first; the 16 children of a node have consecutive numbers
    and share a block of boxes. An empty node has a box from infinity to -infinity. A leaf's empty slots hold
    NaN in their first column: NaN fails every comparison, so they are neither near nor far.
    """

    state: MdavState
    rounded: RoundedCopy
    leaves: Singles  # leaf x column x slot
    rows: Ints  # the row in each slot of the leaves
    counts: Ints  # records in each leaf
    boxes: Singles  # block of 16 nodes x 2 x column x node: lower and upper corner
    smallest: Ints  # the smallest row in each node, the number of all rows if it is empty
    equal: Bools  # whether all records of a node are equal
    below: Ints  # the first child of each node
    above: Ints  # the parent of each block of nodes, -1 for the last
    stack: Ints  # nodes still to visit,
    bounds: Singles  # and how near or far their records can be
    distances: Singles  # of a leaf's records, or of 16 boxes


def build_tree(state: MdavState, rounded: RoundedCopy) -> Tree:
    """Return the k-d tree of the records that have no group yet."""
    rows = np.flatnonzero(state.slots >= 0)
    points = rounded.points[rows]
    set_absolute_margin(rounded, float(max(points.max(), -points.min())))
    sort_into_leaves(points, rows)
    leaves, p = -(-len(rows) // WIDTH), points.shape[1]
    below, above = number_nodes(leaves)
    tree = Tree(
        state=state,
        rounded=rounded,
        leaves=np.empty((leaves, p, WIDTH), np.float32),
        rows=np.resize(rows, leaves * WIDTH),
        counts=np.full(leaves, WIDTH),
        boxes=np.empty((len(above), 2, p, WIDTH), np.float32),
        smallest=np.full(len(below), len(state.slots)),
        equal=np.zeros(len(below), np.bool_),
        below=below,
        above=above,
        stack=np.empty(DEEP, np.int64),
        bounds=np.empty(DEEP, np.float32),
        distances=np.empty(WIDTH, np.float32),
    )
    tree.boxes[:, 0], tree.boxes[:, 1] = inf, -inf
    tree.counts[-1] = len(rows) - (leaves - 1) * WIDTH
    fill_leaves(tree, points)
    return tree


def number_nodes(leaves: int) -> tuple[Ints, Ints]:
    """Return the first child of each node (0 for leaves) and the parent of each block of 16 nodes."""
    blocks = [-(-leaves // WIDTH)]
    while blocks[-1] > 1:
        blocks.append(-(-blocks[-1] // WIDTH))
    above, below = np.full(sum(blocks), -1), np.zeros(sum(blocks) * WIDTH, np.int64)
    first = 0
    for count in blocks[:-1]:
        parents = (first + count) * WIDTH + np.arange(count)
        above[first : first + count] = parents
        below[parents] = np.arange(first, first + count) * WIDTH
        first += count
    return below, above


def sort_into_leaves(points: Singles, rows: Ints) -> None:
    """Reorder records and their row numbers in place: each 16 consecutive records are those of a leaf."""
    pending = [(0, len(rows))]
    while pending:
        first, last = pending.pop()
        if last - first <= AT_ONCE:
            split_range(points, rows, first, last, last - first)
        else:
            split_range(points, rows, first, last, 1)
            middle = first + left_half(last - first)
            pending += [(first, middle), (middle, last)]


@kernel
def left_half(count: int) -> int:
    """Return how many of a node's records go left: they fill a subtree, so only the last leaf has gaps."""
    half = WIDTH
    while 2 * half < count:
        half *= 2
    return half


@inlined
def longest_axis(points: Singles, first: Int, last: Int) -> Int:
    """Return the column in which a sample of the records first..last-1 has the largest variance."""
    count = min(last - first, SAMPLE)
    longest = np.float32(-1)
    axis: Int = np.int64(0)
    for j in range(points.shape[1]):
        origin = points[first, j]
        total = squares = np.float32(0)
        for i in range(count):
            value = points[first + i * (last - first) // count, j] - origin
            total += value
            squares += value * value
        variance = squares - total * total / np.float32(count)
        if variance > longest:
            longest, axis = variance, j
    return axis


@kernel
def split_range(points: Singles, rows: Ints, first: int, last: int, splits: int) -> None:
    """Split a range of records at its longest axis, then its parts, at most `splits` times: up to leaves."""
    stack, sample = np.empty((DEEP, 2), np.int64), np.empty(SAMPLE)
    stack[0, 0], stack[0, 1] = first, last
    size = 1
    while size > 0 and splits > 0:
        size -= 1
        first, last = stack[size, 0], stack[size, 1]
        if last - first <= WIDTH:
            continue
        splits -= 1
        axis = longest_axis(points, first, last)
        middle = first + left_half(last - first)
        partition_at(points, rows, axis, first, last, middle, sample)  # type: ignore[arg-type]
        stack[size, 0], stack[size, 1] = first, middle
        stack[size + 1, 0], stack[size + 1, 1] = middle, last
        size += 2


@uncounted
def fill_leaves(tree: Tree, points: Singles) -> None:
    """Copy the sorted records into the leaves, and write the bounding boxes of all nodes."""
    for leaf in range(len(tree.counts)):
        for i in range(WIDTH):
            tree.leaves[leaf, 0, i] = np.nan
        for i in range(tree.counts[leaf]):
            slot = leaf * WIDTH + i
            tree.state.slots[tree.rows[slot]] = slot
            for j in range(tree.leaves.shape[1]):
                tree.leaves[leaf, j, i] = points[slot, j]
        fit_leaf(tree, leaf)
    for block in range(len(tree.above) - 1):
        fit_node(tree, tree.above[block])


@inlined
def equal_records(points: Floats, one: Int, two: Int) -> bool:
    """Return True if two records are equal in all columns."""
    equal = True
    for j in range(points.shape[1]):
        equal &= points[one, j] == points[two, j]
    return equal


@uncounted_inner
def fit_leaf(tree: Tree, leaf: Int) -> None:
    """Write the bounding box of a leaf, its smallest row number, and whether all its records are equal."""
    boxes, points = tree.boxes[leaf // WIDTH], tree.state.points
    count, lane = tree.counts[leaf], leaf % WIDTH
    equal = count > 0
    for j in range(boxes.shape[1]):
        low, high = np.float32(inf), np.float32(-inf)
        for i in range(count):
            value = tree.leaves[leaf, j, i]
            low = value if value < low else low  # noqa: FURB136 - min() and max() mind NaN, at a price
            high = value if value > high else high  # noqa: FURB136
        boxes[0, j, lane], boxes[1, j, lane] = low, high
        equal &= low == high
    smallest = len(points)
    for i in range(leaf * WIDTH, leaf * WIDTH + count):
        smallest = min(smallest, tree.rows[i])
    tree.smallest[leaf] = smallest
    if equal:  # in the float32 copy; check in float64
        for i in range(leaf * WIDTH, leaf * WIDTH + count):
            equal &= equal_records(points, smallest, tree.rows[i])
    tree.equal[leaf] = equal


@uncounted_inner
def fit_node(tree: Tree, node: Int) -> bool:
    """Write a node's box, smallest row and equality from its children; return whether any changed."""
    first, n = tree.below[node], len(tree.state.points)
    inside, around, lane = tree.boxes[first // WIDTH], tree.boxes[node // WIDTH], node % WIDTH
    smallest, equal, changed = n, True, False
    for child in range(first, first + WIDTH):
        smallest = min(smallest, tree.smallest[child])
        equal &= tree.equal[child] or tree.smallest[child] == n
    equal &= smallest < n
    for j in range(inside.shape[1]):
        low, high = inside[0, j, 0], inside[1, j, 0]
        for i in range(1, WIDTH):
            low = inside[0, j, i] if inside[0, j, i] < low else low  # noqa: FURB136 - as in a leaf
            high = inside[1, j, i] if inside[1, j, i] > high else high  # noqa: FURB136
        changed |= (low != around[0, j, lane]) | (high != around[1, j, lane])
        around[0, j, lane], around[1, j, lane] = low, high
        equal &= low == high
    if equal:
        for child in range(first, first + WIDTH):
            if tree.smallest[child] < n:
                equal &= equal_records(tree.state.points, smallest, tree.smallest[child])
    changed |= smallest != tree.smallest[node] or equal != tree.equal[node]
    tree.smallest[node], tree.equal[node] = smallest, equal
    return changed
