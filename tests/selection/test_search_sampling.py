"""Searches that judge settings on sampled queries find what a search on all records finds."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from sdckit.metrics.score import Sampling
from sdckit.selection.limits import (
    LimitsMissed,
    release_sampling,
    require_limits,
    search_replications,
    search_sampling,
)
from sdckit.selection.plan import settings_of
from sdckit.selection.points import Point
from sdckit.selection.search import Bisection
from secret_bytes import entropy

PLAN = {"noise": {"percent": [5, 10, 20, 30, 40, 60, 80, 120, 160, 240]}, "mdav": {"k": range(2, 13)}}
LIMITS = {"linkage": 0.15}


@pytest.fixture(scope="module")
def amounts():
    rng = np.random.default_rng(4)
    return np.round(rng.lognormal(3, 1, (2500, 3)), 1)


@pytest.fixture(scope="module")
def choices(amounts):
    """What searches on all records and on samples recommend."""
    options = {"max_risk": LIMITS, "plan": PLAN, "rng": 1, "replications": 1, "workers": 1}
    return [sdc.recommend(amounts, **options, sample_queries=size) for size in (0, 100)]


def weakest_safe(choice):
    return {point.method: point.setting.value for point in choice.safe}


@pytest.mark.long
def test_a_sampled_search_finds_the_setting_of_the_full_one_or_its_neighbour(choices):
    full, sampled = map(weakest_safe, choices)
    assert full.keys() == sampled.keys() == {"noise", "mdav"}
    grids = {"noise": PLAN["noise"]["percent"], "mdav": list(PLAN["mdav"]["k"])}
    for method, grid in grids.items():
        assert abs(grid.index(full[method]) - grid.index(sampled[method])) <= 1
    assert choices[0].method is choices[1].method


def test_upper_ends_decide_and_proven_bounds_cut_them(choices):
    full, sampled = choices
    assert not any(point.upper for point in full.points)
    assert any(point.upper for point in sampled.points)
    for point in sampled.points:
        assert point.upper.get("linkage", 1) >= point.values["linkage"] - 1e-12
        if point.method == "mdav":
            assert point.judged("linkage") <= 1 / point.setting.options["k"] + 1e-12
    assert all(point.judged("linkage") <= 0.15 for point in sampled.safe)


def test_rounding_does_not_lift_an_estimate_above_its_proven_bound():
    (setting,) = settings_of({"mdav": {"k": [10]}})
    point = Point(setting, {"linkage": np.nextafter(0.1, 1)}, {"linkage": 0.104})
    assert Bisection([setting], {"linkage": 0.1}).bounded_point(point).meets({"linkage": 0.1})
    assert (
        not Bisection([setting], {"linkage": 0.1}, bounded=False).bounded_point(point).meets({"linkage": 0.1})
    )


def test_long_files_are_drawn_once_unless_told_otherwise():
    assert [search_replications(None, n) for n in (10, 20_000, 20_001, 10**8)] == [3, 3, 1, 1]
    assert search_replications(5, 10**8) == 5


def test_a_setting_is_judged_by_the_upper_end_of_its_estimate():
    (setting,) = settings_of({"noise": {"percent": [50]}})
    point = Point(setting, {"linkage": 0.09}, {"linkage": 0.11})
    assert not point.meets({"linkage": 0.1})
    assert point.broken_limits({"linkage": 0.1}) == ["linkage"]
    assert point.excess({"linkage": 0.1}) == pytest.approx(0.01)
    assert Bisection([setting], LIMITS).bounded_point(point) == point
    assert replace(point, upper={}).meets({"linkage": 0.1})


def test_the_release_is_measured_on_all_records_and_refused_if_it_misses_the_limit(choices):
    release = choices[1].release(entropy=entropy(2))
    assert release.evaluation["linkage"] <= 0.15
    assert release.evaluation.table["ci_high"].null_count() == release.evaluation.table.height
    strict = replace(choices[1], limits={"linkage": 0.01})
    with pytest.raises(LimitsMissed, match="so nothing is released"):
        strict.release(entropy=entropy(2), tries=2)


def test_a_limit_is_missed_by_an_estimate_whose_upper_end_exceeds_it(amounts):
    masked = sdc.mask(amounts, "noise", percent=80.0, rng=1)
    found = sdc.evaluate(amounts, masked, metrics="linkage", sample_queries=60)
    require_limits({"linkage": found.upper_end("linkage")}, found)
    with pytest.raises(LimitsMissed):
        require_limits({"linkage": (found["linkage"] + found.upper_end("linkage")) / 2}, found)


@pytest.mark.long
def test_a_sweep_has_intervals_and_recommends_by_their_upper_ends(amounts):
    plan = {"noise": {"percent": [20, 80]}}
    options = {"metrics": ["linkage", "brmae"], "rng": 1, "workers": 1}
    full = sdc.sweep(amounts, plan, **options)
    found = sdc.sweep(amounts, plan, **options, sample_queries=100)
    rows = found.table.filter(pl.col("metric") == "linkage").sort("setting")
    exact = full.table.filter(pl.col("metric") == "linkage").sort("setting")
    assert (rows["ci_low"] <= exact["value"]).all()
    assert (exact["value"] <= rows["ci_high"]).all()
    assert full.table["ci_high"].null_count() == full.table.height
    between = (rows["value"][1] + rows["ci_high"][1]) / 2
    assert not found.recommend({"linkage": between}).met
    assert found.recommend({"linkage": rows["ci_high"][1]}).met


def test_long_files_are_sampled_unless_told_otherwise():
    assert search_sampling(None, 20_000, LIMITS) is None
    assert search_sampling(None, 20_001, LIMITS) == Sampling(2048, LIMITS, 65_536)
    assert search_sampling(0, 10**6, LIMITS) is None
    assert search_sampling(100_000, 10**6, LIMITS) == Sampling(100_000, LIMITS, 100_000)
    assert release_sampling(10**7, LIMITS, random=False) is None
    assert release_sampling(10**7 + 1, LIMITS, random=False).most is None  # until the limit is settled
    assert release_sampling(20_000, LIMITS, random=True) is None
    assert release_sampling(20_001, LIMITS, random=True).first == 5_000  # looked up one by one
