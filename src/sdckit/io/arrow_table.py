"""Tables in Arrow files, also named Feather and IPC: read from bytes and written to bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import polars as pl

from sdckit.io.damaged import damaged_error
from sdckit.io.parquet_table import read_typed

if TYPE_CHECKING:
    from pathlib import Path

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
