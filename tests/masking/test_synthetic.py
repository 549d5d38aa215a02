"""Resampling, IPSO and the copula: slow twins, and invariants each shown a broken method."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_masking_coding as naive
import sdckit as sdc
from maskings import NAN, cell, check_missing_kept, fails, generator
from naive import middle_ranks2
from sdckit.core.registry import METHODS
from sdckit.kernels.draws import normals
from sdckit.masking.noise import correlated_noise
from sdckit.masking.synthetic import copula, correlation_root, ipso, orthonormal_basis, quantiles_at, resample

SIZES = [1e-300, 1e-12, 1.0, 1e150, 1e300]
column_of_cells = st.lists(cell | st.just(NAN), min_size=2, max_size=40).filter(
    lambda x: not np.isnan(x).all()
)


def check_order(before, after):
    """The same order, equal values included: a function of the value that never falls."""
    for x, y in zip(before.T, after.T, strict=True):
        seen = ~np.isnan(x)
        order = np.argsort(x[seen], kind="stable")
        steps, same = np.diff(y[seen][order]), np.diff(x[seen][order]) == 0
        assert (steps >= 0).all()
        assert (steps[same] == 0).all()


def check_moments(before, after):
    """Means and covariances, relative to the sizes of the columns."""
    sd = before.std(axis=0)
    size = np.where(sd > 0, sd, 1.0)
    assert np.abs((after.mean(axis=0) - before.mean(axis=0)) / size).max() < 1e-9
    # Covariances in units of the original's deviations: correlations, as large as 1.
    x, y = ((part - before.mean(axis=0)) / size for part in (before, after))
    assert np.abs(x.T @ x - y.T @ y).max() / len(x) < 1e-9


def check_regression(before, after, kept):
    """The given columns themselves, and the coefficients of the others on them."""
    others = [j for j in range(before.shape[1]) if j not in kept]
    assert np.array_equal(before[:, kept], after[:, kept])

    def coefficients(values):
        design = np.column_stack([np.ones(len(values)), values[:, kept]])
        return np.linalg.lstsq(design, values[:, others], rcond=None)[0]

    np.testing.assert_allclose(coefficients(after), coefficients(before), rtol=1e-9, atol=1e-9)


def mixed(n, seed, p=4):
    """Correlated columns, some of them skewed."""
    rng = generator(seed)
    values = rng.normal(size=(n, 1)) + rng.normal(size=(n, p))
    values[:, 1] = np.exp(values[:, 1])
    return values


# --- resampling ---


@given(column_of_cells, st.integers(1, 6), st.integers(0, 2**32))
def test_resampling_equals_its_twin_and_keeps_order(cells, samples, seed):
    values = np.array(cells)[:, None]
    masked = resample(values, samples=samples, rng=generator(seed))
    own = generator(int(generator(seed).integers(2**63, size=1)[0]))
    twin = naive.resampled(cells, samples, own)
    np.testing.assert_allclose(masked.ravel(), twin, rtol=1e-12, atol=1e-9)
    check_order(values, masked)
    check_missing_kept(values, masked)
    assert np.nanmin(values) <= np.nanmin(masked)
    assert np.nanmax(masked) <= np.nanmax(values)


def test_check_of_order_sees_what_is_broken():
    values = np.round(generator().normal(size=(60, 2)), 1)
    assert fails(check_order, values, np.random.default_rng(1).permutation(values))
    assert fails(check_order, values, values + np.arange(60)[:, None] * 1e-6)  # equal values become different
    assert not fails(check_order, values, values**3)


def test_resampling_loses_no_rank_and_little_else():
    values = mixed(2000, 5)
    masked = resample(values, samples=10, rng=generator(1))
    assert sdc.brmae(values, masked, ties="min") == 0
    np.testing.assert_allclose(masked.mean(axis=0), values.mean(axis=0), atol=0.1)
    assert (masked != values).mean() > 0.99


def test_fewer_samples_change_more():
    values = generator(3).normal(size=(500, 2))
    grid = METHODS["resample"].parameters[0].grid
    change = [np.abs(resample(values, samples=t, rng=generator(4)) - values).mean() for t in grid]
    assert change[0] < change[6] < change[-1]


def test_the_first_samples_are_common_to_all_numbers_of_samples():
    values = generator(3).normal(size=(300, 3))
    one, two = (resample(values, samples=t, rng=generator(4)) for t in (1, 2))
    assert all(np.isin(column, original).all() for column, original in zip(one.T, values.T, strict=True))
    second = 2 * two - one
    nearest = np.abs(second[:, 2, None] - values[:, 2]).min(axis=1)
    assert nearest.max() < 1e-12


# --- information preserving statistical obfuscation ---


@settings(max_examples=30)
@given(st.integers(8, 80), st.sampled_from([(), (0,), (2, 1), (3, 0, 1)]), st.integers(0, 2**32))
def test_ipso_keeps_moments_and_regressions_and_equals_its_twin(n, kept, seed):
    n = max(n, 4 + len(kept) + 2)
    values = mixed(n, seed)
    masked = ipso(values, given=kept, rng=generator(seed + 1))
    check_moments(values, masked)
    check_regression(values, masked, list(kept))
    draws = normals(generator(seed + 1), (n, 4 - len(kept)))
    np.testing.assert_allclose(masked, naive.ipso(values, kept, draws), rtol=1e-6, atol=1e-6)
    changed = [j for j in range(4) if j not in kept]
    assert (masked[:, changed] != values[:, changed]).all()


@settings(max_examples=30)
@given(
    st.integers(12, 40),
    st.sampled_from([(), (0,), (0, 1), (2, 4), (0, 1, 2)]),
    st.sampled_from([1e-8, 1e-5, 0.0]),
    st.integers(0, 2**32),
)
def test_ipso_keeps_moments_and_sums_of_dependent_columns(n, kept, closeness, seed):
    rng = generator(seed)
    parts = rng.lognormal(size=(n, 2))
    values = np.column_stack(
        [parts, parts.sum(axis=1), np.full(n, 0.1), np.repeat(parts[: n // 2 + 1, 0], 2)[:n]]
    )
    values[:, 4] += closeness * rng.normal(size=n)
    masked = ipso(values, given=kept, rng=rng)
    check_moments(values, masked)
    np.testing.assert_allclose(masked[:, 0] + masked[:, 1], masked[:, 2], rtol=1e-9, atol=1e-9)
    assert (masked[:, 3] == 0.1).all()


def test_checks_of_moments_see_what_is_broken():
    values = mixed(60, 2)
    masked = ipso(values, given=(0,), rng=generator())
    assert not fails(check_moments, values, masked)
    assert fails(check_moments, values, masked + 1e-6)
    assert fails(check_moments, values, values.mean(axis=0) + (masked - values.mean(axis=0)) * (1 + 1e-7))
    assert fails(check_moments, values, correlated_noise(values, percent=1, rng=generator()))
    approximate = (
        values.mean(axis=0) + generator().normal(size=(60, 4)) @ np.linalg.cholesky(np.cov(values.T)).T
    )
    assert fails(check_moments, values, approximate)  # draws that are not whitened
    assert fails(check_regression, values, ipso(values, rng=generator()), [0])
    shuffled = masked.copy()
    shuffled[:, 1] = generator().permutation(shuffled[:, 1])
    assert fails(check_regression, values, shuffled, [0])
    assert fails(check_moments, values, shuffled)


def test_ipso_draws_anew_what_is_not_explained():
    values = mixed(400, 9)
    first, second = (ipso(values, given=(0,), rng=generator(seed)) for seed in (1, 2))
    design = np.column_stack([np.ones(400), values[:, 0]])
    left = [
        part[:, 1:] - design @ np.linalg.lstsq(design, part[:, 1:], rcond=None)[0]
        for part in (values, first, second)
    ]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        found = [np.corrcoef(left[one][:, j], left[other][:, j])[0, 1] for j in range(3)]
        assert np.abs(found).max() < 0.2
    assert np.abs(np.corrcoef(values[:, 0], ipso(values, rng=generator(1))[:, 0])[0, 1]) < 0.2


def test_given_columns_are_explained_apart_from_the_constant():
    values = mixed(30, 3, p=2) + 5
    basis = orthonormal_basis(np.column_stack([values, values.sum(axis=1), np.full(30, 2.0)]))
    assert basis.shape == (30, 2)
    np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(basis.sum(axis=0), 0, atol=1e-12)
    centred = values - values.mean(axis=0)
    np.testing.assert_allclose(basis @ (basis.T @ centred), centred, atol=1e-12)


def test_ipso_with_missing_cells_keeps_moments_roughly():
    values = mixed(20_000, 4)
    values[:, 1] = np.log(values[:, 1])
    whole = np.corrcoef(values.T)
    values[generator(1).random(values.shape) < 0.2] = NAN
    for kept in ((), (0,)):
        masked = ipso(values, given=kept, rng=generator(2))
        check_missing_kept(values, masked)
        assert np.array_equal(masked[:, list(kept)], values[:, list(kept)], equal_nan=True)
        np.testing.assert_allclose(np.nanmean(masked, axis=0), np.nanmean(values, axis=0), atol=0.05)
        np.testing.assert_allclose(np.nanstd(masked, axis=0), np.nanstd(values, axis=0), rtol=0.03)
        both = ~np.isnan(masked).any(axis=1)
        np.testing.assert_allclose(np.corrcoef(masked[both].T), whole, atol=0.04)


def test_ipso_with_a_column_that_has_no_value_or_one():
    values = mixed(30, 4)
    values[:, 0] = NAN
    values[1:, 2] = NAN
    masked = ipso(values, given=(3,), rng=generator(2))
    check_missing_kept(values, masked)
    assert (masked[:, 1] != values[:, 1]).all()


def test_how_many_records_ipso_needs():
    record = METHODS["ipso"]
    assert record.records({"given": ()}, 3) == 5
    assert record.records({"given": (0,)}, 3) == 6
    for kept in ((), (0,), (1, 2)):
        values = mixed(record.records({"given": kept}, 3), 6, p=3)
        masked = ipso(values, given=kept, rng=generator())
        check_moments(values, masked)
        assert np.abs(masked - values).max() > 1e-3
    with pytest.raises(ValueError, match="every column"):
        ipso(values, given=(0, 1, 2), rng=generator())


# --- Gaussian copula ---


def check_shares(before, after, value, tolerance):
    assert abs((before == value).mean() - (after == value).mean()) < tolerance


def check_rank_correlations(before, after, tolerance):
    found = [np.corrcoef([middle_ranks2(column) for column in values.T]) for values in (before, after)]
    assert np.abs(found[0] - found[1]).max() < tolerance


def check_marginals(before, after, tolerance):
    for x, y in zip(before.T, after.T, strict=True):
        points = np.sort(x)
        gaps = np.searchsorted(points, points, "right") - np.searchsorted(np.sort(y), points, "right")
        assert np.abs(gaps).max() / len(x) < tolerance


@settings(max_examples=30)
@given(st.integers(10, 60), st.integers(0, 2**32))
def test_copula_equals_its_twin(n, seed):
    values = mixed(n, seed, p=3)
    values[:, 2] = np.round(values[:, 2])
    masked = copula(values, rng=generator(seed + 1))
    draws = normals(generator(seed + 1), (3, n))
    np.testing.assert_allclose(masked, naive.copula_of(values, draws), rtol=1e-7, atol=1e-7)


def test_copula_keeps_distributions_and_rank_correlations_nearly():
    values = mixed(20_000, 7)
    masked = copula(values, rng=generator(1))
    check_marginals(values, masked, 0.02)
    check_rank_correlations(values, masked, 0.03)
    apart = np.column_stack([generator(j).permutation(column) for j, column in enumerate(values.T)])
    assert fails(check_rank_correlations, values, apart, 0.03)
    assert fails(check_marginals, values, ipso(values, rng=generator(1)), 0.02)
    assert sdc.brmae(values, masked) == pytest.approx(2 / 3, abs=0.02)  # rows stand for no original record


def test_copula_publishes_original_values_only_where_asked():
    values = mixed(300, 7)
    assert not np.isin(copula(values, rng=generator(1)), values).any()
    step = copula(values, quantiles="step", rng=generator(1))
    assert all(np.isin(column, original).all() for column, original in zip(step.T, values.T, strict=True))


@pytest.mark.parametrize("rule", ["interpolated", "step"])
def test_copula_keeps_the_share_of_zeros(rule):
    values = np.maximum(mixed(20_000, 8), 0.4)
    values[values == 0.4] = 0.0
    masked = copula(values, quantiles=rule, rng=generator(3))
    for x, y in zip(values.T, masked.T, strict=True):
        check_shares(x, y, 0.0, 0.015)
    assert fails(check_shares, values, masked + 1e-9, 0.0, 0.015)


def test_copula_with_missing_cells_and_dependent_or_constant_columns():
    values = mixed(5000, 3)
    values[:, 3] = values[:, 0] + values[:, 2]
    values = np.column_stack([values, np.full(5000, 0.1), np.full(5000, NAN)])
    values[generator(1).random(values.shape) < 0.2] = NAN
    values[1:, 1] = NAN
    values[0] = 1.0
    masked = copula(values, rng=generator(2))
    check_missing_kept(values, masked)
    seen = ~np.isnan(values[:, 4])
    assert (masked[seen, 4] == 0.1).mean() > 0.99  # one other value, in the first record
    assert masked[0, 1] == masked[0, 5] == 1.0
    constant = copula(np.column_stack([np.full(9, 0.1), np.arange(9.0)]), rng=generator())
    assert (constant[:, 0] == 0.1).all()


def test_correlations_that_do_not_fit_together_are_repaired():
    wanted = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    root = correlation_root(wanted)
    found = root @ root.T
    np.testing.assert_allclose(np.diag(found), 1)
    assert np.linalg.eigvalsh(found).min() > -1e-12
    fitting = np.array([[1, 0.5], [0.5, 1]])
    root = correlation_root(fitting)
    np.testing.assert_allclose(root @ root.T, fitting)


def test_quantiles_by_hand():
    values = np.array([0.0, 0.0, 4.0, 8.0])
    shares = np.array([0.0, 0.2, 0.5, 2 / 3, 0.999999, 1.0])
    np.testing.assert_allclose(quantiles_at(values, shares, "interpolated"), [0, 0, 2, 4, 8 - 1.2e-5, 8])
    assert quantiles_at(values, shares, "step").tolist() == [0, 0, 4, 4, 8, 8]
    assert quantiles_at(np.array([3.0]), shares, "interpolated").tolist() == [3.0] * 6
    wide = quantiles_at(np.array([-1.7e308, 1.7e308]), np.array([0.5, 1.0]), "interpolated")
    assert wide.tolist() == [0.0, 1.7e308]
