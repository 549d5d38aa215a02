"""Strata that an intruder knows: risk within them, windows that hold within them or not."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from sdckit.evaluation.measure import score_within_strata
from sdckit.metrics.pair import pair_of
from secret_bytes import entropy
from sweeps import frame

LINKING = [m.name for m in sdc.METRICS.values() if m.family == "risk" and m.needs == "rows" and not m.role]
BY_LAW = ("linkage", "linkage_outliers", "linkage_sure")
OTHERS = ["brmae", "mae", "il_variables", "sdid", "rid"]
NOTE = "linkage is for an intruder who knows the strata and searches within them"
SIZES = {"p": 50, "q": 25, "r": 15}


def stratified():
    """Ninety records in strata of different size that overlap."""
    return frame(90).with_columns(g=pl.Series([name for name, n in SIZES.items() for _ in range(n)]))


def masked_by_strata(**more):
    return called("mask", stratified(), "mdav", k=3, by="g", **more)


def parts(*tables):
    for name, n in SIZES.items():
        yield n, [table.filter(g=name).drop("g") for table in tables]


def whole(result, metric):
    return result.summary.filter(metric=metric).row(0, named=True)


# --- evaluate ---


@pytest.mark.parametrize("metric", [name for name in LINKING if name != "window" and name not in BY_LAW])
def test_linkage_is_the_larger_of_pooled_and_within(metric):
    data, masked = stratified(), masked_by_strata()
    inside = sdc.evaluate(data, masked, metrics=metric)[metric]  # g is known, distances are those of the file
    apart = [(n, sdc.evaluate(*pair, metrics=metric)[metric]) for n, pair in parts(data, masked)]
    mean = sum(n * value for n, value in apart) / 90
    result = sdc.Microdata(data, by="g").evaluate(masked, metrics=metric)
    assert result[metric] == pytest.approx(max(inside, mean), rel=1e-12)
    assert (NOTE in result.notes) == (mean > inside)
    assert inside >= sdc.evaluate(data.drop("g"), masked.drop("g"), metrics=metric)[metric] - 1e-12


@pytest.mark.parametrize("metric", BY_LAW)
def test_risk_by_law_is_never_below_that_of_the_file_or_of_its_strata(metric):
    """The law is that of the file, also within a stratum."""
    data, masked = stratified(), masked_by_strata()
    inside = sdc.evaluate(data, masked, metrics=metric)[metric]
    result = sdc.Microdata(data, by="g").evaluate(masked, metrics=metric)
    rows = result.table.filter(metric=metric)
    mean = sum(n * rows.filter(stratum=name)["value"].item() for name, n in SIZES.items()) / 90
    assert result[metric] == pytest.approx(max(inside, mean), rel=1e-12)


def test_linkage_is_larger_within_strata():
    """Otherwise the test above could not fail, and neither could that the mean counts records."""
    data, masked = stratified(), masked_by_strata()
    for metric in ("linkage", "dbrl"):
        pooled = sdc.evaluate(data.drop("g"), masked.drop("g"), metrics=metric)[metric]
        values = [sdc.evaluate(*pair, metrics=metric)[metric] for _, pair in parts(data, masked)]
        found = sdc.Microdata(data, by="g").evaluate(masked, metrics=metric)[metric]
        assert found > pooled, metric
        assert found != pytest.approx(np.mean(values)), metric


def test_losses_and_intervals_are_untouched_by_strata():
    data, masked = stratified(), masked_by_strata()
    result = sdc.Microdata(data, by="g").evaluate(masked, metrics=OTHERS)
    pooled = sdc.Microdata(data, columns=["a", "b", "c"]).evaluate(masked, metrics=OTHERS)
    assert NOTE not in result.notes
    for metric in OTHERS:
        assert whole(result, metric) == whole(pooled, metric)


def test_the_rows_of_the_strata_are_those_of_the_strata():
    data, masked = stratified(), masked_by_strata()
    rows = sdc.Microdata(data, by="g").evaluate(masked, metrics=["linkage", "dbrl"]).table
    for (_, pair), name in zip(parts(data, masked), SIZES, strict=True):
        alone = sdc.evaluate(*pair, metrics=["linkage", "dbrl"])
        for metric in ("linkage", "dbrl"):
            slack = 0.1 if metric == "linkage" else 0.0  # the law is learnt from the whole file
            value = rows.filter(stratum=name, metric=metric)["value"].item()
            assert value == pytest.approx(alone[metric], abs=slack)


def test_the_random_level_is_that_of_the_strata_too():
    data, masked = stratified(), masked_by_strata()
    result = sdc.Microdata(data, by="g").evaluate(masked, metrics="dbrl")
    levels = [
        (n, whole(sdc.evaluate(*pair, metrics="dbrl"), "dbrl")["random"]) for n, pair in parts(data, masked)
    ]
    assert whole(result, "dbrl")["random"] == pytest.approx(sum(n * level for n, level in levels) / 90)


def test_one_stratum_is_the_file():
    data = stratified().with_columns(g=pl.lit("all of them"))
    masked = sdc.Microdata(data, by="g").mask("mdav", k=3)
    metrics = ["linkage", "dbrl", "linkage_outliers"]
    result = sdc.Microdata(data, by="g").evaluate(masked, metrics=metrics)
    assert NOTE not in result.notes
    pooled = sdc.evaluate(data.drop("g"), masked.drop("g"), metrics=metrics)
    for metric in metrics:
        assert whole(result, metric) == whole(pooled, metric)


def test_strata_that_a_risk_does_not_suit_are_left_out_of_its_mean():
    data = stratified().with_columns(g=pl.when(pl.arange(90) < 4).then(pl.lit("few")).otherwise("g"))
    masked = data.with_columns(pl.col("a", "b", "c") * 1.001)
    result = sdc.Microdata(data, by="g").evaluate(masked, metrics="rmdid")
    assert "rmdid has no value in some strata" in result.notes
    known = result.table.filter(pl.col("stratum") != "all")
    assert known["stratum"].unique().sort().to_list() == ["p", "q", "r"]
    sizes = dict(data["g"].value_counts().iter_rows())
    mean = sum(sizes[row["stratum"]] * row["value"] for row in known.iter_rows(named=True)) / 86
    pooled = sdc.evaluate(data.drop("g"), masked.drop("g"), metrics="rmdid")["rmdid"]
    assert result["rmdid"] == pytest.approx(max(mean, pooled))


def test_scores_without_strata_come_back_as_they_are():
    pair = pair_of(frame(20), frame(20) * 1.1)
    metric = sdc.METRICS["dbrl"]
    score = metric.score(pair)
    assert score_within_strata(metric, [score], [20]) is score
    assert score_within_strata(metric, [score, None], [20, 20]) is score
    assert score_within_strata(metric, [None, score], [20, 20]) is None


# --- sweep, recommend, release ---


@pytest.mark.long
@pytest.mark.parametrize("method", ["mdav", "rank_noise"])
def test_sweep_and_search_see_the_risk_within_strata(method):
    data = stratified()
    plan = {"mdav": {"k": [2, 3, 5, 8]}, "rank_noise": {"a": [0.1, 0.3, 0.6]}}
    plan, metrics = {method: plan[method]}, ["brmae", "linkage", "dbrl"]
    found = sdc.Microdata(data, by="g").sweep(plan, metrics=metrics, rng=3, workers=1)
    wide = found.table.pivot("stratum", index=["parameters", "metric"], values="value")
    mean = sum(n * pl.col(name) for name, n in SIZES.items()) / 90
    risks = wide.filter(pl.col("metric") != "brmae").with_columns(mean=mean)
    assert (risks["all"] >= risks["mean"] - 1e-12).all()
    assert (risks["all"] - risks["mean"]).abs().min() < 1e-12, "within strata for some"
    choice = found.recommend({"linkage": 0.5})
    searched = sdc.Microdata(data, by="g").recommend(
        max_risk={"linkage": 0.5}, plan=plan, rng=3, workers=1, replications=1
    )
    assert choice.point.parameters == searched.point.parameters
    assert choice.point.values["linkage"] == pytest.approx(searched.point.values["linkage"], rel=1e-12)
    release = searched.release(entropy=entropy(1))
    again = sdc.Microdata(data, by="g").evaluate(release, metrics=metrics)
    assert again["linkage"] == release.evaluation["linkage"] <= 0.5


def test_a_limit_that_holds_pooled_may_fail_within_strata():
    """A search that looked at the pooled risk alone would stop earlier."""
    data, plan = stratified(), {"mdav": {"k": range(2, 15)}}
    limit = {"dbrl": 0.15}
    choice = sdc.Microdata(data, by="g").recommend(max_risk=limit, plan=plan, rng=3, workers=1)
    weaker = sdc.Microdata(data, by="g").mask("mdav", **choice.weaker.setting.parameters)
    assert sdc.evaluate(data.drop("g"), weaker.drop("g"), metrics="dbrl")["dbrl"] <= 0.15
    assert sdc.Microdata(data, by="g").evaluate(weaker, metrics="dbrl")["dbrl"] > 0.15


# --- windows ---


def nearest(data, masked, **more):
    """Return rows and parts of the nearest record and of a plain guess, inside the windows."""
    result = called("evaluate", data, masked, metrics=["dbrl", "linkage"], **more)
    return result.table.filter(metric="dbrl"), result.parts["linkage"]["guess"]


def test_a_window_is_one_of_the_whole_file_unless_strata_were_masked_apart():
    data = stratified()
    masked = sdc.Microdata(data, columns=["a", "b", "c"]).mask("rank_swap", p=0.2, rng=4)
    pooled, guess = nearest(data.drop("g"), masked.drop("g"), window=0.2)
    blind, blind_guess = nearest(data, masked, by="g")
    inside, inside_guess = nearest(data, masked, window=0.2)
    rows, rows_guess = nearest(data, masked, by="g", window=0.2)
    assert rows["value"][0] >= inside["value"][0] > max(pooled["value"][0], blind["value"][0])
    within = [*zip(rows["value"], blind["value"], strict=True)]
    assert all(one >= other for one, other in within[1:])  # ranks of the file, among records of a stratum
    assert rows_guess >= inside_guess > guess > blind_guess


def test_a_window_of_strata_masked_apart_holds_within_them():
    data = stratified()
    masked = sdc.Microdata(data, by="g").mask("rank_swap", p=0.2, rng=4)
    rows, _ = nearest(data, masked, by="g", window=0.2, stratified=True)
    for (_, pair), name in zip(parts(data, masked), SIZES, strict=True):
        alone, _ = nearest(*pair, window=0.2)
        assert rows.filter(stratum=name)["value"].item() == alone["value"][0]
    without, _ = nearest(data, masked, by="g", window=0.2)
    assert rows.filter(stratum="all")["value"].item() > without.filter(stratum="all")["value"].item()


def test_stratified_is_refused_without_strata():
    data, masked = frame(), sdc.mask(frame(), "rank_swap", p=0.2, rng=4)
    how = {"metrics": "linkage", "window": 0.2}
    with pytest.raises(ValueError, match="stratified is True and there are no strata"):
        called("evaluate", data, masked, **how, stratified=True)
    one, other = (called("evaluate", data, masked, **how, stratified=no) for no in (False, None))
    assert one.table.equals(other.table)
    assert one.parts["linkage"]["guess"] > 0.05
