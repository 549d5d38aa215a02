"""The transport on Spark: the same numbers as numpy, on any partitions, also while workers die."""

import os
import signal
import threading

import numpy as np
import psutil
import pytest

import command
import spark_toy_ranks
from sdckit import progress
from sdckit.engines import spark as spark_engine
from sdckit.engines.spark import SparkTransport
from spark_toy_ranks import READS, ArraySource, Killed, begun, kill, wait_until

CUTS = np.linspace(-3, 9, 14)  # some buckets are empty


def data(kind, n=20_000):
    draws = np.random.default_rng(5)
    if kind == "skewed":  # most values in one bucket, ties in all
        return np.floor(draws.exponential(2.0, n)), np.floor(draws.exponential(2.0, n))
    return draws.normal(size=n), draws.normal(size=n)


def distances(spark, source, partitions, wrap=lambda *tasks: tasks):
    transport = SparkTransport(source, spark, partitions=partitions)
    counts = transport.scan(spark_toy_ranks.Count(CUTS), READS, step="counting")
    first, stage, last = wrap(*spark_toy_ranks.tasks(CUTS, counts, pieces=3))
    return transport.exchange(first, READS, [stage], last, step="ranking")


@pytest.fixture(scope="module")
def skewed():
    return ArraySource(*data("skewed"), block_rows=5000)


@pytest.fixture(scope="module")
def undisturbed(spark, skewed):
    return distances(spark, skewed, 7)


def total(found):
    return sum(distance for distance, _ in found.values())


def test_global_ranks_are_those_of_numpy(skewed, undisturbed):
    assert total(undisturbed) == spark_toy_ranks.by_numpy(skewed.x, skewed.y)
    assert list(undisturbed) == sorted(set(np.searchsorted(CUTS, skewed.y).tolist()))


@pytest.mark.parametrize("partitions", [1, 20])  # 20 are more than there are buckets
def test_partitions_change_nothing(spark, skewed, undisturbed, partitions):
    assert distances(spark, skewed, partitions) == undisturbed


def test_partitions_are_chosen_by_size(spark):
    source = ArraySource(*data("spread"), block_rows=7000)
    assert total(distances(spark, source, None)) == spark_toy_ranks.by_numpy(source.x, source.y)


def test_all_cores_read_even_a_file_of_one_block(spark, monkeypatch):
    monkeypatch.setattr(spark_engine, "SMALL_BUCKET", 1000)
    transport = SparkTransport(ArraySource(*data("spread"), block_rows=10**6), spark)
    assert len(transport.scan(spark_toy_ranks.Count(CUTS), READS, step="counting")) >= 2 * transport.cores


def test_no_rows_give_no_results(spark):
    transport = SparkTransport(ArraySource(np.empty(0), np.empty(0), 10), spark)
    assert transport.scan(spark_toy_ranks.Count(CUTS), READS, step="counting") == []
    counts = np.zeros((1, 2, CUTS.size + 1), int)
    first, stage, last = spark_toy_ranks.tasks(CUTS, counts)
    assert transport.exchange(first, READS, [stage], last, step="ranking") == {}


@pytest.mark.parametrize(("victim", "where"), [("executor", 1), ("python", 2)])
def test_killed_processes_change_nothing(spark, skewed, undisturbed, tmp_path, victim, where):
    def wrap(*tasks):
        return [Killed(task, tmp_path / "mark") if i == where else task for i, task in enumerate(tasks)]

    killer = threading.Thread(target=kill, args=(tmp_path / "mark", victim))
    killer.start()
    assert distances(spark, skewed, 7, wrap) == undisturbed
    killer.join()


def test_progress_by_stage_never_runs_backwards(spark, skewed):
    shares = {}
    with progress.reported_to(lambda step, share: shares.setdefault(step, []).append(share)):
        distances(spark, skewed, 7)
    assert set(shares) == {"counting", "ranking"}
    for seen in shares.values():
        assert seen == sorted(seen)
        assert 0 <= seen[0] <= seen[-1] <= 1


def test_ctrl_c_cancels_the_job(spark, skewed, tmp_path):
    def interrupt():
        begun(tmp_path / "mark")
        os.kill(os.getpid(), signal.SIGINT)

    transport = SparkTransport(skewed, spark)
    waiting = Killed(spark_toy_ranks.Count(CUTS), tmp_path / "mark")
    threading.Thread(target=interrupt).start()
    with command.interruptible(), pytest.raises(KeyboardInterrupt):
        transport.scan(waiting, READS, step="counting")
    wait_until(lambda: spark.sparkContext.statusTracker().getActiveJobsIds() == [])
    wait_until(lambda: not psutil.pid_exists(begun(tmp_path / "mark")))
