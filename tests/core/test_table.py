"""Tables of every kind in and out, rounding, codes for missing cells."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdckit as sdc
from cases import each
from sdckit.core.table import Table, decimals_of, round_column

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
    assert back["b"].to_list() == pytest.approx([1.0, NAN, None], nan_ok=True)
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
    assert masked.name == series.name
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
    assert sdc.Microdata([[1, 2], [3, 4], [5, 6]], columns="x2").mask("noise", rng=1)[:, 0].tolist() == [
        1,
        3,
        5,
    ]
    assert Table(np.float32([[1.5], [2.5]])).floats(["x1"]).dtype == np.float64


@each(
    ("data", "error", "match"),
    [
        (np.array(["a", "b"]), TypeError, "is not numeric"),
        (np.zeros((2, 2, 2)), ValueError, "has 3 dimensions"),
        (np.zeros((0, 2)), ValueError, "is empty"),
        ({"a": [1, 2]}, TypeError, "dict"),
        (3.0, TypeError, "float"),
        (np.array([True, False]), TypeError, "bool is not numeric"),
        ([None, "a"], TypeError, "object is not numeric"),
        ([None, True], TypeError, "object is not numeric"),
        ([None, 2**53 + 1], ValueError, r"beyond 2\*\*53"),
        ([[1.0, 2.0], [3.0]], ValueError, "^the rows of the list differ in length; give one value per"),
        (np.ma.masked_equal([1, 2], 1), TypeError, r"is masked; .*array.astype\(float\).filled\(np.nan\)$"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "^2 columns are named 'a'; give each its"),
        (pd.DataFrame([[1, 2]], columns=[0, "0"]), ValueError, "^2 columns are named '0'; give each its"),
        (pa.table([[1], [2]], names=["a", "a"]), ValueError, "^2 columns are named 'a'; give each its"),
        (
            pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
            ValueError,
            "^the column names have 2 levels; flatten them first",
        ),
    ],
)
def test_what_is_no_table_is_refused(data, error, match):
    with pytest.raises(error, match=match) as refused:
        Table(data)
    assert "\n" not in str(refused.value)


def test_none_in_a_list_is_missing():
    values = Table([[None, 1], [2.5, Decimal("0.5")], [pd.NA, 3]]).floats(["x1", "x2"])
    assert np.array_equal(values, [[NAN, 1], [2.5, 0.5], [NAN, 3]], equal_nan=True)
    masked = sdc.mask([None, 1.0, 2.0], "noise", rng=1)
    assert np.isnan(masked).tolist() == [True, False, False]


def test_labels_of_pandas_that_are_no_text():
    labels = pd.Index([0, "a", 2.5, None], name="label")
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(10, 4)), columns=labels)
    before = frame.copy(deep=True)
    assert Table(frame).names == [str(label) for label in labels]
    masked = sdc.mask(frame, "mdav", k=2)
    assert not (masked.to_numpy() == frame.to_numpy()).any()
    pd.testing.assert_index_equal(masked.columns, labels)
    pd.testing.assert_frame_equal(frame, before)
    for columns in (["0"], [0], 0, "0"):
        masked = sdc.Microdata(frame, columns=columns).mask("mdav", k=2)
        assert (masked.to_numpy() != frame.to_numpy()).any(axis=0).tolist() == [True, False, False, False]
    with pytest.warns(UserWarning, match="the masked file is identical to the original"):
        assert sdc.Microdata(frame, columns=[0, "2.5"]).evaluate(frame)["mae"] == 0
    grouped = sdc.Microdata(frame.assign(g=[1, 2] * 5).rename(columns={"g": 7}), by=7, key=[0]).mask(
        "mdav", k=2
    )
    assert grouped[0].equals(frame[0])
    assert grouped[7].tolist() == [1, 2] * 5
    with pytest.raises(ValueError, match="unknown column '1'"):
        sdc.Microdata(frame, columns=[1]).mask("mdav")
    with pytest.raises(ValueError, match=r"^stratum '1' has 5 records"):
        sdc.Microdata(frame.assign(g=[1, 2] * 5).rename(columns={"g": 7}), by=7).mask("mdav", k=6)


def test_a_record_batch_comes_back_as_one():
    batch = pa.RecordBatch.from_pydict({"a": [1.0, None, 4.0], "s": ["u", "v", "w"]})
    back = mirrored(batch, ["a"])
    assert isinstance(back, pa.RecordBatch)
    assert back.to_pydict() == {"a": [2.0, None, 8.0], "s": ["u", "v", "w"]}


def test_cells_that_were_nan_stay_nan_and_others_become_null():
    for frame in (
        pl.DataFrame({"a": [1.0, NAN, None, 4.0]}),
        pa.table({"a": pa.array([1.0, NAN, None, 4.0])}),
    ):
        found = Table(frame)
        values = found.floats(["a"])
        values[3] = NAN
        back = pl.DataFrame(found.with_values(["a"], values))["a"]
        assert back.to_list() == pytest.approx([1.0, NAN, None, None], nan_ok=True)


def decimal_tables():
    cells = [Decimal("1.50"), Decimal("2.25"), None, Decimal("4.00")]
    arrow = pa.table({"a": pa.array(cells, pa.decimal128(9, 2))})
    return {
        "polars": pl.DataFrame({"a": cells}),
        "pyarrow": arrow,
        "pandas": pd.DataFrame({"a": pd.array(cells, dtype=pd.ArrowDtype(pa.decimal128(9, 2)))}),
    }


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "pandas"])
def test_decimal_types_are_numeric(kind):
    table = decimal_tables()[kind]
    assert np.array_equal(Table(table).floats(["a"])[:, 0], [1.5, 2.25, NAN, 4.0], equal_nan=True)
    masked = Table(sdc.mask(table, "noise", percent=50, decimals="original", rng=1)).floats(["a"])
    assert decimals_of(masked[:, 0]) == 2
    assert np.isnan(masked[:, 0]).tolist() == [False, False, True, False]


def test_numbers_stored_as_objects_are_named_in_a_warning():
    a = [1.0, 2.0, 5.0, 9.0]
    kinds = {
        "pandas": pd.DataFrame({"a": a, "o": pd.Series([1, None, 2.5, Decimal(3)], dtype=object)}),
        "polars": pl.DataFrame({"a": a, "o": pl.Series([1, None, 2.5, Decimal(3)], dtype=pl.Object)}),
        "pyarrow": pa.table(
            {"a": a, "o": pa.array([Decimal(1), None, Decimal(2), None], pa.decimal256(50, 1))}
        ),
    }
    for frame in kinds.values():
        with pytest.warns(UserWarning, match=r"'o' looks like text \(numbers stored as Python objects;"):
            sdc.mask(frame, "noise", rng=1)
        sdc.Microdata(frame, untouched="o").mask("noise", rng=1)
        sdc.Microdata(frame, key="o").mask("noise", rng=1)
    for other in ([True, False, True, None], [None] * 4):
        sdc.mask(pd.DataFrame({"a": a, "o": pd.Series(other, dtype=object)}), "noise", rng=1)


class Stream:
    """A table that has the Arrow stream interface and nothing else."""

    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


def test_lazy_frames_and_arrow_streams_are_collected():
    frame = pl.DataFrame({"a": [1.0, 4.0, 2.0]})
    turned = frame.reverse()
    for make in (pl.DataFrame.lazy, Stream):
        assert sdc.brmae(make(frame), make(turned)) == sdc.brmae(frame, turned)
        made = sdc.mask(make(frame), "noise", rng=1)
        assert made.equals(sdc.mask(frame, "noise", rng=1))


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
    masked = sdc.mask(frame, "noise", percent=50, decimals="original", rng=1)
    assert masked.schema == frame.schema
    assert masked["a"].is_null().to_list() == [False, True, False, False, False, False]
    arrow = sdc.mask(frame.to_arrow(), "noise", percent=50, decimals="original", rng=1)
    assert arrow["a"].to_pylist() == masked["a"].to_list()
    frames = sdc.mask(frame.to_pandas(), "noise", percent=50, decimals="original", rng=1)
    assert frames["a"].isna().tolist() == masked["a"].is_null().to_list()


@pytest.mark.parametrize(("given_", "expected"), [("Int64", "Int64"), ("Int32", "Int32"), ("UInt8", "Int64")])
def test_nullable_integers_of_pandas_stay_so(given_, expected):
    for cells in ([1, None, 9, 4], [1, 2, 9, 4]):
        frame = pd.DataFrame({"a": pd.array(cells, dtype=given_)}, index=[3, 3, 1, 2])
        masked = sdc.mask(frame, "noise", percent=100, decimals=0, rng=1)
        assert masked["a"].dtype == expected
        assert masked["a"].isna().tolist() == frame["a"].isna().tolist()
        assert masked.index.tolist() == [3, 3, 1, 2]
    arrow = pd.DataFrame({"a": pd.array([1, None, 9], dtype="int64[pyarrow]")})
    assert sdc.mask(arrow, "noise", percent=100, decimals=0, rng=1)["a"].dtype == "int64[pyarrow]"


def test_rounding_does_not_overflow():
    values = np.array([1e300, -2e300, 0.123456789, NAN, 2.0**53])
    assert decimals_of(values) == 9
    assert np.array_equal(round_column(values, 15), values, equal_nan=True)
    assert np.array_equal(round_column(values, 2), [1e300, -2e300, 0.12, NAN, 2.0**53], equal_nan=True)


def test_declared_codes_are_missing_and_come_back():
    frame = pl.DataFrame({"a": [1, -999, 8, 3, -1, 4], "b": [1.5, 2.5, -999.0, 5.5, 8.5, 2.5]})
    masked = sdc.Microdata(frame, na=[-999, -1]).mask("noise", percent=50, decimals="original", rng=1)
    assert masked["a"].to_list()[1] == -999
    assert masked["a"].to_list()[4] == -1
    assert masked["b"].to_list()[2] == -999.0
    assert masked.schema == frame.schema
    result = sdc.Microdata(frame, na=[-999, -1]).evaluate(masked, metrics="mae")
    assert result.table.select("n_used", "n_both_missing").rows() == [(9, 3), (4, 2), (5, 1)]
    assert sdc.evaluate(frame, masked, metrics="mae").table["n_both_missing"][0] == 0
    assert math.isfinite(result["mae"])
    with pytest.raises(ValueError, match="na is 'none'"):
        sdc.Microdata(frame, na="none").mask("noise")
