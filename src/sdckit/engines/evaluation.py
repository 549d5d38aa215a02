"""Evaluate files that may not fit into memory, and Spark frames, with the metrics of `sdckit.metrics`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from sdckit.core import checks, registry
from sdckit.core.disclosure import Method, disclosure_of
from sdckit.engines.compare import Comparing, Questions
from sdckit.engines.opening import opened
from sdckit.engines.risks import RiskScores
from sdckit.kernels.tie_rules import TIES
from sdckit.metrics.default_metrics import metrics_for_columns
from sdckit.metrics.dominated import dominated_rows
from sdckit.metrics.doubts import require_published
from sdckit.metrics.evaluation_result import Evaluation
from sdckit.metrics.evaluation_table import table_rows, tidy_table
from sdckit.metrics.knowledge import knowledge_of_columns
from sdckit.metrics.measuring import Measuring, score_groups
from sdckit.metrics.notes import (
    calibration_notes,
    missing_notes,
    small_strata_notes,
    uninformed_notes,
    unmasked_notes,
)
from sdckit.metrics.query_sample import sampling_of
from sdckit.progress import reported_to, track
from sdckit.risk.facts import untouched_names

if TYPE_CHECKING:
    from sdckit.core.disclosure import Disclosure
    from sdckit.engines.comparison import EngineComparison
    from sdckit.engines.opening import Opened, Settings
    from sdckit.metrics.score import Score
    from sdckit.progress import ProgressCallback

ALIGNING = 0.3  # share of the progress at which files with a key are aligned
# Options of `evaluate` that need the whole file at once, and what they are when nobody asks for them.
WHOLE_FILE: dict[str, Any] = {
    "rows": None,
    "per_record": False,
    "scenarios": None,
    "together": False,
    "unit": None,
    "rules": None,
    "estimates": None,
    "known_share": None,
}


def evaluate_files(
    settings: Settings,
    original: Any,
    masked: Any,
    options: Mapping[str, Any],
    progress: ProgressCallback | None = None,
) -> Evaluation:
    """Return the evaluation of a masked file on the engine local or spark.

    `options` are roles of columns, how to measure, and what is known of the masking: its `disclosure` or its
    `method`.
    """
    refuse_options(str(settings.engine), options)
    check_measuring(str(settings.engine), options.get("metrics"), options.get("ties", "average"))
    aligning = 0.0 if options.get("key") is None else ALIGNING
    with reported_to(progress), track("reading", 1.0) as report:
        report(0.0, aligning)
        with opened(settings, original, masked, options) as found:
            report(aligning, 1.0 - aligning, "reading")
            return _evaluate_blocks(found, options)


def _evaluate_blocks(found: Opened, options: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation of files that are read in blocks; risks are measured in memory."""
    method = options.get("method") or Method()
    disclosure = disclosure_of(options.get("disclosure"), method, by=found.roles.by)
    published = _published(found)
    how = _measuring(found, options, disclosure, published)
    refused = [metric.name for metric in how.metrics if not metric.in_blocks]
    how = replace(how, metrics=[metric for metric in how.metrics if metric.in_blocks])
    losses, risks = ([one for one in how.metrics if one.family == family] for family in ("loss", "risk"))
    questions = Questions.of(losses, str(how.options["ties"]))
    variables = found.roles.variables
    comparing = Comparing(found.transport, variables, found.source.weights is not None, questions)
    groups = _named_groups(comparing.run(), found.source.strata_names)
    notes = dict.fromkeys(unmasked_notes(disclosure, variables))
    if refused:
        notes[f"left out: {_not_offered(found.engine, refused)}"] = None
    scores = score_groups(groups, replace(how, metrics=losses, sampling=None), notes)
    notes |= dict.fromkeys(uninformed_notes(disclosure, risks))
    notes |= dict.fromkeys(calibration_notes(disclosure, risks))
    unmasked = untouched_names(found.rows, published, disclosure.columns)
    scores |= RiskScores(found, disclosure, replace(how, metrics=risks), unmasked).of(groups, notes)
    measured = _evaluation(groups, how, scores, notes)
    if not risks:
        return measured
    names = dict.fromkeys([*published, *variables])
    known = knowledge_of_columns(found.roles, names, disclosure.columns or variables)
    return replace(measured, knowledge=known)


def _published(found: Opened) -> tuple[str, ...]:
    """Return the names of the published columns; raise ValueError if a known one is not among them."""
    masked = found.source.masked
    published = () if masked is None else tuple(masked.schema)
    require_published(found.roles, published)
    return published


def _measuring(
    found: Opened, options: Mapping[str, Any], disclosure: Disclosure, published: Sequence[str]
) -> Measuring:
    """Return the metrics that the files have columns for, and how they are measured, as in memory."""
    size = options.get("sample_queries")
    sampling = sampling_of(size)
    how = Measuring.of(
        options.get("metrics"),
        disclosure,
        ties=options.get("ties", "average"),
        missing=options.get("missing", "pairwise"),
        sampling=sampling,
        every=size is not None and sampling is None,
    )
    if how.named:
        return how
    return replace(how, metrics=metrics_for_columns(how.metrics, found.rows, published, disclosure.columns))


def _named_groups(
    groups: Mapping[int | None, EngineComparison], names: Sequence[str]
) -> list[tuple[str, EngineComparison]]:
    """Return the whole file, named "all", and each stratum with its name."""
    strata = [(name, groups[number]) for number, name in enumerate(names) if number in groups]
    return [("all", groups[None]), *strata]


def _evaluation(
    groups: Sequence[tuple[str, EngineComparison]],
    how: Measuring,
    scores: Mapping[str, Sequence[Score | None]],
    notes: dict[str, None],
) -> Evaluation:
    """Return the metrics of the whole file and of each stratum, with sentences and notes."""
    rows: list[dict[str, Any]] = []
    whole = groups[0][1]
    meaning: dict[str, str] = {}
    parts: dict[str, dict[str, float]] = {}
    for (place, (stratum, group)), metric in product(enumerate(groups), how.metrics):
        score = scores[metric.name][place]
        if score is None:
            continue
        rows += table_rows(metric, stratum, group, score)
        if group is whole:
            meaning[metric.name] = metric.explain(score)
            parts[metric.name] = score.parts
            notes |= dict.fromkeys(score.notes)
    notes |= dict.fromkeys(missing_notes(whole, how.metrics, str(how.options["missing"])))
    notes |= dict.fromkeys(small_strata_notes(group.n for _, group in groups[1:]))
    dominated = dominated_rows(groups, how.metrics)
    return Evaluation(tidy_table(rows), meaning, tuple(notes), parts, dominated=dominated, size=whole.n)


def check_measuring(engine: str, metrics: str | Iterable[str] | None, ties: str) -> None:
    """Raise NotApplicable for a metric that was asked for, or a rule for ties, which an engine has not."""
    chosen = registry.metrics_named(metrics)
    refused = [metric.name for metric in chosen if not metric.in_blocks]
    if refused and metrics is not None:
        raise checks.NotApplicable(_not_offered(engine, refused))
    Questions.of(chosen, checks.one_of("rule for ties", ties, TIES))


def _not_offered(engine: str, names: Sequence[str]) -> str:
    """Return a sentence that names metrics which need the whole file in memory."""
    return f"{', '.join(names)}: the engine {engine} reads blocks of rows; use engine='memory' for these"


def refuse_options(engine: str, options: Mapping[str, Any]) -> None:
    """Raise ValueError for an option that only tables in memory have."""
    method: Method = options.get("method") or Method()
    window = method.window
    if any(map(callable, window.values() if isinstance(window, Mapping) else [window])):
        raise ValueError(f"the engine {engine} takes no function as window; name the method or give a share")
    given = [name for name, none in WHOLE_FILE.items() if options.get(name, none) != none]
    given += [] if method.paired else ["paired"]
    given += [] if method.function is None else ["made_by"]
    if given:
        raise ValueError(
            f"the engine {engine} reads blocks of rows and takes no {given[0]}; "
            "leave it out or use engine='memory'"
        )
