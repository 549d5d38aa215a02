"""Noise follows the scale of each column, however large or small its numbers are."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from cases import each
from contract import data

NAMES = ["zero_preserving_noise", "multiplicative_noise", "kim_noise", "moment_preserving_noise", "romm"]
NAMES += ["outlier_noise"]


@each("method", ["mdav", "individual_ranking"])
def test_means_of_the_largest_numbers_do_not_overflow(method):
    masked = sdc.mask([1.2e308, 1.7e308, -1.0, 5.0], method, k=2)
    np.testing.assert_allclose(masked, [1.45e308, 1.45e308, 2.0, 2.0], rtol=1e-15)


@each("name", [*NAMES, "noise", "correlated_noise", "ipso", "copula", "resample", "shuffle"])
@each("units", [[1e-200, 1.0, 1e200], [1e-300, 1e-170, 1e306]])
def test_masking_is_the_same_in_every_unit(name, units):
    values = data(60)
    plain = sdc.mask(values, name, rng=4)
    assert not np.array_equal(plain, values)
    np.testing.assert_allclose(sdc.mask(values * units, name, rng=4) / units, plain, rtol=1e-9)


@each("name", ["zero_preserving_noise", "multiplicative_noise", "outlier_noise"])
def test_the_same_draws_are_scaled_by_the_percent(name):
    values = data(60)
    weak, strong = (sdc.mask(values, name, percent=percent, rng=4) - values for percent in (10, 30))
    np.testing.assert_allclose(strong, 3 * weak, rtol=1e-9)


@each("name", NAMES)
def test_a_stronger_parameter_masks_more(name):
    method = sdc.METHODS[name]
    (parameter,) = [p for p in method.parameters if p.grid]
    assert 8 <= len(parameter.grid) <= 30
    values = data(300)
    losses = [sdc.il1s(values, sdc.mask(values, name, rng=4, **{parameter.name: v})) for v in parameter.grid]
    assert losses == sorted(losses)


# --- what R's sdcMicro 5.8.1 makes of Tarragona (see the README of the golden files) ---


def masked_by_r(golden, name):
    return pl.read_csv(golden / f"Tarragona_{name}.csv", infer_schema_length=None).cast(pl.Float64).to_numpy()


def correlations(values):
    return np.corrcoef(values.T)[np.triu_indices(values.shape[1], 1)]


def shrinkage(x, y):
    """The factor by which correlations differ, by least squares."""
    before, after = correlations(x), correlations(y)
    return (before @ after) / (before @ before)


def test_the_same_fifty_is_a_share_of_sd_or_of_variance(tarragona, golden):
    x = tarragona.to_numpy()
    sd = x.std(0, ddof=1)

    def strength(y):
        return ((y - x).std(0, ddof=1) / sd).mean()

    def ours(name, **options):
        return called("mask", x, name, percent=50, rng=1, **options)

    half, root = pytest.approx(0.5, abs=0.03), pytest.approx(np.sqrt(0.5), abs=0.03)
    assert strength(masked_by_r(golden, "additive_50_seed1")) == half
    assert strength(ours("noise")) == half
    assert strength(masked_by_r(golden, "correlated_50_seed2")) == root
    assert strength(ours("correlated_noise", scale="variance")) == root
    assert strength(ours("correlated_noise")) == half


def test_correlated2_is_not_correlated(tarragona, golden):
    x, delta = tarragona.to_numpy(), 0.5
    y = masked_by_r(golden, "correlated2_delta0.5_seed3")
    np.testing.assert_allclose(y.var(0) / x.var(0), 1, atol=0.06)
    assert shrinkage(x, y) == pytest.approx(1 - delta**2, abs=0.02)
    exact = sdc.mask(x, "moment_preserving_noise", delta=delta, rng=1)
    np.testing.assert_allclose(np.cov(exact.T), np.cov(x.T), rtol=1e-9)
    for found in (y, exact):  # the same strength
        near = [np.corrcoef(x[:, j], found[:, j])[0, 1] for j in range(13)]
        assert np.mean(near) == pytest.approx(np.sqrt(1 - delta**2), abs=0.01)


def test_restr_adds_no_noise_and_shifts_cells_by_the_mean_of_other_variables(tarragona, golden):
    x, y = tarragona.to_numpy(), masked_by_r(golden, "restr_150")
    n, p = x.shape
    shrink = np.sqrt((n - 1) / (n + 1.5 * n - 1))
    cells = np.arange(n)[:, None] + n * np.arange(p)  # in the order of R, which goes on counting the means
    shift = ((1 - shrink) * x.mean(0))[cells % p]
    np.testing.assert_allclose(y, shrink * x + shift, rtol=1e-12)
    np.testing.assert_allclose((y - shift) / shrink, x, atol=1e-6)  # who knows the means undoes it
    assert (np.abs(y.mean(0) - x.mean(0)) / x.std(0)).max() > 1.5
    kim = sdc.mask(x, "kim_noise", percent=150, scale="variance", rng=1)
    assert (np.abs(kim.mean(0) - x.mean(0)) / x.std(0)).max() < 0.1
