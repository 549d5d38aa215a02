"""Spark DataFrames become Parquet files whose rows correspond; keys that do not match are counted."""

import numpy as np
import polars as pl
import pytest

from sdckit.engines.spark import aligned_source, frame_of
from sdckit.engines.transport import BlockRef, Reads

WRONG = "key 'id' does not match records one by one: "


def frame(spark, rows, schema="id long, `a.b` double"):
    return spark.createDataFrame(rows, schema)


def test_rows_are_joined_by_key(spark, tmp_path):
    original = frame(spark, [(i, float(i)) for i in range(50)])
    masked = frame(spark, [(i, float(-i)) for i in reversed(range(50))])
    source = aligned_source(original, masked, "id", tmp_path)
    block = source.read(BlockRef(0, 50), Reads(("id", "a.b"), ("id", "a.b")))
    assert sorted(block.original["id"]) == list(range(50))
    assert block.masked["id"].tolist() == block.original["id"].tolist()
    assert (block.masked["a.b"] == -block.original["a.b"]).all()
    back = frame_of(spark, tmp_path / "masked")
    assert back.schema == masked.schema
    assert back.count() == 50


def test_one_frame_needs_no_key(spark, tmp_path):
    source = aligned_source(spark.range(0, 30, 1, 4), None, None, tmp_path)
    assert source.masked is None
    block = source.read(BlockRef(0, 30), Reads(("id",)))
    assert np.array_equal(block.original["id"], np.arange(30))
    assert pl.read_parquet(tmp_path / "original" / "*.parquet").height == 30


def test_keys_that_do_not_match_are_counted(spark, tmp_path):
    original = frame(spark, [(1, 0.0), (2, 0.0), (2, 1.0), (None, 0.0), (4, 0.0), (5, 0.0)])
    masked = frame(spark, [(1, 0.0), (2, 0.0), (3, 0.0)])
    counts = (
        "1 records without a key, 1 keys of several records, 2 keys in the original only, "
        "1 keys in the masked data only; correct them"
    )
    with pytest.raises(ValueError, match=f"^{WRONG}{counts}$"):
        aligned_source(original, masked, "id", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_aligned(spark, tmp_path):
    some = frame(spark, [(1, 0.0)])
    for other, key, said in (
        (some, None, "rows of two Spark DataFrames have no order; name the column of records with key="),
        (some, "no", "the original DataFrame has no column 'no'"),
        (frame(spark, [(1,)], "no long"), "id", "the masked DataFrame has no column 'id'"),
        (
            frame(spark, [("1",)], "id string"),
            "id",
            "key 'id' is bigint in the original and string in the masked",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{said}"):
            aligned_source(some, other, key, tmp_path)
    with pytest.raises(ValueError, match=r"^scratch is hdfs://x; name a folder that all workers see"):
        aligned_source(some, None, None, "hdfs://x")
    with pytest.raises(ValueError, match=r"^the Spark DataFrame has no rows"):
        aligned_source(some.where("false"), None, None, tmp_path)
