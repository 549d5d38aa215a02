"""Linkage on sampled queries: every record keeps its credit, and intervals cover the value of all records."""

import math
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import naive_interval
import sdckit as sdc
from calls import called
from cases import each, later
from sdckit.masking.disclosure import Disclosure
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair, pair_by_row
from sdckit.metrics.score import (
    Estimate,
    Queries,
    QuerySample,
    Sampling,
    estimate_of_largest,
    larger_estimate,
    mean_estimate,
)
from sdckit.risk.attacks import AttackResult, applicable_attacks, attack_result, score_linkage
from sdckit.risk.distances import RecordClasses

MASKINGS = {
    "noise": {"percent": 30.0},
    "mdav": {"k": 4},
    "rank_swap": {"p": 0.05},
    "round_to": {"base": 2.0},
}


ROLES = {"columns": ["a", "b", "c"], "untouched": "region"}


def survey(n, seed=0):
    """Skewed amounts, one of them with many ties, and a column that is published unmasked."""
    rng = np.random.default_rng(seed)
    amounts = np.round(rng.lognormal(1.5, 0.8, (n, 3)), 1)
    amounts[:, 2] = np.round(amounts[:, 2])
    return pl.DataFrame(amounts, schema=["a", "b", "c"]).with_columns(region=rng.integers(0, 4, n))


def masked_pair(method, n, *, missing=0.0, known=("a", "b", "c"), sample=None):
    """The pair of a survey and its masking, whose disclosure is known."""
    table = survey(n)
    if missing:
        rng = np.random.default_rng(1)
        holes = [pl.when(pl.Series(rng.random(n) > missing)).then(pl.col(c)).alias(c) for c in "abc"]
        table = table.with_columns(holes)
    original = Original.of(table, columns=["a", "b", "c"], known=list(known), warn=False)
    masked = sdc.Microdata(table, **ROLES).mask(method, rng=3, **MASKINGS[method])
    pair = pair_by_row(original, masked)
    pair.by_position, pair.sample = False, sample
    pair.disclose(Disclosure.of(method, MASKINGS[method]))
    pair.window = pair.disclosure.width("all", original.values, pair.columns)
    return pair


def everyone(pair):
    return pair.queries(np.ones(pair.original.n, bool))


def check_credits(full, part, queries):
    """Each credit of the sample is that of the full measurement."""
    found = part.credits_of(queries)
    for one, every in zip(found, full.credits, strict=True):
        assert np.allclose(one, every[queries.rows], rtol=0, atol=1e-12), (
            part.name,
            part.direction,
        )


@each("known", [("a", "b", "c"), ("a", "b", "c", "region")])
@each("missing", [0.0, 0.1])
@each("method", MASKINGS)
def test_every_sampled_record_has_the_credit_of_the_full_measurement(method, missing, known):
    full = masked_pair(method, 240, missing=missing, known=known)
    part = masked_pair(method, 240, missing=missing, known=known, sample=QuerySample(40))
    pairs = list(zip(applicable_attacks(full, "both"), applicable_attacks(part, "both"), strict=True))
    pairs += [
        (attack_result(full, name, options), attack_result(part, name, options))
        for name, options in (("dbrl", {"places": 2}), ("window", {"within": 0.1}))
    ]
    for size in (40, 110):  # the second sample contains the first
        part.sample = QuerySample(size)
        for every, some in pairs:
            check_credits(every, some, everyone(part))


def test_the_check_sees_credit_that_is_not_shared_among_equal_queries(monkeypatch):
    full = attack_result(masked_pair("mdav", 400), "dbrl", {})
    part = masked_pair("mdav", 400, sample=QuerySample(40))
    alone = lambda self, rows: (rows, RecordClasses(np.arange(len(rows))))  # noqa: E731, ARG005
    monkeypatch.setattr(AttackResult, "equal_records", alone)
    assert full.credits.expected.max() < 1
    with pytest.raises(AssertionError):
        check_credits(full, attack_result(part, "dbrl", {}), everyone(part))


@pytest.mark.long
def test_a_sample_of_outliers_is_drawn_among_the_outliers():
    full, part = masked_pair("noise", 3000), masked_pair("noise", 3000, sample=QuerySample(50))
    exact = score_linkage(full, share=0.05).value.overall
    found = score_linkage(part, share=0.05, per_record=True)
    assert found.estimate[2:] == (50, 150)
    assert (~np.isnan(found.records)).sum() == 50
    assert found.estimate.low <= exact <= found.estimate.high
    part.sample = QuerySample(150)
    assert score_linkage(part, share=0.05).value.overall == pytest.approx(exact)
    assert score_linkage(part, share=0.05).estimate is None


# --- intervals ---


@pytest.fixture(scope="module")
def credits_of_methods():
    """Credits of each attack on 3,000 records, by masking."""
    pairs = {method: masked_pair(method, 3000) for method in MASKINGS}
    return {
        method: np.array([attack.credits.expected for attack in applicable_attacks(pair, "both")])
        for method, pair in pairs.items()
    }


def estimates(found, m, repetitions=200):
    """The interval for the largest mean credit in each of many samples of m records."""
    n = found.shape[1]
    for stream in range(repetitions):
        sample = QuerySample(m, stream)
        rows = sample.order(n)[:m]
        total = found[:, rows].sum(axis=1).max()
        yield estimate_of_largest(total, Queries(rows, n, sample), len(found))


@pytest.mark.parametrize("method", MASKINGS)
def test_intervals_cover_the_full_value(method, credits_of_methods):
    found = credits_of_methods[method]
    full = found.mean(axis=1).max()
    ends = list(estimates(found, 500))
    assert 0.03 < full < 0.97
    assert sum(one.low <= full <= one.high for one in ends) >= 0.93 * len(ends)
    for limit in full * np.linspace(0.5, 0.999, 20):  # limits that the full value misses
        met = [one for one in ends if one.high <= limit]
        assert len(met) <= 0.07 * len(ends)
        assert all(full - limit <= one.high - one.low for one in met)


@pytest.mark.parametrize("factor", [1.0, later(0.93), later(1.07)])
@pytest.mark.parametrize("method", MASKINGS)
def test_intervals_cover_the_full_value_where_samples_grow(method, factor, credits_of_methods):
    found = credits_of_methods[method]
    full = found.mean(axis=1).max()
    covered = wrong = 0
    for stream in range(200):
        score = grown(found, {"linkage": factor * full}, stream)
        low, high = (full, full) if score.estimate is None else score.estimate[:2]
        covered += low <= full <= high
        wrong += (
            score.value <= factor * full if score.estimate is None else high <= factor * full
        ) and factor < 1
    assert covered >= 0.93 * 200
    assert wrong <= 0.05 * 200


def grown(found, limits, stream):
    """What a growing sample gives for the largest mean credit."""
    n = found.shape[1]
    pair = SimpleNamespace(original=SimpleNamespace(n=n), sample=None)

    def measure():
        size = pair.sample.size
        rows = pair.sample.order(n)[:size]
        sums = found[:, rows].sum(axis=1)
        queries = Queries(rows, n, pair.sample if size < n else None)
        estimate = estimate_of_largest(sums.max(), queries, len(found))
        return [SimpleNamespace(value=sums.max() / size, estimate=estimate)]

    return Sampling(100, limits, stream=stream).scores("linkage", [pair], measure)[0]


def test_a_sample_grows_until_the_limit_is_settled_or_all_records_are_looked_up(credits_of_methods):
    found = credits_of_methods["noise"]
    full = found.mean(axis=1).max()
    assert grown(found, {}, 0).estimate.drawn == 100
    assert grown(found, {"linkage": 4 * full}, 0).estimate.drawn == 100
    assert grown(found, {"linkage": 2 * full}, 0).estimate.drawn in {200, 400, 800}
    exact = grown(found, {"linkage": full}, 0)
    assert exact.estimate is None
    assert exact.value == pytest.approx(full)


def test_sizes_double_up_to_all_records_or_to_the_largest_sample():
    assert Sampling(100).sizes(1000) == [100, 200, 400, 1000]
    assert Sampling(100, most=300).sizes(1000) == [100, 200, 300]
    assert Sampling(100, most=5000).sizes(250) == [100, 250]
    assert Sampling(100).sizes(60) == [60]


@pytest.mark.parametrize(("total", "m"), [(0, 20), (1, 20), (7, 50), (50, 50), (49, 50)])
def test_the_interval_is_that_of_clopper_and_pearson(total, m):
    queries = Queries(np.arange(m), 1000, QuerySample(m))
    for tried in (1, 4):
        found = estimate_of_largest(total, queries, tried)
        expected = naive_interval.clopper_pearson(total, m, 0.025 / tried, 0.025)
        assert found[:2] == pytest.approx(expected, abs=1e-9)


def test_the_interval_of_a_mean_of_strata_is_narrower_than_the_mean_of_intervals():
    queries = Queries(np.arange(100), 400, QuerySample(100))
    ends = [estimate_of_largest(total, queries) for total in (10, 20, 30)]
    found = mean_estimate([0.1, 0.2, 0.3], [*ends[:2], None], np.array([400, 400, 200]))
    assert found.low < 0.4 * 0.1 + 0.4 * 0.2 + 0.2 * 0.3 < found.high
    assert found.high - found.low < 0.4 * sum(one.high - one.low for one in ends[:2])
    assert found[2:] == (400, 1000)
    assert mean_estimate([0.1], [None], np.array([5])) is None


# --- evaluate ---


@pytest.mark.long
@pytest.mark.parametrize(
    "metrics", [["linkage", "dbrl", "dbrl_mahalanobis", "dbrl_rank", "linkage_outliers"]]
)
def test_an_evaluation_says_what_was_estimated(metrics):
    table = survey(3000)
    masked = sdc.Microdata(table, **ROLES).mask("noise", percent=30.0, rng=3)
    named = {"method": "noise", "parameters": {"percent": 30.0}}
    options = {**ROLES, "known": ["a", "b", "c"], **named}
    full = called("evaluate", table, masked, metrics=[*metrics, "brmae"], **options)
    part = called("evaluate", table, masked, metrics=[*metrics, "brmae"], **options, sample_queries=50)
    rows = {row["metric"]: row for row in part.summary.iter_rows(named=True)}
    for metric in metrics:
        assert rows[metric]["ci_low"] <= full[metric] <= rows[metric]["ci_high"]
        assert part.upper_end(metric) == rows[metric]["ci_high"]
        assert (
            f"estimated on 50 of {60 if metric == 'linkage_outliers' else 3000} records"
            in part.meaning[metric]
        )
    assert rows["brmae"]["ci_low"] is None
    assert part["brmae"] == full["brmae"] == part.upper_end("brmae")
    assert "estimated" not in str(full)
    assert full.table["ci_low"].null_count() == full.table.height
    again = called("evaluate", table, masked, metrics=metrics, **options, sample_queries=50)
    assert again["linkage"] == part["linkage"]
    assert (
        called("evaluate", table, masked, metrics=metrics, **options, sample_queries=3000)["dbrl"]
        == full["dbrl"]
    )


@pytest.mark.long
def test_a_scenario_meets_its_limit_only_if_the_upper_end_does():
    table = survey(2100)
    masked = sdc.Microdata(table, **ROLES).mask("noise", percent=60.0, rng=3)
    known = {"known": ["a", "b", "c"]}
    value = sdc.Microdata(table, **ROLES, **known).evaluate(masked, metrics="linkage")["linkage"]

    def judged(limit, size):
        scenarios = {"press": {**known, "max_risk": {"linkage": limit}}}
        found = sdc.Microdata(table, **ROLES, intruders=scenarios).evaluate(
            masked, metrics="brmae", sample_queries=size
        )
        return found.scenarios.row(0, named=True)

    assert judged(4 * value, 100)["met"]
    assert judged(4 * value, 100)["ci_high"] <= 4 * value
    settled = judged(value * 1.0001, 100)  # near the limit all records are looked up
    assert settled["met"]
    assert settled["ci_high"] is None
    assert not judged(value * 0.9999, 100)["met"]


def test_strata_are_sampled_one_by_one():
    table = survey(4000)
    masked = sdc.Microdata(table, columns=["a", "b", "c"], by="region").mask("mdav", k=5)
    options = {"columns": ["a", "b", "c"], "by": "region", "method": "mdav", "metrics": "linkage"}
    full = called("evaluate", table, masked, **options)
    part = called("evaluate", table, masked, **options, sample_queries=200)
    both = part.table.join(full.table, on=["metric", "variable", "stratum"], suffix="_full")
    assert both.height == 5
    for row in both.iter_rows(named=True):
        assert row["ci_low"] <= row["value_full"] <= row["ci_high"], row["stratum"]
        assert row["ci_high"] - row["ci_low"] < 0.2


@pytest.mark.parametrize("size", [-1, 2.5, "many", math.nan])
def test_a_sample_that_is_no_number_of_records_is_refused(size):
    with pytest.raises(ValueError, match=r"sample_queries is .*; give a whole number"):
        sdc.evaluate([1.0, 2.0], [1.0, 2.0], sample_queries=size)
    with pytest.raises(ValueError, match=r"sample_queries is .*; give a whole number"):
        sdc.recommend([1.0, 2.0], max_risk={"linkage": 0.5}, sample_queries=size)


def test_releases_together_are_not_sampled():
    with pytest.raises(ValueError, match="sample_queries is for one release"):
        sdc.evaluate([1.0, 2.0], [[1.0, 2.0], [1.0, 2.0]], together=True, sample_queries=1)


def test_a_pair_draws_the_same_records_again_and_more_of_them():
    pair = Pair(Original.of(np.arange(50.0)), np.arange(50.0))
    assert everyone(pair).sample is None
    pair.sample = QuerySample(20)
    first = everyone(pair).rows
    assert len(set(first)) == 20
    pair.sample = QuerySample(30)
    assert np.array_equal(everyone(pair).rows[:20], first)
    pair.sample = QuerySample(20, stream=1)
    assert set(everyone(pair).rows) != set(first)


def test_an_exact_value_of_strata_lifts_the_interval_of_the_file():
    sampled = Estimate(0.04, 0.06, 50, 1000)
    assert larger_estimate((0.05, 0.2), (sampled, None))[:2] == (0.2, 0.2)
    assert larger_estimate((0.05, 0.01), (sampled, None))[:2] == (0.04, 0.06)
    assert larger_estimate((0.05, 0.2), (None, None)) is None


def test_strata_of_the_same_size_draw_other_positions():
    sample = QuerySample(50)
    orders = [sample.order(1000, first=first).tolist() for first in (0, 1, 2)]
    assert len({tuple(order) for order in orders}) == 3
