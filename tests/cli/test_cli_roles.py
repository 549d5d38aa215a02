"""Roles of columns on the command line and in plans; warnings of undecided columns and of doubtful files."""

import json
import re

import numpy as np
import polars as pl
import pytest

from command import good, put, run_here

N = 60
VARIABLES = ["income", "debt, total", "savings"]
OPTIONS = ["--columns", 'income,"debt, total"', "--columns", "savings"]


def survey():
    """Sixty persons: a key, a household, codes, text that is nearly unique, weights and three variables."""
    rng = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "id": [f"r{i:02d}" for i in range(N)],
            " hhid": [f"h{i // 3}" for i in range(N)],
            "sex": rng.integers(1, 3, N),
            "street": [f"{i} High Street" for i in range(N)],
            "region": ["north", "south", "west"] * (N // 3),
            "w": rng.integers(2, 9, N) / 2,
            **{name: rng.lognormal(5, 1, N).round(1) for name in VARIABLES},
        }
    )


@pytest.fixture
def folder(tmp_path):
    put(tmp_path, "data.csv", survey().write_csv())
    masked = survey().with_columns(pl.col(*VARIABLES) * 2)
    put(tmp_path, "masked.csv", masked.write_csv())
    return tmp_path


def warned(done):
    """The warnings that a command printed."""
    return [line for line in done.stderr.splitlines() if line.startswith("warning: ")]


def mask(*words):
    return ["mask", "data.csv", "-o", "out.csv", "--method", "mdav", "--overwrite", *words]


# --- undecided columns ---

UNDECIDED = (
    "warning: not masked, and the role is undecided, of 3 columns: 'id' looks like .*, "
    "'sex' looks like a code .*, 'street' looks like text .*; "
    "settle each with --untouched, --columns, --drop, --recode, --unknown, --key or --unit$"
)


@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_plain_masking_and_sweeps_warn_of_undecided_columns(folder, quiet):

    sweep = ["sweep", "data.csv", "-o", "swept", "--grid", "mdav.k=3", "--metrics", "mae"]
    for words in (mask("--unit", " hhid", *quiet), [*sweep, "--unit", " hhid", *quiet]):
        done = good(folder, *words)
        assert len(warned(done)) == 1
        assert re.match(UNDECIDED, warned(done)[0])


def test_decided_columns_raise_no_warning(folder):
    settled = [
        *("--key", "id", "--unit", " hhid", "--untouched", "sex,region"),
        *("--untouched", "w", "--drop", "street"),
    ]
    done = good(folder, *mask(*settled, *OPTIONS))
    assert warned(done) == []
    assert "masked: income, debt, total, savings" in done.stdout


def test_repeated_options_add_up_and_names_are_those_of_the_file(folder):
    roles = ["--untouched", "sex", "--untouched", "region,id", "--unknown", "street", "--unknown", "w, hhid"]
    given = [*roles, "--known", "sex", "--known", '"debt, total",region', "--confidential", "income"]
    assert warned(good(folder, *mask(*given, *OPTIONS))) == []


def test_evaluate_warns_of_undecided_columns_of_the_masked_file(folder):
    words = ["evaluate", "data.csv", "masked.csv", "--unit", " hhid", "--unknown", "w", *OPTIONS, "-q"]
    (line,) = warned(good(folder, *words))
    assert line.startswith("warning: not masked, and the role is undecided, of 3 columns: 'id'")
    assert line.endswith(
        "settle each with --untouched, --columns, --unknown, --key or --unit, or publish it not at all"
    )
    fewer = survey().with_columns(pl.col(*VARIABLES) * 2).drop("sex", "street", "id")
    put(folder, "masked.csv", fewer.write_csv())
    assert warned(good(folder, *words)) == []


def test_a_long_list_of_unmasked_columns_is_whole(tmp_path):
    names = [f"text{i:02d}" for i in range(25)]
    data = survey().select("income", "savings", *(pl.lit("x").alias(name) for name in names))
    put(tmp_path, "data.csv", data.write_csv())
    done = good(tmp_path, *mask())
    assert all(name in done.stdout for name in names)
    codes = data.select("income", "savings", *((pl.arange(N) % 2 + 1).alias(name) for name in names))
    put(tmp_path, "data.csv", codes.write_csv())
    (line,) = warned(good(tmp_path, *mask()))
    assert all(f"'{name}' looks like a code" in line for name in (names[0], names[-1]))


# --- doubtful files ---

ROLES = ["--untouched", "id,sex,street,w", "--unit", " hhid", "--metrics", "mae", "-q"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda _: survey(), "the masked file is identical to the original in every compared column; mask"),
        (
            lambda frame: frame.with_columns(survey()["income"]),
            "more than half of the cells are as in the original: 'income'; mask more strongly",
        ),
        (
            lambda frame: frame.with_columns(before=survey()["savings"]),
            "the masked file has columns with original values: 'before' repeats 'savings'; drop them",
        ),
        (
            lambda frame: frame.reverse(),
            "the values of 'id', 'street' are unique, the same in both files and in another order, and",
        ),
    ],
)
def test_evaluate_warns_of_doubtful_files_also_when_quiet(folder, change, text):
    masked = survey().with_columns(pl.col(*VARIABLES) * 2)
    put(folder, "doubtful.csv", change(masked).write_csv())
    (line,) = warned(good(folder, "evaluate", "data.csv", "doubtful.csv", *ROLES))
    assert line.startswith(f"warning: {text}")
    several = warned(good(folder, "evaluate", "data.csv", "masked.csv", "doubtful.csv", *ROLES))
    assert [line.startswith(f"warning: 'doubtful.csv': {text}") for line in several] == [True]


def test_a_file_in_another_order_is_told_to_use_a_key(folder):
    put(folder, "turned.csv", survey().with_columns(pl.col(*VARIABLES) * 2).reverse().write_csv())
    (line,) = warned(good(folder, "evaluate", "data.csv", "turned.csv", *ROLES))
    assert line.endswith("; name it as --key")
    roles = ["--key", "id", "--untouched", "sex,street,w", "--unit", " hhid", "--metrics", "mae", "--json"]
    done = good(folder, "evaluate", "data.csv", "turned.csv", *roles)
    assert warned(done) == []
    assert json.loads(done.stdout)["table"]


# --- plans ---


def test_roles_in_a_plan_are_those_of_the_command_line(folder):
    put(
        folder,
        "plan.toml",
        """
columns = ["income", "debt, total", "savings"]
key = "id"
unit = " hhid"
by = ["region"]
weights = "w"
untouched = ["sex"]
drop = "street"
unknown = ["w"]
known = ["sex", "region", "income"]
confidential = ["savings"]
na = [-9]
metrics = ["brmae", "linkage"]
[mdav]
k = [3, 5]
""",
    )
    given = [
        *OPTIONS,
        *("--key", "id", "--unit", " hhid", "--by", "region"),
        *("--weights", "w", "--untouched", "sex"),
    ]
    given += [
        *("--drop", "street", "--unknown", "w", "--known", "sex,region,income"),
        *("--confidential", "savings"),
    ]
    given += ["--na", "-9", "--metrics", "brmae,linkage", "--grid", "mdav.k=3,5"]
    plan = good(
        folder, "sweep", "data.csv", "-o", "one", "--plan", "plan.toml", "--seed", "1", "--format", "csv"
    )
    words = good(folder, "sweep", "data.csv", "-o", "two", *given, "--seed", "1", "--format", "csv")
    assert warned(plan) == warned(words) == []
    assert (folder / "one/sweep.csv").read_text() == (folder / "two/sweep.csv").read_text()


def test_the_command_line_overrides_a_role_of_the_plan(folder):
    put(folder, "plan.toml", 'drop = ["street"]\nkey = "street"\n[mdav]\nk = 3\n')
    done = run_here(folder, "sweep", "data.csv", "-o", "swept", "--plan", "plan.toml", "--unit", " hhid")
    assert "column 'street' is the key but also dropped" in done.stderr
    settled = ["--key", "id", "--unit", " hhid", "--untouched", "sex", "--metrics", "mae"]
    assert warned(good(folder, "sweep", "data.csv", "-o", "swept", "--plan", "plan.toml", *settled)) == []


# --- what the intruder is assumed to know ---


def test_what_the_intruder_knows_stands_above_the_table_and_in_json(folder):
    words = ["--key", "id", *OPTIONS, "--drop", "street", "--unit", " hhid", "--unknown", "w,sex"]
    done = good(folder, *mask(*words, "--report", "r.html"))
    assert "knows: 4 published columns; not: sex, w." in done.stdout.splitlines()[1]
    assert done.stdout.splitlines()[2] == "Published unmasked: id (key),  hhid (unit), sex, region, w."
    assert "no masking of the others brings linkage below 0.05" in " ".join(done.stdout.split())
    page = " ".join((folder / "r.html").read_text().split())
    assert "Assumes that the intruder knows: 4 published columns; not: sex, w." in page
    assert "<b>Published unmasked:</b> id (key), hhid (unit), sex, region, w." in page
    found = json.loads(good(folder, *mask(*words, "--json")).stdout)["knowledge"]
    assert found["unknown"] == ["sex", "w"]
    assert set(found["known"]) == {*VARIABLES, "region"}
    named = good(folder, *mask(*words[:-2], "--known", "income,region"))
    assert "knows: region, income; not: sex, w, " in named.stdout.splitlines()[1]
    loss = good(folder, "evaluate", "data.csv", "out.csv", *words, "--metrics", "brmae")
    assert "intruder" not in loss.stdout
