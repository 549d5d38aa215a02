"""The unbounded rank means rank_mae and rank_mse."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from sdckit.core.registry import metric
from sdckit.metrics.loss.rank import NOTE, OPTIONS, score_rank
from sdckit.metrics.pair import pair_of

if TYPE_CHECKING:
    from sdckit.metrics.score import Score


def _explain_rank_mean(unit: str, score: Score) -> str:
    """Return a sentence with the mean move of a value in ranks or squared ranks."""
    if math.isnan(score.value.overall):
        return "there are no records to compare"
    return f"a value moved {score.value.overall:.4g} {unit} on average"


@metric(
    title="rMAE, rank MAE (unbounded)",
    place=30,
    aliases=("rmae",),
    family="loss",
    bounds=(0.0, float("inf")),
    best=0.0,
    needs="ranks",
    in_blocks=True,
    random=True,
    score=partial(score_rank, "absolute", bounded=False),
    explain=partial(_explain_rank_mean, "ranks"),
    reference=NOTE,
    parameters=OPTIONS[:1],
    default=False,
)
def rank_mae(original: Any, masked: Any, *, ties: str = "average", rng: Any = None) -> float:
    """Mean absolute difference of original and masked ranks, in ranks; 0 if the order is kept.

    0 means that every variable keeps its order exactly; the largest value, floor(n*n/2)/n, grows
    with the number of records, so compare files of different length with `brmae` instead.

    Parameters
    ----------
    original, masked, ties, rng
        As for `brmae`.

    Returns
    -------
    float

    References
    ----------
    Chaibub Neto, A note on bounded distance-based information loss metrics for statistical
    disclosure control of numeric microdata.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.rank_mae([1, 2, 3, 4, 5], [2, 1, 3, 6, 4])
    0.8
    """
    return score_rank("absolute", pair_of(original, masked), bounded=False, ties=ties, rng=rng).value.overall


@metric(
    title="rMSE, rank MSE (unbounded; not a root)",
    place=30,
    aliases=("rmse",),
    family="loss",
    bounds=(0.0, float("inf")),
    best=0.0,
    needs="ranks",
    in_blocks=True,
    random=True,
    score=partial(score_rank, "squared", bounded=False),
    explain=partial(_explain_rank_mean, "squared ranks"),
    reference=NOTE,
    parameters=OPTIONS[:1],
    default=False,
)
def rank_mse(original: Any, masked: Any, *, ties: str = "average", rng: Any = None) -> float:
    """Mean squared difference of original and masked ranks, in squared ranks; 0 if the order is kept.

    0 means that every variable keeps its order exactly; the largest value is (n*n - 1)/3. `rmse`,
    its earlier name, is not the root of MSE.

    Parameters
    ----------
    original, masked, ties, rng
        As for `brmae`.

    Returns
    -------
    float

    References
    ----------
    Chaibub Neto, A note on bounded distance-based information loss metrics for statistical
    disclosure control of numeric microdata.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.rank_mse([1, 2, 3, 4, 5], [2, 1, 3, 6, 4])
    0.8
    """
    return score_rank("squared", pair_of(original, masked), bounded=False, ties=ties, rng=rng).value.overall
