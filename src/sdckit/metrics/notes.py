"""Notes that accompany the numbers in the evaluation of a masked file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from sdckit.core.registry import METRICS
from sdckit.core.text import plural
from sdckit.core.warning_texts import warn
from sdckit.risk.facts import facts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.core.disclosure import Disclosure
    from sdckit.core.registry import Metric
    from sdckit.metrics.comparison import Comparison
    from sdckit.metrics.pair import Pair

NOT_UNDONE = (
    "the file was calibrated to totals of the original; risks measured here leave out an intruder who undoes "
    "that, whom those of the release count"
)
FEW = 3  # records below which a loss nearly shows those of single records


def small_strata_notes(sizes: Iterable[int]) -> list[str]:
    """Return a note, if any of the strata sizes is below 3, that their figures are not for publication."""
    small = sum(size < FEW for size in sizes)
    return [f"not for publication: strata with fewer than {FEW} records: {small}"] if small else []


def rule_notes(pair: Pair) -> list[str]:
    """Return a note for each edit rule that masked records break, with their number."""
    rules = pair.rules
    if rules is None:
        return []
    column_numbers = [pair.columns.index(name) for name in rules.columns]
    found = zip(rules.texts, rules.violations(pair.masked[:, column_numbers]), strict=True)
    return [
        f"the rule {text} is broken in {count} masked {plural(count, 'record')}"
        for text, count in found
        if count
    ]


def unpaired_notes(pair: Pair, left_out: Sequence[str]) -> list[str]:
    """Return notes on what was left out because masked rows stand for no original record."""
    notes = []
    if not pair.complete:
        notes.append(
            "cells are left out where the other file has none in that row, though rows are not paired"
        )
    if left_out:
        notes.append(f"left out because rows are not paired: {', '.join(left_out)}")
    risks = any(METRICS[name.partition(":")[0]].family == "risk" for name in left_out)
    if risks and not facts_of(pair).tie_rows:
        notes.append("no risk was measured: where rows are not paired, a link cannot be right or wrong")
    return notes


def uninformed_notes(
    disclosure: Disclosure, metrics: Sequence[Metric], *, masks_again: bool = False
) -> list[str]:
    """Return a note naming the risks of an intruder who learns the masking from the release alone.

    With `masks_again` he was given the masking itself.
    """
    named = [metric.name for metric in metrics if metric.informed and "within" not in metric.fixed_options]
    if disclosure.method is not None or disclosure.deterministic or masks_again or not named:
        return []
    law = f"the law behind {', '.join(named)} was learnt from folds of the release alone"
    return [f"nobody said how the file was masked: {law}; for a sharper figure give method= or made_by="]


def calibration_notes(disclosure: Disclosure, metrics: Sequence[Metric]) -> list[str]:
    """Return a note that the risks leave out who undoes a calibration, where the file was calibrated."""
    risky = any(metric.family == "risk" for metric in metrics)
    return [NOT_UNDONE] if disclosure.calibrated and risky else []


def unmasked_notes(disclosure: Disclosure, columns: Sequence[str]) -> list[str]:
    """Return a note naming the measured columns that are not among the masked ones, where these are known."""
    others = [name for name in columns if disclosure.columns and name not in disclosure.columns]
    return [f"measured, but not masked by this method: {', '.join(others)}"] if others else []


def warn_of_changed_columns(pair: Pair) -> None:
    """Warn of columns that are no variables and yet differ from the original in most records."""
    changed = [repr(name) for name, case in facts_of(pair).cases.items() if case == "e"]
    if changed:
        fact = f"not measured, but changed in most records: {', '.join(changed)}"
        warn(f"{fact}; the linkage attacks do not use them; name masked columns with columns")


def missing_notes(comparison: Comparison, metrics: Sequence[Metric], missing: str) -> list[str]:
    """Return notes on the numbers of cells that are missing in one of the two files only."""
    counts = comparison.counts
    suppressed, imputed = int(counts.suppressed.sum()), int(counts.imputed.sum())
    notes = []
    if suppressed and missing == "pairwise":
        notes.append(
            f"suppressed cells, left out of every metric: {suppressed} (the rule penalise counts them)"
        )
    if suppressed and missing == "penalise":
        others = any(not metric.bounded for metric in metrics)
        rest = "; metrics without a largest value leave them out" if others else ""
        notes.append(f"suppressed cells, counted as the largest loss: {suppressed}{rest}")
    if imputed:
        cells = "cell is" if imputed == 1 else "cells are"
        notes.append(f"{imputed} {cells} missing in the original but not in the masked data")
    return notes


def privacy_notes(table: pl.DataFrame, *, per_record: bool) -> list[str]:
    """Return a note, if losses of single records can be read off the table, not to publish them."""
    cells = table.filter(pl.col("variable") != "all")["n_used"]
    if not per_record and not cells.is_between(1, FEW - 1).any():
        return []
    return ["not for publication: losses of single records show how far each value moved"]
