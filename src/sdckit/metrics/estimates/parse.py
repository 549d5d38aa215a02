"""Parser of estimates such as "total(turnover) by sector", "quantile(wages, 0.9)" or "model: y ~ x"."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sdckit.core import checks
from sdckit.metrics.estimates.formula import Formula, parse_formula
from sdckit.metrics.estimates.words import (
    CLOSE,
    COMMA,
    EXAMPLES,
    OPEN,
    Word,
    split_domains,
    unreadable,
    words_of,
)
from sdckit.rules.parse import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

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
