"""Results in notebooks: the words of `print`, escaped, in the colours of the notebook, nothing secret."""

import re

import polars as pl
import pytest

import sdckit as sdc
from sdckit.core import notebook
from shown import HOSTILE, RESULTS, SECRET, TELLING, Shown, data, released, swept

TAGS = {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
PUNCTUATION = ":;,()->% "


def words(texts):
    return {word.strip(PUNCTUATION) for word in texts}


@pytest.fixture(params=RESULTS)
def result(request):
    return RESULTS[request.param]()


def test_a_notebook_shows_what_print_shows_and_nothing_else(result):
    shown = Shown(result._repr_html_())
    said = words(re.split(r"\s+", repr(result)))
    heads = {"metric", "value", "meaning", "estimate", "original", "masked", "change", "overlap", "reason"}
    heads |= {"name", "title", "range", "parameters", "status", "summary", ""}
    assert words(shown.words) - heads <= said
    assert said - {"overlap", "s.e."} <= words(shown.words) | {""}


def test_there_is_no_script_no_style_sheet_and_no_colour(result):
    shown = Shown(result._repr_html_())
    assert shown.tags <= TAGS
    styles = {value for name, value in shown.attributes if name == "style"}
    assert {name for name, _ in shown.attributes} <= {"style", "class"}
    assert not any("background" in style or "color:" in style or "#" in style for style in styles)


def test_sentences_of_an_evaluation_are_shown_whole():
    result = released().evaluation
    texts = Shown(result._repr_html_()).texts
    assert set(result.meaning.values()) <= set(texts)
    assert result.knowledge.sentence in texts
    assert {f"note: {note}" for note in result.notes} <= set(texts)


def test_names_of_columns_are_only_text():
    found = sdc.describe(data())
    shown = Shown(found._repr_html_())
    assert shown.tags <= TAGS
    assert HOSTILE in shown.texts
    assert set(found.notes) <= set(shown.texts)
    for text in (" ".join(shown.texts), repr(found)):
        assert "floor_alone: linkage that an untouched column gives by itself" in text


def test_prepared_data_and_releases_show_roles_and_limits_first():
    roles = {"key": "region", "columns": ["income", "rent"]}
    made = sdc.Microdata(data(9).with_columns(region=pl.int_range(9)), drop=HOSTILE, **roles).original
    start = "Original(9 records; 2 variables: income, rent; key: region; drop: "
    assert repr(made).startswith(start)
    assert "It meets linkage of at most 0.9." in repr(released()).splitlines()[2]


def test_characters_that_turn_text_round_are_spelt():
    assert notebook.paragraphs(["a\u202eb"]) == notebook.paragraphs(["a\\u202eb"])
    assert Shown(notebook.table(["<b>"], [["&lt;"]])).texts == ["<b>", "&lt;"]


def test_neither_records_nor_secrets_are_shown(result):
    shown = result._repr_html_() + repr(result)
    assert str(TELLING) not in shown
    assert "987,654" not in shown
    assert SECRET.hex() not in shown
    assert repr(SECRET) not in shown


def test_losses_over_estimates_are_shown_as_they_may_be_published():
    found = sdc.Microdata(data(), estimates="mean(income)", untouched=["region"]).sweep(
        {"mdav": {"k": [3]}}, metrics=["brmae", "estimates"], workers=1
    )
    exact = found.summary.filter(metric="estimates")["value"].item()
    assert repr(exact)[:6] not in found._repr_html_() + repr(found)


def test_a_sweep_shows_both_ends_of_each_grid():
    lines = repr(swept()).splitlines()
    assert lines[0].startswith("Sweep(4 masked files; methods: mdav, noise;")
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["mdav", "k=3"],
        ["mdav", "k=5"],
        ["noise", "percent=10"],
        ["noise", "percent=40"],
    ]


def test_a_calibration_shows_its_totals_and_not_its_data():
    masked = sdc.Microdata(data(), untouched=["region"]).mask("mdav", k=5, rng=1)
    found = sdc.calibrate(data(), masked, "total(rent)", rng=1)
    shown = Shown(found._repr_html_())
    assert "total(rent)" in shown.texts
    assert set(found.notes) <= set(shown.texts)
    assert str(masked["rent"][0]) not in shown.texts
