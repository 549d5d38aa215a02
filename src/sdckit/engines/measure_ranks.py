"""Measure the totals of pieces that need their values in order: sample, count, exchange twice, add up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from sdckit.engines.cuts import NONE, Rows, Splitters
from sdckit.engines.plan import (
    LEAST_SAMPLE,
    SAMPLED,
    Counted,
    Counting,
    PiecePlan,
    PiecesByBucket,
    Sampling,
    Sending,
    Wanted,
    count_rows,
    cut,
    with_counts,
)
from sdckit.engines.rank_cells import parts_of_cells
from sdckit.engines.rank_parts import Part, add_parts, unrelated_ranks
from sdckit.engines.rank_stages import RankMasked, RankOriginal, empty_bucket_part
from sdckit.engines.totals import RankTotals
from sdckit.engines.transport import Last, Piece, Reads, Stage, Transport
from sdckit.engines.weighted_stages import PlaceMasked, PlaceOriginal, weighted_cells
from sdckit.kernels.ranks import RankSums
from sdckit.kernels.weighted_ranks import shares_of_largest
from sdckit.progress import each, track

COUNTING = 0.3  # share of the progress that sampling and counting take, before the exchange


def measure_ranks(
    transport: Transport, sizes: Mapping[Piece, int], wanted: Mapping[Piece, Wanted]
) -> dict[Piece, RankTotals]:
    """Return the totals of each piece, given its number of rows with a value in both files."""
    nothing = Splitters.of(Rows(NONE, NONE, NONE))
    plans = [
        PiecePlan(piece, one, sizes[piece], nothing, nothing) for piece, one in wanted.items() if sizes[piece]
    ]
    found = {piece: RankTotals(0) for piece in wanted}
    for group in each("ranking", _groups(plans, together=transport.together)):
        names = tuple(dict.fromkeys(plan.piece.variable for plan in group))
        found |= _measure_group(transport, group, Reads(names, names))
    return found


def _groups(plans: Sequence[PiecePlan], *, together: bool) -> list[list[PiecePlan]]:
    """Return the plans that are exchanged in one go: all of them, or those of each variable."""
    groups: dict[str, list[PiecePlan]] = {}
    for plan in plans:
        groups.setdefault("" if together else plan.piece.variable, []).append(plan)
    return list(groups.values())


def _measure_group(transport: Transport, plans: Sequence[PiecePlan], reads: Reads) -> dict[Piece, RankTotals]:
    """Return the totals of some pieces that are exchanged together."""
    with track("ranking", 1.0) as report:
        report(0.0, COUNTING / 2)
        plans = _cut(transport, plans, reads)
        report(COUNTING / 2, COUNTING / 2)
        plans = _counted(transport, plans, reads)
        report(COUNTING, 1 - COUNTING)
        parts = _exchanged(transport, plans, reads)
    found = {}
    for plan in plans:
        buckets = range(plan.first_bucket, plan.first_bucket + plan.buckets)
        every = [parts.get(bucket) or empty_bucket_part(plan, bucket) for bucket in buckets]
        cells = weighted_cells(plan) if plan.wanted.ties == "weights" else parts_of_cells(plan)
        found[plan.piece] = _totals(plan, add_parts([*every, *cells]))
    return found


def _exchanged(transport: Transport, plans: Sequence[PiecePlan], reads: Reads) -> dict[int, Part]:
    """Return the sums over the rows of each bucket; either all pieces have weights or none."""
    pieces, weighted = PiecesByBucket(plans), plans[0].wanted.ties == "weights"
    stage: Stage = PlaceOriginal(pieces) if weighted else RankOriginal(pieces)
    last: Last = PlaceMasked(pieces) if weighted else RankMasked(pieces)
    return transport.exchange(Sending(plans), reads, [stage], last, step="ranking")


def _cut(transport: Transport, plans: Sequence[PiecePlan], reads: Reads) -> list[PiecePlan]:
    """Return the plans with splitters, drawn from a sample, where a piece is too large for a bucket."""
    large = [plan for plan in plans if plan.n > transport.bucket_rows]
    if not large:
        return list(plans)
    wanted = [max(LEAST_SAMPLE, SAMPLED * plan.n // transport.bucket_rows) for plan in large]
    shares = [number / plan.n for number, plan in zip(wanted, large, strict=True)]
    samples = transport.scan(Sampling(large, shares), reads, step="sampling")
    cuts = {}
    for plan, parts in zip(large, zip(*samples, strict=True), strict=True):
        rows = Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        cuts[plan.piece] = cut(plan, rows, transport.bucket_rows)
    return [cuts.get(plan.piece, plan) for plan in plans]


def _counted(transport: Transport, plans: Sequence[PiecePlan], reads: Reads) -> list[PiecePlan]:
    """Return the plans with the number of rows in each bucket; a piece of one bucket needs no scan."""
    scanned = [
        plan for plan in plans if plan.original.number or plan.wanted.streams or plan.wanted.ties == "weights"
    ]
    blocks = transport.scan(Counting(scanned), reads, step="counting") if scanned else []
    found: dict[Piece, Counted] = {}
    for plan, parts in zip(scanned, zip(*blocks, strict=True), strict=False):
        found[plan.piece] = reduce(Counted.plus, parts)
    return with_counts(
        plans, [found[plan.piece] if plan.piece in found else count_rows(plan) for plan in plans]
    )


def _totals(plan: PiecePlan, part: Part) -> RankTotals:
    """Return the totals of a piece from the sum over all its rows."""
    floats = defaultdict(float, part.floats)  # a piece whose rows are all in cells may have none of some sum
    found: dict[str, Any] = {"power": plan.wanted.power, "order_statistics": part.ordered}
    if plan.wanted.streams:
        found["cross_gaps"] = floats["cross gaps"] * plan.wanted.unit
        found["relative_cross_gaps"] = floats["relative cross gaps"] * plan.wanted.unit
        found["largest_gap"] = part.largest.get("gap", 0)
    if plan.wanted.ties == "weights":
        return RankTotals(plan.n, weighted=_weighted_losses(part), **found)
    sums = dict(part.ranks)
    ties = part.whole.get("ties", 0), part.whole.get("masked ties", 0)
    if plan.wanted.expected:
        squared = sums["average"].squared4 + sum(ties) / 3
        sums["expected"] = RankSums(plan.n, 2 * floats["expected"], squared)
    if plan.wanted.ties == "values":
        found["unrelated_ranks"] = unrelated_ranks(plan.n, part)
    if plan.wanted.streams:
        found["quantile_gaps"] = floats["quantile gaps"]
        found |= {name: floats[name] for name in ("marginal", "permutation")}
    return RankTotals(plan.n, sums, ties, **found)


def _weighted_losses(part: Part) -> tuple[float, float] | None:
    """Return weighted brMAE and brMSE; None for a single record, whose largest distance is 0."""
    floats = part.floats
    largest = floats["reach"], 4 * floats["squares"]
    return shares_of_largest((floats["absolute"], floats["squared"]), largest) if min(largest) > 0 else None
