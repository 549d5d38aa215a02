"""Sums without rounding: those of fractions, however the numbers are cut."""

from fractions import Fraction

import numpy as np
import pytest

import naive_cell_draws as naive
from sdckit.kernels.sums import BELOW, exact_sum, rounded_mean


@pytest.mark.parametrize(
    "values",
    [
        [],
        [0.1] * 10,
        [1e308, 1e308, -1e308, 5e-324, -1e-310],
        [1e16, 1.0, -1e16, float("nan"), 3.5],
        np.random.default_rng(1).lognormal(0, 40, 2000) * np.random.default_rng(2).choice([-1, 1], 2000),
    ],
)
def test_sums_are_those_of_fractions(values):
    values = np.array(values, np.float64)
    found = exact_sum(values)
    assert Fraction(found, 1 << BELOW) == naive.exact_sum(values.tolist())
    assert found == sum(exact_sum(part) for part in np.array_split(values[::-1], 7))


def test_means_are_rounded_once():
    values = np.random.default_rng(3).normal(1e9, 1, 501)
    mean = rounded_mean(exact_sum(values), 501)
    assert mean == float(naive.exact_sum(values.tolist()) / 501)
    assert rounded_mean(exact_sum(np.full(7, 0.1)), 7) == 0.1
    assert np.isnan(rounded_mean(0, 0))
