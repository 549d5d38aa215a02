"""Losses of each variable's distribution, independent of order: KS, Hellinger, Wasserstein."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.core.parameters import MISSING_RULE, Parameter
from sdckit.core.registry import metric
from sdckit.kernels.scaling import powers_of_two
from sdckit.metrics.dominated import cell_is_dominated
from sdckit.metrics.loss.cell_sums import MAE
from sdckit.metrics.loss.per_variable import (
    couple_quantiles,
    explain_value,
    measure_variables,
    score_variables,
)
from sdckit.metrics.pair import Pair, pair_of

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.score import Score

MOST_BINS = 20
SCALES = ("range", "spread")
COLUMNS: dict[str, Any] = {
    "family": "loss",
    "bounds": (0.0, 1.0),
    "best": 0.0,
    "needs": "columns",
    "paired": False,
    "default": False,
}


# --- Kolmogorov-Smirnov ---


def largest_gap(x: Floats, y: Floats, weights: Floats | None) -> float:
    """Return the largest distance between the distribution functions of two columns, from 0 to 1."""
    points = np.concatenate((x, y))
    below = [_weight_up_to(points, values, weights) for values in (x, y)]
    total = below[0].max()
    return float(min(1.0, np.abs(below[0] - below[1]).max() / total))


def _weight_up_to(points: Floats, values: Floats, weights: Floats | None) -> Floats:
    """Return, for each point, the summed weight of the values that are at most the point."""
    order = np.argsort(values, kind="stable")
    ends = np.arange(1.0, values.size + 1) if weights is None else np.cumsum(weights[order])
    return np.concatenate(([0.0], ends))[np.searchsorted(values[order], points, side="right")]


def score_ks(
    pair: Pair, *, missing: str = "pairwise", detail: bool = False, per_record: bool = False
) -> Score:
    """Return the score of KS, the mean over variables of the largest distribution gap."""
    del detail  # the order does not matter, so that there is no level of unrelated order
    checks.checked_missing_rule(missing, bounded=True, name="ks")
    return score_variables(pair, measure_variables(largest_gap, pair), missing=missing, per_record=per_record)


@metric(
    title="KS, largest gap between distribution functions",
    place=50,
    shown="overview",
    default_unpaired=True,
    score=score_ks,
    explain=partial(
        explain_value,
        sentence="the share of records up to some value changed by {:.1%}, on average over the variables",
        kept="every variable keeps its distribution",
    ),
    reference="Smirnov 1948, doi:10.1214/aoms/1177730256",
    parameters=(MISSING_RULE,),
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
        pandas, polars, pyarrow or numpy; `original` may be prepared.
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
    return score_ks(pair_of(original, masked, weights=weights), missing=missing).value.overall


# --- Hellinger ---


def hellinger_distance(p: Floats, q: Floats) -> float:
    """Return the Hellinger distance of two lists of shares; exactly 0 for equal lists."""
    return float(min(1.0, math.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2)))


def bin_edges(x: Floats) -> Floats:
    """Return quantiles of a column as bin edges, its smallest and largest value included."""
    bins = min(MOST_BINS, math.isqrt(x.size))
    return np.unique(np.quantile(x, np.linspace(0, 1, bins + 1)))


def bin_numbers(values: Floats, edges: Floats) -> Any:
    """Return the bin number of each value: 0 below the first edge, then bins closed on the right."""
    found = np.searchsorted(edges, values)
    found[values == edges[0]] = 1
    found[values > edges[-1]] = edges.size + 1
    return found


def hellinger_column(x: Floats, y: Floats, weights: Floats | None) -> float:
    """Return the Hellinger distance of two columns on quantile bins of the first."""
    edges = bin_edges(x)
    shares = [np.bincount(bin_numbers(v, edges), weights, edges.size + 2) for v in (x, y)]
    return hellinger_distance(*(share / share.sum() for share in shares))


def score_hellinger(
    pair: Pair, *, missing: str = "pairwise", detail: bool = False, per_record: bool = False
) -> Score:
    """Return the score of the mean Hellinger distance over variables."""
    del detail  # as for KS
    checks.checked_missing_rule(missing, bounded=True, name="hellinger")
    return score_variables(
        pair, measure_variables(hellinger_column, pair), missing=missing, per_record=per_record
    )


@metric(
    title="Hellinger distance of binned distributions",
    place=50,
    default_unpaired=True,
    score=score_hellinger,
    explain=partial(
        explain_value,
        sentence="binned distributions are {:.1%} of the largest distance apart, on average",
        kept="every bin of every variable keeps its number of records",
    ),
    reference="Hellinger 1909, doi:10.1515/crll.1909.136.210",
    parameters=(MISSING_RULE,),
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
    return score_hellinger(pair_of(original, masked, weights=weights), missing=missing).value.overall


# --- Wasserstein ---


def quantile_distance(x: Floats, y: Floats, weights: Floats | None) -> float:
    """Return the mean distance between the values of two columns at the same quantile."""
    x, y, unit = _within_half(x, y)
    pieces = couple_quantiles(x, y, weights)
    return 4 * (unit * float((pieces.weights * np.abs(pieces.x - pieces.y)).sum() / pieces.weights.sum()))


def _within_half(x: Floats, y: Floats) -> tuple[Floats, Floats, float]:
    """Return two columns divided by 4 units, and the unit, a power of two: no value exceeds 1/2.

    So neither a difference nor a sum of them leaves the range of numbers.
    """
    unit = powers_of_two(np.concatenate([x, y]))
    return x / unit / 4, y / unit / 4, float(unit)


def quantile_distance_in_range(x: Floats, y: Floats, weights: Floats | None) -> float:
    """Return the mean distance at the same quantile as a share of the joint range."""
    x, y, _ = _within_half(x, y)
    span = max(x.max(), y.max()) - min(x.min(), y.min())
    return min(1.0, quantile_distance(x, y, weights) / span) if span > 0 else 0.0


def score_wasserstein(
    pair: Pair,
    *,
    scale: str = "range",
    missing: str = "pairwise",
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """Return the score of the mean Wasserstein distance over variables."""
    checks.one_of("scale", scale, SCALES)
    checks.checked_missing_rule(missing, bounded=scale == "range", name="wasserstein with scale='spread'")
    notes: list[str] = []
    if scale == "range":
        variables = measure_variables(quantile_distance_in_range, pair)
    else:
        moved, spreads = measure_variables(quantile_distance, pair), pair.original.spreads
        lost = (spreads == 0) & (moved > 0)
        variables = moved / np.where(spreads == 0, 1.0, spreads)
        variables[lost] = np.inf
        notes = [
            f"{pair.columns[j]} is constant in the original, so its change has no scale"
            for j in np.flatnonzero(lost & detail)
        ]
    return score_variables(pair, variables, missing=missing, notes=notes, per_record=per_record)


def _explain_wasserstein(score: Score) -> str:
    """Return a sentence that explains a Wasserstein distance."""
    if math.isinf(score.value.overall):
        return "a change has no bound: a constant variable was changed"
    return explain_value(
        score,
        "sorted values moved by {:.4f} of their scale (the pooled range by default) on average",
        "every variable keeps its values, in whatever order",
    )


@metric(
    title="Wasserstein distance of sorted values",
    place=50,
    score=score_wasserstein,
    explain=_explain_wasserstein,
    dominated=partial(cell_is_dominated, MAE),  # at most the mean absolute change
    reference="Villani 2009, Optimal Transport, doi:10.1007/978-3-540-71050-9",
    parameters=(
        Parameter("scale", str, "range", "what distances are divided by", choices=SCALES),
        MISSING_RULE,
    ),
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
    pair = pair_of(original, masked, weights=weights)
    return score_wasserstein(pair, scale=scale, missing=missing).value.overall
