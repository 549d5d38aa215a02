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


def ladder(metric):
    """Three maskings, each farther from the original than the last, in terms of what the metric sees."""
    if metric.needs in {"cells", "ranks", "rows"}:  # neighbours change places, then all of them do
        x = np.arange(1.0, 31.0)
        swapped = x.copy()
        swapped[[0, 1, 14, 15]] = swapped[[1, 0, 15, 14]]
        return x, [x, swapped, x[::-1]]
    if metric.needs == "columns":  # the values themselves, in the same order
        x = np.arange(1.0, 201.0)
        return x, [x, 1.1 * x, 3 * x]
    assert metric.needs in {"moments", "table"}, "say what the metric looks at"
    x = data(200)
    unrelated = np.column_stack([shaken(column, j)[::-1] for j, column in enumerate(2 * x.T)])
    return x, [x, x + (shaken(x) - x) / 4, unrelated]
