"""Sums over cells, the rows of a piece equal to a splitter, from counts alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sdckit.engines.rank_parts import Part, add_parts
from sdckit.engines.runs import cell_run, coupled_sums, overlaps
from sdckit.engines.values import largest_gap_at_splitters
from sdckit.kernels.rank_distance import gap_distance
from sdckit.kernels.rank_sums import RankSums
from sdckit.kernels.tie_rules import mean_gap

if TYPE_CHECKING:
    from sdckit.engines.plan import PiecePlan

AT_ONCE = 1 << 20  # rows of a cell that are written out at a time


def parts_of_cells(plan: PiecePlan) -> Iterator[Part]:
    """Yield the sums over all cells of a piece, and what else follows from its counts."""
    for cell, place in enumerate(np.argsort(plan.masked.cells).tolist()):
        if plan.tallies[0].buckets[2 * cell + 1]:
            yield _cell_part(plan, cell, place)
    if plan.wanted.ties == "values":
        yield from _coupled_cells(plan)
    if plan.wanted.streams:
        yield largest_gap_at_splitters(plan)
    yield Part(ordered=_order_statistics(plan))


def _cell_part(plan: PiecePlan, cell: int, place: int) -> Part:
    """Return the sums over one cell; `place` is its number in the masked order."""
    ours, theirs = plan.tallies
    n = int(ours.buckets[2 * cell + 1])
    r, s = int(ours.before[2 * cell + 1]), int(theirs.before[2 * place + 1])
    at, other_at = plan.original.value_of[cell], plan.masked.value_of[place]
    a, length, c, other = map(
        int, (ours.below[at], ours.equal[at], theirs.below[other_at], theirs.equal[other_at])
    )
    middle2 = 2 * (a - c) + length - other
    if plan.wanted.ties == "rows":
        return Part({"first": _same(n, 2 * (r - s)), "last": _same(n, 2 * (middle2 - (r - s)))})
    ranks = {"average": _same(n, middle2), "min": _same(n, 2 * (r - s))}
    # Largest distance: the cell's rows ascend in one order and descend in the other.
    ranks["max"] = _progression(n, 2 * (2 * (a - c) + length - other - (r - s) - (n - 1)))
    whole = {
        "ties": n * (length**2 - 1),
        "masked ties": n * (other**2 - 1),
        "even": n * (length % 2 == 0),
    }
    expected = n * mean_gap(a, a + length - 1, c, c + other - 1) if plan.wanted.expected else 0.0
    return Part(ranks, whole, {"expected": expected} if plan.wanted.expected else {})


def _same(n: int, gap2: int) -> RankSums:
    """Return the sums over n rows with the same doubled rank difference."""
    return RankSums(n, n * abs(gap2), n * gap2**2)


def _progression(n: int, gap2: int) -> RankSums:
    """Return the sums over n rows whose doubled rank differences begin at `gap2` and rise by 4."""
    parts = [
        Part({"all": gap_distance(gap2 + 4 * np.arange(begin, min(begin + AT_ONCE, n)))})
        for begin in range(0, n, AT_ONCE)
    ]
    return add_parts(parts).ranks["all"]


def _coupled_cells(plan: PiecePlan) -> Iterator[Part]:
    """Yield the sums over ranks that belong to a cell in both orders."""
    before = plan.tallies[0].before
    for cell in range(plan.original.number):
        for at, begin, end in overlaps(
            plan.tallies[1].before, int(before[2 * cell + 1]), int(before[2 * cell + 2])
        ):
            for first in range(begin, end, AT_ONCE) if at % 2 else ():
                last = min(first + AT_ONCE, end)
                runs = cell_run(plan, 0, cell, first, last), cell_run(plan, 1, at // 2, first, last)
                yield coupled_sums(plan, *runs)


def _order_statistics(plan: PiecePlan) -> dict[int, float]:
    """Return the original values at wanted ranks that lie in cells."""
    found = {}
    for rank in plan.wanted.ranks:
        at = int(np.searchsorted(plan.tallies[0].before, rank, side="right")) - 1
        if at % 2:
            found[rank] = float(plan.original.first[at // 2])
    return found
