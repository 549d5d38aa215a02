"""Sweep: mask one data set with many settings, measure each, and return one table; parallel and resumable."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks, registry
from sdckit.core.warning_texts import collect_warnings
from sdckit.estimation.compare import declared_of
from sdckit.kernels.tie_rules import TIES
from sdckit.masking import column_steps
from sdckit.masking.mask_units import require_whole_units
from sdckit.metrics import METRICS
from sdckit.metrics.default_metrics import metrics_for_columns
from sdckit.metrics.evaluation_table import FIGURES, SCHEMA
from sdckit.metrics.original import Original
from sdckit.metrics.query_sample import sampling_of
from sdckit.metrics.scenario_risks import original_in
from sdckit.progress import ProgressCallback, reported_to
from sdckit.rules.rules import edits_of
from sdckit.selection import notes
from sdckit.selection.conditions import Conditions
from sdckit.selection.plan import Setting, runs_of, settings_of
from sdckit.selection.runner import run_all
from sdckit.selection.sweep_folder import SweepFolder, opened
from sdckit.selection.sweep_result import Sweep
from sdckit.selection.task import ScenarioTask, Stratum, Task

if TYPE_CHECKING:
    from sdckit.core.registry import Metric
    from sdckit.kernels.jit import Floats
    from sdckit.selection.plan import Run

DRAWS = ("common", "fresh")
HEAD = {
    "dataset": pl.String,
    "method": pl.String,
    "parameters": pl.String,
    "setting": pl.Float64,
    "replication": pl.Int64,
}


def sweep(
    original: Any,
    plan: Any = None,
    *,
    metrics: str | Iterable[str] | None = None,
    columns: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    weights: Any = None,
    by: str | Sequence[str] | None = None,
    ties: str = "average",
    missing: str = "penalise",
    na: Any = None,
    untouched: str | Sequence[str] | None = None,
    known: str | Sequence[str] | None = None,
    unknown: str | Sequence[str] | None = None,
    confidential: str | Sequence[str] | None = None,
    unit: str | None = None,
    drop: str | Sequence[str] | None = None,
    recode: Mapping[str, Any] | None = None,
    estimates: str | Sequence[str] | None = None,
    rules: Any = None,
    replications: int = 1,
    draws: str = "common",
    per_variable: bool = False,
    detail: bool = False,
    sample_queries: int | None = None,
    rng: Any = None,
    workers: int | None = None,
    folder: str | Path | None = None,
    overwrite: bool = False,
    name: str = "data",
    progress: ProgressCallback | None = None,
) -> Sweep:
    """Mask data with many settings and measure each: methods x parameter grids x replications.

    The same seed gives the same table, whatever the number of workers and however often the sweep
    was stopped and continued.

    Parameters
    ----------
    original : table
        pandas, polars, pyarrow or numpy; or what `prepare` returns, with its roles.
    plan : dict, optional
        Methods with the grids of their parameters, as in `{"mdav": {"k": range(2, 31)}}`; values are
        lists, ranges, single values or text such as "0.01:0.3:0.01". A method's name alone, or a
        list of names, takes its default grid; None takes the methods that are tried by default.
    metrics, columns, key, weights, by, ties, na
        As for `evaluate`; each stratum is masked by itself. A metric may set its own options, as in
        "brmae:ties=first" or "il1:zeros=drop".
    missing : str
        "penalise" counts a suppressed cell as the largest loss in metrics that have one, so that settings
        that suppress much do not look cheap; "pairwise" leaves such cells out.
    untouched, known, unknown, confidential, unit, drop, recode, estimates
        Other roles of columns, as for `prepare`.
    rules
        As for `mask`: every masked table is corrected to satisfy them before it is measured.
    replications : int
        How many tables a random method draws at each setting; methods without randomness draw one.
    draws : str
        "common": all settings of a method share their random numbers, so that a curve shows the
        parameter's effect; "fresh": each has its own.
    per_variable : bool
        True adds a row for each variable.
    detail : bool
        True adds the value for a random order and the range over tie orders, which takes several times
        longer.
    sample_queries : int, optional
        As for `evaluate`: estimate linkage on so many records, drawn at random. `recommend` then compares
        the upper ends of the intervals with the limits.
    rng : None, int or numpy Generator
        None draws fresh entropy. Keep a seed secret: with it the maskings can be undone.
    workers : int, optional
        Threads; by default one for each core.
    folder : path, optional
        Folder for finished runs: the same call resumes where it was stopped, and a larger plan measures
        only what is new. The folder is private: it holds the seed.
    overwrite : bool
        True deletes what an earlier sweep left in the folder.
    name : str
        Name of the data set in the column `dataset`.
    progress : callable, optional
        Called as `progress(step, share done)` during the work; the share rises from 0 to 1.

    Returns
    -------
    Sweep

    Examples
    --------
    >>> import sdckit as sdc
    >>> found = sdc.sweep([1.0, 5.0, 6.0, 9.0, 11.0, 15.0], {"mdav": {"k": [2, 3]}}, metrics=["brmae"])
    >>> found.table.select("parameters", "value").rows()
    [('k=2', 0.16666666666666666), ('k=3', 0.2222222222222222)]
    """
    wanted = settings_of(plan)
    repeated = checks.checked_count("replications", replications)
    runs_of(wanted, repeated)  # raises an error for too many runs before any other check
    threads = available_cores() if workers is None else checks.checked_count("workers", workers)
    options: dict[str, Any] = {
        "metrics": _chosen_metrics(metrics, wanted),
        "draws": checks.one_of("rule for draws", draws, DRAWS),
        "per_variable": per_variable,
        "detail": detail,
        "sampling": sampling_of(sample_queries),
    }
    warned: list[str] = []
    with collect_warnings(warned):
        prepared = Original.of(
            original,
            columns=columns,
            key=key,
            weights=weights,
            by=by,
            na=na,
            untouched=untouched,
            known=known,
            unknown=unknown,
            confidential=confidential,
            unit=unit,
            drop=drop,
            recode=recode,
            estimates=estimates,
        )
        conditions = Conditions.of(prepared, rules=rules, ties=ties, missing=missing)
        if metrics is None:
            options["metrics"] = metrics_for_columns(options["metrics"], prepared, prepared.table_names)
        task, settings, too_few = make_task(prepared, conditions, wanted, **options)
        conditions = replace(conditions, too_few=too_few)
    runs = runs_of(settings, repeated)
    place = opened(SweepFolder, folder, task.identity, rng, task.length, overwrite=overwrite)
    with reported_to(progress), place as (entropy, checkpoint):
        found = run_all(task, runs, entropy, threads, checkpoint)
    table = _results_table(task, runs, found, name)
    remarks = notes.sweep_notes(table, task, wanted, settings, ruled=rules is not None)
    return Sweep(table, remarks, prepared.n, conditions, tuple(settings), tuple(warned), task.withheld)


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


def _chosen_metrics(names: str | Iterable[str] | None, settings: Iterable[Setting]) -> list[Metric]:
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


def _results_table(task: Task, runs: Sequence[Run], found: Floats, name: str) -> pl.DataFrame:
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
