"""Classes of records that share their cells in some columns: numbers, sizes, uniques and their floor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from sdckit.core.table import is_missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.kernels.jit import Ints

LARGEST = 2**62  # products of class counts beyond it would overflow


class Uniques(NamedTuple):
    """Share of the records that stand alone in their class, and the mean of 1 / class size, the floor."""

    share: float
    floor: float


def cell_numbers(column: nw.Series[Any]) -> Ints:
    """Return a number for each cell of a column, the same for equal cells; missing cells are equal."""
    kind = column.dtype
    if kind.is_float():
        return number_values(np.asarray(column.to_numpy(), np.float64) + 0.0)  # -0.0 is 0.0
    if kind in {nw.Object, nw.Unknown} or kind.is_nested():
        return _number_objects(column.to_list())
    cells = column.to_polars()
    if kind.is_integer() or kind == nw.Boolean or kind.is_temporal():
        return _number_with_gaps(cells.to_physical().cast(pl.Int64))
    return _number_with_gaps(cells.cast(pl.String).cast(pl.Categorical).to_physical().cast(pl.Int64))


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


def _number_with_gaps(cells: pl.Series) -> Ints:
    """Return the rank from 0 of each whole number, with the missing cells behind the largest."""
    gaps = cells.is_null().to_numpy()
    numbers = number_values(cells.fill_null(cells.min() or 0).to_numpy())
    return np.where(gaps, numbers.max(initial=0) + 1, numbers) if gaps.any() else numbers


def _number_objects(cells: Sequence[Any]) -> Ints:
    """Return a number for each Python object by its first appearance; equal ones share it."""
    numbers: dict[Any, int] = {}
    texts = ((None if is_missing(cell) else cell) for cell in cells)
    return np.array([numbers.setdefault(_hashable(cell), len(numbers)) for cell in texts], np.int64)


def _hashable(cell: Any) -> Any:
    """Return the object itself, or its text where it cannot be hashed, such as a list."""
    try:
        hash(cell)
    except TypeError:
        return repr(cell)
    return cell
