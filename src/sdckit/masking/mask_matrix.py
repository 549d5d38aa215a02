"""Apply a masking method to a matrix: required records, rounding, and warnings of unmasked columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.core.decimals import Step, usual_step
from sdckit.core.quoting import quoted
from sdckit.core.settings import function_options
from sdckit.core.table import decimals_of, unchanged_columns
from sdckit.core.warning_texts import warn
from sdckit.kernels.jit import count_special

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sdckit.core.registry import Method
    from sdckit.kernels.jit import Bools, Floats, Ints


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
    """Return the matrix masked with a method and its parameters; cells that overflow become infinite."""
    extra: dict[str, Any] = {"rng": rng} if method.random else {}
    if basis is not None:
        extra["basis"] = basis
    if groups is not None:
        extra["groups"] = groups
    with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses cells that overflow
        masked: Floats = np.asfortranarray(
            method.function(values, **function_options(method, options, names), **extra)
        )
    if method.group_size is None and method.keeps_pairing(options) and count_special(masked.T.ravel())[0]:
        # Only methods with groups suppress cells; otherwise a new NaN is inf - inf.
        masked[np.isnan(masked) & ~np.isnan(values)] = np.inf
    return masked


def groups_of(method: Method, values: Floats, options: dict[str, Any], names: Sequence[str]) -> Ints:
    """Return the number of each record's group as the method forms them; -1 for a record in no group."""
    assert method.groups is not None  # noqa: S101 - checked with the other options
    groups: Ints = method.groups(values, **function_options(method, options, names))
    return groups


def enough_records(method: Method, values: Floats, options: dict[str, Any], what: str) -> None:
    """Raise ValueError if the file or a stratum has fewer records than the method needs."""
    present = int((~np.isnan(values)).any(axis=1).sum())  # a record without any value is in no group
    enough_present(method, present, values.shape[1], options, what)


def enough_present(method: Method, present: int, p: int, options: Mapping[str, Any], what: str) -> None:
    """Raise ValueError if there are fewer records with a value, in p columns, than the method needs."""
    if method.group_size is not None:
        needed = options[method.group_size]
        checks.require_group_size(present, needed, what=what, method=method.name, parameter=method.group_size)
    if method.records is not None:
        needed = method.records(dict(options), p)
        checks.require_records(present, needed, what=what, method=method.name)


def column_steps(
    values: Floats, names: Sequence[str], decimals: int | str, ruled: Collection[str] = ()
) -> tuple[Step, ...]:
    """Return the step that the masked values of each column are multiples of.

    With "original" it is the usual one of the column's values; or one number of decimals is given for all.
    The columns that edit rules name, `ruled`, keep all decimals that their values show: on grids of different
    steps a sum may have no solution.
    """
    if decimals != "original":
        return (Step(int(decimals)),) * len(names)
    return tuple(
        Step(decimals_of(column)) if name in ruled else usual_step(column)
        for name, column in zip(names, values.T, strict=True)
    )


def rounded(values: Floats, steps: Sequence[Step]) -> Floats:
    """Return the matrix with each column rounded to multiples of its own step."""
    return np.column_stack([step.rounded(column) for column, step in zip(values.T, steps, strict=True)])


def kept_columns(method: Method, options: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the columns that the parameters of a method keep unmasked."""
    return tuple(name for p in method.parameters if p.kind is tuple for name in options[p.name])


def warn_of_originals(
    original: Floats,
    masked: Floats,
    names: Sequence[str],
    strata: list[tuple[str, Ints]],
    *,
    kept: Sequence[str],
    stratified: bool,
) -> None:
    """Warn of columns in which all values are published unmasked, in the file or in one stratum.

    Columns in `kept`, which are unmasked by intent, are not named.
    """
    idle = [(stratum, unchanged_columns(original[rows], masked[rows])) for stratum, rows in strata]
    warn_of_unmasked(idle, names, kept=kept, stratified=stratified)


def warn_of_unmasked(
    idle: Iterable[tuple[str, Bools]], names: Sequence[str], *, kept: Sequence[str], stratified: bool
) -> None:
    """Warn of columns that are unchanged in the file or a stratum, less those in `kept`."""
    found = [
        f"{name!r} in stratum {quoted(stratum)}" if stratified else repr(name)
        for stratum, unchanged in idle
        for name, same in zip(names, unchanged, strict=True)
        if same and name not in kept
    ]
    if found:
        remedy = "raise the parameter, merge strata" if stratified else "raise the parameter"
        warn(
            f"not masked, every value is as in the original: {', '.join(found)}; "
            f"{remedy} or leave the column out"
        )
