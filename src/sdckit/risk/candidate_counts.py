"""Numbers of candidates of all queries, counted once for each kind of record where kinds are few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.candidates import Side, count_candidates, take
from sdckit.risk.equal_records import RecordClasses, row_marks

if TYPE_CHECKING:
    from sdckit.kernels.jit import Ints, UInt64s

KINDS = 4_000_000  # pairs of kinds of records up to which kinds are compared instead of records


def count_by_kind(targets: Side, queries: Side) -> tuple[Ints, UInt64s]:
    """Return the number of candidates of each query and a mark of their set."""
    if not targets.low.shape[1]:
        sizes = np.bincount(targets.blocks, minlength=int(queries.blocks.max()) + 1)
        return sizes[queries.blocks], row_marks(queries.blocks)
    kinds = [RecordClasses(row_marks(*side)) for side in (targets, queries)]
    if len(kinds[0].sizes) * len(kinds[1].sizes) > KINDS:
        return count_candidates(targets, queries)
    ours, theirs = take(targets, kinds[0].firsts), take(queries, kinds[1].firsts)
    counts, marks = _count_kinds(ours, theirs, kinds[0].sizes)
    return counts[kinds[1].numbers], marks[kinds[1].numbers]


def _count_kinds(targets: Side, queries: Side, sizes: Ints) -> tuple[Ints, UInt64s]:
    """Return the candidates of each kind of query, given the facts about kinds of targets and their sizes."""
    fits = np.array(
        [
            (targets.blocks == block) & ((low <= targets.high) & (targets.low <= high)).all(axis=1)
            for block, low, high in zip(*queries, strict=True)
        ]
    )
    marks = row_marks(np.arange(len(sizes)))
    return fits @ sizes, np.where(fits, marks, np.uint64(0)).sum(axis=1, dtype=np.uint64)
