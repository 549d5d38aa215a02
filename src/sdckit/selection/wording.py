"""Settings, limits and risks in words, with the names that commands use or those that people do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sdckit.core.registry import short_title
from sdckit.core.text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    return f"{count} {plural(count, 'draw')}"


def called(point: Point, named: Callable[[str], str] = str) -> str:
    """A setting in words: its method, and its parameters in parentheses."""
    name = named(point.method)
    return f"{name} ({point.parameters})" if point.parameters else name


def limits(allowed: Mapping[str, float], named: Callable[[str], str] = str) -> str:
    """The limits in a row."""
    return " and ".join(f"{named(risk)} of at most {limit:g}" for risk, limit in allowed.items())


def risks(point: Point, allowed: Mapping[str, float], named: Callable[[str], str] = str) -> str:
    """The measured risks of a setting, each beside its limit."""
    return ", ".join(
        f"{named(risk)} {_figure(point.values[risk])} (limit {limit:g})" for risk, limit in allowed.items()
    )
