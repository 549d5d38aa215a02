"""Parts of the report that an office signs: facts of the release, statistics, scenarios, printed margins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sdckit.core.registry import METRICS, method_named, parameters_text
from sdckit.core.scenarios import meets_limit
from sdckit.core.text import figure_text, listed
from sdckit.metrics.publishable import NAMES, statistics_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.evaluation.result import Evaluation
    from sdckit.masking.disclosure import Disclosure
    from sdckit.metrics.pair import Pair
    from sdckit.metrics.publishable import Statistics

POPULATION = (
    "How many records are unique in the population: uniques are counted in this file, which may be a sample."
)
ELSEWHERE = (
    "What other publications of the same records tell together with this file (sdckit evaluate --together)."
)
NO_METHOD = "The method that masked the file is not stated."


@dataclass(frozen=True)
class Summary:
    """A masked file as an office signs it.

    `method` is a sentence. `suppressed` has the number of suppressed cells of each variable, None where rows
    stand for no original record. `rules` are all edit rules in full. `not_measured` has sentences on what no
    figure covers. `original_sha256` is None in what is published: who knows all of a file but a few cells
    could try values for them until the hash fits. A `working_copy` has the key and the order of the
    original, and is not for publication.
    """

    file: str
    sha256: str
    date: str
    records: int
    variables: int
    method: str
    suppressed: dict[str, int] | None
    rules: tuple[str, ...]
    not_measured: tuple[str, ...]
    statistics: Statistics
    original_sha256: str | None = None
    working_copy: bool = False

    @property
    def private(self) -> bool:
        """True if the summary holds exact statistics of the original, which are never published."""
        return self.statistics.exact

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, JSON-ready, with the statistics under a name of their own."""
        names = ("file", "sha256", "date", "records", "variables", "method", "suppressed", "working_copy")
        found = {name: getattr(self, name) for name in names}
        found |= {"rules": list(self.rules), "not_measured": list(self.not_measured)}
        if self.original_sha256 is not None:
            found["original_sha256"] = self.original_sha256
        return {"summary": found, "statistics": self.statistics.to_dict()}


def summary_of(
    pair: Pair,
    evaluation: Evaluation,
    *,
    file: str,
    sha256: str,
    original_sha256: str | None = None,
    working_copy: bool = False,
) -> Summary:
    """Return the summary of a masked file; a private one, with exact statistics, for a hash of the original.

    Parameters
    ----------
    pair : Pair
        Original and masked data.
    evaluation : Evaluation
        Their losses and risks.
    file, sha256 : str
        Name of the masked file without its folder, and its hash.
    original_sha256 : str, optional
        Hash of the original file.
    working_copy : bool
        The file is no release.

    Returns
    -------
    Summary
    """
    return Summary(
        file=file,
        sha256=sha256,
        date=datetime.now(UTC).date().isoformat(),
        records=pair.n,
        variables=pair.p,
        method=method_sentence(pair.disclosure),
        suppressed=suppressed_cells(pair),
        rules=() if pair.rules is None else pair.rules.texts,
        not_measured=tuple(_not_measured(pair, evaluation)),
        statistics=statistics_of(pair, exact=original_sha256 is not None),
        original_sha256=original_sha256,
        working_copy=working_copy,
    )


def suppressed_cells(pair: Pair) -> dict[str, int] | None:
    """Return the number of suppressed cells by variable; None where rows stand for no original record."""
    if not pair.disclosure.paired:
        return None
    return dict(zip(pair.columns, pair.counts.suppressed.tolist(), strict=True))


def method_sentence(disclosure: Disclosure) -> str:
    """Return a masking as one plain sentence: its title, all parameters, and what it does."""
    if not disclosure.method:
        return NO_METHOD
    method = method_named(disclosure.method)
    usual = method.defaults()
    own = {name: value for name, value in disclosure.parameters.items() if value != usual.get(name)}
    shown = parameters_text(own or {name: usual[name] for name in usual if usual[name] not in ((), {})})
    title = method.title[0].upper() + method.title[1:]
    strata = f", within each group of {listed(disclosure.by)}" if disclosure.by else ""
    return (
        f"{title}{f' ({shown})' if shown else ''}: {method.summary[0].lower()}{method.summary[1:]}{strata}."
    )


def _not_measured(pair: Pair, evaluation: Evaluation) -> list[str]:
    """Return sentences on what no figure of an evaluation covers."""
    measured = {name.partition(":")[0] for name in evaluation.meaning}
    found = [POPULATION]
    unmasked = evaluation.knowledge.unmasked if evaluation.knowledge is not None else ()
    if unmasked:
        found.append(
            f"Perturbation of categories: {', '.join(unmasked)} "
            f"{'is' if len(unmasked) == 1 else 'are'} published as in the data, and no category was changed."
        )
    if "attribute" not in measured:
        found.append("What can be learnt of a confidential variable without finding a record.")
    if "linkage" not in measured:
        found.append("How many records can be linked to people.")
    if pair.weighted:
        found.append("Weighted statistics: those below count every record once.")
    return [*found, ELSEWHERE]


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
    look = "font: 8pt Arial, 'Liberation Sans', sans-serif; color: #333;"
    strong = "font: bold 10pt Arial, 'Liberation Sans', sans-serif; color: #000;"
    boxes = [("top-center", MARK, strong)] if private else [("top-left", title, look)] if title else []
    if summary is not None:
        boxes.append(("bottom-left", f"{summary.file}, SHA-256 {summary.sha256[:16]}", look))
    rules = [f'@{box} {{ content: "{_css_text(text)}"; {font} }}' for box, text, font in boxes]
    rules.append(f'@bottom-right {{ content: "Page " counter(page) " of " counter(pages); {look} }}')
    return "\n@page { " + " ".join(rules) + " }"


def _css_text(text: str) -> str:
    """Return a text that is safe between quotation marks in a style sheet."""
    return PLAIN.sub(lambda found: f"\\{ord(found[0]):06x}", text)
