"""k-d trees that count: the records closer to a query than its true record, and those that facts leave.

A linkage attack does not need the nearest neighbour itself. The distance to the true record is known, so
a search stops at the first record that is closer; under strong masking this is nearly at once. Records at
the same distance are counted only where no record is closer.

A `Forest` has one tree for the records of each block that miss the same cells. Its records have intervals
beside their values, and nodes the smallest box around both. A tree is balanced: every node halves its records
at the median of its widest side, and records are stored in the order of the leaves. Patterns of missing cells
that few records of a block share are put into one tree, whose boxes are unbounded where a cell is missing.
Within a leaf, records are stored column after column, so that a scan works on many records at once.

Kernels read the arrays of a tree once, and get scratch arrays from their caller: both compile much faster
than an access to the tree for every value, and than allocating memory.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.arrays import Bools, Floats, Int, Ints, UInt64s
from sdckit.kernels.jit import inlined, inner, kernel, uncounted
from sdckit.progress import STOPPING, each

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 64  # most records in a leaf
PART = 20_000  # queries per task where there are many
SAMPLE = 64  # values from which a median is estimated
DEEP = 128  # size of the stack of nodes to visit; a tree of 2**60 records needs less


@inner
def _pivot(points: Floats, axis: Int, left: int, right: int, middle: int, sample: Floats) -> float:
    """Return a value near the one that will be at position `middle`, estimated from a small sample."""
    size = right - left + 1
    count = min(len(sample), size // len(sample))
    if count < 3:
        return points[(left + right) // 2, axis]
    for k in range(count):  # sorted by insertion: np.sort would take long to compile
        value = points[left + (2 * k + 1) * size // (2 * count), axis]
        i = k
        while i > 0 and sample[i - 1] > value:
            sample[i] = sample[i - 1]
            i -= 1
        sample[i] = value
    return sample[(middle - left) * count // size]


@inner
def partition_at(
    points: Floats, rows: Ints, axis: Int, first: int, last: int, middle: int, sample: Floats
) -> None:
    """Reorder records first..last-1 in place so that position `middle` has its value in sorted order."""
    left, right = first, last - 1
    while left < right:
        pivot = _pivot(points, axis, left, right, middle, sample)
        i, j = left, right
        while i <= j:
            while points[i, axis] < pivot:
                i += 1
            while points[j, axis] > pivot:
                j -= 1
            if i <= j:
                for c in range(points.shape[1]):
                    points[i, c], points[j, c] = points[j, c], points[i, c]
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            break


def order_by_place(rows: Ints, truth: Ints) -> tuple[Ints, Ints]:
    """Return the queries in the order of their true records in a tree, and the place of each row there.

    `rows` are the rows in the order of the tree, `truth` the true row of each query.
    """
    place = np.empty(rows.size, np.int64)
    place[rows] = np.arange(rows.size)
    if truth.size == rows.size and bool((np.bincount(truth, minlength=rows.size) == 1).all()):
        query_of = np.empty_like(truth)
        query_of[truth] = np.arange(truth.size)
        return query_of[rows], place  # without sorting
    return np.argsort(place[truth]), place


def in_parts(n: int, work: Callable[[int, int], None], size: int = PART) -> None:
    """Call `work(begin, end)` for slices of n rows: at once if few, else in parallel with progress."""
    if n < 2 * size:
        work(0, n)
        return
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        parts = [pool.submit(work, begin, min(begin + size, n)) for begin in range(0, n, size)]
        for task in each("linking", parts):
            task.result()
            if STOPPING.is_set():  # Ctrl-C raises in the main thread only
                raise KeyboardInterrupt
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C only the running parts are finished


RARE = 24  # fewest records of a block for a tree of their own
FEW = 128  # records that are compared one by one rather than divided into further sets
SETS = 16  # of records with common cells
TYPICAL = 1_000  # records from which spreads are estimated


class Forest(NamedTuple):
    """Trees over the records of a file, group by group; a group's nodes and records are contiguous.

    A tree's node i, counted from its root, has the children 2i + 1 and 2i + 2.
    """

    columns: Floats  # flat, leaf after leaf: values, lower and upper ends of intervals, each record by record
    rows: Ints  # the row of each record in the data
    leaf: Ints  # the leaf node of each record
    starts: Ints  # node x 2: where its records begin and end
    axis: Ints  # the variable at which a node is split
    cut: Floats  # the value at which it is split; NaN where it does not separate the values themselves
    low: Floats  # node x (variable, interval): the smallest box around values and intervals
    high: Floats
    last_low: Floats  # node x interval: the largest lower end
    first_high: Floats  # node x interval: the smallest upper end
    tree: Ints  # the group of each node
    roots: Ints  # the first node of each group, and the number of all nodes
    family: Ints  # group x 2: the groups of the same block, the first and the one after the last
    blocks: Ints  # the block of each group
    order: Ints  # group x variable: those of which a record has a value, split ones last; -1 for the others
    mixed: Bools  # the group's records miss different cells


def build_forest(points: Floats, blocks: Ints, low: Floats, high: Floats) -> Forest:
    """Return the forest of records with block numbers, and with the ends of intervals (record x interval)."""
    p, q = points.shape[1], low.shape[1]
    keys = _split_keys(points, low, high) if q else points
    missing = np.isnan(keys)
    labels, gaps = blocks, bool(missing.any())
    if gaps:
        code, columns = _cover(missing)
        labels = _labels(blocks, code)
        keys = np.where(columns[labels % len(columns)], keys, 0.0)
    rows = _sorted_by_label(labels)
    first = np.flatnonzero(np.diff(labels[rows], prepend=labels[rows[:1]] - 1))
    forest = _empty_forest(rows, first, blocks[rows[first]], p, q)
    if gaps:
        split = columns[labels[rows[first]] % len(columns), :p]
        _note_patterns(forest, missing[rows, :p], first, split)

    def grow(begin: int, end: int) -> None:
        """Build the trees of the groups that begin among the records begin..end-1."""
        groups = np.searchsorted(first, (begin, end))
        part = slice(*np.append(first, rows.size)[groups])
        ordered, scratch = keys.take(rows[part], axis=0), (np.empty(DEEP, np.int64), np.empty(SAMPLE))
        _split_groups(forest, ordered, p, groups, scratch)
        if gaps or q:
            parts = [values.take(rows[part], axis=0) for values in (points, low, high)]
            ordered = np.hstack(parts)
        _fit_groups(forest, ordered, p, groups)

    in_parts(rows.size, grow)
    return forest


def _sorted_by_label(labels: Ints) -> Ints:
    """Return the rows in the order of their labels, equal ones in the order of the rows."""
    least, bits = labels.min(), int(labels.size).bit_length()
    if int(labels.max()) - int(least) >= 2 ** (63 - bits):
        return np.argsort(labels, kind="stable")
    packed = (labels - least) << bits
    packed |= np.arange(labels.size)
    packed.sort()  # much faster than np.argsort
    packed &= 2**bits - 1
    return packed


def _split_keys(points: Floats, low: Floats, high: Floats) -> Floats:
    """Return the values by which records are split: those of the points, and the middles of the intervals.

    Middles are scaled so that they vary as much as the points do. Those of unbounded intervals are NaN.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        middle = low / 2 + high / 2  # NaN if unbounded
        middle = np.where(np.isinf(middle), np.where(np.isinf(low), high, low), middle)
        middle[np.isinf(middle)] = np.nan
        spread = _spreads(middle)
        middle *= np.divide(_spreads(points).mean() if points.size else 1.0, spread)
    return np.hstack([points, middle])


def _spreads(values: Floats) -> Floats:
    """Return about the standard deviation of each column; infinite if it is 0 or not a number."""
    some = values[:: max(len(values) // TYPICAL, 1)]
    found = np.where(np.isnan(some), 0.0, some).std(axis=0)
    return np.where(found > 0, found, np.inf)


def _cover(missing: Bools) -> tuple[Ints, Bools]:
    """Return a set number for each record, and set x column: cells that all records of a set have.

    Each set takes the records that have all cells of some columns, chosen so that they are many records
    and many columns. The last set is that of the remaining records, which need not share any cell.
    """
    code = np.full(len(missing), -1)
    columns: list[Bools] = []
    left = np.arange(len(missing))
    while left.size > FEW and len(columns) < SETS:
        lack = missing[left]
        order = np.argsort(lack.sum(axis=0), kind="stable")
        lacking = np.logical_or.accumulate(lack[:, order], axis=1)
        have = left.size - lacking.sum(axis=0)
        levels = max(np.log2(left.size / WIDTH), 1.0)
        size = have.size - np.argmax((have * np.minimum(np.arange(have.size) + 1, levels))[::-1])
        if not have[size - 1]:
            break
        code[left[~lacking[:, size - 1]]] = len(columns)
        columns.append(np.isin(np.arange(order.size), order[:size]))
        left = left[lacking[:, size - 1]]
    code[left] = len(columns)
    return code, np.array([*columns, np.zeros(missing.shape[1], np.bool_)])


def _labels(blocks: Ints, code: Ints) -> Ints:
    """Return group numbers, ordered by block: one for each set of records, one for all small sets."""
    sets = code.max() + 1
    one = bool((blocks == blocks[0]).all())
    labels = code + (0 if one else np.unique(blocks, return_inverse=True)[1] * sets)
    if one:
        count = np.bincount(code)[code]
    else:
        group, sizes = np.unique(labels, return_inverse=True, return_counts=True)[1:]
        count = sizes[group]
    return labels + np.where(count < RARE, sets - 1 - code, 0)


def _empty_forest(rows: Ints, first: Ints, blocks: Ints, p: int, q: int) -> Forest:
    """Return a forest of complete records whose groups begin at those given, with nodes to be filled."""
    sizes = np.diff(first, append=rows.size)
    depth = np.ceil(np.log2(np.maximum(sizes / WIDTH, 1))).astype(np.int64)
    roots = np.append(0, np.cumsum(2 ** (depth + 1) - 1))
    nodes, groups = roots[-1], first.size
    starts = np.empty((nodes, 2), np.int64)
    starts[roots[:-1]] = np.stack([first, first + sizes], axis=1)
    heads = np.flatnonzero(np.diff(blocks, prepend=blocks[:1] - 1))
    ends = np.append(heads[1:], groups)
    return Forest(
        np.empty(rows.size * (p + 2 * q)),
        rows,
        np.empty(rows.size, np.int64),
        starts,
        np.zeros(nodes, np.int64),
        np.empty(nodes),
        np.empty((nodes, p + q)),
        np.empty((nodes, p + q)),
        np.empty((nodes, q)),
        np.empty((nodes, q)),
        np.repeat(np.arange(groups), np.diff(roots)),
        roots,
        np.repeat(np.stack([heads, ends], axis=1), ends - heads, axis=0),
        blocks,
        np.tile(np.arange(p), (groups, 1)),
        np.zeros(groups, np.bool_),
    )


def _note_patterns(forest: Forest, missing: Bools, first: Ints, split: Bools) -> None:
    """Note which cells the records of each group have, given those they miss in the order of the groups.

    `split` (group x variable) is True where the group's tree splits: records of a leaf differ most in the
    other variables, which come first.
    """
    none, some = (each.reduceat(missing, first) for each in (np.logical_and, np.logical_or))
    order = np.argsort(split, axis=1, kind="stable")
    forest.order[:] = np.where(np.take_along_axis(none, order, axis=1), -1, order)
    np.logical_and(some, ~none).any(axis=1, out=forest.mixed)


@kernel
def _split_groups(forest: Forest, keys: Floats, p: int, groups: Ints, scratch: tuple[Ints, Floats]) -> None:
    """Split the trees of some groups at medians of their widest sides; `keys` are those of their records.

    The widest side is that of a box cut from the parent's, which needs no pass over the records.
    """
    rows, leaf, starts, axes, cuts = forest.rows, forest.leaf, forest.starts, forest.axis, forest.cut
    low, high, roots = forest.low, forest.high, forest.roots
    stack, sample = scratch
    begin = starts[roots[groups[0]], 0] if groups[0] < groups[1] else 0
    own = rows[begin : begin + len(keys)]
    for group in range(groups[0], groups[1]):
        root, nodes = roots[group], roots[group + 1] - roots[group]
        if nodes > 1:
            _find_box(keys, starts[root, 0] - begin, starts[root, 1] - begin, low[root], high[root])
        stack[0] = root
        size = 1
        while size > 0:
            size -= 1
            node = stack[size]
            first, last = starts[node, 0], starts[node, 1]
            child = 2 * node - root + 1
            if child >= root + nodes:
                for i in range(first, last):
                    leaf[i] = node
                continue
            axis: Int = np.int64(0)
            for j in range(1, keys.shape[1]):
                if high[node, j] - low[node, j] > high[node, axis] - low[node, axis]:
                    axis = j
            middle = (first + last) // 2
            partition_at(keys, own, axis, first - begin, last - begin, middle - begin, sample)
            cut = keys[middle - begin, axis]
            separates = axis < p and high[node, axis] > low[node, axis]
            axes[node], cuts[node] = (axis, cut) if separates else (0, np.nan)
            for k in range(child, child + 2):
                for j in range(keys.shape[1]):
                    low[k, j], high[k, j] = low[node, j], high[node, j]
                starts[k, 0], starts[k, 1] = first, last
                stack[size] = k
                size += 1
            high[child, axis] = low[child + 1, axis] = cut
            starts[child, 1] = starts[child + 1, 0] = middle


@inlined
def _find_box(keys: Floats, first: int, last: int, low: Floats, high: Floats) -> None:
    """Write the corners of the smallest box around records first..last-1."""
    for j in range(keys.shape[1]):
        low[j], high[j] = keys[first, j], keys[first, j]
    for i in range(first, last):
        for j in range(keys.shape[1]):
            low[j], high[j] = min(low[j], keys[i, j]), max(high[j], keys[i, j])


Ends = tuple[Floats, Floats, Floats, Floats]  # low, high, last_low and first_high of a forest


@inlined
def _fill_forest_leaf(records: Floats, p: int, node: Int, ends: Ends, columns: Floats) -> None:
    """Copy the records of a leaf into its columns, and write the corners of the smallest box around them."""
    low, high, last_low, first_high = ends
    size, q = len(records), last_low.shape[1]
    for c in range(records.shape[1]):
        least, most = np.inf, -np.inf
        for i in range(size):
            value = records[i, c]
            columns[c * size + i] = value
            missing = value != value  # noqa: PLR0124 - true for NaN
            least = -np.inf if missing else min(least, value)
            most = np.inf if missing else max(most, value)
        if c < p + q:
            low[node, c] = least
        if c < p:
            high[node, c] = most
        elif c < p + q:
            last_low[node, c - p] = most
        else:
            first_high[node, c - p - q], high[node, c - q] = least, most


@inlined
def _fit_box(node: Int, child: Int, ends: Ends) -> None:
    """Set the box of a node to the smallest one around those of its children, `child` and the next."""
    low, high, last_low, first_high = ends
    for j in range(low.shape[1]):
        low[node, j] = min(low[child, j], low[child + 1, j])
        high[node, j] = max(high[child, j], high[child + 1, j])
    for d in range(last_low.shape[1]):
        last_low[node, d] = max(last_low[child, d], last_low[child + 1, d])
        first_high[node, d] = min(first_high[child, d], first_high[child + 1, d])


@kernel
def _fit_groups(forest: Forest, records: Floats, p: int, groups: Ints) -> None:
    """Fill the leaves of some groups with their records, and fit the boxes of their nodes."""
    columns, starts, roots = forest.columns, forest.starts, forest.roots
    ends = forest.low, forest.high, forest.last_low, forest.first_high
    begin = starts[roots[groups[0]], 0] if groups[0] < groups[1] else 0
    for group in range(groups[0], groups[1]):
        root, end = roots[group], roots[group + 1]
        for node in range(end - 1, root - 1, -1):
            first, last = starts[node, 0], starts[node, 1]
            child = 2 * node - root + 1
            if child < end:
                _fit_box(node, child, ends)
            else:
                here = columns[first * records.shape[1] :]
                _fill_forest_leaf(records[first - begin : last - begin], p, node, ends, here)


AT_ONCE = 4  # variables that are added to distances before these are compared with the limit

ForestScratch = tuple[Ints, Ints, Floats]  # nodes to visit; shared variables; distances of a leaf's records
Nodes = tuple[Floats, Floats, Ints, Floats]  # boxes, axes and cuts of nodes
Query = tuple[Floats, Floats, Floats]  # values, and the ends of intervals


def scratch_for(p: int) -> ForestScratch:
    """Return the scratch arrays of a search among records with p variables."""
    return np.empty(DEEP, np.int64), np.empty(p, np.int64), np.empty(WIDTH)


# --- records that fit the intervals -------------------------------------------------------------------


@inlined
def _drop_outside(columns: Floats, size: Int, low: Floats, high: Floats, values: Floats) -> None:
    """Set the values of a leaf's records to NaN whose intervals do not overlap those given."""
    q = len(low)
    for d in range(q):
        lower, upper = columns[d * size :], columns[(q + d) * size :]
        for i in range(size):
            fits = (lower[i] <= high[d]) & (upper[i] >= low[d])
            values[i] = values[i] if fits else np.nan


@inlined
def _count_fitting(
    columns: Floats, size: Int, low: Floats, high: Floats, marks: UInt64s, flags: Floats
) -> tuple[Int, np.uint64]:
    """Return how many of a leaf's records fit the intervals, and the sum of their marks."""
    for i in range(size):
        flags[i] = 0.0
    _drop_outside(columns, size, low, high, flags)
    count, total = np.int64(0), np.uint64(0)
    for i in range(size):
        fits = flags[i] == 0.0
        count += fits
        total += marks[i + 1] - marks[i] if fits else np.uint64(0)
    return count, total


@inlined
def _interval_relation(
    ends: tuple[Floats, Floats, Floats, Floats], node: Int, low: Floats, high: Floats
) -> int:
    """Return 1 if all of a node's records fit the intervals, -1 if none can, else 0."""
    first_low, last_high, last_low, first_high = ends
    outside, inside = False, True
    for d in range(len(low)):
        outside |= (first_low[node, d] > high[d]) | (last_high[node, d] < low[d])
        inside &= (last_low[node, d] <= high[d]) & (first_high[node, d] >= low[d])
    return -1 if outside else int(inside)


@uncounted
def count_fitting(
    forest: Forest,
    marks: UInt64s,
    queries: tuple[Floats, Floats, Ints],
    found: Ints,
    sums: UInt64s,
    scratch: ForestScratch,
) -> None:
    """Write the number of records that fit each query, and the sum of their marks.

    The forest is one of records without variables. `queries` are the ends of intervals, and the first group
    of the query's block and the one after the last. `marks` are summed up to each record.
    """
    columns, starts, roots = forest.columns, forest.starts, forest.roots
    ends = forest.low, forest.high, forest.last_low, forest.first_high
    lower, upper, spans = queries
    q, (stack, _, flags) = lower.shape[1], scratch
    for k in range(len(lower)):
        found[k], sums[k] = 0, 0
        for group in range(spans[k, 0], spans[k, 1]):
            stack[0] = roots[group]
            size = 1
            while size > 0:
                size -= 1
                node = stack[size]
                place = _interval_relation(ends, node, lower[k], upper[k])
                first, last = starts[node, 0], starts[node, 1]
                child = 2 * node - roots[group] + 1
                if place > 0:
                    found[k] += last - first
                    sums[k] += marks[last] - marks[first]
                elif place == 0 and child < roots[group + 1]:
                    stack[size], stack[size + 1] = child, child + 1
                    size += 2
                elif place == 0:
                    here = columns[first * 2 * q :]
                    count, total = _count_fitting(
                        here, last - first, lower[k], upper[k], marks[first:], flags
                    )
                    found[k] += count
                    sums[k] += total


# --- records closer than the true one -----------------------------------------------------------------


@kernel
def own_distances(true: Query, queries: Query, found: Floats) -> None:
    """Write the squared distance of each query to its true record over shared cells, scaled to all cells.

    It is infinite without a shared cell, and NaN where intervals exclude the true record.
    """
    values, first, last = true
    points, low, high = queries
    p, q = points.shape[1], low.shape[1]
    for k in range(len(points)):
        total, shared, fits = 0.0, 0, True
        for j in range(p):
            difference = values[k, j] - points[k, j]
            if difference == difference:  # noqa: PLR0124 - false for NaN
                total += difference * difference
                shared += 1
        for d in range(q):
            fits &= (first[k, d] <= high[k, d]) & (last[k, d] >= low[k, d])
        distance = total * (p / shared) if shared else np.inf
        found[k] = distance if fits else np.nan


@inlined
def _add_squares(columns: Floats, size: Int, point: Floats, shared: Ints, distances: Floats) -> None:
    """Add the squared differences of a leaf's records to a point, variable after variable; NaN adds 0."""
    for s in range(len(shared)):
        value, column = point[shared[s]], columns[shared[s] * size :]
        for i in range(size):
            difference = column[i] - value
            square = difference * difference
            distances[i] += square if square == square else 0.0  # noqa: PLR0124 - false for NaN


@inlined
def _rescale(columns: Floats, size: Int, shared: Ints, distances: Floats) -> None:
    """Scale the distances of a leaf's records from the cells that they have to all of `shared`."""
    for i in range(size):
        cells = 0
        for s in range(len(shared)):
            value = columns[shared[s] * size + i]
            cells += value == value  # noqa: PLR0124 - false for NaN
        distances[i] = distances[i] * (len(shared) / cells) if cells else np.inf


@inlined
def _any_in_reach(
    columns: Floats, size: Int, point: Floats, shared: Ints, reach: float, distances: Floats
) -> bool:
    """Write the sums of squared differences of a leaf's records; return False if all are beyond `reach`.

    The sums are not complete then.
    """
    for i in range(size):
        distances[i] = 0.0
    done, near = 0, True
    while done < len(shared) and near:
        _add_squares(columns, size, point, shared[done : done + AT_ONCE], distances)
        done += AT_ONCE
        count = 0
        for i in range(size):
            count += distances[i] <= reach
        near = count > 0
    return near


@inlined
def _is_far(nodes: Nodes, node: Int, query: Query, shared: Ints, reach: float) -> bool:
    """Return True if a node's box is beyond `reach`, over shared variables, or none of its records fits."""
    low, high, _, _ = nodes
    point, lower, upper = query
    p, total, outside = len(point), 0.0, False
    for s in range(len(shared)):
        j = shared[s]
        gap = max(max(low[node, j] - point[j], 0.0), point[j] - high[node, j])  # noqa: PLW3301
        total += gap * gap
    for d in range(len(lower)):
        outside |= (low[node, p + d] > upper[d]) | (high[node, p + d] < lower[d])
    return (total > reach) | outside


@inlined
def _descend(
    nodes: Nodes, node: Int, span: tuple[Int, Int], point: Floats, reach: float, stack: Ints, size: Int
) -> tuple[Int, Int]:
    """Return the leaf below a node on the point's side of all cuts, and the number of nodes to visit.

    The other sides are put on the stack, if in reach; and both, without a leaf (-1), where the point's side
    is unknown. `span` is the root of the tree and the node after its last.
    """
    _, _, axes, cuts = nodes
    root, end = span
    child = 2 * node - root + 1
    while child < end:
        beyond = point[axes[node]] - cuts[node]
        if beyond == beyond:  # noqa: PLR0124 - false for NaN
            right = beyond >= 0
            stack[size] = child + (not right)
            size += beyond * beyond <= reach
            node = child + right
            child = 2 * node - root + 1
        else:
            stack[size], stack[size + 1] = child, child + 1
            size += 2
            node, child = np.int64(-1), end
    return node, size


@inlined
def _count_in_tree(
    forest: Forest,
    group: Int,
    query: Query,
    limits: tuple[float, float, Int],
    start: Int,
    shared: Ints,
    scratch: ForestScratch,
) -> tuple[Int, Int]:
    """Return how many records of a group are nearer than the first limit, and up to the second.

    `limits` ends with the number of nearer ones that suffices. The leaf `start`, if it is not -1, is searched
    first.
    """
    columns, starts, roots, mixed = forest.columns, forest.starts, forest.roots, forest.mixed
    nodes = forest.low, forest.high, forest.axis, forest.cut
    point, lower, upper = query
    nearest, farthest, places = limits
    stack, _, distances = scratch
    p, q = len(point), len(lower)
    closer = within = np.int64(0)
    leaf: Int = start
    size: Int = np.int64(1)
    stack[0] = roots[group]
    while (leaf >= 0 or size > 0) and closer < places:
        if leaf < 0:
            size -= 1
            if not _is_far(nodes, stack[size], query, shared, farthest):
                span = roots[group], roots[group + 1]
                leaf, size = _descend(nodes, stack[size], span, point, farthest, stack, size)
                leaf = -1 if leaf == start else leaf
        if leaf >= 0:
            first, width = starts[leaf, 0], starts[leaf, 1] - starts[leaf, 0]
            here = columns[first * (p + 2 * q) :]
            if _any_in_reach(here, width, point, shared, farthest, distances):
                if mixed[group] or len(shared) == 0:
                    _rescale(here, width, shared, distances)
                _drop_outside(here[p * width :], width, lower, upper, distances)
                for i in range(width):
                    closer += distances[i] < nearest
                    within += distances[i] <= farthest
            leaf = np.int64(-1)
    return closer, within


@inlined
def _shared_cells(order: Ints, point: Floats, shared: Ints) -> Int:
    """Write the variables that a point and some records of a group have; return their number."""
    count = 0
    for s in range(len(point)):
        j = shared[count] = order[s]
        count += j >= 0 and point[j] == point[j]  # false for NaN
    return np.int64(count)


@uncounted
def count_closer_in_forest(
    forest: Forest,
    queries: Query,
    distances: Floats,
    homes: Ints,
    tolerance: float,
    places: int,
    found: Ints,
    scratch: ForestScratch,
) -> None:
    """Write how many candidates are closer to each query than its true one (to `places`), and how many tie.

    `distances` are those of the true records, which need not be in the forest; NaN where facts exclude it.
    `homes` has, for each query, the leaf to search first (-1 for none), the group to search first, and the
    groups of its block: the first and the one after the last.
    """
    order = forest.order
    points, low, high = queries
    p, shared = points.shape[1], scratch[1]
    for k in range(len(points)):
        query, own = (points[k], low[k], high[k]), distances[k]
        leaf, home, head = homes[k, 0], homes[k, 1], homes[k, 2]
        groups = homes[k, 3] - head
        closer = within = np.int64(0)
        for turn in range(groups):
            group = head + (home - head + turn) % groups
            count = _shared_cells(order[group], points[k], shared)
            if closer < places and ((own < np.inf and count > 0) or own == np.inf):
                reach = own if count == p else own * max(count, 1) / p
                limits = reach * (1 - tolerance), reach * (1 + tolerance), places - closer
                start = leaf if turn == 0 else np.int64(-1)
                here = _count_in_tree(forest, group, query, limits, start, shared[:count], scratch)
                closer, within = closer + here[0], within + here[1]
        known = closer < places and own == own  # noqa: PLR0124 - false for NaN
        found[0, k] = closer if known else places
        found[1, k] = within - closer if known else 0


# --- the nearest records ------------------------------------------------------------------------------


@inlined
def _least_distance(
    forest: Forest, group: Int, query: Query, least: float, shared: Ints, scratch: ForestScratch
) -> float:
    """Return the smallest squared distance to a group's records that fit, or `least` if that is smaller."""
    columns, starts, roots, mixed = forest.columns, forest.starts, forest.roots, forest.mixed
    nodes = forest.low, forest.high, forest.axis, forest.cut
    point, lower, upper = query
    stack, _, distances = scratch
    p, q = len(point), len(lower)
    size: Int = np.int64(1)
    stack[0] = roots[group]
    while size > 0:
        size -= 1
        if not _is_far(nodes, stack[size], query, shared, least):
            span = roots[group], roots[group + 1]
            leaf, size = _descend(nodes, stack[size], span, point, least, stack, size)
            if leaf >= 0:
                first, width = starts[leaf, 0], starts[leaf, 1] - starts[leaf, 0]
                here = columns[first * (p + 2 * q) :]
                if _any_in_reach(here, width, point, shared, least, distances):
                    if mixed[group]:
                        _rescale(here, width, shared, distances)
                    _drop_outside(here[p * width :], width, lower, upper, distances)
                    for i in range(width):
                        near = distances[i] < least  # false for NaN
                        least = distances[i] if near else least
    return least


@uncounted
def count_nearest(
    forest: Forest,
    queries: Query,
    further: tuple[Floats, Floats],
    spans: Ints,
    tolerance: float,
    found: Ints,
    scratch: ForestScratch,
) -> None:
    """Write how many records that fit are nearest to each query, and how many of these fit further intervals.

    `further` are the ends of intervals in place of those of the queries. `spans` are the first group of each
    query's block and the one after the last.
    """
    order = forest.order
    points, low, high = queries
    p, shared = points.shape[1], scratch[1]
    most = np.int64(len(forest.rows) + 1)
    for k in range(len(points)):
        query, narrow = (points[k], low[k], high[k]), (points[k], further[0][k], further[1][k])
        least = np.inf
        for group in range(spans[k, 0], spans[k, 1]):
            count = _shared_cells(order[group], points[k], shared)
            if count > 0:
                reach = _least_distance(forest, group, query, least * count / p, shared[:count], scratch)
                least = min(least, reach * p / count)
        found[0, k] = found[1, k] = 0
        for group in range(spans[k, 0], spans[k, 1]):
            count = _shared_cells(order[group], points[k], shared)
            if count > 0 or least == np.inf:
                limits = -1.0, least * max(count, 1) / p * (1 + tolerance), most
                none = np.int64(-1)
                found[0, k] += _count_in_tree(forest, group, query, limits, none, shared[:count], scratch)[1]
                found[1, k] += _count_in_tree(forest, group, narrow, limits, none, shared[:count], scratch)[1]
