"""Searches in the tree of records with missing cells: the nearest and the farthest of those left.

A squared distance is the sum over the columns that both have, scaled up to all columns; records without a
common column come last, whether near or far records are asked for. Of equal distances the smallest row wins.
"""

from __future__ import annotations

from math import inf, isnan

from sdckit.kernels.jit import Bools, Floats, Int, Ints, inner
from sdckit.kernels.mdav.missing_tree import WIDTH, MissingTree
from sdckit.kernels.mdav.state import SLACK, TINY, replace_largest

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
