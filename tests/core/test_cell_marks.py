"""Marks of cells: equal for cells that are equal once converted, whatever the type of their column."""

from datetime import date

import numpy as np
import polars as pl

from cases import each
from sdckit.core.cells import cell_marks, converted_numbers

BIG = 2**53
COLUMNS = {
    "integers": pl.Series([1, 2, None, -3, BIG, BIG + 1, 0]),
    "small": pl.Series([1, 2, 3, None], dtype=pl.Int8),
    "floats": pl.Series([1.0, 2.5, float("nan"), None, -0.0, 1e300]),
    "flags": pl.Series([True, False, None]),
    "text": pl.Series(["1", "1.0", " 2", "north", None, "2020-01-02", "", "nan", "inf"]),
    "categories": pl.Series(["north", "2.50", None], dtype=pl.Categorical),
    "dates": pl.Series([date(2020, 1, 2), None, date(1960, 5, 6)]),
    "times": pl.Series([date(2020, 1, 2), date(2020, 1, 3)]).cast(pl.Datetime),
    "lists": pl.Series([[1, 2], [1], None]),
}


@each("second", COLUMNS)
@each("first", COLUMNS)
def test_marks_are_equal_where_converted_cells_are(first, second):
    ours, theirs = COLUMNS[first], COLUMNS[second]
    x, y = converted_numbers(ours, theirs)
    a, b = cell_marks(ours), cell_marks(theirs)
    assert np.array_equal(a[:, None] == b, x[:, None] == y)
    assert np.array_equal(a == 0, x == -1)
