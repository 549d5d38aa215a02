"""Intervals over replications describe a method; the risk of a released file is measured, not estimated."""

import numpy as np
import pytest

import sdckit as sdc
from sdckit.core.randomness import stream_generator
from secret_bytes import entropy
from sweeps import frame

PERCENT, METRICS = 60, ["brmae", "dbrl"]
REPLICATIONS, SWEEPS, FRESH = 30, 40, 25


def expected_coverage(replications):
    """How often a fresh draw falls between the 2.5 % and the 97.5 % point of so many others.

    The points lie between order statistics; a fresh draw exceeds the j-th of m with chance 1 - j / (m + 1).
    """
    position = 0.025 * (replications - 1) + 1
    return 1 - 2 * position / (replications + 1)


@pytest.mark.long
def test_a_fresh_release_falls_into_the_interval_as_often_as_it_should():
    """Forty sweeps of thirty replications, each beside twenty-five fresh releases of the same method."""
    data, plan = frame(60), {"noise": {"percent": PERCENT}}
    inside = {metric: [] for metric in METRICS}
    for sweep in range(SWEEPS):
        found = sdc.sweep(data, plan, metrics=METRICS, replications=REPLICATIONS, rng=sweep, workers=1)
        ends = {row["metric"]: (row["ci_low"], row["ci_high"]) for row in found.summary.rows(named=True)}
        rng = stream_generator(sweep, [1])
        fresh = [sdc.mask(data, "noise", percent=PERCENT, rng=rng) for _ in range(FRESH)]
        for metric in METRICS:
            low, high = ends[metric]
            values = [getattr(sdc, metric)(data, masked) for masked in fresh]
            inside[metric].append(np.mean([low <= value <= high for value in values]))
    nominal = expected_coverage(REPLICATIONS)
    assert nominal == pytest.approx(0.89, abs=0.01), "thirty replications are few: a little below 95 %"
    for metric, shares in inside.items():
        error = np.std(shares, ddof=1) / np.sqrt(SWEEPS)  # releases beside one sweep share its interval
        room = 0.03 if metric == "dbrl" else 0.0  # a share of 60 records has ties, which fall inside
        assert nominal - 4 * error <= np.mean(shares) <= nominal + 4 * error + room, metric


@pytest.mark.long
def test_more_replications_bring_the_interval_to_its_95_percent():
    data, plan = frame(60), {"noise": {"percent": PERCENT}}
    found = sdc.sweep(data, plan, metrics="brmae", replications=1000, rng=1, workers=1)
    low, high = found.summary.select("ci_low", "ci_high").row(0)
    rng = np.random.default_rng(5)
    values = [sdc.brmae(data, sdc.mask(data, "noise", percent=PERCENT, rng=rng)) for _ in range(1000)]
    share = np.mean([low <= value <= high for value in values])
    assert share == pytest.approx(0.95, abs=4 * np.sqrt(2 * 0.95 * 0.05 / 1000))


def test_the_risk_of_a_released_file_is_that_of_the_file_and_has_no_interval():
    data = frame(60)
    plan = {"noise": {"percent": [20, PERCENT, 120]}}
    choice = sdc.recommend(data, max_risk={"dbrl": 0.4}, plan=plan, rng=3, workers=1)
    releases = [choice.release(entropy=entropy(seed)) for seed in range(6)]
    for release in releases:
        row = release.evaluation.summary.row(
            release.evaluation.summary["metric"].to_list().index("dbrl"), named=True
        )
        assert row["value"] == sdc.dbrl(data, release.data[np.argsort(release.rows)])
        assert (row["ci_low"], row["ci_high"]) == (None, None)
    risks = {release.evaluation["dbrl"] for release in releases}
    assert len(risks) > 1, "each file has its own"
    assert risks != {choice.point.values["dbrl"]}


def test_a_method_without_draws_has_an_interval_of_no_width():
    found = sdc.sweep(frame(), {"mdav": {"k": [2, 5]}}, metrics=METRICS, replications=30, workers=1).summary
    assert (found["ci_low"] == found["value"]).all()
    assert (found["ci_high"] == found["value"]).all()
