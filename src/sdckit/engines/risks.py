"""Risks of files that are read in blocks: both files are brought into memory and measured as tables are.

An intruder compares each record with all others, and masks the whole file again with draws of his own. So the
risks need all records at once, and are left out or refused where these do not fit; only unique records can
be counted in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core import checks
from sdckit.core.warning_texts import warn
from sdckit.engines.local import memory_left
from sdckit.engines.uniques import find_uniques
from sdckit.io.memory import memory_text
from sdckit.metrics.blocks.cell_sums import MAE
from sdckit.metrics.doubts import IDENTICAL, dropped_doubts, warn_of_doubts, warn_of_published
from sdckit.metrics.evaluation import informed_groups
from sdckit.metrics.measuring import score_groups
from sdckit.metrics.notes import warn_of_changed_columns
from sdckit.metrics.original import Original
from sdckit.metrics.pair import pair_of
from sdckit.metrics.stratified_risk import measures_linkage
from sdckit.risk.groups import score_of_uniques
from sdckit.risk.law import LARGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.disclosure import Disclosure
    from sdckit.core.registry import Metric
    from sdckit.engines.comparison import EngineComparison
    from sdckit.engines.opening import Opened
    from sdckit.metrics.measuring import Measuring
    from sdckit.metrics.pair import Pair
    from sdckit.metrics.score import Score

# Bytes at the peak of the default risks, measured on 2,000 to 200,000 records with 4 and 8 variables.
SHADOW_BYTES, VARIABLE_BYTES = 2_000, 500  # of a cell and its masked one: with 80 shadows, of large files 3
OTHER_BYTES = 80  # of a cell of any other column of either file
ROW_BYTES = 100
PROGRAM_BYTES = 500_000_000  # of compiled code, and of matrices of a few thousand records
UNCHECKED = (
    "not checked where files are read in blocks: whether the rows of both are in the same order, and whether "
    "another column of the masked file repeats an original one"
)

Scores = dict[str, list["Score | None"]]


@dataclass(frozen=True)
class RiskScores:
    """Scores of risk metrics, those of `how`, on files that an engine has opened."""

    found: Opened
    disclosure: Disclosure
    how: Measuring
    unmasked: Sequence[str]  # columns that are published unmasked and known

    def of(self, groups: Sequence[tuple[str, EngineComparison]], notes: dict[str, None]) -> Scores:
        """Return the scores of each metric on the whole file, the first group, and in its strata.

        Where a metric has no value, a note says so; NotApplicable is raised where the user named it.
        """
        counted = [one for one in self.how.metrics if one.role == "untouched"]
        others = [one for one in self.how.metrics if one not in counted]
        if others and self._fits(others, notes):
            return self._measured(gather(self.found), notes)
        self._warn_in_blocks(groups[0][1])
        if self.how.metrics:
            notes[UNCHECKED] = None
        if counted and len(groups) > 1:
            names = ", ".join(one.name for one in counted)
            notes[f"of single strata these have no value where files are read in blocks: {names}"] = None
        none: list[Score | None] = [None] * len(groups)
        return {one.name: none for one in others} | {one.name: self._uniques(groups) for one in counted}

    def _uniques(self, groups: Sequence[tuple[str, EngineComparison]]) -> list[Score | None]:
        """Return the score of unique records of the whole file; strata have none."""
        names, whole = tuple(self.unmasked), groups[0][1]
        assert self.found.transport is not None  # noqa: S101 - files are read in blocks
        found = score_of_uniques(find_uniques(self.found.transport, names), whole.n, whole.p, names)
        return [found, *[None] * (len(groups) - 1)]

    def _fits(self, metrics: Sequence[Metric], notes: dict[str, None]) -> bool:
        """Return True if the files fit into memory; a note, or NotApplicable, says that they do not."""
        try:
            require_room(self.found, metrics)
        except checks.NotApplicable as reason:
            if self.how.named:
                raise
            notes[f"left out: {reason}"] = None
            return False
        return True

    def _measured(self, pair: Pair, notes: dict[str, None]) -> Scores:
        """Return the scores of a pair in memory, by the very functions that measure tables."""
        warn_of_doubts(pair, paired=self.disclosure.paired)
        warn_of_published(pair)
        groups, how, broken = informed_groups(pair, self.disclosure, self.how)
        notes |= dict.fromkeys(broken)
        scores = score_groups(groups, how, notes)
        if any(map(measures_linkage, how.metrics)):
            warn_of_changed_columns(pair)
        return scores

    def _warn_in_blocks(self, whole: EngineComparison) -> None:
        """Warn of what is seen without having all records at once."""
        masked = self.found.source.masked
        for text in dropped_doubts(self.found.roles, () if masked is None else tuple(masked.schema)):
            warn(text)
        sums, seen = whole.cell_sums.sums, whole.counts.both.sum()
        if seen and not sums[:, MAE.place].any() and not whole.counts.suppressed.any():
            warn(IDENTICAL)


def gather(found: Opened) -> Pair:
    """Return the files of an engine as a pair of tables in memory, with the roles that were settled."""
    source = found.source
    assert source.masked is not None  # noqa: S101 - risks are those of a masked file
    tables = [files.read(0, files.rows, list(files.schema)) for files in (source.original, source.masked)]
    source.require_unchanged()
    original = Original.of(tables[0], columns=list(found.roles.variables), **found.options, warn=False)
    # Rows with a key have been aligned before, and their order in the masked file is gone.
    return pair_of(original, tables[1], rows=np.arange(source.rows) if found.roles.key else None)


def require_room(found: Opened, metrics: Sequence[Metric]) -> None:
    """Raise NotApplicable if both files, and what an intruder computes from them, do not fit into memory."""
    source, variables = found.source, len(found.roles.variables)
    others = len(source.original.schema) + len(source.masked.schema if source.masked else ()) - 2 * variables
    cell = SHADOW_BYTES if source.rows <= LARGE else VARIABLE_BYTES
    need = source.rows * (cell * variables + OTHER_BYTES * others + ROW_BYTES) + PROGRAM_BYTES
    left = memory_left(found.memory)
    if need <= left:
        return
    names, size = ", ".join(one.name for one in metrics), memory_text(need)
    more = f"a driver with {size}" if found.engine == "spark" else f"memory {memory_text(1.1 * need)}"
    raise checks.NotApplicable(
        f"measuring {names} of {source.rows:,} records with {variables} masked columns takes about {size} of "
        f"memory at once, and {memory_text(max(left, 0))} are left; give {more}, or name other metrics"
    )
