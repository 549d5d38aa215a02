"""Keys of value and label: never a zero, infinite or NaN as float64, always in the order of the values."""

import numpy as np
import pytest

from sdckit.kernels import packed_sort as keys
from sdckit.kernels.rank_distance import OrderedColumn

WIDTHS = range(2, 41)  # labels of up to a trillion rows
LARGEST = np.finfo(np.float64).max


def borders(width):
    """Finite floats at both sides of every border: of signs, exponents, and of the bits that a key keeps."""
    steps = {0, 1, 2, (1 << width) - 1, 1 << width, (1 << width) + 1}
    exponents = [exponent << 52 for exponent in range(2048)]
    patterns = {base + step for base in exponents for step in steps}
    patterns |= {base - step for base in exponents for step in steps}
    positive = np.array(sorted(pattern for pattern in patterns if 0 <= pattern < 2047 << 52), np.int64)
    values = positive.view(np.float64)
    assert np.isfinite(values).all()
    return np.concatenate((-values[::-1], values))  # ascending, with -0.0 before 0.0


def labels_of(width):
    """The smallest and the largest labels that `label_width` puts into `width` bits."""
    largest = (1 << width) - 3
    assert keys.label_width(largest) == width < keys.label_width(largest + 1)
    return {0, largest - 1, largest}


def floats_of(values, label, width):
    """Keys as they are sorted, all with one label."""
    filled = np.empty(values.size, np.int64)
    keys.fill_keys(values.view(np.int64), np.full(values.size, label), width, filled)
    return filled.view(np.float64)


def high_bits(values, width):
    """The part of each key that comes from the value."""
    filled = floats_of(values, 0, width)
    keys.sort_as_floats(filled.view(np.int64))  # the values ascend: nothing moves
    return filled.view(np.int64) >> width


@pytest.mark.parametrize("width", WIDTHS)
def test_no_key_is_a_special_float_whatever_the_value_and_the_label(width):
    # A key follows the value and adds the label, so those nearest to 0 and farthest from it have
    # a value at a border and an extreme label.
    values = borders(width)
    for label in labels_of(width):
        found = floats_of(values, label, width)
        assert np.isfinite(found).all()
        assert (found != 0).all()
        assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_order_the_keys_of_one_value_and_never_pass_the_next(width):
    values = borders(width)
    high = high_bits(values, width)
    lowest, highest = (floats_of(values, label, width) for label in (0, max(labels_of(width))))
    assert (lowest < highest).all()
    assert ((highest[:-1] < lowest[1:]) == (np.diff(high) > 0)).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_equal_high_bits_are_true_ties_where_nothing_was_cut_off(width):
    values = borders(width)
    whole = values[values.view(np.int64) & ((1 << width) - 1) == 0]
    labels = np.zeros(whole.size, np.int64)
    assert keys.fill_keys(whole.view(np.int64), labels, width, labels.copy()) == 0
    assert whole.size > 4000
    assert ((np.diff(high_bits(whole, width)) == 0) == (np.diff(whole) == 0)).all()


@pytest.mark.usefixtures("short_columns")
@pytest.mark.parametrize("n", [2, 3, 4, 62, 63, 64, 65, 254, 255, 256, 257, 4094, 4095, 4096, 4097])
def test_values_around_zero_keep_their_rows(n):
    # Here a sort by minimum and maximum may lose the sign of a key.
    rng = np.random.default_rng(n)
    for spread in (1, 2, n, 4 * n, 8 * n):
        values = rng.integers(-spread, spread + 1, n) * 5e-324
        values = np.where((values == 0) & (rng.random(n) < 0.5), -0.0, values)
        assert np.array_equal(OrderedColumn(values).order, np.argsort(values, kind="stable"))


def test_quantised_keys_are_no_special_floats(monkeypatch):
    monkeypatch.setattr(keys, "QUANTISED", 2)
    for n in (2, 30, 4000, 4096):
        values = np.resize(borders(12), n)
        found = np.empty(n, np.int64)
        assert keys.sort_keys(values, np.arange(n), found).quantised
        floats = found.view(np.float64)
        assert np.isfinite(floats).all()
        assert (floats > 0).all()
