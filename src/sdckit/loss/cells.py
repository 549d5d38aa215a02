"""Losses of single cells: MAE, MSE, IL1 and IL1s. Whole-file values are pooled over the cells used."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sdckit import checks
from sdckit.pairs import Pair, Score, Values, pair_of
from sdckit.progress import each
from sdckit.registry import Parameter, metric
from sdckit.ties import mean_cross_gap

if TYPE_CHECKING:
    from sdckit.compiled import Bools, Floats, Ints

HANDBOOK = "Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239"
YANCEY = "Yancey, Winkler & Creecy 2002, doi:10.1007/3-540-47804-3_11"
ZEROS = ("keep", "drop", "error")
MISSING = Parameter("missing", str, "pairwise", "what a missing cell counts", choices=checks.MISSING)


@dataclass(frozen=True)
class Cost:
    """What one cell costs, and what it would cost on average if the masked values were shuffled.

    `power` is 1 for |x - y| and 2 for (x - y)**2; `scale` divides it: nothing, the value's own
    size or a multiple of the variable's standard deviation.
    """

    power: int
    scale: Literal["none", "value", "spread"]

    def of(self, x: Floats, y: Floats, scale: Floats) -> Floats:
        """The cost of each cell."""
        return np.abs(x - y) ** self.power / scale

    def shuffled(self, x: Floats, y: Floats, shares: Floats) -> float:
        """Sum over rows of their share times the mean cost over all masked values."""
        if self.power == 2:
            return float(np.sum(shares * ((x - y.mean()) ** 2 + y.var())))
        order = np.argsort(x, kind="stable")
        return float(mean_cross_gap(x[order], shares[order], np.sort(y)))


MAE, MSE, IL1, IL1S = Cost(1, "none"), Cost(2, "none"), Cost(1, "value"), Cost(1, "spread")


class _Column:
    """The cells of one variable, which of them count, their costs and their weights."""

    def __init__(self, pair: Pair, j: int, cost: Cost, zeros: str) -> None:
        self.x, self.y, weights = pair.cells(j)
        n = self.x.size
        self.cost, self.zeros = cost, zeros
        self.weights = np.ones(n) if weights is None else weights
        self.counts = np.ones(n, np.bool_)
        self.scale = np.ones(n)
        self.constant = False
        if cost.scale == "value":
            self.counts = _counted(self.x, self.y, zeros, pair.columns[j])
            self.scale = np.where(self.x == 0, 1.0, np.abs(self.x))
        elif cost.scale == "spread":
            spread = float(pair.original.spreads[j])
            self.constant = spread == 0
            self.counts[:] = not math.isnan(spread)  # fewer than two values: no spread, no loss
            self.scale[:] = math.sqrt(2) * spread if spread > 0 else 1.0
        self.costs = cost.of(self.x, self.y, self.scale)
        if self.constant:  # no scale: unchanged is no loss, changed is beyond measure
            self.costs = np.where(self.x == self.y, 0.0, np.inf)

    def total(self) -> tuple[float, float]:
        """Weighted sum of the costs, and of the weights."""
        weights = self.weights[self.counts]
        return float(np.sum(weights * self.costs[self.counts])), float(weights.sum())

    def shuffled(self) -> tuple[float, float]:
        """Both sums for an unrelated order: means over all ways to hand out the masked values.

        A zero has no relative change unless it meets another zero, so the number of cells that
        count is a mean, too.
        """
        if self.constant or not self.counts.any():
            return math.nan, 0.0
        if self.cost.scale != "value":
            return self.cost.shuffled(self.x, self.y, self.weights / self.scale), float(self.weights.sum())
        rows = self.x != 0
        met = 0.0 if self.zeros == "drop" else float(self.weights[~rows].sum() * np.mean(self.y == 0))
        weights = self.weights[rows]
        costs = self.cost.shuffled(self.x[rows], self.y, weights / self.scale[rows]) if rows.any() else 0.0
        return costs, float(weights.sum()) + met


def _counted(x: Floats, y: Floats, zeros: str, name: str) -> Bools:
    """Cells that have a relative change: x = 0 has one only if it stays 0."""
    changed = (x == 0) & (y != 0)
    if zeros == "error" and changed.any():
        raise ValueError(
            f"column {name!r} has {int(changed.sum())} zeros that were changed: no relative change exists; "
            "use zeros='keep' or il1s"
        )
    return x != 0 if zeros == "drop" else ~changed


def score_cells(
    cost: Cost,
    pair: Pair,
    *,
    missing: str = "pairwise",
    zeros: str = "keep",
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """MAE, MSE, IL1 or IL1s of a pair."""
    checks.missing_rule(missing, bounded=False, name="this metric")
    checks.one_of("rule for zeros", zeros, ZEROS)
    columns = [_Column(pair, j, cost, zeros) for j in range(pair.p)]
    used = np.array([np.count_nonzero(column.counts) for column in columns])
    left_out = np.array([column.x.size for column in columns]) - used
    extra: dict[str, Any] = {}
    if detail:
        extra["random"] = _pooled([column.shuffled() for column in each("measuring", columns)])
        extra["notes"] = _notes(pair, columns, left_out if cost.scale == "value" else 0 * left_out)
    if per_record:
        extra["records"] = _records(pair, columns)
    return Score(_pooled([column.total() for column in columns]), used, left_out, **extra)


def _pooled(totals: list[tuple[float, float]]) -> Values:
    """Mean of the cells of each variable and of all of them."""
    sums, weights = np.array(totals).T
    variables = np.divide(sums, weights, out=np.full(sums.size, np.nan), where=weights > 0)
    known = weights > 0
    overall = float(sums[known].sum() / weights[known].sum()) if known.any() else math.nan
    return Values(overall, variables)


def _records(pair: Pair, columns: list[_Column]) -> Floats:
    """Mean cost of each record over its variables that count."""
    total, seen = np.zeros(pair.original.n), np.zeros(pair.original.n)
    for j, column in enumerate(columns):
        rows = np.arange(pair.original.n)[pair.both(j)][column.counts]
        total[rows] += column.costs[column.counts]
        seen[rows] += 1
    return np.divide(total, seen, out=np.full(pair.original.n, np.nan), where=seen > 0)


def _notes(pair: Pair, columns: list[_Column], zeros: Ints) -> tuple[str, ...]:
    notes = [
        f"{name} is constant in the original, so its change has no scale"
        for name, column in zip(pair.columns, columns, strict=True)
        if column.constant and np.isinf(column.costs).any()
    ]
    if zeros.sum():
        cells = int(zeros.sum())
        notes.append(f"cells left out because an original value of 0 has no relative change: {cells}")
    return tuple(notes)


def _explain(text: str, factor: float, score: Score) -> str:
    value, random = score.value.overall, score.random
    if math.isnan(value):
        return "there are no cells to compare"
    if math.isinf(value):
        return "a change has no bound: a constant variable was changed, or the numbers are too large"
    sentence = text.format(value * factor)
    if random is not None and not math.isnan(random.overall):
        sentence += f"; an unrelated order would score {random.overall:.4g}"
    return sentence


UNBOUNDED: dict[str, Any] = {"family": "loss", "bounds": (0.0, float("inf")), "best": 0.0, "needs": "cells"}


@metric(
    title="MAE, mean absolute error",
    score=partial(score_cells, MAE),
    explain=partial(_explain, "a cell changed by {:.4g} on average, in the units of the data", 1.0),
    reference=HANDBOOK,
    parameters=(MISSING,),
    **UNBOUNDED,
)
def mae(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Mean absolute difference between original and masked cells.

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
    score=partial(score_cells, MSE),
    explain=partial(
        _explain, "the squared change of a cell is {:.4g} on average, in squared units of the data", 1.0
    ),
    reference=HANDBOOK,
    parameters=(MISSING,),
    **UNBOUNDED,
)
def mse(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Mean squared difference between original and masked cells.

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
    score=partial(score_cells, IL1),
    explain=partial(_explain, "a cell changed by {:.1%} of its own size on average", 1.0),
    reference="Mateo-Sanz, Sebe & Domingo-Ferrer 2004, doi:10.1007/978-3-540-25955-8_16",
    parameters=(Parameter("zeros", str, "keep", "what a changed zero counts", choices=ZEROS), MISSING),
    **UNBOUNDED,
)
def il1(
    original: Any, masked: Any, *, zeros: str = "keep", weights: Any = None, missing: str = "pairwise"
) -> float:
    """Mean change of a cell relative to its own size.

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
    score=partial(score_cells, IL1S),
    explain=partial(
        _explain, "a cell changed by {:.1%} of its variable's standard deviation on average", math.sqrt(2)
    ),
    reference=YANCEY,
    parameters=(MISSING,),
    **UNBOUNDED,
)
def il1s(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Mean change of a cell in units of sqrt(2) standard deviations of its variable.

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
