"""The command `sweep` on good input: what it prints, what it leaves in its folder, what never leaves it."""

import json
import re
import stat
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sdckit as sdc
from command import contents, good, put, put_survey, run_here
from sdckit.selection.task import Task
from sweeps import frame, swept

pytestmark = pytest.mark.usefixtures("survey")

ROLES = ["--key", "id", "--weights", "weight", "--by", "region"]
SMALL = ["--grid", "mdav.k=2:4", "--grid", "noise.percent=10,50", "--columns", "income,age", "--workers", "1"]
SMALL += ["--key", "id"]
SEED = 918273645


def sweep(folder, *words, output="out"):
    return good(folder, "sweep", "data.csv", "-o", output, *words)


@pytest.fixture
def survey(tmp_path):
    return put_survey(tmp_path)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_sweep_leaves_table_summary_picture_and_a_private_folder(tmp_path, survey):
    done = sweep(tmp_path, *SMALL, "--replications", "3", "--seed", "5")
    assert done.stderr == ""
    assert done.stdout.endswith("wrote out/sweep.parquet, out/summary.csv, out/sweep.svg\n")
    private = [f"private/{name}" for name in ("cells.bin", "private.txt", "sweep.json")]
    assert names(tmp_path / "out") == ["private", *private, "summary.csv", "sweep.parquet", "sweep.svg"]
    plan = {"mdav": {"k": [2, 3, 4]}, "noise": {"percent": [10, 50]}}
    expected = sdc.Microdata(survey, columns=["income", "age"], key="id", name="data").sweep(
        plan, replications=3, rng=5
    )
    assert_frame_equal(pl.read_parquet(tmp_path / "out" / "sweep.parquet"), expected.table, check_exact=True)
    summary = pl.read_csv(tmp_path / "out" / "summary.csv", schema=expected.summary.schema)
    assert_frame_equal(summary, expected.summary, check_exact=True)
    root = ET.fromstring((tmp_path / "out" / "sweep.svg").read_text())  # noqa: S314 - written just now
    assert root.tag.endswith("svg")


def test_a_report_may_lie_in_the_folder_that_the_sweep_makes(tmp_path):
    given = [*SMALL, "--report", "out/report.html"]
    done = sweep(tmp_path, *given)
    assert done.stdout.endswith("out/sweep.svg, out/report.html\n")
    first = contents(tmp_path / "out")
    assert first["report.html"].startswith(b"<!doctype html>")
    refused = run_here(tmp_path, "sweep", "data.csv", "-o", "out", *given)
    assert (refused.returncode, "'out/report.html' exists already" in refused.stderr) == (2, True)
    assert contents(tmp_path / "out") == first
    sweep(tmp_path, *given, "--overwrite")
    assert set(contents(tmp_path / "out")) == set(first)


@pytest.mark.parametrize("more", [["--columns", "nope"], ["--grid", "mdav.k=99"]])
def test_a_refused_sweep_makes_no_folder_for_its_report(tmp_path, more):
    before = contents(tmp_path)
    done = run_here(tmp_path, "sweep", "data.csv", "-o", "out", "--report", "out/report.html", *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert contents(tmp_path) == before


def test_the_table_for_people_shows_both_ends_of_each_grid(tmp_path):
    done = sweep(tmp_path, *SMALL, "--grid", "rank_swap.p=0.1", "--metrics", "brmae,il1")
    rows = [line.split() for line in done.stdout.splitlines()]
    shown = [row[:2] for row in rows if row and row[0] in {"mdav", "noise", "rank_swap"}]
    assert shown == [
        ["mdav", "k=2"],
        ["mdav", "k=4"],
        ["noise", "percent=10"],
        ["noise", "percent=50"],
        ["rank_swap", "p=0.1"],
    ]
    assert any(row[:4] == ["method", "parameters", "brmae", "il1"] for row in rows)
    assert max(map(len, done.stdout.splitlines())) <= 120
    assert sweep(tmp_path, *SMALL, "--metrics", "brmae,il1", "--quiet", output="quiet").stdout == ""


def test_every_option_means_what_it_means_in_python(tmp_path, survey):
    words = ["--grid", "rank_swap.p=0.1:0.3:0.1", "--grid", "rank_swap.tails=0.05", "--replications", "2"]
    words += [
        *("--draws", "fresh", "--variables", "--detail", "--metrics", "brmae,il1:zeros=drop"),
        *("--seed", "3"),
    ]
    sweep(tmp_path, *words, *ROLES, "--missing", "penalise", "--format", "csv")
    expected = (
        sdc.Microdata(
            survey.drop("grade"), key="id", weights="weight", by="region", missing="penalise", name="data"
        )
        .sweep(
            {"rank_swap": {"p": [0.1, 0.2, 0.3], "tails": 0.05}},
            metrics=["brmae", "il1:zeros=drop"],
            replications=2,
            draws="fresh",
            per_variable=True,
            detail=True,
            rng=3,
        )
        .table
    )
    found = pl.read_csv(tmp_path / "out" / "sweep.csv", schema=expected.schema)
    assert_frame_equal(found, expected, check_exact=True)


def test_a_file_is_a_plan_and_the_command_line_has_the_last_word(tmp_path):
    put(
        tmp_path,
        "plan.toml",
        'replications = 2\nmetrics = ["mae"]\ndraws = "fresh"\n[noise]\npercent = "1:3"\n',
    )
    roles = ["--columns", "income", "--seed", "5", "--quiet"]
    sweep(tmp_path, "--plan", "plan.toml", *roles)
    sweep(tmp_path, "--plan", "plan.toml", "--replications", "3", "--draws", "common", *roles, output="more")
    words = ["--grid", "noise.percent=1:3", "--metrics", "mae", "--replications"]
    sweep(tmp_path, *words, "2", "--draws", "fresh", *roles, output="words")
    sweep(tmp_path, *words, "3", *roles, output="more-words")
    tables = {
        name: pl.read_parquet(tmp_path / name / "sweep.parquet")
        for name in ("out", "more", "words", "more-words")
    }
    assert tables["out"].equals(tables["words"])
    assert tables["more"].equals(tables["more-words"])
    assert tables["out"].height == 3 * 2


def test_settings_that_are_no_numbers_have_a_picture_too(tmp_path):
    done = sweep(tmp_path, "--grid", "rank_swap.start=lowest,highest", "--columns", "income")
    assert done.stdout.endswith("wrote out/sweep.parquet, out/summary.csv, out/sweep.svg\n")
    picture = (tmp_path / "out" / "sweep.svg").read_text()
    assert all(f">start={word}<" in picture for word in ("lowest", "highest"))


@pytest.mark.parametrize("seed", [["--seed", str(SEED)], []])
def test_the_seed_stays_in_the_private_folder(tmp_path, seed):
    done = sweep(tmp_path, *SMALL, *seed, "--format", "csv")
    private = tmp_path / "out" / "private"
    entropy = json.loads((private / "sweep.json").read_text())["entropy"]
    assert entropy == (seed or ["", entropy])[1]
    assert int(entropy).bit_length() > (20 if seed else 64)
    outside = {name: data for name, data in contents(tmp_path).items() if "private" not in name and data}
    assert {"out/sweep.csv", "out/summary.csv", "out/sweep.svg"} < set(outside)
    spelt = [entropy.encode(), f"{int(entropy):x}".encode(), str(private).encode()]
    assert not any(word in data for word in spelt for data in outside.values())
    assert entropy not in done.stdout + done.stderr
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in private.iterdir()} == {0o600}
    assert b"seed" in (private / "private.txt").read_bytes()


@pytest.fixture
def measured(monkeypatch):
    found = []
    measure = Task.measure
    monkeypatch.setattr(Task, "measure", lambda *given: [found.append(1), measure(*given)][1])
    return found


def test_the_same_command_measures_nothing_again_and_overwrite_everything(tmp_path, measured):
    sweep(tmp_path, *SMALL)
    assert len(measured) == 5
    first = contents(tmp_path)
    sweep(tmp_path, *SMALL)
    assert len(measured) == 5
    assert contents(tmp_path) == first
    sweep(tmp_path, *SMALL, "--grid", "rank_swap.p=0.1")
    assert len(measured) == 6
    sweep(tmp_path, *SMALL, "--overwrite")
    assert len(measured) == 6 + 5
    assert contents(tmp_path)["out/private/sweep.json"] != first["out/private/sweep.json"]
    assert not list((tmp_path / "out").rglob(".sdckit-*"))


def test_warnings_and_notes_reach_the_reader(tmp_path):
    rows = [f"{i % 4 * 1.5},{i * 7 % 31}.5,{'NA' if i == 3 else i}\n" for i in range(40)]
    put(tmp_path, "data.csv", "zeros,x,text\n" + "".join(rows))
    done = sweep(tmp_path, "--grid", "noise.percent=10")
    assert re.search(r"^note: cells left out of il1 because .*: up to \d+$", done.stdout, re.MULTILINE)
    assert done.stderr.startswith("warning: column 'text' is read as text because of 'NA' in 1 cell")
    assert done.stderr.count("\n") == 1


def test_a_folder_is_not_ours_for_its_name_alone(tmp_path):
    put(tmp_path, "out/private/notes.txt", "mine")
    put(tmp_path, "out/summary.csv", "precious")
    done = run_here(tmp_path, "sweep", "data.csv", "-o", "out", *SMALL)
    assert (done.returncode, "holds other files" in done.stderr) == (2, True)
    assert (tmp_path / "out" / "summary.csv").read_text() == "precious"


def test_the_input_is_never_replaced_by_a_result(tmp_path):
    assert sweep(tmp_path, *SMALL, "--format", "csv").returncode == 0
    table = (tmp_path / "out" / "sweep.csv").read_bytes()
    words = ["sweep", "out/sweep.csv", "-o", "out", "--overwrite", "--columns", "value", "--grid", "mdav.k=2"]
    done = run_here(tmp_path, *words)
    assert done.returncode == 2
    assert "is the input, which is never changed" in done.stderr
    assert (tmp_path / "out" / "sweep.csv").read_bytes() == table


def test_a_table_in_another_format_does_not_stay_behind(tmp_path, measured):
    sweep(tmp_path, *SMALL)
    table = pl.read_parquet(tmp_path / "out" / "sweep.parquet")
    sweep(tmp_path, *SMALL, "--format", "csv")
    assert len(measured) == 5
    again = pl.read_csv(tmp_path / "out" / "sweep.csv", schema=table.schema)
    assert_frame_equal(again, table, check_exact=True)
    left = {file.name for file in (tmp_path / "out").iterdir()}
    assert left == {"private", "summary.csv", "sweep.csv", "sweep.svg"}


def test_small_strata_are_named_as_private():
    table = frame().with_columns(g=pl.Series(["a"] * 58 + ["b"] * 2))
    notes = swept(table, {"noise": {"percent": [10]}}, by="g", metrics=["brmae"]).notes
    assert any(note.startswith("not for publication: strata with fewer than 3") for note in notes)
    assert not swept(table, {"noise": {"percent": [10]}}, columns=["a"], metrics=["brmae"]).notes
