"""First scan over blocks of rows: counts, sums and moments of each variable, in the file and each stratum."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.engines.moments import ColumnMoments
from sdckit.metrics.blocks.cell_sums import ALL, CellSums, cell_sums
from sdckit.metrics.counts import Counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sdckit.engines.transport import Block
    from sdckit.kernels.jit import Floats, Ints

Group = int | None  # number of a stratum; None for the whole file


@dataclass(frozen=True)
class ScanTotals:
    """Counts, sums and moments of the variables of a group of records; arrays have one entry per variable.

    `original` are moments of all original values, weighted; `shared_original` and `shared_masked` those of
    the cells that both files have, without weights; `relative` those of masked values in cells that IL1
    counts. `complete_original` and `complete_masked` are of the records without a missing cell in either
    file. `heaviest` is the largest weight of a shared cell, `masked_zeros` the number of shared cells with
    a masked value of 0.
    """

    n: int
    both: Ints
    suppressed: Ints
    imputed: Ints
    suppressed_weight: Floats
    cells: CellSums
    original: ColumnMoments
    shared_original: ColumnMoments
    shared_masked: ColumnMoments
    relative: ColumnMoments
    complete_original: ColumnMoments
    complete_masked: ColumnMoments
    heaviest: Floats
    masked_zeros: Ints

    @classmethod
    def of(cls, x: Floats, y: Floats, weights: Floats | None) -> ScanTotals:
        """Return the totals of a block of records; `x` and `y` have one row per variable."""
        seen, kept = ~np.isnan(x), ~np.isnan(y)
        both, gone = seen & kept, seen & ~kept
        whole = np.broadcast_to(both.all(0), both.shape)
        shares = np.ones(x.shape[1]) if weights is None else weights
        return cls(
            n=x.shape[1],
            both=both.sum(1),
            suppressed=gone.sum(1),
            imputed=(~seen & kept).sum(1),
            suppressed_weight=(gone * shares).sum(1),
            cells=cell_sums(x, y, weights),
            original=ColumnMoments.of(x, seen, weights),
            shared_original=ColumnMoments.of(x, both),
            shared_masked=ColumnMoments.of(y, both),
            relative=ColumnMoments.of(y, both & ((x != 0) | (y == 0))),
            complete_original=ColumnMoments.of(x, whole),
            complete_masked=ColumnMoments.of(y, whole),
            heaviest=(both * shares).max(axis=1, initial=0.0),
            masked_zeros=(both & (y == 0)).sum(1),
        )

    def merge(self, other: ScanTotals) -> ScanTotals:
        """Return the totals of two blocks together."""
        found: dict[str, Any] = {}
        for field in fields(self):
            ours, theirs = getattr(self, field.name), getattr(other, field.name)
            if isinstance(ours, ColumnMoments):
                found[field.name] = ours.merge(theirs)
            elif isinstance(ours, CellSums):
                found[field.name] = CellSums(ours.sums + theirs.sums, ours.counts + theirs.counts)
            elif field.name == "heaviest":
                found[field.name] = np.maximum(ours, theirs)
            else:
                found[field.name] = ours + theirs
        return ScanTotals(**found)

    @cached_property
    def counts(self) -> Counts:
        """Numbers of observed and missing cells of each variable."""
        neither = self.n - self.both - self.suppressed - self.imputed
        return Counts(self.both, self.suppressed, self.imputed, neither)

    @property
    def kept_weight(self) -> Floats:
        """Summed weight of the cells that both files have, for each variable."""
        return self.cells.sums[:, ALL]

    def spreads(self, *, weighted: bool) -> Floats:
        """Return the standard deviation of each original variable; NaN with fewer than two values."""
        return np.where(self.original.count > 1, self.original.spreads(weighted=weighted), np.nan)


@dataclass(frozen=True)
class Scan:
    """Task that returns the totals of a block by stratum; those of all strata together are the file's."""

    variables: tuple[str, ...]

    def __call__(self, block: Block) -> dict[Group, ScanTotals]:
        """Return the totals of each stratum of the block; of the whole block without strata."""
        return {
            group: ScanTotals.of(x, y, weights) for group, x, y, weights in _groups(block, self.variables)
        }


def stacked(block: Block, variables: Sequence[str]) -> tuple[Floats, Floats]:
    """Return the variables of both files as matrices with one row per variable."""
    shape = (len(variables), block.rows)
    x, y = (
        np.array([columns[name] for name in variables], np.float64).reshape(shape)
        for columns in (block.original, block.masked)
    )
    return x, y


def _groups(block: Block, variables: Sequence[str]) -> Iterator[tuple[Group, Floats, Floats, Floats | None]]:
    """Yield stratum, both matrices and weights of each stratum in the block; the block without strata."""
    x, y = stacked(block, variables)
    if block.strata is None:
        yield None, x, y, block.weights
        return
    for stratum, rows in rows_by_stratum(block.strata):
        yield stratum, x[:, rows], y[:, rows], None if block.weights is None else block.weights[rows]


def rows_by_stratum(strata: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each stratum number that occurs, in ascending order, and its rows."""
    order = np.argsort(strata, kind="stable")
    numbers, begins = np.unique(strata[order], return_index=True)
    ends = [*begins[1:].tolist(), order.size]
    for number, begin, end in zip(numbers.tolist(), begins.tolist(), ends, strict=False):
        yield number, order[begin:end]


def merge_scans(blocks: Sequence[Mapping[Group, ScanTotals]]) -> dict[Group, ScanTotals]:
    """Return the totals of the whole file (None) and of each stratum from those of all blocks in order."""
    found: dict[Group, ScanTotals] = {}
    for block in blocks:
        for group, totals in block.items():
            found[group] = found[group].merge(totals) if group in found else totals
    if None not in found:
        strata = sorted(group for group in found if group is not None)
        found[None] = reduce(ScanTotals.merge, [found[stratum] for stratum in strata])
    return found
