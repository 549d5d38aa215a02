"""Linkage of records with missing cells, compared over the variables that both records have.

Distances are means over the shared variables, so that a record does not come closer by having fewer
values. Records that share none are never linked.
"""

from __future__ import annotations

import numpy as np

from sdckit.kernels.jit import Floats, Ints, inlined, kernel
from sdckit.kernels.kd_tree import in_parts

PAIRS = 50_000_000  # of records, compared at a time: a fraction of a second


@inlined
def shared_distance(points: Floats, i: int, others: Floats, k: int, squared: bool) -> float:
    """Return the mean squared or absolute difference over shared variables; infinite without any."""
    total, shared = 0.0, 0
    for j in range(points.shape[1]):
        difference = abs(points[i, j] - others[k, j])
        if difference == difference:  # noqa: PLR0124 - false for NaN
            total += difference * difference if squared else difference
            shared += 1
    return total / shared if shared else np.inf


@kernel
def _count_closer(
    targets: Floats,
    queries: Floats,
    truth: Ints,
    tolerance: float,
    places: int,
    begin: int,
    end: int,
    found: Ints,
) -> None:
    """Write to `found`, per query, how many targets are closer than the true one and how many tie."""
    for i in range(begin, end):
        own = shared_distance(queries, i, targets, truth[i], True)
        closer, tied = (0, 0) if own < np.inf else (places, 0)
        k = 0
        while k < len(targets) and closer < places:
            distance = shared_distance(queries, i, targets, k, True)
            closer += distance < own * (1 - tolerance)
            tied += own * (1 - tolerance) <= distance <= own * (1 + tolerance)
            k += 1
        found[0, i], found[1, i] = min(closer, places), tied if closer < places else 0


def count_closer(targets: Floats, queries: Floats, truth: Ints, tolerance: float, places: int) -> Ints:
    """Return, per query, how many targets are closer than the true one and how many tie with it."""
    found = np.empty((2, len(queries)), np.int64)
    in_parts(
        len(queries),
        lambda begin, end: _count_closer(targets, queries, truth, tolerance, places, begin, end, found),
        max(PAIRS // len(targets), 1),
    )
    return found


@kernel
def _write_distances(targets: Floats, queries: Floats, squared: bool, found: Floats) -> None:
    """Write the mean difference of every query and target over shared variables to `found`."""
    for i in range(len(queries)):
        for k in range(len(targets)):
            found[i, k] = shared_distance(queries, i, targets, k, squared)


def distances(targets: Floats, queries: Floats, *, squared: bool) -> Floats:
    """Return the mean squared or absolute difference of every query and target over shared variables."""
    found = np.empty((len(queries), len(targets)))
    _write_distances(targets, queries, squared, found)
    return found


@inlined
def _overlaps_box(first: Floats, last: Floats, k: int, low: Floats, high: Floats, i: int) -> bool:
    """Return True if record k's rank ranges overlap the ranges low[i] to high[i] in every variable."""
    fits = True
    for j in range(first.shape[1]):
        fits &= not ((first[k, j] > high[i, j]) | (last[k, j] < low[i, j]))  # true for NaN
    return fits


@kernel
def _write_overlap_counts(
    first: Floats, last: Floats, low: Floats, high: Floats, begin: int, end: int, found: Ints
) -> None:
    """Write, for rows begin to end of low and high, how many records' rank ranges overlap theirs."""
    for i in range(begin, end):
        count = 0
        for k in range(len(first)):
            count += _overlaps_box(first, last, k, low, high, i)
        found[i] = count


def count_overlaps(first: Floats, last: Floats, low: Floats, high: Floats) -> Ints:
    """Return, for each row of low and high, how many records' rank ranges overlap it in every variable."""
    found = np.empty(len(low), np.int64)
    in_parts(
        len(low),
        lambda begin, end: _write_overlap_counts(first, last, low, high, begin, end, found),
        max(PAIRS // len(first), 1),
    )
    return found


@kernel
def _write_overlaps(first: Floats, last: Floats, low: Floats, high: Floats, found: Ints) -> None:
    """Write 1 for each record whose rank ranges overlap those of its row of low and high, else 0."""
    for i in range(len(low)):
        found[i] = _overlaps_box(first, last, i, low, high, i)


def overlaps(first: Floats, last: Floats, low: Floats, high: Floats) -> Ints:
    """Return 1 for each record whose rank ranges overlap those of its row of low and high, else 0."""
    found = np.empty(len(low), np.int64)
    _write_overlaps(first, last, low, high, found)
    return found
