"""How the metrics of an evaluation are measured: with which options, on all records or on samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sdckit.core import checks, registry
from sdckit.metrics.stratified_risk import measures_linkage, score_within_strata
from sdckit.progress import track

if TYPE_CHECKING:
    from sdckit.core.disclosure import Disclosure
    from sdckit.core.registry import Metric
    from sdckit.core.scenarios import Scenario
    from sdckit.metrics.pair import Pair
    from sdckit.metrics.query_sample import Sampling
    from sdckit.metrics.score import Score


@dataclass(frozen=True)
class Measuring:
    """Metrics to compute in an evaluation, and the options that they share.

    `left_out` names metrics that are not computed because rows are not paired. `named` is True if the user
    named the metrics, so that one without a value is an error.
    """

    metrics: Sequence[Metric]
    left_out: Sequence[str]
    named: bool
    options: Mapping[str, Any]
    per_record: bool
    scenarios: Sequence[Scenario] = ()
    sampling: Sampling | None = None  # of the records on which linkage is estimated; None: as usual
    every: bool = False  # all records are looked up, however many there are
    known_share: float | None = None  # of the persons, for an intruder who holds these only; None: not asked

    @classmethod
    def of(
        cls,
        metrics: str | Iterable[str] | None,
        disclosure: Disclosure,
        *,
        ties: str = "average",
        missing: str = "pairwise",
        per_record: bool = False,
        rng: Any = None,
        scenarios: Sequence[Scenario] = (),
        sampling: Sampling | None = None,
        every: bool = False,
        known_share: float | None = None,
    ) -> Measuring:
        """Return the metrics and options of an evaluation, checked as far as possible without data."""
        chosen, left_out = registry.metrics_for_rows(metrics, paired=disclosure.paired)
        checks.one_of("rule for missing cells", missing, checks.MISSING)
        options = {"ties": ties, "missing": missing, "rng": rng}
        named = metrics is not None
        return cls(chosen, left_out, named, options, per_record, scenarios, sampling, every, known_share)

    def of_one(self, metric: Metric, limit: float | None) -> Measuring:
        """Return how one metric is measured by itself, under a limit if there is one."""
        limits = {} if limit is None else {metric.name: limit}
        sampling = self.sampling and replace(self.sampling, limits=limits)
        alone: dict[str, Any] = {"left_out": (), "named": True, "per_record": False, "scenarios": ()}
        alone["known_share"] = None
        return replace(self, metrics=[metric], sampling=sampling, **alone)

    def scores(self, metric: Metric, pairs: Sequence[Pair], notes: dict[str, None]) -> list[Score | None]:
        """Return a metric's scores on the whole file and each stratum, all at once or on growing samples."""
        if self.sampling is None:
            return self._scores(metric, pairs, notes)
        return self.sampling.scores(metric.name, pairs, lambda: self._scores(metric, pairs, notes))

    def _scores(self, metric: Metric, pairs: Sequence[Pair], notes: dict[str, None]) -> list[Score | None]:
        """Return a metric's scores on the whole file and each stratum; None, and a note, without a value."""
        scores: list[Score | None] = []
        for pair in pairs:
            whole = pair is pairs[0]
            score = None
            each_record = self.per_record and (whole or measures_linkage(metric))
            try:
                score = metric.score_with(pair, self.options, detail=True, per_record=each_record)
            except checks.NotApplicable as reason:
                if self.named and whole:
                    raise
                notes[f"left out: {reason}" if whole else f"{metric.name} has no value in some strata"] = None
            scores.append(score)
        return [score_within_strata(metric, scores, pairs), *scores[1:]]


def score_groups(
    groups: Sequence[tuple[str, Any]], how: Measuring, notes: dict[str, None]
) -> dict[str, list[Score | None]]:
    """Return each metric's scores on the whole file and each stratum; None, and a note, without a value."""
    scores = {}
    pairs = [pair for _, pair in groups]
    with track("measuring", len(how.metrics)) as report:
        for place, metric in enumerate(how.metrics):
            report(place)
            scores[metric.name] = how.scores(metric, pairs, notes)
    return scores
