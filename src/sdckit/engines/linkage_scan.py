"""First scan for linkage: a sample of records, moments of columns, and what holds for every true pair."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.engines.moments import ColumnMoments
from sdckit.engines.plan import scrambled
from sdckit.risk.facts import zero_relations

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.engines.transport import Block
    from sdckit.kernels.jit import Bools, Floats, Ints, UInt64s

MOST_PAIRS = 2**16  # different pairs of cells up to which one column is checked for a function of the other
SLACK = 8.0  # standard deviations: so much more is drawn than needed, so that it is never too little


class Records(NamedTuple):
    """Records of both files: known variables, and marks of known columns that were not masked."""

    x: Floats  # record x variable
    y: Floats
    ours: UInt64s  # record x column
    theirs: UInt64s

    def take(self, rows: Ints | slice | Bools) -> Records:
        """Return some of the records."""
        return Records(self.x[rows], self.y[rows], self.ours[rows], self.theirs[rows])


def records_of(block: Block, variables: Sequence[str], cells: Sequence[str]) -> Records:
    """Return the records of a block."""
    shape = (block.rows, len(variables))
    x, y = (
        np.column_stack([np.empty((block.rows, 0)), *(columns[name] for name in variables)]).reshape(shape)
        for columns in (block.original, block.masked)
    )
    marks = np.zeros((2, block.rows, len(cells)), np.uint64)
    for j, name in enumerate(cells):
        marks[0, :, j], marks[1, :, j] = block.cells[name]
    return Records(x, y, marks[0], marks[1])


class Drawn(NamedTuple):
    """Records drawn at random: random numbers, by which the first few are taken, row numbers and cells."""

    numbers: UInt64s
    rows: Ints
    records: Records


class CellTotals(NamedTuple):
    """How the published cells of a column follow from the original ones.

    `agreeing` is the number of equal cells, `fitting` that of equal or unpublished ones, `pairs` are the
    different pairs of marks; None where there are too many.
    """

    agreeing: int
    fitting: int
    pairs: UInt64s | None

    @classmethod
    def of(cls, ours: UInt64s, theirs: UInt64s) -> CellTotals:
        """Return the totals of a block's cells."""
        same = ours == theirs
        pairs = _distinct(np.column_stack([ours, theirs])) if not same.all() else None
        if same.all():
            alone = np.unique(ours)
            pairs = None if alone.size > MOST_PAIRS else np.column_stack([alone, alone])
        return cls(int(same.sum()), int((same | (theirs == 0)).sum()), pairs)

    def plus(self, other: CellTotals) -> CellTotals:
        """Return the totals of two blocks together."""
        pairs = None
        if self.pairs is not None and other.pairs is not None:
            pairs = _distinct(np.concatenate([self.pairs, other.pairs]))
        return CellTotals(self.agreeing + other.agreeing, self.fitting + other.fitting, pairs)

    def case(self, n: int) -> str:
        """Return the case of the column in n records, as `risk.untouched` names them; "?" if unknown.

        Where all pairs differ, a function cannot be told from a fresh numbering.
        """
        if self.agreeing == n:
            return "a"
        if self.pairs is not None and len(np.unique(self.pairs[:, 0])) == len(self.pairs) < n:
            return "b"
        if self.fitting == n:
            return "c"
        if self.pairs is None or len(self.pairs) == n:
            return "d?" if 2 * self.agreeing >= n else "e?"
        return "d" if 2 * self.agreeing >= n else "e"


def _distinct(pairs: UInt64s) -> UInt64s | None:
    """Return the different pairs of marks; None where there are too many."""
    mixed = pairs[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ pairs[:, 1]
    places = np.unique(mixed, return_index=True)[1]
    return None if places.size > MOST_PAIRS else pairs[places]


@dataclass(frozen=True)
class PairTotals:
    """Totals of a block of true pairs, or of all of them; arrays have one entry per variable."""

    n: int
    original: ColumnMoments
    masked: ColumnMoments
    missing: Ints  # cells missing in both files
    suppressed: Ints
    imputed: Ints
    zeros: Ints  # observed cells that are 0 in the original
    zeros_kept: Bools
    zeros_alone: Bools  # only 0 becomes 0
    cells: tuple[CellTotals, ...]

    @classmethod
    def of(cls, records: Records) -> PairTotals:
        """Return the totals of some true pairs."""
        x, y = (np.ascontiguousarray(values.T) for values in records[:2])
        gone = np.isnan(x), np.isnan(y)
        zeros = [zero_relations(a, b) for a, b in zip(x, y, strict=True)]
        return cls(
            x.shape[1],
            ColumnMoments.of(x, ~gone[0]),
            ColumnMoments.of(y, ~gone[1]),
            (gone[0] & gone[1]).sum(1),
            (~gone[0] & gone[1]).sum(1),
            (gone[0] & ~gone[1]).sum(1),
            (x == 0).sum(1),
            np.array([kept.holds for kept, _, _ in zeros], np.bool_),
            np.array([converse.holds for _, converse, _ in zeros], np.bool_),
            tuple(CellTotals.of(a, b) for a, b in zip(records.ours.T, records.theirs.T, strict=True)),
        )

    @property
    def any_missing(self) -> bool:
        """True if a cell is missing in either file."""
        return bool((self.missing + self.suppressed + self.imputed).any())

    def plus(self, other: PairTotals) -> PairTotals:
        """Return the totals of two blocks together."""
        return PairTotals(
            self.n + other.n,
            self.original.merge(other.original),
            self.masked.merge(other.masked),
            self.missing + other.missing,
            self.suppressed + other.suppressed,
            self.imputed + other.imputed,
            self.zeros + other.zeros,
            self.zeros_kept & other.zeros_kept,
            self.zeros_alone & other.zeros_alone,
            tuple(a.plus(b) for a, b in zip(self.cells, other.cells, strict=True)),
        )


@dataclass(frozen=True)
class LinkageScan:
    """A task that returns the totals of a block's true pairs, and those of its records that are drawn."""

    variables: tuple[str, ...]
    cells: tuple[str, ...]
    share: float  # of the records that are drawn

    def __call__(self, block: Block) -> tuple[PairTotals, Drawn]:
        """Return totals and drawn records; which ones depends on their numbers in the file alone."""
        records = records_of(block, self.variables, self.cells)
        rows = np.arange(block.first, block.first + block.rows)
        numbers = scrambled(rows.astype(np.uint64))
        chosen = (numbers >> np.uint64(11)) * 2.0**-53 < self.share
        return PairTotals.of(records), Drawn(numbers[chosen], rows[chosen], records.take(chosen))


def share_for(size: int, n: int) -> float:
    """Return the share of n records to draw so that at least `size` of them are drawn."""
    return min((size + SLACK * np.sqrt(size) + SLACK**2) / n, 1.0)


def merge_scans(blocks: Iterable[tuple[PairTotals, Drawn]], size: int) -> tuple[PairTotals, Drawn]:
    """Return the totals of all blocks, and the first `size` of all drawn records in random order."""
    totals, drawn = zip(*blocks, strict=True)
    numbers, rows = (np.concatenate(one) for one in zip(*(one[:2] for one in drawn), strict=True))
    order = np.argsort(numbers)[:size]
    parts = zip(*(one.records for one in drawn), strict=True)
    records = Records(*(np.concatenate(part)[order] for part in parts))
    return reduce(PairTotals.plus, totals), Drawn(numbers[order], rows[order], records)
