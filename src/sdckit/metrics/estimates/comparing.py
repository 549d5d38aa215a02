"""Estimates of the original beside those of the masked file: change, overlap, sign and significance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.metrics.estimates.figures import FACTOR
from sdckit.metrics.estimates.measuring import ABSENT, Row, Rows
from sdckit.metrics.loss.moments import overlap

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDING = 1e-10  # of an estimate: what sums in another order may differ by, and no sampling error
FLOATS = (  # columns of the table, in the order of `_figures`
    *("original", "se_original", "masked", "se_masked", "change", "change_in_se", "overlap"),
    *("low_original", "high_original", "low_masked", "high_masked"),
    *("spread", "se_inflated", "low_inflated", "high_inflated"),
)
SCHEMA: dict[str, Any] = {
    "estimate": pl.String,
    "domain": pl.String,
    **dict.fromkeys(FLOATS, pl.Float64),
    "sign": pl.String,
    "significance": pl.String,
    "records_original": pl.Int64,
    "records_masked": pl.Int64,
    "reason": pl.String,
}


def comparison_table(original: Rows, masked: Rows, replications: Sequence[Rows] = ()) -> pl.DataFrame:
    """Return a row for each estimate and domain of either file; `replications` are of further maskings."""
    rows = []
    for key in _keys(original, masked):
        ours, theirs = original.get(key, ABSENT), masked.get(key, ABSENT)
        values = [one.get(key, ABSENT).value for one in (masked, *replications)] if replications else []
        rows.append((*key, *_figures(ours, theirs), *_inflated(ours, theirs, values), *_words(ours, theirs)))
    return pl.DataFrame(rows, SCHEMA, orient="row").with_columns(pl.col(FLOATS).fill_nan(None))


def _keys(original: Rows, masked: Rows) -> list[tuple[str, str]]:
    """Return estimates and domains of both files, those of one estimate together.

    Those of the masked file come first: in an order that is public, the others would stand out.
    """
    texts: dict[str, dict[tuple[str, str], None]] = {}
    for key in (*masked, *original):
        texts.setdefault(key[0], {}).setdefault(key)
    return [key for keys in texts.values() for key in keys]


def _figures(ours: Row, theirs: Row) -> tuple[float, ...]:
    """Return values and errors, change in percent and in standard errors, overlap, and both intervals."""
    gap = theirs.value - ours.value
    change = 0.0 if gap == 0 else 100 * gap / abs(ours.value) if ours.value else math.nan
    some_error = ours.error > ROUNDING * abs(ours.value)
    in_errors = gap / ours.error if some_error else 0.0 if gap == 0 else math.nan
    ends = (ours.low, ours.high, theirs.low, theirs.high)
    return (
        *(ours.value, ours.error, theirs.value, theirs.error, change, in_errors),
        *(interval_overlap(ours, theirs), *ends),
    )


def interval_overlap(ours: Row, theirs: Row) -> float:
    """Return the overlap of both intervals; NaN without one in the original, 0 without one in the masked.

    Intervals that are equal up to rounding overlap by 1, even if they have no length, as those of a constant.
    """
    if math.isnan(ours.low) or math.isnan(ours.high):
        return math.nan
    if math.isnan(theirs.low) or math.isnan(theirs.high):
        return 0.0
    ends = (ours.low, ours.high), (theirs.low, theirs.high)
    if all(math.isclose(one, other, rel_tol=ROUNDING) for one, other in zip(*ends, strict=True)):
        return 1.0
    return overlap(*ends)


def _inflated(ours: Row, theirs: Row, values: Sequence[float]) -> tuple[float, float, float, float]:
    """Return the spread of the masked estimate over maskings, and error and interval that know of it.

    The inflated variance is the original's plus the mean squared change over the maskings.
    """
    found = np.array([value for value in values if not math.isnan(value)])
    if found.size < 2:
        return (math.nan,) * 4
    error = math.sqrt(ours.error**2 + float(((found - ours.value) ** 2).mean()))
    half = FACTOR * error
    return float(found.std(ddof=1)), error, theirs.value - half, theirs.value + half


def _words(ours: Row, theirs: Row) -> tuple[str | None, str | None, int, int, str | None]:
    """Return what became of sign and significance, the records of both files, and reasons."""
    sign = None
    if not math.isnan(ours.value + theirs.value):
        sign = "kept" if np.sign(ours.value) == np.sign(theirs.value) else "changed"
    return sign, _significance(ours, theirs), ours.records, theirs.records, _reason(ours, theirs)


def _significance(ours: Row, theirs: Row) -> str | None:
    """Return whether 0 lies outside both intervals ("kept"), one ("lost", "gained") or none of them."""
    if math.isnan(ours.low + ours.high + theirs.low + theirs.high):
        return None
    before, after = (row.low > 0 or row.high < 0 for row in (ours, theirs))
    return {(True, True): "kept", (True, False): "lost", (False, True): "gained"}.get((before, after), "none")


def _reason(ours: Row, theirs: Row) -> str | None:
    """Return why figures of a row are absent, and in which file; None if all are there."""
    if ours.reason == theirs.reason:
        return ours.reason or None
    parts = (("original", ours), ("masked", theirs))
    return "; ".join(f"{which}: {row.reason}" for which, row in parts if row.reason)
