"""Stata, SPSS and SAS files: what they cannot hold is refused in one line, and formats tell dates."""

import datetime as dt
import subprocess
import sys

import polars as pl
import pyreadstat
import pytest

from cases import each
from command import HANGING, contents, put
from sdckit.io.atomic import check_target
from sdckit.io.files import check_format, read, write
from sdckit.io.statfiles import dates
from sdckit.io.statfiles.write import import_pyreadstat
from stat_data import MAKERS, put_spss

SUFFIXES = [".sav", ".zsav", ".dta", ".xpt"]


@pytest.mark.parametrize(
    ("suffix", "name", "why"),
    [
        (".dta", "a" * 33, "has no name for Stata, which takes at most 32"),
        (".dta", "two words", "has no name for Stata"),
        (".dta", "2nd", "has no name for Stata"),
        (".dta", "if", "has no name for Stata, a reserved word"),
        (".dta", "str12", "a reserved word"),
        (".sav", "ü" * 33, "has no name for SPSS, which takes at most 64 bytes"),
        (".zsav", "_x", "has no name for SPSS"),
        (".sav", "with", "a reserved word"),
        (".xpt", "a" * 33, "has no name for SAS, which takes at most 32"),
        (".xpt", "größe", "has no name for SAS"),
    ],
)
def test_names_that_a_format_does_not_know_are_refused(tmp_path, suffix, name, why):
    frame = pl.DataFrame({name: [1.0, 2.0]})
    for refuse in (check_format, write):
        with pytest.raises(ValueError, match=r"; rename it or write CSV or Parquet$") as caught:
            refuse(tmp_path / f"x{suffix}", frame)
        assert str(caught.value).startswith(f"column {name!r}")
        assert why in str(caught.value)
    assert contents(tmp_path) == {}


def test_names_that_differ_in_case_only_are_refused_where_they_are_one(tmp_path):
    frame = pl.DataFrame({"a": [1.0], "A": [2.0]})
    write(tmp_path / "x.dta", frame)
    for suffix in (".sav", ".xpt"):
        with pytest.raises(ValueError, match=r"columns 'a' and 'A' are one name in S.*; rename one"):
            write(tmp_path / f"x{suffix}", frame)


@pytest.mark.parametrize(
    ("suffix", "column", "why"),
    [
        (".dta", [1e308], "column 'x' has numbers too large or too small for '.*'; write CSV"),
        (".sav", [float("inf")], "too large or too small"),
        (".xpt", [1e80], "too large or too small"),
        (".xpt", [1e-90], "too large or too small"),
        (".sav", [2**53 + 1], r"integers beyond 2\*\*53, which lose digits in '.*'; store them as text"),
        (".sav", [[1]], "of type List.* has no place in '.*'; drop it or write Parquet"),
        (".dta", ["a\0b"], "holds zero bytes, which '.*' cannot; remove them"),
    ],
)
def test_cells_without_a_place_are_refused(tmp_path, suffix, column, why):
    with pytest.raises(ValueError, match=why):
        write(tmp_path / f"x{suffix}", pl.DataFrame({"x": column}))
    assert contents(tmp_path) == {}


def test_formats_for_reading_only_are_refused_before_any_work(tmp_path):
    for suffix, other in ((".sas7bdat", ".xpt"), (".por", ".sav")):
        with pytest.raises(ValueError, match=f"'.*': {suffix} is for reading only; use {other} instead$"):
            check_target(tmp_path / f"x{suffix}", False)


def test_without_pyreadstat_a_line_names_the_extra(tmp_path, monkeypatch):
    path = put_spss(tmp_path / "in.sav")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    monkeypatch.setitem(sys.modules, "pyreadstat.pyreadstat", None)
    for refused in (lambda: read(path), lambda: check_target(tmp_path / "x.dta", False)):
        with pytest.raises(
            ValueError, match=r'need the package pyreadstat; pip install "sdckit\[formats\]"$'
        ):
            refused()


def test_other_files_do_not_load_pyreadstat(tmp_path):
    put(tmp_path, "x.csv", "a,b\n1,2\n")
    code = (
        "import sys; from sdckit.io.files import read, write; "
        "s = read('x.csv'); write('y.csv', s.frame, source=s); "
        "assert not any(m.startswith(('pyreadstat', 'sdckit.io.stat')) for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=HANGING)


@pytest.mark.long
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_files_are_read_or_refused_but_never_end_the_process(tmp_path, suffix):
    pytest.importorskip("resource", reason="this system has no limit on memory")
    data = MAKERS[suffix](tmp_path / f"in{suffix}").read_bytes()
    code = (
        "import random, resource, sys\nfrom pathlib import Path\nfrom sdckit.io.files import read\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
        "path, dice, refused = Path(sys.argv[1]), random.Random(5), 0\ndata = path.read_bytes()\n"
        "for _ in range(300):\n"
        "    damaged = bytearray(data)\n"
        "    for _ in range(dice.choice((1, 1, 5))):\n"
        "        damaged[dice.randrange(len(data))] = dice.randrange(256)\n"
        "    path.write_bytes(damaged)\n"
        "    try:\n        read(path)\n"
        "    except (ValueError, MemoryError) as error:\n        refused += ';' in str(error)\n"
        "print(refused)"
    )
    path = put(tmp_path, f"x{suffix}", data)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False, timeout=HANGING
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 20


def test_what_pyreadstat_refuses_is_one_line(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise pyreadstat.ReadstatError("A provided label\nis odd")

    monkeypatch.setattr(import_pyreadstat(), "write_dta", refuse)
    with pytest.raises(
        ValueError, match=r"^could not write '.*x.dta' \(a provided label\); use another format$"
    ):
        write(tmp_path / "x.dta", pl.DataFrame({"a": [1.0]}))
    assert contents(tmp_path) == {}


# dates


@each(
    ("family", "form", "unit"),
    [
        ("stata", "%td", "date"),
        ("stata", "%-tdD_m_Y", "date"),
        ("stata", "%d", "date"),
        ("stata", "%tc", "datetime"),
        ("stata", "%tcHH:MM", "time"),
        ("stata", "%tq", "quarter"),
        ("stata", "%ty", None),
        ("stata", "%9.0g", None),
        ("spss", "ADATE10", "date"),
        ("spss", "DATETIME20", "datetime"),
        ("spss", "DTIME10.2", "time"),
        ("spss", "DOLLAR8.2", None),
        ("spss", "A20", None),
        ("sas", "DATE9", "date"),
        ("sas", "YYMMDDN8.", "date"),
        ("sas", "E8601DA10.", "date"),
        ("sas", "DATETIME20.", "datetime"),
        ("sas", "TIME8.", "time"),
        ("sas", "BEST12.", None),
        ("sas", None, None),
    ],
)
def test_formats_tell_dates_from_numbers(family, form, unit):
    assert dates.unit_of(family, form) == unit


def test_weeks_quarters_halves_and_long_times():
    def shown(unit, family, *values):
        return dates.to_dates(pl.Series("x", [*values, None]), family, unit).to_list()

    assert shown("week", "stata", 0.0, 53.0, -1.0)[:3] == [
        dt.date(1960, 1, 1),
        dt.date(1961, 1, 8),
        dt.date(1959, 12, 24),
    ]
    assert shown("quarter", "stata", 201.0) == [dt.date(2010, 4, 1), None]
    assert shown("half", "stata", -1.0) == [dt.date(1959, 7, 1), None]
    assert shown("time", "spss", 90_000.5) == [
        dt.timedelta(days=1, seconds=3600, milliseconds=500),
        None,
    ]
    assert shown("date", "sas", 1e300) == [None, None]
