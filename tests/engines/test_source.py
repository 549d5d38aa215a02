"""Blocks of rows of Parquet files are what memory reads: same numbers, same strata, same refusals."""

import os
import pickle
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from sdckit.core.prepared import PreparedTable
from sdckit.engines.source import Source
from sdckit.engines.transport import BlockRef, Reads
from sdckit.metrics.pair import pair_of

N = 1000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    x = np.where(rng.random(N) < 0.1, -0.0, rng.normal(size=N).round(2))
    return pl.DataFrame(
        {
            "x": pl.Series(np.where(rng.random(N) < 0.1, np.nan, x)).set(
                pl.Series(rng.random(N) < 0.1), None
            ),
            "count": pl.Series(rng.integers(0, 9, N)).set(pl.Series(rng.random(N) < 0.1), None),
            "price": pl.Series(rng.integers(0, 999, N) / 100).cast(pl.Decimal(10, 2)),
            "w": rng.random(N) + 0.5,
            "region": pl.Series(rng.choice(["north", "south", "all"], N)).set(
                pl.Series(rng.random(N) < 0.05), None
            ),
            "year": pl.Series(rng.choice([2020.0, 2021.0, np.nan], N)),
        }
    )


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    """The table in one file, and in a folder of files cut at other rows, one of them empty."""
    folder = tmp_path_factory.mktemp("files")
    table.write_parquet(folder / "one.parquet", row_group_size=170)
    (folder / "parts").mkdir()
    for number, (first, rows) in enumerate([(0, 333), (333, 0), (333, 1), (334, 666)]):
        table.slice(first, rows).write_parquet(
            folder / "parts" / f"part-{number}.parquet", row_group_size=100
        )
    (folder / "parts" / "_SUCCESS").write_text("")
    (folder / "parts" / ".part-0.parquet.crc").write_text("")
    return folder


@pytest.mark.parametrize("block_rows", [64, 333, 5000])
@pytest.mark.parametrize("cut", ["one.parquet", "parts"])
def test_blocks_hold_the_numbers_that_memory_reads(table, files, cut, block_rows):
    roles = {"weights": "w", "by": ["region", "year"], "na": [3]}
    source = Source.of(files / cut, files / "parts", block_rows=block_rows, **roles)
    source = pickle.loads(pickle.dumps(source))  # noqa: S301 - our own
    names = ("x", "count", "price")
    memory = PreparedTable.of(table, columns=names, **roles, warn=False)
    assert source.rows == N
    assert [name for name, _ in memory.strata] == list(source.strata_names)
    first = 0
    for ref in source.blocks:
        assert ref.first == first
        first += ref.rows
        block = source.read(ref, Reads(names, ("count",)))
        rows = slice(ref.first, first)
        for j, name in enumerate(names):
            np.testing.assert_array_equal(block.original[name], memory.values[rows, j])
            assert not np.signbit(block.original[name][block.original[name] == 0]).any()
        np.testing.assert_array_equal(block.masked["count"], memory.values[rows, 1])
        np.testing.assert_array_equal(block.weights, memory.weights[rows])
        for number, (_, members) in enumerate(memory.strata):
            inside = np.flatnonzero(block.strata == number) + ref.first
            np.testing.assert_array_equal(inside, members[(members >= ref.first) & (members < first)])
    assert first == N
    source.require_unchanged()


def test_a_list_of_files_is_read_in_its_order(table, files):
    paths = [files / "parts" / f"part-{number}.parquet" for number in (3, 0, 2)]
    block = Source.of(paths).read(BlockRef(0, N), Reads(("w",)))
    expected = pl.concat([table["w"][334:], table["w"][:333], table["w"][333:334]])
    np.testing.assert_array_equal(block.original["w"], expected)


def test_categories_of_several_files_form_the_same_strata(tmp_path):
    for number, cells in enumerate([["b", "a"], ["c", "b"]]):
        pl.DataFrame({"g": pl.Series(cells, dtype=pl.Categorical), "x": [1.0, 2.0]}).write_parquet(
            tmp_path / f"{number}.parquet"
        )
    source = Source.of(tmp_path, by="g", block_rows=1)
    assert source.strata_names == ("b", "a", "c")
    assert [source.read(ref, Reads(("x",))).strata[0] for ref in source.blocks] == [0, 1, 2, 0]


def test_a_pickled_source_is_small(files):
    assert len(pickle.dumps(Source.of(files / "parts", by="region"))) < 5000


def test_a_sample_is_spread_over_the_file_and_always_the_same(table, files):
    source = Source.of(files / "parts")
    sample = source.original.sample(128)
    assert sample.equals(source.original.sample(128))
    assert sample.columns == table.columns
    assert sample.height == 128
    assert sample[0].equals(table[0])
    assert sample[-1].equals(table[-1])
    assert source.original.sample(N).equals(table)
    assert source.original.sample(1).height == 1


def refusal(make):
    """Return type and text of the error that a call raises, which has one line."""
    with pytest.raises((ValueError, TypeError, OSError)) as caught:
        make()
    assert "\n" not in str(caught.value)
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series([1.0, np.inf, 2.0, -np.inf]),
        pl.Series([1, 2**53 + 1, 3, 4]),
        pl.Series([Decimal("0.1234567890123456789"), None, Decimal(1), Decimal(2)]),
        pl.Series(["1", "2", "3", "4"]),
        pl.Series([[1.0], [2.0], [3.0], [4.0]]),
        pl.Series([True, False, True, False]),
    ],
    ids=["infinite", "large", "decimals", "text", "nested", "boolean"],
)
def test_columns_that_memory_refuses_are_refused_with_the_same_words(tmp_path, cells):
    frame = pl.DataFrame({"x": cells, "y": [1.0, 2.0, 3.0, 4.0]})
    frame.write_parquet(tmp_path / "a.parquet")
    source = Source.of(tmp_path / "a.parquet", tmp_path / "a.parquet", block_rows=2)
    memory = refusal(lambda: PreparedTable.of(frame, columns=["x"], warn=False))
    whole = BlockRef(0, 4) if "such as" in memory[1] else BlockRef(0, 2)
    assert refusal(lambda: source.read(whole, Reads(("x",)))) == memory
    assert refusal(lambda: source.read(whole, Reads(masked=("x",)))) == memory


@pytest.mark.parametrize(
    "cells",
    [[1.0, 0.0, -1.0, None], [1.0, np.nan, 2.0, 3.0], [1.0, np.inf, 1.0, 1.0], ["a", "b", "c", "d"]],
    ids=["not above 0", "missing", "infinite", "text"],
)
def test_weights_that_memory_refuses_are_refused_with_the_same_words(tmp_path, cells):
    frame = pl.DataFrame({"w": cells, "y": [1.0, 2.0, 3.0, 4.0]})
    frame.write_parquet(tmp_path / "a.parquet")
    memory = refusal(lambda: PreparedTable.of(frame, columns=["y"], weights="w", warn=False))
    assert refusal(lambda: Source.of(tmp_path / "a.parquet", weights="w", block_rows=1)) == memory


@pytest.mark.parametrize("roles", [{"weights": "v"}, {"by": ["regio"]}, {"na": "x"}])
def test_roles_that_memory_refuses_are_refused_with_the_same_words(table, files, roles):
    memory = refusal(lambda: PreparedTable.of(table, columns=["x"], **roles, warn=False))
    assert refusal(lambda: Source.of(files / "one.parquet", **roles)) == memory


def test_unknown_columns_and_other_lengths_are_refused_as_in_memory(table, files, tmp_path):
    short = table.head(N - 1).drop("x")
    short.write_parquet(tmp_path / "short.parquet")
    assert refusal(lambda: Source.of(files / "parts", tmp_path / "short.parquet")) == refusal(
        lambda: pair_of(table, short, columns=["w"])
    )
    other = table.drop("x")
    other.write_parquet(tmp_path / "other.parquet")
    source = Source.of(files / "parts", tmp_path / "other.parquet")
    assert refusal(lambda: source.require_columns(Reads((), ("x",)))) == refusal(
        lambda: pair_of(table, other, columns=["x"])
    )
    _, text = refusal(lambda: source.require_columns(Reads(("z",))))
    assert text.startswith("unknown column 'z'")
    _, text = refusal(lambda: Source.of(files / "parts").require_columns(Reads((), ("x",))))
    assert text == "there are no masked data to read; give the masked file as well"


def test_strata_of_nested_cells_are_refused(tmp_path):
    pl.DataFrame({"g": [[1], [2]]}).write_parquet(tmp_path / "a.parquet")
    assert refusal(lambda: Source.of(tmp_path / "a.parquet", by="g")) == (
        TypeError,
        "column 'g' is List(Int64), which forms no strata; name another with by=",
    )


def test_files_with_other_columns_are_refused(tmp_path):
    a, b, c = (tmp_path / name for name in ("a.parquet", "b.parquet", "c.parquet"))
    pl.DataFrame({"x": [1.0]}).write_parquet(a)
    pl.DataFrame({"x": [1]}).write_parquet(b)
    pl.DataFrame({"x": [1.0], "y": [1.0]}).write_parquet(c)
    assert refusal(lambda: Source.of(tmp_path))[1] == (
        f"'{a}' has column 'x' as Float64 and '{b}' has column 'x' as Int64; give files with the same columns"
    )
    assert refusal(lambda: Source.of([a, c]))[1] == (
        f"'{a}' has no column 'y' and '{c}' has column 'y' as Float64; give files with the same columns"
    )


def test_folders_without_files_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    assert refusal(lambda: Source.of(tmp_path)) == (
        ValueError,
        f"the folder '{tmp_path}' holds no Parquet file; name one that holds files ending in .parquet",
    )
    (tmp_path / "year=2020").mkdir()
    assert "(it has folders, such as 'year=2020')" in refusal(lambda: Source.of(tmp_path))[1]
    assert refusal(lambda: Source.of([]))[1] == "the list of Parquet files is empty; name at least one"
    gone = tmp_path / "gone.parquet"
    assert refusal(lambda: Source.of(gone)) == (
        FileNotFoundError,
        f"no file '{gone}'; check its name and folder",
    )


@pytest.mark.parametrize("damage", [lambda _: b"", lambda _: b"no table", lambda data: data[:-20]])
def test_files_that_are_no_whole_parquet_file_are_refused(files, tmp_path, damage):
    path = tmp_path / "a.parquet"
    path.write_bytes(damage((files / "one.parquet").read_bytes()))
    assert refusal(lambda: Source.of(path)) == (
        ValueError,
        f"'{path}' is no whole Parquet file (cut off, damaged or another format); copy or export it again",
    )


def test_damage_between_header_and_footer_is_found_when_rows_are_read(files, tmp_path):
    path, data = tmp_path / "a.parquet", (files / "one.parquet").read_bytes()
    path.write_bytes(data[:4] + b"\xff" * 400 + data[404:])
    source = Source.of(path)
    assert "is no whole Parquet file" in refusal(lambda: source.read(source.blocks[0], Reads(("x",))))[1]


def test_too_few_records_are_refused(tmp_path):
    pl.DataFrame({"x": [1.0]}).write_parquet(tmp_path / "a.parquet")
    assert refusal(lambda: Source.of(tmp_path))[1] == "the data have 1 record; give at least 2"


def test_files_that_change_while_they_are_read_are_refused(table, tmp_path):
    path = tmp_path / "a.parquet"
    table.write_parquet(path)
    source = Source.of(path)
    expected = (ValueError, f"'{path}' changed while it was read; start again when it is complete")
    seen = path.stat()
    table.with_columns(pl.col("w").reverse()).write_parquet(path)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns + 1))
    assert refusal(lambda: source.read(source.blocks[0], Reads(("x",)))) == expected
    data = bytearray(path.read_bytes())
    source = Source.of(path)
    seen = path.stat()
    data[-9] ^= 1  # within the footer, at the same size and time
    path.write_bytes(data)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert refusal(source.require_unchanged) == expected
    path.unlink()
    assert refusal(source.require_unchanged)[0] is FileNotFoundError
