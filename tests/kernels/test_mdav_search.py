"""What MDAV's search of large files is made of: 16 distances at once, the tree's boxes, and the far list."""

import numba
import numpy as np
import pytest

from sdckit.kernels.mdav import state
from sdckit.kernels.mdav import tree as searching
from sdckit.kernels.mdav.groups import mdav_points
from sdckit.kernels.mdav.state import LANES, rotate, rounded_copy

# --- 16 lanes ---


def sums_of_squares(differences):
    """Column after column in float32, as a loop over one record adds them up."""
    total = np.zeros(differences.shape[1], np.float32)
    for column in differences:
        total += column * column
    return total


@numba.njit
def measured(block, boxes, query):
    found = np.full((3, 3 * LANES), -1, np.float32)
    state.record_distances(block, 16, query, found[0])
    state.least_box_distances(boxes, 0, query, found[1])
    state.largest_box_distances(boxes, 0, query, found[2])
    return found


@pytest.mark.parametrize("p", [1, 4, 13])
def test_distances_of_records_and_boxes_to_the_last_bit(p):
    rng = np.random.default_rng(p)
    block = rng.normal(size=(p, 3 * LANES)).astype(np.float32)
    block[0, 20] = np.nan
    query = rng.normal(size=p).astype(np.float32)
    low = rng.normal(size=(p, LANES)).astype(np.float32)
    boxes = np.array([low, low + rng.exponential(size=(p, LANES)).astype(np.float32)])
    boxes[0, :, 5], boxes[1, :, 5] = np.inf, -np.inf  # empty

    found, here = measured(block, boxes, query), query[:, None]
    np.testing.assert_array_equal(found[0, 16:32], sums_of_squares(block - here)[16:32])
    assert (found[0, :16] == -1).all()
    assert (found[0, 32:] == -1).all()
    outside = np.maximum(np.maximum(boxes[0] - here, here - boxes[1]), np.float32(0))
    np.testing.assert_array_equal(
        found[1, :16][outside[0] < np.inf], sums_of_squares(outside[:, outside[0] < np.inf])
    )
    assert found[1, 5] == np.inf
    across = np.maximum(here - boxes[0], boxes[1] - here)
    np.testing.assert_array_equal(np.delete(found[2, :16], 5), sums_of_squares(np.delete(across, 5, axis=1)))


def test_lanes_are_the_bits_of_an_integer():
    distances = np.array([np.nan] * 16 + [3, 1, np.nan, 2, *[9] * 12], np.float32)

    @numba.njit
    def bits(distances, limit):
        within, beyond = state.lanes_within(distances, 16, limit), state.lanes_beyond(distances, 16, limit)
        return within, beyond, state.lowest_lane(within)

    assert bits(distances, np.float32(2)) == (0b1010, 0xFFFF - 0b110, 1)
    assert bits(distances, np.float32(9))[1] == 0xFFF0
    assert bits(distances[::-1].copy(), np.float32(9))[:2] == (0, 0)


# --- the tree ---


def start(points, k=3):
    book, rounded = state.start(points, k), rounded_copy(points)
    return book, searching.build_tree(book, rounded), searching.empty_list(book)


def rows_below(tree, node):
    if node < len(tree.counts):
        return list(tree.rows[node * LANES :][: tree.counts[node]])
    first = tree.below[node]
    return [
        row
        for child in range(first, first + LANES)
        if tree.smallest[child] < len(tree.state.slots)
        for row in rows_below(tree, child)
    ]


@pytest.mark.parametrize("n", [5, 16, 17, 250, 300, 5000])
def test_each_box_is_the_smallest_around_the_ungrouped_records(n):
    book, tree, far = start(mdav_points(np.random.default_rng(n).integers(0, 40, (n, 3)).astype(float)))
    searching.advance(tree, far, 3, n // 2)
    ungrouped = np.flatnonzero(book.slots >= 0)
    assert len(ungrouped) == book.counters[state.LEFT]
    top = range(len(tree.below) - LANES, len(tree.below))
    assert sorted(row for node in top if tree.smallest[node] < n for row in rows_below(tree, node)) == list(
        ungrouped
    )
    for node in np.flatnonzero(tree.smallest < n):
        rows, box = rows_below(tree, node), tree.boxes[node // LANES, :, :, node % LANES]
        assert tree.smallest[node] == min(rows)
        assert tree.equal[node] == (np.ptp(book.points[rows], axis=0) == 0).all()
        copies = tree.rounded.points[rows]
        np.testing.assert_array_equal(box, [copies.min(axis=0), copies.max(axis=0)])


# --- the farthest record ---


@numba.njit
def farthest(far, book, rounded, point, patience):
    rotate(point, rounded.axes, rounded.query)
    return searching.scan_list(far, book, rounded, point, patience)


@pytest.mark.parametrize("p", [1, 2, 13])
def test_the_list_finds_the_farthest_ungrouped_record(p):
    rng = np.random.default_rng(p)
    points = mdav_points(rng.integers(-9, 10, (1000, p)).astype(float))  # with ties
    book, tree, far = start(points)
    searching.advance(tree, far, 3, 2000)
    ungrouped = np.flatnonzero(book.slots >= 0)
    assert 3 < len(ungrouped) < 1000
    for point in rng.normal(size=(50, p)):
        distances = sum((points[ungrouped, j] - point[j]) ** 2 for j in range(p))
        best, found, left = farthest(far, book, tree.rounded, point, 1000)
        assert (best, found) == (distances.max(), ungrouped[distances.argmax()])
        assert left > 0
    assert farthest(far, book, tree.rounded, point, 1)[2] == 0


def test_the_tree_is_searched_where_the_list_excludes_no_record():
    # All records are corners of a cube, as far from its centre as each other: the list has no end.
    corners = np.random.default_rng(0).integers(0, 2, (16_000, 4)).astype(float) * 2 - 1
    book, tree, far = start(corners)
    searching.advance(tree, far, 3, 100_000)
    assert far.patience[0] == searching.LEAST
    assert book.counters[state.WORK] / book.counters[state.FORMED] < len(tree.smallest) / 10
