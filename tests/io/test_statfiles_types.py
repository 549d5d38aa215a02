"""Columns of every type in Stata, SPSS and SAS files: written and read back, or refused in one line."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import polars as pl
import pytest

from cases import each
from sdckit.io.files import check_format, read, write

SUFFIXES = [".dta", ".sav", ".zsav", ".xpt"]
INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
NOON = datetime(2020, 1, 1, 12, 6, 7)  # noqa: DTZ001 - files of these formats know no zone
WRITTEN = {
    "float": [1.5, None, -2.25],
    "bool": [True, None, False],
    "date": [date(2020, 1, 1), None, date(1950, 1, 1)],
    "time": [time(1, 2, 3), None, time(23, 59, 59)],
    "duration": [timedelta(hours=30), None, timedelta(0)],
    "decimal": [Decimal("1.50"), None, Decimal("-2.25")],
    "datetime": [NOON, None, NOON],
    "old date": [date(1890, 5, 6), None, date(2020, 2, 29)],
    "fraction of a second": [NOON.replace(microsecond=250_000), None, None],
}
REFUSED = {
    "null": pl.Series("x", [None] * 3),
    "list": pl.Series("x", [[1]] * 3),
    "binary": pl.Series("x", [b"a"] * 3),
    "struct": pl.Series("x", [{"a": 1}] * 3),
    "object": pl.Series("x", [object()] * 3, pl.Object),
    "long": pl.Series("x", [2**53 + 1, 0, None]),
    "unsigned": pl.Series("x", [2**64 - 1, 0, None], pl.UInt64),
    "huge": pl.Series("x", [-(2**100), 0, None], pl.Int128),
}


def read_back(folder, suffix, column):
    path, texts = folder / f"file{suffix}", ["日本", "", "a, b"]
    write(path, pl.DataFrame([column, pl.Series("y", texts)]), overwrite=True)
    found = read(path).frame
    assert found["y"].to_list() == texts
    return found["x"]


@each("suffix", SUFFIXES)
@each("kind", INTEGERS)
def test_integers_of_every_width_are_read_back(tmp_path, suffix, kind):
    low, high = (pl.select(end(kind)).item() for end in (lambda k: k.min(), lambda k: k.max()))
    cells = [max(low, -(2**53) + 1), None, min(high, 2**53 - 1)]
    assert read_back(tmp_path, suffix, pl.Series("x", cells, kind)).to_list() == cells


@each("suffix", SUFFIXES)
@each("name", WRITTEN)
def test_other_columns_of_numbers_and_times_are_read_back(tmp_path, suffix, name):
    found = read_back(tmp_path, suffix, pl.Series("x", WRITTEN[name]))
    assert found.to_list() == WRITTEN[name]


@each("suffix", SUFFIXES)
def test_times_with_a_zone_are_written_as_the_clock_showed(tmp_path, suffix):
    zoned = pl.Series("x", [NOON.replace(tzinfo=UTC)] * 3)
    assert read_back(tmp_path, suffix, zoned).to_list() == [NOON] * 3


@each("suffix", SUFFIXES)
@each("name", REFUSED)
def test_what_has_no_place_is_one_line(tmp_path, suffix, name):
    with pytest.raises(ValueError, match=r"^column 'x' (of type|has integers beyond).*; ") as caught:
        read_back(tmp_path, suffix, REFUSED[name])
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@each("suffix", SUFFIXES)
def test_types_without_a_place_are_refused_before_any_work(suffix):
    with pytest.raises(ValueError, match=r"^column 'x' of type List\(Int64\) has no place in 'a\."):
        check_format(f"a{suffix}", pl.DataFrame([REFUSED["list"]]))
