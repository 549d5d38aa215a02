"""Rows that `sdckit metrics` and `sdckit methods` print, one for each registered metric or method."""

from __future__ import annotations

from sdckit.cli import terminal
from sdckit.masking import METHODS
from sdckit.metrics import METRICS


def metric_rows() -> list[dict[str, str]]:
    """Return name, meaning, range, options and reference of each metric, as texts."""
    return [
        {
            "metric": metric.name,
            "title": metric.title,
            "measures": metric.summary,
            "family": metric.family,
            "range": metric.range_text,
            "measured": metric.status,
            "options": ", ".join(parameter.name for parameter in metric.parameters),
            "reference": metric.reference,
        }
        for metric in METRICS.values()
    ]


def method_rows() -> list[dict[str, str]]:
    """Return name, effect, parameters, what is kept and reference of each masking method, as texts."""
    return [
        {
            "method": method.name,
            "title": method.title,
            "does": method.summary,
            "parameters": "; ".join(terminal.parameter_text(parameter) for parameter in method.parameters),
            "keeps": "; ".join(method.keeps),
            "rows": terminal.rows_text(method),
            "tried": method.status,
            "reference": method.reference,
        }
        for method in METHODS.values()
    ]
