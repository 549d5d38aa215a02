"""Sweeps: the numbers of masking and measuring by hand, whatever the kind of table, the draws, the order."""

import math

import altair as alt
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import command
import sdckit as sdc
from calls import called
from sdckit.core.randomness import stream_generator
from sdckit.evaluation.result import FIGURES, SCHEMA
from sdckit.selection.plan import runs_of, settings_of
from swept import NAMES, PLAN, frame, swept, values

CELLS = 2 + 3 * 3 * 2  # of the plan with three replications
BY_LAW = ["linkage", "linkage_outliers", "linkage_sure"]  # searches learn the law from fewer shadows
STRONGEST = {
    name: {option: given[-1] if isinstance(given, list) else given for option, given in options.items()}
    for name, options in PLAN.items()
}


def survey(folder):
    """Strata, weights, missing cells."""
    return command.put_survey(folder).select("region", "weight", *NAMES)


def rebuilt(data, plan, *, replications=3, draws="common", **roles):
    """(run, masked file) of a sweep, masked once more, each from its own stream."""
    for run in runs_of(settings_of(plan), replications):
        rng = stream_generator(11, run.stream(draws))
        yield run, sdc.Microdata(data, **roles).mask(run.setting.method.name, rng=rng, **run.setting.options)


# --- the numbers ---


def assert_same_as_evaluate(found, data, plan, *, draws="common", replications=3, roles=None, **options):
    """All columns, of every masked file."""
    roles = roles or {}
    for run, masked in rebuilt(data, plan, draws=draws, replications=replications, **roles):
        name, setting = run.setting.method.name, run.setting.text
        known = {"method": name, "parameters": run.setting.options}
        expected = called("evaluate", data, masked, **known, **roles, **options).table
        ours = found.table.filter(method=name, parameters=setting, replication=run.replication)
        order = ["metric", "stratum", "variable"]
        by_law = expected.filter(pl.col("metric").is_in(BY_LAW)).join(ours, on=order)
        assert ((by_law["value"] - by_law["value_right"]).abs() < 0.15).all()
        ours, expected = (table.filter(~pl.col("metric").is_in(BY_LAW)) for table in (ours, expected))
        unsuited = ours.join(expected, on=order, how="anti")
        assert unsuited["value"].null_count() == unsuited.height
        ours = ours.join(expected, on=order, how="semi")
        assert_frame_equal(ours.select(expected.columns).sort(order), expected.sort(order), check_exact=True)


@pytest.mark.parametrize("draws", ["common", "fresh"])
def test_every_number_is_that_of_evaluate_on_the_same_masked_file(draws):
    found = swept(frame(), per_variable=True, detail=True, draws=draws)
    assert_same_as_evaluate(found, frame(), PLAN, draws=draws)


@pytest.mark.parametrize("missing", ["pairwise", "penalise"])
def test_strata_weights_and_missing_cells_are_those_of_evaluate(tmp_path, missing):
    data, roles = survey(tmp_path), {"by": "region", "weights": "weight"}
    data = data.sample(fraction=1, shuffle=True, seed=5)  # a sweep knows nothing of the order of rows
    data = data.with_columns(weight=pl.Series([1.0, 2.0, 5.0] * 20))
    assert data["rooms"].null_count() > 0
    found = swept(data, STRONGEST, per_variable=True, detail=True, missing=missing, replications=2, **roles)
    assert_same_as_evaluate(found, data, STRONGEST, roles=roles, missing=missing, replications=2)
    assert found.table["stratum"].unique().sort().to_list() == ["all", "nord", "süd", "west"]
    assert found.table["variable"].unique().sort().to_list() == ["age", "all", "income", "rooms"]
    assert found.table["n_both_missing"].max() == 6


@pytest.mark.parametrize("ties", ["first", "expected", "min"])
def test_tie_rules_fixed_in_the_name_or_for_all_are_those_of_evaluate(ties):
    plan = {"mdav": {"k": [3]}, "rank_swap": {"p": 0.1}}
    found = swept(frame(), plan, ties=ties, per_variable=True, detail=True)
    assert_same_as_evaluate(found, frame(), plan, ties=ties)
    names = [f"brmae:ties={ties}", "il1:zeros=drop", "brmae"]
    fixed = swept(frame(), plan, metrics=names, per_variable=True, detail=True)
    assert_same_as_evaluate(fixed, frame(), plan, metrics=names)
    assert fixed.table["metric"].unique(maintain_order=True).to_list() == names
    values = [t.filter(metric=m)["value"] for t, m in ((found.table, "brmae"), (fixed.table, names[0]))]
    assert values[0].equals(values[1])
    assert not values[0].equals(fixed.table.filter(metric="brmae")["value"])


def test_random_ties_belong_to_the_seed():
    tables = [
        swept(frame(), {"mdav": {"k": 9}}, metrics="brmae", ties="random", rng=s).table for s in (1, 1, 2)
    ]
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])


def test_less_detail_is_less_of_the_same():
    full = swept(frame(), per_variable=True, detail=True).table
    short = swept(frame()).table
    none = ["random", "tie_low", "tie_high"]
    whole = full.filter(variable="all").with_columns(pl.lit(None, pl.Float64).alias(name) for name in none)
    assert_frame_equal(short, whole, check_exact=True)


def test_the_table_is_tidy():
    found = swept(frame(), name="firms").table
    assert found.schema == {
        "dataset": pl.String,
        "method": pl.String,
        "parameters": pl.String,
        "setting": pl.Float64,
        "replication": pl.Int64,
        **SCHEMA,
    }
    usual = [m for m in sdc.METRICS.values() if m.default and not m.experimental]
    metrics = [metric.name for metric in usual if metric.role is None]
    assert found.height == CELLS * len(metrics)
    assert found["metric"][: len(metrics)].to_list() == metrics
    assert found["dataset"].unique().to_list() == ["firms"]
    assert not found.select("method", "parameters", "replication", "metric").is_duplicated().any()
    assert found.filter(method="mdav")["replication"].unique().to_list() == [1]
    assert found.filter(method="rank_swap")["parameters"].unique(maintain_order=True).to_list() == [
        "p=0.05, tails=0.05",
        "p=0.2, tails=0.05",
    ]
    assert found["ci_low"].null_count() == found["ci_high"].null_count() == found.height
    assert {name for name in FIGURES if found[name].null_count() == 0} >= {"value", "n_used", "n_left_out"}


def test_columns_and_codes_of_missing_cells_mean_what_they_do_elsewhere():
    data = frame().with_columns(age=pl.Series([-9.0] * 5 + frame()["age"][5:].to_list()))
    gaps = data.with_columns(pl.col("age").replace(-9.0, None))
    assert swept(data, na=-9).table.equals(swept(gaps).table)
    assert not swept(data).table.equals(swept(gaps).table)
    chosen = swept(data, columns=["income", "rooms"], drop="age")
    assert chosen.table.equals(swept(data.drop("age")).table)
    coded = data.with_columns(firm=pl.Series([f"f{i}" for i in range(60)]))
    assert swept(coded, key="firm").table.equals(swept(data).table)


KINDS = {
    "pandas": lambda data: data.to_pandas(),
    "pyarrow": lambda data: data.to_arrow(),
    "numpy": lambda data: data.to_numpy(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_numbers(kind):
    data = KINDS[kind](frame())
    expected = swept(frame(), per_variable=kind != "numpy").table
    assert swept(data, per_variable=kind != "numpy").table.equals(expected)


def test_weights_are_a_column_or_numbers(tmp_path):
    data, roles = survey(tmp_path), {"by": "region", "weights": "weight"}
    expected = swept(data, **roles).table
    numbers = {"weights": data["weight"].to_numpy(), "columns": NAMES}
    assert swept(data, **roles | numbers).table.equals(expected)


def test_the_original_is_left_alone():
    data = values()
    before = data.copy()
    data.setflags(write=False)
    swept(data)
    assert np.array_equal(data, before)


@pytest.mark.long
def test_long_and_short_columns_give_what_masking_by_hand_gives():
    data = frame(5000)
    plan = {"rank_swap": {"p": 0.01}, "noise": {"percent": 5}}
    assert_same_as_evaluate(swept(data, plan, detail=True, per_variable=True), data, plan)


# --- draws ---


def added(draws):
    """The noise of every masked file."""
    plan, original = {"noise": {"percent": [10, 40]}}, values()
    files = rebuilt(original, plan, draws=draws, replications=2)
    return {(run.setting.text, run.replication): masked - original for run, masked in files}


def test_common_draws_are_the_same_draws_scaled():
    common, fresh = added("common"), added("fresh")
    for replication in (1, 2):
        weak = common["percent=10", replication]
        assert common["percent=40", replication] == pytest.approx(4 * weak, rel=1e-9, abs=1e-9)
        assert not np.allclose(
            fresh["percent=40", replication], 4 * fresh["percent=10", replication], rtol=0.5
        )
    assert not np.allclose(common["percent=10", 1], common["percent=10", 2], rtol=0.5)


def test_replications_differ_and_more_of_them_change_none():
    few, many = swept(frame(), replications=2).table, swept(frame(), replications=4).table
    assert_frame_equal(many.filter(pl.col("replication") <= 2), few, check_exact=True)
    noise = many.filter(method="noise", metric="mae", parameters="percent=10")["value"]
    assert noise.n_unique() == 4


def test_neither_the_order_of_the_plan_nor_its_company_matters():
    backwards = {name: PLAN[name] for name in reversed(PLAN)} | {"noise": {"percent": [60, 30, 10]}}
    keys = ["method", "parameters", "replication", "metric"]
    for draws in ("common", "fresh"):
        expected = swept(frame(), draws=draws).table.sort(keys)
        found = swept(frame(), backwards, draws=draws).table
        assert found["method"][0] == "rank_swap"
        assert_frame_equal(
            found.filter(pl.col("parameters") != "percent=30").sort(keys), expected, check_exact=True
        )


def test_the_seed_decides_and_nothing_else():
    one = swept(frame()).table
    assert one.equals(swept(frame()).table)
    assert not one.equals(swept(frame(), rng=12).table)
    assert not swept(frame(), rng=None).table.equals(swept(frame(), rng=None).table)
    first, again = (swept(frame(), rng=np.random.default_rng(5)).table for _ in range(2))
    assert first.equals(again)
    mdav = [swept(frame(), {"mdav": {"k": [2, 3]}}, rng=None).table for _ in range(2)]
    assert mdav[0].equals(mdav[1])


# --- the result ---


@pytest.fixture(scope="module")
def found():
    return swept(frame(), replications=40, metrics=["brmae", "il1"], per_variable=True, name="firms")


def test_repr_says_what_was_swept(found):
    methods = "mdav, noise, correlated_noise, rank_swap"
    head = f"Sweep({2 + 6 * 40} masked files; methods: {methods}; metrics: brmae, il1)"
    assert repr(found).splitlines()[0] == head


def test_summary_has_the_median_and_where_most_replications_lie(found):
    summary = found.summary
    keys = ["dataset", "method", "parameters", "setting", "metric"]
    assert summary.columns == [*keys, "value", "ci_low", "ci_high", "replications"]
    assert summary.height == 8 * 2
    for row in summary.rows(named=True):
        cells = found.table.filter(
            method=row["method"], parameters=row["parameters"], metric=row["metric"], variable="all"
        )
        values = cells["value"].to_numpy()
        assert row["replications"] == values.size == (1 if row["method"] == "mdav" else 40)
        assert row["value"] == pytest.approx(np.median(values))
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(tuple(np.percentile(values, [2.5, 97.5])))
        assert row["ci_low"] <= row["value"] <= row["ci_high"]
    assert summary.filter(method="mdav")["setting"].to_list() == [2, 2, 5, 5]
    assert "<table" in found._repr_html_()
    assert "il1" in found._repr_html_()


def test_summary_speaks_of_the_whole_file_only(tmp_path):
    data = survey(tmp_path)
    parts = swept(data, by="region", weights="weight", per_variable=True)
    assert parts.summary.equals(swept(data, by="region", weights="weight").summary)
    assert parts.summary["replications"].max() == 3


def test_plot_draws_the_table(found):
    chart = found.plot()
    assert isinstance(chart, alt.ConcatChart)
    panels = chart.to_dict()["concat"]
    assert len(panels) == 4 * 2
    assert len(found.plot(metrics=["il1"]).to_dict()["concat"]) == 4
    with pytest.raises(
        ValueError, match=r"unknown metric 'il2' \(did you mean 'il1'\?\); choose from: brmae, il1"
    ):
        found.plot(metrics=["il2"])


def test_plot_shows_settings_that_are_no_numbers_side_by_side():
    plan = {"rank_swap": {"start": ["lowest", "highest"]}}
    chart = swept(frame(), plan, metrics=["brmae"]).plot().to_dict()
    assert len(chart["concat"]) == 1
    assert len(next(iter(chart["datasets"].values()))) == 2


def test_notes_name_what_the_numbers_leave_out():
    data = frame().with_columns(rooms=pl.Series([0.0] * 3 + frame()["rooms"][3:].to_list()))
    notes = swept(data, {"noise": {"percent": 10}}).notes
    assert len(notes) == 1
    assert notes[0].startswith("cells left out of il1 because its formula has no value for them: up to ")
    assert int(notes[0].rsplit(" ", 1)[1]) >= 3
    holes = values(40)
    holes[np.random.default_rng(1).random(holes.shape) < 0.3] = math.nan
    suppressed = swept(holes, {"individual_ranking": {"k": 3}, "mdav": {"k": 2, "gaps": "suppress"}})
    most = suppressed.table["n_suppressed"].max()
    assert most > 0
    counted = "suppressed cells in a masked file, counted as the largest loss"
    assert f"{counted}: up to {most}" in suppressed.notes
    assert swept(frame().with_columns(pl.col("rooms") + 1), {"mdav": {"k": 3}}).notes == ()
