"""What the report says of its marks and columns, and what it keeps to itself: losses of few records."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import reports
import sdckit as sdc
from cases import each
from read_page import Read, bare, specs
from sdckit.core.text import number
from sdckit.metrics.pair import pair_of
from sdckit.report.measures import attack_rows
from sdckit.report.privacy import THRESHOLD, variables_to_hide
from sdckit.risk.attacks import ATTACKS


def heat_rows(**parts):
    found = bare(**parts).split('<section id="variables">')[1].split("</section>")[0]
    return {row[0]: row[1:] for row in Read(found).rows}


def test_the_heat_map_leaves_out_what_is_best_at_1_and_has_short_headings():
    names = heat_rows(evaluation=reports.many())["variable"]
    assert names[4:] == ["brMAE", "brMSE", "KS", "hellinger", "wasserstein", "IL_variables"]
    assert names[0] == "brMAE ties=first"
    found = sdc.Microdata(reports.original(), columns="wages", **reports.ROLES).evaluate(
        reports.masked(), metrics="ci_overlap"
    )
    page = bare(evaluation=found)
    assert "variables" not in Read(page).sections
    assert "ci_overlap, 0 to 1, 1 is best" in Read(page).text


def test_the_headline_prefers_a_loss_whose_best_value_is_0():
    found = sdc.Microdata(reports.original(), columns="wages", **reports.ROLES).evaluate(
        reports.masked(), metrics=["ci_overlap", "brmae"]
    )
    assert "Information loss: brMAE" in Read(bare(evaluation=found)).text


def thin(*used):
    """Thirty records; each variable has values in so many of them."""
    draws = np.random.default_rng(5).normal(100, 30, (30, len(used)))
    holed = np.where(np.arange(30)[:, None] < np.array(used), draws, np.nan)
    data = pl.DataFrame(holed, schema=[f"v{place}" for place in range(len(used))])
    return data, data + 1.0


def test_a_variable_with_few_cells_has_no_loss_of_its_own():
    data, masked = thin(30, 20, THRESHOLD - 1, 25)
    found = sdc.evaluate(data, masked, metrics=["il_variables", "ks"])
    for part in ({}, {"pair": pair_of(data, masked)}):
        rows = heat_rows(evaluation=found, **part)
        # v2 is thin; with v1 shown beside the whole file it could be computed from the rest.
        assert rows["v2"] == rows["v1"] == ["-", "-"]
        assert "-" not in rows["v0"] + rows["v3"] + rows["whole file"]
        assert "A dash stands for a loss of fewer than 10 cells" in Read(bare(evaluation=found)).text
    data, masked = thin(30, 20, THRESHOLD, 25)
    found = sdc.evaluate(data, masked, metrics=["il_variables", "ks"])
    assert all("-" not in row for row in heat_rows(evaluation=found).values())
    assert "A dash" not in Read(bare(evaluation=found)).text


@each(
    ("used", "hidden"),
    [
        ({"a": 30, "b": 10}, set()),
        ({"a": 30, "b": 9}, {"a", "b"}),
        ({"a": 30, "b": 1, "c": 12}, {"b", "c"}),
        ({"a": 30, "b": 6, "c": 4}, {"b", "c"}),
        ({"a": 30, "b": 4, "c": 5, "d": 20}, {"b", "c", "d"}),
        ({"a": 30, "b": 0}, {"b"}),
        ({"a": 3}, {"a"}),
        ({}, set()),
    ],
)
def test_hidden_variables_have_enough_cells_together(used, hidden):
    assert variables_to_hide(used) == hidden


@pytest.mark.parametrize("records", [2, THRESHOLD - 1])
@pytest.mark.parametrize("part", ["pair", "evaluation", "records"])
def test_data_of_few_records_are_refused(records, part):
    data = pl.DataFrame({f"v{place}": np.sqrt(np.arange(records) + place) for place in range(8)})
    masked = data + 1.0
    parts = {"pair": pair_of(data, masked)} if part == "pair" else {}
    if part != "pair":
        parts["evaluation"] = sdc.evaluate(data, masked, metrics=["mae"], per_record=part == "records")
    with pytest.raises(ValueError, match="a report needs") as refused:
        bare(**parts)
    said = f"a report needs at least 10 records and the data have {records}; print the measures instead"
    assert str(refused.value) == said


def test_data_of_just_enough_records_are_not_refused():
    data = pl.DataFrame({"x": np.sqrt(np.arange(THRESHOLD))})
    found = sdc.evaluate(data, data + 1.0, metrics="mae")
    assert Read(bare(evaluation=found, pair=pair_of(data, data + 1.0))).sections >= {"measures"}


def test_a_loss_of_few_cells_is_left_out_with_a_note():
    whole = reports.evaluation()
    few = pl.when(pl.col("metric") == "il1s").then(THRESHOLD - 1).otherwise("n_used")
    found = sdc.Evaluation(whole.table.with_columns(n_used=few), whole.meaning)
    read = Read(bare(evaluation=found))
    assert "left out: il1s, made of fewer than 10 cells" in read.text
    assert number(found["il1s"]) not in read.text
    assert number(found["mae"]) in read.text


def test_marks_are_named_as_what_they_are():
    settings, files = Read(bare(points=reports.points())), Read(bare(points=reports.files()))
    assert "Each mark is one setting of a method, measured on one masked file or as the" in settings.text
    assert "Each mark is one masked file. Down is safer, left is closer" in files.text
    assert "all methods" in settings.text
    assert "all files" in files.text
    assert "methods" not in files.text
    assert ["method", "parameters", "brMAE", "linkage", ""] in settings.rows
    assert [row[0] for row in files.rows] == ["file", "a.csv", "b.csv", "c.csv"]
    assert {len(row) for row in files.rows} == {4}
    hovers = [
        [word["title"] for word in layer["encoding"]["tooltip"]]
        for layer in specs(bare(points=reports.files()))["map"]["layer"]
        if "tooltip" in layer["encoding"]
    ]
    assert hovers == [["file", "brMAE", "linkage"]]
    one = reports.Points(reports.files().table.head(1), "brmae", "linkage", {})
    assert "The file as a table" in Read(bare(points=one)).text


def test_the_good_side_of_the_map_follows_the_loss():
    points = reports.Points(reports.points().table, "ci_overlap", "linkage", {})
    page = bare(points=points)
    assert "right is closer to the original" in Read(page).text
    (line,) = [layer for layer in specs(page)["map"]["layer"] if layer.get("name") == "frontier"]
    assert line["mark"]["interpolate"] == "step-before"


def test_ranges_hold_records_of_each_file():
    text = Read(bare(pair=reports.pair())).text
    assert "Every range holds at least 10 records of each file" in text


def test_attacks_that_are_no_metric_are_listed_by_their_title():
    found = sdc.evaluate([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0], metrics="linkage")
    other = next(name for name in ATTACKS if name not in sdc.METRICS)
    rows = attack_rows(replace(found, parts={"linkage": {"dbrl": 0.5, other: 0.25}}))
    assert [row["title"] for row in rows] == [sdc.METRICS["dbrl"].title, ATTACKS[other].title]


SCENARIOS = {
    "press": {"known": ["turnover", "sector"], "max_risk": {"linkage": 0.5}},
    "registers": {"known": ["sector"]},
}


def test_what_the_intruder_knows_stands_beside_the_headline_and_scenarios_have_a_table():
    found = sdc.Microdata(
        reports.original(), columns=reports.VARIABLES, intruders=SCENARIOS, **reports.ROLES
    ).evaluate(reports.masked(), metrics=["brmae", "linkage", "uniques"])
    page = bare(evaluation=found)
    text = Read(page).text
    others = [name for name in reports.original().columns if name not in {"firm", "weight"}]
    assert f"Assumes that the intruder knows: {len(others)} published columns; not: weight." in text
    unmasked = [f"{name} (key)" if name == "firm" else name for name in reports.original().columns]
    unmasked = [name for name in unmasked if name not in reports.VARIABLES]
    assert f"Published unmasked: {', '.join(unmasked)}." in text
    assert text.index("Published unmasked") < text.index("All measures")
    rows = {row[0]: row for row in Read(page).rows if row and row[0] in SCENARIOS}
    assert rows["press"][1:3] == ["turnover, sector", "linkage"]
    assert rows["press"][4:] == ["0.5", "met"]
    assert rows["registers"][1] == "sector"
    assert rows["registers"][4:] == ["-", ""]
    assert "Disclosure risk: uniques" in text
    assert "scenarios" not in Read(bare(evaluation=reports.evaluation())).sections


@pytest.mark.parametrize(
    ("roles", "sentence"),
    [
        ({}, "assumes that the intruder knows: all 3 published columns"),
        ({"drop": ["b", "t"]}, "assumes that the intruder knows: the 1 published column"),
        ({"known": ["a", "t"]}, "assumes that the intruder knows: a, t; not: b"),
        ({"unknown": ["t"]}, "assumes that the intruder knows: 2 published columns; not: t"),
        ({"confidential": ["b"]}, "assumes that the intruder knows: 2 published columns; not: b"),
        ({"unit": "t"}, "assumes that the intruder knows: all 2 published columns"),
    ],
)
def test_a_sentence_says_what_the_intruder_knows(roles, sentence):
    draws = np.random.default_rng(3).normal(size=(20, 2)).round(2)
    data = pl.DataFrame(draws, schema=["a", "b"]).with_columns(t=pl.Series(["x", "y"] * 10))
    masked = data.with_columns(pl.col("a", "b") + 0.01).drop(roles.get("drop", []))
    variables = [name for name in ("a", "b") if name not in roles.get("drop", [])]
    found = sdc.Microdata(data, columns=variables, **roles).evaluate(masked, metrics="dbrl")
    assert found.knowledge.sentence == sentence
    assert sentence in repr(found)
    assert sdc.Microdata(data, columns=variables, **roles).evaluate(masked, metrics="mae").knowledge is None
