"""Measured numbers as rows of the report's tables, bars and heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core.text import as_sentence, number
from sdckit.metrics import METRICS
from sdckit.metrics.publishable import WHOLE
from sdckit.report.privacy import variables_to_hide
from sdckit.risk.attacks import ATTACKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.core.registry import Metric
    from sdckit.evaluation.result import Evaluation

SHADES = 20  # number of colour steps in the heat map
HEADING = 14  # largest number of letters in a column heading of the heat map
LEVELS = {"loss": "unrelated order", "risk": "by chance"}
FAMILIES = {"loss": "Information loss", "risk": "Disclosure risk"}


def limit_text(limit: float) -> str:
    """Return a limit on risk as text without trailing zeros, such as "0.1"."""
    return f"{limit:g}"


def metric_of(name: str) -> Metric | None:
    """Return the registry record of a metric, also for a name with options ("brmae:ties=first"), or None."""
    return METRICS.get(name.partition(":")[0])


def label(name: str) -> str:
    """Return the short title of a metric for the report, with its options in parentheses."""
    metric = metric_of(name)
    if metric is None:
        return name.replace("_", " ")
    options = name.partition(":")[2]
    short = metric.title.split(",")[0]
    others = [one.title.split(",")[0] for one in METRICS.values() if one.name != metric.name]
    return (metric.title if short in others else short) + (f" ({options})" if options else "")


def column_heading(name: str) -> str:
    """Return the column heading of a metric: its title if that is short, else its name."""
    base, _, options = name.partition(":")
    short = label(base)
    short = short if len(short) <= HEADING else base.replace("_", " ")
    return f"{short} {options.replace(',', ', ')}".strip()


def zero_is_best(name: str) -> bool:
    """Return True if the metric's best value is 0, so that larger values are worse."""
    metric = metric_of(name)
    return metric is None or metric.best == 0


def is_bounded(name: str) -> bool:
    """Return True if the metric has a largest possible value."""
    metric = metric_of(name)
    return metric is not None and metric.bounded


def is_share(name: str) -> bool:
    """Return True if a metric runs from 0 (best) to 1 (worst), so that a shade of colour can show it."""
    return is_bounded(name) and zero_is_best(name)


def metric_groups(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the whole file's losses, then its risks, each with table rows of values and meanings."""
    rows = evaluation.summary.rows(named=True)
    return [
        {
            "family": family,
            "title": title,
            "level": LEVELS[family],
            "rows": [_metric_row(row, evaluation) for row in rows if row["family"] == family],
        }
        for family, title in FAMILIES.items()
        if any(row["family"] == family for row in rows)
    ]


def _metric_row(row: Mapping[str, Any], evaluation: Evaluation) -> dict[str, str]:
    """Return the texts of one metric's table row: title, value, level, range over tie orders, meaning."""
    name, low, high = row["metric"], row["tie_low"], row["tie_high"]
    metric = metric_of(name)
    ties = "" if low is None or high is None or low == high else f"{number(low)} to {number(high)}"
    return {
        "name": name,
        "title": metric.title if metric else name,
        "experimental": "experimental" if metric and metric.experimental else "",
        "value": number(row["value"]),
        "level": number(row["random"]),
        "ties": ties or "-",
        "scale": "" if metric is None else _scale_text(metric),
        "meaning": as_sentence(evaluation.meaning.get(name, "")),
    }


def _scale_text(metric: Metric) -> str:
    """Return the range of a metric as text, such as "0 to 1" or "no upper end, 1 is best"."""
    best = "" if metric.best == 0 else f", {limit_text(metric.best)} is best"
    return ("0 to 1" if metric.bounded else "no upper end") + best


def _attack_title(name: str) -> str:
    """Return the title of an attack; attacks on several releases are named by their title."""
    known = METRICS.get(name) or ATTACKS.get(name)
    return known.title if known is not None else name


def attack_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the share of records that each linkage attack re-identifies, the largest first."""
    parts = {name: value for name, value in evaluation.parts.get("linkage", {}).items() if 0 <= value <= 1}
    outliers = evaluation.parts.get("linkage_outliers", {})
    worst = max(parts.values(), default=0.0)
    return [
        {
            "title": _attack_title(name),
            "text": number(value),
            "width": f"{100 * value:.2f}",
            "worst": value == worst,
            "outliers": number(outliers[name]) if name in outliers else "",
        }
        for name, value in sorted(parts.items(), key=lambda part: -part[1])
    ]


def heat_map(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return losses by variable, on a scale from 0 (best) to 1, for a table of shades; None without any."""
    losses = evaluation.table.filter((pl.col("family") == "loss") & (pl.col("stratum") == "all"))
    by_variable = losses.filter(~WHOLE)
    metrics = [name for name in by_variable["metric"].unique(maintain_order=True) if is_share(name)]
    variables = by_variable["variable"].unique(maintain_order=True).to_list()
    if not metrics:
        return None
    values = {(row["variable"], row["metric"]): row["value"] for row in losses.iter_rows(named=True)}
    hidden = {
        (variable, name)
        for name in metrics
        for variable in variables_to_hide(
            {
                row["variable"]: row["n_used"] or 0
                for row in by_variable.filter(metric=name).iter_rows(named=True)
            }
        )
    }

    def cell(variable: str, metric: str) -> dict[str, Any]:
        """Return text and shade (0 to 20) of one variable's loss; both empty where it must be hidden."""
        value = None if (variable, metric) in hidden else values.get((variable, metric))
        shade = None if value is None else round(SHADES * min(max(value, 0.0), 1.0))
        return {"text": number(value), "shade": shade}

    return {
        "metrics": [{"short": column_heading(name), "full": label(name)} for name in metrics],
        "hidden": bool(hidden),
        "rows": [(variable, [cell(variable, name) for name in metrics]) for variable in ["all", *variables]],
    }
