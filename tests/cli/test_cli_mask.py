"""`sdckit mask` on good input: what it prints, what it writes, and what it never shows."""

import io
import json
import re

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sdckit as sdc
from cases import few
from command import ROLES, contents, good, put, put_survey, run, said
from sdckit.io.files import read
from sdckit.metrics.publishable import public_evaluation

pytestmark = pytest.mark.usefixtures("survey")

SEED = "918273645"


@pytest.fixture
def survey(tmp_path):
    return put_survey(tmp_path)


@pytest.mark.parametrize(
    ("method", "suffix"), few([*((name, "csv") for name in sdc.METHODS), ("mdav", "parquet")], 5)
)
def test_mask_every_method(tmp_path, survey, method, suffix):
    if suffix == "parquet":
        survey.write_parquet(tmp_path / "data.parquet")
    before = (tmp_path / f"data.{suffix}").read_bytes()
    done = good(tmp_path, "mask", f"data.{suffix}", "-o", f"out.{suffix}", "--method", method, *ROLES)
    ours, theirs = read(tmp_path / f"data.{suffix}"), read(tmp_path / f"out.{suffix}")
    others = ["id", "grade", "region", "weight"]
    assert_frame_equal(theirs.frame.select(others), ours.frame.select(others))
    assert theirs.frame.columns == ours.frame.columns
    assert not theirs.frame["income"].equals(ours.frame["income"])
    assert theirs.frame["rooms"].null_count() >= 6
    assert "note: wrote out" in done.stdout
    paired = sdc.METHODS[method].paired
    assert said(done) == "" if paired else said(done).startswith(f"warning: rows of {method} stand for no")
    assert (tmp_path / f"data.{suffix}").read_bytes() == before


@pytest.mark.parametrize(("source", "target"), [("csv", "parquet"), ("parquet", "csv"), ("csv", "tsv")])
def test_mask_from_one_format_into_another(tmp_path, survey, source, target):
    survey.write_parquet(tmp_path / "data.parquet")
    good(tmp_path, "mask", f"data.{source}", "-o", f"out.{target}", "--method", "noise", *ROLES)
    done = good(tmp_path, "evaluate", f"data.{source}", f"out.{target}", *ROLES, "--json")
    assert 0 < json.loads(done.stdout)["table"][0]["value"] < 0.5


def test_other_columns_keep_every_letter(tmp_path):
    rows = [f'00{i},1.{i}0,NA,"a ""b"", c",{i * 1.25}' for i in range(10)]
    put(tmp_path, "data.csv", "\n".join(["code,fixed,word,quoted,x", *rows, ""]))
    good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "mdav", "--columns", "x")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines[1:]] == [row.rsplit(",", 1)[0] for row in rows]


@pytest.mark.parametrize(
    ("options", "encoding", "delimiter", "mark"),
    [
        (["--decimal-comma"], "utf-8", ";", ","),
        (["--delimiter", ";"], "utf-8", ";", "."),
        (["--encoding", "latin-1"], "latin-1", ",", "."),
        (["--delimiter", "\\t"], "utf-8", "\t", "."),
        (["--decimal-comma", "--delimiter", "|", "--encoding", "utf-16"], "utf-16", "|", ","),
    ],
)
def test_dialects(tmp_path, options, encoding, delimiter, mark):
    rows = [f"Köln{delimiter}{i}{mark}{i * 7 % 10}{i * 3 % 10}" for i in range(20)]
    put(tmp_path, "data.csv", "\n".join([f"Ort{delimiter}Wert", *rows, ""]).encode(encoding))
    done = good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "noise", *options)
    lines = (tmp_path / "out.csv").read_bytes().decode(encoding).splitlines()
    assert lines[0] == f"Ort{delimiter}Wert"
    town, value = lines[5].split(delimiter)
    assert town == "Köln"
    assert re.fullmatch(rf"-?\d+{re.escape(mark)}\d+", value)
    assert "1 masked column " in done.stdout
    assert "brmae" in good(tmp_path, "evaluate", "data.csv", "out.csv", *options).stdout


@pytest.mark.parametrize(
    ("decimals", "pattern"), [("original", r"\.\d{1,2}"), ("0", ""), ("none", r"\.\d{3,}")]
)
def test_decimals(tmp_path, survey, decimals, pattern):
    words = ["mask", "data.csv", "-o", "out.csv", "--method", "noise", *ROLES, "--decimals", decimals]
    good(tmp_path, *words)
    source = read(tmp_path / "out.csv")
    found = [bool(re.fullmatch(rf"-?\d+{pattern}", cell)) for cell in source.text["income"]]
    assert np.mean(found) > 0.9
    assert found[0] or decimals == "none"
    if decimals == "original":
        assert source.frame["age"].dtype == source.frame["rooms"].dtype == pl.Int64
    assert survey.height == source.frame.height


@pytest.mark.parametrize("method", ["mdav", "rank_swap"])
def test_figures_are_those_of_the_written_file(tmp_path, survey, method):
    # Of what mask writes the order of rows is known, of files paired by key it is not: it must tell nothing.
    survey = survey.sample(fraction=1, shuffle=True, seed=7)
    survey.write_csv(tmp_path / "data.csv")
    words = ["data.csv", "-o", "out.csv", "--method", method, *ROLES, "--by", "region", "--overwrite"]
    printed = json.loads(good(tmp_path, "mask", *words, "--json").stdout)
    assert not any("rows are sorted" in note for note in printed["notes"])
    expected = sdc.Microdata(
        read(tmp_path / "data.csv").frame, key="id", weights="weight", by="region"
    ).evaluate(read(tmp_path / "out.csv").frame, made_by=sdc.Method(method))
    rows = pl.DataFrame(printed["table"], schema=expected.table.schema)
    public = public_evaluation(expected)
    assert_frame_equal(rows, public.table)
    assert printed["meaning"] == public.meaning
    assert survey["region"].unique(maintain_order=True)[1] == rows["stratum"].unique(maintain_order=True)[2]
    words = ["evaluate", "data.csv", "out.csv", *ROLES, "--by", "region", "--made-by", method, "--csv"]
    again = good(tmp_path, *words, "--private-output").stdout
    assert_frame_equal(pl.read_csv(io.StringIO(again), schema=expected.table.schema), expected.table)


def test_another_process_prints_and_writes_the_same(tmp_path):
    words = ["mask", "data.csv", "--method", "noise", "--seed", SEED, *ROLES, "-o"]
    apart, here = run(tmp_path, *words, "a.csv"), good(tmp_path, *words, "b.csv")
    assert apart.returncode == 0
    assert apart.stdout.replace("a.csv", "b.csv") == here.stdout
    progress = re.compile(r"^(masking|writing|measuring): .*\n", re.MULTILINE)  # where the machine is busy
    assert progress.sub("", apart.stderr) == here.stderr
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize("method", ["mdav", "noise"])
def test_without_measures_the_same_file_is_written(tmp_path, monkeypatch, method):
    words = ["mask", "data.csv", "--method", method, "--seed", SEED, *ROLES, "--by", "region", "-o"]
    measured = good(tmp_path, *words, "a.csv")
    monkeypatch.setattr("sdckit.selection.release.evaluate_pair", None)  # calling it would fail
    plain = good(tmp_path, *words, "b.csv", "--no-measure")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    *notes, wrote, nothing = plain.stdout.splitlines()
    assert set(notes) <= set(measured.stdout.splitlines())
    assert "note: masked: income, age, rooms; not masked: id, grade, region, weight" in notes
    assert wrote == "note: wrote b.csv"
    assert nothing == "note: nothing was measured; sdckit evaluate measures the file"
    assert plain.stderr == measured.stderr
    assert good(tmp_path, *words, "c.csv", "--no-measure", "--quiet").stdout == ""


def test_quiet_prints_nothing(tmp_path, survey):
    done = good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "noise", "--quiet", *ROLES)
    assert (done.stdout, done.stderr) == ("", "")
    done = good(tmp_path, "evaluate", "data.csv", "out.csv", "--quiet", *ROLES)
    assert (done.stdout, done.stderr) == ("", "")
    assert survey.height == read(tmp_path / "out.csv").frame.height


def test_seeds_repeat_and_never_show(tmp_path):
    words = ["mask", "data.csv", "--method", "rank_swap", "--set", "p=0.3", *ROLES]
    printed = ""
    for name, more in {"a": ["--seed", SEED], "b": ["--seed", SEED, "--json"], "c": []}.items():
        done = good(tmp_path, *words, "-o", f"{name}.csv", *more)
        printed += done.stdout + done.stderr
    files = contents(tmp_path)
    assert files["a.csv"] == files["b.csv"]
    assert len({files[f"{name}.csv"] for name in "ac"}) == 2
    assert SEED not in printed
    assert all(SEED.encode() not in content for content in files.values())


@pytest.mark.parametrize("code", ["-999", "NA", "nan", "n/a"])
def test_missing_codes_stay_where_they_were(tmp_path, code):
    cells = [code if i % 5 == 0 else str(i * 7 % 23) for i in range(40)]
    put(tmp_path, "data.csv", "\n".join(["x,y", *(f"{cell},{i}.5" for i, cell in enumerate(cells)), ""]))
    done = good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "noise", "--na", code, "--json")
    lines = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert [line.split(",")[0] == code for line in lines] == [cell == code for cell in cells]
    counts = {
        row["variable"]: row["n_used"] for row in json.loads(done.stdout)["table"] if row["metric"] == "mae"
    }
    assert (counts["x"], counts["y"]) == (32, 40)
    again = good(tmp_path, "evaluate", "data.csv", "out.csv", "--na", code, "--json")
    assert json.loads(again.stdout)["table"] == json.loads(done.stdout)["table"]


def test_strata_are_masked_apart(tmp_path, survey):
    words = ["--by", "region", "--columns", "income,age", "--set", "k=4", "--decimals", "none"]
    good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "mdav", *words)
    masked = read(tmp_path / "out.csv").frame
    means = [
        frame.group_by("region", maintain_order=True).agg(pl.mean("income", "age"))
        for frame in (survey, masked)
    ]
    assert_frame_equal(*means)
    assert masked["rooms"].equals(survey["rooms"])


def test_a_name_with_a_comma_goes_into_quotation_marks(tmp_path):
    put(tmp_path, "data.csv", '"a,b",c\n' + "".join(f"{i}.5,{i}\n" for i in range(9)))
    words = ["data.csv", "-o", "out.csv", "--method", "noise", "--columns", '"a,b"', "--csv"]
    table = pl.read_csv(io.StringIO(good(tmp_path, "mask", *words).stdout))
    assert table["variable"].unique().sort().to_list() == ["a,b", "all"]


def test_a_column_suppressed_from_top_to_bottom_is_still_a_number(tmp_path):
    put(tmp_path, "data.csv", "a,b\n" + "".join(f"{i * i}.5,{i if i < 3 else ''}\n" for i in range(20)))
    done = good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "mdav", "--set", "k=5", "--json")
    assert json.loads(done.stdout)["table"][2]["n_suppressed"] == 3
    made = ["--made-by", "mdav", "--set", "k=5"]
    again = good(tmp_path, "evaluate", "data.csv", "out.csv", *made, "--json")
    assert json.loads(again.stdout)["table"] == json.loads(done.stdout)["table"]


@pytest.mark.parametrize("name", [" a ", " a", "a "])
def test_a_name_with_blanks_around_it_can_be_given(tmp_path, name):
    put(tmp_path, "data.csv", f"{name},b,c,d\n" + "".join(f"{i}.5,{i * i}.5,1.5,{i}\n" for i in range(12)))
    words = ["mask", "data.csv", "-o", "out.csv", "--method", "noise", "--overwrite", "--columns"]
    assert "note: masked: b, " in good(tmp_path, *words, f" b ,{name}").stdout
    assert f"note: masked: {name};" in good(tmp_path, *words, name).stdout
    done = good(tmp_path, *words, "b", "--key", name, "--weights", " c", "--by", " d ")
    assert f"not masked: {name}, c, d\n" in done.stdout
    put(tmp_path, "data.csv", "w , k,b\n" + "".join(f"1.5,{i},{i * i}.5\n" for i in range(12)))
    assert "masked: b;" in good(tmp_path, *words[:-1], "--weights", "w ", "--key", " k").stdout


def test_a_note_tells_what_was_masked_and_what_was_not(tmp_path):
    words = ["mask", "data.csv", "-o", "out.csv", "--method", "noise", "--overwrite"]
    expected = "masked: income, age, rooms; not masked: id, grade, region, weight"
    assert f"note: {expected}\n" in good(tmp_path, *words, *ROLES).stdout
    assert expected in json.loads(good(tmp_path, *words, *ROLES, "--json").stdout)["notes"]
    assert "note: masked: age; not masked: id," in good(tmp_path, *words, "--columns", "age").stdout


def test_long_lists_of_names_are_whole_in_json_only(tmp_path):
    names = [f"v{j}" for j in range(21)]
    rows = [",".join(f"{i * (j + 3) % 29}.5" for j in range(21)) for i in range(20)]
    put(tmp_path, "data.csv", "\n".join([",".join(names), *rows, ""]))
    words = ["mask", "data.csv", "-o", "out.csv", "--method", "noise", "--overwrite"]
    shown = good(tmp_path, *words).stdout
    assert f"note: masked: {', '.join(names[:9])} and 12 more\n" in shown
    assert f"masked: {', '.join(names)}" in json.loads(good(tmp_path, *words, "--json").stdout)["notes"]


def test_columns_that_stayed_the_same_are_named(tmp_path):
    put(tmp_path, "data.csv", "age,x,t\n" + "".join(f"{i % 3},{i}.123457,z\n" for i in range(12)))
    words = ["--method", "noise", "--set", "percent=0.01"]
    done = good(tmp_path, "mask", "data.csv", "-o", "a.csv", *words)
    assert "masked: x; not changed by the method: age; not masked: t\n" in done.stdout
    assert re.fullmatch(r"warning: not masked, every value is as in the original: 'age'; .*\n", done.stderr)
    done = good(tmp_path, "mask", "data.csv", "-o", "b.csv", "--method", "rank_swap", "--set", "p=0")
    assert "masked: none; not changed by the method: age, x; not masked: t\n" in done.stdout
    assert "24 of 24 cells in 2 masked columns" in done.stdout


def test_names_are_no_markup(tmp_path):
    put(tmp_path, "data.csv", "[/b],:smile:,g\n" + "".join(f"{i}.5,{i * i}.5,[red]\n" for i in range(12)))
    done = good(tmp_path, "evaluate", "data.csv", "data.csv", "--variables", "--by", "g")
    assert all(name in done.stdout for name in ("[/b]", ":smile:", "[red]"))


# columns of numbers that are read as text


@pytest.mark.parametrize(
    ("cell", "options", "warning"),
    [
        (
            lambda i: "NA" if i < 15 else i,
            [],
            "because of 'NA' in 15 cells and is not masked; declare it with --na NA",
        ),
        (
            lambda i: "NA" if i < 4 else "." if i < 5 else i,
            [],
            "because of 'NA' in 4 cells and '.' in 1 cell and is not masked; declare it with --na NA --na .",
        ),
        (lambda i: "not asked" if i < 9 else i, [], "; declare it with --na 'not asked'"),
        (
            lambda i: f"{i};5".replace(";", ",") if i % 2 else i,
            ["--delimiter", ";"],
            "; set --decimal-comma or write",
        ),
        (
            lambda i: f"1.{i + 100}",
            ["--decimal-comma"],
            "because of the points in its numbers and is not masked",
        ),
        (
            lambda i: f"{i}k" if i < 7 else i,
            [],
            "of '0k' and the like in 7 cells and is not masked; write plain",
        ),
        (
            lambda i: 10**19 + i,
            [],
            "because of integers with more than 18 digits and is not masked; name it as",
        ),
        (lambda i: f"${i}", [], "of '$0' and the like in 40 cells and is not masked; write plain numbers"),
        (lambda i: f"{i}%", [], "of '0%' and the like in 40 cells and is not masked; write plain numbers"),
        (lambda i: f"€ {i}.5", [], "of '€ 0.5' and the like in 40 cells and is not masked; write plain"),
        (
            lambda i: f"{i + 1} 000 EUR",
            [],
            "of '1 000 EUR' and the like in 40 cells and is not masked; write",
        ),
        (lambda i: f"{i} %" if i < 3 else i, [], "of '0 %' and the like in 3 cells and is not masked; write"),
        (lambda i: f"-{i},5 zł", ["--decimal-comma"], "in 40 cells and is not masked; write plain numbers"),
        (lambda i: f"rs{i}", [], None),
        (lambda i: f"{i} rooms", [], None),
        (lambda i: f"0{i}", [], None),
        (lambda i: f"A{i}" if i % 3 else i, [], None),
        (lambda i: "NA" if i < 15 else i, ["--na", "NA"], None),
        (lambda i: "NA" if i < 15 else i, ["--columns", "x"], None),
        (lambda i: "NA" if i < 15 else i, ["--by", "s"], None),
    ],
)
def test_a_warning_names_text_that_is_nearly_numbers(tmp_path, cell, options, warning):
    mark = ";" if {"--delimiter", "--decimal-comma"} & set(options) else ","
    put(tmp_path, "data.csv", f"s{mark}x\n" + "".join(f"{cell(i)}{mark}{i * i % 31}\n" for i in range(40)))
    done = good(tmp_path, "mask", "data.csv", "-o", "out.csv", "--method", "noise", *options)
    if warning is None:
        assert "read as text" not in done.stderr
        return
    assert done.stderr.startswith("warning: column 's' is read as text because ")
    assert warning in done.stderr
    assert done.stderr.count("\n") == 1
    assert "1 masked column " in done.stdout


def test_the_warning_in_evaluate_and_for_parquet(tmp_path):
    frame = pl.DataFrame({"s": [str(i) for i in range(20)], "x": [i * 7 % 13 for i in range(20)]})
    frame.write_parquet(tmp_path / "data.parquet")
    done = good(tmp_path, "evaluate", "data.parquet", "data.parquet")
    assert done.stderr == (
        "warning: column 's' is read as text because the file stores it so and is not measured; "
        "store it as numbers first\n"
        "warning: the masked file is identical to the original in every compared column; mask it first\n"
        "warning: not masked, and the role is undecided, of 1 column: 's' looks like text (mostly numbers, "
        "but stored as text); settle each with --untouched, --columns, --unknown, --key or --unit, or "
        "publish it not at all\n"
    )
