"""Roles of columns: variables, strata, keys that pair records, weights."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sdckit as sdc
from sdckit.core.roles import match_keys, strata_of
from sdckit.core.table import Table

NAN = float("nan")


# --- columns and roles ---


def test_columns_are_the_numeric_ones_without_another_role():
    frame = pl.DataFrame(
        {"k": [7, 5, 9], "a": [1.0, 2.0, 4.0], "s": ["x", "y", "x"], "f": [True, False, True]}
    )
    assert Table(frame).numeric_columns(None, leave_out=["k"]) == ["a"]
    assert Table(frame).numeric_columns(["a", "k", "a"]) == ["a", "k"]
    with pytest.raises(TypeError, match="column 's' is not numeric"):
        Table(frame).numeric_columns(["s"])
    with pytest.raises(ValueError, match=r"unknown column 'aa' \(did you mean 'a'\?\)"):
        Table(frame).numeric_columns(["aa"])
    with pytest.raises(ValueError, match="no numeric column left"):
        Table(frame.select("s")).numeric_columns(None)


def test_strata_in_order_of_appearance():
    frame = pl.DataFrame({"g": ["v", None, "u", "v"], "h": [1, 1, 2, 1]})
    found = strata_of(Table(frame), ["g", "h"])
    assert [(name, rows.tolist()) for name, rows in found] == [
        ("v, 1", [0, 3]),
        ("(missing), 1", [1]),
        ("u, 2", [2]),
    ]
    assert [(name, rows.tolist()) for name, rows in strata_of(Table(frame), None)] == [("all", [0, 1, 2, 3])]


def test_strata_are_distinguished():
    def labels(by, **columns):
        return {
            name: rows.tolist() for name, rows in strata_of(Table(pd.DataFrame(columns).astype(object)), by)
        }

    pairs = {"r": ["x, y", "x", "x"], "s": ["z", "y, z", "y"]}
    assert labels(["r", "s"], **pairs) == {"'x, y', z": [0], "x, 'y, z'": [1], "x, y": [2]}
    assert labels("r", **pairs) == {"x, y": [0], "x": [1, 2]}
    assert labels("g", g=["(missing)", None, NAN, pd.NA]) == {"'(missing)'": [0], "(missing)": [1, 2, 3]}
    assert labels("g", g=["all", "'all'", "b"]) == {"'all'": [0], "\"'all'\"": [1], "b": [2]}
    assert labels("g", g=[1, "1", 1, "'1'"]) == {"1": [0, 2], "'1'": [1], "\"'1'\"": [3]}
    assert labels([], g=[1, 2]) == {"all": [0, 1]}
    lists = strata_of(Table(pl.DataFrame({"g": [[1], [2], [1]]})), "g")
    assert [(name, rows.tolist()) for name, rows in lists] == [("[1]", [0, 2]), ("[2]", [1])]


def test_strata_of_nullable_pandas():
    frame = pd.DataFrame({"g": pd.array([1, None, 1], dtype="Int64")})
    assert [name for name, _ in strata_of(Table(frame), "g")] == ["1", "(missing)"]


# --- keys ---


def keyed(n=30):
    rng = np.random.default_rng(2)
    original = pl.DataFrame(
        {"firm": rng.permutation(n) + 100, "a": rng.normal(size=n), "b": rng.normal(size=n)}
    )
    return original, original.with_columns(pl.col("a").shuffle(seed=1), pl.col("b") * 2)


def test_rows_are_matched_by_key():
    original, masked = keyed()
    expected = sdc.Microdata(original, key="firm").evaluate(masked)
    shuffled = masked.sample(fraction=1, shuffle=True, seed=3)
    assert not shuffled["firm"].equals(masked["firm"])
    assert sdc.Microdata(original, key="firm").evaluate(shuffled).table.equals(expected.table)
    assert (
        sdc.Microdata(original.to_pandas(), key="firm")
        .evaluate(shuffled.to_arrow())
        .table.equals(expected.table)
    )
    prepared = sdc.Microdata(original, key="firm")
    assert sdc.brmae(prepared, shuffled) == expected["brmae"]
    with pytest.warns(UserWarning, match="the values of 'firm' are unique, the same in both files and in"):
        turned = sdc.Microdata(original, untouched="firm").evaluate(shuffled, metrics="brmae")
    assert expected["brmae"] != turned["brmae"]
    assert "firm" not in expected.table["variable"].to_list()


def test_keys_of_two_columns():
    ours = pl.DataFrame({"g": ["a", "a", "b"], "i": [1, 2, 1], "v": [1.5, 2.0, 3.0]})
    theirs = ours[[2, 0, 1]]
    assert match_keys(Table(ours), Table(theirs), ["g", "i"]).tolist() == [1, 2, 0]
    with pytest.warns(UserWarning, match="the masked file is identical to the original"):
        assert sdc.Microdata(ours, key=["g", "i"]).evaluate(theirs)["mae"] == 0


def test_keys_that_repeat_or_do_not_match_are_refused():
    original, masked = keyed()
    repeated = masked.with_columns(firm=pl.lit(100))
    with pytest.raises(ValueError, match=r"key 'firm' repeats .*29 .*masked"):
        sdc.Microdata(original, key="firm").evaluate(repeated)
    with pytest.raises(ValueError, match=r"key 'firm' repeats .*original"):
        sdc.Microdata(original.with_columns(firm=pl.lit(100)), key="firm").evaluate(masked)
    other = masked.with_columns(pl.col("firm") + 1)
    with pytest.raises(ValueError, match="key 'firm' does not match: 1 of 30"):
        sdc.Microdata(original, key="firm").evaluate(other)
    with pytest.raises(ValueError, match="key 'firm' does not match: 1 of 30"):
        sdc.Microdata(original, key="firm").evaluate(masked[1:])
    with pytest.raises(ValueError, match="unknown column 'company'"):
        sdc.Microdata(original, key="company").evaluate(masked)
    with pytest.raises(ValueError, match="the masked data have no column 'b'"):
        sdc.Microdata(original, key="firm").evaluate(masked.drop("b"))


# --- weights ---


def test_weights_by_name_or_as_numbers():
    original, masked = keyed()
    w = np.random.default_rng(4).uniform(1, 3, 30)
    named = sdc.Microdata(original.with_columns(w=w), key="firm", weights="w").evaluate(masked)
    given_ = sdc.Microdata(original, key="firm", weights=w).evaluate(masked)
    assert named.table.equals(given_.table)
    with pytest.raises(ValueError, match="weights has 29 values for 30 records"):
        sdc.Microdata(original, key="firm", weights=w[1:]).evaluate(masked)
    for bad in (0.0, -1.0, NAN):
        w[3] = bad
        with pytest.raises(ValueError, match=r"1 value .*not above 0"):
            sdc.Microdata(original, key="firm", weights=w).evaluate(masked)
