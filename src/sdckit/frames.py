"""Any dataframe in, float64 columns inside, the same type out.

pandas, polars, pyarrow and whatever else narwhals knows; numpy arrays of one or two dimensions;
lists of numbers. The caller's object is never changed.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from sdckit import checks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.compiled import Bools, Floats, Ints

LARGEST_INTEGER = 2**53  # beyond it, float64 cannot tell neighbours apart
IDENTIFIER = re.compile(  # "firm_id", "record no", "personId", but not "paid" or "valid"
    r"(?i:(^|[_. ])(id|ids|key|nr|no|number|record|row|index)([_. ]|$))|[a-z]I[dD]$"
)


class Table:
    """A table of any type, read by column name."""

    def __init__(self, data: Any) -> None:
        self.native = data
        self.frame: nw.DataFrame[Any] | None = None
        if isinstance(data, (list, tuple, np.ndarray)):
            self.array = _as_array(data)
            self.names = [f"x{j + 1}" for j in range(self.array.shape[1])]
            self.n = len(self.array)
            return
        try:
            found = nw.from_native(data, allow_series=True)
        except TypeError as error:
            raise TypeError(
                f"data of type {type(data).__name__} are no table; "
                "give a pandas, polars or pyarrow table, or a numpy array"
            ) from error
        if isinstance(found, nw.LazyFrame):
            raise TypeError(f"{type(data).__name__} is lazy; collect it first")
        self.series = isinstance(found, nw.Series)
        self.frame = found.alias(found.name or "x1").to_frame() if isinstance(found, nw.Series) else found
        self.names = list(self.frame.columns)
        self.n = len(self.frame)

    def numeric(
        self, columns: str | Iterable[str] | None, *, leave_out: Iterable[str | None] = ()
    ) -> list[str]:
        """Names of the columns to work on: the given ones, or all numeric ones that have no other role."""
        if columns is not None:
            names = [columns] if isinstance(columns, str) else list(columns)
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
        """The columns as an n x p matrix with contiguous columns; NaN where a cell is missing."""
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
        return checks.finite(values, columns)

    def column(self, name: str) -> nw.Series[Any]:
        """One column of a dataframe, whatever its type."""
        checks.known_columns([name], self.names)
        if self.frame is None:
            raise TypeError(f"column {name!r} of an array has no role; give a dataframe instead")
        return self.frame[name]

    def with_values(self, columns: Sequence[str], values: Floats, *, whole: Iterable[str] = ()) -> Any:
        """The same table with new values in some columns; integer columns in `whole` stay integers."""
        if self.frame is None:
            array = np.array(self.array, np.float64)
            array[:, [self.names.index(name) for name in columns]] = values
            return array.reshape(np.shape(self.native)) if np.ndim(self.native) == 1 else array
        integers = set(whole)
        fresh = [self._series(name, values[:, j], whole=name in integers) for j, name in enumerate(columns)]
        frame = self.frame.with_columns(*fresh)
        return (frame[self.names[0]] if self.series else frame).to_native()

    def _series(self, name: str, values: Floats, *, whole: bool) -> nw.Series[Any]:
        assert self.frame is not None  # noqa: S101 - arrays were dealt with
        missing = np.isnan(values)
        backend = self.frame.implementation
        integer = whole and self.frame[name].dtype.is_integer()
        if integer and backend.is_pandas() and missing.any():
            integer = False  # numpy's integers, which pandas uses, have no missing cell
        dtype = nw.Int64 if integer else nw.Float64
        cells = np.where(missing, 0, values).astype(np.int64) if integer else values
        fresh = nw.new_series(name, cells, dtype, backend=backend)
        if missing.any() and not backend.is_pandas():
            present = nw.new_series(name, ~missing, nw.Boolean, backend=backend)
            nothing = nw.new_series(name, [None] * len(values), dtype, backend=backend)
            fresh = fresh.zip_with(present, nothing)
        return fresh

    def _is_numeric(self, name: str) -> bool:
        return self.frame is None or bool(self.frame[name].dtype.is_numeric())

    def _kind(self, name: str) -> str:
        dtype = self.column(name).dtype
        return "text" if dtype == nw.String else str(dtype)

    def _as_floats(self, name: str) -> Floats:
        assert self.frame is not None  # noqa: S101 - arrays were dealt with
        series = self.frame[name]
        if series.dtype.is_integer():
            low, high = series.min(), series.max()
            if low is not None and (low < -LARGEST_INTEGER or high > LARGEST_INTEGER):
                raise ValueError(
                    f"column {name!r} has integers beyond 2**53, which lose digits; leave it out with columns"
                )
        values = series.cast(nw.Float64).to_numpy()
        return np.asarray(values, np.float64)


def _as_array(data: Any) -> Floats:
    array = np.asarray(data)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"array of type {array.dtype} is not numeric; give numbers")
    if array.ndim not in (1, 2):
        raise ValueError(f"array has {array.ndim} dimensions; give one or two (records x variables)")
    if array.size == 0:
        raise ValueError(f"array of shape {array.shape} is empty; give at least 2 records")
    if array.dtype.kind in "iu" and (array.min() < -LARGEST_INTEGER or array.max() > LARGEST_INTEGER):
        raise ValueError("the array has integers beyond 2**53, which lose digits; leave their columns out")
    return array.reshape(len(array), -1)


def strata(table: Table, by: str | Sequence[str] | None) -> list[tuple[str, Ints]]:
    """Names and rows of the strata, in order of first appearance; one stratum "all" without `by`."""
    if by is None:
        return [("all", np.arange(table.n))]
    names = [by] if isinstance(by, str) else list(by)
    columns = [table.column(name).to_list() for name in names]
    rows: dict[str, list[int]] = {}
    for i, levels in enumerate(zip(*columns, strict=True)):
        label = ", ".join("(missing)" if _is_missing(level) else str(level) for level in levels)
        rows.setdefault("'all'" if label == "all" else label, []).append(i)  # tables use all for the file
    return [(label, np.array(found)) for label, found in rows.items()]


def _is_missing(level: object) -> bool:
    return level is None or level != level  # noqa: PLR0124 - NaN is the value that differs from itself


def match_keys(original: Table, masked: Table, key: str | Sequence[str]) -> Ints:
    """Row of `masked` for each row of `original` with the same key."""
    names = [key] if isinstance(key, str) else list(key)
    ours = list(zip(*(original.column(name).to_list() for name in names), strict=True))
    theirs = list(zip(*(masked.column(name).to_list() for name in names), strict=True))
    label = ", ".join(names)
    checks.unique_keys(len(set(ours)), len(ours), label, "original")
    checks.unique_keys(len(set(theirs)), len(theirs), label, "masked")
    place = {value: i for i, value in enumerate(theirs)}
    absent = [value for value in ours if value not in place]
    if absent or len(ours) != len(theirs):
        raise ValueError(
            f"key {label!r} does not match: {len(absent)} of {len(ours)} original records are not among the "
            f"{len(theirs)} masked ones; compare files with the same records"
        )
    return np.array([place[value] for value in ours])


def warn_about_roles(table: Table, columns: Sequence[str], values: Floats) -> None:
    """Name columns that look like identifiers or survey weights: they are rarely meant."""
    for j, name in enumerate(columns):
        if _looks_like_identifier(name, values[:, j]) and table.frame is not None:
            warnings.warn(
                f"column {name!r} looks like an identifier; leave it out with columns or name it as key",
                stacklevel=3,
            )
        elif name.lower() in {"weight", "weights"}:
            warnings.warn(
                f"column {name!r} looks like a survey weight; leave it out with columns or name it weights",
                stacklevel=3,
            )


def _looks_like_identifier(name: str, values: Floats) -> bool:
    if values.size < 3 or np.isnan(values).any() or (values != np.floor(values)).any():
        return False
    ordered = np.sort(values)
    if not (np.diff(ordered) > 0).all():
        return False
    return bool(IDENTIFIER.search(name)) or bool(ordered[-1] - ordered[0] == values.size - 1)


def decimals_of(values: Floats) -> int:
    """The largest number of decimals that a column shows, at most 15."""
    seen = values[np.isfinite(values)]
    for decimals in range(15):
        if (np.round(seen, decimals) == seen).all():
            return decimals
    return 15


def missing_cells(values: Floats) -> Bools:
    """Where a matrix has missing cells."""
    return np.isnan(values)
