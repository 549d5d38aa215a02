"""Exact MDAV on a file with missing cells: distances over the columns that both records have.

The groups are those of the textbook loop, bit for bit. Its centroid is the mean of the values left, added up
row after row. A squared distance is the sum over the columns that both have, scaled up to all columns;
records without a common column come last, whether near or far records are asked for. Of equal distances the
smallest row wins. The nearest records come from the tree, the farthest from a scan of all ungrouped records.
"""

from __future__ import annotations

from math import isnan, nan
from typing import NamedTuple

import numpy as np

from sdckit.arrays import Floats, Int, Ints
from sdckit.kernels.jit import uncounted, uncounted_inner
from sdckit.kernels.mdav.state import FORMED, LEFT, WORK, group_the_rest
from sdckit.kernels.mdav.tree import Tree, form_group

BLOCK = 256  # records whose distances are computed at once
PER_NODE = 16  # records that are scanned in the time that a search takes for a node


class Columns(NamedTuple):
    """The records that were ungrouped when the tree was built, in the order of the rows, for scans."""

    values: Floats  # column x record; NaN for a missing cell, and for all cells of a grouped record
    filled: Floats  # record x column; 0 there
    observed: Floats  # how many values of each column are left
    rows: Ints
    places: Ints  # where each row is kept
    distances: Floats  # of one block,
    shared: Floats  # and how many columns its records share with the point


def fill_columns(tree: Tree) -> Columns:
    """Return the ungrouped records, column by column."""
    rows = np.flatnonzero(tree.state.slots >= 0)
    places = np.empty(len(tree.state.slots), np.int64)
    places[rows] = np.arange(len(rows))
    values = np.ascontiguousarray(tree.state.points[rows].T)
    seen = ~np.isnan(values)
    return Columns(
        values=values,
        filled=np.where(seen, values, 0.0).T.copy(),
        observed=seen.sum(axis=1, dtype=np.float64),
        rows=rows,
        places=places,
        distances=np.empty(BLOCK),
        shared=np.empty(BLOCK),
    )


@uncounted_inner
def set_centroid(columns: Columns, centre: Floats) -> None:
    """Set the centroid to the mean of each column, added up row after row; NaN without any value."""
    filled, observed = columns.filled, columns.observed
    for j in range(len(centre)):
        centre[j] = 0.0
    for i in range(len(filled)):
        for j in range(len(centre)):
            centre[j] += filled[i, j]
    for j in range(len(centre)):
        centre[j] = centre[j] / observed[j] if observed[j] > 0 else nan


@uncounted_inner
def drop(columns: Columns, row: Int) -> None:
    """Remove a row that was grouped."""
    place = columns.places[row]
    for j in range(len(columns.values)):
        columns.observed[j] -= not isnan(columns.values[j, place])
        columns.values[j, place], columns.filled[place, j] = nan, 0.0


@uncounted_inner
def measure_block(columns: Columns, begin: Int, size: Int, point: Floats) -> None:
    """Write the squared distances of records to a point; -1 without a common column."""
    distances, shared, p = columns.distances, columns.shared, len(point)
    for i in range(size):
        distances[i] = shared[i] = 0.0
    for j in range(p):
        column = columns.values[j, begin : begin + size]
        for i in range(size):
            difference = column[i] - point[j]
            seen = not isnan(difference)
            distances[i] += difference * difference if seen else 0.0
            shared[i] += 1.0 if seen else 0.0
    for i in range(size):
        distances[i] = distances[i] * (p / shared[i]) if shared[i] > 0 else -1.0


@uncounted_inner
def find_farthest(columns: Columns, slots: Ints, point: Floats) -> Int:
    """Return the ungrouped row farthest from a point."""
    rows, distances = columns.rows, columns.distances
    best, found = -2.0, len(slots)
    for begin in range(0, len(rows), BLOCK):
        size = min(BLOCK, len(rows) - begin)
        measure_block(columns, begin, size, point)
        hits = 0
        for i in range(size):
            hits += distances[i] > best
        for i in range(size if hits > 0 else 0):
            if distances[i] > best and slots[rows[begin + i]] >= 0:
                best, found = distances[i], rows[begin + i]
    return found


@uncounted
def form_groups(tree: Tree, columns: Columns, k: int, work: int) -> bool:
    """Form groups; return True once all are formed, False after about `work` nodes."""
    state, counters = tree.state, tree.state.counters
    counters[WORK] = 0
    while counters[LEFT] >= 2 * k:
        if counters[WORK] >= work:
            return False
        sides = 2 if counters[LEFT] >= 3 * k else 1
        point = state.centres[0]
        set_centroid(columns, point)
        for _ in range(sides):
            row = find_farthest(columns, state.slots, point)
            point = state.points[row]
            form_group(tree, row, k)
            for i in range(k):
                drop(columns, state.group[i])
        counters[WORK] += 3 * len(columns.rows) // PER_NODE
    group_the_rest(state.slots, state.groups, counters[FORMED])
    return True
