"""Dominance: published group means from which one contributor could compute the value of another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks, parameters, registry
from sdckit.core.classes import class_numbers, number_values
from sdckit.core.parameters import Parameter
from sdckit.core.registry import metric
from sdckit.metrics.averages import divide_or_nan, record_means
from sdckit.metrics.dominated import PERCENT
from sdckit.metrics.pair import Pair, pair_of
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.kernels.jit import Bools, Floats, Ints

MARGIN = Parameter("percent", float, PERCENT, "how near, in % of it, the largest value may be known", low=0.0)


def failing_groups(values: Floats, groups: Ints, percent: float) -> Bools:
    """Return, for each group number, True if its second largest contributor learns the largest value.

    With contributions c1 >= c2 >= ... (absolute values), the sum less c1 and c2 is below `percent` % of c1.
    """
    sizes = np.abs(values)
    order = np.lexsort((-sizes, groups))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    ordered = sizes[order]
    following = np.append(ordered[1:], 0.0)[starts]
    second = np.where(np.diff(starts, append=len(ordered)) > 1, following, 0.0)
    rest = np.add.reduceat(ordered, starts) - ordered[starts] - second
    return np.asarray(rest < percent / 100 * ordered[starts])


def _publishes_means(method: str | None, options: Mapping[str, Any]) -> bool:
    """Return True if a method is unknown, or publishes the means of groups of records."""
    if method is None:
        return True
    return registry.METHODS[method].group_size is not None and options.get("aggregate", "mean") == "mean"


def _group_numbers(pair: Pair) -> list[Ints]:
    """Return the group number of each record in each variable: records that are published alike.

    A method that masks variables one by one forms groups in each of them. Where a group has fewer than k
    values of a variable, it was merged with others in that variable: those that publish the same value.
    """
    cells = [number_values(np.nan_to_num(column, nan=np.inf)) for column in pair.by_variable]
    disclosure = pair.disclosure
    if disclosure.one_by_one:
        return cells
    rows = class_numbers(cells, pair.original.n)
    least = _smallest_k(disclosure.method, disclosure.parameters)
    found = []
    for j, own in enumerate(cells):
        observed = np.bincount(rows, ~pair.original.missing[:, j])
        merged = (observed < least)[rows] & ~pair.missing[:, j]
        found.append(number_values(np.where(merged | np.isin(own, own[merged]), -1 - own, rows)))
    return found


def _smallest_k(method: str | None, options: Mapping[str, Any]) -> float:
    """Return the smallest group size that the method's parameters allow; 0 where it is not known."""
    name = None if method is None else registry.METHODS[method].group_size
    given = 0 if name is None else options[name]
    return min(given.values()) if hasattr(given, "values") else given


def score_dominance(
    pair: Pair, *, percent: float = PERCENT, detail: bool = False, per_record: bool = False
) -> Score:
    """Return the score of dominance: the share of published group cells that fail the p % rule."""
    disclosure = pair.disclosure
    if not _publishes_means(disclosure.method, disclosure.parameters):
        raise checks.NotApplicable(
            f"dominance needs means of groups and {disclosure.method} publishes none; use another metric"
        )
    found = [_failing_cells(pair, j, groups, percent) for j, groups in enumerate(_group_numbers(pair))]
    fails, cells = np.array([each.sum() for each in found]), np.array([each.size for each in found])
    overall = float(fails.sum() / cells.sum()) if cells.sum() else math.nan
    del detail  # unrelated order says nothing about groups
    return Score(
        Values(overall, divide_or_nan(fails.astype(float), cells)),
        pair.counts.both,
        np.zeros(pair.p, np.int64),
        records=_shares_of_records(pair, found) if per_record else None,
    )


def _shares_of_records(pair: Pair, found: list[Bools]) -> Floats:
    """Return the share of each record's cells that are published in a failing group cell."""
    rows = np.arange(pair.original.n)
    numbers = [number_values(own[pair.both(j)]) for j, own in enumerate(_group_numbers(pair))]
    costs = ((rows[pair.both(j)], found[j][own].astype(float)) for j, own in enumerate(numbers))
    return record_means(pair.original.n, costs)


def _failing_cells(pair: Pair, j: int, groups: Ints, percent: float) -> Bools:
    """Return True for each published group cell of variable j that fails the p % rule."""
    seen = pair.both(j)
    numbers = number_values(groups[seen])
    values = pair.original.values[seen, j]
    return failing_groups(values, numbers, percent) if numbers.size else np.empty(0, np.bool_)


def explain_dominance(score: Score) -> str:
    """Return a sentence on the share of group means from which a contributor learns another's value."""
    value = score.value.overall
    if math.isnan(value):
        return "there are no groups to compare"
    return (
        f"in {100 * value:.3g} of 100 published group means the second largest contributor can compute the "
        "largest one's value closely"
    )


@metric(
    title="dominance, group means that give the largest contributor away",
    place=30,
    score=score_dominance,
    explain=explain_dominance,
    reference="p % rule: Hundepool et al. 2012, Statistical Disclosure Control, doi:10.1002/9781118348239",
    parameters=(MARGIN,),
    family="risk",
    in_blocks=True,
    bounds=(0.0, 1.0),
    best=0.0,
    needs="groups",
    informed=True,
    default=False,
)
def dominance(original: Any, masked: Any, *, percent: float = PERCENT) -> float:
    """Share of published group means from which a contributor learns another's value; 0 if none.

    0 means that in every group the smaller contributors hide the largest one, 1 that no group does. For
    microaggregation: a mean of k values protects little where one of them is most of their sum. Groups are
    the records that are published alike; a value other than 0 that is published for one record alone counts
    as given away.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be prepared.
    percent : float
        The largest contribution must not be known to within this share of it.

    Returns
    -------
    float
        Share of the groups' cells with c1 + c2 more than the sum of all c less `percent` % of c1, where
        c1 >= c2 >= ... are the absolute contributions to the cell. With mixed signs it is approximate.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.dominance([1.0, 1.0, 1.0, 2.0, 3.0, 100.0], [1.0, 1.0, 1.0, 35.0, 35.0, 35.0])
    0.5
    """
    checked = parameters.parameter_value(MARGIN, percent)
    return score_dominance(pair_of(original, masked), percent=checked).value.overall
