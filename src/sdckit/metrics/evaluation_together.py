"""Evaluate several releases of one file together: the linkage of an intruder who can align them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from sdckit.core import checks, registry
from sdckit.core.disclosure import Disclosure, Method, checked_disclosure
from sdckit.metrics.evaluation_table import WHOLE, table_rows, tidy_table
from sdckit.risk.attacks import attacks_together, explain_linkage, score_attacks

if TYPE_CHECKING:
    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.pair import Pair
    from sdckit.risk.attacks import JointAttack

LINKAGE = "linkage"
FEWEST = 2  # releases that can be evaluated together
NOT_COMPUTED = (
    "only linkage is measured for several releases together; evaluate each release by itself for the rest"
)


class GivenRelease(NamedTuple):
    """A masked table to evaluate, what is known of its masking, and its rows in the original.

    The masking has a disclosure, which is what is published about it, or it was done by a method.
    """

    masked: Any
    disclosure: Disclosure | None
    method: Method
    rows: Any


def given_releases(masked: Any, made_by: Any, rows: Any, *, together: bool) -> list[GivenRelease]:
    """Return the masked tables to evaluate: one or, together, several with a masking for all or each."""
    if not together:
        return [_given_release(masked, made_by, rows)]
    if not isinstance(masked, (list, tuple)) or len(masked) < FEWEST:
        raise ValueError("together needs at least two releases; give them in a list, or leave together out")
    maskings, orders = (
        given if isinstance(given, (list, tuple)) else [given] * len(masked) for given in (made_by, rows)
    )
    for what, found in (("made_by", maskings), ("rows", orders)):
        if len(found) != len(masked):
            raise ValueError(
                f"there are {len(masked)} releases and {what} is given for {len(found)}; "
                "give one for all or one for each"
            )
    return [_given_release(*one) for one in zip(masked, maskings, orders, strict=True)]


def _given_release(masked: Any, made_by: Any, rows: Any) -> GivenRelease:
    """Return a masked table with what is known of its masking and the rows, where these are known.

    A release in place of the table brings them along.
    """
    if callable(made_by):
        made_by = Method(made_by)
    method, told = (made_by, None) if isinstance(made_by, Method) else (Method(), made_by)
    if told is not None and not isinstance(getattr(told, "disclosure", told), Disclosure):
        remedy = "give sdc.Method(...), a function of table and random generator, or a release"
        raise TypeError(f"made_by is a {type(told).__name__}; {remedy}")
    if isinstance(getattr(masked, "disclosure", None), Disclosure):
        told = masked if told is None else told
        rows = masked.rows if rows is None else rows
        masked = masked.data
    if told is not None and method.function is not None:
        raise ValueError("made_by says how the file was masked and disclosure is given too; drop one of them")
    order = getattr(told, "rows", None) if rows is None else rows
    return GivenRelease(masked, checked_disclosure(told), method, order)


def metrics_together(metrics: str | Iterable[str] | None) -> list[str]:
    """Return the metrics of several releases together: linkage; raise ValueError if others are named."""
    named = [] if metrics is None else registry.metrics_named(metrics)
    others = [metric.name for metric in named if metric.name != LINKAGE]
    if others:
        raise ValueError(
            f"{', '.join(others)}: several releases together have a linkage only; evaluate each by itself"
        )
    return [LINKAGE]


def evaluate_together(pairs: Sequence[Pair], alone: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation of several releases together, from their pairs and the evaluation of each alone.

    The pairs are those that were evaluated: they know what is published about each masking.
    """
    singles = [_value_of(one) for one in alone]
    if all(map(math.isnan, singles)):
        reasons = [note for one in alone for note in one.notes if note.startswith("left out: ")]
        raise checks.NotApplicable(reasons[0].removeprefix("left out: "))
    attacks = list(attacks_together(pairs))
    means = [float(attack.result.credits.expected.mean()) for attack in attacks]
    worst = attacks[int(np.argmax(means))]
    parts = _parts(attacks, means) | {f"release {i} alone": v for i, v in enumerate(singles, 1)}
    largest = int(np.nanargmax(singles))
    if singles[largest] > max(means):
        found = _of_single(alone[largest], largest + 1)
    else:
        found = _of_attack(worst, alone[largest])
    sentence = (
        f"for an intruder who can align the {len(pairs)} releases, record by record, by "
        f"{found.meaning[LINKAGE]}"
    )
    notes = (*_joint_notes(alone), NOT_COMPUTED)
    return replace(found, meaning={LINKAGE: sentence}, notes=notes, parts={LINKAGE: parts})


def _value_of(result: Evaluation) -> float:
    """Return the linkage of a release alone; NaN where it has none."""
    return result[LINKAGE] if LINKAGE in result.summary["metric"] else math.nan


def _parts(attacks: Sequence[JointAttack], means: Sequence[float]) -> dict[str, float]:
    """Return the largest mean of each attack over its directions, by its label."""
    parts: dict[str, float] = {}
    for attack, mean in zip(attacks, means, strict=True):
        parts[attack.label] = max(mean, parts.get(attack.label, mean))
    return parts


def _of_single(result: Evaluation, number: int) -> Evaluation:
    """Return the linkage of one release alone, which no attack on several exceeds."""
    meaning = {LINKAGE: f"release {number} alone: {result.meaning[LINKAGE]}"}
    return replace(result, table=result.table.filter(WHOLE), meaning=meaning)


def _of_attack(attack: JointAttack, like: Evaluation) -> Evaluation:
    """Return the linkage of an attack on the releases, with records if the evaluation `like` has them."""
    pair, metric = attack.result.pair, registry.metrics_named([LINKAGE])[0]
    queries = pair.queries(np.ones(pair.original.n, np.bool_))
    each = like.records is not None
    score = score_attacks([attack.result], queries, parts={}, detail=True, per_record=each)
    return replace(
        like,
        table=tidy_table(table_rows(metric, "all", pair, score)),
        meaning={LINKAGE: f"{attack.label}: {explain_linkage(score)}"},
        records=pl.DataFrame({LINKAGE: score.records}) if each else None,
    )


def _joint_notes(alone: Sequence[Evaluation]) -> list[str]:
    """Return the notes on each release, with its number unless all have the same note."""
    found = []
    for number, result in enumerate(alone, 1):
        for note in result.notes:
            same = all(note in other.notes for other in alone)
            found.append(note if same else f"release {number}: {note}")
    return list(dict.fromkeys(found))
