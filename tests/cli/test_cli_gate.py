"""Limits of `evaluate` decide its exit code, and what was measured is printed all the same."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from command import good, run_here

ROLES = ["--columns", "income,wealth", "--untouched", "sex"]
ONE = [
    "evaluate",
    "data.csv",
    "masked.csv",
    *ROLES,
    *("--metrics", "brmae", "--made-by", "mdav", "--set", "k=4"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a file of two amounts and a code, and two masked ones, weak and strong."""
    place = tmp_path_factory.mktemp("gate")
    rng = np.random.default_rng(1)
    amounts = np.exp(rng.normal(size=(120, 2))).round(3)
    data = pl.DataFrame({"income": amounts[:, 0], "wealth": amounts[:, 1], "sex": rng.integers(0, 2, 120)})
    data.write_csv(place / "data.csv")
    data.write_parquet(place / "data.parquet")
    for name, k in (("masked", 4), ("strong", 30)):
        masked = sdc.Microdata(data, columns=["income", "wealth"], untouched="sex").mask("mdav", k=k)
        masked.write_csv(place / f"{name}.csv")
        masked.write_parquet(place / f"{name}.parquet")
    return place


@pytest.fixture(scope="module")
def measured(folder):
    """Values of the weakly masked file by metric."""
    found = json.loads(good(folder, *ONE, "--metrics", "linkage,brmae", "--json").stdout)
    return {row["metric"]: row["value"] for row in found["table"] if row["variable"] == "all"}


def limit(option, metric, value):
    return [option, f"{metric}={value!r}"]


@pytest.mark.parametrize(("risk", "loss"), [(0, 0), (-1e-9, 0), (0, -1e-9), (-1e-9, -1e-9)])
def test_the_exit_code_is_1_exactly_if_a_limit_is_missed(folder, measured, risk, loss):
    words = [*limit("--max-risk", "linkage", measured["linkage"] + risk)]
    words += limit("--max-loss", "brmae", measured["brmae"] + loss)
    done = run_here(folder, *ONE, *words)
    assert done.returncode == (1 if risk or loss else 0)
    lines = [line for line in done.stdout.splitlines() if line.startswith("limit ")]
    assert [line.split()[1:3] for line in lines] == [
        ["missed:" if risk else "met:", "linkage"],
        ["missed:" if loss else "met:", "brmae"],
    ]
    said = [line for line in done.stderr.splitlines() if not line.startswith("warning: rows are paired")]
    assert len(said) == bool(risk or loss)
    assert ("linkage is" in done.stderr, "brmae is" in done.stderr) == (bool(risk), bool(loss))
    assert "0 if" not in done.stderr
    assert "what it means" in done.stdout


def test_json_is_printed_where_limits_are_missed(folder, measured):
    done = run_here(folder, *ONE, "--max-risk", "linkage=0.001", "--max-loss", "ks=0.9", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["version"], found["n"]) == (sdc.__version__, 120)
    assert (found["original"], found["masked"]) == ("data.csv", ["masked.csv"])
    assert {row["metric"] for row in found["table"]} == {"brmae", "linkage", "ks"}
    assert found["limits"][0] == {
        "metric": "linkage",
        "value": measured["linkage"],
        "limit": 0.001,
        "met": False,
    }
    assert found["limits"][1]["met"]


def test_limits_of_scenarios_count(folder):
    words = [*ONE, "--scenario", "press=income:linkage=0.0001", "--scenario", "state=wealth"]
    done = run_here(folder, *words)
    assert done.returncode == 1
    assert "not met: linkage (press) is" in done.stderr
    assert good(folder, *ONE, "--scenario", "state=wealth").stderr == ""


def test_the_upper_end_of_an_interval_counts(folder):
    words = ["--metrics", "linkage", "--sample-queries", "40", "--seed", "1"]
    found = json.loads(good(folder, *ONE, *words, "--max-risk", "linkage=1", "--json").stdout)
    (row,) = (row for row in found["table"] if row["metric"] == "linkage")
    assert found["limits"][0]["value"] == row["ci_high"] > row["value"]
    between = (row["ci_high"] + row["value"]) / 2
    done = run_here(folder, *ONE, *words, *limit("--max-risk", "linkage", between))
    assert done.returncode == 1
    assert "at the upper end of its interval" in done.stderr


def test_each_of_several_files_is_judged(folder, measured):
    words = ["evaluate", "data.csv", "masked.csv", "strong.csv", *ROLES, "--metrics", "brmae"]
    done = run_here(folder, *words, *limit("--max-loss", "brmae", measured["brmae"]), "--json")
    assert done.returncode == 1
    assert [(row["file"], row["met"]) for row in json.loads(done.stdout)["limits"]] == [
        ("masked.csv", True),
        ("strong.csv", False),
    ]
    assert "not met: strong.csv: brmae is" in done.stderr


def test_releases_together_are_judged(folder):
    words = ["evaluate", "data.csv", "masked.csv", "strong.csv", *ROLES, "--together"]
    done = run_here(folder, *words, "--max-risk", "linkage=0.01")
    assert done.returncode == 1
    assert "limit missed: linkage is" in done.stdout
    done = run_here(folder, *words, "--max-loss", "brmae=0.1")
    assert done.returncode == 2
    assert "several releases together have a linkage only" in done.stderr


def test_limits_hold_on_engines(folder, measured):
    words = ["evaluate", "data.parquet", "masked.parquet", "--engine", "local", "--columns", "income,wealth"]
    for shift, code in ((0.01, 0), (-0.01, 1)):
        done = run_here(folder, *words, *limit("--max-loss", "brmae", measured["brmae"] + shift), "--json")
        assert done.returncode == code, done.stderr
        found = json.loads(done.stdout)
        assert (found["n"], found["limits"][0]["met"]) == (120, code == 0)


def test_a_loss_that_one_record_dominates_is_judged_and_not_shown(tmp_path):
    data = pl.DataFrame({"a": [*range(1, 20), 10_000]})
    data.write_csv(tmp_path / "data.csv")
    sdc.mask(data, "mdav", k=3).write_csv(tmp_path / "masked.csv")
    words = ["evaluate", "data.csv", "masked.csv", "--metrics", "mse", "--max-loss", "mse=1", "--json"]
    done = run_here(tmp_path, *words)
    assert done.returncode == 1
    assert json.loads(done.stdout)["limits"] == [{"metric": "mse", "value": None, "limit": 1, "met": False}]
    assert "mse is withheld, above 1" in done.stderr
    assert json.loads(run_here(tmp_path, *words, "--private-output").stdout)["limits"][0]["value"] > 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--max-risk", "linkages=0.1"], "unknown metric 'linkages' (did you mean 'linkage'?)"),
        (["--max-risk", "brmae=0.1"], "'brmae' is a loss; limit a risk"),
        (["--max-loss", "linkage=0.1"], "'linkage' is a risk"),
        (["--max-loss", "brmae"], "--max-loss 'brmae' has no name or no value"),
        (["--max-risk", "linkage=2"], "the limit of linkage is '2'; give a share from 0 to 1"),
    ],
)
def test_wrong_limits_get_one_line_before_any_work(folder, words, text):
    done = run_here(folder, "evaluate", "nothing.csv", "masked.csv", *words)
    assert done.returncode == 2
    assert text in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "method", "tried"),
    [
        (["--grid", "mdav.k=2:3", "--columns", "income,wealth", "--drop", "sex"], "mdav", 1),
        (["--columns", "wealth", "--untouched", "sex,income"], None, 0),
    ],
)
def test_the_nearest_miss_of_a_search_is_printed_as_json(folder, words, method, tried):
    words = ["recommend", "data.csv", "-o", "out.csv", *words, "--max-risk", "linkage=0.01", "--json"]
    done = run_here(folder, *words)
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["n"], found["masked"], found["choice"]["met"]) == (120, [], False)
    assert (found["choice"]["method"], found["choice"]["maskings"]) == (method, tried)
    assert found["choice"]["limits"] == {"linkage": 0.01, "linkage_sure": 0.001}
    assert found["choice"]["reason"] in done.stderr
    assert not (folder / "out.csv").exists()


def test_a_shuffled_file_without_key_and_crosswalk_is_not_called_safe_in_silence(folder, tmp_path):
    """The gate cannot know the order of the rows, and must say that it takes the original one."""
    data = pl.read_csv(folder / "data.csv")
    data.write_csv(tmp_path / "data.csv")
    data.sample(fraction=1, shuffle=True, seed=1).write_csv(tmp_path / "open.csv")
    words = ["evaluate", "data.csv", "open.csv", "--columns", "income,wealth", "--unknown", "sex", "-q"]
    assert "paired by their order" not in good(tmp_path, *words, "--max-loss", "suppressed=0").stderr
    for limits in (["--max-risk", "dbrl=0.2"], ["--scenario", "press=income:linkage=0.2"]):
        assert "warning: rows are paired by their order" in good(tmp_path, *words, *limits).stderr


@pytest.mark.long
def test_no_limit_is_judged_where_unmasked_columns_show_that_rows_do_not_correspond(folder, tmp_path):
    data = pl.read_csv(folder / "data.csv").with_row_index("row").with_columns(pl.col("row") // 2)
    data.write_csv(tmp_path / "data.csv")
    data.sample(fraction=1, shuffle=True, seed=1).write_csv(tmp_path / "open.csv")
    words = ["evaluate", "data.csv", "open.csv", "--columns", "income,wealth", "--untouched", "row"]
    assert good(tmp_path, *words, "-q").returncode == 0
    shutil.copy(tmp_path / "open.csv", tmp_path / "copy.csv")
    for files in ([], ["copy.csv"], ["copy.csv", "--together"]):
        done = run_here(tmp_path, *words[:3], *files, *words[3:], "--max-risk", "linkage=0.9", "-q")
        assert done.returncode == 2
        assert "most rows differ from the original in row" in done.stderr
    done = run_here(tmp_path, *words, "--scenario", "press=income,row:linkage=0.9", "-q")
    assert done.returncode == 2
    assert "most rows differ from the original in row" in done.stderr
