"""Exact MDAV by scans of the rounded copy, where no box keeps anybody out: many independent columns.

As in a flat file, the records left are kept in blocks, column by column, deleting moves the last record
into the hole, and one scan from a record finds both its nearest and its farthest companions.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Int, Ints, inlined, kernel
from sdckit.kernels.mdav.float32_copy import Rounded, Singles, far_limit, measure, near_limit, set_margin
from sdckit.kernels.mdav.state import (
    FORMED,
    LEFT,
    WORK,
    MdavState,
    clear_heap,
    finish,
    outermost,
    refresh,
    replace_largest,
    settle,
    squared_distance,
    worn,
)

WIDTH = 128  # records per block


class Filter(NamedTuple):
    """The records left, in blocks; empty slots hold NaN, which is neither near nor far."""

    state: MdavState
    rounded: Rounded
    blocks: Singles  # block x column x slot
    rows: Ints  # the row in each slot of the blocks
    distances: Singles  # of one block


def lay_out(state: MdavState, rounded: Rounded) -> Filter:
    """Put the records left into blocks."""
    rows = np.flatnonzero(state.slots >= 0)
    state.slots[rows] = np.arange(len(rows))
    padded = np.full((-(-len(rows) // WIDTH) * WIDTH, state.points.shape[1]), np.nan, np.float32)
    padded[: len(rows)] = rounded.points[rows]
    set_margin(rounded, float(np.nanmax(np.abs(padded))))
    blocks = np.ascontiguousarray(padded.reshape(-1, WIDTH, padded.shape[1]).transpose(0, 2, 1))
    return Filter(state, rounded, blocks, np.resize(rows, len(padded)), np.empty(WIDTH, np.float32))


def advance(store: Filter, k: int, work: int) -> bool:
    """Form groups until about `work` blocks were looked at; True once every record has its group."""
    refresh(store.state)
    return form_groups(store, k, work)


@inlined
def scan(store: Filter, row: Int, size: int, far: float) -> Int:
    """Fill the heap with the `size` records nearest to `row`; return the farthest if beyond `far`."""
    state, distances, margin = store.state, store.distances, store.rounded.margin
    near, group = state.near, state.group
    clear_heap(near, group, size, len(state.slots))
    farthest = len(state.slots)
    point, query = state.points[row], store.rounded.points[row]
    closest, widest = np.float32(inf), np.float32(far)
    for b in range((state.counters[LEFT] + WIDTH - 1) // WIDTH):
        if measure(store.blocks[b], query, closest, widest, distances, WIDTH) == 0:
            continue
        for i in range(WIDTH):
            if distances[i] <= closest or distances[i] >= widest:
                other = store.rows[b * WIDTH + i]
                distance = squared_distance(state.points, other, point)
                if distance < near[0] or (distance == near[0] and other < group[0]):
                    replace_largest(near, group, size, distance, other)
                    closest = near_limit(margin, near[0])
                if distance > far or (distance == far and other < farthest):
                    far, farthest = distance, other
                    widest = far_limit(margin, far)
    return farthest


@inlined
def delete(store: Filter, row: Int) -> None:
    """Take `row` out of the blocks: the last record moves into its slot."""
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


@kernel
def form_groups(store: Filter, k: int, work: int) -> bool:
    """Form groups until all are formed (True), or the `work` is done or the list is worn out (False)."""
    state = store.state
    counters = state.counters
    counters[WORK] = 0
    while counters[LEFT] >= 2 * k:
        if counters[WORK] >= work or worn(counters):
            return False
        row = outermost(state, len(state.slots))
        for side in range(2 if counters[LEFT] >= 3 * k else 1):
            counters[WORK] += counters[LEFT] // WIDTH
            slot = state.slots[row]
            store.blocks[slot // WIDTH, 0, slot % WIDTH] = np.nan  # the record itself is neither near nor far
            farthest = scan(store, row, k - 1, inf if side else -1.0)
            settle(state, row, k)
            for i in range(k):
                delete(store, state.group[i])
            row = farthest
            if side == 0 and state.slots[row] < 0:
                # The farthest is in the group only if all the others are as far: the smallest row is next.
                row = len(state.slots)
                for i in range(counters[LEFT]):
                    row = min(row, store.rows[i])
    finish(state.slots, state.groups, counters[FORMED])
    return True
