"""The search as a process of its own: followed, stopped and killed, it keeps every finished run."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import pytest

import command
import loops
from sdckit.app import running as server_side
from sdckit.app import work
from sdckit.app.job import open_job
from sdckit.app.running import GONE, Running, RunState
from sdckit.app.work import Follower, wait_for_others
from sdckit.core.registry import METHODS
from sdckit.evaluation.result import FIGURES
from sdckit.request.toml import check_job
from sdckit.selection.runner import CELLS, SEARCH, SEARCH_PLAN, opened
from sdckit.selection.search import Search
from stopping import MARK, assert_no_process_left, wait_until
from sweeps import frame

CONTENT = {
    "input": {"data": "data.csv"},
    "search": {
        "grid": {"mdav": {"k": "2:19"}, "noise": {"percent": "10,25,50,100,200"}},
        "max_risk": {"linkage": 0.3, "linkage_sure": 1},
        "workers": 1,
    },
    "output": {"output": "out.csv"},
    "private": {"folder": "kept"},
}
# A round has a run of mdav and three of noise; processes are stopped in the middle of one.
RECORD = 8 + 8 * 4 * len(FIGURES) + 4  # bytes of key, four metrics and checksum
HOLD = "SDCKIT_TEST_HOLD"
DRIVER = f"""
import os, time
from sdckit.progress import STOPPING
from sdckit.selection import runner, task
runner.WARM_UP = runner.WORKER_PAYS_FROM = runner.BATCH_SECONDS = 0.0
record, measure, limit = task.Task.measure_and_record, runner.Worker.measure, int(os.environ["{HOLD}"])
def hold():  # until the end, at so many bytes
    for _ in range(4_000):
        if os.path.getsize("kept/cells.bin") < limit or STOPPING.is_set():
            break
        time.sleep(0.005)
def here(*given):
    hold()
    return record(*given)
def apart(*given):
    hold()
    return measure(*given)
task.Task.measure_and_record, runner.Worker.measure = here, apart
from sdckit.app import child
child.main()
"""
SERVER = f"""
import asyncio, json, sys
from pathlib import Path
from sdckit.app import running
running.PROGRAM = ("-c", {DRIVER!r})
async def serve():
    search = running.Running(Path.cwd(), "search")
    search.start({{"job": json.loads(sys.argv[1])}})
    while search.running:
        await asyncio.sleep(0.1)
asyncio.run(serve())
"""
PATHS = [str(Path(server_side.__file__).parents[2]), str(Path(command.__file__).parent)]


@pytest.fixture
def folder(tmp_path):
    frame(100).write_csv(tmp_path / "data.csv")
    return tmp_path


def search_in(folder, content=CONTENT):
    """The search of the job, made in this process."""
    opened = open_job(check_job(content, folder))
    options = opened.search_options()
    del options["folder"], options["workers"]
    return Search.of(opened.prepare(), **options)


def runs_in(folder):
    path = folder / "kept" / CELLS
    return path.stat().st_size // RECORD if path.exists() else 0


def environment(folder, hold):
    more = {MARK: str(folder), HOLD: str(hold * RECORD), "PYTHONPATH": os.pathsep.join(PATHS)}
    return command.environment(**more)


def started(folder, hold):
    """A process whose search waits once so many runs are finished."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        cwd=folder,
        env=environment(folder, hold),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(json.dumps({"work": "search", "job": CONTENT}).encode() + b"\n")
    process.stdin.flush()
    wait_until(lambda: runs_in(folder) >= hold, process)
    return process


def running_in(folder, content=CONTENT):
    """A search that was started, and the list that gets its states."""
    states = []
    running = Running(folder, "search", lambda: states.append(running.state))
    assert running.start({"job": content})
    return running, states


async def ended(running):
    while running.running:  # noqa: ASYNC110 - short
        await asyncio.sleep(0.01)


# --- killed, interrupted, continued ---


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_killed_and_stopped_at_several_moments_a_search_ends_with_the_same_points(folder):
    kept = 0
    for hold, end in ((2, "kill"), (3, "interrupt"), (6, "close"), (10, "kill")):
        process = started(folder, hold)
        if end == "close":
            process.stdin.close()
            process.stdin = None
        else:
            process.send_signal(signal.SIGKILL if end == "kill" else signal.SIGINT)
        output, errors = process.communicate(timeout=command.HANGING)
        lines = [json.loads(line) for line in output.splitlines()]
        assert errors == b""
        if end == "kill":
            assert {line["kind"] for line in lines} == {"progress"}
        else:
            assert (process.returncode, lines[-1]) == (130, {"kind": "stopped"})
        assert_no_process_left(folder)
        assert kept < hold <= runs_in(folder)
        kept = runs_in(folder)
        assert search_in(folder).kept(folder / "kept").runs == kept

    async def go_on():
        running, states = running_in(folder)
        assert not running.start({"job": CONTENT}), "a second click"
        await ended(running)
        return states

    states = loops.run(go_on())
    assert (states[-1].outcome, states[-1].error, states[-1].share) == ("done", "", 1.0)
    assert [state.running for state in states] == [True] * (len(states) - 1) + [False]
    entropy = int(json.loads((folder / "kept" / SEARCH_PLAN).read_text())["entropy"])
    search = search_in(folder)
    expected = search.run(folder / "undisturbed", entropy)
    found = search.kept(folder / "kept")
    assert found.choice == expected
    assert found.points == search.kept(folder / "undisturbed").points
    assert found.runs == expected.maskings, "a run was measured twice"
    assert [(one["title"], one["done"], one["finished"]) for one in states[-1].methods] == [
        (METHODS[one.method].title, one.done, True) for one in found.methods
    ]
    shares = [state.share for state in states]
    assert shares == sorted(shares)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_search_ends_with_its_server_and_so_do_its_workers(folder):
    content = CONTENT | {"search": CONTENT["search"] | {"workers": 2}}
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, json.dumps(content)], cwd=folder, env=environment(folder, 3)
    )
    wait_until(lambda: runs_in(folder) >= 3, server)
    server.kill()
    server.wait()
    assert_no_process_left(folder)
    assert search_in(folder).kept(folder / "kept").runs >= 3


@pytest.mark.long
def test_stopped_by_the_server(folder, monkeypatch):
    monkeypatch.setattr(server_side, "PROGRAM", ("-c", DRIVER))
    monkeypatch.setenv(HOLD, str(6 * RECORD))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(PATHS))

    async def follow():
        idle = Running(folder, "search")
        await idle.stop()  # nothing to stop
        assert idle.state == RunState()
        running, states = running_in(folder)
        while runs_in(folder) < 6:  # noqa: ASYNC110 - looks at a file
            await asyncio.sleep(0.01)
        await asyncio.gather(running.stop(), running.stop())
        assert not running.running
        return states

    states = loops.run(follow())
    assert (states[-1].outcome, states[-1].error) == ("stopped", "")
    assert any(state.stopping for state in states)
    assert runs_in(folder) >= 6


# --- errors and warnings ---


async def outcome_of(folder, content):
    running, _ = running_in(folder, content)
    await ended(running)
    return running.state


def test_errors_are_the_lines_of_the_command_line(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # it is replaced
    text, _ = work.run({"work": "search", "job": CONTENT | {"roles": {"columns": ["a", "zebra"]}}}, None)
    words = ["recommend", "data.csv", "-o", "out.csv", "--max-risk", "linkage=0.3", "--columns", "a,zebra"]
    done = command.run_here(folder, *words)
    assert f"error: {text}\n" == done.stderr
    assert not (folder / "kept").exists()


def test_a_program_that_cannot_be_started_or_dies_is_an_error(folder, monkeypatch):
    monkeypatch.setattr(server_side, "PROGRAM", ("-c", "raise SystemExit(5)"))
    assert loops.run(outcome_of(folder, CONTENT)).error == GONE["search"]
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    state = loops.run(outcome_of(folder, CONTENT))
    assert state.error.startswith("the search could not be started: ")
    assert not state.running


def test_warnings_come_with_the_state():
    state = RunState(running=True)
    for text in ("one", "two"):
        state = state.after({"kind": "warning", "text": text})
    assert state.after({"kind": "done"}).ended("") == RunState(warnings=("one", "two"), outcome="done")
    failed = state.after({"kind": "error", "text": "no file"}).ended("")
    assert (failed.running, failed.outcome, failed.error) == (False, "error", "no file")


def test_progress_is_sent_four_times_a_second_at_most(monkeypatch):
    clock, sent = [100.0], []
    monkeypatch.setattr("sdckit.app.work.time.monotonic", lambda: clock[0])
    follower = Follower(lambda kind, **content: sent.append((clock[0], kind, content["share"])))
    for step in range(100):
        clock[0] = 100.0 + step * 0.1
        follower.progress("searching", step / 100)
    times = [when for when, _, _ in sent]
    assert len(times) == 34
    assert min(late - early for early, late in pairwise(times)) >= 0.25


def test_an_earlier_search_in_the_folder_is_waited_for(folder, monkeypatch):
    slept = []
    place = opened(SEARCH, folder / "kept", {}, 1, 3)
    place.__enter__()

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 3:
            place.__exit__(None, None, None)

    monkeypatch.setattr("sdckit.app.work.time.sleep", sleep)
    wait_for_others(folder / "kept")
    assert len(slept) == 3
    wait_for_others(folder / "kept")
    wait_for_others(folder / "missing")
    assert len(slept) == 3
    with opened(SEARCH, folder / "kept", {}, 1, 3):
        monkeypatch.setattr("sdckit.app.work.PATIENCE", 0.0)
        wait_for_others(folder / "kept")
    assert len(slept) == 3
