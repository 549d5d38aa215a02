"""Read scenarios from the command line: what other intruders know, and their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit.cli import parsing

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

FORM = "write NAME=COLUMNS:RISK=LIMIT, such as press=sex,age:linkage=0.1"


def parse_scenarios(words: Sequence[str], known: Collection[str] = ()) -> dict[str, Any]:
    """Return scenarios by name from words such as "press=sex,age:linkage=0.1"; `known` are columns.

    The limits after the colon may be left out; a name of a column with a colon is put in quotation marks.
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, rest = word.partition("=")
        if not name.strip() or not equals:
            raise ValueError(f"--scenario {word!r} has no name or no columns; {FORM}")
        if name.strip() in found:
            raise ValueError(f"--scenario gives {name.strip()!r} twice; give it once")
        columns, limits = _split_at_colon(rest)
        entry = {"known": parsing.parse_names([columns], known), "max_risk": _parse_limits(word, limits)}
        found[name.strip()] = entry
    return found


def _split_at_colon(text: str) -> tuple[str, str]:
    """Return what stands before and after the first colon that is not in quotation marks."""
    quoted = False
    for place, letter in enumerate(text):
        quoted ^= letter == '"'
        if letter == ":" and not quoted:
            return text[:place], text[place + 1 :]
    return text, ""


def _parse_limits(word: str, text: str) -> dict[str, str]:
    """Return limits by risk from a text such as "linkage=0.1,uniques=0.2"."""
    limits = {}
    for part in parsing.parse_names([text]) or []:
        risk, _, limit = (piece.strip() for piece in part.rpartition("="))  # names of metrics may contain =
        if not risk or not limit:
            raise ValueError(f"--scenario {word!r} has a limit without a name or a number; {FORM}")
        limits[risk] = limit
    return limits
