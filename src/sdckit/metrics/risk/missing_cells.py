"""Linkage with missing cells: all pairs of records are compared over the variables that both have.

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
    """Return the mean squared or absolute difference over variables both have; infinite without any."""
    total, shared = 0.0, 0
    for j in range(points.shape[1]):
        difference = abs(points[i, j] - others[k, j])
        if difference == difference:  # noqa: PLR0124 - false for NaN
            total += difference * difference if squared else difference
            shared += 1
    return total / shared if shared else np.inf


@kernel
def _beaten(
    targets: Floats,
    queries: Floats,
    truth: Ints,
    tolerance: float,
    places: int,
    begin: int,
    end: int,
    found: Ints,
) -> None:
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


def beaten(targets: Floats, queries: Floats, truth: Ints, tolerance: float, places: int) -> Ints:
    """Do as `kd_tree.beaten` with missing cells; a record that shares no cell counts as beaten."""
    found = np.empty((2, len(queries)), np.int64)
    in_parts(
        len(queries),
        lambda begin, end: _beaten(targets, queries, truth, tolerance, places, begin, end, found),
        max(PAIRS // len(targets), 1),
    )
    return found


@kernel
def _distances(targets: Floats, queries: Floats, squared: bool, found: Floats) -> None:
    for i in range(len(queries)):
        for k in range(len(targets)):
            found[i, k] = shared_distance(queries, i, targets, k, squared)


def distances(targets: Floats, queries: Floats, *, squared: bool) -> Floats:
    """Return the mean squared or absolute difference of every query and target over shared variables."""
    found = np.empty((len(queries), len(targets)))
    _distances(targets, queries, squared, found)
    return found


@inlined
def _overlap(first: Floats, last: Floats, k: int, low: Floats, high: Floats, i: int) -> bool:
    """Return True if a record's tie blocks overlap the box in every variable that both have."""
    fits = True
    for j in range(first.shape[1]):
        fits &= not ((first[k, j] > high[i, j]) | (last[k, j] < low[i, j]))  # true for NaN
    return fits


@kernel
def _count_overlaps(
    first: Floats, last: Floats, low: Floats, high: Floats, begin: int, end: int, found: Ints
) -> None:
    for i in range(begin, end):
        count = 0
        for k in range(len(first)):
            count += _overlap(first, last, k, low, high, i)
        found[i] = count


def count_overlaps(first: Floats, last: Floats, low: Floats, high: Floats) -> Ints:
    """Count the records whose tie blocks overlap each box; a missing cell fits every box."""
    found = np.empty(len(low), np.int64)
    in_parts(
        len(low),
        lambda begin, end: _count_overlaps(first, last, low, high, begin, end, found),
        max(PAIRS // len(first), 1),
    )
    return found


@kernel
def _mark_overlaps(first: Floats, last: Floats, low: Floats, high: Floats, found: Ints) -> None:
    for i in range(len(low)):
        found[i] = _overlap(first, last, i, low, high, i)


def overlaps(first: Floats, last: Floats, low: Floats, high: Floats) -> Ints:
    """Return 1 where a record's tie blocks overlap its own box, else 0."""
    found = np.empty(len(low), np.int64)
    _mark_overlaps(first, last, low, high, found)
    return found
