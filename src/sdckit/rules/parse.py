"""Parser of edit rules such as "TOTAL = A + B +- 2", "0 <= AGE <= 120" or "TAX <= `gross income`"."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import gcd, lcm
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core import checks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.arrays import Bools, Floats

EPSILON = float(np.finfo(float).eps)
EXAMPLES = "write it like 'A = B + C', 'A <= B' or 'A >= 0', odd names in backquotes"
WITH_TOLERANCE = "write 'A = B + C +- 2', or bounds such as 'A <= B + 2'"
PLAIN = re.compile(r"[^\W\d][\w.]*")  # names that need no quotes
TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?)
    | (?P<quoted>`(?:[^`]|``)+`|"(?:[^"]|"")+"|'(?:[^']|'')+')
    | (?P<name>[^\W\d][\w.]*)
    | (?P<relation><=|>=|==|≤|≥|=|<|>)
    | (?P<tolerance>\+-|\+/-|±)
    | (?P<sign>[-+*/])
    )""",
    re.VERBOSE,
)
SAME = {"==": "=", "≤": "<=", "≥": ">="}  # other spellings of a relation
TURNED = {"=": "=", "<=": ">=", ">=": "<="}  # the relation after multiplying both sides by -1


@dataclass(frozen=True)
class Rule:
    """One edit rule: a sum of columns with integer factors that equals a constant or does not exceed it.

    The terms are in the order of the rule's text, the column on its left first; a rule on one column has
    the factor 1 or -1. An equality holds if the sum differs from the constant by at most the tolerance.
    """

    terms: tuple[tuple[str, int], ...]
    equality: bool
    constant: Fraction
    text: str = field(compare=False, default="")
    tolerance: Fraction = Fraction(0)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns in the rule, in the order of its text."""
        return tuple(name for name, _ in self.terms)

    @cached_property
    def bounds(self) -> tuple[Fraction | None, Fraction | None]:
        """Lowest and highest value that a rule on one column allows; None where it has no such bound."""
        ((_, factor),) = self.terms  # 1 or -1
        bound = self.constant * factor
        return (
            bound if self.equality or factor < 0 else None,
            bound if self.equality or factor > 0 else None,
        )

    @cached_property
    def meaning(self) -> tuple[object, ...]:
        """Canonical form of the rule as a tuple, equal for all texts with the same meaning."""
        ordered = sorted(self.terms)
        sign = -1 if self.equality and ordered[0][1] < 0 else 1
        terms = ((name, sign * factor) for name, factor in ordered)
        return (*terms, self.equality, sign * self.constant, self.tolerance)

    @cached_property
    def halves(self) -> tuple[Rule, ...]:
        """The rule itself or, for an equality with a tolerance, the two inequalities that it stands for."""
        if not self.tolerance:
            return (self,)
        turned = tuple((name, -factor) for name, factor in self.terms)
        return (
            Rule(self.terms, False, self.tolerance + self.constant, self.text),
            Rule(turned, False, self.tolerance - self.constant, self.text),
        )

    def broken(self, cells: Sequence[Floats]) -> Bools:
        """Return which records break the rule, given one array of cells for each of its columns."""
        if self.tolerance:
            above, below = self.halves
            return above.broken(cells) | below.broken(cells)
        if len(cells) == 1:
            factor = self.terms[0][1]
            bound = float(self.constant * factor)  # the factor is 1 or -1
            if self.equality:
                return np.asarray((cells[0] != bound) & ~np.isnan(cells[0]))
            return np.asarray(cells[0] > bound if factor > 0 else cells[0] < bound)
        total, noise = self.missed(cells)
        return np.asarray((np.abs(total) if self.equality else total) > noise)

    def missed(self, cells: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Return by how much each record exceeds the constant, and what of it is rounding of floats.

        The tolerance of the rule is not taken off. A sum that overflows gives NaN or infinity twice, so that
        it breaks no rule.
        """
        total = np.zeros(cells[0].shape)
        size = np.full(cells[0].shape, abs(float(self.constant)))
        with np.errstate(over="ignore", invalid="ignore"):
            for (_, factor), column in zip(self.terms, cells, strict=True):
                total += factor * column
                size += abs(factor) * np.abs(column)
            total -= float(self.constant)
            return total, (len(cells) + 1) / 2 * EPSILON * size


Token = tuple[str, str]  # kind and word
Side = tuple[dict[str, Fraction], Fraction]  # one side of a rule: the factor of each column, and the constant


def parse(text: str) -> list[Rule]:
    """Return the rules in a text such as "A = B + C"; a chain such as 0 <= A <= 100 gives two."""
    tokens, tolerance = _split_tolerance(_tokens(text), text)
    positions = [i for i, (kind, _) in enumerate(tokens) if kind == "relation"]
    if not positions:
        raise ValueError(f"rule {text!r} has no =, <= or >=; {EXAMPLES}")
    for i in positions:
        if tokens[i][1] in "<>":
            raise ValueError(f"rule {text!r} is strict; use {tokens[i][1]}= instead of {tokens[i][1]}")
    edges = [-1, *positions, len(tokens)]
    sides = [_side(tokens[a + 1 : b], text) for a, b in pairwise(edges)]
    relations = [SAME.get(tokens[i][1], tokens[i][1]) for i in positions]
    return [
        _rule(left, relation, right, tolerance, text)
        for left, relation, right in zip(sides, relations, sides[1:], strict=False)
    ]


def _tokens(text: str) -> list[Token]:
    """Return the tokens of a rule's text as pairs (kind, word); raise ValueError at unknown characters."""
    found, place = [], 0
    while text[place:].strip():
        match = TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise ValueError(f"rule {text!r} cannot be read at {text[place:].strip()!r}; {EXAMPLES}")
        kind, word = match.lastgroup, match[match.lastgroup]
        if kind == "quoted":
            kind, word = "name", word[1:-1].replace(2 * word[0], word[0])
        found.append((kind, word))
        place = match.end()
    return found


def _split_tolerance(tokens: list[Token], text: str) -> tuple[list[Token], Fraction]:
    """Return the tokens before a tolerance such as +- 2, and the tolerance: 0 if there is none."""
    kinds = [kind for kind, _ in tokens]
    if "tolerance" not in kinds:
        return tokens, Fraction(0)
    relations = [SAME.get(word, word) for kind, word in tokens if kind == "relation"]
    if relations and relations != ["="]:
        raise ValueError(f"rule {text!r} has a tolerance but is not one equation; {WITH_TOLERANCE}")
    place = kinds.index("tolerance")
    name, tolerance, end = _product(tokens, place + 1, text)
    if name is not None or end < len(tokens):
        raise ValueError(f"rule {text!r} does not end in its tolerance, a number; {WITH_TOLERANCE}")
    return tokens[:place], tolerance


def _side(tokens: list[Token], text: str) -> Side:
    """Parse the tokens of one side of a rule; return the factor of each column and the constant."""
    factors: dict[str, Fraction] = {}
    constant, place = Fraction(0), 0
    while place < len(tokens) or place == 0:
        sign = 1
        if place > 0 and tokens[place] not in {("sign", "+"), ("sign", "-")}:
            raise ValueError(f"rule {text!r} lacks a sign before {tokens[place][1]!r}; {EXAMPLES}")
        while place < len(tokens) and tokens[place] in {("sign", "+"), ("sign", "-")}:
            sign *= -1 if tokens[place][1] == "-" else 1
            place += 1
        name, number, place = _product(tokens, place, text)
        if name is None:
            constant += sign * number
        else:
            factors[name] = factors.get(name, Fraction(0)) + sign * number
    return factors, constant


def _product(tokens: list[Token], place: int, text: str) -> tuple[str | None, Fraction, int]:
    """Parse a product of numbers and at most one column; return column, number and the next position."""
    name, number, by = None, Fraction(1), "*"
    while True:
        kind, word = tokens[place] if place < len(tokens) else ("end", "")
        if kind == "number" and not (by == "/" and Fraction(word) == 0):
            number = number * Fraction(word) if by == "*" else number / Fraction(word)
        elif kind == "name" and name is None and by == "*":
            name = word
        else:
            what = f"at {word!r}" if word else "to its end"
            raise ValueError(f"rule {text!r} cannot be read {what}; {EXAMPLES}")
        place += 1
        if place == len(tokens) or tokens[place] not in {("sign", "*"), ("sign", "/")}:
            return name, number, place
        by, place = tokens[place][1], place + 1


def _rule(left: Side, relation: str, right: Side, tolerance: Fraction, text: str) -> Rule:
    """Return the rule "left relation right" with all columns on one side and coprime integer factors."""
    names = list(dict.fromkeys([*left[0], *right[0]]))
    factors = {name: left[0].get(name, Fraction(0)) - right[0].get(name, Fraction(0)) for name in names}
    factors = {name: factor for name, factor in factors.items() if factor}
    if not factors:
        raise ValueError(f"rule {text!r} names no column, or its columns cancel out; {EXAMPLES}")
    if relation == ">=":
        factors = {name: -factor for name, factor in factors.items()}
    constant = (right[1] - left[1]) * (-1 if relation == ">=" else 1)
    whole = lcm(*(factor.denominator for factor in factors.values()))
    size = Fraction(whole, gcd(*(int(factor * whole) for factor in factors.values())))
    whole_factors = {name: int(factor * size) for name, factor in factors.items()}
    return rule_of(whole_factors, constant * size, equality=relation == "=", tolerance=tolerance * size)


def rule_of(
    factors: dict[str, int], constant: Fraction, *, equality: bool, tolerance: Fraction = Fraction(0)
) -> Rule:
    """Return a rule with its normal text: a total before its parts, a column before its bound."""
    subject = _subject(factors)
    if equality and factors[subject] < 0:
        factors, constant = {name: -factor for name, factor in factors.items()}, -constant
    ahead = factors[subject] > 0  # then the parts that add up have negative factors
    rest = sorted(factors.items(), key=lambda item: (item[1] > 0) == ahead)
    ordered = {subject: factors[subject], **dict(rest)}
    text = _text(ordered, constant, equality=equality)
    if tolerance:
        text += f" +- {number_text(tolerance)}"
    return Rule(tuple(ordered.items()), equality, constant, text, tolerance)


def _subject(factors: dict[str, int]) -> str:
    """Return the column that stands alone on the left of a rule's text: a total if there is one."""
    for sign in (1, -1):
        same = [name for name, factor in factors.items() if factor * sign > 0]
        if len(same) == 1 and abs(factors[same[0]]) == 1 and len(factors) > 2:
            return same[0]
    return next((name for name, factor in factors.items() if abs(factor) == 1), next(iter(factors)))


def _text(factors: dict[str, int], constant: Fraction, *, equality: bool) -> str:
    """Return the text of a rule: its first column on the left and all other terms on the right."""
    (subject, factor), *rest = factors.items()
    relation = "=" if equality else "<="
    if factor < 0:
        relation, constant = TURNED[relation], -constant
        rest = [(name, -other) for name, other in rest]
    parts = [(-other, quoted(name)) for name, other in rest]
    words: list[str] = []
    for other, name in parts:
        sign = "-" if other < 0 else "+"
        size = "" if abs(other) == 1 else f"{abs(other)}*"
        words.append(f"{sign} {size}{name}" if words else f"{'-' * (other < 0)}{size}{name}")
    if constant or not words:
        number = number_text(abs(constant))
        first = f"{'-' * (constant < 0)}{number}"
        words.append(f"{'-' if constant < 0 else '+'} {number}" if words else first)
    size = "" if abs(factor) == 1 else f"{abs(factor)}*"
    return f"{size}{quoted(subject)} {relation} {' '.join(words)}"


def quoted(name: str) -> str:
    """Return a column name, in backquotes if it is no plain identifier."""
    return name if PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def number_text(number: Fraction) -> str:
    """Return the text of a number: an exact decimal or, if there is none, a fraction."""
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if number.denominator == 1 or rest > 1:
        return str(number)
    decimals = next(d for d in range(400) if (number * 10**d).denominator == 1)
    digits = str(int(number * 10**decimals)).rjust(decimals + 1, "0")
    return f"{digits[:-decimals]}.{digits[-decimals:]}"


def parsed(text: object, names: list[str]) -> list[Rule]:
    """Return the rules in a text; raise ValueError if the table lacks one of their columns."""
    if not isinstance(text, str):
        raise TypeError(f"rule {text!r} is no text; {EXAMPLES}")
    rules = parse(text)
    checks.require_known([name for rule in rules for name in rule.columns], names, "column of an edit rule")
    return rules
