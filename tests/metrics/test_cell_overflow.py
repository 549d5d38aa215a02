"""MAE, MSE, IL1 and IL1s of numbers so large that their sums overflow, but not their means."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import naive
import sdckit as sdc
from sdckit.metrics.pair import pair_of

CELLS = {"mae": sdc.mae, "mse": sdc.mse, "il1": sdc.il1, "il1s": sdc.il1s}
LARGEST = np.finfo(float).max
large = st.sampled_from([-1.0, 1.0]).flatmap(lambda sign: st.floats(1e300, LARGEST).map(lambda v: sign * v))
rows = st.lists(st.tuples(large, large), min_size=3, max_size=8)


def columns(rows, *, j):
    return np.array(rows)[:, [j]]


@pytest.mark.parametrize("name", ["mae", "il1", "il1s"])
@given(rows, st.sampled_from([None, 1.0, 1e300]))
def test_large_numbers_equal_exact_fractions(name, rows, weight):
    x, y = columns(rows, j=0), columns(rows, j=1)
    weights = None if weight is None else weight * np.arange(1.0, len(x) + 1)
    try:
        expected = float(naive.cell_loss_exactly(name, x, y, weights))
    except (OverflowError, ZeroDivisionError):  # beyond the largest number; a constant column
        return
    assume(expected < LARGEST * (1 - 1e-9))
    assert CELLS[name](x, y, weights=weights) == pytest.approx(expected, rel=1e-12)


@given(st.lists(st.tuples(st.floats(1e150, 3e154), st.floats(-3e154, -1e150)), min_size=2, max_size=8))
def test_squares_of_large_numbers_equal_exact_fractions(rows):
    x, y = columns(rows, j=0), columns(rows, j=1)
    exact = naive.cell_loss_exactly("mse", x, y)
    assume(abs(exact / Fraction(LARGEST) - 1) > 1e-9)
    expected = math.inf if exact > LARGEST else float(exact)
    assert sdc.mse(x, y) == pytest.approx(expected, rel=1e-12)


def test_worked_means():
    x, y = [1.6e308, -1.6e308, 1e308, 2.0], [0.0, 0.0, 0.0, 2.0]
    assert sdc.mae(x, y) == pytest.approx(1.05e308, rel=1e-15)
    assert sdc.il1(x, y) == 0.75
    assert sdc.mse([1e154, 1.0, 1.0], [-1e154, 1.0, 1.0]) == pytest.approx(4 / 3 * 1e308, rel=1e-15)
    assert sdc.mae([1.7e308, 0.0], [-1.7e308, 0.0]) == pytest.approx(1.7e308, rel=1e-15)
    assert sdc.il1s([1.7e308, -1.7e308], [-1.7e308, 1.7e308]) == 1.0


def test_weights_too_large_to_be_added_up():
    x, y = [1.0, 2.0, 4.0], [2.0, 1.0, 7.0]
    for name, function in CELLS.items():
        expected = function(x, y, weights=[1.0, 1.0, 0.5])
        assert function(x, y, weights=[1.7e308, 1.7e308, 0.85e308]) == pytest.approx(expected, rel=1e-14), (
            name
        )
        assert function(x, x, weights=[1.7e308] * 3) == 0


def test_a_large_variable_leaves_the_others_as_they_are():
    rng = np.random.default_rng(3)
    small, masked = rng.normal(size=(2, 9))
    x, y = (
        np.column_stack([small, [1.5e308] * 8 + [-1e308]]),
        np.column_stack([masked, [-1.5e308] * 8 + [1e308]]),
    )
    for name, function in CELLS.items():
        score = sdc.METRICS[name].score(pair_of(x, y), detail=True, per_record=True)
        assert score.value.variables[0] == function(small, masked), name
        alone = sdc.METRICS[name].score(pair_of(small, masked), detail=True)
        assert score.random.variables[0] == alone.random.variables[0], name
        if name in {"il1", "il1s"}:
            assert np.isfinite([score.value.overall, score.random.overall, *score.records]).all(), name


def test_the_records_of_a_large_file_have_their_means():
    x, y = np.array([[1.2e308, 1.7e308], [1.0, 3.0]]), np.array([[0.0, 1e307], [2.0, 3.0]])
    records = sdc.METRICS["mae"].score(pair_of(x, y), per_record=True).records
    assert records == pytest.approx([1.4e308, 0.5], rel=1e-15)


def test_what_has_no_mean_stays_infinite():
    assert math.isinf(sdc.mae([1.7e308, 1.6e308], [-1.7e308, -1.6e308]))
    assert math.isinf(sdc.mse([1e200, 0.0], [0.0, 0.0]))
    assert math.isinf(sdc.il1s([[1.0, 1.0], [1.0, 2.0]], [[2.0, 1.0], [1.0, 3.0]]))  # a constant was changed
    assert math.isnan(sdc.mae([1.0, 2.0], [float("nan")] * 2))


@pytest.mark.parametrize("name", CELLS)
def test_a_changed_constant_moves_no_digit_of_the_others(name):
    x, y = np.random.default_rng(1).normal(size=(2, 50))
    table, masked = np.column_stack([x, np.ones(50)]), np.column_stack([y, np.arange(50.0)])
    found = sdc.METRICS[name].score(pair_of(table, masked), detail=True)
    alone = sdc.METRICS[name].score(pair_of(x, y), detail=True)
    assert found.value.variables[0] == alone.value.variables[0]
    assert found.random.variables[0] == alone.random.variables[0]


# --- numbers of very different sizes ---

wide = st.builds(  # any float but the subnormal ones
    lambda sign, digits, exponent: sign * math.ldexp(digits, exponent),
    st.sampled_from([-1.0, 1.0]),
    st.floats(0.5, 1, exclude_max=True),
    st.integers(-1020, 1024),
)
wide_rows = st.lists(st.tuples(*[wide] * 4), min_size=2, max_size=6)


def exact_or_infinite(name, x, y, weights):
    """The loss in exact fractions; infinite beyond the largest number, None for a constant column."""
    try:
        return float(naive.cell_loss_exactly(name, x, y, weights))
    except OverflowError:
        return math.inf
    except ZeroDivisionError:
        return None


@pytest.mark.long
@pytest.mark.parametrize("name", CELLS)
@given(wide_rows, st.sampled_from([None, 2.0**-1060, 2.0**-300, 1.0, 2.0**1020]))
def test_evaluation_function_and_fractions_agree_on_any_sizes(name, rows, weight):
    x, y = np.array(rows)[:, :2], np.array(rows)[:, 2:]
    weights = None if weight is None else weight * np.arange(1.0, len(x) + 1)
    found = CELLS[name](x, y, weights=weights)
    result = sdc.Microdata(x, weights=weights).evaluate(y, metrics=name)
    expected = exact_or_infinite(name, x, y, weights)
    assert result[name] == found
    assume(expected is not None)
    assume(not LARGEST * (1 - 1e-9) < expected < math.inf)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-307)


def test_a_relative_change_beyond_all_numbers_is_infinite():
    assert math.isinf(sdc.il1([1e-25, 1.0, 2.0], [1e300, 1.0, 2.0]))
    assert math.isinf(sdc.evaluate([1e-25, 1.0, 2.0], [1e300, 1.0, 2.0])["il1"])
    assert math.isinf(sdc.il1([5e-324, 1.7e308], [1e300, -1.7e308]))


@pytest.mark.parametrize("size", [1e-30, 1e-200, 5e-310])
def test_small_cells_beside_large_ones_keep_their_relative_change(size):
    x = np.array([[size], [1.0], [min(1 / size, 1e308)], [5.0]])
    y = 1.1 * x
    score = sdc.METRICS["il1"].score(pair_of(x, y), detail=True, per_record=True)
    assert score.value.overall == sdc.il1(x, y) == pytest.approx(0.1)
    assert score.records == pytest.approx([0.1] * 4)
    assert sdc.evaluate(x, y)["il1"] == sdc.il1(x, y) == pytest.approx(naive.cell_loss("il1", x, y))


def test_relative_changes_whose_sum_overflows_have_their_mean():
    x, y = np.array([[1.0, 1.0], [1.0, 2.0]]), np.array([[1.7e308, 1.6e308], [1.0, 2.0]])
    score = sdc.METRICS["il1"].score(pair_of(x, y), per_record=True)
    assert score.value.overall == pytest.approx(0.825e308)
    assert score.records == pytest.approx([1.65e308, 0.0])
    assert sdc.il1([1.7e308, 5e-324], [-1.7e308, 1e-323]) == 1.5


def test_parts_of_mse_are_finite_where_mse_is():
    x, y = [1e154] * 3 + [0.0], [2e154] * 3 + [0.0]
    assert sdc.mse_marginal(x, y) == sdc.mse(x, y) == pytest.approx(7.5e307)
    assert sdc.mse_permutation(x, y) == 0
    turned = sdc.evaluate(x, y[::-1], metrics=["mse", "mse_marginal", "mse_permutation"])
    parts = turned["mse_marginal"] + turned["mse_permutation"]
    assert parts == pytest.approx(turned["mse"])
    level = turned.summary.filter(metric="mse_permutation")["random"][0]
    assert level == pytest.approx(7.5e307)  # 1.5e308 in all, half of it of the distribution


def test_sorted_values_near_the_largest_number_have_their_distance():
    x = np.array([-1.7e308, 1.7e308, 1e308, 0.0])
    assert sdc.wasserstein(x, x[::-1]) == 0
    assert sdc.wasserstein(x, x / 2) == pytest.approx(sdc.wasserstein(x / 1e10, x / 2e10))
    assert sdc.wasserstein(x, x / 2, scale="spread") == pytest.approx(
        sdc.wasserstein(x / 1e10, x / 2e10, scale="spread")
    )
