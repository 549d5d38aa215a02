"""Reports that results write, and tables in the dataframe type of the user."""

import hashlib
import os
import sys
from dataclasses import replace

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sdckit as sdc
from sdckit.report import build
from shown import RESULTS, SECRET, TELLING, Shown, chosen, data, released, swept

REPORTS = ("evaluation", "choice", "release", "sweep")
TABLES = {"evaluation": "table", "sweep": "table", "estimates": "table"}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_written_once_and_holds_no_record(tmp_path, name):
    path = tmp_path / "report.html"
    result = RESULTS[name]()
    written = result.report(path)
    page = path.read_text(encoding="utf-8")
    assert os.fspath(written) == str(path)
    assert repr(written) == f"wrote {path}"
    assert "Loss and risk" in page or "Choice of a masking" in page or "Maskings of" in page
    assert str(TELLING) not in page
    assert SECRET.hex() not in page
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="exists already; choose another name or overwrite it"):
        result.report(str(path))
    assert path.read_text() == "mine"
    result.report(path, overwrite=True)
    assert path.stat().st_size > 10_000
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_path_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "report", None)  # calling it would fail
    for path, error in (("report.csv", ValueError), ("none/report.html", FileNotFoundError)):
        with pytest.raises(error):
            swept().report(tmp_path / path)


def test_after_an_error_no_report_is_left(tmp_path):
    few = sdc.evaluate([1.0, 2.0, 3.0], [2.0, 1.0, 3.0], metrics="brmae")
    with pytest.raises(ValueError, match="a report needs at least 10 records"):
        few.report(tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_the_report_of_a_file_names_it_and_its_hash(tmp_path):
    file, other = tmp_path / "released.parquet", tmp_path / "other.parquet"
    released().data.write_parquet(file)
    page = released().report(tmp_path / "r.html", file=file).path.read_text(encoding="utf-8")
    assert "Loss and risk of released.parquet" in page
    assert hashlib.sha256(file.read_bytes()).hexdigest() in page
    for content in (released().data.sort("rent"), released().data.drop("rent"), released().data[:30]):
        content.write_parquet(other)
        with pytest.raises(ValueError, match="does not hold this release; give the file that publish"):
            released().report(tmp_path / "second.html", file=other)
    assert not (tmp_path / "second.html").exists()


def test_the_report_of_a_release_states_its_limits(tmp_path):
    file = tmp_path / "released.parquet"
    released().data.write_parquet(file)
    for place, more in enumerate(({}, {"file": file})):
        page = released().report(tmp_path / f"{place}.html", **more).path.read_text(encoding="utf-8")
        assert "It meets linkage of at most 0.9." in page
        assert "limit 0.9: met" in page
    intruders = page.split('<section id="scenarios">')[1].split("</section>")[0]
    assert Shown(intruders).words[-2:] == ["0.9", "met"]
    page = released().evaluation.report(tmp_path / "evaluation.html").path.read_text(encoding="utf-8")
    assert "limit 0.9" not in page


def test_a_notebook_shows_the_report_in_a_frame_without_rights(tmp_path):
    written = released().evaluation.report(tmp_path / "r.html", name="<b>")
    shown = Shown(written._repr_html_())
    assert shown.tags == {"div", "p", "iframe"}
    frame = dict(shown.attributes)
    assert frame["sandbox"] == "allow-scripts"
    assert frame["srcdoc"] == written.path.read_text(encoding="utf-8")
    written.path.unlink()
    assert Shown(written._repr_html_()).tags == {"div", "p"}


def test_a_choice_without_data_has_no_report(tmp_path):
    with pytest.raises(ValueError, match="this choice was made without data"):
        replace(chosen(), conditions=None).report(tmp_path / "r.html")


@pytest.mark.parametrize("name", TABLES)
def test_tables_come_in_each_type(name):
    result = RESULTS[name]()
    table = result.to_frame("polars")
    assert table.equals(result.table)
    assert result.to_frame().equals(table)
    pandas = result.to_frame("pandas")
    assert isinstance(pandas, pd.DataFrame)
    assert list(pandas) == table.columns
    assert pl.from_pandas(pandas.astype(object).where(pandas.notna(), None)).rows() == table.rows()
    arrow = result.to_frame("pyarrow")
    assert isinstance(arrow, pa.Table)
    assert pl.from_arrow(arrow).equals(table)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (lambda: data().to_pandas(), pd.DataFrame),
        (lambda: data().to_arrow(), pa.Table),
        (lambda: data().select("income", "rent").to_numpy(), pl.DataFrame),
    ],
    ids=["pandas", "pyarrow", "numpy"],
)
def test_tables_come_in_the_type_of_the_data(given, kind):
    original = given()
    untouched = None if kind is pl.DataFrame else ["region"]
    sweep = sdc.Microdata(original, untouched=untouched).sweep(
        {"mdav": {"k": [3]}}, metrics=["brmae", "linkage"], workers=1
    )
    choice = sweep.recommend({"linkage": 1.0})
    made = choice.release()
    for result in (sweep, choice, made.evaluation):
        assert isinstance(result.to_frame(), kind)
    if kind is not pl.DataFrame:
        assert isinstance(sdc.estimates(original, original, "mean(rent)").to_frame(), kind)


def test_a_choice_has_a_row_for_each_setting():
    found = chosen().to_frame()
    assert found.columns == ["method", "parameters", "brmae", "linkage"]
    assert found.height == 4


def test_errors_on_types_are_one_line(monkeypatch):
    with pytest.raises(ValueError, match=r"unknown kind of dataframe 'panda' \(did you mean 'pandas'\?\)"):
        swept().to_frame("panda")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match=r"^kind='pandas' needs the package pandas; pip install pandas$"):
        swept().to_frame("pandas")
