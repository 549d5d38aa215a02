"""The promises of methods: for each phrase of `keeps` a check, and a masking that the check must refuse.

A phrase may end in conditions, "column means (aggregate=mean, complete data)": settings of parameters, and
whether it speaks of data without missing cells only. All other parameters are free. Promises are exact, to
1e-9 of a column's size, unless they say "in expectation" (the mean over `DRAWS` draws lies within five of its
standard errors) or "nearly" (the tolerances are stated beside the checks).
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

import invariants
from sdckit.core.registry import parameter_named, parameter_value

DRAWS = 40
COMPLETE = "complete data"


def unchanged(masked):
    return masked.before.copy()


@dataclass(frozen=True)
class Promise:
    """A check, what breaks it, and a masking that it must accept (no change at all, as a rule).

    The check of a promise about chance takes a list of draws.
    """

    check: Any
    broken: Any
    good: Any = unchanged
    chance: bool = False


def read(method, phrase):
    """A phrase as words, options that must be so, and whether it needs complete data."""
    words, text = re.fullmatch(r"(.*?)(?: \((.*)\))?", phrase).groups()
    conditions = text.split(", ") if text else []
    settings = dict(condition.split("=") for condition in conditions if condition != COMPLETE)
    options = {
        name: parameter_value(parameter_named(method, name), value) for name, value in settings.items()
    }
    return words, options, COMPLETE in conditions


# --- maskings that break them ---


def nudged(masked):
    """One value in one column moved, and so little that only an exact check sees it."""
    after = masked.after.copy()
    after[3, 0] += 1e-6 * np.ptp(masked.before[:, 0])
    return after


def swapped(masked):
    """The smallest and the largest value of a column have changed places."""
    after = masked.after.copy()
    ends = [np.nanargmin(masked.before[:, 0]), np.nanargmax(masked.before[:, 0])]
    after[ends, 0] = after[ends[::-1], 0]
    return after


def untied(masked):
    """Two equal values are none any more, while the order is kept."""
    after = masked.after.copy()
    last = masked.before[:, -1]
    after[np.flatnonzero(last == last.max())[0], -1] += 1e-6
    return after


def far(masked):
    return masked.after + 0.51 * invariants.base_of(masked.before[:, 0].std(ddof=1), masked.options, 0)


def emptied(masked):
    after = masked.after.copy()
    after[3, 0] = np.nan
    return after


def in_runs(masked, sizes=()):
    """Means of runs of k rows, or of other sizes first; what is left joins the last."""
    k, n = masked.options["k"], len(masked.before)
    starts = [0, *np.cumsum(sizes, dtype=int)]
    starts += list(range(starts[-1] + k, n - k + 1, k))
    means_of = np.add.reduceat(masked.before, starts, axis=0)
    lengths = np.diff(starts, append=n)
    return np.repeat(means_of / lengths[:, None], lengths, axis=0)


def with_a_small_group(masked):
    return in_runs(masked, sizes=[masked.options["k"] - 1])


def with_a_large_group(masked):
    return in_runs(masked, sizes=[2 * masked.options["k"]])


def shifted(masked):
    """Every column a fifth of its standard deviation too high."""
    return masked.after + 0.2 * masked.before.std(axis=0)


def turned(masked):
    """A column upside down: means and variances are what they were."""
    after = masked.after.copy()
    after[:, 0] = 2 * masked.before[:, 0].mean() - after[:, 0]
    return after


PROMISES = {
    "column means": Promise(invariants.check_means, nudged),
    "means and covariances": Promise(invariants.check_moments, swapped),
    "linear relations between variables": Promise(invariants.check_linear, nudged),
    "the given columns": Promise(invariants.check_given, nudged),
    "regressions on the given columns": Promise(invariants.check_regressions, swapped),
    "the values of each variable": Promise(invariants.check_values, nudged),
    "zeros": Promise(invariants.check_zeros, shifted),
    "places of missing cells": Promise(invariants.check_missing, emptied),
    "the number of records in each combination of bins": Promise(invariants.check_bins, turned),
    "every value, up to half a base": Promise(invariants.check_base, far),
    "order of each column, ties apart": Promise(invariants.check_order, swapped),
    "order of each column": Promise(invariants.check_order_and_ties, untied),
    "ranks, up to the largest move": Promise(invariants.check_window, swapped),
    "group sizes of at least k": Promise(invariants.check_group_sizes, with_a_small_group, in_runs),
    "equal records in groups of at least k": Promise(
        invariants.check_equal_records, with_a_small_group, in_runs
    ),
    "group sizes k to 2k-1": Promise(invariants.check_groups_below_2k, with_a_large_group, in_runs),
    "group sizes k to 2k-1 in each column": Promise(
        invariants.check_runs_below_2k, with_a_large_group, in_runs
    ),
    "column means, in expectation": Promise(invariants.expected(invariants.means), shifted, chance=True),
    "means and covariances, in expectation": Promise(
        invariants.expected(invariants.all_moments), turned, chance=True
    ),
    "means and covariances between variables, in expectation": Promise(
        invariants.expected(invariants.mixed_moments), turned, chance=True
    ),
    "means and correlations, in expectation": Promise(invariants.check_correlations, turned, chance=True),
    "distribution of each column, nearly": Promise(invariants.check_distribution, shifted, chance=True),
    "rank correlations, nearly": Promise(invariants.check_rank_correlations, turned, chance=True),
}
