"""Sweeps on several workers: the same table bit for bit, and no process left, whatever goes wrong."""

import gc
import math
import sys
import time
import warnings
from collections import deque
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import command
from sdckit import progress
from sdckit.selection import runner
from sdckit.selection.runner import Runner, Worker
from sdckit.selection.task import Task
from sweeps import frame, swept


def process_at_once(monkeypatch):
    """Start another process from the first moment; this one waits for its first answer, so that both work."""
    for name in ("WARM_UP", "WORKER_PAYS_FROM", "BATCH_SECONDS"):
        monkeypatch.setattr(runner, name, 0.0)
    workers, answered = [], []

    class Watched(Worker):
        def __init__(self, *given):
            super().__init__(*given)
            workers.append(self)

        def measure(self, runs):
            try:
                return super().measure(runs)
            finally:
                answered.append(len(runs))

    def late(runner):
        while not answered and not runner.stop.is_set():
            time.sleep(0.001)
        work(runner)

    work = Runner.measure_here
    monkeypatch.setattr(runner, "Worker", Watched)
    monkeypatch.setattr(Runner, "measure_here", late)
    return workers, answered


def assert_gone(workers):
    assert workers
    assert all(worker.process.returncode is not None for worker in workers)


@pytest.mark.long
def test_another_process_gives_the_same_table_bit_for_bit(tmp_path, monkeypatch):
    data = command.put_survey(tmp_path).drop("id", "grade")
    options = {"by": "region", "weights": "weight", "per_variable": True, "detail": True, "replications": 2}
    expected = swept(data, **options)
    workers, answered = process_at_once(monkeypatch)
    found = swept(data, workers=2, folder=tmp_path / "x", **options)
    assert_frame_equal(found.table, expected.table, check_exact=True)
    assert sum(answered) > 0
    assert_gone(workers)
    again = swept(data, folder=tmp_path / "x", **options)
    assert_frame_equal(again.table, expected.table, check_exact=True)


@pytest.mark.parametrize("metrics", [["brmae", "brmse", "dbrl"], ["brmae:ties=random", "brmse:ties=random"]])
def test_the_other_process_draws_the_same_random_ties(monkeypatch, metrics):
    data = frame(60).with_columns((pl.all() / 100).round())  # with ties to draw
    how = {"columns": data.columns, "metrics": metrics, "replications": 4}
    expected = swept(data, **how)
    workers, answered = process_at_once(monkeypatch)
    found = swept(data, **how, workers=2)
    assert_frame_equal(found.table, expected.table, check_exact=True)
    assert sum(answered) > 0
    assert_gone(workers)


@pytest.mark.parametrize(("n", "workers"), [(60, 2), (60, 5), (4500, 5)])
def test_threads_give_the_same_table_bit_for_bit(monkeypatch, n, workers):
    data = frame(n)
    plan = {"noise": {"percent": [10, 60]}, "rank_swap": {"p": [0.01, 0.2]}}
    more = {"metrics": ["brmae", "il1s", "dbrl", "window"], "detail": True, "replications": 2}
    expected = swept(data, plan, **more)
    monkeypatch.setattr(runner, "THREADS_FROM", 0)
    monkeypatch.setattr(runner, "Worker", None)  # starting a process would fail
    found = swept(data, plan, workers=workers, **more)
    assert_frame_equal(found.table, expected.table, check_exact=True)


def half_done(**begun):
    return Runner(None, (), 0, None, deque(range(10)), np.empty(0), None, done=10, **begun)


def test_another_process_is_started_for_three_seconds_of_work(monkeypatch):
    monkeypatch.setattr(runner, "CLOCK", SimpleNamespace(seconds=0.0, depth=0))
    for seconds, pays in ((2.99, False), (3.0, True)):
        monkeypatch.setattr(runner, "time", SimpleNamespace(process_time=lambda now=seconds: now))
        assert half_done(begun=0.0).processes_pay() == pays


def test_a_process_must_save_as_much_time_as_kernels_took(monkeypatch):
    """Three seconds of work are enough without compiled kernels; they took six, which work is not."""
    for seconds, pays in ((14.99, False), (15.0, True)):
        monkeypatch.setattr(runner, "CLOCK", SimpleNamespace(seconds=6.0, depth=0))
        monkeypatch.setattr(runner, "time", SimpleNamespace(process_time=lambda now=seconds: now))
        assert half_done(begun=0.0, compiled=0.0).processes_pay() == pays
        monkeypatch.setattr(runner, "CLOCK", SimpleNamespace(seconds=6.0, depth=1))
        assert not half_done(begun=0.0, compiled=0.0).processes_pay()  # it would compile the same kernel


def test_short_work_starts_no_process(monkeypatch):
    monkeypatch.setattr(runner, "WORKER_PAYS_FROM", math.inf)  # on a busy machine no work is short
    monkeypatch.setattr(runner, "Worker", None)
    assert swept(workers=8).table.equals(swept().table)


def test_an_error_in_this_process_ends_the_other(monkeypatch, tmp_path):
    work = Runner.measure_here
    workers, _ = process_at_once(monkeypatch)

    def broken(*_):
        while not workers:
            time.sleep(0.001)
        raise ValueError("no such luck")

    monkeypatch.setattr(Runner, "measure_here", work)  # it does not wait, so that a run is left for it
    monkeypatch.setattr(Task, "measure", broken)
    with pytest.raises(ValueError, match="no such luck"):
        swept(workers=2, folder=tmp_path / "x", replications=300)
    assert_gone(workers)


def test_an_error_in_the_other_process_is_the_same_error_here(monkeypatch):
    data = pl.DataFrame({"a": [1e308, -1e308, 3.0, 4.0, 5.0]})
    plan = {"noise": {"percent": range(1000, 1020)}}
    workers, _ = process_at_once(monkeypatch)
    with pytest.raises(ValueError, match=r"^column 'a' holds numbers too large for noise; divide them"):
        swept(data, plan, workers=2)
    assert_gone(workers)


@pytest.mark.parametrize("when", ["at once", "later"])
def test_a_process_that_dies_costs_no_cell(monkeypatch, when):
    """The system ends processes when memory is short; those that are left measure their runs."""
    expected = swept(replications=20)
    workers, answered = process_at_once(monkeypatch)
    measure = runner.Worker.measure

    def dying(worker, runs):
        if when == "at once" or answered:
            worker.process.kill()
            worker.process.wait()
        return measure(worker, runs)

    monkeypatch.setattr(runner.Worker, "measure", dying)
    found = swept(replications=20, workers=2)
    assert_frame_equal(found.table, expected.table, check_exact=True)
    assert_gone(workers)


def test_files_in_the_working_folder_are_no_modules_of_the_other_process(monkeypatch, tmp_path):
    """Data often lie beside scripts; a numpy.py among them must not be run."""
    expected = swept()
    for name in ("numpy", "pickle", "polars", "random"):
        command.put(tmp_path, f"{name}.py", f"open('ran-{name}', 'w').close()\nraise SystemExit(5)\n")
    workers, answered = process_at_once(monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert swept(workers=2).table.equals(expected.table)
    assert list(tmp_path.glob("ran-*")) == []
    assert sum(answered) > 0
    assert_gone(workers)


@pytest.mark.parametrize("threads", [False, True])
def test_progress_speaks_of_the_sweep_and_not_of_its_cells(monkeypatch, capsys, threads):
    monkeypatch.setattr(progress, "SHOW_AFTER", 0.0)
    monkeypatch.setattr(progress, "PLAIN_STEP", 0.0)
    if threads:
        monkeypatch.setattr(runner, "THREADS_FROM", 0)
    progress.show_progress(True)
    try:
        swept(frame(4500), {"rank_swap": {"p": [0.01, 0.2]}}, workers=2, metrics=["brmae", "dbrl"])
    finally:
        progress.show_progress(False)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [line for line in lines if line.startswith("sweeping: ")]


@pytest.mark.parametrize("program", ["/bin/false", "/no/such/python"])
def test_a_process_that_cannot_begin_costs_no_cell(monkeypatch, program):
    """An embedded Python knows no program of its own, and a system short of memory starts none."""
    plan = {"noise": {"percent": [10, 60]}}
    data = frame(20_000)  # more than a pipe holds
    expected = swept(data, plan, metrics="brmae")
    for name in ("WARM_UP", "WORKER_PAYS_FROM"):
        monkeypatch.setattr(runner, name, 0.0)
    monkeypatch.setattr(sys, "executable", program)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = swept(data, plan, workers=2, metrics="brmae")
        gc.collect()
    assert_frame_equal(found.table, expected.table, check_exact=True)
    assert [str(warning.message) for warning in caught] == []  # no process, no pipe is left open
