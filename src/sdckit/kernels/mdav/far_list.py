"""The record farthest from a point, by the list of ungrouped records sorted by distance to a centroid.

No record is farther from the point than its distance to the centroid plus that of the point: a scan of the
list, largest distance first, ends where this sum falls below the largest distance found. MDAV groups outer
records first and the point is an outer one: the record opposite ends the scan early, and scans of the same
blocks follow each other, which stay in the CPU's cache.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Floats, Int, Ints, Singles, inlined, uncounted, uncounted_inner
from sdckit.kernels.mdav.float32_copy import RoundedCopy, far_limit, measure_block
from sdckit.kernels.mdav.state import HEAD, LEFT, LISTED, LOOKED, SLACK, TINY, MdavState, squared_distance

WIDTH = 64  # records per block
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
    size = -(-n // WIDTH)
    return FarList(
        np.empty((size, p, WIDTH), np.float32),
        np.zeros(size, np.int64),
        np.zeros(n, np.int64),
        np.empty(WIDTH, np.float32),
        np.array([PATIENCE]),
    )


@uncounted
def fill_list(far: FarList, state: MdavState, points: Singles) -> None:
    """Copy the records of the sorted list, all of which are ungrouped, into blocks."""
    left = state.counters[LEFT]
    for block in range((left + WIDTH - 1) // WIDTH):
        far.counts[block] = min(WIDTH, left - block * WIDTH)
        for i in range(WIDTH):
            far.blocks[block, 0, i] = np.nan
    for place in range(left):
        row = state.order[place]
        far.places[row] = place
        for j in range(points.shape[1]):
            far.blocks[place // WIDTH, j, place % WIDTH] = points[row, j]


@inlined
def drop_from_list(far: FarList, row: Int) -> None:
    """Mark a row as grouped."""
    block = far.places[row] // WIDTH
    far.blocks[block, 0, far.places[row] % WIDTH] = np.nan
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
    for block in range(counters[HEAD] // WIDTH, (counters[LISTED] + WIDTH - 1) // WIDTH):
        if (state.reach[block * WIDTH] + offset) * SLACK + TINY < bound or patience == 0:
            break
        count = far.counts[block]
        if count == 0:
            continue
        patience -= 1
        dead += WIDTH - count
        hits = measure_block(far.blocks[block], rounded.query, np.float32(-1), limit, far.distances, WIDTH)
        for i in range(WIDTH if hits > 0 else 0):
            if far.distances[i] >= limit:
                row = order[block * WIDTH + i]
                distance = squared_distance(state.points, row, point)
                if distance > best or (distance == best and row < found):
                    best, found, bound = distance, row, sqrt(distance)
                    limit = far_limit(rounded.margin, best)
    counters[LOOKED] += dead // DEAD
    return best, found, patience
