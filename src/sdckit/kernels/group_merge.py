"""Merge groups that have too few values of a variable with the nearest groups that have some."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdckit import progress
from sdckit.kernels import kd_tree
from sdckit.kernels.jit import Floats, Int, Ints, inner, kernel

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
    tree = kd_tree.build(centres[numbers])
    ordered = numbers[tree.rows]
    return MergeState(
        tree.points,
        tree.starts,
        tree.low,
        tree.high,
        ordered,
        np.arange(len(ordered)),
        counts[ordered],
        np.empty(kd_tree.DEEP, np.int64),
        np.empty(kd_tree.DEEP),
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
