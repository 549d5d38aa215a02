"""Measured settings ordered by strength, and their Pareto frontier."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks, registry
from sdckit.core.settings import parameter_named
from sdckit.masking import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sdckit.core.registry import Method
    from sdckit.selection.plan import Setting

KEYS = ["method", "parameters", "setting"]  # of a point


@dataclass(frozen=True)
class Point:
    """One setting of a method with its measurements: medians over the replications."""

    setting: Setting
    values: dict[str, float]

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.setting.method.name

    @property
    def parameters(self) -> str:
        """Parameters as text, as in "k=5"."""
        return self.setting.text

    def __str__(self) -> str:
        return str(self.setting)

    def meets(self, limits: Mapping[str, float]) -> bool:
        """Return True if every limit holds; a risk without a value meets none."""
        return all(self.values[risk] <= limit for risk, limit in limits.items())

    def excess(self, limits: Mapping[str, float]) -> float:
        """Return how far the largest risk lies above its limit; infinite where one has no value."""
        found = [self.values[risk] - limit for risk, limit in limits.items()]
        return float("inf") if any(map(math.isnan, found)) else max(found)

    def broken(self, limits: Mapping[str, float]) -> list[str]:
        """Return the limits that do not hold."""
        return [risk for risk, limit in limits.items() if not self.values[risk] <= limit]

    def cost(self, metric: str) -> float:
        """Return how far a loss lies from its best value; infinite where it has none."""
        distance = abs(self.values[metric] - best_of(metric))
        return float("inf") if math.isnan(distance) else distance


Line = list[Point]  # settings of one method, from the weakest to the strongest


def weakest_safe(line: Line, limits: Mapping[str, float]) -> int | None:
    """Return the position of the weakest setting from which every stronger one meets the limits.

    Measured risk wavers, so a single setting that meets them proves little.
    """
    place = len(line)
    while place and line[place - 1].meets(limits):
        place -= 1
    return place if place < len(line) else None


def measured(summary: pl.DataFrame, settings: Iterable[Setting]) -> list[Point]:
    """Return the settings of a sweep with their measurements."""
    known = {(setting.method.name, setting.text): setting for setting in settings}
    points = []
    for row in points_of(summary).iter_rows(named=True):
        method, text, _ = (row.pop(name) for name in KEYS)
        values = {name: math.nan if value is None else value for name, value in row.items()}
        points.append(Point(known[method, text], values))
    return points


def lines_of(points: Sequence[Point]) -> list[Line]:
    """Group settings by method and fixed parameters, each line from the weakest to the strongest."""
    lines = grouped([(point.method, point.setting.parameters) for point in points])
    return [[points[place] for place in line] for line in lines]


def grouped(settings: Sequence[tuple[str, Mapping[str, Any]]]) -> list[list[int]]:
    """Return positions of settings by method and fixed parameters, from weakest to strongest."""
    by_method: dict[str, list[int]] = {}
    for place, (method, _) in enumerate(settings):
        by_method.setdefault(method, []).append(place)
    lines: dict[Any, list[int]] = {}
    strength = {}
    for name, places in by_method.items():
        varied = _runs_along(METHODS[name], [settings[place][1] for place in places])
        for place in places:
            options = settings[place][1]
            fixed = tuple((n, repr(v)) for n, v in options.items() if n != varied)
            lines.setdefault((name, fixed), []).append(place)
            strength[place] = float(options[varied]) * direction(METHODS[name], varied) if varied else 0.0
    return [sorted(line, key=strength.__getitem__) for line in lines.values()]


def _runs_along(method: Method, settings: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the parameter along which a method's settings are ordered: one with a usual grid first."""
    varied = [
        parameter
        for parameter in method.parameters
        if parameter.numeric and all(parameter.name in options for options in settings)
        if len({str(options[parameter.name]) for options in settings}) > 1
    ]
    varied.sort(key=lambda parameter: not parameter.grid)
    return varied[0].name if varied else None


def direction(method: Method, name: str) -> int:
    """Return 1 where larger values of a parameter mask more, -1 where they mask less."""
    grid = parameter_named(method, name).grid
    return -1 if len(grid) > 1 and grid[-1] < grid[0] else 1


def best_of(metric: str) -> float:
    """Return the best value of a metric."""
    return registry.metrics_named([metric])[0].best


def table_of(points: Iterable[Point]) -> pl.DataFrame:
    """Return a table with one row per measured setting."""
    return pl.DataFrame(
        [{"method": point.method, "parameters": point.parameters, **point.values} for point in points]
    )


def points_of(summary: pl.DataFrame) -> pl.DataFrame:
    """Return a table with one row per setting and one column per metric."""
    return summary.pivot("metric", index=KEYS, values="value", maintain_order=True)


def frontier(summary: pl.DataFrame, losses: Sequence[str], risks: Sequence[str]) -> pl.DataFrame:
    """Return the settings that no other dominates in these losses and risks (Pareto frontier)."""
    points = points_of(summary)
    metrics = registry.metrics_named([*losses, *risks])
    for metric in metrics:
        checks.one_of("metric of this sweep", metric.name, points.columns[3:])
    costs = points.select((pl.col(metric.name) - metric.best).abs() for metric in metrics)
    return points.filter(pareto(costs, costs.columns))


def pareto(table: pl.DataFrame, costs: Sequence[str]) -> pl.Series:
    """Return which rows are not dominated: no other row is as low in every column and lower in one."""
    values = table.select(costs).to_numpy()
    kept = []
    for line in values:
        better = (values <= line).all(axis=1) & (values < line).any(axis=1)
        kept.append(not better.any() and not np.isnan(line).any())
    return pl.Series(kept, dtype=pl.Boolean)
