"""Charts keep every point, share a page without clashes and reach nothing outside."""

import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest
import vl_convert

from pictures import pixels, points
from sdckit.report import charts

RNG = np.random.default_rng(5)


def cloud(rows=200, *, mark=None, name="cloud"):
    table = pl.DataFrame({"x": RNG.random(rows), "y": RNG.random(rows), "kind": sorted("ab" * (rows // 2))})
    point = {"type": "point", "filled": True, "size": 30, "opacity": 1, "clip": True} | (mark or {})
    where = {"x": charts.quantity("x"), "y": charts.quantity("y")}
    where["color"] = {"field": "kind", "type": "nominal", "legend": None}
    layer = {"data": {"name": "d"}, "mark": point, "encoding": where}
    panel = {"width": 150, "height": 120, "layer": [layer]}
    return charts.grid([panel, panel], columns=2, name=name, description="A <cloud>", datasets={"d": table})


def sweep(replications=3, settings=(2.0, 3.0, 5.0)):
    return pl.DataFrame(
        {
            "method": method,
            "parameters": f"{name}={setting:g}",
            "setting": setting,
            "replication": replication,
            "metric": metric,
            "value": scale * setting * replication,
        }
        for method, name in (("noise", "percent"), ("mdav", "k"))
        for setting in settings
        for replication in range(1, replications + 1)
        for metric, scale in (("brmse", 0.01), ("mse", 1e6))
    )


@pytest.mark.long
def test_every_point_survives_compression():
    chart = cloud(200)
    assert points(charts.svg(chart)) == 2 * 200


def test_points_are_where_vega_put_them():
    chart = cloud(60)
    drawn = vl_convert.vegalite_to_svg(chart.to_dict())
    circles = re.findall(r'transform="translate\(([\d.]+),([\d.]+)\)" d="M\d', drawn)
    expected = np.array(circles, float)[:60]
    paths = re.findall(r' d="(m[^"]*h0)"', charts.svg(chart))
    found = [
        np.cumsum(np.array(re.findall(r"m([-\d.]+),([-\d.]+)h0", path), float), axis=0) for path in paths
    ]
    np.testing.assert_allclose(np.concatenate(found)[:60], expected, atol=0.06)


@pytest.mark.long
def test_the_compact_picture_looks_the_same_and_is_much_smaller():
    chart = cloud(400)
    drawn = vl_convert.vegalite_to_svg(chart.to_dict())
    small = charts.svg(chart)
    assert len(small) < len(drawn) / 8
    one, other = (pixels(vl_convert.svg_to_png(source, scale=2)) for source in (drawn, small))
    assert one.shape == other.shape
    assert np.abs(one - other).mean() < 1.0
    assert (np.abs(one - other).max(axis=2) > 100).mean() < 0.002


@pytest.mark.parametrize("mark", [{"opacity": 0.5}, {"filled": False}, {"shape": "square"}])
def test_points_that_are_no_opaque_discs_are_left_alone(mark):
    svg = charts.svg(cloud(20, mark=mark))
    assert points(svg) == 0
    assert svg.count("<path") >= 2 * 20


def test_two_charts_on_a_page_share_no_id_and_refer_to_their_own():
    texts = [charts.svg(cloud(10, name=name)) for name in ("one", "two", None, None)]
    found = [re.findall(r'\bid="([^"]+)"', text) for text in texts]
    assert len({name for names in found for name in names}) == sum(map(len, found))
    for text, ids in zip(texts, found, strict=True):
        assert "clip-path" in text
        assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)


def test_a_picture_has_a_label_and_no_outside_reference():
    svg = charts.svg(cloud(10))
    root = ET.fromstring(svg)  # noqa: S314 - our own
    assert root.get("role") == "img"
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert (title.text, title.get("id")) == ("A <cloud>", root.get("aria-labelledby"))
    assert "http" not in svg.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "href" not in svg
    assert "aria-label=" not in svg


def test_pictures_in_other_formats():
    chart = cloud(10)
    assert charts.pdf(chart).startswith(b"%PDF")
    single, double = (pixels(charts.png(chart, scale)).shape for scale in (1, 2))
    assert double == (2 * single[0], 2 * single[1], 3)


def test_more_rows_than_altair_allows_leave_its_settings_alone():
    import altair as alt

    before = (alt.data_transformers.active, dict(alt.data_transformers.options), alt.theme.active)
    assert points(charts.svg(cloud(6000))) == 12000
    assert (alt.data_transformers.active, dict(alt.data_transformers.options), alt.theme.active) == before


@pytest.mark.long
def test_importing_the_module_imports_no_drawing_library():
    code = "import sys, sdckit.report.charts, sdckit.paper.figures; "
    code += "print({'altair', 'vl_convert'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_methods_and_metrics_have_fixed_colours_and_names():
    methods = ["mdav", "noise", "correlated_noise", "rank_swap", "rank_swap_no_tails", "individual_ranking"]
    metrics = ["brmae", "brmse", "mae", "mse", "il1", "il1s"]
    for names in (methods, metrics):
        assert len({charts.colour(name) for name in names}) == len(names)
    assert charts.colour("unheard of") == charts.colour("unheard of")
    assert charts.label("brmae") == "brMAE"
    assert charts.label("mdav") == "MDAV microaggregation"
    assert charts.label("some_method") == "some method"


def test_a_sweep_shows_median_and_extremes_of_each_setting():
    spec = charts.sweep_chart(sweep()).to_dict()
    assert len(spec["concat"]) == 4
    rows = spec["datasets"]["brmse-mdav"]
    assert [row["setting"] for row in rows] == [2, 3, 5]
    assert [row["low"] for row in rows] == pytest.approx([0.02, 0.03, 0.05])
    assert [row["median"] for row in rows] == pytest.approx([0.04, 0.06, 0.10])
    assert [row["high"] for row in rows] == pytest.approx([0.06, 0.09, 0.15])


@pytest.mark.parametrize("replications", [1, 30])
def test_a_sweep_draws_any_number_of_replications(replications):
    svg = charts.svg(charts.sweep_chart(sweep(replications)))
    assert points(svg) == 4 * 3
    for text in ("additive noise", "MDAV microaggregation", "brMSE", "percent", ">k<"):
        assert text in svg


def test_a_sweep_without_settings_lists_its_maskings():
    table = sweep().with_columns(setting=pl.lit(None, pl.Float64))
    assert "percent=2" in charts.svg(charts.sweep_chart(table))


def test_a_sweep_without_values_is_still_a_picture():
    table = sweep().with_columns(value=pl.lit(float("nan")))
    assert pixels(charts.png(charts.sweep_chart(table), 1)).min() < 100


def test_lines_of_a_sweep_keep_other_parameters_apart():
    table = pl.concat(
        sweep().with_columns(pl.col("parameters") + f", scale={scale}") for scale in ("sd", "variance")
    )
    rows = charts.sweep_chart(table).to_dict()["datasets"]["mse-noise"]
    assert {row["others"] for row in rows} == {"scale=sd", "scale=variance"}
