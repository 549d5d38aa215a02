"""Texts on settings, limits and risks, with names from the registry or titles for readers."""

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
    """Return a limit twice as loose, at most 1."""
    return min(LOOSER * limit, 1.0)


def _figure(value: float) -> str:
    return "without a value" if math.isnan(value) else f"{value:.4f}"


def title(name: str) -> str:
    """Return the title of a method or metric."""
    return short_title(name) or name


def draws(count: int) -> str:
    """Return a number of draws as text."""
    return f"{count} {plural(count, 'draw')}"


def called(point: Point, named: Callable[[str], str] = str) -> str:
    """Return a setting as text: its method, with its parameters in parentheses."""
    name = named(point.method)
    return f"{name} ({point.parameters})" if point.parameters else name


def limits(allowed: Mapping[str, float], named: Callable[[str], str] = str) -> str:
    """Return the limits as text."""
    return " and ".join(f"{named(risk)} of at most {limit:g}" for risk, limit in allowed.items())


def risks(point: Point, allowed: Mapping[str, float], named: Callable[[str], str] = str) -> str:
    """Return the measured risks of a setting as text, each beside its limit."""
    return ", ".join(
        f"{named(risk)} {_figure(point.values[risk])} (limit {limit:g})" for risk, limit in allowed.items()
    )
