"""Classes of records that share their cells: numbers, uniques, floor."""

import datetime as dt
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cases import each
from sdckit.core.cells import cell_numbers, class_numbers, class_sizes, number_values, uniques_of
from sdckit.core.table import Table

NAN = float("nan")
DAY = dt.date(2020, 1, 31)
COLUMNS = {
    "floats": [0.0, -0.0, 1.5, NAN, None, 1.5],
    "integers": [2**60, 2**60 + 1, 2**60, None, 5, None],
    "text": ["b", "a", None, "b", "", "ab"],
    "truths": [True, False, None, True, True, False],
    "dates": [DAY, None, DAY, dt.date(1, 1, 1), None, DAY],
    "lists": [[1], [2], [1], None, [1, 2], []],
}


def slow_classes(rows):
    """Return for each row the rows that equal it, NaN being None."""
    plain = [
        tuple("gap" if cell is None or cell is NAN else str(cell).lstrip("-") for cell in row) for row in rows
    ]
    return [[j for j, other in enumerate(plain) if other == row] for row in plain]


@each("name", COLUMNS)
@each("kind", ["polars", "pandas", "pyarrow"])
def test_equal_cells_share_a_number(name, kind):
    frame = pl.DataFrame({name: COLUMNS[name]}, strict=False)
    native = {"polars": frame, "pandas": frame.to_pandas(), "pyarrow": frame.to_arrow()}[kind]
    if kind == "pandas" and name == "integers":
        native = pd.DataFrame({name: pd.array(COLUMNS[name], dtype="Int64")})
    numbers = cell_numbers(Table(native).column(name))
    assert [np.flatnonzero(numbers == one).tolist() for one in numbers] == slow_classes(
        [(cell,) for cell in COLUMNS[name]]
    )


def test_classes_of_several_columns_and_their_floor():
    rng = np.random.default_rng(3)
    columns = [rng.integers(0, 4, 50), rng.integers(-(2**40), 2**40, 9)[rng.integers(0, 9, 50)]]
    numbers = class_numbers(map(number_values, columns), 50)
    counts = Counter(zip(*(column.tolist() for column in columns), strict=True))
    expected = [counts[pair] for pair in zip(*(column.tolist() for column in columns), strict=True)]
    assert class_sizes(numbers).tolist() == expected
    found = uniques_of(numbers)
    assert found.share == sum(size == 1 for size in expected) / 50
    assert found.floor == pytest.approx(sum(1 / size for size in expected) / 50)


def test_no_column_leaves_one_class():
    assert uniques_of(class_numbers([], 8)) == (0, 1 / 8)


def test_many_columns_do_not_overflow():
    columns = [np.arange(1000) // 2 for _ in range(30)]
    assert uniques_of(class_numbers(columns, 1000)) == (0, 0.5)
