"""The benchmark page shows what the files of times hold, and the picture stands alone."""

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl
import pytest

HERE = Path(__file__).parent.parent
PAGE = (HERE / "docs" / "benchmarks.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("make_benchmarks", HERE / "tools" / "make_benchmarks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_written_from_the_times(tool):
    table = tool.times()
    assert tool.page(PAGE, table) == PAGE
    assert tool.comparison(table) in PAGE
    twice = table.with_columns(cpu_min_s=pl.col("cpu_min_s") * pl.when(whose="sdckit").then(2).otherwise(1))
    assert tool.page(PAGE, twice) != PAGE


def test_ratios_are_those_of_both_files(tool):
    ours = pl.read_csv(HERE / "benchmarks" / "growth.csv").filter(function="mdav_k3", n=20_000, p=13)
    theirs = pl.read_csv(HERE / "benchmarks" / "sdcmicro.csv", infer_schema_length=None)
    theirs = theirs.filter(function="mdav_k3", n=20_000, p=13)
    (row,) = [
        row
        for row in tool.paired(tool.times())
        if (row["function"], row["n"], row["p"]) == ("mdav_k3", 20_000, 13)
    ]
    assert row["ratio"] == theirs["cpu_min_s"].item() / ours["cpu_min_s"].item()
    assert "| mdav, k=3 | `mdav_k3` | 20,000 | 13 |" in PAGE


def test_the_machine_of_our_times_is_named_on_the_page():
    (machine,) = pl.read_csv(HERE / "benchmarks" / "growth.csv")["machine"].unique()
    for word in machine.split(", "):
        assert word in PAGE


def test_the_picture_stands_alone():
    text = (HERE / "docs" / "benchmarks" / "growth.svg").read_text(encoding="utf-8")
    assert "](benchmarks/growth.svg)" in PAGE
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    titles = {element.text for element in ET.fromstring(text).iter() if element.tag.endswith("text")}  # noqa: S314 - our own file
    assert {"mdav, k=3", "records", "CPU seconds"} <= titles
