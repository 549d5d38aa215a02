"""Facts about records of files read in blocks: block marks and intervals, as `kernels.candidates` takes them.

What holds for every true pair is settled by scans over the whole file (`settle_facts`); the facts about any
records then follow from their own cells (`Settled.sides`). A true pair stands in the same row of both files,
so that what is published of an original is at hand where its block is read: recoded columns and a method that
can be run again need no table of the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.kernels.candidates import Side
from sdckit.risk.distances import row_marks
from sdckit.risk.facts import Relation, place_relation, relation, zero_classes, zero_relations

if TYPE_CHECKING:
    from sdckit.core.disclosure import Disclosure
    from sdckit.engines.linkage_scan import PairTotals, Records
    from sdckit.engines.linkage_stated import Stated
    from sdckit.kernels.jit import Bools, Floats, Ints, UInt64s

CERTAIN = "certain"  # the run whose facts hold for every true pair
EXACT = np.uint64(11)  # bits that are cut off a mark so that a float holds it

DOUBTFUL = "doubtful"  # facts with columns that agree in most but not all records


class MarkedSide(NamedTuple):
    """Facts about the records of a file: the mark of each one's block, and ends of intervals."""

    marks: UInt64s
    low: Floats
    high: Floats

    def side(self, known: UInt64s) -> tuple[Side, Bools]:
        """Return the facts about records whose mark is one of `known`, ascending, and which these are."""
        place = np.minimum(np.searchsorted(known, self.marks), max(known.size - 1, 0))
        kept = known[place] == self.marks if known.size else np.zeros(self.marks.size, np.bool_)
        ends = (np.ascontiguousarray(values[kept]) for values in self[1:])
        return Side(place[kept], *ends), kept


@dataclass(frozen=True)
class Settled:
    """Which facts hold for every true pair; numbers are those of variables, or of unmasked columns.

    `equal` columns are published as they are or recoded, `optional` ones are equal or missing, and
    `doubtful` ones are equal in most records. `places` have their missing cells in the same places of both
    files. `stated` are bounds on how far values moved. `again` is True where the intruder can run the method
    again.
    """

    cases: Mapping[str, str] = field(default_factory=dict)
    equal: tuple[int, ...] = ()
    optional: tuple[int, ...] = ()
    doubtful: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    stays_missing: tuple[int, ...] = ()
    stays_observed: tuple[int, ...] = ()
    zero_classes: tuple[int, ...] = ()
    zeros_same: tuple[int, ...] = ()
    zeros_kept: tuple[int, ...] = ()
    zeros_alone: tuple[int, ...] = ()
    stated: tuple[Stated, ...] = ()
    again: bool = False
    failed: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs of each attack: inside certain facts, and with doubtful columns added."""
        return (CERTAIN, DOUBTFUL) if self.doubtful else (CERTAIN,)

    def sides(self, records: Records, run: str) -> tuple[MarkedSide, MarkedSide]:
        """Return the facts about originals and published records, given as true pairs."""
        shared = [*self._shared_marks(records)]
        marks = []
        for cells, values in ((records.ours, records.x), (records.theirs, records.y)):
            own = [cells[:, j] for j in self.doubtful] if run == DOUBTFUL else []
            marks.append(row_marks(np.zeros(len(values), np.int64), *shared, *own))
        ends = [*zip(*self._relations(records), strict=True)] or [()] * 4
        low, high, other_low, other_high = (
            np.ascontiguousarray(np.array(end).reshape(-1, len(records.x)).T) for end in ends
        )
        return MarkedSide(marks[0], low, high), MarkedSide(marks[1], other_low, other_high)

    def _shared_marks(self, records: Records) -> Iterator[UInt64s | Ints | Floats]:
        """Yield what is equal for both records of a true pair, from the published one."""
        y = records.y
        yield from (records.theirs[:, j] for j in self.equal)
        yield from (np.isnan(y[:, j]).astype(np.int64) for j in self.places)
        yield from (zero_classes(y[:, j]) for j in self.zero_classes)
        if self.again:
            yield y

    def _relations(self, records: Records) -> Iterator[Relation]:
        """Yield the intervals of true pairs."""
        x, y = records.x, records.y
        for j in self.optional:
            ours, theirs = ((one[:, j] >> EXACT).astype(np.float64) for one in records[2:])
            yield relation(ours, np.where(records.theirs[:, j] == 0, np.nan, theirs))
        for stays, variables in (("missing", self.stays_missing), ("observed", self.stays_observed)):
            for j in variables:
                yield place_relation(
                    np.isnan(x[:, j]).astype(np.float64), np.isnan(y[:, j]).astype(np.float64), stays=stays
                )
        for number, variables in enumerate((self.zeros_kept, self.zeros_alone, self.zeros_same)):
            yield from (zero_relations(x[:, j], y[:, j])[number] for j in variables)
        yield from (one.relation(records) for one in self.stated)


def settle_facts(
    totals: PairTotals,
    variables: tuple[str, ...],
    cells: tuple[str, ...],
    disclosure: Disclosure,
    *,
    again: bool,
) -> Settled:
    """Return the facts that hold for every true pair; what the method states is settled later."""
    cases = {name: one.case(totals.n) for name, one in zip(cells, totals.cells, strict=True)}
    equal, optional, doubtful = (
        tuple(j for j, name in enumerate(cells) if cases[name][0] in letters) for letters in ("ab", "c", "d")
    )
    missing = totals.missing + totals.suppressed + totals.imputed > 0
    same = (totals.suppressed == 0) & (totals.imputed == 0)
    zeros = totals.zeros > 0 if disclosure.keeps_zeros else np.zeros(len(variables), np.bool_)
    kept, alone = totals.zeros_kept, totals.zeros_alone
    places = missing & same
    stays_missing, stays_observed = (~same & (one == 0) for one in (totals.imputed, totals.suppressed))
    joint = zeros & kept & alone
    return Settled(
        cases,
        equal,
        optional,
        doubtful,
        places=_numbers(places),
        stays_missing=_numbers(stays_missing),
        stays_observed=_numbers(stays_observed),
        zero_classes=_numbers(joint & same),
        zeros_same=_numbers(joint & ~same),
        zeros_kept=_numbers(zeros & kept & ~alone),
        zeros_alone=_numbers(zeros & alone & ~kept),
        again=again,
        failed=tuple(f"zeros of {variables[j]} kept" for j in _numbers(zeros & ~kept)),
    )


def _numbers(chosen: Bools) -> tuple[int, ...]:
    """Return the numbers of the chosen variables."""
    return tuple(np.flatnonzero(chosen).tolist())
