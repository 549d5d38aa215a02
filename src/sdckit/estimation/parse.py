"""Parser of estimates such as "total(turnover) by sector", "quantile(wages, 0.9)" or "model: y ~ x".

The formula of a model becomes code for formulaic, which evaluates what it is given as Python. It is given no
text of a user: only numbers, the signs and functions below, and names of our own that stand for the columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.rules.parse import SAME, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


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


# --- formulas of models ---


OWN: dict[str, Callable[..., Any]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
}
FUNCTIONS = (*OWN, "C", "I", "center", "scale", "poly")  # the last five are formulaic's own
TILDE, POWER = Word("mark", "~"), Word("mark", "^")
LARGEST_POWER = 9
PLACEHOLDER = re.compile(r"column_(\d+)_")


@dataclass(frozen=True)
class Formula:
    """A model's formula: its normal text, its columns, and the code for formulaic with placeholders for them.

    `categories` are the columns in C(), whose numbers are names of classes.
    """

    text: str
    columns: tuple[str, ...]
    code: str
    categories: frozenset[str]


def parse_formula(words: Sequence[Word], text: str) -> Formula:
    """Return the formula in the words after "model:"; raise ValueError where it cannot be read."""
    if list(words).count(TILDE) != 1 or TILDE in {words[0], words[-1]}:
        raise ValueError(
            f"estimate {text!r} has no response and terms; write 'model: response ~ term + term'"
        )
    columns: dict[str, None] = {}
    code, inside = [], 0  # how many parentheses of functions are open
    opened: list[bool] = []
    for place, word in enumerate(words):
        before = words[place - 1] if place else TILDE
        after = words[place + 1] if place + 1 < len(words) else TILDE
        if word == OPEN:
            opened.append(before.kind == "name")
            inside += opened[-1]
        elif word == CLOSE:
            if not opened:
                raise unreadable(text, ")")
            inside -= opened.pop()
        space = "" if word == OPEN and before.kind == "name" else " "  # formulaic wants none in a call
        code.append(space + _code_of(word, before, after, columns, text, inside=inside > 0))
    if opened:
        raise unreadable(text)
    return Formula(_normal_text(words), tuple(columns), "".join(code).strip(), _categories(words))


def _code_of(
    word: Word, before: Word, after: Word, columns: dict[str, None], text: str, *, inside: bool
) -> str:
    """Return a word as code for formulaic; a name of a column is added to the columns."""
    if word.kind == "name" and after == OPEN:
        return checks.one_of("function of a model", word.says, FUNCTIONS)
    if word.kind == "name":
        columns.setdefault(word.says)
        return f"column_{list(columns).index(word.says)}_"
    if word == POWER:  # powers of powers of numbers are large enough to stop the machine
        if after.kind != "number" or before.kind == "number" or float(after.says) > LARGEST_POWER:
            raise unreadable(text, f"^ {after.says}")
        return "**" if inside else "^"
    if COMMA in {word, before} and not _is_small_argument(word, before, after):
        raise unreadable(text, word.written)
    if word.kind in {"text", "relation"} or (word == before and word.says == "*"):
        raise unreadable(text, word.written)
    return word.says


def _is_small_argument(word: Word, before: Word, after: Word) -> bool:
    """Return True for a comma or the word after it if that is the last argument, a small number.

    Only poly() takes one, its degree. A second column would be written to by numpy's functions.
    """
    if word == COMMA:
        return after.kind == "number"
    return before == COMMA and float(word.says) <= LARGEST_POWER and after == CLOSE


def _normal_text(words: Sequence[Word]) -> str:
    """Return the formula with one space around its signs and none inside parentheses' edges."""
    text = "".join(
        f" {word.says} " if word.kind == "mark" and word.says in "~+-*/" else word.written for word in words
    )
    return re.sub(r"\s+", " ", text.replace(",", ", ")).strip()


def _categories(words: Sequence[Word]) -> frozenset[str]:
    """Return the names of the columns that stand alone in C()."""
    return frozenset(
        words[place + 2].says
        for place, word in enumerate(words[:-3])
        if word == Word("name", "C") and words[place + 1] == OPEN and words[place + 2].kind == "name"
    )


# --- estimates ---


MODELS = ("model", "logit")
ARGUMENTS = {  # what stands in the parentheses of each function
    "total": "a column",
    "mean": "a column",
    "median": "a column",
    "quantile": "a column and a share between 0 and 1, as in quantile(wages, 0.9)",
    "share": "a condition, as in share(profit > 0)",
    "ratio": "two columns, as in ratio(wages, employees)",
    "gini": "a column",
    "correlation": "two columns, as in correlation(wages, profit)",
}
COLUMNS = {"ratio": 2, "correlation": 2}  # all others take one
MODEL = re.compile(r"\s*([^\W\d]\w*)\s*:")


@dataclass(frozen=True)
class Condition:
    """A comparison of a column with a number, a text or another column; `other` is the word after it."""

    relation: str
    other: Word
    negative: bool = False

    @property
    def written(self) -> str:
        """The relation and what stands on its right, as in "> -5"."""
        return f"{self.relation} {'-' * self.negative}{self.other.written}"


@dataclass(frozen=True)
class Request:
    """What is estimated: a function of columns or a model, for each domain that the columns of `by` form.

    `level` is the share of a quantile, `condition` what a share counts, `formula` the terms of a model.
    """

    kind: str
    columns: tuple[str, ...]
    by: tuple[str, ...] = ()
    level: float = 0.5
    condition: Condition | None = None
    formula: Formula | None = None

    @cached_property
    def text(self) -> str:
        """The normal text of the estimate."""
        domains = f" by {', '.join(map(quoted, self.by))}" if self.by else ""
        if self.formula is not None:
            return f"{self.kind}: {self.formula.text}{domains}"
        inside = ", ".join(map(quoted, self.columns[:1] if self.condition else self.columns))
        inside += f" {self.condition.written}" if self.condition else ""
        inside += f", {self.level:g}" if self.kind == "quantile" else ""
        return f"{self.kind}({inside}){domains}"


def parse_estimates(texts: str | Iterable[str], by: tuple[str, ...] = ()) -> list[Request]:
    """Return the estimates in one text or several; `by` forms the domains of those that name none."""
    several = [texts] if isinstance(texts, str) else list(texts)
    if not several:
        raise ValueError(f"no estimate is named; {EXAMPLES}")
    found = [parse_estimate(text) for text in several]
    return list(dict.fromkeys(one if one.by else replace(one, by=by) for one in found))


def parse_estimate(text: object) -> Request:
    """Return the estimate that a text asks for; raise ValueError with one line where it cannot be read."""
    if not isinstance(text, str):
        raise TypeError(f"estimate {text!r} is no text; {EXAMPLES}")
    model = MODEL.match(text)
    if model:
        kind = checks.one_of("kind of model", model[1], MODELS)
        words, by = split_domains(words_of(text[model.end() :], text), text)
        formula = parse_formula(words, text)
        return Request(kind, formula.columns, by, formula=formula)
    words, by = split_domains(words_of(text, text), text)
    if not words or words[0].kind != "name" or not words[0].plain:
        raise unreadable(text, words[0].written if words else "")
    kind = checks.one_of("function of an estimate", words[0].says, ARGUMENTS)
    if words[1:2] != [OPEN] or words[-1] != CLOSE:
        raise unreadable(text, " ".join(word.written for word in words[1:]))
    return replace(_read_arguments(kind, words[2:-1], text), by=by)


def _read_arguments(kind: str, words: list[Word], text: str) -> Request:
    """Return the estimate with what stands in the parentheses of its function."""
    if kind == "share":
        return _read_condition(words, text)
    expected = COLUMNS.get(kind, 1) + (kind == "quantile")
    values, commas = words[::2], words[1::2]
    names = values[:-1] if kind == "quantile" else values
    fits = len(values) == expected and len(words) % 2 == 1 and all(word == COMMA for word in commas)
    if not fits or any(word.kind != "name" for word in names):
        raise _argument_error(kind, text)
    columns = tuple(word.says for word in names)
    if kind != "quantile":
        return Request(kind, columns)
    level = checks.as_number(values[-1].says) if values[-1].kind == "number" else None
    if level is None or not 0 < level < 1:
        raise _argument_error(kind, text)
    return Request(kind, columns, level=level)


def _read_condition(words: list[Word], text: str) -> Request:
    """Return the share of the records that meet the condition in the words."""
    negative = len(words) == 4 and words[2] == Word("mark", "-") and words[3].kind == "number"
    if len(words) != 3 + negative or words[0].kind != "name" or words[1].kind != "relation":
        raise _argument_error("share", text)
    other = words[-1]
    if other.kind not in {"number", "text", "name"}:
        raise _argument_error("share", text)
    if other.kind == "text" and words[1].says not in {"=", "!="}:
        raise ValueError(f"estimate {text!r} orders texts; compare them by = or !=")
    columns = (words[0].says, other.says) if other.kind == "name" else (words[0].says,)
    return Request("share", columns, condition=Condition(words[1].says, other, negative))


def _argument_error(kind: str, text: str) -> ValueError:
    """Return the error for a function with other arguments than it takes."""
    return ValueError(f"estimate {text!r} does not fit; {kind} takes {ARGUMENTS[kind]}")
