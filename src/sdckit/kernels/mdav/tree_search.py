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

from math import inf

import numpy as np

from sdckit.kernels.jit import Floats, Int, inlined, inner, kernel
from sdckit.kernels.mdav.float32_copy import Single, Singles, far_limit, measure, near_limit, turn
from sdckit.kernels.mdav.state import (
    FORMED,
    LEFT,
    VISITED,
    WORK,
    clear_heap,
    finish,
    outermost,
    refresh,
    replace_largest,
    settle,
    squared_distance,
    worn,
)
from sdckit.kernels.mdav.tree_build import WIDTH, Tree, fit_leaf, fit_node

PATIENCE = 1000  # looks at the sorted list; beyond, the tree finds the farthest from the centroid
ZERO = np.float32(0)


def advance(tree: Tree, k: int, work: int) -> bool:
    """Form groups until about `work` nodes were looked at; True once every record has its group."""
    refresh(tree.state)
    return form_groups(tree, k, work)


@inner
def delete(tree: Tree, row: Int) -> None:
    """Take `row` out of its leaf: the leaf's last record moves into its place, and the boxes shrink."""
    slots = tree.state.slots
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
    tree.state.counters[LEFT] -= 1
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
    near, group, distances = tree.state.near, tree.state.group, tree.distances
    hits = measure(tree.leaves[leaf], tree.rounded.query, limit, np.float32(inf), distances, WIDTH)
    for i in range(WIDTH if hits > 0 else 0):
        if distances[i] <= limit:
            other = tree.rows[leaf * WIDTH + i]
            distance = squared_distance(tree.state.points, other, point)
            if distance < near[0] or (distance == near[0] and other < group[0]):
                replace_largest(near, group, size, distance, other)
                limit = near_limit(tree.rounded.margin, near[0])
    return limit


@inner
def find_nearest(tree: Tree, row: Int, size: int) -> None:
    """Fill the heap with the `size` records nearest to `row`, beginning with its own leaf."""
    state, query, stack, bounds = tree.state, tree.rounded.query, tree.stack, tree.bounds
    near, group, smallest = state.near, state.group, tree.smallest
    point = state.points[row]
    clear_heap(near, group, size, len(state.slots))
    inside = len(tree.counts) - 1
    home = inside + state.slots[row] // WIDTH
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
                and squared_distance(state.points, smallest[node], point) >= near[0]
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
    state.counters[WORK] += work


@inner
def find_farthest(tree: Tree, point: Floats) -> Int:
    """The record left that is farthest from `point`, whose rounded copy is the query."""
    state, query, stack, bounds = tree.state, tree.rounded.query, tree.stack, tree.bounds
    smallest, distances = tree.smallest, tree.distances
    inside = len(tree.counts) - 1
    best, found, limit = -1.0, len(state.slots), np.float32(-1)
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
            and squared_distance(state.points, smallest[node], point) <= best
        ):
            continue
        if node >= inside:
            visited += tree.counts[node - inside]
            hits = measure(tree.leaves[node - inside], query, np.float32(-1), limit, distances, WIDTH)
            for i in range(WIDTH if hits > 0 else 0):
                if distances[i] >= limit:
                    other = tree.rows[(node - inside) * WIDTH + i]
                    distance = squared_distance(state.points, other, point)
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
    state.counters[WORK] += work
    state.counters[VISITED] += visited
    return found


@kernel
def form_groups(tree: Tree, k: int, work: int) -> bool:
    """Form groups until all are formed (True), or the `work` is done or the list is worn out (False)."""
    state = tree.state
    counters = state.counters
    counters[WORK] = 0
    while counters[LEFT] >= 2 * k:
        if counters[WORK] >= work or worn(counters):
            return False
        sides = 2 if counters[LEFT] >= 3 * k else 1
        row = outermost(state, PATIENCE)
        point = state.centres[0]
        for side in range(sides):
            if side > 0 or row < 0:
                turn(point, tree.rounded.axes, tree.rounded.query)
                row = find_farthest(tree, point)
            point = state.points[row]
            turn(point, tree.rounded.axes, tree.rounded.query)
            slot = state.slots[row]
            tree.leaves[slot // WIDTH, 0, slot % WIDTH] = np.nan  # the record itself is not near
            find_nearest(tree, row, k - 1)
            settle(state, row, k)
            for i in range(k):
                delete(tree, state.group[i])
    finish(state.slots, state.groups, counters[FORMED])
    return True
