"""Round trips of compressed CSV, Arrow and Parquet files: what is not masked comes back to the letter."""

import datetime as dt
import gzip
import io
import sys
import zlib
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from sdckit.io import packing
from sdckit.io.atomic import check_target
from sdckit.io.files import read, write
from sdckit.io.formats import PACKED_SUFFIXES, READABLE, Dialect, stem_of, suffix_of, suffixes_text

INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
TEXT = (
    b'code,price,remark,town,born\n007,1.50,"say ""so"", or not",NA,1969-12-31\n'
    b'008,,"two\nlines",-999,\n009,2.250,,a;b,2020-02-29\n'
)


def ends(kind):
    """The least and the largest number of an integer type, and a missing cell."""
    return pl.Series(kind.__name__, [pl.select(kind.min()).item(), None, pl.select(kind.max()).item()], kind)


def every_type():
    """A table with integers of every width, decimals, labels, dates, times, and text of all sorts."""
    return pl.DataFrame(
        [
            *map(ends, INTEGERS),
            pl.Series("money", [Decimal("1.50"), None, Decimal("-9999999.99")], pl.Decimal(9, 2)),
            pl.Series("exact", [Decimal("0." + "1" * 30), None, Decimal(7)], pl.Decimal(38, 30)),
            pl.Series("small", [0.1, None, -0.0], pl.Float32),
            pl.Series("large", [1e300, float("nan"), None], pl.Float64),
            pl.Series("owner", [True, None, False]),
            pl.Series("remark", ['say "so", or not', "two\r\nlines", None]),
            pl.Series("blank", ["", " ", "NA"]),
            pl.Series("town", ["Köln", None, "Łódź"], pl.Categorical),
            pl.Series("size", ["low", "high", None], pl.Enum(["low", "high"])),
            pl.Series("born", [dt.date(1582, 10, 15), None, dt.date(9999, 12, 31)]),
            pl.Series(
                "seen", [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC), None, None]
            ).dt.convert_time_zone("Europe/Vienna"),
            pl.Series("hour", [dt.time(23, 59, 59, 1), None, dt.time(0)]),
            pl.Series("spent", [dt.timedelta(days=3, microseconds=1), None, dt.timedelta(0)]),
        ]
    )


# --- types ---


@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".arrow", ".feather", ".ipc"])
def test_every_type_comes_back(tmp_path, suffix):
    frame, path = every_type(), tmp_path / f"x{suffix}"
    write(path, frame)
    back = read(path).frame
    assert back.schema == frame.schema
    assert back.equals(frame)
    first = path.read_bytes()
    write(path, back, source=read(path), overwrite=True)
    assert path.read_bytes() == first


def test_arrow_of_other_programs(tmp_path):
    feather = pytest.importorskip("pyarrow.feather", reason="pyarrow is not installed")
    frame = every_type().drop("spent")
    texts = {pl.Categorical: pl.String, pl.Enum: pl.String}  # Arrow has one type for both
    for compression in ("lz4", "zstd", "uncompressed"):
        feather.write_feather(frame.to_arrow(), tmp_path / "x.feather", compression=compression)
        assert read(tmp_path / "x.feather").frame.cast(texts).equals(frame.cast(texts))
    frame.write_ipc_stream(tmp_path / "stream.arrow")
    assert read(tmp_path / "stream.arrow").frame.equals(frame)
    write(tmp_path / "ours.arrow", frame)
    assert feather.read_table(tmp_path / "ours.arrow").schema.field("remark").type == "large_string"


def test_decimals_and_integers_are_written_as_text_in_a_csv(tmp_path):
    frame = every_type().select("money", "exact", "UInt64", "Int64")
    write(tmp_path / "x.csv", frame)
    text = read(tmp_path / "x.csv").text
    assert text["money"].to_list() == ["1.50", None, "-9999999.99"]
    assert text["exact"].to_list() == ["0." + "1" * 30, None, "7." + "0" * 30]
    assert text["UInt64"].to_list() == ["0", None, str(2**64 - 1)]


# --- compressed text ---


@pytest.mark.parametrize("packed", PACKED_SUFFIXES)
@pytest.mark.parametrize(
    ("inner", "dialect", "data"),
    [
        (".csv", Dialect(missing=("NA", "-999")), TEXT),
        (".csv", Dialect(";", encoding="latin-1"), "a;b\nKöln;1,5\nBonn;2,50\n".encode("latin-1")),
        (".tsv", Dialect(), b"a\tb\n007\t1.50\n008\t\n"),
        (".txt", Dialect(decimal_comma=True), b"a;b\n007;1,50\n008;2,5\n"),
    ],
)
def test_compressed_text_comes_back_to_the_letter(tmp_path, packed, inner, dialect, data):
    plain, small = tmp_path / f"x{inner}", tmp_path / f"X{(inner + packed).upper()}"
    plain.write_bytes(data)
    source = read(plain, dialect)
    write(small, source.frame, source=source, dialect=dialect)
    assert packing.unpacked(small, small.read_bytes()) == data
    again = read(small, dialect)
    assert again.frame.equals(source.frame)
    assert again.text.equals(source.text)
    first = small.read_bytes()
    write(small, again.frame, source=again, dialect=dialect, overwrite=True)
    assert small.read_bytes() == first


def test_no_time_and_no_name_is_stored(tmp_path):
    write(path := tmp_path / "x.csv.gz", pl.DataFrame({"a": [1]}))
    data = path.read_bytes()
    assert data[:4] == b"\x1f\x8b\x08\x00"  # no name
    assert data[4:8] == bytes(4)  # no time


def test_files_of_several_compressed_parts(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"))
    assert read(path).frame.rows() == [(1, 2), (3, 4)]


@pytest.mark.parametrize("packed", PACKED_SUFFIXES)
@pytest.mark.parametrize("damage", [lambda data: data[:-5], lambda _: b"a,b\n1,2\n", lambda data: data[:20]])
def test_damaged_compressed_files(tmp_path, packed, damage):
    path = tmp_path / f"x.csv{packed}"
    write(path, pl.DataFrame({"a": range(50)}))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=rf"is no whole \{packed} file \(cut off, .*\); copy it again$"):
        read(path)


def test_content_beyond_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * 100_000))
    monkeypatch.setattr("sdckit.io.memory.memory_at_hand", lambda: 10_000)
    with pytest.raises(ValueError, match="without compression takes 200 kB of memory and 10 kB are free; "):
        read(path)


def test_zstandard_without_its_package(tmp_path, monkeypatch):
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=r'need Python 3.14 or .*; pip install "sdckit\[formats\]"'):
        check_target(tmp_path / "x.csv.zst", overwrite=False)


# --- damage and names ---


def test_other_files_that_are_named_arrow(tmp_path):
    stream = io.BytesIO()
    every_type().write_ipc_stream(stream)
    for data in (b"a,b\n1,2\n", stream.getvalue()[:200], zlib.compress(b"x")):
        (tmp_path / "x.feather").write_bytes(data)
        with pytest.raises(ValueError, match="is no whole Arrow file"):
            read(tmp_path / "x.feather")
    (tmp_path / "x.feather").write_bytes(b"FEA1" + bytes(50))
    with pytest.raises(ValueError, match=r"is Feather of version 1, .*; write it as version 2"):
        read(tmp_path / "x.feather")


@pytest.mark.parametrize(
    ("name", "stem", "suffix"),
    [
        ("a.csv", "a", ".csv"),
        ("a.b.CSV.GZ", "a.b", ".csv.gz"),
        ("a.tar.gz", "a.tar", ".gz"),
        ("a.gz", "a", ".gz"),
        ("a.csv.parquet", "a.csv", ".parquet"),
        (".csv", ".csv", ""),
        ("none", "none", ""),
    ],
)
def test_suffixes(name, stem, suffix):
    assert (stem_of(Path(name)), suffix_of(Path(name))) == (stem, suffix)


def test_suffixes_are_listed_in_few_words():
    text = suffixes_text(READABLE)
    assert text.startswith(".csv, .txt, .tsv, .parquet, ")
    assert text.endswith(".rdata, or .csv.gz, .csv.bz2, .csv.xz, .csv.zst")
    assert suffixes_text([".html", ".htm"]) == ".html, .htm"
