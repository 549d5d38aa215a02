"""Assertions on sorted columns and rank sums, against plain numpy and the twins."""

import numpy as np

import naive


def assert_sums(found, x, y):
    absolute, squared = naive.rank_sums(x, y)
    assert (found.absolute2, found.squared4) == (absolute, squared)


def assert_order(ordered, values):
    n = len(values)
    assert np.array_equal(ordered.order, np.argsort(values, kind="stable"))
    assert np.array_equal(ordered.order[ordered.rank], np.arange(n))
    assert np.array_equal(ordered.sorted, np.sort(values, kind="stable"))
    assert np.array_equal(ordered.row_middle2 + 2, naive.middle_ranks2(values))
    inside = ordered.sorted
    assert np.array_equal(ordered.first, np.searchsorted(inside, inside, "left"))
    assert np.array_equal(ordered.last, np.searchsorted(inside, inside, "right") - 1)
    assert ordered.tied == (len(np.unique(values)) < n)
