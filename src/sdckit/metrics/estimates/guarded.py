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
    """Return sentences on how many estimates moved how far, with the names of those that moved most."""
    told = [row.change_in_se for row in rows if row.change_in_se is not None]
    far = [row for row in rows if row.change_in_se == Class(ERRORS[-1], None)]
    large = [row for row in rows if row.change is not None and row.change.low >= PERCENTS[1]]
    count, near = len(rows), told.count(Class(0.0, ERRORS[0]))
    gone = sum(bool(row.withheld) for row in rows)
    if gone == count:
        return [f"How far the {count} declared {plural(count, 'estimate')} moved is withheld."]
    lost = sum("changed" in {row.sign, row.significance} for row in rows)
    moved = (
        f"{near} of {count} declared {plural(count, 'estimate')} moved by less than half a standard error, "
        f"{sum(one.low >= ERRORS[1] for one in told)} by more than one and {len(far)} by more than two"
    )
    found = [
        f"{moved}{_named(far, rows, most)}.",
        f"{len(large)} moved by more than {PERCENTS[1]:g} %{_named(large, rows, most)}.",
    ]
    if lost:
        found.append(f"{lost} changed sign or significance.")
    if unknown := count - len(told) - gone:
        found.append(f"The change of {unknown} in standard errors is not told.")
    if gone:
        found.append(f"{gone} {'is' if gone == 1 else 'are'} withheld.")
    return found


def _named(chosen: Sequence[PublicRow], rows: Sequence[PublicRow], most: int) -> str:
    """Return the chosen rows in words: by name, or how many domains of an estimate; empty without any."""
    counts = Counter(row.estimate for row in rows)
    names = []
    for estimate, here in Counter(row.estimate for row in chosen).items():
        first = next(row for row in chosen if row.estimate == estimate)
        names.append(first.name if here == 1 else f"{estimate} in {here} of {counts[estimate]} domains")
    return f": {shortened(names, most, '; ')}" if names else ""
