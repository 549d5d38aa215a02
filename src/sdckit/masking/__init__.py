"""Masking: the one call that applies any method to any table. Importing this package files all methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit import checks, frames
from sdckit.registry import METHODS

from sdckit.masking import microaggregation, noise, swapping  # isort: skip - the order of the tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.compiled import Floats
    from sdckit.registry import Method

__all__ = ["METHODS", "mask", "microaggregation", "noise", "swapping"]


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
    **parameters: Any,
) -> Any:
    """Mask numeric columns with a method of `sdc.METHODS`.

    Everything else stays as it is: other columns, names, index, order of rows, missing cells. The
    data handed in are not changed.

    Parameters
    ----------
    data : table
        pandas, polars, pyarrow or numpy.
    method : str
        A name from `sdc.METHODS`.
    columns : list of str, optional
        Variables to mask; by default all numeric columns that have no other role.
    key, weights : str, optional
        Columns that are not masked because they identify or weight records.
    by : str, optional
        Column whose values form strata; each is masked apart and the column is not masked.
    rng : None, int or numpy Generator
        None draws fresh entropy. Keep a seed secret: whoever has it can undo the masking.
    decimals : int or "original", optional
        Round masked cells; "original" to the decimals that each column shows. None does not round.
    na : number or list of numbers, optional
        Values that stand for a missing cell; they are left where they are.
    **parameters
        Parameters of the method, such as `k=5`.

    Returns
    -------
    table
        Of the same type as `data`.

    Examples
    --------
    >>> import sdckit as sdc
    >>> print(sdc.mask([1.0, 2.0, 30.0, 31.0], "mdav", k=2))
    [ 1.5  1.5 30.5 30.5]
    """
    record = checks.method_named(method)
    options = checks.parameters_of(record, parameters)
    digits = checks.rounding(decimals)
    generator = checks.generator(rng)
    table = frames.Table(data)
    checks.at_least_two(table.n)
    roles = [name for role in (key, weights, by) for name in _names(role)]
    checks.known_columns(roles, table.names)
    checks.apart(_names(columns), roles)
    names = table.numeric(columns, leave_out=roles)
    values = table.floats(names, na)
    if columns is None:
        frames.warn_about_roles(table, names, values)
    masked = np.empty_like(values)
    for stratum, rows in frames.strata(table, by):
        what = "the file" if by is None else f"stratum {stratum!r}"
        masked[rows] = _apply(record, np.asfortranarray(values[rows]), options, generator, what)
    checks.representable(masked, names, record.name)
    whole: list[str] = []
    if digits is not None:
        places = [frames.decimals_of(column) if digits == "original" else int(digits) for column in values.T]
        masked = np.column_stack([np.round(column, d) for column, d in zip(masked.T, places, strict=True)])
        whole = [name for name, d in zip(names, places, strict=True) if d == 0]
    if na is not None:
        raw = table.floats(names)
        declared = np.isnan(values)
        masked[declared] = raw[declared]
    return table.with_values(names, masked, whole=whole)


def _names(role: str | Sequence[str] | None) -> list[str]:
    return [role] if isinstance(role, str) else list(role or ())


def _apply(
    method: Method, values: Floats, options: dict[str, Any], rng: np.random.Generator, what: str
) -> Floats:
    if method.group_size is not None:
        needed = options[method.group_size]
        present = int((~np.isnan(values)).any(axis=1).sum())  # a record without any value is in no group
        checks.enough_records(present, needed, what=what, method=method.name, parameter=method.group_size)
    extra = {"rng": rng} if method.random else {}
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused in one line
        masked: Floats = method.function(values, **options, **extra)
    return masked
