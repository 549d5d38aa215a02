"""Microaggregation: groups of similar records, each published as its mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sdckit import progress
from sdckit.arrays import Floats, Int, Ints
from sdckit.core.registry import InBlocks, Parameter, method
from sdckit.core.text import plural
from sdckit.kernels.group_changes import merge_small_groups, swap_members
from sdckit.kernels.jit import kernel, uncounted, uncounted_inner
from sdckit.kernels.mdav.groups import SEARCHES, STEP, ProgressShare, mdav_groups, mdav_points
from sdckit.kernels.mdav.state import FORMED, HEAD, LEFT, WORK, clear_heap, rounded_copy, start
from sdckit.kernels.mdav.tree import Tree, build_tree, delete, find_nearest, renewed
from sdckit.kernels.sums import deviations, powers_of_two, standardise

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


def notes_on_medians(_data: object, options: Mapping[str, Any]) -> list[str]:
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


def in_groups(
    numbers: Callable[..., Ints], *, means: str = "", sizes: str = "k to 2k-1 (complete data)"
) -> dict[str, Any]:
    """Return what methods have in common that form groups of whole records by a function `numbers`."""
    return {
        "keeps": (
            f"column means ({means}gaps=merge)",
            f"column means ({means}complete data)",
            f"group sizes {sizes}",
            "equal records in groups of at least k (gaps=alike)",
        ),
        "group_size": "k",
        "groups": numbers,
        "largest_linkage": share_of_groups,
        "alike": rows_alike,
    }


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
    sums, counts = _sums_and_counts(points[order], starts)
    return np.asarray(sums / np.maximum(counts, 1), np.float64)


def _sums_and_counts(values: Floats, starts: Ints) -> tuple[Floats, Ints]:
    """Return sum and number of the observed values in each run of rows, by column."""
    seen = ~np.isnan(values)
    counts = np.add.reduceat(seen, starts, axis=0, dtype=np.int64)
    return np.add.reduceat(np.where(seen, values, 0.0), starts, axis=0), counts


def unit_values(values: Floats, units: Ints) -> Floats:
    """Return the mean of each unit's observed cells, exact where they are equal; NaN where there are none."""
    order = np.argsort(units, kind="stable")
    starts = np.flatnonzero(np.diff(units[order], prepend=-1))
    means, counts = _means_within(values[order], starts)
    return np.where(counts > 0, means, np.nan)


def _means_within(values: Floats, starts: Ints) -> tuple[Floats, Ints]:
    """Return mean and number of the observed values in each run of rows.

    A mean lies between its smallest and largest value; rounding could leave that interval, and equal values,
    whose mean is that very value, would come back changed.
    """
    sums, counts = _sums_and_counts(values, starts)
    ends = np.fmin.reduceat(values, starts, axis=0), np.fmax.reduceat(values, starts, axis=0)
    return np.clip(sums / np.maximum(counts, 1), *ends), counts


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


def sorted_observed(column: Floats) -> tuple[Ints, Floats]:
    """Return the rows of a column's observed values in ascending order, and the sorted values."""
    order = np.argsort(column, kind="stable")  # NaN comes last
    order = order[: len(column) - np.count_nonzero(np.isnan(column))]
    return order, column[order]


def mask_by_column(
    values: Floats, k: int, starts: Callable[[Floats], Ints], aggregate: str = "mean", *, what: str
) -> Floats:
    """Return each column with runs of its sorted values aggregated; `starts` tells where the runs begin."""
    if k == 1:
        return values.copy()
    masked = np.full_like(values, np.nan)
    for j in progress.each(what, range(values.shape[1])):
        order, ordered = sorted_observed(np.ascontiguousarray(values[:, j]))
        if len(order) >= k:
            masked[order, j] = run_aggregates(ordered, starts(ordered), k, aggregate)
    return masked


def run_means(values: Floats, starts: Ints, k: int) -> Floats:
    """Return the mean of each run of rows that begins at `starts`, repeated for each observed value.

    A run with fewer than k observed values in a column is NaN there.
    """
    largest = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)
    unit = np.exp2(np.maximum(np.frexp(largest)[1] - 960, 0))  # 1, except where a sum could overflow
    means, counts = _means_within(values / unit, starts)
    means[counts < k] = np.nan
    repeated = np.repeat(means, np.diff(starts, append=len(values)), axis=0)
    return np.where(np.isnan(values), np.nan, repeated) * unit


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


WEIGHTS = Parameter("variable_weights", dict, {}, "weight of a variable in distances, 1 if not given", low=0)


def mdav_numbers(
    values: Floats,
    *,
    k: int = 3,
    variable_weights: Floats | None = None,
    gaps: str = "alike",
    basis: Floats | None = None,
    **_published: object,
) -> Ints:
    """Return the number of each record's MDAV group; -1 without any value, unless gaps="alike"."""
    points = basis
    if variable_weights is not None:
        points = weighted_points(mdav_points(values) if basis is None else basis, variable_weights)
    return with_empty_records(values, mdav_groups(values, k, points), k, gaps)


def weighted_points(points: Floats, weights: Floats) -> Floats:
    """Return the points with each column times the square root of its weight; weight 0 drops it."""
    used = weights > 0
    if not used.any():
        raise ValueError("all variable_weights are 0; give at least one variable a weight above 0")
    return np.ascontiguousarray(points[:, used] * np.sqrt(weights[used] / weights.max()))


@method(
    title="MDAV microaggregation",
    place=10,
    colour="blue",
    parameters=(GROUP_SIZE, WEIGHTS, AGGREGATE, GAPS),
    default=True,
    basis=mdav_points,
    **in_groups(mdav_numbers, means="aggregate=mean, "),
    release_notes=notes_on_medians,
    in_blocks=InBlocks(how="groups", needs="squares", notes=notes_on_medians),
    reference="Domingo-Ferrer & Mateo-Sanz 2002, doi:10.1109/69.979982",
)
def mdav(
    values: Floats,
    *,
    k: int = 3,
    variable_weights: Floats | None = None,
    aggregate: str = "mean",
    gaps: str = "alike",
    basis: Floats | None = None,
    groups: Ints | None = None,
) -> Floats:
    """Replace each record by the mean of a group of at least k similar records.

    Column means are kept (with the mean, in complete files) and no published value stands for fewer than
    k records; variances shrink, the more so the larger k is. Not for files whose columns should be
    masked one at a time (see `individual_ranking`), nor for columns of codes, whose means say nothing.

    Parameters
    ----------
    values : array of shape (n, p)
        The records; NaN is a missing cell.
    k : int
        Smallest group size; 1 leaves the values as they are.
    variable_weights : array of p numbers, optional
        How much each variable counts in distances; only their ratios matter. A variable of weight 0
        plays no part in forming groups, but is published as the others are.
    aggregate : "mean" or "median"
        What is published of a group; the median of an even number of values is the mean of the middle
        two, and that of an odd number an original value. Medians do not keep column means.
    gaps : "alike", "merge" or "suppress"
        What becomes of a variable that some records of a group miss. "alike": all records of a group are
        published alike. Missing cells are filled with what the group publishes if at least max(k, 3) of its
        records have a value; else the variable is suppressed in the whole group. With the other two a
        missing cell stays missing, which tells records of a group apart. "merge": where fewer than k records
        have a value, in this variable alone, the group and the nearest ones with a value (by their
        standardised centroids) publish one aggregate of all their values, k or more; only where the whole
        file has fewer than k values do cells become missing. "suppress": there the group's cells become
        missing.
    basis : array, optional
        `mdav_points(values)`, where it is known.
    groups : array of n integers, optional
        The number of each record's group, -1 for none, where they are known.

    Returns
    -------
    array of shape (n, p)
        Group means, or medians, of the original values; for missing cells see `gaps`.

    Notes
    -----
    Columns are standardised by mean and standard deviation. While at least 3k records are left: take the
    record farthest from their centroid with its k - 1 nearest, then the record farthest from that one
    with its k - 1 nearest. Of the last 2k to 3k - 1 records, the one farthest from the centroid and its
    k - 1 nearest form a group, the rest another. Of equal distances the smallest row number wins; they
    are compared as computed, so distances that are equal in exact arithmetic may differ in their last
    bit, and then that bit decides, not the row. With missing cells, a distance is taken over the
    variables both records have and scaled up to the number of all of them. Records without any value
    stay out and are published without any; with gaps="alike" k or more of them form groups of their own,
    and fewer join, of the smallest groups, the one nearest to the mean of all records. A squared
    distance is the sum of w_j (x_j - y_j)^2 over the variables j with weights w_j. Merging goes through
    the groups with 1 to k - 1 values of a variable in the order in which they were formed. A group is
    merged with the one whose centroid is nearest, and with all that this one was merged with before,
    until there are k values; of equal distances the group formed first wins, and a centroid without any
    value of a variable counts as the mean of all records there. Every value of merged groups is
    published as the same aggregate, so that no difference of two published values leads to a small
    group.

    References
    ----------
    Domingo-Ferrer & Mateo-Sanz 2002, doi:10.1109/69.979982; the algorithm as in Domingo-Ferrer &
    Torra 2005, doi:10.1007/s10618-005-0007-5.

    Examples
    --------
    >>> values = np.array([[1.0, 10.0], [2.0, 14.0], [8.0, 90.0], [9.0, 70.0], [1.5, 12.0], [8.5, 80.0]])
    >>> mdav(values, k=3)
    array([[ 1.5, 12. ],
           [ 1.5, 12. ],
           [ 8.5, 80. ],
           [ 8.5, 80. ],
           [ 1.5, 12. ],
           [ 8.5, 80. ]])
    """
    if groups is None:
        groups = mdav_numbers(values, k=k, variable_weights=variable_weights, gaps=gaps, basis=basis)
    points = basis
    if gaps == "merge" and variable_weights is not None:
        points = mdav_points(values) if basis is None else basis
        points = points * np.sqrt(variable_weights / variable_weights.max())
    return publish(values, groups, k, aggregate, gaps=gaps, points=points)


@method(
    title="individual ranking",
    place=10,
    colour="sky",
    parameters=(GROUP_SIZE, AGGREGATE),
    default=True,
    keeps=(
        "column means (aggregate=mean)",
        "order of each column, ties apart",
        "group sizes k to 2k-1 in each column",
    ),
    group_size="k",
    release_notes=notes_on_medians,
    window=window_zero,
    one_by_one=each_by_itself,
    in_blocks=InBlocks(how="ranks", notes=notes_on_medians),
    reference="Defays & Nanopoulos 1993; Domingo-Ferrer & Mateo-Sanz 2002, doi:10.1109/69.979982",
)
def individual_ranking(values: Floats, *, k: int = 3, aggregate: str = "mean") -> Floats:
    """Replace each value by the mean of k neighbouring values of its column.

    Column means (with the mean) and each column's order are kept, so little information is lost; for
    the same reason it protects little. Not for files in which several columns together identify a
    record: the groups differ from column to column (see `mdav`).

    Parameters
    ----------
    values : array of shape (n, p)
        The records; NaN is a missing cell.
    k : int
        Smallest group size; 1 leaves the values as they are.
    aggregate : "mean" or "median"
        What is published of a group; the median of an even number of values is the mean of the middle
        two, and that of an odd number an original value. Medians do not keep column means.

    Returns
    -------
    array of shape (n, p)
        Group means, or medians. A missing cell stays missing, which tells the records of a group apart; a
        column with fewer than k values becomes missing.

    Notes
    -----
    A column is sorted, equal values by row number, and cut into runs of k values; what is left over
    joins the last run.

    References
    ----------
    Domingo-Ferrer & Mateo-Sanz 2002, doi:10.1109/69.979982

    Examples
    --------
    >>> individual_ranking(np.array([[5.0], [1.0], [9.0], [2.0], [8.0]]), k=2).ravel()
    array([7.33333333, 1.5       , 7.33333333, 1.5       , 7.33333333])
    """
    return mask_by_column(
        values, k, lambda ordered: np.arange(len(ordered) // k) * k, aggregate, what="individual ranking"
    )


@uncounted_inner
def search(tree: Tree, members: Ints, first: int, last: int, size: int) -> None:
    """Set the heap to the `size` ungrouped records nearest to any of the members first..last-1."""
    clear_heap(tree.state.near, tree.state.group, size, len(tree.state.slots))
    for m in range(first, last):
        find_nearest(tree, members[m], size)


@uncounted_inner
def join_group(tree: Tree, row: Int) -> None:
    """Give `row` the number of the group being formed, and delete it from the tree."""
    tree.state.groups[row] = tree.state.counters[FORMED]
    delete(tree, row)


@uncounted_inner
def grow_group(tree: Tree, members: Ints, k: int, share: float) -> None:
    """Add records to a group of k that are nearer to it than `share` of their nearest squared distance."""
    near, found = tree.state.near, tree.state.group
    for size in range(k, 2 * k - 1):
        search(tree, members, 0, size, 1)
        inside, members[size] = near[0], found[0]
        search(tree, members, size, size + 1, 1)
        if not inside < share * near[0]:
            return
        join_group(tree, members[size])


@uncounted
def grow_groups(tree: Tree, members: Ints, k: int, gamma: float, work: int) -> bool:
    """Form groups; return True if fewer than 2k records are left, False after about `work` nodes.

    The records are in the order of the state, and `members` is for the group being formed.
    """
    state, counters = tree.state, tree.state.counters
    counters[WORK] = 0
    while counters[LEFT] >= 2 * k:
        if counters[WORK] >= work:
            return False
        while state.slots[state.order[counters[HEAD]]] < 0:
            counters[HEAD] += 1
        members[0] = state.order[counters[HEAD]]
        search(tree, members, 0, 1, k - 1)
        for m in range(1, k):
            members[m] = state.group[m - 1]
        for m in range(k):
            join_group(tree, members[m])
        if gamma > 0:
            grow_group(tree, members, k, gamma * gamma)
        counters[FORMED] += 1
    return True


def vmdav_numbers(
    values: Floats,
    *,
    k: int = 3,
    gamma: float = 0.2,
    gaps: str = "alike",
    basis: Floats | None = None,
    **_published: object,
) -> Ints:
    """Return each record's V-MDAV group; records without a value have -1, or join groups if gaps="alike"."""
    present = ~np.isnan(values).all(axis=1)
    groups = np.full(len(values), -1)
    if k == 1:
        groups[present] = np.arange(np.count_nonzero(present))
        return groups
    points = (mdav_points(values) if basis is None else basis)[present]
    groups[present] = with_leftovers(points, group_points(points, k, float(gamma)), k)
    return with_empty_records(values, groups, k, gaps)


def group_points(points: Floats, k: int, gamma: float) -> Ints:
    """Return the V-MDAV group of each point; -1 for those that are left when fewer than 2k are."""
    grouped, members = start(points, k), np.empty(2 * k, np.int64)
    grouped.groups.fill(-1)
    seen, reach = ~np.isnan(points), np.zeros(len(points))
    for j in range(points.shape[1]):  # the centroid of standardised data is 0
        reach += np.where(seen[:, j], points[:, j] * points[:, j], 0.0)
    grouped.order[:] = np.argsort(-reach * (points.shape[1] / seen.sum(axis=1)), kind="stable")
    tree = build_tree(grouped, rounded_copy(points))
    with progress.track("V-MDAV", 1.0) as report:
        share = ProgressShare(report, grouped.counters, SEARCHES)
        while not grow_groups(tree, members, k, gamma, max(1, STEP // points.shape[1])):
            share.show()
            tree = renewed(tree)
        report(1.0)
    return grouped.groups


def with_leftovers(points: Floats, groups: Ints, k: int) -> Ints:
    """Return the groups with ungrouped records added: as a group if k or more, else to the nearest one."""
    groups = groups.copy()
    left = np.flatnonzero(groups < 0)
    if len(left) >= k:
        groups[left] = groups.max() + 1
        return groups
    kept = groups >= 0
    numbers, seen = groups[kept], ~np.isnan(points[kept])
    centres = np.empty((groups.max() + 1, points.shape[1]))
    for j in range(points.shape[1]):
        counts = np.bincount(numbers, seen[:, j], len(centres))
        sums = np.bincount(numbers, np.where(seen[:, j], points[kept, j], 0.0), len(centres))
        centres[:, j] = np.divide(sums, counts, out=np.full(len(centres), np.nan), where=counts > 0)
    for row in left:
        gaps = centres - points[row]
        shared = (~np.isnan(gaps)).sum(axis=1)
        squares = np.nansum(gaps * gaps, axis=1) / np.maximum(shared, 1)
        groups[row] = np.argmin(np.where(shared > 0, squares, np.inf))
    return groups


@method(
    title="V-MDAV microaggregation",
    place=20,
    parameters=(
        GROUP_SIZE,
        Parameter("gamma", float, 0.2, "how readily groups grow beyond k; 0 is never", low=0),
        GAPS,
    ),
    basis=mdav_points,
    **in_groups(vmdav_numbers, sizes="of at least k"),
    reference="Solanas & Martinez-Balleste 2006, COMPSTAT",
)
def vmdav(
    values: Floats,
    *,
    k: int = 3,
    gamma: float = 0.2,
    gaps: str = "alike",
    basis: Floats | None = None,
    groups: Ints | None = None,
) -> Floats:
    """Replace each record by the mean of a group of k or more records, larger where the data are dense.

    Column means are kept (in complete files) and no published value stands for fewer than k records. It
    suits data in clusters of uneven size, which groups of exactly k would tear apart; elsewhere `mdav`
    loses less. Not for files with many independent columns and more than some 100,000 records: no tree
    helps there, and time grows with the square of the number of records (see `blocked_mdav`).

    Parameters
    ----------
    values : array of shape (n, p)
        The records; NaN is a missing cell.
    k : int
        Smallest group size; 1 leaves the values as they are.
    gamma : float
        A record joins a group if its distance to it is less than gamma times its distance to the nearest
        other record; 0 leaves all groups at k. About 0.2 suits scattered data, about 1.1 clusters.
    gaps : "alike", "merge" or "suppress"
        What becomes of a variable that some records of a group miss. "alike": all records of a group are
        published alike. Missing cells are filled with what the group publishes if at least max(k, 3) of its
        records have a value; else the variable is suppressed in the whole group. With the other two a
        missing cell stays missing, which tells records of a group apart. "merge": where fewer than k records
        have a value, in this variable alone, the group and the nearest ones with a value (by their
        standardised centroids) publish one aggregate of all their values, k or more; only where the whole
        file has fewer than k values do cells become missing. "suppress": there the group's cells become
        missing.
    basis : array, optional
        `mdav_points(values)`, where it is known.
    groups : array of n integers, optional
        The number of each record's group, -1 for none, where they are known.

    Returns
    -------
    array of shape (n, p)
        Group means of the original values; for missing cells see `gaps`.

    Notes
    -----
    Columns are standardised by mean and standard deviation, and the centroid is computed once. While
    at least 2k records are left: the one farthest from the centroid forms a group with its k - 1
    nearest. While the group has fewer than 2k - 1 records, the record e outside that is nearest to one
    of its members, at a distance d, joins it if d < gamma d', where d' is the distance of e to the nearest
    other record without a group. Of the last records, k or more form a group; fewer join the groups with
    the nearest centroids, which makes these larger than 2k - 1 at times, but never than 3k - 2. All other
    groups have k to 2k - 1 records. Ties, of distances as computed, missing cells and groups with too few
    values of a variable are treated as by `mdav`. The rule for the last records follows a secondary source:
    the original article, which may go on until fewer than k are left, could not be consulted.

    References
    ----------
    Solanas & Martinez-Balleste 2006, V-MDAV: a multivariate microaggregation with variable group size,
    COMPSTAT.

    Examples
    --------
    >>> values = np.array([[1.0], [2.0], [3.0], [3.5], [20.0], [21.0], [31.0]])
    >>> vmdav(values, k=2, gamma=0.2).ravel()
    array([ 1.5 ,  1.5 ,  3.25,  3.25, 24.  , 24.  , 24.  ])
    """
    if groups is None:
        groups = vmdav_numbers(values, k=k, gamma=gamma, gaps=gaps, basis=basis)
    return publish(values, groups, k, gaps=gaps, points=basis)


CELLS = 100_000_000  # steps between two checks for Ctrl-C: a fraction of a second


class PathState(NamedTuple):
    """State of the shortest-path search for optimal groups, between calls of `extend_path`."""

    values: Floats  # sorted
    costs: Floats  # least squares of the first i values, for the last 2k of i, less what all have in common
    sizes: npt.NDArray[np.int32]  # of the last group of the best path to each value
    shares: Floats  # 1/size


def path_start(ordered: Floats, k: int) -> PathState:
    """Return the initial state of the search for groups of at least k sorted values."""
    costs = np.full(2 * k, np.inf)
    costs[0] = 0.0
    return PathState(ordered, costs, np.zeros(len(ordered) + 1, np.int32), 1 / np.arange(1.0, 2 * k))


@kernel
def extend_path(path: PathState, k: int, begin: int, end: int) -> None:
    """Find the size of the best last group for each of the first `begin` to `end` - 1 values.

    Squares are gathered from the last value downwards as deviations from a running mean: no term is
    negative, so that nothing cancels, however large the values. What all costs in use have in common
    is subtracted at times, so that small squares are not lost to rounding in the sum of all.
    """
    values, costs, slots = path.values, path.costs, 2 * k
    for j in range(begin, end):
        mean, within, best, size = 0.0, 0.0, np.inf, 0
        for s in range(min(slots - 1, j)):
            value = values[j - 1 - s]
            gap = value - mean
            mean += gap * path.shares[s]
            within += gap * (value - mean)
            if s >= k - 1:
                cost = costs[(j - 1 - s) % slots] + within
                if cost < best:
                    best, size = cost, s + 1
        costs[j % slots], path.sizes[j] = best, size
        if j % slots == 0 and best < np.inf:
            least = costs.min()
            for i in range(slots):
                costs[i] -= least


def optimal_sizes(ordered: Floats, k: int) -> Ints:
    """Return the sizes of the optimal groups of sorted values; ties give the smallest last group."""
    path, n = path_start(ordered, k), len(ordered)
    step = max(1, CELLS // (4 * k))
    with progress.track("optimal groups", n) as report:
        for begin in range(1, n + 1, step):
            extend_path(path, k, begin, min(begin + step, n + 1))
            report(min(begin + step, n))
    return path_sizes(path.sizes, k)


@kernel
def path_sizes(sizes: npt.NDArray[np.int32], k: int) -> Ints:
    """Return the sizes of the groups on the best path, in order, given the best last group at each value."""
    found = np.empty(len(sizes) // k, np.int64)
    count, at = 0, len(sizes) - 1
    while at > 0:
        found[count] = sizes[at]
        at -= sizes[at]
        count += 1
    return found[:count][::-1].copy()


@method(
    title="optimal univariate microaggregation",
    place=30,
    parameters=(GROUP_SIZE,),
    keeps=("column means", "order of each column, ties apart", "group sizes k to 2k-1 in each column"),
    group_size="k",
    window=window_zero,
    one_by_one=each_by_itself,
    reference="Hansen & Mukherjee 2003, doi:10.1109/TKDE.2003.1208020",
)
def optimal_univariate(values: Floats, *, k: int = 3) -> Floats:
    """Replace each value by the mean of its group in the optimal grouping of its column.

    Of all ways to put a column's values into groups of at least k, this one has the least sum of squared
    deviations from the group means. Column means and each column's order are kept. It loses less than
    `individual_ranking` and, for the same reason, protects even less: not for files in which several
    columns together identify a record (see `mdav`).

    Parameters
    ----------
    values : array of shape (n, p)
        The records; NaN is a missing cell.
    k : int
        Smallest group size; 1 leaves the values as they are.

    Returns
    -------
    array of shape (n, p)
        Group means. A missing cell stays missing; a column with fewer than k values becomes missing.

    Notes
    -----
    The best groups are runs of k to 2k - 1 sorted values, so they are a shortest path from 0 to n with an
    arc from i to j for i + k <= j <= i + 2k - 1, whose length is the sum of squares within values i + 1 to
    j. Time grows with n times k. Equal values are ordered by row number and may fall into two groups.

    References
    ----------
    Hansen & Mukherjee 2003, doi:10.1109/TKDE.2003.1208020

    Examples
    --------
    >>> values = np.array([[1.0, 2, 3, 10, 11, 12, 13, 30, 31, 32]]).T
    >>> optimal_univariate(values, k=3).ravel()
    array([ 2. ,  2. ,  2. , 11.5, 11.5, 11.5, 11.5, 31. , 31. , 31. ])
    """

    def starts(ordered: Floats) -> Ints:
        """Return where the best groups of a column start."""
        sizes = optimal_sizes(ordered / powers_of_two(ordered), k)
        return np.cumsum(sizes) - sizes

    return mask_by_column(values, k, starts, what="optimal groups")


SAMPLE = 20_000  # records on which blocked and exact MDAV are compared


def first_component(points: Floats) -> Floats:
    """Return each record's score on the first principal component; missing cells count as the mean.

    Of the two directions, the one in which the first variable with at least half the largest loading grows.
    """
    seen = ~np.isnan(points)
    counts = np.maximum(seen.sum(axis=0), 1)
    centred = np.where(seen, points - np.where(seen, points, 0.0).sum(axis=0) / counts, 0.0)
    loadings = _largest_direction(centred)
    positions = np.zeros(len(points))
    for j in range(points.shape[1]):  # a matrix product may round equal records differently
        positions += centred[:, j] * loadings[j]
    return positions


def _largest_direction(centred: Floats) -> Floats:
    """Return the direction of the first principal component of centred points, with a fixed sign."""
    loadings: Floats = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    sizes = np.abs(loadings)
    return -loadings if loadings[np.argmax(sizes >= sizes.max() / 2)] < 0 else loadings


def first_direction(points: Floats) -> Floats:
    """Return the direction of the first principal component of points without missing cells."""
    return _largest_direction(points - points.mean(axis=0))


def component_of(values: Floats) -> Floats:
    """Return each record's first principal component score, all variables standardised before."""
    return first_component(mdav_points(values))


def pca_numbers(
    values: Floats, *, k: int = 3, gaps: str = "alike", basis: Floats | None = None, **_published: object
) -> Ints:
    """Return each record's group of k neighbours on the first component; -1 if empty, unless gaps="alike"."""
    positions = component_of(values) if basis is None else basis
    present = np.flatnonzero(~np.isnan(values).all(axis=1))
    order = present[np.argsort(positions[present], kind="stable")]
    groups = np.full(len(values), -1)
    groups[order] = np.minimum(np.arange(len(order)) // k, len(order) // k - 1)
    return with_empty_records(values, groups, k, gaps)


@method(
    title="PCA microaggregation",
    place=40,
    parameters=(GROUP_SIZE, GAPS),
    basis=component_of,
    **in_groups(pca_numbers),
    reference="Domingo-Ferrer & Mateo-Sanz 2002, doi:10.1109/69.979982",
)
def pca_microaggregation(
    values: Floats,
    *,
    k: int = 3,
    gaps: str = "alike",
    basis: Floats | None = None,
    groups: Ints | None = None,
) -> Floats:
    """Replace each record by the mean of k neighbours on the first principal component.

    Column means are kept (in complete files) and no published value stands for fewer than k records. It
    is fast at any size, but what the first component does not see is averaged out: not for files whose
    variables are weakly related (see `mdav`, which loses far less there).

    Parameters
    ----------
    values : array of shape (n, p)
        The records; NaN is a missing cell.
    k : int
        Smallest group size; 1 leaves the values as they are.
    gaps : "alike", "merge" or "suppress"
        What becomes of a variable that some records of a group miss. "alike": all records of a group are
        published alike. Missing cells are filled with what the group publishes if at least max(k, 3) of its
        records have a value; else the variable is suppressed in the whole group. With the other two a
        missing cell stays missing, which tells records of a group apart. "merge": where fewer than k records
        have a value, in this variable alone, the group and the nearest ones with a value (by their
        standardised centroids) publish one aggregate of all their values, k or more; only where the whole
        file has fewer than k values do cells become missing. "suppress": there the group's cells become
        missing.
    basis : array, optional
        `component_of(values)`, where it is known.
    groups : array of n integers, optional
        The number of each record's group, -1 for none, where they are known.

    Returns
    -------
    array of shape (n, p)
        Group means of the original values; for missing cells see `gaps`.

    Notes
    -----
    Columns are standardised, a missing cell taken as its column's mean, and records sorted by their first
    principal component, equal ones by row number. Runs of k records form groups; what is left over joins
    the last. The component's sign, which says at which end that is, is the one with which the first
    variable grows that has at least half of the largest loading. Records without any value, and groups
    with missing cells of a variable, are treated as by `mdav`, merged by centroids in all variables.

    References
    ----------
    Domingo-Ferrer & Mateo-Sanz 2002, doi:10.1109/69.979982

    Examples
    --------
    >>> values = np.array([[1.0, 10.0], [9.0, 70.0], [2.0, 14.0], [8.0, 90.0]])
    >>> pca_microaggregation(values, k=2)
    array([[ 1.5, 12. ],
           [ 8.5, 80. ],
           [ 1.5, 12. ],
           [ 8.5, 80. ]])
    """
    if groups is None:
        groups = pca_numbers(values, k=k, gaps=gaps, basis=basis)
    return publish(values, groups, k, gaps=gaps)


def squared_lengths(points: Floats) -> Floats:
    """Return each record's squared distance from the mean of all, 0; missing cells count as the mean."""
    found = np.zeros(len(points))
    for column in points.T:  # by columns, so that no record depends on how many others there are
        found += np.nan_to_num(column, nan=0.0) ** 2
    return found


def blocks_of(points: Floats, rows: Ints, largest: int) -> list[Ints]:
    """Return blocks of row numbers, none of which is too large; all rows if they fit into one block.

    The records farthest from the mean of all make the first block: cuts through the sparse outside would
    cost more than all others. The rest are halved at the median first component, and so are the halves.
    """
    if len(rows) <= largest:
        return [rows]
    outer = len(rows) // -(-len(rows) // largest)
    order = np.argsort(-squared_lengths(points[rows]), kind="stable")
    found, waiting = [np.sort(rows[order[:outer]])], [np.sort(rows[order[outer:]])]
    while waiting:
        part = waiting.pop()
        if len(part) <= largest:
            found.append(part)
            continue
        order = np.argsort(first_component(points[part]), kind="stable")
        half = len(part) // 2
        waiting += [np.sort(part[order[half:]]), np.sort(part[order[:half]])]
    return found


def largest_block(k: int, block: int) -> int:
    """Return the largest number of records to a block: `block`, or 6k if that is more."""
    return max(block, 6 * k)


def blocked_numbers(
    values: Floats,
    *,
    k: int = 3,
    block: int = 10_000,
    gaps: str = "alike",
    basis: Floats | None = None,
    **_published: object,
) -> Ints:
    """Return each record's group by MDAV within blocks; -1 without any value, unless gaps="alike"."""
    points = mdav_points(values) if basis is None else basis
    present = np.flatnonzero(~np.isnan(values).all(axis=1))
    blocks = blocks_of(points, present, largest_block(k, block))
    if len(blocks) == 1:
        return with_empty_records(values, mdav_groups(values, k, points), k, gaps)
    groups, formed = np.full(len(values), -1), 0
    for rows in progress.each("blocked MDAV", blocks):
        groups[rows] = groups_in_block(values[rows], k, points[rows]) + formed
        formed = int(groups[rows].max()) + 1
    return with_empty_records(values, groups, k, gaps)


def groups_in_block(values: Floats, k: int, points: Floats) -> Ints:
    """Return the group numbers of one of several blocks: MDAV's groups, with records swapped between them."""
    return swap_members(points, mdav_groups(values, k, points))


def notes_on_blocks(values: Floats, options: dict[str, Any]) -> list[str]:
    """Return a note on the variance that blocked MDAV loses beyond exact MDAV, measured on a sample."""
    k = options["k"]
    present = np.flatnonzero(~np.isnan(values).all(axis=1))
    largest = largest_block(k, options["block"])
    if k == 1 or len(present) <= largest:
        return []
    rows, where = present, ""
    if len(present) > SAMPLE:  # a choice of records to look at, not a masking: always the same
        rows = np.sort(np.random.default_rng(1).choice(present, SAMPLE, replace=False))
        where = sample_words(SAMPLE)
    return [loss_note(values[rows], options, -(-len(rows) * largest // len(present)), where)]


def sample_words(n: int) -> str:
    """Return the words for a comparison on a sample of n records."""
    return f" on a sample of {n:,} records in as many blocks"


def loss_note(sample: Floats, options: Mapping[str, Any], block: int, where: str) -> str:
    """Return a note on what blocked MDAV loses beyond exact MDAV on these records, with smaller blocks."""
    k = options["k"]
    both = blocked_numbers(sample, k=k, block=block, gaps="merge"), mdav_groups(sample, k)
    blocked, exact = (
        within_share(sample, publish(sample, groups, k, gaps=options["gaps"])) for groups in both
    )
    more = blocked / exact - 1 if exact else 0.0
    remark = "; the file, with more records to a block, loses less as a rule" if where and more > 0 else ""
    loss = f"{abs(more) * 100:.1f} % {'less' if more < 0 else 'more'} within-group variance"
    shares = f"(SSE/SST {blocked:.4f} and {exact:.4f})"
    return f"blocked MDAV loses {loss} than exact MDAV{where} {shares}{remark}"


@method(
    title="blocked MDAV microaggregation",
    place=40,
    parameters=(GROUP_SIZE, Parameter("block", int, 10_000, "most records to a block", low=1), GAPS),
    basis=mdav_points,
    **in_groups(blocked_numbers),
    release_notes=notes_on_blocks,
    in_blocks=InBlocks(how="groups", needs="squares"),
    reference="MDAV as in Domingo-Ferrer & Torra 2005, doi:10.1007/s10618-005-0007-5, within blocks",
)
def blocked_mdav(
    values: Floats,
    *,
    k: int = 3,
    block: int = 10_000,
    gaps: str = "alike",
    basis: Floats | None = None,
    groups: Ints | None = None,
) -> Floats:
    """Replace each record by the mean of a group that MDAV forms within a block of similar records.

    Column means are kept (in complete files) and no published value stands for fewer than k records. For
    files of millions of records: time grows little faster than their number. Records on either side of a
    block's border cannot share a group, but swaps of records between groups make up for that: in large
    blocks less is lost than by `mdav`, in small ones and in files of many tight clusters more.

    Parameters
    ----------
    values : array of shape (n, p)
        The records; NaN is a missing cell.
    k : int
        Smallest group size; 1 leaves the values as they are.
    block : int
        Most records to a block; 6k where that is more. A file that fits into one is masked as by `mdav`.
    gaps : "alike", "merge" or "suppress"
        What becomes of a variable that some records of a group miss. "alike": all records of a group are
        published alike. Missing cells are filled with what the group publishes if at least max(k, 3) of its
        records have a value; else the variable is suppressed in the whole group. With the other two a
        missing cell stays missing, which tells records of a group apart. "merge": where fewer than k records
        have a value, in this variable alone, the group and the nearest ones with a value (by their
        standardised centroids) publish one aggregate of all their values, k or more; only where the whole
        file has fewer than k values do cells become missing. "suppress": there the group's cells become
        missing.
    basis : array, optional
        `mdav_points(values)`, where it is known.
    groups : array of n integers, optional
        The number of each record's group, -1 for none, where they are known.

    Returns
    -------
    array of shape (n, p)
        Group means of the original values; for missing cells see `gaps`.

    Notes
    -----
    Columns are standardised once, over the whole file. In a file with more than `block` records, those
    farthest from the mean make the first block. The rest are cut in two halves at the median of their own
    first principal component, and so are the halves that are too large; each block has at least 3k records.
    Then `mdav` forms groups within each block, and each group swaps records with the 8 groups that have the
    nearest centroids, one at a time, where this lowers the squared distances to the centroids; three times
    over. Groups with a missing cell swap nothing. A note of the masking states the loss beside that of
    `mdav`, from a sample of 20,000 records that is masked both ways, in as many blocks as the file; as a
    block of the sample has far fewer records, the file itself loses less than that as a rule.

    References
    ----------
    Domingo-Ferrer & Torra 2005, doi:10.1007/s10618-005-0007-5 (MDAV).

    Examples
    --------
    >>> masked = blocked_mdav(np.arange(48.0)[:, None], k=3, block=24)
    >>> np.unique(masked)[:6].tolist()
    [1.0, 4.0, 7.0, 10.0, 13.0, 16.0]
    """
    if groups is None:
        groups = blocked_numbers(values, k=k, block=block, gaps=gaps, basis=basis)
    return publish(values, groups, k, gaps=gaps, points=basis)
