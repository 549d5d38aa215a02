"""Exposed records and the default limit on sure links, in what the commands print."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

from command import good, run_here

LIMIT = ["--max-risk", "linkage=0.3"]
NOISE = ["--grid", "noise.percent=10:200:10", "--workers", "1", "--replications", "1"]
MDAV = ["--grid", "mdav.k=2:12", "--workers", "1"]
DEFAULT = "default: a tenth of the limit on linkage"


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(11)
    pl.DataFrame({name: rng.lognormal(5, 0.7, 120).round(1) for name in "abc"}).write_csv(
        tmp_path / "data.csv"
    )
    return tmp_path


def lines(done):
    return done.stdout.splitlines()


def masked(folder, *words):
    return good(folder, "mask", "data.csv", "--method", "noise", "--set", "percent=10", "-o", "m.csv", *words)


def recommended(folder, *words):
    return good(folder, "recommend", "data.csv", "-o", "r.csv", "--private", "p", *words)


def test_the_first_line_has_the_numbers_that_json_has(folder):
    first = lines(masked(folder))[0]
    words = ["evaluate", "data.csv", "m.csv", "--made-by", "noise", "--set", "percent=10"]
    found = json.loads(good(folder, *words, "--json").stdout)
    assert found["exposed"] > found["exposed_above_90"] > 0
    assert found["exposed"] == found["parts"]["linkage_sure"]["exposed"]
    rows = {row["metric"]: row["value"] for row in found["table"] if row["variable"] == "all"}
    assert rows["linkage_sure"] == found["exposed"] / 120
    begin = f"{found['exposed']} of 120 records are exposed"
    end = f"(above 0.9: {found['exposed_above_90']})."
    for line in (first, lines(good(folder, *words))[0]):
        assert line.startswith(begin)
        assert line.endswith(end)


def test_nobody_is_exposed_among_the_identical_records_of_groups(folder):
    done = good(folder, "mask", "data.csv", "--method", "mdav", "--set", "k=5", "-o", "m.csv")
    assert lines(done)[0].startswith("No record is exposed")


def test_numbers_are_null_and_no_line_is_printed_where_sure_links_are_not_measured(folder):
    masked(folder)
    words = ["evaluate", "data.csv", "m.csv", "--metrics", "brmae,linkage"]
    found = json.loads(good(folder, *words, "--json").stdout)
    assert (found["exposed"], found["exposed_above_90"]) == (None, None)
    assert "exposed" not in good(folder, *words).stdout


@pytest.mark.long
def test_each_of_several_files_has_its_numbers(folder):
    masked(folder)
    good(folder, "mask", "data.csv", "--method", "mdav", "--set", "k=5", "-o", "g.csv")
    words = ["evaluate", "data.csv", "m.csv", "g.csv", "--metrics", "linkage_sure"]
    found = json.loads(good(folder, *words, "--json").stdout)["files"]
    assert found["m.csv"]["exposed"] > 0
    assert found["g.csv"]["exposed"] == 0
    first, second = lines(good(folder, *words))[:2]
    assert first.startswith(f"m.csv: {found['m.csv']['exposed']} of 120")
    assert second.startswith("g.csv: No record is exposed")


def test_records_have_the_probability_of_the_truth(folder):
    masked(folder)
    words = ["evaluate", "data.csv", "m.csv", "--metrics", "linkage_sure", "--records", "records.csv"]
    found = json.loads(good(folder, *words, "--json").stdout)
    posterior = pl.read_csv(folder / "records.csv")["linkage_sure"].to_numpy()
    assert posterior.size == 120
    assert 0 <= posterior.min() < posterior.max() <= 1
    assert (posterior > 0.5).sum() == found["exposed"]
    assert (posterior > 0.9).sum() == found["exposed_above_90"]


def test_recommend_meets_the_default_limit_and_says_that_it_is_one(folder):
    found = lines(recommended(folder, *LIMIT, *MDAV))
    assert "linkage_sure" in found[0]
    assert "(limit 0.03)" in found[0]
    assert found[1].startswith("No record is exposed")
    assert any("linkage_sure" in line and DEFAULT in line for line in found[:4])
    checked = lines(good(folder, "check", "r.csv", "--private", "p"))
    assert [line for line in checked if "linkage_sure" in line and f"limit 0.03 ({DEFAULT}) met" in line]


@pytest.mark.long
def test_a_limit_that_is_set_replaces_the_default_and_one_lets_all_pass(folder):
    given = {}
    for limit in ("0.1", "1"):
        words = ["--max-risk", "linkage=0.6", "--max-risk", f"linkage_sure={limit}", *NOISE]
        given[limit] = json.loads(recommended(folder, *words, "--overwrite", "--json").stdout)
        shutil.rmtree(folder / "p")  # the second release is not to be judged together with the first
        choice = given[limit]["choice"]
        assert choice["limits"] == {"linkage": 0.6, "linkage_sure": float(limit)}
        assert choice["default_limits"] == []
        assert not any(DEFAULT in sentence for sentence in choice["sentences"])
    strict, free = given["0.1"], given["1"]
    assert strict["exposed"] <= 12 < free["exposed"]
    assert strict["choice"]["parameters"]["percent"] > free["choice"]["parameters"]["percent"]


@pytest.mark.parametrize("grid", [MDAV, []])
def test_a_miss_names_the_default_limit_and_json_has_it(folder, grid):
    words = ["recommend", "data.csv", "-o", "r.csv", "--max-risk", "linkage=0.01", "--json", *MDAV]
    words += [] if grid else ["--untouched", "c"]  # which alone tells every record
    done = run_here(folder, *words)
    assert done.returncode == 1
    assert not (folder / "r.csv").exists()
    choice = json.loads(done.stdout)["choice"]
    assert choice["limits"] == {"linkage": 0.01, "linkage_sure": 0.001}
    assert choice["default_limits"] == ["linkage_sure"]
    assert (DEFAULT in done.stderr) == bool(grid)
