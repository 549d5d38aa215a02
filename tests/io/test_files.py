import errno
import math
import os
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from command import HANGING, interruptible
from full_disk import LIMITED
from sdckit.io.atomic import atomic, check_target
from sdckit.io.files import read, write
from sdckit.io.formats import Dialect

ONE = pl.DataFrame({"a": [1]})


def put(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def bits(values):
    return [None if value is None else struct.pack("<d", value) for value in values]


def one_line(caught):
    line = str(caught.value)
    assert "\n" not in line
    assert "; " in line
    return line


# reading


@pytest.mark.parametrize(
    ("cells", "expected", "kind"),
    [
        (["1", "-2", "0"], [1, -2, 0], pl.Int64),
        (["1", "", "3"], [1, None, 3], pl.Int64),
        ([" 1 ", "2", "3"], [1, 2, 3], pl.Int64),
        (["1", "2.50", ".5"], [1.0, 2.5, 0.5], pl.Float64),
        (["1e3", "-1.5E-2", "2e+1"], [1000.0, -0.015, 20.0], pl.Float64),
        (["inf", "-inf", "1"], [math.inf, -math.inf, 1.0], pl.Float64),
        (["1e400", "1", "1"], [math.inf, 1.0, 1.0], pl.Float64),
        (["9223372036854775807", "1", "1"], [2**63 - 1, 1, 1], pl.Int64),
        (["9223372036854775808", "1", "1"], ["9223372036854775808", "1", "1"], pl.String),
        (["007", "8", "9"], ["007", "8", "9"], pl.String),
        (["+1", "2", "3"], ["+1", "2", "3"], pl.String),
        (["NA", "2", "3"], ["NA", "2", "3"], pl.String),
        (["1_000", "2", "3"], ["1_000", "2", "3"], pl.String),
        (["0x1", "2", "3"], ["0x1", "2", "3"], pl.String),
        (["", "", ""], [None, None, None], pl.String),
        (["nan", "NaN", ""], ["nan", "NaN", None], pl.String),
        ([".", "1", "2"], [".", "1", "2"], pl.String),
    ],
)
def test_only_plain_numbers_become_numbers(tmp_path, cells, expected, kind):
    lines = "".join(f"k,{cell}\n" for cell in cells)
    column = read(put(tmp_path, "key,x\n" + lines)).frame["x"]
    assert column.dtype == kind
    assert column.to_list() == expected


def test_nan_is_a_missing_number_and_minus_zero_keeps_its_sign(tmp_path):
    column = read(put(tmp_path, "a,x\n1,NaN\n1,-0\n1,nan\n")).frame["x"]
    assert column.is_nan().to_list() == [True, False, True]
    assert math.copysign(1, column[1]) == -1


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_text_is_kept_as_it_stood(tmp_path, ends):
    lines = ["code,price,country", "007,1.50,NA", '008,,"a, b"', "009,2.25,"]
    source = read(put(tmp_path, ends.join(lines) + 2 * ends))
    assert source.frame.rows() == [("007", 1.5, "NA"), ("008", None, "a, b"), ("009", 2.25, None)]
    assert source.text.rows() == [("007", "1.50", "NA"), ("008", None, "a, b"), ("009", "2.25", None)]


def test_byte_order_mark_encodings_and_decimal_commas(tmp_path):
    assert read(put(tmp_path, b"\xef\xbb\xbfa,b\n1,2\n")).frame.columns == ["a", "b"]
    french = "é;b\n1,5;-2\n;1e3\n"
    for encoding in ("latin-1", "utf-16", "cp1252", "utf-8-sig"):
        dialect = Dialect(decimal_comma=True, encoding=encoding)
        frame = read(put(tmp_path, french.encode(encoding)), dialect).frame
        assert frame.to_dict(as_series=False) == {"é": [1.5, None], "b": [-2.0, 1000.0]}


def test_with_a_decimal_comma_a_point_makes_text(tmp_path):
    path = put(tmp_path, "a;b\n1.000;1,5\n2.000;2,5\n")
    assert read(path, Dialect(decimal_comma=True)).frame.dtypes == [pl.String, pl.Float64]


def test_tabs(tmp_path):
    assert read(put(tmp_path, "a\tb\n1\t2\n", "x.tsv")).frame.row(0) == (1, 2)
    assert read(put(tmp_path, "a\tb\n1\t2\n", "x.TXT"), Dialect("\\t")).frame.row(0) == (1, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty; give"),
        ("\n \n", "is empty; give"),
        ("\ufeff", "is empty; give"),
        ("a,b\n", "no records; give"),
        ("a,b,a\n1,2,3\n", "two columns named 'a'; rename"),
        ("a,,b\n1,2,3\n", "column 2 of .* has no name; name it"),
        ("a,b\n1,2\n1,2,3\n", r"line 3 of .* \(3, not 2\); correct"),
        ("a,b\n1,2\n1\n", r"line 3 of .* \(1, not 2\); correct"),
        ("a,b\n1,2\n\n1,2\n", r"line 3 of .* \(0, not 2\); correct"),
        ('a,b\n1,"x\ny"\n1\n', r"line 4 of .* \(1, not 2\); correct"),
        ('a,b\n"x,2\n', "line 2 of .* check its quotation marks"),
        ("a;b\n1;2\n", "one column 'a;b' when split at ','; set the delimiter"),
        (b"a\n\xe9\n", "not utf-8 text at byte 2; set its encoding"),
        (b"a\x00\n\x001\x00", "zero bytes: no utf-8 text; set encoding='utf-16' or another"),
    ],
)
def test_bad_text_files_are_explained(tmp_path, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(put(tmp_path, content))
    one_line(caught)


def test_bad_places_are_explained(tmp_path):
    file = put(tmp_path, "a\n1\n")
    cases = [
        (tmp_path / "none.csv", FileNotFoundError, "no file '.*none.csv'; check"),
        (tmp_path, IsADirectoryError, "is a folder; name a file"),
        (file / "below.csv", OSError, "cannot read .*not a directory; check"),
        (tmp_path / ("x" * 300 + ".csv"), OSError, "cannot read .*too long; check"),
        (put(tmp_path, "a", "x.doc"), ValueError, "use one of: .csv, .txt, .tsv, .parquet, .pq"),
    ]
    for path, kind, message in cases:
        with pytest.raises(kind, match=message) as caught:
            read(path)
        one_line(caught)


def test_a_refused_permission_is_explained(tmp_path, monkeypatch):
    def refuse(_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)  # root may read everything, so the system is played
    with pytest.raises(PermissionError, match=r"cannot read .*: permission denied; check"):
        read(put(tmp_path, "a\n1\n"))


@each("suffix", [".parquet", ".arrow"])
@each("keep", [0, 4, 30, 500, -1, -20])
def test_cut_files_are_explained(tmp_path, suffix, keep):
    path = tmp_path / f"x{suffix}"
    write(path, pl.DataFrame({"a": range(1000)}), overwrite=True)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"no whole (Parquet|Arrow) file|is empty") as caught:
        read(path)
    one_line(caught)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": "::"}, "delimiter '::' cannot be used"),
        ({"delimiter": ""}, "delimiter '' cannot be used"),
        ({"delimiter": "§"}, "delimiter '§' cannot be used"),
        ({"delimiter": "."}, "delimiter '.' cannot be used"),
        ({"delimiter": ",", "decimal_comma": True}, "cannot go with a decimal comma"),
        ({"encoding": "klingon"}, "unknown encoding 'klingon'; use"),
        ({"encoding": "base64"}, "unknown encoding 'base64'; use"),
    ],
)
def test_bad_dialects_are_explained(options, message):
    with pytest.raises(ValueError, match=message):
        Dialect(**options)


# writing

floats = st.lists(st.none() | st.floats(allow_nan=False), min_size=1, max_size=30)
dialects = st.sampled_from(
    [Dialect(), Dialect(decimal_comma=True), Dialect("\t"), Dialect(encoding="utf-16")]
)
letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.lists(st.none() | st.text(letters, max_size=6), min_size=1, max_size=12)


@settings(deadline=None)  # a disk may pause
@given(values=floats, dialect=dialects)
def test_floats_survive_bit_for_bit(values, dialect):
    values = [0.5, *values]
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})
    with tempfile.TemporaryDirectory() as folder:
        for name in ("x.csv", "x.parquet"):
            write(Path(folder, name), frame, dialect=dialect)
            assert bits(read(Path(folder, name), dialect).frame["x"]) == bits(values)


@settings(deadline=None)  # a disk may pause
@given(values=texts, dialect=dialects, alone=st.booleans())
def test_text_survives_letter_for_letter(values, dialect, alone):
    frame = pl.DataFrame({"x": pl.Series(["word", *values], dtype=pl.String)})
    if not alone:
        frame = frame.with_columns(y=pl.lit(1), z=pl.col("x"))
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "a.csv"), Path(folder, "b.csv")
        write(first, frame, dialect=dialect)
        source = read(first, dialect)
        expected = frame["x"].fill_null("") if alone else frame["x"]
        assert source.text["x"].to_list() == expected.to_list()
        write(second, source.frame, source=source, dialect=dialect)
        assert second.read_bytes() == first.read_bytes()


def test_only_changed_columns_are_written_anew(tmp_path):
    content = 'code,price,income,country\n007,1.50,1.50,NA\n008,,2.50,"a, b"\n'
    path = put(tmp_path, content)
    before = path.stat()
    source = read(path)
    masked = source.frame.with_columns(income=pl.Series([1.5, 0.1 + 0.2]))
    write(tmp_path / "out.csv", masked, source=source)
    expected = 'code,price,income,country\n007,1.50,1.5,NA\n008,,0.30000000000000004,"a, b"\n'
    assert (tmp_path / "out.csv").read_text() == expected
    assert path.read_text() == content
    assert path.stat() == before


def test_a_changed_column_that_is_not_named_never_gets_its_original_text_back(tmp_path):
    source = read(put(tmp_path, "a,b\n1.50,x\n2.50,y\n"))
    write(tmp_path / "masked.csv", source.frame.with_columns(a=pl.lit(2.0)), source=source)
    assert (tmp_path / "masked.csv").read_text() == "a,b\n2.0,x\n2.0,y\n"
    write(tmp_path / "fewer.csv", source.frame[1:], source=source)
    assert (tmp_path / "fewer.csv").read_text() == "a,b\n2.5,y\n"


def test_original_numbers_follow_the_new_decimal_mark(tmp_path):
    source = read(put(tmp_path, "a,b\n1.50,x\n"))
    write(tmp_path / "out.csv", source.frame, source=source, dialect=Dialect(decimal_comma=True))
    assert (tmp_path / "out.csv").read_text() == "a;b\n1,5;x\n"


def test_missing_values_are_empty_cells(tmp_path):
    frame = pl.DataFrame({"a": [math.nan, None, 1.0], "b": [1, None, 2]})
    write(tmp_path / "x.csv", frame)
    assert (tmp_path / "x.csv").read_text() == "a,b\n,1\n,\n1.0,2\n"


def test_whole_numbers_are_shown_without_decimals_where_asked_for(tmp_path):
    frame = pl.DataFrame({"a": [1234.0, -0.0, None, 1e300, -5.0], "b": [1.0, 2.5, 3.0, 4.0, 5.0]})
    write(tmp_path / "x.csv", frame, whole=["a"])
    text = (tmp_path / "x.csv").read_text().replace("1e300", "1e+300")  # as older versions of polars write it
    assert text == "a,b\n1234,1.0\n0,2.5\n,3.0\n1e+300,4.0\n-5,5.0\n"
    write(tmp_path / "x.parquet", frame, whole=["a"])
    assert read(tmp_path / "x.parquet").frame.dtypes == [pl.Float64, pl.Float64]


def test_what_a_format_cannot_hold_is_explained(tmp_path):
    with pytest.raises(ValueError, match=r"column 'a' of type List.* drop it or write Parquet"):
        write(tmp_path / "x.csv", pl.DataFrame({"a": [[1]]}))
    with pytest.raises(ValueError, match="latin-1 has no '€'; set encoding='utf-8'"):
        write(tmp_path / "x.csv", pl.DataFrame({"a": ["€"]}), dialect=Dialect(encoding="latin-1"))
    assert list(tmp_path.iterdir()) == []


def test_bad_targets_are_refused_before_any_work(tmp_path):
    file = put(tmp_path, "a\n1\n")
    cases = [
        (file, FileExistsError, r"exists already; choose another name or overwrite it \(overwrite=True\)"),
        (tmp_path, IsADirectoryError, "is a folder; name a file"),
        (tmp_path / "none" / "x.csv", FileNotFoundError, "no folder '.*none' to write 'x.csv' into; create"),
        (file / "x.csv", OSError, "no folder .*create"),
        (tmp_path / "x.doc", ValueError, "use one of: .csv"),
    ]
    for path, kind, message in cases:
        with pytest.raises(kind, match=message) as caught:
            check_target(path, False)
        one_line(caught)
    check_target(file, True)
    check_target(tmp_path / "new.csv", False)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc to play a read-only folder")
def test_an_unwritable_folder_is_refused():
    with pytest.raises(OSError, match=r"could not write '/proc/x.csv': .*; choose another folder") as caught:
        check_target("/proc/x.csv", False)
    one_line(caught)
    with pytest.raises(OSError, match=r"could not write '/proc/x.txt'"):
        write("/proc/x.txt", ONE)


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet", ".arrow", ".sav", ".zsav", ".dta", ".xpt"])
def test_a_full_disk_is_one_line_and_leaves_the_old_file(tmp_path, suffix):
    pytest.importorskip("resource", reason="this system has no limit on file sizes")
    target = put(tmp_path, "before", f"out{suffix}")
    command = [sys.executable, "-c", LIMITED, str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANGING)
    assert done.stdout.startswith(f"could not write '{target}': file too large; raise the limit")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_no_space_left_is_one_line(tmp_path):
    def full():
        with atomic(tmp_path / "x.csv"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"could not write .*: no space left on device; free some space"):
        full()
    assert list(tmp_path.iterdir()) == []


def test_errors_that_are_not_about_the_target_pass_unchanged(tmp_path):
    with pytest.raises(FileNotFoundError, match="other"), atomic(tmp_path / "x.csv"):
        (tmp_path / "other").read_text()


@pytest.mark.parametrize("overwrite", [False, True])
def test_ctrl_c_leaves_everything_as_it_was(tmp_path, overwrite):
    target = tmp_path / "x.csv"
    if overwrite:
        target.write_text("before")

    def interrupted():
        with atomic(target, overwrite) as temporary:
            temporary.write_text("half")
            signal.raise_signal(signal.SIGINT)

    with interruptible(), pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"] * overwrite


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path, monkeypatch, links):
    def unsupported(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    if not links:
        monkeypatch.setattr(Path, "hardlink_to", unsupported)
    target = tmp_path / "x.csv"
    write(target, ONE)
    assert target.read_text() == "a\n1\n"
    with pytest.raises(FileExistsError, match="exists already"), atomic(target) as temporary:
        temporary.write_text("late")
    assert target.read_text() == "a\n1\n"
    write(target, ONE * 2, overwrite=True)
    assert target.read_text() == "a\n2\n"
    assert list(tmp_path.iterdir()) == [target]


def test_a_name_claimed_in_vain_is_given_back(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="could not write"):
        write(tmp_path / "x.txt", ONE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows knows neither modes nor free links")
def test_overwriting_keeps_mode_and_link(tmp_path):
    file = put(tmp_path, "before")
    file.chmod(0o600)
    link = tmp_path / "link.csv"
    link.symlink_to(file)
    write(link, ONE, overwrite=True)
    assert link.is_symlink()
    assert file.read_text() == "a\n1\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_polars_error_never_shows_as_such(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise pl.exceptions.ComputeError("something\nwith many lines")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    with pytest.raises(ValueError, match=r"could not write .*\(something\); change") as caught:
        write(tmp_path / "x.parquet", ONE)
    one_line(caught)
    assert list(tmp_path.iterdir()) == []
