"""Headlines of the report: its main loss and risk, each as one number on its scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sdckit.core.exposed_records import exposed_of
from sdckit.core.registry import shown_metrics
from sdckit.core.scenarios import default_note, meets_limit
from sdckit.core.text import as_sentence, number
from sdckit.report.measures import LEVELS, is_bounded, is_share, label, limit_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.report.risk_map import Points

Found = tuple[str, str, float | None, float | None]  # family, metric, value, and value by chance
MAIN = 2  # the first headlines, the main loss and the main risk


@dataclass(frozen=True)
class Headline:
    """One measured loss or risk, shown at the top of the page on a scale from 0 to 1."""

    family: str
    title: str
    value: float
    text: str
    meaning: str
    bounded: bool
    level: float | None
    limit: float | None
    note: str = ""  # says that the limit is a default
    assumes: str = ""  # what the intruder is assumed to know, for a risk

    @property
    def marks(self) -> str:
        """Text on the marks of the scale: the value expected by chance, and the limit, met or not met."""
        words = []
        if self.level is not None:
            words.append(f"{LEVELS[self.family]} {number(self.level)}")
        if self.limit is not None:
            words.append(f"limit {limit_text(self.limit)}{self.note}: {self.verdict}")
        return ", ".join(words)

    @property
    def verdict(self) -> str:
        """Whether the limit is met, judged as a release is; empty without a limit."""
        if self.limit is None:
            return ""
        return "met" if meets_limit(self.value, self.limit) else "not met"


def exposed_sentence(evaluation: Evaluation | None, n: int | None) -> str:
    """Return a sentence on the exposed records of a file of n records; empty where they were not measured."""
    found = None if evaluation is None else exposed_of(evaluation.parts)
    return "" if found is None else as_sentence(found.sentence(n))


def headlines(
    evaluation: Evaluation | None, points: Points | None, limits: Mapping[str, float]
) -> list[Headline]:
    """Return the headlines of a page: those of what was measured, or else of the chosen point of its map."""
    if evaluation is not None:
        axes = [points.loss, points.risk] if points else []
        return measured_headlines(evaluation, axes, limits)
    if points is None or points.chosen is None:
        return []
    chosen = points.chosen
    found: list[Found] = [
        ("loss", points.loss, chosen["loss"], points.random),
        ("risk", points.risk, chosen["risk"], None),
    ]
    return _headlines_of(found, limits)


def measured_headlines(
    evaluation: Evaluation, axes: Sequence[str], limits: Mapping[str, float]
) -> list[Headline]:
    """Return the main loss and risk, those of the axes if any, suppressed cells, uniques, what is limited."""
    rows = {row["metric"]: row for row in evaluation.summary.iter_rows(named=True)}
    names = _headline_metrics(rows, axes)
    others = [*_suppressed(rows), *limits, *_uniques(evaluation)]
    names += dict.fromkeys(name for name in others if name in rows and name not in names)
    found = [(rows[name]["family"], name, rows[name]["value"], rows[name]["random"]) for name in names]
    return _headlines_of(found, limits, evaluation)


def _headlines_of(
    found: Iterable[Found], limits: Mapping[str, float], evaluation: Evaluation | None = None
) -> list[Headline]:
    """Return the headlines of values of metrics; the evaluation, if any, has the sentences beside them."""
    meaning = evaluation.meaning if evaluation is not None else {}
    knowledge = evaluation.knowledge if evaluation is not None else None
    assumes = as_sentence(knowledge.sentence) if knowledge is not None else ""
    return [
        Headline(
            family=family,
            title=label(name),
            value=value,
            text=number(value),
            meaning=as_sentence(meaning.get(name, "")),
            bounded=is_bounded(name) or 0 <= value <= 1,
            level=level,
            limit=limits.get(name),
            note=default_note(name, limits),
            assumes=assumes if family == "risk" and place < MAIN else "",
        )
        for place, (family, name, value, level) in enumerate(found)
        if value is not None
    ]


def _suppressed(rows: Mapping[str, Any]) -> list[str]:
    """Return the name of the share of suppressed cells, if there are any."""
    gone = [metric.name for metric in shown_metrics("headline") if metric.needs == "places"]
    return [name for name in gone if name in rows and rows[name]["value"]]


def _uniques(evaluation: Evaluation) -> list[str]:
    """Return the name of the share of unique records, if some column is known and published unmasked."""
    return ["uniques"] if evaluation.parts.get("uniques", {}).get("floor", 0.0) > 0 else []


def _headline_metrics(rows: Mapping[str, Any], axes: Sequence[str]) -> list[str]:
    """Return the names of the loss and risk on the chart's axes, else of the first measured from 0 to 1."""
    names = []
    for family in ("loss", "risk"):
        own = [name for name, row in rows.items() if row["family"] == family and row["value"] is not None]
        first = [*axes, *(["linkage"] if family == "risk" else []), *filter(is_share, own), *own]
        names += [name for name in first if name in own][:1]
    return names
