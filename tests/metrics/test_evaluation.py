"""What stands beside a value: levels, tie range, records, sentences; all of them belong to that value."""

import pickle
import re

import numpy as np
import polars as pl
import pytest

import naive
import sdckit as sdc
from calls import called
from cases import each

RNG = np.random.default_rng(5)


def row(result, metric, variable="all"):
    found = result.table.filter((pl.col("metric") == metric) & (pl.col("variable") == variable))
    return found.row(0, named=True)


def zero_inflated():
    x = np.where(RNG.random(60) < 0.5, 0.0, RNG.lognormal(2, 1, 60))
    return x, np.where(x == 0, 0.0, x * RNG.normal(1, 0.05, 60))


@pytest.mark.long
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_the_random_level_of_il1_knows_zeros_and_no_units(unit):
    x, y = zero_inflated()
    level = row(sdc.evaluate(x * unit, y * unit, metrics="il1"), "il1")["random"]
    shuffled = [sdc.il1(x, RNG.permutation(y)) for _ in range(4000)]
    assert level == pytest.approx(np.mean(shuffled), rel=0.02)


def test_the_random_level_of_il1_without_zeros_is_exact():
    x, y = RNG.lognormal(0, 1, 5), RNG.lognormal(0, 1, 5)
    level = row(sdc.evaluate(x, y, metrics="il1"), "il1")["random"]
    assert level == pytest.approx(np.mean(np.abs(x[:, None] - y[None, :]) / x[:, None]), rel=1e-12)


@pytest.mark.parametrize("metric", ["brmae", "brmse"])
def test_a_penalty_moves_value_range_and_level_together(metric):
    x = RNG.integers(0, 9, 100).astype(float)
    y = np.where(np.arange(100) < 60, np.nan, x + RNG.integers(-1, 2, 100))
    found = row(sdc.Microdata(x, missing="penalise").evaluate(y, metrics=metric, per_record=True), metric)
    assert found["tie_low"] <= found["value"] <= found["tie_high"] <= 1
    assert found["value"] < found["random"] <= 1
    kept = row(sdc.evaluate(x, y, metrics=metric), metric)
    for name in ("value", "tie_low", "tie_high", "random"):
        assert found[name] == pytest.approx((40 * kept[name] + 60) / 100, rel=1e-12)


@pytest.mark.parametrize("metric", ["brmae", "brmse"])
def test_records_are_penalised_like_the_value(metric):
    x = RNG.normal(size=50)
    y = np.where(np.arange(50) < 20, np.nan, x + RNG.normal(size=50))
    result = sdc.Microdata(x, missing="penalise").evaluate(y, metrics=metric, per_record=True)
    assert result.records[metric].mean() == pytest.approx(result[metric], rel=1e-12)
    assert (result.records[metric][:20] == 1).all()


@each("rng", [3, None])
@each("metric", ["brmae", "brmse", "rank_mae", "rank_mse"])
def test_random_ties_give_records_of_the_same_draw(metric, rng):
    x = RNG.integers(0, 3, (40, 4)).astype(float)
    y = RNG.integers(0, 3, (40, 4)).astype(float)
    result = sdc.Microdata(x, ties="random").evaluate(y, metrics=metric, rng=rng, per_record=True)
    assert result.records[metric].mean() == pytest.approx(result[metric], rel=1e-12)


def test_rank_means_of_records_are_rank_differences_whatever_is_missing():
    x = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, np.nan], [5.0, np.nan]])
    y = np.array([[5.0, 2.0], [2.0, 1.0], [3.0, 3.0], [4.0, np.nan], [1.0, np.nan]])
    records = sdc.evaluate(x, y, metrics="rank_mae", per_record=True).records["rank_mae"].to_list()
    assert records == [2.5, 0.5, 0.0, 0.0, 4.0]


def test_sentences_of_brmse_are_true():
    for y, options, words in (
        ([1, 2, 3, 4, 5], {}, "no two records have changed places"),
        ([5, 4, 3, 2, 1], {}, "the order is turned round"),
        ([9, 9, 9, 9, 9], {"ties": "min"}, "no two records have changed places"),
        ([2, 1, 3, 4, 5], {}, "an unrelated order would score 0.500"),
    ):
        assert words in called("evaluate", [1, 2, 3, 4, 5], y, metrics="brmse", **options).meaning["brmse"]


@each("metric", sdc.METRICS)
def test_a_sentence_without_numbers_where_nothing_can_be_compared(metric):
    original = np.random.default_rng(0).normal(size=(120, 3))
    try:
        said = sdc.evaluate(original, np.full_like(original, np.nan), metrics=metric).meaning[metric]
    except sdc.NotApplicable as refusal:
        said = str(refusal)
        known = {"pmse", "pil", "il_correl", "eigen", "covariance_loss"}
        assert metric in known or sdc.METRICS[metric].role
        assert "; " in said
    words = r"\bno |\b0;|needs (a column|estimates)"
    if metric in {"linkage", "linkage_outliers"}:  # one of 120 records, or a few of the outliers by chance
        words = r"is right in (0\.83|[0-2]\.\d+) of 100 cases"
    assert re.search(words, said)
    assert "nan" not in said


def test_every_metric_can_be_sent_to_a_worker():
    for metric in sdc.METRICS.values():
        assert pickle.loads(pickle.dumps(metric)).name == metric.name  # noqa: S301 - just made


def test_a_metric_without_a_value_is_nan_when_asked_for():
    result = sdc.evaluate([1.0, 2.0, 3.0], np.full(3, np.nan), metrics=["brmae", "dbrl"])
    assert np.isnan(result["brmae"])
    assert np.isnan(result["dbrl"])


def test_a_stratum_of_one_record_has_no_spread_and_no_il1s():
    data = pl.DataFrame({"x": [1.0, 2.0, 4.0], "s": ["a", "a", "b"]})
    masked = data.with_columns(pl.col("x") + 1)
    table = sdc.Microdata(data, by="s").evaluate(masked, metrics="il1s").table
    assert table.filter((pl.col("stratum") == "b") & (pl.col("variable") == "x"))["value"].to_list() == [None]


def test_weighted_levels_are_means_over_random_pairings():
    x, y, weights = RNG.integers(0, 6, 30) * 1.0, RNG.integers(0, 6, 30) * 1.0, RNG.uniform(0.5, 4, 30)
    result = sdc.Microdata(x, weights=weights).evaluate(y, metrics=["brmae", "brmse"])
    draws = [naive.weighted_br(x, RNG.permutation(y), weights) for _ in range(300)]
    levels = [row(result, metric)["random"] for metric in ("brmae", "brmse")]
    assert levels == pytest.approx(np.mean(draws, axis=0), rel=0.05)


def test_columns_of_any_label_play_any_role():
    import pandas as pd

    data = pd.DataFrame(RNG.normal(size=(12, 4)))
    data[3] = RNG.uniform(1, 2, 12)
    masked = data.copy()
    masked[0] = masked[0].to_numpy()[::-1]
    result = sdc.Microdata(data, weights=3, unknown=[3], columns=[0, 1]).evaluate(masked, metrics="brmae")
    assert result.table["variable"].to_list() == ["all", "0", "1"]
    again = sdc.Microdata(data, key=2, weights=3, unknown=3).evaluate(masked, metrics="brmae")
    assert again.table["variable"].to_list()[1:] == ["0", "1"]


def test_values_near_the_largest_number_give_no_warning():
    x = RNG.normal(size=(40, 3)) * 1e300
    y = x * RNG.normal(1, 0.1, (40, 3))
    assert sdc.mse_permutation(x, y) == np.inf
    result = sdc.evaluate(x, y, per_record=True)
    assert result["brmae"] == pytest.approx(sdc.brmae(x / 1e300, y / 1e300), rel=1e-12)


def test_a_metric_that_was_not_measured_is_named_as_such():
    result = sdc.evaluate([1.0, 2.0, 4.0], [1.0, 4.0, 2.0], metrics=["brmae", "mae"])
    with pytest.raises(ValueError, match=r"^dbrl was not measured; measured: brmae, mae; add it to metrics$"):
        result["dbrl"]
    with pytest.raises(ValueError, match=r"^unknown metric 'dbrll' \(did you mean 'dbrl'"):
        result["dbrll"]


def test_a_window_by_stratum_holds_within_the_strata():
    data = pl.DataFrame({"x": RNG.normal(size=60), "g": ["a", "b"] * 30})
    masked = sdc.Microdata(data, by="g").mask("rank_swap", p=0.2, rng=1)
    window = {"a": 0.2, "b": 0.2}
    found = sdc.Microdata(data, by="g").evaluate(masked, made_by=sdc.Method(window=window), metrics="window")
    named = sdc.Microdata(data, by="g").evaluate(
        masked, made_by=sdc.Method("rank_swap", p=0.2), metrics="window"
    )
    assert found["window"] == named["window"]


def test_strata_of_the_masking_and_of_the_data_must_agree():
    data = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "region": list("abab"), "sector": list("aabb")})
    release = sdc.Microdata(data, by="region", columns="x").release("mdav", k=2)
    text = "^by is sector and the file was masked within strata of region; leave by out$"
    with pytest.raises(ValueError, match=text):
        sdc.Microdata(data, columns="x", by="sector").evaluate(release)
