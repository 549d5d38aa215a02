"""Domains: records that share their cells in some columns, with a label that is equal in both files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from sdckit.core.converted_cells import NUMBER, converted
from sdckit.core.table import is_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Bools, Ints

WHOLE = "all"  # the domain of all records
LARGEST = 1 << 24  # domains that are possible and are counted without sorting


@dataclass(frozen=True)
class Domains:
    """Labels of the domains in their order, and the number of each record's domain; -1 outside all."""

    labels: list[str]
    numbers: Ints

    @property
    def count(self) -> int:
        """Number of domains."""
        return len(self.labels)


def whole_file(n: int) -> Domains:
    """Return the one domain of all records."""
    return Domains([WHOLE], np.zeros(n, np.int64))


def joint_domains(columns: Sequence[Domains], n: int) -> Domains:
    """Return the domains that the cells of several columns form together; those of all records for none."""
    if not columns:
        return whole_file(n)
    if len(columns) == 1:
        return columns[0]
    numbers, outside = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for column in columns:
        numbers, outside = numbers * max(column.count, 1) + column.numbers, outside | (column.numbers < 0)
        numbers[outside] = 0
    return _joined(columns, numbers, outside)


def _joined(columns: Sequence[Domains], numbers: Ints, outside: Bools) -> Domains:
    """Return the domains of several columns that have records, numbered from 0."""
    possible = int(np.prod([float(column.count) for column in columns]))
    if possible <= max(LARGEST, numbers.size):
        present = np.flatnonzero(np.bincount(numbers[~outside], minlength=possible))
        places = np.zeros(max(possible, 1), np.int64)
        places[present] = np.arange(present.size)
        found = places[numbers]
    else:
        present = np.unique(numbers[~outside])
        found = np.searchsorted(present, numbers)
    found[outside] = -1
    sizes = [column.count for column in columns]
    parts = np.unravel_index(present, sizes) if present.size else [present for _ in sizes]
    labels = [
        ", ".join(column.labels[i] for column, i in zip(columns, place, strict=True))
        for place in zip(*parts, strict=True)
    ]
    return Domains(labels, found)


def domains_of(column: pl.Series) -> Domains:
    """Return the domains that the cells of a column form; a missing cell belongs to none.

    Cells are compared after one conversion: 1, 1.0 and "1" are equal. Numbers come before texts.
    """
    if column.dtype == pl.Object or column.dtype.is_nested():
        cells = [None if is_missing(cell) else str(cell) for cell in column.to_list()]
        column = pl.Series(column.name, cells, pl.String)
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype.is_float():
        column = column.fill_nan(None)
    distinct = column.drop_nulls().unique()
    keys = [converted(cell) for cell in distinct.to_list()]
    order = {key: place for place, key in enumerate(sorted({key for key in keys if key}))}
    if not order:
        return Domains([], np.full(len(column), -1))
    places = pl.Series([-1 if key is None else order[key] for key in keys], dtype=pl.Int64)
    numbers = column.replace_strict(distinct, places, default=-1, return_dtype=pl.Int64)
    return Domains([_label(*key) for key in order], numbers.to_numpy())


def _label(kind: int, value: float | str) -> str:
    """Return a cell after its conversion as text; a whole number has no decimals."""
    if kind == NUMBER and float(value).is_integer() and abs(float(value)) < 1e15:
        return str(int(value))
    return str(value)
