"""Errors of workers reach the caller in one line: wrong data, files out of reach, no package."""

import re
import sys
import venv

import pytest

import sdckit
from sdckit.engines import spark as sessions
from sdckit.engines.spark import SparkTransport
from spark_toy_ranks import READS, Absent, Refuses


@pytest.fixture
def unchecked(monkeypatch):
    """Workers that have not been asked what they have."""
    monkeypatch.setattr(sessions, "_checked", set())


def test_an_error_in_a_task_is_raised_as_it_is(spark):
    with pytest.raises(ValueError, match=r"^column 'x' has 3 infinite values; remove them$"):
        SparkTransport(Refuses(), spark).scan(Refuses(), READS, step="counting")


def test_a_file_that_workers_do_not_see(spark):
    said = r"^the worker at \S+ cannot read '/nowhere/big.parquet' \(No such file.*\); keep files where all"
    with pytest.raises(OSError, match=said):
        SparkTransport(Absent(), spark).scan(Refuses(), READS, step="counting")


@pytest.mark.usefixtures("unchecked")
def test_a_worker_without_the_package(spark, monkeypatch, tmp_path):
    venv.create(tmp_path)
    python = str(tmp_path / "bin" / "python")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
    said = f"^the worker's Python {python} at .* has no sdckit; install sdckit {sdckit.__version__} there"
    with pytest.raises(RuntimeError, match=said):
        SparkTransport(Absent(), spark)


@pytest.mark.usefixtures("unchecked")
def test_a_worker_with_another_version(spark, monkeypatch):
    here = f"the worker's Python {sys.executable} at .* has sdckit {sdckit.__version__} and numpy"
    monkeypatch.setattr(sdckit, "__version__", "99.0")
    with pytest.raises(RuntimeError, match=f"^{here} .*, not sdckit 99.0 and numpy .*; install sdckit 99.0"):
        SparkTransport(Absent(), spark)


@pytest.mark.usefixtures("unchecked")
def test_a_python_that_is_not_there(spark, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python")
    with pytest.raises(RuntimeError, match=r"^the workers' Python /nowhere/python cannot be started; set"):
        SparkTransport(Absent(), spark)


def test_another_master_than_that_of_the_running_session(spark):
    address = re.escape(spark.sparkContext.master)
    with pytest.raises(
        ValueError, match=rf"session with master {address} is running, not local\[2\]; stop it"
    ):
        sessions.spark_session("local[2]")
    assert sessions.spark_session() is spark or sessions.spark_session().sparkContext is spark.sparkContext
