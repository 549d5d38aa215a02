"""Edit rules: linear relations that every record of a file must satisfy; declared or discovered.

Bounds (AGE >= 0), totals (TOTAL = A + B) and other linear relations (TAX <= INCOME). `repair` changes masked
records so that they hold again; `project` corrects released records as an intruder with the rules can.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.rules import project, repair
from sdckit.rules.discover import discovered
from sdckit.rules.parse import EXAMPLES, parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.rules.parse import Rule

DISCOVER = "discover"


@dataclass(frozen=True)
class Rules:
    """Edit rules on some columns of a table, as `rules_of` returns them.

    Matrices that its methods take have one column for each name in `columns`, in that order.

    Attributes
    ----------
    columns
        The columns that any rule names, in the order of the table.
    rules
        The rules themselves.
    """

    columns: tuple[str, ...]
    rules: tuple[Rule, ...]

    def __repr__(self) -> str:
        return f"Rules({'; '.join(self.texts)})"

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Text of each edit rule in its normal form, such as "total = a + b"."""
        return tuple(rule.text for rule in self.rules)

    def broken(self, values: Floats) -> Bools:
        """Return a boolean matrix: which records (rows) break which edit rules (columns).

        A bound is compared as it stands. A sum holds if it misses its tolerance by no more than what the
        rounding of floating-point numbers explains: for numbers with few decimals, if it holds in decimal
        arithmetic.
        A record with a missing cell in a rule's columns does not break that rule.
        """
        found = np.zeros((len(values), len(self.rules)), np.bool_, order="F")
        place = {name: j for j, name in enumerate(self.columns)}
        for r, rule in enumerate(self.rules):
            found[:, r] = rule.broken([values[:, place[name]] for name in rule.columns])
        return found

    def violations(self, values: Floats) -> Ints:
        """Return the number of records that break each edit rule."""
        return self.broken(values).sum(axis=0)

    def repaired(
        self,
        values: Floats,
        decimals: Sequence[int] | None,
        free: Sequence[bool] | Bools,
        spreads: Floats | None = None,
    ) -> Floats:
        """Return the records with the smallest changes that make all rules hold; see `repair.repaired`."""
        may_change = np.asarray(free, np.bool_)
        return repair.repaired(self.columns, self.rules, values, decimals, may_change, spreads)

    def projected(self, values: Floats, spread: Floats) -> Floats:
        """Return for each record the nearest point that satisfies the rules; see `project.projected`."""
        unit = np.asarray(spread, np.float64)
        halves = [half for rule in self.rules for half in rule.halves]
        return project.projected(self.columns, halves, values, unit, self.broken(values))

    def within(self, columns: Sequence[str]) -> Rules | None:
        """Return those rules that name no other than the given columns; None if there are none."""
        known = set(columns)
        return _collected([rule for rule in self.rules if known.issuperset(rule.columns)], self.columns)


def asks_to_discover(text: object) -> bool:
    """Return True for the keyword "discover", which asks for rules to be found in the data."""
    return isinstance(text, str) and text.strip().lower() == DISCOVER


def rules_of(given: Any, names: Sequence[str], values: Floats) -> Rules | None:
    """Return edit rules from texts such as "TOTAL = A + B", or discover them in the original data.

    Parameters
    ----------
    given
        None; a rule such as "TOTAL = A + B", "TOTAL = A + B +- 2", "0 <= AGE <= 120" or "TAX <= INCOME";
        "discover", which finds totals that are the sum of other columns in every complete record, and columns
        without a negative value; a list of these; or rules that were made before.
    names, values
        The table's numeric columns.

    Returns
    -------
    Rules or None
        None where there is no rule.

    Examples
    --------
    >>> import numpy as np
    >>> parts = np.arange(40.0).reshape(20, 2) ** 2
    >>> table = np.column_stack([parts.sum(axis=1), parts])
    >>> rules_of(["discover", "a <= 2000"], ["total", "a", "b"], table)
    Rules(a <= 2000; total = a + b; total >= 0; a >= 0; b >= 0)
    """
    if isinstance(given, Rules):
        checks.require_known(given.columns, names, "column of an edit rule")
        return given
    if given is None:
        return None
    if not isinstance(given, (str, list, tuple)):
        raise TypeError(f"rules are {given!r}; {EXAMPLES}, or give 'discover'")
    texts = [given] if isinstance(given, str) else list(given)
    declared = [text for text in texts if not asks_to_discover(text)]
    found = [rule for text in declared for rule in parsed(text, list(names))]
    if len(declared) < len(texts):
        found += discovered(names, values)
    rules = _collected(found, names)
    if rules is not None and declared:
        _refuse_contradictions(rules, values[:, [list(names).index(name) for name in rules.columns]])
    return rules


def _collected(found: Sequence[Rule], names: Sequence[str]) -> Rules | None:
    """Return `Rules` made of the given rules without duplicates; None if there is no rule."""
    first: dict[object, Rule] = {}
    for rule in found:
        first.setdefault(rule.meaning, rule)
    rules = tuple(first.values())
    used = {name for rule in rules for name in rule.columns}
    return Rules(tuple(name for name in names if name in used), rules) if rules else None


def _refuse_contradictions(rules: Rules, values: Floats) -> None:
    """Raise ValueError for rules that no record can satisfy, naming a smallest contradictory set."""
    complete = ~np.isnan(values).any(axis=1)
    if (complete & ~rules.broken(values).any(axis=1)).any() or _satisfiable(rules.rules, rules.columns):
        return
    left = list(rules.rules)
    for rule in rules.rules:
        rest = [other for other in left if other is not rule]
        if not _satisfiable(rest, rules.columns):
            left = rest
    listed = "; ".join(rule.text for rule in left)
    raise ValueError(f"no record can satisfy all of these rules: {listed}; correct or drop one")


def _satisfiable(rules: Sequence[Rule], columns: Sequence[str]) -> bool:
    """Return True if some values of the columns satisfy all rules, by linear programming."""
    from scipy.optimize import linprog  # noqa: PLC0415 - slow to import, rarely needed

    halves = [half for rule in rules for half in rule.halves]
    size = max([1.0, *(abs(float(rule.constant)) for rule in halves)])  # the unit of all columns
    sides: dict[bool, tuple[list[Any], list[float]]] = {True: ([], []), False: ([], [])}
    for rule in halves:
        factors = dict(rule.terms)
        sides[rule.equality][0].append([factors.get(name, 0) for name in columns])
        sides[rule.equality][1].append(float(rule.constant) / size)
    (equal, totals), (below, limits) = sides[True], sides[False]
    found = linprog(
        np.zeros(len(columns)),
        A_ub=below or None,
        b_ub=limits or None,
        A_eq=equal or None,
        b_eq=totals or None,
        bounds=(None, None),
    )
    return found.status != 2  # infeasible
