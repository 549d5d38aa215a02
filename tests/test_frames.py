"""Tables of every kind in and out, keys, roles, rounding, codes for missing cells."""

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdckit as sdc
from sdckit.frames import Table, decimals_of, match_keys, strata

NAN = float("nan")


def mirrored(table, columns):
    """The columns with their values times two, through the table and back."""
    found = Table(table)
    return found.with_values(columns, 2 * found.floats(columns))


# --- round trips ---


def test_pandas_keeps_index_order_and_other_columns():
    index = pd.MultiIndex.from_tuples([("b", 2), ("a", 7), ("a", 7)], names=["letter", "number"])
    frame = pd.DataFrame(
        {
            "z": [1.5, NAN, -3.0],
            "text": ["u", None, "w"],
            "a": [1, 2, 3],
            "when": pd.to_datetime(["2020-01-01"] * 3),
        },
        index=index,
    )
    before = frame.copy(deep=True)
    twice = mirrored(frame, ["z", "a"])
    expected = before.assign(z=[3.0, NAN, -6.0], a=[2.0, 4.0, 6.0])
    pd.testing.assert_frame_equal(twice, expected)
    pd.testing.assert_frame_equal(frame, before)


def test_pandas_with_a_repeated_and_unsorted_index():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]}, index=[5, 5, 1])
    assert mirrored(frame, ["b"])["b"].tolist() == [8.0, 10.0, 12.0]
    assert mirrored(frame, ["b"]).index.tolist() == [5, 5, 1]


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "Int32", "double[pyarrow]", "int64[pyarrow]"])
def test_nullable_dtypes_of_pandas(dtype):
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype=dtype), "b": [1.0, 2.0, 3.0]})
    values = Table(frame).floats(["a", "b"])
    assert np.array_equal(values, [[1, 1], [NAN, 2], [3, 3]], equal_nan=True)
    back = mirrored(frame, ["a"])
    assert back["a"].isna().tolist() == [False, True, False]
    assert back["a"].dropna().tolist() == [2.0, 6.0]
    assert back["b"].equals(frame["b"])


def test_polars_keeps_nulls_order_and_types():
    frame = pl.DataFrame({"s": ["x", None, "z"], "a": [1, None, 3], "b": [0.5, NAN, None], "c": [1, 2, 3]})
    values = Table(frame).floats(["a", "b"])
    assert np.array_equal(values, [[1, 0.5], [NAN, NAN], [3, NAN]], equal_nan=True)
    back = mirrored(frame, ["b", "a"])
    assert back.columns == frame.columns
    assert back["a"].to_list() == [2.0, None, 6.0]
    assert back["b"].to_list() == [1.0, None, None]
    assert back.select("s", "c").equals(frame.select("s", "c"))


def test_pyarrow_in_chunks_keeps_nulls():
    column = pa.chunked_array([[1.0, None], [], [4.0]])
    table = pa.table({"a": column, "s": ["u", "v", "w"]})
    back = mirrored(table, ["a"])
    assert isinstance(back, pa.Table)
    assert back.column_names == ["a", "s"]
    assert back["a"].to_pylist() == [2.0, None, 8.0]
    assert back["s"].to_pylist() == ["u", "v", "w"]


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1.0, 2.0, 4.0], index=[3, 1, 2], name="income"),
        pd.Series([1.0, 2.0, 4.0]),
        pl.Series("income", [1.0, 2.0, 4.0]),
        pl.Series([1.0, 2.0, 4.0]),
    ],
    ids=["pandas", "pandas without name", "polars", "polars without name"],
)
def test_series_come_back_as_series(series):
    masked = sdc.mask(series, "rank_swap", p=1, rng=1)
    assert type(masked) is type(series)
    assert sorted(masked) == [1.0, 2.0, 4.0]
    assert sdc.brmae(series, series) == 0
    if isinstance(series, pd.Series):
        assert masked.index.equals(series.index)


def test_arrays_and_lists():
    flat = np.array([3, 1, 2], dtype=np.int32)
    masked = sdc.mask(flat, "noise", rng=1)
    assert masked.shape == (3,)
    assert masked.dtype == np.float64
    assert flat.tolist() == [3, 1, 2]
    assert Table([1, 2, 3]).names == ["x1"]
    assert Table([[1, 2], [3, 4]]).floats(["x2", "x1"]).tolist() == [[2, 1], [4, 3]]
    assert sdc.mask([[1, 2], [3, 4], [5, 6]], "noise", columns="x2", rng=1)[:, 0].tolist() == [1, 3, 5]
    assert Table(np.float32([[1.5], [2.5]])).floats(["x1"]).dtype == np.float64


@pytest.mark.parametrize(
    ("data", "error", "match"),
    [
        (np.array(["a", "b"]), TypeError, "is not numeric"),
        (np.zeros((2, 2, 2)), ValueError, "has 3 dimensions"),
        (np.zeros((0, 2)), ValueError, "is empty"),
        ({"a": [1, 2]}, TypeError, "dict"),
        (3.0, TypeError, "float"),
        (np.array([True, False]), TypeError, "bool is not numeric"),
    ],
)
def test_what_is_no_table_is_refused(data, error, match):
    with pytest.raises(error, match=match):
        Table(data)


def test_lazy_frames_are_refused():
    lazy = pl.LazyFrame({"a": [1.0, 2.0]})
    with pytest.raises(TypeError, match="LazyFrame is lazy; collect it first"):
        sdc.mask(lazy, "noise")
    with pytest.raises(TypeError, match="lazy"):
        sdc.brmae(lazy, lazy)


def test_integers_beyond_2_to_the_53_are_refused():
    fits, beyond = pl.DataFrame({"a": [2**53, -(2**53)]}), pl.DataFrame({"a": [2**53 + 1, 0]})
    assert Table(fits).floats(["a"])[:, 0].tolist() == [2.0**53, -(2.0**53)]
    for frame in (beyond, pl.DataFrame({"a": [-(2**63), 1]}), beyond.to_pandas(), beyond.to_arrow()):
        with pytest.raises(ValueError, match=r"column 'a' has integers beyond 2\*\*53"):
            Table(frame).floats(["a"])


def test_large_integers_in_arrays_are_refused_too():
    with pytest.raises(ValueError, match=r"beyond 2\*\*53"):
        sdc.brmae(np.array([2**53, 2**53 + 1]), np.array([2**53 + 1, 2**53]))


def test_values_as_large_as_floats_get_are_no_error():
    x = [1.7e308, -1.7e308, 1e308, 1.6e308]
    assert sdc.brmae(x, x) == 0
    assert sdc.brmae(x, x[::-1]) == pytest.approx(sdc.brmae([4, 1, 2, 3], [3, 2, 1, 4]))


# --- columns and roles ---


def test_columns_are_the_numeric_ones_without_another_role():
    frame = pl.DataFrame(
        {"k": [7, 5, 9], "a": [1.0, 2.0, 4.0], "s": ["x", "y", "x"], "f": [True, False, True]}
    )
    assert Table(frame).numeric(None, leave_out=["k"]) == ["a"]
    assert Table(frame).numeric(["a", "k", "a"]) == ["a", "k"]
    with pytest.raises(TypeError, match="column 's' is not numeric"):
        Table(frame).numeric(["s"])
    with pytest.raises(ValueError, match=r"unknown column 'aa' \(did you mean 'a'\?\)"):
        Table(frame).numeric(["aa"])
    with pytest.raises(ValueError, match="no numeric column left"):
        Table(frame.select("s")).numeric(None)


def test_what_looks_like_an_identifier_or_a_weight_is_named_in_a_warning():
    rng = np.random.default_rng(1)
    values = {"a": rng.normal(size=6), "firm_id": [13, 11, 19, 17, 12, 18], "weight": [1.5, 2, 2, 1, 3, 1]}
    frame = pl.DataFrame(values)
    with (
        pytest.warns(UserWarning, match="'firm_id' looks like an identifier"),
        pytest.warns(UserWarning, match="'weight' looks like a survey weight"),
    ):
        sdc.mask(frame, "noise", rng=1)
    with pytest.warns(UserWarning, match="'n' looks like an identifier"):
        sdc.evaluate(pl.DataFrame({"n": [3, 1, 2]}), pl.DataFrame({"n": [1, 2, 3]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sdc.mask(frame, "noise", key="firm_id", weights="weight", rng=1)
        sdc.mask(frame, "noise", columns=["a", "weight"], rng=1)
        sdc.mask(pl.DataFrame({"valid": [1, 2, 4], "PAID": [9, 2, 5]}), "noise", rng=1)
    assert sdc.mask(frame, "noise", key="firm_id", weights="weight", rng=1)["weight"].equals(frame["weight"])


@pytest.mark.parametrize("name", ["id", "ID", "firm_id", "personId", "personID", "Record no", "KEY", "row"])
def test_names_of_identifiers(name):
    with pytest.warns(UserWarning, match="looks like an identifier"):
        sdc.mask(pl.DataFrame({name: [10, 40, 20]}), "noise", rng=1)


def test_strata_in_order_of_appearance():
    frame = pl.DataFrame({"g": ["v", None, "u", "v"], "h": [1, 1, 2, 1]})
    found = strata(Table(frame), ["g", "h"])
    assert [(name, rows.tolist()) for name, rows in found] == [
        ("v, 1", [0, 3]),
        ("(missing), 1", [1]),
        ("u, 2", [2]),
    ]
    assert [(name, rows.tolist()) for name, rows in strata(Table(frame), None)] == [("all", [0, 1, 2, 3])]


# --- keys ---


def keyed(n=30):
    rng = np.random.default_rng(2)
    original = pl.DataFrame(
        {"firm": rng.permutation(n) + 100, "a": rng.normal(size=n), "b": rng.normal(size=n)}
    )
    return original, original.with_columns(pl.col("a").shuffle(seed=1), pl.col("b") * 2)


def test_rows_are_matched_by_key():
    original, masked = keyed()
    expected = sdc.evaluate(original, masked, key="firm")
    shuffled = masked.sample(fraction=1, shuffle=True, seed=3)
    assert not shuffled["firm"].equals(masked["firm"])
    assert sdc.evaluate(original, shuffled, key="firm").table.equals(expected.table)
    assert sdc.evaluate(original.to_pandas(), shuffled.to_arrow(), key="firm").table.equals(expected.table)
    prepared = sdc.prepare(original, key="firm")
    assert sdc.brmae(prepared, shuffled) == expected["brmae"]
    assert expected["brmae"] != sdc.evaluate(original, shuffled, columns=["a", "b"])["brmae"]
    assert "firm" not in expected.table["variable"].to_list()


def test_keys_of_two_columns():
    ours = pl.DataFrame({"g": ["a", "a", "b"], "i": [1, 2, 1], "v": [1.5, 2.0, 3.0]})
    theirs = ours[[2, 0, 1]]
    assert match_keys(Table(ours), Table(theirs), ["g", "i"]).tolist() == [1, 2, 0]
    assert sdc.evaluate(ours, theirs, key=["g", "i"])["mae"] == 0


def test_keys_that_repeat_or_do_not_match_are_refused():
    original, masked = keyed()
    repeated = masked.with_columns(firm=pl.lit(100))
    with pytest.raises(ValueError, match=r"key 'firm' repeats .*29 .*masked"):
        sdc.evaluate(original, repeated, key="firm")
    with pytest.raises(ValueError, match=r"key 'firm' repeats .*original"):
        sdc.evaluate(original.with_columns(firm=pl.lit(100)), masked, key="firm")
    other = masked.with_columns(pl.col("firm") + 1)
    with pytest.raises(ValueError, match="key 'firm' does not match: 1 of 30"):
        sdc.evaluate(original, other, key="firm")
    with pytest.raises(ValueError, match="key 'firm' does not match: 1 of 30"):
        sdc.evaluate(original, masked[1:], key="firm")
    with pytest.raises(ValueError, match="unknown column 'company'"):
        sdc.evaluate(original, masked, key="company")
    with pytest.raises(ValueError, match="the masked data have no column 'b'"):
        sdc.evaluate(original, masked.drop("b"), key="firm")


# --- weights ---


def test_weights_by_name_or_as_numbers():
    original, masked = keyed()
    w = np.random.default_rng(4).uniform(1, 3, 30)
    named = sdc.evaluate(original.with_columns(w=w), masked, key="firm", weights="w")
    given_ = sdc.evaluate(original, masked, key="firm", weights=w)
    assert named.table.equals(given_.table)
    with pytest.raises(ValueError, match="weights has 29 values for 30 records"):
        sdc.evaluate(original, masked, key="firm", weights=w[1:])
    for bad in (0.0, -1.0, NAN):
        w[3] = bad
        with pytest.raises(ValueError, match=r"1 value .*not above 0"):
            sdc.evaluate(original, masked, key="firm", weights=w)


# --- rounding and codes for missing cells ---


def test_decimals_of_the_original():
    rng = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "n": rng.integers(0, 99, 40),
            "cents": np.round(rng.normal(50, 9, 40), 2),
            "whole": np.round(rng.normal(0, 9, 40)),
        }
    )
    masked = sdc.mask(frame, "noise", percent=30, decimals="original", rng=1)
    assert masked.schema == frame.schema
    assert [decimals_of(masked[name].to_numpy().astype(float)) for name in frame.columns] == [0, 2, 0]
    exact = sdc.mask(frame, "noise", percent=30, rng=1)
    assert exact.schema["n"] == pl.Float64
    assert np.array_equal(masked["cents"], np.round(exact["cents"].to_numpy(), 2))
    assert decimals_of(sdc.mask(frame, "noise", decimals=1, rng=1)["cents"].to_numpy()) == 1
    for bad in (-1, 2.5, "all", 16):
        with pytest.raises(ValueError, match="decimals is"):
            sdc.mask(frame, "noise", decimals=bad)


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=20), st.integers(0, 6))
def test_decimals_are_those_that_show(numbers, places):
    values = np.array([float(f"{number}e-{places}") for number in numbers])
    shown = max(
        len(repr(value).partition(".")[2].rstrip("0")) if "e" not in repr(value) else places
        for value in values.tolist()
    )
    assert decimals_of(values) <= places
    assert decimals_of(values) == shown or any("e" in repr(value) for value in values.tolist())
    assert decimals_of(np.append(values, NAN)) == decimals_of(values)


def test_integer_columns_with_gaps_keep_them():
    frame = pl.DataFrame({"a": [3, None, 8, 1, 9, 4], "b": [1, 2, 3, 5, 8, 13]})
    masked = sdc.mask(frame, "noise", decimals="original", rng=1)
    assert masked.schema == frame.schema
    assert masked["a"].is_null().to_list() == [False, True, False, False, False, False]
    arrow = sdc.mask(frame.to_arrow(), "noise", decimals="original", rng=1)
    assert arrow["a"].to_pylist() == masked["a"].to_list()
    frames = sdc.mask(frame.to_pandas(), "noise", decimals="original", rng=1)
    assert frames["a"].isna().tolist() == masked["a"].is_null().to_list()


def test_declared_codes_are_missing_and_come_back():
    frame = pl.DataFrame({"a": [1, -999, 8, 3, -1, 4], "b": [1.5, 2.5, -999.0, 5.5, 8.5, 2.5]})
    masked = sdc.mask(frame, "noise", na=[-999, -1], decimals="original", rng=1)
    assert masked["a"].to_list()[1] == -999
    assert masked["a"].to_list()[4] == -1
    assert masked["b"].to_list()[2] == -999.0
    assert masked.schema == frame.schema
    result = sdc.evaluate(frame, masked, na=[-999, -1], metrics="mae")
    assert result.table.select("n_used", "n_both_missing").rows() == [(9, 3), (4, 2), (5, 1)]
    assert sdc.evaluate(frame, masked, metrics="mae").table["n_both_missing"][0] == 0
    assert math.isfinite(result["mae"])
    with pytest.raises(ValueError, match="na is 'none'"):
        sdc.mask(frame, "noise", na="none")
