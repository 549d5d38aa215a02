"""Compute metrics on a pair of files as one table, with a sentence that explains each number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from sdckit.core.disclosure import Disclosure, HasDisclosure, disclosure_of
from sdckit.core.engine_choice import on_engines
from sdckit.core.scenarios import checked_scenarios
from sdckit.core.table import names_of
from sdckit.core.undecided import warn_of_masked_weights
from sdckit.estimation.compare import comparison_of, declared_of, withheld_rows_of_losses
from sdckit.io.atomic import AnyPath  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.kernels.jit import Floats  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.default_metrics import metrics_for_pair
from sdckit.metrics.dominated import dominated_rows
from sdckit.metrics.doubts import published_names, require_published, warn_of_doubts, warn_of_published
from sdckit.metrics.evaluation_result import Evaluation
from sdckit.metrics.evaluation_table import table_rows, tidy_table
from sdckit.metrics.evaluation_together import evaluate_together, given_releases, metrics_together
from sdckit.metrics.knowledge import knowledge_of_pair
from sdckit.metrics.made_by import add_masking, require_one_masking
from sdckit.metrics.measuring import Measuring, score_groups
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
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair, pair_by_row, pair_of
from sdckit.metrics.query_sample import LOOKED_UP, Sampling, sampling_of
from sdckit.metrics.scenario_risks import require_columns, scenario_table
from sdckit.metrics.stratified_risk import measures_linkage
from sdckit.progress import ProgressCallback, reported_to, track
from sdckit.risk.intruder import checked_known_share, known_share_notes, looked_up_singly
from sdckit.rules.rules import Rules, named_columns, rules_of


@on_engines("evaluation", tables=2)
def evaluate(
    original: Any,
    masked: Any,
    *,
    metrics: str | Iterable[str] | None = None,
    key: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    weights: Any = None,
    by: str | Sequence[str] | None = None,
    ties: str = "average",
    missing: str = "pairwise",
    na: Any = None,
    untouched: str | Sequence[str] | None = None,
    known: str | Sequence[str] | None = None,
    unknown: str | Sequence[str] | None = None,
    confidential: str | Sequence[str] | None = None,
    unit: str | None = None,
    drop: str | Sequence[str] | None = None,
    estimates: str | Sequence[str] | None = None,
    rows: Any = None,
    per_record: bool = False,
    scenarios: Mapping[str, Any] | None = None,
    together: bool = False,
    disclosure: Disclosure | HasDisclosure | Sequence[Disclosure | HasDisclosure] | None = None,
    method: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    made_by: Callable[[Any, np.random.Generator], Any] | None = None,
    window: float | Callable[[Floats], Any] | Mapping[str, Any] | None = None,
    stratified: bool | None = None,
    paired: bool = True,
    rules: Any = None,
    known_share: float | None = None,
    sample_queries: int | None = None,
    rng: Any = None,
    engine: str | None = None,  # noqa: ARG001 - these four are for `on_engines`
    memory: int | str | None = None,  # noqa: ARG001
    master: str | None = None,  # noqa: ARG001
    scratch: AnyPath | None = None,  # noqa: ARG001
    progress: ProgressCallback | None = None,
) -> Evaluation:
    """Measure the information loss and disclosure risk of a masked file, per variable and stratum.

    The result explains each number in a sentence.

    Parameters
    ----------
    original, masked : table, path or Spark DataFrame
        pandas, polars, pyarrow or numpy; `original` may be prepared. Or paths of files, of folders of Parquet
        files or lists of such paths; or two Spark DataFrames, with a `key`. A `Release` in place of its table
        is measured with its disclosure and the order of its rows.
    metrics : list of str, optional
        Names from `sdc.METRICS`; by default those marked `default` that have a value for the data.
    key : str, optional
        Column that identifies records in both files; without it, rows are paired by order.
    columns : list of str, optional
        Variables to compare; by default the masked columns that the disclosure names, or else all numeric
        columns that have no other role.
    weights : str or array, optional
        Survey weights.
    by : str, optional
        Column of the original whose values form strata; each gets its own rows in the table. If a method is
        named, each stratum counts as masked separately; see `stratified`.
    ties : str
        How equal values are ranked: see `brmae`.
    missing : str
        "pairwise", or "penalise" for the bounded losses.
    na : number or list of numbers, optional
        Values that stand for a missing cell.
    untouched, known, unknown, confidential, unit, drop
        Other roles of columns, as for `prepare`: what is published as it is, and what the intruder knows.
    estimates : list of str, optional
        What users of the file compute, such as `["total(turnover) by sector"]`, as for `sdckit.estimation`:
        its loss is measured, too, and `Evaluation.estimates` has the figures of both files.
    rows : array of int, optional
        Number, from 0, of the original row of each masked one, as `release.rows` has it, where the rows were
        shuffled; without it, those of a release given as `disclosure` are taken.
    per_record : bool
        Also give each record's share of every loss and risk.
    scenarios : dict, optional
        Other intruders by name: what each knows in place of `known`, and limits on his risks, as in
        `{"press": {"known": ["sex", "age"], "max_risk": {"linkage": 0.05}}}`.
    together : bool
        True if `masked` is a list of releases of the same records, which an intruder can align: the linkage
        of all of them together, never below that of one. `disclosure` and `rows` are for all or lists.
    disclosure : Disclosure or Release, optional
        What is published about the masking, as `release` returns it: the linkage attacks use it. If it
        names strata, these are the strata of the table.
    method, parameters : str and dict, optional
        In place of a disclosure, for a file made elsewhere: how it was masked, such as "rank_swap" and
        {"p": 0.15}.
    made_by : function, optional
        In place of a method, the masking itself: `made_by(table, rng)` gets a copy of the original and a
        numpy Generator, and returns the masked table, all records in the order of the original. The intruder
        runs it up to 80 times with draws of his own, and so learns how masked records lie around originals.
    window : float or function, optional
        The largest move in ranks where no method is named: a share of the records, or a function of the
        original values; either also by stratum, in a dictionary.
    stratified : bool, optional
        True if each stratum was masked separately, so that the window holds within strata; False if the
        file was masked as a whole and strata are only measured. By default True with a method and strata
        and with a window by stratum, False with one window.
    paired : bool
        False where the rows of the masked file stand for no original record, as in synthetic data: only
        metrics that do not compare row by row are given, and the others are named in a note.
    rules : text or list of text, optional
        Edit rules that records satisfy, as for `mask`: the linkage attacks use them, and a note says how
        many masked records break them.
    known_share : float, optional
        Also tell in a note how many persons are found by an intruder who holds the originals of this share of
        them only, such as 0.75; in files of at most 3,000 records.
    sample_queries : int, optional
        Estimate linkage on so many records, drawn at random, each looked up among all others; the columns
        `ci_low` and `ci_high` have a 95 % interval. 0 looks up all records. So does None up to
        20,000 records and for methods that draw nothing; else it draws 5,000.
    rng : None, int or numpy Generator
        For `ties="random"`.
    engine : str, optional
        "memory"; "local", which reads Parquet files in blocks of rows; or "spark". By default Spark for its
        DataFrames and its `master`, "local" for Parquet files that do not fit into memory, else "memory".
        What the last two leave out is named in a note.
    memory : int or str, optional
        Limit of the engine "local", in bytes or as in "4GB"; by default, what is at hand.
    master : str, optional
        Address of a Spark cluster, such as "spark://host:7077"; by default a session on this machine.
    scratch : path, optional
        Folder for intermediate files, which are removed; on Spark one that all workers see. By default the
        system's.
    progress : callable, optional
        Called as `progress(step, share done)` during the work; the share rises from 0 to 1.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import sdckit as sdc
    >>> result = sdc.evaluate([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0], metrics="brmae")
    >>> result["brmae"]
    0.25
    >>> result
    brmae           0.25  the mean distance between original and masked ranks is 25.0% of the largest
    possible; an unrelated order would score 0.625
    """
    sampling = sampling_of(sample_queries)
    require_one_masking(made_by, disclosure=disclosure, method=method, parameters=parameters)
    share = checked_known_share(known_share)
    single = {"scenarios are": scenarios, "sample_queries is": sampling, "known_share is": share}
    for what, given in single.items():
        if together and given:
            raise ValueError(f"{what} for one release and together is True; leave one of them out")
    releases = given_releases(masked, disclosure, rows, together=together)
    told = [one.disclosure for one in releases if one.disclosure is not None]
    require_one_masking(made_by, disclosure=told[0] if told else None)
    prepared = _original_for(
        told,
        original,
        columns=columns,
        key=key,
        weights=weights,
        by=by,
        na=na,
        untouched=untouched,
        known=known,
        unknown=unknown,
        confidential=confidential,
        unit=unit,
        drop=drop,
        estimates=estimates,
    )
    declared_of(prepared)  # raises an error for an estimate that the data do not allow
    others = checked_scenarios(scenarios)
    require_columns(others, prepared)
    disclosed = [
        disclosure_of(
            one.disclosure,
            method=method,
            parameters=parameters,
            window=window,
            stratified=stratified,
            paired=paired,
            rules=rules,
            by=prepared.roles.by,
        )
        for one in releases
    ]
    how = Measuring.of(
        metrics_together(metrics) if together else metrics,
        disclosed[0],
        ties=ties,
        missing=missing,
        per_record=per_record,
        rng=rng,
        scenarios=others,
        sampling=sampling,
        every=sample_queries is not None and sampling is None,
        known_share=share,
    )
    pairs = [
        pair_of(prepared, one.masked, rows=one.rows, paired=found.paired)
        for one, found in zip(releases, disclosed, strict=True)
    ]
    for pair, known_of in zip(pairs, disclosed, strict=True):
        require_published(pair.original.roles, published_names(pair))
        warn_of_doubts(pair, paired=known_of.paired)
        if not isinstance(original, Original):  # else `prepare` has warned
            warn_of_published(pair)
    if not isinstance(original, Original) and columns is None and not disclosed[0].columns:
        warn_of_masked_weights(() if prepared.table is None else prepared.columns)
    with reported_to(progress):
        disclosed = [add_masking(*one, made_by) for one in zip(pairs, disclosed, strict=True)]
        if together:
            return evaluate_releases(pairs, disclosed, how)
        return evaluate_pair(pairs[0], disclosed[0], how)


def _original_for(disclosed: Sequence[Disclosure], original: Any, **roles: Any) -> Original:
    """Return the original prepared with the given roles; columns and strata are those of the disclosures."""
    for one in disclosed:
        prepared = original.roles.by if isinstance(original, Original) else ()
        roles["by"] = _strata_columns(one, roles["by"], prepared)
    masked = list(dict.fromkeys(name for one in disclosed for name in one.columns))
    if masked and roles["columns"] is None and not isinstance(original, Original):
        roles["columns"] = masked
    return Original.of(original, **roles, warn=False)


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


def _strata_columns(
    disclosure: Disclosure, by: str | Sequence[str] | None, prepared: tuple[str, ...]
) -> str | Sequence[str] | None:
    """Return the columns that form strata: `by`, or those within which the file was masked.

    `prepared` are those that the original was prepared with, if any.
    """
    if not disclosure.by or (by is not None and tuple(names_of(by)) == disclosure.by):
        return by
    if by is not None:
        ours, theirs = ", ".join(names_of(by)), ", ".join(disclosure.by)
        raise ValueError(f"by is {ours} and the file was masked within strata of {theirs}; leave by out")
    if prepared and prepared != disclosure.by:
        ours, theirs = ", ".join(prepared), ", ".join(disclosure.by)
        remedy = repr(disclosure.by[0] if len(disclosure.by) == 1 else list(disclosure.by))
        raise ValueError(
            f"the file was masked within strata of {theirs} and the original is prepared with strata {ours}; "
            f"prepare it with by={remedy}"
        )
    return list(disclosure.by)


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
