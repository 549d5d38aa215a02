"""Exact MDAV on a k-d tree from which grouped records are deleted: only leaves that matter are scanned.

The tree is balanced when it is built: every node halves its records at the median of its widest
side. Each node stores the smallest box around the ungrouped records in it, and their smallest row. Once many
records are deleted, a new tree is built.

Boxes and leaves hold the rounded copy of the records. The distance from a point to the nearest (or
farthest) corner of a box is added up as distances to records are, column after column in float32, and
rounding never reverses an order: a box bounds the *computed* distances of its records.

A node whose records are all equal is a case of its own, for files with many duplicates: its distance
is exact, and of records at the same distance it can have the answer only if its smallest row is small
enough.
"""

from __future__ import annotations

from math import inf

import numpy as np

from sdckit.kernels.jit import Floats, Int, inlined, inner, kernel
from sdckit.kernels.mdav.float32_copy import Single, Singles, far_limit, measure_block, near_limit, rotate
from sdckit.kernels.mdav.state import (
    FORMED,
    LEFT,
    VISITED,
    WORK,
    clear_heap,
    farthest_from_centroid,
    group_the_rest,
    needs_resort,
    number_group,
    replace_largest,
    resort_if_needed,
    squared_distance,
)
from sdckit.kernels.mdav.tree_build import WIDTH, Tree, fit_leaf, fit_node

LIST_LIMIT = 1000  # entries of the sorted list inspected before the tree is searched for the farthest record
ZERO = np.float32(0)


def advance(tree: Tree, k: int, work: int) -> bool:
    """Form groups until about `work` nodes were visited; return True once every record has its group."""
    resort_if_needed(tree.state)
    return form_groups(tree, k, work)


@inner
def delete(tree: Tree, row: Int) -> None:
    """Delete `row` from its leaf: the leaf's last record moves into its place, and the boxes shrink."""
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
def least_box_distance(boxes: Singles, node: Int, query: Singles) -> Single:
    """Return the least squared distance from the query to a node's box, in float32."""
    total = ZERO
    for j in range(len(query)):
        outside = max(boxes[node, 0, j] - query[j], ZERO, query[j] - boxes[node, 1, j])
        total += outside * outside
    return total


@inlined
def largest_box_distance(boxes: Singles, node: Int, query: Singles) -> Single:
    """Return the largest squared distance from the query to a node's box, in float32; 0 if it is empty."""
    total = ZERO
    for j in range(len(query)):
        across = max(query[j] - boxes[node, 0, j], ZERO, boxes[node, 1, j] - query[j])
        total += across * across
    return total


@inlined
def scan_near(tree: Tree, leaf: Int, point: Floats, size: int, limit: Single) -> Single:
    """Put the records of a leaf into the heap of the nearest; return the new distance limit."""
    near, group, distances = tree.state.near, tree.state.group, tree.distances
    hits = measure_block(tree.leaves[leaf], tree.rounded.query, limit, np.float32(inf), distances, WIDTH)
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
    """Fill the heap with the `size` records nearest to `row`, starting with its own leaf."""
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
            to_one = least_box_distance(tree.boxes, one, query)
            to_two = least_box_distance(tree.boxes, two, query)
            if to_one < to_two or (to_one == to_two and smallest[one] < smallest[two]):
                one, two, to_one, to_two = two, one, to_two, to_one
            stack[top], bounds[top], stack[top + 1], bounds[top + 1] = one, to_one, two, to_two
            top += 2
        if home == 0:
            break
        stack[0], top = home + 1 if home % 2 else home - 1, 1
        bounds[0] = least_box_distance(tree.boxes, stack[0], query)
        home = (home - 1) // 2
    state.counters[WORK] += work


@inner
def find_farthest(tree: Tree, point: Floats) -> Int:
    """Return the ungrouped record farthest from `point`, whose float32 copy is the query."""
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
            hits = measure_block(tree.leaves[node - inside], query, np.float32(-1), limit, distances, WIDTH)
            for i in range(WIDTH if hits > 0 else 0):
                if distances[i] >= limit:
                    other = tree.rows[(node - inside) * WIDTH + i]
                    distance = squared_distance(state.points, other, point)
                    if distance > best or (distance == best and other < found):
                        best, found = distance, other
                        limit = far_limit(tree.rounded.margin, best)
            continue
        one, two = 2 * node + 1, 2 * node + 2
        to_one = largest_box_distance(tree.boxes, one, query)
        to_two = largest_box_distance(tree.boxes, two, query)
        if to_one > to_two or (to_one == to_two and smallest[one] < smallest[two]):
            one, two, to_one, to_two = two, one, to_two, to_one
        stack[top], bounds[top], stack[top + 1], bounds[top + 1] = one, to_one, two, to_two
        top += 2
    state.counters[WORK] += work
    state.counters[VISITED] += visited
    return found


@kernel
def form_groups(tree: Tree, k: int, work: int) -> bool:
    """Form groups; return True once all are formed, False after `work` nodes or when a new sort is due."""
    state = tree.state
    counters = state.counters
    counters[WORK] = 0
    while counters[LEFT] >= 2 * k:
        if counters[WORK] >= work or needs_resort(counters):
            return False
        sides = 2 if counters[LEFT] >= 3 * k else 1
        row = farthest_from_centroid(state, LIST_LIMIT)
        point = state.centres[0]
        for side in range(sides):
            if side > 0 or row < 0:
                rotate(point, tree.rounded.axes, tree.rounded.query)
                row = find_farthest(tree, point)
            point = state.points[row]
            rotate(point, tree.rounded.axes, tree.rounded.query)
            slot = state.slots[row]
            tree.leaves[slot // WIDTH, 0, slot % WIDTH] = np.nan  # the record itself is not near
            find_nearest(tree, row, k - 1)
            number_group(state, row, k)
            for i in range(k):
                delete(tree, state.group[i])
    group_the_rest(state.slots, state.groups, counters[FORMED])
    return True
