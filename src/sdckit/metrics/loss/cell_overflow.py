"""Means of cells whose sums overflow, computed again in units of a power of two.

A sum of large numbers can be infinite although their mean is not. Division by a power of two changes no
digit.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.roles import Roles
from sdckit.kernels.scaling import powers_of_two
from sdckit.metrics.averages import record_weights
from sdckit.metrics.loss.cell_sums import squared_cost, sums_and_counts, variable_scales
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.loss.cell_sums import Cost


def may_have_overflowed(pair: Pair, cost: Cost, score: Score) -> bool:
    """Return True if a sum behind the score may have exceeded the range of floats."""
    if cost.scale == "spread" and not _has_finite_scales(pair.original):
        return True
    value, random, records = score.value.overall, score.random, score.records
    if random is not None and math.isinf(random.overall):
        return True
    if records is not None and np.isinf(records).any():
        return True
    if 0 < value < math.inf:
        return False
    return value != 0 or not np.isfinite(sums_and_counts(pair)[0].sum(0)).all()


def _has_finite_scales(original: Original) -> bool:
    """Return True if the divisors of all variables (sqrt(2) standard deviations) are finite."""
    if "scales fit" not in original.cache:
        original.cache["scales fit"] = bool(np.isfinite(variable_scales(original)).all())
    fit: bool = original.cache["scales fit"]
    return fit


def scale_down(pair: Pair, cost: Cost) -> tuple[Pair, float]:
    """Return the pair scaled to values below 2 and weights of sum at most 1, and the unit of its costs.

    Costs relative to a scale have no unit, so each variable takes its own; others share that of the largest
    variable, since their sums are added up.
    """
    ours, theirs = pair.original, pair.masked
    units = np.maximum(powers_of_two(ours.values), powers_of_two(theirs))
    if cost.scale == "none":
        units[:] = units.max()
    weights = record_weights(pair)
    heaviest = powers_of_two(weights)
    share = 2.0 ** -math.ceil(math.log2(2 * ours.n * pair.p))
    values = ours.values / units
    roles = Roles(ours.columns)
    small = Original(roles, values, weights=weights / heaviest * share)
    small.spreads = Original(roles, values, weights=ours.weights).spreads  # to the last digit
    return Pair(small, theirs / units), float(units[0]) if cost.scale == "none" else 1.0


def merge_scores(plain: Score, small: Score, cost: Cost, unit: float) -> Score:
    """Return the score with overflowed numbers replaced by those of the scaled-down pair."""
    found = replace(plain, value=_merge_values(plain.value, small.value, cost, unit))
    if plain.random is not None and small.random is not None:
        found = replace(found, random=_merge_values(plain.random, small.random, cost, unit))
    if plain.records is not None and small.records is not None:
        found = replace(found, records=_merge_numbers(plain.records, small.records, cost, unit))
    return found


def _merge_values(plain: Values, small: Values, cost: Cost, unit: float) -> Values:
    """Return file and variable values with overflowed ones replaced from the scaled-down pair."""
    overall = _merge_numbers(np.array([plain.overall]), np.array([small.overall]), cost, unit)
    return Values(float(overall[0]), _merge_numbers(plain.variables, small.variables, cost, unit))


def _merge_numbers(plain: Floats, small: Floats, cost: Cost, unit: float) -> Floats:
    """Return numbers with overflowed ones replaced by those of the scaled-down pair times its unit."""
    if cost.scale != "none":
        return small
    with np.errstate(over="ignore"):  # the mean itself may be infinite
        large = small * unit * unit if cost.of is squared_cost else small * unit
    # In the unit of the largest variable the smallest may vanish.
    return np.where((plain > 0) & (plain < np.inf), plain, large)
