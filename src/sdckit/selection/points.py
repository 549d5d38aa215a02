"""Measured points: under which conditions, on the frontier or not, and how they read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from sdckit.core import checks, registry
from sdckit.core.registry import may_be_withheld, parameter_named
from sdckit.core.scenarios import (
    Scenario,
    meets_limit,
)
from sdckit.masking import METHODS
from sdckit.report.risk_map import KEYS, metrics_by_setting, nondominated_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from sdckit.core.registry import Method
    from sdckit.metrics.original import Original
    from sdckit.selection.plan import Setting


T = TypeVar("T")


@dataclass(frozen=True)
class Conditions:
    """The data of a search, edit rules, rules for ties and missing cells, rounding and scenarios.

    `too_few` says which stratum is too small for settings that were left out, and is empty if none was.
    """

    original: Original = field(repr=False, compare=False)
    rules: Any = None
    ties: str = "average"
    missing: str = "pairwise"
    decimals: int | str | None = None
    scenarios: tuple[Scenario, ...] = ()
    too_few: str = field(default="", compare=False)


LOOSENING = 2.0  # factor by which a limit is loosened to show what that would gain


def loosened(limit: float) -> float:
    """Return twice a limit on risk, at most 1."""
    return min(LOOSENING * limit, 1.0)


def _value_text(name: str, value: float) -> str:
    """Return a measured risk or loss with four decimals; for NaN "without a value", or "withheld"."""
    absent = "withheld" if may_be_withheld(name) else "without a value"
    return absent if math.isnan(value) else f"{value:.4f}"


def setting_text(point: Point, label: Callable[[str], str] = str) -> str:
    """Return a measured setting as text: its method, with its parameters in parentheses."""
    name = label(point.method)
    return f"{name} ({point.parameters})" if point.parameters else name


def risks_text(point: Point, allowed: Mapping[str, float], label: Callable[[str], str] = str) -> str:
    """Return the measured risks of a setting as text, each beside its limit."""
    return ", ".join(
        f"{label(risk)} {_value_text(risk, point.values[risk])} ({_end_text(point, risk)}limit {limit:g})"
        for risk, limit in allowed.items()
    )


def _end_text(point: Point, risk: str) -> str:
    """Return the upper end of an estimate as text; empty for a value of all records."""
    return f"estimated, at most {point.upper[risk]:.4f}; " if risk in point.upper else ""


@dataclass(frozen=True)
class Point:
    """One setting (method with parameters) and its losses and risks: medians over the replications."""

    setting: Setting
    values: dict[str, float]
    upper: dict[str, float] = field(default_factory=dict)  # ends of intervals, of values that are estimates
    withheld: frozenset[str] = frozenset()  # losses over declared estimates that are not published

    @property
    def method(self) -> str:
        """Name of the masking method."""
        return self.setting.method.name

    @property
    def parameters(self) -> str:
        """Parameters as text, such as "k=5"."""
        return self.setting.text

    def __str__(self) -> str:
        return str(self.setting)

    def public(self, hidden: Collection[str] = ()) -> Point:
        """Return a copy in which losses that one record may dominate, or that are withheld, are NaN.

        `hidden` are losses that are withheld of the release itself. Others are as `public_value` has them.
        """
        withheld = {*self.withheld, *hidden}
        lost = [name for name in self.values if registry.may_be_dominated(name) or name in withheld]
        told = {name: registry.public_value(name, value) for name, value in self.values.items()}
        return replace(self, values=told | dict.fromkeys(lost, math.nan))

    def judged(self, name: str) -> float:
        """Return what is compared with the limit: the upper end of an interval, or the value itself."""
        return max(self.upper.get(name, self.values[name]), self.values[name])

    def meets(self, limits: Mapping[str, float]) -> bool:
        """Return True if every risk or loss is at most its limit; one without a value meets none."""
        return all(meets_limit(self.judged(risk), limit) for risk, limit in limits.items())

    def excess(self, limits: Mapping[str, float]) -> float:
        """Return the largest difference of a risk and its limit; infinite if a risk has no value."""
        found = [self.judged(risk) - limit for risk, limit in limits.items()]
        return float("inf") if any(map(math.isnan, found)) else max(found)

    def broken_limits(self, limits: Mapping[str, float]) -> list[str]:
        """Return the names of the risks that exceed their limit or have no value."""
        return [risk for risk, limit in limits.items() if not meets_limit(self.judged(risk), limit)]

    def cost(self, metric: str) -> float:
        """Return how far a loss lies from its best value: 0 at the best, infinite without a value."""
        distance = abs(self.values[metric] - registry.metrics_named([metric])[0].best)
        return float("inf") if math.isnan(distance) else distance


Curve = list[Point]  # measured settings of one method that differ in one parameter, weakest first


def weakest_safe_position(
    curve: Curve, risks: Mapping[str, float], losses: Mapping[str, float] | None = None
) -> int | None:
    """Return the position of the weakest safe setting that meets the limits on loss, or None.

    A setting is safe if it and every stronger one meet the limits on risk: measured risk varies by chance,
    so one setting that meets them between others that do not is not safe.
    """
    position = len(curve)
    while position and curve[position - 1].meets(risks):
        position -= 1
    allowed = (i for i in range(position, len(curve)) if curve[i].meets(losses or {}))
    return next(allowed, None)


def points_of_sweep(
    summary: pl.DataFrame,
    settings: Iterable[Setting],
    upper_ends: pl.DataFrame | None = None,
    withheld: frozenset[str] = frozenset(),
) -> list[Point]:
    """Return the measured settings of a sweep, from its summary and the upper ends of its estimates."""
    upper: dict[tuple[str, str], dict[str, float]] = {}
    for method, text, metric, end in () if upper_ends is None else upper_ends.iter_rows():
        upper.setdefault((method, text), {})[metric] = end
    known = {(setting.method.name, setting.text): setting for setting in settings}
    points = []
    for row in metrics_by_setting(summary).iter_rows(named=True):
        method, text, _ = (row.pop(name) for name in KEYS)
        values = {name: math.nan if value is None else value for name, value in row.items()}
        points.append(Point(known[method, text], values, upper.get((method, text), {}), withheld))
    return points


def curves_of(points: Sequence[Point]) -> list[Curve]:
    """Group measured settings by method and fixed parameters; order each group from weak to strong."""
    return by_strength(points, lambda point: (point.method, point.setting.parameters))


def by_strength(
    items: Iterable[T], options_of: Callable[[T], tuple[str, Mapping[str, Any]]]
) -> list[list[T]]:
    """Group items by their method and fixed parameters; order each group from weakest to strongest."""
    by_method: dict[str, list[tuple[T, Mapping[str, Any]]]] = {}
    for item in items:
        name, options = options_of(item)
        by_method.setdefault(name, []).append((item, options))
    groups: dict[Any, list[tuple[float, T]]] = {}
    for name, known in by_method.items():
        varied = _ordering_parameter(METHODS[name], [options for _, options in known])
        sign = strength_sign(METHODS[name], varied) if varied else 0
        for item, options in known:
            fixed = tuple((n, repr(v)) for n, v in options.items() if n != varied)
            strength = sign * float(options[varied]) if varied else 0.0
            groups.setdefault((name, fixed), []).append((strength, item))
    return [[item for _, item in sorted(group, key=itemgetter(0))] for group in groups.values()]


def _ordering_parameter(method: Method, settings: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the name of the numeric parameter that varies among a method's settings, or None."""
    varied = [
        parameter
        for parameter in method.parameters
        if parameter.numeric and all(parameter.name in options for options in settings)
        if len({str(options[parameter.name]) for options in settings}) > 1
    ]
    varied.sort(key=lambda parameter: not parameter.grid)
    return varied[0].name if varied else None


def strength_sign(method: Method, name: str) -> int:
    """Return 1 if larger values of a parameter mask more, -1 if they mask less."""
    grid = parameter_named(method, name).grid
    return -1 if len(grid) > 1 and grid[-1] < grid[0] else 1


def frontier(summary: pl.DataFrame, losses: Sequence[str], risks: Sequence[str]) -> pl.DataFrame:
    """Return the settings (rows) that no other dominates in these losses and risks: the Pareto frontier."""
    points = metrics_by_setting(summary)
    metrics = registry.metrics_named([*losses, *risks])
    for metric in metrics:
        checks.one_of("metric of this sweep", metric.name, points.columns[3:])
    costs = points.select((pl.col(metric.name) - metric.best).abs() for metric in metrics)
    return points.filter(nondominated_rows(costs, costs.columns))
