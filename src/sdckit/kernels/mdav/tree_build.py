"""Construction of the k-d tree of `tree_search`: records halved into leaves, boxes fitted around them."""

from __future__ import annotations

from math import ceil, inf, log2
from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Bools, Floats, Int, Ints, inlined, inner, kernel
from sdckit.kernels.kd_tree import SAMPLE, partition_at
from sdckit.kernels.mdav.float32_copy import RoundedCopy, Singles, set_absolute_margin
from sdckit.kernels.mdav.state import MdavState  # noqa: TC001 - kernels read it

WIDTH = 64  # most records in a leaf
DEEP = 128  # size of the stack of nodes to visit; a tree of 2**60 records needs less
AT_ONCE = 200_000  # records sorted into a tree between two checks for Ctrl-C


class Tree(NamedTuple):
    """The ungrouped records, in the leaves of a k-d tree (node i has the children 2i + 1 and 2i + 2).

    An empty node has a box from infinity to -infinity. A leaf's empty slots hold NaN in their first
    column: NaN fails every comparison, so they are neither near nor far.
    """

    state: MdavState
    rounded: RoundedCopy
    leaves: Singles  # leaf x column x slot
    rows: Ints  # the row in each slot of the leaves
    counts: Ints  # records in each leaf
    boxes: Singles  # node x 2 x column: lower and upper corner
    smallest: Ints  # the smallest row in each node
    equal: Bools  # whether all records of a node are equal
    stack: Ints  # nodes still to visit,
    bounds: Singles  # and how near or far their records can be
    distances: Singles  # of a leaf's records


class TreeBuilder(NamedTuple):
    """Records, row numbers and boxes while they are being sorted into the leaves of a tree."""

    points: Singles
    rows: Ints
    starts: Ints  # node x 2: where its records begin and end
    boxes: Singles


def build_tree(state: MdavState, rounded: RoundedCopy) -> Tree:
    """Return the k-d tree of the records that have no group yet."""
    rows = np.flatnonzero(state.slots >= 0)
    points = rounded.points[rows]
    n, p = points.shape
    leaves = 2 ** max(0, ceil(log2(n / WIDTH)))
    nodes = 2 * leaves - 1
    boxes = np.empty((nodes, 2, p), np.float32)
    boxes[0] = points.min(axis=0), points.max(axis=0)
    set_absolute_margin(rounded, float(np.abs(boxes[0]).max()))
    builder = TreeBuilder(points, rows, np.zeros((nodes, 2), np.int64), boxes)
    builder.starts[0, 1] = n
    branches = min(leaves, 2 ** max(0, ceil(log2(n / AT_ONCE))))
    for node in range(branches - 1):
        split_nodes(builder, node, node + 1)
    for node in range(branches - 1, 2 * branches - 1):
        split_nodes(builder, node, leaves - 1)
    tree = Tree(
        state=state,
        rounded=rounded,
        leaves=np.empty((leaves, p, WIDTH), np.float32),
        rows=np.empty(leaves * WIDTH, np.int64),
        counts=np.empty(leaves, np.int64),
        boxes=boxes,
        smallest=np.empty(nodes, np.int64),
        equal=np.empty(nodes, np.bool_),
        stack=np.empty(DEEP, np.int64),
        bounds=np.empty(DEEP, np.float32),
        distances=np.empty(WIDTH, np.float32),
    )
    fill_leaves(tree, builder)
    return tree


@kernel
def split_nodes(builder: TreeBuilder, root: int, end: int) -> None:
    """Split a node at the median of its widest side, and all nodes below it numbered less than `end`.

    The widest side is that of a box cut from the parent's, which needs no pass over the records.
    """
    starts, boxes = builder.starts, builder.boxes
    stack, sample = np.empty(DEEP, np.int64), np.empty(SAMPLE)
    stack[0] = root
    size = 1 if root < end else 0
    while size > 0:
        size -= 1
        node = stack[size]
        first, last = starts[node, 0], starts[node, 1]
        axis: Int = np.int64(0)  # a plain 0 would be compiled twice, as a constant and as a number
        for j in range(1, boxes.shape[2]):
            if boxes[node, 1, j] - boxes[node, 0, j] > boxes[node, 1, axis] - boxes[node, 0, axis]:
                axis = j
        middle = (first + last) // 2
        partition_at(builder.points, builder.rows, axis, first, last, middle, sample)  # type: ignore[arg-type]
        for child in range(2 * node + 1, 2 * node + 3):
            for j in range(boxes.shape[2]):
                boxes[child, 0, j], boxes[child, 1, j] = boxes[node, 0, j], boxes[node, 1, j]
            starts[child, 0], starts[child, 1] = first, last
            if child < end:
                stack[size] = child
                size += 1
        boxes[2 * node + 1, 1, axis] = boxes[2 * node + 2, 0, axis] = builder.points[middle, axis]
        starts[2 * node + 1, 1] = starts[2 * node + 2, 0] = middle


@kernel
def fill_leaves(tree: Tree, builder: TreeBuilder) -> None:
    """Copy the records into the leaves, and write the bounding boxes of all nodes."""
    inside = len(tree.counts) - 1  # nodes that are no leaves
    for leaf in range(len(tree.counts)):
        first = builder.starts[inside + leaf, 0]
        tree.counts[leaf] = builder.starts[inside + leaf, 1] - first
        for i in range(WIDTH):
            tree.leaves[leaf, 0, i] = np.nan
        for i in range(tree.counts[leaf]):
            row = builder.rows[first + i]
            tree.rows[leaf * WIDTH + i] = row
            tree.state.slots[row] = leaf * WIDTH + i
            for j in range(tree.leaves.shape[1]):
                tree.leaves[leaf, j, i] = builder.points[first + i, j]
    for leaf in range(len(tree.counts)):
        fit_leaf(tree, leaf)
    for node in range(inside - 1, -1, -1):
        fit_node(tree, node)


@inlined
def equal_records(points: Floats, one: Int, two: Int) -> bool:
    """Return True if two records are equal in all columns."""
    equal = True
    for j in range(points.shape[1]):
        equal &= points[one, j] == points[two, j]
    return equal


@inner
def fit_leaf(tree: Tree, leaf: int) -> None:
    """Write the bounding box of a leaf, its smallest row number, and whether all its records are equal."""
    boxes, points = tree.boxes, tree.state.points
    node = len(tree.counts) - 1 + leaf
    count = tree.counts[leaf]
    equal = count > 0
    for j in range(boxes.shape[2]):
        low, high = np.float32(inf), np.float32(-inf)
        for i in range(count):
            value = tree.leaves[leaf, j, i]
            low = value if value < low else low  # noqa: FURB136 - min() and max() mind NaN, at a price
            high = value if value > high else high  # noqa: FURB136
        boxes[node, 0, j], boxes[node, 1, j] = low, high
        equal &= low == high
    smallest = len(points)
    for i in range(leaf * WIDTH, leaf * WIDTH + count):
        smallest = min(smallest, tree.rows[i])
    tree.smallest[node] = smallest
    if equal:  # in the float32 copy; check in float64
        for i in range(leaf * WIDTH, leaf * WIDTH + count):
            equal &= equal_records(points, smallest, tree.rows[i])
    tree.equal[node] = equal


@inner
def fit_node(tree: Tree, node: int) -> bool:
    """Write a node's box, smallest row and equality from its children; return whether any changed."""
    boxes, n = tree.boxes, len(tree.state.points)
    one, two = 2 * node + 1, 2 * node + 2
    first, second = tree.smallest[one], tree.smallest[two]
    equal = (tree.equal[one] or first == n) and (tree.equal[two] or second == n) and min(first, second) < n
    if equal and max(first, second) < n:
        equal = equal_records(tree.state.points, first, second)
    changed = min(first, second) != tree.smallest[node] or equal != tree.equal[node]
    tree.smallest[node] = min(first, second)
    tree.equal[node] = equal
    for j in range(boxes.shape[2]):
        low = min(boxes[one, 0, j], boxes[two, 0, j])
        high = max(boxes[one, 1, j], boxes[two, 1, j])
        changed |= (low != boxes[node, 0, j]) | (high != boxes[node, 1, j])
        boxes[node, 0, j], boxes[node, 1, j] = low, high
    return changed
