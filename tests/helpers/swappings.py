"""Checks that the tests of swapping and shuffling share."""

import math

import numpy as np

import naive


def check_values_kept(before, after):
    for x, y in zip(before.T, after.T, strict=True):
        assert np.array_equal(np.sort(x), np.sort(y), equal_nan=True)


def check_displacement(before, after, p):
    for x, y in zip(before.T, after.T, strict=True):
        seen = ~np.isnan(x)
        h = math.floor(seen.sum() * p + 1e-9)
        assert naive.displacement(x[seen].tolist(), y[seen].tolist()) <= h
