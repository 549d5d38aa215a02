"""Sweep: methods x parameters x replications on one data set, as one table; parallel and resumable."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks, randomness, registry
from sdckit.kernels.tie_rules import TIES
from sdckit.masking import column_decimals
from sdckit.metrics import METRICS
from sdckit.metrics.evaluation import FIGURES, SCHEMA, WHOLE
from sdckit.metrics.original import Original
from sdckit.rules.edits import edits_of
from sdckit.selection import notes, points
from sdckit.selection.choice import Choice, choose
from sdckit.selection.conditions import Conditions
from sdckit.selection.limits import checked_limits
from sdckit.selection.plan import Setting, runs_of, settings_of
from sdckit.selection.runner import run_all
from sdckit.selection.sweep_folder import SweepFolder
from sdckit.selection.task import Stratum, Task

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


@dataclass(frozen=True)
class Sweep:
    """Measured maskings of one data set.

    `table` has one row per masked file, metric, variable and stratum; `setting` is the value of the
    parameter that varies along the grid.
    """

    table: pl.DataFrame
    notes: tuple[str, ...] = ()
    records: int = 0  # of the data
    conditions: Conditions | None = field(default=None, repr=False)  # what all maskings have in common
    settings: tuple[Setting, ...] = field(default=(), repr=False)

    @cached_property
    def summary(self) -> pl.DataFrame:
        """Whole-file values per setting: median over the replications and their central 95 %."""
        keys = ["dataset", "method", "parameters", "setting", "metric"]
        value = pl.col("value")
        return (
            self.table.filter(WHOLE)
            .group_by(keys, maintain_order=True)
            .agg(
                value.median(),
                value.quantile(0.025, "linear").alias("ci_low"),
                value.quantile(0.975, "linear").alias("ci_high"),
                pl.len().alias("replications"),
            )
        )

    @cached_property
    def lines(self) -> list[points.Line]:
        """The measured settings, by method and fixed parameters, from the weakest to the strongest."""
        return points.lines_of(points.measured(self.summary, self.settings))

    @cached_property
    def files(self) -> int:
        """Number of masked files that were measured."""
        return self.table.select("method", "parameters", "replication").n_unique()

    def __repr__(self) -> str:
        methods = self.table["method"].unique(maintain_order=True).to_list()
        metrics = self.table["metric"].unique(maintain_order=True).to_list()
        return (
            f"Sweep({self.files} masked files; methods: {', '.join(methods)}; metrics: {', '.join(metrics)})"
        )

    def _repr_html_(self) -> str:
        return str(self.summary._repr_html_())

    def plot(self, metrics: str | Sequence[str] | None = None) -> Any:
        """Draw loss against the parameter of each method: an altair chart."""
        from sdckit.report import build  # noqa: PLC0415 - only for those who draw

        return build.chart_of_sweep(self, metrics)

    def frontier(
        self, losses: str | Sequence[str] = "brmae", risks: str | Sequence[str] = "linkage"
    ) -> pl.DataFrame:
        """Return the settings that no other dominates in these losses and risks (Pareto frontier)."""
        given = [[metrics] if isinstance(metrics, str) else metrics for metrics in (losses, risks)]
        named = [[registry.current_name(metric) for metric in metrics] for metrics in given]
        return points.frontier(self.summary, *named)

    def recommend(self, max_risk: dict[str, float], minimise: str = "brmae") -> Choice:
        """Return the setting with the least loss among those that meet the limits.

        Safe is, for each method, the weakest setting from which on every stronger one of the grid meets
        all limits, in the median over the replications.

        Parameters
        ----------
        max_risk : dict
            Limits by risk, such as `{"linkage": 0.1, "linkage_outliers": 0.3}`.
        minimise : str
            The loss to keep small.

        Returns
        -------
        Choice
        """
        known = self.summary["metric"].unique(maintain_order=True).to_list()
        limits = checked_limits(max_risk, minimise, known)
        minimise = registry.current_name(minimise)
        return choose(self.lines, limits, minimise, maskings=self.files, conditions=self.conditions)

    def to_html(self, name: str | None = None) -> str:
        """Return a report with the risk-utility map as one self-contained page."""
        from sdckit.report import build  # noqa: PLC0415 - only for those who report

        return build.of_sweep(self, name=name or self.table["dataset"][0])

    def to_csv(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the table as CSV (or Parquet, by the suffix), completely or not at all."""
        from sdckit.io import files  # noqa: PLC0415 - only for those who write

        files.write(path, self.table, overwrite=overwrite)


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
    missing: str = "pairwise",
    na: Any = None,
    rules: Any = None,
    replications: int = 1,
    draws: str = "common",
    per_variable: bool = False,
    detail: bool = False,
    rng: Any = None,
    workers: int | None = None,
    folder: str | Path | None = None,
    overwrite: bool = False,
    name: str = "data",
) -> Sweep:
    """Mask data in many ways and measure each: methods x parameter grids x replications.

    The same seed gives the same table, whatever the number of workers and however often the sweep
    was stopped and continued.

    Parameters
    ----------
    original : table
        pandas, polars, pyarrow or numpy; or what `prepare` returns, with its roles.
    plan : dict, optional
        Methods with the grids of their parameters, as in `{"mdav": {"k": range(2, 31)}}`; values are
        lists, ranges, single values or text such as "0.01:0.3:0.01". A method's name alone, or a
        list of names, takes its usual grid; None takes every method.
    metrics, columns, key, weights, by, ties, missing, na
        As for `evaluate`; each stratum is masked by itself. A metric may settle its own options, as
        in "brmae:ties=first" or "il1:zeros=drop".
    rules
        As for `mask`: every masked file is made to obey them before it is measured.
    replications : int
        How often a random method is repeated; others need one run.
    draws : str
        "common": all settings of a method share their random numbers, so that a curve shows the
        parameter's effect; "fresh": each has its own.
    per_variable : bool
        Also a row for each variable.
    detail : bool
        Also the random-order level and the tie range of each file, which takes several times longer.
    rng : None, int or numpy Generator
        None draws fresh entropy. Keep a seed secret: it undoes the maskings.
    workers : int, optional
        Threads; by default one for each core.
    folder : path, optional
        Keep finished runs there: the same call goes on where it was stopped, and a larger plan
        computes what is new. The folder is private: it holds the seed.
    overwrite : bool
        Begin anew, whatever an earlier sweep left in the folder.
    name : str
        What the column `dataset` says.

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
    runs_of(wanted, repeated)  # refuses too many of them before any other check
    threads = cores() if workers is None else checks.checked_count("workers", workers)
    how = {
        "metrics": _metrics(metrics, wanted),
        "draws": checks.one_of("rule for draws", draws, DRAWS),
        "per_variable": per_variable,
        "detail": detail,
    }
    prepared = Original.of(original, columns=columns, key=key, weights=weights, by=by, na=na)
    conditions = Conditions.of(prepared, rules=rules, ties=ties, missing=missing)
    task, settings = task_of(prepared, conditions, wanted, **how)
    runs = runs_of(settings, repeated)
    if folder is None:
        found = run_all(task, runs, randomness.entropy_of(rng), threads)
    else:
        with SweepFolder(folder, task.identity, rng, task.length, overwrite=overwrite) as place:
            found = run_all(task, runs, place.entropy, threads, place.checkpoint)
    table = _table(task, runs, found, name)
    told = notes.of_sweep(table, task, wanted, settings, ruled=rules is not None)
    return Sweep(table, told, prepared.n, conditions, tuple(settings))


def task_of(
    original: Original, conditions: Conditions, settings: Iterable[Setting], **how: Any
) -> tuple[Task, list[Setting]]:
    """Return the task that all runs share, checked before any work, and the settings the data allow."""
    decimals = checks.checked_decimals(conditions.decimals)
    task = Task(
        Stratum("all", original),
        [Stratum(name, part, rows) for name, rows, part in original.parts],
        edits=edits_of(conditions.rules, original),
        places=None if decimals is None else tuple(column_decimals(original.values, decimals)),
        ties=checks.one_of("rule for ties", conditions.ties, TIES),
        missing=checks.one_of("rule for missing cells", conditions.missing, checks.MISSING),
        **how,
    )
    return task, task.suited(settings)


def _metrics(names: str | Iterable[str] | None, settings: Iterable[Setting]) -> list[Metric]:
    """Return the metrics of a sweep; by default without row comparisons where a method needs that."""
    chosen = registry.metrics_named(names)
    if not any(setting.paired for setting in settings):
        registry.metrics_for_rows(names, paired=False)  # refuses what would have no value at all
    if names is None and not all(setting.paired for setting in settings):
        chosen += [metric for metric in METRICS.values() if metric.default_unpaired]
    return chosen


def cores() -> int:
    """Return how many cores this process may use."""
    known = getattr(os, "sched_getaffinity", None)  # where one can ask
    return len(known(0)) if known else os.cpu_count() or 1


def _table(task: Task, runs: Sequence[Run], found: Floats, name: str) -> pl.DataFrame:
    """Return one row per run, metric, group and variable."""
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
    table = pl.concat(
        [heads[rows // len(labelled)], labels[rows % len(labelled)], numbers], how="horizontal"
    ).with_columns(ci_low=None, ci_high=None)
    whole = [metric.name for metric in task.metrics if not metric.by_variable]
    kept = (pl.col("variable") == "all") | ~pl.col("metric").is_in(whole)
    return table.filter(kept).select(*HEAD, *SCHEMA).cast(SCHEMA)
