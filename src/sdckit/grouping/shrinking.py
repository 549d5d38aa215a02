"""Exact MDAV on a k-d tree that records are taken from: only the leaves that matter are looked at.

The tree is balanced when it is planted: every node halves its records at the median of its widest
side. Each node knows the smallest box around the records left in it, and their smallest row. Once many
records are gone, a new tree is planted.

Boxes and leaves hold the rounded copy of the records. The distance from a point to the nearest (or
farthest) corner of a box is added up as distances to records are, column after column in float32, and
rounding never turns an order round: a box bounds the *computed* distances of its records.

A node whose records are all equal is a case of its own, for files with many duplicates: its distance
is exact, and of records at the same distance it can have the answer only if its smallest row is small
enough.
"""

from __future__ import annotations

from math import ceil, inf, log2
from typing import NamedTuple

import numpy as np

from sdckit.compiled import Bools, Floats, Int, Ints, inlined, kernel
from sdckit.grouping.ledger import (
    FORMED,
    LEFT,
    VISITED,
    WORK,
    Ledger,
    clear_heap,
    finish,
    inner,
    outermost,
    refresh,
    replace_largest,
    settle,
    squared_distance,
    worn,
)
from sdckit.grouping.rounding import (
    Rounded,
    Single,
    Singles,
    far_limit,
    measure,
    near_limit,
    set_margin,
    turn,
)
from sdckit.trees import SAMPLE, halve

WIDTH = 64  # places for records in a leaf
DEEP = 128  # room for the nodes still to visit; a tree of 2**60 records needs less
PATIENCE = 1000  # looks at the sorted list; beyond, the tree finds the farthest from the centroid
AT_ONCE = 200_000  # records to sort into a tree between two looks at the keyboard
ZERO = np.float32(0)


class Tree(NamedTuple):
    """The records left, in the leaves of a tree (node i has the children 2i + 1 and 2i + 2).

    An empty node has a box from infinity to -infinity. A leaf's empty places hold NaN in their first
    column: NaN loses every comparison, so they are neither near nor far.
    """

    ledger: Ledger
    rounded: Rounded
    leaves: Singles  # leaf x column x place
    rows: Ints  # the row in each place
    counts: Ints  # records in each leaf
    boxes: Singles  # node x 2 x column: lower and upper corner
    smallest: Ints  # the smallest row in each node
    equal: Bools  # whether all records of a node are equal
    stack: Ints  # nodes still to visit,
    bounds: Singles  # and how near or far their records can be
    distances: Singles  # of a leaf's records


class Sapling(NamedTuple):
    """Records on their way into the leaves."""

    points: Singles
    rows: Ints
    starts: Ints  # node x 2: where its records begin and end
    boxes: Singles


def plant(ledger: Ledger, rounded: Rounded) -> Tree:
    """Put the records left into a tree."""
    rows = np.flatnonzero(ledger.slots >= 0)
    points = rounded.points[rows]
    n, p = points.shape
    leaves = 2 ** max(0, ceil(log2(n / WIDTH)))
    nodes = 2 * leaves - 1
    boxes = np.empty((nodes, 2, p), np.float32)
    boxes[0] = points.min(axis=0), points.max(axis=0)
    set_margin(rounded, float(np.abs(boxes[0]).max()))
    sapling = Sapling(points, rows, np.zeros((nodes, 2), np.int64), boxes)
    sapling.starts[0, 1] = n
    branches = min(leaves, 2 ** max(0, ceil(log2(n / AT_ONCE))))
    for node in range(branches - 1):
        split(sapling, node, node + 1)
    for node in range(branches - 1, 2 * branches - 1):
        split(sapling, node, leaves - 1)
    tree = Tree(
        ledger=ledger,
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
    fill(tree, sapling)
    return tree


def advance(tree: Tree, k: int, work: int) -> bool:
    """Form groups until about `work` nodes were looked at; True once every record has its group."""
    refresh(tree.ledger)
    return form_groups(tree, k, work)


@kernel
def split(sapling: Sapling, root: int, end: int) -> None:
    """Halve a node and those below it, as far as their numbers are less than `end`.

    The widest side is that of a box cut from the parent's, which costs no look at the records.
    """
    starts, boxes = sapling.starts, sapling.boxes
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
        halve(sapling.points, sapling.rows, axis, first, last, middle, sample)  # type: ignore[arg-type]
        for child in range(2 * node + 1, 2 * node + 3):
            for j in range(boxes.shape[2]):
                boxes[child, 0, j], boxes[child, 1, j] = boxes[node, 0, j], boxes[node, 1, j]
            starts[child, 0], starts[child, 1] = first, last
            if child < end:
                stack[size] = child
                size += 1
        boxes[2 * node + 1, 1, axis] = boxes[2 * node + 2, 0, axis] = sapling.points[middle, axis]
        starts[2 * node + 1, 1] = starts[2 * node + 2, 0] = middle


@kernel
def fill(tree: Tree, sapling: Sapling) -> None:
    """Lay out the records in the leaves, and measure the boxes of all nodes."""
    inside = len(tree.counts) - 1  # nodes that are no leaves
    for leaf in range(len(tree.counts)):
        first = sapling.starts[inside + leaf, 0]
        tree.counts[leaf] = sapling.starts[inside + leaf, 1] - first
        for i in range(WIDTH):
            tree.leaves[leaf, 0, i] = np.nan
        for i in range(tree.counts[leaf]):
            row = sapling.rows[first + i]
            tree.rows[leaf * WIDTH + i] = row
            tree.ledger.slots[row] = leaf * WIDTH + i
            for j in range(tree.leaves.shape[1]):
                tree.leaves[leaf, j, i] = sapling.points[first + i, j]
    for leaf in range(len(tree.counts)):
        fit_leaf(tree, leaf)
    for node in range(inside - 1, -1, -1):
        fit_node(tree, node)


@inlined
def same(points: Floats, one: Int, two: Int) -> bool:
    """Whether two records are equal in all columns."""
    equal = True
    for j in range(points.shape[1]):
        equal &= points[one, j] == points[two, j]
    return equal


@inner
def fit_leaf(tree: Tree, leaf: int) -> None:
    """Measure the box of a leaf, and find its smallest row."""
    boxes, points = tree.boxes, tree.ledger.points
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
    if equal:  # as rounded; in truth?
        for i in range(leaf * WIDTH, leaf * WIDTH + count):
            equal &= same(points, smallest, tree.rows[i])
    tree.equal[node] = equal


@inner
def fit_node(tree: Tree, node: int) -> bool:
    """Give a node the smallest box around those of its children; whether anything has changed."""
    boxes, n = tree.boxes, len(tree.ledger.points)
    one, two = 2 * node + 1, 2 * node + 2
    first, second = tree.smallest[one], tree.smallest[two]
    equal = (tree.equal[one] or first == n) and (tree.equal[two] or second == n) and min(first, second) < n
    if equal and max(first, second) < n:
        equal = same(tree.ledger.points, first, second)
    changed = min(first, second) != tree.smallest[node] or equal != tree.equal[node]
    tree.smallest[node] = min(first, second)
    tree.equal[node] = equal
    for j in range(boxes.shape[2]):
        low = min(boxes[one, 0, j], boxes[two, 0, j])
        high = max(boxes[one, 1, j], boxes[two, 1, j])
        changed |= (low != boxes[node, 0, j]) | (high != boxes[node, 1, j])
        boxes[node, 0, j], boxes[node, 1, j] = low, high
    return changed


@inner
def delete(tree: Tree, row: Int) -> None:
    """Take `row` out of its leaf: the leaf's last record moves into its place, and the boxes shrink."""
    slots = tree.ledger.slots
    slot = slots[row]
    leaf, place = slot // WIDTH, slot % WIDTH
    tree.counts[leaf] -= 1
    last = tree.counts[leaf]
    for j in range(tree.leaves.shape[1]):
        tree.leaves[leaf, j, place] = tree.leaves[leaf, j, last]
    tree.leaves[leaf, 0, last] = np.nan
    moved = tree.rows[leaf * WIDTH + last]
    tree.rows[slot] = moved
    slots[moved] = slot
    slots[row] = -1
    tree.ledger.counters[LEFT] -= 1
    fit_leaf(tree, leaf)
    node = len(tree.counts) - 1 + leaf
    while node > 0:
        node = (node - 1) // 2
        if not fit_node(tree, node):
            break


@inlined
def nearest_corner(boxes: Singles, node: Int, query: Singles) -> Single:
    """The least squared distance that a record of a node can have in the copy."""
    total = ZERO
    for j in range(len(query)):
        outside = max(boxes[node, 0, j] - query[j], ZERO, query[j] - boxes[node, 1, j])
        total += outside * outside
    return total


@inlined
def farthest_corner(boxes: Singles, node: Int, query: Singles) -> Single:
    """The largest squared distance that a record of a node can have in the copy (0 in an empty node)."""
    total = ZERO
    for j in range(len(query)):
        across = max(query[j] - boxes[node, 0, j], ZERO, boxes[node, 1, j] - query[j])
        total += across * across
    return total


@inlined
def scan_near(tree: Tree, leaf: Int, point: Floats, size: int, limit: Single) -> Single:
    """Put the records of a leaf into the heap of the nearest; return the new limit."""
    near, group, distances = tree.ledger.near, tree.ledger.group, tree.distances
    hits = measure(tree.leaves[leaf], tree.rounded.query, limit, np.float32(inf), distances, WIDTH)
    for i in range(WIDTH if hits > 0 else 0):
        if distances[i] <= limit:
            other = tree.rows[leaf * WIDTH + i]
            distance = squared_distance(tree.ledger.points, other, point)
            if distance < near[0] or (distance == near[0] and other < group[0]):
                replace_largest(near, group, size, distance, other)
                limit = near_limit(tree.rounded.margin, near[0])
    return limit


@inner
def find_nearest(tree: Tree, row: Int, size: int) -> None:
    """Fill the heap with the `size` records nearest to `row`, beginning with its own leaf."""
    ledger, query, stack, bounds = tree.ledger, tree.rounded.query, tree.stack, tree.bounds
    near, group, smallest = ledger.near, ledger.group, tree.smallest
    point = ledger.points[row]
    clear_heap(near, group, size, len(ledger.slots))
    inside = len(tree.counts) - 1
    home = inside + ledger.slots[row] // WIDTH
    stack[0], bounds[0], top = home, ZERO, 1
    limit, work = np.float32(inf), 0
    while True:
        while top > 0:
            top -= 1
            node = stack[top]
            work += 1
            if bounds[top] > limit:
                continue
            if (
                tree.equal[node]
                and smallest[node] > group[0]
                and squared_distance(ledger.points, smallest[node], point) >= near[0]
            ):
                continue
            if node >= inside:
                limit = scan_near(tree, node - inside, point, size, limit)
                continue
            one, two = 2 * node + 1, 2 * node + 2
            to_one = nearest_corner(tree.boxes, one, query)
            to_two = nearest_corner(tree.boxes, two, query)
            if to_one < to_two or (to_one == to_two and smallest[one] < smallest[two]):
                one, two, to_one, to_two = two, one, to_two, to_one
            stack[top], bounds[top], stack[top + 1], bounds[top + 1] = one, to_one, two, to_two
            top += 2
        if home == 0:
            break
        stack[0], top = home + 1 if home % 2 else home - 1, 1
        bounds[0] = nearest_corner(tree.boxes, stack[0], query)
        home = (home - 1) // 2
    ledger.counters[WORK] += work


@inner
def find_farthest(tree: Tree, point: Floats) -> Int:
    """The record left that is farthest from `point`, whose rounded copy is the query."""
    ledger, query, stack, bounds = tree.ledger, tree.rounded.query, tree.stack, tree.bounds
    smallest, distances = tree.smallest, tree.distances
    inside = len(tree.counts) - 1
    best, found, limit = -1.0, len(ledger.slots), np.float32(-1)
    stack[0], bounds[0] = 0, np.float32(inf)
    top, work, visited = 1, 0, 0
    while top > 0:
        top -= 1
        node = stack[top]
        work += 1
        if bounds[top] < limit:
            continue
        if (
            tree.equal[node]
            and smallest[node] > found
            and squared_distance(ledger.points, smallest[node], point) <= best
        ):
            continue
        if node >= inside:
            visited += tree.counts[node - inside]
            hits = measure(tree.leaves[node - inside], query, np.float32(-1), limit, distances, WIDTH)
            for i in range(WIDTH if hits > 0 else 0):
                if distances[i] >= limit:
                    other = tree.rows[(node - inside) * WIDTH + i]
                    distance = squared_distance(ledger.points, other, point)
                    if distance > best or (distance == best and other < found):
                        best, found = distance, other
                        limit = far_limit(tree.rounded.margin, best)
            continue
        one, two = 2 * node + 1, 2 * node + 2
        to_one = farthest_corner(tree.boxes, one, query)
        to_two = farthest_corner(tree.boxes, two, query)
        if to_one > to_two or (to_one == to_two and smallest[one] < smallest[two]):
            one, two, to_one, to_two = two, one, to_two, to_one
        stack[top], bounds[top], stack[top + 1], bounds[top + 1] = one, to_one, two, to_two
        top += 2
    ledger.counters[WORK] += work
    ledger.counters[VISITED] += visited
    return found


@kernel
def form_groups(tree: Tree, k: int, work: int) -> bool:
    """Form groups until all are formed (True), or the `work` is done or the list is worn out (False)."""
    ledger = tree.ledger
    counters = ledger.counters
    counters[WORK] = 0
    while counters[LEFT] >= 2 * k:
        if counters[WORK] >= work or worn(counters):
            return False
        sides = 2 if counters[LEFT] >= 3 * k else 1
        row = outermost(ledger, PATIENCE)
        point = ledger.centres[0]
        for side in range(sides):
            if side > 0 or row < 0:
                turn(point, tree.rounded.axes, tree.rounded.query)
                row = find_farthest(tree, point)
            point = ledger.points[row]
            turn(point, tree.rounded.axes, tree.rounded.query)
            slot = ledger.slots[row]
            tree.leaves[slot // WIDTH, 0, slot % WIDTH] = np.nan  # the record itself is not near
            find_nearest(tree, row, k - 1)
            settle(ledger, row, k)
            for i in range(k):
                delete(tree, ledger.group[i])
    finish(ledger.slots, ledger.groups, counters[FORMED])
    return True
