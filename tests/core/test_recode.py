"""Recode columns: bands, rounding, rare categories, dates."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sdckit as sdc
from cases import each
from sdckit.core.recode import multiples, parse_recodings, rare_numbers

DAYS = [dt.date(1989, 5, 1), None, dt.date(1986, 12, 31), dt.date(2001, 8, 9)]
KINDS = {"polars": lambda f: f, "pandas": lambda f: f.to_pandas(), "pyarrow": lambda f: f.to_arrow()}


def cells(table, name):
    """Return the cells of a column of any table as a list, missing ones as None."""
    if isinstance(table, pd.DataFrame):
        table = pl.from_pandas(table)
    found = pl.DataFrame(table)[name]
    return (found.fill_nan(None) if found.dtype.is_float() else found).to_list()


@each("kind", KINDS)
@each(
    ("values", "way", "expected"),
    [
        ([31, 35, -1, 0], 5, [30, 35, -5, 0]),
        ([31, None, -1, 0], "5", [30, None, -5, 0]),
        ([0.31, 0.3, 0.7, float("nan")], 0.1, [0.3, 0.3, 0.7, None]),
        ([149, 150, 151, None], "round:100", [100, 200, 200, None]),
        (DAYS, "year", [1989, None, 1986, 2001]),
        (DAYS, "year:10", [1980, None, 1980, 2000]),
        (DAYS, "quarter", ["1989-Q2", None, "1986-Q4", "2001-Q3"]),
        (DAYS, "month", ["1989-05", None, "1986-12", "2001-08"]),
        (["01.05.1989", None, " 31.12.1986", "9.8.2001"], "year", [1989, None, 1986, 2001]),
        (["05/01/1989", "", "12/31/1986", "08/09/2001"], "month", ["1989-05", None, "1986-12", "2001-08"]),
        ([19890501, None, 19861231, 20010809], "month", ["1989-05", None, "1986-12", "2001-08"]),
        (["a", "b", None, "a", "c", "a"], "rare:2", ["a", "other", None, "a", "other", "a"]),
        ([1, 2, None, 1, 17, 1], "rare:2", [1, 99, None, 1, 99, 1]),
        ([True, False, True, True, False, True], "rare:3", ["other"] * 6),
    ],
)
def test_recodings(kind, values, way, expected):
    frame = KINDS[kind](pl.DataFrame({"x": values, "y": ["t"] * len(values)}))
    found = sdc.recode(frame, {"x": way})
    assert type(found) is type(frame)
    assert cells(found, "x") == expected
    assert cells(found, "y") == ["t"] * len(values)


def test_the_data_are_not_changed_and_whole_numbers_stay_whole():
    frame = pd.DataFrame({"age": [31, 36], 3: [1.0, 2.0]}, index=["r", "s"])
    found = sdc.recode(frame, {"age": 5, 3: "round:10"})
    assert frame["age"].tolist() == [31, 36]
    assert found["age"].tolist() == [30, 35]
    assert found["age"].dtype == np.int64
    assert list(found.columns) == ["age", 3]
    assert list(found.index) == ["r", "s"]


def test_missing_codes_stay():
    frame = pl.DataFrame({"age": [31, 36, -9], "c": [1, 1, -9]})
    assert sdc.recode(frame, {"age": 5}, na=-9)["age"].to_list() == [30, 35, -9]
    with pytest.raises(ValueError, match="every value has at least 2 records"):
        sdc.recode(frame, {"c": "rare:2"}, na=-9)


def test_rare_categories_are_merged_until_none_is_rare():
    numbers = np.repeat([0, 1, 2, 3], [50, 30, 25, 3])
    assert rare_numbers(numbers, 20).tolist() == [3, 2]
    assert rare_numbers(np.repeat([0, 1, 2], [50, 3, 19]), 20).tolist() == [1, 2]
    assert rare_numbers(np.repeat([0, 1], [3, 4]), 20).tolist() == [0, 1]
    assert rare_numbers(np.repeat([0, 1], [20, 21]), 20).tolist() == []


def test_multiples_of_decimals():
    assert multiples(np.arange(10) * 0.1, 0.1, lower=True).tolist() == [j / 10 for j in range(10)]
    assert multiples(np.array([2.5e15 + 1]), 5, lower=True).tolist() == [2.5e15]


FRAME = pl.DataFrame({"age": [10, 15], "town": ["a", "a"], "gone": [None, None], "l": [[1], [2]]})


NOTHING = "changes no cell: {}; give a larger number or leave it out"
WAYS = "a width such as 5, 'round:100', 'rare:20', 'year', 'year:10', 'quarter' or 'month'"


@each(
    ("way", "text"),
    [
        ({"aeg": 5}, "unknown column 'aeg' (did you mean 'age'?); choose from: age, town, gone, l"),
        ({"age": 0}, "recoding of 'age' is 0; give a number above 0"),
        ({"age": "round:-1"}, "recoding of 'age' is 'round:-1'; give a number above 0"),
        ({"town": "rare:1"}, "recoding of 'town' is 'rare:1'; give a whole number of at least 2"),
        ({"town": "often:3"}, f"recoding of 'town' is 'often:3'; give {WAYS}"),
        ({"age": 5}, "recoding 'age' by 5 " + NOTHING.format("all values are such multiples")),
        (
            {"town": "rare:2"},
            "recoding 'town' by rare:2 " + NOTHING.format("every value has at least 2 records"),
        ),
        ({"town": 5}, "recoding 'town' by 5 needs a column of numbers; give another recoding"),
        ({"town": "year"}, "recoding 'town' by year needs dates; give another recoding"),
        ({"age": "month"}, "recoding 'age' by month needs dates; give another recoding"),
        ({"l": "rare:2"}, "recoding 'l' by rare:2 needs text or numbers; give another recoding"),
        ({"gone": "year"}, "column 'gone' has no cell with a value to recode; leave it out"),
        ("age=5", "recode is str; give a dict such as {'age': 5, 'born': 'year'}"),
    ],
)
def test_recodings_refused(way, text):
    with pytest.raises((ValueError, TypeError)) as error:
        sdc.recode(FRAME, way)
    assert str(error.value) == text


def test_dates_and_times_stored_as_objects():
    frame = pd.DataFrame(
        {"d": [dt.date(1999, 5, 1), None, dt.datetime(2001, 2, 3, 4, tzinfo=dt.UTC)], "t": [dt.time(1)] * 3}
    )
    assert cells(sdc.recode(frame, {"d": "month"}), "d") == ["1999-05", None, "2001-02"]
    with pytest.raises(TypeError, match="needs dates"):
        sdc.recode(frame, {"t": "year"})


def test_arrays_have_no_columns_to_recode():
    with pytest.raises(TypeError, match="give a dataframe"):
        sdc.recode(np.ones((3, 2)), {"x1": 5})


def test_merging_rare_numbers_ends_where_some_are_infinite_or_huge():
    frame = pl.DataFrame({"x": [1.0] * 5 + [float("inf"), 42.0], "y": [1.0] * 5 + [1.7e308, 3.0]})
    found = sdc.recode(frame, {"x": "rare:2", "y": "rare:2"})
    assert found["x"].to_list() == [1.0] * 5 + [99.0] * 2
    assert found["y"].to_list() == [1.0] * 5 + [float("inf")] * 2


@pytest.mark.parametrize("way", ["5", "1234567", "0.3333333333", "round:1250000.5", "rare:1000001", "year"])
def test_a_recoding_is_read_again_from_its_text(way):
    """The private record keeps it as text, and a release is made again from that."""
    (one,) = parse_recodings({"a": way})
    assert str(one) == way
    assert parse_recodings({"a": str(one)}) == (one,)
