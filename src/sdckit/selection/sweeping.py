"""What the runs of a sweep or a search share, and their numbers as one table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks, registry
from sdckit.estimation.compare import declared_of
from sdckit.kernels.tie_rules import TIES
from sdckit.masking import column_steps
from sdckit.masking.mask_units import require_whole_units
from sdckit.metrics import METRICS
from sdckit.metrics.evaluation_table import FIGURES, SCHEMA
from sdckit.metrics.scenario_risks import original_in
from sdckit.rules.rules import edits_of
from sdckit.selection.task import ScenarioTask, Stratum, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.core.registry import Metric
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.original import Original
    from sdckit.selection.conditions import Conditions
    from sdckit.selection.plan import Run, Setting

DRAWS = ("common", "fresh")
HEAD = {
    "dataset": pl.String,
    "method": pl.String,
    "parameters": pl.String,
    "setting": pl.Float64,
    "replication": pl.Int64,
}


def make_task(
    original: Original,
    conditions: Conditions,
    settings: Iterable[Setting],
    *,
    searched: bool = False,
    **options: Any,
) -> tuple[Task, list[Setting], str]:
    """Return data, metrics and options that all runs share, checked, and `Task.allowed_settings`."""
    decimals = checks.checked_decimals(conditions.decimals)
    require_whole_units(original)
    declared_of(original)  # before threads ask for it, and for its errors
    edits = edits_of(conditions.rules, original)
    ruled = () if edits is None else edits.rules.columns
    task = Task(
        Stratum("all", original, units=original.units),
        [
            Stratum(name, part, rows, None if original.units is None else original.units[rows])
            for name, rows, part in original.parts
        ],
        edits=edits,
        steps=None if decimals is None else column_steps(original.values, original.columns, decimals, ruled),
        ties=checks.one_of("rule for ties", conditions.ties, TIES),
        missing=checks.one_of("rule for missing cells", conditions.missing, checks.MISSING),
        scenarios=[
            ScenarioTask(one, Stratum("all", original_in(original, one))) for one in conditions.scenarios
        ],
        **options,
    )
    return task, *task.allowed_settings(settings, searched=searched)


def chosen_metrics(names: str | Iterable[str] | None, settings: Iterable[Setting]) -> list[Metric]:
    """Return the metrics to measure; by default with metrics for unpaired rows if a method needs them."""
    chosen = registry.metrics_named(names)
    if not any(setting.paired for setting in settings):
        registry.metrics_for_rows(names, paired=False)  # raises for metrics without any value
    if names is None and not all(setting.paired for setting in settings):
        chosen += [metric for metric in METRICS.values() if metric.default_unpaired]
    return chosen


def available_cores() -> int:
    """Return how many processor cores this process may use."""
    known = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(known(0)) if known else os.cpu_count() or 1


def results_table(task: Task, runs: Sequence[Run], found: Floats, name: str) -> pl.DataFrame:
    """Return the numbers of all runs as a table with one row per run, metric, group and variable."""
    labelled = [
        (metric.name, metric.family, variable, group.name)
        for metric in task.metrics
        for group in task.groups
        for variable in task.variables
    ]
    heads = pl.DataFrame(
        {
            "dataset": [name] * len(runs),
            "method": [run.setting.method.name for run in runs],
            "parameters": [run.setting.text for run in runs],
            "setting": [run.setting.value for run in runs],
            "replication": [run.replication for run in runs],
        },
        schema=HEAD,
    )
    labels = pl.DataFrame(labelled, schema=list(SCHEMA)[:4], orient="row")
    numbers = pl.DataFrame(found.reshape(-1, len(FIGURES)), schema=FIGURES).with_columns(
        pl.all().fill_nan(None)
    )
    rows = np.arange(len(runs) * len(labelled))
    table = pl.concat([heads[rows // len(labelled)], labels[rows % len(labelled)], numbers], how="horizontal")
    whole = [metric.name for metric in task.metrics if not metric.by_variable]
    kept = (pl.col("variable") == "all") | ~pl.col("metric").is_in(whole)
    return table.filter(kept).select(*HEAD, *SCHEMA).cast(SCHEMA)
