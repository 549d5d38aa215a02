"""The transport on Spark: the same numbers as numpy, on any partitions, also while workers die."""

import os
import signal
import threading
import time

import numpy as np
import psutil
import pytest
import toy_ranks
from toy_ranks import READS, Absent, ArraySource, Failing, Killed, Refuses

from sdckit import progress
from sdckit.engines.spark import SparkTransport

pytestmark = pytest.mark.spark
STARTED = 120  # seconds until a task is taken not to begin


def data(kind, n=20_000):
    draws = np.random.default_rng(5)
    if kind == "skewed":  # most values in one bucket, ties in all
        return np.floor(draws.exponential(2.0, n)), np.floor(draws.exponential(2.0, n))
    return draws.normal(size=n), draws.normal(size=n)


def distances(spark, source, partitions, cuts, pieces=1, wrap=lambda *tasks: tasks):
    transport = SparkTransport(source, spark, partitions=partitions)
    counts = transport.scan(toy_ranks.Count(cuts), READS, step="counting")
    first, stage, last = wrap(*toy_ranks.tasks(cuts, counts, pieces))
    return transport.exchange(first, READS, [stage], last, step="ranking")


@pytest.mark.parametrize("kind", ["spread", "skewed"])
@pytest.mark.parametrize("partitions", [1, 7, 40])
def test_global_ranks_are_those_of_numpy(spark, kind, partitions):
    x, y = data(kind)
    cuts = np.linspace(-3, 9, 40)  # some buckets are empty, and so are partitions
    found = distances(spark, ArraySource(x, y, 3000), partitions, cuts, pieces=3)
    assert sum(total for total, _ in found.values()) == toy_ranks.by_numpy(x, y)
    assert list(found) == sorted(set(np.searchsorted(cuts, y).tolist()))
