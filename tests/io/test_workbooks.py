"""Excel and OpenDocument files: cells of every kind, sheets to choose from, damage in one line."""

import datetime as dt
import sys

import polars as pl
import pytest

from foreign_files import stored
from sdckit.io.files import read, write
from sdckit.io.formats import Dialect
from workbooks import LOCKED, Far, Fault, ods, xlsx

NAMES = ["id", "income", "persons", "share", "price", "owner", "born", "seen", "hour", "remark", "none"]
NOON = dt.datetime(2020, 2, 29, 12, 30)  # noqa: DTZ001 - Excel knows no time zones
MIDNIGHT = NOON.replace(hour=0, minute=0)
OLD, LEAP = dt.date(1969, 12, 31), dt.date(2020, 2, 29)
ROWS = [
    NAMES,
    ["007", 1200.5, 1, 5, "1.50", True, OLD, NOON, dt.time(1, 2, 3), 'say "so", or not', None],
    [None] * len(NAMES),
    ["008", 0.1, None, "NA", "2.25", None, None, None, None, "two\nlines & more", None],
    ["009", Fault("#N/A"), 3, 2.5, None, False, LEAP, MIDNIGHT, None, "", None],
]


def put(folder, data, name="x.xlsx"):
    path = folder / name
    path.write_bytes(data)
    return path


def test_cells_of_every_kind(tmp_path):
    source = read(put(tmp_path, xlsx(Data=ROWS)))
    assert source.frame.to_dict(as_series=False) == {
        "id": ["007", "008", "009"],
        "income": [1200.5, 0.1, None],
        "persons": [1, None, 3],
        "share": ["5", "NA", "2.5"],
        "price": [1.5, 2.25, None],
        "owner": [True, None, False],
        "born": [dt.date(1969, 12, 31), None, dt.date(2020, 2, 29)],
        "seen": [NOON, None, MIDNIGHT],
        "hour": [dt.time(1, 2, 3), None, None],
        "remark": ['say "so", or not', "two\nlines & more", ""],
        "none": [None] * 3,
    }
    assert source.frame.schema["persons"] == pl.Int64
    assert source.text.columns == ["id", "share", "price", "remark", "none"]
    assert source.missing_marks() == {}


def test_words_for_missing_cells(tmp_path):
    source = read(put(tmp_path, xlsx(Data=ROWS)), Dialect(missing=("NA",)))
    assert source.frame["share"].to_list() == [5.0, None, 2.5]
    assert [mark > 0 for mark in source.missing_marks()["share"]] == [False, True, False]
    write(tmp_path / "out.csv", source.frame, source=source)
    assert read(tmp_path / "out.csv").text["share"].to_list() == ["5", "NA", "2.5"]
    masked = source.frame.with_columns(pl.col("share") + 1)
    write(tmp_path / "masked.csv", masked, source=source)
    assert read(tmp_path / "masked.csv").text["share"].to_list() == ["6.0", "NA", "3.5"]


def test_what_is_not_masked_is_written_as_it_stood(tmp_path):
    source = read(put(tmp_path, xlsx(Data=ROWS)))
    write(tmp_path / "out.csv", source.frame, source=source)
    text = read(tmp_path / "out.csv").text
    assert text["id"].to_list() == ["007", "008", "009"]
    assert text["price"].to_list() == ["1.50", "2.25", None]
    assert text["income"].to_list() == ["1200.5", "0.1", None]
    assert text["born"].to_list() == ["1969-12-31", None, "2020-02-29"]
    assert text["remark"].to_list()[:2] == ['say "so", or not', "two\nlines & more"]
    for name in ("out.parquet", "out.arrow"):
        write(tmp_path / name, source.frame, source=source)
        assert read(tmp_path / name).frame.equals(source.frame)
    comma = read(put(tmp_path, xlsx(Data=ROWS)), Dialect(decimal_comma=True))
    write(tmp_path / "comma.csv", comma.frame, source=comma, dialect=comma.dialect)
    assert read(tmp_path / "comma.csv", comma.dialect).frame["price"].to_list() == [1.5, 2.25, None]


def test_rows_of_a_source_can_be_taken(tmp_path):
    source = read(put(tmp_path, xlsx(Data=ROWS)))
    taken = source.take(pl.Series([2, 0]).to_numpy(), ["id", "income", "price"])
    assert taken.frame["id"].to_list() == ["009", "007"]
    assert taken.text.rows() == [("009", None), ("007", "1.50")]


@pytest.mark.parametrize("make", [xlsx, ods])
def test_a_sheet_is_chosen_by_name(tmp_path, make):
    path = put(tmp_path, make(Notes=[["read me"]], Data=[["a"], [1.5]], Empty=[]), f"x.{make.__name__}")
    assert read(path, Dialect(table="Data")).frame.rows() == [(1.5,)]
    with pytest.raises(
        ValueError, match="holds 2 sheets with cells: 'Notes', 'Data'; choose one, such as table='No"
    ):
        read(path)
    with pytest.raises(ValueError, match=r"holds no sheet 'data'; choose from: 'Notes', 'Data', 'Empty'$"):
        read(path, Dialect(table="data"))
    with pytest.raises(ValueError, match=r"sheet 'Empty' of '.*' is empty; give one with"):
        read(path, Dialect(table="Empty"))


def test_sheets_without_cells_need_no_choice(tmp_path):
    assert read(put(tmp_path, xlsx(Data=[["a"], [2]], Sheet2=[], Sheet3=[]))).frame.rows() == [(2,)]


def test_open_document_and_old_excel(tmp_path):
    rows = [
        ["id", "income", "born", "remark"],
        ["007", 1.5, dt.date(2020, 2, 29), "two\nlines"],
        ["8", 2, None, "x"],
    ]
    frame = read(put(tmp_path, ods(Data=rows), "x.ods")).frame
    assert frame.rows() == [("007", 1.5, dt.date(2020, 2, 29), "two\nlines"), ("8", 2.0, None, "x")]
    frame = read(put(tmp_path, stored("old.xls"), "x.xls")).frame
    assert frame.rows() == [
        ("007", 1.5, 3, dt.date(2020, 2, 29), 'say "so"'),
        ("008", 2.25, None, None, "two\nlines"),
    ]


def test_empty_rows_above_and_columns_beside_the_table(tmp_path):
    rows = [[None] * 4, [None, "a", None, "b"], [None, 1, None, "x"], [None, 2, None, "y"]]
    assert read(put(tmp_path, xlsx(Data=rows))).frame.rows() == [(1, "x"), (2, "y")]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (xlsx(Data=ROWS)[:-60], "is no whole Excel file .*; copy or save it again"),
        (xlsx(Data=ROWS)[:400], "is no whole Excel file .*; copy or save it again"),
        (b"a,b\n1,2\n", "is no whole Excel file .*; copy or save it again"),
        (LOCKED, "is locked by a password; save it without one"),
        (xlsx(Data=[]), "sheet 'Data' of '.*' is empty; give one with"),
        (xlsx(Data=[["a", "b"]]), "has column names but no records; give"),
        (xlsx(Data=[["a", None], [1, 2]]), "column 2 of '.*' has no name; name it"),
        (xlsx(Data=[["a", "a"], [1, 2]]), "has two columns named 'a'; rename"),
        (b"", "is empty; give a file"),
        (xlsx(Data=[*ROWS, [Far("XFD1048576")]]), "claims more cells than fit into memory; delete stray"),
    ],
)
def test_bad_workbooks(tmp_path, capfd, data, line):
    with pytest.raises(ValueError, match=line):
        read(put(tmp_path, data))
    assert capfd.readouterr() == ("", "")


def test_the_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(ValueError, match=r'need the package fastexcel; pip install "sdckit\[formats\]"'):
        read(put(tmp_path, xlsx(Data=ROWS)))
