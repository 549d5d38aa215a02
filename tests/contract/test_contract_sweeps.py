"""What every method must do in sweeps and searches, without naming any."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from cases import each, few, later
from contract import NAMES, data, strong, with_holes
from sdckit.core.randomness import stream_generator
from sdckit.selection.plan import runs_of, settings_of
from secret_bytes import entropy

UNMASKED = "ignore:not masked, every value"
BY_COLUMN = [(m.name, p) for m in sdc.METHODS.values() for p in m.parameters if p.kind in (tuple, dict)]


@pytest.fixture(params=list(sdc.METHODS))
def method(request):
    return sdc.METHODS[request.param]


def frame():
    return pl.DataFrame(data(120), schema=NAMES)


def ends(method):
    """The plan with the weakest and the strongest setting of the usual grid."""
    return {method.name: {p.name: p.grid[:: len(p.grid) - 1] for p in method.parameters if p.grid}}


@each("make", [data, with_holes])
@each("n", [200, 5000])
def test_method_with_its_basis_at_hand_masks_as_without(method, n, make):
    if method.basis is None:
        return
    values = np.asfortranarray(make(n))
    before, basis = values.copy(), method.basis(values)

    def masked(**more):
        extra = {"rng": np.random.default_rng(7)} if method.random else {}
        return method.function(values, **extra, **more).tobytes()

    for options in ({}, strong(method), {}):  # again: a call may not change the basis
        assert masked(basis=basis, **options) == masked(**options)
    assert np.array_equal(values, before, equal_nan=True)


def applicable(method, metrics):
    """The metrics that have a value for the method on a file in which no column has a role."""
    found = [one for one in map(sdc.METRICS.get, metrics) if one.role in {None, "untouched"}]
    if not method.group_size:
        found = [one for one in found if one.needs != "groups"]
    if not method.paired:  # no fact ties new rows to records
        found = [one for one in found if one.needs != "rows" and not one.paired]
    return [one.name for one in found]


@pytest.mark.filterwarnings(UNMASKED)  # the weakest of the grid
@pytest.mark.parametrize("step", [4, later(1)])
@each("draws", ["common", "fresh"])
def test_method_in_a_sweep_costs_what_it_costs_alone(method, draws, step):
    """By a quarter of the metrics in every run, another one from method to method."""
    if draws == "fresh" and not method.random:
        return
    table, plan = frame(), ends(method)
    prepared = sdc.Microdata(table)
    step = step if draws == "common" else 5
    metrics = list(sdc.METRICS)[list(sdc.METHODS).index(method.name) % step :: step]
    found = sdc.sweep(table, plan, metrics=metrics, replications=2, draws=draws, rng=9, workers=1)
    rows = iter(found.table.rows(named=True))
    runs = runs_of(settings_of(plan), 2)
    assert len(runs) == (2 if plan[method.name] else 1) * (2 if method.random else 1)
    measured = applicable(method, metrics)
    for run in runs:
        masked = sdc.mask(
            table, method.name, rng=stream_generator(9, run.stream(draws)), **run.setting.options
        )
        alone = prepared.evaluate(
            masked, made_by=sdc.Method(method.name, **run.setting.options), metrics=measured
        )
        for name in metrics:
            row = next(rows)
            assert (row["method"], row["parameters"], row["replication"], row["metric"]) == (
                method.name,
                run.setting.text,
                run.replication,
                name,
            )
            if name.startswith("linkage") and name in measured:  # a search learns the law from fewer shadows
                slack = 1.0 if name == "linkage_outliers" else 0.25  # there are two of them
                assert row["value"] == pytest.approx(alone[name], abs=slack)
                continue
            assert row["value"] == (alone[name] if name in measured else None)
            silent = method.window is None and method.random
            once = run is runs[-1] and draws == "common"
            if once and silent and name in measured:  # nothing follows from the method
                assert row["value"] == sdc.METRICS[name].function(prepared, masked)
    assert next(rows, None) is None


@pytest.mark.long
@pytest.mark.filterwarnings(UNMASKED, "ignore:rows of .* stand for no original record")
def test_method_in_a_sweep_keeps_the_roles_of_columns(method):
    """Metrics of other columns than the variables, which the test above has no values of."""
    n = np.arange(120)
    table = frame().with_columns(firm=n // 2, ill=n % 7 % 2, town=n % 5)
    roles = {"columns": NAMES, "unit": "firm", "confidential": ["c", "ill"], "untouched": ["ill", "town"]}
    metrics = [metric.name for metric in sdc.METRICS.values() if metric.role]
    measured = {"metrics": metrics, "estimates": ["mean(a) by town", "model: b ~ a"]}
    found = called("sweep", table, ends(method), **measured, **roles, rng=9, workers=1)
    rows = iter(found.table.rows(named=True))
    for run in runs_of(settings_of(ends(method)), 1):
        options = run.setting.options
        masked = called(
            "mask", table, method.name, **roles, rng=stream_generator(9, run.stream("common")), **options
        )
        known = {"method": method.name, "parameters": options}
        alone = called("evaluate", table, masked, **measured, **roles, **known)
        for name in metrics:
            slack = 0.25 if sdc.METRICS[name].family == "risk" and method.random else 0.0  # fewer shadows
            assert next(rows)["value"] == pytest.approx(alone[name], abs=slack, nan_ok=True)
    assert next(rows, None) is None


@pytest.mark.filterwarnings(UNMASKED)  # the weakest of the grid
def test_method_in_a_search_is_chosen_or_has_no_risk_to_go_by(method):
    options = {"max_risk": {"linkage": 1.0, "linkage_sure": 1.0}, "rng": 9, "replications": 1, "workers": 1}
    if not method.paired:
        with pytest.raises(
            ValueError, match=f"^rows of {method.name} stand for no original record, so that no"
        ):
            called("recommend", frame(), plan=ends(method), **options)
        options["plan"] = ends(method) | {"noise": {"percent": [50]}}
        with pytest.warns(UserWarning, match=f"^rows of {method.name} .* left out of the search$"):
            assert called("recommend", frame(), **options).point.method == "noise"
        return
    found = called("recommend", frame(), plan=ends(method), **options)
    assert found.point.method == method.name
    assert found.point.parameters == settings_of(ends(method))[0].text  # all are safe, so the weakest


@pytest.mark.filterwarnings(UNMASKED)  # a number for one column only
@pytest.mark.parametrize(
    ("name", "parameter"), few(BY_COLUMN, 3), ids=lambda given: getattr(given, "name", given)
)
def test_options_by_column_have_their_place_in_sweeps_and_searches(name, parameter):
    texts = ["a:45", "b:45"] if parameter.kind is dict else ["a", "b,c"]
    plan = {name: [{parameter.name: text} for text in texts]}
    found = sdc.sweep(frame(), plan, metrics=["brmae", "linkage", "ks"], rng=3, workers=1)
    settings = [f"{parameter.name}={text}" for text in texts]
    assert found.table["parameters"].unique(maintain_order=True).to_list() == settings
    assert found.table["setting"].null_count() == found.table.height  # no number varies
    chosen = found.recommend({"linkage": 1.0})
    again = sdc.recommend(
        frame(), plan=plan, max_risk={"linkage": 1.0, "linkage_sure": 1.0}, rng=3, replications=1
    )
    assert chosen.point.method == again.point.method == name
    assert chosen.point.parameters in settings
    assert again.release(entropy=entropy(3)).data.columns == NAMES
    with pytest.raises(ValueError, match=f"^unknown column in {parameter.name} 'z'[^\n]+$"):
        sdc.sweep(frame(), {name: {parameter.name: texts[0].replace("a", "z")}})
