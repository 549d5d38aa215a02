"""The result of a sweep: a table of loss and risk of many maskings, its charts and its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core import checks, notebook, registry
from sdckit.core.scenarios import limits_of
from sdckit.core.table import USUAL_KIND
from sdckit.core.text import number
from sdckit.evaluation.measure import small_strata_notes
from sdckit.evaluation.result import Evaluation  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.masking.mask_table import NO_RULE
from sdckit.metrics.publishable import WHOLE, rounded_losses
from sdckit.report import build
from sdckit.report.result import ReportedResult
from sdckit.report.risk_map import KEYS
from sdckit.selection import points
from sdckit.selection.choice import Choice, choose
from sdckit.selection.limits import check_limits_and_loss
from sdckit.selection.plan import Setting  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.points import Conditions  # noqa: TC001 - typing.get_type_hints looks for it

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sdckit.core.registry import Metric
    from sdckit.selection.task import Task

FITTING = 8  # number of columns with figures that fit into a terminal


@dataclass(frozen=True)
class Sweep(ReportedResult):
    """Loss and risk of many maskings of one data set.

    `table` has one row per masked file, metric, variable and stratum; `setting` is the value of the
    parameter that varies along the grid. `notes` are remarks on the numbers, `warnings` the texts of the
    warnings issued; `records` is the number of records of the data, `conditions` are the roles and rules of
    all maskings, `settings` the methods and parameters tried, `withheld` the losses that are not published.
    """

    table: pl.DataFrame
    notes: tuple[str, ...] = ()
    records: int = 0  # number of records of the data
    conditions: Conditions | None = field(default=None, repr=False)  # roles and rules of all maskings
    settings: tuple[Setting, ...] = field(default=(), repr=False)
    warnings: tuple[str, ...] = field(default=(), repr=False)  # also issued as Python warnings
    withheld: frozenset[str] = field(default=frozenset(), repr=False)  # losses that are not published

    @cached_property
    def summary(self) -> pl.DataFrame:
        """Table of whole-file values by setting and metric: median of the replications, central 95 %."""
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

    @property
    def upper_ends(self) -> pl.DataFrame:
        """Table of the upper ends of intervals by setting and metric, where values are estimates: medians."""
        ends = self.table.filter(WHOLE & pl.col("ci_high").is_not_null())
        keys = [*KEYS[:2], "metric"]
        return ends.group_by(keys, maintain_order=True).agg(pl.col("ci_high").median())

    def public(self) -> Sweep:
        """Return a copy with losses over declared estimates as they may be published.

        They are rounded (see `registry.public_value`); withheld ones and those of strata are left out.
        """
        told = registry.estimate_losses() - self.withheld
        hidden = pl.col("metric").is_in(list(registry.estimate_losses())) & ~(
            WHOLE & pl.col("metric").is_in(list(told))
        )
        return replace(self, table=rounded_losses(self.table.filter(~hidden)))

    @cached_property
    def curves(self) -> list[points.Curve]:
        """The measured settings grouped by method and fixed parameters, each group from weak to strong."""
        measured = points.points_of_sweep(self.summary, self.settings, self.upper_ends, self.withheld)
        return points.curves_of(measured)

    @cached_property
    def files(self) -> int:
        """Number of masked tables that were measured."""
        return self.table.select("method", "parameters", "replication").n_unique()

    def __repr__(self) -> str:
        """Return what was swept, each method at both ends of its grid, and the notes."""
        names, rows = overview(self.public().summary)
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        cells = [
            [name.ljust(width) for name, width in zip(row, widths, strict=True)] for row in (names, *rows)
        ]
        return "\n".join([self._head(), *("  ".join(row).rstrip() for row in cells), *self._sentences()])

    def _head(self) -> str:
        """Return how many files were measured, and with which methods and metrics."""
        methods = self.table["method"].unique(maintain_order=True).to_list()
        metrics = self.table["metric"].unique(maintain_order=True).to_list()
        return (
            f"Sweep({self.files} masked files; methods: {', '.join(methods)}; metrics: {', '.join(metrics)})"
        )

    def _sentences(self) -> list[str]:
        """Return the notes as lines of text."""
        return [f"note: {note}" for note in self.notes]

    def _repr_html_(self) -> str:
        """Return what `print` shows, for notebooks."""
        names, rows = overview(self.public().summary)
        return notebook.block(
            notebook.paragraphs([self._head()]),
            notebook.table(names, rows, right=names[2:]),
            notebook.paragraphs(self._sentences()),
        )

    def plot(self, metrics: str | Sequence[str] | None = None) -> Any:
        """Return an altair chart of loss against the varied parameter of each method.

        Notebooks show it without a network, as a picture; `save` writes it to a file. Losses over declared
        estimates are rounded or left out as in `public`.
        """
        return build.chart_of_sweep(self, metrics)

    def map(self, choice: Choice | None = None, files: Evaluation | None = None) -> Any:
        """Return the map of loss and risk as an altair chart: a mark for each setting, and the frontier.

        Parameters
        ----------
        choice : Choice, optional
            What `recommend` returned: its limit and the chosen setting are marked.
        files : Evaluation, optional
            What `evaluate` returned for files that were masked elsewhere: they get a mark each.

        Returns
        -------
        altair.LayerChart
            Notebooks show it without a network, as a picture; `save` writes it to a file.

        Raises
        ------
        ValueError
            No bounded loss, or no risk, was measured.
        """
        return build.map_of_sweep(self, choice, files)

    def frontier(
        self, losses: str | Sequence[str] = "brmae", risks: str | Sequence[str] = "linkage"
    ) -> pl.DataFrame:
        """Return the settings that no other dominates in these losses and risks (Pareto frontier)."""
        given = [[metrics] if isinstance(metrics, str) else metrics for metrics in (losses, risks)]
        named = [[registry.current_name(metric) for metric in metrics] for metrics in given]
        return points.frontier(self.summary, *named)

    def recommend(
        self,
        max_risk: dict[str, float],
        minimise: str = "brmae",
        *,
        max_loss: dict[str, float] | None = None,
        decimals: int | str | None = "original",
    ) -> Choice:
        """Return the measured setting with the least loss among those that meet the limits.

        A setting is safe if it and every stronger setting of its grid meet all limits on risk, in the median
        over the replications. Compared are, for each method, the weakest safe settings that meet the limits
        on loss. A suppressed cell counts as the sweep's rule for missing cells says.

        Parameters
        ----------
        max_risk : dict
            Limits by risk, such as `{"linkage": 0.1, "linkage_outliers": 0.3}`. One on `linkage_sure`, where
            it was measured, is a tenth of that on `linkage` unless it is given.
        minimise : str
            The loss to minimise.
        max_loss : dict, optional
            Limits by loss, such as `{"suppressed": 0.01}`.
        decimals : int, "original" or None
            How `release` of the choice rounds the table that it makes, and measures. The settings of the
            sweep were measured without rounding.

        Returns
        -------
        Choice
        """
        places = checks.checked_decimals(decimals)
        known = self.summary["metric"].unique(maintain_order=True).to_list()
        limits = check_limits_and_loss(max_risk, minimise, known, max_loss)
        minimise = registry.current_name(minimise)
        conditions = self.conditions and replace(self.conditions, decimals=places)
        if conditions and limits_of(conditions.scenarios):
            raise ValueError(
                "the intruders of the data have limits, which a sweep does not measure; use data.recommend()"
            )
        return choose(self.curves, limits, minimise, maskings=self.files, conditions=conditions)

    @property
    def kind(self) -> str:
        """The type of the original's dataframe, which `to_frame` returns."""
        return USUAL_KIND if self.conditions is None else self.conditions.original.kind

    def to_html(self, name: str | None = None) -> str:
        """Return a report with the risk-utility map as one self-contained HTML page."""
        return build.report_on_sweep(self, name=name or self.table["dataset"][0])


def overview(summary: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return column names and rows of each method's measures at both ends of its grid, as texts."""
    metrics = _metrics_that_fit(summary["metric"].unique(maintain_order=True).to_list())
    rows = []
    for method in summary["method"].unique(maintain_order=True):
        part = summary.filter(pl.col("method") == method)
        settings = part["parameters"].unique(maintain_order=True)
        for setting in dict.fromkeys([settings[0], settings[-1]]):
            values = dict(part.filter(pl.col("parameters") == setting).select("metric", "value").rows())
            rows.append([method, setting, *(number(values[metric]) for metric in metrics)])
    return ["method", "parameters", *metrics], rows


def _metrics_that_fit(metrics: list[str]) -> list[str]:
    """Return the metrics to print: all if they fit on a terminal, else the main ones."""
    known = sorted(registry.shown_metrics("headline", "overview"), key=lambda metric: not metric.paired)
    leading = [metric.name for metric in known if metric.name in metrics]
    return metrics if len(metrics) <= FITTING or not leading else leading


# --- notes for readers ---


def sweep_notes(
    table: pl.DataFrame, task: Task, wanted: Sequence[Setting], settings: Sequence[Setting], *, ruled: bool
) -> tuple[str, ...]:
    """Return all notes on a sweep; `wanted` are the settings of the plan, `ruled` is True with edit rules."""
    edits = task.edits
    rules = NO_RULE if edits is None else f"edit rules hold in every masked file ({edits.rules.summary})"
    return (
        *_unpaired_note(task.metrics, settings),
        *_cell_notes(table, task.missing),
        *small_strata_notes(size for _, size in task.groups[1:]),
        *_left_out_notes(wanted, settings),
        *([rules] if ruled else ()),
    )


def _unpaired_note(metrics: Sequence[Metric], settings: Iterable[Setting]) -> list[str]:
    """Return a note on methods whose masked rows have no original record, and the metrics lost by that."""
    methods = dict.fromkeys(setting.method.name for setting in settings if not setting.paired)
    lost = [metric.name for metric in metrics if metric.paired]
    if not methods or not lost:
        return []
    return [f"rows of {', '.join(methods)} stand for no original record: no value of {', '.join(lost)}"]


def _left_out_notes(wanted: Iterable[Setting], settings: Sequence[Setting]) -> list[str]:
    """Return notes on methods and settings of default grids that need more records than there are."""
    kept = {id(setting) for setting in settings}
    lost = [setting for setting in wanted if id(setting) not in kept]
    left = {setting.method.name for setting in settings}
    whole = dict.fromkeys(setting.method.name for setting in lost if setting.method.name not in left)
    part = dict.fromkeys(setting.method.name for setting in lost if setting.method.name in left)
    notes = (
        [f"methods left out, as the data have too few records for them: {', '.join(whole)}"] if whole else []
    )
    if part:
        notes.append(f"settings that need more records than there are were left out of: {', '.join(part)}")
    return notes


def _cell_notes(table: pl.DataFrame, missing: str) -> list[str]:
    """Return notes on cells that were suppressed or left out of a metric: the largest number of any run."""
    whole = table.filter(WHOLE)
    notes = []
    for metric, cells in whole.group_by("metric", maintain_order=True).agg(pl.col("n_left_out").max()).rows():
        if cells:
            notes.append(
                f"cells left out of {metric} because its formula has no value for them: up to {cells}"
            )
    suppressed = whole["n_suppressed"].max()
    if suppressed:
        rule = {"penalise": "counted as the largest loss", "pairwise": "left out"}[missing]
        notes.append(f"suppressed cells in a masked file, {rule}: up to {suppressed!s}")
    return notes
