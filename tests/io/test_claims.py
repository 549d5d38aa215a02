"""Headers that claim more records than a file or the memory can hold are refused before any is read."""

import os
import struct

import polars as pl
import pytest

from cases import each
from sdckit.io import memory
from sdckit.io.files import read, write
from sdckit.io.memory import without_panic_messages
from sdckit.io.statfiles import import_pyreadstat
from sdckit.io.statfiles.meta import claimed_records

FRAME = pl.DataFrame({"a_long_name_for_xpt": [1.5, 2.5, 3.5], "y": [1, 2, 3], "s": ["a", "b", "c" * 20]})
MANY = 2**31 - 1
OLD = b"\x73\x02\x01\0" + struct.pack("<HI", 3, MANY) + bytes(200)  # a Stata file of release 115


@pytest.fixture
def no_reader(monkeypatch):
    """A library that must not be asked."""

    def fail(*_, **__):
        raise AssertionError("the file was handed to the library")

    import_pyreadstat()
    monkeypatch.setattr("pyreadstat.pyreadstat.parser_entry_point", fail)


def stored(folder, suffix):
    path = folder / f"file{suffix}"
    write(path, FRAME)
    return path


def claiming(data, suffix, count):
    """The bytes of a file whose header claims another number of records."""
    if suffix == ".dta":
        start = data.index(b"<N>") + 3
        return data[:start] + struct.pack("<Q", count) + data[start + 8 :]
    if suffix == ".xpt":
        start = data.index(b"OBSV8") + 28
        return data[:start] + b"%15d" % count + data[start + 15 :]
    return data[:80] + struct.pack("<i", count) + data[84:]


@pytest.mark.usefixtures("no_reader")
@pytest.mark.parametrize("suffix", [".dta", ".sav", ".zsav", ".xpt"])
def test_a_claim_of_billions_is_refused_before_the_library_is_asked(tmp_path, suffix):
    path = stored(tmp_path, suffix)
    assert claimed_records(suffix, path.read_bytes()) == 3
    path.write_bytes(claiming(path.read_bytes(), suffix, MANY))
    with pytest.raises(ValueError, match=r"^'.*' is no whole (Stata|SPSS|SAS) file .*; copy or export"):
        read(path)


@each("suffix", [".dta", ".sav", ".zsav", ".xpt"])
def test_a_claim_of_a_few_records_more_is_refused_as_well(tmp_path, suffix):
    path = stored(tmp_path, suffix)
    more = 6 if suffix == ".xpt" else 4  # blanks fill up an .xpt file
    path.write_bytes(claiming(path.read_bytes(), suffix, more))
    with pytest.raises(ValueError, match="is no whole"):
        read(path)


def test_files_that_do_not_say_are_read(tmp_path):
    path = stored(tmp_path, ".sav")
    path.write_bytes(claiming(path.read_bytes(), ".sav", -1))
    assert read(path).frame.height == 3


@pytest.mark.parametrize("data", [OLD, OLD[:8], b"\x73", OLD[:1] + b"\x01" + OLD[2:]])
def test_old_stata_files_are_checked_as_well(data):
    with pytest.raises(ValueError, match=r"claims|ends within"):
        claimed_records(".dta", data)


def test_a_parquet_file_beyond_memory_is_one_line_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "long.parquet"
    pl.select(x=pl.repeat(1.0, 200_000)).write_parquet(path)
    assert path.stat().st_size < 10_000
    assert read(path).frame.height == 200_000
    monkeypatch.setattr(memory, "memory_at_hand", lambda: 10**6)
    monkeypatch.setattr(pl, "read_parquet", None)
    with pytest.raises(ValueError, match=r"with 200,000 records takes 1.6 MB of memory and 1 MB are free; "):
        read(path)


@pytest.mark.parametrize("name", ["big.csv", "big.parquet", "big.sav"])
def test_a_file_larger_than_memory_is_not_even_loaded(tmp_path, monkeypatch, name):
    (tmp_path / name).write_bytes(bytes(5000))
    monkeypatch.setattr(memory, "memory_at_hand", lambda: 4999)
    with pytest.raises(ValueError, match=r"^'.*big\.\w+' takes 2?5 kB of memory and 5 kB are free; "):
        read(tmp_path / name)


def test_a_limit_on_the_process_counts_as_memory(monkeypatch):
    if memory.resource is None:
        pytest.skip("Windows knows no such limit")
    free = memory.memory_at_hand()
    monkeypatch.setattr(memory.resource, "getrlimit", lambda _: (10**6, 10**6))
    assert memory.memory_at_hand() == 0 < free


def test_what_a_panicking_library_prints_is_dropped_and_its_error_is_one_line(tmp_path, monkeypatch, capfd):
    def panic(*_, **__):
        os.write(2, b"thread 'x' panicked at lib.rs\nstack backtrace:\n")
        raise pl.exceptions.PanicException("assertion failed")

    path = tmp_path / "x.parquet"
    FRAME.write_parquet(path)
    monkeypatch.setattr(pl, "read_parquet", panic)
    with pytest.raises(ValueError, match=r"is no whole Parquet file .*; copy or export it again$"):
        read(path)
    assert capfd.readouterr().err == ""


def test_what_a_library_prints_otherwise_is_shown(capfd):
    with without_panic_messages():
        os.write(2, b"a remark\n")
    assert capfd.readouterr().err == "a remark\n"


def test_integers_of_128_bits_are_read_as_usual_ones_or_as_text(tmp_path):
    path = tmp_path / "x.parquet"
    wide = {"a": [1, None, 2**62], "b": [1, None, 2**100]}
    pl.DataFrame(wide, schema=dict.fromkeys(wide, pl.Int128)).write_parquet(path)
    found = read(path).frame
    assert found["a"].dtype == pl.Int64
    assert found["a"].to_list() == wide["a"]
    assert found["b"].to_list() == ["1", None, str(2**100)]
