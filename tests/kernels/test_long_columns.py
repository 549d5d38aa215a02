"""Columns of thousands to millions of rows: exact sums beyond 63 bits, whole numbers."""

import numpy as np
import pytest

import naive
from columns import near
from sdckit.kernels.ranks import (
    OrderedColumn,
    average_distance,
    gap_distance,
    largest_absolute,
    largest_squared,
)


@pytest.fixture(scope="module")
def millions():
    """More rows than 2**22: the sum of squares needs more than 63 bits."""
    rng = np.random.default_rng(7)
    x = rng.lognormal(3, 2, 4_300_000)
    return x, OrderedColumn(x)


@pytest.fixture(scope="module")
def masked_millions(millions):
    """Other values with ties and near ties, and the sums that plain numpy finds for them."""
    x, ordered = millions
    order = np.argsort(x, kind="stable")
    assert np.array_equal(ordered.order, order)
    rng = np.random.default_rng(8)
    y = x * rng.lognormal(0, 0.5, x.size)
    y[: x.size // 20] = near(rng, x.size // 20, 10.0, 10**9)
    y[x.size // 20 : x.size // 10] = np.round(y[x.size // 20 : x.size // 10])
    _, block, lengths = np.unique(y, return_inverse=True, return_counts=True)
    masked2 = (2 * np.cumsum(lengths) - lengths - 1)[block]
    gap = np.abs(2 * np.arange(x.size) - masked2[order])
    return y, (naive.exact_sum(gap), naive.exact_sum(gap * gap))


@pytest.mark.slow
def test_millions_of_rows_equal_plain_numpy(millions, masked_millions):
    _, ordered = millions
    y, expected = masked_millions
    assert not ordered.tied
    found = average_distance(ordered, y)
    assert (found.absolute2, found.squared4) == expected


def test_sums_beyond_63_bits_are_exact(millions):
    x, ordered = millions
    found = average_distance(ordered, -x)
    n = x.size
    assert 4 * largest_squared(n) > 2**63
    assert found.squared4 == 4 * largest_squared(n)
    assert found.absolute2 == 2 * largest_absolute(n)
    ranks2 = 2 * np.arange(n)
    assert gap_distance(ranks2 - ranks2[::-1]).squared4 == 4 * largest_squared(n)


@pytest.mark.parametrize("spoil", [None, 0.3, 2.0**-40])
@pytest.mark.parametrize("unit", [1.0, -1.0, 0.5, 1e10])
def test_whole_numbers_of_a_wide_range_beside_a_tied_original(unit, spoil):
    rng = np.random.default_rng(11)
    x = np.round(rng.lognormal(3, 1, 5000))
    y = np.round(rng.normal(0, 1e5, 5000)) * unit
    y[rng.integers(0, 5000, 1500)] = y[:1500]  # ties, none of them heavy
    if spoil is not None:
        y[7] = spoil
    gaps = naive.middle_ranks2(x) - naive.middle_ranks2(y)
    found = average_distance(OrderedColumn(x), y)
    assert found.absolute2 == naive.exact_sum(np.abs(gaps))
    assert found.squared4 == naive.exact_sum(gaps * gaps)
