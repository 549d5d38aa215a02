"""Risks of records published alike, or alone, that need no link: group means, and unique records."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks, registry
from sdckit.core.cells import Uniques, class_numbers, class_sizes, number_values, uniques_of
from sdckit.core.registry import Parameter
from sdckit.metrics.pair import metric, pooled_means, record_means
from sdckit.metrics.publishable import PERCENT
from sdckit.metrics.score import Score, Values
from sdckit.risk.distances import OVERVIEW, RISK
from sdckit.risk.facts import known_unmasked, published_classes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.metrics.pair import Pair

MARGIN = Parameter("percent", float, PERCENT, "how near, in % of it, the largest value may be known", low=0.0)


# --- dominance -------------------------------------------------------------------------------------------


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
    name = None if disclosure.method is None else registry.METHODS[disclosure.method].group_size
    least = 0 if name is None else disclosure.parameters[name]
    least = min(least.values()) if hasattr(least, "values") else least
    found = []
    for j, own in enumerate(cells):
        observed = np.bincount(rows, ~pair.original.missing[:, j])
        merged = (observed < least)[rows] & ~pair.missing[:, j]
        found.append(number_values(np.where(merged | np.isin(own, own[merged]), -1 - own, rows)))
    return found


def score_dominance(
    pair: Pair, *, percent: float = PERCENT, detail: bool = False, per_record: bool = False
) -> Score:
    """Return the score of dominance: the share of published group cells that fail the p % rule."""
    del detail  # unrelated order says nothing about groups
    method, options = pair.disclosure.method, pair.disclosure.parameters
    groups_of = None if method is None else registry.METHODS[method].group_size
    if method is not None and (groups_of is None or options.get("aggregate", "mean") != "mean"):
        raise checks.NotApplicable(
            f"dominance needs means of groups and {method} publishes none; use another metric"
        )
    found, costs = [], []
    for j, groups in enumerate(_group_numbers(pair)):
        seen = pair.both(j)
        numbers = number_values(groups[seen])
        fails = np.empty(0, np.bool_)
        if numbers.size:
            fails = failing_groups(pair.original.values[seen, j], numbers, percent)
        found.append(fails)
        costs.append((np.arange(pair.original.n)[seen], fails[numbers].astype(float)))
    failing, cells = np.array([each.sum() for each in found]), np.array([each.size for each in found])
    return Score(
        pooled_means(failing.astype(float), cells),
        pair.counts.both,
        np.zeros(pair.p, np.int64),
        records=record_means(pair.original.n, costs) if per_record else None,
    )


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
    needs="groups",
    informed=True,
    default=False,
    in_blocks=True,
    **RISK,
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
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be a `Microdata`.
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


# --- unique records --------------------------------------------------------------------------------------


def score_uniques(pair: Pair, *, detail: bool = False, per_record: bool = False) -> Score:  # noqa: ARG001 - as all scores
    """Return the share of records alone on the known unmasked columns, and the floor among its parts."""
    classes = published_classes(pair)
    records = (class_sizes(classes) == 1).astype(float) if per_record else None
    floor = uniques_of(published_classes(pair, "abc")).floor  # changed cells guarantee no link
    found = Uniques(uniques_of(classes).share, floor)
    score = score_of_uniques(found, pair.original.n, pair.p, known_unmasked(pair))
    return replace(score, records=records)


def score_of_uniques(found: Uniques, n: int, p: int, columns: Sequence[str]) -> Score:
    """Return the score of n records with p variables, from their uniques on the columns of these names."""
    return Score(
        Values(found.share, np.full(p, np.nan)),
        np.full(p, n),
        np.zeros(p, np.int64),
        parts={"floor": found.floor},
        subject=", ".join(columns),
    )


def explain_uniques(score: Score) -> str:
    """Return a sentence on the unmasked columns, the records that they single out, and the floor."""
    if not score.subject:
        return "no known column is published unmasked, so that the masked columns alone decide the risk"
    return (
        f"{100 * score.value.overall:.3g} of 100 records stand alone on what is published unmasked, "
        f"{score.subject}; no masking of the others brings linkage below {score.parts['floor']:.3g}"
    )


@metric(
    title="uniques, records alone on untouched columns",
    limit_words="at most # of 100 records may share their unmasked values with nobody",
    needs="untouched",
    role="untouched",
    by_variable=False,
    in_blocks=True,
    any_data=True,
    score=score_uniques,
    explain=explain_uniques,
    **OVERVIEW,
    **RISK,
)
def uniques(original: Any, masked: Any) -> float:
    """Share of records that stand alone on the known columns that are published unmasked; 0 if none.

    0 means that each record shares these cells with another one, or that every column is masked; 1 that the
    unmasked columns alone identify all records, whatever is done to the others.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be a `Microdata` with roles
        of its columns.

    Returns
    -------
    float
        Share of the records whose published cells in these columns no other record has. `evaluate` also
        gives the floor in `parts`, the mean of 1/class size on those of these columns that are published
        with their own, recoded or suppressed cells: no masking of the other columns brings `linkage` below
        it.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import polars as pl
    >>> import sdckit as sdc
    >>> data = pl.DataFrame({"income": [1.5, 2.5, 3.0, 4.5], "town": ["a", "a", "a", "b"]})
    >>> sdc.uniques(data, data)
    0.25
    """
