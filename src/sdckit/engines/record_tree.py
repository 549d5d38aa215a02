"""A tree that cuts records into blocks of similar ones, grown on a sample of a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from sdckit.masking.pca_microaggregation import first_direction, squared_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Floats, Ints


@dataclass(frozen=True)
class Node:
    """A cut: records go to `low` if their score along a direction is at most `cut`, else to `high`.

    Without a direction, the score is the squared distance from the mean of all. A child is another node, or
    the number of a block.
    """

    direction: Floats | None
    cut: float
    low: Node | int
    high: Node | int


def scores(points: Floats, direction: Floats | None) -> Floats:
    """Return the position of each point along a direction; missing cells count as 0, the mean of all.

    Added up column by column: a matrix product may round a record differently in a block of another length.
    Without a direction, return squared distances from the mean of all.
    """
    if direction is None:
        return squared_lengths(points)
    found = np.zeros(len(points))
    for j, loading in enumerate(direction):
        found += np.nan_to_num(points[:, j], nan=0.0) * loading
    return found


def grow(points: Floats, blocks: int) -> Node | int:
    """Return a tree that cuts a sample of points into so many blocks of about the same size.

    The points farthest from the mean of all, 0, make the last block, as cuts through the sparse outside would
    cost more than all others. Every other part is cut across its first principal component, so that its
    halves hold whole numbers of blocks.
    """
    tree: Node | int | None = None
    if blocks > 1:
        tree = _cut(points, blocks, blocks - 1, None)
    return _numbered(_grown(points, blocks) if tree is None else tree, 0)[0]


def _grown(points: Floats, blocks: int) -> Node | int:
    """Return a tree of a part of the sample, all of whose blocks have the number 0."""
    if blocks == 1 or len(points) < 2:
        return 0
    tree = _cut(points, blocks, blocks // 2, first_direction(np.nan_to_num(points, nan=0.0)))
    return 0 if tree is None else tree


def _cut(points: Floats, blocks: int, low: int, direction: Floats | None) -> Node | None:
    """Return the tree with `low` of the blocks below a cut; None for points that all have equal scores."""
    along = scores(points, direction)
    cut = float(np.partition(along, place := max(len(points) * low // blocks - 1, 0))[place])
    below = along <= cut
    if below.all():
        return None
    return Node(direction, cut, _grown(points[below], low), _grown(points[~below], blocks - low))


def _numbered(tree: Node | int, first: int) -> tuple[Node | int, int]:
    """Return a tree with its blocks numbered from left to right, and the next free number."""
    if not isinstance(tree, Node):
        return first, first + 1
    low, middle = _numbered(tree.low, first)
    high, end = _numbered(tree.high, middle)
    return replace(tree, low=low, high=high), end


def count_blocks(tree: Node | int) -> int:
    """Return the number of blocks of a tree."""
    return count_blocks(tree.low) + count_blocks(tree.high) if isinstance(tree, Node) else 1


def blocks_of_points(tree: Node | int, points: Floats) -> Ints:
    """Return the number of the block of each point."""
    found = np.empty(len(points), np.int64)
    waiting: list[tuple[Node | int, Ints]] = [(tree, np.arange(len(points)))]
    while waiting:
        node, rows = waiting.pop()
        if not isinstance(node, Node):
            found[rows] = node
            continue
        below = scores(points[rows], node.direction) <= node.cut
        waiting += [(node.low, rows[below]), (node.high, rows[~below])]
    return found


def without_small_blocks(tree: Node | int, counts: Sequence[int], fewest: int) -> Node | int:
    """Return a tree whose blocks all have at least `fewest` records, from the records of each block.

    A block that is too small is given up, together with its cut: its records go where the other cuts say.
    """

    def joined(node: Node | int) -> tuple[Node | int, int]:
        """Return a part of the tree and the least number of records in any of its blocks."""
        if not isinstance(node, Node):
            return 0, counts[node]
        low, high = joined(node.low), joined(node.high)
        if min(low[1], high[1]) >= fewest:
            return replace(node, low=low[0], high=high[0]), min(low[1], high[1])
        if isinstance(low[0], Node) or isinstance(high[0], Node):
            return max(low, high, key=itemgetter(1))  # the other one is a block that is too small
        return 0, low[1] + high[1]

    return _numbered(joined(tree)[0], 0)[0]
