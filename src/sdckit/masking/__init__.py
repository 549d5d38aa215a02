"""Masking: the one call that applies any method to any table. Importing this package files all methods."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit import checks, frames
from sdckit.compiled import count_special
from sdckit.registry import METHODS

from sdckit.masking import microaggregation, noise, swapping  # isort: skip - the order of the tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.compiled import Bools, Floats, Ints
    from sdckit.registry import Method

NAMED = 5  # so many columns a warning names
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
    roles = [name for role in (key, weights, by) for name in frames.names_of(role)]
    checks.known_columns(roles, table.names)
    checks.apart(frames.names_of(columns), roles)
    if columns is None:
        frames.warn_about_objects(table, roles)
    names = table.numeric(columns, leave_out=roles)
    values = table.floats(names, na)
    if columns is None:
        frames.warn_about_roles(table, names, values)
    masked = np.empty_like(values)
    strata = frames.strata(table, by)
    grouped = bool(frames.names_of(by))
    for stratum, rows in strata:
        what = f"stratum {stratum!r}" if grouped else "the file"
        part = np.asfortranarray(values[rows])
        enough_records(record, part, options, what)
        masked[rows] = apply(record, part, options, generator)
    plain, whole = values, []
    if digits is not None:
        places = places_of(values, digits)
        masked, plain = rounded(masked, places), rounded(values, places)
        whole = [name for name, d in zip(names, places, strict=True) if d == 0]
    checks.representable(masked, names, record.name)
    if not _asks_for_nothing(record, options) or not np.array_equal(plain, masked, equal_nan=True):
        _warn_of_originals(plain, masked, names, strata, grouped=grouped)
    if na is not None:
        raw = table.floats(names)
        declared = np.isnan(values)
        masked[declared] = raw[declared]
    return table.with_values(names, masked, whole=whole)


def places_of(values: Floats, decimals: int | str) -> list[int]:
    """The decimals of each column: those that it shows, or a number for all."""
    return [frames.decimals_of(column) if decimals == "original" else int(decimals) for column in values.T]


def rounded(values: Floats, places: Sequence[int]) -> Floats:
    """Each column rounded to its own number of decimals."""
    return np.column_stack([frames.rounded(column, d) for column, d in zip(values.T, places, strict=True)])


def _asks_for_nothing(method: Method, options: dict[str, Any]) -> bool:
    """True for k = 1, percent = 0 and the like: whoever sets them knows that nothing will change."""
    lows = {parameter.name: parameter.low for parameter in method.parameters if parameter.low is not None}
    return bool(lows) and all(options[name] == low for name, low in lows.items())


def _warn_of_originals(
    original: Floats,
    masked: Floats,
    names: Sequence[str],
    strata: list[tuple[str, Ints]],
    *,
    grouped: bool,
) -> None:
    """Name, in one warning, the columns that are published as they were, from top to bottom of a stratum."""
    found = [
        f"{name!r} in stratum {stratum!r}" if grouped else repr(name)
        for stratum, rows in strata
        for name, idle in zip(names, _untouched(original[rows], masked[rows]), strict=True)
        if idle
    ]
    if found:
        listed = ", ".join(found[:NAMED]) + (f" and {len(found) - NAMED} more" if found[NAMED:] else "")
        remedy = "raise the parameter, merge strata" if grouped else "raise the parameter"
        warnings.warn(
            f"not masked, every value is as in the original: {listed}; {remedy} or leave the column out",
            stacklevel=3,
        )


def _untouched(original: Floats, masked: Floats) -> Bools:
    """Which columns show all observed values as they were, though there was something to change."""
    gaps = np.isnan(original)
    same: Bools = ((original == masked) | gaps).all(axis=0)
    if not same.any():
        return same
    observed = (~gaps).sum(axis=0)
    constant = np.fmin.reduce(original) == np.fmax.reduce(original)
    return same & (observed > 0) & ~(constant & (observed > 1))


def enough_records(method: Method, values: Floats, options: dict[str, Any], what: str) -> None:
    """Refuse a group size that the file, or a stratum of it, does not have."""
    if method.group_size is not None:
        needed = options[method.group_size]
        present = int((~np.isnan(values)).any(axis=1).sum())  # a record without any value is in no group
        checks.enough_records(present, needed, what=what, method=method.name, parameter=method.group_size)


def apply(
    method: Method, values: Floats, options: dict[str, Any], rng: np.random.Generator, basis: Any = None
) -> Floats:
    """Mask a matrix; what left the range of floating-point numbers is infinite."""
    extra = {"rng": rng} if method.random else {}
    if basis is not None:
        extra["basis"] = basis
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused in one line
        masked: Floats = np.asfortranarray(method.function(values, **options, **extra))
    if method.group_size is None and count_special(masked.T.ravel())[0]:
        # Groups may suppress a cell; elsewhere a lost one is inf - inf.
        masked[np.isnan(masked) & ~np.isnan(values)] = np.inf
    return masked
