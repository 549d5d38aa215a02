"""Tables of any dataframe type: float64 columns inside, the same type out.

pandas, polars, pyarrow and whatever else narwhals knows; numpy arrays of one or two dimensions;
lists of numbers. The caller's object is never changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from sdckit.core import checks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Bools, Floats, Ints

LARGEST_INTEGER = 2**53  # beyond it, float64 cannot tell neighbours apart


class Table:
    """A table of any type, read by column name; labels that are not text are converted to text."""

    def __init__(self, data: Any) -> None:
        self.native = data
        self.frame: nw.DataFrame[Any] | None = None
        self.labels: Any = None  # pandas' own labels where they are no text, or the name of a series
        if isinstance(data, (list, tuple, np.ndarray)):
            self.array = _as_array(data)
            self.names = [f"x{j + 1}" for j in range(self.array.shape[1])]
            self.n = len(self.array)
            return
        self.batch = _is_record_batch(data)
        if self.batch:
            data = nw.dependencies.get_pyarrow().Table.from_batches([data])
        elif nw.dependencies.is_pandas_like_dataframe(data) and list(data.columns) != _text_labels(data):
            self.labels = data.columns
            data = data.copy(deep=False)
            data.columns = _text_labels(data)
        found = _opened(data)
        self.series = isinstance(found, nw.Series)
        if isinstance(found, nw.Series):
            self.labels = found.name
            found = found.alias(str(found.name) if found.name not in {None, ""} else "x1").to_frame()
        self.frame = found
        self.names = list(self.frame.columns)
        self.n = len(self.frame)

    def numeric(
        self, columns: str | Iterable[str] | None, *, leave_out: Iterable[str | None] = ()
    ) -> list[str]:
        """Return the columns to work on: the given ones, or all numeric ones without another role."""
        if columns is not None:
            names = names_of(columns)
            checks.known_columns(names, self.names)
            for name in names:
                if not self._is_numeric(name):
                    raise TypeError(
                        f"column {name!r} is not numeric but {self._kind(name)}; convert it or leave it out"
                    )
            checks.some_columns(names)
            return list(dict.fromkeys(names))
        roles = set(leave_out)
        names = [name for name in self.names if name not in roles and self._is_numeric(name)]
        checks.some_columns(names)
        return names

    def floats(self, columns: Sequence[str], na: object = None) -> Floats:
        """Return the columns as an n x p matrix, column by column in memory; NaN where a cell is missing."""
        declared = checks.declared_missing(na)
        if self.frame is None:
            same = list(columns) == self.names
            chosen = self.array if same else self.array[:, [self.names.index(name) for name in columns]]
            values = np.array(chosen, np.float64, order="F")
        else:
            values = np.empty((self.n, len(columns)), order="F")
            for j, name in enumerate(columns):
                values[:, j] = self._as_floats(name)
        for value in declared:
            values[values == value] = np.nan
        values += 0.0  # turns -0.0 into 0.0: sorts exchange the two on some CPUs and not on others
        return checks.finite(values, columns)

    def column(self, name: str) -> nw.Series[Any]:
        """Return one column, whatever the dataframe type."""
        checks.known_columns([name], self.names)
        if self.frame is None:
            raise TypeError(f"column {name!r} of an array has no role; give a dataframe instead")
        return self.frame[name]

    def with_values(
        self,
        columns: Sequence[str],
        values: Floats,
        *,
        whole: Iterable[str] = (),
        more: dict[str, Ints] | None = None,
    ) -> Any:
        """Return the table with new values in some columns; integer columns in `whole` stay integers.

        `more` are new columns of whole numbers.
        """
        values = values + 0.0  # turns -0.0 into 0.0, since its sign would be published
        if self.frame is None:
            array = np.array(self.array, np.float64)
            array[:, [self.names.index(name) for name in columns]] = values
            if more:
                return np.column_stack([array, *more.values()])
            return array.reshape(np.shape(self.native)) if np.ndim(self.native) == 1 else array
        integers = set(whole)
        fresh = [self._series(name, values[:, j], whole=name in integers) for j, name in enumerate(columns)]
        backend = self.frame.implementation
        fresh += [
            nw.new_series(name, column, nw.Int64, backend=backend) for name, column in (more or {}).items()
        ]
        frame = self.frame.with_columns(*fresh)
        if self.series and not more:
            return frame[self.names[0]].alias(self.labels).to_native()
        native = frame.to_native()
        if self.batch:
            return native.combine_chunks().to_batches()[0]
        if self.labels is not None and not self.series:
            native.columns = [*self.labels, *more] if more else self.labels
        return native

    def _series(self, name: str, values: Floats, *, whole: bool) -> nw.Series[Any]:
        assert self.frame is not None  # noqa: S101 - arrays were dealt with
        old = self.frame[name]
        integer = whole and old.dtype.is_integer()
        largest = np.fmax.reduce(np.abs(values), initial=0)
        if integer and largest > LARGEST_INTEGER:
            raise ValueError(
                f"column {name!r} has masked values up to {largest:.3g}, too large for whole numbers; "
                "weaken the masking or do not round"
            )
        make = _pandas_series if self.frame.implementation.is_pandas() else _other_series
        return make(old, values, integer=integer)

    def _is_numeric(self, name: str) -> bool:
        return self.frame is None or bool(self.frame[name].dtype.is_numeric())

    def _kind(self, name: str) -> str:
        dtype = self.column(name).dtype
        return "text" if dtype == nw.String else str(dtype)

    def _as_floats(self, name: str) -> Floats:
        assert self.frame is not None  # noqa: S101 - arrays were dealt with
        series = self.frame[name]
        if series.dtype.is_integer() or series.dtype.is_decimal():
            low, high = series.min(), series.max()
            if low is not None and (low < -LARGEST_INTEGER or high > LARGEST_INTEGER):
                what = "integers" if series.dtype.is_integer() else "decimals"
                raise ValueError(
                    f"column {name!r} has {what} beyond 2**53, which lose digits; leave it out with columns"
                )
        values = series.cast(nw.Float64).to_numpy()
        return np.asarray(values, np.float64)


def names_of(columns: Any) -> list[str]:
    """Return column names from one name or several; labels that are not text become text."""
    if columns is None:
        return []
    several = isinstance(columns, Iterable) and not isinstance(columns, (str, bytes))
    return [str(name) for name in columns] if several else [str(columns)]


def _is_record_batch(data: Any) -> bool:
    pyarrow = nw.dependencies.get_pyarrow()
    return pyarrow is not None and isinstance(data, pyarrow.RecordBatch)


def _text_labels(data: Any) -> list[str]:
    if data.columns.nlevels > 1:
        raise ValueError(
            f"the column names have {data.columns.nlevels} levels; flatten them first, "
            "such as with data.columns.map('_'.join)"
        )
    return _unrepeated([str(label) for label in data.columns])


def _unrepeated(names: list[str]) -> list[str]:
    for name in names if len(set(names)) < len(names) else ():
        if names.count(name) > 1:
            raise ValueError(f"{names.count(name)} columns are named {name!r}; give each its own name")
    return names


def _opened(data: Any) -> nw.DataFrame[Any] | nw.Series[Any]:
    if nw.dependencies.is_pyarrow_table(data):
        _unrepeated(data.column_names)
    try:
        found = nw.from_native(data, allow_series=True)
    except TypeError as error:
        raise TypeError(
            f"data of type {type(data).__name__} are no table; "
            "give a pandas, polars or pyarrow table, or a numpy array"
        ) from error
    if isinstance(found, nw.LazyFrame):
        raise TypeError(f"{type(data).__name__} is lazy; collect it first")
    return found


def _pandas_series(old: nw.Series[Any], values: Floats, *, integer: bool) -> nw.Series[Any]:
    backend = old.implementation
    fresh = nw.new_series(old.name, values, nw.Float64, backend=backend)
    kind = str(old.to_native().dtype)
    if integer and (kind.endswith("[pyarrow]") or kind.startswith(("Int", "UInt"))):
        nullable = "int64[pyarrow]" if kind.endswith("[pyarrow]") else "Int64"
        return nw.from_native(fresh.to_native().astype(nullable), series_only=True)
    if integer and not np.isnan(values).any():  # numpy's integers have no missing cell
        return nw.new_series(old.name, values.astype(np.int64), nw.Int64, backend=backend)
    return fresh


def _other_series(old: nw.Series[Any], values: Floats, *, integer: bool) -> nw.Series[Any]:
    missing, backend = np.isnan(values), old.implementation
    dtype = nw.Int64 if integer else nw.Float64
    cells = np.where(missing, 0, values).astype(np.int64) if integer else values
    fresh = nw.new_series(old.name, cells, dtype, backend=backend)
    null = missing
    if missing.any() and old.dtype.is_float():  # a cell that was NaN, not null, stays NaN
        null = missing & ~(np.isnan(old.to_numpy()) & ~old.is_null().to_numpy())
    if null.any():
        present = nw.new_series(old.name, ~null, nw.Boolean, backend=backend)
        nothing = nw.new_series(old.name, [None] * len(values), dtype, backend=backend)
        fresh = fresh.zip_with(present, nothing)
    return fresh


def _as_array(data: Any) -> Floats:
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError("the array is masked; mark its missing cells with array.astype(float).filled(np.nan)")
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError("the rows of the list differ in length; give one value per variable") from error
    if array.dtype.kind == "O":
        array = _from_objects(array)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"array of type {array.dtype} is not numeric; give numbers")
    if array.ndim not in (1, 2):
        raise ValueError(f"array has {array.ndim} dimensions; give one or two (records x variables)")
    if array.size == 0:
        raise ValueError(f"array of shape {array.shape} is empty; give at least 2 records")
    whole = array.dtype.kind in "iu"
    if whole and (array.min() < -LARGEST_INTEGER or array.max() > LARGEST_INTEGER):
        raise ValueError("the array has integers beyond 2**53, which lose digits; leave their columns out")
    return array.reshape(len(array), -1)


def _from_objects(array: Any) -> Any:
    """Convert numbers and None to floats; return anything else unchanged."""
    cells = array.ravel().tolist()
    if not all(is_missing(cell) or is_number(cell) for cell in cells):
        return array
    # A float has as many digits as it has; any other number had more than are left of it.
    large = [cell for cell in cells if not (is_missing(cell) or isinstance(cell, float | np.floating))]
    large = [cell for cell in large if abs(cell) > LARGEST_INTEGER]
    if large:
        what = "integers" if isinstance(large[0], Integral) else "decimals"
        raise ValueError(f"the array has {what} beyond 2**53, which lose digits; leave their columns out")
    return np.array([np.nan if is_missing(cell) else float(cell) for cell in cells]).reshape(array.shape)


def is_missing(cell: Any) -> bool:
    """Return True for None, NaN and pandas' NA."""
    if isinstance(cell, (str, list, np.ndarray)):
        return False
    if cell is None or type(cell).__name__ == "NAType":  # pandas' NA refuses to be compared
        return True
    return bool(cell != cell)  # noqa: PLR0124 - NaN is the value that differs from itself


def is_number(cell: object) -> bool:
    """Return True for whole, real and decimal numbers, False for booleans."""
    return isinstance(cell, (Real, Decimal)) and not isinstance(cell, bool)


def decimals_of(values: Floats) -> int:
    """Return the largest number of decimals that a column shows, at most 15."""
    seen = values[np.abs(values) < LARGEST_INTEGER]  # larger ones are whole
    for decimals in range(15):
        if (np.round(seen, decimals) == seen).all():
            return decimals
    return 15


def round_column(values: Floats, decimals: int) -> Floats:
    """Round values to a number of decimals; those beyond 2**53 are whole and stay."""
    small = np.abs(values) < LARGEST_INTEGER
    return np.where(small, np.round(np.where(small, values, 0), decimals), values)


def untouched(original: Floats, masked: Floats) -> Bools:
    """Return which columns keep all observed values although they could have been changed."""
    gaps = np.isnan(original)
    same: Bools = ((original == masked) | gaps).all(axis=0)
    if not same.any():
        return same
    observed = (~gaps).sum(axis=0)
    constant = np.fmin.reduce(original) == np.fmax.reduce(original)
    return same & (observed > 0) & ~(constant & (observed > 1))
