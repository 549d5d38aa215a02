"""Searches that are stopped and continued: the same recommendation, no run measured twice."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import command
import sdckit as sdc
from calls import called
from sdckit.evaluation.result import FIGURES
from sdckit.selection.runner import CELLS, README, SEARCH_PLAN, WARNING
from sdckit.selection.task import Task
from secret_bytes import drawn_from
from stopping import MARK, assert_no_process_left, wait_until
from sweeps import frame, swept

PLAN = {"mdav": {"k": range(2, 20)}, "noise": {"percent": range(10, 200, 10)}}
LIMITS = {"linkage": 0.3}


@pytest.fixture
def measured(monkeypatch):
    """The runs that are measured in this process; an error at run number `stop`, if it is set."""
    measure = Task.measure

    class Runs(list):
        stop = None

    found = Runs()

    def counted(task, run, entropy):
        if found.stop == len(found):
            raise ValueError("no such luck")
        found.append((run.setting.identity, run.replication))
        return measure(task, run, entropy)

    monkeypatch.setattr(Task, "measure", counted)
    return found


def searched(data=None, **more):
    options = {"max_risk": LIMITS, "plan": PLAN, "rng": 3, "workers": 1} | more
    return called("recommend", frame() if data is None else data, **options)


def test_a_stopped_search_continues_and_gives_the_same_answer(tmp_path, measured):
    expected = searched()
    runs = list(measured)
    assert len(set(runs)) == len(runs) == expected.maskings
    for stop in range(3, len(runs), 5):  # each attempt measures some more
        measured.clear()
        measured.stop = 3 if stop == 3 else 5
        with pytest.raises(ValueError, match="no such luck"):
            searched(folder=tmp_path / "x")
    measured.clear()
    measured.stop = None
    found = searched(folder=tmp_path / "x")
    assert len(measured) < len(runs)
    assert found == expected
    measured.clear()
    assert searched(folder=tmp_path / "x") == expected
    assert measured == []


@pytest.mark.long
def test_other_limits_and_a_larger_plan_measure_what_is_new(tmp_path, measured):
    searched(folder=tmp_path / "x")
    before = set(measured)
    measured.clear()
    larger = PLAN | {"rank_swap": {"p": [0.05, 0.2]}}
    found = searched(folder=tmp_path / "x", max_risk={"linkage": 0.2}, plan=larger)
    assert before.isdisjoint(measured)
    assert 0 < len(measured) < found.maskings
    assert found == searched(max_risk={"linkage": 0.2}, plan=larger)


def scenario(columns, limit=0.9):
    return {"intruders": {"press": {"known": columns, "max_risk": {"linkage": limit}}}}


def test_scenarios_belong_to_the_search(tmp_path):
    data = frame().with_columns(g=pl.Series(["p", "q"] * 30))
    options = {"columns": ["a", "b"], "drop": "c", "untouched": "g", "folder": tmp_path / "x"}
    searched(data, **options, **scenario(["a"]))
    before = command.contents(tmp_path)
    for other in ({}, scenario(["b"]), scenario(["a", "g"])):
        with pytest.raises(ValueError, match=r"holds another search \(different: .*scenarios\)"):
            searched(data, **options, **other)
    assert command.contents(tmp_path) == before
    again = searched(data, **options, **scenario(["a"], 0.8))
    assert again.limits == {"linkage": 0.3, "linkage_sure": 0.03, "linkage (press)": 0.8}


def test_sweeps_and_searches_do_not_share_a_folder(tmp_path):
    searched(folder=tmp_path / "x")
    swept(plan={"mdav": {"k": 5}}, folder=tmp_path / "y")
    other = r"holds other files; choose another one$"
    with pytest.raises(FileExistsError, match=other):
        swept(plan={"mdav": {"k": 5}}, folder=tmp_path / "x")
    with pytest.raises(FileExistsError, match=other):
        searched(folder=tmp_path / "y")


def test_the_folder_is_private_and_holds_no_records(tmp_path):
    searched(folder=tmp_path / "x")
    files = {path.name: path for path in (tmp_path / "x").iterdir()}
    assert set(files) == {SEARCH_PLAN, CELLS, README}
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o600}
    assert files[README].read_text() == WARNING
    content = json.loads(files[SEARCH_PLAN].read_text())
    assert set(content) == {"identity", "entropy", "checksum"}
    cells = files[CELLS].read_bytes()
    assert not any(value.tobytes() in cells for value in frame().to_numpy().ravel())


# --- killed, interrupted, continued ---

DRIVER = """
import os, sys, time
from sdckit import cli
from secret_bytes import drawn_from
from sdckit.selection import runner, task
runner.WARM_UP = runner.WORKER_PAYS_FROM = runner.BATCH_SECONDS = 0.0
finished, measure, limit = task.Task.measure_and_record, runner.Worker.measure, int(sys.argv.pop())
def hold():  # until the kill
    for _ in range(30_000):
        if os.path.getsize("kept/cells.bin") < limit:
            break
        time.sleep(0.005)
def slowly(*given):
    hold()
    return finished(*given)
def apart(*given):
    hold()
    return measure(*given)
task.Task.measure_and_record, runner.Worker.measure = slowly, apart
with drawn_from(17):
    cli.main()
"""
WORDS = [
    *["recommend", "data.csv", "-o", "out.csv", "--max-risk", "linkage=0.3", "--json"],
    *["--grid", "noise.percent=10:200:10", "--grid", "mdav.k=2:19", "--workers", "2", "--quiet"],
]
KEPT = ["--folder", "kept"]
PATHS = [str(Path(sdc.__file__).parents[1]), str(Path(command.__file__).parent)]


def journal(folder):
    path = folder / "kept" / CELLS
    return path.read_bytes() if path.exists() else b""


def start(folder, limit):
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, *WORDS, *KEPT, str(limit)],
        cwd=folder,
        env=command.environment(**{MARK: str(folder), "PYTHONPATH": os.pathsep.join(PATHS)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_killed_and_interrupted_a_command_ends_with_the_same_release(tmp_path):
    frame(100).write_csv(tmp_path / "data.csv")
    with drawn_from(17):
        expected = command.good(tmp_path, *WORDS).stdout
    released = (tmp_path / "out.csv").read_bytes()
    (tmp_path / "out.csv").unlink()
    command.forget_releases()
    maskings = json.loads(expected)["choice"]["maskings"]
    record = 8 + 8 * 4 * len(FIGURES) + 4  # bytes of key, four metrics and checksum
    for sent, wanted in ((signal.SIGKILL, 3), (signal.SIGINT, 7)):
        with command.interruptible():
            process = start(tmp_path, wanted * record)
        wait_until(lambda wanted=wanted: len(journal(tmp_path)) >= wanted * record, process)
        process.send_signal(sent)
        output, errors = process.communicate(timeout=command.HANGING)
        stopped = sent == signal.SIGINT
        assert process.returncode == (130 if stopped else -signal.SIGKILL)
        kept = "stopped: finished runs are in 'kept'; the same command resumes\n" if stopped else ""
        assert (output, errors) == ("", kept)
        assert_no_process_left(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "kept"}
    before = journal(tmp_path)
    with drawn_from(17):
        assert command.good(tmp_path, *WORDS, *KEPT).stdout == expected
    assert (tmp_path / "out.csv").read_bytes() == released
    assert journal(tmp_path).startswith(before)
    assert len(journal(tmp_path)) == maskings * record, "a run was measured twice"


@pytest.mark.parametrize("option", ["-o", "--report"])
def test_nothing_to_hand_out_lies_beside_the_seed(tmp_path, option):
    frame().write_csv(tmp_path / "data.csv")
    before = command.contents(tmp_path)
    (tmp_path / "kept").mkdir()
    name = "kept/out.csv" if option == "-o" else "kept/r.html"
    words = [name if word == "out.csv" and option == "-o" else word for word in WORDS]
    done = command.run_here(tmp_path, *words, *KEPT, *([] if option == "-o" else [option, name]))
    assert done.returncode == 2
    fact = f"error: '{name}' would lie in 'kept', which holds the seed"
    assert done.stderr == f"{fact}; choose a --folder of its own\n"
    assert command.contents(tmp_path) == before | {"kept": None}
