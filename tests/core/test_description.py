"""`describe`: roles that columns would get, uniques, floor, recodings worth trying; no cell is shown."""

from collections import Counter

import numpy as np
import polars as pl
import pytest

import described_files
import sdckit as sdc
from sdckit.core.description import describe_table, round_size
from sdckit.core.roles import asked_roles
from sdckit.core.table import Table

FILES = {
    "sample": sdc.load_sample,
    "households": described_files.households,
    "panel": described_files.panel,
    "patients": described_files.patients,
    "labelled": described_files.labelled,
}
CHANGED = {"households": {"age"}, "labelled": {"yob"}}  # what a statistician would give another role


def described(name, **roles):
    """Return the description of one of the five files."""
    table = Table(FILES[name]())
    labelled = ["sex", "region", "health"] if name == "labelled" else []
    return describe_table(table, asked_roles(table, **roles), labelled)


def slow_floor(frame, names):
    """Return uniques and the mean of 1 / class size by counting rows."""
    rows = frame.select(names).rows()
    counts = Counter(rows)
    return sum(counts[row] == 1 for row in rows) / len(rows), sum(1 / counts[row] for row in rows) / len(rows)


@pytest.mark.parametrize("name", FILES)
def test_proposed_roles_are_those_of_a_statistician(name):
    found = dict(described(name).table.select("column", "role").rows())
    wanted = {column: described_files.EXPECTED[name].get(column, "variable") for column in found}
    assert {column for column in found if found[column] != wanted[column]} == CHANGED.get(name, set())


def test_figures_of_columns():
    frame = pl.DataFrame({"a": [1.5, None, 1.5, 2.0], "t": ["x", "y", "y", None], "c": [7, 7, -9, 8]})
    rows = sdc.Microdata(frame, na=-9).describe().table.rows_by_key("column", named=True, unique=True)
    for name, kind in {"a": "numbers", "t": "text", "c": "whole numbers"}.items():
        assert [rows[name][one] for one in ("type", "missing", "distinct", "unique")] == [kind, 1, 2, 1]


def test_uniques_and_floor_equal_those_of_a_slow_count():
    frame = described_files.households()
    names = [name for name, role in described_files.EXPECTED["households"].items() if role != "unit"]
    found = described("households", untouched="age")
    assert (found.uniques, found.floor) == pytest.approx(slow_floor(frame, names))
    rows = found.table.rows_by_key("column", named=True, unique=True)
    for name in names:
        others = [other for other in names if other != name]
        assert rows[name]["floor_alone"] == pytest.approx(slow_floor(frame, [name])[1])
        assert rows[name]["floor_without"] == pytest.approx(slow_floor(frame, others)[1])


def test_recodings_worth_trying_have_the_figures_of_the_recoded_file():
    frame = described_files.patients()
    roles = {"key": "patient", "drop": ["name", "email", "comment", "icd", "admitted"]}
    found = sdc.Microdata(frame, **roles).describe()
    assert found.recodings["column"].unique().to_list() == ["born"]
    for row in found.recodings.iter_rows(named=True):
        after = sdc.Microdata(frame, **roles, recode={row["column"]: row["recode"]}).describe()
        assert (after.uniques, after.floor) == pytest.approx((row["uniques_after"], row["floor_after"]))
        alone = after.table.filter(column=row["column"])["floor_alone"].item()
        assert alone == pytest.approx(row["alone_after"])
        assert row["floor_before"] == found.floor >= row["floor_after"]


def test_each_step_down_has_the_figures_of_the_file_after_it():
    frame = described_files.households()
    found = sdc.Microdata(frame, unit="hhid").describe()
    assert found.steps["floor"][-1] <= 0.05
    assert found.steps["floor"].is_sorted(descending=True)
    recode, drop = {}, []
    for row in found.steps.iter_rows(named=True):
        if row["option"] == "recode":
            column, _, way = row["value"].rpartition("=")
            recode[column] = way
        else:
            drop.append(row["value"])
            recode.pop(row["value"], None)
        after = sdc.Microdata(
            frame, unit="hhid", weights="wgt" if "wgt" not in drop else None, recode=recode, drop=drop
        ).describe()
        assert (after.uniques, after.floor) == pytest.approx((row["uniques"], row["floor"]))


def test_survey_weights_are_named_first_and_then_what_the_columns_give_away():
    weight = pl.Series("weight", np.arange(1000) // 2 + 0.5)
    sample = sdc.load_sample().with_columns(weight)
    found = sdc.describe(sample)
    weights, floor = found.notes[:2]
    assert weights.startswith("the survey weights weight alone raise the least possible risk from 0.005")
    assert floor.startswith("the untouched columns sector, weight alone single out ")
    assert floor.endswith("Recode or drop them, or declare them unknown")
    assert found.options == {"key": ["firm"], "weights": ["weight"], "untouched": ["sector"]}
    less = sdc.Microdata(sample, weights="weight", unknown="weight").describe()
    assert (less.uniques, less.floor) == (0, 0.005)
    nothing = sdc.Microdata(sdc.load_sample(), drop=["weight", "sector", "firm"]).describe()
    assert nothing.notes[0].startswith("no untouched column is published and known")


def test_no_cell_is_shown():
    marks = ["quartz", "zephyr", "onyx"]
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"stone": rng.choice(marks, 90), "price": rng.integers(77_000_001, 77_000_900, 90)})
    found = sdc.describe(frame)
    text = repr(found) + str(found.to_dict())
    assert not any(mark in text for mark in [*marks, "7700", "77,0"])


def test_tables_of_any_kind_give_the_same_description():
    frame = described_files.households(300)
    expected = sdc.describe(frame)
    for other in (frame.to_pandas(), frame.to_arrow()):
        found = sdc.describe(other)
        assert found.table.equals(expected.table)
        assert found.recodings.equals(expected.recodings)


def test_files_without_variables_and_arrays():
    assert (
        sdc.describe(pl.DataFrame({"t": ["a", "b", "b"]}))
        .notes[0]
        .startswith("the untouched column t alone singles")
    )
    with pytest.raises(TypeError, match="give a dataframe"):
        sdc.describe(np.ones((4, 2)))
    with pytest.raises(ValueError, match="unknown column 'x'"):
        sdc.Microdata(pl.DataFrame({"t": ["a", "b", "b"]}), key="x").describe()


@pytest.mark.parametrize(
    ("size", "expected"), [(7.0, 5), (8, 10), (0.012, 0.01), (3.3, 5), (1400, 1000), (0.24, 0.2)]
)
def test_round_sizes(size, expected):
    assert round_size(size) == expected
