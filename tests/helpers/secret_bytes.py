"""Entropy of releases that tests can repeat."""

import hashlib
from contextlib import contextmanager
from unittest import mock

import numpy as np


def entropy(number):
    """From a number, the secret bytes that decide all draws of a release."""
    return hashlib.sha256(f"entropy {number}".encode()).digest()


@contextmanager
def drawn_from(number):
    """Let all that takes fresh entropy take that of a number: releases, and searches without a seed."""
    seeded = np.random.default_rng

    def generator(seed=None):
        return seeded(number if seed is None else seed)

    with (
        mock.patch("sdckit.core.randomness.fresh_entropy", return_value=entropy(number)),
        mock.patch("numpy.random.default_rng", generator),
    ):
        yield
