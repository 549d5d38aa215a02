"""Masking: the one call that applies any method to any table. Importing this package files all methods."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit import checks, frames
from sdckit.masking.applying import (
    apply,
    asks_for_nothing,
    enough_records,
    groups_of,
    placed,
    places_of,
    rounded,
    warn_of_originals,
)
from sdckit.masking.editing import edits_of
from sdckit.registry import METHODS

from sdckit.masking import (  # isort: skip - the order of the tables
    microaggregation,
    varying,
    optimal,
    projections,
    noise,
    exact_moments,
    outliers,
    swapping,
    shuffling,
    coding,
    synthetic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sdckit.compiled import Floats, Ints
    from sdckit.masking.editing import Edits
    from sdckit.registry import Method

__all__ = [
    "METHODS",
    "apply",
    "coding",
    "enough_records",
    "exact_moments",
    "mask",
    "microaggregation",
    "noise",
    "optimal",
    "outliers",
    "placed",
    "places_of",
    "projections",
    "rounded",
    "shuffling",
    "swapping",
    "synthetic",
    "varying",
]


DEPTH = 4  # a warning points at the line that calls `mask`


@dataclass(frozen=True)
class Masking:
    """A masked table and what should be said beside it.

    `edits` are the rules that it was made to obey, `window(values)` is the largest move in ranks that the
    method publishes.
    """

    data: Any
    notes: list[str]
    edits: Edits | None
    window: Callable[[Floats], int] | None


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
    rules: Any = None,
    groups: str | None = None,
    **parameters: Any,
) -> Any:
    """Mask numeric columns with a method of `sdc.METHODS`.

    Everything else stays as it is: other columns, names, index, order of rows, missing cells. The
    data handed in are not changed. A method that is not paired (see `sdc.METHODS`) makes rows that stand
    for no original record; it is named in a warning where other columns of the table stay beside them.

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
    rules : text or list of text, optional
        What records must satisfy, such as "total = wages + other" or "age >= 0"; "discover" finds totals
        and columns without negative values. Masked records are changed as little as the rules ask for.
    groups : str, optional
        Name of a new column for the number of each record's group, where the method forms groups.
    **parameters
        Parameters of the method, such as `k=5`; with strata also `k={"north": 5, "south": 3}`.

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
    return perform(
        data,
        method,
        {"columns": columns, "key": key, "weights": weights, "by": by, "na": na},
        rng=rng,
        decimals=decimals,
        rules=rules,
        groups=groups,
        parameters=parameters,
    ).data


def perform(
    data: Any,
    method: str,
    who: dict[str, Any],
    *,
    rng: Any = None,
    decimals: int | str | None = None,
    rules: Any = None,
    groups: str | None = None,
    parameters: dict[str, Any],
) -> Masking:
    """Mask as `mask` does, and tell about it; `who` says which column plays which role."""
    record = checks.method_named(method)
    checks.parameters_known(record, parameters)
    digits = checks.rounding(decimals)
    generator = checks.generator(rng)
    table = frames.Table(data)
    checks.at_least_two(table.n)
    columns, by, na = who["columns"], who["by"], who["na"]
    roles = [name for role in ("key", "weights", "by") for name in frames.names_of(who[role])]
    checks.known_columns(roles, table.names)
    checks.apart(frames.names_of(columns), roles)
    if columns is None:
        frames.warn_about_objects(table, roles, DEPTH)
    names = table.numeric(columns, leave_out=roles)
    values = table.floats(names, na)
    if columns is None:
        frames.warn_about_roles(table, names, values, DEPTH)
    strata = frames.strata(table, by)
    grouped = bool(frames.names_of(by))
    options = checks.parameters_by_stratum(record, parameters, [name for name, _ in strata], grouped=grouped)
    edits = edits_of(rules, table, names, roles=roles, na=na)
    if groups is not None:
        checks.numbered(record, groups, table.names)
    masked, numbers = _masked(record, values, names, strata, options, generator, grouped, groups is not None)
    places = None if digits is None else places_of(values, digits)
    plain = values
    if places is not None:
        masked, plain = rounded(masked, places), rounded(values, places)
    checks.representable(masked, names, record.name)
    idle = np.array_equal(plain, masked, equal_nan=True)
    if record.paired and not (idle and all(asks_for_nothing(record, chosen) for chosen in options)):
        kept = [name for chosen in options for name in _kept(record, chosen)]
        warn_of_originals(plain, masked, names, strata, kept=kept, grouped=grouped)
    notes = [] if record.tells is None else record.tells(values, placed(record, options[0], names))
    if edits is not None:
        before, masked = masked, edits.repaired(masked, places)
        notes += edits.told(before, masked)
    if not record.paired:
        _warn_of_companions(
            record, [name for name in table.names if name not in {*names, *frames.names_of(by)}]
        )
    if na is not None:
        masked = _with_codes(masked, values, table.floats(names), paired=record.paired)
    whole = [] if places is None else [name for name, d in zip(names, places, strict=True) if d == 0]
    made = table.with_values(names, masked, whole=whole, more=_column(groups, numbers))
    return Masking(made, notes, edits, _window(record, options))


def _masked(
    method: Method,
    values: Floats,
    names: Sequence[str],
    strata: list[tuple[str, Ints]],
    options: list[dict[str, Any]],
    rng: np.random.Generator,
    grouped: bool,  # noqa: FBT001 - whether the strata were asked for
    numbered: bool,  # noqa: FBT001 - whether the numbers of groups were
) -> tuple[Floats, Ints]:
    """The masked matrix and the group of each record, counted on from stratum to stratum."""
    masked = np.empty_like(values)
    numbers = np.full(len(values), -1)
    for (stratum, rows), chosen in zip(strata, options, strict=True):
        part = np.asfortranarray(values[rows])
        enough_records(method, part, chosen, f"stratum {stratum!r}" if grouped else "the file")
        groups = groups_of(method, part, chosen, names) if numbered else None
        if groups is not None:
            numbers[rows] = np.where(groups < 0, -1, groups + numbers.max() + 1)
        masked[rows] = apply(method, part, chosen, rng, names=names, groups=groups)
    return masked, numbers


def _window(method: Method, options: list[dict[str, Any]]) -> Callable[[Floats], int] | None:
    """The largest move over all strata, where the method publishes one."""
    window = method.window
    return None if window is None else lambda values: max(window(chosen, values) for chosen in options)


def _kept(method: Method, options: dict[str, Any]) -> list[str]:
    """Columns that the method was told to keep."""
    return [name for p in method.parameters if p.kind is tuple for name in options[p.name]]


def _column(name: str | None, numbers: Ints) -> dict[str, Ints]:
    """The groups, numbered from 1; 0 for a record without any value."""
    return {} if name is None else {name: numbers + 1}


def _with_codes(masked: Floats, values: Floats, raw: Floats, *, paired: bool) -> Floats:
    """Put the codes of missing cells back: where they were or, where rows are new, in any missing cell."""
    result = masked.copy(order="F")
    for j, column in enumerate(result.T):
        declared = np.isnan(values[:, j])
        if not declared.any():
            continue
        rows = declared if paired else np.isnan(column)
        column[rows] = raw[declared, j] if paired else np.resize(raw[declared, j], int(rows.sum()))
    return result


def _warn_of_companions(method: Method, others: Sequence[str]) -> None:
    """Say that columns beside unpaired rows belong to other records."""
    if others:
        listed = ", ".join(map(repr, others[:5])) + (f" and {len(others) - 5} more" if others[5:] else "")
        warnings.warn(
            f"rows of {method.name} stand for no original record, but {listed} are as they were; drop them",
            stacklevel=DEPTH,
        )
