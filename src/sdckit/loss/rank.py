"""Bounded rank losses: brMAE and brMSE, and the unbounded means behind them."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sdckit import checks
from sdckit.pairs import Pair, Score, Values, pair_of
from sdckit.ranks import OrderedColumn, largest_absolute, largest_squared
from sdckit.registry import Parameter, metric
from sdckit.ties import TIES

if TYPE_CHECKING:
    from sdckit.compiled import Floats

Cost = Literal["absolute", "squared"]

NOTE = "Chaibub Neto, A note on bounded distance-based information loss metrics for numeric microdata"
OPTIONS = (
    Parameter("ties", str, "average", "how equal values are ranked", choices=TIES),
    Parameter("missing", str, "pairwise", "what a missing cell counts", choices=checks.MISSING),
)
PERMUTATIONS = 99  # for the level of unrelated order under weights, where no formula is known
HEAVY_RECORD = 0.25  # share of the weight from which one record bends the weighted scale


def weighted_positions(column: OrderedColumn, weights: Floats) -> Floats:
    """Weight below each row's value plus half the weight tied with it."""
    ordered = weights[column.order]
    above = np.concatenate(([0.0], np.cumsum(ordered)))
    below, upto = above[column.first], above[column.last + 1]
    positions = np.empty(column.n)
    positions[column.order] = (below + upto) / 2
    return positions


def _reach(column: OrderedColumn, weights: Floats) -> float:
    """A, the weighted distance of all positions from the middle, ties broken by weight."""
    order = np.lexsort((weights, column.first[column.rank]))
    ordered = weights[order]
    positions = np.cumsum(ordered) - ordered / 2
    return float(np.sum(ordered * np.abs(positions - weights.sum() / 2)))


def weighted_distance(x: Floats, y: Floats, weights: Floats, cost: Cost) -> tuple[float, Floats]:
    """Weighted brMAE or brMSE of one column, and the cost of each record."""
    original, masked = OrderedColumn(x), OrderedColumn(y)
    gap = weighted_positions(original, weights) - weighted_positions(masked, weights)
    total = weights.sum()
    if cost == "absolute":
        largest = _reach(original, weights) + _reach(masked, weights)
        costs = np.abs(gap)
    else:
        largest = (total**3 - np.sum(weights**3)) / 3
        costs = gap**2
    value = min(float(np.sum(weights * costs) / largest), 1.0)
    return value, costs * total / largest


def score_rank(
    cost: Cost,
    pair: Pair,
    *,
    ties: str = "average",
    missing: str = "pairwise",
    rng: Any = None,
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """brMAE (cost "absolute") or brMSE ("squared") of a pair."""
    checks.one_of("rule for ties", ties, TIES)
    checks.missing_rule(missing, bounded=True, name="the metric")
    weights = pair.original.weights
    checks.no_weights_with(ties, weights)
    if weights is None:
        generator = checks.generator(rng) if ties == "random" else None
        variables = np.array([getattr(sums, cost) for sums in pair.rank_sums(ties, generator)])
    else:
        variables = np.array([_weighted(pair, j, cost) for j in range(pair.p)])
    if missing == "penalise":
        variables = _penalised(pair, variables)
    counts = pair.counts if detail or missing == "penalise" or not pair.complete else None
    used = counts.both if counts else np.full(pair.p, pair.original.n)
    extra: dict[str, Any] = {}
    if detail:
        extra = _details(pair, cost, ties)
    if per_record:
        extra["records"] = _records(pair, cost, ties, rng)
    return Score(Values(mean_of(variables), variables), used, np.zeros(pair.p, np.int64), **extra)


def mean_of(variables: Floats) -> float:
    """Mean over the variables that have a value; NaN where none has."""
    known = [value for value in variables.tolist() if value == value]  # noqa: PLR0124 - NaN differs from itself
    return math.fsum(known) / len(known) if known else math.nan


def _weighted(pair: Pair, j: int, cost: Cost) -> float:
    x, y, weights = pair.cells(j)
    return weighted_distance(x, y, weights, cost)[0] if x.size > 1 and weights is not None else float("nan")


def _penalised(pair: Pair, variables: Floats) -> Floats:
    """Count a suppressed cell as a complete loss; a single record compared has lost nothing."""
    weights = np.ones(pair.original.n) if pair.original.weights is None else pair.original.weights
    kept = np.array([weights[pair.both(j)].sum() for j in range(pair.p)])
    gone = np.array([weights[~pair.original.missing[:, j] & pair.missing[:, j]].sum() for j in range(pair.p)])
    total = kept + gone
    shares = np.where(kept > 0, np.nan_to_num(variables) * kept, 0.0) + gone
    return np.divide(shares, total, out=np.full(pair.p, np.nan), where=total > 0)


def _details(pair: Pair, cost: Cost, ties: str) -> dict[str, Any]:
    """The level of unrelated order, the tie range and notes."""
    place = 0 if cost == "absolute" else 1
    notes = _notes(pair)
    if pair.original.weights is not None:
        level = np.array([_weighted_level(pair, j, cost) for j in range(pair.p)])
        return {"random": Values(mean_of(level), level), "notes": notes}
    ranges = [pair.tie_summary(j) if n > 1 else None for j, n in enumerate(pair.counts.both)]
    level = np.array([r.levels[ties][place] if r else np.nan for r in ranges])
    known = not any(math.isnan(r.levels[ties][place]) for r in ranges if r)
    found: dict[str, Any] = {"random": Values(mean_of(level) if known else math.nan, level), "notes": notes}
    if any(r.has_ties for r in ranges if r):
        low = np.array([getattr(r.least, cost) if r else np.nan for r in ranges])
        high = np.array([getattr(r.largest, cost) if r else np.nan for r in ranges])
        found["tie_low"], found["tie_high"] = Values(mean_of(low), low), Values(mean_of(high), high)
    return found


def _notes(pair: Pair) -> tuple[str, ...]:
    notes = []
    for j, name in enumerate(pair.columns):
        x, y, weights = pair.cells(j)
        if x.size < 2:
            notes.append(f"{name} has fewer than two records to compare and is left out of the mean")
        elif (y == y[0]).all() and not (x == x[0]).all():
            notes.append(
                f"{name} is constant after masking: nothing of its order is left, whatever its value says"
            )
        elif weights is not None and weights.max() > HEAVY_RECORD * weights.sum():
            notes.append(
                f"one record holds over a quarter of the weight: the scale of {name} depends on its place"
            )
    return tuple(notes)


def _weighted_level(pair: Pair, j: int, cost: Cost) -> float:
    """Mean over random pairings; the same pairings at every call, so that a table repeats itself."""
    x, y, weights = pair.cells(j)
    if x.size < 2 or weights is None:
        return float("nan")
    generator = np.random.default_rng(0)
    return float(
        np.mean(
            [weighted_distance(x, generator.permutation(y), weights, cost)[0] for _ in range(PERMUTATIONS)]
        )
    )


def _records(pair: Pair, cost: Cost, ties: str, rng: Any) -> Floats:
    """Each record's share of the loss; their mean is the value where no cell is missing."""
    total = np.zeros(pair.original.n)
    seen = np.zeros(pair.original.n)
    for j in range(pair.p):
        x, y, weights = pair.cells(j)
        if x.size < 2:
            continue
        rows = pair.both(j)
        if weights is not None:
            total[rows] += weighted_distance(x, y, weights, cost)[1]
        else:
            total[rows] += _record_costs(pair, j, cost, ties, rng)
        seen[rows] += 1
    return np.divide(total, seen, out=np.full(pair.original.n, np.nan), where=seen > 0)


def _record_costs(pair: Pair, j: int, cost: Cost, ties: str, rng: Any) -> Floats:
    alignment = pair.alignment(j)
    n = alignment.n
    largest = largest_absolute(n) if cost == "absolute" else largest_squared(n)
    if ties == "expected":
        found = alignment.expected_absolute() if cost == "absolute" else alignment.expected_squared()
        return alignment.to_rows(found) * n / largest
    if ties in {"min", "max"}:
        ours, theirs = alignment.least_ranks() if ties == "min" else alignment.largest_ranks()
        gap = alignment.to_rows(ours - theirs)
    else:
        column, masked = pair.ranked(j)
        generator = checks.generator(rng) if ties == "random" else None
        gap = (column.ranks2(ties, generator) - OrderedColumn(masked).ranks2(ties, generator)) / 2
    return (np.abs(gap) if cost == "absolute" else gap**2) * n / largest


def _explain(what: str, score: Score) -> str:
    value, random = score.value.overall, score.random
    if value == 0:
        return "the order of the records is the same as in the original"
    text = f"{what} is {value:.1%} of the largest possible"
    if random is not None and not math.isnan(random.overall):
        level = random.overall
        text += f"; an unrelated order would score {level:.3f}"
        if value >= level:
            text += ", so nothing of the order is left"
    if score.tie_low is not None and score.tie_high is not None:
        text += f"; ties leave it open between {score.tie_low.overall:.3f} and {score.tie_high.overall:.3f}"
    return text


@metric(
    title="brMAE, bounded rank MAE",
    family="loss",
    bounds=(0.0, 1.0),
    best=0.0,
    needs="ranks",
    score=partial(score_rank, "absolute"),
    explain=partial(_explain, "the mean distance between original and masked ranks"),
    reference=NOTE,
    parameters=OPTIONS,
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
    """Mean absolute difference between original and masked ranks, as a share of its largest value.

    0 means that every variable keeps its order exactly, 1 the largest distance that two rankings
    can have; a masked order unrelated to the original scores about 2/3. It cannot see a change
    that keeps the order, such as rescaling: read it beside a metric of the values themselves.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be prepared.
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
    pair = pair_of(original, masked, weights=weights)
    return score_rank("absolute", pair, ties=ties, missing=missing, rng=rng).value.overall


@metric(
    title="brMSE, bounded rank MSE",
    family="loss",
    bounds=(0.0, 1.0),
    best=0.0,
    needs="ranks",
    score=partial(score_rank, "squared"),
    explain=partial(_explain, "the mean squared distance between original and masked ranks"),
    reference=NOTE,
    parameters=OPTIONS,
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
    """Mean squared difference between original and masked ranks, as a share of its largest value.

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
    pair = pair_of(original, masked, weights=weights)
    return score_rank("squared", pair, ties=ties, missing=missing, rng=rng).value.overall
