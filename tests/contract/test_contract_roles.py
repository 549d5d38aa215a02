"""What every metric about columns of some role must do: those that are untouched, confidential, or a unit."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sdckit as sdc
from calls import called
from contract import data, shaken
from sdckit.metrics.pair import pair_of

ROLES = [metric.name for metric in sdc.METRICS.values() if metric.role]
REQUIRED = [name for name in ROLES if sdc.METRICS[name].role != "untouched"]
NEEDED = {
    "untouched": {},
    "confidential": {"confidential": ["c", "ill"]},
    "unit": {"unit": "firm"},
    "estimates": {"estimates": ["mean(a) by town", "correlation(a, b)", "model: a ~ b + ill"]},
}
KINDS = {
    "pandas": pl.DataFrame.to_pandas,
    "polars": pl.DataFrame.clone,
    "pyarrow": pl.DataFrame.to_arrow,
}


def frame(values, seed=0):
    """A table of three numbers with a category, a text to learn, and firms of several rows."""
    rng, n = np.random.default_rng(seed), len(values)
    return pl.DataFrame(values, schema=["a", "b", "c"]).with_columns(
        town=pl.Series(rng.choice(["x", "y", "z"], n)),
        ill=pl.Series(rng.choice(["no", "yes"], n)),
        firm=pl.Series(rng.integers(0, n // 3, n)),
    )


def files(n=40):
    """A table and a masked version of it."""
    x = data(n)
    return frame(x), frame(shaken(x))


def roles(name):
    return {"columns": ["a", "b", "c"], **NEEDED[sdc.METRICS[name].role]}


def prepared(name, table):
    return sdc.Microdata(table, **roles(name))


@pytest.mark.parametrize("name", ROLES)
def test_value_is_within_bounds_and_the_same_in_every_way_to_ask(name):
    metric, (original, masked) = sdc.METRICS[name], files()
    value = metric.function(prepared(name, original), masked)
    assert metric.bounds[0] <= value <= metric.bounds[1]
    assert sdc.Microdata(original, **roles(name)).evaluate(masked, metrics=name)[name] == value
    assert sdc.Microdata(original, **roles(name)).evaluate(masked)[name] == value
    for convert in KINDS.values():
        assert metric.function(prepared(name, convert(original)), convert(masked)) == value
    assert isinstance(convert(original), pa.Table)
    assert isinstance(KINDS["pandas"](original), pd.DataFrame)


@pytest.mark.parametrize("name", ROLES)
def test_score_has_the_parts_of_every_score(name):
    metric, (original, masked) = sdc.METRICS[name], files()
    for detail, per_record in ((True, False), (True, True), (False, True)):
        score = metric.score(pair_of(prepared(name, original), masked), detail=detail, per_record=per_record)
        assert score.value.variables.shape == score.used.shape == score.left_out.shape == (3,)
        assert score.records is None or (per_record and len(score.records) == 40)
        sentence = metric.explain(score)
        assert sentence
        assert "\n" not in sentence
        assert "nan" not in sentence
        assert not sentence.endswith(".")


@pytest.mark.long
@pytest.mark.parametrize("name", REQUIRED)
def test_without_its_role_a_metric_refuses_when_named_and_is_left_out_by_default(name):
    original, masked = files()
    some = {"columns": ["a", "b", "c"]}
    role = sdc.METRICS[name].role
    with pytest.raises(sdc.NotApplicable, match=f"^{name} needs [^\n]*; name [^\n]*{role}="):
        sdc.Microdata(original, **some).evaluate(masked, metrics=name)
    result = sdc.Microdata(original, **some).evaluate(masked)
    assert name not in result.meaning
    assert not any(name in note for note in result.notes)
    found = sdc.Microdata(original, **some).sweep({"mdav": {"k": [3]}}, rng=1, workers=1)
    assert name not in found.table["metric"].to_list()


def test_metrics_of_roles_are_left_out_of_arrays():
    x = data()
    assert not set(ROLES) & set(sdc.evaluate(x, shaken(x)).meaning)


@pytest.mark.long
@pytest.mark.parametrize("name", ROLES)
def test_sweep_and_search_find_the_value_of_the_masked_file(name):
    original, _ = files()
    found = sdc.Microdata(original, **roles(name)).sweep({"mdav": {"k": [3]}}, metrics=[name], workers=1)
    masked = sdc.Microdata(original, columns=["a", "b", "c"]).mask("mdav", k=3)
    parameters = {"method": "mdav", "parameters": {"k": 3}}
    shuffled = np.random.default_rng(2).permutation(40)  # a sweep judges releases, whose rows are shuffled
    with_key = original.with_columns(key=pl.Series(range(40)))
    masked = masked.with_columns(key=pl.Series(range(40)))[shuffled]
    alone = called("evaluate", with_key, masked, metrics=name, key="key", **roles(name), **parameters)
    assert found.table["value"].to_list() == pytest.approx([alone[name]], abs=1e-12)
    limits = {"max_risk": {"linkage": 1.0}} | {f"max_{sdc.METRICS[name].family}": {name: 1.0}}
    choice = called("recommend", original, **limits, plan={"mdav": {"k": [3]}}, **roles(name))
    measured = choice.to_dict()["values"]
    assert measured[name] == pytest.approx(alone[name], abs=1e-12)


@pytest.mark.parametrize("name", ROLES)
def test_strata_have_values_as_well(name):
    original, masked = files(60)
    result = sdc.Microdata(original, by="town", **roles(name)).evaluate(masked, metrics=name)
    values = result.table.filter(pl.col("stratum") != "all")["value"].drop_nulls()
    assert values.is_between(0, 1).all()
    assert len(values)
