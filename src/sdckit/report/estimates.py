"""Declared estimates on the page: sentences, a forest plot and a table.

In public each row has a class of change, without its direction, on an axis of standard errors. In a private
report it has the exact intervals before and after, as distances from the original in its standard errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sdckit.core.text import figure_text, number
from sdckit.estimation.estimators import name_of_row
from sdckit.estimation.guards import ERRORS, Guard, public_rows, summary_sentences
from sdckit.report.signing import AFTER, EXACT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.estimation.compare import Estimates
    from sdckit.estimation.guards import Class, PublicRow

FIRST, SHOWN = 12, 40  # rows of the plot that are seen at once, and with those that fold
NEAREST, FARTHEST = 3.0, 8.0  # standard errors on either side of the exact plot
ENDS = (0.0, *ERRORS)  # of the classes, which are drawn equally wide
PUBLIC_HEADS = ("estimate", "domain", "masked", "s.e.", "moved by", "in s.e.", "sign", "significance", "")
PRIVATE_HEADS = (
    *("estimate", "domain", "original", "s.e.", "masked", "s.e.", "change in %", "change in s.e."),
    *("overlap", "interval before", "interval after", "records", ""),
)
NUMBERS = {"masked", "s.e.", "original", "change in %", "change in s.e.", "overlap", "records"}
ERROR = 6  # significant digits of an exact standard error


class Bar(NamedTuple):
    """A bar of the plot from `x` on, as shares of its width in percent; `kind` names its colour."""

    x: float
    width: float
    kind: str


class Line(NamedTuple):
    """A row of the plot: name, bars from the back to the front, and words beside them."""

    name: str
    bars: tuple[Bar, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class EstimatesPart:
    """All that the page shows of declared estimates; `ticks` are places in percent and texts of the axis."""

    private: bool
    sentences: tuple[str, ...]
    ticks: tuple[tuple[float, str], ...]
    first: tuple[Line, ...]
    more: tuple[Line, ...]
    left: int
    heads: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, ...], ...]


def estimates_part(found: Estimates | None, *, private: bool) -> EstimatesPart | None:
    """Return what the page shows of declared estimates, with exact figures if `private`; None without any."""
    if found is None or not found.table.height:
        return None
    return _private_part(found) if private else _public_part(public_rows(found))


def _public_part(rows: Sequence[PublicRow]) -> EstimatesPart:
    """Return the part of a report that may be published."""
    worst = sorted((row for row in rows if not row.withheld), key=lambda row: row.order, reverse=True)
    lines = [Line(row.name, _class_bars(row.change_in_se), _class_words(row)) for row in worst]
    unit = ["", "", "", " s.e."]
    ticks = tuple((25.0 * place, f"{end:g}{unit[place]}") for place, end in enumerate(ENDS))
    return _part(summary_sentences(rows), ticks, lines, PUBLIC_HEADS, [_public_cells(row) for row in rows])


def _part(
    sentences: Sequence[str],
    ticks: tuple[tuple[float, str], ...],
    lines: Sequence[Line],
    heads: Sequence[str],
    rows: Sequence[tuple[str, ...]],
) -> EstimatesPart:
    """Return a part whose plot has the first of the lines."""
    return EstimatesPart(
        private=heads is PRIVATE_HEADS,
        sentences=tuple(sentences),
        ticks=ticks,
        first=tuple(lines[:FIRST]),
        more=tuple(lines[FIRST:SHOWN]),
        left=max(len(lines) - SHOWN, 0),
        heads=tuple((head, head in NUMBERS) for head in heads),
        rows=tuple(rows),
    )


def _class_bars(found: Class | None) -> tuple[Bar, ...]:
    """Return the bar of a class of change in standard errors; none where it is not told."""
    if found is None:
        return ()
    start = ENDS.index(found.low)
    stop = len(ENDS) if found.high == math.inf else ENDS.index(found.high)
    kind = "far" if found.low >= ERRORS[-1] else "middle" if found.low >= ERRORS[1] else "near"
    return (Bar(100 * start / len(ENDS), 100 * (stop - start) / len(ENDS), kind),)


def _class_words(row: PublicRow) -> tuple[str, str, str]:
    """Return both classes of change, and what else changed."""
    percent, errors = (text or "not told" for text in row.texts())
    lost = [name for name in ("sign", "significance") if getattr(row, name) == "changed"]
    return errors, percent, f"{' and '.join(lost)} changed" if lost else ""


def _public_cells(row: PublicRow) -> tuple[str, ...]:
    """Return the texts of a row of the public table."""
    percent, errors = (text or "-" for text in row.texts())
    return (
        *(row.estimate, row.domain, figure_text(row.masked, AFTER), figure_text(row.se_masked, AFTER)),
        *(percent, errors, row.sign or "-", row.significance or "-"),
        f"withheld: {row.withheld}" if row.withheld else "",
    )


def _private_part(found: Estimates) -> EstimatesPart:
    """Return the part of a private report, with exact figures."""
    keys = found.table.select("estimate", "domain").rows()
    rows = found.table.rows(named=True)
    worst = sorted(rows, key=_distance, reverse=True)
    reach = math.ceil(min(max([NEAREST, *(abs(end) for row in rows for end in _ends(row))]), FARTHEST))
    lines = [
        Line(name_of_row(row["estimate"], row["domain"]), _exact_bars(row, reach), _exact_words(row))
        for row in worst
    ]
    ticks = [(0.0, f"-{reach}"), (50.0, "0"), (99.75, f"+{reach} s.e.")]
    sentences = summary_sentences(public_rows(replace(found, guards=dict.fromkeys(keys, Guard()))))
    low = sum(row["overlap"] is not None and row["overlap"] < 0.5 for row in rows)
    sentences.append(f"The 95 % intervals before and after share less than half in {low}.")
    return _part(sentences, tuple(ticks), lines, PRIVATE_HEADS, [_exact_cells(row) for row in rows])


def _distance(row: Mapping[str, Any]) -> float:
    """Return by how many standard errors an estimate moved; -1 where that is not known."""
    return -1.0 if row["change_in_se"] is None else abs(row["change_in_se"])


def _ends(row: Mapping[str, Any]) -> list[float]:
    """Return the ends of both intervals and the masked estimate as distances from the original estimate.

    They are in its standard errors, those of the original first; none where one of them is absent.
    """
    cells = [row[name] for name in ("low_original", "high_original", "low_masked", "high_masked", "masked")]
    if None in cells or not row["se_original"]:
        return []
    return [(cell - row["original"]) / row["se_original"] for cell in cells]


def _exact_bars(row: Mapping[str, Any], reach: int) -> tuple[Bar, ...]:
    """Return the intervals of both files, and marks at both estimates; what lies outside is cut."""
    ends = _ends(row)
    if not ends:
        return ()
    low, high, below, above, value = (50 * (1 + min(max(end / reach, -1.0), 1.0)) for end in ends)
    return (
        Bar(low, high - low, "before"),
        Bar(below, max(above - below, 0.4), "after"),
        Bar(49.8, 0.4, "zero"),
        Bar(min(max(value - 0.5, 0.0), 99.0), 1.0, "mark"),
    )


def _exact_words(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the change in standard errors and in percent, and what else changed."""
    errors = "-" if row["change_in_se"] is None else f"{row['change_in_se']:+.2f} s.e."
    percent = "-" if row["change"] is None else f"{row['change']:+.2f} %"
    lost = ["sign changed"] if row["sign"] == "changed" else []
    if row["significance"] in {"lost", "gained"}:
        lost.append(f"significance {row['significance']}")
    return errors, percent, ", ".join(lost)


def _exact_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts of a row of the exact table."""
    figures = [
        figure_text(row[f"{part}{which}"], digits)
        for which in ("original", "masked")
        for part, digits in (("", EXACT), ("se_", ERROR))
    ]
    pairs = [(row[f"low_{which}"], row[f"high_{which}"]) for which in ("original", "masked")]
    intervals = [" to ".join(figure_text(end, AFTER) for end in pair) for pair in pairs]
    changes = ["-" if row[name] is None else f"{row[name]:+.3g}" for name in ("change", "change_in_se")]
    notes = "; ".join(filter(None, (_exact_words(row)[2], row["reason"])))
    return (
        *(row["estimate"], row["domain"], *figures, *changes, number(row["overlap"]), *intervals),
        *(f"{row['records_original']:,}", notes),
    )
