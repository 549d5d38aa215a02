"""Finish a masked block of rows: round, count what stayed as it was, repair by edit rules, write a part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.core.decimals import Step
from sdckit.core.table import can_change
from sdckit.engines.transport import Reads
from sdckit.engines.whole_columns import matrix_of, strata_in
from sdckit.masking.mask_matrix import rounded
from sdckit.rules.rules import Edits, RepairCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.engines.parquet_output import PartWriter
    from sdckit.engines.source import Source
    from sdckit.engines.transport import Block, BlockRef
    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.rules.rules import Rules, WholeFile


class Changes(NamedTuple):
    """Values of each column of some records, how many were changed, and the original's extremes.

    `filled` and `suppressed` are the numbers of cells that were missing before, or afterwards, alone.
    """

    seen: Ints
    changed: Ints
    filled: int
    suppressed: int
    low: Floats
    high: Floats

    @classmethod
    def of(cls, original: Floats, masked: Floats) -> Changes:
        """Return the changes from the original, rounded as the masked values are, to these."""
        seen, shown = ~np.isnan(original), ~np.isnan(masked)
        return cls(
            seen.sum(axis=0),
            (seen & (original != masked)).sum(axis=0),
            int((shown & ~seen).sum()),
            int((seen & ~shown).sum()),
            np.fmin.reduce(original, axis=0, initial=np.nan),
            np.fmax.reduce(original, axis=0, initial=np.nan),
        )

    def plus(self, other: Changes) -> Changes:
        """Return the changes of two parts of a file together."""
        return Changes(
            self.seen + other.seen,
            self.changed + other.changed,
            self.filled + other.filled,
            self.suppressed + other.suppressed,
            np.fmin(self.low, other.low),
            np.fmax(self.high, other.high),
        )

    @property
    def unchanged(self) -> Bools:
        """True for each column that could have been masked and keeps all its values."""
        return (self.changed == 0) & can_change(self.seen, self.low, self.high)


class FinishCounts(NamedTuple):
    """What was counted in finished blocks: changes by stratum, after the repair, and cells on a code."""

    by_stratum: Mapping[int, Changes]
    repaired: Changes
    repair: RepairCounts
    codes_hit: int

    def plus(self, other: FinishCounts) -> FinishCounts:
        """Return the counts of two parts of a file together."""
        strata = dict(self.by_stratum)
        for number, changes in other.by_stratum.items():
            strata[number] = strata[number].plus(changes) if number in strata else changes
        return FinishCounts(
            strata,
            self.repaired.plus(other.repaired),
            self.repair.plus(other.repair),
            self.codes_hit + other.codes_hit,
        )


@dataclass(frozen=True)
class Finish:
    """Task: finish and write masked blocks of rows; may run anywhere, more than once and in any order."""

    source: Source
    method: str
    names: tuple[str, ...]
    decimals: tuple[int, ...] | None
    writer: PartWriter
    rules: Rules | None = None
    whole: WholeFile | None = None  # of the columns that rules name
    kept: tuple[str, ...] = ()

    @property
    def reads(self) -> Reads:
        """Columns that are read to finish a block: those to mask, and those that rules name."""
        named = () if self.rules is None else self.rules.columns
        return Reads(tuple(dict.fromkeys([*self.names, *named])))

    def part(self, ref: BlockRef, masked: Floats) -> FinishCounts:
        """Read the original of a stretch of rows and finish its masked values; return what was counted."""
        return self(self.source.read(ref, self.reads), masked)

    def __call__(self, block: Block, masked: Floats) -> FinishCounts:
        """Finish and write the masked values of a block of the original; return what was counted."""
        checks.require_representable(masked, self.names, self.method)
        original = matrix_of(block, self.names)
        before, after = self._rounded(original), self._rounded(masked)
        changes = {number: Changes.of(before[rows], after[rows]) for number, rows in strata_in(block)}
        repaired = self._repaired(block, after)
        self.writer.write(block.first, repaired + 0.0, original)
        return FinishCounts(
            changes,
            Changes.of(before, repaired),
            RepairCounts.of(after, repaired),
            int(np.isin(repaired, self.source.na).sum()) if self.source.na else 0,
        )

    def _rounded(self, values: Floats) -> Floats:
        """Return values rounded to the published decimals, if there are any."""
        return values if self.decimals is None else rounded(values, [Step(d) for d in self.decimals])

    def _repaired(self, block: Block, masked: Floats) -> Floats:
        """Return the masked columns changed so that the edit rules hold."""
        if self.rules is None:
            return masked
        values = matrix_of(block, self.rules.columns)
        edits = Edits(self.rules, self.names, values, self.kept, self.whole)
        return edits.repaired(masked, self.decimals)


def total(found: Sequence[FinishCounts]) -> FinishCounts:
    """Return the counts of all finished blocks together."""
    result = found[0]
    for one in found[1:]:
        result = result.plus(one)
    return result
