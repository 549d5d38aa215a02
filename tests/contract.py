"""What the contract tests of metrics and methods share: the data, and how a function is documented."""

import inspect
import re

import numpy as np

NAMES = ["a", "b", "c"]
SECTIONS = ("Parameters", "Returns", "References", "Examples")


def documented(function):
    text = inspect.getdoc(function)
    for section in SECTIONS:
        assert re.search(rf"^{section}\n-{{{len(section)}}}$", text, re.MULTILINE), section
    assert ">>> " in text
    return text


def data(n=40, p=3, seed=0):
    """Correlated columns without zeros, one of them with ties."""
    rng = np.random.default_rng(seed)
    values = rng.normal(50, 10, (n, 1)) + rng.normal(0, 5, (n, p))
    values[:, -1] = np.round(values[:, -1] / 4)
    return values


def shaken(values, seed=1):
    return values + np.random.default_rng(seed).normal(0, 8, values.shape)
