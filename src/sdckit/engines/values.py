"""Both columns of a variable merged by value: the largest gap of their distributions, and mean distances.

Distinct values of the masked splitters cut the range of values into stretches; the bucket of the masked order
that holds a stretch's masked values gets the original values of the same stretch as well. What lies exactly
on a splitter's value is known from counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sdckit.engines.cuts import Rows
from sdckit.engines.plan import VALUES, PiecePlan, joined, shares_of
from sdckit.engines.rank_parts import Part
from sdckit.engines.transport import Message
from sdckit.kernels.jit import Floats, Int, Ints, kernel


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
    below = [share[:place].sum() for share in plan.shares]
    above = [share[place:].sum() for share in plan.shares]
    counts = int(plan.crossed[:place].sum()), int(plan.tallies[1].values[:place].sum())
    scaled = (np.ldexp(values, -plan.wanted.power) for values in (points.values, y, np.array(ends)))
    values, others, scaled_ends = scaled
    gap, plain, relative = _merge(
        values, *points[1:], others, scaled_ends, np.array(below), np.array(above), counts, plan.n
    )
    return Part(floats={"cross gaps": plain, "relative cross gaps": relative}, largest={"gap": int(gap)})


@kernel
def _merge(
    x: Floats,
    counts: Ints,
    shares: Floats,
    relative: Floats,
    y: Floats,
    ends: Floats,
    below: Floats,
    above: Floats,
    before: tuple[Int, Int],
    n: int,
) -> tuple[Int, float, float]:
    """Return the largest gap of counts up to a value, and integrals of two mean distances, over a stretch.

    `below` and `above` are the shares of original values below and from the stretch on, `before` the numbers
    of original and masked values below it. An infinite end stands for the first or the last value.
    """
    low, other = below[0], below[1]
    high, other_high = above[0], above[1]
    ours, theirs = np.int64(before[0]), np.int64(before[1])
    gap, plain, other_sum = np.int64(0), 0.0, 0.0
    i = j = 0
    previous = ends[0]
    if previous == -np.inf:
        previous = min(x[0] if x.size else np.inf, y[0] if y.size else np.inf)
    while i < x.size or j < y.size:
        here = min(x[i] if i < x.size else np.inf, y[j] if j < y.size else np.inf)
        left = n - theirs
        plain += (here - previous) * (low * left + high * theirs)
        other_sum += (here - previous) * (other * left + other_high * theirs)
        while i < x.size and x[i] == here:
            ours += counts[i]
            low, high = low + shares[i], high - shares[i]
            other, other_high = other + relative[i], other_high - relative[i]
            i += 1
        while j < y.size and y[j] == here:
            theirs += 1
            j += 1
        gap = max(gap, abs(ours - theirs))
        previous = here
    if ends[1] != np.inf:
        left = n - theirs
        plain += (ends[1] - previous) * (low * left + high * theirs)
        other_sum += (ends[1] - previous) * (other * left + other_high * theirs)
    return gap, plain / n, other_sum / n


def largest_gap_at_splitters(plan: PiecePlan) -> Part:
    """Return the largest gap of counts up to a value, at the values of the masked splitters."""
    gaps = np.cumsum(plan.crossed)[1::2] - np.cumsum(plan.tallies[1].values)[1::2]
    return Part(largest={"gap": int(np.abs(gaps).max(initial=0))})
