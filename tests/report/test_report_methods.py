"""The map of loss and risk with every method: each has its own look, and unpaired rows their own words."""

from html import unescape
from types import SimpleNamespace

import polars as pl
import pytest

import sdckit as sdc
from command import good, put_survey
from read_page import Read, specs
from sdckit.report.build import map_points
from sdckit.report.risk_map import UNRELATED, map_groups, metrics_by_setting, point_rows, risk_map

UNPAIRED = [name for name, method in sdc.METHODS.items() if not method.paired]
MADE = [  # the settings behind the made-up sweep
    SimpleNamespace(method=method, text=f"p={step}", paired=method.paired)
    for method in sdc.METHODS.values()
    for step in (1, 2)
]
ROW_BY_ROW = ("brmae", "linkage")
PALE = "rows that stand for no original record"


def settings(metrics, methods=tuple(sdc.METHODS)):
    """A made-up sweep with two settings of each method; unpaired ones have neither brmae nor linkage."""
    rows = [
        {"method": name, "parameters": f"p={step}", "setting": float(step), "metric": metric}
        | {"value": None if name in UNPAIRED and metric in ROW_BY_ROW else 0.1 * step + 0.001 * place}
        for place, name in enumerate(methods)
        for step in (1, 2)
        for metric in metrics
    ]
    return metrics_by_setting(pl.DataFrame(rows))


def test_every_method_has_its_own_look():
    looks = map_groups(map_points(settings(["brmae", "linkage"]), records=100, own_settings=MADE))
    assert [look.title for look in looks] == [method.title for method in sdc.METHODS.values()]
    assert len({(look.colour, look.shape) for look in looks}) == len(sdc.METHODS)


def test_the_map_draws_those_looks():
    points = map_points(settings(["brmae", "linkage"]), records=100, own_settings=MADE)
    (layer,) = [layer for layer in risk_map(points)["layer"] if layer.get("name") == "points"]
    drawn = [layer["encoding"][what]["scale"]["range"] for what in ("fill", "shape")]
    assert list(zip(*drawn, strict=True)) == [(look.colour, look.shape) for look in map_groups(points)]


def test_unpaired_rows_lie_where_unrelated_rows_do():
    points = map_points(settings(["brmae", "linkage"]), records=100, own_settings=MADE)
    rows = [row for row in point_rows(points) if row["unpaired"]]
    assert len(rows) == 2 * len(UNPAIRED)
    assert {row["loss_text"] for row in rows} == {row["risk_text"] for row in rows} == {UNRELATED}
    assert {row["risk"] for row in rows} == {0.01}
    assert {row["loss"] for row in rows} == {points.random}
    assert not any(row["frontier"] for row in rows)
    assert all(row["loss_text"] != UNRELATED for row in point_rows(points) if not row["unpaired"])


def test_a_loss_of_distributions_is_shown_as_it_is():
    methods = ["mdav", "sequential_shuffle", "copula"]
    points = map_points(settings(["ks", "linkage"], methods), records=100, own_settings=MADE)
    rows = [row for row in point_rows(points) if row["unpaired"]]
    assert [row["loss"] for row in rows] == pytest.approx([0.101, 0.201, 0.102, 0.202])
    assert [row["loss_text"] for row in rows] == ["0.1010", "0.2010", "0.1020", "0.2020"]
    assert {row["risk_text"] for row in rows} == {UNRELATED}


def test_the_risk_of_rows_that_other_columns_tie_to_records_is_shown_as_it_is():
    found = settings(["brmae", "linkage"], ["copula"]).with_columns(linkage=pl.Series([0.3, None]))
    rows = point_rows(map_points(found, records=100, own_settings=MADE))
    assert [row["risk"] for row in rows] == [0.3, 0.01]
    assert [row["risk_text"] for row in rows] == ["0.3000", UNRELATED]


@pytest.mark.parametrize("loss", ["brmae", "ks"])
def test_a_report_of_paired_and_unpaired_methods(tmp_path, loss):
    put_survey(tmp_path)
    words = ["--method", "copula", "--grid", "mdav.k=3,5,9", "--metrics", f"{loss},linkage"]
    good(tmp_path, "sweep", "data.csv", "-o", "s", *words, "--key", "id", "--report", "r.html")
    page = (tmp_path / "r.html").read_text()
    read = Read(page)
    (row,) = [row for row in read.rows if row[:1] == [sdc.METHODS["copula"].title]]
    assert float(row[3]) >= 3 / 60  # the regions are published as they are
    assert (row[2] == UNRELATED) == (loss == "brmae")
    assert sum(row[:1] == [sdc.METHODS["mdav"].title] for row in read.rows) == 3
    assert f"Pale marks ({sdc.METHODS['copula'].title}): {PALE}" in read.text
    lost = "rows of copula stand for no original record: no value of brmae"
    assert (lost in read.text) == (loss == "brmae")
    assert "datum.unpaired" in str(specs(page))


def test_a_report_without_unpaired_methods_says_nothing_of_them(tmp_path):
    put_survey(tmp_path)
    words = ["--grid", "mdav.k=3,5", "--metrics", "brmae,linkage", "--key", "id", "--report", "r.html"]
    good(tmp_path, "sweep", "data.csv", "-o", "s", *words)
    text = Read((tmp_path / "r.html").read_text()).text
    assert "Pale marks" not in text
    assert UNRELATED not in text


@pytest.mark.long
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("command", ["mask", "evaluate"])
def test_the_report_of_an_unpaired_release(tmp_path, command, tied):
    put_survey(tmp_path)
    words = ["--key", "id", "--columns", "income,age", "--report", "r.html", "--overwrite"]
    words += ["--drop", "grade,region,weight,rooms"] if not tied else []
    good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "copula", *words)
    if command == "evaluate":
        good(tmp_path, "evaluate", "data.csv", "out.csv", "--unpaired", *words)
    read = Read((tmp_path / "r.html").read_text())
    assert "left out because rows are not paired: brmae, " in unescape(read.text)
    assert ("no risk was measured" in read.text) != tied
    assert "KS, largest gap" in read.text
    assert ("linkage" in read.sections) == tied
    assert "map" not in read.sections
    assert {"measures", "distributions"} <= read.sections
