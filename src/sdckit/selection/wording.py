"""English texts on settings, limits, risks and draws, for sentences in the terminal and the report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sdckit.core.registry import may_be_withheld, short_title
from sdckit.core.scenarios import default_note
from sdckit.core.text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sdckit.selection.points import Point

LOOSENING = 2.0  # factor by which a limit is loosened to show what that would gain


def loosened(limit: float) -> float:
    """Return twice a limit on risk, at most 1."""
    return min(LOOSENING * limit, 1.0)


def _value_text(name: str, value: float) -> str:
    """Return a measured risk or loss with four decimals; for NaN "without a value", or "withheld"."""
    absent = "withheld" if may_be_withheld(name) else "without a value"
    return absent if math.isnan(value) else f"{value:.4f}"


def title_of(name: str) -> str:
    """Return the title of a method or metric, such as "MDAV"; its name if it has none."""
    return short_title(name) or name


def draws_text(count: int) -> str:
    """Return a number of random draws as text, such as "1 draw" or "3 draws"."""
    return f"{count} {plural(count, 'draw')}"


def setting_text(point: Point, label: Callable[[str], str] = str) -> str:
    """Return a measured setting as text: its method, with its parameters in parentheses."""
    name = label(point.method)
    return f"{name} ({point.parameters})" if point.parameters else name


def limits_text(allowed: Mapping[str, float], label: Callable[[str], str] = str) -> str:
    """Return limits as text such as "linkage of at most 0.1 and dbrl of at most 0.2"; a default is said."""
    return " and ".join(
        f"{label(risk)} of at most {limit:g}{default_note(risk, allowed)}" for risk, limit in allowed.items()
    )


def risks_text(point: Point, allowed: Mapping[str, float], label: Callable[[str], str] = str) -> str:
    """Return the measured risks of a setting as text, each beside its limit."""
    return ", ".join(
        f"{label(risk)} {_value_text(risk, point.values[risk])} ({_end_text(point, risk)}limit {limit:g})"
        for risk, limit in allowed.items()
    )


def _end_text(point: Point, risk: str) -> str:
    """Return the upper end of an estimate as text; empty for a value of all records."""
    return f"estimated, at most {point.upper[risk]:.4f}; " if risk in point.upper else ""
