"""Linkage risk of a whole file for an intruder who searches within each record's stratum."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.query_sample import larger_estimate, mean_estimate
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.registry import Metric
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.pair import Pair


def score_within_strata(
    metric: Metric, scores: Sequence[Score | None], pairs: Sequence[Pair]
) -> Score | None:
    """Return the whole file's score, or the mean of the strata's scores where that linkage is larger.

    The column that forms strata is published unmasked, so that an intruder can search within strata.
    `scores` and `pairs` have the whole file first. The mean is weighted by numbers of records. Metrics that
    do not measure linkage keep the whole file's score.
    """
    whole = scores[0]
    known = [
        (score, pair)
        for score, pair in zip(scores[1:], pairs[1:], strict=True)
        if score is not None and not math.isnan(score.value.overall)
    ]
    if whole is None or not measures_linkage(metric) or not known or not _knows_strata(pairs[0]):
        return whole
    sizes = np.array([pair.original.n for _, pair in known])

    def mean(values: Sequence[float]) -> float:
        """Return the mean of the strata's values, weighted by their numbers of records."""
        return float(sizes @ values / sizes.sum())

    names = [name for name in known[0][0].parts if all(name in score.parts for score, _ in known)]
    parts = {name: mean([score.parts[name] for score, _ in known]) for name in names}
    values = [score.value.overall for score, _ in known]
    value = mean(values)
    within = mean_estimate(values, [score.estimate for score, _ in known], sizes)
    estimate = larger_estimate((whole.value.overall, value), (whole.estimate, within))
    attack = max((score for score, _ in known), key=lambda score: score.value.overall).attack
    if attack is not None and attack.name in parts:  # each stratum may have its own worst attack
        attack = replace(attack, name=max(parts, key=parts.__getitem__))
    if not value > whole.value.overall:
        return replace(whole, estimate=estimate)
    levels = [score.random.overall for score, _ in known if score.random is not None]
    none = whole.value.variables
    return replace(
        whole,
        value=Values(value, none),
        random=Values(mean(levels), none) if levels else None,
        tie_low=None,
        tie_high=None,
        records=_records_within_strata(whole.records, known),
        parts=parts,
        attack=attack,
        estimate=estimate,
        notes=(*whole.notes, "linkage is for an intruder who knows the strata and searches within them"),
    )


def _knows_strata(pair: Pair) -> bool:
    """Return True if the intruder knows the columns whose values form the strata."""
    return set(pair.original.roles.by) <= pair.known_names


def measures_linkage(metric: Metric) -> bool:
    """Return True if the metric is a risk of linking whole records, which is easier within strata."""
    return metric.family == "risk" and metric.needs == "rows" and metric.role is None


def _records_within_strata(records: Floats | None, known: Sequence[tuple[Score, Pair]]) -> Floats | None:
    """Return each record's risk as measured in its stratum, the whole file's where there is none."""
    if records is None:
        return None
    found = records.copy()
    for score, pair in known:
        if pair.rows is not None and score.records is not None:
            found[pair.rows] = score.records
    return found
