"""Masking on Spark: the file that blocks in memory give, on any partitions."""

import polars as pl
import pytest

from masked_files import NAMES, SEED, masked, survey
from sdckit.engines.masking import mask_files
from sdckit.engines.spark import SparkTransport


@pytest.mark.parametrize(("name", "partitions"), [("noise", 40), ("rank_swap", 7)])
def test_a_file_masked_on_spark_is_that_of_any_engine(spark, tmp_path, name, partitions):
    survey().write_parquet(tmp_path / "in.parquet")
    expected, _ = masked(tmp_path / "in.parquet", tmp_path / "toy.parquet", name, by="area", decimals=1)
    made = mask_files(
        tmp_path / "in.parquet",
        name,
        transport=lambda source: SparkTransport(source, spark, partitions=partitions),
        output=tmp_path / "out",
        rng=SEED,
        decimals=1,
        roles={"columns": list(NAMES), "by": "area", "untouched": "name"},
    )
    assert pl.read_parquet(made.path).equals(expected)
