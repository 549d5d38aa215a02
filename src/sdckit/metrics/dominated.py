"""Losses that one record dominates: from their sum the value of that record could be computed.

n times the mean squared change of a microaggregated variable is nearly the squared change of its largest
value, and with the published group mean that value follows. Such figures are left out of reports and of the
JSON and CSV of commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.blocks.cell_sums import squared_cost

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.core.registry import Metric
    from sdckit.metrics.blocks.cell_sums import Cost
    from sdckit.metrics.blocks.contributions import Contributions, LargestRecord
    from sdckit.metrics.comparison import Comparison

PERCENT = 10.0  # the largest contribution must not be known to within this share of it
HALF = 2 + 1e-9  # largest contributions in their sum where one of them has half; rounding does not decide

Row = tuple[str, str, str]  # metric, stratum, variable


def fails_p_rule(contributions: Contributions, percent: float = PERCENT) -> bool:
    """Return True if the second largest contributor learns the largest contribution to within `percent` %.

    The sum is known, so the largest one is what is left of it after the second; what the others contribute
    hides it.
    """
    others = contributions.shares - 1.0 - contributions.second
    return contributions.largest > 0 and others < percent / 100


def is_dominated(contributions: Contributions) -> bool:
    """Return True if one contribution exceeds half of their sum, or if the p % rule fails."""
    return contributions.largest > 0 and (contributions.shares < HALF or fails_p_rule(contributions))


def cell_is_dominated(cost: Cost, comparison: Comparison, j: int) -> bool:
    """Return True if variable j's sum of costs, or its level in unrelated order, gives a record away.

    The standard deviation that IL1s divides by is a sum over records, too, and follows from IL1s and MAE.
    """
    found = comparison.variable(j).dominance(cost)
    if found.largest is None:
        return False
    return any(map(is_dominated, found.sums)) or _largest_follows(cost, found.costs, found.largest)


def _largest_follows(cost: Cost, costs: Contributions, record: LargestRecord) -> bool:
    """Return True if the largest value follows within `PERCENT` % from its published value and the sum.

    No change is larger than the sum of all. In a group that is published as its mean, the largest record has
    at least half of the absolute changes of the group, and of the squared ones: so an intruder adds
    between half of the sum and all of it to the published value.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        shares = np.array([0.5, 1.0]) * (np.float64(costs.total) * record.scale)
        low, high = abs(record.y) + (np.sqrt(shares) if cost.of is squared_cost else shares)
    size, margin = abs(record.x), PERCENT / 100 * abs(record.x)
    return bool(costs.largest > 0 and low <= size + margin and high >= size - margin)


def dominated_rows(groups: Sequence[tuple[str, Comparison]], metrics: Iterable[Metric]) -> frozenset[Row]:
    """Return metric, stratum and variable of the rows to withhold; `groups` has the whole file first.

    A sum is withheld with each of its parts: the whole file with a variable or a stratum, since otherwise
    the part would follow by subtraction.
    """
    found: set[Row] = set()
    for metric in metrics:
        if metric.dominated is None:
            continue
        for stratum, comparison in groups:
            names = [name for j, name in enumerate(comparison.columns) if metric.dominated(comparison, j)]
            found |= {(metric.name, place, name) for place in (stratum, "all") for name in names}
            found |= {(metric.name, place, "all") for place in (stratum, "all") if names}
    return frozenset(found)
