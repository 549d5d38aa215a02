"""Measure a masked file: the whole file, its strata, other intruders, several releases together."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from sdckit.core import checks, registry
from sdckit.core.checks import warn
from sdckit.core.registry import METRICS
from sdckit.core.scenarios import meets_limit
from sdckit.core.table import Table
from sdckit.core.text import plural
from sdckit.estimation.compare import comparison_of, declared_of, withheld_rows_of_losses
from sdckit.evaluation.result import Evaluation, knowledge_of_pair, table_rows, tidy_table
from sdckit.masking import rounded
from sdckit.masking.disclosure import Disclosure, Method, checked_disclosure, disclosure_of
from sdckit.metrics.doubts import published_names, require_published, warn_of_doubts, warn_of_published
from sdckit.metrics.pair import pair_by_row, pair_of
from sdckit.metrics.publishable import WHOLE, dominated_rows
from sdckit.metrics.score import LOOKED_UP, Sampling, Score, Values, larger_estimate, mean_estimate
from sdckit.progress import each, reported_to, track
from sdckit.risk.attacks import attacks_together, explain_linkage, score_attacks
from sdckit.risk.facts import facts_of, untouched_names
from sdckit.risk.intruder import known_share_notes, looked_up_singly
from sdckit.risk.shadows import FEWEST, own_draws, published_steps
from sdckit.rules.rules import Rules, named_columns, rules_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.arrays import Floats
    from sdckit.core.registry import Metric
    from sdckit.core.scenarios import Scenario
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Comparison, Pair
    from sdckit.progress import ProgressCallback
    from sdckit.risk.attacks import JointAttack


def metrics_for_columns(
    metrics: Iterable[Metric], original: Original, published: Sequence[str], masked: Iterable[str] = ()
) -> list[Metric]:
    """Return those of the default metrics whose columns are among the published ones."""
    unmasked = untouched_names(original, published, masked)

    def has_columns(role: str | None) -> bool:
        """Return True if some column has the role."""
        return role is None or bool(unmasked if role == "untouched" else original.roles.columns_with(role))

    return [one for one in metrics if has_columns(one.role)]


NOT_UNDONE = (
    "the file was calibrated to totals of the original; risks measured here leave out an intruder who undoes "
    "that, whom those of the release count"
)
FEW = 3  # records below which a loss nearly shows those of single records


def small_strata_notes(sizes: Iterable[int]) -> list[str]:
    """Return a note, if any of the strata sizes is below 3, that their figures are not for publication."""
    small = sum(size < FEW for size in sizes)
    return [f"not for publication: strata with fewer than {FEW} records: {small}"] if small else []


def rule_notes(pair: Pair) -> list[str]:
    """Return a note for each edit rule that masked records break, with their number."""
    rules = pair.rules
    if rules is None:
        return []
    column_numbers = [pair.columns.index(name) for name in rules.columns]
    found = zip(rules.texts, rules.violations(pair.masked[:, column_numbers]), strict=True)
    return [
        f"the rule {text} is broken in {count} masked {plural(count, 'record')}"
        for text, count in found
        if count
    ]


def unpaired_notes(pair: Pair, left_out: Sequence[str]) -> list[str]:
    """Return notes on what was left out because masked rows stand for no original record."""
    notes = []
    if not pair.complete:
        notes.append(
            "cells are left out where the other file has none in that row, though rows are not paired"
        )
    if left_out:
        notes.append(f"left out because rows are not paired: {', '.join(left_out)}")
    risks = any(METRICS[name.partition(":")[0]].family == "risk" for name in left_out)
    if risks and not facts_of(pair).tie_rows:
        notes.append("no risk was measured: where rows are not paired, a link cannot be right or wrong")
    return notes


def uninformed_notes(
    disclosure: Disclosure, metrics: Sequence[Metric], *, masks_again: bool = False
) -> list[str]:
    """Return a note naming the risks of an intruder who learns the masking from the release alone.

    With `masks_again` he was given the masking itself.
    """
    named = [metric.name for metric in metrics if metric.informed and "within" not in metric.fixed_options]
    if disclosure.method is not None or disclosure.deterministic or masks_again or not named:
        return []
    law = f"the law behind {', '.join(named)} was learnt from folds of the release alone"
    return [f"nobody said how the file was masked: {law}; for a sharper figure give method= or made_by="]


def calibration_notes(disclosure: Disclosure, metrics: Sequence[Metric]) -> list[str]:
    """Return a note that the risks leave out who undoes a calibration, where the file was calibrated."""
    risky = any(metric.family == "risk" for metric in metrics)
    return [NOT_UNDONE] if disclosure.calibrated and risky else []


def unmasked_notes(disclosure: Disclosure, columns: Sequence[str]) -> list[str]:
    """Return a note naming the measured columns that are not among the masked ones, where these are known."""
    others = [name for name in columns if disclosure.columns and name not in disclosure.columns]
    return [f"measured, but not masked by this method: {', '.join(others)}"] if others else []


def warn_of_changed_columns(pair: Pair) -> None:
    """Warn of columns that are no variables and yet differ from the original in most records."""
    changed = [repr(name) for name, case in facts_of(pair).cases.items() if case == "e"]
    if changed:
        fact = f"not measured, but changed in most records: {', '.join(changed)}"
        warn(f"{fact}; the linkage attacks do not use them; name masked columns with columns")


def missing_notes(comparison: Comparison, metrics: Sequence[Metric], missing: str) -> list[str]:
    """Return notes on the numbers of cells that are missing in one of the two files only."""
    counts = comparison.counts
    suppressed, imputed = int(counts.suppressed.sum()), int(counts.imputed.sum())
    notes = []
    if suppressed and missing == "pairwise":
        notes.append(
            f"suppressed cells, left out of every metric: {suppressed} (the rule penalise counts them)"
        )
    if suppressed and missing == "penalise":
        others = any(not metric.bounded for metric in metrics)
        rest = "; metrics without a largest value leave them out" if others else ""
        notes.append(f"suppressed cells, counted as the largest loss: {suppressed}{rest}")
    if imputed:
        cells = "cell is" if imputed == 1 else "cells are"
        notes.append(f"{imputed} {cells} missing in the original but not in the masked data")
    return notes


def privacy_notes(table: pl.DataFrame, *, per_record: bool) -> list[str]:
    """Return a note, if losses of single records can be read off the table, not to publish them."""
    cells = table.filter(pl.col("variable") != "all")["n_used"]
    if not per_record and not cells.is_between(1, FEW - 1).any():
        return []
    return ["not for publication: losses of single records show how far each value moved"]


if TYPE_CHECKING:
    Masking = Callable[[Any, np.random.Generator], Any]

WHO = "the masking given by made_by"


def add_masking(pair: Pair, disclosure: Disclosure, made_by: Masking | None, *, who: str = WHO) -> Disclosure:
    """Let the intruder mask the pair's file by a function; return the disclosure, which says if it draws.

    A function that draws nothing and makes this very file can be run again by everybody. One that draws
    nothing and makes another file is left aside with a warning.
    """
    if made_by is None:
        return disclosure
    remask = masking_again(pair, made_by, who)
    first, second = (remask(own_draws(number)) for number in range(FEWEST))
    if _count_changed(first, second):
        pair.remask = remask
        return disclosure
    changed = _count_changed(first, rounded(pair.masked, published_steps(pair)))
    if not changed:
        return replace(disclosure, deterministic=True)
    warn(
        f"{who} draws nothing and does not make this file: {changed} of {first.size} "
        f"{plural(first.size, 'cell')} differ; name what was done to the file"
    )
    return disclosure


def masking_again(pair: Pair, made_by: Masking, who: str = WHO) -> Callable[[np.random.Generator], Floats]:
    """Return a function of a random generator that masks the pair's original and returns its variables."""
    original = pair.original.table
    if original is None:
        raise ValueError("the prepared data have no table that made_by could mask; prepare the table anew")
    steps = published_steps(pair)

    def mask(rng: np.random.Generator) -> Floats:
        """Return the variables of the original masked with the given draws, rounded as published."""
        made = _table_of(_run(made_by, deepcopy(original.native), rng), who)
        return np.asfortranarray(rounded(_variables_of(made, pair, who), steps))

    return mask


def _run(made_by: Masking, table: Any, rng: np.random.Generator) -> Any:
    """Return what the function returns; raise a ValueError that names the type of its error only."""
    try:
        return made_by(table, rng)
    except MadeByError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise ValueError(f"{WHO} failed with {kind}; mend it") from error


class MadeByError(ValueError):
    """An error in the words of this package, raised by a masking that is no function of the user's own."""


def _table_of(made: Any, who: str) -> Table:
    """Return what a masking returned as a table; raise TypeError if it is none."""
    try:
        return Table(made)
    except (TypeError, ValueError) as error:
        kind = type(made).__name__
        raise TypeError(f"{who} returned no table but {kind}; return the masked table") from error


def _variables_of(made: Table, pair: Pair, who: str) -> Floats:
    """Return the variables of a table that a masking made; raise an error if it is none of this file."""
    n = pair.original.n
    if made.n != n:
        fact = f"{who} returned {made.n} {plural(made.n, 'record')} of {n}"
        raise ValueError(f"{fact}; return all records, in the order of the original")
    names = list(pair.columns)
    lost = [name for name in names if name not in made.names]
    if lost:
        fact = f"{who} returned no column {', '.join(map(repr, lost))}"
        raise ValueError(f"{fact}; return every column that is compared")
    known = {*pair.original.table_names, *names, *(() if pair.table is None else pair.table.names)}
    new = [name for name in made.names if name not in known]
    if new:
        fact = f"{who} returned a column that neither file has: {', '.join(map(repr, new))}"
        raise ValueError(f"{fact}; return the columns of the masked file")
    text = [name for name in names if name not in made.numeric_names]
    if text:
        fact = f"{who} returned text in column {', '.join(map(repr, text))}"
        raise TypeError(f"{fact}; return numbers in columns that are compared")
    return made.floats(names, pair.original.roles.na)


def _count_changed(one: Floats, other: Floats) -> int:
    """Return in how many cells two files differ; missing cells are equal."""
    return int(((one != other) & ~(np.isnan(one) & np.isnan(other))).sum())


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
    if whole is None or not measures_linkage(metric) or not known:
        return whole
    if not set(pairs[0].original.roles.by) <= pairs[0].known_names:
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
    per_record: bool = False
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
        rng: Any = None,
        **others: Any,
    ) -> Measuring:
        """Return the metrics and options of an evaluation, checked as far as possible without data."""
        chosen, left_out = registry.metrics_for_rows(metrics, paired=disclosure.paired)
        checks.one_of("rule for missing cells", missing, checks.MISSING)
        options = {"ties": ties, "missing": missing, "rng": rng}
        return cls(chosen, left_out, metrics is not None, options, **others)

    def of_one(self, metric: Metric, limit: float | None) -> Measuring:
        """Return how one metric is measured by itself, under a limit if there is one."""
        limits = {} if limit is None else {metric.name: limit}
        sampling = self.sampling and replace(self.sampling, limits=limits)
        return Measuring([metric], (), named=True, options=self.options, sampling=sampling, every=self.every)


def measure(
    metric: Metric,
    pairs: Sequence[Pair],
    options: Mapping[str, Any],
    *,
    label: str = "",
    sampling: Sampling | None = None,
    detail: bool = True,
    per_record: bool = False,
    missed: Callable[[Pair, checks.NotApplicable], None] | None = None,
) -> list[Score | None]:
    """Return a metric's scores on the whole file, the first of the pairs, and on each stratum.

    None stands for a pair where the metric has no value; `missed` is told of it. With `sampling` linkage is
    estimated on growing samples, until a limit on `label` is settled. Without `detail` the scores have no
    more than searches need: no levels of unrelated order and no notes.
    """

    def scores() -> list[Score | None]:
        """Return the scores on the records that are looked up."""
        found: list[Score | None] = []
        for pair in pairs:
            each_record = per_record and (pair is pairs[0] or measures_linkage(metric))
            try:
                score = metric.score_with(pair, options, detail=detail, per_record=each_record)
                if each_record and score.records is None:  # the metric has no value of each record
                    score = replace(score, records=np.full(pair.n, np.nan))
                found.append(score)
            except checks.NotApplicable as reason:
                found.append(None)
                if missed is not None:
                    missed(pair, reason)
        return [score_within_strata(metric, found, pairs), *found[1:]]

    return scores() if sampling is None else sampling.scores(label or metric.name, pairs, scores)


def score_groups(
    groups: Sequence[tuple[str, Any]], how: Measuring, notes: dict[str, None]
) -> dict[str, list[Score | None]]:
    """Return each metric's scores on the whole file and each stratum; None, and a note, without a value."""
    scores = {}
    pairs = [pair for _, pair in groups]

    def note(name: str, pair: Pair, reason: checks.NotApplicable) -> None:
        """Note why there is no value; an error for a metric that the user named, on the whole file."""
        whole = pair is pairs[0]
        if how.named and whole:
            raise reason
        notes[f"left out: {reason}" if whole else f"{name} has no value in some strata"] = None

    with track("measuring", len(how.metrics)) as report:
        for place, metric in enumerate(how.metrics):
            report(place)
            scores[metric.name] = measure(
                metric,
                pairs,
                how.options,
                sampling=how.sampling,
                per_record=how.per_record,
                missed=partial(note, metric.name),
            )
    return scores


if TYPE_CHECKING:
    Measure = Callable[[Pair, Metric, float | None], Evaluation]

RISKS_SCHEMA: dict[Any, Any] = {
    "scenario": pl.String,
    "known": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "limit": pl.Float64,
    "met": pl.Boolean,
    "ci_low": pl.Float64,  # where the value is estimated on a sample of records
    "ci_high": pl.Float64,
}


def require_columns(scenarios: Iterable[Scenario], original: Original) -> None:
    """Raise ValueError if a scenario names a column that the data lack or that no intruder can know."""
    for scenario in scenarios:
        scenario.require_columns(original.roles, original.table_names or original.columns)


def original_in(original: Original, scenario: Scenario) -> Original:
    """Return the same prepared data as the intruder of a scenario knows them."""
    return original.with_roles(scenario.roles(original.roles), original.weights)


def scenario_table(scenarios: Sequence[Scenario], pair: Pair, measure: Measure) -> pl.DataFrame | None:
    """Return a row for each risk in each scenario: what is known, value, limit, and whether it is met.

    `measure` evaluates a metric on a pair, given its limit if it has one. An estimate meets a limit if the
    upper end of its interval does. None without scenarios.
    """
    rows: list[tuple[Any, ...]] = []
    for scenario in each("measuring", scenarios):
        other = replace(pair, original=original_in(pair.original, scenario), cache={})
        for metric in each("measuring", scenario.metrics):
            limit = scenario.limits.get(metric.name)
            value = low = high = None
            with warnings.catch_warnings(), suppress(checks.NotApplicable):
                warnings.simplefilter("ignore")  # given for the default intruder
                summary = measure(other, metric, limit).summary
                value, low, high = summary.select("value", "ci_low", "ci_high").row(0)
            upper = value if high is None else high
            met = None if limit is None else upper is not None and meets_limit(upper, limit)
            known = ", ".join(scenario.known)
            rows.append((scenario.name, known, metric.name, value, limit, met, low, high))
    return pl.DataFrame(rows, schema=RISKS_SCHEMA, orient="row") if scenarios else None


LINKAGE = "linkage"
FEWEST_TOGETHER = 2  # releases that can be evaluated together
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
    if not isinstance(masked, (list, tuple)) or len(masked) < FEWEST_TOGETHER:
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
    singles = [dict(one).get(LINKAGE, math.nan) for one in alone]
    if all(map(math.isnan, singles)):
        reasons = [note for one in alone for note in one.notes if note.startswith("left out: ")]
        raise checks.NotApplicable(reasons[0].removeprefix("left out: "))
    attacks = list(attacks_together(pairs))
    means = [float(attack.result.credits.expected.mean()) for attack in attacks]
    worst = attacks[int(np.argmax(means))]
    parts: dict[str, float] = {}
    for attack, mean in zip(attacks, means, strict=True):
        parts[attack.label] = max(mean, parts.get(attack.label, mean))
    parts |= {f"release {i} alone": v for i, v in enumerate(singles, 1)}
    largest = int(np.nanargmax(singles))
    found = alone[largest]
    if singles[largest] > max(means):  # no attack on several releases exceeds one alone
        text = f"release {largest + 1} alone: {found.meaning[LINKAGE]}"
        found = replace(found, table=found.table.filter(WHOLE), meaning={LINKAGE: text})
    else:
        found = _of_attack(worst, found)
    sentence = (
        f"for an intruder who can align the {len(pairs)} releases, record by record, by "
        f"{found.meaning[LINKAGE]}"
    )
    notes = (*_joint_notes(alone), NOT_COMPUTED)
    return replace(found, meaning={LINKAGE: sentence}, notes=notes, parts={LINKAGE: parts})


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


def evaluate_tables(
    original: Original,
    releases: Sequence[GivenRelease],
    how: Callable[[Disclosure], Measuring],
    *,
    rules: Any = None,
    together: bool = False,
    progress: ProgressCallback | None = None,
) -> Evaluation:
    """Return the evaluation of a masked table or, together, of several releases of the same records.

    `how` returns how a table with a disclosure is measured. `rules` are known of maskings without a
    disclosure of their own. Warnings name columns that were published by oversight.
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
        named = metrics_for_columns(how.metrics, pair.original, pair.published, disclosure.columns)
        how = replace(how, metrics=named)
    groups = [("all", pair), *pair.parts]
    wide = _pair_with_rules(disclosure.rules, pair)
    for _, group in groups:
        group.rules = None if wide.rules is None else wide.rules.within(pair.columns)
    for name, group in groups[1:] if disclosure.by else groups[:1]:
        group.window = disclosure.width(name, group.original.values, group.columns)
    if how.sampling is None and not how.every and looked_up_singly(pair):  # a large file, read by a law
        how = replace(how, sampling=Sampling(LOOKED_UP))
    return groups, how, rule_notes(wide)


def evaluation_of(
    groups: Sequence[tuple[str, Comparison]],
    how: Measuring,
    scores: Mapping[str, Sequence[Score | None]],
    notes: dict[str, None],
    more: Iterable[str] = (),
    *,
    paired: bool = True,
) -> Evaluation:
    """Return the scores of the whole file and its strata as an evaluation, with notes and `more` of them."""
    rows: list[dict[str, Any]] = []
    meaning: dict[str, str] = {}
    records: dict[str, Any] = {}
    parts: dict[str, dict[str, float]] = {}
    for (place, (stratum, group)), metric in product(enumerate(groups), how.metrics):
        score = scores[metric.name][place]
        if score is None:
            continue
        rows += table_rows(metric, stratum, group, score)
        if place == 0:
            meaning[metric.name] = metric.explain(score)
            parts[metric.name] = score.parts
            records[metric.name] = score.records
            notes |= dict.fromkeys(score.notes)
    notes |= dict.fromkeys(more)
    whole = groups[0][1]
    if paired:
        notes |= dict.fromkeys(missing_notes(whole, how.metrics, str(how.options["missing"])))
    notes |= dict.fromkeys(small_strata_notes(group.n for _, group in groups[1:]))
    return Evaluation(
        tidy_table(rows),
        meaning,
        tuple(notes),
        parts,
        pl.DataFrame(records) if how.per_record else None,
        dominated_rows(groups, how.metrics) if paired else frozenset(),
        size=whole.n,
    )


def _evaluate_groups(pair: Pair, disclosure: Disclosure, how: Measuring) -> Evaluation:
    """Return the evaluation of a pair of files whose rows are aligned, without scenarios."""
    groups, how, broken = informed_groups(pair, disclosure, how)
    notes = dict.fromkeys(broken)
    if not disclosure.paired:
        notes |= dict.fromkeys(unpaired_notes(pair, how.left_out))
    notes |= dict.fromkeys(uninformed_notes(disclosure, how.metrics, masks_again=pair.remask is not None))
    notes |= dict.fromkeys(unmasked_notes(disclosure, pair.columns))
    notes |= dict.fromkeys(calibration_notes(disclosure, how.metrics))
    scores = score_groups(groups, how, notes)
    known_share = known_share_notes(pair, how.known_share)
    found = evaluation_of(groups, how, scores, notes, known_share, paired=disclosure.paired)
    if any(measures_linkage(metric) for metric in how.metrics):
        warn_of_changed_columns(pair)
    compared = comparison_of(pair, how.metrics)
    withheld = withheld_rows_of_losses(compared, how.metrics, [stratum for stratum, _ in groups])
    risky = any(metric.family == "risk" for metric in how.metrics)
    return replace(
        found,
        dominated=found.dominated | withheld,
        knowledge=knowledge_of_pair(pair) if risky else None,
        estimates=compared,
        kind=pair.original.kind,
    )


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
