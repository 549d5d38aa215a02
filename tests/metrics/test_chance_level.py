"""The random level beside a value: the mean over pairings of the records at random."""

import itertools
import math

import numpy as np
import pytest

import sdckit as sdc
from cases import each
from sdckit.metrics.pair import pair_of

RANKS, CELLS = ["brmae", "brmse"], ["mae", "mse", "il1", "il1s"]
EXACT = [*RANKS, *CELLS, "rank_mae", "rank_mse", "mse_permutation"]
LEVELLED = [metric for metric in sdc.METRICS.values() if not metric.role and metric.needs != "groups"]
RISKS = [metric.name for metric in LEVELLED if metric.family == "risk"]
BY_LAW = {"linkage", "linkage_outliers", "linkage_sure"}  # the best of several attacks, each learnt anew
ABOUT_ROLES = [metric.name for metric in sdc.METRICS.values() if metric.role]


@each("name", [name for name in sdc.METRICS if name not in {*EXACT, *RISKS, *ABOUT_ROLES}])
def test_losses_of_the_file_as_a_whole_have_no_random_level(name):
    x = np.random.default_rng(3).normal(size=(120, 3))
    assert sdc.METRICS[name].score(pair_of(x, x[::-1] + 0.5), detail=True).random is None


@each("name", [name for name in RISKS if name not in BY_LAW])
def test_random_level_of_a_risk_is_near_the_mean_over_many_pairings(name):
    """Attacks are run on twenty permutations of the masked rows; so few records make them waver."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 9, (12, 2)) + rng.random((12, 2)) / 2
    y = np.round(x + rng.normal(size=x.shape))
    metric = sdc.METRICS[name]
    level = metric.score(pair_of(x, y), detail=True).random.overall
    every = [metric.function(x, y[rng.permutation(12)]) for _ in range(60)]
    assert level == pytest.approx(np.mean(every), abs=4.5 * np.std(every) * math.sqrt(1 / 20 + 1 / 60))


@each("name", EXACT)
def test_random_level_is_the_mean_over_all_pairings(name):
    x, y = np.array([1.0, 3.0, 3.0, 8.0, 2.0]), np.array([2.0, 7.0, 2.0, 2.0, 9.5])
    metric = sdc.METRICS[name]
    level = metric.score(pair_of(x, y), detail=True).random.overall
    every = [metric.function(x, np.array(other)) for other in itertools.permutations(y)]
    assert level == pytest.approx(np.mean(every), rel=1e-12)
    both = metric.score(pair_of(np.column_stack([x, y]), np.column_stack([y, x])), detail=True).random
    assert both.variables[0] == pytest.approx(level)
    assert both.overall == pytest.approx(both.variables.mean())


@pytest.mark.parametrize("name", [*RANKS, *CELLS])
def test_random_level_under_weights(name):
    x, y = np.array([1.0, 3.0, 4.0, 8.0, 2.0]), np.array([2.0, 7.0, 3.0, 2.0, 9.5])
    w = [1.0, 2.0, 1.0, 3.0, 2.0]
    metric = sdc.METRICS[name]
    every = [metric.function(x, np.array(other), weights=w) for other in itertools.permutations(y)]
    level = metric.score(pair_of(x, y, weights=w), detail=True).random.overall
    loose = 4 * np.std(every) / math.sqrt(99) if name in RANKS else 1e-12  # ranks: 99 drawn pairings
    assert level == pytest.approx(np.mean(every), abs=loose)
