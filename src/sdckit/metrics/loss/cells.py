"""Losses of single cells: MAE, MSE, IL1 and IL1s; whole-file values are means over all cells used."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.core.parameters import MISSING_RULE, Parameter
from sdckit.core.registry import metric
from sdckit.metrics.averages import pooled_means, record_means
from sdckit.metrics.blocks.cell_sums import (
    ALL,
    CHANGED,
    IL1,
    IL1S,
    MAE,
    MSE,
    NOT_ZERO,
    SEEN,
    ZERO,
    Cost,
)
from sdckit.metrics.comparison import require_in_memory
from sdckit.metrics.dominated import cell_is_dominated
from sdckit.metrics.loss.cell_overflow import may_have_overflowed, repair_score
from sdckit.metrics.pair import pair_of
from sdckit.metrics.score import Score
from sdckit.progress import each

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.blocks.variable_cells import VariableCells
    from sdckit.metrics.comparison import Comparison
    from sdckit.metrics.pair import Pair

HANDBOOK = "Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239"
YANCEY = "Yancey, Winkler & Creecy 2002, doi:10.1007/3-540-47804-3_11"
ZEROS = ("keep", "drop", "error")


def _totals(comparison: Comparison, cost: Cost, zeros: str) -> tuple[Floats, Floats, Ints]:
    """Return each variable's weighted sum of costs, sum of weights and number of cells counted."""
    sums, counts = comparison.cell_sums
    costs, weights, used = sums[:, cost.place], sums[:, ALL], comparison.cell_sums.used(cost, zeros)
    if cost.scale == "value":
        if zeros == "error" and counts[:, CHANGED].any():
            _refuse_zeros(comparison, counts[:, CHANGED])
        weights = sums[:, NOT_ZERO] + (zeros != "drop") * sums[:, ZERO]
    elif cost.scale == "spread":
        costs = costs / comparison.scales
        if not comparison.all_vary:
            spreads = comparison.spreads
            # Cells of a constant variable cost 0 or infinity; a variable with one value is not counted.
            costs = np.where((spreads == 0) & (costs > 0), np.inf, costs)
            some = ~np.isnan(spreads)
            costs, weights, used = costs * some, weights * some, used * some
    return costs, weights, used


def _refuse_zeros(comparison: Comparison, changed: Ints) -> None:
    """Raise ValueError naming the first variable in which a 0 was changed: it has no relative change."""
    j = int(np.flatnonzero(changed)[0])
    name = comparison.columns[j]
    raise ValueError(
        f"column {name!r} has {changed[j]} zeros that were changed: no relative change exists; "
        "use zeros='keep' or il1s"
    )


def score_cells(
    cost: Cost,
    comparison: Comparison,
    *,
    missing: str = "pairwise",
    zeros: str = "keep",
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """Return the score of MAE, MSE, IL1 or IL1s, as `cost` says."""
    checks.checked_missing_rule(missing, bounded=False, name="this metric")
    checks.one_of("rule for zeros", zeros, ZEROS)
    with np.errstate(over="ignore", invalid="ignore"):
        found = _score_without_rescaling(cost, comparison, zeros=zeros, detail=detail, per_record=per_record)
        if may_have_overflowed(found) and comparison.in_memory is not None:
            found = repair_score(found, comparison.in_memory, _columns(comparison.in_memory, cost, zeros))
    return found


def _columns(pair: Pair, cost: Cost, zeros: str) -> list[VariableCells]:
    """Return the cells of each variable, ready to be counted one by one."""
    return [pair.variable(j).cells(cost, zeros) for j in range(pair.p)]


def _score_without_rescaling(
    cost: Cost, comparison: Comparison, *, zeros: str, detail: bool, per_record: bool
) -> Score:
    """Return the score from plain sums; infinite or NaN where a sum exceeds the range of floats."""
    costs, weights, used = _totals(comparison, cost, zeros)
    left_out = comparison.cell_sums.counts[:, SEEN] - used
    extra: dict[str, Any] = {}
    if detail:
        variables = (comparison.variable(j) for j in each("measuring", range(comparison.p)))
        shuffled = np.array([variable.unrelated_cells(cost, zeros) for variable in variables])
        extra["random"] = pooled_means(*shuffled.T)
        extra["notes"] = _cell_notes(comparison, cost, costs, left_out)
    if per_record:
        memory = require_in_memory(comparison, "a loss of each record")
        extra["records"] = _record_means(memory, _columns(memory, cost, zeros))
    return Score(pooled_means(costs, weights), used, left_out, **extra)


def _record_means(pair: Pair, columns: list[VariableCells]) -> Floats:
    """Return the mean cost of each record over its counted variables."""
    rows = np.arange(pair.n)
    costs = (
        (rows[pair.both(j)][column.counts], column.costs()[column.counts]) for j, column in enumerate(columns)
    )
    return record_means(pair.n, costs)


def _cell_notes(comparison: Comparison, cost: Cost, costs: Floats, left_out: Ints) -> tuple[str, ...]:
    """Return notes on constant variables that changed and on zeros without a relative change."""
    notes = [
        f"{name} is constant in the original, so its change has no scale"
        for name, total, spread in zip(comparison.columns, costs, comparison.spreads, strict=True)
        if cost.scale == "spread" and spread == 0 and np.isinf(total)
    ]
    if cost.scale == "value" and left_out.sum():
        cells = int(left_out.sum())
        notes.append(f"cells left out because an original value of 0 has no relative change: {cells}")
    return tuple(notes)


def _explain_cells(text: str, factor: float, score: Score) -> str:
    """Return `text` with the value times `factor` filled in, and the value in unrelated order."""
    value, random = score.value.overall, score.random
    if math.isnan(value):
        return "there are no cells to compare"
    if math.isinf(value):
        return "a change has no bound: a constant variable was changed, or the numbers are too large"
    sentence = text.format(value * factor)
    if random is not None and not math.isnan(random.overall):
        sentence += f"; an unrelated order would score {random.overall:.4g}"
    return sentence


UNBOUNDED: dict[str, Any] = {
    "family": "loss",
    "bounds": (0.0, float("inf")),
    "best": 0.0,
    "needs": "cells",
    "in_blocks": True,
}


@metric(
    title="MAE, mean absolute error",
    place=20,
    in_paper=True,
    colour="orange",
    score=partial(score_cells, MAE),
    dominated=partial(cell_is_dominated, MAE),
    explain=partial(_explain_cells, "a cell changed by {:.4g} on average, in the units of the data", 1.0),
    reference=HANDBOOK,
    parameters=(MISSING_RULE,),
    **UNBOUNDED,
)
def mae(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Mean absolute difference of original and masked cells, in units of the data; 0 if no cell changed.

    0 means that no cell changed; there is no largest value. Variables in large units dominate it.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be prepared.
    weights : str or array, optional
        Survey weights.
    missing : str
        "pairwise": cells missing in either file are left out and counted.

    Returns
    -------
    float
        Mean of |x - y| over all cells used.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.mae([10, 20, 30, 40, 0], [12, 18, 33, 40, 1])
    1.6
    """
    return score_cells(MAE, pair_of(original, masked, weights=weights), missing=missing).value.overall


@metric(
    title="MSE, mean squared error",
    place=20,
    in_paper=True,
    colour="amber",
    score=partial(score_cells, MSE),
    dominated=partial(cell_is_dominated, MSE),
    explain=partial(
        _explain_cells, "the squared change of a cell is {:.4g} on average, in squared units of the data", 1.0
    ),
    reference=HANDBOOK,
    parameters=(MISSING_RULE,),
    **UNBOUNDED,
)
def mse(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Mean squared difference of original and masked cells, in squared units of the data; 0 if none changed.

    0 means that no cell changed; there is no largest value. Few large changes dominate it, and so
    do variables in large units.

    Parameters
    ----------
    original, masked, weights, missing
        As for `mae`.

    Returns
    -------
    float
        Mean of (x - y)**2 over all cells used.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.mse([10, 20, 30, 40, 0], [12, 18, 33, 40, 1])
    3.6
    """
    return score_cells(MSE, pair_of(original, masked, weights=weights), missing=missing).value.overall


@metric(
    title="IL1, mean variation",
    place=20,
    in_paper=True,
    colour="green",
    score=partial(score_cells, IL1),
    dominated=partial(cell_is_dominated, IL1),
    explain=partial(_explain_cells, "a cell changed by {:.1%} of its own size on average", 1.0),
    reference="Mateo-Sanz, Sebe & Domingo-Ferrer 2004, doi:10.1007/978-3-540-25955-8_16",
    parameters=(Parameter("zeros", str, "keep", "what a changed zero counts", choices=ZEROS), MISSING_RULE),
    **UNBOUNDED,
)
def il1(
    original: Any, masked: Any, *, zeros: str = "keep", weights: Any = None, missing: str = "pairwise"
) -> float:
    """Mean absolute change of a cell relative to its own size; 0 if no cell changed.

    0 means that no cell changed; there is no largest value. Values near 0 dominate it, and a value
    of 0 has no relative change at all: prefer `il1s` where there are such cells.

    Parameters
    ----------
    original, masked, weights, missing
        As for `mae`.
    zeros : str
        "keep": a zero that stays zero counts 0, a changed zero is left out and counted; "drop":
        every cell that was zero is left out; "error": a changed zero is refused.

    Returns
    -------
    float
        Mean of |x - y| / |x| over all cells used.

    References
    ----------
    Mateo-Sanz, Sebe & Domingo-Ferrer 2004, doi:10.1007/978-3-540-25955-8_16.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.il1([10, 20, 30, 40, 0], [12, 18, 33, 40, 1])
    0.1
    """
    pair = pair_of(original, masked, weights=weights)
    return score_cells(IL1, pair, missing=missing, zeros=zeros).value.overall


@metric(
    title="IL1s, mean variation scaled by the standard deviation",
    place=20,
    shown="overview",
    in_paper=True,
    colour="pink",
    score=partial(score_cells, IL1S),
    dominated=partial(cell_is_dominated, IL1S),
    explain=partial(
        _explain_cells,
        "a cell changed by {:.1%} of its variable's standard deviation on average",
        math.sqrt(2),
    ),
    reference=YANCEY,
    parameters=(MISSING_RULE,),
    **UNBOUNDED,
)
def il1s(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Mean absolute change of a cell in sqrt(2) standard deviations of its variable; 0 if none changed.

    0 means that no cell changed; there is no largest value, but unrelated normal columns score
    about 0.8. The scale is the original's standard deviation (ddof 1) over its observed cells, within
    a stratum that of the stratum.

    Parameters
    ----------
    original, masked, weights, missing
        As for `mae`.

    Returns
    -------
    float
        Mean of |x - y| / (sqrt(2) S) over all cells used; infinite where a constant variable
        was changed.

    References
    ----------
    Yancey, Winkler & Creecy 2002, doi:10.1007/3-540-47804-3_11.

    Examples
    --------
    >>> import sdckit as sdc
    >>> round(sdc.il1s([10, 20, 30, 40, 0], [12, 18, 33, 40, 1]), 5)
    0.07155
    """
    return score_cells(IL1S, pair_of(original, masked, weights=weights), missing=missing).value.overall
