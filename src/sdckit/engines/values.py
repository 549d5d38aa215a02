"""Both columns of a variable merged by value: the largest gap of their distributions, and mean distances.

Distinct values of the masked splitters cut the range of values into stretches; the bucket of the masked order
that holds a stretch's masked values gets the original values of the same stretch as well. What lies exactly
on a splitter's value is known from counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.engines.cuts import Numbers, Rows
from sdckit.engines.plan import VALUES, PiecePlan, joined, shares_of
from sdckit.engines.rank_parts import Part
from sdckit.engines.transport import Message
from sdckit.kernels.tie_rules import cross_gap_part
from sdckit.metrics.blocks.distributions import largest_gap

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints


class Points(NamedTuple):
    """Original values of a stretch, ascending: how many records each has, and their shares of two kinds."""

    values: Floats
    counts: Ints
    shares: Floats
    relative_shares: Floats


def send_values(plan: PiecePlan, rows: Rows) -> Iterator[Message]:
    """Yield original values, sorted, to the buckets that hold the masked values of the same stretch."""
    values = plan.masked.values
    begins = np.append(0, np.searchsorted(rows.x, values, side="right"))
    ends = np.append(np.searchsorted(rows.x, values), rows.x.size)
    for stretch in np.flatnonzero(ends > begins).tolist():
        chosen = np.arange(begins[stretch], ends[stretch])
        part = rows.take(chosen)
        yield Message(plan.first_bucket + _bucket_of(plan, stretch), VALUES, (part.x, part.t))


def _bucket_of(plan: PiecePlan, stretch: int) -> int:
    """Return the bucket of the masked order that holds the masked values of a stretch."""
    return int(np.searchsorted(plan.masked.value_of, stretch))


def values_part(plan: PiecePlan, at: int, messages: Sequence[Message], masked: Floats) -> Part:
    """Return the sums of the stretch that a bucket holds; `masked` are its masked values, sorted.

    A bucket that begins and ends at the same value holds no stretch.
    """
    values, value_of = plan.masked.values, plan.masked.value_of
    stretch = int(value_of[at - 1]) + 1 if at else 0
    if _bucket_of(plan, stretch) != at:
        return Part()
    ends = (values[stretch - 1] if stretch else -np.inf, values[stretch] if stretch < values.size else np.inf)
    y = masked[slice(np.searchsorted(masked, ends[0], side="right"), np.searchsorted(masked, ends[1]))]
    points = _points(plan, messages, ends)
    if not y.size and not points.values.size and not np.isfinite(ends).all():
        return Part()
    return _stretch_part(plan, stretch, ends, points, y)


def _points(plan: PiecePlan, messages: Sequence[Message], ends: tuple[float, float]) -> Points:
    """Return the original values strictly between two values, those of cells included."""
    arrays = joined(messages, VALUES) or [np.empty(0), np.empty(0)]
    cells = np.flatnonzero((plan.original.first > ends[0]) & (plan.original.first < ends[1]))
    numbers = plan.tallies[0].buckets[2 * cells + 1]
    known = Rows(plan.original.first, plan.original.middle, plan.original.last).take(cells)
    values = np.concatenate((arrays[0], known.x))
    order = np.argsort(values, kind="stable")
    counts = np.concatenate((np.ones(arrays[0].size, np.int64), numbers))
    rows = Rows(values, np.concatenate((arrays[1], known.t)), values)
    return Points(values[order], counts[order], *((share * counts)[order] for share in shares_of(rows)))


def _stretch_part(
    plan: PiecePlan, stretch: int, ends: tuple[float, float], points: Points, y: Floats
) -> Part:
    """Return the largest gap and the sums of distances over a stretch of values."""
    place = 2 * stretch  # of the stretch among the buckets of values
    ours, theirs = int(plan.crossed[:place].sum()), int(plan.tallies[1].values[:place].sum())
    up_to = ours + np.append(0.0, np.cumsum(points.counts)), theirs + np.arange(y.size + 1.0)
    gap = largest_gap(points.values, up_to[0], y, up_to[1])
    power = plan.wanted.power
    values, others = (np.ldexp(column, -power) for column in (points.values, y))
    low, high = (math.ldexp(end, -power) for end in _finite_ends(ends, points.values, y))
    sums = [
        cross_gap_part(values, share, others, low, high, *_below_and_above(total, place), theirs, plan.n)
        for share, total in zip(points[2:], plan.shares, strict=True)
    ]
    floats = dict(zip(("cross gaps", "relative cross gaps"), (one / plan.n for one in sums), strict=True))
    return Part(floats=floats, largest={"gap": int(gap)})


def _below_and_above(totals: Numbers, place: int) -> tuple[float, float]:
    """Return the sum of the totals before a place, and from it on."""
    return float(totals[:place].sum()), float(totals[place:].sum())


def _finite_ends(ends: tuple[float, float], x: Floats, y: Floats) -> tuple[float, float]:
    """Return the ends of a stretch; where one is infinite, the smallest or largest value in it instead."""
    lowest = min(x[0] if x.size else math.inf, y[0] if y.size else math.inf)
    highest = max(x[-1] if x.size else -math.inf, y[-1] if y.size else -math.inf)
    return ends[0] if math.isfinite(ends[0]) else lowest, ends[1] if math.isfinite(ends[1]) else highest


def largest_gap_at_splitters(plan: PiecePlan) -> Part:
    """Return the largest gap of counts up to a value, at the values of the masked splitters."""
    gaps = np.cumsum(plan.crossed)[1::2] - np.cumsum(plan.tallies[1].values)[1::2]
    return Part(largest={"gap": int(np.abs(gaps).max(initial=0))})
