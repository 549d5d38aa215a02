"""The script of a job: it compiles whatever columns are called, and chooses and publishes as the command."""

import ast
import json
import subprocess
import sys

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdckit as sdc
from command import environment, good
from sdckit.request.options import job_options
from sdckit.request.python_text import ONLY_COMMAND, python_text
from sdckit.request.toml import check_job, toml_text

JOB = {
    "command": "recommend",
    "input": {"data": "firms.csv", "delimiter": ";", "na": [-9, "NA"]},
    "roles": {
        "columns": ["domestic_sales", "export_sales", "turnover", "wages"],
        "key": ["firm"],
        "untouched": ["sector"],
        "weights": "weight",
        "unknown": ["weight"],
        "drop": ["code"],
    },
    "rules": {"rule": ["turnover = domestic_sales + export_sales"]},
    "scenario": [{"name": "press", "known": ["turnover", "sector"], "max_risk": {"linkage": 0.6}}],
    "search": {
        "max_risk": {"linkage": 0.6, "linkage_sure": 0.2},
        "grid": {"mdav": {"k": "7:9"}, "noise": {"percent": [10, 20]}},
        "replications": 2,
        "workers": 1,
    },
    "output": {"output": "out.csv", "numbered": "nr", "report": "r.html"},
    "private": {"folder": "runs", "private": "record"},
}
PUBLISHED = ["firm", "sector", "weight", *JOB["roles"]["columns"]]
NAMES = st.text(min_size=1, max_size=8)


def call_of(text, name):
    """The arguments of the first call of a function in a script, by name, as far as they are plain values."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    (found,) = [node for node in calls if ast.unparse(node.func) == name]
    plain = [word for word in found.keywords if word.arg != "intruders"]
    return {word.arg: ast.literal_eval(word.value) for word in plain}


@pytest.mark.long
@given(st.lists(NAMES, min_size=1, max_size=12, unique=True), NAMES)
@settings(deadline=None, max_examples=40)
def test_names_stand_in_the_script_as_they_are(columns, path):
    content = JOB | {"roles": {"columns": columns, "weights": columns[0]}, "recode": {columns[0]: 5}}
    content["input"] = {"data": f"{path}.csv"}
    content["output"] = {"output": path, "report": path}
    text = python_text(check_job(content))
    found = call_of(text, "sdc.Microdata")
    assert (found["columns"], found["weights"], found["recode"]) == (columns, columns[0], {columns[0]: 5})
    assert "Dialect" not in text
    assert text.isprintable() or all(line.isprintable() for line in text.split("\n"))


def test_every_key_of_a_job_is_an_argument_of_the_script():
    given_by_kind = {
        "text": "q",
        "path": "q",
        "flag": True,
        "number": 7,
        "name": "q",
        "names": ["q"],
        "texts": ["q"],
        "codes": ["q", 5],
        "limits": {"q": 1},
        "losses": {"q": 1},
        "recodings": {"q": 5},
        "grid": {"q": {"q": 5}},
        "scenarios": [{"name": "q", "known": ["q"]}],
    }
    content = {"command": "recommend", "input": {"data": "a.csv"}, "output": {"output": "b.csv"}}
    content["search"] = {"max_risk": {"linkage": 1}}
    plain = python_text(check_job(content))
    for field in job_options("recommend"):
        value = given_by_kind[field.kind]
        entries = value if not field.key else content.get(field.section, {}) | {field.key: value}
        text = python_text(check_job(content | {field.section: entries}))
        assert text != plain, field.path
        if (field.section, field.key) not in ONLY_COMMAND:
            assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(plain)), field.path


def test_the_defaults_of_the_command_are_written_out_where_those_of_the_library_differ():
    content = JOB | {"search": {"max_risk": {"linkage": 0.5}, "methods": ["all"], "grid": {"mdav": {}}}}
    assert call_of(python_text(check_job(JOB)), "data.recommend")["decimals"] == "original"
    text = python_text(check_job(content | {"output": {"output": "o.csv", "decimals": "none"}}))
    assert "plan=dict.fromkeys(sdc.METHODS) | {'mdav': None}," in text
    assert "decimals=None," in text
    with pytest.raises(ValueError, match="a job of mask has no script; give one of recommend"):
        python_text(
            check_job({"input": {"data": "a"}, "masking": {"method": "mdav"}, "output": {"output": "b"}})
        )


@pytest.mark.long
def test_the_script_chooses_what_the_command_chooses(tmp_path):
    sample = sdc.load_sample().select(PUBLISHED).head(200)
    codes = pl.Series("code", [f"00{i % 7}" for i in range(sample.height)])
    sample.with_columns(codes).write_csv(tmp_path / "firms.csv", separator=";")
    (tmp_path / "job.toml").write_text(toml_text(JOB))
    script = python_text(check_job(JOB)) + "import json; print(json.dumps(choice.to_dict()))\n"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *_, release, found = done.stdout.splitlines()
    assert release in good(tmp_path, "releases", "--private", "record").stdout
    (tmp_path / "out.csv").rename(tmp_path / "script.csv")
    said = json.loads(good(tmp_path, "run", "job.toml", "--json").stdout)["choice"]
    found = json.loads(found)
    for what in ("method", "parameters", "limits", "minimise", "maskings", "points"):
        assert found[what] == said[what]
    ours, theirs = (
        pl.read_csv(tmp_path / name, separator=mark).columns
        for name, mark in (("script.csv", ","), ("out.csv", ";"))
    )
    assert ours == theirs == [*PUBLISHED[1:], "nr"]
    assert script.split("# The command ")[1] == (
        "writes CSV as the original is written; this script with commas and decimal points.\n"
    )
