"""Losses of ranks: brMAE, brMSE and their means."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sdckit.core import checks, randomness
from sdckit.core.registry import Parameter
from sdckit.kernels.ranks import TIES, largest_absolute, largest_squared, untied_level
from sdckit.metrics.pair import (
    mean_over_variables,
    metric,
    penalise_suppressed,
    record_means,
    require_in_memory,
)
from sdckit.metrics.score import Score, Values, sentence_of
from sdckit.progress import each

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.arrays import Floats
    from sdckit.metrics.pair import Comparison, Pair, Rows


Cost = Literal["absolute", "squared"]

NOTE = "Chaibub Neto, A note on bounded distance-based information loss metrics for numeric microdata"
TIE_RULE = Parameter("ties", str, "average", "how equal values are ranked", choices=TIES)
EXPLAIN_MEAN = partial(sentence_of, empty="there are no records to compare", unrelated=False)
HEAVY_RECORD = 0.25  # share of the weight from which a single record distorts the weighted scale
PLACE = {"absolute": 0, "squared": 1}
LARGEST = {"absolute": largest_absolute, "squared": largest_squared}


def score_rank(
    cost: Cost,
    comparison: Comparison,
    *,
    bounded: bool = True,
    ties: str = "average",
    missing: str = "pairwise",
    rng: Any = None,
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """Return the score of brMAE (cost "absolute") or brMSE ("squared"); unbounded means on request."""
    checks.one_of("rule for ties", ties, TIES)
    checks.checked_missing_rule(missing, bounded=bounded, name="an unbounded rank mean")
    checks.require_midranks_for_weights(ties, comparison.weighted or None)
    generator = randomness.generator(rng) if ties == "random" else None
    if not comparison.weighted:
        variables = comparison.rank_values(cost if bounded else f"mean_{cost}", ties, generator)
    elif bounded:
        variables = _weighted_losses(cost, comparison, "values")
    else:
        raise ValueError("unbounded rank means take no weights; use brmae or brmse")
    levels: dict[str, Floats] = {"value": variables}
    extra: dict[str, Any] = {}
    if detail:
        levels |= _reference_levels(cost, comparison, ties, bounded=bounded)
        extra["notes"] = _rank_notes(comparison)
    if missing == "penalise":
        alone = comparison.counts.both < 2
        levels = {name: penalise_suppressed(comparison, level, alone) for name, level in levels.items()}
    if per_record:
        extra["records"] = _record_losses(
            cost,
            require_in_memory(comparison, "a loss of each record"),
            ties,
            generator,
            bounded=bounded,
            penalise=missing == "penalise",
        )
    used = np.full(comparison.p, comparison.n) if comparison.complete else comparison.counts.both
    values: dict[str, Any] = {}
    for name, level in levels.items():  # unknown for a variable that has a loss: unknown for the file
        unknown = (np.isnan(level) & ~np.isnan(variables)).any()
        values[name] = Values(math.nan if unknown else mean_over_variables(level), level)
    return Score(**values, used=used, left_out=np.zeros(comparison.p, np.int64), **extra)


def _weighted_losses(
    cost: Cost, comparison: Comparison, what: Literal["values", "unrelated_values"]
) -> Floats:
    """Return the weighted rank loss of each variable ("values"), or that in unrelated order."""
    counts = comparison.counts.both
    variables = each("ranking", range(comparison.p))
    return np.array(
        [comparison.weighted_losses(j, what)[PLACE[cost]] if counts[j] > 1 else np.nan for j in variables]
    )


def _reference_levels(cost: Cost, comparison: Comparison, ties: str, *, bounded: bool) -> dict[str, Floats]:
    """Return each variable's mean loss under random order and, with ties, its range over tie-breakings."""
    if comparison.weighted:
        return {"random": _weighted_losses(cost, comparison, "unrelated_values")}
    counts = comparison.counts.both.tolist()
    variables = each("ranking", range(comparison.p))
    summaries = [comparison.tie_summary(j) if counts[j] > 1 else None for j in variables]
    scale = np.array([1.0 if bounded else LARGEST[cost](n) / n if n > 1 else np.nan for n in counts])
    found = {"random": scale * [s.levels[ties][PLACE[cost]] if s else np.nan for s in summaries]}
    if any(s.has_ties for s in summaries if s):
        found["tie_low"] = scale * [getattr(s.least, cost) if s else np.nan for s in summaries]
        found["tie_high"] = scale * [getattr(s.largest, cost) if s else np.nan for s in summaries]
    return found


def _rank_notes(comparison: Comparison) -> tuple[str, ...]:
    """Return notes on variables with too few records, constant masked values or one heavy record."""
    notes = []
    for j, name in enumerate(comparison.columns):
        facts = comparison.variable(j).facts
        if facts.records < 2:
            notes.append(f"{name} has fewer than two records to compare and is left out of the mean")
        elif facts.masked_constant and not facts.original_constant:
            notes.append(
                f"{name} is constant after masking: nothing of its order is left, whatever its value says"
            )
        elif comparison.weighted and facts.heaviest > HEAVY_RECORD * facts.weight:
            notes.append(
                f"one record has over a quarter of the weight: the scale of {name} depends on its rank"
            )
    return tuple(notes)


def _record_losses(
    cost: Cost, pair: Pair, ties: str, rng: np.random.Generator | None, *, bounded: bool, penalise: bool
) -> Floats:
    """Return each record's share of the loss; their mean is the value where no cell is missing."""

    def losses() -> Iterator[tuple[Rows, Floats | float]]:
        """Yield, for each variable, its compared rows and their rank losses, then suppressed rows and 1."""
        for j in range(pair.p):
            if pair.counts.both[j] > 1:
                yield pair.both(j), _record_losses_of_variable(cost, pair, j, ties, rng, bounded=bounded)
            if penalise:
                yield pair.suppressed(j), 1.0

    return record_means(pair.n, losses())


def _record_losses_of_variable(
    cost: Cost, pair: Pair, j: int, ties: str, rng: np.random.Generator | None, *, bounded: bool
) -> Floats:
    """Return each record's absolute or squared rank difference in variable j, scaled if bounded."""
    if pair.weighted:
        return pair.weighted_ranks(j).record_costs()[PLACE[cost]]
    n = int(pair.counts.both[j])
    scale = n / LARGEST[cost](n) if bounded else 1.0
    if ties == "expected":
        alignment = pair.alignment(j)
        found = alignment.expected_absolute() if cost == "absolute" else alignment.expected_squared()
        return alignment.to_rows(found) * scale
    gaps = pair.doubled_rank_gaps(j, ties, rng) / 2
    return (np.abs(gaps) if cost == "absolute" else gaps**2) * scale


def _explain_rank_loss(what: str, score: Score) -> str:
    """Return a sentence that explains a bounded rank loss, its range over ties, and unrelated order."""
    value = score.value.overall
    if math.isnan(value):
        return "there are no records to compare"
    if value == 0:
        return "no two records have changed places"
    text = f"{what} is {value:.1%} of the largest possible"
    level = score.random.overall if score.random is not None else math.nan
    if value > 1.1 * level:
        text += f"; more than the {level:.3f} of an unrelated order: the order is turned round"
    elif value > 0.9 * level:
        text += f"; about the {level:.3f} of an unrelated order: nothing of the order is left"
    elif level > 0:
        text += f"; an unrelated order would score {level:.3f}"
    if score.tie_low is not None and score.tie_high is not None:
        text += f"; ties leave it open between {score.tie_low.overall:.3f} and {score.tie_high.overall:.3f}"
    return text


def _level_without_ties(place: int, n: int) -> float:
    """Return brMAE (if `place` is 0) or brMSE (1) of n records without ties in unrelated order."""
    return untied_level(n)[place]


@metric(
    title="brMAE, bounded rank MAE",
    place=10,
    shown="headline",
    in_paper=True,
    colour="blue",
    untied_level=partial(_level_without_ties, 0),
    needs="ranks",
    in_blocks=True,
    score=partial(score_rank, "absolute"),
    explain=partial(_explain_rank_loss, "the mean distance between original and masked ranks"),
    reference=NOTE,
    parameters=(TIE_RULE,),
)
def brmae(
    original: Any,
    masked: Any,
    *,
    ties: str = "average",
    weights: Any = None,
    missing: str = "pairwise",
    rng: Any = None,
) -> float:
    """Mean absolute change of ranks, as a share of the largest possible; 0 if every variable keeps its order.

    0 means that every variable keeps its order exactly, 1 the largest distance that two rankings
    can have; a masked order unrelated to the original scores about 2/3. It cannot see a change
    that keeps the order, such as rescaling: read it beside a metric of the values themselves.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be a `Microdata`.
    ties : str
        "average" (mid-ranks), "expected" (mean over random tie-breaking), "random", "first",
        "last", or "min" and "max" over all tie-breakings.
    weights : str or array, optional
        Survey weights; with `ties="average"` only.
    missing : str
        "pairwise" compares the cells that both files have; "penalise" counts a suppressed cell 1.
    rng : None, int or numpy Generator
        For `ties="random"`.

    Returns
    -------
    float
        Mean over the variables of the sum of |r - s| divided by floor(n*n / 2).

    References
    ----------
    Chaibub Neto, A note on bounded distance-based information loss metrics for statistical
    disclosure control of numeric microdata. Weights and missing cells are our extension.

    Examples
    --------
    >>> import sdckit as sdc
    >>> round(sdc.brmae([1, 2, 3, 4, 5], [2, 1, 3, 6, 4]), 4)
    0.3333
    """


@metric(
    title="brMSE, bounded rank MSE",
    place=10,
    shown="headline",
    in_paper=True,
    colour="sky",
    untied_level=partial(_level_without_ties, 1),
    needs="ranks",
    in_blocks=True,
    score=partial(score_rank, "squared"),
    explain=partial(_explain_rank_loss, "the mean squared distance between original and masked ranks"),
    reference=NOTE,
    parameters=(TIE_RULE,),
)
def brmse(
    original: Any,
    masked: Any,
    *,
    ties: str = "average",
    weights: Any = None,
    missing: str = "pairwise",
    rng: Any = None,
) -> float:
    """Mean squared change of ranks, as a share of the largest possible; 0 if every variable keeps its order.

    0 means that every variable keeps its order exactly, 1 that it is reversed; an unrelated order
    scores 1/2. Without ties it equals (1 - Spearman's correlation) / 2. It weighs few large moves
    more than brMAE does, and like it cannot see a change that keeps the order.

    Parameters
    ----------
    original, masked, ties, weights, missing, rng
        As for `brmae`.

    Returns
    -------
    float
        Mean over the variables of the sum of (r - s)**2 divided by n(n*n - 1)/3.

    References
    ----------
    Chaibub Neto, A note on bounded distance-based information loss metrics for statistical
    disclosure control of numeric microdata. Weights and missing cells are our extension.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.brmse([1, 2, 3, 4, 5], [2, 1, 3, 6, 4])
    0.1
    """


@metric(
    title="rMAE, rank MAE (unbounded)",
    place=30,
    aliases=("rmae",),
    bounds=(0.0, math.inf),
    needs="ranks",
    in_blocks=True,
    score=partial(score_rank, "absolute", bounded=False),
    explain=partial(EXPLAIN_MEAN, text="a value moved {:.4g} ranks on average"),
    reference=NOTE,
    parameters=(TIE_RULE,),
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


@metric(
    title="rMSE, rank MSE (unbounded; not a root)",
    place=30,
    aliases=("rmse",),
    bounds=(0.0, math.inf),
    needs="ranks",
    in_blocks=True,
    score=partial(score_rank, "squared", bounded=False),
    explain=partial(EXPLAIN_MEAN, text="a value moved {:.4g} squared ranks on average"),
    reference=NOTE,
    parameters=(TIE_RULE,),
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
