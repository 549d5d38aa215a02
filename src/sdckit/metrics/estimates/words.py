"""Words of an estimate's text, such as "total(`net turnover`) by sector", and the errors about them."""

from __future__ import annotations

import re
from typing import NamedTuple

from sdckit.rules.parse import SAME, quoted

EXAMPLES = "write it like 'total(turnover) by sector' or 'model: y ~ x', odd names in backquotes"
WORD = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)
    | (?P<name>`(?:[^`]|``)+`|[^\W\d][\w.]*)
    | (?P<text>"(?:[^"]|"")*"|'(?:[^']|'')*')
    | (?P<relation><=|>=|==|!=|≤|≥|≠|=|<|>)
    | (?P<mark>[(),:~+\-*/^])
    )""",
    re.VERBOSE,
)
SPELLINGS = {**SAME, "≠": "!="}


class Word(NamedTuple):
    """A word: its kind ("number", "name", "text", "relation" or "mark"), and what it says.

    `plain` is False for a name in backquotes, which is always that of a column.
    """

    kind: str
    says: str
    plain: bool = True

    @property
    def written(self) -> str:
        """The word as it is written in an estimate's normal text."""
        if self.kind == "name":
            return quoted(self.says)
        return "'" + self.says.replace("'", "''") + "'" if self.kind == "text" else self.says


BY, OPEN, CLOSE, COMMA = Word("name", "by"), Word("mark", "("), Word("mark", ")"), Word("mark", ",")


def words_of(text: str, whole: str) -> list[Word]:
    """Return the words of a text; raise ValueError that shows the whole estimate at an unknown character."""
    found, place = [], 0
    while text[place:].strip():
        match = WORD.match(text, place)
        if match is None or match.lastgroup is None:
            raise unreadable(whole, text[place:].strip())
        kind, said = match.lastgroup, match[match.lastgroup]
        marked = said[0] in "`'\"" and kind != "mark"
        if marked:
            said = said[1:-1].replace(2 * said[0], said[0])
        found.append(Word(kind, SPELLINGS.get(said, said) if kind == "relation" else said, not marked))
        place = match.end()
    return found


def unreadable(whole: str, at: str = "") -> ValueError:
    """Return the error for an estimate that cannot be read at some point, or to its end."""
    place = f"at {at!r}" if at else "to its end"
    return ValueError(f"estimate {whole!r} cannot be read {place}; {EXAMPLES}")


def split_domains(words: list[Word], whole: str) -> tuple[list[Word], tuple[str, ...]]:
    """Return the words before "by", and the names of the columns after it; no names without "by"."""
    if BY not in words:
        return words, ()
    place = len(words) - 1 - words[::-1].index(BY)
    after = words[place + 1 :]
    names, commas = after[::2], after[1::2]
    if not names or len(after) % 2 == 0 or any(word.kind != "name" for word in names):
        raise unreadable(whole, " ".join(word.written for word in words[place:]))
    if any(word != COMMA for word in commas):
        raise unreadable(whole, next(word.written for word in commas if word != COMMA))
    return words[:place], tuple(dict.fromkeys(word.says for word in names))
