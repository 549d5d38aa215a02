"""Rounding and top coding: tables worked by hand, slow twins, and invariants each shown a broken method."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_masking_coding as naive
import sdckit as sdc
from cases import each
from maskings import NAN, cell, check_missing_kept, fails, generator
from sdckit.core.registry import METHODS
from sdckit.kernels.ranks import largest_absolute, largest_squared
from sdckit.masking.coding import (
    bases_of,
    mean_of,
    notes_on_limits,
    round_number,
    round_to,
    round_to_multiples,
    top_bottom_code,
)

SIZES = [1e-300, 1e-12, 1.0, 1e150, 1e300]
rows = st.lists(st.tuples(cell, cell | st.just(NAN)), min_size=2, max_size=40)


def check_monotone(before, after):
    for x, y in zip(before.T, after.T, strict=True):
        seen = ~np.isnan(x)
        order = np.argsort(x[seen], kind="stable")
        assert (np.diff(y[seen][order]) >= 0).all()
        same = np.diff(x[seen][order]) == 0
        assert (np.diff(y[seen][order])[same] == 0).all()


def check_means(before, after):
    size = np.nanmax(np.abs(before), axis=0)
    assert (np.abs(np.nanmean(before, axis=0) - np.nanmean(after, axis=0)) <= 1e-9 * size).all()


def check_half_a_base(before, after, base):
    seen = ~np.isnan(before)
    tolerance = 1e-9 * np.maximum(base, np.abs(before[seen]))
    assert (np.abs(after[seen] - before[seen]) <= base / 2 + tolerance).all()


def check_same_again(masking, before):
    once = masking(before)
    assert np.array_equal(masking(once), once, equal_nan=True)


# --- rounding ---


@each(
    ("x", "base", "expected"),
    [
        (0.31, 0.1, 0.3),
        (0.7, 0.1, 0.7),
        (2.5, 1, 2),
        (3.5, 1, 4),
        (-2.5, 1, -2),
        (0.15, 0.1, 0.2),
        (1.1, 0.75, 0.75),
        (7.4, 2.5, 7.5),
        (149, 100, 100),
        (150, 100, 200),
        (1e300, 0.1, 1e300),
        (3e-300, 2e-300, 4e-300),
        (1.0, 5e-324, 1.0),
    ],
)
def test_rounding_by_hand(x, base, expected):
    assert round_to_multiples(np.array([x]), base)[0] == expected


def test_a_small_negative_number_becomes_a_zero_without_sign():
    assert not np.signbit(round_to(np.array([[-0.2], [0.2]]), base=1)).any()


@given(st.integers(-(10**6), 10**6), st.sampled_from([0.1, 0.05, 0.2, 0.3, 2.5, 1.0, 20.0, 0.125, 1e-7, 7.0]))
def test_rounding_equals_exact_arithmetic_on_decimals(thousandths, base):
    x = thousandths / 1000
    assert round_to_multiples(np.array([x]), base)[0] == naive.rounded(x, base)


@given(rows, st.floats(1e-6, 1e6))
def test_rounding_moves_by_half_a_base_keeps_order_and_is_final(data, base):
    values = np.array(data)
    masked = round_to(values, base=base)
    check_half_a_base(values, masked, base)
    check_monotone(values, masked)
    check_missing_kept(values, masked)
    check_same_again(lambda x: round_to(x, base=base), values)


def test_checks_of_rounding_see_what_is_broken():
    values = generator().normal(0, 10, (50, 2))
    assert fails(check_half_a_base, values, np.floor(values), 1.0)
    assert fails(check_half_a_base, values, round_to(values, base=1.1), 1.0)
    assert fails(check_monotone, values, -round_to(values, base=1))
    assert fails(check_monotone, np.ones((2, 1)), np.array([[1.0], [2.0]]))
    assert fails(check_same_again, lambda x: np.floor(x) - 1, values)
    assert fails(check_same_again, lambda x: round_to(x, base=1) * 1.2, values)
    assert fails(check_means, values, values + 1e-6)
    assert not fails(check_means, values, values)


@given(st.floats(1e-30, 1e30))
def test_round_numbers_are_next_by_ratio(size):
    assert math.isclose(
        abs(math.log(round_number(size) / size)),
        abs(math.log(naive.next_round_number(size) / size)),
        abs_tol=1e-9,
    )


def test_which_base_is_used_when():
    sizes = np.array([10.0, 3.0, 0.0, 0.07])
    assert bases_of(sizes).tolist() == [2.0, 0.5, 0.0, 0.01]
    assert bases_of(sizes, base=4.0).tolist() == [4.0] * 4
    assert bases_of(sizes, base=4.0, bases=np.array([0.0, 7.0, 0.0, 1.0])).tolist() == [4.0, 7.0, 4.0, 1.0]
    assert bases_of(sizes, percent=0).tolist() == [0.0] * 4
    values = np.array([[0.13, 1.0], [0.13, 2.0], [0.13, 6.0]])
    assert round_to(values, percent=100)[:, 0].tolist() == [0.13] * 3  # no spread, no base
    assert round_to(values, base=0.1)[:, 0].tolist() == [0.1] * 3
    alone = round_to(values, bases=np.array([0.1, 0.0]), percent=0)
    assert alone.tolist() == [[0.1, 1.0], [0.1, 2.0], [0.1, 6.0]]


@pytest.mark.parametrize("size", SIZES)
def test_rounding_works_at_every_size(size):
    values = generator().normal(5, 1, (100, 2)) * size
    masked = round_to(values, percent=50)
    assert (masked != values).all()
    assert len(np.unique(masked)) < 20
    check_monotone(values, masked)


# --- top and bottom coding ---


def test_top_coding_by_hand():
    x = np.array([[1.0], [9.0], [3.0], [NAN], [5.0], [7.0], [20.0], [2.0], [4.0], [6.0], [8.0]])
    by_mean = top_bottom_code(x, top=0.3).ravel()
    assert by_mean[[1, 6, 10]].tolist() == [37 / 3] * 3
    assert top_bottom_code(x, top=0.3, replace="limit").ravel()[[1, 6, 10]].tolist() == [8.0] * 3
    both = top_bottom_code(x, top=0.3, bottom=0.4).ravel()
    assert np.array_equal(both, [2.5, 37 / 3, 2.5, NAN, 5, 7, 37 / 3, 2.5, 2.5, 6, 37 / 3], equal_nan=True)
    limits = {"above": np.array([6.5]), "below": np.array([2.5])}
    limited = top_bottom_code(x, top=0, replace="limit", **limits).ravel()
    assert limited[[0, 7, 1, 5]].tolist() == [2.5, 2.5, 6.5, 6.5]
    found = top_bottom_code(x, top=0, **limits).ravel()
    assert found[[0, 7, 1, 5, 6]].tolist() == [2.5, 2.5, 11.0, 11.0, 11.0]  # two values show the limit


def test_a_limit_stands_above_the_share_of_its_side():
    x = np.arange(20.0)[:, None]
    masked = top_bottom_code(x, top=0.5, above=np.array([15.5]), bottom=0.2)
    assert masked.ravel().tolist() == [1.5] * 4 + list(range(4, 16)) + [17.5] * 4
    open_ended = top_bottom_code(x, top=0.2, above=np.array([math.inf]))
    assert np.array_equal(open_ended, top_bottom_code(x, top=0.2))
    with pytest.raises(ValueError, match="limit below is 8 and the limit above 3"):
        top_bottom_code(x, above=np.array([3.0]), below=np.array([8.0]))


@given(
    st.lists(cell, min_size=3, max_size=40),
    st.sampled_from([0.01, 0.1, 0.3, 0.5]),
    st.sampled_from(["mean", "limit"]),
)
def test_top_coding_by_share_equals_its_twin(column, share, replace):
    found = top_bottom_code(np.array(column)[:, None], top=share, replace=replace).ravel()
    np.testing.assert_allclose(found, naive.top_coded(column, share, replace), rtol=1e-12, atol=1e-9)
    mirrored = top_bottom_code(-np.array(column)[:, None], top=0, bottom=share, replace=replace).ravel()
    assert np.array_equal(-mirrored, found)


@given(st.lists(cell, min_size=2, max_size=40), st.floats(-10, 10), st.sampled_from(["mean", "limit"]))
def test_top_coding_by_value_equals_its_twin(column, limit, replace):
    found = top_bottom_code(np.array(column)[:, None], above=np.array([limit]), replace=replace).ravel()
    np.testing.assert_allclose(found, naive.limited(column, limit, replace), rtol=1e-12, atol=1e-9)


@given(rows, st.floats(0, 0.5), st.floats(0, 0.5), st.sampled_from(["mean", "limit"]))
def test_coding_keeps_order_means_and_gaps_and_is_final(data, top, bottom, replace):
    values = np.array(data)

    def masking(x):
        return top_bottom_code(x, top=top, bottom=bottom, replace=replace)

    masked = masking(values)
    check_monotone(values, masked)
    check_missing_kept(values, masked)
    check_same_again(masking, values)
    if replace == "mean" and not np.isnan(values).all(axis=0).any():
        check_means(values, masked)


@given(rows, st.floats(-10, 0), st.floats(0, 10), st.sampled_from(["mean", "limit"]))
def test_limits_are_final_too(data, below, above, replace):
    limits = {"below": np.array([below, -math.inf]), "above": np.array([above, above])}

    def masking(x):
        return top_bottom_code(x, top=0, replace=replace, **limits)

    check_monotone(np.array(data), masking(np.array(data)))
    check_same_again(masking, np.array(data))


def test_checks_of_coding_see_what_is_broken():
    values = generator().normal(0, 10, (50, 2))
    assert fails(check_means, values, top_bottom_code(values, top=0.2, replace="limit"))
    assert fails(check_monotone, values, np.where(values > 5, 0.0, values))
    assert fails(check_same_again, lambda x: np.minimum(x, np.mean(x) + np.std(x)), values)
    assert fails(check_missing_kept, np.array([NAN, 1.0]), np.array([0.0, 1.0]))


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("replace", ["mean", "limit"])
def test_loss_of_a_coded_tail(share, replace):
    n = 10_000
    values = generator().normal(size=(n, 1))
    masked = top_bottom_code(values, top=share, replace=replace)
    m = round(share * n)
    assert math.isclose(sdc.brmae(values, masked), m * m / 4 / largest_absolute(n), rel_tol=1e-9)
    assert math.isclose(sdc.brmse(values, masked), (m**3 - m) / 12 / largest_squared(n), rel_tol=1e-9)
    assert math.isclose(sdc.brmae(values, masked), share**2 / 2, rel_tol=1e-3)
    assert math.isclose(sdc.brmse(values, masked), share**3 / 4, rel_tol=1e-3)


def test_a_code_never_stands_for_one_or_two_records():
    for n in (3, 5, 20, 100):
        x = generator(n).normal(size=(n, 1))
        _, counts = np.unique(top_bottom_code(x, top=0.001), return_counts=True)
        assert counts.max() == 3
    hundred = np.arange(100.0)[:, None]
    assert (top_bottom_code(hundred, top=0.07) != hundred).sum() == 6  # 7 without the middle one, and not 8
    assert top_bottom_code(np.array([[1.0], [2.0]]), top=0.01).ravel().tolist() == [1.5, 1.5]
    tied = np.array([[4.0], [4.0], [4.0], [4.0], [5.0], [1.0]])
    assert top_bottom_code(tied, top=0.3).ravel().tolist() == [4.2] * 5 + [1.0]


def test_ends_that_meet_leave_one_value():
    x = np.array([[1.0], [2.0], [3.0], [4.0], [10.0]])
    assert top_bottom_code(x, top=0.5, bottom=0.5).ravel().tolist() == [4.0] * 5
    assert top_bottom_code(x, top=0.5, bottom=0.5, replace="limit").ravel().tolist() == [3.0] * 5


@pytest.mark.parametrize("size", [*SIZES, 1.5e307])
def test_coding_works_at_every_size(size):
    values = generator().normal(5, 1, (100, 2))
    for options in ({}, {"multivariate": "distance"}):
        plain, scaled = top_bottom_code(values, **options), top_bottom_code(values * size, **options)
        np.testing.assert_allclose(scaled / size, plain, rtol=1e-12)


def test_the_mean_of_equal_values_is_that_value():
    assert mean_of(np.full(7, 0.1)) == 0.1
    assert mean_of(np.array([1.2e308, 1.7e308])) == pytest.approx(1.45e308)


# --- whole records ---


def distances(values, mean, sd):
    return np.sqrt((((values - mean) / sd) ** 2).sum(axis=1))


def check_drawn_in(before, after, share):
    mean, sd = before.mean(axis=0), before.std(axis=0, ddof=1)
    far = distances(before, mean, sd)
    count = max(3, math.ceil(share * len(before) - 1e-9))
    order = np.argsort(far)
    kept, coded = order[:-count], order[-count:]
    assert np.array_equal(after[kept], before[kept])
    np.testing.assert_allclose(distances(after, mean, sd)[coded], far[kept].max(), rtol=1e-9)
    lines = (after - mean) * far[:, None] - (before - mean) * distances(after, mean, sd)[:, None]
    assert np.abs(lines / sd / far.max()).max() < 1e-9  # straight towards the mean


@settings(max_examples=50)
@given(st.integers(5, 60), st.sampled_from([0.01, 0.1, 0.3]), st.integers(0, 2**32))
def test_far_records_are_drawn_in(n, share, seed):
    values = generator(seed).standard_t(2, (n, 3)) * [1, 100, 1e-6]
    masked = top_bottom_code(values, top=share, multivariate="distance")
    check_drawn_in(values, masked, share)
    np.testing.assert_allclose(masked, naive.drawn_in(values, share), rtol=1e-9, atol=1e-12)
    if n > 10:
        assert fails(check_drawn_in, values, top_bottom_code(values, top=share), share)
        assert fails(check_drawn_in, values, values, share)


def test_drawing_in_keeps_sums_constants_and_gaps():
    parts = generator().lognormal(size=(200, 2))
    values = np.column_stack([parts, parts.sum(axis=1), np.full(200, 0.1)])
    masked = top_bottom_code(values, top=0.1, multivariate="distance")
    np.testing.assert_allclose(masked[:, 0] + masked[:, 1], masked[:, 2], rtol=1e-12)
    assert (masked[:, 3] == 0.1).all()
    assert (masked != values).any(axis=1).sum() == 20
    values[::9, 1] = values[5] = NAN
    masked = top_bottom_code(values, top=0.1, multivariate="distance")
    check_missing_kept(values, masked)
    assert 0 < (masked != values)[:, 0].sum() < 60
    assert np.array_equal(top_bottom_code(values, top=0, multivariate="distance"), values, equal_nan=True)


def test_the_distance_of_a_record_with_gaps_is_scaled_to_all_columns():
    values = np.tile([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]], (5, 1))
    values[0], values[1], values[2], values[3] = [2.0, NAN], [-2.0, NAN], [1.7, 1.7], [-1.7, -1.7]
    masked = top_bottom_code(values, top=0.15, multivariate="distance")
    assert (masked[:2, 0] != values[:2, 0]).all()  # as far as (2, 2): farther than (1.7, 1.7)
    assert (masked != values)[2:4].all(axis=1).sum() <= 1


@pytest.mark.parametrize("more", [{"bottom": 0.1}, {"above": np.array([1.0])}, {"below": np.array([1.0])}])
def test_drawing_in_refuses_what_it_cannot_do(more):
    with pytest.raises(ValueError, match="takes no bottom, above or below"):
        top_bottom_code(np.arange(9.0)[:, None], multivariate="distance", **more)


# --- what the registry says ---


def test_notes_of_a_release():
    values = np.arange(100.0)[:, None]
    usual = METHODS["top_bottom_code"].defaults() | {"above": None, "below": None}
    assert notes_on_limits(values, usual) == []
    assert "original values" in notes_on_limits(values, usual | {"replace": "limit"})[0]
    assert "raised to 3" in notes_on_limits(values, usual | {"top": 0.02})[0]
    assert "show the limit" in notes_on_limits(values, usual | {"above": np.array([97.5])})[0]
    assert "show the limit" in notes_on_limits(values, usual | {"below": np.array([0.5])})[0]
    assert notes_on_limits(values, usual | {"above": np.array([90.0])}) == []
    assert notes_on_limits(values, usual | {"multivariate": "distance"}) == []
