"""Crosswalk files: which original row each published row comes from; secret, and for their owner alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from sdckit.io import files
from sdckit.io.formats import ARROW_SUFFIXES, CSV_SUFFIXES, DEFAULT, PARQUET_SUFFIXES

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from numpy.typing import NDArray

    from sdckit.io.formats import Dialect

SUFFIXES = CSV_SUFFIXES + PARQUET_SUFFIXES + ARROW_SUFFIXES
PUBLISHED, ORIGINAL = "published_row", "original_row"  # columns of row numbers, from 1
REMEDY = "give the file that was written beside the release"


def crosswalk_table(rows: NDArray[np.int64], keys: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return a table of published and original row numbers, from 1, with the keys of the records."""
    numbers = pl.DataFrame({PUBLISHED: np.arange(1, len(rows) + 1), ORIGINAL: rows + 1})
    if keys is None:
        return numbers
    for name in [name for name in keys.columns if name in numbers.columns]:
        raise ValueError(f"a key named {name!r} has no place in a crosswalk; rename that column")
    return pl.concat([numbers, keys[rows]], how="horizontal")


def write_draft(
    path: Path, table: pl.DataFrame, *, dialect: Dialect = DEFAULT, overwrite: bool = False
) -> AbstractContextManager[Path]:
    """Write a crosswalk as `files.write_draft` does, readable by its owner alone at any time."""
    return files.write_draft(path, table, dialect=dialect, overwrite=overwrite, private=True)


def read(path: Path, keys: pl.DataFrame, n: int, dialect: Dialect = DEFAULT) -> NDArray[np.int64]:
    """Return the original row, from 0, of each published one; raise ValueError if the file does not fit.

    `keys` are the key columns of the original of n records; those that the crosswalk has must be the same.
    """
    table = files.read(path, dialect).frame
    numbers = [_row_numbers(path, table, name, n) for name in (PUBLISHED, ORIGINAL)]
    rows = np.empty(n, np.int64)
    rows[numbers[0]] = numbers[1]
    for name in [name for name in keys.columns if name in table.columns]:
        if table[name].to_list() != keys[name][numbers[1]].to_list():
            raise ValueError(
                f"'{path}' has other values of {name!r} than the rows of the original; "
                "give the original in its former order"
            )
    return rows


def _row_numbers(path: Path, table: pl.DataFrame, name: str, n: int) -> NDArray[np.int64]:
    """Return a column of row numbers, from 0; raise ValueError unless it has each of n rows once."""
    if name not in table.columns or not table[name].dtype.is_integer():
        raise ValueError(f"'{path}' is no crosswalk: it has no row numbers {name!r}; {REMEDY}")
    if table[name].sort().to_list() != list(range(1, n + 1)):
        raise ValueError(f"'{path}' has not each of the {n} rows once in {name!r}; {REMEDY}")
    return np.asarray(table[name].to_numpy() - 1, np.int64)
