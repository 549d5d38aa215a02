"""What the contract tests of metrics and methods share: data of every shape, settings, documentation."""

import inspect
import re

import numpy as np

from calls import called
from sdckit.core.registry import parameters_of
from sdckit.masking import apply

NAMES = ["a", "b", "c"]
SECTIONS = ("Parameters", "Returns", "References", "Examples")
NAN = float("nan")


def documented(function):
    text = inspect.getdoc(function)
    for section in SECTIONS:
        assert re.search(rf"^{section}\n-{{{len(section)}}}$", text, re.MULTILINE), section
    assert ">>> " in text
    return text


def data(n=40, p=3, seed=0):
    """Correlated columns without zeros, one of them with ties, but no whole numbers, as codes would be."""
    rng = np.random.default_rng(seed)
    values = rng.normal(50, 10, (n, 1)) + rng.normal(0, 5, (n, p))
    values[:, -1] = np.round(values[:, -1] / 4) * 3.3
    return values


def shaken(values, seed=1):
    return values + np.random.default_rng(seed).normal(0, 8, values.shape)


def ladder(metric):
    """Three maskings, each farther from the original than the last, in terms of what the metric sees."""
    if metric.needs in {"cells", "ranks", "rows"}:  # neighbours change places, then all of them do
        x = np.arange(1.0, 31.0)
        swapped = x.copy()
        swapped[[0, 1, 14, 15]] = swapped[[1, 0, 15, 14]]
        rows = np.random.default_rng(0).permutation(30)  # sorted rows would give all records away
        mixed = np.random.default_rng(8).permutation(x)  # at random, as a reversed order is learnt and undone
        return x[rows], [masked[rows] for masked in (x, swapped, mixed)]
    if metric.needs == "places":  # more and more cells are missing
        x = np.arange(1.0, 31.0)
        return x, [np.where(x <= gone, NAN, x) for gone in (0, 3, 20)]
    if metric.needs == "groups":  # none, half and all of the records are in groups
        x = np.arange(1.0, 31.0)
        means = np.repeat(x.reshape(-1, 3).mean(1), 3)
        return x, [np.where(x <= alone, x, means) for alone in (30, 15, 0)]
    if metric.needs == "columns":  # the values themselves, in the same order
        x = np.arange(1.0, 201.0)
        return x, [x, 1.1 * x, 3 * x]
    assert metric.needs in {"moments", "table"}, "say what the metric looks at"
    x = data(200)
    unrelated = np.column_stack([np.roll(shaken(column, j), 50 * j) for j, column in enumerate(2 * x.T)])
    return x, [x, x + (shaken(x) - x) / 4, unrelated]


# --- data of every shape ---


def with_column(place, column):
    values = data()
    values[:, place] = column(values)
    return values


def with_holes(n=40):
    """Data with missing cells in two columns, and a record that has none but missing ones."""
    values = data(n)
    values[::7, 0] = values[3::11, 2] = values[5] = NAN
    return values


def with_zeros():
    """Skewed columns, of which one is half zeros; rounded, as the last bit of np.exp depends on the CPU."""
    values = np.round(np.exp(data() / 20), 6)
    values[::2, 1] = 0.0
    return values


SHAPES = {
    "plain": data,
    "missing cells": with_holes,
    "one column": lambda: data(p=2)[:, :1],
    "duplicates": lambda: np.repeat(data(10), 4, axis=0),
    "constant column": lambda: with_column(1, lambda _: 0.1),
    "integers": lambda: np.round(data()),
    "-999 present": lambda: with_column(0, lambda x: np.where(np.arange(40) % 13 == 2, -999.0, x[:, 0])),
    "5 records": lambda: data(5),
    "rank-deficient columns": lambda: with_column(2, lambda x: x[:, 0] + x[:, 1]),
    "zeros": with_zeros,
    "columns of different size": lambda: data() * [1e-9, 1.0, 1e9],
}


# --- settings of a method ---


def small(method):
    """The smallest group that masks anything."""
    return {method.group_size: 2} if method.group_size else {}


def strong(method):
    """The strongest masking of the grid, in small groups."""
    return {p.name: p.kind(p.grid[-1]) for p in method.parameters if p.grid} | small(method)


def needed(method, options, p):
    """How many records a method needs for p columns."""
    options = parameters_of(method, options)
    group = options[method.group_size] if method.group_size else 0
    return max(2, group, method.records(options, p) if method.records else 0)


def suited(method, values, options):
    """As many of the columns as there are records enough for; never fewer than one."""
    enough = [p for p in range(1, values.shape[1] + 1) if needed(method, options, p) <= len(values)]
    return values[:, : enough[-1]]


def masked_by(method, values, options=None, seed=7):
    """The masked matrix, by the way that `sdc.mask` goes but without its warnings."""
    names = [f"x{j}" for j in range(1, values.shape[1] + 1)]
    options = parameters_of(method, options or {})
    return apply(method, np.asfortranarray(values), options, np.random.default_rng(seed), names=names)


def masking(method, values, rng=7, **options):
    """The table masked with options that surely change something; roles are among them."""
    return called("mask", values, method.name, rng=rng, **(strong(method) | options))


def rows_of(values):
    """The records as a set would hold them, however often each occurs."""
    return sorted(map(tuple, np.where(np.isnan(values), np.inf, values).tolist()))
