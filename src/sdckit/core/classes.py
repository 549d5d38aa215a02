"""Classes of records that share their cells in some columns: numbers, sizes, uniques and their floor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from sdckit.core.converted_cells import converted_numbers, polars_column

if TYPE_CHECKING:
    from collections.abc import Iterable

    import narwhals as nw

    from sdckit.kernels.jit import Ints

LARGEST = 2**62  # products of class counts beyond it would overflow


class Uniques(NamedTuple):
    """Share of the records that stand alone in their class, and the mean of 1 / class size, the floor."""

    share: float
    floor: float


def cell_numbers(column: nw.Series[Any]) -> Ints:
    """Return a number for each cell of a column, the same for equal cells, 0 for missing ones.

    Cells are compared after one conversion: 1, 1.0 and "1" are equal.
    """
    return converted_numbers(polars_column(column))[0] + 1


def class_numbers(columns: Iterable[Ints], n: int) -> Ints:
    """Return a class number from 0 for each of n records, equal where all the numbered columns are equal."""
    found: Ints = np.zeros(n, np.int64)
    for numbers in columns:
        if n and int(found.max()) == n - 1:  # all records stand alone already
            break
        count = int(numbers.max(initial=0)) + 1
        if (int(found.max(initial=0)) + 1) * count >= LARGEST:
            found = number_values(found)
        found = number_values(found * count + numbers)
    return found


def class_sizes(numbers: Ints) -> Ints:
    """Return for each record how many records its class has."""
    sizes: Ints = np.bincount(numbers)[numbers]
    return sizes


def uniques_of(numbers: Ints) -> Uniques:
    """Return the share of records alone in their class, and the mean of 1 / class size."""
    sizes = np.bincount(numbers)
    return Uniques(float((sizes == 1).sum() / numbers.size), float((sizes > 0).sum() / numbers.size))


def number_values(values: Any) -> Ints:
    """Return the rank from 0 of each value among the distinct ones; NaN cells are equal."""
    if values.dtype.kind == "i" and values.size:
        low, high = int(values.min()), int(values.max())
        if high - low < 4 * values.size:  # a table of all possible values is faster than sorting
            seen = np.zeros(high - low + 1, np.int64)
            seen[values - low] = 1
            return np.asarray((np.cumsum(seen) - 1)[values - low], np.int64)
        return pl.Series(values).rank("dense").to_numpy().astype(np.int64) - 1  # sorts in several threads
    return np.asarray(np.unique(values, return_inverse=True)[1], np.int64).reshape(-1)
