"""Invariants of noise, each also shown a broken method; what `mask` refuses or warns of."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import sdckit as sdc
from calls import called
from maskings import NAN, cell, check_missing_kept, fails, generator
from sdckit.kernels.sums import spread
from sdckit.masking.noise import correlated_noise, covariance_root, noise


def people(n, seed=0):
    """Two parts and their total, as in the Census file: dependent columns of different size."""
    rng = generator(seed)
    parts = rng.lognormal(3, 1, (n, 2)) * [1, 1000]
    return np.column_stack([parts, parts.sum(1), parts @ [2, 0.001] + rng.normal(size=n)])


# --- noise ---


def check_spread(before, after, share):
    n = len(before)
    ratio = np.std(after - before, axis=0, ddof=1) / np.std(before, axis=0, ddof=1)
    assert ratio == pytest.approx(share, rel=5 / math.sqrt(2 * n))


def check_means(before, after, share):
    moved = np.abs((after - before).mean(0)) / np.std(before, axis=0)
    assert (moved < 5 * share / math.sqrt(len(before))).all()


METHODS = {"noise": noise, "correlated_noise": correlated_noise}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("percent", [5, 50, 200])
def test_noise_has_the_asked_spread(method, percent):
    values = people(20_000)
    masked = method(values, percent=percent, rng=generator(1))
    check_spread(values, masked, percent / 100)
    check_means(values, masked, percent / 100)


def test_variance_scale_of_correlated_noise():
    values = people(20_000)
    masked = correlated_noise(values, percent=50, scale="variance", rng=generator(1))
    check_spread(values, masked, math.sqrt(0.5))
    same = correlated_noise(values, percent=100 * math.sqrt(0.5), rng=generator(1))
    assert masked == pytest.approx(same, rel=1e-12)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@given(
    rows=st.lists(st.tuples(cell, cell | st.just(NAN), st.integers(0, 3)), min_size=2, max_size=30),
    percent=st.floats(0.01, 300),
    seed=st.integers(0, 2**32),
)
def test_noise_scales_linearly_under_one_seed(method, rows, percent, seed):
    values = np.array(rows, float)
    assert np.array_equal(method(values, percent=0, rng=generator(seed)), values, equal_nan=True)
    one = method(values, percent=percent, rng=generator(seed))
    two = method(values, percent=2 * percent, rng=generator(seed))
    check_missing_kept(values, one)
    seen = ~np.isnan(values)
    size = np.abs(values[seen]).max() + np.abs(one[seen]).max()
    assert (two - values)[seen] == pytest.approx(2 * (one - values)[seen], abs=1e-12 * (size + 1), rel=1e-9)


def test_correlated_noise_raises_all_variances_and_covariances_by_one_factor():
    values = people(20_000)
    masked = correlated_noise(values, percent=80, rng=generator(2))
    size = np.outer(values.std(0), values.std(0))
    grown = np.cov(masked, rowvar=False) / size
    assert grown == pytest.approx((1 + 0.8**2) * np.cov(values, rowvar=False) / size, abs=0.06)


@given(st.integers(3, 40), st.integers(1, 5), st.integers(0, 2**32))
def test_covariance_root_squares_to_the_covariance(n, p, seed):
    values = generator(seed).normal(size=(n, p)) * 10.0 ** np.arange(-3, p - 3)
    root = covariance_root(values)
    expected = np.atleast_2d(np.cov(values, rowvar=False))
    size = np.sqrt(np.diag(expected))
    assert root.T @ root / np.outer(size, size) == pytest.approx(expected / np.outer(size, size), abs=1e-9)
    assert spread(values) == pytest.approx([naive.spread(column) for column in values.T])


def test_noise_on_columns_with_gaps():
    values = people(5000)
    complete = values.copy()
    values[generator(6).random(values.shape) < 0.2] = NAN
    assert spread(values) == pytest.approx([naive.spread(column.tolist()) for column in values.T])
    for method in METHODS.values():
        masked = method(values, percent=30, rng=generator(7))
        check_missing_kept(values, masked)
        noise_of = np.nanstd(masked - values, axis=0) / complete.std(0)
        assert noise_of == pytest.approx(0.3, rel=0.15)


def test_noise_on_a_column_with_a_single_value_adds_none():
    values = np.array([[1.0, NAN], [4.0, 7.0], [9.0, NAN]])
    for method in METHODS.values():
        assert method(values, percent=100, rng=generator(1))[1, 1] == 7.0


def test_the_checks_of_noise_refuse_broken_methods():
    values = people(20_000)
    good = correlated_noise(values, percent=50, rng=generator(1))
    variance = correlated_noise(values, percent=50, scale="variance", rng=generator(1))
    assert fails(check_spread, values, variance, 0.5)
    assert fails(check_spread, values, values + generator(1).normal(0, 0.5, values.shape), 0.5)
    assert fails(check_means, values, good + np.std(values, axis=0) / 10, 0.5)


# --- the call: numbers out of range ---


def test_rounding_keeps_large_numbers_and_is_checked():
    values = [1e300, 2e300, 3e300, 0.125]
    masked = sdc.mask(values, "mdav", k=2, decimals="original")
    assert np.array_equal(masked, sdc.mask(values, "mdav", k=2))
    assert np.isfinite(sdc.mask(values, "mdav", k=2, decimals=15)).all()


def test_large_whole_numbers_raise_no_warning_of_numpy():
    values = [1.7e308, -1.7e308, 1e308]
    assert sorted(sdc.mask(values, "rank_swap", p=1, rng=1)) == sorted(values)


@pytest.mark.parametrize("decimals", [None, "original", 2])
def test_arithmetic_out_of_range_is_refused(decimals):
    values = [1e308, -1e308, 3.0, 4.5, 7.25]
    for method in METHODS:
        with pytest.raises(ValueError, match=r"^column 'x1' holds numbers too large for"):
            sdc.mask(values, method, percent=10_000, decimals=decimals, rng=1)


def test_masked_integers_beyond_2_to_the_53_are_refused():
    frame = pl.DataFrame({"a": [1, 2, 9, 4]})
    for table in (frame, frame.to_pandas(), frame.to_arrow()):
        with pytest.raises(
            ValueError, match=r"^column 'a' has masked values up to .*e\+.*, too large for whole"
        ):
            sdc.mask(table, "noise", percent=1e20, decimals="original", rng=1)
    exact = sdc.mask(frame, "noise", percent=1e20, rng=1)
    assert exact.schema["a"] == pl.Float64
    assert exact["a"].abs().max() > 2**60


# --- the call: originals published unchanged ---


def test_columns_that_the_method_left_alone_are_named_once():
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0, 5.0], "b": [4.0, 8.0, 2.0, 1.0], "c": [7.0] * 4})
    text = (
        r"^not masked, every value is as in the original: 'a', 'b'; raise the parameter or leave the col.*t$"
    )
    with pytest.warns(UserWarning, match=text) as caught:
        sdc.mask(frame, "rank_swap", p=0.1, rng=1)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="original: 'a'; raise"):  # rounding brings the values back
        sdc.mask(pl.DataFrame({"a": [1, 2, 4], "b": [1.5, 2.25, 9.125]}), "noise", decimals="original", rng=1)
    with pytest.warns(UserWarning, match="original: 'x1'; raise"):  # a rounded original is no masked one
        sdc.mask([1.25, 2.25, 3.25], "noise", percent=0.1, decimals=0, rng=1)
    with pytest.warns(UserWarning, match="original: 'x2'; raise"):  # a single value
        sdc.mask([[1.0, None], [2.0, 5.0], [4.0, None]], "noise", rng=1)


def test_what_was_asked_for_or_has_nothing_to_change_is_not_named():
    values = [1.0, 2.0, 4.0]
    for method, options in {
        "mdav": {"k": 1},
        "noise": {"percent": 0},
        "correlated_noise": {"percent": 0},
        "rank_swap": {"p": 0},
    }.items():
        assert called("mask", values, method, **options).tolist() == values
    sdc.mask([[1.0, 3.0, NAN], [2.0, 3.0, NAN], [4.0, NAN, NAN]], "noise", rng=1)  # constant, empty
    sdc.mask([0.1, 0.2, 0.4], "noise", decimals=0, rng=1)  # rounding left a constant
    frame = pl.DataFrame({"a": [1.0, 2.0, 5.0, 5.0], "g": ["u", "u", "v", "v"]})
    sdc.Microdata(frame, by="g").mask("noise", rng=1)


def test_strata_that_the_method_left_alone_are_named():
    frame = pl.DataFrame(
        {"a": [1.0, 2.0, 3.0, 5.0, 6.0], "b": [4.0, 8.0, None, 2.0, 1.0], "g": list("uuvww")}
    )
    text = "original: 'a' in stratum 'v'; raise the parameter, merge strata or leave the column out$"
    with pytest.warns(UserWarning, match=text) as caught:
        sdc.Microdata(frame, by="g").mask("noise", rng=1)
    assert len(caught) == 1
    alone = pl.DataFrame({"a": np.arange(9.0) ** 2, "g": [f"s{i}" for i in range(9)]})
    every = ", ".join(f"'a' in stratum 's{i}'" for i in range(9))  # never shortened
    with pytest.warns(UserWarning, match=f"original: {every}; raise"):
        sdc.Microdata(alone, by="g").mask("noise", rng=1)


def test_no_column_in_by_means_one_stratum():
    frame = pl.DataFrame({"a": [1.0, 2.0, 30.0, 31.0]})
    assert sdc.Microdata(frame, by=[]).mask("mdav", k=2)["a"].to_list() == [1.5, 1.5, 30.5, 30.5]
