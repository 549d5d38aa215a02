"""Linkage risk of a whole file for an intruder who searches within strata."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.registry import Metric
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.pair import Pair


def within_strata(metric: Metric, scores: Sequence[Score | None], pairs: Sequence[Pair]) -> Score | None:
    """Return the score of the whole file for an intruder who searches within each record's stratum.

    The column that forms strata is published as it is, so linkage within them is the risk wherever it is
    the larger one: the mean over the strata, by their records.
    """
    whole = scores[0]
    known = [
        (score, pair)
        for score, pair in zip(scores[1:], pairs[1:], strict=True)
        if score is not None and not math.isnan(score.value.overall)
    ]
    if whole is None or not knows_strata(metric) or not known:
        return whole
    sizes = np.array([pair.original.n for _, pair in known])

    def mean(values: Sequence[float]) -> float:
        return float(sizes @ values / sizes.sum())

    names = [name for name in known[0][0].parts if all(name in score.parts for score, _ in known)]
    parts = {name: mean([score.parts[name] for score, _ in known]) for name in names}
    value = mean([score.value.overall for score, _ in known])
    attack = max((score for score, _ in known), key=lambda score: score.value.overall).attack
    if attack is not None and attack.name in parts:  # each stratum may have its own worst attack
        attack = replace(attack, name=max(parts, key=parts.__getitem__))
    if not value > whole.value.overall:
        return whole
    levels = [score.random.overall for score, _ in known if score.random is not None]
    none = whole.value.variables
    return replace(
        whole,
        value=Values(value, none),
        random=Values(mean(levels), none) if levels else None,
        tie_low=None,
        tie_high=None,
        records=_joined(whole.records, known),
        parts=parts,
        attack=attack,
        notes=(*whole.notes, "linkage is for an intruder who knows the strata and searches within them"),
    )


def knows_strata(metric: Metric) -> bool:
    """Return True if the metric measures re-identification, which is easier within strata."""
    return metric.family == "risk" and metric.needs == "rows"


def _joined(records: Floats | None, known: Sequence[tuple[Score, Pair]]) -> Floats | None:
    """Return each record's value as measured within its stratum."""
    if records is None:
        return None
    found = records.copy()
    for score, pair in known:
        if pair.rows is not None and score.records is not None:
            found[pair.rows] = score.records
    return found
