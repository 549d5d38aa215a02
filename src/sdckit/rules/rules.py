"""Edit rules: linear relations that every record of a file must satisfy; declared or discovered.

Bounds (AGE >= 0), totals (TOTAL = A + B) and other linear relations (TAX <= INCOME). `Rules` counts the
records that break them and corrects released records as an intruder with the rules can; `Edits` applies them
to a masking: which columns the repair may change, the repair, and notes on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.core.checks import warn
from sdckit.core.table import decimals_of, unchanged_columns
from sdckit.core.text import plural
from sdckit.kernels.jit import inner, kernel
from sdckit.rules import repair
from sdckit.rules.discover import discovered
from sdckit.rules.parse import EXAMPLES, parse, parsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.core.prepared import PreparedTable
    from sdckit.core.registry import Method
    from sdckit.core.table import Table
    from sdckit.rules.parse import Rule

SWEEPS = 20_000  # most passes over all rules, in a projection
SMALL = 1e-12  # the sweeps end once all moves are below this share of the record's size


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
        return f"Rules({self.summary})"

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Text of each edit rule in its normal form, such as "total = a + b"."""
        return tuple(rule.text for rule in self.rules)

    @property
    def summary(self) -> str:
        """Texts of all rules, joined by semicolons."""
        return "; ".join(self.texts)

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
        """Return for each record the nearest point that satisfies all edit rules, without rounding.

        Near is Euclidean in units of `spread`; columns without spread stay as they are. Rules with a missing
        cell do not count for their record, and records that satisfy all rules stay exactly as they are.

        Notes
        -----
        Dykstra's alternating projections, at most 20,000 sweeps.

        References
        ----------
        Boyle & Dykstra 1986, A method for finding projections onto the intersection of convex sets in Hilbert
        spaces.

        Examples
        --------
        >>> import numpy as np
        >>> table = np.array([[5.0, 2.0, 3.0], [9.0, 4.0, 2.0]])
        >>> rules = rules_of("total = a + b", ["total", "a", "b"], table)
        >>> print(rules.projected(table, np.array([1.0, 1.0, 1.0])))
        [[5. 2. 3.]
         [8. 5. 3.]]
        """
        found = np.array(values, np.float64, order="C")
        rows = np.flatnonzero(self.broken(values).any(axis=1) & ~np.isinf(values).any(axis=1))
        if not rows.size:
            return found
        unit = np.asarray(spread, np.float64)
        unit = np.where(np.isfinite(unit) & (unit > 0), unit, 0.0)
        halves = [half for rule in self.rules for half in rule.halves]
        factors = np.zeros((len(halves), len(self.columns)))
        for r, half in enumerate(halves):
            for name, factor in half.terms:
                factors[r, self.columns.index(name)] = factor
        constants = np.array([float(half.constant) for half in halves])
        equality = np.array([half.equality for half in halves])
        chosen = found[rows]
        _project(chosen, factors, constants, equality, unit)
        found[rows] = chosen
        return found

    def within(self, columns: Sequence[str]) -> Rules | None:
        """Return those rules that name no other than the given columns; None if there are none."""
        known = set(columns)
        return _collected([rule for rule in self.rules if known.issuperset(rule.columns)], self.columns)


@kernel
def _project(cells: Floats, factors: Floats, constants: Floats, equality: Bools, unit: Floats) -> None:
    """Project each record in place onto the rules that it breaks, by Dykstra's algorithm."""
    past = np.empty(len(factors))  # how far each inequality has pushed, as a multiple of its direction
    lengths = np.empty(len(factors))
    for i in range(len(cells)):
        record = cells[i]
        limit = SMALL * _direction_lengths(record, factors, unit, lengths)
        past[:] = 0.0
        for _ in range(SWEEPS):
            largest = 0.0
            for r in range(len(factors)):
                if lengths[r] > 0:
                    move = _excess(record, factors[r], constants[r], lengths[r])
                    if not equality[r]:
                        move = max(move, -past[r])
                        past[r] += move
                    largest = max(largest, abs(move) * np.sqrt(lengths[r]))
                    for j in range(record.size):
                        if factors[r, j] != 0:
                            record[j] -= move * factors[r, j] * unit[j] ** 2
            if largest <= limit:
                break


@inner
def _direction_lengths(record: Floats, factors: Floats, unit: Floats, lengths: Floats) -> float:
    """Write each rule's squared direction length (0 or less: not used); return the record's size."""
    size = 0.0
    lengths[:] = 0.0
    for j in range(record.size):
        missing = np.isnan(record[j])
        if not missing and unit[j] > 0:
            size = max(size, abs(record[j]) / unit[j])
        for r in range(len(factors)):
            if factors[r, j] != 0:
                lengths[r] += -np.inf if missing else (factors[r, j] * unit[j]) ** 2
    return size


@kernel
def _excess(record: Floats, factors: Floats, constant: float, length: float) -> float:
    """Return by how much a record exceeds a rule, as a multiple of the rule's direction."""
    rest = -constant
    for j in range(record.size):
        if factors[j] != 0:
            rest += factors[j] * record[j]
    return rest / length


# --- from texts, or discovered ---


def asks_to_discover(text: object) -> bool:
    """Return True for the keyword "discover", which asks for rules to be found in the data."""
    return isinstance(text, str) and text.strip().lower() == "discover"


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


# --- applied to a masking ---


class WholeFile(NamedTuple):
    """Decimals by name and spreads of the columns that rules name, in a file of which a part is repaired.

    The spreads are the original's: those of the masked file are only known when all of it is masked.
    """

    decimals: Mapping[str, int]
    spreads: Floats


@dataclass(frozen=True)
class Edits:
    """The edit rules of a table, its original values, its masked columns and those kept unchanged.

    `values` holds the original values of all columns that a rule names.
    """

    rules: Rules
    masked: tuple[str, ...]  # the columns that the method masks
    values: Floats
    kept: tuple[str, ...] = ()  # masked columns that the method's parameters keep unchanged
    whole: WholeFile | None = None  # where `values` are a part of a file

    def keeping(self, kept: Sequence[str]) -> Edits:
        """Return a copy of these edit rules in which the columns `kept` must not change."""
        return replace(self, kept=tuple(kept))

    def is_free(self, name: str) -> bool:
        """Return True if the repair may change the named column: it is masked and not kept."""
        return name in self.masked and name not in self.kept

    @property
    def free(self) -> Bools:
        """Boolean for each column that a rule names: True where the repair may change it."""
        return np.array([self.is_free(name) for name in self.rules.columns])

    def refuse_split_groups(self, method: Method) -> None:
        """Raise ValueError if a rule with an unmasked column would split the groups of a method."""
        for rule, text in zip(self.rules.rules, self.rules.texts, strict=True):
            fixed = [name for name in rule.columns if not self.is_free(name)]
            if method.group_size is not None and fixed and len(fixed) < len(rule.columns):
                raise ValueError(
                    f"{method.name} hides records in groups, and the rule {text} would distinguish them by "
                    f"{fixed[0]!r}, which is not masked; mask it too or drop the rule"
                )

    @property
    def public_rules(self) -> Rules | None:
        """The rules on masked columns alone, which an intruder can apply to a masked record, or None."""
        return self.rules.within(self.masked)

    def repaired(self, masked: Floats, decimals: Sequence[int] | None) -> Floats:
        """Return the masked columns with the smallest changes that make the edit rules hold."""
        columns, values = self.rules.columns, self.values.copy(order="F")
        for j, name in enumerate(columns):
            if name in self.masked:
                values[:, j] = masked[:, self.masked.index(name)]
        if decimals is not None:
            known = {} if self.whole is None else self.whole.decimals
            given = {**known, **dict(zip(self.masked, decimals, strict=True))}
            decimals = [
                given[name] if name in given else decimals_of(self.values[:, j])
                for j, name in enumerate(columns)
            ]
        spreads = None if self.whole is None else self.whole.spreads
        found = self.rules.repaired(values, decimals, self.free, spreads)
        result = masked.copy(order="F")
        for j, name in enumerate(columns):
            if self.is_free(name):
                result[:, self.masked.index(name)] = found[:, j]
        return result

    def notes(self, before: Floats, after: Floats) -> list[str]:
        """Return sentences on how many masked cells the repair changed and how many it suppressed."""
        return repair_notes(self.rules, RepairCounts.of(before, after))

    def warn_of_originals(self, original: Floats, before: Floats, after: Floats) -> None:
        """Warn of masked columns in which the repair brings every original value back."""
        back = unchanged_columns(original, after) & ~unchanged_columns(original, before)
        warn_of_values_brought_back(self.masked, back)


class RepairCounts(NamedTuple):
    """How many masked cells there are, and how many of them a repair changed, suppressed or left missing."""

    cells: int = 0
    changed: int = 0
    lost: int = 0
    missing: int = 0

    @classmethod
    def of(cls, before: Floats, after: Floats) -> RepairCounts:
        """Return the counts of a repair from the masked columns before and after it."""
        seen, gone = ~np.isnan(before), np.isnan(after)
        lost = int((gone & seen).sum())
        return cls(int(seen.sum()), int(((before != after) & seen).sum()) - lost, lost, int(gone.sum()))


def repair_notes(found: Rules, counts: RepairCounts) -> list[str]:
    """Return sentences on how many masked cells a repair changed and how many it suppressed."""
    rate = f"{counts.changed} of {counts.cells} masked cells were changed"
    complete = " without a missing cell" if counts.missing else ""
    notes = [f"edit rules hold in every record{complete} ({found.summary}): {rate}"]
    if counts.lost:
        notes.append(f"cells that could not meet the edit rules and were suppressed: {counts.lost}")
    return notes


def warn_of_values_brought_back(masked: Sequence[str], back: Bools) -> None:
    """Warn of masked columns, marked in `back`, to which the repair brings every original value back."""
    found = ", ".join(repr(name) for name, idle in zip(masked, back, strict=True) if idle)
    if found:
        warn(
            f"not masked, the edit rules bring every original value back: {found}; "
            "also mask the other columns of these rules, or drop the rules"
        )


def warn_of_broken_rules(found: Rules, counts: Sequence[int] | Ints) -> None:
    """Warn of each rule that the original breaks in so many records."""
    for text, count in zip(found.texts, counts, strict=True):
        if count:
            often = f"{count} {plural(int(count), 'record')}"
            warn(f"the original itself breaks the rule {text} in {often}; the masked file will not")


def named_columns(given: Any, table: Table) -> list[str]:
    """Return the numeric columns of a table that rules given as text name, whatever their role."""
    if isinstance(given, Rules):
        return list(given.columns)
    several = given if isinstance(given, (list, tuple)) else [given]
    texts = [text for text in several if isinstance(text, str) and not asks_to_discover(text)]
    names = [name for text in texts for rule in parse(text) for name in rule.columns]
    checks.require_known(names, table.names, "column of an edit rule")
    return table.numeric_columns(names) if names else []


def edits_of(given: Any, data: PreparedTable) -> Edits | None:
    """Return the edit rules, declared or discovered, of prepared data; warn of rules the original breaks."""
    if given is None:
        return None
    if data.table is None:
        raise ValueError("the prepared data have no table to read edit rules on; prepare the table anew")
    masked = data.columns
    names = list(dict.fromkeys([*masked, *named_columns(given, data.table)]))
    names.sort(key=data.table.names.index)
    values = data.matrix(names)
    found = rules_of(given, names, values)
    if found is None or not set(found.columns) & set(masked):
        return None
    column_numbers = [names.index(name) for name in found.columns]
    edits = Edits(found, masked, np.asfortranarray(values[:, column_numbers]))
    warn_of_broken_rules(found, found.violations(edits.values))
    return edits
