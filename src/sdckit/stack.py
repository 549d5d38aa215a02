"""Rank distances of many short columns at once: for a thousand records, calls cost more than sorting."""

from __future__ import annotations

import numpy as np

from sdckit.compiled import Bools, Floats, Ints, kernel
from sdckit.keys import collided_runs, fill_keys, no_flags, settle_runs, sort_as_floats, starts_of_keys
from sdckit.ranks import OrderedColumn, RankSums, middle_sums, singles_and_flags, to_middles2


class ColumnStack:
    """Several short columns of one length, prepared so that one call measures them all."""

    def __init__(self, columns: list[OrderedColumn]) -> None:
        self.n = columns[0].n
        self.rank = np.stack([column.rank for column in columns])
        self.order = np.stack([column.order for column in columns])
        self.middle2 = np.stack([column.middle2 for column in columns])

    def average_distances(self, masked: Floats) -> list[RankSums]:
        """Rank distance under mid-ranks of each row of `masked` (one row per column of the table)."""
        width = max(self.n - 1, 1).bit_length()
        keys = np.empty(self.rank.shape, np.int64)
        cut = _fill_stack(masked.view(np.int64), self.rank, width, keys)
        sort_as_floats(keys)
        sums = _stack_sums(keys, width, cut, self.order, masked, self.middle2, no_flags(keys[0]))
        return [RankSums(self.n, a, (high << 32) + low) for a, low, high in sums.tolist()]


@kernel
def _fill_stack(bits: Ints, labels: Ints, width: int, keys: Ints) -> Ints:
    cut = np.empty(len(bits), np.int64)
    for c in range(len(bits)):
        cut[c] = fill_keys(bits[c], labels[c], width, keys[c])
    return cut


@kernel
def _stack_sums(
    keys: Ints, width: int, cut: Ints, order: Ints, masked: Floats, middle2: Ints, flags: Bools
) -> Ints:
    sums = np.empty((len(keys), 3), np.int64)
    start = np.empty(keys.shape[1], np.int64)
    for c in range(len(keys)):
        flags[:] = False
        a, low, high, collisions = singles_and_flags(keys[c], width, 0, start.size, True, middle2[c], flags)
        if collisions == 0:
            sums[c] = a, low, high
            continue
        starts_of_keys(keys[c], width, start)
        if cut[c]:
            runs = collided_runs(keys[c], width, flags, collisions, start, False, 0, 0)
            settle_runs(keys[c], width, runs, order[c], masked[c], start)
        to_middles2(start)
        sums[c] = middle_sums(keys[c], width, start, 0, middle2[c])
    return sums
