"""Texts that several packages share: formatted numbers, plural endings, shortened lists."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMED = 5  # columns or strata that a sentence names at most


# Control characters, marks of direction, other characters without shape, line separators, half characters.
_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)


_UNSEEN_IN_LINES = re.compile(rf"(?!\n){_UNSEEN.pattern}")


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return a text that is safe to print: characters that move a cursor or turn text round as \uXXXX.

    Parameters
    ----------
    text
        Any text, such as the name of a column or of a file.
    lines
        Keep line feeds, for a text of several lines.

    Returns
    -------
    str
        The text; inside JSON it stands for the same text as before.

    Examples
    --------
    >>> print(printable("red: \x1b[31m"))
    red: \u001b[31m
    """
    return (_UNSEEN_IN_LINES if lines else _UNSEEN).sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    """Return a character as its UTF-16 codes, as JSON writes them."""
    data = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[place : place + 2].hex()}" for place in range(0, len(data), 2))


def printable_content(content: Any) -> Any:
    """Return nested dicts and lists with every text in them safe to show."""
    if isinstance(content, str):
        return printable(content, lines=True)
    if isinstance(content, dict):
        return {printable_content(key): printable_content(value) for key, value in content.items()}
    return [printable_content(one) for one in content] if isinstance(content, (list, tuple)) else content


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


def draws_text(count: int) -> str:
    """Return a number of random draws as text, such as "1 draw" or "3 draws"."""
    return f"{count} {plural(count, 'draw')}"
