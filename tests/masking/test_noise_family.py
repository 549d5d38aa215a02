"""Noise with promises: what each method keeps, each check also shown a broken method."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive_masking_noise as naive
import sdckit as sdc
from contract import data
from maskings import NAN, cell, check_missing_kept, fails, generator
from sdckit.kernels.draws import normals
from sdckit.kernels.sums import powers_of_two
from sdckit.masking.noise import (
    BLOCK,
    _blocks,
    correlated_noise,
    kim_noise,
    moment_preserving_noise,
    multiplicative_noise,
    noise,
    romm,
    space_of,
    zero_preserving_noise,
)

EPS = np.finfo(float).eps
EXACT = {
    "moment_preserving_noise": lambda values, seed, share=0.7: moment_preserving_noise(
        values, delta=share, rng=generator(seed)
    ),
    "romm": lambda values, seed, share=0.7: romm(values, percent=300 * share, rng=generator(seed)),
}
exactly = pytest.mark.parametrize("method", EXACT.values(), ids=list(EXACT))


def unrestrained(values, seed, share=0.05):
    """Random orthogonal matrix masking without T 1 = 1, the form of R's sdcMicro."""
    rotation = np.linalg.qr(np.eye(len(values)) + share * generator(seed).normal(size=(len(values),) * 2))[0]
    return rotation @ values


# --- means and covariances, exactly ---


def sized(before, after):
    """Both files in units in which nothing overflows."""
    unit = powers_of_two(before)
    return before / unit, after / unit


def check_means_kept(before, after):
    x, y = sized(before, after)
    rounding = 8 * EPS * np.maximum(np.abs(x), np.abs(y)).max(0)
    assert (np.abs(y.mean(0) - x.mean(0)) <= 1e-9 * x.std(0) + rounding).all()


def check_covariances_kept(before, after):
    x, y = sized(before, after)
    sd = x.std(0)
    safe = np.where(sd > 0, sd, 1.0)
    rounding = 32 * EPS * np.maximum(np.abs(x), np.abs(y)).max(0) / safe
    gap = np.abs(np.cov(y.T, ddof=0) - np.cov(x.T, ddof=0)).reshape(x.shape[1], -1) / np.outer(safe, safe)
    assert (gap <= 1e-9 + rounding[:, None] + rounding).all()


def check_total_kept(before, after):
    """The last column is the sum of the others."""
    x, y = sized(before, after)
    assert (before[:, :-1].sum(1) == before[:, -1]).all()
    unit = powers_of_two(before)
    off = np.abs(after[:, :-1].sum(1) - after[:, -1]) / unit.max()
    assert off.max() <= 1e-12 * max(np.abs(x).max(), np.abs(y).max())


tables = st.integers(1, 3).flatmap(
    lambda p: st.lists(st.tuples(*[cell] * p), min_size=2 * p + 1, max_size=40).map(np.array)
)


@exactly
@settings(max_examples=30)
@given(tables, st.floats(0, 1), st.integers(0, 2**32))
def test_means_and_covariances_are_kept_exactly(method, values, share, seed):
    masked = method(values, seed, share)
    check_means_kept(values, masked)
    check_covariances_kept(values, masked)


@exactly
def test_means_and_covariances_of_columns_of_very_different_sizes_are_kept(method):
    values = data(60) * [1e-200, 1.0, 1e200]
    masked = method(values, 3)
    check_means_kept(values, masked)
    check_covariances_kept(values, masked)
    far = data(60) + 1e9
    check_means_kept(far, method(far, 3))
    check_covariances_kept(far, method(far, 3))


@exactly
@pytest.mark.parametrize("n", [BLOCK * 2 - 1, BLOCK * 2, 3 * BLOCK + 7, 5000])
def test_means_and_covariances_of_longer_files_are_kept(method, n):
    values = np.exp(data(n) / 10)
    masked = method(values, n)
    check_means_kept(values, masked)
    check_covariances_kept(values, masked)


@exactly
@settings(max_examples=40)
@given(st.integers(7, 300), st.integers(0, 2**32))
def test_a_total_stays_the_sum_of_its_parts(method, n, seed):
    parts = np.round(generator(seed).lognormal(8, 2, (n, 2)))
    values = np.column_stack([parts, parts.sum(1)])
    masked = method(values, seed)
    check_total_kept(values, masked)
    check_means_kept(values, masked)
    check_covariances_kept(values, masked)


def test_census_keeps_its_total(census):
    names = ["PEARNVAL", "POTHVAL", "PTOTVAL"]
    for method in EXACT:
        masked = sdc.mask(census, method, rng=1)
        check_total_kept(census.select(names).to_numpy(), masked.select(names).to_numpy())
        check_covariances_kept(census.to_numpy(), masked.to_numpy())
        check_means_kept(census.to_numpy(), masked.to_numpy())


def test_broken_methods_lose_means_covariances_and_totals():
    parts = np.round(generator(1).lognormal(8, 1, (60, 2)))
    values = np.column_stack([parts, parts.sum(1)])
    turned = unrestrained(values, 2)
    assert fails(check_means_kept, values, turned)  # as in sdcMicro
    np.testing.assert_allclose(turned.T @ turned, values.T @ values)  # which keeps this instead
    assert fails(check_covariances_kept, values, turned)
    kim = kim_noise(values, percent=50, rng=generator())
    assert fails(check_means_kept, values, kim)
    assert fails(check_covariances_kept, values, kim)
    assert fails(check_covariances_kept, values, values * (1 + 1e-8))
    assert fails(check_total_kept, values, noise(values, percent=1, rng=generator()))
    rounding = values + 1e-6 * generator(4).normal(size=values.shape)
    assert fails(check_total_kept, values, rounding)


def test_three_records_leave_the_noise_one_direction():
    values = np.array([[-1.0], [0.0], [1.0]])
    for seed in range(5):  # orthogonal to (1, 1, 1) and to the data, of the same length
        masked = moment_preserving_noise(values, delta=1, rng=generator(seed))[:, 0]
        np.testing.assert_allclose(masked * np.sign(masked[0]), np.array([1, -2, 1]) / math.sqrt(3))


@given(st.integers(0, 2**32), st.floats(0, 1))
def test_delta_is_the_share_of_noise(seed, delta):
    values = data(20, seed=seed % 100)
    masked = moment_preserving_noise(values, delta=delta, rng=generator(seed))
    for x, y in zip(values.T, masked.T, strict=True):
        assert np.corrcoef(x, y)[0, 1] == pytest.approx(math.sqrt(1 - delta**2), abs=1e-9)
    if delta == 0 or delta > 1e-6:
        assert np.array_equal(masked, values) == (delta == 0)


def test_noise_for_means_and_covariances_needs_records():
    record = sdc.METHODS["moment_preserving_noise"]
    assert record.records({}, 3) == 7
    assert np.isfinite(moment_preserving_noise(data(7), delta=1, rng=generator())).all()
    with pytest.raises(ValueError, match=r"needs 7 records for 3 independent variables and the data have 6"):
        moment_preserving_noise(data(6), rng=generator())
    constant = np.full((4, 3), 0.1)
    assert np.array_equal(moment_preserving_noise(constant, delta=1, rng=generator()), constant)


def test_noise_takes_no_side():
    """Decompositions choose signs; the noise of the first record must not be what they choose."""
    values = data(9)
    first = [moment_preserving_noise(values, delta=1, rng=generator(seed))[0] for seed in range(400)]
    above = (first > values.mean(0)).mean(0)
    assert (np.abs(above - 0.5) < 4.5 * 0.5 / math.sqrt(400)).all()


@pytest.mark.parametrize("delta", [0.1, 0.9, 1.0])
def test_noise_as_its_twin(delta):
    values = data(30)
    twin = naive.moment_preserving(values, delta, normals(generator(4), (3, 30)))
    np.testing.assert_allclose(
        moment_preserving_noise(values, delta=delta, rng=generator(4)), twin, rtol=1e-9
    )


def test_a_basis_is_the_space_in_which_the_records_differ():
    parts = data(30, 2)
    space = space_of(np.column_stack([parts, parts.sum(1), np.full(30, 0.1)]))
    assert space.scores.shape == (30, 2)
    np.testing.assert_allclose(space.scores @ space.loadings, space.points, atol=1e-12)
    np.testing.assert_allclose(space.scores.T @ space.scores, np.eye(2), atol=1e-12)
    far = space_of(data(1000) + 1e9)  # the rounding of a large mean is taken out, too
    assert np.abs(far.scores.sum(0)).max() < 1e-11


# --- rotations ---


def pieces(n, seed):
    rng = generator(seed)
    found = []
    for rows in _blocks(n, rng):
        draws = normals(rng, (len(rows), rows.shape[1] - 1, rows.shape[1] - 1))
        found += zip(rows, draws, strict=True)
    return found


@pytest.mark.parametrize("percent", [0, 20, 300])
@pytest.mark.parametrize("n", [2, 3, 7, 2 * BLOCK + 5])
def test_rotation_as_its_twin(n, percent):
    values = data(n)
    matrix = naive.rotation(n, pieces(n, 6), percent / 100)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(n), atol=1e-12)
    np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-12)
    masked = romm(values, percent=percent, rng=generator(6))
    np.testing.assert_allclose(masked, matrix @ values, rtol=1e-10)
    assert percent > 0 or np.array_equal(masked, values)


@pytest.mark.parametrize("n", [2, 99, 100, 199, 200, 201, 399, 5000, 12_345])
def test_blocks_hold_every_record_once_and_enough_of_them(n):
    blocks = [block for rows in _blocks(n, generator(1)) for block in rows]
    assert sorted(np.concatenate(blocks)) == list(range(n))
    sizes = {len(block) for block in blocks}
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= min(n, BLOCK)
    assert max(sizes) < 2 * BLOCK


def test_two_records_stay_or_change_places():
    values = np.array([[1.0, 5.0], [4.0, 2.0]])
    seen = {romm(values, percent=300, rng=generator(seed)).round(9).tobytes() for seed in range(40)}
    assert seen == {values.tobytes(), values[::-1].tobytes()}


@pytest.mark.parametrize(("percent", "correlation"), [(20, 0.98), (50, 0.89), (100, 0.62), (300, 0.23)])
def test_a_rotation_is_as_strong_as_said(percent, correlation):
    x = generator(1).normal(size=(10_000, 1))
    found = [np.corrcoef(x.T, romm(x, percent=percent, rng=generator(seed)).T)[0, 1] for seed in range(3)]
    assert np.mean(found) == pytest.approx(correlation, abs=0.015)  # 3 standard errors


def test_the_mean_stands_in_for_missing_cells():
    values = data(50)
    values[::5, 1] = NAN
    filled = np.where(np.isnan(values), np.nanmean(values, axis=0), values)
    for method in EXACT.values():
        check_missing_kept(values, method(values, 3))
    whole = romm(filled, percent=80, rng=generator(3))
    np.testing.assert_allclose(romm(values, percent=80, rng=generator(3)), whole + 0 * values, rtol=1e-9)
    assert fails(check_means_kept, values[values[:, 1] > 0], whole[values[:, 1] > 0])


# --- means and covariances, in expectation ---


def check_expected(found, target):
    """The mean over simulations, within 4.5 of its standard errors."""
    found = np.array(found)
    error = found.std(0, ddof=1) / math.sqrt(len(found))
    assert (error > 0).all()
    assert (np.abs(found.mean(0) - target) <= 4.5 * error).all()


def simulated(method, values, runs=600):
    return [method(values, generator(seed)) for seed in range(runs)]


def means(files):
    return [masked.mean(0) for masked in files]


def covariances(files):
    return [np.cov(masked.T) for masked in files]


@pytest.mark.parametrize("scale", ["sd", "variance"])
def test_kim_as_its_twin(scale):
    values = data(30)
    noisy = correlated_noise(values, percent=60, scale=scale, rng=generator(2))
    twin = naive.kim(values, noisy, 0.36 if scale == "sd" else 0.6)
    masked = kim_noise(values, percent=60, scale=scale, rng=generator(2))
    np.testing.assert_allclose(masked, twin, rtol=1e-12)


def test_multiplicative_noise_has_the_moments_of_the_formula():
    values = np.column_stack([data(40), generator(3).normal(0, 1, 40)])
    s = 0.4
    files = simulated(lambda x, rng: multiplicative_noise(x, percent=100 * s, rng=rng), values)
    check_expected(means(files), values.mean(0))
    n = len(values)
    variance = np.var(values, axis=0, ddof=1)  # with n records: the mean of x^2 stands for v + m^2
    target = variance + s**2 * (variance * (n - 1) / n + values.mean(0) ** 2)
    check_expected([masked.var(0, ddof=1) for masked in files], target)
    expected = np.cov(values.T)
    np.fill_diagonal(expected, target)
    check_expected(covariances(files), expected)
    additive = simulated(lambda x, rng: noise(x, percent=100 * s, rng=rng), values)
    assert fails(check_expected, [masked.var(0, ddof=1) for masked in additive], target)
    shifted = [masked * 1.01 for masked in files]
    assert fails(check_expected, means(shifted), values.mean(0))


def test_multiplicative_noise_changes_signs_as_often_as_said():
    x = np.arange(1.0, 200_001.0)[:, None]
    for percent, share in ((30, 1 / 2300), (50, 1 / 44), (100, 1 / 6.3)):
        negative = (multiplicative_noise(x, percent=percent, rng=generator(1)) < 0).mean()
        assert abs(negative - share) < 4.5 * math.sqrt(share / len(x)) + 0.01 * share


# --- zeros ---


TINY = [(5e-324, -5e-324), (-1e-323, 0.0), (2.2250738585072014e-308, 5e-324), (0.0, -0.0)] * 9


def check_zeros_kept(before, after):
    assert np.array_equal(before == 0, after == 0)


@example(TINY, 0)
@given(st.lists(st.tuples(cell, cell | st.just(NAN)), min_size=2, max_size=40), st.integers(0, 2**32))
def test_zeros_stay_and_nothing_else_becomes_one(rows, seed):
    values = np.array(rows)
    for method in (zero_preserving_noise, multiplicative_noise):
        masked = method(values, percent=60, rng=generator(seed))
        check_zeros_kept(values, masked)
        check_missing_kept(values, masked)


def test_broken_methods_lose_zeros():
    values = np.array([[0.0], [1.0], [3.0], [0.0]])
    assert fails(check_zeros_kept, values, noise(values, percent=10, rng=generator()))
    forced = np.maximum(zero_preserving_noise(values, percent=900, rng=generator(1)), 0)
    assert fails(check_zeros_kept, values, forced)


def test_noise_that_meets_a_value_makes_no_zero():
    values = np.array([[5e-324], [1e-323], [0.0], [-5e-324]] * 50)  # the smallest numbers that there are
    assert (values + noise(values, percent=100, rng=generator()) == 0).any()
    check_zeros_kept(values, zero_preserving_noise(values, percent=100, rng=generator()))


@pytest.mark.parametrize("name", ["zero_preserving_noise", "multiplicative_noise"])
def test_zeros_as_the_twins_keep_them(name):
    values = data(25)
    values[::4, 0] = values[1::3, 1] = 0
    values[2, 1] = NAN
    twin = getattr(naive, name.removesuffix("_noise"))
    method = sdc.METHODS[name]
    expected = twin(values.tolist(), 30, normals(generator(1), (3, 25)))
    np.testing.assert_allclose(method.function(values, percent=30, rng=generator(1)), expected, rtol=1e-12)
    zeros = int((values == 0).sum())
    assert method.release_notes(values, {}) == [
        f"{zeros} of 74 cells are 0 and stay 0: the file discloses which records have a zero"
    ]
    assert method.release_notes(data(25), {}) == []


def test_zero_preserving_noise_is_measured_by_the_other_cells():
    values = np.array([[0.0], [3.0], [0.0], [8.0], [4.0]])  # mean of the others 5, squares 4 + 9 + 1
    draws = normals(generator(1), (1, 5)).T
    masked = zero_preserving_noise(values, percent=100, rng=generator(1))
    np.testing.assert_allclose((masked - values)[[1, 3, 4]], math.sqrt(7) * draws[[1, 3, 4]])
    yes_or_no = np.array([[0.0], [1.0], [1.0]])
    with pytest.warns(UserWarning, match="not masked, every value is as in the original"):
        sdc.mask(yes_or_no, "zero_preserving_noise", percent=100, rng=1)


def test_multiplicative_noise_leaves_a_constant_alone_but_no_single_value():
    assert (multiplicative_noise(np.full((3, 1), 7.0), percent=50, rng=generator()) == 7).all()
    lone = np.array([[7.0, 1.0], [NAN, 2.0]])
    assert multiplicative_noise(lone, percent=50, rng=generator())[0, 0] != 7
