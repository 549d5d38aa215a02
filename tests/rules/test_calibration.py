"""Calibration of a matrix: totals hold, the change is the least, and no limit, rule or grid is left."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import naive_calibration as naive
from calibrations import NAMES, RULES, check_kept, least_by_scipy, problem_of
from sdckit.rules.calibrate import (
    Problem,
    Totals,
    calibrated,
    exact_total,
    nearest_in_column,
    rounded_to_sum,
)
from sdckit.rules.rules import rules_of

NAN = float("nan")


def one_total(values, target, *, rules=None, weights=None, label="total(T)"):
    """A problem with one column, or four, and one total of the first."""
    values = np.array(values, float).reshape(len(values), -1)
    names = NAMES[: values.shape[1]]
    weights = np.ones(len(values)) if weights is None else np.array(weights, float)
    found = rules_of(rules, names, values) if rules else None
    totals = Totals(label, 0, np.zeros(len(values), int), ["all"], [Fraction(target)])
    return Problem(names, np.asfortranarray(values), weights, (totals,), found, np.ones(len(names), bool))


def run(problem, seed=1):
    return calibrated(problem, np.random.default_rng(seed))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("texts", RULES.values(), ids=RULES)
def test_the_change_is_the_least_that_scipy_finds(texts, weighted):
    problem = problem_of(1, texts, weighted=weighted, n=18)
    found = run(problem)
    size = np.nanmean(np.abs(problem.values), 0)
    assert np.nanmax(np.abs(found.continuous - least_by_scipy(problem)) / size) < 1e-6
    assert np.nanmax(np.abs(found.continuous - problem.values) / size) > 1e-3  # something had to change
    check_kept(problem, found)


@given(
    seed=st.integers(0, 10**6),
    texts=st.sampled_from(list(RULES.values())),
    digits=st.integers(0, 2),
    divisions=st.integers(1, 2),
)
@settings(max_examples=20, deadline=None)
def test_totals_hold_to_the_last_digit(seed, texts, digits, divisions):
    problem = problem_of(seed, texts, digits=digits, divisions=divisions)
    try:
        found = run(problem, seed)
    except ValueError:  # some targets are out of reach
        reject()
    check_kept(problem, found)
    assert not any(miss for misses in found.misses for miss in misses)
    for one in problem.totals:
        for d, target in enumerate(one.targets):
            cells = found.values[one.domains == d, one.column].tolist()
            assert sum(Fraction(repr(cell)) for cell in cells) == target


def test_cells_are_multiplied_by_one_factor_within_the_range_of_the_column():
    assert run(one_total([10, 20, 40, 10], 120)).continuous[:, 0].tolist() == [20.0, 40.0, 40.0, 20.0]
    assert run(one_total([10, 20, 40, 0], 63)).continuous[:, 0].tolist() == pytest.approx([9, 18, 36, 0])
    assert run(one_total([-10, 20, 30, 0], 45)).values.sum() == 45  # more below 0, less above


def test_missing_cells_stay_missing_and_count_nothing():
    found = run(one_total([10, NAN, 20, 40, 0], 63))
    assert found.values[:, 0].tolist() == pytest.approx([9, NAN, 18, 36, 0], nan_ok=True)


def test_a_sum_moves_with_its_parts():
    values = [[30, 10, 20], [60, 40, 20], [9, 0, 9]]
    found = run(one_total(values, 105, rules=["T = A + B"]))
    assert (found.values[:, 0] == found.values[:, 1] + found.values[:, 2]).all()
    assert found.values[:, 0].sum() == 105
    assert found.values[2, 1] == 0


def test_columns_that_may_not_change_stay():
    problem = one_total([[30, 10, 20], [60, 40, 20], [13, 3, 10]], 99, rules=["T = A + B"])
    kept = Problem(
        NAMES[:3],
        problem.values,
        problem.weights,
        problem.totals,
        problem.rules,
        np.array([True, False, True]),
    )
    found = run(kept)
    assert found.values[:, 1].tolist() == [10, 40, 3]
    assert found.values[:, 0].sum() == 99
    assert (found.values[:, 0] == found.values[:, 1] + found.values[:, 2]).all()


def test_a_file_in_which_no_cell_may_change_and_totals_hold_stays():
    values = [[0, 4, 4], [0, 4, 4]]
    assert run(one_total(values, 0, rules=["T <= A + B"])).values.tolist() == values


def test_unrounded_cells_hold_totals_and_rules_to_rounding_errors():
    rng = np.random.default_rng(3)
    parts = np.exp(rng.normal(3, 1, (40, 2)))
    values = np.column_stack([parts.sum(1), parts])
    problem = one_total(values, Fraction(float(1.02 * values[:, 0].sum())), rules=["T = A + B"])
    found = run(problem)
    assert not problem.rules.violations(found.values).any()
    assert found.values[:, 0].sum() == pytest.approx(1.02 * values[:, 0].sum(), rel=1e-12)
    alone = run(one_total(values[:, 0], Fraction(float(1.02 * values[:, 0].sum()))))
    assert alone.values.sum() == pytest.approx(1.02 * values[:, 0].sum(), rel=1e-14)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (one_total([10, 20, 40], 200), r"total\(T\) cannot hold: cells keep their sign"),
        (one_total([10, 20, 40], -5), "cannot hold"),
        (one_total([NAN, NAN], 5), "cannot hold"),
        (one_total([0, 0, 0], 5), "cannot hold"),
        (one_total([[3, 1, 2], [5, 4, 1]], 50, rules=["T = A + B"]), r"total\(T\) cannot hold: cells"),
        (one_total([[5, 0], [9, 20]], 17, rules=["T <= A + 5"]), r"total\(T\) cannot hold: cells"),
        (one_total([[0, 1, 2], [0, 4, 1]], 1, rules=["T <= A + B"]), "cannot hold"),
        (
            one_total([[3, 1.5, 1.5], [5, 4, 1.0 / 3]], 7, rules=["T <= A + B + 9"]),
            "T and A are rounded and others",
        ),
    ],
)
def test_what_cannot_hold_is_refused_in_one_line(problem, message):
    with pytest.raises(ValueError, match=message) as error:
        run(problem)
    assert "\n" not in str(error.value)


def test_a_masked_file_that_breaks_a_rule_is_refused():
    values = np.array([[3.0, 1, 2], [5, 4, 2]])
    rules = rules_of(["T = A + B"], NAMES[:3], values[:1])
    problem = one_total(values, 9)
    broken = Problem(NAMES[:3], problem.values, problem.weights, problem.totals, rules, np.ones(3, bool))
    with pytest.raises(ValueError, match=r"breaks the rule T = A \+ B in 1 record; mask with this rule"):
        run(broken)


def test_equal_cells_are_rounded_up_at_random_and_not_by_their_order():
    problem = one_total([7.0] * 20 + [10.0, 1.0], 161)
    ups = np.mean([run(problem, seed).values[:20, 0] > 7 for seed in range(200)], axis=0)
    assert ups.sum() == pytest.approx(10, abs=1.5)
    assert np.abs(ups - ups.mean()).max() < 0.2


@given(seed=st.integers(0, 10**6), digits=st.integers(0, 2))
@settings(max_examples=20, deadline=None)
def test_one_column_equals_its_twin(seed, digits):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(5, 10, 30), digits)
    weights = np.round(rng.uniform(0.5, 9, 30), 1)
    low, high = (np.where(values == 0, 0.0, side) for side in (np.minimum(values, -3.0), values + 2.0))
    target = float(weights @ (low + rng.random() * (high - low)))
    found = nearest_in_column(values, weights, low, high, target)
    assert found == pytest.approx(naive.calibrated_column(values, weights, low, high, target), abs=1e-7)
    assert weights @ found == pytest.approx(target, abs=1e-9)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_weighted_sums_on_a_grid_are_nearly_as_near_as_any(seed):
    rng = np.random.default_rng(seed)
    cells, weights = rng.uniform(0, 50, 10), rng.integers(10, 99, 10).astype(float)
    target = float(np.rint(weights @ cells))
    wide = np.full(10, 100.0)
    found = rounded_to_sum(cells, weights, -wide, wide, target, rng)
    assert (np.abs(found - cells) < 1).all()
    best = naive.least_miss(np.floor(cells), weights, target)
    assert best <= abs(weights @ found - target) <= best + 8


def test_many_different_weights_meet_a_total_to_the_last_digit():
    rng = np.random.default_rng(8)
    values, weights = rng.integers(1, 500, 300).astype(float), np.round(rng.uniform(1, 50, 300), 2)
    target = exact_total(values, weights) * Fraction(1013, 1000)
    target = Fraction(round(target * 100), 100)
    assert run(one_total(values, target, weights=weights)).misses == [[0]]
