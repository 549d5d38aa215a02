"""Edit rules of a file with the number of records in which each holds: exact ones, then near ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.checks import FEWEST_REPORTED
from sdckit.core.table import decimals_of
from sdckit.rules.discover import candidates, discovered, equal_columns
from sdckit.rules.near_search import follows, near_relations
from sdckit.rules.parse import number_text, rule_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.rules.near_search import Found
    from sdckit.rules.parse import Rule

MOST = Fraction(80, 100)  # share of the records in which a near sum must hold, exactly or up to rounding
NEARLY_ALL = Fraction(998, 1000)  # share of the records that the tolerance of a rule must cover
WIDEST = 100  # columns among which near sums are searched: the time grows with the cube of their number
RARELY = Fraction(2, 100)  # largest share of negative cells in a column that is nearly never negative


@dataclass(frozen=True)
class CountedRule:
    """An edit rule and the number of records in which it holds.

    Attributes
    ----------
    rule
        The rule itself.
    records
        Records that are complete in the rule's columns.
    held
        Those of them in which the rule holds.
    within
        For sums, the smallest tolerance, a number with the decimals of the data, within which at least
        99.8 % of the records hold: 0 for a rule that holds in as many. None for inequalities.
    held_within
        Records that hold within that tolerance. None for inequalities.
    tolerant
        The rule with the tolerance that rounding gives it, if any: a few grid steps. Where more than 0.2 % of
        the records miss a sum by more, the tolerance covers 99.8 % of the others.
    held_tolerant
        Records in which the rule with that tolerance holds.
    """

    rule: Rule
    records: int
    held: int
    within: float | None
    held_within: int | None
    tolerant: Rule
    held_tolerant: int

    @property
    def exact(self) -> bool:
        """Whether the rule holds in all complete records."""
        return self.held == self.records

    @property
    def sure(self) -> bool:
        """Whether 99.8 % of the records satisfy the rule with its tolerance."""
        return self.held_tolerant >= NEARLY_ALL * self.records


def rules_with_counts(names: Sequence[str], values: Floats) -> list[CountedRule]:
    """Return the edit rules of a file with their counts: exact rules, then near sums and near signs.

    Exact rules are those of `rules="discover"`. A near rule is a total that is the sum of other columns in at
    least 80 % of the records, exactly or up to rounding by a few steps of the data's grid, or a column with
    at most 2 % negative cells. Two columns that are equal in most records are a near rule only if the others
    differ by such a rounding. Sums that follow from others are left out; among more than 100 columns no near
    sum is searched. The search draws records with a fixed seed; the counts are those of the whole file.

    Parameters
    ----------
    names, values
        The table's numeric columns; missing cells are NaN.

    Returns
    -------
    list of CountedRule
        Rules that hold in all records, then near sums, the most frequent first, then near signs.

    Examples
    --------
    >>> import numpy as np
    >>> parts = np.arange(400.0).reshape(200, 2) ** 2
    >>> table = np.column_stack([parts.sum(axis=1), parts])
    >>> table[::20, 0] += 2
    >>> [text(counted) for counted in rules_with_counts(["total", "a", "b"], table)][-1]
    'total = a + b holds in 190 of 200 records, within 2 in 200'
    """
    exact = discovered(names, values)
    counted = [count(rule, names, values) for rule in exact]
    signs = _near_signs(names, values)
    return [*counted, *_near_sums(names, values, exact), *signs]


def discovered_with_near(names: Sequence[str], values: Floats) -> tuple[list[Rule], list[CountedRule]]:
    """Return the rules that hold in a file, near sums with their tolerance among them, and other near sums.

    A near sum is among the rules if it holds in 99.8 % of the records within a tolerance that rounding
    explains; the others are broken by more than that.
    """
    exact = discovered(names, values)
    near = list(_near_sums(names, values, exact))
    return [*exact, *(one.tolerant for one in near if one.sure)], [one for one in near if not one.sure]


def text(counted: CountedRule) -> str:
    """Return a sentence such as "T = A + B holds in 939 of 1,000 records, within 2 in 998"."""
    if counted.exact:
        return f"{counted.rule.text} holds in all {counted.records:,} records"
    sentence = f"{counted.rule.text} holds in {counted.held:,} of {counted.records:,} records"
    if counted.within and counted.held_within and counted.held_within - counted.held >= FEWEST_REPORTED:
        sentence += f", within {_upwards(counted.within):,.15g} in {counted.held_within:,}"
    return sentence


def _upwards(gap: float) -> float:
    """Return the next number of one significant digit: a larger gap is that of a single record."""
    step = 10.0 ** math.floor(math.log10(gap))
    return float(f"{math.ceil(gap / step - 1e-9) * step:.6g}")


def offer(counted: CountedRule) -> str:
    """Return a sentence such as "T = A + B +- 2 holds in 998 of 1,000 records, without tolerance in 939"."""
    if counted.tolerant == counted.rule:
        return text(counted)
    often = "all" if counted.held_tolerant == counted.records else f"{counted.held_tolerant:,} of"
    sentence = f"{counted.tolerant.text} holds in {often} {counted.records:,} records"
    return f"{sentence}, without tolerance in {counted.held:,}"


def proposal(counted: CountedRule) -> str:
    """Return a sentence that says in which share of the records a near sum holds, and how to enforce it."""
    sentence = f"{counted.rule.text} holds in {_percent(counted.held, counted.records)} of the records"
    if counted.tolerant.tolerance:
        within = number_text(counted.tolerant.tolerance)
        sentence += f", within +-{within} in {_percent(counted.held_tolerant, counted.records)}"
    return f"{sentence}; add it as a rule with --rule '{counted.tolerant.text}'"


def _percent(part: int, whole: int) -> str:
    """Return a share in percent, rounded down so that only all records are 100 %."""
    return f"{1000 * part // whole / 10:.1f} %"


def count(rule: Rule, names: Sequence[str], values: Floats, rounding: float = 0.0) -> CountedRule:
    """Return a rule with the records of a file in which it holds, and the tolerance of a sum.

    Parameters
    ----------
    rule
        A rule without tolerance.
    names, values
        The table's numeric columns; missing cells are NaN.
    rounding
        The largest amount by which a record may miss a sum due to rounding.
    """
    place = {name: j for j, name in enumerate(names)}
    cells = [values[:, place[name]] for name in rule.columns]
    gaps = np.isnan(cells[0])
    for column in cells[1:]:
        gaps |= np.isnan(column)
    records = len(values) - int(np.count_nonzero(gaps))
    if not rule.equality or len(cells) == 1:
        held = records - int(np.count_nonzero(rule.broken(cells)))
        return CountedRule(rule, records, held, None, None, rule, held)
    total, noise = rule.missed(cells)
    missed = np.where(np.abs(total) > noise, np.abs(total), 0.0)
    missed[gaps] = np.inf
    held = int(np.count_nonzero(missed == 0))
    within = _tolerance(missed, records, cells)
    held_within = int(np.count_nonzero(missed <= within + noise))
    rounded = int(np.count_nonzero(missed <= rounding + noise))
    known = records if rounded >= NEARLY_ALL * records else rounded
    tolerant = rule.within(Fraction(repr(_tolerance(missed, known, cells))))
    held_tolerant = records - int(np.count_nonzero(tolerant.broken(cells)))
    return CountedRule(rule, records, held, within, held_within, tolerant, held_tolerant)


def _tolerance(missed: Floats, records: int, cells: Sequence[Floats]) -> float:
    """Return the smallest tolerance, with the decimals of the data, of 99.8 % of the best so many records."""
    needed = math.ceil(NEARLY_ALL * records)
    if np.count_nonzero(missed == 0) >= needed:
        return 0.0
    record = int(np.argpartition(missed, needed - 1)[needed - 1])
    written = decimals_of(np.array([column[record] for column in cells]))
    return float(np.round(missed[record], written))


def _near_sums(names: Sequence[str], values: Floats, exact: Sequence[Rule]) -> Iterator[CountedRule]:
    """Yield sums that hold in most records and follow from neither exact rules nor other near sums."""
    known = [_relation(rule, names) for rule in exact if rule.equality]
    alike: list[Ints] = []  # two columns that often agree and else differ freely: no rule, but see below
    used = candidates(values)
    if len(used) > WIDEST:
        return
    repeated = {j for j, _ in equal_columns(values, used)}
    for found in near_relations(values, [j for j in used if j not in repeated]):
        relation = found.relation
        if follows(known, relation):
            continue
        # With a column in place of one that it often equals, a sum is the same unless its total is another.
        again = any((other[relation > 0] > 0).any() for other in known)
        if again and follows([*known, *alike], relation):
            continue
        factors = {name: int(factor) for name, factor in zip(names, relation, strict=True) if factor}
        rule = rule_of(factors, Fraction(0), equality=True)
        counted = count(rule, names, values, found.tolerance)
        if _is_frequent(counted, found, names, values):
            is_rule = len(factors) > 2 or (counted.within or 0.0) <= found.tolerance
            (known if is_rule else alike).append(relation)
            if is_rule:
                yield counted


def _relation(rule: Rule, names: Sequence[str]) -> Ints:
    """Return the factors of a rule as a vector with one entry per column of the file."""
    factors = dict(rule.terms)
    return np.array([factors.get(name, 0) for name in names])


def _is_frequent(counted: CountedRule, found: Found, names: Sequence[str], values: Floats) -> bool:
    """Return True if a sum holds in most records of the file, within the tolerance it was found with."""
    if counted.held >= MOST * counted.records:
        return True
    if found.exact:
        return False
    cells = [values[:, list(names).index(name)] for name in counted.rule.columns]
    total, noise = counted.rule.missed(cells)
    return int(np.count_nonzero(np.abs(total) <= found.tolerance + noise)) >= MOST * counted.records


def _near_signs(names: Sequence[str], values: Floats) -> list[CountedRule]:
    """Return the rules "column >= 0" that hold in nearly all observed cells, but not in all."""
    negative = np.count_nonzero(values < 0, axis=0)
    return [
        counted
        for j, name in enumerate(names)
        if 0 < negative[j] <= RARELY * len(values)
        for counted in [count(rule_of({name: -1}, Fraction(0), equality=False), names, values)]
        if counted.records - counted.held <= RARELY * counted.records
    ]
