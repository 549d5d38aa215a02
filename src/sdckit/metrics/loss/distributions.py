"""Losses of each variable's distribution, independent of order: KS, Hellinger, Wasserstein."""

from __future__ import annotations

from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.core.registry import Parameter
from sdckit.metrics.blocks import MAE, hellinger_distance
from sdckit.metrics.loss.moments import measure_variables, score_variables
from sdckit.metrics.pair import metric
from sdckit.metrics.publishable import cell_is_dominated
from sdckit.metrics.score import sentence_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.metrics.pair import Comparison, VariableComparison
    from sdckit.metrics.score import Score

SCALES = ("range", "spread")
COLUMNS: dict[str, Any] = {
    "needs": "columns",
    "in_blocks": True,
    "paired": False,
    "default": False,
}


explain_columns = partial(sentence_of, empty="there are no records to compare")


# --- Kolmogorov-Smirnov ---


def score_distance(
    name: str,
    measure: Callable[[VariableComparison], float],
    comparison: Comparison,
    *,
    missing: str = "pairwise",
    **_: bool,
) -> Score:
    """Return the score of the mean over variables of a distance from 0 to 1; no order plays a part."""
    checks.checked_missing_rule(missing, bounded=True, name=name)
    return score_variables(comparison, measure_variables(measure, comparison), missing=missing)


@metric(
    title="KS, largest gap between distribution functions",
    place=50,
    shown="overview",
    default_unpaired=True,
    score=partial(score_distance, "ks", methodcaller("distribution_gap")),
    explain=partial(
        explain_columns,
        text="the share of records up to some value changed by {:.1%}, on average over the variables",
        kept="every variable keeps its distribution",
    ),
    reference="Smirnov 1948, doi:10.1214/aoms/1177730256",
    **COLUMNS,
)
def ks(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Largest distance of a variable's distribution functions in both files, mean over variables; 0 if kept.

    0 means that every variable keeps its distribution, 1 that original and masked values lie wholly
    apart. It sees each variable alone and no order: permuted columns score 0, so read it beside
    `brmae`. It is the statistic of the test, not a test: masked records are no fresh sample.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy; `original` may be a `Microdata`.
    weights : str or array, optional
        Survey weights.
    missing : str
        "pairwise" compares the cells that both files have; "penalise" counts a suppressed cell 1.

    Returns
    -------
    float
        Mean over the variables.

    Notes
    -----
    sup |F - G|, F and G the share of the records up to each value.

    References
    ----------
    Smirnov 1948, Table for estimating the goodness of fit of empirical distributions,
    doi:10.1214/aoms/1177730256.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.ks([1, 2, 3, 4], [4, 3, 2, 1])
    0.0
    >>> sdc.ks([1, 2, 3, 4], [2, 3, 4, 5])
    0.25
    """


# --- Hellinger ---


def _binned_distance(variable: VariableComparison) -> float:
    """Return the Hellinger distance of both columns on quantile bins of the original."""
    return hellinger_distance(*(weights / weights.sum() for weights in variable.bin_weights()))


@metric(
    title="Hellinger distance of binned distributions",
    place=50,
    default_unpaired=True,
    score=partial(score_distance, "hellinger", _binned_distance),
    explain=partial(
        explain_columns,
        text="binned distributions are {:.1%} of the largest distance apart, on average",
        kept="every bin of every variable keeps its number of records",
    ),
    reference="Hellinger 1909, doi:10.1515/crll.1909.136.210",
    **COLUMNS,
)
def hellinger(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Hellinger distance of a variable's binned distributions in both files; 0 if every share is kept.

    0 means that every bin keeps its share of the records, 1 that no bin is used by both files. Moves
    within a bin do not count, so 0 does not mean unchanged; permuted columns score 0.

    Parameters
    ----------
    original, masked, weights, missing
        As for `ks`.

    Returns
    -------
    float
        Mean over the variables.

    Notes
    -----
    sqrt(1 - sum sqrt(p q)) over common bins with shares p and q. The bins are quantile bins of the
    original, sqrt(n) of them but 20 at most, closed on the right; equal quantiles are merged. Two
    more bins take masked values below the original's smallest and above its largest value. The bins
    are a choice of this package.

    References
    ----------
    Hellinger 1909, doi:10.1515/crll.1909.136.210.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.hellinger([1, 2, 3, 4], [4, 3, 2, 1])
    0.0
    >>> round(sdc.hellinger([1, 2, 3, 4], [1, 2, 3, 5]), 4)
    0.3827
    """


# --- Wasserstein ---


def score_wasserstein(
    comparison: Comparison,
    *,
    scale: str = "range",
    missing: str = "pairwise",
    detail: bool = False,
    **_: bool,
) -> Score:
    """Return the score of the mean Wasserstein distance over variables."""
    checks.one_of("scale", scale, SCALES)
    checks.checked_missing_rule(missing, bounded=scale == "range", name="wasserstein with scale='spread'")
    notes: list[str] = []
    if scale == "range":
        variables = measure_variables(lambda variable: variable.quantile_gap().share_of_span, comparison)
    else:
        moved = measure_variables(lambda variable: variable.quantile_gap().distance, comparison)
        spreads = comparison.spreads
        lost = (spreads == 0) & (moved > 0)
        variables = moved / np.where(spreads == 0, 1.0, spreads)
        variables[lost] = np.inf
        notes = [
            f"{comparison.columns[j]} is constant in the original, so its change has no scale"
            for j in np.flatnonzero(lost & detail)
        ]
    return score_variables(comparison, variables, missing=missing, notes=notes)


@metric(
    title="Wasserstein distance of sorted values",
    place=50,
    score=score_wasserstein,
    explain=partial(
        explain_columns,
        text="sorted values moved by {:.4f} of their scale (the pooled range by default) on average",
        kept="every variable keeps its values, in whatever order",
        infinite="a change has no bound: a constant variable was changed",
    ),
    dominated=partial(cell_is_dominated, MAE),  # at most the mean absolute change
    reference="Villani 2009, Optimal Transport, doi:10.1007/978-3-540-71050-9",
    parameters=(Parameter("scale", str, "range", "what distances are divided by", choices=SCALES),),
    **COLUMNS,
)
def wasserstein(
    original: Any, masked: Any, *, scale: str = "range", weights: Any = None, missing: str = "pairwise"
) -> float:
    """Mean distance of original and masked values of equal rank, as a share of their range; 0 if kept.

    0 means that every variable keeps its values, in whatever order; 1 that all original values are
    one end of the range and all masked values the other. One outlier stretches the range and makes
    everything else small: `scale="spread"` is steadier, but has no largest value.

    Parameters
    ----------
    original, masked, weights, missing
        As for `ks`; "penalise" goes with `scale="range"` only.
    scale : str
        "range": the range of original and masked values together; "spread": the original's standard
        deviation (ddof 1).

    Returns
    -------
    float
        Mean over the variables; with `scale="spread"` infinite where a constant variable was changed.

    Notes
    -----
    W1 = mean |x(i) - y(i)| of the sorted values, never more than the mean of |x - y|. With weights,
    the area between the two distribution functions.

    References
    ----------
    Villani 2009, Optimal Transport, doi:10.1007/978-3-540-71050-9.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.wasserstein([1, 2, 3, 4], [5, 4, 3, 2])
    0.25
    """
