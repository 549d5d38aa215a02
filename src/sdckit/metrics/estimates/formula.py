"""Formulas of models, such as "log(profit) ~ log(turnover) + sector", and their matrices by formulaic.

formulaic evaluates what it is given as Python. It is given no text of a user: only numbers, the signs below,
the functions below, and names of our own that stand for the columns.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.metrics.estimates.words import CLOSE, OPEN, Word, unreadable
from sdckit.rules.parse import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sdckit.kernels.jit import Floats, Ints

OWN: dict[str, Callable[..., Any]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
}
FUNCTIONS = (*OWN, "C", "I", "center", "scale", "poly")  # the last five are formulaic's own
TILDE, POWER, COMMA = Word("mark", "~"), Word("mark", "^"), Word("mark", ",")
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


@dataclass(frozen=True)
class Classes:
    """Cells that name classes: the labels of all classes, and the number of each record's, -1 for none."""

    labels: tuple[str, ...]
    codes: Ints

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.codes)

    def indicators(self) -> list[Floats]:
        """Return for each class a column that is 1 in its records and 0 elsewhere."""
        return list((self.codes == np.arange(len(self.labels))[:, None]).astype(float))


if TYPE_CHECKING:
    Cells = Floats | Classes


class ModelMatrix(NamedTuple):
    """The response of a model, its terms as columns of a matrix, and their names."""

    response: Floats
    terms: Floats
    names: tuple[str, ...]


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


def formulaic_matrix(formula: Formula, columns: Sequence[Cells]) -> tuple[ModelMatrix, Any, Any]:
    """Return a model's matrix by formulaic, and how it made the response and the terms of factors."""
    terms, pandas = formula_terms(formula), _libraries()[1]
    data = pandas.DataFrame(
        {
            f"column_{j}_": pandas.Categorical.from_codes(one.codes, categories=list(one.labels))
            if isinstance(one, Classes)
            else one
            for j, one in enumerate(columns)
        }
    )
    try:
        with np.errstate(all="ignore"):
            found = terms.get_model_matrix(data, na_action="ignore", output="numpy", context=OWN)
    except Exception as error:  # of many types
        raise _formula_error(formula, error) from error
    left = np.asarray(found.lhs, np.float64).reshape(len(data), -1)
    if left.shape[1] != 1:
        raise ValueError(f"the response of model {formula.text!r} is no number; take a numeric column")
    right, made = np.asarray(found.rhs, np.float64), found.rhs.model_spec
    names = tuple(_own_names(name, formula) for name in made.column_names)
    return ModelMatrix(left[:, 0], right, names), found.lhs.model_spec.structure, made.structure


@lru_cache
def formula_terms(formula: Formula) -> Any:
    """Return the formula as formulaic reads it; raise ValueError where it is no formula of one response."""
    try:
        found = _libraries()[0].Formula(formula.code)
    except _libraries()[0].errors.FormulaicError as error:
        raise _formula_error(formula, error) from error
    if len(found.lhs) != 1:
        raise ValueError(
            f"the response of model {formula.text!r} has {len(found.lhs)} terms; write a sum as I(a + b)"
        )
    if not len(found.rhs):
        raise ValueError(f"model {formula.text!r} has no term; add one, or 1 for a mean")
    return found


def count_terms(formula: Formula, classes: Mapping[str, int]) -> int:
    """Return how many terms a formula has at most, given the number of classes of columns that have some."""
    count = 0
    for term in formula_terms(formula).rhs:
        names = {formula.columns[int(place)] for place in PLACEHOLDER.findall(str(term))}
        count += math.prod(classes[name] for name in names & classes.keys())
    return count


def _formula_error(formula: Formula, error: Exception) -> ValueError:
    """Return the error for a formula that formulaic refuses, with the first line of its own words."""
    reason = _own_names((str(error).splitlines() or [type(error).__name__])[0], formula).rstrip(".")
    return ValueError(f"model {formula.text!r} cannot be computed: {reason}; correct the formula")


def _libraries() -> tuple[Any, Any]:
    """Return formulaic and pandas; raise ValueError where they are not installed."""
    try:
        return import_module("formulaic"), import_module("pandas")
    except ImportError as error:
        raise ValueError('models need the package formulaic; pip install "sdckit[models]"') from error


def _own_names(text: str, formula: Formula) -> str:
    """Return a text of formulaic with the names of columns in place of the placeholders."""

    def own_name(found: re.Match[str]) -> str:
        """Return the name that a placeholder stands for; a class of records may be called like one."""
        place = int(found[1])
        return quoted(formula.columns[place]) if place < len(formula.columns) else found[0]

    return PLACEHOLDER.sub(own_name, text)
