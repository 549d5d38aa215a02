"""Everything that the report takes from original records, in one module that can be audited.

Statistics of the original come from `metrics.guarded_figures`, rounded until none tells a record. Two charts
on the page show counts of records: the distributions of each variable and the records by risk.
Both are computed here, in bins of at least `THRESHOLD` records. Bins have rounded edges that are chosen on
the masked file; the outer ones are open, so that neither a smallest nor a largest value is shown. Facts with
which a masking can be undone are dropped. Every other number of the page is a measure of the whole file or
of a whole variable, of at least `THRESHOLD` records or cells: from a loss of few cells, an original value can
be computed. Strata are never shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from sdckit.core import checks
from sdckit.metrics.publishable import WHOLE, public_evaluation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.arrays import Floats, Ints
    from sdckit.evaluation.result import Evaluation
    from sdckit.metrics.pair import Pair

THRESHOLD = checks.FEWEST_REPORTED  # smallest number of records in a bin, in both files
DIGITS = 2  # significant digits of a bin's edge
BINS = 10  # intended number of bins between the outer ones
OUTER = 0.1  # approximate share of the masked records below the first edge, and above the last
TAIL = 0.01  # the same share for bins in the series 1, 2, 5, 10, ...
SKEWED = (
    3.0  # ratio of the distances of the outer edges from the median above which bins are not equally wide
)
MAGNITUDES = 20.0  # ratio of the outer edges from which on they follow that series
SECRETS = ("seed", "rng", "entropy", "random state")


@dataclass(frozen=True)
class Bins:
    """Numbers of original and masked records between edges; the first and the last bin are open."""

    edges: tuple[float, ...]
    original: tuple[int, ...]
    masked: tuple[int, ...]


@dataclass(frozen=True)
class RiskBin:
    """Number of records with a risk of at least `low` and below `high`."""

    low: float
    high: float
    records: int


def count_by_bins(original: Floats, masked: Floats, edges: Floats | None = None) -> Bins | None:
    """Count original and masked records of a variable by bins; None if the counts would be too small.

    `edges` are those of `lasting_edges`, for a page that shows several masked files of the same original.
    """
    original, masked = original[~np.isnan(original)], masked[~np.isnan(masked)]
    if min(original.size, masked.size) < 2 * THRESHOLD:
        return None
    if edges is None:
        edges = _inner_edges(original, masked)
    ours, theirs = _count_between_edges(original, edges), _count_between_edges(masked, edges)
    ends = _merge_bins(ours, theirs)
    if len(ends) < 2:
        return None
    starts = [0, *ends[:-1]]
    return Bins(
        edges=tuple(float(edges[end - 1]) for end in ends[:-1]),
        original=tuple(int(ours[a:b].sum()) for a, b in zip(starts, ends, strict=True)),
        masked=tuple(int(theirs[a:b].sum()) for a, b in zip(starts, ends, strict=True)),
    )


def lasting_edges(original: Floats, masked: Floats) -> Floats:
    """Return bin edges for all masked files of an original, chosen on the first of them.

    With edges of its own for each file, the counts of two files would differ by those of a few records. Here
    at least `THRESHOLD` original records lie between neighbours, so that they do in every difference.
    """
    original, masked = original[~np.isnan(original)], masked[~np.isnan(masked)]
    if min(original.size, masked.size) < 2 * THRESHOLD:
        return np.empty(0)
    edges = _inner_edges(original, masked)
    ends = _merge_bins(_count_between_edges(original, edges))
    return edges[[end - 1 for end in ends[:-1]]]


def _inner_edges(original: Floats, masked: Floats) -> Floats:
    """Return the edges for a masked file inside of the original's range: others would disclose it."""
    edges = _rounded_edges(masked)
    return edges[(edges > original.min()) & (edges < original.max())]


def _rounded_edges(masked: Floats) -> Floats:
    """Return round numbers as bin edges, computed from the masked values alone.

    They are multiples of a step; for skewed variables quantiles, or the series 1, 2, 5, 10, ... where all but
    a few values are positive and span orders of magnitude.
    """
    low, middle, high = np.quantile(masked, [OUTER, 0.5, 1 - OUTER])
    if not high > low:
        low, high = masked.min(), masked.max()
    elif max(high - middle, middle - low) > SKEWED * min(high - middle, middle - low):
        if low > 0 and high > MAGNITUDES * low:
            return _series_edges(np.quantile(masked, [TAIL, 1 - TAIL]), low)
        return _rounded(np.quantile(masked, np.linspace(OUTER, 1 - OUTER, BINS - 1)))
    width = (high - low) / BINS
    if not width > 0:
        return np.empty(0)
    size = 10.0 ** np.floor(np.log10(width))
    step = size * next(factor for factor in (1, 2, 5, 10) if factor * size >= 0.999 * width)
    positions = np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    return _rounded(step * positions)


def _series_edges(ends: Floats, positive: float) -> Floats:
    """Return the numbers 1, 2, 5, 10, ... between two ends, the lower of which may not be positive."""
    low, high = (ends[0] if ends[0] > 0 else positive), ends[1]
    powers = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    series = _rounded(np.outer(10.0**powers, [1, 2, 5]).ravel())
    return series[(series >= low) & (series <= high)]


def _rounded(edges: Floats) -> Floats:
    """Return the different values of edges rounded to two significant digits, sorted."""
    return np.unique([float(f"{edge:.{DIGITS}g}") + 0.0 for edge in edges])


def _count_between_edges(values: Floats, edges: Floats) -> Ints:
    """Return numbers of records: below the first edge, between neighbours, from the last edge on."""
    return np.bincount(np.searchsorted(edges, values, side="right"), minlength=edges.size + 1)


def _merge_bins(*counts: Ints) -> list[int]:
    """Return the ends of merged bins, each with at least `THRESHOLD` records in every file."""
    ends, start = [], 0
    for end in range(1, len(counts[0]) + 1):
        if all(count[start:end].sum() >= THRESHOLD for count in counts):
            ends.append(end)
            start = end
    if ends:
        ends[-1] = len(counts[0])  # the remaining records join the last bin
    return ends


def count_by_risk(risks: Floats) -> list[RiskBin] | None:
    """Count records by risk in steps of 0.1, merged until each bin has none or at least `THRESHOLD`."""
    risks = risks[~np.isnan(risks)]
    if risks.size < THRESHOLD:
        return None
    counts = _count_between_edges(risks, np.arange(1, 10) / 10)
    bins: list[tuple[int, int]] = []
    start = 0
    for end in range(1, 11):
        found = counts[start:end].sum()
        if found >= THRESHOLD or (found == 0 and end - start == 1):
            bins.append((start, end))
            start = end
    while start < 10 and counts[start:].sum() < THRESHOLD:  # too few at the end: merge backwards
        start = bins.pop()[0]
    if start < 10:
        bins.append((start, 10))
    return [RiskBin(a / 10, b / 10, int(counts[a:b].sum())) for a, b in bins]


def require_enough_records(pair: Pair | None, evaluation: Evaluation | None) -> None:
    """Raise ValueError for data with so few records that measures would disclose single records."""
    records = _number_of_records(evaluation) if pair is None else pair.original.n
    if records is not None:
        checks.require_reportable_size(records)


def _number_of_records(evaluation: Evaluation | None) -> int | None:
    """Return how many records were measured: rows of the record table, or else the most cells of a variable.

    None if that is not known.
    """
    if evaluation is None:
        return None
    if evaluation.records is not None and evaluation.records.width:
        return evaluation.records.height
    whole_records = evaluation.table.filter(stratum="all")
    for rows in (whole_records.filter(~WHOLE), whole_records):
        if rows["n_used"].count():
            return int(max(rows["n_used"].drop_nulls()))
    return None


def guarded_evaluation(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation as a page may show it: no figure that one record dominates, or of few cells."""
    return drop_losses_of_few_cells(public_evaluation(evaluation))


def drop_losses_of_few_cells(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation without losses of fewer than `THRESHOLD` cells, with a note on each."""
    thin = (pl.col("family") == "loss") & (pl.col("n_used") < THRESHOLD)
    names = evaluation.summary.filter(thin)["metric"].to_list()
    if not names:
        return evaluation
    remarks = tuple(f"left out: {name}, made of fewer than {THRESHOLD} cells" for name in names)
    table = evaluation.table.filter(~pl.col("metric").is_in(names))
    return replace(evaluation, table=table, notes=(*evaluation.notes, *remarks))


def variables_to_hide(used: Mapping[str, int]) -> set[str]:
    """Return the variables whose loss must not be shown, given the number of cells of each.

    A variable is hidden if it has few cells, and also if the hidden ones together have few: the loss of the
    whole file is shown, so that theirs could be computed by subtraction.
    """
    fewest_first = sorted(used, key=lambda name: used[name])
    hidden: list[str] = []
    for name in fewest_first:
        if used[name] >= THRESHOLD and not 0 < sum(used[one] for one in hidden) < THRESHOLD:
            break
        hidden.append(name)
    return set(hidden)


def public_facts(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the facts without secrets such as the seed, with which noise can be subtracted."""
    return {
        name: text for name, text in facts.items() if not any(secret in name.lower() for secret in SECRETS)
    }
