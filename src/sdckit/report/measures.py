"""Measured numbers in the report: headline, tables and heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core.text import number
from sdckit.metrics import METRICS
from sdckit.metrics.evaluation import WHOLE
from sdckit.report.privacy import thin_variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.core.registry import Metric
    from sdckit.metrics.evaluation import Evaluation

SHADES = 20  # steps of the heat map's colours
HEADING = 14  # letters of a heading of the heat map, about
LEVELS = {"loss": "unrelated order", "risk": "by chance"}
FAMILIES = {"loss": "Information loss", "risk": "Disclosure risk"}


def plain(limit: float) -> str:
    """Return a limit as short text."""
    return f"{limit:g}"


def metric_of(name: str) -> Metric | None:
    """Return the registry record of a metric, also for a name with options ("brmae:ties=first")."""
    return METRICS.get(name.partition(":")[0])


def label(name: str) -> str:
    """Return the short name of a metric on the page."""
    metric = metric_of(name)
    if metric is None:
        return name.replace("_", " ")
    settled = name.partition(":")[2]
    short = metric.title.split(",")[0]
    others = [one.title.split(",")[0] for one in METRICS.values() if one.name != metric.name]
    return (metric.title if short in others else short) + (f" ({settled})" if settled else "")


def heading(name: str) -> str:
    """Return the column heading of a metric: its title where that is short, else its name."""
    base, _, settled = name.partition(":")
    short = label(base)
    short = short if len(short) <= HEADING else base.replace("_", " ")
    return f"{short} {settled.replace(',', ', ')}".strip()


def zero_is_best(name: str) -> bool:
    """Return True where a larger value of the metric is worse."""
    metric = metric_of(name)
    return metric is None or metric.best == 0


def is_bounded(name: str) -> bool:
    """Return True where the metric has a largest possible value."""
    metric = metric_of(name)
    return metric is not None and metric.bounded


def is_share(name: str) -> bool:
    """Return True where a loss runs from 0 (none) to 1 (largest), so that a shade can show it."""
    return is_bounded(name) and zero_is_best(name)


def sentence(text: str) -> str:
    """Return the text with a capital letter and a full stop."""
    return text[:1].upper() + text[1:] + "." if text else ""


def metric_groups(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the whole file's losses and risks, each with its meaning."""
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
        "scale": "" if metric is None else _scale(metric),
        "meaning": sentence(evaluation.meaning.get(name, "")),
    }


def _scale(metric: Metric) -> str:
    best = "" if metric.best == 0 else f", {plain(metric.best)} is best"
    return ("0 to 1" if metric.bounded else "no upper end") + best


def attacks(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the share of records that each linkage attack re-identifies, the largest first."""
    parts = {name: value for name, value in evaluation.parts.get("linkage", {}).items() if 0 <= value <= 1}
    outliers = evaluation.parts.get("linkage_outliers", {})
    worst = max(parts.values(), default=0.0)
    return [
        {
            "title": METRICS[name].title if name in METRICS else label(name),
            "text": number(value),
            "width": f"{100 * value:.2f}",
            "worst": value == worst,
            "outliers": number(outliers[name]) if name in outliers else "",
        }
        for name, value in sorted(parts.items(), key=lambda part: -part[1])
    ]


def heat_map(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return the losses of each variable on the scale from 0 (best) to 1; none from few cells."""
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
        for variable in thin_variables(
            {
                row["variable"]: row["n_used"] or 0
                for row in by_variable.filter(metric=name).iter_rows(named=True)
            }
        )
    }

    def cell(variable: str, metric: str) -> dict[str, Any]:
        value = None if (variable, metric) in hidden else values.get((variable, metric))
        shade = None if value is None else round(SHADES * min(max(value, 0.0), 1.0))
        return {"text": number(value), "shade": shade}

    return {
        "metrics": [{"short": heading(name), "full": label(name)} for name in metrics],
        "hidden": bool(hidden),
        "rows": [(variable, [cell(variable, name) for name in metrics]) for variable in ["all", *variables]],
    }
