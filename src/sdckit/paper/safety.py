"""The weakest safe setting of each method under each limit on linkage, as table rows and as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit.core.text import listed
from sdckit.paper.design import HEADINGS
from sdckit.paper.figures.parts import name_of
from sdckit.paper.risks import LIMITS

if TYPE_CHECKING:
    from sdckit.paper.risks import Risks

SHOWN_LIMIT = 0.1  # limit of linkage at which the risk of outliers is reported


def safe_rows(risks: Risks, dataset: str) -> list[dict[str, Any]]:
    """Return one row per method: its name and its weakest safe setting under each limit; marks the best."""
    best = {limit: risks.safe_by_loss(dataset, limit)[:1] for limit in LIMITS}
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


def safety_sentences(risks: Risks, dataset: str) -> list[str]:
    """Return sentences on the least loss under each limit, the next best methods, and the outliers."""
    found = {limit: risks.safe_by_loss(dataset, limit) for limit in LIMITS}
    return [
        _best_sentence(found, dataset),
        *_other_sentences(risks, found, dataset),
        *_outlier_sentences(found[SHOWN_LIMIT]),
    ]


def _best_sentence(found: dict[float, list[dict[str, Any]]], dataset: str) -> str:
    """Return a sentence on the method with the least loss under each limit on linkage."""
    best: dict[str, list[str]] = {}
    for limit, safe in found.items():
        if safe:
            case = f"{limit:g} ({safe[0]['safe']}, brMAE {safe[0]['brmae']:.3f})"
            best.setdefault(HEADINGS[safe[0]["method"]], []).append(case)
    parts = [f"{method} at {listed(cases)}" for method, cases in best.items()]
    none = [f"{limit:g}" for limit, safe in found.items() if not safe]
    if none:
        parts.append(f"no setting tried is safe at {listed(none)}")
    return f"Least loss on {name_of(dataset)} under limits of linkage: {'; '.join(parts)}."


def _other_sentences(risks: Risks, found: dict[float, list[dict[str, Any]]], dataset: str) -> list[str]:
    """Return a sentence on the loss of the next best methods, and on methods that are never safe."""
    ratios = [safe[1]["brmae"] / safe[0]["brmae"] for safe in found.values() if len(safe) > 1]
    methods = risks.safe.filter(dataset=dataset)["method"].unique(maintain_order=True).to_list()
    ever = {row["method"] for safe in found.values() for row in safe}
    never = [name for name in methods if name not in ever]
    parts = []
    if ratios:
        times = f"{min(ratios):.2g}", f"{max(ratios):.2g}"
        parts.append(f"the next best method loses {' to '.join(dict.fromkeys(times))} times as much")
    if never:
        parts.append(f"safe at none of the limits: {listed([HEADINGS[name] for name in never])}")
    return [_as_sentence("; ".join(parts))] if parts else []


def _outlier_sentences(safe: list[dict[str, Any]]) -> list[str]:
    """Return a sentence on the share of outliers still found where linkage is safe at 0.1."""
    if not safe:
        return []
    found = [round(row["linkage_outliers"], 2) for row in safe]
    methods = {
        share: [HEADINGS[r["method"]] for r, f in zip(safe, found, strict=True) if f == share]
        for share in found
    }
    most, least = max(found), min(found)
    text = (
        f"Where linkage is safe at {SHOWN_LIMIT:g}, {100 * most:.0f} of 100 outliers are still found under "
        f"{listed(methods[most])}"
    )
    return [f"{text}, {100 * least:.0f} under {listed(methods[least])}." if least < most else f"{text}."]


def _as_sentence(text: str) -> str:
    """Return the text with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:]}."
