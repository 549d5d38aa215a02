"""How the metrics of an evaluation are measured: with which options, on the whole file and each stratum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from sdckit.core import checks, registry
from sdckit.metrics.stratified_risk import measures_linkage, score_within_strata
from sdckit.progress import track

if TYPE_CHECKING:
    from sdckit.core.disclosure import Disclosure
    from sdckit.core.registry import Metric
    from sdckit.core.scenarios import Scenario
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
    ) -> Measuring:
        """Return the metrics and options of an evaluation, checked as far as possible without data."""
        chosen, left_out = registry.metrics_for_rows(metrics, paired=disclosure.paired)
        checks.one_of("rule for missing cells", missing, checks.MISSING)
        options = {"ties": ties, "missing": missing, "rng": rng}
        return cls(chosen, left_out, metrics is not None, options, per_record, scenarios)

    def of_one(self, metric: Metric) -> Measuring:
        """Return how one metric is measured by itself."""
        return replace(self, metrics=[metric], left_out=(), named=True, per_record=False, scenarios=())


def score_groups(
    groups: Sequence[tuple[str, Any]], how: Measuring, notes: dict[str, None]
) -> dict[str, list[Score | None]]:
    """Return each metric's scores on the whole file and each stratum; None, and a note, without a value."""
    metrics = how.metrics
    scores: dict[str, list[Score | None]] = {metric.name: [] for metric in metrics}
    with track("measuring", len(groups) * len(metrics)) as report:
        for place, ((_, group), metric) in enumerate(product(groups, metrics)):
            report(place)
            whole = group is groups[0][1]
            score = None
            each_record = how.per_record and (whole or measures_linkage(metric))
            try:
                score = metric.score_with(group, how.options, detail=True, per_record=each_record)
            except checks.NotApplicable as reason:
                if how.named and whole:
                    raise
                notes[f"left out: {reason}" if whole else f"{metric.name} has no value in some strata"] = None
            scores[metric.name].append(score)
    for metric in metrics:
        scores[metric.name][0] = score_within_strata(
            metric, scores[metric.name], [pair for _, pair in groups]
        )
    return scores
