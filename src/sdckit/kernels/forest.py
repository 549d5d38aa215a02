"""A forest of k-d trees: one tree for the records of each block that miss the same cells.

Records in a forest have intervals beside their values, and nodes the smallest box around both. Patterns of
missing cells that few records of a block share are put into one tree, whose boxes are unbounded where a cell
is missing. Records are stored in the order of the leaves; within a leaf column after column, so that a scan
works on many records at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdckit.kernels.jit import Bools, Floats, Int, Ints, inlined, kernel
from sdckit.kernels.kd_tree import DEEP, SAMPLE, WIDTH, in_parts, partition_at

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


def build(points: Floats, blocks: Ints, low: Floats, high: Floats) -> Forest:
    """Return the forest of records with block numbers, and with the ends of intervals (record x interval)."""
    p, q = points.shape[1], low.shape[1]
    keys = _split_keys(points, low, high) if q else points
    missing = np.isnan(keys)
    labels, gaps = blocks, bool(missing.any())
    if gaps:
        code, columns = _cover(missing)
        labels = _labels(blocks, code)
        keys = np.where(columns[labels % len(columns)], keys, 0.0)
    rows = sorted_rows(labels)
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


def sorted_rows(labels: Ints) -> Ints:
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
def _fill_leaf(records: Floats, p: int, node: Int, ends: Ends, columns: Floats) -> None:
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
                _fill_leaf(records[first - begin : last - begin], p, node, ends, here)
