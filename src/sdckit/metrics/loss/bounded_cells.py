"""IL_variables, a loss of single cells bounded to 0 to 1 by the arctangent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.core.parameters import MISSING_RULE, Parameter
from sdckit.core.registry import metric
from sdckit.metrics.averages import add_suppressed, pooled_means, record_means
from sdckit.metrics.blocks.cell_sums import arctan_changes
from sdckit.metrics.comparison import require_in_memory
from sdckit.metrics.pair import pair_of
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.comparison import Comparison
    from sdckit.metrics.pair import Pair

MLODAK = "Mlodak 2020, doi:10.5604/01.3001.0014.4121"
SCALES = ("spread", "raw")


def score_il_variables(
    comparison: Comparison,
    *,
    scale: str = "spread",
    missing: str = "pairwise",
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """Return the score of IL_variables, the mean bounded change of a cell."""
    checks.one_of("scale", scale, SCALES)
    penalise = checks.checked_missing_rule(missing, bounded=True, name="il_variables") == "penalise"
    units = comparison.spreads if scale == "spread" else np.ones(comparison.p)
    known = ~np.isnan(units)
    costs, weights = np.zeros(comparison.p), np.where(known, comparison.kept_weight, 0.0)
    for j in np.flatnonzero(known).tolist():
        costs[j] = comparison.variable(j).arctan_sum(float(units[j]))
    if penalise:
        costs, weights = add_suppressed(comparison, costs, weights)
    value = pooled_means(costs, weights)
    extra: dict[str, Any] = {}
    if detail:
        extra["notes"] = _il_variables_notes(comparison, scale, value.variables)
    if per_record:
        pair = require_in_memory(comparison, "a loss of each record")
        extra["records"] = _record_changes(pair, units, penalise=penalise)
    both = comparison.counts.both
    bounded = Values(float(np.minimum(value.overall, 1.0)), np.minimum(value.variables, 1.0))
    return Score(bounded, both * known, both * ~known, **extra)


def _record_changes(pair: Pair, units: Floats, *, penalise: bool) -> Floats:
    """Return the mean bounded change of each record's cells; suppressed ones count 1 if penalised."""
    known = np.flatnonzero(~np.isnan(units)).tolist()
    changes = [(pair.both(j), arctan_changes(*pair.cells(j)[:2], float(units[j]))) for j in known]
    lost = [(pair.suppressed(j), 1.0) for j in range(pair.p)] if penalise else []
    return record_means(pair.n, [*changes, *lost])


def _il_variables_notes(comparison: Comparison, scale: str, variables: Floats) -> tuple[str, ...]:
    """Return notes on constant variables that changed, or on the dependence on units."""
    if scale == "raw":
        return ("il_variables with scale=raw depends on the units of the data",)
    changed = (comparison.spreads == 0) & (variables > 0)
    return tuple(
        f"{comparison.columns[j]} is constant in the original, so any change of it counts 1"
        for j in np.flatnonzero(changed)
    )


def _explain_il_variables(score: Score) -> str:
    """Return a sentence that explains the value of IL_variables."""
    value = score.value.overall
    if math.isnan(value):
        return "there are no cells to compare"
    if value == 0:
        return "no cell changed"
    return (
        f"the change of a cell scores {value:.4f} on average, where 0 is none, 0.5 a change by one unit "
        "(a standard deviation by default) and 1 an infinite change"
    )


@metric(
    title="IL_variables, bounded change of a cell",
    place=60,
    family="loss",
    bounds=(0.0, 1.0),
    best=0.0,
    needs="cells",
    in_blocks=True,
    score=score_il_variables,
    explain=_explain_il_variables,
    reference=MLODAK,
    parameters=(
        Parameter("scale", str, "spread", "the unit of a change", choices=SCALES),
        MISSING_RULE,
    ),
    default=False,
)
def il_variables(
    original: Any, masked: Any, *, scale: str = "spread", weights: Any = None, missing: str = "pairwise"
) -> float:
    """Mean change of a cell, mapped by the arctangent to 0 (unchanged) to 1 (infinite change).

    0 means that no cell changed, 1/2 is a change by one unit in every cell, 1 an infinite change. With
    `scale="raw"`, the convention of the R package, the unit is that of the data: the value changes when
    amounts are given in thousands, and large numbers always score about 1.

    Parameters
    ----------
    original, masked, weights
        As for `mae`.
    scale : str
        "spread": in units of the original's standard deviation (ddof 1); "raw": in units of the data.
    missing : str
        "pairwise" compares the cells that both files have; "penalise" counts a suppressed cell 1.

    Returns
    -------
    float
        Mean over all cells used.

    Notes
    -----
    (2/pi) arctan(|x - y| / S), S the standard deviation or 1. Any change of a constant variable
    counts 1 where the standard deviation is the unit.

    References
    ----------
    Mlodak 2020, Information loss resulting from statistical disclosure control of output data,
    doi:10.5604/01.3001.0014.4121.

    Examples
    --------
    >>> import sdckit as sdc
    >>> round(sdc.il_variables([1, 2, 3], [1, 2.5, 5], scale="raw"), 4)
    0.3333
    """
    pair = pair_of(original, masked, weights=weights)
    return score_il_variables(pair, scale=scale, missing=missing).value.overall
