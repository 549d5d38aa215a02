"""From measured settings to a choice: the rule, and what stands beside it."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdckit as sdc
from cases import each
from sdckit.core.registry import METHODS
from sdckit.selection.choice import choose
from sdckit.selection.plan import Setting, settings_of
from sdckit.selection.points import (
    Point,
    curves_of,
    points_of_sweep,
    weakest_safe_position,
)
from sweeps import frame

NAN = float("nan")
LIMIT = {"linkage": 0.1}


def point(method, setting, risk, loss, **more):
    options = {"k": setting}  # the rule does not ask whether the method has such a parameter
    return Point(Setting(METHODS[method], options, ("k",), "k"), {"linkage": risk, "brmae": loss, **more})


def line(method, *risks, start=0.1, **more):
    """Settings 1, 2, ... whose loss grows by a tenth."""
    return [
        point(method, i, risk, start + i / 10, **{name: values[i - 1] for name, values in more.items()})
        for i, risk in enumerate(risks, 1)
    ]


# --- the rule ---


def test_every_limit_must_hold():
    settings = line("mdav", 0.05, 0.05, 0.05, linkage_outliers=[0.9, 0.4, 0.2])
    assert weakest_safe_position(settings, LIMIT) == 0
    assert weakest_safe_position(settings, LIMIT | {"linkage_outliers": 0.3}) == 2
    assert settings[0].broken_limits(LIMIT | {"linkage_outliers": 0.3}) == ["linkage_outliers"]


@given(st.lists(st.sampled_from([0.05, 0.1, 0.100001, 0.2, NAN]), max_size=8))
def test_the_rule_in_one_line(risks):
    safe = [i for i in range(len(risks)) if all(risk <= 0.1 for risk in risks[i:])]
    assert weakest_safe_position(line("mdav", *risks), LIMIT) == (min(safe) if safe else None)


# --- the choice ---


def test_the_least_loss_among_the_safe_and_what_stands_beside_it():
    lines = [
        line("mdav", 0.3, 0.15, 0.1, 0.05, start=0.2),
        line("noise", 0.9, 0.8, 0.7, 0.02, start=0),
        line("rank_swap", 0.9, 0.9, start=0),
    ]
    choice = choose(lines, LIMIT, "brmae", maskings=10)
    assert choice.point is lines[1][3]
    assert choice.met
    assert (choice.weaker, choice.binding) == (lines[1][2], ("linkage",))
    assert choice.runner_up is lines[0][2]
    assert choice.safe == (lines[1][3], lines[0][2])
    assert choice.looser == {}  # at 0.2 mdav would lose as much as noise does now
    assert len(choice.points) == 10
    assert choice.method is METHODS["noise"]


def test_a_looser_limit_is_told_where_it_buys_something():
    lines = [line("mdav", 0.3, 0.15, 0.1, 0.05)]
    choice = choose(lines, LIMIT, "brmae")
    assert choice.looser == {"linkage": lines[0][1]}
    told = "A looser limit, linkage up to 0.2, would allow at least mdav (k=2), brmae 0.3000."
    assert told in choice.sentences
    for risk, limit in {"linkage": 0.2}.items():
        assert choose(lines, {risk: limit}, "brmae").point is choice.looser[risk]


def test_only_the_limits_that_the_weaker_setting_breaks_bind():
    lines = [line("mdav", 0.05, 0.05, 0.05, linkage_outliers=[0.9, 0.5, 0.2])]
    limits = LIMIT | {"linkage_outliers": 0.3}
    choice = choose(lines, limits, "brmae")
    assert choice.binding == ("linkage_outliers",)
    assert set(choice.looser) == {"linkage_outliers"}
    assert choose(lines, LIMIT, "brmae").binding == ()
    assert choose(lines, LIMIT, "brmae").weaker is None


def test_ties_go_to_the_method_that_was_named_first():
    lines = [line(method, 0.3, 0.1) for method in ("rank_swap", "mdav", "noise")]
    choice = choose(lines, LIMIT, "brmae")
    assert choice.point.method == "rank_swap"
    assert choice.runner_up.method == "mdav"


def test_the_runner_up_is_of_another_method():
    lines = [line("noise", 0.3, 0.1), line("noise", 0.2, 0.05), line("mdav", 0.3, 0.3, 0.1)]
    assert choose(lines, LIMIT, "brmae").runner_up.method == "mdav"
    alone = choose(lines[:2], LIMIT, "brmae")
    assert alone.runner_up is None
    assert not any("other method" in sentence for sentence in alone.sentences)


@pytest.mark.parametrize("order", [1, -1])
def test_the_nearest_miss_is_the_smallest_excess_over_all_limits(order):
    limits = dict([("linkage", 0.1), ("linkage_outliers", 0.3)][::order])
    settings = line("mdav", 0.12, 0.11, NAN, 0.05, linkage_outliers=[0.31, 0.6, 0.1, NAN])
    choice = choose([settings], limits, "brmae")
    assert not choice.met
    assert choice.nearest is settings[0]
    assert choice.method is METHODS["mdav"]
    assert choice.sentences[0].startswith("no setting meets ")
    assert "the nearest miss is mdav (k=1)" in repr(choice)


def test_a_risk_without_a_value_is_never_near():
    settings = line("mdav", NAN, NAN, 0.9)
    assert choose([settings], LIMIT, "brmae").nearest is settings[2]


def test_a_loss_without_a_value_is_never_chosen_at_all():
    settings = [[point("mdav", 1, 0.05, NAN)], [point("noise", 1, 0.5, 0.9)]]
    choice = choose(settings, LIMIT, "brmae")
    assert (choice.point, choice.safe) == (None, ())


def test_a_looser_limit_that_leads_to_a_loss_without_a_value_buys_nothing():
    settings = [point("mdav", 1, 0.15, NAN), point("mdav", 2, 0.05, 0.4)]
    choice = choose([settings], LIMIT, "brmae")
    assert choice.point is settings[1]
    assert choice.binding == ("linkage",)
    assert choice.looser == {}


@pytest.mark.parametrize("missing", ["linkage", "brmae"])
def test_a_metric_without_a_value_anywhere_is_refused(missing):
    settings = line("mdav", 0.3, 0.1)
    for one in settings:
        one.values[missing] = NAN
    refusal = f"^{missing} has no value for any of these maskings; choose another metric$"
    with pytest.raises(ValueError, match=refusal):
        choose([settings], LIMIT, "brmae")


@pytest.mark.parametrize(("risks", "weakest"), [((0.05, 0.04), True), ((0.2, 0.05), False)])
def test_the_weakest_setting_tried_is_said_to_be_it(risks, weakest):
    told = choose([line("mdav", *risks)], LIMIT, "brmae").sentences
    assert ("It is the weakest setting of its method that was measured." in told) is weakest
    assert any(sentence.startswith("What binds: ") for sentence in told) is not weakest


def test_a_loss_whose_best_value_is_one_is_kept_near_one():
    lines = [
        [point("mdav", 1, 0.05, 0.1, ci_overlap=0.2)],
        [point("noise", 1, 0.05, 0.9, ci_overlap=0.95)],
    ]
    assert choose(lines, LIMIT, "brmae").point.method == "mdav"
    assert choose(lines, LIMIT, "ci_overlap").point.method == "noise"
    assert lines[1][0].cost("ci_overlap") == pytest.approx(0.05)


def test_the_choice_for_machines():
    lines = [line("mdav", 0.3, 0.15, 0.1), line("noise", 0.9)]
    choice = choose(lines, LIMIT, "brmae", maskings=4)
    told = choice.to_dict()
    assert told.pop("values") == lines[0][2].values
    assert [(one["method"], one["values"]) for one in told.pop("points")] == [
        (point.method, point.values) for points in lines for point in points
    ]
    assert told == {
        "met": True,
        "method": "mdav",
        "parameters": {"k": 3},
        "limits": LIMIT,
        "default_limits": [],
        "minimise": "brmae",
        "binding": ["linkage"],
        "maskings": 4,
        "sentences": choice.sentences,
    }
    missed = choose(lines, {"linkage": 0.01}, "brmae").to_dict()
    assert (missed["met"], missed["method"], missed["parameters"]) == (False, "mdav", {"k": 3})


# --- settings of a sweep as lines ---


def summary(rows):
    """The summary of a made-up sweep: (method, parameters, setting, risk)."""
    return pl.DataFrame(
        [
            {"method": m, "parameters": text, "setting": setting, "metric": metric, "value": value}
            for m, text, setting, risk in rows
            for metric, value in (("linkage", risk), ("brmae", 0.5))
        ],
        schema_overrides={"setting": pl.Float64},
    )


def made_up(rows):
    settings = settings_of(
        {m: [{text.partition("=")[0]: value} for _, text, value, _ in rows] for m, *_ in rows}
    )
    return curves_of(points_of_sweep(summary(rows), settings))


def texts(lines):
    return [[one.parameters for one in settings] for settings in lines]


@pytest.mark.long
@each("method", METHODS.values())
def test_parameters_come_back_as_they_were_given(method):
    data = frame(40)
    for parameter in method.parameters:
        grid = list(parameter.choices) or [*parameter.grid, parameter.default]
        tried = grid
        if parameter.kind in (tuple, dict):  # one value that names columns
            tried = (data.columns[0],) if parameter.kind is tuple else {data.columns[0]: 2.0}
            grid = [tried]
        plan = {method.name: {parameter.name: tried}}
        found = sdc.sweep(data, plan, metrics="ks", rng=1, workers=1).curves
        points = [one for settings in found for one in settings]
        values = [one.setting.options[parameter.name] for one in points]
        assert sorted(values) == sorted(set(grid)) if len(grid) > 1 else values == grid
        assert len(found) == (len(grid) if parameter.choices else 1)


def test_lines_run_from_weak_to_strong_whatever_the_order_of_the_plan():
    rows = [("noise", f"percent={p}", p, 0.1) for p in (100, 5, 20)]
    assert texts(made_up(rows)) == [["percent=5", "percent=20", "percent=100"]]


def test_other_parameters_make_lines_of_their_own():
    plan = {"correlated_noise": {"percent": [10, 20], "scale": ["sd", "variance"]}}
    found = sdc.sweep(frame(), plan, metrics="mae", rng=1, workers=1).curves
    assert texts(found) == [[f"percent={p}, scale={scale}" for p in (10, 20)] for scale in ("sd", "variance")]


def test_a_fixed_parameter_with_the_value_of_the_varied_one_breaks_no_line():
    plan = {"rank_swap": {"p": 0.05, "tails": [0.01, 0.05, 0.1]}}
    found = sdc.sweep(frame(), plan, metrics="mae", rng=1, workers=1).curves
    assert texts(found) == [[f"p=0.05, tails={tails}" for tails in (0.01, 0.05, 0.1)]]


def test_values_with_more_digits_than_their_text_break_no_line():
    grid = np.arange(0.01, 0.31, 0.01)  # 0.060000000000000005 among them
    found = sdc.sweep(frame(), {"rank_swap": {"p": grid}}, metrics="mae", rng=1, workers=1).curves
    assert [len(settings) for settings in found] == [len(grid)]


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_varied_parameters_the_one_with_a_usual_grid_makes_the_lines(order):
    grids = {"p": [0.1, 0.2], "tails": [0.01, 0.05]}
    plan = {"rank_swap": dict(list(grids.items())[::order])}
    found = sdc.sweep(frame(), plan, metrics="mae", rng=1, workers=1).curves
    settings = [[one.setting.parameters for one in line] for line in found]
    assert settings == [[{"p": p, "tails": tails} for p in (0.1, 0.2)] for tails in (0.01, 0.05)]


def test_a_missing_risk_of_a_sweep_meets_no_limit():
    rows = [("mdav", "k=2", 2, 0.5), ("mdav", "k=3", 3, None), ("mdav", "k=4", 4, 0.05)]
    (settings,) = made_up(rows)
    assert math.isnan(settings[1].values["linkage"])
    assert weakest_safe_position(settings, LIMIT) == 2
