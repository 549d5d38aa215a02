"""MSE as an exact sum of two parts: changed distributions, and values permuted among records."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sdckit.core import checks
from sdckit.core.parameters import MISSING_RULE
from sdckit.core.registry import metric
from sdckit.metrics.averages import pooled_means
from sdckit.metrics.blocks.cell_sums import MSE
from sdckit.metrics.blocks.scaled_numbers import Scaled
from sdckit.metrics.dominated import cell_is_dominated
from sdckit.metrics.loss.cell_overflow import merge_values, pooled_scaled
from sdckit.metrics.pair import pair_of
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.comparison import Comparison

Part = Literal["marginal", "permutation"]

REFERENCE = "Hardy, Littlewood & Polya 1952, Inequalities (rearrangements)"


def score_split(
    part: Part,
    comparison: Comparison,
    *,
    missing: str = "pairwise",
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """Return the score of one part of the MSE: "marginal" or "permutation"."""
    checks.checked_missing_rule(missing, bounded=False, name=f"mse_{part}")
    marginal, permutation = comparison.split_sums
    weights = comparison.kept_weight
    extra: dict[str, Any] = {}
    with np.errstate(over="ignore", invalid="ignore"):  # a mean beyond the range of numbers is infinite
        value = _means(marginal if part == "marginal" else permutation, weights)
        if detail and part == "permutation":
            extra["random"] = _means(comparison.unrelated_squares.minus(marginal), weights)
    if per_record:
        extra["records"] = np.full(comparison.n, np.nan)
    return Score(value, comparison.counts.both, np.zeros(comparison.p, np.int64), **extra)


def _means(sums: Scaled, weights: Floats) -> Values:
    """Return sum / weight for each variable and for all cells together, also where a sum overflows."""
    plain = pooled_means(sums.floats(), weights)
    return (
        plain
        if math.isfinite(plain.overall)
        else merge_values(plain, pooled_scaled(sums, Scaled.of(weights)))
    )


def _explain_marginal(score: Score) -> str:
    """Return a sentence that explains the part of MSE due to changed distributions."""
    value = score.value.overall
    if math.isnan(value):
        return "there are no cells to compare"
    if value == 0:
        return "every variable keeps its values, in whatever order"
    return (
        f"changed distributions account for {value:.4g} of MSE, which metrics of ranks cannot see: "
        "a change that keeps the order moves no rank"
    )


def _explain_permutation(score: Score) -> str:
    """Return a sentence that explains the part of MSE due to values permuted among records."""
    value, random = score.value.overall, score.random
    if math.isnan(value):
        return "there are no cells to compare"
    if value == 0:
        return "no value has changed places, so the rest of MSE is a change that keeps the order"
    text = f"values that changed places account for {value:.4g} of MSE, the rest keeps the order"
    if random is not None and not math.isnan(random.overall):
        text += f"; an unrelated order would score {random.overall:.4g}"
    return text


@metric(
    title="MSE, part of changed distributions",
    place=40,
    family="loss",
    bounds=(0.0, float("inf")),
    best=0.0,
    needs="columns",
    in_blocks=True,
    paired=False,
    score=partial(score_split, "marginal"),
    dominated=partial(cell_is_dominated, MSE),
    explain=_explain_marginal,
    reference=REFERENCE,
    parameters=(MISSING_RULE,),
)
def mse_marginal(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Mean squared difference of original and masked values of equal rank; 0 if distributions are kept.

    0 means that every variable keeps its values, in whatever order, as after rank swapping; there is
    no largest value. Metrics of ranks cannot see a monotone change of a variable; this part of MSE
    is all that such a change costs. Variables in large units dominate it.

    Parameters
    ----------
    original, masked, weights, missing
        As for `mae`.

    Returns
    -------
    float
        Mean of (x(i) - y(i))**2 over all cells used, both columns sorted.

    Notes
    -----
    mse = mse_marginal + mse_permutation, exactly, and neither part is below 0: no pairing of the
    values costs less than that of equal ranks.

    References
    ----------
    Hardy, Littlewood & Polya 1952, Inequalities, chapter 10 (rearrangements).

    Examples
    --------
    >>> import sdckit as sdc
    >>> x, y = [1, 2, 3, 4, 5], [2, 1, 3, 6, 4]
    >>> sdc.mse(x, y), sdc.mse_marginal(x, y), sdc.mse_permutation(x, y)
    (1.4, 0.2, 1.2)
    """
    pair = pair_of(original, masked, weights=weights, paired=False)
    return score_split("marginal", pair, missing=missing).value.overall


@metric(
    title="MSE, part of changed places",
    place=40,
    family="loss",
    bounds=(0.0, float("inf")),
    best=0.0,
    needs="cells",
    in_blocks=True,
    score=partial(score_split, "permutation"),
    dominated=partial(cell_is_dominated, MSE),
    explain=_explain_permutation,
    reference=REFERENCE,
    parameters=(MISSING_RULE,),
)
def mse_permutation(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Part of the mean squared error due to values permuted among records; 0 if the order is kept.

    0 means that every variable keeps its order, however its values changed; there is no largest
    value. It says in units of the data what `brmse` says in ranks. Variables in large units dominate it.

    Parameters
    ----------
    original, masked, weights, missing
        As for `mae`.

    Returns
    -------
    float
        (2/n) (sum x(i) y(i) - sum x y), with both columns sorted in the first sum, over all cells used.

    Notes
    -----
    mse = mse_marginal + mse_permutation, exactly, and neither part is below 0.

    References
    ----------
    Hardy, Littlewood & Polya 1952, Inequalities, chapter 10 (rearrangements).

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.mse_permutation([1, 2, 3, 4, 5], [2, 1, 3, 6, 4])
    1.2
    >>> sdc.mse_permutation([1, 2, 3, 4, 5], [1, 4, 9, 16, 25])
    0.0
    """
    pair = pair_of(original, masked, weights=weights)
    return score_split("permutation", pair, missing=missing).value.overall
