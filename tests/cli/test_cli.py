"""The commands on good input: what they print, what they write, and what they never show."""

import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time

import click
import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from command import (
    HANGING,
    ROLES,
    VARIABLES,
    arguments,
    contents,
    environment,
    good,
    interruptible,
    put,
    put_survey,
    run,
)
from sdckit.cli import sdckit
from sdckit.core.checks import MISSING
from sdckit.kernels.ranks import TIES

COMMANDS = ("demo", "mask", "evaluate", "sweep", "recommend", "metrics", "methods")
NOT_FOR_PUBLICATION = "note: not for publication: losses of single records show how far each value moved\n"
HEAVY = ("numpy", "numba", "polars", "narwhals", "rich")


@pytest.fixture
def survey(tmp_path):
    return put_survey(tmp_path)


# help


def test_no_arguments_show_the_help(tmp_path):
    done = good(tmp_path)
    assert done.stdout == good(tmp_path, "--help").stdout
    assert done.stdout.startswith("Usage: sdckit ")
    for name in COMMANDS:
        assert re.search(rf"^  {name} +[A-Z].*\w\.$", done.stdout, re.MULTILINE), "cut off"
    assert "sdckit mask data.csv -o masked.csv" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_and_examples_are_shown(tmp_path, name):
    text = good(tmp_path, name, "--help").stdout
    for option in (one for one in sdckit.commands[name].params if isinstance(one, click.Option)):
        assert option.hidden or re.search(rf"{option.opts[-1]}\b.*?  +\S", text, re.DOTALL)
    assert f"Examples:\n    sdckit {name}" in text
    if name in {"mask", "evaluate", "recommend"}:
        assert all(rule in text for rule in (*TIES, *MISSING))


def test_version(tmp_path):
    assert good(tmp_path, "--version").stdout == f"sdckit {sdc.__version__}\n"


def test_help_loads_nothing_heavy(tmp_path, record_property):
    code = (
        "import sys\nfrom sdckit.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit as stop:\n"
        f"    print([name for name in {HEAVY!r} if name in sys.modules], stop.code)"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    record_property("seconds", round(time.monotonic() - started, 3))
    assert done.stdout.endswith("[] 0\n")


# demo, metrics, methods


@pytest.mark.long
def test_demo_repeats_itself(tmp_path, demo):
    folder, first = demo
    names = ["original.csv", "masked.csv", "sweep.csv", "report.html", "made-by-sdckit-demo.txt", "private"]
    assert {path.name for path in folder.iterdir()} == set(names)
    assert [path.name for path in folder.parent.iterdir()] == ["sdckit-demo"]
    for word in ("mdav", "brmae", "linkage", "No record is exposed", "sdckit-demo/report.html"):
        assert word in first.stdout
    assert first.stderr == ""
    again = tmp_path / "some" / "where"
    shutil.copytree(folder, again)  # of an earlier demo, which another one replaces
    (again / "sweep.csv").write_text("old")
    assert good(tmp_path, "demo", "-o", "some/where", "--quiet").stdout == ""
    assert published(again) == published(folder)
    assert len(list((again / "private").glob("2*"))) == 1


def published(folder):
    """All that the demo leaves but its private record, which has the time."""
    return {name: data for name, data in contents(folder).items() if not name.startswith("private/")}


@pytest.mark.parametrize(("name", "registry"), [("metrics", sdc.METRICS), ("methods", sdc.METHODS)])
def test_lists_hold_the_whole_registry(tmp_path, name, registry):
    shown = good(tmp_path, name, COLUMNS="80").stdout
    rows = json.loads(good(tmp_path, name, "--json").stdout)
    table = pl.read_csv(io.StringIO(good(tmp_path, name, "--csv").stdout), infer_schema=False)
    assert [row[name[:-1]] for row in rows] == table[name[:-1]].to_list() == list(registry)
    assert max(map(len, shown.splitlines())) <= 80
    for record in registry.values():
        assert re.search(rf"^{record.name} +{re.escape(record.title)}$", shown, re.MULTILINE)
        assert record.summary in table.row(list(registry).index(record.name))
    for record in list(registry.values())[::7]:
        full = good(tmp_path, name, record.name).stdout
        assert f"{record.name} - {record.title}\n" in full
        assert all(f"{parameter.name}=" in full for parameter in record.parameters)
        assert json.loads(good(tmp_path, name, record.name, "--json").stdout)[0] in rows


# evaluate


@pytest.fixture
def pair(tmp_path, survey):
    masked = sdc.Microdata(survey, columns=VARIABLES, key="id").mask(
        "noise", percent=30, rng=5, decimals="original"
    )
    masked.write_csv(tmp_path / "masked.csv")
    masked.sample(fraction=1, shuffle=True, seed=3).write_csv(tmp_path / "shuffled.csv")
    return survey, masked


def test_records(tmp_path, pair):
    words = ["evaluate", "data.csv", "shuffled.csv", "--columns", "income,age", "--metrics", "brmae,mae"]
    done = good(tmp_path, *words, "--key", "id", "--records", "r.csv")
    records = pl.read_csv(tmp_path / "r.csv", schema_overrides={"id": pl.String})
    assert records.columns == ["id", "brmae", "mae"]
    assert records["id"].equals(pair[0]["id"])
    assert "note: wrote r.csv" in done.stdout
    assert NOT_FOR_PUBLICATION in done.stdout
    assert NOT_FOR_PUBLICATION not in good(tmp_path, *words, "--key", "id").stdout
    good(tmp_path, *words, "--records", "r.csv", "--overwrite")
    assert pl.read_csv(tmp_path / "r.csv")["record"].to_list() == list(range(1, 61))


@pytest.mark.long
@pytest.mark.parametrize(("size", "noted"), [(1, True), (2, True), (3, False)])
def test_losses_of_tiny_strata_are_not_for_publication(tmp_path, size, noted):
    rows = [f"{'ab'[i < size]},{i * 7 % 20 + 1}.5\n" for i in range(20)]
    put(tmp_path, "data.csv", "g,x\n" + "".join(rows))
    words = ["mask", "data.csv", "-o", "out.csv", "--method", "noise", "--by", "g"]
    assert (NOT_FOR_PUBLICATION in good(tmp_path, *words).stdout) == noted
    done = good(tmp_path, "evaluate", "data.csv", "out.csv", "--by", "g")
    assert (NOT_FOR_PUBLICATION in done.stdout) == noted


@pytest.mark.parametrize("columns", ["80", "120"])
def test_tables_for_people(tmp_path, pair, columns):
    assert pair[0].columns == pair[1].columns
    metrics = ["--metrics", "brmae,brmse,il1s,linkage"]
    words = ["evaluate", "data.csv", "masked.csv", *metrics, *ROLES, "--by", "region", "--variables"]
    shown = good(tmp_path, *words, COLUMNS=columns).stdout
    tables = [line for line in shown.splitlines() if not line.startswith("note: ")]  # a note is one line
    assert max(map(len, tables)) <= int(columns)
    for word in (*VARIABLES, "süd", "brmae", "il1s", "by chance", "what it means"):
        assert re.search(rf"\b{word}\b", shown), word


def test_identical_files_lose_nothing(tmp_path, survey):
    assert survey.height
    done = good(tmp_path, "evaluate", "data.csv", "data.csv", "--key", "id", "--json", "--private-output")
    found = json.loads(done.stdout)["table"]
    assert {row["value"] for row in found if row["family"] == "loss"} == {0}
    assert {row["value"] for row in found if row["metric"] in {"linkage", "dbrl", "sdid"}} == {1}
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert any(line.startswith("warning: the masked file is identical to the original") for line in lines)
    assert any(line.startswith("warning: column 'weight' looks like a survey weight; ") for line in lines)


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    words = arguments(["metrics", "--json"])
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), cwd=tmp_path
    ) as process:
        process.stdout.close()
        assert process.wait(HANGING) == 0
        assert process.stderr.read() == b""


def test_names_that_the_screen_cannot_show(tmp_path):
    put(tmp_path, "data.csv", "größe\n" + "".join(f"{i}.5\n" for i in range(9)))
    done = run(tmp_path, "evaluate", "data.csv", "data.csv", "--variables", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "warning: the masked file is identical to the original in every compared column; mask it first"
    ]
    assert "gr\\xf6\\xdfe" in done.stdout


# long work


@pytest.fixture
def long_work(tmp_path):
    """A masking of the better part of a minute: distances over missing cells are slow."""
    rng = np.random.default_rng(1)
    cells = rng.normal(size=(50_000, 24)).round(3)
    cells[rng.random(cells.shape) < 0.2] = np.nan  # no tree helps in many independent variables
    frame = pl.DataFrame(cells, [f"v{j}" for j in range(24)]).fill_nan(None)
    frame.write_csv(tmp_path / "data.csv")
    return [*["mask", "data.csv", "-o", "out.csv", "--method", "mdav", "--set", "k=3"]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_stopping_leaves_nothing(tmp_path, long_work, sent, code):
    before = contents(tmp_path)
    with (
        interruptible(),
        subprocess.Popen(
            arguments(long_work),
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            cwd=tmp_path,
            text=True,
        ) as process,
    ):
        progress = process.stderr.readline()  # appears after two seconds, in the middle of the work
        assert re.fullmatch(r"masking: ([01]%|\d+%, about \d+ s left)\n", progress)  # see test_progress.py
        process.send_signal(sent)
        output, errors = process.communicate(timeout=HANGING)
    assert process.returncode == code
    lines = [line for line in errors.splitlines() if not line.startswith("masking: ")]
    assert lines == ["stopped: interrupted; no unfinished file is left"]
    assert output == ""
    assert contents(tmp_path) == before


def test_shells_complete_commands_options_and_files(tmp_path):
    put(tmp_path, "data.csv", "a\n1\n")
    for words, found in {
        "mas": "plain,mask",
        "mask data.csv --metho": "plain,--method",
        "describe da": "file,da",
    }.items():
        asked = environment(
            _SDCKIT_COMPLETE="bash_complete", COMP_WORDS=f"sdckit {words}", COMP_CWORD=str(len(words.split()))
        )
        done = subprocess.run(
            [sys.executable, "-m", "sdckit"],
            cwd=tmp_path,
            env=asked,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [found]
