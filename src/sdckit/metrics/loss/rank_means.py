"""The unbounded rank means rMAE and rMSE, their maxima, and what ties leave open, side by side."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from sdckit.core.registry import metric
from sdckit.kernels.tie_rules import random_level
from sdckit.metrics.loss.rank import LARGEST, NOTE, OPTIONS, score_rank
from sdckit.metrics.pair import pair_of

if TYPE_CHECKING:
    import polars as pl

    from sdckit.metrics.score import Score


def _explain(unit: str, score: Score) -> str:
    if math.isnan(score.value.overall):
        return "there are no records to compare"
    return f"a value moved {score.value.overall:.4g} {unit} on average"


@metric(
    title="rMAE, rank MAE (unbounded)",
    family="loss",
    bounds=(0.0, float("inf")),
    best=0.0,
    needs="ranks",
    random=True,
    score=partial(score_rank, "absolute", bounded=False),
    explain=partial(_explain, "ranks"),
    reference=NOTE,
    parameters=OPTIONS[:1],
    default=False,
)
def rmae(original: Any, masked: Any, *, ties: str = "average", rng: Any = None) -> float:
    """Mean absolute difference between original and masked ranks, in ranks.

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
    >>> sdc.rmae([1, 2, 3, 4, 5], [2, 1, 3, 6, 4])
    0.8
    """
    return score_rank("absolute", pair_of(original, masked), bounded=False, ties=ties, rng=rng).value.overall


@metric(
    title="rMSE, rank MSE (unbounded; not a root)",
    family="loss",
    bounds=(0.0, float("inf")),
    best=0.0,
    needs="ranks",
    random=True,
    score=partial(score_rank, "squared", bounded=False),
    explain=partial(_explain, "squared ranks"),
    reference=NOTE,
    parameters=OPTIONS[:1],
    default=False,
)
def rmse(original: Any, masked: Any, *, ties: str = "average", rng: Any = None) -> float:
    """Mean squared difference between original and masked ranks, in squared ranks.

    0 means that every variable keeps its order exactly; the largest value is (n*n - 1)/3. The r
    stands for rank: this is not the root of MSE.

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
    >>> sdc.rmse([1, 2, 3, 4, 5], [2, 1, 3, 6, 4])
    0.8
    """
    return score_rank("squared", pair_of(original, masked), bounded=False, ties=ties, rng=rng).value.overall


def rank_table(
    original: Any, masked: Any, *, columns: Any = None, key: Any = None, na: Any = None
) -> pl.DataFrame:
    """All about the ranks of each variable: means, maxima, tie range, tie spread, random level.

    Parameters
    ----------
    original, masked, columns, key, na
        As for `evaluate`.

    Returns
    -------
    polars.DataFrame
        One row per variable: `n`, `rmae`, `rmae_max`, `rmse`, `rmse_max` (mid-ranks), then brMAE
        and brMSE under the rules min, average, expected and max, `brmse_tie_sd` (the exact
        standard deviation of brMSE when ties are broken at random) and the level of unrelated
        order for mid-ranks.

    Examples
    --------
    >>> import sdckit as sdc
    >>> table = sdc.rank_table([1, 1, 1, 1, 2, 3], [1, 1, 2, 1, 1, 1])
    >>> [round(table[name][0], 4) for name in ("brmae_min", "brmae_average", "brmae_expected", "brmae_max")]
    [0.2222, 0.5556, 0.7222, 1.0]
    """
    import polars as pl  # noqa: PLC0415 - heavy, and only for tables

    pair = pair_of(original, masked, columns=columns, key=key, na=na)
    rows: list[dict[str, Any]] = []
    for j, name in enumerate(pair.columns):
        n = int(pair.counts.both[j])
        row: dict[str, Any] = {"variable": name, "n": n}
        if n > 1:
            alignment = pair.alignment(j)
            rules = {
                "min": alignment.least(),
                "average": alignment.average(),
                "expected": alignment.expected(),
                "max": alignment.largest(),
            }
            for cost, short in (("absolute", "mae"), ("squared", "mse")):
                largest = LARGEST[cost](n) / n
                row |= {f"r{short}": getattr(rules["average"], f"mean_{cost}"), f"r{short}_max": largest}
                row |= {f"br{short}_{rule}": getattr(sums, cost) for rule, sums in rules.items()}
            row["brmse_tie_sd"] = alignment.squared_variance() ** 0.5
            row["brmae_random"], row["brmse_random"] = random_level(alignment, "average")
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)
