"""Losses that one record dominates: from their sum the value of that record could be computed.

n times the mean squared change of a microaggregated variable is nearly the squared change of its largest
value, and with the published group mean that value follows. Such figures are left out of reports and of the
JSON and CSV of commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.loss.cell_sums import IL1S, squared_cost
from sdckit.metrics.loss.variable_cells import VariableCells

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.core.registry import Metric
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.loss.cell_sums import Cost
    from sdckit.metrics.pair import Pair

PERCENT = 10.0  # the largest contribution must not be known to within this share of it

Row = tuple[str, str, str]  # metric, stratum, variable


def fails_p_rule(contributions: Floats, percent: float = PERCENT) -> bool:
    """Return True if the second largest contributor learns the largest contribution to within `percent` %.

    The sum is known, so the largest one is what is left of it after the second; what the others contribute
    hides it.
    """
    shares = _shares_of_largest(contributions)
    if shares.size < 2:
        return bool(shares.size)
    second, largest = np.partition(shares, shares.size - 2)[-2:]
    return bool(shares.sum() - largest - second < percent / 100)


def _shares_of_largest(contributions: Floats) -> Floats:
    """Return contributions in units of the largest, so that no sum overflows; none where all are 0."""
    sizes = np.abs(contributions)
    largest = sizes.max(initial=0.0)
    return sizes / largest if largest > 0 else sizes[:0]


def is_dominated(contributions: Floats) -> bool:
    """Return True if one contribution exceeds half of their sum, or if the p % rule fails."""
    shares = _shares_of_largest(contributions)
    return bool(shares.size) and (bool(shares.sum() < 2) or fails_p_rule(contributions))


def cell_is_dominated(cost: Cost, pair: Pair, j: int) -> bool:
    """Return True if variable j's sum of costs, or its level in unrelated order, gives a record away.

    The standard deviation that IL1s divides by is a sum over records, too, and follows from IL1s and MAE.
    """
    cells = VariableCells(pair, j, cost, "keep")
    x, y, scale = cells.x[cells.counts], cells.y[cells.counts], cells.scale[cells.counts]
    if not x.size:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        costs = np.nan_to_num(cells.costs()[cells.counts] * cells.weights[cells.counts])
        sums = [costs, np.nan_to_num(cost.of(x, y.mean(), scale))]
        sums += [np.nan_to_num(squared_cost(x, x.mean(), 1.0))] if cost is IL1S else []
    return any(map(is_dominated, sums)) or _largest_follows(cost, x, y, costs, scale)


def _largest_follows(cost: Cost, x: Floats, y: Floats, costs: Floats, scale: Floats) -> bool:
    """Return True if the largest value follows within `PERCENT` % from its published value and the sum.

    No change is larger than the sum of all. In a group that is published as its mean, the largest record has
    at least half of the absolute changes of the group, and of the squared ones: so an intruder adds
    between half of the sum and all of it to the published value.
    """
    largest = int(np.argmax(np.abs(x)))
    with np.errstate(over="ignore", invalid="ignore"):
        shares = np.array([0.5, 1.0]) * (costs.sum() * scale[largest])
        low, high = abs(y[largest]) + (np.sqrt(shares) if cost.of is squared_cost else shares)
    margin = PERCENT / 100 * abs(x[largest])
    return bool(costs.any() and low <= abs(x[largest]) + margin and high >= abs(x[largest]) - margin)


def dominated_rows(groups: Sequence[tuple[str, Pair]], metrics: Iterable[Metric]) -> frozenset[Row]:
    """Return metric, stratum and variable of the rows to withhold; `groups` has the whole file first.

    A sum is withheld with each of its parts: the whole file with a variable or a stratum, since otherwise
    the part would follow by subtraction.
    """
    found: set[Row] = set()
    for metric in metrics:
        if metric.dominated is None:
            continue
        for stratum, pair in groups:
            names = [name for j, name in enumerate(pair.columns) if metric.dominated(pair, j)]
            found |= {(metric.name, place, name) for place in (stratum, "all") for name in names}
            found |= {(metric.name, place, "all") for place in (stratum, "all") if names}
    return frozenset(found)
