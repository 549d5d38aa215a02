"""Masking methods, and `mask`, which applies any of them; importing this package registers all methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

from sdckit.core.engine_choice import on_engines
from sdckit.core.prepared import PreparedTable
from sdckit.core.registry import METHODS, import_modules
from sdckit.io.atomic import AnyPath  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.kernels.jit import Floats  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.masking.mask_matrix import apply, column_steps, enough_records, kept_columns, rounded
from sdckit.masking.mask_table import Masking, mask_prepared
from sdckit.masking.mask_units import mask_rows, require_units

__all__ = [
    "METHODS",
    "Masking",
    "apply",
    "column_steps",
    "enough_records",
    "kept_columns",
    "mask",
    "mask_prepared",
    "mask_rows",
    "require_units",
    "rounded",
]

import_modules(__name__)
Frame = TypeVar("Frame")


@overload
def mask(data: list[Any] | tuple[Any, ...], method: str, **options: Any) -> Floats: ...  # an array


@overload
def mask(data: Any, method: str, *, output: AnyPath, overwrite: bool = False, **options: Any) -> Path: ...


@overload
def mask(data: PreparedTable, method: str, **options: Any) -> Any: ...  # of the type that was prepared


@overload
def mask(
    data: Frame,
    method: str,
    *,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: str | None = None,
    by: str | Sequence[str] | None = None,
    rng: Any = None,
    decimals: int | str | None = None,
    na: Any = None,
    untouched: str | Sequence[str] | None = None,
    known: str | Sequence[str] | None = None,
    unknown: str | Sequence[str] | None = None,
    confidential: str | Sequence[str] | None = None,
    unit: str | None = None,
    drop: str | Sequence[str] | None = None,
    recode: Mapping[str, Any] | None = None,
    rules: Any = None,
    groups: str | None = None,
    engine: str | None = None,
    memory: int | str | None = None,
    master: str | None = None,
    scratch: AnyPath | None = None,
    **parameters: Any,
) -> Frame: ...


@on_engines("mask_data", tables=1)
def mask(
    data: Any,
    method: str,
    *,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: str | None = None,
    by: str | Sequence[str] | None = None,
    rng: Any = None,
    decimals: int | str | None = None,
    na: Any = None,
    untouched: str | Sequence[str] | None = None,
    known: str | Sequence[str] | None = None,
    unknown: str | Sequence[str] | None = None,
    confidential: str | Sequence[str] | None = None,
    unit: str | None = None,
    drop: str | Sequence[str] | None = None,
    recode: Mapping[str, Any] | None = None,
    rules: Any = None,
    groups: str | None = None,
    engine: str | None = None,  # noqa: ARG001 - these six are for `on_engines`
    memory: int | str | None = None,  # noqa: ARG001
    master: str | None = None,  # noqa: ARG001
    scratch: AnyPath | None = None,  # noqa: ARG001
    output: AnyPath | None = None,  # noqa: ARG001
    overwrite: bool = False,  # noqa: ARG001
    **parameters: Any,
) -> Any:
    """Mask numeric columns with a method of `sdc.METHODS`.

    Everything else stays as it is: other columns, names, index, order of rows, missing cells (but
    `sequential_shuffle` moves them with their rows, and microaggregation fills or suppresses them by
    group). The data handed in are not changed. A method that is not paired (see `sdc.METHODS`) makes
    rows that stand for no original record; it is named in a warning where other columns of the table
    stay beside them.

    Parameters
    ----------
    data : table, path or Spark DataFrame
        pandas, polars, pyarrow or numpy; or what `prepare` returns, with its roles. Or the path of a file or
        of a folder of Parquet files, or a list of such paths.
    method : str
        A name from `sdc.METHODS`.
    columns : list of str, optional
        Variables to mask; by default all numeric columns that have no other role, less those that look like
        codes or identifiers.
    key, weights : str, optional
        Columns that are not masked because they identify or weight records.
    by : str, optional
        Column whose values form strata; each is masked apart and the column is not masked.
    rng : None, int or numpy Generator
        None draws a fresh seed. Keep a seed secret: with it the masking can be undone.
    decimals : int or "original", optional
        Round masked cells; "original" to the step that 95 % of a column's values share, such as 100 or 0.25.
        None does not round.
    na : number or list of numbers, optional
        Values that stand for a missing cell; they are left where they are, except by methods that publish
        the records of a group alike, which leave missing cells empty.
    untouched, known, unknown, confidential, unit, drop, recode
        Other roles of columns, as for `prepare`.
    rules : text or list of text, optional
        What records must satisfy, such as "total = wages + other", "total = a + b +- 2" or "age >= 0";
        "discover" finds exact totals and columns without negative values. Masked records are
        changed as little as the rules ask for.
    groups : str, optional
        Name of a new column for the number of each record's group, where the method forms groups.
    engine, memory, master, scratch
        Where to work, as for `evaluate`. "local" and "spark" have most methods and name those they have. They
        draw the same numbers, others than "memory": each belongs to its cell, whatever the blocks.
    output : path, optional
        Write the masked data there, whole or not at all; needed where the data are files. One that ends in
        .parquet is one file; "local" and "spark" make any other a folder of Parquet files.
    overwrite : bool
        Replace an output that exists.
    **parameters
        Parameters of the method, such as `k=5`; with strata also `k={"north": 5, "south": 3}`.

    Returns
    -------
    table, path or Spark DataFrame
        Of the same type as `data`, or as the table that was prepared; with `output`, its path. A Spark
        DataFrame without `output` reads files in `scratch` that are removed when Python ends.

    Examples
    --------
    >>> import sdckit as sdc
    >>> print(sdc.mask([1.0, 2.0, 30.0, 31.0], "mdav", k=2))
    [ 1.5  1.5 30.5 30.5]
    """
    prepared = PreparedTable.of(
        data,
        columns=columns,
        key=key,
        weights=weights,
        by=by,
        na=na,
        untouched=untouched,
        known=known,
        unknown=unknown,
        confidential=confidential,
        unit=unit,
        drop=drop,
        recode=recode,
    )
    return mask_prepared(
        prepared,
        method,
        rng=rng,
        decimals=decimals,
        rules=rules,
        groups=groups,
        parameters=parameters,
    ).data
