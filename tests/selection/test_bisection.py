"""The search: the answer of a full grid with few maskings, each counted and none made twice."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdckit as sdc
from calls import called
from cases import each, later
from sdckit.selection import runner
from sdckit.selection.limits import LimitsMissed
from sdckit.selection.plan import settings_of
from sdckit.selection.points import Point, weakest_safe_position
from sdckit.selection.search import GUARDED, Bisection
from sdckit.selection.task import Task
from sweeps import frame

GRIDS = {
    "mdav": {"k": range(2, 20)},
    "individual_ranking": {"k": range(2, 20)},
    "noise": {"percent": range(5, 205, 5)},
    "correlated_noise": {"percent": range(5, 205, 5)},
    "rank_swap": {"p": [i / 50 for i in range(1, 31)]},
}
SEED = 11


@pytest.fixture
def measured(monkeypatch):
    """What is masked in this process: method, parameters, replication."""
    found = []
    measure = Task.measure

    def noted(task, run, entropy):
        found.append((run.setting.method.name, run.setting.text, run.replication))
        return measure(task, run, entropy)

    monkeypatch.setattr(Task, "measure", noted)
    return found


def searched(data, plan, limits, **more):
    how = {"decimals": None, "rng": SEED, "workers": 1}  # as a sweep measures
    return called("recommend", data, max_risk=limits, plan=plan, **how | more)


def swept(data, plan, limits, **more):
    metrics = ["brmae", *limits]
    found = called(
        "sweep", data, plan, metrics=metrics, **{"replications": 3, "rng": SEED, "workers": 1} | more
    )
    return found.recommend(limits, decimals=None)


def answer(choice):
    return None if choice.point is None else (choice.point.method, choice.point.parameters)


# --- search and grid ---


@pytest.mark.parametrize("limit", [later(0.7), later(0.3), 0.1, later(0.02)])
@pytest.mark.parametrize("method", GRIDS)
def test_the_search_finds_what_the_grid_finds(method, limit, measured):
    plan, limits = {method: GRIDS[method]}, {"dbrl": limit}
    choice = searched(frame(80), plan, limits)
    assert choice.maskings == len(measured) == len(set(measured))
    few = 3 * (3 + math.log2(len(GRIDS[method][next(iter(GRIDS[method]))])))
    assert len(measured) <= few
    grid = swept(frame(80), plan, limits)
    risks = [one.values["dbrl"] for one in grid.points]
    met = [risk <= limit for risk in risks]
    if met == sorted(met):  # the risk falls below its limit once and for all
        assert answer(choice) == answer(grid)
    elif choice.met:
        place = [one.parameters for one in grid.points].index(choice.point.parameters)
        assert met[place]
    for one in choice.points:  # common random numbers: the very same maskings
        values = next(other.values for other in grid.points if other.parameters == one.parameters)
        assert one.values == pytest.approx(values | {"suppressed": 0.0}, rel=1e-12)


@pytest.mark.parametrize("limits", [{"dbrl": 0.3}, {"dbrl": 0.15, "dbrl_rank": 0.4}])
def test_all_methods_at_once_find_the_best_of_all(limits):
    choice, grid = searched(frame(80), GRIDS, limits), swept(frame(80), GRIDS, limits)
    assert answer(choice) == answer(grid)
    assert choice.runner_up.method == grid.runner_up.method
    assert choice.binding == grid.binding
    assert choice.maskings * 5 <= grid.maskings


def test_none_is_an_answer():
    plan = {"mdav": {"k": range(2, 10)}, "noise": {"percent": [1, 2]}}
    choice = searched(frame(80), plan, {"dbrl": 0.01})
    assert (choice.point, choice.met) == (None, False)
    assert choice.maskings == 1 + 3, "the strongest setting of each method tells"
    assert choice.nearest.parameters in {"k=9", "percent=2"}
    with pytest.raises(LimitsMissed, match=r"no setting meets dbrl of at most 0\.01; the nearest miss is "):
        choice.release()


@pytest.mark.parametrize(("limit", "met"), [(0.9, True), (0.01, False)])
def test_a_grid_of_one_setting(limit, met):
    choice = searched(frame(), {"noise": {"percent": 50}}, {"dbrl": limit}, replications=2)
    assert (choice.met, choice.maskings, choice.binding) == (met, 2, ())


@pytest.mark.long
def test_neither_workers_nor_processes_change_the_answer(monkeypatch):
    expected = searched(frame(80), GRIDS, {"dbrl": 0.3})
    for name in ("WARM_UP", "WORKER_PAYS_FROM", "BATCH_SECONDS"):
        monkeypatch.setattr(runner, name, 0.0)
    started = []

    class Watched(runner.Worker):
        def __init__(self, *given):
            super().__init__(*given)
            started.append(self)

    monkeypatch.setattr(runner, "Worker", Watched)
    choice = searched(frame(80), GRIDS, {"dbrl": 0.3}, workers=2)
    assert choice.points == expected.points
    assert (choice.maskings, choice.point) == (expected.maskings, expected.point)
    assert len(started) == 1, "one process for all rounds"
    assert all(worker.process.returncode is not None for worker in started)


@pytest.mark.long
def test_strata_and_weights_and_gaps_are_those_of_the_sweep():
    data = frame(90).with_columns(
        g=pl.Series(["p", "q", "r"] * 30),
        w=pl.Series(np.random.default_rng(1).uniform(1, 4, 90)),
        a=pl.when(pl.arange(90) % 11 == 0).then(None).otherwise(pl.col("a")),
    )
    roles = {"by": "g", "weights": "w", "unknown": "w", "replications": 2}
    for method in ("mdav", "rank_swap"):
        plan = {method: GRIDS[method]}
        found = [find(data, plan, {"dbrl": 0.4}, **roles) for find in (searched, swept)]
        assert answer(found[0]) == answer(found[1])
        assert found[0].conditions == found[1].conditions


# --- risks that do not fall once and for all ---


def setting_line(method, n):
    parameter = next(one for one in sdc.METHODS[method].parameters if one.grid)
    return settings_of({method: {parameter.name: list(parameter.grid)[:n]}})


def asked(line, risks):
    """Answer whatever the line wants to know; the places in order."""
    places = []
    while (place := line.next_position()) is not None:
        assert place not in line.measured, "measured twice"
        assert 0 <= place < len(line.settings)
        setting = line.settings[place]
        line.measured[place] = Point(setting, {"dbrl": risks[place], "brmae": 0.1})
        places.append(place)
    return places


@given(st.lists(st.sampled_from([0.05, 0.1, 0.2, math.nan]), min_size=1, max_size=29), st.data())
def test_any_risks_end_at_a_setting_whose_stronger_ones_all_meet(risks, data):
    method = data.draw(st.sampled_from(["noise", "mdav"]))
    limits = {"dbrl": data.draw(st.sampled_from([0.1, 0.07]))}
    line = Bisection(setting_line(method, len(risks)), limits)
    asked(line, risks)
    met = {place: point.meets(limits) for place, point in line.measured.items()}
    safe = weakest_safe_position(line.points, limits)
    if safe is None:
        assert not met[len(risks) - 1] or not any(met.values())
        return
    place = sorted(line.measured)[safe]
    assert all(met[other] for other in met if other >= place)
    assert place == 0 or met.get(place - 1) is False, "the next weaker one is known to fail"


@given(st.integers(0, 300), st.integers(1, 300))
def test_falling_risks_take_few_questions(first, n):
    """Settings up to some place break the limit, all others meet it."""
    line = Bisection(setting_line("noise", n), {"dbrl": 0.1})
    risks = [0.2 if i < first else 0.05 for i in range(n)]
    places = asked(line, risks)
    safe = weakest_safe_position(line.points, {"dbrl": 0.1})
    assert (sorted(line.measured)[safe] if safe is not None else n) == min(first, n)
    assert len(places) <= 2 + math.ceil(math.log2(n + 1)) + n // GUARDED


@given(st.integers(1, 29), st.floats(0.03, 0.6), st.integers(0, 29))
def test_a_bound_of_the_method_saves_questions_and_changes_no_answer(n, limit, first):
    settings = setting_line("mdav", n)
    bounded = [one.method.largest_linkage(one.options) for one in settings]
    risks = [min(bound, limit * 1.01 if i < first else limit * 0.99) for i, bound in enumerate(bounded)]
    line = Bisection(settings, {"dbrl": limit})
    asked(line, risks)
    expected = next((i for i in range(n) if all(risk <= limit for risk in risks[i:])), None)
    safe = weakest_safe_position(line.points, {"dbrl": limit})
    assert (None if safe is None else sorted(line.measured)[safe]) == expected
    if line.first_guaranteed < n:
        assert len(settings) - 1 not in line.measured or line.first_guaranteed >= n - 1


def test_the_bound_holds_for_linkage_only():
    settings = setting_line("mdav", 20)
    assert Bisection(settings, {"dbrl": 0.1}).first_guaranteed == 8  # k = 10
    assert Bisection(settings, {"dbrl": 0.1, "linkage": 0.2}).first_guaranteed == 8
    assert Bisection(settings, {"linkage_outliers": 0.1}).first_guaranteed == 8
    assert Bisection(settings, {"dbrl": 0.1}, bounded=False).first_guaranteed == 20
    assert Bisection(settings, {"dbrl": 0.1, "sdid": 0.9}).first_guaranteed == 20
    assert Bisection(setting_line("noise", 20), {"dbrl": 0.1}).first_guaranteed == 20


def test_a_bound_that_fails_is_found_out():
    """Missing cells can weaken it; what is recommended is measured in any case."""
    line = Bisection(setting_line("mdav", 20), {"dbrl": 0.1})
    risks = [0.3] * 10 + [0.05] * 10  # the bound promised place 8
    asked(line, risks)
    assert sorted(line.measured)[weakest_safe_position(line.points, {"dbrl": 0.1})] == 10


def test_a_wavering_risk_is_caught_by_the_guard():
    n = 300
    risks = [0.2] * 150 + [0.05] * n
    risks[152] = 0.2  # within the guard of three
    line = Bisection(setting_line("noise", n), {"dbrl": 0.1})
    asked(line, risks)
    assert sorted(line.measured)[weakest_safe_position(line.points, {"dbrl": 0.1})] == 153


# --- what is refused ---


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_risk": {"dbrrl": 0.1}}, r"unknown metric 'dbrrl' \(did you mean 'dbrl'\?\)"),
        ({"minimise": "dbrl"}, "'dbrl' is a risk; minimise a loss"),
        ({"plan": {"mdav": {"k": 61}}}, "the file has 60 records, fewer than k = 61 of mdav; lower k$"),
        ({"replications": 0}, "replications is 0; give a whole number of at least 1"),
        ({"workers": 0}, "workers is 0; give a whole number"),
        ({"rng": "x"}, "rng is str 'x'"),
        ({"columns": ["d"]}, "unknown column 'd'"),
        ({"ties": "coin"}, "unknown rule for ties 'coin'"),
        ({"missing": "drop"}, "unknown rule for missing cells 'drop'"),
        ({"weights": np.ones(60), "ties": "min"}, "weights go with ties='average' only, not 'min'"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_any_work(options, text, monkeypatch):
    monkeypatch.setattr(Task, "measure", lambda *_: pytest.fail("worked"))
    given_ = {"max_risk": {"dbrl": 0.3}, "plan": {"mdav": {"k": [2, 3]}}, "workers": 1} | options
    with pytest.raises((ValueError, TypeError), match=text):
        called("recommend", frame(), **given_)


def two_columns():
    return frame().select("a", "b")


def many_records():
    return np.random.default_rng(1).normal(size=(2500, 2))


@pytest.mark.parametrize(
    ("data", "options", "text"),
    [
        (
            lambda: frame(9),
            {"max_risk": {"rmdid": 0.9}},
            "^rmdid needs at least 10 records and the data have 9",
        ),
        (two_columns, {"minimise": "il_correl"}, "^il_correl needs at least 3 variables and the data have 2"),
        (many_records, {"max_risk": {"matching": 0.5}}, r"^matching .*2,?500.*; "),
    ],
)
def test_a_metric_that_the_data_do_not_suit_is_refused_before_any_work(data, options, text, monkeypatch):
    monkeypatch.setattr(Task, "measure", lambda *_: pytest.fail("worked"))
    given_ = {"max_risk": {"dbrl": 0.3}, "plan": {"noise": {"percent": [10, 20]}}, "workers": 1} | options
    with pytest.raises(sdc.NotApplicable, match=text) as refusal:
        called("recommend", data(), **given_)
    assert "\n" not in str(refusal.value)


def test_a_window_of_one_size_for_all_may_be_limited():
    plan = {"mdav": {"k": [2, 5, 10]}}
    choice = searched(frame(), plan, {"window:within=0.1": 0.9})
    assert choice.met
    release = choice.release()
    assert release.evaluation["window:within=0.1"] <= 0.9
    with pytest.raises(ValueError, match=r"^window cannot be limited by itself; limit linkage"):
        searched(frame(), plan, {"window": 0.9})
    with pytest.raises(ValueError, match=r"^window:direction=\w+ cannot be limited by itself; limit linkage"):
        searched(frame(), plan, {"window:direction=original_to_masked": 0.9})


# --- rounding ---


def counts(seed, n=60):
    """Small whole numbers with many ties, prepared as variables, since they look like codes."""
    values = np.random.default_rng(seed).poisson(3, (n, 2))
    return sdc.Microdata(pl.DataFrame(values, schema=["a", "b"]), columns=["a", "b"])


@each("seed", range(6))
@each(("method", "limit"), [("mdav", 0.2), ("individual_ranking", 0.4)])
def test_the_search_judges_what_is_released_after_rounding(method, limit, seed):
    data, limits = counts(seed), {"linkage": limit}
    choice = searched(data, {method: {"k": range(2, 30)}}, limits, decimals="original")
    assert choice.met
    release = choice.release()
    assert release.draws == 1
    assert all(release.data[name].dtype.is_integer() for name in data.original.columns)
    for metric in ("linkage", "brmae"):
        assert release.evaluation[metric] == pytest.approx(choice.point.values[metric], rel=1e-12)
    assert data.evaluate(release.data, metrics="linkage")["linkage"] <= limit


@pytest.mark.parametrize("decimals", [0, 1, "original"])
def test_every_point_of_the_search_is_that_of_the_rounded_file(decimals):
    data = frame(40)
    choice = searched(data, {"mdav": {"k": [2, 5, 9]}}, {"dbrl": 0.2}, decimals=decimals)
    for one in choice.points:
        masked = sdc.mask(data, "mdav", decimals=decimals, **one.setting.parameters)
        known = {"method": "mdav", "parameters": one.setting.parameters}
        expected = called("evaluate", data, masked, metrics=["brmae", "dbrl", "suppressed"], **known)
        assert one.values == pytest.approx({name: expected[name] for name in one.values}, rel=1e-12)


@pytest.mark.parametrize("decimals", ["some", -1.5, True])
def test_rounding_to_nothing_sensible_is_refused(decimals):
    with pytest.raises((ValueError, TypeError), match="decimals"):
        searched(frame(), {"mdav": {"k": 2}}, {"dbrl": 1}, decimals=decimals)
