"""Files aligned by key hold the rows that memory pairs; keys that fail are refused with its words."""

import numpy as np
import polars as pl
import pytest

from sdckit.core.roles import match_keys
from sdckit.core.table import Table
from sdckit.engines import local
from sdckit.engines import opening as alignment
from sdckit.engines.files import memory_in_use
from sdckit.engines.opening import align_by_key

N = 3000
MEMORY = 10**9


@pytest.fixture(scope="module")
def tables():
    """Original and masked rows in another order; keys of two columns, one of them of other types."""
    rng = np.random.default_rng(2)
    order = rng.permutation(N)
    original = pl.DataFrame(
        {
            "number": pl.Series(np.arange(N) // 2).cast(pl.Int32),
            "part": pl.Series(["a", "b"] * (N // 2), dtype=pl.Categorical),
            "x": rng.normal(size=N),
        }
    )
    masked = original.with_columns(
        pl.col("x") + 1, pl.col("number").cast(pl.Float64), pl.col("part").cast(str)
    )
    return original, masked.with_columns(text=pl.col("number").cast(str))[order]


def aligned(folder, original, masked, key, **options):
    original.write_parquet(folder / "original.parquet", row_group_size=700)
    masked.write_parquet(folder / "masked.parquet", row_group_size=400)
    (folder / "scratch").mkdir(exist_ok=True)
    return align_by_key(
        folder / "original.parquet",
        folder / "masked.parquet",
        key,
        folder / "scratch",
        memory=memory_in_use() + MEMORY,
        **options,
    )


@pytest.mark.parametrize(("block_rows", "held"), [(N, 0.25), (777, 0.25), (100, 0)])
def test_aligned_files_hold_the_rows_that_memory_pairs(tables, tmp_path, monkeypatch, block_rows, held):
    monkeypatch.setattr(local, "HELD", held)
    original, masked = tables
    key = ["number", "part"]
    source = aligned(tmp_path, original, masked, key, block_rows=block_rows)
    expected = masked[match_keys(Table(original), Table(masked), key)]
    assert source.masked.read(0, N, masked.columns).equals(expected)
    assert source.masked.schema == masked.schema
    assert len(source.masked.files) == -(-N // block_rows)
    assert [path.name[:15] for path in (tmp_path / "scratch").iterdir()] == ["sdckit-aligned-"]


FAILURES = {
    "missing": lambda rows: rows.with_columns(pl.when(pl.col("number") != 7).then("number")),
    "not a number": lambda rows: rows.with_columns(
        pl.when(pl.col("number") == 7).then(float("nan")).otherwise(pl.col("number")).alias("number")
    ),
    "repeated": lambda rows: pl.concat([rows, rows.head(3)]),
    "other": lambda rows: rows.with_columns(pl.col("number") + 5),
    "fewer": lambda rows: rows.head(N - 10),
    "text": lambda rows: rows.with_columns(pl.col("number").cast(str)),
    "no column": lambda rows: rows.drop("part"),
}


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("failure", FAILURES)
def test_keys_that_fail_are_refused_with_the_words_of_memory(tables, tmp_path, side, failure):
    pair = list(tables)
    pair[side] = FAILURES[failure](pair[side])
    key = ["number", "part"]
    with pytest.raises(ValueError, match=r"key|column") as memory:
        match_keys(*map(Table, pair), key)
    with pytest.raises(ValueError, match=r"key|column") as caught:
        aligned(tmp_path, *pair, key, block_rows=900)
    assert str(caught.value) == str(memory.value)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_an_error_while_rows_are_written_leaves_no_file(tables, tmp_path, monkeypatch):
    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(alignment, "atomic", fails)
    with pytest.raises(OSError, match="No space left"):
        aligned(tmp_path, *tables, ["number", "part"])
    assert list((tmp_path / "scratch").iterdir()) == []
