"""Exact MDAV on a k-d tree from which grouped records are deleted: only leaves that matter are scanned.

When the tree is built, its leaves are full. Each node stores the smallest box around the ungrouped records in
it, and their smallest row. Once many records are deleted, a new tree is built. The distances to the boxes of
16 children are computed at once, as are those to the 16 records of a leaf.

Boxes and leaves hold the rounded copy of the records. The distance from a point to the nearest (or
farthest) corner of a box is added up as distances to records are, column after column in float32, and
rounding never reverses an order: a box bounds the *computed* distances of its records. Where cells are
missing, nearest records are searched by distances over the columns that both records have.

A node whose records are all equal is a case of its own, for files with many duplicates: its distance
is exact, and of records at the same distance it can have the answer only if its smallest row is small
enough.

The record farthest from a point comes from the list of ungrouped records sorted by distance to a centroid:
no record is farther from the point than its distance to the centroid plus that of the point. A scan of the
list, largest distance first, ends where this sum falls below the largest distance found. MDAV groups outer
records first and the point is an outer one: the record opposite ends the scan early, and scans of the same
blocks follow each other, which stay in the CPU's cache.
"""

from __future__ import annotations

from math import inf, isnan, sqrt
from typing import NamedTuple

import numpy as np

from sdckit.arrays import Bools, Floats, Int, Ints, Single, Singles
from sdckit.kernels.jit import inlined, kernel, uncounted, uncounted_inner
from sdckit.kernels.mdav.state import (
    FORMED,
    HEAD,
    LANES,
    LEFT,
    LISTED,
    LOOKED,
    SLACK,
    TINY,
    WORK,
    MdavState,
    RoundedCopy,
    clear_heap,
    far_limit,
    farthest_from_centroid,
    group_the_rest,
    lanes_beyond,
    lanes_within,
    largest_box_distances,
    largest_size,
    least_box_distances,
    lowest_lane,
    measure_block,
    near_distance,
    near_limit,
    needs_resort,
    number_group,
    record_distances,
    replace_largest,
    resort_if_needed,
    rotate,
    set_absolute_margin,
    shared_distances,
    squared_distance,
)
from sdckit.kernels.trees import SAMPLE, partition_at

WIDTH = LANES  # records in a leaf, and children of a node: as many as are measured at once
DEEP = 256  # size of the stack of nodes to visit; a tree of 2**60 records needs less
ALIVE = 0.7  # share of records left below which the tree is built again
PATTERNS = 1e3  # scale on which records that miss other cells lie apart when they are sorted into leaves
AT_ONCE = 200_000  # records sorted into a tree between two checks for Ctrl-C


class Tree(NamedTuple):
    """The ungrouped records, in the leaves of a k-d tree whose nodes have 16 children.

    Nodes are numbered level by level, the leaves first; the 16 children of a node have consecutive numbers
    and share a block of boxes. An empty node has a box from infinity to -infinity, and a box has no bounds in
    a column that some of its records miss. A leaf's empty slots hold infinity, but NaN in their first column:
    NaN fails every comparison, so they are neither near nor far.
    """

    state: MdavState
    rounded: RoundedCopy
    size: int  # records in the tree when it was built
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
    set_absolute_margin(rounded, largest_size(points))
    if rounded.gaps:  # first by the cells that records miss, then by values
        pattern = np.unique(np.isnan(points), axis=0, return_inverse=True)[1]
        sort_into_leaves(
            np.column_stack([PATTERNS * pattern, np.nan_to_num(points)]).astype(np.float32), rows
        )
        points = rounded.points[rows]
    else:
        sort_into_leaves(points, rows)
    leaves, p = -(-len(rows) // WIDTH), points.shape[1]
    below, above = number_nodes(leaves)
    tree = Tree(
        state=state,
        rounded=rounded,
        size=len(rows),
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


def renewed(tree: Tree) -> Tree:
    """Return the tree, or a new one of the ungrouped records once these are far fewer."""
    worn = tree.state.counters[LEFT] < ALIVE * tree.size
    return build_tree(tree.state, tree.rounded) if worn else tree


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
        for i in range(tree.counts[leaf], WIDTH):
            empty_slot(tree, leaf, i)
        for i in range(tree.counts[leaf]):
            slot = leaf * WIDTH + i
            tree.state.slots[tree.rows[slot]] = slot
            for j in range(tree.leaves.shape[1]):
                tree.leaves[leaf, j, i] = points[slot, j]
        fit_leaf(tree, leaf)
    for block in range(len(tree.above) - 1):
        fit_node(tree, tree.above[block])


@inlined
def empty_slot(tree: Tree, leaf: Int, place: Int) -> None:
    """Mark a slot of a leaf as empty."""
    for j in range(tree.leaves.shape[1]):
        tree.leaves[leaf, j, place] = inf
    tree.leaves[leaf, 0, place] = np.nan


@inlined
def equal_records(points: Floats, one: Int, two: Int) -> bool:
    """Return True if two records are equal in all columns, missing cells included."""
    equal = True
    for j in range(points.shape[1]):
        a, b = points[one, j], points[two, j]
        equal &= (a == b) | (isnan(a) & isnan(b))
    return equal


@uncounted_inner
def fit_leaf(tree: Tree, leaf: Int) -> None:
    """Write the bounding box of a leaf, its smallest row number, and whether all its records are equal."""
    boxes, points = tree.boxes[leaf // WIDTH], tree.state.points
    count, lane = tree.counts[leaf], leaf % WIDTH
    equal = count > 0
    for j in range(boxes.shape[1]):
        low, high, gaps = np.float32(inf), np.float32(-inf), False
        for i in range(count):
            value = tree.leaves[leaf, j, i]
            low = value if value < low else low  # noqa: FURB136 - min() and max() mind NaN, at a price
            high = value if value > high else high  # noqa: FURB136
            gaps |= isnan(value)
        low, high = (np.float32(-inf), np.float32(inf)) if gaps else (low, high)
        boxes[0, j, lane], boxes[1, j, lane] = low, high
        equal &= (low == high) | gaps
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
        equal &= (low == high) | (high - low == inf)  # without bounds, cells are missing
    if equal:
        for child in range(first, first + WIDTH):
            if tree.smallest[child] < n:
                equal &= equal_records(tree.state.points, smallest, tree.smallest[child])
    changed |= smallest != tree.smallest[node] or equal != tree.equal[node]
    tree.smallest[node], tree.equal[node] = smallest, equal
    return changed


BLOCK = 64  # records per block
PATIENCE = 64  # blocks that the first search scans before it searches the tree
DEAD = 16  # slots of grouped records that are scanned in the time that one list entry is inspected


class FarList(NamedTuple):
    """The sorted list of `MdavState`, with its records; grouped ones hold NaN in their first column."""

    blocks: Singles  # block x column x slot
    counts: Ints  # ungrouped records in each block
    places: Ints  # the place of each row in the list
    distances: Singles  # of one block
    patience: Ints  # blocks to scan before the tree is searched instead


def empty_list(state: MdavState) -> FarList:
    """Return a list with room for all records."""
    n, p = state.points.shape
    size = -(-n // BLOCK)
    return FarList(
        np.empty((size, p, BLOCK), np.float32),
        np.zeros(size, np.int64),
        np.zeros(n, np.int64),
        np.empty(BLOCK, np.float32),
        np.array([PATIENCE]),
    )


@uncounted
def fill_list(far: FarList, state: MdavState, points: Singles) -> None:
    """Copy the records of the sorted list, all of which are ungrouped, into blocks."""
    left = state.counters[LEFT]
    for block in range((left + BLOCK - 1) // BLOCK):
        far.counts[block] = min(BLOCK, left - block * BLOCK)
        for i in range(BLOCK):
            far.blocks[block, 0, i] = np.nan
    for place in range(left):
        row = state.order[place]
        far.places[row] = place
        for j in range(points.shape[1]):
            far.blocks[place // BLOCK, j, place % BLOCK] = points[row, j]


@inlined
def drop_from_list(far: FarList, row: Int) -> None:
    """Mark a row as grouped."""
    block = far.places[row] // BLOCK
    far.blocks[block, 0, far.places[row] % BLOCK] = np.nan
    far.counts[block] -= 1


@uncounted_inner
def scan_list(
    far: FarList, state: MdavState, rounded: RoundedCopy, point: Floats, patience: Int
) -> tuple[float, Int, Int]:
    """Return the largest squared distance from `point`, its row, and how many blocks of `patience` are left.

    If none is left, the scan was given up: another record may be farther.
    """
    counters, order = state.counters, state.order
    offset = sqrt(squared_distance(state.centres, 1, point))
    best, found, limit, bound, dead = -1.0, len(state.slots), np.float32(-1), -1.0, 0
    for block in range(counters[HEAD] // BLOCK, (counters[LISTED] + BLOCK - 1) // BLOCK):
        if (state.reach[block * BLOCK] + offset) * SLACK + TINY < bound or patience == 0:
            break
        count = far.counts[block]
        if count == 0:
            continue
        patience -= 1
        dead += BLOCK - count
        hits = measure_block(far.blocks[block], rounded.query, np.float32(-1), limit, far.distances, BLOCK)
        for i in range(BLOCK if hits > 0 else 0):
            if far.distances[i] >= limit:
                row = order[block * BLOCK + i]
                distance = squared_distance(state.points, row, point)
                if distance > best or (distance == best and row < found):
                    best, found, bound = distance, row, sqrt(distance)
                    limit = far_limit(rounded.margin, best)
    counters[LOOKED] += dead // DEAD
    return best, found, patience


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
    empty_slot(tree, leaf, last)
    moved = tree.rows[leaf * WIDTH + last]
    tree.rows[slot] = moved
    slots[moved] = slot
    slots[row] = ~slot
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
def scan_near(tree: Tree, leaf: Int, row: Int, size: int, share: float, limit: Single) -> Single:
    """Put the records of a leaf, but not `row`, into the heap of the nearest; return the new limit."""
    near, group, distances = tree.state.near, tree.state.group, tree.distances
    if tree.rounded.gaps:
        shared_distances(tree.leaves[leaf], 0, tree.rounded.query, distances)
    else:
        record_distances(tree.leaves[leaf], 0, tree.rounded.query, distances)
    lanes = lanes_within(distances, 0, limit)
    while lanes > 0:
        i = lowest_lane(lanes)
        lanes &= lanes - 1
        other = tree.rows[leaf * WIDTH + i]
        if distances[i] <= limit and i < tree.counts[leaf] and other != row:
            distance = near_distance(tree.state.points, other, tree.state.points[row])
            if distance < near[0] or (distance == near[0] and other < group[0]):
                replace_largest(near, group, size, distance, other)
                limit = near_limit(tree.rounded.margin, near[0] * share)
    return limit


@uncounted_inner
def find_nearest(tree: Tree, row: Int, size: int) -> None:
    """Put the records nearest to `row` into the heap of `size` entries, starting with its own leaf.

    The heap may have entries of earlier searches, and `row` may be deleted already. In the copy, distances
    are not scaled up to all columns: those over a share of the columns are within that share of the limit.
    """
    state, stack, bounds = tree.state, tree.stack, tree.bounds
    near, group, smallest = state.near, state.group, tree.smallest
    point, seen = state.points[row], 0
    for j in range(len(point)):
        seen += not isnan(point[j])
    share = max(seen, 1) / len(point)
    rotate(point, tree.rounded.axes, tree.rounded.query)
    leaves, slot = len(tree.counts), state.slots[row]
    home = (slot if slot >= 0 else ~slot) // WIDTH
    stack[0], bounds[0], top = home, ZERO, 1
    limit, work = near_limit(tree.rounded.margin, near[0] * share), 0
    while True:
        while top > 0:
            top -= 1
            node = stack[top]
            if bounds[top] > limit:
                continue
            if (
                tree.equal[node]
                and smallest[node] > group[0]
                and near_distance(state.points, smallest[node], point) >= near[0]
            ):
                continue
            work += 1
            if node < leaves:
                limit = scan_near(tree, node, row, size, share, limit)
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
def form_group(tree: Tree, row: Int, k: int) -> None:
    """Group `row` with its k - 1 nearest records, and delete them."""
    state = tree.state
    clear_heap(state.near, state.group, k - 1, len(state.slots))
    find_nearest(tree, row, k - 1)
    number_group(state, row, k)
    for i in range(k):
        delete(tree, state.group[i])


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
            form_group(tree, row, k)
            for i in range(k):
                drop_from_list(far, state.group[i])
    group_the_rest(state.slots, state.groups, counters[FORMED])
    return True
