"""Tables in the bytes of Parquet files, refused in one line where they are damaged or beyond memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import polars as pl

from sdckit.io.atomic import POLARS_ERRORS
from sdckit.io.memory import BEYOND_MEMORY, require_memory

if TYPE_CHECKING:
    from pathlib import Path

    from sdckit.io.atomic import AnyPath

_WIDTHS = {pl.Boolean: 1, pl.Int8: 1, pl.UInt8: 1, pl.Int16: 2, pl.UInt16: 2, pl.Date: 4}
_WIDTHS |= dict.fromkeys((pl.Int32, pl.UInt32, pl.Float32), 4)  # bytes of a cell; 8 for other types


def parse_parquet(path: Path, data: bytes) -> pl.DataFrame:
    """Return the table in the bytes of a Parquet file.

    Parameters
    ----------
    path, data
        The file, for errors, and its bytes.

    Returns
    -------
    polars.DataFrame
        The table.

    Raises
    ------
    ValueError
        The file is damaged, or its records take more memory than there is.
    """
    try:
        found = pl.scan_parquet(io.BytesIO(data))
        schema, rows = found.collect_schema(), found.select(pl.len()).collect().item()
    except (*POLARS_ERRORS, OSError, ValueError) as error:
        raise damaged_parquet_error(path) from error
    width = sum(_WIDTHS.get(kind.base_type(), 8) for kind in schema.dtypes())
    require_memory(f"'{path}' with {rows:,} records", rows * width, BEYOND_MEMORY)
    try:
        return pl.read_parquet(io.BytesIO(data))
    except (*POLARS_ERRORS, OSError, ValueError) as error:
        raise damaged_parquet_error(path) from error


def damaged_parquet_error(path: AnyPath) -> ValueError:
    """Return the error for a file that is no Parquet file, or not a whole one."""
    return ValueError(
        f"'{path}' is no whole Parquet file (cut off, damaged or another format); copy or export it again"
    )
