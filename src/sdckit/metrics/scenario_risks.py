"""Measure the risks of a masked file for the intruders of several scenarios."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core import checks
from sdckit.progress import each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sdckit.core.registry import Metric
    from sdckit.core.scenarios import Scenario
    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair

SCHEMA: dict[Any, Any] = {
    "scenario": pl.String,
    "known": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "limit": pl.Float64,
    "met": pl.Boolean,
}


def require_columns(scenarios: Iterable[Scenario], original: Original) -> None:
    """Raise ValueError if a scenario names a column that the data lack or that no intruder can know."""
    for scenario in scenarios:
        scenario.require_columns(original.roles, original.table_names or original.columns)


def original_in(original: Original, scenario: Scenario) -> Original:
    """Return the same prepared data as the intruder of a scenario knows them."""
    return original.with_roles(scenario.roles(original.roles), original.weights)


def pair_in(pair: Pair, scenario: Scenario) -> Pair:
    """Return the same pair of files as the intruder of a scenario knows them."""
    return replace(pair, original=original_in(pair.original, scenario), cache={})


def scenario_table(
    scenarios: Sequence[Scenario], pair: Pair, measure: Callable[[Pair, Metric], Evaluation]
) -> pl.DataFrame | None:
    """Return a row for each risk in each scenario: what is known, value, limit, and whether it is met.

    `measure` evaluates a metric on a pair. None without scenarios.
    """
    rows: list[tuple[Any, ...]] = []
    for scenario in each("measuring", scenarios):
        other = pair_in(pair, scenario)
        for metric in each("measuring", scenario.metrics):
            value = _value(other, metric, measure)
            limit = scenario.limits.get(metric.name)
            met = None if limit is None else value is not None and value <= limit
            rows.append((scenario.name, ", ".join(scenario.known), metric.name, value, limit, met))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row") if scenarios else None


def _value(pair: Pair, metric: Metric, measure: Callable[[Pair, Metric], Evaluation]) -> float | None:
    """Return the value of a metric on a pair; None where it has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # given for the default intruder
        with suppress(checks.NotApplicable):
            value = measure(pair, metric)[metric.name]
            return None if math.isnan(value) else value
    return None
