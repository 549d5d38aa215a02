"""Estimates as they may be published: those of the masked file, and classes of their change.

The exact change and the masked file give the original estimate back. So a change is told in classes and
without its direction, and not at all where a `Guard` withholds it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core.text import plural, shortened
from sdckit.metrics.estimates.classes import ERRORS, PERCENTS, Class, class_of
from sdckit.metrics.estimates.domains import WHOLE
from sdckit.metrics.estimates.guards import Guard
from sdckit.metrics.estimates.result import name_of_row
from sdckit.metrics.estimates.shares import FEW_RECORDS, NO_FIGURE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.metrics.estimates.result import Estimates

KEPT = {"kept": "kept", "none": "kept", "changed": "changed", "lost": "changed", "gained": "changed"}
UNKNOWN = Guard(FEW_RECORDS, None, None)  # of a domain that the original does not have
SCHEMA: dict[str, Any] = {
    "estimate": pl.String,
    "domain": pl.String,
    "masked": pl.Float64,
    "se_masked": pl.Float64,
    "change": pl.String,
    "change_in_se": pl.String,
    "sign": pl.String,
    "significance": pl.String,
    "withheld": pl.String,
}


@dataclass(frozen=True)
class PublicRow:
    """One estimate in one domain as it may be published; classes are None where they are not told.

    `withheld` says why no change is told, and is empty otherwise.
    """

    estimate: str
    domain: str
    masked: float | None
    se_masked: float | None
    change: Class | None = None
    change_in_se: Class | None = None
    sign: str | None = None
    significance: str | None = None
    withheld: str = ""

    @property
    def name(self) -> str:
        """Estimate and domain as one text."""
        return name_of_row(self.estimate, self.domain)

    @property
    def order(self) -> tuple[float, float]:
        """Sorts rows by their classes, those that moved most last; what is withheld comes first."""
        found = [-1.0 if one is None else one.low for one in (self.change_in_se, self.change)]
        return found[0], found[1]

    def texts(self) -> tuple[str | None, str | None]:
        """Return both classes of change in words."""
        ours, theirs = self.change, self.change_in_se
        return (None if ours is None else ours.text("%")), (None if theirs is None else theirs.text("s.e."))


def public_rows(found: Estimates) -> list[PublicRow]:
    """Return the rows of a comparison as they may be published, in the order of the masked file.

    A domain or class that the masked file does not have is not named: of a masked column, its label is a
    value of the original.
    """
    rows = (row for row in found.table.iter_rows(named=True) if _has_public_name(row))
    return [
        _public_row(row, found.guards.get((row["estimate"], row["domain"]), UNKNOWN), found.computable)
        for row in rows
    ]


def _has_public_name(row: Mapping[str, Any]) -> bool:
    """Return True if the masked file has the estimate, or if its name holds no cell of the original."""
    return row["masked"] is not None or (row["domain"] == WHOLE and row["estimate"].count("[") < 2)


def _public_row(row: Mapping[str, Any], guard: Guard, computable: bool) -> PublicRow:  # noqa: FBT001 - private
    """Return one row as it may be published, without masked figures that users cannot compute."""
    figures = (row["masked"], row["se_masked"]) if computable else (None, None)
    own = PublicRow(row["estimate"], row["domain"], *figures)
    change = class_of(row["change"], PERCENTS, guard.percent)
    in_errors = class_of(row["change_in_se"], ERRORS, guard.errors)
    reason = guard.reason or ("" if change or in_errors else NO_FIGURE)
    if reason:
        return replace(own, withheld=reason)
    sign, significance = (KEPT.get(row[name]) for name in ("sign", "significance"))
    return replace(own, change=change, change_in_se=in_errors, sign=sign, significance=significance)


def public_table(rows: Sequence[PublicRow]) -> pl.DataFrame:
    """Return public rows as a table."""
    cells = [
        (
            *(row.estimate, row.domain, row.masked, row.se_masked, *row.texts()),
            *(row.sign, row.significance, row.withheld or None),
        )
        for row in rows
    ]
    return pl.DataFrame(cells, SCHEMA, orient="row")


def told_table(found: Estimates, *, private: bool) -> pl.DataFrame:
    """Return the table to print: exact if `private`, else what may be published."""
    return found.table if private else public_table(public_rows(found))


def summary_sentences(rows: Sequence[PublicRow], most: int = 3) -> list[str]:
    """Return sentences on how many estimates moved how far, with the names of those that moved most.

    What is not told is left out of the counts, and said: it may have moved furthest.
    """
    errors = [row for row in rows if _tells(row.change_in_se, ERRORS[1])]
    percents = [row for row in rows if _tells(row.change, PERCENTS[1])]
    count, gone = len(rows), sum(bool(row.withheld) for row in rows)
    if gone == count:
        return [f"How far the {count} declared {plural(count, 'estimate')} moved is withheld."]
    found = []
    if errors:
        classes = [row.change_in_se for row in errors if row.change_in_se is not None]
        far = [row for row in errors if row.change_in_se == Class(ERRORS[-1], None)]
        near, above = classes.count(Class(0.0, ERRORS[0])), sum(one.low >= ERRORS[1] for one in classes)
        found.append(
            f"{near} of {_counted(errors, count, 'standard errors')} moved by less than half a standard "
            f"error, {above} by more than one and {len(far)} by more than two{_named(far, rows, most)}."
        )
    if percents:
        large = [row for row in percents if row.change is not None and row.change.low >= PERCENTS[1]]
        among = "" if len(percents) == count else f" of {_counted(percents, count, 'percent')}"
        found.append(f"{len(large)}{among} moved by more than {PERCENTS[1]:g} %{_named(large, rows, most)}.")
    if lost := sum("changed" in {row.sign, row.significance} for row in rows):
        found.append(f"{lost} changed sign or significance.")
    if unknown := count - len(errors) - gone:
        found.append(f"The change of {unknown} in standard errors is not told, or only roughly.")
    if gone:
        found.append(f"How far {gone} of {count} moved is withheld: it may be further than all others.")
    return found


def _tells(found: Class | None, end: float) -> bool:
    """Return True if a class of change tells whether the change is below `end`."""
    return found is not None and not found.low < end < found.end


def _counted(told: Sequence[PublicRow], count: int, unit: str) -> str:
    """Return in words how many of `count` estimates are counted, as their change is told in the unit."""
    words = f"declared {plural(len(told), 'estimate')}"
    if len(told) == count:
        return f"{count} {words}"
    return f"the {len(told)} {words} whose change in {unit} is told"


def _named(chosen: Sequence[PublicRow], rows: Sequence[PublicRow], most: int) -> str:
    """Return the chosen rows in words: by name, or how many domains of an estimate; empty without any."""
    counts = Counter(row.estimate for row in rows)
    names = []
    for estimate, here in Counter(row.estimate for row in chosen).items():
        first = next(row for row in chosen if row.estimate == estimate)
        names.append(first.name if here == 1 else f"{estimate} in {here} of {counts[estimate]} domains")
    return f": {shortened(names, most, '; ')}" if names else ""
