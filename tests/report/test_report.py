"""The report's content: every part optional, numbers as in the tables, any name as text, no thin bin."""

import hashlib
import re
from dataclasses import replace
from html import unescape
from itertools import combinations

import hypothesis.extra.numpy as npst
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reports
import sdckit as sdc
from read_page import Read, bare, specs
from sdckit.core.registry import METRICS
from sdckit.core.text import number
from sdckit.metrics.pair import pair_of
from sdckit.report import charts as scripts
from sdckit.report import report
from sdckit.report.measures import label
from sdckit.report.privacy import THRESHOLD, count_by_bins, count_by_risk, public_facts
from sdckit.report.risk_map import map_groups

WILD = '<script>alert(1)</script> "it\'s" [/b] & {{ 7 * 7 }}'
SECTIONS = {
    "knowledge",
    "choice",
    "map",
    "measures",
    "linkage",
    "variables",
    "distributions",
    "notes",
    "facts",
}


def test_a_report_of_nothing_has_no_sections_and_no_scripts():
    page = bare()
    read = Read(page)
    assert read.sections == set()
    assert "script" not in read.tags
    assert "script-src 'none'" in unescape(page)
    assert read.text.startswith("A title Statistical disclosure control")
    assert "What was done." in read.text


@pytest.mark.parametrize(
    ("part", "sections"),
    [
        ({"points": reports.points}, {"map"}),
        ({"evaluation": reports.evaluation}, {"knowledge", "measures", "linkage", "variables", "notes"}),
        ({"pair": reports.pair}, {"distributions"}),
        ({"choice": lambda: ["Take this."]}, {"choice"}),
        ({"notes": lambda: ["Mind that."]}, {"notes"}),
        ({"facts": lambda: {"sdckit": "0.1"}}, {"facts"}),
    ],
)
def test_each_part_stands_alone(part, sections):
    assert Read(bare(**{name: make() for name, make in part.items()})).sections == sections


def test_a_full_report_has_all_sections_in_one_small_file():
    page = reports.full()
    assert Read(page).sections == SECTIONS
    assert len(page.encode()) < 1_500_000
    assert page.count(scripts.bundle()) == 1
    assert not re.findall(r'(?:src|href)="', page.replace(scripts.bundle(), ""))


def test_points_read_alike_in_the_table_and_in_the_hover_text():
    page = reports.full()
    table = reports.points().table
    drawn = specs(page)["map"]["data"]["values"]
    assert [(row["loss"], row["risk"]) for row in drawn] == table.select("loss", "risk").rows()
    words = [[row[name] for name in ("method", "parameters", "loss_text", "risk_text")] for row in drawn]
    rows = [row for row in Read(page).rows if len(row) == 5 and "=" in row[1]]
    assert [row[:4] for row in rows] == words
    assert [row[2:4] for row in words] == [
        [number(a), number(b)] for a, b in table.select("loss", "risk").rows()
    ]
    tags = [
        "chosen" if chosen else "frontier" if frontier else ""
        for frontier, chosen in table.select("frontier", "chosen").rows()
    ]
    assert [row[4] for row in rows] == tags


def test_the_map_is_zoomed_to_its_points_and_the_limit():
    table = reports.points().table
    seen = {"x": table["loss"].to_list(), "y": [*table["risk"], reports.LIMITS["linkage"]]}
    for layer in specs(reports.full())["map"]["layer"]:
        for axis, values in seen.items():
            place = layer["encoding"].get(axis, {"value": None})
            if "value" not in place:
                low, high = place["scale"]["domain"]
                assert 0 <= low <= min(values) < max(values) < high
                assert high - low < 1.15 * (max(values) - min(values))


@pytest.mark.parametrize("n", [40, 41, 400])
def test_many_marks_are_thinned_but_never_the_best(n):
    draws = np.random.default_rng(n).uniform(size=(n, 2))
    table = pl.DataFrame({"loss": draws[:, 0], "risk": draws[:, 1]})
    names = {"method": pl.lit("mdav"), "parameters": pl.format("k={}", pl.int_range(pl.len()))}
    points = reports.mapped(table.with_columns(**names))
    page = bare(points=points)
    rows = specs(page)["map"]["data"]["values"]
    marked = [row for row in rows if row["marked"]]
    assert len(rows) == n
    assert (len(marked) == n) == (n == 40)
    assert all(row["marked"] for row in rows if row["frontier"] or row["chosen"])
    others = [(row["loss"], row["risk"]) for row in marked if not (row["frontier"] or row["chosen"])]
    assert n == 40 or min(max(abs(a - c), abs(b - d)) for (a, b), (c, d) in combinations(others, 2)) > 0.028
    assert (f"{n - len(marked)} marks that lie close to others are left out" in Read(page).text) == (n > 40)


def test_one_point_alone_has_a_map():
    alone = reports.mapped(reports.points().table.head(1).drop("frontier", "chosen"))
    (low, high), _ = alone.axes.values()
    assert low < alone.table["loss"][0] < high


def test_limit_and_random_level_are_drawn_only_where_there_are_any():
    def names(points):
        return {layer.get("name") for layer in specs(bare(points=points))["map"]["layer"]}

    table = reports.points().table
    assert {"limit", "random"} <= names(reports.mapped(table.drop("frontier", "chosen"), random=0.2))
    assert {"limit", "random"} & names(reports.points()) == {"limit"}  # its level is beyond the map
    assert "has a loss of 0.6667" in Read(bare(points=reports.points())).text
    plain = reports.Points(table, loss="brmae", risk="linkage", limits={"linkage_outliers": 0.3}, random=None)
    assert not {"limit", "random"} & names(plain)
    assert f"{label('linkage_outliers')} at most 0.3." in Read(bare(points=plain)).text


def test_points_without_a_value_are_counted_not_drawn():
    table = reports.points().table
    holed = table.with_columns(risk=pl.when(pl.arange(0, table.height) < 2).then(None).otherwise("risk"))
    page = bare(points=reports.Points(holed, "brmae", "linkage", {}))
    assert len(specs(page)["map"]["data"]["values"]) == table.height - 2
    assert "2 points have no value" in Read(page).text
    none = reports.Points(table.with_columns(risk=pl.lit(None, pl.Float64)), "brmae", "linkage", {})
    assert Read(bare(points=none)).sections == set()


def test_files_made_elsewhere_have_their_own_colours():
    table = (
        reports.points().table.head(4).with_columns(method=pl.Series(["mdav", "a.csv", "b_1.csv", "c.csv"]))
    )
    looks = map_groups(reports.Points(table, "brmae", "linkage", {}))
    assert [group.title for group in looks] == ["MDAV microaggregation", "a.csv", "b_1.csv", "c.csv"]
    assert len({group.colour for group in looks}) == len({group.shape for group in looks}) == 4


def test_measures_are_those_of_the_whole_file_with_their_meaning():
    found = reports.evaluation()
    read = Read(bare(evaluation=found))
    for row in found.summary.iter_rows(named=True):
        title = METRICS[row["metric"]].title
        shown = next(line for line in read.rows if line[0].startswith(f"{title}{row['metric']}"))
        assert shown[1:3] == [number(row["value"]), number(row["random"])]
        meaning = found.meaning[row["metric"]]
        assert shown[4] == f"{meaning[0].upper()}{meaning[1:]}."


def test_strata_are_never_shown():
    found = reports.evaluation()
    assert found.table["stratum"].n_unique() > 2
    whole = replace(found, table=found.table.filter(stratum="all"))
    assert bare(evaluation=found) == bare(evaluation=whole)


def test_the_headline_names_loss_risk_and_every_limit():
    read = Read(reports.full()).text
    risk = f"Disclosure risk: {label('linkage_outliers')}"
    for said in ("Information loss: brMAE", "limit 0.1: met", risk, "limit 0.3: met"):
        assert said in read
    strict = reports.Points(reports.points().table, "brmae", "linkage", {"linkage": 0.01})
    assert "limit 0.01: not met" in Read(reports.full(points=strict)).text


def test_the_headline_is_the_chosen_point_where_no_file_was_measured():
    read = Read(bare(points=reports.points()))
    chosen = reports.points().chosen
    figures = [word for word in read.words if word in {number(chosen["loss"]), number(chosen["risk"])}]
    assert len(figures) >= 2


def test_the_heat_map_has_each_bounded_loss_of_each_variable():
    found = reports.evaluation()
    rows = {row[0]: row[1:] for row in Read(bare(evaluation=found)).rows if len(row) == 3}
    assert rows["variable"] == ["brMAE", "brMSE"]
    values = {
        (row["variable"], row["metric"]): number(row["value"])
        for row in found.table.filter(stratum="all").iter_rows(named=True)
    }
    for name in reports.VARIABLES:
        assert rows[name] == [values[name, "brmae"], values[name, "brmse"]]
    assert rows["whole file"] == [values["all", "brmae"], values["all", "brmse"]]


def test_attacks_are_listed_worst_first():
    rows = [row for row in Read(bare(evaluation=reports.evaluation())).rows if row[1:2] == [""]]
    assert rows[0] == ["attack", "", "all records", "outliers"]
    assert [row[2] for row in rows[1:]] == ["0.0925", "0.0810", "0.0702", "0.0613"]
    assert [row[3] for row in rows[1:]] == ["0.2400", "", "", ""]


def test_any_name_is_text():
    data = reports.original().select(reports.VARIABLES).rename({"turnover": WILD})
    masked = reports.masked().select(reports.VARIABLES).rename({"turnover": WILD})
    table = reports.points().table.with_columns(method=pl.lit(WILD), parameters=pl.lit(WILD))
    page = report(
        title=WILD,
        done=[WILD],
        points=reports.Points(table, "brmae", "linkage", {}),
        evaluation=sdc.evaluate(data, masked, metrics=["brmae"]),
        pair=pair_of(data, masked),
        choice=[WILD],
        notes=[WILD],
        facts={WILD: WILD},
    )
    read = Read(page)
    assert "<script>alert" not in page
    assert read.tags.count("script") == 3
    assert read.text.count(" ".join(WILD.split())) == 9 + 2 * table.height
    assert specs(page)["map"]["data"]["values"][0]["method"] == WILD


def test_a_seed_is_no_fact():
    facts = {"sdckit": "1", "seed": "12", "Seed of the noise": "13", "rng": "14", "ties": "average"}
    assert public_facts(facts) == {"sdckit": "1", "ties": "average"}
    assert str(reports.SEED) not in reports.full()


def test_bins_worked_by_hand():
    original = np.r_[np.full(12, 1.0), np.full(9, 3.0), np.full(30, 5.0), np.full(9, 9.7)]
    masked = np.r_[np.full(12, 1.0), np.full(9, 3.0), np.full(20, 5.0), np.full(19, 9.7)]
    bins = count_by_bins(original, masked)
    # Nine records of 3 join those of 5; the nine largest of the original join them, too.
    assert (bins.original, bins.masked) == ((12, 48), (12, 48))
    assert bins.edges == (2.0,)


@pytest.mark.parametrize(
    ("values", "edges"),
    [
        (np.geomspace(1, 1000, 400), (2, 5, 10, 20, 50, 100, 200, 500)),
        (np.r_[np.zeros(120), np.geomspace(1, 1000, 280)], (0.7, 2.7, 7.2, 19, 52, 140, 370)),
        (np.arange(400.0), (50, 100, 150, 200, 250, 300, 350)),
    ],
)
def test_bins_of_skewed_variables_grow(values, edges):
    assert count_by_bins(values, values).edges == edges


@settings(max_examples=80)
@given(
    npst.arrays(
        np.float64, st.integers(2, 300), elements=st.floats(-1e9, 1e9) | st.just(np.nan) | st.integers(0, 9)
    ),
    st.floats(0, 2),
    st.integers(0, 10**6),
)
def test_no_bin_is_thin_and_no_edge_is_precise(original, noise, seed):
    draws = np.random.default_rng(seed).normal(size=original.size)
    spread = np.nanstd(original) if np.isfinite(original).any() else 0.0
    masked = original + noise * spread * draws
    bins = count_by_bins(original, masked)
    if bins is None:
        return
    assert len(bins.edges) + 1 == len(bins.original) == len(bins.masked) >= 2
    assert min(*bins.original, *bins.masked) >= THRESHOLD
    assert sum(bins.original) == np.isfinite(original).sum()
    assert list(bins.edges) == sorted(set(bins.edges))
    for edge in bins.edges:
        assert float(f"{edge:.1e}") == edge
        assert np.nanmin(original) < edge < np.nanmax(original)
        assert (original < edge).sum() >= THRESHOLD
        assert (original >= edge).sum() >= THRESHOLD
    for low, count in zip(bins.edges, np.cumsum(bins.original), strict=False):
        assert (original < low).sum() == count


@given(
    npst.arrays(
        np.float64,
        st.integers(0, 120),
        elements=st.sampled_from([0, 0.05, 0.1, 0.25, 1 / 3, 0.5, 0.99, 1, np.nan]),
    )
)
def test_bins_of_risk_are_empty_or_full(risks):
    bins = count_by_risk(risks)
    seen = risks[~np.isnan(risks)]
    assert (bins is None) == (seen.size < THRESHOLD)
    if bins is None:
        return
    assert all(one.records == 0 or one.records >= THRESHOLD for one in bins)
    assert (bins[0].low, bins[-1].high) == (0.0, 1.0)
    assert [one.high for one in bins[:-1]] == [one.low for one in bins[1:]]
    for one in bins:
        assert one.records == ((seen >= one.low) & ((seen < one.high) | (one.high == 1))).sum()


def test_too_few_records_at_risk_are_reported_in_words():
    found = reports.evaluation()
    few = sdc.Evaluation(
        found.table, found.meaning, records=pl.DataFrame({"linkage": [0.5] * 9 + [np.nan] * 9})
    )
    assert "Not shown: fewer than 10 records." in Read(bare(evaluation=few)).text


@pytest.mark.long
def test_the_scripts_are_kept_and_a_damaged_copy_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(scripts, "cache_folder", lambda: tmp_path / "cache")
    text = scripts.bundle.__wrapped__()
    (kept,) = (tmp_path / "cache").iterdir()
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda *_: "made anew")
    assert scripts.bundle.__wrapped__() == text
    for content in (text[:-5], text + "alert(1)", f"{hashlib.sha256(b'alert(1)').hexdigest()}\nalert(1)"):
        kept.write_text(content, encoding="utf-8")
        assert scripts.bundle.__wrapped__() == "made anew"
        assert kept.read_text(encoding="utf-8") == content  # what has no known digest is not stored


def test_scripts_of_unknown_versions_are_neither_stored_nor_read(tmp_path, monkeypatch):
    monkeypatch.setattr(scripts, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(scripts, "version", lambda _: "99.0")
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda *_: "made anew")
    assert scripts.bundle.__wrapped__() == "made anew"
    (tmp_path / "vega-99.0.js").write_text("alert(1)")
    assert scripts.bundle.__wrapped__() == "made anew"
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda *_: "'</script>'")
    with pytest.raises(RuntimeError, match="contain HTML tags"):
        scripts.bundle.__wrapped__()
