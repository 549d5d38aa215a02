"""Sweeps that are stopped in every way and continued: the same table, no lost run, no orphan."""

import json
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import command
from sdckit.selection.runner import CELLS, PLAN, SWEEP, opened
from sdckit.selection.task import Task
from stopping import MARK, assert_no_process_left, wait_until
from sweeps import GRIDS, frame, swept

# --- a folder ---


@pytest.fixture
def measured(monkeypatch):
    """The runs that are measured in this process."""
    found = []
    measure = Task.measure

    def counted(task, run, entropy):
        found.append((run.setting.method.name, run.setting.text, run.replication))
        return measure(task, run, entropy)

    monkeypatch.setattr(Task, "measure", counted)
    return found


def test_finished_cells_are_not_measured_again(tmp_path, measured):
    first = swept(folder=tmp_path / "x")
    assert len(measured) == 2 + 4 * 5
    again = swept(folder=tmp_path / "x", workers=2)
    assert len(measured) == 2 + 4 * 5
    assert_frame_equal(again.table, first.table, check_exact=True)
    assert_frame_equal(first.table, swept().table, check_exact=True)


def test_a_larger_plan_and_more_replications_measure_what_is_new(tmp_path, measured):
    swept(folder=tmp_path / "x")
    done = set(measured)
    del measured[:]
    larger = GRIDS | {"rank_swap": {"p": [0.3, 0.2, 0.05]}, "correlated_noise": {"percent": 5}}
    found = swept(plan=larger, folder=tmp_path / "x", replications=6)
    assert done.isdisjoint(measured)
    assert len(measured) == 4 + 6 + 6  # a sixth replication of four settings, and two new settings
    assert_frame_equal(found.table, swept(plan=larger, replications=6).table, check_exact=True)
    del measured[:]
    swept(plan={"mdav": {"k": 5}}, folder=tmp_path / "x")
    assert measured == []


def test_an_error_keeps_what_was_finished(tmp_path, monkeypatch, measured):
    counted = Task.measure

    def failing(task, run, entropy):
        if len(measured) == 7:
            raise ValueError("no such luck")
        return counted(task, run, entropy)

    with monkeypatch.context() as patch:
        patch.setattr(Task, "measure", failing)
        with pytest.raises(ValueError, match="no such luck"):
            swept(folder=tmp_path / "x")
    del measured[:]
    assert_frame_equal(swept(folder=tmp_path / "x").table, swept().table, check_exact=True)
    assert len(measured) == (22 - 7) + 22


def test_a_damaged_cell_is_measured_again(tmp_path, measured):
    expected = swept(folder=tmp_path / "x").table
    path = tmp_path / "x" / CELLS
    data = bytearray(path.read_bytes())
    data[5 * len(data) // 22 + 20] ^= 4
    path.write_bytes(data[:-3])
    del measured[:]
    assert_frame_equal(swept(folder=tmp_path / "x").table, expected, check_exact=True)
    assert len(measured) == 2


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rng": 4}, "seed"),
        ({"data": frame(61)}, "data"),
        ({"data": frame().rename({"a": "z"})}, "data"),
        ({"weights": np.ones(60)}, "data"),
        ({"metrics": ["brmae"]}, "metrics"),
        ({"ties": "first"}, "ties"),
        ({"missing": "pairwise"}, "missing"),
        ({"draws": "fresh"}, "draws"),
        ({"per_variable": True}, "per variable"),
        ({"detail": True}, "detail"),
    ],
)
def test_the_folder_of_another_sweep_is_refused_and_left_alone(tmp_path, measured, change, text):
    swept(plan={"mdav": {"k": 5}}, folder=tmp_path / "x")
    before = command.contents(tmp_path)
    del measured[:]
    with pytest.raises(
        ValueError, match=rf"holds another sweep \(different: {text}\); choose another folder"
    ):
        swept(**{"plan": {"mdav": {"k": 5}}, "folder": tmp_path / "x"} | change)
    assert command.contents(tmp_path) == before
    assert measured == []


def test_strata_belong_to_the_data(tmp_path):
    data = frame().with_columns(g=pl.Series(["p", "q"] * 30), h=pl.Series(["p"] * 30 + ["q"] * 30))
    plan = {"mdav": {"k": 5}}
    swept(data, plan, by="g", columns=["a", "b"], folder=tmp_path / "x")
    for other in ("h", None, ["g", "h"]):
        with pytest.raises(ValueError, match="different: data"):
            swept(data, plan, by=other, columns=["a", "b"], folder=tmp_path / "x")


def test_without_a_seed_a_folder_makes_one_consistent_table(tmp_path):
    options = {"rng": None, "folder": tmp_path / "x"}
    small = swept(replications=2, **options)
    whole = swept(**options)
    assert_frame_equal(whole.table.filter(pl.col("replication") <= 2), small.table, check_exact=True)
    entropy = int(json.loads((tmp_path / "x" / PLAN).read_text())["entropy"])
    assert_frame_equal(swept(rng=entropy).table, whole.table, check_exact=True)
    assert not swept(rng=None, folder=tmp_path / "y").table.equals(whole.table)


# --- killed, interrupted, continued ---

DRIVER = """
import os, sys, time
from sdckit import cli
from sdckit.selection import runner, task
runner.WARM_UP = runner.WORKER_PAYS_FROM = runner.BATCH_SECONDS = 0.0
finished, measure = task.Task.measure_and_record, runner.Worker.measure
limit, together, pause = int(sys.argv.pop()), sys.argv.pop() == "together", float(sys.argv.pop())
def held(here):
    full = os.path.getsize("out/private/cells.bin") >= limit
    return full or (here and together and not os.path.exists("apart"))
def hold(*, here):  # until the kill, or until the other process has done something
    for _ in range(30_000):
        if not held(here):
            break
        time.sleep(0.005)
    time.sleep(pause)
def slowly(*given):
    hold(here=True)
    return finished(*given)
def noted(*given):
    hold(here=False)
    found = measure(*given)
    with open("apart", "ab") as file:
        file.write(b"." * len(found))
    return found
task.Task.measure_and_record, runner.Worker.measure = slowly, noted
cli.main()
"""
WORDS = [
    *[
        "sweep",
        "data.csv",
        "-o",
        "out",
        "--grid",
        "noise.percent=1:40",
        "--grid",
        "rank_swap.p=0.01:0.2:0.01",
    ],
    *["--grid", "mdav.k=2:11", "--replications", "4", "--metrics", "brmae,mae"],
    *["--workers", "2", "--format", "csv", "--quiet", "--seed", "17"],
]
ALL = 40 * 4 + 20 * 4 + 10


def journal(folder):
    path = folder / "out" / "private" / CELLS
    return path.read_bytes() if path.exists() else b""


def start(folder, *, limit=10**9, together=True, pause=0.002):
    (folder / "apart").unlink(missing_ok=True)
    how = [str(pause), "together" if together else "alone", str(limit)]
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, *WORDS, *how],
        cwd=folder,
        env=command.environment(**{MARK: str(folder)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The table of the command, run in one go by one worker, and the length of a record of its journal."""
    folder = tmp_path_factory.mktemp("undisturbed")
    frame(200).write_csv(folder / "data.csv")
    command.good(folder, *("1" if before == "--workers" else word for before, word in pairwise(["", *WORDS])))
    return (folder / "out" / "sweep.csv").read_bytes(), len(journal(folder)) // ALL


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_killed_three_times_and_continued_the_table_is_that_of_an_undisturbed_run(tmp_path, undisturbed):
    frame(200).write_csv(tmp_path / "data.csv")
    expected, record = undisturbed
    chance = random.Random(8)
    for attempt in range(3):  # with another process, alone, and with another one again
        before = journal(tmp_path)
        wanted = len(before) // record + chance.randint(1, 35)
        process = start(tmp_path, limit=(wanted + 8) * record, together=attempt % 2 == 0)
        wait_until(lambda wanted=wanted: len(journal(tmp_path)) >= wanted * record, process)
        time.sleep(chance.uniform(0, 0.01))
        process.kill()
        assert process.communicate() == ("", "")
        assert process.returncode == -signal.SIGKILL
        assert_no_process_left(tmp_path)
        after = journal(tmp_path)
        whole = len(before) // record * record
        assert after[:whole] == before[:whole], "a finished run is lost"
        assert len(after) > len(before)
        assert {path.name for path in (tmp_path / "out").iterdir()} == {"private"}
    process = start(tmp_path)
    assert process.communicate(timeout=command.HANGING) == ("", "")
    assert process.returncode == 0
    assert (tmp_path / "out" / "sweep.csv").read_bytes() == expected
    assert len(journal(tmp_path)) == ALL * record, "a run was measured twice"
    assert (tmp_path / "apart").stat().st_size > 0, "the other process took no part"
    assert_no_process_left(tmp_path)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_after_ctrl_c_the_same_command_goes_on(tmp_path, undisturbed, sent, code):
    frame(200).write_csv(tmp_path / "data.csv")
    expected, record = undisturbed
    with command.interruptible():
        process = start(tmp_path, pause=0.05)
    wait_until((tmp_path / "apart").exists, process)
    process.send_signal(sent)
    output, errors = process.communicate(timeout=command.HANGING)
    assert process.returncode == code
    kept = "stopped: finished runs are in 'out/private'; the same command resumes\n"
    assert (output, errors) == ("", kept)
    assert_no_process_left(tmp_path)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"private"}
    before = journal(tmp_path)
    assert len(before) % record == 0, "a torn record"
    command.good(tmp_path, *WORDS)
    assert journal(tmp_path).startswith(before)
    assert len(journal(tmp_path)) == ALL * record
    assert (tmp_path / "out" / "sweep.csv").read_bytes() == expected


LIMITED = """
import os, resource, sys
sys.dont_write_bytecode = True  # compiled modules would be cut off
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
from sdckit import cli
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
cli.main()
"""


@pytest.mark.long
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(tmp_path, undisturbed):
    frame(200).write_csv(tmp_path / "data.csv")
    expected, record = undisturbed
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *WORDS],
        cwd=tmp_path,
        env=command.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=command.HANGING,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: could not write 'out/private/cells.bin': ")
    before = journal(tmp_path)
    assert len(before) == 4000
    command.good(tmp_path, *WORDS)
    assert (tmp_path / "out" / "sweep.csv").read_bytes() == expected
    assert journal(tmp_path).startswith(before[: 4000 // record * record])
    assert len(journal(tmp_path)) == ALL * record


@pytest.mark.long
def test_a_second_sweep_in_the_same_folder_is_refused_while_the_first_runs(tmp_path):
    folder = tmp_path / "x"
    swept(folder=folder)
    identity = json.loads((folder / PLAN).read_text())["identity"]
    refused = pytest.raises(FileExistsError, match=r"^another sweep is running in folder '.*x'; wait for it")
    with opened(SWEEP, folder, identity, 3, 1), refused:
        swept(folder=folder)
    assert swept(folder=folder).table.height
