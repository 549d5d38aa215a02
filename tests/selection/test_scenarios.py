"""Scenarios: other intruders with other knowledge and limits of their own."""

import pickle

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from sdckit.core.registry import metrics_named
from sdckit.core.scenarios import checked_scenarios
from sdckit.metrics.original import Original
from sdckit.selection.limits import LimitsMissed
from sdckit.selection.plan import Run, settings_of
from sdckit.selection.points import Conditions
from sdckit.selection.task import make_task

PRESS = {"press": {"known": ["income", "sex"], "max_risk": {"linkage": 0.05}}}
ROLES = {"columns": ["income", "wealth"], "untouched": ["sex", "town"], "known": ["income", "wealth", "sex"]}


@pytest.fixture
def survey():
    """A file of two amounts, a code and a town."""
    rng = np.random.default_rng(1)
    amounts = np.exp(rng.normal(size=(120, 2))).round(3)
    return pl.DataFrame(
        {
            "income": amounts[:, 0],
            "wealth": amounts[:, 1],
            "sex": rng.integers(0, 2, 120),
            "town": rng.integers(0, 30, 120),
        }
    )


def towns(limit, *more):
    """From a limit, the scenario of neighbours, who know the town."""
    return {"neighbours": {"known": ["town", *more], "max_risk": {"linkage": limit}}}


def test_a_scenario_is_measured_as_if_known_were_given(survey):
    masked = sdc.Microdata(survey, columns=["income", "wealth"], untouched=["sex", "town"]).mask("mdav", k=5)
    how = {"method": "mdav", "parameters": {"k": 5}, "metrics": "linkage"}
    scenarios = PRESS | {"all": {"known": survey.columns}}
    found = called("evaluate", survey, masked, **ROLES, **how, intruders=scenarios)
    plain = {name: ROLES[name] for name in ("columns", "untouched")}
    for name, entry in scenarios.items():
        alone = called("evaluate", survey, masked, **plain, **how, known=entry["known"])
        assert found[f"linkage ({name})"] == alone["linkage"]
    assert found["linkage"] == called("evaluate", survey, masked, **ROLES, **how)["linkage"]
    assert found.scenarios.select("scenario", "known", "metric", "limit", "met").rows() == [
        ("press", "income, sex", "linkage", 0.05, found["linkage (press)"] <= 0.05),
        ("all", "income, wealth, sex, town", "linkage", None, None),
    ]
    assert "scenario press (knows income, sex): linkage" in repr(found)


def test_a_scenario_may_know_what_the_default_intruder_does_not(survey):
    masked = sdc.Microdata(survey, columns=["income", "wealth"], untouched=["sex", "town"]).mask("mdav", k=5)
    roles = {"columns": ["income", "wealth"], "untouched": ["sex", "town"], "unknown": ["town"]}
    found = called(
        "evaluate", survey, masked, **roles, metrics="linkage", intruders={"b": {"known": ["town"]}}
    )
    assert found["linkage (b)"] == pytest.approx(survey["town"].n_unique() / survey.height)


def test_a_recommendation_meets_the_limits_of_all_scenarios(survey):
    plan, roles = {"mdav": {"k": range(2, 31)}}, {**ROLES, "rng": 1, "workers": 1}
    plain = called("recommend", survey, max_risk={"linkage": 0.3}, plan=plan, **roles)
    choice = called("recommend", survey, max_risk={"linkage": 0.3}, plan=plan, intruders=PRESS, **roles)
    assert choice.limits == {"linkage": 0.3, "linkage_sure": 0.03, "linkage (press)": 0.05}
    assert choice.binding == ("linkage (press)",)
    assert "linkage (press)" in choice.sentences[0]
    assert choice.parameters["k"] > plain.parameters["k"]
    release = choice.release()
    assert release.evaluation["linkage (press)"] <= 0.05
    assert release.evaluation["linkage (press)"] == choice.point.values["linkage (press)"]
    assert release.evaluation.scenarios["met"].to_list() == [True]


def test_a_release_that_misses_a_scenario_is_not_handed_out(survey):
    options = {"k": 8, **ROLES, "max_risk": {"linkage": 0.3}}
    assert called("release", survey, "mdav", **options).evaluation["linkage"] <= 0.3
    with pytest.raises(
        LimitsMissed, match=r"missed linkage of at most 0.3 and .*linkage \(press\) of at most"
    ):
        called("release", survey, "mdav", **options, intruders=PRESS)


def test_the_floor_of_each_scenario_is_checked_before_the_search(survey):
    with pytest.raises(LimitsMissed, match=r"scenario neighbours: no masking meets linkage of at most 0.1"):
        sdc.Microdata(survey, intruders=towns(0.1), **ROLES).recommend(max_risk={"linkage": 0.5})


@pytest.mark.long
def test_scenarios_within_strata(survey):
    roles = {**ROLES, "by": "sex", "untouched": ["town"], "workers": 1, "rng": 1}
    plan = {"mdav": {"k": [3, 10, 20]}}
    choice = called("recommend", survey, max_risk={"linkage": 0.5}, plan=plan, intruders=PRESS, **roles)
    release = choice.release()
    assert release.evaluation["linkage (press)"] == pytest.approx(choice.point.values["linkage (press)"])


def test_another_process_measures_the_same(survey):
    original = Original.of(survey, **ROLES)
    conditions = Conditions(original, scenarios=checked_scenarios(PRESS | towns(0.9, "income")))
    options = {
        "metrics": metrics_named(["linkage"]),
        "draws": "common",
        "per_variable": False,
        "detail": False,
    }
    task, settings, _ = make_task(original, conditions, settings_of({"mdav": {"k": [4]}}), **options)
    sent = pickle.loads(pickle.dumps(task.without_table()))  # noqa: S301 - our own
    here, there = (one.measure(Run(settings[0], 1), 5) for one in (task, sent))
    np.testing.assert_array_equal(here, there)
    assert task.labels == ["linkage", "linkage (press)", "linkage (neighbours)"]
    assert len(here) == task.length


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"known": []}, "scenario 'a' has no columns; name those that its intruder knows"),
        ({}, "scenario 'a' has no columns; name those that its intruder knows"),
        ({"known": ["ages"]}, "unknown column of scenario 'a' 'ages'; choose from: income"),
        ({"known": ["town"], "max_risk": {"linkages": 0.1}}, "scenario 'a': unknown metric 'linkages'"),
        ({"known": ["town"], "max_risk": {"brmae": 0.1}}, "scenario 'a': 'brmae' is a loss; limit a risk"),
        (
            {"known": ["town"], "max_risk": {"linkage": 2}},
            "scenario 'a': the limit of linkage is 2; give a share",
        ),
        (
            {"known": ["town"], "limit": 1},
            "unknown entry of scenario 'a' 'limit'; choose from: known, max_risk",
        ),
        ({"known": ["id"]}, "column 'id' of scenario 'a' is the key, which is not published as it is; leave"),
        ({"known": ["home"]}, "column 'home' of scenario 'a' is the unit, which is not published"),
        ({"known": ["wealth"]}, "column 'wealth' of scenario 'a' is dropped, which is not published"),
    ],
)
def test_bad_scenarios_get_one_line(survey, entry, text):
    rows = np.arange(survey.height)
    data = survey.with_columns(id=rows, home=rows // 2)
    roles = {"columns": ["income"], "key": "id", "unit": "home", "drop": ["wealth"]}
    with pytest.raises(ValueError, match=text):
        called("evaluate", data, data.drop("wealth"), **roles, metrics="linkage", intruders={"a": entry})


def test_a_scenario_without_a_limit_is_no_condition(survey):
    with pytest.raises(ValueError, match="scenario 'a' has no limit; give it one, such as linkage"):
        sdc.Microdata(survey, intruders={"a": {"known": ["sex"]}}, **ROLES).recommend(
            max_risk={"linkage": 0.5}
        )


@pytest.mark.parametrize("given", [["press"], {"press": ["sex"]}])
def test_scenarios_are_a_dict_of_dicts(survey, given):
    with pytest.raises(TypeError, match="give a dict such as"):
        sdc.Microdata(survey, intruders=given, **ROLES).evaluate(survey)
