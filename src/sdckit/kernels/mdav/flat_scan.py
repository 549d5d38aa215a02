"""Exact MDAV on a small complete file: each group is found by one scan of all ungrouped records.

The groups are those of the textbook loop, bit for bit: the centroid is a running sum divided by a
count, squared Euclidean distances are added up column by column in float64, and every tie goes to
the smallest row number. Three ideas make it fast.

- The records left are kept in blocks of 64, column by column, so that a scan works on many records
  at once while each record's sum keeps its order. Deleting moves the last record into the hole.
- One scan from a record finds both its nearest and its farthest companions.
- The record farthest from the centroid comes from a list sorted by the distance to an *earlier*
  centroid: no record can be farther from the new one than that distance plus the drift between the two.

The list is that of `state`, with all state in one tuple: in a small file calls take most of the time.

Kernels do a limited number of rounds per call, so the caller can report progress and be interrupted.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Floats, Ints, inlined, kernel
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
    replace_largest,
    sort_rows,
    squared_distance,
)

WIDTH = 64  # records per block


class FlatState(NamedTuple):
    """The state of MDAV on a complete file, between calls of `advance`.

    A block's empty slots hold NaN in their first column: NaN loses every comparison, so they are
    neither near nor far.
    """

    points: Floats  # rows x columns, standardised by the caller
    blocks: Floats  # block x column x 64: the ungrouped records
    rows: Ints  # the row in each slot of the blocks
    slots: Ints  # the slot of each row, -1 once it is grouped
    total: Floats  # column sums of the ungrouped records
    centres: Floats  # the present centroid, and the one by which the list is sorted
    reach: Floats  # distances to the latter, largest first
    order: Ints  # the rows in that order
    near: Floats  # heap of the smallest distances seen in a scan, largest on top
    group: Ints  # the rows in that heap; a group being formed
    distances: Floats  # of one block
    groups: Ints  # the answer: a group number for each row
    counters: Ints


def start(points: Floats, k: int) -> FlatState:
    """Return the initial MDAV state for points without missing cells (n >= k >= 2)."""
    n, p = points.shape
    padded = np.full((-(-n // WIDTH) * WIDTH, p), np.nan)
    padded[:n] = points
    return FlatState(
        points=np.ascontiguousarray(points),
        blocks=np.ascontiguousarray(padded.reshape(-1, WIDTH, p).transpose(0, 2, 1)),
        rows=np.arange(len(padded)),
        slots=np.arange(n),
        total=np.cumsum(points, axis=0)[-1],  # row after row, as the running sum goes on
        centres=np.empty((2, p)),
        reach=np.empty(len(padded)),
        order=np.empty(n, np.int64),
        near=np.empty(k),
        group=np.empty(k, np.int64),
        distances=np.empty(WIDTH),
        groups=np.empty(n, np.int64),
        counters=np.array([n, 0, 0, 0, RESORT * (n + FEW) + 1]),
    )


def advance(flat: FlatState, k: int, rounds: int) -> bool:
    """Run at most `rounds` rounds of two groups each; return True once every record has its group."""
    if flat.counters[LOOKED] > RESORT * (flat.counters[LEFT] + FEW):
        resort(flat)
    return form_groups(flat, k, rounds)


def resort(flat: FlatState) -> None:
    """Sort the ungrouped records in place by their distance to their own mean, largest first."""
    left = int(flat.counters[LEFT])
    flat.centres[1] = flat.total / left
    all_distances(flat.blocks[: -(-left // WIDTH)], flat.centres[1], flat.reach)
    distances = np.sqrt(flat.reach[:left])
    order = np.argsort(-distances)
    flat.reach[:left] = distances[order]
    flat.order[:left] = flat.rows[:left][order]
    flat.counters[HEAD:] = 0, left, 0


@inlined
def farthest_from_centroid(flat: FlatState) -> int:
    """Return the row of the record farthest from the centroid of the ungrouped records."""
    counters = flat.counters
    centre = flat.centres[0]
    for j in range(len(centre)):
        centre[j] = flat.total[j] / counters[LEFT]
    drift = sqrt(squared_distance(flat.centres, 1, centre))
    while flat.slots[flat.order[counters[HEAD]]] < 0:
        counters[HEAD] += 1
    best, found, bound = -1.0, len(flat.slots), -1.0
    for i in range(counters[HEAD], counters[LISTED]):
        if (flat.reach[i] + drift) * SLACK + TINY < bound:
            break
        counters[LOOKED] += 1
        row = flat.order[i]
        if flat.slots[row] >= 0:
            distance = squared_distance(flat.points, row, centre)
            if distance > best or (distance == best and row < found):
                best, found, bound = distance, row, sqrt(distance)
    return found


@inlined
def block_distances(block: Floats, point: Floats, distances: Floats) -> None:
    """Write the squared distances of a block's records to `point`, two columns per pass."""
    for i in range(WIDTH):
        distances[i] = 0.0
    for j in range(0, len(point) - 1, 2):
        for i in range(WIDTH):
            one = block[j, i] - point[j]
            two = block[j + 1, i] - point[j + 1]
            distances[i] = distances[i] + one * one + two * two
    if len(point) % 2 == 1:
        for i in range(WIDTH):
            one = block[len(point) - 1, i] - point[len(point) - 1]
            distances[i] += one * one


@kernel
def all_distances(blocks: Floats, point: Floats, distances: Floats) -> None:
    """Write the squared distances of the records in all blocks to `point`."""
    for b in range(len(blocks)):
        block_distances(blocks[b], point, distances[b * WIDTH : (b + 1) * WIDTH])


@inlined
def scan_blocks(flat: FlatState, row: int, size: int, far: float) -> int:
    """Fill the heap with the `size` records nearest to `row`; return the one farthest away, beyond `far`."""
    near, group, distances = flat.near, flat.group, flat.distances
    for i in range(size):
        near[i], group[i] = inf, len(flat.slots)
    farthest = len(flat.slots)
    point = flat.points[row]
    for b in range((flat.counters[LEFT] + WIDTH - 1) // WIDTH):
        block_distances(flat.blocks[b], point, distances)
        nearest = near[0]
        hits = 0
        for i in range(WIDTH):
            hits += (distances[i] <= nearest) | (distances[i] >= far)
        if hits == 0:
            continue
        for i in range(WIDTH):
            distance = distances[i]
            if distance <= nearest or distance >= far:
                other = flat.rows[b * WIDTH + i]
                if distance < nearest or (distance == nearest and other < group[0]):
                    replace_largest(near, group, size, distance, other)
                    nearest = near[0]
                if distance > far or (distance == far and other < farthest):
                    far, farthest = distance, other
    return farthest


@inlined
def delete(flat: FlatState, row: int) -> None:
    """Remove `row` from the blocks of ungrouped records: the last record moves into its slot."""
    flat.counters[LEFT] -= 1
    last = flat.counters[LEFT]
    slot = flat.slots[row]
    for j in range(flat.blocks.shape[1]):
        flat.blocks[slot // WIDTH, j, slot % WIDTH] = flat.blocks[last // WIDTH, j, last % WIDTH]
    flat.blocks[last // WIDTH, 0, last % WIDTH] = np.nan
    flat.rows[slot] = flat.rows[last]
    flat.slots[flat.rows[last]] = slot
    flat.slots[row] = -1


@inlined
def form_group(flat: FlatState, row: int, k: int, far: float) -> int:
    """Group `row` with its k - 1 nearest records; return the farthest other record if `far` is -1.

    With an infinite `far` no farthest record is searched for, and the result has no meaning.
    """
    slot = flat.slots[row]
    flat.blocks[slot // WIDTH, 0, slot % WIDTH] = np.nan  # the record itself is neither near nor far
    farthest = scan_blocks(flat, row, k - 1, far)
    flat.group[k - 1] = row
    sort_rows(flat.group, k)
    for i in range(k):
        member = flat.group[i]
        flat.groups[member] = flat.counters[FORMED]
        for j in range(len(flat.total)):
            flat.total[j] -= flat.points[member, j]
        delete(flat, member)
    flat.counters[FORMED] += 1
    if far < inf and flat.slots[farthest] < 0:
        # The farthest is in the group only if all the others are as far: the smallest row is next.
        farthest = len(flat.slots)
        for i in range(flat.counters[LEFT]):
            farthest = min(farthest, flat.rows[i])
    return farthest


@kernel
def form_groups(flat: FlatState, k: int, rounds: int) -> bool:
    """Form groups; return True once all are formed, False after `rounds` or when a new sort is due."""
    counters = flat.counters
    while counters[LEFT] >= 2 * k:
        if rounds == 0 or counters[LOOKED] > RESORT * (counters[LEFT] + FEW):
            return False
        rounds -= 1
        row = farthest_from_centroid(flat)
        for side in range(2 if counters[LEFT] >= 3 * k else 1):
            row = form_group(flat, row, k, inf if side else -1.0)
    for i in range(counters[LEFT]):
        flat.groups[flat.rows[i]] = counters[FORMED]
    return True
