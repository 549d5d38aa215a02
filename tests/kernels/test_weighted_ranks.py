"""Weighted brMAE and brMSE: exact fractions, weights of any scale, one record that outweighs all others."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import naive
import sdckit as sdc
from cases import each
from sdckit.kernels.ranks import WeightedRanks

LARGEST = np.finfo(float).max
values = st.integers(0, 6).map(float)
# Weights of one file may differ by any factor up to 1e120.
weights = st.floats(1e-60, 1e60)
rows = st.lists(st.tuples(values, values, weights), min_size=2, max_size=10)


def measured(x, y, w):
    return sdc.brmae(x, y, weights=w), sdc.brmse(x, y, weights=w)


def split(rows):
    return tuple(np.array(column) for column in zip(*rows, strict=True))


@given(rows)
def test_any_weights_equal_exact_fractions(rows):
    x, y, w = split(rows)
    assert measured(x, y, w) == pytest.approx(naive.weighted_br_exactly(x, y, w), abs=1e-13)


@given(rows, st.integers(-700, 700))
def test_a_power_of_two_changes_no_digit(rows, power):
    x, y, w = split(rows)
    assert measured(x, y, np.ldexp(w, power)) == measured(x, y, w)


@given(rows, st.floats(1e-300, LARGEST))
def test_the_unit_of_the_weights_does_not_matter(rows, unit):
    x, y, w = split(rows)
    with np.errstate(over="ignore", under="ignore"):
        scaled = w * unit
    assume(np.isfinite(scaled).all() and (scaled > 1e-300).all())
    assert measured(x, y, scaled) == pytest.approx(measured(x, y, w), abs=1e-12)


@each("heavy", [1e16, 1e17, 3.3e40, 1e200, 1e308])
@each("y", [[0, 2, 1, 3], [3, 0, 1, 2], [1, 0, 2, 3], [3, 2, 1, 0], [1, 0, 0, 0]])
def test_one_record_may_outweigh_all_others(heavy, y):
    x, w = [0, 1, 2, 3], [heavy, 1.0, 1.0, 1.0]
    assert measured(x, y, w) == pytest.approx(naive.weighted_br_exactly(x, y, w), abs=1e-15)


def test_the_lost_values_of_heavy_and_of_tiny_weights():
    x, y = [1, 2, 3, 4], [2, 1, 4, 3]
    assert measured(x, y, [1e16, 1, 1, 1]) == pytest.approx((0.4, 1 / 3), abs=1e-15)
    assert measured(x, y, [1.0] * 4) == measured(x, y, [5e-324] * 4) == (0.5, 0.2)
    for weight in (1e-108, 1e308):
        assert measured(x, y, [weight] * 4) == pytest.approx((0.5, 0.2), abs=1e-15)


def test_weights_that_no_product_can_hold_still_have_a_value():
    assert measured([1, 2], [2, 1], [1e308, 5e-324]) == (1.0, 1.0)
    assert measured([1, 2, 3], [1, 2, 3], [1e308, 5e-324, 1e-200]) == (0.0, 0.0)


@given(rows, st.integers(-700, 700))
def test_levels_and_shares_of_records_have_no_unit_either(rows, power):
    x, y, w = split(rows)
    plain, scaled = WeightedRanks(x, y, w), WeightedRanks(x, y, np.ldexp(w, power))
    assert plain.unrelated_values() == scaled.unrelated_values()
    for ours, theirs in zip(plain.record_costs(), scaled.record_costs(), strict=True):
        assert np.array_equal(ours, theirs)
    means = [np.average(costs, weights=w / w.max()) for costs in plain.record_costs()]
    assert means == pytest.approx(plain.values(), abs=1e-12)
