"""What ends a command in one line that is short, tells no cell of the data, and says what to do."""

import csv
import gzip
import re

import pandas as pd
import polars as pl
import pytest

import sdckit as sdc
from command import put, put_survey, run_here
from full_disk import full_disk
from sdckit.io import files, memory
from sdckit.io.formats import Dialect
from sdckit.report import charts
from sdckit.request import release

MASK = ["mask", "data.csv", "-o", "out.csv", "--method", "mdav"]
RECORDS = "Zürich,1234.5,77\nBasel,888.5,99\n"


@pytest.mark.parametrize("name", ["*", "^x.*$", "^$"])
def test_a_column_named_like_a_pattern_is_refused_everywhere(tmp_path, name):
    frame = pl.DataFrame({name: [1.5, 2.5, 3.5, 4.5], "x1": [1.0, 3.0, 2.0, 5.0]})
    frame.write_csv(tmp_path / "data.csv")
    frame.write_parquet(tmp_path / "data.parquet")
    for words in (
        MASK,
        ["describe", "data.csv"],
        ["describe", "data.parquet"],
        ["evaluate", "data.parquet", "data.parquet", "--engine", "local"],
    ):
        done = run_here(tmp_path, *words)
        assert done.returncode == 2
        assert repr(name) in done.stderr
        assert "rename it" in done.stderr
    for data in (frame, frame.to_pandas(), frame.to_arrow(), pd.Series([1.0, 2.0], name=name)):
        with pytest.raises(ValueError, match="rename it"):
            sdc.brmae(data, data)


def test_a_surprise_is_one_line_without_its_text_and_an_exit_code_of_its_own(tmp_path, monkeypatch):
    put_survey(tmp_path)

    def fail(*_):
        raise KeyError("a cell")

    monkeypatch.setattr(release, "read_data", fail)
    done = run_here(tmp_path, *MASK)
    assert done.returncode == 70
    (line,) = done.stderr.splitlines()
    assert line.startswith("internal error: KeyError at sdckit/request/release.py:")
    assert "a cell" not in line
    with pytest.raises(KeyError, match="a cell"):
        run_here(tmp_path, *MASK, SDCKIT_TRACEBACK="1")


@pytest.mark.parametrize(
    "text", [RECORDS, RECORDS.replace(",", ";"), "5,3\n4,4\n", "2.5\n5\n", "2,2,x\n2,3,x\n"]
)
def test_a_file_without_names_is_refused_without_telling_its_first_record(tmp_path, text):
    put(tmp_path, "data.csv", text)
    done = run_here(tmp_path, *MASK)
    assert done.returncode == 2
    assert "add a first line with the names" in done.stderr
    assert not any(cell in done.stderr for cell in ("Zürich", "1234.5", "77"))


def test_years_may_be_names(tmp_path):
    pl.DataFrame({"2001": [1.5, 2.5, 3.5, 4.5], "2002": [1.0, 3.0, 2.0, 5.0]}).write_csv(
        tmp_path / "data.csv"
    )
    assert run_here(tmp_path, *MASK, "--set", "k=2").returncode == 0


def test_a_long_error_is_cut_and_keeps_what_to_do(tmp_path):
    put(tmp_path, "data.csv", ",".join(["x" * 100_000] * 2) + "\n1,2\n3,4\n")
    done = run_here(tmp_path, *MASK)
    assert done.returncode == 2
    assert len(done.stderr) < 1_100
    assert done.stderr.endswith("rename one of them\n")


def test_a_sweep_writes_all_of_its_files_or_none(tmp_path, monkeypatch):
    put_survey(tmp_path)
    words = [
        *("sweep", "data.csv", "-o", "out", "--grid", "mdav.k=3:4"),
        *("--columns", "income,age", "--workers", "1"),
    ]
    monkeypatch.setattr(charts, "svg", lambda _: "x" * 3 * 2**20)
    with full_disk(2**20):  # takes the tables, and not the chart
        done = run_here(tmp_path, *words, "--metrics", "brmae")
    assert done.returncode == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["private"]
    monkeypatch.undo()
    assert run_here(tmp_path, *words, "--metrics", "brmae").returncode == 0
    assert len(list((tmp_path / "out").iterdir())) == 4


@pytest.mark.parametrize(
    ("cell", "warned"), [("=1+A1", 1), ("@SUM(A1)", 1), ("-2+cmd|x", 1), ("-5.5", 0), ("-", 0)]
)
def test_a_release_with_formulas_in_its_text_is_warned_of(tmp_path, cell, warned):
    frame = put_survey(tmp_path)
    grades = [cell if i < 3 else "x" for i in range(60)]
    frame.with_columns(grade=pl.Series(grades)).write_csv(tmp_path / "data.csv")
    roles = ["--key", "id", "--drop", "weight", "--untouched", "grade,region", "--private", "record"]
    done = run_here(tmp_path, *MASK, "--release", *roles)
    assert done.returncode == 0
    assert ("formulas by spreadsheet programs: 3 of 'grade'" in done.stderr) == bool(warned)
    assert cell not in done.stderr.replace("=, +, - or @", "") or not warned
    words = ["mask", "data.csv", "-o", "out.parquet", "--method", "mdav"]
    done = run_here(tmp_path, *words, "--release", *roles)
    assert "formulas" not in done.stderr


def test_formulas_are_escaped_on_request_and_read_again(tmp_path):
    texts = [
        "=1+1",
        "+cmd|x",
        "-a",
        "@b",
        " =c",
        "-5.5",
        "plain",
        "'quoted",
        None,
        "=\n1+cmd|x",
        "-\n=1",
    ]
    frame = put_survey(tmp_path).with_columns(grade=pl.Series([texts[i % 11] for i in range(60)]))
    frame = frame.rename({"grade": "=grade"})
    frame.write_csv(tmp_path / "data.csv")
    roles = ["--key", "id", "--drop", "weight", "--untouched", "=grade,region", "--private", "record"]
    words = ["--release", *roles, "--escape-formulas", "--crosswalk", "order.csv"]
    done = run_here(tmp_path, *MASK, *words)
    assert done.returncode == 0, done.stderr
    assert "spreadsheet" not in done.stderr
    with (tmp_path / "out.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if re.match(r"\s*[=@]|[+-].*[a-z]", cell)]
    assert {
        "'+cmd|x",
        "'-a",
        "'@b",
        "' =c",
        "-5.5",
        "plain",
        "'quoted",
        "'=grade",
        "'=\n1+cmd|x",
        "'-\n=1",
    } <= set(cells)
    read = files.read(tmp_path / "out.csv", Dialect(escape_formulas=True)).frame
    order = pl.read_csv(tmp_path / "order.csv")["original_row"] - 1
    assert read["=grade"].to_list() == frame["=grade"][order].to_list()
    odd = pl.DataFrame({"=a": ["=x", "'=x", "''=x", "'x"], "'=a": ["1", "2", "3", "4"]})
    with files.write_draft(tmp_path / "odd.csv", odd, dialect=Dialect(escape_formulas=True), overwrite=True):
        pass
    found = files.read(tmp_path / "odd.csv", Dialect(escape_formulas=True)).frame
    assert found.columns == odd.columns
    assert found["=a"].to_list() == odd["=a"].to_list()


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "parts"])
def test_a_file_that_does_not_fit_into_memory_is_refused_before_it_is_parsed(tmp_path, monkeypatch, name):
    frame = pl.concat([put_survey(tmp_path)] * 50)
    put(tmp_path, "parts/.keep", "")
    frame.write_parquet(tmp_path / "parts" / "a.parquet")
    put(tmp_path, "data.csv", frame.write_csv())
    put(tmp_path, "data.csv.gz", gzip.compress(frame.write_csv().encode()))
    monkeypatch.setattr(memory, "memory_at_hand", lambda: 150_000)  # more than the bytes of the files
    monkeypatch.setattr(files, "parse_csv", lambda *_: pytest.fail("parsed"))
    done = run_here(tmp_path, "mask", name, "-o", "out.csv", "--method", "mdav", "--engine", "memory")
    assert done.returncode == 2
    assert "of memory and 150 kB are free; " in done.stderr
