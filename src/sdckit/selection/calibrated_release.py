"""Releases that are calibrated: totals hold in what is handed out, and its risk is that of two files.

An intruder may undo a calibration: he knows the totals, the method and, in the worst case, the originals, so
that the factor by which the cells of a domain were multiplied can be found by trying. Each risk of a
calibrated file is the larger one of the file itself and of the masked file before calibration.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import registry
from sdckit.core.table import Table
from sdckit.masking.mask_units import warn_of_split_units
from sdckit.metrics.estimates.declared import published_survey, survey_options
from sdckit.metrics.estimates.survey_file import SurveyFile
from sdckit.metrics.notes import NOT_UNDONE
from sdckit.selection.calibration import CalibrationTask, parse_totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.masking import Masking
    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.original import Original

UNDONE = "if the calibration is undone: "
KNOWN = (
    "calibration publishes exact totals of the original: at least ten records contribute to each, and none "
    "of them dominates; risks count an intruder who undoes it"
)


def calibration_task(texts: Sequence[str], rules: Any, original: Original) -> CalibrationTask:
    """Return how maskings of prepared data are calibrated; raise ValueError for totals that are not safe."""
    requests = parse_totals(texts)
    words = {"all_need": "calibration needs", "each": "a total to calibrate"}
    file = published_survey(original, requests, **words)
    return CalibrationTask(file, requests, rules, original.columns)


def calibrate_masking(
    made: Masking, task: CalibrationTask, original: Original, rng: np.random.Generator
) -> Masking:
    """Return a masking with its cells calibrated, and with the one before it."""
    masked = SurveyFile(Table(made.data), "masked", survey_options(original))
    found = task.calibrated(masked, rng)
    if made.disclosure.paired:
        warn_of_split_units(original, Table(found.data).floats(original.columns, original.roles.na))
    # Which cells are rounded up is random: the published cells do not follow from the originals.
    totals = tuple(one.text for one in task.requests)
    disclosure = replace(made.disclosure, deterministic=False, calibrated=totals)
    return replace(
        made,
        data=found.data,
        notes=[*made.notes, *found.notes, KNOWN],
        disclosure=disclosure,
        uncalibrated=made,
    )


def with_larger_risks(result: Evaluation, undone: Evaluation) -> Evaluation:
    """Return the evaluation of a calibrated file, with those risks that are larger before calibration.

    Parameters
    ----------
    result
        The evaluation of the calibrated file.
    undone
        The risks of the masked file before calibration.

    Returns
    -------
    Evaluation
        All figures of such a risk, by variable and stratum too, are those before calibration.
    """
    names = [name for name in undone.meaning if name in result.meaning and _is_larger(undone, result, name)]
    table, meaning, parts, records = result.table, dict(result.meaning), dict(result.parts), result.records
    for name in names:
        here = pl.col("metric") == name
        place = int(table.select(here.arg_max()).item())
        before, after = table[:place].filter(~here), table[place:].filter(~here)
        table = pl.concat([before, undone.table.filter(here), after])
        meaning[name] = UNDONE + undone.meaning[name]
        parts[name] = undone.parts.get(name, {})
        if records is not None and undone.records is not None and name in undone.records.columns:
            records = records.with_columns(undone.records[name])
    return replace(
        result,
        table=table,
        meaning=meaning,
        notes=tuple(note for note in result.notes if note != NOT_UNDONE),
        parts=parts,
        records=records,
        scenarios=_larger_scenarios(result.scenarios, undone.scenarios),
    )


def _is_larger(undone: Evaluation, result: Evaluation, name: str) -> bool:
    """Return True if a risk is larger before calibration than after it."""
    return registry.METRICS[name].family == "risk" and undone.upper_end(name) > result.upper_end(name)


def _larger_scenarios(result: pl.DataFrame | None, undone: pl.DataFrame | None) -> pl.DataFrame | None:
    """Return the risks in scenarios, each row from the table in which it is larger."""
    if result is None or undone is None:
        return result
    end = pl.coalesce("ci_high", "value").fill_null(-np.inf)
    larger = undone.select(end).to_series() > result.select(end).to_series()
    return pl.concat([(undone if one else result)[i : i + 1] for i, one in enumerate(larger)])
