"""Edit rules on masked data: what the columns of a table have to satisfy, put right after a masking."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit import frames, rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.compiled import Bools, Floats
    from sdckit.rules import Rules


NAMED = 4  # so many rules a sentence names


@dataclass(frozen=True)
class Edits:
    """The rules of a table, for the columns that are masked and for others that stay as they are.

    `values` holds the table's own values of all columns that a rule names.
    """

    rules: Rules
    masked: tuple[str, ...]  # the columns that a masking changes
    values: Floats

    @property
    def free(self) -> Bools:
        """Which of the rules' columns may change."""
        return np.array([name in self.masked for name in self.rules.columns])

    @property
    def known(self) -> Rules | None:
        """The rules that are about masked columns alone: an intruder applies them to a masked record."""
        return self.rules.within(self.masked)

    def table(self, masked: Floats) -> Floats:
        """The rules' columns with masked values where there are any."""
        values = self.values.copy(order="F")
        for j, name in enumerate(self.rules.columns):
            if name in self.masked:
                values[:, j] = masked[:, self.masked.index(name)]
        return values

    def repaired(self, masked: Floats, places: Sequence[int] | None) -> Floats:
        """The masked columns with as little changed as the rules ask for."""
        columns = self.rules.columns
        decimals = None
        if places is not None:
            of = dict(zip(self.masked, places, strict=True))
            decimals = [
                of[name] if name in of else frames.decimals_of(self.values[:, j])
                for j, name in enumerate(columns)
            ]
        found = self.rules.repaired(self.table(masked), decimals, self.free)
        result = masked.copy(order="F")
        for j, name in enumerate(columns):
            if name in self.masked:
                result[:, self.masked.index(name)] = found[:, j]
        return result

    def told(self, before: Floats, after: Floats) -> list[str]:
        """What the repair did, in words."""
        lost = int((np.isnan(after) & ~np.isnan(before)).sum())
        touched = int(((before != after) & ~np.isnan(before)).sum()) - lost
        cells = int((~np.isnan(before)).sum())
        texts = self.rules.texts
        listed = "; ".join(texts[:NAMED]) + (f" and {len(texts) - NAMED} more" if texts[NAMED:] else "")
        told = [f"edit rules hold in every record ({listed}): {touched} of {cells} masked cells were changed"]
        if lost:
            told.append(f"{lost} cells could not meet the edit rules and were suppressed")
        return told


def edits_of(
    given: Any, table: frames.Table, masked: Sequence[str], *, roles: Sequence[str], na: Any
) -> Edits | None:
    """The rules that a user gave or wants discovered, for a table of which some columns are masked."""
    if given is None:
        return None
    others = table.numeric(None, leave_out=roles)
    names = list(dict.fromkeys([*masked, *others]))
    names.sort(key=table.names.index)
    values = table.floats(names, na)
    found = rules.rules_of(given, names, values)
    if found is None or not set(found.columns) & set(masked):
        return None
    places = [names.index(name) for name in found.columns]
    edits = Edits(found, tuple(masked), np.asfortranarray(values[:, places]))
    broken = {
        text: int(count)
        for text, count in zip(found.texts, found.violations(edits.values), strict=True)
        if count
    }
    for text, count in broken.items():
        warnings.warn(
            f"the original itself breaks the rule {text} in {count} records; the masked file will not",
            stacklevel=4,
        )
    return edits
