"""Both columns of a variable side by side in ascending order: the same ranks of the one and of the other.

The original column in runs of consecutive ranks goes to the bucket of the masked order that holds the same
ranks. Cells, whose values are known from counts, are filled in on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.engines.plan import RUN, SUMS, PiecePlan, narrow
from sdckit.engines.rank_parts import Part, level_sum
from sdckit.engines.transport import Message
from sdckit.metrics.blocks.coupled_columns import CoupledColumns, part_sums, sum_of_gaps

if TYPE_CHECKING:
    from sdckit.engines.cuts import Numbers
    from sdckit.kernels.jit import Floats, Ints

NAMES = ("level", "quantile gaps", "marginal", "permutation")


class RankRun(NamedTuple):
    """Values at consecutive ranks from `first` on, with the tie block that each belongs to.

    `own` is the value of the same record in the other file.
    """

    first: int
    values: Floats
    own: Floats
    begin: Ints
    length: Ints

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self.values.size

    @property
    def tied(self) -> bool:
        """True if some value is tied with another."""
        return bool((self.length > 1).any())

    def part(self, begin: int, end: int) -> RankRun:
        """Return the run restricted to the ranks from `begin` to `end` - 1."""
        inside = slice(begin - self.first, end - self.first)
        own = self.values[inside], self.own[inside]
        return RankRun(begin, *own, self.begin[inside], self.length[inside])


def coupled_sums(plan: PiecePlan, original: RankRun, masked: RankRun) -> Part:
    """Return the sums over the same ranks of the original and of the masked column."""
    floats = {
        "level": level_sum(original.first, original.begin, original.length, masked.begin, masked.length)
    }
    if plan.wanted.streams:
        power = plan.wanted.power
        x, own, y = (np.ldexp(column, -power) for column in (original.values, original.own, masked.values))
        gaps = sum_of_gaps(CoupledColumns(x, own, y, np.ones(y.size)))
        squares = part_sums(CoupledColumns(x[None], own[None], y[None], np.empty(0)), np.zeros(1, np.int32))
        marginal, permutation = (float(part[0]) for part in squares)
        floats |= {"quantile gaps": gaps, "marginal": marginal, "permutation": permutation}
    return Part(floats=floats)


def send_runs(plan: PiecePlan, run: RankRun, bucket: int) -> Iterator[Message]:
    """Yield the run in parts to the masked buckets with the same ranks; sums where these are cells.

    Without streams only ties matter, and untied parts are not sent.
    """
    if plan.wanted.ties != "values":
        return
    for at, begin, end in overlaps(plan.tallies[1].before, run.first, run.first + run.size):
        part = run.part(begin, end)
        if at % 2:
            yield write_sums(bucket, coupled_sums(plan, part, cell_run(plan, 1, at // 2, begin, end)))
            continue
        if not (plan.wanted.streams or part.tied):
            continue
        values = (part.values, part.own) if plan.wanted.streams else (part.values[:0], part.own[:0])
        back = begin + np.arange(end - begin) - part.begin
        blocks = (narrow(back), narrow(part.length)) if part.tied else (back[:0], back[:0])
        yield Message(plan.first_bucket + at // 2, RUN, (np.array([begin, end]), *values, *blocks))


def overlaps(before: Numbers, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield each bucket that holds some of the ranks from `begin` to `end` - 1, and which of them."""
    at = int(np.searchsorted(before, begin, side="right")) - 1
    while begin < end:
        stop = min(int(before[at + 1]), end)
        if stop > begin:
            yield at, begin, stop
            begin = stop
        at += 1


def cell_run(plan: PiecePlan, side: int, cell: int, begin: int, end: int) -> RankRun:
    """Return ranks of a cell as a run; side 0 numbers cells in the original order, 1 in the masked one."""
    splitters = (plan.original, plan.masked)[side]
    counts = plan.tallies[side]
    at, size = splitters.value_of[cell], end - begin
    blocks = (np.full(size, counts.below[at]), np.full(size, counts.equal[at]))
    return RankRun(begin, np.full(size, splitters.first[cell]), np.full(size, splitters.last[cell]), *blocks)


def couple_bucket(plan: PiecePlan, masked: RankRun, messages: Sequence[Message]) -> Part:
    """Return the sums over the ranks of a masked bucket, beside the original column at the same ranks."""
    ranks = masked.first + np.arange(masked.size)
    values = masked.size if plan.wanted.streams else 0
    original = RankRun(
        masked.first, np.empty(values), np.empty(values), ranks, np.ones(masked.size, np.int64)
    )
    for head, x, own, back, length in (m.arrays for m in messages if m.kind == RUN):
        part = original.part(int(head[0]), int(head[1]))
        part.values[:], part.own[:] = x, own
        if back.size:
            part.begin[:] -= back
            part.length[:] = length
    for at, begin, end in overlaps(plan.tallies[0].before, masked.first, masked.first + masked.size):
        if at % 2:
            for column, known in zip(
                original.part(begin, end)[1:], cell_run(plan, 0, at // 2, begin, end)[1:], strict=True
            ):
                column[:] = known[: column.size]
    return coupled_sums(plan, original, masked)


def write_sums(bucket: int, part: Part) -> Message:
    """Return a message with sums that are complete already."""
    return Message(bucket, SUMS, (np.array([part.floats.get(name, 0.0) for name in NAMES]),))


def read_sums(message: Message) -> Part:
    """Return the sums in a message of `write_sums`."""
    return Part(floats=dict(zip(NAMES, message.arrays[0].tolist(), strict=True)))
