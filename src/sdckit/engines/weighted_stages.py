"""Stages of the exchange that ranks rows by weight: a row has as many positions as its weight.

The position of a row is half of the weight below its value less half of the weight above, as in
`kernels/weighted_ranks.py`. Rows are sorted by value and weight, since the largest possible distance depends
on the order of weights within ties.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.engines.cuts import Rows, Splitters, Tally
from sdckit.engines.plan import RANKED, ROWS, SUMS, PiecePlan, PiecesByBucket, by_bucket, joined
from sdckit.engines.rank_parts import Part, add_parts
from sdckit.engines.transport import Message
from sdckit.engines.values import send_values, values_part
from sdckit.kernels.lexicographic import block_lengths, sort_rows
from sdckit.kernels.weighted_ranks import weights_before_after

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints

AT_ONCE = 1 << 16  # rows of a cell that are written out at a time: the driver of a cluster is small


class Positions(NamedTuple):
    """Order of a bucket's rows, position of each in that order, and sums of distances from the middle."""

    order: Ints
    positions: Floats
    reach: float
    squares: float


def place_bucket(
    splitters: Splitters, weights: Tally, bucket: int, values: Floats, t: Floats, *more: Floats
) -> Positions:
    """Return the order of a bucket's rows and their weighted positions, ties sharing the middle of theirs."""
    order, start = sort_rows(values, t, *more)
    below, above = weights_before_after(t[order])
    below += weights.before[2 * bucket]
    above += weights.after[2 * bucket]
    ends = start + block_lengths(start) - 1
    positions = (below[start] - above[ends]) / 2
    for place, stretch in ((bucket - 1, slice(0, ends[0] + 1)), (bucket, slice(start[-1], None))):
        if 0 <= place < splitters.number and splitters.first[place] == values[order[stretch]][0]:
            positions[stretch] = middle_of_value(splitters, weights, place)
    return Positions(order, positions, *_from_middle(t[order], (below - above) / 2))


def middle_of_value(splitters: Splitters, weights: Tally, place: int) -> float:
    """Return the position of all rows that have the value of a splitter."""
    at = splitters.value_of[place]
    return float(weights.below[at] - weights.above[at]) / 2


def _from_middle(weights: Floats, positions: Floats) -> tuple[float, float]:
    """Return the weighted sums of |position| and of position**2."""
    return float(np.sum(weights * np.abs(positions))), float(np.sum(weights * positions**2))


def weight_tallies(plan: PiecePlan) -> tuple[Tally, Tally]:
    """Return the weights of a plan's buckets in the original and in the masked order."""
    if plan.weights is None:
        raise RuntimeError("the weights of this plan have not been added up")
    return plan.weights


@dataclass(frozen=True)
class PlaceOriginal:
    """Finds the positions of a bucket's rows in the original order, and sends them to the masked order."""

    pieces: PiecesByBucket

    def __call__(self, bucket: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield masked values with weights and original positions, and the sums that are complete."""
        plan, at = self.pieces.find(bucket)
        rows = Rows(*joined(messages, ROWS))
        found = place_bucket(plan.original, weight_tallies(plan)[0], at, rows.x, rows.t, rows.y)
        rows = rows.take(found.order)
        for masked, chosen in by_bucket(plan.masked, rows.turned):
            part = rows.take(chosen)
            yield Message(plan.first_bucket + masked, RANKED, (part.y, part.t, found.positions[chosen]))
        yield Message(bucket, SUMS, (np.array([found.reach, found.squares]),))
        if plan.wanted.streams:
            yield from send_values(plan, rows)


@dataclass(frozen=True)
class PlaceMasked:
    """Finds the positions of a bucket's rows in the masked order, and adds up distances of positions."""

    pieces: PiecesByBucket

    def __call__(self, bucket: int, messages: Sequence[Message]) -> Part:
        """Return the sums over the rows of a bucket."""
        plan, at = self.pieces.find(bucket)
        parts = [_sums(reach=m.arrays[0][0], squares=m.arrays[0][1]) for m in messages if m.kind == SUMS]
        masked = np.empty(0)
        arrays = joined(messages, RANKED)
        if arrays:
            y, t, positions = arrays
            found = place_bucket(plan.masked, weight_tallies(plan)[1], at, y, t)
            gaps = positions[found.order] - found.positions
            absolute, squared = _from_middle(t[found.order], gaps)
            parts.append(_sums(absolute=absolute, squared=squared, reach=found.reach))
            masked = y[found.order]
        if plan.wanted.streams:
            parts.append(values_part(plan, at, messages, masked))
        return add_parts(parts)


def _sums(**floats: float) -> Part:
    """Return sums of a weighted piece as a part."""
    return Part(floats={name: float(value) for name, value in floats.items()})


def weighted_cells(plan: PiecePlan) -> Iterator[Part]:
    """Yield the sums over the cells of a weighted piece, from counts and weights alone."""
    for cell, place in enumerate(np.argsort(plan.masked.cells).tolist()):
        n = int(plan.tallies[0].buckets[2 * cell + 1])
        if not n:
            continue
        weight = float(plan.original.middle[cell])
        tallies = weight_tallies(plan)
        gap = middle_of_value(plan.original, tallies[0], cell) - middle_of_value(
            plan.masked, tallies[1], place
        )
        yield _sums(absolute=n * weight * abs(gap), squared=n * weight * gap**2)
        for side, at in ((0, cell), (1, place)):
            yield from _cell_reach(tallies[side], at, n, weight, original=side == 0)


def _cell_reach(weights: Tally, at: int, n: int, weight: float, *, original: bool) -> Iterator[Part]:
    """Yield the sums of distances from the middle over a cell of n rows of the same weight."""
    below, above = weights.before[2 * at + 1], weights.after[2 * at + 1]
    for begin in range(0, n, AT_ONCE):
        steps = np.arange(begin, min(begin + AT_ONCE, n), dtype=np.float64)
        positions = (below + steps * weight - (above + (n - 1 - steps) * weight)) / 2
        reach, squares = _from_middle(np.full(steps.size, weight), positions)
        yield _sums(reach=reach, squares=squares) if original else _sums(reach=reach)
