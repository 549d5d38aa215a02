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
from sdckit.metrics.averages import weights_of
from sdckit.metrics.loss.cell_sums import scales_of, squared, sums_of
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.loss.cell_sums import Cost


def overflowed(pair: Pair, cost: Cost, score: Score) -> bool:
    """Return True if a sum behind the score may have overflowed."""
    if cost.scale == "spread" and not _scales_fit(pair.original):
        return True
    value, random, records = score.value.overall, score.random, score.records
    if random is not None and math.isinf(random.overall):
        return True
    if records is not None and np.isinf(records).any():
        return True
    if 0 < value < math.inf:
        return False
    return value != 0 or not np.isfinite(sums_of(pair)[0].sum(0)).all()


def _scales_fit(original: Original) -> bool:
    """True where every scale is finite; kept, since each comparison with the original asks."""
    if "scales fit" not in original.cache:
        original.cache["scales fit"] = bool(np.isfinite(scales_of(original)).all())
    fit: bool = original.cache["scales fit"]
    return fit


def shrunk(pair: Pair, cost: Cost) -> tuple[Pair, float]:
    """Return the pair scaled to values below 2 and weights of sum at most 1, and the unit of its costs.

    Costs relative to a scale have no unit, so each variable takes its own; others share that of the largest
    variable, since their sums are added up.
    """
    ours, theirs = pair.original, pair.masked
    units = np.maximum(powers_of_two(ours.values), powers_of_two(theirs))
    if cost.scale == "none":
        units[:] = units.max()
    weights = weights_of(pair)
    heaviest = powers_of_two(weights)
    share = 2.0 ** -math.ceil(math.log2(2 * ours.n * pair.p))
    values = ours.values / units
    roles = Roles(ours.columns)
    small = Original(roles, values, weights=weights / heaviest * share)
    small.spreads = Original(roles, values, weights=ours.weights).spreads  # to the last digit
    return Pair(small, theirs / units), float(units[0]) if cost.scale == "none" else 1.0


def combined(plain: Score, small: Score, cost: Cost, unit: float) -> Score:
    """Return the score with overflowed numbers replaced by those of the scaled pair."""
    found = replace(plain, value=_merged(plain.value, small.value, cost, unit))
    if plain.random is not None and small.random is not None:
        found = replace(found, random=_merged(plain.random, small.random, cost, unit))
    if plain.records is not None and small.records is not None:
        found = replace(found, records=_merge(plain.records, small.records, cost, unit))
    return found


def _merged(plain: Values, small: Values, cost: Cost, unit: float) -> Values:
    overall = _merge(np.array([plain.overall]), np.array([small.overall]), cost, unit)
    return Values(float(overall[0]), _merge(plain.variables, small.variables, cost, unit))


def _merge(plain: Floats, small: Floats, cost: Cost, unit: float) -> Floats:
    if cost.scale != "none":
        return small
    with np.errstate(over="ignore"):  # the mean itself may be infinite
        large = small * unit * unit if cost.of is squared else small * unit
    # In the unit of the largest variable the smallest may vanish.
    return np.where((plain > 0) & (plain < np.inf), plain, large)
