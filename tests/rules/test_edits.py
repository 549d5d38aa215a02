"""Edit rules on a table: which columns they reach, what is left, what is said; small tables by hand."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from sdckit.core.prepared import PreparedTable
from sdckit.core.registry import METHODS
from sdckit.core.table import Table
from sdckit.masking.mask_table import NO_RULE, mask_prepared
from sdckit.metrics.original import Original as PreparedOriginal
from sdckit.metrics.pair import pair_of
from sdckit.risk.facts import facts_of, fits
from sdckit.rules.rules import edits_of, named_columns

TABLE = pl.DataFrame(
    {
        "id": list("abcd"),
        "total": [3.0, 7.0, 11.0, 15.0],
        "a": [1.0, 3.0, 5.0, 7.0],
        "b": [2.0, 4.0, 6.0, 8.0],
        "year": [1, 1, 2, 2],
    }
)


def summed(n):
    """Two columns and their total."""
    parts = np.random.default_rng(n).integers(0, 1000, (n, 2)).astype(float)
    return pl.DataFrame({"a": parts[:, 0], "b": parts[:, 1], "total": parts.sum(axis=1)})


def edits(given, masked=("total", "a", "b"), *, table=TABLE, na=None):
    return edits_of(given, PreparedTable.of(table, columns=masked, key="id", na=na))


def matrix(*rows):
    return np.array(rows, np.float64, order="F")


def noted(method="noise", table=TABLE, **options):
    roles = {"columns": ["total", "a", "b"], "key": "id"} | options.pop("roles", {})
    prepared = PreparedTable.of(table, **roles)
    return mask_prepared(prepared, method, rng=1, parameters=options.pop("parameters", {}), **options)


# which columns


def test_rules_on_masked_columns_are_known_to_intruders():
    found = edits(["total = a + b", "a <= 9*year"])
    assert found.rules.columns == ("total", "a", "b", "year")
    assert found.free.tolist() == [True, True, True, False]
    assert found.public_rules.texts == ("total = a + b",)
    assert edits(["a <= 9*year"]).public_rules is None


def test_rules_about_other_columns_alone_are_no_work():
    assert edits(["year >= 0"]) is None


def test_discovery_is_about_masked_columns_but_a_rule_may_name_others():
    assert "year" not in edits("discover").rules.columns
    assert "year" in edits("discover", masked=("a", "year")).rules.columns
    assert "year" in edits(["discover", "a >= year - 9"]).rules.columns


@pytest.mark.parametrize("method", [m for m in METHODS.values() if m.group_size], ids=lambda m: m.name)
def test_groups_refuse_rules_that_would_tell_their_records_apart(method):
    table = summed(20)
    said = rf"{method.name} hides records in groups, and the rule .* would distinguish them by 'total'"
    with pytest.raises(ValueError, match=said):
        sdc.Microdata(table, columns=["a", "b"], rules="total = a + b").mask(method.name)
    with pytest.raises(ValueError, match=said):
        sdc.Microdata(table, columns=["a", "b"], rules="total = a + b").sweep(
            {method.name: {"k": 3}}, metrics="brmae"
        )
    masked = sdc.Microdata(table, rules="total = a + b").mask(method.name, decimals=0)
    assert (masked["total"] == masked["a"] + masked["b"]).all()


@pytest.mark.parametrize("method", [m for m in METHODS.values() if m.paired_by], ids=lambda m: m.name)
def test_given_columns_stay_whatever_the_rules_say(method):
    table = summed(30)
    masked = sdc.Microdata(table, rules="total = a + b").mask(method.name, given="total", decimals=0, rng=1)
    assert masked["total"].equals(table["total"])
    assert (masked["total"] == masked["a"] + masked["b"]).all()
    assert not masked["a"].equals(table["a"])


def test_windows_of_columns_under_rules_are_no_facts():
    table = summed(50).insert_column(2, pl.Series("c", np.sin(np.arange(50.0))))
    made = mask_prepared(
        PreparedTable.of(table), "rank_swap", rules="total = a + b", rng=1, parameters={"p": 0.1}
    )
    assert made.disclosure.width("all", np.zeros((50, 4)), table.columns).tolist() == [5.0] * 4
    found = sdc.evaluate(table, made.data, made_by=made.disclosure, metrics=["linkage"])
    exempt = lambda _: np.array([50.0, 50.0, 5.0, 50.0])  # noqa: E731 - as a user writes it
    stated = sdc.evaluate(table, made.data, made_by=sdc.Method(window=exempt), metrics=["linkage"])
    pair = pair_of(PreparedOriginal.of(table), made.data)
    pair.disclose(made.disclosure)
    pair.rules, pair.window = made.disclosure.rules, 5
    facts = facts_of(pair)
    assert fits(*facts.sides()).all()
    certain = float((1 / facts.candidates("masked_to_original")[0]).mean())
    assert certain == pytest.approx(stated.parts["linkage"]["guess"])
    assert found.parts["linkage"]["guess"] == pytest.approx(certain)
    assert 1 / 50 < certain < found["linkage"]  # whoever masks the file again finds more
    assert not any("broken by some record" in note for note in found.notes)


@pytest.mark.parametrize("method", [m for m in METHODS.values() if m.paired_by], ids=lambda m: m.name)
def test_given_columns_give_records_away(method):
    table = summed(40)
    masked = sdc.mask(table, method.name, given="total", rng=1)
    known = sdc.linkage(table["total"].to_numpy(), masked["total"].to_numpy())
    made = mask_prepared(PreparedTable.of(table), method.name, rng=1, parameters={"given": "total"})
    found = sdc.evaluate(table, made.data, made_by=made.disclosure, metrics=["linkage"])
    assert found["linkage"] >= known > 0.9
    swept = sdc.sweep(
        table, {method.name: {"given": [["total"], ["a", "total"]]}}, metrics=["linkage"], rng=1
    )
    assert swept.table["parameters"].to_list() == ["given=total", "given=a,total"]
    assert min(swept.table["value"]) > 0.9


def test_named_columns():
    table = Table(TABLE)
    assert named_columns(["total = a + b", "discover", "a >= 0"], table) == ["total", "a", "b"]
    assert named_columns("discover", table) == []
    assert named_columns(edits("a <= b").rules, table) == ["a", "b"]
    with pytest.raises(ValueError, match=r"unknown column of an edit rule 'totl' \(did you mean 'total'"):
        named_columns("totl = a + b", table)
    with pytest.raises(TypeError, match="column 'id' is not numeric but text"):
        named_columns("id >= 0", table)


# repair


def test_masked_columns_are_repaired_and_others_stay():
    found = edits(["total = a + b"], ["total", "a"])
    masked = matrix([4, 1], [7, 2], [10, 5], [99, 7])
    repaired = found.repaired(masked, [0, 0])
    assert (repaired[:, 0] == repaired[:, 1] + TABLE["b"].to_numpy()).all()
    assert masked.tolist() == [[4, 1], [7, 2], [10, 5], [99, 7]]
    assert repaired[2].tolist() == [11, 5] or repaired[2].tolist() == [10, 4]


def test_what_cannot_be_met_is_suppressed_and_counted():
    table = TABLE.with_columns(a=pl.Series([1.5, 3.5, 5.5, 7.5]), year=pl.Series([3.5, 7.5, 11.5, 15.5]))
    found = edits(["year = a + b"], ["a"], table=table)
    masked = matrix([1], [2], [3], [4])
    repaired = found.repaired(masked, [0])
    assert np.isnan(repaired).all()
    (first, second) = found.notes(masked, repaired)
    assert first.endswith(": 0 of 4 masked cells were changed")
    assert second == "cells that could not meet the edit rules and were suppressed: 4"


def test_notes_count_cells():
    found = edits(["total = a + b", "a >= 0", "b >= 0", "total >= 0", "a <= 100", "b <= 100"])
    before = matrix([1, 2, np.nan], [3, 4, 5])
    after = matrix([1, 3, np.nan], [np.nan, 4, 6])
    assert found.notes(before, after) == [
        (
            "edit rules hold in every record without a missing cell (total = a + b; a >= 0; b >= 0; "
            "total >= 0; a <= 100; b <= 100): 2 of 5 masked cells were changed"
        ),
        "cells that could not meet the edit rules and were suppressed: 1",
    ]


def test_codes_take_no_part():
    table = TABLE.with_columns(a=pl.Series([-999.0, 3.0, 5.0, 7.0]))
    masked = sdc.Microdata(
        table, columns=["total", "a", "b"], key="id", na=-999, rules=["total = a + b", "a >= 0", "b >= 0"]
    ).mask("noise", percent=90, decimals="original", rng=2)
    assert masked["a"][0] == -999
    assert (masked["a"][1:] >= 0).all()
    assert masked["total"][1:].to_list() == (masked["a"] + masked["b"])[1:].to_list()


# what is said


def test_a_warning_where_the_original_breaks_a_rule():
    with pytest.warns(UserWarning, match="original itself breaks the rule a <= 6 in 1 record; the masked"):
        edits("a <= 6")


def test_a_warning_where_the_original_comes_back():
    with pytest.warns(UserWarning, match="the edit rules bring every original value back: 'a'; also mask"):
        made = noted(roles={"columns": ["a"]}, rules="total = a + b")
    assert made.data["a"].to_list() == TABLE["a"].to_list()
    noted(rules="total = a + b")  # no warning where all are masked


def test_no_second_warning_where_the_method_changed_nothing():
    with pytest.warns(UserWarning, match="not masked") as caught:
        noted("round_to", roles={"columns": ["a"]}, rules="total = a + b", parameters={"base": 1.0})
    assert [str(warning.message).partition(":")[0] for warning in caught] == [
        "not masked, every value is as in the original"
    ]


def test_notes():
    assert noted().notes == []
    assert noted(rules="year >= 0").notes == [NO_RULE]
    assert (
        noted(rules="total = a + b").notes[0].startswith("edit rules hold in every record (total = a + b): ")
    )
    assert noted("mdav", parameters={"k": 2}, groups="g").notes == [
        "the column 'g' numbers the groups of records"
    ]
    negative = pl.DataFrame(
        {"id": list("abcd"), "total": [-1.0, 2, 3, 4], "a": [-1.0, 5, 2, 2], "b": [3.0, -1, 2, 9]}
    )
    assert noted(table=negative, rules="discover").notes == [NO_RULE]


# measuring


def test_evaluate_counts_on_columns_that_are_not_measured():
    masked = TABLE.with_columns(a=pl.Series([1.0, 3.5, 5.0, 9.0]))
    found = sdc.Microdata(TABLE, columns=["a"], key="id", rules="total = a + b").evaluate(
        masked, metrics="brmae"
    )
    assert found.notes == ("the rule total = a + b is broken in 2 masked records",)
    keyed = sdc.Microdata(TABLE, columns=["a"], key="id", rules="total = a + b").evaluate(
        masked[::-1], metrics="brmae"
    )
    assert keyed.notes == found.notes
    rules = ["total = a + b", "discover"]
    fine = sdc.Microdata(TABLE, columns=["a"], key="id", rules=rules).evaluate(TABLE, metrics="brmae")
    assert fine.notes == ()


def test_a_sweep_says_which_rules_hold():
    table = TABLE.drop("id", "year")
    found = sdc.Microdata(table, rules=["total = a + b"]).sweep({"mdav": {"k": [2]}}, metrics="brmae")
    assert found.notes == ("edit rules hold in every masked file (total = a + b)",)
    assert sdc.sweep(table, {"mdav": {"k": [2]}}, metrics="brmae").notes == ()
