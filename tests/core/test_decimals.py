"""Decimals and other exact numbers that lose digits as float64 are refused like integers beyond 2**53."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sdckit as sdc
from sdckit.core.table import Table

LARGEST = Decimal(2**53)
KIND = pa.decimal128(38, 2)


def tables(values, kind=KIND):
    """The same column in every type of table that has decimals."""
    arrow = pa.table({"a": pa.array([*values, None], kind), "b": [1.0, 2.0, 3.0]})
    polars = pl.from_arrow(arrow)
    return polars, arrow, arrow.to_batches()[0], polars["a"], arrow.to_pandas(types_mapper=pd.ArrowDtype)


@pytest.mark.parametrize("value", [LARGEST + Decimal("0.01"), -LARGEST - 1, Decimal(10) ** 30])
def test_decimals_beyond_2_to_the_53_are_refused(value):
    message = r"^column 'a' has decimals beyond 2\*\*53, which lose digits; leave it out with columns$"
    for table in tables([value, Decimal("1.5")]):
        with pytest.raises(ValueError, match=message):
            Table(table).floats(["a"])


def test_decimals_up_to_2_to_the_53_are_numbers():
    for table in tables([LARGEST, Decimal("-1.25")]):
        found = Table(table).floats(["a"])[:, 0]
        assert np.array_equal(found, [2.0**53, -1.25, np.nan], equal_nan=True)


@pytest.mark.parametrize("value", ["90071992547409.93", "-45035996273704.961", "1.00000000000000001"])
@pytest.mark.parametrize("kind", [pa.decimal128(38, 18), pa.decimal128(38, 20)], ids=str)
def test_decimals_with_more_digits_than_a_float_are_refused(value, kind):
    message = (
        f"^column 'a' has decimals that lose digits, such as {value}0*; leave it out with columns or round"
    )
    for table in tables([Decimal("1.5"), Decimal(value)], kind):
        with pytest.raises(ValueError, match=message):
            Table(table).floats(["a"])
    with pytest.raises(ValueError, match=f"^the array has decimals that lose digits, such as {value}; leave"):
        Table([1.5, Decimal(value)])


def test_cents_of_large_amounts_do_not_vanish_silently():
    x, y = (
        pl.DataFrame({"a": [Decimal(text), Decimal(1)]})
        for text in ("90071992547409.93", "90071992547409.92")
    )
    with pytest.raises(ValueError, match=r"such as 90071992547409\.93; leave"):
        sdc.mae(x, y)


@pytest.mark.parametrize("kind", [KIND, pa.decimal128(38, 18), pa.decimal128(11, 2)], ids=str)
def test_decimals_with_a_scale_come_back_from_floats_with_all_their_digits(kind):
    values = [Decimal("999999999.99"), Decimal("-0.07")]
    for table in tables(values, kind):
        found = Table(table).floats(["a"])[:, 0]
        assert np.array_equal(found, [999999999.99, -0.07, np.nan], equal_nan=True)
    survivors = [Decimal("90071992547409.94"), Decimal("1e-18"), Decimal("0.1")]
    assert Table(survivors).floats(["x1"])[:, 0].tolist() == [90071992547409.94, 1e-18, 0.1]


def test_a_column_of_large_decimals_can_be_left_out():
    frame = tables([LARGEST + 1, LARGEST + 2])[0]
    with pytest.raises(ValueError, match="column 'a' has decimals beyond"):
        sdc.mae(frame, frame)
    with pytest.warns(UserWarning, match="the masked file is identical to the original"):
        assert sdc.Microdata(frame, columns="b").evaluate(frame)["mae"] == 0


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        ([Decimal(2**53) + Decimal("0.5"), Decimal(1)], "decimals"),
        ([None, -Decimal(2**60)], "decimals"),
        ([Fraction(2**55, 3), 1], "decimals"),
        ([None, np.int64(2**53 + 1)], "integers"),
        ([Decimal("NaN"), 2**53 + 1], "integers"),
    ],
)
def test_exact_numbers_of_a_list_are_refused(cells, what):
    with pytest.raises(ValueError, match=rf"^the array has {what} beyond 2\*\*53, which lose digits; leave"):
        Table(cells)


def test_floats_of_any_size_have_no_digits_to_lose():
    cells = [None, 1e300, np.float64(-1e300), Decimal("0.1"), Decimal("NaN"), Fraction(1, 4)]
    found = Table(cells).floats(["x1"])[:, 0]
    assert np.array_equal(found, [np.nan, 1e300, -1e300, 0.1, np.nan, 0.25], equal_nan=True)
