"""Keyed fingerprints of records: equal for equal records, and nothing to anyone without the key."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core.converted_cells import NUMBER, converted, polars_column
from sdckit.core.table import LARGEST_INTEGER, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import UInt64s

SIZE = 8  # bytes of a fingerprint: two of a million records share one with a chance below 1e-7
KEY, VALUES = "key", "values"  # what of a record a fingerprint is of


def fingerprints(table: Table, columns: Sequence[str], secret: bytes, purpose: str) -> UInt64s | None:
    """Return a number for each record that follows from a secret and some cells; None without the columns.

    Neither the order of the columns nor the type of a number counts: 1, 1.0 and "1" are equal.
    """
    if not columns or not set(columns) <= set(table.names):
        return None
    rows = np.column_stack([cell_numbers(table, name) for name in sorted(columns)])
    width, data = 8 * rows.shape[1], np.ascontiguousarray(rows).tobytes()
    person = purpose.encode()
    made = b"".join(
        hashlib.blake2b(data[start : start + width], digest_size=SIZE, key=secret, person=person).digest()
        for start in range(0, len(data), width)
    )
    return np.frombuffer(made, "<u8")


def cell_numbers(table: Table, name: str) -> UInt64s:
    """Return a number for each cell of a column, equal for equal cells, also in other files and types."""
    if table.frame is None:
        return _bits(table.floats([name])[:, 0])
    column = polars_column(table.column(name))
    if column.dtype.is_numeric() and not _beyond_floats(column):
        return _bits(column.cast(pl.Float64).fill_null(np.nan).to_numpy())
    known: dict[Any, int] = {}
    return np.array([_number(str(cell), known) for cell in _as_text(column)], np.uint64)


def _beyond_floats(column: pl.Series) -> bool:
    """Return True for integers that floats cannot tell apart."""
    if not column.dtype.is_integer():
        return False
    ends = [end for end in (column.min(), column.max()) if isinstance(end, int)]
    return any(abs(end) > LARGEST_INTEGER for end in ends)


def _as_text(column: pl.Series) -> list[Any]:
    """Return the cells of a column as texts, the empty one where a cell is missing."""
    cells = column.to_list()
    return ["" if cell is None or cell != cell else cell for cell in cells]  # noqa: PLR0124 - NaN


def _bits(values: Any) -> UInt64s:
    """Return the bits of floats; one number for both zeros, and one for every missing cell."""
    plain = np.where(np.isnan(values), np.nan, values + 0.0)
    return np.ascontiguousarray(plain, np.float64).view(np.uint64)


def _number(text: str, known: dict[Any, int]) -> int:
    """Return the number of a cell that is text: the bits of a float if it is one, else from a digest."""
    if text not in known:
        found = converted(text) if text else (NUMBER, np.nan)
        kind, value = found if found is not None else (NUMBER, np.nan)
        small = kind == NUMBER and not abs(float(value)) > LARGEST_INTEGER
        if small:
            known[text] = int(_bits(np.array([float(value)]))[0])
        else:
            digest = hashlib.blake2b(f"{kind} {text.strip()}".encode(), digest_size=SIZE).digest()
            known[text] = int.from_bytes(digest, "little")
    return known[text]


def digest_of_table(table: Table) -> str:
    """Return the SHA-256 digest of the names and cells of a table, whatever its type."""
    digest = hashlib.sha256()
    for name in table.names:
        digest.update(f"{len(name)} {name} {table.n}\n".encode())
        digest.update(cell_numbers(table, name).tobytes())
    return digest.hexdigest()
