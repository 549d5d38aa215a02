"""Compute metrics on a pair of files as one table, with a sentence that explains each number."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core.disclosure import disclosure_of
from sdckit.estimation.compare import comparison_of, declared_of, withheld_rows_of_losses
from sdckit.metrics.default_metrics import metrics_for_pair
from sdckit.metrics.dominated import dominated_rows
from sdckit.metrics.doubts import published_names, require_published, warn_of_doubts, warn_of_published
from sdckit.metrics.evaluation_result import Evaluation
from sdckit.metrics.evaluation_table import table_rows, tidy_table
from sdckit.metrics.evaluation_together import evaluate_together
from sdckit.metrics.knowledge import knowledge_of_pair
from sdckit.metrics.made_by import add_masking
from sdckit.metrics.measuring import score_groups
from sdckit.metrics.notes import (
    calibration_notes,
    missing_notes,
    rule_notes,
    small_strata_notes,
    uninformed_notes,
    unmasked_notes,
    unpaired_notes,
    warn_of_changed_columns,
)
from sdckit.metrics.pair import pair_by_row, pair_of
from sdckit.metrics.query_sample import LOOKED_UP, Sampling
from sdckit.metrics.scenario_risks import require_columns, scenario_table
from sdckit.metrics.stratified_risk import measures_linkage
from sdckit.progress import reported_to, track
from sdckit.risk.intruder import known_share_notes, looked_up_singly
from sdckit.rules.rules import Rules, named_columns, rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sdckit.core.disclosure import Disclosure
    from sdckit.metrics.evaluation_together import GivenRelease
    from sdckit.metrics.measuring import Measuring
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.progress import ProgressCallback


def evaluate_tables(
    original: Original,
    releases: Sequence[GivenRelease],
    how: Callable[[Disclosure], Measuring],
    *,
    rules: Any = None,
    together: bool = False,
    announce: bool = True,
    progress: ProgressCallback | None = None,
) -> Evaluation:
    """Return the evaluation of a masked table or, together, of several releases of the same records.

    `how` returns how a table with a disclosure is measured. `rules` are known of maskings without a
    disclosure of their own. With `announce`, warnings name columns that were published by oversight.
    """
    declared_of(original)  # raises an error for an estimate that the data do not allow
    disclosed = [
        disclosure_of(one.disclosure, one.method, by=original.roles.by, rules=rules) for one in releases
    ]
    measuring = how(disclosed[0])
    require_columns(measuring.scenarios, original)
    pairs = [
        pair_of(original, one.masked, rows=one.rows, paired=found.paired)
        for one, found in zip(releases, disclosed, strict=True)
    ]
    for pair, known_of in zip(pairs, disclosed, strict=True):
        require_published(pair.original.roles, published_names(pair))
        warn_of_doubts(pair, paired=known_of.paired)
        if announce:
            warn_of_published(pair)
    with reported_to(progress):
        disclosed = [
            add_masking(pair, known_of, one.method.function)
            for pair, known_of, one in zip(pairs, disclosed, releases, strict=True)
        ]
        if together:
            return evaluate_releases(pairs, disclosed, measuring)
        return evaluate_pair(pairs[0], disclosed[0], measuring)


def evaluate_pair(pair: Pair, disclosure: Disclosure, how: Measuring) -> Evaluation:
    """Return the evaluation of a pair of aligned files, also within each stratum and in each scenario."""
    scores = len(how.metrics) * (1 + len(pair.parts))
    others = sum(len(one.metrics) for one in how.scenarios)
    with track("measuring", scores + others) as report:
        report(0.0, scores)
        result = _evaluate_groups(pair, disclosure, how)
        report(scores, others)
        scenarios = scenario_table(
            how.scenarios,
            pair,
            lambda other, metric, limit: evaluate_pair(other, disclosure, how.of_one(metric, limit)),
        )
    return replace(result, scenarios=scenarios)


def informed_groups(
    pair: Pair, disclosure: Disclosure, how: Measuring
) -> tuple[list[tuple[str, Pair]], Measuring, list[str]]:
    """Tell a pair and its strata what is published; return them by name, how they are measured, and notes."""
    pair.disclose(disclosure)
    if not how.named:
        how = replace(how, metrics=metrics_for_pair(how.metrics, pair))
    groups = [("all", pair), *pair.parts]
    wide = _pair_with_rules(disclosure.rules, pair)
    for _, group in groups:
        group.rules = None if wide.rules is None else wide.rules.within(pair.columns)
    for name, group in groups[1:] if disclosure.by else groups[:1]:
        group.window = disclosure.width(name, group.original.values, group.columns)
    return groups, _sampled(how, pair), rule_notes(wide)


def _evaluate_groups(pair: Pair, disclosure: Disclosure, how: Measuring) -> Evaluation:
    """Return the evaluation of a pair of files whose rows are aligned, without scenarios."""
    groups, how, broken = informed_groups(pair, disclosure, how)
    rows: list[dict[str, Any]] = []
    meaning: dict[str, str] = {}
    notes = dict.fromkeys(broken)
    if not disclosure.paired:
        notes |= dict.fromkeys(unpaired_notes(pair, how.left_out))
    notes |= dict.fromkeys(uninformed_notes(disclosure, how.metrics, masks_again=pair.remask is not None))
    notes |= dict.fromkeys(unmasked_notes(disclosure, pair.columns))
    notes |= dict.fromkeys(calibration_notes(disclosure, how.metrics))
    records: dict[str, Any] = {}
    parts: dict[str, dict[str, float]] = {}
    scores = score_groups(groups, how, notes)
    for (place, (stratum, group)), metric in product(enumerate(groups), how.metrics):
        score_here = scores[metric.name][place]
        if score_here is None:
            continue
        rows += table_rows(metric, stratum, group, score_here)
        if group is pair:
            meaning[metric.name] = metric.explain(score_here)
            parts[metric.name] = score_here.parts
            notes |= dict.fromkeys(score_here.notes)
            if how.per_record:
                records[metric.name] = score_here.records
    notes |= dict.fromkeys(known_share_notes(pair, how.known_share))
    missing = str(how.options["missing"])
    notes |= dict.fromkeys(missing_notes(pair, how.metrics, missing) if disclosure.paired else ())
    if any(measures_linkage(metric) for metric in how.metrics):
        warn_of_changed_columns(pair)
    notes |= dict.fromkeys(small_strata_notes(group.original.n for _, group in groups[1:]))
    each_record = pl.DataFrame(records) if how.per_record else None
    dominated = dominated_rows(groups, how.metrics) if disclosure.paired else frozenset()
    compared = comparison_of(pair, how.metrics)
    dominated |= withheld_rows_of_losses(compared, how.metrics, [stratum for stratum, _ in groups])
    risky = any(metric.family == "risk" for metric in how.metrics)
    known = knowledge_of_pair(pair) if risky else None
    return Evaluation(
        tidy_table(rows),
        meaning,
        tuple(notes),
        parts,
        each_record,
        dominated,
        known,
        estimates=compared,
        kind=pair.original.kind,
        size=pair.original.n,
    )


def _sampled(how: Measuring, pair: Pair) -> Measuring:
    """Return how a pair is measured: of large files that are read by a law, some records are looked up."""
    singly = how.sampling is None and not how.every and looked_up_singly(pair)
    return replace(how, sampling=Sampling(LOOKED_UP)) if singly else how


def evaluate_releases(pairs: Sequence[Pair], disclosures: Sequence[Disclosure], how: Measuring) -> Evaluation:
    """Return the evaluation of several releases of the same records, which an intruder can align."""
    with track("measuring", len(pairs) + 1) as report:
        alone: list[Evaluation] = []
        for pair, disclosure in zip(pairs, disclosures, strict=True):
            report(len(alone))
            alone.append(evaluate_pair(pair, disclosure, replace(how, named=False)))
        report(len(pairs))
        return evaluate_together(pairs, alone)


def _pair_with_rules(given: Any, pair: Pair) -> Pair:
    """Return the pair with parsed edit rules, and with the further columns that the rules name."""
    table = pair.original.table
    if given is not None and table is not None and pair.table is not None:
        more = [name for name in named_columns(given, table) if name not in pair.columns]
        if isinstance(given, Rules):  # of a masking, which may have used columns that are not published
            more = [name for name in more if name in pair.table.names]
        if more:
            rows = None if pair.places is None else np.argsort(pair.places)
            pair = pair_by_row(pair.original.with_variables(more), pair.table.native, rows=rows)
    return replace(pair, rules=rules_of(given, pair.columns, pair.original.values))
