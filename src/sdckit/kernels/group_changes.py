"""Change groups after they were formed: merge small ones, or swap records between neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdckit import progress
from sdckit.arrays import Floats, Int, Ints
from sdckit.kernels import trees
from sdckit.kernels.candidates import no_facts
from sdckit.kernels.jit import inner, kernel

STEP = 10_000  # groups merged between two checks for Ctrl-C


class MergeState(NamedTuple):
    """Groups with a value of one variable, in the order of a k-d tree of their centroids."""

    centres: Floats  # group x variable
    starts: Ints  # node x 2: where its groups begin and end
    low: Floats  # node x variable
    high: Floats
    numbers: Ints  # the group's number, which decides between equal distances
    parents: Ints  # position of another group of the same merged group; a root has its own position
    counts: Ints  # values in the merged group, right for roots only
    stack: Ints  # nodes to visit,
    bounds: Floats  # and how near their centroids can be


def merge_small_groups(centres: Floats, counts: Ints, k: int) -> Ints:
    """Return a merged group's number for each group, so that each has k or more values, or none.

    `centres` has the groups' centroids, without missing cells, `counts` their values of one variable. In
    the order of their numbers, each group with 1 to k - 1 values is merged with the group nearest to it that
    has a value, and with all groups that this one was merged with, until there are k values. Of equal
    distances the smallest number wins. A merged group has the smallest number of its groups.
    """
    merged = np.arange(len(counts))
    numbers = np.flatnonzero(counts)
    if not (counts[numbers] < k).any():
        return merged
    state = start(centres, counts, numbers)
    positions = np.argsort(state.numbers)
    small = positions[counts[numbers] < k]
    with progress.track("merging groups", len(small)) as report:
        for begin in range(0, len(small), STEP):
            merge_each(state, small[begin : begin + STEP], k)
            report(min(begin + STEP, len(small)))
    merged[state.numbers] = merged_numbers(state)
    return merged


def start(centres: Floats, counts: Ints, numbers: Ints) -> MergeState:
    """Return the state in which no group is merged yet, for the groups of these numbers."""
    grown = trees.build_forest(centres[numbers], *no_facts(len(numbers)))
    ordered = numbers[grown.rows]
    return MergeState(
        centres[ordered],
        grown.starts,
        grown.low,
        grown.high,
        ordered,
        np.arange(len(ordered)),
        counts[ordered],
        np.empty(trees.DEEP, np.int64),
        np.empty(trees.DEEP),
    )


@inner
def root_of(parents: Ints, position: Int) -> Int:
    """Return the position that stands for the merged group of a group; shorten the way to it."""
    while parents[position] != position:
        parents[position] = parents[parents[position]]
        position = parents[position]
    return position


@inner
def squared_distance(centres: Floats, one: Int, other: Int, limit: float) -> float:
    """Return the squared distance of two centroids; anything above `limit` as soon as that is exceeded."""
    total = 0.0
    for j in range(centres.shape[1]):
        difference = centres[one, j] - centres[other, j]
        total += difference * difference
        if total > limit:
            break
    return total


@inner
def distance_to_box(low: Floats, high: Floats, node: Int, centre: Floats) -> float:
    """Return the squared distance of a centroid to a node's box; no centroid in it is computed as nearer."""
    total = 0.0
    for j in range(len(centre)):
        below, above = low[node, j] - centre[j], centre[j] - high[node, j]
        gap = below if below > above else above  # noqa: FURB136 - min() and max() mind NaN, at a price
        total += gap * gap if gap > 0 else 0.0
    return total


@inner
def nearest_in_leaf(
    state: MergeState, node: Int, position: Int, found: Int, best: float
) -> tuple[Int, float]:
    """Return the nearest group and its squared distance: the one found so far, or a nearer one of a leaf."""
    centres, numbers, parents = state.centres, state.numbers, state.parents
    own = root_of(parents, position)
    for other in range(state.starts[node, 0], state.starts[node, 1]):
        distance = squared_distance(centres, position, other, best)
        first = found < 0 or numbers[other] < numbers[found]
        if (distance < best or (distance == best and first)) and root_of(parents, other) != own:
            found, best = np.int64(other), distance
    return found, best


@inner
def nearest_outside(state: MergeState, position: Int) -> Int:
    """Return the position of the nearest group that is not merged with this one; -1 if there is none."""
    low, high, centre = state.low, state.high, state.centres[position]
    found: Int = np.int64(-1)
    best, stack, bounds = np.inf, state.stack, state.bounds
    stack[0], bounds[0], size = 0, 0.0, 1
    while size > 0:
        size -= 1
        node = stack[size]
        if bounds[size] > best:
            continue
        child = 2 * node + 1
        if child >= len(low):
            found, best = nearest_in_leaf(state, node, position, found, best)
            continue
        left, right = distance_to_box(low, high, child, centre), distance_to_box(low, high, child + 1, centre)
        nearer = child + (left > right)  # visited first
        stack[size], bounds[size] = 2 * child + 1 - nearer, max(left, right)
        stack[size + 1], bounds[size + 1] = nearer, min(left, right)
        size += 2
    return found


@kernel
def merge_each(state: MergeState, small: Ints, k: int) -> None:
    """Merge each of these groups with its nearest ones until it has k values or no group is left."""
    parents, counts = state.parents, state.counts
    for i in range(len(small)):
        own = root_of(parents, small[i])
        while counts[own] < k:
            other = nearest_outside(state, small[i])
            if other < 0:
                return  # all groups together have fewer than k values
            root = root_of(parents, other)
            parents[root] = own
            counts[own] += counts[root]


@kernel
def merged_numbers(state: MergeState) -> Ints:
    """Return the smallest number of the groups that each group is merged with."""
    smallest = state.numbers.copy()
    for position in range(len(smallest)):
        root = root_of(state.parents, position)
        smallest[root] = min(smallest[root], state.numbers[position])
    for position in range(len(smallest)):
        smallest[position] = smallest[root_of(state.parents, position)]
    return smallest


NEIGHBOURS = 8  # groups with which a group swaps records
ROUNDS = 3  # each round gains far less than the one before
LEAST = 1e-9  # gain, in squared distances of the two records, that rounding cannot feign


class GroupState(NamedTuple):
    """Groups of complete records: group g has the rows order[starts[g]] to order[starts[g + 1] - 1]."""

    points: Floats  # record x variable
    order: Ints
    starts: Ints
    centres: Floats  # group x variable


def swap_members(points: Floats, groups: Ints) -> Ints:
    """Return the groups of all rows after swaps that lower the squared distances to the groups' centroids.

    Groups are numbered from 0 without a gap, and keep their sizes. In the order of their numbers, each group
    swaps one record with each of the groups that had the nearest centroids at the start: the pair of records
    that gains most, if any does. Groups with a missing cell, and groups of equal records, take no part.
    """
    order = np.argsort(groups, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(groups)))
    ordered = points[order]
    centres = np.add.reduceat(ordered, starts[:-1], axis=0) / np.diff(starts)[:, None]
    high, low = (extreme.reduceat(ordered, starts[:-1], axis=0) for extreme in (np.maximum, np.minimum))
    taking = np.flatnonzero(~np.isnan(centres).any(axis=1) & (high > low).any(axis=1))
    if len(taking) > 1:
        state = GroupState(np.ascontiguousarray(points), order, starts, centres)
        near = taking[nearest_groups(centres[taking])]
        for _ in range(ROUNDS):
            if not swap_each(state, taking, near):
                break
    found = np.empty_like(groups)
    found[order] = np.repeat(np.arange(len(centres)), np.diff(starts))
    return found


def nearest_groups(centres: Floats) -> Ints:
    """Return the positions of the nearest centroids of each centroid, its own among them, nearest first."""
    from scipy.spatial import cKDTree  # noqa: PLC0415 - slow to import

    found: Ints = cKDTree(centres).query(centres, min(NEIGHBOURS + 1, len(centres)))[1]
    return found


@inner
def best_swap(state: GroupState, one: Int, other: Int) -> tuple[Int, Int]:
    """Return the places in `order` of the two records whose swap gains most; -1 and -1 if none gains.

    If x leaves group A for B, and y leaves B for A, squared distances to the centroids a and b change by
    2 (y - x)(b - a) - |y - x|² (1 / |A| + 1 / |B|) in all.
    """
    points, order, starts, centres = state
    shrink = 1.0 / (starts[one + 1] - starts[one]) + 1.0 / (starts[other + 1] - starts[other])
    best, first, second = 0.0, np.int64(-1), np.int64(-1)
    for i in range(starts[one], starts[one + 1]):
        for j in range(starts[other], starts[other + 1]):
            along = squared = 0.0
            for c in range(points.shape[1]):
                step = points[order[j], c] - points[order[i], c]
                along += step * (centres[other, c] - centres[one, c])
                squared += step * step
            change = 2.0 * along - squared * shrink
            if change < best - LEAST * squared:
                best, first, second = change, np.int64(i), np.int64(j)
    return first, second


@kernel
def swap_each(state: GroupState, taking: Ints, near: Ints) -> Int:
    """Swap records of each of these groups with its neighbours, once; return the number of swaps."""
    points, order, starts, centres = state
    swaps = np.int64(0)
    for g in range(len(taking)):
        one = taking[g]
        for other in near[g]:
            if other == one:
                continue
            i, j = best_swap(state, one, other)
            if i < 0:
                continue
            for c in range(points.shape[1]):
                step = points[order[j], c] - points[order[i], c]
                centres[one, c] += step / (starts[one + 1] - starts[one])
                centres[other, c] -= step / (starts[other + 1] - starts[other])
            order[i], order[j] = order[j], order[i]
            swaps += 1
    return swaps
