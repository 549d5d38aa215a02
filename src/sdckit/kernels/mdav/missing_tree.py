"""A tree of records with missing cells: first parted by the cells they miss, then by their values.

Records with the same cells missing share the same columns with any point. So a node of such records has a
box whose distance to a point, scaled up to all columns, bounds the distances of its records as computed:
both are added up column after column, and rounding never reverses an order. Few records that miss other
cells than the rest are kept in mixed nodes, which know the columns that all of their records have and those
that some have; the bound is then that of the most favourable choice of columns.

Grouped records are deleted from their leaf, and boxes shrink. Without missing cells this is a plain k-d tree.
"""

from __future__ import annotations

from math import inf, isnan
from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Bools, Floats, Int, Ints, inlined, inner, kernel
from sdckit.kernels.mdav.state import LEFT, WORK
from sdckit.kernels.trees import SAMPLE, partition_at

WIDTH = 64  # most records in a leaf
FEW = WIDTH // 2  # fewer records with (or without) a value of a column are not parted from the others
ALIVE = 0.7  # share of records left below which the tree is built again
SMALL = 4 * WIDTH  # records of a tree that is not worth building again
AT_ONCE = 2_000_000  # records handled between two checks for Ctrl-C, each counted once per level of the tree

BUILT = WORK + 1  # a counter beside those of `state`: records left when the tree was built


class MissingTree(NamedTuple):
    """The ungrouped records, NaN for a missing cell, in the leaves of a tree."""

    points: Floats  # rows x columns
    slots: Ints  # where each row is kept in the leaves, -1 once it is deleted
    homes: Ints  # the node of the leaf of each row, also after it is deleted
    leaves: Floats  # leaf x column x slot
    rows: Ints  # the row in each slot of the leaves
    counts: Ints  # records in each leaf
    leaf: Ints  # number of the leaf for each node, -1 for an inner node
    child: Ints  # the first of a node's two children, which follow each other
    parent: Ints  # -1 for the root
    boxes: Floats  # node x 2 x column: least and largest value; inf and -inf where no record has one
    every: Bools  # node x column: whether all records have a value (also without any record)
    mixed: Bools  # whether the records of a node differ in the cells they miss
    smallest: Ints  # the smallest row in each node, the number of all rows if it is empty
    stack: Ints  # nodes still to visit,
    bounds: Floats  # and how near or far their records can be
    distances: Floats  # of a leaf's records, and then how many columns they share with the point
    terms: Floats  # squared differences in columns that only some records of a node have


class Builder(NamedTuple):
    """Records and nodes while the records are being parted."""

    points: Floats  # all rows x columns, NaN for a missing cell
    filled: Floats  # the records in the tree, reordered, 0 for a missing cell
    rows: Ints  # their rows
    starts: Ints  # node x 2: where its records begin and end
    leaf: Ints
    child: Ints
    parent: Ints
    level: Ints  # nodes above a node
    boxes: Floats
    every: Bools
    todo: Ints  # nodes that are not parted yet
    counters: Ints


NODES, LEAVES, TODO, DEPTH = range(4)  # counters: nodes, leaves, nodes not yet parted, largest level


def build_tree(points: Floats, rows: Ints) -> MissingTree:
    """Return the tree of these rows (at least one) of the points."""
    points = np.ascontiguousarray(points)
    n, p = len(rows), points.shape[1]
    most = 2 * max(1, n // FEW) - 1
    filled = points[rows]
    filled[np.isnan(filled)] = 0.0
    builder = Builder(
        points=points,
        filled=filled,
        rows=rows.copy(),
        starts=np.zeros((most, 2), np.int64),
        leaf=np.full(most, -1),
        child=np.zeros(most, np.int64),
        parent=np.full(most, -1),
        level=np.zeros(most, np.int64),
        boxes=np.empty((most, 2, p)),
        every=np.empty((most, p), np.bool_),
        todo=np.zeros(most, np.int64),
        counters=np.array([1, 0, 1, 0]),
    )
    builder.starts[0, 1] = n
    sample = np.empty(SAMPLE)
    while not part_nodes(builder, sample, AT_ONCE):
        pass
    return filled_tree(builder)


def filled_tree(builder: Builder) -> MissingTree:
    """Return the tree of nodes that are parted, with the records copied into the leaves."""
    nodes, leaves, _, depth = builder.counters.tolist()
    n, p = builder.points.shape
    tree = MissingTree(
        points=builder.points,
        slots=np.full(n, -1),
        homes=np.full(n, -1),
        leaves=np.full((leaves, p, WIDTH), np.nan),
        rows=np.zeros(leaves * WIDTH, np.int64),
        counts=np.zeros(leaves, np.int64),
        leaf=builder.leaf[:nodes].copy(),
        child=builder.child[:nodes].copy(),
        parent=builder.parent[:nodes].copy(),
        boxes=builder.boxes[:nodes].copy(),
        every=builder.every[:nodes].copy(),
        mixed=np.zeros(nodes, np.bool_),
        smallest=np.full(nodes, n),
        stack=np.empty(depth + 2, np.int64),
        bounds=np.empty(depth + 2),
        distances=np.empty(2 * WIDTH),
        terms=np.empty(p),
    )
    fill_leaves(tree, builder.rows, builder.starts)
    return tree


@inner
def measure_node(builder: Builder, node: Int) -> tuple[Int, Int]:
    """Write a node's box; return a column to part it by, and 1 to do so by its missing cells, 0 by values."""
    points, rows, boxes = builder.points, builder.rows, builder.boxes
    first, last = builder.starts[node, 0], builder.starts[node, 1]
    widest, largest = -inf, FEW - 1
    axis: Int = np.int64(0)
    parted: Int = np.int64(0)
    for j in range(points.shape[1]):
        low, high, missing = inf, -inf, 0
        for i in range(first, last):
            value = points[rows[i], j]
            low = value if value < low else low  # noqa: FURB136 - min() and max() mind NaN, at a price
            high = value if value > high else high  # noqa: FURB136
            missing += isnan(value)
        boxes[node, 0, j], boxes[node, 1, j] = low, high
        builder.every[node, j] = missing == 0
        fewer = min(missing, last - first - missing)
        if fewer > largest:
            largest, axis, parted = fewer, np.int64(j), np.int64(1)
        if parted == 0 and high - low > widest:
            widest, axis = high - low, np.int64(j)
    return axis, parted


@inner
def part_by_missing(builder: Builder, axis: Int, first: Int, last: Int) -> Int:
    """Reorder records first..last-1 so that those with a value in a column come first; return their end."""
    points, rows, filled = builder.points, builder.rows, builder.filled
    end = first
    for i in range(first, last):
        if not isnan(points[rows[i], axis]):
            rows[i], rows[end] = rows[end], rows[i]
            for j in range(filled.shape[1]):
                filled[i, j], filled[end, j] = filled[end, j], filled[i, j]
            end += 1
    return end


@kernel
def part_nodes(builder: Builder, sample: Floats, most: int) -> bool:
    """Part nodes until all leaves are small; return False if stopped after about `most` records."""
    starts, todo, counters = builder.starts, builder.todo, builder.counters
    seen = 0
    while counters[TODO] > 0:
        if seen > most:
            return False
        counters[TODO] -= 1
        node = todo[counters[TODO]]
        first, last = starts[node, 0], starts[node, 1]
        seen += last - first
        axis, parted = measure_node(builder, node)
        if last - first <= WIDTH:
            builder.leaf[node] = counters[LEAVES]
            counters[LEAVES] += 1
            continue
        if parted:
            middle = part_by_missing(builder, axis, first, last)
        else:
            middle = (first + last) // 2
            partition_at(builder.filled, builder.rows, axis, first, last, middle, sample)
        child = counters[NODES]
        counters[NODES] += 2
        builder.child[node] = child
        for i in range(2):
            builder.parent[child + i] = node
            builder.level[child + i] = builder.level[node] + 1
            starts[child + i, 0], starts[child + i, 1] = (middle, last) if i else (first, middle)
            todo[counters[TODO]] = child + i
            counters[TODO] += 1
        counters[DEPTH] = max(counters[DEPTH], builder.level[child])
    return True


@kernel
def fill_leaves(tree: MissingTree, rows: Ints, starts: Ints) -> None:
    """Copy the records into the leaves, and write each node's smallest row and whether it is mixed."""
    for node in range(len(tree.leaf) - 1, -1, -1):  # children have larger numbers than their parents
        leaf = tree.leaf[node]
        if leaf >= 0:
            first = starts[node, 0]
            tree.counts[leaf] = starts[node, 1] - first
            for i in range(tree.counts[leaf]):
                row = rows[first + i]
                slot = leaf * WIDTH + i
                tree.rows[slot], tree.slots[row], tree.homes[row] = row, slot, node
                for j in range(tree.leaves.shape[1]):
                    tree.leaves[leaf, j, i] = tree.points[row, j]
            fit_leaf(tree, node)
        else:
            fit_node(tree, node)


@inlined
def set_mixed(tree: MissingTree, node: Int) -> None:
    """Write whether some column of a node has values and missing cells."""
    mixed = False
    for j in range(tree.every.shape[1]):
        mixed |= (not tree.every[node, j]) and tree.boxes[node, 0, j] <= tree.boxes[node, 1, j]
    tree.mixed[node] = mixed


@inner
def fit_leaf(tree: MissingTree, node: Int) -> None:
    """Write a leaf's box, the columns that all its records have, and its smallest row."""
    boxes, leaf = tree.boxes, tree.leaf[node]
    count = tree.counts[leaf]
    for j in range(boxes.shape[2]):
        low, high, missing = inf, -inf, 0
        for i in range(count):
            value = tree.leaves[leaf, j, i]
            low = value if value < low else low  # noqa: FURB136
            high = value if value > high else high  # noqa: FURB136
            missing += isnan(value)
        boxes[node, 0, j], boxes[node, 1, j] = low, high
        tree.every[node, j] = missing == 0
    smallest = len(tree.points)
    for i in range(leaf * WIDTH, leaf * WIDTH + count):
        smallest = min(smallest, tree.rows[i])
    tree.smallest[node] = smallest
    set_mixed(tree, node)


@inner
def fit_node(tree: MissingTree, node: Int) -> bool:
    """Write an inner node's box, common columns and smallest row from its children; return if any changed."""
    boxes, every = tree.boxes, tree.every
    one, two = tree.child[node], tree.child[node] + 1
    smallest = min(tree.smallest[one], tree.smallest[two])
    changed = smallest != tree.smallest[node]
    tree.smallest[node] = smallest
    for j in range(boxes.shape[2]):
        low = boxes[one, 0, j] if boxes[one, 0, j] < boxes[two, 0, j] else boxes[two, 0, j]  # noqa: FURB136
        high = boxes[one, 1, j] if boxes[one, 1, j] > boxes[two, 1, j] else boxes[two, 1, j]  # noqa: FURB136
        both = every[one, j] and every[two, j]
        changed |= (low != boxes[node, 0, j]) | (high != boxes[node, 1, j]) | (both != every[node, j])
        boxes[node, 0, j], boxes[node, 1, j], every[node, j] = low, high, both
    if changed:
        set_mixed(tree, node)
    return changed


@kernel
def needs_tree(counters: Ints) -> bool:
    """Return True if so many records were grouped since the tree was built that a new one is faster."""
    return counters[BUILT] > SMALL and counters[LEFT] < ALIVE * counters[BUILT]


@inner
def delete(tree: MissingTree, row: Int) -> None:
    """Delete `row` from its leaf: the leaf's last record moves into its place, and the boxes shrink."""
    slot, node = tree.slots[row], tree.homes[row]
    leaf, place = slot // WIDTH, slot % WIDTH
    tree.counts[leaf] -= 1
    last = tree.counts[leaf]
    for j in range(tree.leaves.shape[1]):
        tree.leaves[leaf, j, place] = tree.leaves[leaf, j, last]
    moved = tree.rows[leaf * WIDTH + last]
    tree.rows[slot] = moved
    tree.slots[moved] = slot
    tree.slots[row] = -1
    fit_leaf(tree, node)
    node = tree.parent[node]
    while node >= 0 and fit_node(tree, node):
        node = tree.parent[node]
