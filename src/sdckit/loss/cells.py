"""Losses of single cells: MAE, MSE, IL1 and IL1s. Whole-file values are pooled over the cells used."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit import checks
from sdckit.pairs import Pair, Score, Values, pair_of
from sdckit.registry import Parameter, metric
from sdckit.ties import mean_cross_gap

if TYPE_CHECKING:
    from sdckit.compiled import Bools, Floats

HANDBOOK = "Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239"
YANCEY = "Yancey, Winkler & Creecy 2002, doi:10.1007/3-540-47804-3_11"
ZEROS = ("keep", "drop", "error")
MISSING = Parameter("missing", str, "pairwise", "what a missing cell counts", choices=checks.MISSING)


def _absolute(x: Floats, y: Floats, scale: Floats | float) -> Floats:
    """|x - y| in units of the scale: the cost behind MAE, IL1 and IL1s."""
    return np.abs(x - y) / scale


def _squared(x: Floats, y: Floats, scale: Floats | float) -> Floats:
    """(x - y)**2: the cost behind MSE."""
    return (x - y) ** 2 / scale


def _absolute_level(x: Floats, y: Floats, shares: Floats) -> float:
    """Mean of |x_i - y_j| over all pairs, rows weighted by `shares`."""
    order = np.argsort(x, kind="stable")
    return float(mean_cross_gap(x[order], shares[order], np.sort(y)))


def _squared_level(x: Floats, y: Floats, shares: Floats) -> float:
    """Mean of (x_i - y_j)**2 over all pairs, rows weighted by `shares`."""
    return float(np.sum(shares * ((x - y.mean()) ** 2 + y.var())))


class _Column:
    """The cells of one variable that count, their costs and their weights."""

    def __init__(self, pair: Pair, j: int, name: str, zeros: str) -> None:
        x, y, weights = pair.cells(j)
        self.total = x.size
        self.seen: Bools = np.ones(x.size, np.bool_)
        scale: Floats | float = 1.0
        if name == "il1":
            self.seen = _counted(x, y, zeros, pair.columns[j])
            scale = np.where(x == 0, 1.0, np.abs(x))[self.seen]
        elif name == "il1s":
            scale = np.sqrt(2.0) * pair.original.spreads[j]
        self.x, self.y = x[self.seen], y[self.seen]
        self.weights = np.ones(self.x.size) if weights is None else weights[self.seen]
        self.scale = scale
        cost = _squared if name == "mse" else _absolute
        self.undefined = name == "il1s" and not scale > 0
        if self.undefined:  # a constant column has no scale: unchanged is no loss, changed is beyond measure
            self.costs = np.where(self.x == self.y, 0.0, np.inf)
        else:
            self.costs = cost(self.x, self.y, scale)
        self.level = _squared_level if name == "mse" else _absolute_level

    def random(self) -> float:
        """Sum of weighted costs that an unrelated order of the masked values would have."""
        if self.undefined or not self.x.size:
            return float("nan")
        return self.level(self.x, self.y, self.weights / self.scale)


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
    name: str,
    pair: Pair,
    *,
    missing: str = "pairwise",
    zeros: str = "keep",
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """MAE, MSE, IL1 or IL1s of a pair."""
    checks.missing_rule(missing, bounded=False, name=name)
    checks.one_of("rule for zeros", zeros, ZEROS)
    columns = [_Column(pair, j, name, zeros) for j in range(pair.p)]
    weight = np.array([column.weights.sum() for column in columns])
    value = _pooled(np.array([np.sum(column.weights * column.costs) for column in columns]), weight)
    used = np.array([column.x.size for column in columns])
    left_out = np.array([column.total for column in columns]) - used
    extra: dict[str, Any] = {}
    if detail:
        extra["random"] = _pooled(np.array([column.random() for column in columns]), weight)
        extra["notes"] = _notes(pair, columns, left_out)
    if per_record:
        extra["records"] = _records(pair, columns)
    return Score(value, used, left_out, **extra)


def _pooled(sums: Floats, weight: Floats) -> Values:
    variables = np.divide(sums, weight, out=np.full(sums.size, np.nan), where=weight > 0)
    known = ~np.isnan(sums) & (weight > 0)
    overall = float(sums[known].sum() / weight[known].sum()) if known.any() else float("nan")
    return Values(overall, variables)


def _records(pair: Pair, columns: list[_Column]) -> Floats:
    """Mean cost of each record over its variables that count."""
    total, seen = np.zeros(pair.original.n), np.zeros(pair.original.n)
    for j, column in enumerate(columns):
        rows = np.arange(pair.original.n)[pair.both(j)][column.seen]
        total[rows] += column.costs
        seen[rows] += 1
    return np.divide(total, seen, out=np.full(pair.original.n, np.nan), where=seen > 0)


def _notes(pair: Pair, columns: list[_Column], left_out: Any) -> tuple[str, ...]:
    notes = [
        f"{name} is constant in the original, so its change has no scale"
        for name, column in zip(pair.columns, columns, strict=True)
        if column.undefined and np.isinf(column.costs).any()
    ]
    if left_out.sum():
        cells = int(left_out.sum())
        notes.append(f"cells left out because an original value of 0 has no relative change: {cells}")
    return tuple(notes)


def _explain(text: str, score: Score) -> str:
    sentence = text.format(score.value.overall)
    if score.random is not None and not np.isnan(score.random.overall):
        sentence += f"; an unrelated order would score {score.random.overall:.4g}"
    return sentence


UNBOUNDED: dict[str, Any] = {"family": "loss", "bounds": (0.0, float("inf")), "best": 0.0, "needs": "cells"}


@metric(
    title="MAE, mean absolute error",
    score=partial(score_cells, "mae"),
    explain=partial(_explain, "a cell changed by {:.4g} on average, in the units of the data"),
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
    return score_cells("mae", pair_of(original, masked, weights=weights), missing=missing).value.overall


@metric(
    title="MSE, mean squared error",
    score=partial(score_cells, "mse"),
    explain=partial(
        _explain, "the squared change of a cell is {:.4g} on average, in squared units of the data"
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
    return score_cells("mse", pair_of(original, masked, weights=weights), missing=missing).value.overall


@metric(
    title="IL1, mean variation",
    score=partial(score_cells, "il1"),
    explain=partial(_explain, "a cell changed by {:.1%} of its own size on average"),
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
    return score_cells("il1", pair, missing=missing, zeros=zeros).value.overall


@metric(
    title="IL1s, mean variation scaled by the standard deviation",
    score=partial(score_cells, "il1s"),
    explain=partial(_explain, "a cell changed by {:.4g} times sqrt(2) standard deviations on average"),
    reference=YANCEY,
    parameters=(MISSING,),
    **UNBOUNDED,
)
def il1s(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Mean change of a cell in units of sqrt(2) standard deviations of its variable.

    0 means that no cell changed; there is no largest value, but unrelated normal columns score
    about 0.8. The scale is the original's standard deviation (ddof 1) over its observed cells.

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
    return score_cells("il1s", pair_of(original, masked, weights=weights), missing=missing).value.overall
