"""Every value of an evaluation on an engine equals that of memory: whole numbers exactly, floats to 1e-12."""

import os

import numpy as np
import polars as pl
import pytest

from calls import called
from cases import few
from engine_files import NUMBER, case
from sdckit.core.registry import METRICS
from sdckit.engines import local, opening
from sdckit.engines import plan as measure_ranks
from sdckit.engines import spark as spark_engine

PLACE = ["metric", "variable", "stratum"]
WHOLE = ["n_used", "n_left_out", "n_suppressed", "n_imputed", "n_both_missing"]
LEVELS = ["value", "random", "tie_low", "tie_high"]
ALL = bool(os.environ.get("SDCKIT_ALL_ENGINE_FILES"))  # takes a minute on the engine local, and many on Spark
ON_SPARK = range(NUMBER) if ALL else (1, 16)
PAIRED = [*range(7), 7, 17, 32, 37, 42, 52, 57]  # all pairs of options occur in these files


@pytest.fixture
def small_buckets(monkeypatch):
    """A function that makes engines cut even small files into many blocks and buckets."""

    def cut(rows):
        monkeypatch.setattr(local, "ROW_BYTES", 10**9)
        monkeypatch.setattr(local, "FEWEST_ROWS", rows)
        monkeypatch.setattr(spark_engine, "SMALL_BUCKET", rows)
        monkeypatch.setattr(spark_engine, "SCAN_TASKS", 3)  # each task has several blocks or buckets
        monkeypatch.setattr(spark_engine, "MOST_PARTITIONS", 5)
        monkeypatch.setattr(measure_ranks, "LEAST_SAMPLE", 30)
        monkeypatch.setattr(opening, "BLOCK_ROWS", rows)

    return cut


def in_memory(names, files):
    """Return the evaluation by those metrics that have a value, and their names."""

    def evaluated(some):
        return called("evaluate", files.original, files.masked, metrics=some, **files.options)

    def has_value(name):
        try:
            evaluated([name])
        except ValueError:  # NotApplicable is one
            return False
        return True

    try:
        return evaluated(names), names
    except ValueError:
        names = list(filter(has_value, names))
        return evaluated(names), names


def compare(seed, folder, **engine):
    """Compare all losses that have a value, in every stratum, with those of memory."""
    files = case(seed)
    named = [metric.name for metric in METRICS.values() if metric.in_blocks and metric.family == "loss"]
    if "weights" in files.options:  # engines weigh cells and ranks only
        named = [name for name in named if METRICS[name].needs != "columns" and name != "mse_permutation"]
    expected, named = in_memory(named, files)
    found = called("evaluate", *files.write(folder), metrics=named, **files.options, **engine)
    both = expected.table.join(found.table, on=PLACE, how="full", suffix="_found", coalesce=True)
    assert len(both) == len(expected.table) == len(found.table)
    for name in WHOLE:
        assert both[name].to_list() == both[f"{name}_found"].to_list()
    for name in LEVELS:
        rows = both
        if (
            name == "random" and "weights" in files.options
        ):  # in memory, a mean over random pairings of all records
            rows = both.filter(~pl.col("metric").is_in(["brmae", "brmse"]))
        assert wrong(rows, name) == []
    assert set(expected.meaning) == set(found.meaning)
    assert expected.dominated == found.dominated


def wrong(rows, name):
    """Return place and both values of the rows whose values differ."""
    ours, theirs = (rows[one].fill_null(np.nan).to_numpy() for one in (name, f"{name}_found"))
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    with np.errstate(invalid="ignore"):
        same |= np.abs(ours - theirs) <= 1e-12 * np.maximum(np.abs(ours), 1 + tiny_parts(rows))
    return rows.filter(pl.Series(~same)).select(*PLACE, name, f"{name}_found").rows()


def tiny_parts(rows):
    """Return MSE for rows of its two parts, else 0: a part may be the rounding of the other."""
    mse = rows.filter(pl.col("metric") == "mse").select("variable", "stratum", pl.col("value").alias("mse"))
    found = rows.join(mse, on=["variable", "stratum"], how="left", maintain_order="left")
    part = found["metric"].str.starts_with("mse_")
    return np.where(part.to_numpy(), found["mse"].fill_null(0.0).to_numpy(), 0.0)


@pytest.mark.parametrize("seed", few(range(NUMBER) if ALL else PAIRED, 3))
def test_local_equals_memory(seed, tmp_path, small_buckets):
    small_buckets(case(seed).bucket_rows)
    compare(seed, tmp_path, engine="local")


@pytest.mark.parametrize("seed", ON_SPARK)
def test_spark_equals_memory(seed, tmp_path, small_buckets, spark):
    assert spark
    small_buckets(case(seed).bucket_rows)
    compare(seed, tmp_path, engine="spark")
