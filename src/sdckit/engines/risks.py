"""Risks of files that are read in blocks: linkage on drawn records, and unique records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sdckit.core import checks
from sdckit.engines.linkage import QUERIES, EngineLinkage
from sdckit.engines.uniques import find_uniques
from sdckit.metrics.query_sample import sampling_of
from sdckit.risk.groups import score_of_uniques

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.registry import Metric
    from sdckit.engines.comparison import EngineComparison
    from sdckit.engines.linkage_assumed import Assumed
    from sdckit.engines.transport import Transport
    from sdckit.metrics.score import Score


@dataclass(frozen=True)
class RiskScores:
    """Scores of risk metrics on a whole file; `sample_queries` records are looked up."""

    transport: Transport
    assumed: Assumed
    whole: EngineComparison
    sample_queries: Any = None

    @property
    def queries(self) -> int:
        """How many records are looked up: those asked for, all for 0, 20,000 by default."""
        n = self.transport.rows
        if self.sample_queries is None:
            return min(QUERIES, n)
        asked = sampling_of(self.sample_queries)
        return n if asked is None else min(asked.first, n)

    def of(
        self, metrics: Sequence[Metric], groups: int, notes: dict[str, None], *, named: bool
    ) -> dict[str, list[Score | None]]:
        """Return the scores of each metric on the whole file, the first group; strata have none.

        Where a metric has no value, a note says so; NotApplicable is raised where the user named it.
        """
        if metrics and groups > 1:
            names = ", ".join(metric.name for metric in metrics)
            notes[f"of single strata these have no value where files are read in blocks: {names}"] = None
        scores: dict[str, Score] = {}
        try:
            scores = self._scores(metrics)
        except checks.NotApplicable as reason:
            if named:
                raise
            notes[f"left out: {reason}"] = None
        return {metric.name: [scores.get(metric.name), *[None] * (groups - 1)] for metric in metrics}

    def _scores(self, metrics: Sequence[Metric]) -> dict[str, Score]:
        """Return the score of each metric on the whole file."""
        scores = {one.name: self._uniques() for one in metrics if one.role == "untouched"}
        linked = [one for one in metrics if one.role is None]
        if linked:
            scores |= EngineLinkage(self.transport, self.assumed, self.whole, linked, self.queries).scores()
        return scores

    def _uniques(self) -> Score:
        """Return the score of unique records."""
        cells = self.assumed.cells
        return score_of_uniques(find_uniques(self.transport, cells), self.whole.n, self.whole.p, cells)
