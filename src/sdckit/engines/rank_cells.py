"""Sums over cells, the rows of a piece equal to a splitter, from counts alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sdckit.engines.rank_parts import Part, level_of_block, middle_rank
from sdckit.engines.runs import overlaps
from sdckit.engines.values import largest_gap_at_splitters
from sdckit.kernels.ranks import RankSums, mean_gap
from sdckit.metrics.blocks.coupled_columns import parts_of_square

if TYPE_CHECKING:
    from sdckit.engines.plan import PiecePlan


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
    (a, length), (c, other) = _tie_block(plan, 0, cell), _tie_block(plan, 1, place)
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
    below = min(max(-(gap2 // 4), 0), n)  # rows with a negative difference
    absolute = _rising(n, gap2) - 2 * _rising(below, gap2)
    steps, squared_steps = (n - 1) * n // 2, (n - 1) * n * (2 * n - 1) // 6
    return RankSums(n, absolute, n * gap2**2 + 8 * gap2 * steps + 16 * squared_steps)


def _rising(n: int, gap2: int) -> int:
    """Return the sum of n whole numbers that begin at `gap2` and rise by 4."""
    return n * (gap2 + 2 * (n - 1))


def _coupled_cells(plan: PiecePlan) -> Iterator[Part]:
    """Yield the sums over ranks that belong to a cell in both orders."""
    before = plan.tallies[0].before
    for cell in range(plan.original.number):
        for at, begin, end in overlaps(
            plan.tallies[1].before, int(before[2 * cell + 1]), int(before[2 * cell + 2])
        ):
            if at % 2:
                yield _coupled_cell(plan, cell, at // 2, begin, end)


def _coupled_cell(plan: PiecePlan, cell: int, place: int, begin: int, end: int) -> Part:
    """Return the sums over the ranks from `begin` to `end` - 1, which two cells have in common."""
    block, other = _tie_block(plan, 0, cell), _tie_block(plan, 1, place)
    counted = begin <= middle_rank(*block) < end
    floats = {"level": level_of_block(*block, *other) if counted else 0.0}
    if plan.wanted.streams:
        values = plan.original.first[cell], plan.original.last[cell], plan.masked.first[place]
        x, own, y = (math.ldexp(value, -plan.wanted.power) for value in values)
        marginal, permutation = parts_of_square(x, own, y)
        sums = {"quantile gaps": abs(x - y), "marginal": marginal, "permutation": permutation}
        floats |= {name: (end - begin) * value for name, value in sums.items()}
    return Part(floats=floats)


def _tie_block(plan: PiecePlan, side: int, cell: int) -> tuple[int, int]:
    """Return the first rank and the length of the tie block of a cell, in the original order for side 0."""
    at, tally = (plan.original, plan.masked)[side].value_of[cell], plan.tallies[side]
    return int(tally.below[at]), int(tally.equal[at])


def _order_statistics(plan: PiecePlan) -> dict[int, float]:
    """Return the original values at wanted ranks that lie in cells."""
    found = {}
    for rank in plan.wanted.ranks:
        at = int(np.searchsorted(plan.tallies[0].before, rank, side="right")) - 1
        if at % 2:
            found[rank] = float(plan.original.first[at // 2])
    return found
