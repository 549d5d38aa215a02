"""Every masking on a million records, against sorting the columns once; those that take n^2 on fewer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.registry import function_options
from sdckit.masking import METHODS
from timing import Row, row, seconds

if TYPE_CHECKING:
    from sdckit.arrays import Floats
    from sdckit.core.registry import Method

ROWS, COLUMNS = 1_000_000, 4
FEWER = {"mdav": 100_000, "vmdav": 10_000}  # mdav has a benchmark of its own
LONG = 10_000_000  # values of one column
NAMES = [f"x{j + 1}" for j in range(COLUMNS)]


def table(n: int, p: int) -> Floats:
    """Columns with a common factor."""
    rng = np.random.default_rng(n + p)
    return np.asfortranarray(rng.normal(size=(n, 1)) + rng.normal(size=(n, p)))


def masked(method: Method, values: Floats) -> Any:
    options = function_options(method, method.defaults(), NAMES[: values.shape[1]])
    extra = {"rng": np.random.default_rng(1)} if method.random else {}
    return method.function(values, **options, **extra)


def sorted_columns(values: Floats) -> None:
    for column in values.T:
        np.sort(column)


def rows() -> list[Row]:
    """One run each after a first small one that compiles; the yardstick in the same run."""
    found = []
    cases = [(name, FEWER.get(name, ROWS), COLUMNS) for name in METHODS] + [("optimal_univariate", LONG, 1)]
    for name, n, p in cases:
        method, values = METHODS[name], table(n, p)
        masked(method, table(20_000 if name != "vmdav" else 1_000, p))
        spent, sort = seconds(
            [
                lambda method=method, values=values: masked(method, values),
                lambda values=values: sorted_columns(values),
            ],
            repeats=1,
        )
        found.append(row(name, f"{n:,} x {p}", spent, "np.sort of the columns", sort))
    return found
