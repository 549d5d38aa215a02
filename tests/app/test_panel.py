"""The panel of a setting: the figures of a release, nothing of the original but what a report shows."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import mixed_files
import sdckit as sdc
from calls import called
from leaks import leaks
from panels import SECRET, Elements, Opened, as_page, charts
from read_page import Read
from sdckit.app.panel import ONE_DRAW, compare_panels, plan_of_panel
from sdckit.core.randomness import derived
from sdckit.core.scenarios import exposed_of
from sdckit.core.text import figure_text, number
from sdckit.report.measures import label
from sdckit.report.privacy import guarded_evaluation
from secret_bytes import entropy

VARIABLES = ["turnover", "domestic_sales", "export_sales", "wages", "profit"]
RULES = ["turnover = domestic_sales + export_sales"]
ROLES = {"columns": VARIABLES, "key": ["firm"], "unknown": ["weight", "sector"]}
PRESS = {"known": ["turnover", "wages"], "max_risk": {"linkage": 1.0}}
LEVELS = ("value", "random", "tie_low", "tie_high")
WILD = '<script>alert(1)</script> "it\'s" [/b] & {{ 7 * 7 }} \u202e'


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """300 firms with a sum rule and a scenario."""
    return Opened(
        tmp_path_factory.mktemp("survey"),
        sdc.load_sample().head(300).select("firm", "sector", "weight", *VARIABLES),
        roles=ROLES,
        rules={"rule": RULES},
        scenario=[{"name": "press", **PRESS}],
        search={"grid": {"mdav": {"k": "5"}}},
        output={"numbered": "record"},
    )


@pytest.fixture(scope="module")
def settings(survey):
    """The panels of a deterministic setting and of a random one."""
    return {"mdav": survey.panel("mdav", k=5), "noise": survey.panel("noise", percent=20)}


def released(survey, method, **parameters):
    """What `sdc.release` makes of the first draw from the secret of a panel."""
    plan, _ = plan_of_panel(survey.job, survey.original, method, parameters)
    return sdc.Microdata(
        survey.frame, rules=RULES, missing="penalise", intruders={"press": PRESS}, **ROLES
    ).release(method, decimals="original", entropy=derived(SECRET, f"panel of {plan}"), **parameters)


@pytest.fixture(scope="module")
def releases(survey):
    return {"mdav": released(survey, "mdav", k=5), "noise": released(survey, "noise", percent=20)}


def test_the_number_of_exposed_records_stands_before_all_figures(settings, releases):
    for method, panel in settings.items():
        found = exposed_of(releases[method].evaluation.parts)
        number_of = f"{found.records} of 300" if found.records else "No record"
        assert panel.exposed.startswith(number_of)
        text = panel.to_html()
        assert text.index(panel.exposed) < text.index('class="headlines"')
    assert exposed_of(releases["noise"].evaluation.parts).records > 0


@pytest.mark.parametrize("method", ["mdav", "noise"])
def test_all_figures_are_those_of_a_release_with_the_same_entropy(settings, releases, method):
    panel, made = settings[method], releases[method]
    public = guarded_evaluation(made.evaluation)
    assert panel.values == dict(public.summary.select("metric", "value").rows())
    assert [one.text for one in panel.headlines[:2]] == [
        number(made.evaluation[name]) for name in ("brmae", "linkage")
    ]
    assert [one.limit for one in panel.headlines[:2]] == [None, 0.5]
    (press,) = [row for row in panel.scenarios if row["scenario"] == "press"]
    assert (press["value"], press["limit"]) == (made.evaluation["linkage (press)"], 1.0)
    for row in panel.figures["statistics"]:
        values = made.data[row["variable"]]
        wanted = [values.mean(), values.std()]
        assert row["lines"][1]["texts"][:2] == [figure_text(one, 4) for one in wanted]
    assert [one.title for one in panel.distributions] == VARIABLES
    assert sum(row["records"] for row in charts(panel.to_html())[-1]["data"]["values"]) == 300


@pytest.mark.parametrize("method", ["mdav", "noise"])
def test_the_fragment_shows_them(settings, method):
    panel = settings[method]
    read = Read(panel.to_html())
    for name, value in panel.values.items():
        assert any(f"{name}," in row[0] and row[1] == number(value) for row in read.rows if row), name
    assert ["press", "turnover, wages", label("linkage")] in [row[:3] for row in read.rows]
    assert (ONE_DRAW in read.text) == (method == "noise")
    assert len(charts(panel.to_html())) == len(VARIABLES) + 1


def test_the_plan_is_that_of_the_release_of_a_search(survey):
    options = survey.job.search_options() | {"folder": None, "workers": 1}
    choice = called("recommend", survey.original, **options)
    wanted = choice.release_plan(per_record=True, numbered="record")
    found, minimise = plan_of_panel(survey.job, survey.original, choice.method.name, choice.parameters)
    assert found == wanted
    assert minimise == choice.minimise


@pytest.mark.long
def test_the_same_click_shows_the_same_figures(survey, settings):
    assert survey.panel("noise", percent=20) == settings["noise"]
    assert survey.panel("noise", secret=entropy(17), percent=20).values != settings["noise"].values
    with pytest.raises(ValueError, match="can be guessed"):
        survey.panel("noise", secret=b"short", percent=20)


@pytest.fixture(scope="module")
def figures(settings, releases):
    """All figures that panels are meant to print: measures, their differences, and masked statistics."""
    tables = [made.evaluation.table for made in releases.values()]
    measured = [value for table in tables for name in LEVELS for value in table[name]]
    one, other = (panel.values for panel in settings.values())
    apart = [other[name] - one[name] for name in one if one[name] is not None and other[name] is not None]
    masked = [value for made in releases.values() for name in VARIABLES for value in summed(made.data[name])]
    return [*measured, *apart, *masked]


def summed(column):
    values = column.drop_nulls()
    return [values.mean(), values.std(), values.sum(), *np.quantile(values, [0.25, 0.5, 0.75])]


def test_nothing_of_the_original_is_shown_but_guarded_figures(survey, settings, figures):
    one, other = settings.values()
    for content in (one, other, compare_panels(one, other)):
        page = content.to_html()
        assert leaks(as_page(page), survey.frame, figures=figures) == []
        exact = [one for name in VARIABLES for one in (survey.frame[name].std(), survey.frame[name].sum())]
        assert not [value for value in exact if f">{figure_text(value, 10)}<" in page]


def test_a_planted_record_would_be_found(survey, settings, figures):
    record = survey.frame.select("turnover", "wages", "profit").row(17)
    told = replace(settings["mdav"], notes=(str(record),))
    found = leaks(as_page(told.to_html()), survey.frame, figures=figures)
    assert any(line.startswith("original record") for line in found)


def test_fragments_have_no_style_no_script_and_no_handler(settings):
    fragments = [one.to_html() for one in settings.values()]
    fragments.append(compare_panels(*settings.values()).to_html())
    for fragment in fragments:
        for tag, attributes in Elements(fragment).found:
            assert tag not in {"script", "style", "link", "h1", "h2"}
            assert not [name for name in attributes if name == "style" or name.startswith("on")]
            if attributes.get("class") == "chart":
                assert attributes["role"] == "img"
                assert len(attributes["aria-label"]) > 30
        assert fragment.count("<table") == fragment.count("<caption>") > 3


def test_any_name_is_text(tmp_path):
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({WILD: rng.normal(size=60), "b": rng.normal(size=60)})
    opened = Opened(tmp_path, frame)
    panel = opened.panel(k=5)
    shown = WILD.replace("\u202e", "\\u202e")
    for fragment in (panel.to_html(), compare_panels(panel, panel).to_html()):
        assert "<script" not in fragment
        assert "\u202e" not in fragment
        assert shown in Read(fragment).text
        assert Elements(fragment).found


def test_few_records_are_refused_in_one_line(tmp_path):
    opened = Opened(tmp_path, pl.DataFrame({"a": [1.5, 2.5, 4.5, 8.5, 9.5, 12.5, 3.5, 5.5, 6.5]}))
    panel = opened.panel("noise", percent=20)
    reason = "the data have 9 records, and figures of fewer than 10 disclose records"
    assert panel.refusal == reason
    assert (panel.values, panel.distributions, panel.headlines) == ({}, (), ())
    for fragment in (panel.to_html(), compare_panels(panel, panel).to_html()):
        assert f"No figure is shown: {reason}." in Read(fragment).text
        assert "<table" not in fragment
        assert charts(fragment) == []


def test_rows_that_stand_for_no_record_have_no_loss_by_row(survey, settings):
    panel = survey.panel("ipso")
    assert panel.values.get("brmae") is None
    assert {row["lines"][1]["suppressed"] for row in panel.figures["statistics"]} == {"-"}
    assert Elements(panel.to_html()).found
    compared = compare_panels(settings["mdav"], panel)
    (row,) = [row for row in compared.measures[0]["rows"] if row["name"] == "brmae"]
    assert row["values"][1] == row["difference"] == row["better"] == "-"
    assert Elements(compared.to_html()).found


def test_missing_cells_and_strata_are_counted_and_never_shown(tmp_path):
    frame = mixed_files.strata().data.drop("weight")
    frame = mixed_files.with_gaps(frame, ["a"], 0.1, [None], 5)
    opened = Opened(tmp_path, frame, roles={"by": ["sector"]})
    panel = opened.panel(k=5)
    text = Read(panel.to_html()).text
    drawn = charts(panel.to_html())[0]["data"]["values"]
    assert sum(row["original"] for row in drawn) == frame["a"].count() < frame.height
    gone = [int(row["lines"][1]["suppressed"]) for row in panel.figures["statistics"]]
    cells = sum(frame[row["variable"]].count() for row in panel.figures["statistics"])
    assert panel.values["suppressed"] == sum(gone) / cells > 0
    assert not [name for name in ("trade", "crafts", "transport") if name in text]
    assert leaks(as_page(panel.to_html()), frame, masked=None, figures=list(panel.values.values())) == []


def test_two_settings_are_compared_measure_by_measure(settings):
    one, other = settings.values()
    compared = compare_panels(one, other)
    rows = {row["name"]: row for group in compared.measures for row in group["rows"]}
    assert set(rows) == {*one.values, *other.values}
    row, (a, b) = rows["brmae"], (one.values["brmae"], other.values["brmae"])
    assert row["values"] == [number(a), number(b)]
    assert (row["difference"], row["better"]) == (number(b - a), "A" if a < b else "B")
    assert (one.values["suppressed"] > 0, other.values["suppressed"]) == (True, 0)
    assert rows["suppressed"]["better"] == "B"
    same = [row["better"] for group in compare_panels(one, one).measures for row in group["rows"]]
    assert "equal" in same
    assert {*same} <= {"equal", "-"}
    better = {name: row["better"] for name, row in rows.items()}
    swapped = compare_panels(other, one)
    turned = {"A": "B", "B": "A"}
    for group in swapped.measures:
        for row in group["rows"]:
            assert row["better"] == turned.get(better[row["name"]], better[row["name"]])
    read = Read(compared.to_html())
    assert [one.title, other.title] == [panel.title for _, panel in compared.sides]
    assert f"A: {one.title}" in read.text
    assert (
        compared.figures["statistics"][0]["lines"][1]["texts"]
        == (one.figures["statistics"][0]["lines"][1]["texts"])
    )
    lines = dict(compared.heat["rows"])
    assert list(lines) == [None, *VARIABLES]
    assert [line["setting"] for line in lines["wages"]] == ["A", "B"]
    assert lines["wages"][1]["cells"] == dict(other.heat["rows"])["wages"]


def test_a_metric_whose_best_value_is_1_prefers_the_larger(settings):
    one, other = settings.values()
    family = one.families[0]
    own = family["rows"][0] | {"name": "ci_overlap"}
    changed = [
        replace(panel, families=({**family, "rows": [own]},), values={"ci_overlap": value})
        for panel, value in ((one, 0.6), (other, 0.9))
    ]
    (group,) = compare_panels(*changed).measures
    assert group["rows"][0]["better"] == "B"
