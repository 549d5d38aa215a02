"""Swap records between neighbouring groups wherever this brings the records of groups closer together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Floats, Int, Ints, inner, kernel

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
