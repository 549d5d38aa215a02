"""Find the weakest setting of each method that meets limits on risk, by bisection of its parameter grid.

Measured risk falls nearly monotonically as a parameter grows if all settings use common random numbers. So
each grid is halved until a setting that breaks a limit and one that meets all limits are neighbours; a few
stronger settings are measured as a check. Where a method has a proven bound on its risk, the settings beyond
that bound are not measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sdckit.core import registry
from sdckit.core.scenarios import risk_of
from sdckit.selection import wording
from sdckit.selection.points import Point, positions_by_strength

if TYPE_CHECKING:
    from sdckit.selection.choice import Choice
    from sdckit.selection.plan import Setting

GUARDED = 100  # for each hundred settings of a grid, one stronger setting is measured as a check


def settings_by_strength(settings: Sequence[Setting]) -> list[list[Setting]]:
    """Group settings by method and fixed parameters; order each group from weakest to strongest."""
    found = positions_by_strength([(setting.method.name, setting.options) for setting in settings])
    return [[settings[position] for position in grid] for grid in found]


@dataclass
class Bisection:
    """State of a search for the weakest safe setting in one grid, which is ordered from weak to strong.

    `bounded` is True where `Method.largest_linkage` holds for the data.
    """

    settings: list[Setting]
    limits: dict[str, float]
    measured: dict[int, Point] = field(default_factory=dict)
    bounded: bool = True

    @property
    def points(self) -> list[Point]:
        """The settings measured so far, from the weakest to the strongest."""
        return [self.measured[position] for position in sorted(self.measured)]

    @property
    def steps(self) -> float:
        """How many settings are measured at most, about, before the answer is known."""
        size = len(self.settings)
        return 2 + math.log2(size) + size // GUARDED

    @property
    def first_guaranteed(self) -> int:
        """First position in the grid from which a proven bound meets every limit; its length if none."""
        largest = self.settings[0].method.largest_linkage if self.bounded else None
        risks = registry.metrics_named([risk_of(name) for name in self.limits])
        if largest is not None and all(risk.bounded_by_method for risk in risks):
            for position, setting in enumerate(self.settings):
                if largest(setting.options) <= min(self.limits.values()):
                    return position
        return len(self.settings)

    def bounded_point(self, point: Point) -> Point:
        """Return a measured setting, estimates and their upper ends cut at a proven bound on the risk.

        Rounding can bring the mean of a sample above it, in the last digit.
        """
        largest = point.setting.method.largest_linkage if self.bounded else None
        if largest is None:
            return point
        bound = largest(point.setting.options)
        known = {name: registry.metrics_named([risk_of(name)])[0] for name in point.upper}
        names = [name for name in point.upper if known[name].bounded_by_method]
        values, upper = ({name: min(of[name], bound) for name in names} for of in (point.values, point.upper))
        return replace(point, values=point.values | values, upper=point.upper | upper)

    def next_position(self) -> int | None:
        """Return the position of the setting to measure next; None once the answer is known."""
        meets = {position: point.meets(self.limits) for position, point in self.measured.items()}
        guaranteed, last = self.first_guaranteed, len(self.settings) - 1
        low = max((position for position, met in meets.items() if not met), default=-1)
        safe = [position for position, met in meets.items() if met and position > low]
        high = min([*safe, max(guaranteed, low + 1)])
        if high > last:
            return last if last not in meets else None
        if high - low > 1 and low < 0 and guaranteed <= last:
            # Risks are often close to the bound: measure just below it first.
            return max(2 * high - guaranteed - 1, 0)
        if high - low > 1:
            return (low + high) // 2
        guard = range(high, min(high + len(self.settings) // GUARDED, guaranteed - 1, last) + 1)
        return next((position for position in [high, *guard] if position not in meets), None)


def add_guaranteed_alternatives(choice: Choice, bisections: list[Bisection]) -> Choice:
    """Return the choice with settings added that a proven risk bound allows under doubled limits."""
    looser = dict(choice.looser)
    for bisection in bisections:
        for risk in choice.binding if choice.point in bisection.points else ():
            relaxed = bisection.limits | {risk: wording.loosened(choice.limits[risk])}
            position = replace(bisection, limits=relaxed).first_guaranteed
            if position < min(bisection.measured, default=len(bisection.settings)):
                setting = bisection.settings[position]
                looser[risk] = Point(setting, {})
    return replace(choice, looser=looser)


@dataclass(frozen=True)
class MethodProgress:
    """How many settings of a method are measured, how many are expected in all, and if that is all."""

    method: str
    done: int
    expected: int
    finished: bool


def progress_by_method(bisections: Sequence[Bisection]) -> list[MethodProgress]:
    """Return how far the bisections of each method are; some methods have several grids."""
    found: dict[str, MethodProgress] = {}
    for bisection in bisections:
        method, done = bisection.settings[0].method.name, len(bisection.measured)
        finished = bisection.next_position() is None
        likely = min(len(bisection.settings), round(bisection.steps))
        expected = done if finished else max(done + 1, likely)
        last = found.get(method, MethodProgress(method, 0, 0, finished=True))
        found[method] = MethodProgress(
            method, last.done + done, last.expected + expected, last.finished and finished
        )
    return list(found.values())
