"""Microaggregation along the first principal component, and MDAV within blocks cut along it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit import progress
from sdckit.core.in_blocks import InBlocks
from sdckit.core.parameters import Parameter
from sdckit.core.registry import method
from sdckit.kernels.group_changes import swap_members
from sdckit.kernels.mdav.groups import mdav_groups, mdav_points
from sdckit.masking.group_means import (
    GAPS,
    GROUP_SIZE,
    publish,
    rows_alike,
    share_of_groups,
    with_empty_records,
    within_share,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sdckit.kernels.jit import Floats, Ints

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
    keeps=(
        "column means (gaps=merge)",
        "column means (complete data)",
        "group sizes k to 2k-1 (complete data)",
        "equal records in groups of at least k (gaps=alike)",
    ),
    basis=component_of,
    group_size="k",
    groups=pca_numbers,
    largest_linkage=share_of_groups,
    alike=rows_alike,
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
    keeps=(
        "column means (gaps=merge)",
        "column means (complete data)",
        "group sizes k to 2k-1 (complete data)",
        "equal records in groups of at least k (gaps=alike)",
    ),
    basis=mdav_points,
    group_size="k",
    groups=blocked_numbers,
    largest_linkage=share_of_groups,
    alike=rows_alike,
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
