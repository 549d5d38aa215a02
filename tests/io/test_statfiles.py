"""Stata, SPSS and SAS files: labels, formats and missing codes come back as they were."""

import datetime as dt
import re
import warnings

import polars as pl
import pyreadstat
import pytest
from polars.testing import assert_frame_equal, assert_series_equal

from command import contents, put
from sdckit.io import statfiles
from sdckit.io.files import read, write
from sdckit.io.formats import Dialect
from stat_data import LABELS, MAKERS, SEX, N, put_sas, put_spss, put_stata, raw, survey

SUFFIXES = [".sav", ".zsav", ".dta", ".xpt"]
CODES = "missing codes of columns 'sex', 'age' become"


def made(folder, suffix):
    return MAKERS[suffix](folder / f"in{suffix}")


def silent_write(*given, **more):
    with warnings.catch_warnings(action="ignore"):
        write(*given, **more)


# reading


def test_spss_codes_are_missing_and_known(tmp_path):
    source = read(put_spss(tmp_path / "in.sav"))
    frame, meta = source.frame, source.meta
    assert frame["age"].to_list()[:5] == [None, None, None, None, survey()["age"][4]]
    assert meta.codes["age"].to_list()[:5] == [99, 98, -1, None, None]
    assert frame["sex"][0] is None
    assert meta.codes["sex"][0] == 9
    assert frame["town"].to_list()[:4] == ["Köln", "Łódź", "", "Bonn"]
    assert meta.labels == LABELS
    assert meta.value_labels["sex"] == SEX | {9: "k. A."}
    assert meta.declared["age"] == [{"lo": 98, "hi": 99}, {"lo": -1, "hi": -1}]
    assert (meta.file_label, meta.notes) == ("Umfrage", ("erste Welle", "zweite Welle"))
    assert (meta.measures["sex"], meta.widths["age"]) == ("nominal", 14)


def test_stata_letters_are_missing_and_known(tmp_path):
    source = read(put_stata(tmp_path / "in.dta"))
    assert source.frame["age"].to_list()[:3] == [None] * 3
    assert source.meta.codes["age"].to_list()[:4] == ["a", "z", None, None]
    assert source.meta.value_labels["age"] == {"a": "weigert sich", "c": "nie"}
    assert source.frame["town"][3] == "Bonn "


@pytest.mark.parametrize("version", [5, 8])
def test_sas_letters_are_missing_and_known(tmp_path, version):
    source = read(put_sas(tmp_path / "in.xpt", version))
    assert source.frame["age"].to_list()[:2] == [None, None]
    assert source.meta.codes["age"].to_list()[:2] == ["A", None]


def test_dates_are_dates_and_whole_numbers_are_whole(tmp_path):
    days = [dt.date(1970, 1, 1) + dt.timedelta(int(d)) for d in survey()["born"]]
    spss, stata, sas = (read(made(tmp_path, suffix)).frame for suffix in (".sav", ".dta", ".xpt"))
    assert spss["born"].to_list() == days
    assert stata["born"].to_list() == sas["born"].to_list() == [d - dt.timedelta(3653) for d in days]
    assert stata["month"].to_list()[:2] == [dt.date(2010, 1, 1), dt.date(2010, 2, 1)]
    second = dt.datetime(1960, 1, 1) + dt.timedelta(milliseconds=1e12 + 1_234)  # noqa: DTZ001 - as stored
    assert stata["moment"][1] == second
    for frame in (spss, stata, sas):
        assert frame["age"].dtype == frame["sex"].dtype == pl.Int64
        assert frame["income"].dtype == pl.Float64


def test_a_column_is_labelled_when_each_of_its_values_is(tmp_path):
    assert read(put_spss(tmp_path / "in.sav")).labelled == ("sex",)
    assert read(put_stata(tmp_path / "in.dta")).labelled == ("sex",)
    frame = pl.DataFrame(
        {"a": [1.0, 2.0], "b": [1.0, 3.0], "c": [None, None], "d": [1.5, 1.5], "e": ["x", "y"]}
    )
    labels = {name: {1.0: "one", 2.0: "two"} for name in "abc"} | {
        "d": {1.5: "half"},
        "e": {"x": "u", "y": "v"},
    }
    pyreadstat.write_sav(frame, tmp_path / "x.sav", variable_value_labels=labels)
    assert read(tmp_path / "x.sav").labelled == ("a", "d")


def test_open_ranges_and_other_encodings(tmp_path):
    path = tmp_path / "x.sav"
    frame = pl.DataFrame({"a": [-5.0, -1.0, 0.0, 7.0]})
    pyreadstat.write_sav(frame, path, missing_ranges={"a": [{"lo": float("-inf"), "hi": -1}]})
    source = read(path, Dialect(encoding="latin-1"))
    assert source.frame["a"].to_list() == [None, None, 0, 7]
    write(tmp_path / "y.sav", source.frame, source=source)
    assert raw(tmp_path / "y.sav") == raw(path)


def test_por_files_are_read(tmp_path):
    pyreadstat.write_por(survey().select("age", "sex"), tmp_path / "in.por")
    source = read(tmp_path / "in.por")
    assert source.frame["AGE"].to_list() == survey()["age"].to_list()
    silent_write(tmp_path / "out.sav", source.frame, source=source)
    assert raw(tmp_path / "out.sav")[0]["SEX"] == survey()["sex"].to_list()


def test_sas7bdat_is_read_by_its_own_parser(tmp_path, monkeypatch):
    real = statfiles.import_pyreadstat().parser_entry_point
    asked = []

    def played(data, form, **options):  # pyreadstat writes no such file
        asked.append(form)
        return real(data, "xport", **options)

    monkeypatch.setattr(statfiles.import_pyreadstat(), "parser_entry_point", played)
    path = put_sas(tmp_path / "in.xpt").rename(tmp_path / "in.sas7bdat")
    source = read(path)
    assert asked == ["sas7bdat"]
    assert source.meta.codes["age"][0] == "A"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_cut_and_foreign_files_are_one_line(tmp_path, suffix):
    whole = made(tmp_path, suffix).read_bytes()
    program = {".dta": "Stata", ".xpt": "SAS"}.get(suffix, "SPSS")
    cuts = [
        whole[:k] for k in (1, 30, 200, len(whole) // 3, len(whole) // 2, len(whole) - 200, len(whole) - 3)
    ]
    for content in [b"a,b\n1,2\n", *cuts]:
        if suffix == ".xpt" and len(content) % 80 == 0:
            continue
        path = put(tmp_path, f"cut{suffix}", content)
        with pytest.raises(
            ValueError, match=rf"^'.*' is no whole {program} file \(.*\); copy or export it again$"
        ):
            read(path)


# writing


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_unchanged_table_comes_back_cell_by_cell_and_word_by_word(tmp_path, suffix):
    path = made(tmp_path, suffix)
    before = path.read_bytes()
    source = read(path)
    out = tmp_path / f"out{suffix}"
    write(out, source.frame, source=source)
    assert raw(out) == raw(path)
    assert_frame_equal(read(out).frame, source.frame)
    assert path.read_bytes() == before
    assert sorted(contents(tmp_path)) == sorted([path.name, out.name])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_masked_table_keeps_codes_labels_and_formats(tmp_path, suffix):
    path = made(tmp_path, suffix)
    source = read(path)
    masked = source.frame.with_columns(pl.col("age").cast(pl.Float64) + 0.5, pl.col("income") * 2)
    out = tmp_path / f"out{suffix}"
    write(out, masked, source=source)
    (ours, about), (theirs, kept) = raw(path), raw(out)
    for name in ours:
        if name not in {"age", "income"}:
            assert theirs[name] == ours[name]
    codes = [cell for cell, shown in zip(ours["age"], source.frame["age"], strict=True) if shown is None]
    assert [cell for cell, shown in zip(theirs["age"], masked["age"], strict=True) if shown is None] == codes
    assert_series_equal(read(out).frame["age"], masked["age"])
    assert_series_equal(read(out).frame["income"], masked["income"])
    changed = {"readstat_variable_types", "variable_storage_width"} if suffix == ".dta" else set()
    assert {name for name in kept if kept[name] != about[name]} <= changed


def test_stata_integers_stay_integers_where_the_values_allow(tmp_path):
    source = read(put_stata(tmp_path / "in.dta"))
    write(tmp_path / "a.dta", source.frame.with_columns(pl.col("age") + 1), source=source)
    assert raw(tmp_path / "a.dta")[1]["readstat_variable_types"]["age"] == "int32"
    for cell in (2**31 - 27, 0.5):  # one that Stata would take for missing, and one that is not whole
        new = source.frame.with_columns(pl.Series("age", [None, None, *[float(cell)] * (N - 2)]))
        write(tmp_path / "b.dta", new, source=source, overwrite=True)
        cells, meta = raw(tmp_path / "b.dta")
        assert meta["readstat_variable_types"]["age"] == "double"
        assert cells["age"][:3] == ["a", "z", cell]


def test_a_suppressed_cell_is_plainly_missing_and_a_filled_one_is_a_number(tmp_path):
    source = read(put_spss(tmp_path / "in.sav"))
    ages = [40, None, 41, None, None, *source.frame["age"][5:]]
    write(tmp_path / "out.sav", source.frame.with_columns(pl.Series("age", ages)), source=source)
    assert raw(tmp_path / "out.sav")[0]["age"][:5] == [40, 98, 41, None, None]


def test_values_that_fall_on_a_missing_code_are_counted(tmp_path):
    source = read(put_spss(tmp_path / "in.sav"))
    ages = [*source.frame["age"][:-2], 98, 98.5]
    masked = source.frame.with_columns(pl.Series("age", ages, strict=False))
    with pytest.warns(UserWarning, match=r"column 'age' has 2 values that '.*out.sav' declares missing; dr"):
        write(tmp_path / "out.sav", masked, source=source)


def test_fewer_records_or_columns_have_no_codes_of_others(tmp_path):
    source = read(put_stata(tmp_path / "in.dta"))
    write(tmp_path / "out.dta", source.frame[1:].select("age", "born"), source=source)
    cells, about = raw(tmp_path / "out.dta")
    assert cells["age"][:3] == [None, None, raw(tmp_path / "in.dta")[0]["age"][3]]
    assert cells["born"] == raw(tmp_path / "in.dta")[0]["born"][1:]
    assert about["original_variable_types"]["born"] == "%tdCCYY-NN-DD"


@pytest.mark.parametrize(
    ("start", "end", "lost"),
    [
        (".sav", ".dta", [CODES, "value labels of column 'town' have no"]),
        (".sav", ".xpt", [CODES, "value labels of columns 'town', 'sex', 'age' have"]),
        (".sav", ".csv", [f"{CODES} plain missing .*; a .sav file keeps them"]),
        (".dta", ".sav", [f"{CODES} plain missing .*; a .dta file keeps them"]),
        (".dta", ".parquet", [CODES]),
        (".dta", ".xpt", ["value labels of columns 'sex', 'age' have no place in .*; a .sav file keeps"]),
        (".xpt", ".dta", []),
        (".xpt", ".zsav", ["missing codes of column 'age' become plain .*; an .xpt or .dta file keeps"]),
    ],
)
def test_between_families_what_both_know_is_kept_and_the_rest_is_named(tmp_path, start, end, lost):
    source = read(made(tmp_path, start))
    out = tmp_path / f"out{end}"
    with warnings.catch_warnings(record=True, action="always") as caught:
        write(out, source.frame, source=source)
    lines = sorted({str(line.message) for line in caught})
    assert any(line.startswith("the notes in the file are not kept") for line in lines) == (
        start == ".sav" and end in {".dta", ".xpt"}
    )
    lines = [line for line in lines if "notes" not in line]
    assert len(lines) == len(lost)
    for line, pattern in zip(lines, sorted(lost), strict=True):
        assert re.search(f"^{pattern}", line)
        assert "\n" not in line
    back = read(out).frame
    if end == ".csv":
        assert back["born"].to_list() == [str(day) for day in source.frame["born"]]
    if end in SUFFIXES:
        assert_frame_equal(back.drop("town"), source.frame.drop("town"))
        _, about = raw(out)
        assert about["column_labels"] == raw(tmp_path / f"in{start}")[1]["column_labels"]
        kept = {name: labels for name, labels in read(out).meta.value_labels.items() if name == "sex"}
        assert kept.get("sex", {}).get(1) == (SEX[1] if end != ".xpt" and start != ".xpt" else None)
    if {start, end} == {".dta", ".xpt"}:
        case = str.lower if end == ".dta" else str.upper
        assert raw(out)[0]["age"][0] == case("a")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_floats_survive_bit_for_bit(tmp_path, suffix):
    values = [0.1, -1 / 3, 5e-324, 1.7e307, 2.0**-200, 123456789.123456789, -0.5]
    if suffix == ".xpt":
        values = [v for v in values if 1e-78 < abs(v) < 1e75]
    write(tmp_path / f"x{suffix}", pl.DataFrame({"x": values}))
    assert read(tmp_path / f"x{suffix}").frame["x"].to_list() == values


def test_long_labelled_names_and_long_texts_in_stata(tmp_path):
    path, name = tmp_path / "x.dta", "ä" * 32
    pyreadstat.write_dta(
        pl.DataFrame({"a": ["x" * 3000, "", "y"], "b": [1.0, 2.0, 1.0], "_sdckit1": [1.0, 2.0, 3.0]}),
        path,
        version=14,
        variable_value_labels={"b": {1: "one", 2: "two"}},
    )
    source = read(path)
    meta = source.meta
    meta.value_labels[name] = meta.value_labels.pop("b")
    frame = source.frame.rename({"b": name})
    write(tmp_path / "y.dta", frame, source=source)
    back = read(tmp_path / "y.dta")
    assert_frame_equal(back.frame, frame)
    assert back.meta.value_labels == {name: {1: "one", 2: "two"}}


def test_labels_that_are_too_long_are_cut_with_a_word(tmp_path):
    path = tmp_path / "x.sav"
    pyreadstat.write_sav(
        pl.DataFrame({"a": [1.0, 2.0]}),
        path,
        column_labels={"a": "ü" * 100},
        variable_value_labels={"a": {1: "x" * 99}},
    )
    source = read(path)
    with pytest.warns(
        UserWarning, match=r"^labels of column 'a' are too long for '.*y.dta' and are cut; shorten"
    ):
        write(tmp_path / "y.dta", source.frame, source=source)
    assert read(tmp_path / "y.dta").meta.labels["a"] == "ü" * 80
