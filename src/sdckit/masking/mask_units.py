"""Mask files with units, such as households: constant variables once a unit, groups that no unit dominates.

Methods that publish groups of records form groups in which no unit holds more than 1/k of the records, so
that a row leads to its unit in at most one of k cases. Where some variable is constant within units, such as
the income of a household, groups consist of whole units. Other methods mask such variables once a unit;
those that form groups in each variable by itself have theirs merged until no unit dominates one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.classes import number_values
from sdckit.core.settings import options_of_columns
from sdckit.core.warning_texts import warn
from sdckit.kernels.scaling import standardise
from sdckit.masking.group_means import FEWEST, centroids, publish
from sdckit.masking.mask_matrix import apply, enough_records, groups_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.prepared import PreparedTable
    from sdckit.core.registry import Method
    from sdckit.kernels.jit import Bools, Floats, Ints


def constant_within(values: Floats, units: Ints) -> Bools:
    """Return True for each column that has one value, or none, in the rows of every unit."""
    first = np.zeros(int(units.max()) + 1, np.int64)
    first[units[::-1]] = np.arange(len(units))[::-1]
    same = values[first[units]]
    return np.asarray(((values == same) | (np.isnan(values) & np.isnan(same))).all(axis=0))


def require_whole_units(data: PreparedTable) -> None:
    """Raise ValueError if units lie in several strata, and so would not stay constant in what they share."""
    if data.units is None or len(data.strata) < 2:
        return
    stratum = np.zeros((len(data.units), 1))
    for number, (_, rows) in enumerate(data.strata):
        stratum[rows] = number
    once = constant_within(data.values, data.units)
    if once.any() and not constant_within(stratum, data.units).all():
        name = data.columns[int(np.argmax(once))]
        raise ValueError(
            f"column {name!r} is constant within units, and units that lie in several strata would get "
            "several values; take strata of whole units or leave out the unit"
        )


def warn_of_split_units(data: PreparedTable, masked: Floats) -> None:
    """Warn of columns that were constant within units and are not so after the repair by edit rules."""
    if data.units is None:
        return
    split = constant_within(data.values, data.units) & ~constant_within(masked, data.units)
    if split.any():
        names = ", ".join(repr(name) for name, one in zip(data.columns, split, strict=True) if one)
        warn(f"edit rules changed what was constant within units: {names}; drop rules that also name others")


def unit_values(values: Floats, units: Ints) -> Floats:
    """Return the mean of each unit's observed cells, exact where they are equal; NaN where there are none."""
    order = np.argsort(units, kind="stable")
    starts = np.flatnonzero(np.diff(units[order], prepend=-1))
    ordered = values[order]
    seen = ~np.isnan(ordered)
    counts = np.add.reduceat(seen, starts, axis=0, dtype=np.int64)
    means = np.add.reduceat(np.where(seen, ordered, 0.0), starts, axis=0) / np.maximum(counts, 1)
    ends = np.fmin.reduceat(ordered, starts, axis=0), np.fmax.reduceat(ordered, starts, axis=0)
    return np.where(counts > 0, np.clip(means, *ends), np.nan)


def require_units(method: Method, values: Floats, options: dict[str, Any], what: str, units: Ints) -> None:
    """Raise ValueError if there are too few units, or one unit is too large for the groups of a method."""
    units = number_values(units)
    if constant_within(values, units).any():
        enough_records(method, unit_values(values, units), options, f"{what}, counted in units,")
    if method.group_size is None:
        return
    k, largest, n = options[method.group_size], int(np.bincount(units).max()), len(units)
    if k > 1 and largest * k > n:
        raise ValueError(
            f"{what} has {n} records and one unit holds {largest} of them, more than 1/{method.group_size} = "
            f"1/{k}, so that no group can hide it; lower {method.group_size} or leave the unit out"
        )


def mask_rows(
    method: Method,
    values: Floats,
    options: dict[str, Any],
    rng: np.random.Generator,
    *,
    names: Sequence[str],
    units: Ints | None = None,
    basis: Any = None,
    groups: Ints | None = None,
) -> Floats:
    """Return the matrix masked with a method and its parameters, by units where there are any."""
    if units is None:
        return apply(method, values, options, rng, names=names, basis=basis, groups=groups)
    return apply_to_units(method, values, options, rng, names=names, units=units, groups=groups)


def apply_to_units(
    method: Method,
    values: Floats,
    options: dict[str, Any],
    rng: np.random.Generator,
    *,
    names: Sequence[str],
    units: Ints,
    groups: Ints | None = None,
) -> Floats:
    """Return the matrix masked so that variables constant within units stay so, and units are hidden."""
    units = number_values(units)
    if method.groups is not None:
        formed = unit_groups(method, values, options, names, units) if groups is None else groups
        masked = apply(method, values, options, rng, names=names, groups=formed)
        if method.alike is not None and method.alike(options):
            suppress_few_units(masked, values, formed, units, options[method.group_size or "k"])
        return masked
    once = constant_within(values, units)
    masked = np.empty_like(values)
    for chosen, rows in ((~once, False), (once, True)):
        if chosen.any():
            part = np.asfortranarray(unit_values(values, units) if rows else values)[:, chosen]
            these = [name for name, used in zip(names, chosen, strict=True) if used]
            mine = options_of_columns(method, options, these)
            found = apply(method, part, mine, rng, names=these)
            masked[:, chosen] = found[units] if rows else found
    return masked if method.group_size is None else without_dominated(values, masked, units, options)


def suppress_few_units(masked: Floats, values: Floats, groups: Ints, units: Ints, k: int) -> None:
    """Suppress a variable in groups with a missing cell in which fewer than max(k, 3) units have a value."""
    for j in np.flatnonzero(np.isnan(values).any(axis=0)):
        seen = ~np.isnan(values[:, j])
        holders = np.unique(np.stack([groups[seen], units[seen]]), axis=1)[0]
        few = np.bincount(holders, minlength=groups.max() + 1) < max(k, FEWEST)
        few &= np.bincount(groups[~seen], minlength=len(few)) > 0
        masked[few[groups], j] = np.nan


def without_dominated(values: Floats, masked: Floats, units: Ints, options: dict[str, Any]) -> Floats:
    """Return columns masked in groups of their own, these merged until no unit holds more than 1/k of one."""
    k, found = options["k"], masked.copy(order="F")
    for j in range(values.shape[1] if k > 1 else 0):
        seen = ~np.isnan(masked[:, j])
        groups = np.full(len(units), -1)
        groups[seen] = number_values(masked[seen, j])  # the values of a group are published alike
        merged = merge_dominated(values[:, [j]], groups, units, k)
        if merged.max() < groups.max():
            found[:, j] = publish(values[:, [j]], merged, k, options.get("aggregate", "mean"))[:, 0]
    return found


def unit_groups(
    method: Method, values: Floats, options: dict[str, Any], names: Sequence[str], units: Ints
) -> Ints:
    """Return the group of each record, in which no unit holds more than 1/k; -1 for records in none."""
    units, k = number_values(units), options[method.group_size or "k"]
    if constant_within(values, units).any():
        groups = groups_of(method, np.asfortranarray(unit_values(values, units)), options, names)[units]
    else:
        groups = groups_of(method, values, options, names)
    return groups if k == 1 else merge_dominated(values, groups, units, k)


def merge_dominated(values: Floats, groups: Ints, units: Ints, k: int) -> Ints:
    """Return the groups after merging those of which a unit holds more than 1/k with the nearest ones.

    Groups are taken in the order of their numbers, and each is merged with the group that has the nearest
    centroid until no unit holds more than 1/k of its records. If there is no other group left, it stays.
    """
    rows = np.flatnonzero(groups >= 0)
    numbers = number_values(groups[rows])
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    members = [Counter(part.tolist()) for part in np.split(units[rows][order], starts[1:])]
    sizes = np.diff(starts, append=len(rows)).astype(float)
    centres = centroids(standardise(values[rows], ddof=0), order, starts)
    merged, alive = np.arange(len(starts)), np.ones(len(starts), np.bool_)
    for group in range(len(starts)):
        while alive[group] and max(members[group].values()) * k > sizes[group] and alive.sum() > 1:
            gaps = np.where(alive, ((centres - centres[group]) ** 2).sum(axis=1), np.inf)
            gaps[group] = np.inf
            other = int(np.argmin(gaps))
            weights = sizes[[group, other]] / (sizes[group] + sizes[other])
            centres[group] = weights @ centres[[group, other]]
            sizes[group] += sizes[other]
            members[group].update(members[other])
            alive[other] = False
            merged[merged == other] = group
    found = np.full(len(groups), -1)
    found[rows] = number_values(merged[numbers])
    return found
