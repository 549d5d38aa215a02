"""Merge groups that have too few values of a variable with the nearest groups that have some."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdckit import progress
from sdckit.kernels.jit import Floats, Int, Ints, inner, kernel

STEP = 20_000_000  # pairs of groups compared between two checks for Ctrl-C: a fraction of a second


class MergeState(NamedTuple):
    """Groups with a value of one variable, sorted by one coordinate of their centroids."""

    centres: Floats  # centroids in the other variables
    line: Floats  # the coordinate by which they are sorted
    numbers: Ints  # the group's number, which decides between equal distances
    parents: Ints  # position of another group of the same merged group; a root has its own position
    counts: Ints  # values in the merged group, right for roots only


def merge_small_groups(centres: Floats, counts: Ints, k: int) -> Ints:
    """Return a merged group's number for each group, so that each has k or more values, or none.

    `centres` has the groups' centroids, without missing cells, `counts` their values of one variable. In
    the order of their numbers, each group with 1 to k - 1 values is merged with the group nearest to it that
    has a value, and with all groups that this one was merged with, until there are k values. Of equal
    distances the smallest number wins. A merged group has the smallest number of its groups.
    """
    numbers = np.flatnonzero(counts)
    merged = np.arange(len(counts))
    if len(numbers) == 0:
        return merged
    used = centres[numbers]
    line = used[:, np.argmax(np.ptp(used, axis=0))] if used.shape[1] else np.zeros(len(used))
    order = np.argsort(line, kind="stable")
    state = MergeState(
        np.ascontiguousarray(used[order]),
        line[order],
        numbers[order],
        np.arange(len(order)),
        counts[numbers[order]],
    )
    positions = np.argsort(order, kind="stable")  # from the smallest number to the largest
    small = positions[counts[numbers] < k]
    with progress.track("merging groups", len(small)) as report:
        step = max(1, STEP // len(order))
        for begin in range(0, len(small), step):
            merge_each(state, small[begin : begin + step], k)
            report(min(begin + step, len(small)))
    merged[state.numbers] = merged_numbers(state)
    return merged


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
def nearest_outside(state: MergeState, position: Int) -> Int:
    """Return the position of the nearest group that is not merged with this one; -1 if there is none.

    Groups are visited outwards along the sorted coordinate, on each side until it alone is farther away
    than the nearest group so far.
    """
    own, best, found = root_of(state.parents, position), np.inf, -1
    for direction in (-1, 1):
        other = position + direction
        while 0 <= other < len(state.line):
            gap = state.line[other] - state.line[position]
            if gap * gap > best:
                break
            distance = squared_distance(state.centres, position, other, best)
            nearer = distance < best or (
                distance == best and (found < 0 or state.numbers[other] < state.numbers[found])
            )
            if nearer and root_of(state.parents, other) != own:
                best, found = distance, other
            other += direction
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
