"""Parquet and Arrow files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from sdckit.io.atomic import POLARS_ERRORS
from sdckit.io.cell_types import damaged_error
from sdckit.io.memory import BEYOND_MEMORY, require_memory, without_panic_messages

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sdckit.io.atomic import AnyPath


_WIDTHS = {pl.Boolean: 1, pl.Int8: 1, pl.UInt8: 1, pl.Int16: 2, pl.UInt16: 2, pl.Date: 4}
_WIDTHS |= dict.fromkeys((pl.Int32, pl.UInt32, pl.Float32), 4)  # bytes of a cell; 8 for other types
_WIDE = {pl.Int128, getattr(pl, "UInt128", pl.Int128)}  # which numpy does not have

Found = TypeVar("Found")


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
    return read_typed(
        path, "Parquet", lambda: pl.scan_parquet(io.BytesIO(data)), lambda: pl.read_parquet(io.BytesIO(data))
    )


def read_typed(
    path: Path, form: str, scan: Callable[[], pl.LazyFrame] | None, read: Callable[[], pl.DataFrame]
) -> pl.DataFrame:
    """Return the table that a function reads, in types that can be masked; its size is scanned first.

    Parameters
    ----------
    path, form
        The file and the name of its format, for errors.
    scan
        Gives types and number of records without reading the cells; None where the format cannot.
    read
        Reads the table.

    Raises
    ------
    ValueError
        The file is damaged, or its records take more memory than there is.
    """
    if scan is not None:
        schema, rows = _in_one_line(path, form, lambda: _header(scan()))
        width = sum(_WIDTHS.get(kind.base_type(), 8) for kind in schema.dtypes())
        require_memory(f"'{path}' with {rows:,} records", rows * width, BEYOND_MEMORY)
    frame = _in_one_line(path, form, read)
    return frame.with_columns([_as_usual(column) for column in frame if column.dtype in _WIDE])


def _header(found: pl.LazyFrame) -> tuple[pl.Schema, int]:
    """Return the types of the columns and the number of records that a file states."""
    return found.collect_schema(), int(found.select(pl.len()).collect().item())


def _in_one_line(path: AnyPath, form: str, read: Callable[[], Found]) -> Found:
    """Return what a function reads; raise one line, and print none, where the library fails or panics."""
    try:
        with without_panic_messages():
            return read()
    except (*POLARS_ERRORS, OSError, ValueError) as error:
        raise damaged_error(path, form) from error


def _as_usual(column: pl.Series) -> pl.Series:
    """Return integers of 128 bits as those of 64 bits, or as text where they do not fit, as in a CSV."""
    usual = column.cast(pl.Int64, strict=False)
    return usual if usual.null_count() == column.null_count() else column.cast(pl.String)


FILE_MARK = b"ARROW1"  # at both ends of a file; a stream of batches has none
FIRST_FEATHER = b"FEA1"


def parse_arrow(path: Path, data: bytes) -> pl.DataFrame:
    """Return the table in the bytes of an Arrow file or stream.

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
    if data.startswith(FIRST_FEATHER):
        raise ValueError(f"'{path}' is Feather of version 1, which is no longer read; write it as version 2")
    if not data.startswith(FILE_MARK):
        return read_typed(path, "Arrow", None, lambda: pl.read_ipc_stream(io.BytesIO(data)))
    if not data.endswith(FILE_MARK):
        raise damaged_error(path, "Arrow")
    return read_typed(
        path, "Arrow", lambda: pl.scan_ipc(io.BytesIO(data)), lambda: pl.read_ipc(io.BytesIO(data))
    )


def arrow_bytes(frame: pl.DataFrame) -> bytes:
    """Return a table as the bytes of an Arrow file, without compression and for readers of any age."""
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="uncompressed", compat_level=pl.CompatLevel.oldest())
    return buffer.getvalue()
