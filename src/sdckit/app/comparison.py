"""Two settings side by side: which of them each measure prefers, and what both leave of the statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sdckit.app.panel import FOLDERS
from sdckit.core.text import number
from sdckit.report.environment import page_environment
from sdckit.report.measures import FAMILIES, metric_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.app.panel import PanelContent

NAMES = ("A", "B")


@dataclass(frozen=True)
class Comparison:
    """The panels of two settings, and the rows of the tables that compare them."""

    sides: tuple[tuple[str, PanelContent], ...]
    measures: tuple[dict[str, Any], ...] = ()
    figures: dict[str, Any] | None = None
    heat: dict[str, Any] | None = None

    @property
    def refusal(self) -> str:
        """Why there is no figure to compare; empty where there are figures."""
        return next((panel.refusal for _, panel in self.sides if panel.refusal), "")

    def to_html(self) -> str:
        """Return the comparison as a fragment of a page."""
        return page_environment(*FOLDERS).get_template("compare.html").render(comparison=self)


def compare_panels(first: PanelContent, second: PanelContent) -> Comparison:
    """Return two settings side by side; of data with too few records, only why nothing is shown."""
    sides = tuple(zip(NAMES, (first, second), strict=True))
    if first.refusal or second.refusal:
        return Comparison(sides)
    return Comparison(sides, _measure_groups(first, second), _figures(first, second), _heat(first, second))


def _measure_groups(first: PanelContent, second: PanelContent) -> tuple[dict[str, Any], ...]:
    """Return losses, then risks, each with the measures of both settings, their difference and the better."""
    titles: dict[str, dict[str, dict[str, str]]] = {family: {} for family in FAMILIES}
    for panel in (first, second):
        for group in panel.families:
            titles[group["family"]] |= {row["name"]: row for row in group["rows"]}
    return tuple(
        {
            "title": title,
            "rows": [
                {"name": name, "title": row["title"], "scale": row["scale"]}
                | _compared(name, first.values.get(name), second.values.get(name))
                for name, row in titles[family].items()
            ],
        }
        for family, title in FAMILIES.items()
        if titles[family]
    )


def _compared(name: str, one: float | None, other: float | None) -> dict[str, Any]:
    """Return two values of a metric as texts, their difference, and the name of the better; "-" for none."""
    texts = [number(one), number(other)]
    if one is None or other is None:
        return {"values": texts, "difference": "-", "better": "-"}
    metric = metric_of(name)
    best = 0.0 if metric is None else metric.best
    if texts[0] == texts[1]:
        return {"values": texts, "difference": "0", "better": "equal"}
    better = NAMES[abs(other - best) < abs(one - best)]
    return {"values": texts, "difference": number(other - one), "better": better}


def _figures(first: PanelContent, second: PanelContent) -> dict[str, Any]:
    """Return the statistics of the original and of both masked files, a line for each."""
    rows = []
    for one, other in zip(first.figures["statistics"], second.figures["statistics"], strict=True):
        before, after = one["lines"]
        masked = [line | {"file": name} for name, line in zip(NAMES, (after, other["lines"][1]), strict=True)]
        rows.append({"variable": one["variable"], "lines": [before, *masked]})
    return {"titles": first.figures["titles"], "statistics": rows}


def _heat(first: PanelContent, second: PanelContent) -> dict[str, Any] | None:
    """Return the losses of each variable, a line for each setting that has any; None without any."""
    found = {name: panel.heat for name, panel in zip(NAMES, (first, second), strict=True) if panel.heat}
    metrics = {one["full"]: one for heat in found.values() for one in heat["metrics"]}
    lines: dict[str | None, list[dict[str, Any]]] = {}  # None: the whole file, the first row
    for name, heat in found.items():
        for place, (variable, cells) in enumerate(heat["rows"]):
            line = {"setting": name, "cells": _aligned(heat, cells, metrics)}
            lines.setdefault(variable if place else None, []).append(line)
    if not found:
        return None
    return {
        "metrics": list(metrics.values()),
        "hidden": any(heat["hidden"] for heat in found.values()),
        "rows": list(lines.items()),
    }


def _aligned(heat: Mapping[str, Any], cells: list[Any], metrics: Mapping[str, Any]) -> list[Any]:
    """Return the cells of a variable in the order of these metrics, empty where one was not measured."""
    own = {one["full"]: cell for one, cell in zip(heat["metrics"], cells, strict=True)}
    return [own.get(full, {"text": "-", "shade": None}) for full in metrics]
