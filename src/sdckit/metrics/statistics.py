"""Statistics of each variable before and after masking, guarded for publication or exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.metrics import guarded_figures as guard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Floats
    from sdckit.metrics.pair import Pair
    from sdckit.rules.rules import Rules

NAMES = ("mean", "sd", "q1", "median", "q3", "total")
CORRELATED = 12  # variables whose correlations are computed, the first ones
CORRELATION = "correlation"
NOTHING = (None, None)

Key = tuple[str, ...]  # the name of a statistic, and the variables that it is about
Values = dict[Key, tuple[float | None, float | None]]  # a figure and the step to which it is rounded


class Statistic(NamedTuple):
    """A statistic of a variable in the original and in the masked file.

    `before` is None where it is withheld, else a multiple of `step`, which is None for exact figures.
    """

    variable: str
    statistic: str
    before: float | None
    after: float | None
    step: float | None = None


class Correlation(NamedTuple):
    """The correlation of two variables in the original and in the masked file, as in `Statistic`."""

    variable: str
    other: str
    before: float | None
    after: float | None
    step: float | None = None


@dataclass(frozen=True)
class Statistics:
    """Statistics of all variables, and correlations of the first twelve.

    Where they are not `exact`, those of the original are rounded, and none tells a record (see
    `guarded_figures`); the mean is then the rounded total by the number of values.
    """

    rows: tuple[Statistic, ...]
    correlations: tuple[Correlation, ...]
    exact: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, JSON-ready."""
        return {
            "exact": self.exact,
            "variables": [row._asdict() for row in self.rows],
            "correlations": [row._asdict() for row in self.correlations],
        }


def statistics_of(pair: Pair, *, exact: bool = False) -> Statistics:
    """Return statistics of the original and the masked file, without weights.

    Parameters
    ----------
    pair : Pair
        Original and masked data.
    exact : bool
        Leave the figures of the original as they are, neither rounded nor withheld; never publish them.

    Returns
    -------
    Statistics
    """
    names, values = pair.columns, pair.original.values
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        before = exact_values(names, values) if exact else _kept_guarded_values(pair)
        after = exact_values(names, pair.masked)

    def figures(*key: str) -> tuple[float | None, float | None, float | None]:
        """Return a figure before masking, after it, and the step to which the first is rounded."""
        value, step = before.get(key, NOTHING)
        return value, after[key][0], step

    couples = combinations(names[:CORRELATED], 2)
    return Statistics(
        rows=tuple(Statistic(name, what, *figures(what, name)) for name in names for what in NAMES),
        correlations=tuple(Correlation(*two, *figures(CORRELATION, *two)) for two in couples),
        exact=exact,
    )


def exact_values(names: Sequence[str], values: Floats) -> Values:
    """Return all statistics of a file as they are; None where one has no finite value."""
    found: dict[Key, float] = {}
    columns = [values[:, j] for j in range(len(names))]
    for name, column in zip(names, columns, strict=True):
        found |= {(what, name): one for what, one in _column_values(column[~np.isnan(column)]).items()}
    for j, k in combinations(range(min(len(names), CORRELATED)), 2):
        both = ~np.isnan(columns[j]) & ~np.isnan(columns[k])
        found[CORRELATION, names[j], names[k]] = _correlation(columns[j][both], columns[k][both])
    return {key: (value if math.isfinite(value) else None, None) for key, value in found.items()}


def _column_values(values: Floats) -> dict[str, float]:
    """Return mean, standard deviation (ddof 1), quartiles and total of observed values by name."""
    if not values.size:
        return dict.fromkeys(NAMES, math.nan)
    quartiles = np.quantile(values, list(guard.QUARTERS.values()))
    spread = float(values.std(ddof=1)) if values.size > 1 else math.nan
    found = {"mean": float(values.mean()), "sd": spread, "total": float(values.sum())}
    return found | dict(zip(guard.QUARTERS, map(float, quartiles), strict=True))


def _correlation(x: Floats, y: Floats) -> float:
    """Return the correlation of two columns; NaN where one of them does not vary."""
    if x.size < 2:
        return math.nan
    gaps = x - x.mean(), y - y.mean()
    return float(gaps[0] @ gaps[1] / (np.sqrt(gaps[0] @ gaps[0]) * np.sqrt(gaps[1] @ gaps[1])))


def _kept_guarded_values(pair: Pair) -> Values:
    """Return the statistics of the original that can be published, computed once for all masked files."""
    key = f"guarded statistics {() if pair.rules is None else pair.rules.texts}"
    if key not in pair.original.cache:
        found = guarded_values(pair.columns, pair.original.values, pair.rules)
        pair.original.cache[key] = found
    kept: Values = pair.original.cache[key]
    return kept


def guarded_values(names: Sequence[str], values: Floats, rules: Rules | None = None) -> Values:
    """Return the statistics of an original that can be published, rounded so that none tells a record."""
    columns = {name: guard.Column.of(values[:, j]) for j, name in enumerate(names)}
    own = {name: guard.figures_of_column(name, column) for name, column in columns.items()}
    found: dict[Key, guard.Figure] = {
        (what, name): one for name, figures in own.items() for what, one in figures.items()
    }
    for two in combinations(names[:CORRELATED], 2):
        found[CORRELATION, *two] = guard.correlation_figure(two, [columns[name] for name in two])
    guard.coarsen_until_protected(
        {name: [one for key, one in found.items() if name in key[1:]] for name in names}
    )
    totals = {name: figures["total"] for name, figures in own.items() if figures}
    # With a tolerance, a withheld total would follow up to rounding: it counts as a sum, too.
    sums = [] if rules is None else [rule.columns for rule in rules.rules if rule.equality]
    guard.withhold_linked(totals, values, list(names), sums)
    shown: Values = {key: (one.published, None if one.withheld else one.step) for key, one in found.items()}
    for name, one in totals.items():
        shown["mean", name] = _mean_of_total(one, columns[name].values.size)
    return shown


def _mean_of_total(total: guard.Figure, n: int) -> tuple[float | None, float | None]:
    """Return the rounded total of n values by their number, in two digits, and its step."""
    if total.published is None:
        return NOTHING
    return float(f"{total.published / n:.{guard.DIGITS}g}"), total.step / n
