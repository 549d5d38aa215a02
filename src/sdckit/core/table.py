"""A table as it was given, of any type: its columns, its decimals, and the columns that are added to it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import import_module
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl

from sdckit.core import checks
from sdckit.core.checks import refuse_patterns, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.arrays import Bools, Floats, Ints


ENGINES = ("memory", "local", "spark")


def is_path(data: object) -> bool:
    """Return True for the path of a file or folder, or a list of such paths."""
    if isinstance(data, (list, tuple)):
        return bool(data) and all(isinstance(one, (str, PathLike)) for one in data)
    return isinstance(data, (str, PathLike))


def is_spark_frame(data: object) -> bool:
    """Return True for a Spark DataFrame; Spark is not imported for the question."""
    kind = type(data)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.")


KINDS = ("polars", "pandas", "pyarrow")
USUAL_KIND = "polars"


def kind_of(frame: nw.DataFrame[Any] | None) -> str:
    """Return the kind of a caller's dataframe; polars for arrays and for types that are not in `KINDS`."""
    if frame is None:
        return USUAL_KIND
    if frame.implementation.is_pandas_like():
        return "pandas"
    return "pyarrow" if frame.implementation.is_pyarrow() else USUAL_KIND


def converted(table: pl.DataFrame, kind: str | None, usual: str) -> Any:
    """Return a table as "polars", "pandas" or "pyarrow"; as `usual` for None.

    Raises
    ------
    ValueError
        The kind is unknown, or its package is not installed.
    """
    wanted = checks.one_of("kind of dataframe", usual if kind is None else kind, KINDS)
    if wanted == "polars":
        return table
    try:
        package = import_module(wanted)
    except ImportError as error:
        raise ValueError(f"kind={wanted!r} needs the package {wanted}; pip install {wanted}") from error
    if wanted == "pyarrow":
        return table.to_arrow()
    return package.DataFrame(
        {column.name: column.to_numpy() for column in table}
    )  # polars' own needs pyarrow


SAFE_DIGITS = 10**15  # a decimal of up to 15 digits comes back from float64 as it was
EXACT_POWER = 22  # the largest power of ten that float64 holds exactly


def decimal_floats(series: nw.Series[Any]) -> Floats:
    """Return a column of decimals as the nearest floats, NaN where missing.

    Raises ValueError if a float cannot hold the digits of a cell.
    """
    scale = getattr(series.dtype, "scale", None)
    largest = max((abs(end) for end in (series.min(), series.max()) if end is not None), default=0)
    if scale is not None and scale <= EXACT_POWER and largest * 10**scale < SAFE_DIGITS:
        # pyarrow's floats may be neighbours of the nearest ones, which rounding finds.
        near: Floats = np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
        return near.round(scale)
    cells = series.drop_nulls().to_list()
    lost = next((cell for cell in cells if loses_digits(cell)), None)
    if lost is not None:
        raise ValueError(
            f"column {series.name!r} has decimals that lose digits, such as {shown(lost)}; "
            "leave it out with columns or round it to 15 digits"
        )
    values = np.full(len(series), np.nan)
    values[~series.is_null().to_numpy()] = [float(cell) for cell in cells]
    return values


def loses_digits(cell: Decimal) -> bool:
    """Return True if the shortest text of the nearest float is another decimal."""
    return Decimal(repr(float(cell))) != cell


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


LARGEST_INTEGER = 2**53  # beyond it, float64 cannot tell neighbours apart
MOST_DECIMALS = 15


class Table:
    """A pandas, polars, pyarrow or numpy table read by column name; labels that are no text become text."""

    def __init__(self, data: Any) -> None:
        self.native = data = _collected(data)
        self.frame: nw.DataFrame[Any] | None = None
        self.series: bool = False
        self.labels: Any = None  # pandas' own labels where they are no text, or the name of a series
        if isinstance(data, (list, tuple, np.ndarray)):
            self.array: Floats = _numeric_array(data)
            self.names: list[str] = [f"x{j + 1}" for j in range(self.array.shape[1])]
            self.n: int = len(self.array)
            return
        self.batch: bool = _is_record_batch(data)
        if self.batch:
            data = nw.dependencies.get_pyarrow().Table.from_batches([data])
        elif nw.dependencies.is_pandas_like_dataframe(data) and list(data.columns) != _text_labels(data):
            self.labels = data.columns
            data = data.copy(deep=False)
            data.columns = _text_labels(data)
        found = _open_frame(data)
        self.series = isinstance(found, nw.Series)
        if isinstance(found, nw.Series):
            self.labels = found.name
            found = found.alias(str(found.name) if found.name not in {None, ""} else "x1").to_frame()
        self.frame = found
        self.names = list(self.frame.columns)
        refuse_patterns(self.names)
        self.n = len(self.frame)

    @property
    def numeric_names(self) -> list[str]:
        """Names of the columns that have a numeric type."""
        return [name for name in self.names if self._is_numeric(name)]

    def numeric_columns(
        self, columns: str | Iterable[str] | None, *, leave_out: Iterable[str | None] = ()
    ) -> list[str]:
        """Return names of numeric columns: the given ones, checked, or all that have no other role."""
        if columns is not None:
            names = names_of(columns)
            checks.require_known(names, self.names)
            for name in names:
                if not self._is_numeric(name):
                    raise TypeError(f"column {name!r} is not numeric but {self._type_and_remedy(name)}")
            checks.require_usable_names(names)
            return list(dict.fromkeys(names))
        roles = set(leave_out)
        names = [name for name in self.numeric_names if name not in roles]
        checks.require_usable_names(names)
        return names

    def floats(self, columns: Sequence[str], na: object = None) -> Floats:
        """Return the columns as an n x p float matrix in column order, NaN where a cell is missing."""
        declared = checks.missing_codes(na)
        if self.frame is None:
            same = list(columns) == self.names
            chosen = self.array if same else self.array[:, [self.names.index(name) for name in columns]]
            values = np.array(chosen, np.float64, order="F")
        else:
            values = np.empty((self.n, len(columns)), order="F")
            for j, name in enumerate(columns):
                values[:, j] = self._column_floats(name)
        for value in declared:
            values[values == value] = np.nan
        values += 0.0  # -0.0 becomes 0.0, since the order of the two in a sort depends on the CPU
        # Least and largest values take no memory, and no kernel: the driver of a cluster loads none.
        if (
            np.fmax.reduce(values, None, initial=0) == np.inf
            or np.fmin.reduce(values, None, initial=0) == -np.inf
        ):
            for j, name in enumerate(columns):
                checks.require_no_infinite(int(np.isinf(values[:, j]).sum()), name)
        return values

    def column(self, name: str) -> nw.Series[Any]:
        """Return one column as a narwhals series; raise an error if it is unknown or data are an array."""
        checks.require_known([name], self.names)
        if self.frame is None:
            raise TypeError(f"column {name!r} of an array has no role; give a dataframe instead")
        return self.frame[name]

    def with_values(
        self,
        columns: Sequence[str],
        values: Floats,
        *,
        decimals: Mapping[str, int] | None = None,
        more: dict[str, Ints] | None = None,
        recoded: Iterable[nw.Series[Any]] = (),
    ) -> Any:
        """Return a copy of the table, in the caller's type, with new values in some columns.

        `decimals` has the number of decimals of rounded columns, `more` are new columns of whole numbers,
        `recoded` columns that replace those of the same name.
        """
        values = values + 0.0  # turns -0.0 into 0.0, since its sign would be published
        if self.frame is None:
            array = np.array(self.array, np.float64)
            array[:, [self.names.index(name) for name in columns]] = values
            if more:
                return np.column_stack([array, *more.values()])
            return array.reshape(np.shape(self.native)) if np.ndim(self.native) == 1 else array
        places = decimals or {}
        fresh = [
            replaced_series(self.frame[name], values[:, j], places.get(name))
            for j, name in enumerate(columns)
        ]
        backend = self.frame.implementation
        fresh += [
            nw.new_series(name, column, nw.Int64, backend=backend) for name, column in (more or {}).items()
        ]
        return self.with_columns([*fresh, *recoded])

    def with_columns(self, columns: Iterable[nw.Series[Any]]) -> Any:
        """Return a copy of the table, in the caller's type, with replaced and added columns."""
        if self.frame is None:
            raise TypeError("an array has no named columns; give a dataframe instead")
        return self._in_callers_type(self.frame.with_columns(*columns))

    def take(self, columns: Sequence[str], rows: Ints | None = None) -> Any:
        """Return some columns and rows, in the given order and the caller's type; pandas rows get new labels.

        Without `rows`, all are taken, with their labels.
        """
        if self.frame is None:
            chosen = self.array[:, [self.names.index(name) for name in columns]]
            chosen = chosen.copy() if rows is None else chosen[rows]
            return chosen[:, 0] if np.ndim(self.native) == 1 else chosen
        frame = self.frame.select(*columns)
        return self._in_callers_type(frame if rows is None else nw.maybe_reset_index(frame[rows]))

    def _in_callers_type(self, frame: nw.DataFrame[Any]) -> Any:
        """Return columns of this table, and further ones, in the type and with the labels of the caller."""
        if self.series and frame.columns == self.names:
            return frame[self.names[0]].alias(self.labels).to_native()
        native = frame.to_native()
        if self.batch:
            return native.combine_chunks().to_batches()[0]
        if self.labels is not None and not self.series:
            labels = dict(zip(self.names, self.labels, strict=True))
            found = [labels.get(name, name) for name in frame.columns]
            native.columns = self.labels if frame.columns == self.names else found
        return native

    def _is_numeric(self, name: str) -> bool:
        """Return True if the column has a numeric type."""
        return self.frame is None or bool(self.frame[name].dtype.is_numeric())

    def _type_and_remedy(self, name: str) -> str:
        """Return the type of a column as a word for an error message, and how to make it numeric."""
        dtype = self.column(name).dtype
        if dtype == nw.Object and self.column(name).implementation.is_pandas():
            return f"Python objects; convert it with data[{name!r}].astype(float) or leave it out"
        return f"{'text' if dtype == nw.String else dtype}; convert it or leave it out"

    def _column_floats(self, name: str) -> Floats:
        """Return a column as float64; raise ValueError for integers or decimals that lose digits."""
        assert self.frame is not None  # noqa: S101 - arrays were dealt with
        series = self.frame[name]
        if series.dtype.is_integer() or series.dtype.is_decimal():
            low, high = series.min(), series.max()
            if low is not None and (low < -LARGEST_INTEGER or high > LARGEST_INTEGER):
                what = "integers" if series.dtype.is_integer() else "decimals"
                raise ValueError(
                    f"column {name!r} has {what} beyond 2**53, which lose digits; leave it out with columns"
                )
        if series.dtype.is_decimal():
            return decimal_floats(series)
        return np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)


def replaced_series(old: nw.Series[Any], values: Floats, decimals: int | None) -> nw.Series[Any]:
    """Return a column with new values, rounded to so many decimals or not (None), in its type if that fits.

    Integers stay integers and decimals decimals where the number of decimals allows it; other columns, and
    decimals that do not fit, become floats, integers that do not fit integers of 64 bits.
    """
    if keeps_type(old.dtype, decimals) and old.dtype.is_decimal():
        return decimal_series(old, values)
    if not keeps_type(old.dtype, decimals):
        return float_series(old, values)
    largest = np.fmax.reduce(np.abs(values), initial=0)
    if largest > LARGEST_INTEGER:
        raise ValueError(
            f"column {old.name!r} has masked values up to {largest:.3g}, too large for whole numbers; "
            "weaken the masking or do not round"
        )
    return integer_series(old, values)


def keeps_type(kind: Any, decimals: int | None) -> bool:
    """Return True for a type of integers or decimals that has room for so many decimals."""
    if decimals is None:
        return False
    return (
        decimals <= 0 if kind.is_integer() else kind.is_decimal() and decimals <= getattr(kind, "scale", 38)
    )


def numbered_series(old: nw.Series[Any], numbers: Floats) -> nw.Series[Any]:
    """Return a column of whole numbers in place of any other, missing where a number is NaN."""
    return integer_series(old, numbers, keep=False)


def names_of(columns: Any) -> list[str]:
    """Return a list of column names from one name or several; labels that are not text become text."""
    if columns is None:
        return []
    several = isinstance(columns, Iterable) and not isinstance(columns, (str, bytes))
    return [str(name) for name in columns] if several else [str(columns)]


def _is_record_batch(data: Any) -> bool:
    """Return True for a pyarrow RecordBatch."""
    pyarrow = nw.dependencies.get_pyarrow()
    return pyarrow is not None and isinstance(data, pyarrow.RecordBatch)


def _text_labels(data: Any) -> list[str]:
    """Return the column labels of a pandas table as text; raise ValueError if they repeat or have levels."""
    if data.columns.nlevels > 1:
        raise ValueError(
            f"the column names have {data.columns.nlevels} levels; flatten them first, "
            "such as with data.columns.map('_'.join)"
        )
    return _require_unique_names([str(label) for label in data.columns])


def _require_unique_names(names: list[str]) -> list[str]:
    """Return the names unchanged; raise ValueError if one occurs twice."""
    for name in names if len(set(names)) < len(names) else ():
        if names.count(name) > 1:
            raise ValueError(f"{names.count(name)} columns are named {name!r}; give each its own name")
    return names


def _collected(data: Any) -> Any:
    """Return a lazy frame, as of polars or DuckDB, collected, and an Arrow stream as a table of polars."""
    known = nw.dependencies
    if isinstance(data, (list, tuple, np.ndarray)) or known.is_polars_dataframe(data):
        return data
    if known.is_pandas_like_dataframe(data) or known.is_pyarrow_table(data):
        return data
    found = nw.from_native(data, allow_series=True, pass_through=True)
    if isinstance(found, nw.LazyFrame):
        if found.implementation.is_spark_like():
            raise TypeError("a Spark DataFrame is not read into memory; use the engine spark")
        return found.collect().to_native()
    if found is data and hasattr(data, "__arrow_c_stream__") and not _is_record_batch(data):
        return pl.DataFrame(data)
    return data


def _open_frame(data: Any) -> nw.DataFrame[Any] | nw.Series[Any]:
    """Return the data as a narwhals DataFrame or Series; raise TypeError for other types."""
    if nw.dependencies.is_pyarrow_table(data):
        _require_unique_names(data.column_names)
    try:
        found: nw.DataFrame[Any] | nw.Series[Any] = nw.from_native(data, allow_series=True)
    except TypeError as error:
        raise TypeError(
            f"data of type {type(data).__name__} are no table; "
            "give a pandas, polars or pyarrow table, or a numpy array"
        ) from error
    return found


def _numeric_array(data: Any) -> Floats:
    """Return a list or array as a numeric numpy array of two dimensions; raise an error for other data."""
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError("the array is masked; mark its missing cells with array.astype(float).filled(np.nan)")
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError("the rows of the list differ in length; give one value per variable") from error
    if array.dtype.kind == "O":
        array = _floats_from_objects(array)
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


def _floats_from_objects(array: Any) -> Any:
    """Return an object array of numbers and None as floats; other object arrays unchanged."""
    cells = array.ravel().tolist()
    if not all(is_missing(cell) or is_number(cell) for cell in cells):
        return array
    # Floats are exact already; other large numbers would lose digits in the conversion.
    large = [cell for cell in cells if not (is_missing(cell) or isinstance(cell, float | np.floating))]
    large = [cell for cell in large if abs(cell) > LARGEST_INTEGER]
    if large:
        what = "integers" if isinstance(large[0], Integral) else "decimals"
        raise ValueError(f"the array has {what} beyond 2**53, which lose digits; leave their columns out")
    lost = next((c for c in cells if isinstance(c, Decimal) and not is_missing(c) and loses_digits(c)), None)
    if lost is not None:
        raise ValueError(
            f"the array has decimals that lose digits, such as {shown(lost)}; leave their columns out or "
            "round them to 15 digits"
        )
    return np.array([np.nan if is_missing(cell) else float(cell) for cell in cells]).reshape(array.shape)


def is_missing(cell: Any) -> bool:
    """Return True for None, NaN and pandas' NA."""
    if isinstance(cell, (str, list, np.ndarray)):
        return False
    if cell is None or type(cell).__name__ == "NAType":  # pandas' NA cannot be compared
        return True
    return bool(cell != cell)  # noqa: PLR0124 - NaN is the value that differs from itself


def is_number(cell: object) -> bool:
    """Return True for whole, real and decimal numbers, False for booleans."""
    return isinstance(cell, (Real, Decimal)) and not isinstance(cell, bool)


def decimals_of(values: Floats) -> int:
    """Return the largest number of decimals, at most 15, that the values of a column have."""
    seen = values[np.abs(values) < LARGEST_INTEGER]  # larger values are whole numbers
    return next((d for d in range(MOST_DECIMALS) if fits_decimals(seen, d)), MOST_DECIMALS)


def fits_decimals(values: Floats, decimals: int) -> bool:
    """Return True if rounding to a number of decimals changes no value."""
    return bool((np.round(values, decimals) == values).all())


def round_column(values: Floats, decimals: int) -> Floats:
    """Return the values rounded to a number of decimals; values beyond 2**53 are whole and stay."""
    small = np.abs(values) < LARGEST_INTEGER
    return np.where(small, np.round(np.where(small, values, 0), decimals), values)


def unchanged_columns(original: Floats, masked: Floats) -> Bools:
    """Return True for each column that could have been masked and keeps all its observed values."""
    gaps = np.isnan(original)
    same: Bools = ((original == masked) | gaps).all(axis=0)
    if not same.any():
        return same
    return same & can_change((~gaps).sum(axis=0), np.fmin.reduce(original), np.fmax.reduce(original))


def can_change(seen: Ints, low: Floats, high: Floats) -> Bools:
    """Return True for each column that masking should change: it has a value, and not one in many records."""
    return (seen > 0) & ~((low == high) & (seen > 1))


USUAL_SHARE = 0.95  # share of the values of a column that decides about its step
DIFFERENT = 10  # so many different values show that a step is no accident
MULTIPLES = (125, 25, 12, 6, 5, 4, 3, 2)  # of a power of ten, coarsest first
BLOCK = 10_000  # values that are looked at together


def decimals_that_fit(values: Floats) -> int:
    """Return a number whose bit d says whether all values have at most d decimals, for d below 15.

    The bits that all parts of a column have in common are those of the whole column.
    """
    seen = values[np.abs(values) < LARGEST_INTEGER]  # larger values are whole numbers
    return sum(1 << d for d in range(MOST_DECIMALS) if fits_decimals(seen, d))


def fewest_decimals(fits: int) -> int:
    """Return the number of decimals of a column, as `decimals_of` does, from its `decimals_that_fit`."""
    return next((d for d in range(MOST_DECIMALS) if fits >> d & 1), MOST_DECIMALS)


@dataclass(frozen=True)
class Step:
    """The distance between neighbouring values of a column: a multiple of 10 to the power of -decimals."""

    decimals: int  # negative for tens, hundreds and so on
    multiple: int = 1

    def rounded(self, values: Floats) -> Floats:
        """Return the values rounded to multiples of the step; values beyond 2**53 are whole and stay."""
        if self.multiple == 1 and self.decimals >= 0:
            return round_column(values, self.decimals)
        small = np.abs(values) < LARGEST_INTEGER
        return np.where(small, self.valued(np.rint(self.counted(np.where(small, values, 0.0)))), values)

    @property
    def size(self) -> float:
        """Distance between neighbouring multiples."""
        return float(self.multiple * 10.0**-self.decimals)

    def counted(self, values: Floats) -> Floats:
        """Return values divided by the step."""
        tens = 10.0 ** abs(self.decimals)  # a power below 1 would not be exact
        return values * tens / self.multiple if self.decimals >= 0 else values / (tens * self.multiple)

    def valued(self, counts: Floats) -> Floats:
        """Return the values of whole numbers of steps, exact to the last decimal."""
        tens = 10.0 ** abs(self.decimals)
        scaled = counts * self.multiple / tens if self.decimals >= 0 else counts * (tens * self.multiple)
        return scaled + 0.0


def usual_step(values: Floats) -> Step:
    """Return the coarsest step that 95 % of a column's values share; the number of decimals if there is none.

    Zeros, which are multiples of everything, do not count, and a value that many records have counts for at
    most 5 % of them; a step coarser than the decimals is only taken from 10 different values on. So neither
    one record with more decimals nor one frequent value decides about the step.
    """
    column = values[(np.abs(values) < LARGEST_INTEGER) & (values != 0)]
    finest = fewest_decimals(decimals_that_fit(values))
    if finest == MOST_DECIMALS or column.size < DIFFERENT:
        return Step(finest)

    @cache
    def counted() -> tuple[Floats, Floats]:
        """Return the different values, and for how many records each counts."""
        different, counts = np.unique(column, return_counts=True)
        return different, np.minimum(counts, max((1 - USUAL_SHARE) * column.size, 1.0))

    def is_shared(step: Step) -> bool:
        """Return True if 95 % of the values are multiples of a step, also with frequent ones as few."""
        left = column.size - math.ceil(USUAL_SHARE * column.size)
        for first in range(0, column.size, BLOCK):  # reads no further than it must
            part = column[first : first + BLOCK]
            left -= int(np.count_nonzero(step.rounded(part) != part))
            if left < 0:
                return False
        different, counts = counted()
        fits = step.rounded(different) == different
        return bool(fits.sum() >= DIFFERENT and counts[fits].sum() >= USUAL_SHARE * counts.sum())

    found = Step(finest)
    for decimals in range(finest - 1, -MOST_DECIMALS, -1):
        if not is_shared(Step(decimals)):
            break
        found = Step(decimals)
    multiples = (Step(found.decimals, multiple) for multiple in MULTIPLES)
    return next((step for step in multiples if is_shared(step)), found)


def decimals_of_steps(steps: Sequence[Step] | None) -> list[int] | None:
    """Return the decimals of each step; None for None."""
    return None if steps is None else [step.decimals for step in steps]
