"""Public names: one list, both families, earlier names, and types that tools can read."""

import inspect
import os
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from cases import each

HERE = Path(__file__).parents[2]
FUNCTIONS = [name for name in dir(sdc) if callable(getattr(sdc, name))]
X = np.array([[1.0, 5.0], [2.0, 4.0], [3.0, 9.0], [4.0, 1.0]])
Y = X[[1, 0, 3, 2]]
STUBS = {"pandas": "class DataFrame: ...", "pyarrow": "class Table: ..."}  # neither ships types
TYPED = """
from typing import assert_type

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import sdckit as sdc
from sdckit import *

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def same(a: pd.DataFrame, b: pl.DataFrame, c: pa.Table, d: Matrix) -> None:
    assert_type(sdc.evaluate(a, a), sdc.Evaluation)
    assert_type(sdc.Microdata(b, by="x").evaluate(b, metrics="brmae"), sdc.Evaluation)
    assert_type(sdc.Microdata(c).recommend(max_risk={"linkage": 0.1}), sdc.Choice)
    assert_type(sdc.loss.brmae(d, d), float)
    assert_type(sdc.rmae(d, d), float)
    sdc.brmea(d, d)  # type: ignore[attr-defined]
    sdc.Microdata(a, by=3)  # type: ignore[arg-type]


assert_type(brmae([1.0, 2.0], [2.0, 1.0]), float)
VERSION  # type: ignore[name-defined]
"""


@each("name", FUNCTIONS)
def test_type_hints_can_be_read(name):
    value = getattr(sdc, name)
    own = vars(value).items() if inspect.isclass(value) else ()
    public = [getattr(part, "fget", part) for word, part in own if not word.startswith("_")]
    for part in (value, *filter(inspect.isfunction, public)):
        assert isinstance(typing.get_type_hints(part), dict)


def test_importing_all_names_gives_the_public_ones_and_no_others():
    code = "names = set(dir()); from sdckit import *; print(*sorted(set(dir()) - names - {'names'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(set(dir(sdc)) - {"__version__"}) == sorted(sdc.__all__)
    assert {"evaluate", "mask", "METRICS", "brmae", "rmae"} <= set(sdc.__all__)


def test_each_metric_is_in_the_namespace_of_its_family_only():
    for name, metric in sdc.METRICS.items():
        own, other = (sdc.loss, sdc.risk) if metric.family == "loss" else (sdc.risk, sdc.loss)
        assert getattr(own, name) is metric.function
        assert getattr(sdc, name) is metric.function or name == "estimates"  # there, a table of them
        assert name in own.__all__
        assert name not in other.__all__


@pytest.mark.parametrize("name", ["brmea", "__wrapped__", "cli_", "_HOME"])
def test_other_names_are_refused(name):
    with pytest.raises(AttributeError, match=f"module 'sdckit' has no attribute '{name}'"):
        getattr(sdc, name)


@pytest.mark.parametrize(("old", "new"), [("rmae", "rank_mae"), ("rmse", "rank_mse")])
def test_earlier_names_go_on_working(old, new):
    assert getattr(sdc, old) is getattr(sdc.loss, old) is getattr(sdc, new)
    result = sdc.evaluate(X, Y, metrics=[old, f"{old}:ties=first", new])
    assert result.summary["metric"].to_list() == [new, f"{new}:ties=first"]
    assert result[old] == result[new] == getattr(sdc, new)(X, Y) > 0
    assert result[f"{old}:ties=first"] == result[f"{new}:ties=first"]
    found = sdc.sweep(X, {"noise": {"percent": [50, 99]}}, metrics=[old, "dbrl"], rng=1, workers=1)
    assert found.table["metric"].unique(maintain_order=True).to_list() == [new, "dbrl"]
    assert found.recommend({"dbrl": 1.0}, minimise=old).minimise == new
    assert found.frontier(old, "dbrl").equals(found.frontier(new, "dbrl"))
    assert old not in sdc.METRICS


@pytest.mark.long
def test_earlier_names_go_on_working_on_the_command_line(tmp_path):
    for name, values in (("a", X), ("b", Y)):
        pl.DataFrame(values, schema=["u", "v"]).write_csv(tmp_path / f"{name}.csv")
    words = [sys.executable, "-m", "sdckit.cli", "evaluate", "a.csv", "b.csv", "--metrics", "rmae", "--csv"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "rank_mae" in done.stdout
    assert "rmae" not in done.stdout


def test_what_has_no_value_is_not_applicable():
    with pytest.raises(sdc.NotApplicable, match="needs at least 3 variables"):
        sdc.il_correl(X, Y)


@pytest.mark.long
def test_type_checkers_see_what_calls_return(tmp_path):
    for name, text in STUBS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.pyi").write_text(text)
    (tmp_path / "typed.py").write_text(TYPED)
    silent = ["--config-file", "pyproject.toml", "--follow-imports", "silent"]  # the stubs are those of toys
    words = [sys.executable, "-m", "mypy", *silent, str(tmp_path / "typed.py")]
    env = os.environ | {"MYPYPATH": str(tmp_path)}
    done = subprocess.run(words, cwd=HERE, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_names_that_are_gone_say_what_to_use():
    for name, use in {
        "compare": "sdc.estimates",
        "rank_table": "sdc.evaluate",
        "prepare": "sdc.Microdata",
        "Original": "sdc.Microdata",
    }.items():
        assert name not in dir(sdc)
        with pytest.raises(AttributeError, match=f"sdc.{name} is gone: .*{use}"):
            getattr(sdc, name)
