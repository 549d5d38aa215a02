"""Noise follows the scale of each column, however large or small its numbers are."""

import numpy as np
import pytest

import sdckit as sdc

RNG = np.random.default_rng(8)


@pytest.mark.parametrize("method", ["noise", "correlated_noise"])
@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1.0, 1e150, 1e306])
def test_noise_is_the_same_in_every_unit(method, unit):
    values = RNG.normal(10, 1, (200, 3))
    plain = sdc.mask(values, method, percent=50, rng=4) - values
    scaled = (sdc.mask(values * unit, method, percent=50, rng=4) - values * unit) / unit
    np.testing.assert_allclose(scaled, plain, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("method", ["mdav", "individual_ranking"])
def test_means_of_the_largest_numbers_do_not_overflow(method):
    masked = sdc.mask([1.2e308, 1.7e308, -1.0, 5.0], method, k=2)
    np.testing.assert_allclose(masked, [1.45e308, 1.45e308, 2.0, 2.0], rtol=1e-15)
