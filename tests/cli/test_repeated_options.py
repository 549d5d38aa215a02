"""Options that are given more than once: names add up, single values are refused."""

import json

import numpy as np
import polars as pl
import pytest

from command import contents, good, put, put_survey, run_here, said
from sdckit.request.words import parse_names, spelled
from secret_bytes import drawn_from

pytestmark = pytest.mark.usefixtures("survey")
WORDS = {
    "mask": ["mask", "data.csv", "-o", "out.csv", "--method", "mdav"],
    "evaluate": ["evaluate", "data.csv", "masked.csv"],
    "sweep": ["sweep", "data.csv", "-o", "out", "--grid", "mdav.k=3", "--format", "csv"],
    "recommend": [
        *("recommend", "data.csv", "-o", "out.csv", "--grid", "mdav.k=2:4", "--max-risk", "linkage=1"),
        *("--max-risk", "linkage_sure=1"),
        *("--drop", "id,grade", "--unknown", "region,weight,rooms"),
    ],
}
SPELLINGS = {  # of two names, as one list and as repeated options
    "repeated": lambda option, one, other: [option, one, option, other],
    "mixed": lambda option, one, other: [option, f"{one},{other}", option, one],
    "list": lambda option, one, other: [option, f"{one},{other}"],
}


@pytest.fixture
def survey(tmp_path):
    frame = put_survey(tmp_path)
    masked = frame.with_columns(pl.col("income").reverse(), pl.col("age").shift(1).fill_null(20))
    put(tmp_path, "masked.csv", masked.write_csv())
    return frame


def measured(folder, command, done):
    """The table that a command printed or left."""
    if command == "sweep":
        return pl.read_csv(folder / "out/sweep.csv")
    return pl.DataFrame(json.loads(done.stdout)["table"], infer_schema_length=None)


def answer(folder, command, *more):
    """What a command measures with these options; its output is removed, for the next answer."""
    form = ["--variables"] if command == "sweep" else ["--json"]
    with drawn_from(1):
        done = good(folder, *WORDS[command], *form, *more)
    table = measured(folder, command, done)
    for path in sorted(folder.glob("out*/**/*"), reverse=True) + sorted(folder.glob("out*")):
        path.rmdir() if path.is_dir() else path.unlink()
    return table


@pytest.mark.parametrize(
    ("command", "spelling"), [("mask", "repeated"), ("evaluate", "mixed"), ("sweep", "repeated")]
)
def test_columns_add_up(tmp_path, command, spelling):
    options = SPELLINGS[spelling]("--columns", "income", "age")
    table = answer(tmp_path, command, *options)
    assert table["variable"].unique(maintain_order=True).to_list() == ["all", "income", "age"]
    assert table.equals(answer(tmp_path, command, *SPELLINGS["list"]("--columns", "income", "age")))


@pytest.mark.parametrize("command", WORDS)
def test_several_keys_identify_records_together(tmp_path, survey, command):
    both = survey.with_columns(person=np.arange(60) % 2, house=np.arange(60) // 2)
    put(tmp_path, "data.csv", both.write_csv())
    shuffled = both.sample(fraction=1, shuffle=True, seed=3) if command == "evaluate" else both
    put(tmp_path, "masked.csv", shuffled.write_csv())
    keys = SPELLINGS["repeated"]("--key", "person", "house")
    table = answer(tmp_path, command, *keys, "--weights", "weight")
    assert not {"person", "house"} & set(table["variable"])
    whole = table.filter((pl.col("metric") == "brmae") & (pl.col("variable") == "all"))
    assert command != "evaluate" or whole["value"].to_list() == [0.0]  # the shuffled records were found again


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("mask", ["--seed", "1"]),
        ("mask", ["-o", "other.csv"]),
        ("evaluate", ["--window", "0.1"]),
        ("sweep", ["--replications", "2"]),
        ("recommend", ["--weights", "weight"]),
    ],
)
def test_a_second_value_of_an_option_that_takes_one_is_refused(tmp_path, command, option):
    before = contents(tmp_path)
    again = [] if option[0] in WORDS[command] else option
    done = run_here(tmp_path, *WORDS[command], *option, *again)
    assert done.returncode == 2
    name = "--output" if option[0] == "-o" else option[0]
    assert said(done) == (f"error: {name} is given twice and takes one value; see sdckit {command} --help\n")
    assert contents(tmp_path) == before


def test_names_keep_their_commas_and_blanks_over_repeated_options():
    assert parse_names(()) == []
    assert parse_names(["a,b", "c"]) == ["a", "b", "c"]
    assert parse_names(['"a,b", c', "c", " d "]) == ["a,b", "c", "d"]
    assert spelled([" d ", "d"], [" d "]) == [" d ", "d"]


def test_data_sets_and_formats_of_the_study_add_up():
    from sdckit.cli import sdckit

    words = ["-o", "p", "--formats", "svg", "--formats", "pdf,png"]
    context = sdckit.commands["paper"].make_context("paper", words, **sdckit.context_settings)
    assert parse_names(context.params["formats"]) == ["svg", "pdf", "png"]
    assert parse_names(context.params["data"]) == ["tarragona", "census"]


def test_metrics_of_the_command_line_outweigh_those_of_the_plan(tmp_path):
    put(tmp_path, "plan.toml", 'metrics = ["brmae", "linkage"]\n[mdav]\nk = [3]\n')
    words = ["sweep", "data.csv", "-o", "out", "--plan", "plan.toml", "--format", "csv", "--columns", "age"]
    for more, expected in (([], ["brmae", "linkage"]), (["--metrics", "brmse"], ["brmse"])):
        good(tmp_path, *words, *more, "--overwrite")
        table = pl.read_csv(tmp_path / "out/sweep.csv")
        assert table["metric"].unique(maintain_order=True).to_list() == expected
