"""Evaluating and masking on Spark: nothing depends on partitions, killed processes or tasks that fail."""

import threading
from functools import partial

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from calls import called
from sdckit.engines import opening
from sdckit.engines import spark as spark_engine
from spark_toy_ranks import Failing, Killed, kill

N, SEED = 20_000, 3
METRICS = ["brmae", "rmse", "ks"]
METHODS = {
    "noise": {"percent": 20},
    "rank_swap": {"p": 0.05},
    "individual_ranking": {"k": 3},
    "blocked_mdav": {"k": 3, "block": 300},
}
TASKS = ("send", "rank", "sum", "write")  # names by which `Failing` draws


class Disturbed(spark_engine.SparkTransport):
    """Runs exchanges with tasks that are wrapped."""

    def __init__(self, *arguments, wrap, **options):
        super().__init__(*arguments, **options)
        self.wrap = wrap

    def exchange(self, first, reads, stages, last, *, step):
        first, *stages, last = self.wrap([first, *stages, last])
        return super().exchange(first, reads, stages, last, step=step)


def cut_data(monkeypatch, partitions, wrap=list, blocks=5):
    """Set the numbers of partitions and blocks, and what wraps the tasks of exchanges."""
    transport = partial(Disturbed, partitions=partitions, wrap=wrap)
    monkeypatch.setattr(spark_engine, "SparkTransport", transport)
    monkeypatch.setattr(spark_engine, "SMALL_BUCKET", 3000)
    monkeypatch.setattr(opening, "BLOCK_ROWS", -(-N // blocks))


@pytest.fixture
def cut(monkeypatch, spark):
    assert spark
    return partial(cut_data, monkeypatch)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Paths of an original and a masked file with ties, zeros and missing cells."""
    rng, folder = np.random.default_rng(8), tmp_path_factory.mktemp("failures")
    normal, gaps = rng.normal(size=(2, N)), rng.random((2, N)) < 0.02
    x = {"rounded": np.round(normal[0] * 50), "zeros": np.where(normal[1] < 0, 0.0, normal[1])}
    y = {name: values + rng.normal(0, 0.3, N) for name, values in x.items()}
    for name, table in (("original", x), ("masked", y)):
        cells = {one: np.where(gap, np.nan, x) for (one, x), gap in zip(table.items(), gaps, strict=True)}
        pl.DataFrame(cells, nan_to_null=True).write_parquet(folder / f"{name}.parquet")
    return folder / "original.parquet", folder / "masked.parquet"


@pytest.fixture(scope="module")
def expected(files, tmp_path_factory):
    """A function that returns the file that the engine local masks by a method."""
    folder, made = tmp_path_factory.mktemp("local"), {}

    def masked_by(name):
        if name not in made:
            made[name] = masked(files[0], name, "local", folder / f"{name}.parquet")
        return made[name]

    return masked_by


def masked(path, name, engine, output):
    """Return a file after masking by a method."""
    sdc.Microdata(path, engine=engine).mask(name, **METHODS[name], output=output, rng=SEED)
    return pl.read_parquet(output)


def table(files):
    """Return the table of an evaluation on Spark."""
    return called("evaluate", *files, metrics=METRICS, engine="spark").table


@pytest.fixture(scope="module")
def undisturbed(spark, files):
    """The table of an evaluation during which nothing happens."""
    assert spark
    with pytest.MonkeyPatch.context() as monkeypatch:
        cut_data(monkeypatch, 3)
        return table(files)


# Each task takes its time to start: the method with most exchanges on 1 partition and on 16, which are more
# than the buckets of both columns (on 7 in the tests below), the others on 7 only.
@pytest.mark.parametrize(
    ("name", "partitions"),
    [("rank_swap", 1), ("rank_swap", 16), *((name, 7) for name in METHODS if name != "rank_swap")],
)
def test_masked_files_depend_on_no_partitions(files, cut, expected, tmp_path, name, partitions):
    compiled_here = expected(name)  # and loaded by workers, which would all compile the same kernels
    cut(partitions, blocks=partitions if name == "noise" else 5)  # noise is added block by block
    assert masked(files[0], name, "spark", tmp_path / "out.parquet").equals(compiled_here)


def killer(mark, victim):
    """Start a thread that kills the process of a task, or its executor, when the task has begun."""
    thread = threading.Thread(target=kill, args=(mark, victim))
    thread.start()
    return thread


def test_a_killed_executor_changes_no_evaluation(files, cut, undisturbed, tmp_path):
    cut(7, lambda tasks: [tasks[0], Killed(tasks[1], tmp_path / "mark"), *tasks[2:]])
    thread = killer(tmp_path / "mark", "executor")
    assert table(files).equals(undisturbed)
    thread.join()


def test_a_worker_killed_after_writing_changes_no_masked_file(files, cut, expected, tmp_path):
    cut(7, lambda tasks: [*tasks[:-1], Killed(tasks[-1], tmp_path / "mark", done=True)])
    thread = killer(tmp_path / "mark", "python")
    assert masked(files[0], "rank_swap", "spark", tmp_path / "out.parquet").equals(expected("rank_swap"))
    thread.join()


def failing(folder):
    """Return what wraps tasks so that some attempts of each fail."""
    return lambda tasks: [Failing(task, name, folder) for task, name in zip(tasks, TASKS, strict=False)]


def failed(folder):
    """Return the names of the tasks that failed."""
    return {mark.name.split("-")[0] for mark in folder.iterdir()}


def test_tasks_that_fail_by_chance_change_nothing(files, cut, expected, undisturbed, tmp_path):
    for name in ("evaluate", "mask"):
        (tmp_path / name).mkdir()
    cut(7, failing(tmp_path / "evaluate"))
    assert table(files).equals(undisturbed)
    cut(7, failing(tmp_path / "mask"))
    assert masked(files[0], "rank_swap", "spark", tmp_path / "out.parquet").equals(expected("rank_swap"))
    assert failed(tmp_path / "evaluate") == set(TASKS[:3])
    assert failed(tmp_path / "mask") >= set(TASKS[:3])
