"""R's files: factors, dates, encodings, the kinds of missing cells, and several objects in one file."""

import datetime as dt
import math
import sys
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from foreign_files import stored
from sdckit.io.files import read, write
from sdckit.io.formats import Dialect

VIENNA = ZoneInfo("Europe/Vienna")


def put(folder, name, data=None):
    path = folder / name
    path.write_bytes(stored(name) if data is None else data)
    return path


@pytest.mark.parametrize("name", ["survey.rds", "one.rda"])
def test_columns_of_every_kind(tmp_path, name):
    frame = read(put(tmp_path, name)).frame
    nan = frame["income"].is_nan().to_list()
    assert frame["id"].to_list() == ["007", "008", "009", "010", "011", "012"]
    assert frame["town"].to_list() == ["Bönn", None, "Köln", "Köln", "Bönn", "Aachen"]
    assert frame["persons"].to_list() == [1, None, 3, 2, 5, 4]
    assert nan == [False, None, True, False, False, False]  # NA is null, the result of 0/0 is not
    assert frame["income"].to_list()[3:] == [2300.25, 990.0, 4100.0]
    assert frame["whole"].to_list() == [10, 20, 30, 40, 50, None]
    assert frame["owner"].to_list() == [True, None, False, True, False, True]
    assert frame["remark"].to_list() == ['say "so", or not', None, "two\nlines", "", "NA", "€"]
    assert frame["born"].to_list()[:3] == [dt.date(1969, 12, 31), None, dt.date(2020, 2, 29)]
    assert frame["seen"].to_list()[:3] == [
        dt.datetime(1970, 1, 1, 1, 0, 0, 250_000, VIENNA),
        None,
        dt.datetime(1969, 12, 31, 1, tzinfo=VIENNA),
    ]
    assert frame["here"].dtype == pl.Datetime("us", "UTC")
    assert frame["big"].to_list() == [5, 7, 1, 1, 1, 1]
    assert frame["latin"].unique().to_list() == ["café"]
    kinds = {"persons": pl.Int32, "whole": pl.Int64, "big": pl.Int64, "income": pl.Float64}
    assert {column: frame.schema[column] for column in kinds} == kinds


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_what_was_read_can_be_stored(tmp_path, suffix):
    source = read(put(tmp_path, "survey.rds"))
    write(tmp_path / f"out{suffix}", source.frame, source=source)
    assert read(tmp_path / f"out{suffix}").frame.equals(source.frame)
    assert math.isnan(source.frame["income"][2])


def test_one_of_several_data_frames(tmp_path):
    path = put(tmp_path, "several.rda")
    assert read(path, Dialect(table="other")).frame.rows() == [(3,), (1,), (2,)]
    with pytest.raises(
        ValueError, match="holds 2 data frames: 'survey', 'other'; choose one, such as table='su"
    ):
        read(path)
    with pytest.raises(ValueError, match=r"holds no data frame 'number'; choose from: 'survey', 'other'$"):
        read(path, Dialect(table="number"))


def test_the_encoding_of_old_files(tmp_path):
    path = put(tmp_path, "native.rds")
    with pytest.raises(
        ValueError, match="holds text that is not utf-8; set its encoding, such as encoding='lat"
    ):
        read(path)
    assert read(path, Dialect(encoding="latin-1")).frame["t"].to_list() == ["café", "x"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("number.rds", "holds no data frame; save one, such as with saveRDS"),
        ("listed.rds", "column 'b' of '.*' is a list; drop it or convert it"),
        ("square.rds", "column 'm' of '.*' is no plain vector; drop it or convert it"),
        ("empty.rds", "has column names but no records; give"),
    ],
)
def test_objects_without_a_place(tmp_path, name, line):
    with pytest.raises(ValueError, match=line):
        read(put(tmp_path, name))


@pytest.mark.parametrize("data", [stored("survey.rds")[:-30], b"a,b\n1,2\n", b"X\n"])
def test_damaged_files(tmp_path, data):
    with pytest.raises(ValueError, match=r"is no whole R file .*; copy or save it again$"):
        read(put(tmp_path, "x.rds", data))


def test_the_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdata", None)
    with pytest.raises(ValueError, match=r'need the package rdata; pip install "sdckit\[formats\]"'):
        read(put(tmp_path, "survey.rds"))
