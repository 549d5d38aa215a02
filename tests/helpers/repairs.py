"""Check of a repair by edit rules against all points of the grid."""

import itertools

import numpy as np

import naive_rules as naive
from sdckit.core.table import Step
from sdckit.masking import rounded

NAMES = ["A", "B", "C"]


def embedded(rules, table, decimals, free):
    """The repair of a table with columns that no rule names, too."""
    at = [NAMES.index(name) for name in rules.columns]
    found = table.copy()
    digits = None if decimals is None else [decimals[j] for j in at]
    found[:, at] = rules.repaired(table[:, at], digits, [free[j] for j in at])
    return found


def check_repair(rules, listed, table, decimals=(0, 0, 0), free=(True, True, True)):
    """Every rule holds as written; nothing moves without need; equal records stay equal; nearest of all."""
    found = embedded(rules, table, decimals, free)
    movable = [rule for rule in listed if any(f and m for f, m in zip(rule[0], free, strict=True))]
    assert not naive.any_broken(movable, found)
    assert np.array_equal(found, rounded(found, [Step(d) for d in decimals]), equal_nan=True)
    assert np.array_equal(found[:, np.invert(free)], table[:, np.invert(free)], equal_nan=True)
    assert np.array_equal(embedded(rules, found, decimals, free), found, equal_nan=True)
    spread = naive.spreads(table, listed)
    steps = [10.0**-digits for digits in decimals]
    for before, after in zip(table, found, strict=True):
        if not naive.any_broken(movable, [before]):
            assert np.array_equal(before, after, equal_nan=True)
        least = naive.least_cost(movable, before, spread, free=free, steps=steps, reach=16)
        if (np.isnan(after) & ~np.isnan(before)).any():
            assert least is None
        elif least is not None:
            assert naive.cost(before, after, spread) <= least + 1e-9
    for i, j in itertools.combinations(range(len(table)), 2):
        if np.array_equal(table[i], table[j], equal_nan=True):
            assert np.array_equal(found[i], found[j], equal_nan=True)
