"""Edit rules applied to a masking: which columns the repair may change, the repair, and notes on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit import rules
from sdckit.core import checks
from sdckit.core.table import decimals_of, unchanged_columns
from sdckit.core.text import plural
from sdckit.core.warning_texts import warn
from sdckit.rules.parse import parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.core.prepared import PreparedTable
    from sdckit.core.registry import Method
    from sdckit.core.table import Table
    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.rules import Rules


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

    @property
    def summary(self) -> str:
        """Texts of all rules, joined by semicolons."""
        return summary_of(self.rules)

    def values_with(self, masked: Floats) -> Floats:
        """Return the columns that rules name, with the masked values in place of the original ones."""
        values = self.values.copy(order="F")
        for j, name in enumerate(self.rules.columns):
            if name in self.masked:
                values[:, j] = masked[:, self.masked.index(name)]
        return values

    def repaired(self, masked: Floats, decimals: Sequence[int] | None) -> Floats:
        """Return the masked columns with the smallest changes that make the edit rules hold."""
        columns = self.rules.columns
        if decimals is not None:
            known = {} if self.whole is None else self.whole.decimals
            given = {**known, **dict(zip(self.masked, decimals, strict=True))}
            decimals = [
                given[name] if name in given else decimals_of(self.values[:, j])
                for j, name in enumerate(columns)
            ]
        spreads = None if self.whole is None else self.whole.spreads
        found = self.rules.repaired(self.values_with(masked), decimals, self.free, spreads)
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

    def plus(self, other: RepairCounts) -> RepairCounts:
        """Return the counts of two parts of a file together."""
        return RepairCounts(*(a + b for a, b in zip(self, other, strict=True)))


def repair_notes(found: Rules, counts: RepairCounts) -> list[str]:
    """Return sentences on how many masked cells a repair changed and how many it suppressed."""
    rate = f"{counts.changed} of {counts.cells} masked cells were changed"
    complete = " without a missing cell" if counts.missing else ""
    notes = [f"edit rules hold in every record{complete} ({summary_of(found)}): {rate}"]
    if counts.lost:
        notes.append(f"cells that could not meet the edit rules and were suppressed: {counts.lost}")
    return notes


def summary_of(found: Rules) -> str:
    """Return the texts of all rules, joined by semicolons."""
    return "; ".join(found.texts)


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
    if isinstance(given, rules.Rules):
        return list(given.columns)
    declared = [rule for text in _texts(given) if not rules.asks_to_discover(text) for rule in parse(text)]
    names = [name for rule in declared for name in rule.columns]
    checks.require_known(names, table.names, "column of an edit rule")
    return table.numeric_columns(names) if names else []


def _texts(given: Any) -> list[str]:
    """Return those of the given rules that are text, as a list; `rules_of` refuses all others."""
    several = given if isinstance(given, (list, tuple)) else [given]
    return [text for text in several if isinstance(text, str)]


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
    found = rules.rules_of(given, names, values)
    if found is None or not set(found.columns) & set(masked):
        return None
    column_numbers = [names.index(name) for name in found.columns]
    edits = Edits(found, masked, np.asfortranarray(values[:, column_numbers]))
    warn_of_broken_rules(found, found.violations(edits.values))
    return edits
