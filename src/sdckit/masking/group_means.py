"""Group aggregates for microaggregation: means or medians, and the share of variance they lose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.parameters import Parameter
from sdckit.core.text import plural
from sdckit.kernels.group_changes import merge_small_groups
from sdckit.kernels.scaling import deviations, powers_of_two, standardise

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints

RUNS = 100_000  # groups aggregated at once: the computation needs several times the memory of the values
MEASURES = ("mean", "median")
GAP_RULES = ("alike", "merge", "suppress")
GROUP_SIZE = Parameter("k", int, 3, "smallest group size", low=1, grid=range(2, 31))
AGGREGATE = Parameter("aggregate", str, "mean", "what is published of a group", choices=MEASURES)
GAPS = Parameter(
    "gaps", str, "alike", "what becomes of a group's variable with missing cells", choices=GAP_RULES
)


def share_of_groups(options: dict[str, Any]) -> float:
    """Return the largest possible share of re-identified records, 1/k: one record of each group."""
    return float(1 / options["k"])


FEWEST = 3  # with two values behind a mean, each respondent could compute the other's


def notes_on_medians(_values: Floats, options: dict[str, Any]) -> list[str]:
    """Return a note that the median of an odd number of values is one of the original values."""
    return median_notes(options)


def whole_median_notes(_whole: object, options: Mapping[str, Any]) -> list[str]:
    """Return the same note for a file that was read in blocks."""
    return median_notes(options)


def median_notes(options: Mapping[str, Any]) -> list[str]:
    """Return a note that the median of an odd number of values is one of them; none for means."""
    return [] if options["aggregate"] == "mean" else ["medians of an odd number of values are original ones"]


def window_zero(_options: dict[str, Any], _values: Floats) -> int:
    """Return 0, the largest move in ranks of methods that keep the order of each column."""
    return 0


def each_by_itself(_options: Mapping[str, Any]) -> bool:
    """Return True: the method masks each column by itself, whatever its options."""
    return True


def rows_alike(options: Mapping[str, Any]) -> bool:
    """Return True if all records of a group are published alike, missing cells included, in any stratum."""
    gaps = options["gaps"]
    return options["k"] != 1 and "alike" in (gaps.values() if isinstance(gaps, Mapping) else (gaps,))


def note_on_gaps(filled: int, suppressed: int) -> list[str]:
    """Return a note on the cells that were filled or suppressed to make groups alike; none if none were."""
    if not filled and not suppressed:
        return []
    counts = f"{filled} missing {plural(filled, 'cell')} filled, {suppressed} others suppressed"
    return [f"{counts}, so that all records of a group are alike"]


def with_empty_records(values: Floats, groups: Ints, k: int, gaps: str) -> Ints:
    """Return the groups with records without any value in them, if gaps="alike"; else as they are.

    k or more such records form groups of their own. Fewer would stand out: they join, of the smallest
    groups, the one whose centroid is nearest to the mean of all records.
    """
    empty = np.flatnonzero(groups < 0)
    if gaps != "alike" or k == 1 or not empty.size:
        return groups
    found = groups.copy()
    if empty.size >= k:
        found[empty] = groups.max() + 1 + np.minimum(np.arange(empty.size) // k, empty.size // k - 1)
        return found
    order, starts = _runs(groups)
    sizes = np.diff(starts, append=len(order))
    reach = (centroids(standardise(values, ddof=0), order, starts) ** 2).sum(axis=1)
    found[empty] = np.argmin(np.where(sizes == sizes.min(), reach, np.inf))
    return found


def _runs(groups: Ints) -> tuple[Ints, Ints]:
    """Return the rows ordered by group without those in none, and where each group starts."""
    order = np.argsort(groups, kind="stable")[np.count_nonzero(groups < 0) :]
    return order, np.flatnonzero(np.diff(groups[order], prepend=-1))


def publish(
    values: Floats,
    groups: Ints,
    k: int,
    aggregate: str = "mean",
    *,
    gaps: str = "suppress",
    points: Floats | None = None,
) -> Floats:
    """Return the matrix with each value replaced by its group's mean or median; group -1 means no group.

    `gaps="alike"` publishes a column for all records of a group or for none (see `make_alike`). Where fewer
    than k of a group's records have a value in a column, "suppress" makes these cells missing; "merge" merges
    groups in that column (see `merge_gaps`). `points` are the records as distances between groups compare
    them, by default standardised.
    """
    if k == 1:
        return values.copy()
    order, starts = _runs(groups)
    masked = np.full_like(values, np.nan)
    masked[order] = run_aggregates(values[order], starts, k, aggregate)
    if gaps != "suppress" and np.isnan(values.min(initial=0.0)):
        if gaps == "alike":
            masked[order] = make_alike(masked[order], values[order], starts, k)
        else:
            merge_gaps(masked, values, (order, starts), k, aggregate, points)
    return masked


def make_alike(published: Floats, values: Floats, starts: Ints, k: int) -> Floats:
    """Return what runs of rows publish, with each column filled or suppressed in all rows of a run.

    Filled where at least max(k, 3) rows have a value, or none of them misses one; else suppressed.
    """
    sizes = np.diff(starts, append=len(values))
    counts = np.add.reduceat(~np.isnan(values), starts, axis=0, dtype=np.int64)
    shared = np.fmax.reduceat(published, starts, axis=0)  # its observed cells are equal
    shared[(counts < max(k, FEWEST)) & (counts < sizes[:, None])] = np.nan
    return np.repeat(shared, sizes, axis=0)


def merge_gaps(
    masked: Floats,
    values: Floats,
    runs: tuple[Ints, Ints],
    k: int,
    aggregate: str,
    points: Floats | None = None,
) -> None:
    """Write into `masked` the aggregates of merged groups, where a group has fewer than k values of a column.

    `runs` has the rows ordered by group, and where each group starts. A group is merged, in that column
    alone, with those that have the nearest centroids until k values are there (see `merge_small_groups`),
    and every value of the merged groups becomes the aggregate of all of them: the values of one group
    cannot be inferred from those of another. Where the whole column has fewer than k values, its cells stay
    missing.
    """
    order, starts = runs
    counts = np.add.reduceat(~np.isnan(values[order]), starts, axis=0, dtype=np.int64)
    small = ((counts > 0) & (counts < k)).any(axis=0) & (counts.sum(axis=0) >= k)
    if not small.any():
        return
    centres = centroids(standardise(values, ddof=0) if points is None else points, order, starts)
    sizes = np.diff(starts, append=len(order))
    for j in np.flatnonzero(small):
        merged = merge_small_groups(centres, counts[:, j], k)
        touched = np.isin(merged, merged[merged != np.arange(len(merged))])
        numbers, rows = np.repeat(merged, sizes), order[np.repeat(touched, sizes)]
        numbers = numbers[np.repeat(touched, sizes)]
        again = np.lexsort((rows, numbers))
        rows, first = rows[again], np.flatnonzero(np.diff(numbers[again], prepend=-1))
        masked[rows, j] = run_aggregates(values[rows, j], first, k, aggregate)


def centroids(points: Floats, order: Ints, starts: Ints) -> Floats:
    """Return the mean of each group's points; 0, the mean of all, where no member has a value."""
    ordered = points[order]
    seen = ~np.isnan(ordered)
    counts = np.add.reduceat(seen, starts, axis=0, dtype=np.int64)
    return np.asarray(
        np.add.reduceat(np.where(seen, ordered, 0.0), starts, axis=0) / np.maximum(counts, 1), np.float64
    )


def run_aggregates(values: Floats, starts: Ints, k: int, aggregate: str = "mean") -> Floats:
    """Return the mean or median of each run of rows, repeated for every row; computed in parts."""
    of_runs = run_means if aggregate == "mean" else run_medians
    ends = np.append(starts[1:], len(values))
    published = np.empty_like(values)
    for first in range(0, len(starts), RUNS):
        last = min(first + RUNS, len(starts)) - 1
        part = slice(starts[first], ends[last])
        published[part] = of_runs(values[part], starts[first : last + 1] - starts[first], k)
    return published


def run_means(values: Floats, starts: Ints, k: int) -> Floats:
    """Return the mean of each run of rows that begins at `starts`, repeated for each observed value.

    A run with fewer than k observed values in a column is NaN there.
    """
    observed = ~np.isnan(values)
    largest = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)
    unit = np.exp2(np.maximum(np.frexp(largest)[1] - 960, 0))  # 1, except where a sum could overflow
    values = values / unit
    counts = np.add.reduceat(observed, starts, axis=0, dtype=np.int64)
    means = np.add.reduceat(np.where(observed, values, 0.0), starts, axis=0) / np.maximum(counts, 1)
    # A mean lies between its smallest and largest value; rounding could leave that interval, and
    # equal values, whose mean is that very value, would come back changed.
    means = np.clip(means, np.fmin.reduceat(values, starts, axis=0), np.fmax.reduceat(values, starts, axis=0))
    means[counts < k] = np.nan
    repeated = np.repeat(means, np.diff(starts, append=len(values)), axis=0)
    return np.where(observed, repeated, np.nan) * unit


def run_medians(values: Floats, starts: Ints, k: int) -> Floats:
    """Return the median of each run of rows, repeated for each observed value; see `run_means`."""
    columns = values.reshape(len(values), -1)
    sizes = np.diff(starts, append=len(values))
    runs = np.repeat(np.arange(len(starts)), sizes)
    published = np.empty_like(columns)
    for j in range(columns.shape[1]):
        ordered = columns[np.lexsort((columns[:, j], runs)), j]  # missing cells last in their run
        counts = np.add.reduceat(~np.isnan(ordered), starts, dtype=np.int64)
        low, high = ordered[starts + np.maximum(counts - 1, 0) // 2], ordered[starts + counts // 2]
        medians = np.clip(low / 2 + high / 2, low, high)  # a half can lose the last bit of the tiniest
        medians[counts < k] = np.nan
        published[:, j] = np.where(np.isnan(columns[:, j]), np.nan, np.repeat(medians, sizes))
    return published.reshape(values.shape)


def within_share(values: Floats, masked: Floats) -> float:
    """Return SSE/SST, the share of variance that the masked values lose: 0 none, 1 all.

    Each variable counts in its standard deviations (ddof 0), a constant one not at all. A suppressed
    cell counts as if it had been replaced by the variable's mean.
    """
    seen = ~np.isnan(values)
    size = powers_of_two(values)
    from_mean = deviations(values / size)
    lost = np.where(seen & ~np.isnan(masked), values / size - masked / size, from_mean)
    variance = (from_mean * from_mean).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    counted = variance > 0
    if not counted.any():
        return 0.0
    within = (lost * lost).sum(axis=0)[counted] / variance[counted]
    return float(within.sum() / seen[:, counted].sum())
