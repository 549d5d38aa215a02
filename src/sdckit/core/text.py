"""Text helpers that several layers share: numbers, plural endings, shortened lists."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMED = 5  # so many columns or strata a sentence names


def number(value: float | None) -> str:
    """Format a number: four decimals below 1, four significant digits above; a dash without a value."""
    if value is None or math.isnan(value):
        return "-"
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1:
        return f"{value:.4f}" if size >= 1e-4 else f"{value:.3e}"
    if size >= 1e6:
        return f"{value:.3e}"
    return f"{value:,.{max(3 - math.floor(math.log10(size)), 0)}f}"


def plural(count: int, noun: str) -> str:
    """Return the noun with the ending for a count: 1 record, 2 records."""
    return noun if count == 1 else f"{noun}s"


def shortened(words: Sequence[str], most: int = NAMED, mark: str = ", ") -> str:
    """Join the first few words and say how many more there are."""
    return mark.join(words[:most]) + (f" and {len(words) - most} more" if words[most:] else "")
