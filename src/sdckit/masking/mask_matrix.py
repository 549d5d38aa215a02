"""One method on one matrix: what it needs, what it gets, what is made of its result."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.core.settings import placed
from sdckit.core.table import decimals_of, round_column, untouched
from sdckit.core.text import shortened
from sdckit.kernels.jit import count_special

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.registry import Method
    from sdckit.kernels.jit import Floats, Ints


def apply(
    method: Method,
    values: Floats,
    options: dict[str, Any],
    rng: np.random.Generator,
    *,
    names: Sequence[str],
    basis: Any = None,
    groups: Ints | None = None,
) -> Floats:
    """Mask a matrix; what left the range of floating-point numbers is infinite."""
    extra: dict[str, Any] = {"rng": rng} if method.random else {}
    if basis is not None:
        extra["basis"] = basis
    if groups is not None:
        extra["groups"] = groups
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused in one line
        masked: Floats = np.asfortranarray(method.function(values, **placed(method, options, names), **extra))
    if method.group_size is None and method.pairs(options) and count_special(masked.T.ravel())[0]:
        # Groups may suppress a cell; elsewhere a lost one is inf - inf.
        masked[np.isnan(masked) & ~np.isnan(values)] = np.inf
    return masked


def groups_of(method: Method, values: Floats, options: dict[str, Any], names: Sequence[str]) -> Ints:
    """The number of each record's group; -1 for a record in none."""
    assert method.groups is not None  # noqa: S101 - checked with all else that was asked for
    groups: Ints = method.groups(values, **placed(method, options, names))
    return groups


def enough_records(method: Method, values: Floats, options: dict[str, Any], what: str) -> None:
    """Refuse a group size that the file, or a stratum of it, does not have, and too few records."""
    present = int((~np.isnan(values)).any(axis=1).sum())  # a record without any value is in no group
    if method.group_size is not None:
        needed = options[method.group_size]
        checks.enough_records(present, needed, what=what, method=method.name, parameter=method.group_size)
    if method.records is not None:
        needed = method.records(options, values.shape[1])
        checks.records_for(present, needed, what=what, method=method.name)


def places_of(values: Floats, decimals: int | str) -> list[int]:
    """The decimals of each column: those that it shows, or a number for all."""
    return [decimals_of(column) if decimals == "original" else int(decimals) for column in values.T]


def rounded(values: Floats, places: Sequence[int]) -> Floats:
    """Each column rounded to its own number of decimals."""
    return np.column_stack([round_column(column, d) for column, d in zip(values.T, places, strict=True)])


def asks_for_nothing(method: Method, options: dict[str, Any]) -> bool:
    """True for k = 1, percent = 0 and the like: whoever sets them knows that nothing will change."""
    rising = [
        p for p in method.parameters if p.low is not None and len(p.grid) > 1 and p.grid[0] < p.grid[-1]
    ]
    return bool(rising) and all(options[parameter.name] == parameter.low for parameter in rising)


def kept_columns(method: Method, options: dict[str, Any]) -> tuple[str, ...]:
    """Columns that a method was told to keep."""
    return tuple(name for p in method.parameters if p.kind is tuple for name in options[p.name])


def warn_of_originals(
    original: Floats,
    masked: Floats,
    names: Sequence[str],
    strata: list[tuple[str, Ints]],
    *,
    kept: Sequence[str],
    grouped: bool,
) -> None:
    """Name, in one warning, the columns that are published as they were, from top to bottom of a stratum.

    Nobody is told of columns that were meant to be `kept`.
    """
    found = [
        f"{name!r} in stratum {stratum!r}" if grouped else repr(name)
        for stratum, rows in strata
        for name, idle in zip(names, untouched(original[rows], masked[rows]), strict=True)
        if idle and name not in kept
    ]
    if found:
        remedy = "raise the parameter, merge strata" if grouped else "raise the parameter"
        warnings.warn(
            f"not masked, every value is as in the original: {shortened(found)}; "
            f"{remedy} or leave the column out",
            stacklevel=5,
        )
