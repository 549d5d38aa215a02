"""Scenarios on the command line: parsed, measured, printed, and met by what is written."""

import json

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from command import forget_releases, good, run_here
from sdckit.request.words import parse_scenarios, spelled

ROLES = ["--columns", "income,wealth", "--untouched", "sex"]
METHOD = ["--method", "mdav"]


@pytest.fixture
def folder(tmp_path):
    """A folder with a file of two amounts and a code, and a masked one."""
    rng = np.random.default_rng(1)
    amounts = np.exp(rng.normal(size=(120, 2))).round(3)
    data = pl.DataFrame({"income": amounts[:, 0], "wealth": amounts[:, 1], "sex": rng.integers(0, 2, 120)})
    data.write_csv(tmp_path / "data.csv")
    masked = sdc.Microdata(data, columns=["income", "wealth"], untouched="sex").mask("mdav", k=4)
    masked.write_csv(tmp_path / "masked.csv")
    return tmp_path


def test_words_of_a_scenario():
    words = ["press = sex, age : linkage=0.1, dbrl:places=2=0.2", '"quoted"="a:b",c']
    found = parse_scenarios(words)
    assert {name: one | {"known": spelled(one["known"])} for name, one in found.items()} == {
        "press": {"known": ["sex", "age"], "max_risk": {"linkage": "0.1", "dbrl:places=2": "0.2"}},
        '"quoted"': {"known": ["a:b", "c"], "max_risk": {}},
    }


def test_scenarios_are_printed_as_a_table(folder):
    words = ["evaluate", "data.csv", "masked.csv", *ROLES, "--metrics", "linkage", "--made-by", "mdav"]
    words += ["--set", "k=4", "--scenario", "press=income,sex:linkage=0.05", "--scenario", "state=wealth"]
    done = run_here(folder, *words, "--json")
    found = json.loads(done.stdout)
    rows = {row["scenario"]: row for row in found["scenarios"]}
    assert (rows["press"]["known"], rows["press"]["limit"]) == ("income, sex", 0.05)
    assert (rows["state"]["limit"], rows["state"]["met"]) == (None, None)
    assert rows["press"]["met"] == (rows["press"]["value"] <= 0.05)
    assert done.returncode == (0 if rows["press"]["met"] else 1)
    lines = [line.split() for line in run_here(folder, *words).stdout.splitlines()]
    assert ["state", "wealth", "linkage", f"{rows['state']['value']:.4f}", "-", "-"] in lines


def test_the_file_that_is_written_meets_all_scenarios(folder):
    words = ["recommend", "data.csv", *ROLES, *METHOD, "--max-risk", "linkage=0.3", "--json"]
    loose = json.loads(good(folder, *words, "-o", "loose.csv").stdout)
    assert "scenarios" not in loose
    forget_releases()
    words += ["--scenario", "press=income,sex:linkage=0.06", "--report", "tight.html"]
    tight = json.loads(good(folder, *words, "-o", "tight.csv").stdout)
    assert tight["choice"]["limits"] == {"linkage": 0.3, "linkage_sure": 0.03, "linkage (press)": 0.06}
    assert tight["scenarios"][0]["met"] is True
    assert int(tight["choice"]["parameters"]["k"]) > int(loose["choice"]["parameters"]["k"])


def test_no_file_is_written_that_misses_a_scenario(folder):
    words = ["recommend", "data.csv", *ROLES, "--grid", "mdav.k=8", "--max-risk", "linkage=0.3"]
    good(folder, *words, "-o", "plain.csv")
    found = run_here(folder, *words, "-o", "out.csv", "--scenario", "press=income,sex:linkage=0.03")
    assert found.returncode == 1
    assert "no setting meets linkage of at most 0.3 and " in found.stderr
    assert "linkage (press) of at most 0.03" in found.stderr
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["press"], "--scenario 'press' has no name or no columns; write NAME=COLUMNS:RISK=LIMIT, such as"),
        (["press=:linkage=0.1"], "scenario 'press' has no columns; name those that its intruder knows"),
        (["press=sex", "press=income"], "--scenario gives 'press' twice; give it once"),
        (["press=ages"], "unknown column of scenario 'press' 'ages'; choose from: income, wealth, sex"),
        (["press=sex:linkages=0.1"], "scenario 'press': unknown metric 'linkages' (did you mean 'linkage'?)"),
        (["press=sex:linkage=2"], "scenario 'press': the limit of linkage is '2'; give a share from 0 to 1"),
        (["press=sex:linkage"], "has a limit without a name or a number; write NAME=COLUMNS:RISK=LIMIT"),
        (["press=wealth"], "column 'wealth' of scenario 'press' is dropped, which is not published as it is"),
    ],
)
def test_bad_scenarios_get_one_line(folder, words, text):
    given = [word for one in words for word in ("--scenario", one)]
    roles = ["--columns", "income", "--untouched", "sex", "--drop", "wealth"]
    pl.read_csv(folder / "masked.csv").drop("wealth").write_csv(folder / "less.csv")
    found = run_here(folder, "evaluate", "data.csv", "less.csv", *roles, *given)
    assert found.returncode == 2
    assert text in found.stderr
    assert len(found.stderr.splitlines()) == 1


def test_scenarios_are_for_one_file(folder):
    (folder / "other.csv").write_text((folder / "masked.csv").read_text())
    words = ["evaluate", "data.csv", "masked.csv", "other.csv", *ROLES, "--scenario", "press=sex"]
    assert "--scenario is for one masked file and there are 2" in run_here(folder, *words).stderr
