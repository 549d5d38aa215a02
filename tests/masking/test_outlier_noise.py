"""Noise that is stronger for outliers: who counts as one, and whether it helps them."""

import math

import numpy as np
import pytest

import naive_masking_noise as naive
import sdckit as sdc
from contract import data
from maskings import NAN, generator
from sdckit.kernels.draws import normals
from sdckit.masking.noise import SAMPLE, noise, noise_scale, outlier_noise, robust_distances


def test_distance_of_one_column_by_hand():
    values = np.append(np.arange(99.0), 1000.0)[:, None]  # median 49.5, median distance from it 25
    edge = 2.241402727604945  # 0.975 quantile of the chi-square distribution with 1 degree, its root
    expected = np.abs(values[:, 0] - 49.5) / (25 * 1.482602218505602) / edge
    np.testing.assert_allclose(robust_distances(values), expected)
    draws = normals(generator(1), (1, 100)).T
    factor = np.clip(expected, 1, 10)[:, None]
    assert factor[-1, 0] == 10  # it would be 11.4
    masked = outlier_noise(values, percent=30, rng=generator(1))
    np.testing.assert_allclose(masked - values, 0.3 * values.std(ddof=1) * factor * draws, atol=1e-10)
    assert np.array_equal(
        outlier_noise(values, percent=30, most=1, rng=generator(1)),
        noise(values, percent=30, rng=generator(1)),
    )


@pytest.mark.parametrize("zeros", [0, 30])
def test_robust_distances_as_their_twin(zeros):
    values = np.exp(data(41) / 20)
    values[:zeros, 1] = 0  # most of the column: no median absolute deviation
    ratio = robust_distances(values) / naive.robust_distances(values)
    np.testing.assert_allclose(ratio, 1 / math.sqrt(9.348403604496148), rtol=1e-9)  # chi-square, 3 degrees


def test_robust_distances_find_who_breaks_a_relation_and_are_not_led_astray():
    values = data(200)
    values[:20] += [2000, -1000, 500]  # a tenth of the records: the classical covariance follows them
    found = robust_distances(values)
    assert found[:20].min() > 10 * found[20:].max()
    assert (found[20:] > 1).mean() < 0.1
    total = np.column_stack([values[:, :2], values[:, :2].sum(1)])
    np.testing.assert_allclose(
        robust_distances(total)[20:].mean(), robust_distances(values[:, :2])[20:].mean(), rtol=0.4
    )
    twice = values[:, [0, 1, 2, 0]]
    assert np.isfinite(robust_distances(twice)).all()
    assert robust_distances(twice)[20:].max() < 5


def test_robust_distances_of_odd_data():
    assert (robust_distances(np.full((5, 2), 3.0)) == 0).all()
    assert (robust_distances(np.full((5, 2), NAN)) == 0).all()
    wide = np.array([[1e-300, 1.0], [2e-300, 2.0], [3e-300, 5.0], [1e300, 4.0], [1.0, 3.0]])
    assert np.isfinite(robust_distances(wide)).all()
    gaps = data(40)
    gaps[3, 0] = NAN
    found = robust_distances(gaps)
    median = gaps.copy()
    median[3, 0] = np.nanmedian(gaps[:, 0])
    np.testing.assert_allclose(found, robust_distances(median), rtol=0.1)


def test_long_files_take_their_scales_from_a_sample():
    values = generator(1).normal(size=(SAMPLE + 50_000, 2))
    values[0] = 50
    found = robust_distances(values)
    assert np.array_equal(found, noise_scale(values).distances)
    assert (found > 1).mean() == pytest.approx(0.025, abs=0.002)
    assert found[0] > 10


def test_noise_leaves_outliers_of_tarragona_alone_and_outlier_noise_does_not(tarragona):
    rows = np.random.default_rng(1).permutation(tarragona.height)  # sorted rows give all records away
    risks = {
        name: sdc.linkage_outliers(tarragona[rows], sdc.mask(tarragona, name, percent=100, rng=1)[rows])
        for name in ("noise", "outlier_noise")
    }
    assert risks["noise"] >= 0.9
    assert risks["outlier_noise"] <= 0.5
