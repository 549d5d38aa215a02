"""Exact MDAV on a k-d tree from which grouped records are deleted: only leaves that matter are scanned.

When the tree is built, its leaves are full. Each node stores the smallest box around the ungrouped records in
it, and their smallest row. Once many records are deleted, a new tree is built. The distances to the boxes of
16 children are computed at once, as are those to the 16 records of a leaf.

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

from sdckit.kernels.jit import Floats, Int, Single, inlined, uncounted, uncounted_inner
from sdckit.kernels.mdav.far_list import FarList, drop_from_list, fill_list, scan_list
from sdckit.kernels.mdav.float32_copy import far_limit, near_limit, rotate
from sdckit.kernels.mdav.lanes import (
    lanes_beyond,
    lanes_within,
    largest_box_distances,
    least_box_distances,
    lowest_lane,
    record_distances,
)
from sdckit.kernels.mdav.state import (
    FORMED,
    LEFT,
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
LEAST = 16  # blocks of the list that are always scanned before the tree is searched
PER_BLOCK = 2  # visits of a node in the time that a scan of a block of the list takes
ZERO, NEAR, FAR = np.float32(0), np.float32(1), np.float32(-1)


def advance(tree: Tree, far: FarList, k: int, work: int) -> bool:
    """Form groups until about `work` nodes were visited; return True once every record has its group."""
    if resort_if_needed(tree.state):
        fill_list(far, tree.state, tree.rounded.points)
    return form_groups(tree, far, k, work)


@uncounted_inner
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
    node = tree.above[leaf // WIDTH]
    while node >= 0 and fit_node(tree, node):
        node = tree.above[node // WIDTH]


@uncounted_inner
def push_nodes(tree: Tree, first: Int, lanes: Int, sign: Single, base: int) -> int:
    """Push some of the 16 nodes from `first` on, the most promising one last; return the stack's new size.

    The nodes are the bits of `lanes`. Of their distances times `sign` the smallest is the most promising.
    """
    stack, bounds, smallest = tree.stack, tree.bounds, tree.smallest
    top = base
    while lanes > 0:
        lane = lowest_lane(lanes)
        lanes &= lanes - 1
        node, bound = first + lane, sign * tree.distances[lane]
        if smallest[node] == len(tree.state.slots):  # it is empty
            continue
        place = top
        while place > base and (
            bounds[place - 1] < bound
            or (bounds[place - 1] == bound and smallest[stack[place - 1]] < smallest[node])
        ):
            stack[place], bounds[place] = stack[place - 1], bounds[place - 1]
            place -= 1
        stack[place], bounds[place] = node, bound
        top += 1
    return top


@inlined
def push_near(tree: Tree, first: Int, skipped: Int, limit: Single, top: int) -> int:
    """Push those of 16 nodes that may have a record within `limit`; return the stack's new size.

    The bits of `skipped` are nodes that were visited before.
    """
    least_box_distances(tree.boxes[first // WIDTH], 0, tree.rounded.query, tree.distances)
    lanes = lanes_within(tree.distances, 0, limit) & ~skipped
    return push_nodes(tree, first, lanes, NEAR, top)


@inlined
def push_far(tree: Tree, first: Int, limit: Single, top: int) -> int:
    """Push those of 16 nodes that may have a record beyond `limit`; return the stack's new size."""
    largest_box_distances(tree.boxes[first // WIDTH], 0, tree.rounded.query, tree.distances)
    return push_nodes(tree, first, lanes_beyond(tree.distances, 0, limit), FAR, top)


@inlined
def scan_near(tree: Tree, leaf: Int, point: Floats, size: int, limit: Single) -> Single:
    """Put the records of a leaf into the heap of the nearest; return the new distance limit."""
    near, group, distances = tree.state.near, tree.state.group, tree.distances
    record_distances(tree.leaves[leaf], 0, tree.rounded.query, distances)
    lanes = lanes_within(distances, 0, limit)
    while lanes > 0:
        i = lowest_lane(lanes)
        lanes &= lanes - 1
        if distances[i] <= limit:
            other = tree.rows[leaf * WIDTH + i]
            distance = squared_distance(tree.state.points, other, point)
            if distance < near[0] or (distance == near[0] and other < group[0]):
                replace_largest(near, group, size, distance, other)
                limit = near_limit(tree.rounded.margin, near[0])
    return limit


@uncounted_inner
def find_nearest(tree: Tree, row: Int, size: int) -> None:
    """Fill the heap with the `size` records nearest to `row`, starting with its own leaf."""
    state, stack, bounds = tree.state, tree.stack, tree.bounds
    near, group, smallest = state.near, state.group, tree.smallest
    point = state.points[row]
    clear_heap(near, group, size, len(state.slots))
    leaves = len(tree.counts)
    home = state.slots[row] // WIDTH
    stack[0], bounds[0], top = home, ZERO, 1
    limit, work = np.float32(inf), 0
    while True:
        while top > 0:
            top -= 1
            node = stack[top]
            if bounds[top] > limit:
                continue
            if (
                tree.equal[node]
                and smallest[node] > group[0]
                and squared_distance(state.points, smallest[node], point) >= near[0]
            ):
                continue
            work += 1
            if node < leaves:
                limit = scan_near(tree, node, point, size, limit)
            else:
                top = push_near(tree, tree.below[node], 0, limit, top)
        if home < 0:
            break
        work += 1
        block = home // WIDTH
        top = push_near(tree, block * WIDTH, 1 << home % WIDTH, limit, top)
        home = tree.above[block]
    state.counters[WORK] += work


@uncounted_inner
def find_farthest(tree: Tree, far: FarList, point: Floats) -> Int:
    """Return the ungrouped record farthest from `point`, whose float32 copy is the query.

    The tree is searched if the list takes longer than the last search of the tree did.
    """
    state, query, stack, bounds = tree.state, tree.rounded.query, tree.stack, tree.bounds
    smallest, distances = tree.smallest, tree.distances
    leaves = len(tree.counts)
    patience = far.patience[0]
    best, found, rest = scan_list(far, state, tree.rounded, point, patience)
    state.counters[WORK] += (patience - rest) * PER_BLOCK
    if rest > 0:
        return found
    limit = far_limit(tree.rounded.margin, best)
    top, work = 0, 1
    top = push_far(tree, WIDTH * (len(tree.above) - 1), limit, top)
    while top > 0:
        top -= 1
        node = stack[top]
        if -bounds[top] < limit:
            continue
        if (
            tree.equal[node]
            and smallest[node] > found
            and squared_distance(state.points, smallest[node], point) <= best
        ):
            continue
        work += 1
        if node >= leaves:
            top = push_far(tree, tree.below[node], limit, top)
            continue
        record_distances(tree.leaves[node], 0, query, distances)
        lanes = lanes_beyond(distances, 0, limit)
        while lanes > 0:
            i = lowest_lane(lanes)
            lanes &= lanes - 1
            if distances[i] >= limit:
                other = tree.rows[node * WIDTH + i]
                distance = squared_distance(state.points, other, point)
                if distance > best or (distance == best and other < found):
                    best, found = distance, other
                    limit = far_limit(tree.rounded.margin, best)
    state.counters[WORK] += work
    far.patience[0] = max(LEAST, work // PER_BLOCK)
    return found


@uncounted
def form_groups(tree: Tree, far: FarList, k: int, work: int) -> bool:
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
                row = find_farthest(tree, far, point)
            point = state.points[row]
            rotate(point, tree.rounded.axes, tree.rounded.query)
            slot = state.slots[row]
            tree.leaves[slot // WIDTH, 0, slot % WIDTH] = np.nan  # the record itself is not near
            find_nearest(tree, row, k - 1)
            number_group(state, row, k)
            for i in range(k):
                delete(tree, state.group[i])
                drop_from_list(far, state.group[i])
    group_the_rest(state.slots, state.groups, counters[FORMED])
    return True
