"""Rows that `sdckit metrics` and `sdckit methods` print, one for each registered metric or method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sdckit.core.parameters import range_text
from sdckit.masking import METHODS
from sdckit.metrics import METRICS

if TYPE_CHECKING:
    from sdckit.core.parameters import Parameter
    from sdckit.core.registry import Method


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
            "parameters": "; ".join(parameter_text(parameter) for parameter in method.parameters),
            "keeps": "; ".join(method.keeps),
            "rows": rows_text(method),
            "tried": method.status,
            "reference": method.reference,
        }
        for method in METHODS.values()
    ]


def parameter_text(parameter: Parameter) -> str:
    """Return a parameter of a method with its default and range, as text."""
    span = f",{range_text(parameter)}" if parameter.low is not None else ""
    choices = f": {' or '.join(parameter.choices)}" if parameter.choices else span
    default = f"{parameter.default:g}" if isinstance(parameter.default, float) else parameter.default
    default = "none" if default in ((), {}) else default
    return f"{parameter.name}={default} ({parameter.text}{choices})"


def rows_text(method: Method) -> str:
    """Return, as text, whether the masked rows of a method stand for original records."""
    if method.paired:
        return "paired"
    unless = f" unless {method.paired_by} is set" if method.paired_by else ""
    return f"stand for no original record{unless}"
