"""Keys of values and their sort by digits: in the order of the values, whatever bits these differ in."""

import numpy as np
import pytest

from columns import assert_order
from sdckit.kernels import ranks
from sdckit.kernels.ranks import OrderedColumn


def borders():
    """Finite floats at both sides of every border of signs and exponents, ascending."""
    patterns = {(exponent << 52) + step for exponent in range(2048) for step in (-2, -1, 0, 1, 2)}
    positive = np.array(sorted(pattern for pattern in patterns if 0 <= pattern < 2047 << 52), np.int64)
    values = positive.view(np.float64)
    assert np.isfinite(values).all()
    return np.concatenate((-values[::-1], values))  # with -0.0 before 0.0


def keys_of(values):
    grid = ranks.grid_of(values)
    keys = np.empty(values.size, np.uint64)
    ranks._write_keys(values.view(np.int64), grid, keys)  # noqa: SLF001
    return keys, grid


@pytest.mark.parametrize("part", [slice(None), slice(0, 5000), slice(-5000, None), slice(5117, 5123)])
def test_keys_ascend_from_zero_as_the_values_do(part):
    values = borders()[part]
    keys, grid = keys_of(values)
    assert keys[0] == 0
    assert int(keys[-1]).bit_length() == grid.width <= 64
    assert ((keys[1:] > keys[:-1]) == (np.diff(values) > 0)).all()
    assert (keys[1:] >= keys[:-1]).all()


def test_bits_that_all_values_share_are_left_out():
    assert keys_of(np.full(5, 0.1))[1].width == 0
    assert keys_of(np.array([18.0, 97.0, 33.0]))[1].width <= 9
    assert keys_of(np.array([-np.finfo(float).max, np.finfo(float).max, 0.1]))[1].width == 64


@pytest.mark.usefixtures("short_columns")
@pytest.mark.parametrize("n", [2, 3, 64, 255, 257, 4095, 4097])
def test_values_around_zero_keep_their_rows(n):
    rng = np.random.default_rng(n)
    for spread in (1, 2, n, 4 * n, 8 * n):
        values = rng.integers(-spread, spread + 1, n) * 5e-324
        values = np.where((values == 0) & (rng.random(n) < 0.5), -0.0, values)
        assert np.array_equal(OrderedColumn(values).order, np.argsort(values, kind="stable"))


def test_all_digits_are_sorted_where_leading_ones_tell_little():
    values = np.random.default_rng(1).permutation(borders())
    assert_order(OrderedColumn(values), values)
    values = np.append(1 + np.arange(60_000.0)[::-1] * 2.0**-52, 1e300)
    assert_order(OrderedColumn(values), values)


def test_labels_beyond_32_bits_are_sorted_alike():
    keys = np.random.default_rng(2).integers(0, 99, 5000).astype(np.uint64)
    labels = (1 << 33) + np.arange(5000, dtype=np.uint64)
    order = np.argsort(keys, kind="stable")
    found = ranks.sort_keys(keys.copy(), labels.copy(), 7, np.empty_like(keys), np.empty_like(labels))
    assert np.array_equal(found[0], keys[order])
    assert np.array_equal(found[1], labels[order])
