"""Spaces in which records of files read in blocks are compared: standard deviations, axes, and ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.engines.linkage_scan import Records, records_of
from sdckit.engines.transport import Array, Block, Message
from sdckit.kernels.scaling import powers_of_two
from sdckit.risk.distances import Scale, Whitening, release_products, whitening_of

if TYPE_CHECKING:
    from sdckit.engines.linkage_scan import PairTotals
    from sdckit.engines.moments import ColumnMoments
    from sdckit.engines.transport import Reads, Transport
    from sdckit.kernels.jit import Floats, Ints

NODES = 2**16  # sampled values at which ranks are exact
COUNTS, PRODUCTS = range(2)  # kinds of messages


def scale_of(moments: ColumnMoments, sample: Floats) -> Scale:
    """Return the scale of columns from their moments, with typical values from a sample of records."""
    unit = powers_of_two(moments.largest[None, :])
    unit[moments.largest == 0] = 1.0
    some = np.sort(sample / unit, axis=0)  # NaN last
    centre = some[(~np.isnan(some)).sum(axis=0) // 2, np.arange(unit.size)]
    centre[np.isnan(centre)] = 0.0
    spreads = moments.spreads(weighted=False) / unit
    varies = ~moments.constant & (spreads > 0)
    factor = np.divide(1.0, spreads, out=np.zeros(unit.size), where=varies)
    return Scale(unit, centre, factor, (moments.means / unit - centre) * factor)


class RankFunction(NamedTuple):
    """Mid-ranks of the values of a column: exact at the nodes, linear in the value between two of them.

    `below` and `equal` are the numbers of values below and at each node. The rank of a value between two
    nodes is wrong by less than the number of values between them: about n / 65,536.
    """

    nodes: Floats
    below: Ints
    equal: Ints
    scale: float  # records of the file / values of the column

    def mid_ranks(self, values: Floats) -> Floats:
        """Return the mid-rank of each value, NaN for a missing one."""
        if not self.nodes.size:
            return np.full(values.size, np.nan)
        place = np.minimum(np.searchsorted(self.nodes, values), self.nodes.size - 1)
        before = np.maximum(place - 1, 0)
        ends = self.nodes[before] / 2, self.nodes[place] / 2  # halves: a difference must not overflow
        gap = ends[1] - ends[0]
        share = np.divide(values / 2 - ends[0], gap, out=np.ones(values.size), where=gap > 0)
        low, high = (self.below + self.equal)[before], self.below[place]
        exact = self.below[place] + self.equal[place] / 2
        found = np.where(values == self.nodes[place], exact, low + share * (high - low))
        return np.where(np.isnan(values), np.nan, found * self.scale)

    def tie_blocks(self, values: Floats) -> tuple[Floats, Floats]:
        """Return first and last rank, from 0, of the values equal to each; NaN for a missing one.

        Between two nodes, those of all values there: a block that is too wide excludes no true record.
        """
        if not self.nodes.size:
            return np.full(values.size, np.nan), np.full(values.size, np.nan)
        place = np.minimum(np.searchsorted(self.nodes, values), self.nodes.size - 1)
        before, gone = np.maximum(place - 1, 0), np.isnan(values)
        at, up_to = values == self.nodes[place], self.below + self.equal
        first = np.where(at, self.below[place], up_to[before])
        last = np.where(at, up_to[place], self.below[place]) - 1
        return np.where(gone, np.nan, first), np.where(gone, np.nan, last)


@dataclass(frozen=True)
class Spaces:
    """The spaces of a pair of files."""

    scale: Scale
    whitening: Whitening
    ranks: tuple[tuple[RankFunction, ...], tuple[RankFunction, ...]]  # of the variables of both files

    def points(self, attack: str, records: Records) -> tuple[Floats, Floats]:
        """Return original and published records as an attack compares them."""
        if attack == "dbrl_mahalanobis":
            return self.whitening.apply(records.x), self.whitening.apply(records.y)
        if attack == "dbrl_rank":
            ours, theirs = (
                np.column_stack([one.mid_ranks(values[:, j]) for j, one in enumerate(functions)])
                for functions, values in zip(self.ranks, records[:2], strict=True)
            )
            return ours, theirs
        return self.scale.apply(records.x), self.scale.apply(records.y)


@dataclass(frozen=True)
class SpaceScan:
    """The first step of an exchange: counts of values at nodes, and products of deviations."""

    variables: tuple[str, ...]
    nodes: tuple[Floats, ...]  # of the original variables, then of the masked ones
    release: Scale

    def __call__(self, block: Block) -> Iterator[Message]:
        """Yield counts to the bucket of each column, then products to one more bucket."""
        records = records_of(block, self.variables, ())
        columns = [*records.x.T, *records.y.T]
        for bucket, (nodes, column) in enumerate(zip(self.nodes, columns, strict=True)):
            yield Message(bucket, COUNTS, (count_at(nodes, column[~np.isnan(column)]),))
        yield Message(len(columns), PRODUCTS, (release_products(self.release, records.y),))


def count_at(nodes: Floats, values: Floats) -> Ints:
    """Return the numbers of values below each node and of those at it."""
    values = np.sort(values)
    below = np.searchsorted(values, nodes)
    found = np.stack([below, np.searchsorted(values, nodes, "right") - below])
    return found.astype(np.int32) if values.size < 2**31 else found  # to send fewer bytes


def add_messages(_bucket: int, messages: Sequence[Message]) -> Array:
    """Return the sum of the arrays of all messages."""
    first = messages[0].arrays[0]
    found: Array = np.zeros(first.shape, np.float64 if first.dtype.kind == "f" else np.int64)
    for message in messages:
        found += message.arrays[0]
    return found


def find_spaces(
    transport: Transport,
    variables: tuple[str, ...],
    reads: Reads,
    totals: PairTotals,
    sample: Records,
) -> Spaces:
    """Return the spaces of both files, from one exchange over all blocks."""
    release = scale_of(totals.masked, sample.y)
    moments = totals.original, totals.masked
    nodes = [
        _nodes(values[:, j], one.low[j], one.high[j])
        for values, one in zip(sample[:2], moments, strict=True)
        for j in range(len(variables))
    ]
    task = SpaceScan(variables, tuple(nodes), release)
    found = transport.exchange(task, reads, [], add_messages, step="ranking records for linkage")
    counts = np.concatenate([one.count for one in moments])
    functions = [
        RankFunction(one, found[number][0], found[number][1], totals.n / max(int(counts[number]), 1))
        for number, one in enumerate(nodes)
    ]
    p = len(variables)
    return Spaces(
        scale_of(totals.original, sample.x),
        whitening_of(release, found[2 * p], totals.n),
        (tuple(functions[:p]), tuple(functions[p:])),
    )


def _nodes(values: Floats, low: float, high: float) -> Floats:
    """Return the different values of a sample and the smallest and largest of all, ascending."""
    found = np.unique(np.append(values, [low, high]))
    return np.asarray(found[np.isfinite(found)])
