"""Notes for readers of a sweep: settings, metrics and cells that were left out, and edit rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from sdckit.masking.mask_table import NO_RULE
from sdckit.metrics.evaluation import small_strata_notes
from sdckit.metrics.evaluation_result import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.core.registry import Metric
    from sdckit.rules.rules import Edits
    from sdckit.selection.plan import Setting
    from sdckit.selection.task import Task


def sweep_notes(
    table: pl.DataFrame, task: Task, wanted: Sequence[Setting], settings: Sequence[Setting], *, ruled: bool
) -> tuple[str, ...]:
    """Return all notes on a sweep; `wanted` are the settings of the plan, `ruled` is True with edit rules."""
    return (
        *_unpaired_note(task.metrics, settings),
        *_cell_notes(table, task.missing),
        *small_strata_notes(size for _, size in task.groups[1:]),
        *_left_out_notes(wanted, settings),
        *(_rules_note(task.edits) if ruled else ()),
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


def _rules_note(edits: Edits | None) -> list[str]:
    """Return a note on the edit rules that every masked table satisfies."""
    return [NO_RULE if edits is None else f"edit rules hold in every masked file ({edits.rules.summary})"]


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
