"""Exact MDAV on a file with missing cells: distances over the columns that both records have.

The groups are those of the textbook loop, bit for bit. Its centroid is the mean of the values left, added up
row after row, which takes time for every record; a running sum is nearly the same, and as a rule one record
is farther from it than any other by more than the two can differ. Only if not, the rows are added up.

The record farthest from the centroid comes from a list sorted by the distance to an earlier centroid, as in
`state`; other records come from searches in a tree, which V-MDAV uses as well. A squared distance is the sum
over the columns that both have, scaled up to all columns; records without a common column come last, whether
near or far records are asked for. Of equal distances the smallest row wins.

The tree is first parted by the cells that records miss, then by their values. Records with the same cells
missing share the same columns with any point. So a node of such records has a box whose distance to a point,
scaled up to all columns, bounds the distances of its records as computed: both are added up column after
column, and rounding never reverses an order. Few records that miss other cells than the rest are kept in
mixed nodes, which know the columns that all of their records have and those that some have; the bound is then
that of the most favourable choice of columns. Grouped records are deleted from their leaf, and boxes shrink.
Without missing cells this is a plain k-d tree.
"""

from __future__ import annotations

from math import inf, isnan, nan, sqrt
from typing import NamedTuple

import numpy as np

from sdckit.arrays import Bools, Floats, Int, Ints
from sdckit.kernels.jit import inlined, inner, kernel
from sdckit.kernels.mdav.state import (
    FEW,
    FORMED,
    HEAD,
    LEFT,
    LISTED,
    LOOKED,
    RESORT,
    SLACK,
    TINY,
    WORK,
    clear_heap,
    group_the_rest,
    needs_resort,
    replace_largest,
)
from sdckit.kernels.trees import SAMPLE, partition_at

WIDTH = 64  # most records in a leaf
FEWEST = WIDTH // 2  # fewer records with (or without) a value of a column are not parted from the others
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
    most = 2 * max(1, n // FEWEST) - 1
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
    widest, largest = -inf, FEWEST - 1
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


NONE_NEAR, NONE_FAR = (
    inf,
    -1.0,
)  # distance of records without a common column in a search for near and far ones
UNDERFLOW = TINY * TINY  # as SLACK, added, for squared distances


@inner
def measure_block(
    block: Floats, mixed: bool, every: Bools, point: Floats, none: float, distances: Floats
) -> None:
    """Write the squared distances of a leaf's records to a point, `none` without a common column."""
    p, common = len(point), 0
    for i in range(WIDTH):
        distances[i] = 0.0
    if mixed:
        measure_mixed(block, point, none, distances)
        return
    for j in range(p):
        if every[j] and not isnan(point[j]):
            common += 1
            for i in range(WIDTH):
                difference = block[j, i] - point[j]
                distances[i] += difference * difference
    if common < p:
        scale = p / max(common, 1)
        for i in range(WIDTH):
            distances[i] = distances[i] * scale if common > 0 else none


@inner
def measure_mixed(block: Floats, point: Floats, none: float, distances: Floats) -> None:
    """Write the squared distances to a point of records that differ in the cells they miss."""
    p = len(point)
    shared = distances[WIDTH:]
    for i in range(WIDTH):
        shared[i] = 0.0
    for j in range(p):
        for i in range(WIDTH):
            difference = block[j, i] - point[j]
            seen = not isnan(difference)
            distances[i] += difference * difference if seen else 0.0
            shared[i] += 1.0 if seen else 0.0
    for i in range(WIDTH):
        distances[i] = distances[i] * (p / shared[i]) if shared[i] > 0 else none


@inner
def least_distance(
    boxes: Floats, every: Bools, mixed: bool, node: Int, point: Floats, terms: Floats
) -> float:
    """Return a bound that no squared distance of a node's records to a point is below."""
    p, total, common, rest = len(point), 0.0, 0, 0
    for j in range(p):
        below, above = boxes[node, 0, j] - point[j], point[j] - boxes[node, 1, j]
        outside = below if below > above else above  # noqa: FURB136 - min() and max() mind NaN, at a price
        term = outside * outside if outside > 0 else 0.0
        if mixed and not every[node, j]:
            if below + above <= 0:
                terms[rest] = term
                rest += 1
        else:
            seen = below + above <= 0  # not if the point (NaN) or all records (inf) lack the column
            total += term if seen else 0.0
            common += seen
    if rest > 0:
        total, common = join_terms(terms, rest, 1.0, total, common)
        return total * (p / common) / SLACK - UNDERFLOW
    return total * (p / common) if common > 0 else NONE_NEAR


@inner
def largest_distance(
    boxes: Floats, every: Bools, mixed: bool, node: Int, point: Floats, terms: Floats
) -> float:
    """Return a bound that no squared distance of a node's records to a point exceeds."""
    p, total, common, rest = len(point), 0.0, 0, 0
    for j in range(p):
        below, above = point[j] - boxes[node, 0, j], boxes[node, 1, j] - point[j]
        away = below if below > above else above  # noqa: FURB136
        if mixed and not every[node, j]:
            if below + above >= 0:
                terms[rest] = away * away
                rest += 1
        else:
            seen = below + above >= 0
            total += away * away if seen else 0.0
            common += seen
    if rest > 0:
        total, common = join_terms(terms, rest, -1.0, total, common)
        return total * (p / common) * SLACK + UNDERFLOW
    return total * (p / common) if common > 0 else NONE_FAR


@inner
def join_terms(terms: Floats, size: int, sign: float, total: float, common: int) -> tuple[float, int]:
    """Return sum and number of squared differences with the least mean (sign 1) or the largest (sign -1).

    All `common` ones so far, of sum `total`, belong to the mean. Of the `size` terms the best join one after
    the other, as long as they improve it; at least one is there in the end.
    """
    while size > 0:
        best = 0
        for i in range(1, size):
            if sign * terms[i] < sign * terms[best]:
                best = i
        if common > 0 and sign * terms[best] * common >= sign * total:
            break
        total, common, size = total + terms[best], common + 1, size - 1
        terms[best] = terms[size]
    return total, common


@inner
def scan_near(
    tree: MissingTree, node: Int, point: Floats, row: Int, near: Floats, group: Ints, size: int
) -> None:
    """Put those records of a leaf into the heap that are nearer than its farthest; `row` itself stays out."""
    distances = tree.distances
    measure_block(
        tree.leaves[tree.leaf[node]], tree.mixed[node], tree.every[node], point, NONE_NEAR, distances
    )
    nearest, hits = near[0], 0
    for i in range(WIDTH):
        hits += distances[i] <= nearest
    if hits == 0:
        return
    first = tree.leaf[node] * WIDTH
    for i in range(tree.counts[tree.leaf[node]]):
        other = tree.rows[first + i]
        distance = distances[i]
        if other != row and (distance < near[0] or (distance == near[0] and other < group[0])):
            replace_largest(near, group, size, distance, other)


@inner
def find_nearest(tree: MissingTree, row: Int, near: Floats, group: Ints, size: int) -> Int:
    """Put the records nearest to `row` into a heap of `size` entries; return how many nodes were visited.

    The heap may have entries of earlier searches; `row` may be deleted already.
    """
    stack, bounds, smallest, point = tree.stack, tree.bounds, tree.smallest, tree.points[row]
    boxes, every, mixed, terms, child, leaf = (
        tree.boxes,
        tree.every,
        tree.mixed,
        tree.terms,
        tree.child,
        tree.leaf,
    )
    home = tree.homes[row]
    stack[0], bounds[0], top, work = home, 0.0, 1, 0
    while True:
        while top > 0:
            top -= 1
            node, bound = stack[top], bounds[top]
            work += 1
            if bound > near[0] or (bound == near[0] and smallest[node] > group[0]):
                continue
            if leaf[node] >= 0:
                scan_near(tree, node, point, row, near, group, size)
                continue
            one, two = child[node], child[node] + 1
            to_one = least_distance(boxes, every, mixed[one], one, point, terms)
            to_two = least_distance(boxes, every, mixed[two], two, point, terms)
            if to_one < to_two or (to_one == to_two and smallest[one] < smallest[two]):
                one, two, to_one, to_two = two, one, to_two, to_one
            stack[top], bounds[top], stack[top + 1], bounds[top + 1] = one, to_one, two, to_two
            top += 2
        parent = tree.parent[home]
        if parent < 0:
            break
        stack[0], top = 2 * child[parent] + 1 - home, 1  # the other child
        bounds[0] = least_distance(boxes, every, mixed[stack[0]], stack[0], point, terms)
        home = parent
    return work


@inner
def find_farthest(tree: MissingTree, point: Floats) -> tuple[Int, Int]:
    """Return the row farthest from a point, and how many nodes were visited."""
    stack, bounds, smallest, distances = tree.stack, tree.bounds, tree.smallest, tree.distances
    boxes, every, mixed, terms, child, leaf = (
        tree.boxes,
        tree.every,
        tree.mixed,
        tree.terms,
        tree.child,
        tree.leaf,
    )
    best, found = -2.0, len(tree.points)
    stack[0], bounds[0], top, work = 0, inf, 1, 0
    while top > 0:
        top -= 1
        node, bound = stack[top], bounds[top]
        work += 1
        if bound < best or (bound == best and smallest[node] > found):
            continue
        if leaf[node] >= 0:
            measure_block(tree.leaves[leaf[node]], mixed[node], every[node], point, NONE_FAR, distances)
            hits = 0
            for i in range(WIDTH):
                hits += distances[i] >= best
            for i in range(tree.counts[leaf[node]] if hits > 0 else 0):
                other = tree.rows[leaf[node] * WIDTH + i]
                if distances[i] > best or (distances[i] == best and other < found):
                    best, found = distances[i], other
            continue
        one, two = child[node], child[node] + 1
        to_one = largest_distance(boxes, every, mixed[one], one, point, terms)
        to_two = largest_distance(boxes, every, mixed[two], two, point, terms)
        if to_one > to_two or (to_one == to_two and smallest[one] < smallest[two]):
            one, two, to_one, to_two = two, one, to_two, to_one
        stack[top], bounds[top], stack[top + 1], bounds[top + 1] = one, to_one, two, to_two
        top += 2
    return found, work


LIST_LIMIT = 1000  # entries of the sorted list inspected before the tree is searched for the farthest record
UNIT = 2.0**-53  # largest relative error of rounding


class MissingState(NamedTuple):
    """The state of MDAV on a file with missing cells, between calls of `advance`."""

    points: Floats  # rows x columns, standardised by the caller, NaN for a missing cell
    rows: Ints  # the rows that were left when the tree was built, in order
    total: Floats  # column sums of the ungrouped records, by subtracting those that were grouped since
    observed: Floats  # how many values each of these has
    doubt: Floats  # how far each of these can be from the sum of the rows left, in order
    stretch: Floats  # largest factor from a distance of two centroids to that of their distances to a record
    centres: Floats  # the present centroid, and the one by which the list is sorted
    reach: Floats  # distances to the latter, largest first
    order: Ints  # the rows in that order
    near: Floats  # heap of the smallest distances seen in a search, largest on top
    group: Ints  # the rows in that heap; a group being formed
    groups: Ints  # the answer: a group number for each row
    counters: Ints  # as in `state`, and how many `rows` there are


def start(points: Floats, k: int) -> MissingState:
    """Return the initial MDAV state for points, NaN for a missing cell (n >= k >= 2)."""
    n, p = points.shape
    return MissingState(
        points=np.ascontiguousarray(points),
        rows=np.empty(n, np.int64),
        total=np.empty(p),
        observed=np.empty(p),
        doubt=np.empty(p),
        stretch=np.empty(1),
        centres=np.empty((2, p)),
        reach=np.empty(n),
        order=np.empty(n, np.int64),
        near=np.empty(k),
        group=np.empty(k, np.int64),
        groups=np.full(n, -1),
        counters=np.array([n, 0, 0, 0, RESORT * (n + FEW) + 1, 0, 0, 0]),
    )


def build(part: MissingState) -> MissingTree:
    """Return the tree of the ungrouped records, and add up their values anew."""
    rows = np.flatnonzero(part.groups < 0)
    tree, n, p = build_tree(part.points, rows), len(rows), len(part.total)
    part.rows[:n], part.counters[BUILT] = rows, n
    add_up(part, tree.slots)
    values = part.points[rows]
    seen = ~np.isnan(values)
    # Each addition is rounded: in the sum, in as many subtractions from it, and in the sum of rows left.
    part.doubt[:] = 4 * n * UNIT * np.abs(values).sum(axis=0, where=seen)
    widths = seen.sum(axis=1)
    part.stretch[0] = sqrt(p / widths[widths > 0].min(initial=p))
    return tree


def advance(part: MissingState, tree: MissingTree, k: int, work: int) -> bool:
    """Form groups until about `work` nodes were visited; return True once every record has its group."""
    if needs_resort(part.counters):
        resort(part, tree.slots)
    return form_groups(part, tree, k, work)


def resort(part: MissingState, slots: Ints) -> None:
    """Sort the ungrouped records by distance to the present centroid."""
    left = int(part.counters[LEFT])
    set_centroid(part)
    part.centres[1] = part.centres[0]
    rows = part.rows[: part.counters[BUILT]]
    rows = rows[slots[rows] >= 0]
    list_distances(part, rows)
    distances = part.reach[:left].copy()
    order = np.argsort(-distances)
    part.reach[:left], part.order[:left] = distances[order], rows[order]
    part.counters[HEAD : LOOKED + 1] = 0, left, 0


@inlined
def shared_distance(points: Floats, row: Int, point: Floats) -> float:
    """Return the squared distance over columns both have, scaled to all columns; -1 if they share none."""
    total, shared = 0.0, 0
    for j in range(len(point)):
        difference = points[row, j] - point[j]
        seen = not isnan(difference)
        total += difference * difference if seen else 0.0  # no branch: its outcome is hard to predict
        shared += seen
    return total * (len(point) / shared) if shared else -1.0


@kernel
def list_distances(part: MissingState, rows: Ints) -> None:
    """Write the distance (not squared) of each row to the centroid, -1 for a record without any value."""
    for i in range(len(rows)):
        distance = shared_distance(part.points, rows[i], part.centres[1])
        part.reach[i] = sqrt(distance) if distance >= 0 else -1.0


@kernel
def add_up(part: MissingState, slots: Ints) -> None:
    """Set the column sums of the ungrouped records and the numbers of values, row after row."""
    total, observed = part.total, part.observed
    total[:], observed[:] = 0.0, 0.0
    for i in range(part.counters[BUILT]):
        row = part.rows[i]
        if slots[row] >= 0:
            for j in range(len(total)):
                value = part.points[row, j]
                seen = not isnan(value)
                total[j] += value if seen else 0.0
                observed[j] += seen


@kernel
def set_centroid(part: MissingState) -> float:
    """Set the centroid to the sums over the numbers of values; return how far it can be from the exact one.

    A column of which no value is left is NaN there.
    """
    squares = 0.0
    for j in range(len(part.total)):
        part.centres[0, j] = part.total[j] / part.observed[j] if part.observed[j] > 0 else nan
        error = part.doubt[j] / max(part.observed[j], 1.0)
        squares += error * error
    return sqrt(squares) * part.stretch[0]


@inner
def same_record(points: Floats, one: Int, two: Int) -> bool:
    """Return True if two records have the same values and miss the same cells."""
    same = True
    for j in range(points.shape[1]):
        a, b = points[one, j], points[two, j]
        same &= (a == b) | (isnan(a) & isnan(b))
    return same


@inner
def farthest_in_list(part: MissingState, slots: Ints, error: float) -> tuple[Int, bool]:
    """Return the ungrouped row farthest from the centroid, and whether another centroid could have another.

    The other centroid changes distances by up to `error`. The row is -1 if too many have to be inspected.
    """
    points, counters, order, centre = part.points, part.counters, part.order, part.centres[0]
    drift = sqrt(max(shared_distance(part.centres, 1, centre), 0.0)) * part.stretch[0]
    while slots[order[counters[HEAD]]] < 0:
        counters[HEAD] += 1
    best, rival, bound = -2.0, -2.0, -inf
    found: Int = np.int64(len(points))
    for i in range(counters[HEAD], counters[LISTED]):
        if (part.reach[i] + drift) * SLACK + TINY + 2 * error < bound:
            break
        counters[LOOKED] += 1
        if i - counters[HEAD] >= LIST_LIMIT:
            return np.int64(-1), True
        row = order[i]
        if slots[row] < 0:
            continue
        distance = shared_distance(points, row, centre)
        if distance == best and same_record(points, row, found):
            found = min(found, row)  # as far from any centroid
        elif distance > best or (distance == best and row < found):
            best, rival, found = distance, best, row
            bound = sqrt(best) if best >= 0 else -inf
        else:
            rival = max(rival, distance)
    return found, sqrt(max(rival, 0.0)) * SLACK + TINY + 2 * error >= bound


@inner
def farthest_from_centroid(part: MissingState, tree: MissingTree) -> Int:
    """Return the ungrouped row farthest from the exact centroid of all these."""
    error = set_centroid(part)
    found, doubtful = farthest_in_list(part, tree.slots, error)
    if doubtful:
        add_up(part, tree.slots)
        set_centroid(part)
        if found >= 0:
            found, doubtful = farthest_in_list(part, tree.slots, 0.0)
        if found < 0:
            found, work = find_farthest(tree, part.centres[0])
            part.counters[WORK] += work
    return found


@inner
def form_group(part: MissingState, tree: MissingTree, row: Int, k: int) -> None:
    """Group `row` with its k - 1 nearest records, and delete them from sums and tree."""
    near, group, counters = part.near, part.group, part.counters
    clear_heap(near, group, k - 1, len(part.points))
    counters[WORK] += find_nearest(tree, row, near, group, k - 1)
    group[k - 1] = row
    for i in range(k):
        part.groups[group[i]] = counters[FORMED]
        delete(tree, group[i])
        for j in range(len(part.total)):
            value = part.points[group[i], j]
            if not isnan(value):
                part.total[j] -= value
                part.observed[j] -= 1
    counters[FORMED] += 1
    counters[LEFT] -= k


@kernel
def form_groups(part: MissingState, tree: MissingTree, k: int, work: int) -> bool:
    """Form groups; return True once all are formed, False after `work` nodes or if a sort or tree is due."""
    counters = part.counters
    counters[WORK] = 0
    while counters[LEFT] >= 2 * k:
        if counters[WORK] >= work or needs_resort(counters) or needs_tree(counters):
            return False
        row = farthest_from_centroid(part, tree)
        form_group(part, tree, row, k)
        if counters[LEFT] >= 2 * k:
            row, visited = find_farthest(tree, part.points[row])
            counters[WORK] += visited
            form_group(part, tree, row, k)
    group_the_rest(tree.slots, part.groups, counters[FORMED])
    return True
