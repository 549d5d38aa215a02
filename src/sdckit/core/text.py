"""Texts that several packages share: formatted numbers, plural endings, shortened lists."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMED = 5  # columns or strata that a sentence names at most


def number(value: float | None) -> str:
    """Return a number as text: four decimals below 1, four significant digits above, "-" for None and NaN."""
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


def figure_text(value: float | None, digits: int) -> str:
    """Return a number with so many significant digits, such as "87,850,000"; "-" for None and NaN."""
    if value is None or math.isnan(value):
        return "-"
    rounded = float(f"{value:.{digits}g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e15:
        return f"{rounded:.{digits - 1}e}"
    shown = max(digits - 1 - math.floor(math.log10(abs(rounded))), 0) if rounded else 0
    text = f"{rounded:,.{shown}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def as_sentence(text: str) -> str:
    """Return the text with a capital letter and a full stop; empty text stays empty."""
    return text[:1].upper() + text[1:] + "." if text else ""


def plural(count: int, noun: str) -> str:
    """Return the noun with the ending for a count: 1 record, 2 records."""
    return noun if count == 1 else f"{noun}s"


def listed(items: Sequence[object]) -> str:
    """Return words or numbers as one text, such as "a, b and c"."""
    words = [str(item) for item in items]
    return ", ".join(words[:-1]) + f" and {words[-1]}" if len(words) > 1 else "".join(words)


def shortened(words: Sequence[str], most: int = NAMED, mark: str = ", ") -> str:
    """Return the first few words joined to one text, with the number of those left out."""
    return mark.join(words[:most]) + (f" and {len(words) - most} more" if words[most:] else "")
