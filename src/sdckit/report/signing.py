"""Parts of the report that an office signs: facts of the release, statistics, scenarios, printed margins."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sdckit.core.registry import METRICS
from sdckit.core.scenarios import meets_limit
from sdckit.core.text import figure_text
from sdckit.metrics.publishable import NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.publishable import Statistics
    from sdckit.selection.release import Summary

TITLES = dict(
    zip(
        NAMES,
        ("mean", "standard deviation", "lower quartile", "median", "upper quartile", "total"),
        strict=True,
    )
)
AFTER, EXACT = 4, 10  # significant digits of masked figures, and of all in a private report
MARK = "PRIVATE: exact statistics of the original; not for publication"
PLAIN = re.compile(r"[^A-Za-z0-9 .,:;_-]")  # all other characters are escaped in style sheets


def fact_rows(summary: Summary) -> list[tuple[str, str]]:
    """Return the facts of a release as pairs of a name and a text."""
    rows = [
        ("file", summary.file),
        ("SHA-256 of the file", summary.sha256),
        ("date of this report", summary.date),
        ("records", f"{summary.records:,}"),
        ("masked variables", f"{summary.variables:,}"),
        ("method", summary.method),
    ]
    if summary.suppressed is not None:
        gone = sum(summary.suppressed.values())
        rows.append(("suppressed cells", f"{gone:,} of {summary.records * summary.variables:,}"))
    if summary.working_copy:
        rows.append(("use", "working copy with the key and the order of the original: not for publication"))
    if summary.original_sha256 is not None:
        rows.append(("SHA-256 of the original", summary.original_sha256))
    return rows


def statistics_parts(statistics: Statistics, suppressed: Mapping[str, int] | None) -> dict[str, Any]:
    """Return statistics and correlations before and after masking as texts, and the titles of the first."""
    return {
        "titles": list(TITLES.values()),
        "statistics": statistic_rows(statistics, suppressed),
        "correlations": correlation_rows(statistics),
    }


def statistic_rows(statistics: Statistics, suppressed: Mapping[str, int] | None) -> list[dict[str, Any]]:
    """Return each variable with a line for each file: its statistics as texts, and its suppressed cells."""
    digits = EXACT if statistics.exact else AFTER
    texts: dict[str, tuple[list[str], list[str]]] = {}
    for row in statistics.rows:
        before, after = texts.setdefault(row.variable, ([], []))
        before.append(figure_text(row.before, EXACT))  # it is rounded already
        after.append(figure_text(row.after, digits))
    gone = suppressed or {}
    return [
        {
            "variable": name,
            "lines": [
                {"file": "original", "texts": before, "suppressed": ""},
                {"file": "masked", "texts": after, "suppressed": f"{gone[name]:,}" if name in gone else "-"},
            ],
        }
        for name, (before, after) in texts.items()
    ]


def correlation_rows(statistics: Statistics) -> list[tuple[str, list[str]]]:
    """Return the correlation matrix as texts: original above the diagonal, masked below it."""
    digits = AFTER if statistics.exact else 2
    names = list(dict.fromkeys(name for row in statistics.correlations for name in row[:2]))
    cells = {(row.variable, row.other): _share_text(row.before, digits) for row in statistics.correlations}
    cells |= {(row.other, row.variable): _share_text(row.after, digits) for row in statistics.correlations}
    return [(name, [cells.get((name, other), "") for other in names]) for name in names]


def _share_text(value: float | None, digits: int) -> str:
    """Return a correlation as text with so many decimals at most; "-" where it is withheld."""
    return "-" if value is None else f"{value:.{digits}f}".replace("-0." + "0" * digits, "0." + "0" * digits)


def scenario_rows(evaluation: Evaluation, limits: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the rows of the scenario table: the intruder of all figures first, then the other ones."""
    others = [] if evaluation.scenarios is None else evaluation.scenarios.rows(named=True)
    if evaluation.knowledge is None:
        return others
    values = {row["metric"]: row for row in evaluation.summary.iter_rows(named=True)}
    risks = [name for name in dict.fromkeys(["linkage", *limits]) if name in values]
    known = ", ".join(evaluation.knowledge.known) or "no column"
    main = [
        {
            "scenario": "main",
            "known": known,
            "metric": name,
            "value": values[name]["value"],
            "limit": limits.get(name),
            "met": None if name not in limits else meets_limit(evaluation.upper_end(name), limits[name]),
        }
        for name in risks
        if METRICS[name].family == "risk"
    ]
    return [*main, *others]


def margin_style(title: str, summary: Summary | None) -> str:
    """Return the style of the printed margins: title, hash and page number, and PRIVATE where it is."""
    private = summary is not None and summary.private
    boxes = {
        "top-left": ("" if private else f"{_css_text(title)}"),
        "top-center": _css_text(MARK) if private else "",
        "bottom-left": "" if summary is None else _css_text(f"{summary.file}, SHA-256 {summary.sha256[:16]}"),
        "bottom-right": "",
    }
    look = "font: 8pt Arial, 'Liberation Sans', sans-serif; color: #333;"
    strong = "font: bold 10pt Arial, 'Liberation Sans', sans-serif; color: #000;"
    rules = [
        f'@{box} {{ content: "{text}"; {strong if box == "top-center" else look} }}'
        for box, text in boxes.items()
        if text
    ]
    rules.append(f'@bottom-right {{ content: "Page " counter(page) " of " counter(pages); {look} }}')
    return "\n@page { " + " ".join(rules) + " }"


def _css_text(text: str) -> str:
    """Return a text that is safe between quotation marks in a style sheet."""
    return PLAIN.sub(lambda found: f"\\{ord(found[0]):06x}", text)
