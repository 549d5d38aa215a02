"""The commands on Stata, SPSS and SAS files: labels and codes kept, categories left alone."""

import json

import polars as pl
import pytest

from command import good, said
from sdckit.io.files import read, write
from stat_data import MAKERS, SEX, N, put_spss, put_stata, raw

MASK = ["--method", "noise", "--seed", "1"]
SEX_IS_A_CODE = "'sex' looks like a code (every value has a label)"
BORN = "'born' looks like a date (dates, at least 95 % of them distinct)"
MONTH = "'month' looks like a date (dates, at least 95 % of them distinct)"
MOMENT = "'moment' looks like a date (dates or times, at least 95 % of them distinct)"
UNDECIDED = {".sav": [SEX_IS_A_CODE, BORN], ".dta": [SEX_IS_A_CODE, BORN, MONTH, MOMENT]}


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_the_command_keeps_labels_and_codes_and_leaves_categories_alone(tmp_path, suffix):
    path = MAKERS[suffix](tmp_path / f"in{suffix}")
    done = good(tmp_path, "mask", path.name, "-o", f"out{suffix}", *MASK)
    listed = (
        f"the role is undecided, of {len(UNDECIDED[suffix])} columns: {', '.join(UNDECIDED[suffix])}; settle"
    )
    options = "--untouched, --columns, --drop, --recode, --unknown, --key or --unit"
    assert f"warning: not masked, and {listed} each with {options}\n" in said(done)
    left = ", ".join(name for name in read(path).frame.columns if name not in {"age", "income"})
    assert f"note: masked: age, income; not masked: {left}\n" in done.stdout
    (ours, about), (theirs, kept) = raw(path), raw(tmp_path / f"out{suffix}")
    assert kept == about
    assert ours["sex"] == theirs["sex"]
    assert ours["age"][:3] == theirs["age"][:3]
    assert ours["age"] != theirs["age"]
    assert ours["income"] != theirs["income"]
    for other in (f"out{suffix}", "out.csv"):
        if other == "out.csv":
            write(tmp_path / other, read(tmp_path / f"out{suffix}").frame)
        done = good(tmp_path, "evaluate", path.name, other, "--json")
        assert f"warning: not masked, and {listed} each with " in done.stderr
        found = json.loads(done.stdout)["table"]
        assert 0 < next(row["value"] for row in found if row["metric"] == "brmae") < 1


def test_categories_are_masked_when_named(tmp_path):
    put_spss(tmp_path / "in.sav")
    words = ["--method", "rank_swap", "--set", "p=0.9", "--columns", "sex,income"]
    done = good(tmp_path, "mask", "in.sav", "-o", "out.dta", *words)
    assert "note: masked: sex, income;" in done.stdout
    assert "'sex' looks like" not in done.stderr
    assert "missing codes of columns 'sex', 'age' become plain missing in 'out.dta'" in done.stderr
    assert read(tmp_path / "out.dta").meta.value_labels["sex"] == SEX | {9: "k. A."}


def test_a_category_with_a_role_is_not_named_and_identifiers_are(tmp_path):
    source = read(put_stata(tmp_path / "in.dta"))
    frame = source.frame.with_columns(pl.Series("person_id", range(N)))
    write(tmp_path / "more.dta", frame, source=source)
    done = good(tmp_path, "mask", "more.dta", "-o", "a.dta", *MASK)
    assert SEX_IS_A_CODE in done.stderr
    assert "'person_id' looks like an identifier" in done.stderr
    done = good(tmp_path, "mask", "more.dta", "-o", "b.dta", *MASK, "--by", "sex", "--key", "person_id")
    assert "'sex'" not in done.stderr
    assert "'person_id'" not in done.stderr


def test_sweep_and_recommend_leave_categories_alone(tmp_path):
    put_stata(tmp_path / "in.dta")
    done = good(tmp_path, "sweep", "in.dta", "-o", "found", "--grid", "noise.percent=10")
    assert SEX_IS_A_CODE in done.stderr
    words = [
        *("--untouched", "sex,born,month,moment", "--max-risk", "linkage=1"),
        *("--max-risk", "linkage_sure=1", "--grid", "noise.percent=200"),
        *("--replications", "2"),
    ]
    done = good(tmp_path, "recommend", "in.dta", "-o", "out.dta", *words, "--crosswalk", "order.csv")
    assert "masked: age, income;" in done.stdout
    rows = read(tmp_path / "order.csv").frame["original_row"].to_list()
    sex = raw(tmp_path / "in.dta")[0]["sex"]
    assert raw(tmp_path / "out.dta")[0]["sex"] == [sex[row - 1] for row in rows] != sex


def test_codes_stay_behind_where_rows_are_new(tmp_path):
    path = MAKERS[".sav"](tmp_path / "in.sav")
    done = good(tmp_path, "mask", path.name, "-o", "out.sav", "--method", "sequential_shuffle", "--seed", "1")
    assert "rows are new, so that missing codes of 'age'" in done.stderr
    before, after = read(path), read(tmp_path / "out.sav")
    assert after.frame["age"].null_count() == before.frame["age"].null_count()
    assert before.meta.codes["age"].drop_nulls().len() > 0
    assert after.meta.codes["age"].drop_nulls().len() == 0
    assert after.meta.codes["sex"].equals(before.meta.codes["sex"])  # not masked
