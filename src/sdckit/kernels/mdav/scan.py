"""Exact MDAV by scans of the float32 copy, for many independent columns, where a tree rules out little.

As in a flat file, the ungrouped records are kept in blocks, column by column, deleting moves the last record
into the hole, and one scan from a record finds both its nearest and its farthest companions.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from sdckit.arrays import Int, Ints, Singles
from sdckit.kernels.jit import inlined, uncounted
from sdckit.kernels.mdav.state import (
    FORMED,
    LANES,
    LEFT,
    WORK,
    MdavState,
    RoundedCopy,
    clear_heap,
    far_limit,
    farthest_from_centroid,
    group_the_rest,
    lanes_beyond,
    lanes_within,
    lowest_lane,
    near_limit,
    needs_resort,
    number_group,
    record_distances,
    replace_largest,
    resort_if_needed,
    set_absolute_margin,
    squared_distance,
)

WIDTH = 128  # records per block


class BlockStore(NamedTuple):
    """The ungrouped records, in blocks; empty slots hold NaN, which is neither near nor far."""

    state: MdavState
    rounded: RoundedCopy
    blocks: Singles  # block x column x slot
    rows: Ints  # the row in each slot of the blocks
    distances: Singles  # of one block


def fill_blocks(state: MdavState, rounded: RoundedCopy) -> BlockStore:
    """Return the ungrouped records, copied into blocks of the float32 copy."""
    rows = np.flatnonzero(state.slots >= 0)
    state.slots[rows] = np.arange(len(rows))
    padded = np.full((-(-len(rows) // WIDTH) * WIDTH, state.points.shape[1]), np.nan, np.float32)
    padded[: len(rows)] = rounded.points[rows]
    set_absolute_margin(rounded, float(np.nanmax(np.abs(padded))))
    blocks = np.ascontiguousarray(padded.reshape(-1, WIDTH, padded.shape[1]).transpose(0, 2, 1))
    return BlockStore(state, rounded, blocks, np.resize(rows, len(padded)), np.empty(WIDTH, np.float32))


def advance(store: BlockStore, k: int, work: int) -> bool:
    """Form groups until about `work` blocks were scanned; return True once every record has its group."""
    resort_if_needed(store.state)
    return form_groups(store, k, work)


@inlined
def scan_blocks(store: BlockStore, row: Int, size: int, far: float) -> Int:
    """Fill the heap with the `size` records nearest to `row`; return the one farthest away, beyond `far`."""
    state, distances, margin = store.state, store.distances, store.rounded.margin
    near, group = state.near, state.group
    clear_heap(near, group, size, len(state.slots))
    farthest = len(state.slots)
    point, query = state.points[row], store.rounded.points[row]
    closest, widest = np.float32(inf), np.float32(far)
    for slot in range(0, state.counters[LEFT], LANES):
        lane = slot % WIDTH
        record_distances(store.blocks[slot // WIDTH], lane, query, distances)
        lanes = lanes_within(distances, lane, closest) | lanes_beyond(distances, lane, widest)
        while lanes > 0:
            i = lowest_lane(lanes)
            lanes &= lanes - 1
            if distances[lane + i] <= closest or distances[lane + i] >= widest:
                other = store.rows[slot + i]
                distance = squared_distance(state.points, other, point)
                if distance < near[0] or (distance == near[0] and other < group[0]):
                    replace_largest(near, group, size, distance, other)
                    closest = near_limit(margin, near[0])
                if distance > far or (distance == far and other < farthest):
                    far, farthest = distance, other
                    widest = far_limit(margin, far)
    return farthest


@inlined
def delete(store: BlockStore, row: Int) -> None:
    """Remove `row` from the blocks of ungrouped records: the last record moves into its slot."""
    slots, counters, blocks = store.state.slots, store.state.counters, store.blocks
    counters[LEFT] -= 1
    last = counters[LEFT]
    slot = slots[row]
    for j in range(blocks.shape[1]):
        blocks[slot // WIDTH, j, slot % WIDTH] = blocks[last // WIDTH, j, last % WIDTH]
    blocks[last // WIDTH, 0, last % WIDTH] = np.nan
    store.rows[slot] = store.rows[last]
    slots[store.rows[last]] = slot
    slots[row] = -1


@uncounted
def form_groups(store: BlockStore, k: int, work: int) -> bool:
    """Form groups; return True once all are formed, False after `work` blocks or when a new sort is due."""
    state = store.state
    counters = state.counters
    counters[WORK] = 0
    while counters[LEFT] >= 2 * k:
        if counters[WORK] >= work or needs_resort(counters):
            return False
        row = farthest_from_centroid(state, len(state.slots))
        for side in range(2 if counters[LEFT] >= 3 * k else 1):
            counters[WORK] += counters[LEFT] // WIDTH
            slot = state.slots[row]
            store.blocks[slot // WIDTH, 0, slot % WIDTH] = np.nan  # the record itself is neither near nor far
            farthest = scan_blocks(store, row, k - 1, inf if side else -1.0)
            number_group(state, row, k)
            for i in range(k):
                delete(store, state.group[i])
            row = farthest
            if side == 0 and state.slots[row] < 0:
                # The farthest is in the group only if all the others are as far: the smallest row is next.
                row = len(state.slots)
                for i in range(counters[LEFT]):
                    row = min(row, store.rows[i])
    group_the_rest(state.slots, state.groups, counters[FORMED])
    return True
