"""Declared estimates as losses: the figures of `sdc.estimates`, in every way to ask, and clear refusals."""

import pickle

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from sdckit.estimation.compare import declared_of
from sdckit.selection.plan import runs_of, settings_of
from sdckit.selection.points import Conditions
from sdckit.selection.task import make_task

TEXTS = ["total(sales) by town, size", "median(sales)", "share(sales > 100)"]
TEXTS += ["model: log(costs) ~ log(sales) + town"]
ROLES = {"columns": ["sales", "costs"], "key": "id", "weights": "weight", "unknown": "weight"}
ROLES |= {"untouched": ["town", "size"]}


@pytest.fixture(scope="module")
def data():
    rng, n = np.random.default_rng(5), 120
    sales = np.round(np.exp(rng.normal(4, 1, n)), 1)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "town": rng.choice(["x", "y", "z"], n),
            "size": rng.choice(["big", "small"], n),
            "weight": rng.uniform(1, 9, n).round(1),
            "sales": sales,
            "costs": np.round(sales * rng.uniform(0.5, 0.9, n), 1),
        }
    )


@pytest.fixture(scope="module")
def masked(data):
    return sdc.Microdata(data, **ROLES).mask("mdav", k=5)


def test_losses_are_one_less_the_overlaps_of_the_table(data, masked):
    table = sdc.estimates(data, masked, TEXTS, weights="weight").table
    result = sdc.Microdata(data, estimates=TEXTS, **ROLES).evaluate(masked)
    assert result["estimates"] == pytest.approx(1 - table["overlap"].mean(), abs=1e-14)
    assert result["estimates_worst"] == 1 - table["overlap"].min()
    assert result.estimates.table.equals(table)
    assert 0 < result["estimates"] < result["estimates_worst"]


def test_unchanged_data_lose_nothing(data):
    assert sdc.loss.estimates(sdc.Microdata(data, estimates=TEXTS, **ROLES).original, data) == 0


def test_a_domain_that_the_masked_file_lacks_is_lost(data):
    one = data.with_columns(size=pl.lit("big"))
    lost = sdc.loss.estimates(sdc.Microdata(data, estimates="mean(sales) by size", **ROLES).original, one)
    overlap = sdc.estimates(data, one, "mean(sales) by size", weights="weight").table["overlap"]
    assert overlap.to_list()[1] == 0
    assert lost == pytest.approx(1 - overlap.mean())


def test_an_interval_that_the_masked_file_lacks_is_lost():
    original = pl.DataFrame({"town": ["x", "x", "y", "y"], "sales": [1.5, 2.5, 3.5, 4.0]})
    masked = original.with_columns(sales=pl.Series([1.5, 2.5, 3.5, None]))
    found = sdc.estimates(original, masked, "mean(sales) by town").table
    assert found["overlap"].to_list() == [1.0, 0.0]
    assert found["reason"][1] == "masked: one record, so no standard error"


def test_domains_of_a_masked_column_are_those_of_its_masked_values(data):
    data = data.with_columns(size=pl.Series(np.where(data["size"] == "big", 1.0, 2.0)))
    masked = data.with_columns(size=pl.when(pl.col("size") == 1).then(2.5).otherwise(1.0))
    wanted = sdc.estimates(data, masked, "mean(sales) by size", weights="weight").table
    assert wanted["domain"].to_list() == ["1", "2.5", "2"]  # first those of the masked file
    prepared = sdc.Microdata(
        data, estimates="mean(sales) by size", **ROLES | {"columns": ["sales", "size"], "untouched": "town"}
    )
    declared = declared_of(prepared.original)
    beside = declared.file.replaced({"size": masked["size"].to_numpy()})
    overlaps = declared.overlaps(declared.rows_of(beside))
    assert (
        [*overlaps.values()]
        == wanted["overlap"][::2].to_list()
        == [pytest.approx(overlaps["mean(sales) by size", "1"]), 0]
    )
    assert sdc.loss.estimates(prepared, masked) == 1 - sum(overlaps.values()) / 2


def test_recoded_columns_count_as_they_are_published(data):
    recode = {"recode": {"town": "rare:45"}, "estimates": "mean(sales) by town"}
    prepared = sdc.Microdata(data, **ROLES | {"untouched": "size"} | recode)
    release = prepared.release("mdav", k=2)
    found = release.evaluation.estimates.table
    assert sdc.estimates(prepared, release.data, "mean(sales) by town").table.equals(found)
    assert sorted(found["domain"]) == sorted(release.data["town"].unique())
    assert found["overlap"].null_count() == 0
    assert found["overlap"].min() > 0


def test_a_worker_measures_the_same_without_the_table(data):
    original = sdc.Microdata(data, estimates=TEXTS, **ROLES).original
    conditions = Conditions(original)
    options = {"draws": "common", "per_variable": False, "detail": False}
    metrics = [sdc.METRICS[name] for name in ("estimates", "estimates_worst")]
    task, settings, _ = make_task(
        original, conditions, settings_of({"noise": {"percent": [20]}}), metrics=metrics, **options
    )
    (run,) = runs_of(settings, 1)
    sent = pickle.loads(pickle.dumps(task.without_table()))  # noqa: S301 - as a worker gets it
    assert sent.original.table is None
    assert np.array_equal(sent.measure(run, 3), task.measure(run, 3), equal_nan=True)
    others = [{"estimates": TEXTS[:1]}, {"unit": "town", "untouched": "size"}, {"na": -9}]
    for other in others:  # that give other estimates, so that a folder of the first sweep does not serve
        prepared = sdc.Microdata(data, **ROLES | {"estimates": TEXTS} | other).original
        assert (
            make_task(prepared, conditions, settings, metrics=metrics, **options)[0].identity != task.identity
        )


def test_arrays_have_estimates_as_well(data):
    values = data.select("sales", "costs").to_numpy()
    found = sdc.Microdata(values, estimates="mean(x1)").sweep(
        {"mdav": {"k": [3]}}, metrics="estimates", workers=1
    )
    alone = sdc.Microdata(values, estimates="mean(x1)").evaluate(
        sdc.mask(values, "mdav", k=3), metrics="estimates"
    )
    assert found.table["value"].to_list() == [alone["estimates"]]


@pytest.mark.long
def test_a_search_keeps_limits_on_losses_and_finds_the_smaller_loss(data):
    limits = {"max_risk": {"linkage": 0.5}, "max_loss": {"estimates_worst": 0.9}}
    plan = {"mdav": {"k": [2, 5]}, "noise": {"percent": [20, 60, 120]}}
    options = limits | {"plan": plan, "rng": 1, "workers": 1, "estimates": TEXTS[:2]} | ROLES
    found = {name: called("recommend", data, minimise=name, **options) for name in ("estimates", "brmae")}
    for choice in found.values():
        assert choice.point.values["estimates_worst"] <= 0.9
    swept = sdc.Microdata(data, estimates=TEXTS[:2], **ROLES).sweep(plan, replications=3, rng=1, workers=1)
    kept = swept.recommend(**limits, minimise="estimates")
    assert kept.point.values["estimates"] <= min(
        point.values["estimates"] for point in swept.recommend(**limits, minimise="brmae").safe
    )
    assert found["estimates"].release().evaluation["estimates_worst"] <= 0.9


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"estimates": "total(sale)"}, "unknown column 'sale'"),
        ({"estimates": "mean(sales) by id"}, "needs column 'id', which is not published"),
        (
            {"estimates": "mean(sales) by town", "drop": "town", "untouched": "size"},
            "needs column 'town', which is not published",
        ),
        ({"estimates": "model: sales ~ C(sales):C(weight)"}, "terms and at most 2,000 are fitted"),
        ({"estimates": "model: sales ~ log(weight, sales)"}, "cannot be read at ','"),
        ({"estimates": "model: sales ~ poly(weight, (99))"}, "cannot be read at ','"),
        ({"estimates": "model: sales ~ poly(weight, 99)"}, "cannot be read at '99'"),
        ({"estimates": "mean(sales)", "weights": np.ones(120)}, "need the weights in a column"),
        ({"estimates": "mean(sales)", "engine": "local"}, "estimates"),
    ],
)
def test_estimates_that_cannot_be_are_refused_in_one_line(data, masked, options, said):
    with pytest.raises((ValueError, TypeError)) as refused:
        called("evaluate", data, masked, **ROLES | options)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "; " in str(refused.value)
