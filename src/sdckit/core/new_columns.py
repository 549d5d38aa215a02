"""Columns with new values, in the type that the column had before where that type can hold them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats

NULLABLE = ("Int", "UInt", "Float")  # how pandas names its own types with missing cells


def float_series(old: nw.Series[Any], values: Floats) -> nw.Series[Any]:
    """Return floats in place of any column; a polars or pyarrow cell that was NaN, not null, stays so."""
    if not old.implementation.is_pandas():
        return _filled_like(old, values, nw.Float64())
    fresh = nw.new_series(old.name, values, nw.Float64, backend=old.implementation)
    kind = str(old.to_native().dtype)
    if kind.endswith("[pyarrow]"):
        return _as_pandas_type(fresh, "double[pyarrow]")
    return _as_pandas_type(fresh, "Float64") if kind.startswith(NULLABLE) else fresh


def integer_series(old: nw.Series[Any], values: Floats, *, keep: bool = True) -> nw.Series[Any]:
    """Return whole numbers in place of any column, missing where NaN; floats where pandas cannot else.

    With `keep`, they have the integer type of the column if it holds them; otherwise 64 bits.
    """
    kind = old.dtype if keep and holds_integers(old.dtype, values) else nw.Int64()
    if not old.implementation.is_pandas():
        return _filled_like(old, values, kind)
    fresh = nw.new_series(old.name, values, nw.Float64, backend=old.implementation)
    before = str(old.to_native().dtype)
    if before.endswith("[pyarrow]"):
        return _as_pandas_type(fresh, f"{str(kind).lower()}[pyarrow]")
    if before.startswith(NULLABLE):
        return _as_pandas_type(fresh, str(kind))
    if np.isnan(values).any():  # numpy's integers have no missing cell
        return fresh
    return nw.new_series(old.name, values.astype(np.int64), kind, backend=old.implementation)


def decimal_series(old: nw.Series[Any], values: Floats) -> nw.Series[Any]:
    """Return decimals in the type of a column of decimals, missing where NaN; floats if they do not fit."""
    kind = _decimal_type(old)
    scale = getattr(kind, "scale", None)
    if scale is None or not holds_decimals(kind.precision, scale, values):
        return float_series(old, values)
    cells = [None if np.isnan(value) else Decimal(f"{value:.{scale}f}") for value in values.tolist()]
    native = old.to_native()
    if old.implementation.is_polars():
        return nw.from_native(type(native)(old.name, cells, kind), series_only=True)
    pyarrow = nw.dependencies.get_pyarrow()
    if old.implementation.is_pyarrow():
        made = pyarrow.chunked_array([pyarrow.array(cells, kind)])
        return nw.from_native(made, series_only=True).alias(old.name)
    return nw.from_native(type(native)(cells, dtype=native.dtype, name=old.name), series_only=True)


def holds_integers(kind: Any, values: Floats) -> bool:
    """Return True if an integer type has room for whole numbers; False for a type of another kind."""
    found = re.fullmatch(r"(U?)Int(\d+)", str(kind))
    if found is None:
        return False
    bits = int(found[2])
    low, high = (0, 2**bits - 1) if found[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return bool(np.fmin.reduce(values, initial=0) >= low and np.fmax.reduce(values, initial=0) <= high)


def holds_decimals(precision: int, scale: int, values: Floats) -> bool:
    """Return True if a type with so many digits, `scale` of them decimals, holds all values unchanged."""
    largest = float(np.fmax.reduce(np.abs(values), initial=0))
    if Decimal(largest) >= Decimal(10) ** (precision - scale):
        return False
    return bool(((np.round(values, scale) == values) | np.isnan(values)).all())


def _decimal_type(old: nw.Series[Any]) -> Any:
    """Return the type of a column of decimals as its own library has it, with precision and scale."""
    native = old.to_native()
    if old.implementation.is_polars():
        return native.dtype
    return native.type if old.implementation.is_pyarrow() else getattr(native.dtype, "pyarrow_dtype", None)


def _as_pandas_type(column: nw.Series[Any], kind: str) -> nw.Series[Any]:
    """Return a pandas column in another type, NaN as its missing cell."""
    return nw.from_native(column.to_native().astype(kind), series_only=True)


def _filled_like(old: nw.Series[Any], values: Floats, kind: Any) -> nw.Series[Any]:
    """Return a polars or pyarrow column with new values, null or NaN in missing cells as before."""
    missing, backend = np.isnan(values), old.implementation
    integer = kind.is_integer()
    cells = np.where(missing, 0, values).astype(np.int64) if integer else values
    fresh = nw.new_series(old.name, cells, nw.Int64 if integer else nw.Float64, backend=backend)
    null = missing
    if missing.any() and old.dtype.is_float():  # a cell that was NaN, not null, stays NaN
        null = missing & ~(np.isnan(old.to_numpy()) & ~old.is_null().to_numpy())
    if null.any():
        present = nw.new_series(old.name, ~null, nw.Boolean, backend=backend)
        nothing = nw.new_series(old.name, [None] * len(values), fresh.dtype, backend=backend)
        fresh = fresh.zip_with(present, nothing)
    return fresh if fresh.dtype == kind else fresh.cast(kind)
