"""The weakest safe settings, as table rows and as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit.paper.design import HEADINGS
from sdckit.paper.figures.parts import called
from sdckit.paper.risks import LIMITS

if TYPE_CHECKING:
    from sdckit.paper.risks import Risks

SHOWN_LIMIT = 0.1  # the limit at which outliers are looked at


def rows(risks: Risks, dataset: str) -> list[dict[str, Any]]:
    """Return one row per method: its name and, for each limit, the safe setting, marked at least loss."""
    best = {limit: risks.least(dataset, limit)[:1] for limit in LIMITS}
    table = risks.safe.filter(dataset=dataset)
    return [
        {
            "method": HEADINGS[method],
            "cells": [
                row | {"best": [row["method"]] == [winner["method"] for winner in best[row["limit"]]]}
                for row in table.filter(method=method).iter_rows(named=True)
            ],
        }
        for method in table["method"].unique(maintain_order=True)
    ]


def sentences(risks: Risks, dataset: str) -> list[str]:
    """Return sentences on the least loss under each limit, the cost of the others, and the outliers."""
    found = {limit: risks.least(dataset, limit) for limit in LIMITS}
    return [_winners(found, dataset), *_others(risks, found, dataset), *_outliers(found[SHOWN_LIMIT])]


def _winners(found: dict[float, list[dict[str, Any]]], dataset: str) -> str:
    best: dict[str, list[str]] = {}
    for limit, safe in found.items():
        if safe:
            case = f"{limit:g} ({safe[0]['safe']}, brMAE {safe[0]['brmae']:.3f})"
            best.setdefault(HEADINGS[safe[0]["method"]], []).append(case)
    told = [f"{method} at {_joined(cases)}" for method, cases in best.items()]
    none = [f"{limit:g}" for limit, safe in found.items() if not safe]
    if none:
        told.append(f"no setting tried is safe at {_joined(none)}")
    return f"Least loss on {called(dataset)} under limits of linkage: {'; '.join(told)}."


def _others(risks: Risks, found: dict[float, list[dict[str, Any]]], dataset: str) -> list[str]:
    ratios = [safe[1]["brmae"] / safe[0]["brmae"] for safe in found.values() if len(safe) > 1]
    methods = risks.safe.filter(dataset=dataset)["method"].unique(maintain_order=True).to_list()
    ever = {row["method"] for safe in found.values() for row in safe}
    never = [name for name in methods if name not in ever]
    told = []
    if ratios:
        times = f"{min(ratios):.2g}", f"{max(ratios):.2g}"
        told.append(f"the next best method loses {' to '.join(dict.fromkeys(times))} times as much")
    if never:
        told.append(f"safe at none of the limits: {_joined([HEADINGS[name] for name in never])}")
    return [_sentence("; ".join(told))] if told else []


def _outliers(safe: list[dict[str, Any]]) -> list[str]:
    if not safe:
        return []
    found = [round(row["linkage_outliers"], 2) for row in safe]
    named = {
        share: [HEADINGS[r["method"]] for r, f in zip(safe, found, strict=True) if f == share]
        for share in found
    }
    most, least = max(found), min(found)
    text = (
        f"Where linkage is safe at {SHOWN_LIMIT:g}, {100 * most:.0f} of 100 outliers are still found under "
        f"{_joined(named[most])}"
    )
    return [f"{text}, {100 * least:.0f} under {_joined(named[least])}." if least < most else f"{text}."]


def _joined(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
