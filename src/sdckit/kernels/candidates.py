"""Searches among candidates: the target records that facts leave for each query.

A target is a candidate of a query if both have the same block number and their intervals overlap in every
dimension. A fact that excludes nothing for a record is the interval from -inf to inf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.kernels.jit import Floats, Int, Ints, UInt64s, inlined, kernel
from sdckit.kernels.kd_tree import in_parts

if TYPE_CHECKING:
    from collections.abc import Callable

PAIRS = 50_000_000  # of records, compared at a time: a fraction of a second


class Side(NamedTuple):
    """What the facts say about the records of one file: block numbers, and ends of intervals."""

    blocks: Ints  # record
    low: Floats  # record x dimension, C order; there may be no dimension
    high: Floats


def take(side: Side, rows: Ints | slice) -> Side:
    """Return the facts about some rows."""
    return Side(side.blocks[rows], side.low[rows], side.high[rows])


def no_facts(n: int) -> Side:
    """Return facts about n records that exclude nothing."""
    return Side(np.zeros(n, np.int64), np.empty((n, 0)), np.empty((n, 0)))


@inlined
def _overlap(low: Floats, high: Floats, i: Int, lower: Floats, upper: Floats, k: Int) -> bool:
    """Return True if the intervals of record i overlap those of record k in every dimension."""
    fits = True
    for d in range(low.shape[1]):
        fits &= (low[i, d] <= upper[k, d]) & (lower[k, d] <= high[i, d])
    return fits


@inlined
def _distance(point: Floats, other: Floats) -> float:
    """Return the squared distance over the cells that both have, scaled to all; infinite without any."""
    total, shared = 0.0, 0
    for j in range(len(point)):
        difference = point[j] - other[j]
        if difference == difference:  # noqa: PLR0124 - false for NaN
            total += difference * difference
            shared += 1
    return total * (len(point) / shared) if shared else np.inf


@kernel
def _count_candidates(
    targets: Side, queries: Side, spans: Ints, marks: UInt64s, found: Ints, sums: UInt64s
) -> None:
    """Write the number of targets that fit each query, and the sum of their marks."""
    for i in range(len(spans)):
        for k in range(spans[i, 0], spans[i, 1]):
            if _overlap(targets.low, targets.high, k, queries.low, queries.high, i):
                found[i] += 1
                sums[i] += marks[k]


@kernel
def _count_closer(
    points: Floats,
    facts: tuple[Side, Side],
    queries: Floats,
    truth: Ints,
    spans: Ints,
    tolerance: float,
    places: int,
    found: Ints,
) -> None:
    """Write how many candidates are closer to each query than the true one, to `places`, and how many tie."""
    targets, asked = facts
    for i in range(len(queries)):
        true = truth[i]
        found[0, i], found[1, i] = places, 0
        inside = spans[i, 0] <= true < spans[i, 1]
        if not (inside and _overlap(targets.low, targets.high, true, asked.low, asked.high, i)):
            continue
        own = _distance(points[true], queries[i])
        nearest, farthest = own * (1 - tolerance), own * (1 + tolerance)
        closer = within = 0
        for k in range(spans[i, 0], spans[i, 1]):
            if _overlap(targets.low, targets.high, k, asked.low, asked.high, i):
                distance = _distance(points[k], queries[i])
                closer += distance < nearest
                within += distance <= farthest
                if closer >= places:
                    break
        if closer < places:
            found[0, i], found[1, i] = closer, within - closer


def _by_block(targets: Side) -> tuple[Ints, Side]:
    """Return the order of targets by block, and their facts in it."""
    order = np.argsort(targets.blocks, kind="stable")
    return order, take(targets, order)


def _spans(ordered: Side, queries: Side) -> Ints:
    """Return where the targets of each query's block begin and end."""
    sides = [np.searchsorted(ordered.blocks, queries.blocks, side) for side in ("left", "right")]
    return np.stack(sides, axis=1)


def _marks(rows: Ints) -> UInt64s:
    """Return a pseudo-random number for each row number, always the same (splitmix64)."""
    x = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _search(n: int, spans: Ints, work: Callable[[int, int], None]) -> None:
    """Call `work(begin, end)` for slices of queries that take a fraction of a second each."""
    pairs = int((spans[:, 1] - spans[:, 0]).sum())
    in_parts(n, work, max(PAIRS * n // max(pairs, 1), 1))


def count_candidates(targets: Side, queries: Side) -> tuple[Ints, UInt64s]:
    """Return the number of each query's candidates, and a fingerprint, equal for equal sets of candidates."""
    order, ordered = _by_block(targets)
    spans, marks = _spans(ordered, queries), _marks(order)
    found, sums = np.zeros(len(spans), np.int64), np.zeros(len(spans), np.uint64)

    def work(begin: int, end: int) -> None:
        """Count for the queries begin..end-1."""
        asked = take(queries, slice(begin, end))
        _count_candidates(ordered, asked, spans[begin:end], marks, found[begin:end], sums[begin:end])

    _search(len(spans), spans, work)
    return found, sums


def count_closer(
    targets: Floats,
    queries: Floats,
    truth: Ints,
    facts: tuple[Side, Side],
    tolerance: float,
    places: int = 1,
) -> Ints:
    """Return how many candidates are closer to each query than its true one (to `places`), and how many tie.

    `truth` gives the rows of the true targets; the true one is among those that tie. Squared distances over
    the cells that both records have, times all cells / shared cells, are compared; they are infinite where
    no cell is shared, and equal where they differ by less than the tolerance, relative to their size. The
    counts are `places` and 0 where so many are closer, or where the true target is no candidate. `facts`
    are those about the targets and those about the queries.
    """
    order, ordered = _by_block(facts[0])
    spans, points = _spans(ordered, facts[1]), targets[order]
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    found = np.empty((2, len(queries)), np.int64)

    def work(begin: int, end: int) -> None:
        """Count for the queries begin..end-1."""
        part = slice(begin, end)
        both = ordered, take(facts[1], part)
        counts = np.empty((2, end - begin), np.int64)
        _count_closer(points, both, queries[part], place[truth[part]], spans[part], tolerance, places, counts)
        found[:, part] = counts

    _search(len(queries), spans, work)
    return found
