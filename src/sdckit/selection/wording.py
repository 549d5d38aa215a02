"""A recommendation in words, with the names that commands use or those that people do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sdckit.core.registry import short_title

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.selection.choice import Choice
    from sdckit.selection.points import Point

LOOSER = 2.0  # how much looser a limit is made to tell what that would buy


def looser(limit: float) -> float:
    """A limit twice as loose, as far as there is room."""
    return min(LOOSER * limit, 1.0)


def _figure(value: float) -> str:
    return "without a value" if math.isnan(value) else f"{value:.4f}"


def title(name: str) -> str:
    """How people call a method or a metric."""
    return short_title(name) or name


def draws(count: int) -> str:
    """So many draws."""
    return f"{count} draw{'s' * (count != 1)}"


def sentences(choice: Choice, named: Callable[[str], str] = str) -> list[str]:
    """What is recommended, which limit binds, what is next best, and what a looser limit would buy."""
    if choice.point is None:
        return [f"{miss(choice, named)}."]

    def loss(point: Point) -> str:
        known = point.values.get(choice.minimise)
        return "" if known is None else f", {named(choice.minimise)} {known:.4f}"

    least = f"{named(choice.minimise)} {choice.point.values[choice.minimise]:.4f}"
    risks = _risks(choice, choice.point, named)
    told = [f"{_called(choice.point, named)} loses least within the limits: {least}, {risks}."]
    if choice.weaker is not None:
        broken = _risks(choice, choice.weaker, named, only=choice.binding)
        told.append(f"What binds: one step weaker, {_called(choice.weaker, named)}, has {broken}.")
    else:
        told.append("It is the weakest setting of its method that was tried.")
    if choice.runner_up is not None:
        told.append(f"Next best: {_called(choice.runner_up, named)}{loss(choice.runner_up)}.")
    elif len({point.method for point in choice.points}) > 1:
        told.append("No other method meets the limits.")
    for risk, point in choice.looser.items():
        limit = f"{named(risk)} up to {looser(choice.limits[risk]):g}"
        told.append(f"A looser limit, {limit}, would allow at least {_called(point, named)}{loss(point)}.")
    return told


def miss(choice: Choice, named: Callable[[str], str] = str) -> str:
    """That nothing meets the limits, and what comes nearest."""
    nearest = f"{_called(choice.nearest, named)} with {_risks(choice, choice.nearest, named)}"
    return (
        f"no setting meets {limits(choice, named)}; the nearest miss is {nearest}: "
        "allow more risk or try other methods and stronger settings"
    )


def limits(choice: Choice, named: Callable[[str], str] = str) -> str:
    """The limits in a row."""
    return " and ".join(f"{named(risk)} of at most {limit:g}" for risk, limit in choice.limits.items())


def _called(point: Point, named: Callable[[str], str]) -> str:
    name = named(point.method)
    return f"{name} ({point.parameters})" if point.parameters else name


def _risks(
    choice: Choice, point: Point, named: Callable[[str], str], only: tuple[str, ...] | None = None
) -> str:
    shown = choice.limits if only is None else only
    return ", ".join(
        f"{named(risk)} {_figure(point.values[risk])} (limit {choice.limits[risk]:g})" for risk in shown
    )
