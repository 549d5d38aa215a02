"""Edit rules on masked data: which columns they bind, and the repair after a masking."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit import rules
from sdckit.core import checks
from sdckit.core.table import decimals_of, untouched
from sdckit.core.text import plural, shortened
from sdckit.rules.parse import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.prepared import PreparedTable
    from sdckit.core.registry import Method
    from sdckit.core.table import Table
    from sdckit.kernels.jit import Bools, Floats
    from sdckit.rules import Rules


NAMED = 4  # so many rules a sentence names


@dataclass(frozen=True)
class Edits:
    """The edit rules of a table, with its masked columns and those that stay unchanged.

    `values` holds the table's own values of all columns that a rule names.
    """

    rules: Rules
    masked: tuple[str, ...]  # the columns that a masking changes,
    values: Floats
    kept: tuple[str, ...] = ()  # except for those that the method's parameters keep

    def keeping(self, kept: Sequence[str]) -> Edits:
        """Return these edit rules with further columns that must not change."""
        return replace(self, kept=tuple(kept))

    def is_free(self, name: str) -> bool:
        """Return True if the repair may change this column."""
        return name in self.masked and name not in self.kept

    @property
    def free(self) -> Bools:
        """Which columns of the rules the repair may change."""
        return np.array([self.is_free(name) for name in self.rules.columns])

    def allow(self, method: Method) -> None:
        """Raise ValueError for a rule on an unmasked column that would break up the groups of a method."""
        for rule, text in zip(self.rules.rules, self.rules.texts, strict=True):
            fixed = [name for name in rule.columns if not self.is_free(name)]
            if method.group_size is not None and fixed and len(fixed) < len(rule.columns):
                raise ValueError(
                    f"{method.name} hides records in groups, and the rule {text} would tell them apart by "
                    f"{fixed[0]!r}, which is not masked; mask it too or drop the rule"
                )

    @property
    def known(self) -> Rules | None:
        """The rules on masked columns alone, which an intruder can apply to a masked record."""
        return self.rules.within(self.masked)

    @property
    def listed(self) -> str:
        """Text of the first few rules."""
        return shortened(self.rules.texts, NAMED, "; ")

    def table(self, masked: Floats) -> Floats:
        """Return the columns of the rules, with masked values where a column is masked."""
        values = self.values.copy(order="F")
        for j, name in enumerate(self.rules.columns):
            if name in self.masked:
                values[:, j] = masked[:, self.masked.index(name)]
        return values

    def repaired(self, masked: Floats, places: Sequence[int] | None) -> Floats:
        """Return the masked columns with the smallest change that makes the rules hold."""
        columns = self.rules.columns
        decimals = None
        if places is not None:
            of = dict(zip(self.masked, places, strict=True))
            decimals = [
                of[name] if name in of else decimals_of(self.values[:, j]) for j, name in enumerate(columns)
            ]
        found = self.rules.repaired(self.table(masked), decimals, self.free)
        result = masked.copy(order="F")
        for j, name in enumerate(columns):
            if self.is_free(name):
                result[:, self.masked.index(name)] = found[:, j]
        return result

    def told(self, before: Floats, after: Floats) -> list[str]:
        """Return sentences on what the repair changed and what it suppressed."""
        lost = int((np.isnan(after) & ~np.isnan(before)).sum())
        touched = int(((before != after) & ~np.isnan(before)).sum()) - lost
        cells = int((~np.isnan(before)).sum())
        rate = f"{touched} of {cells} masked cells were changed"
        complete = " without a missing cell" if np.isnan(after).any() else ""
        told = [f"edit rules hold in every record{complete} ({self.listed}): {rate}"]
        if lost:
            told.append(f"cells that could not meet the edit rules and were suppressed: {lost}")
        return told

    def warn_of_originals(self, original: Floats, before: Floats, after: Floats) -> None:
        """Warn of masked columns in which the repair restores every original value."""
        back = untouched(original, after) & ~untouched(original, before)
        found = ", ".join(repr(name) for name, idle in zip(self.masked, back, strict=True) if idle)
        if found:
            warnings.warn(
                f"not masked, the edit rules bring every original value back: {found}; "
                "also mask the other columns of these rules, or drop the rules",
                stacklevel=5,
            )


def named_columns(given: Any, table: Table) -> list[str]:
    """Return the numeric columns that declared rules name, whatever their role."""
    if isinstance(given, rules.Rules):
        return list(given.columns)
    declared = [rule for text in _texts(given) if not rules.asks_to_discover(text) for rule in parse(text)]
    names = [name for rule in declared for name in rule.columns]
    checks.known_columns(names, table.names, "column of an edit rule")
    return table.numeric(names) if names else []


def _texts(given: Any) -> list[str]:
    """Return the rules that are given as text; `rules_of` refuses everything else."""
    several = given if isinstance(given, (list, tuple)) else [given]
    return [text for text in several if isinstance(text, str)]


def edits_of(given: Any, data: PreparedTable) -> Edits | None:
    """Build the edit rules, declared or to be discovered, for a table of which some columns are masked."""
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
    places = [names.index(name) for name in found.columns]
    edits = Edits(found, masked, np.asfortranarray(values[:, places]))
    broken = {
        text: int(count)
        for text, count in zip(found.texts, found.violations(edits.values), strict=True)
        if count
    }
    for text, count in broken.items():
        often = f"{count} {plural(count, 'record')}"
        warnings.warn(
            f"the original itself breaks the rule {text} in {often}; the masked file will not",
            stacklevel=5,
        )
    return edits
