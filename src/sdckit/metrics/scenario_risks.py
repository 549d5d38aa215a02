"""Measure the risks of a masked file for the intruders of several scenarios."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core import checks
from sdckit.core.scenarios import meets_limit
from sdckit.progress import each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sdckit.core.registry import Metric
    from sdckit.core.scenarios import Scenario
    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair

    Measure = Callable[[Pair, Metric, float | None], Evaluation]

SCHEMA: dict[Any, Any] = {
    "scenario": pl.String,
    "known": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "limit": pl.Float64,
    "met": pl.Boolean,
    "ci_low": pl.Float64,  # where the value is estimated on a sample of records
    "ci_high": pl.Float64,
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


def scenario_table(scenarios: Sequence[Scenario], pair: Pair, measure: Measure) -> pl.DataFrame | None:
    """Return a row for each risk in each scenario: what is known, value, limit, and whether it is met.

    `measure` evaluates a metric on a pair, given its limit if it has one. An estimate meets a limit if the
    upper end of its interval does. None without scenarios.
    """
    rows: list[tuple[Any, ...]] = []
    for scenario in each("measuring", scenarios):
        other = pair_in(pair, scenario)
        for metric in each("measuring", scenario.metrics):
            limit = scenario.limits.get(metric.name)
            value, low, high = _figures(other, metric, limit, measure)
            upper = value if high is None else high
            met = None if limit is None else upper is not None and meets_limit(upper, limit)
            known = ", ".join(scenario.known)
            rows.append((scenario.name, known, metric.name, value, limit, met, low, high))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row") if scenarios else None


def _figures(
    pair: Pair, metric: Metric, limit: float | None, measure: Measure
) -> tuple[float | None, float | None, float | None]:
    """Return the value of a metric on a pair and the ends of its interval; None where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # given for the default intruder
        with suppress(checks.NotApplicable):
            value, low, high = (
                measure(pair, metric, limit).summary.select("value", "ci_low", "ci_high").row(0)
            )
            return value, low, high
    return None, None, None
