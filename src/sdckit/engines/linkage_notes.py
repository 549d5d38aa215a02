"""Notes on what linkage of files read in blocks takes into account, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sdckit.engines.linkage_facts import DOUBTFUL

if TYPE_CHECKING:
    from sdckit.engines.linkage_assumed import Assumed
    from sdckit.engines.linkage_facts import Settled
    from sdckit.engines.linkage_scan import PairTotals
    from sdckit.engines.linkage_search import Attack


@dataclass(frozen=True)
class LinkageNotes:
    """Notes on a measurement of linkage; `sorted_by` are the variables along which rows are sorted."""

    assumed: Assumed
    settled: Settled
    totals: PairTotals
    sorted_by: tuple[str, ...] = ()

    def of(self, parts: Mapping[str, float], worst: Attack) -> Iterator[str]:
        """Yield the notes on a score with these parts and this worst attack."""
        if "guess" in parts:
            yield (
                f"linkage of files read in blocks is the largest of the attacks {', '.join(parts)}; not "
                "tried: the order of rows and one-to-one matching"
            )
        left_out = [*self._left_out()]
        if left_out:
            yield f"the risk may be higher, since these were not used: {'; '.join(left_out)}"
        if DOUBTFUL in self.settled.runs:
            changed = ", ".join(name for name, case in self.settled.cases.items() if case.startswith("d"))
            counted = "with" if worst.run == DOUBTFUL else "without"
            yield (
                f"unmasked columns that differ from the original in some records: {changed}; linkage is the "
                f"larger value, {counted} them"
            )
        if self.settled.failed:
            failed = ", ".join(self.settled.failed)
            yield f"stated by the method but broken by some record, so not used: {failed}"

    def _left_out(self) -> Iterator[str]:
        """Yield what an intruder may know that was not used."""
        if not self.assumed.disclosure.deterministic:
            yield "the law of the masking, by which more is found: evaluate a part of the file in memory"
        unclear = [name for name, case in self.settled.cases.items() if case.endswith("?")]
        if unclear:
            yield f"whether {', '.join(unclear)} is a recoding of the original"
        changed = [name for name, case in self.settled.cases.items() if case == "e"]
        if changed:
            yield f"{', '.join(changed)}, which differ from the original in most records"
        if self.sorted_by:
            yield f"the order of the rows, which are sorted by {', '.join(self.sorted_by)}: shuffle them"
        if self.assumed.disclosure.by or self.assumed.stratified:
            yield "strata, within which an intruder can search, and spreads, bases and windows of ranks there"
        if self.assumed.disclosure.rules is not None:
            yield "edit rules"
        if self.assumed.coded and self.totals.any_missing:
            yield "which code stands in a missing cell"
