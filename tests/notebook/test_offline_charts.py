"""Charts of results: drawn without a network, still altair's."""

import base64
import re

import altair as alt
import numpy as np
import pytest

import sdckit as sdc
from pictures import pixels
from sdckit.report import charts
from sdckit.report.charts import svg
from sdckit.report.drawing import compact_png
from shown import chosen, data, swept

CHARTS = {
    "map": lambda: swept().map(chosen()),
    "plain map": lambda: swept().map(),
    "map of a choice": lambda: chosen().map(),
    "plot": lambda: swept().plot(),
}


@pytest.fixture(params=CHARTS, scope="module")
def chart(request):
    return CHARTS[request.param]()


def test_a_notebook_gets_pictures_that_ask_for_nothing(chart):
    found = chart._repr_mimebundle_()
    assert list(found) == ["image/svg+xml", "image/png", "text/plain"]
    drawn = found["image/svg+xml"]
    assert set(re.findall(r"https?://[^\"' ]+", drawn)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in drawn
    assert len(drawn) + len(found["image/png"]) < 60_000
    assert pixels(base64.b64decode(found["image/png"])).std() > 10
    assert found["text/plain"] == repr(chart)


def test_a_changed_chart_is_shown_alike(chart):
    other = chart.properties(title="another")
    assert isinstance(other, alt.TopLevelMixin)
    assert type(other) is type(chart)
    assert other.to_dict(validate=False)["title"] == "another"


def test_a_saved_page_has_its_scripts_inside(tmp_path):
    path = tmp_path / "map.html"
    chart = swept().map()
    chart.save(path)
    page = path.read_text(encoding="utf-8")
    assert not re.search(r"<(script|link)[^>]*(src|href)=", page)
    assert "import(" not in page.split("<body>")[1]
    path = tmp_path / "map.svg"
    chart.save(path)
    assert path.read_text(encoding="utf-8").startswith("<svg")


def test_the_map_has_each_setting_the_limit_and_the_choice():
    drawn = svg(swept().map(chosen()))
    assert ">limit 0.9<" in drawn
    assert ">chosen<" in drawn
    assert "MDAV microaggregation" in drawn
    plain = svg(swept().map())
    assert ">limit" not in plain
    assert ">chosen<" not in plain
    found = swept().map().to_dict()
    assert len(found["datasets"][found["data"]["name"]]) == 4


def test_a_map_needs_a_loss_and_a_risk():
    only = sdc.Microdata(data(), untouched=["region"]).sweep({"mdav": {"k": [3]}}, metrics="brmae", workers=1)
    with pytest.raises(ValueError, match="a map needs a bounded loss and a risk; measure one of each"):
        only.map()


def test_a_smaller_png_has_the_same_pixels():
    drawn = charts.png(swept().plot(), 1)
    small = compact_png(drawn)
    assert len(small) < len(drawn) / 2
    assert np.array_equal(pixels(small), pixels(drawn))


def test_charts_can_be_joined_and_keep_their_look():
    one, other = swept().map(), swept().plot()
    joined = {
        "hconcat": one | other,
        "vconcat": other & (one | one),
        "layer": one + one,
    }
    for kind, chart in joined.items():
        found = chart.to_dict()
        assert len(found[kind]) == 2
        assert found["config"]["background"] == "white"
        assert chart._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
    assert one.config is not alt.Undefined  # what was joined is not changed
