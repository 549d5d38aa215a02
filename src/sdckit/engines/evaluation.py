"""Evaluate files larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks, registry
from sdckit.core.cells import Uniques
from sdckit.core.checks import warn
from sdckit.engines.compare import Comparing, Questions
from sdckit.engines.local import memory_left
from sdckit.engines.opening import opened
from sdckit.engines.transport import Reads, by_bucket, joined
from sdckit.evaluation import measure
from sdckit.evaluation.result import Evaluation, knowledge_of_columns
from sdckit.io.memory import memory_text
from sdckit.kernels.ranks import TIES
from sdckit.masking.disclosure import Method, disclosure_of
from sdckit.metrics import doubts
from sdckit.metrics.blocks import MAE
from sdckit.metrics.original import Original
from sdckit.metrics.pair import pair_of
from sdckit.metrics.score import sampling_of
from sdckit.progress import reported_to, track
from sdckit.risk.distances import row_marks
from sdckit.risk.facts import untouched_names
from sdckit.risk.groups import score_of_uniques
from sdckit.risk.law import LARGE

if TYPE_CHECKING:
    from sdckit.core.registry import Metric
    from sdckit.engines.compare import EngineComparison
    from sdckit.engines.opening import Opened, Settings
    from sdckit.engines.transport import Block, Message, Transport
    from sdckit.masking.disclosure import Disclosure
    from sdckit.metrics.pair import Pair
    from sdckit.metrics.score import Score
    from sdckit.progress import ProgressCallback


def send_marks(cells: tuple[str, ...], buckets: int, block: Block) -> Iterator[Message]:
    """Yield the different marks of published records in a block, and how many have each, by bucket."""
    published = np.column_stack([block.cells[name][1] for name in cells])
    marks, counts = np.unique(row_marks(published), return_counts=True)
    yield from by_bucket((marks % np.uint64(buckets)).astype(np.int64), 0, marks, counts)


def count_classes(_bucket: int, messages: Sequence[Message]) -> tuple[int, int]:
    """Return how many classes of equal records a bucket has, and how many of them have one record."""
    marks, counts = joined(messages, 0)
    sizes = np.bincount(np.unique(marks, return_inverse=True)[1].reshape(-1), weights=counts)
    return sizes.size, int((sizes == 1).sum())


def find_uniques(transport: Transport, cells: tuple[str, ...]) -> Uniques:
    """Return the share of records alone on the published cells of some columns, and their floor."""
    n = transport.rows
    if not cells:
        return Uniques(0.0, 1 / n)
    task = partial(send_marks, cells, -(-n // transport.bucket_rows))
    found = transport.exchange(task, Reads(cells=cells), [], count_classes, step="counting equal records")
    number, alone = np.sum([*found.values()], axis=0)
    return Uniques(float(alone / n), float(number / n))


# Bytes at the peak of the default risks, measured on 2,000 to 200,000 records with 4 and 8 variables.
SHADOW_BYTES, VARIABLE_BYTES = 2_000, 500  # of a cell and its masked one: with 80 shadows, of large files 3
OTHER_BYTES = 80  # of a cell of any other column of either file
ROW_BYTES = 100
PROGRAM_BYTES = 500_000_000  # of compiled code, and of matrices of a few thousand records
UNCHECKED = (
    "not checked where files are read in blocks: whether the rows of both are in the same order, and whether "
    "another column of the masked file repeats an original one"
)

Scores = dict[str, list["Score | None"]]


def score_risks(
    found: Opened,
    disclosure: Disclosure,
    how: measure.Measuring,
    unmasked: tuple[str, ...],
    groups: Sequence[tuple[str, EngineComparison]],
    notes: dict[str, None],
) -> Scores:
    """Return the scores of risk metrics, those of `how`, on the whole file (the first group) and its strata.

    `unmasked` are the columns that are published unmasked and known. Where a metric has no value, a note says
    so; NotApplicable is raised where the user named it.
    """
    counted = [one for one in how.metrics if one.role == "untouched"]
    others = [one for one in how.metrics if one not in counted]
    try:
        if others:
            require_room(found, others)
            return _risks_in_memory(found, disclosure, how, notes)
    except TooLarge as reason:
        if how.named:
            raise
        notes[f"left out: {reason}"] = None
    whole, masked = groups[0][1], found.source.masked
    for text in doubts.dropped_doubts(found.roles, () if masked is None else tuple(masked.schema)):
        warn(text)
    sums, seen = whole.cell_sums.sums, whole.counts.both.sum()
    if seen and not sums[:, MAE.place].any() and not whole.counts.suppressed.any():
        warn(doubts.IDENTICAL)
    if how.metrics:
        notes[UNCHECKED] = None
    if counted and len(groups) > 1:
        names = ", ".join(one.name for one in counted)
        notes[f"of single strata these have no value where files are read in blocks: {names}"] = None
    none: list[Score | None] = [None] * len(groups)
    scores: Scores = {one.name: none for one in others}
    for one in counted:
        uniques = score_of_uniques(find_uniques(found.transport, unmasked), whole.n, whole.p, unmasked)
        scores[one.name] = [uniques, *none[1:]]
    return scores


def _risks_in_memory(
    found: Opened, disclosure: Disclosure, how: measure.Measuring, notes: dict[str, None]
) -> Scores:
    """Return the scores of files that fit into memory, by the very functions that measure tables."""
    pair = gather(found)
    doubts.warn_of_doubts(pair, paired=disclosure.paired)
    doubts.warn_of_published(pair)
    groups, how, broken = measure.informed_groups(pair, disclosure, how)
    notes |= dict.fromkeys(broken)
    scores = measure.score_groups(groups, how, notes)
    if any(map(measure.measures_linkage, how.metrics)):
        measure.warn_of_changed_columns(pair)
    return scores


def gather(found: Opened) -> Pair:
    """Return the files of an engine as a pair of tables in memory, with the roles that were settled."""
    source = found.source
    assert source.masked is not None  # noqa: S101 - risks are those of a masked file
    tables = [files.read(0, files.rows, list(files.schema)) for files in (source.original, source.masked)]
    source.require_unchanged()
    original = Original.of(tables[0], columns=list(found.roles.variables), **found.options, warn=False)
    # Rows with a key have been aligned before, and their order in the masked file is gone.
    return pair_of(original, tables[1], rows=np.arange(source.rows) if found.roles.key else None)


class TooLarge(checks.NotApplicable):
    """Files whose risks cannot be measured within the memory."""


def require_room(found: Opened, metrics: Sequence[Metric]) -> None:
    """Raise TooLarge if both files, and what an intruder computes from them, do not fit into memory."""
    source, variables = found.source, len(found.roles.variables)
    others = len(source.original.schema) + len(source.masked.schema if source.masked else ()) - 2 * variables
    cell = SHADOW_BYTES if source.rows <= LARGE else VARIABLE_BYTES
    need = source.rows * (cell * variables + OTHER_BYTES * others + ROW_BYTES) + PROGRAM_BYTES
    left = memory_left(found.memory)
    if need <= left:
        return
    names, size = ", ".join(one.name for one in metrics), memory_text(need)
    more = f"a driver with {size}" if found.engine == "spark" else f"memory {memory_text(1.1 * need)}"
    raise TooLarge(
        f"measuring {names} of {source.rows:,} records with {variables} masked columns takes about {size} of "
        f"memory at once, and {memory_text(max(left, 0))} are left; give {more}, or name other metrics"
    )


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
        report(0.0, aligning, "aligning rows" if aligning else "reading")
        with opened(settings, original, masked, options) as found:
            report(aligning, 1.0 - aligning, "reading")
            return _evaluate_blocks(found, options)


def _evaluate_blocks(found: Opened, options: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation of files that are read in blocks; risks are measured in memory."""
    method = options.get("method") or Method()
    disclosure = disclosure_of(options.get("disclosure"), method, by=found.roles.by)
    masked = found.source.masked
    published = () if masked is None else tuple(masked.schema)
    doubts.require_published(found.roles, published)
    how = _measuring(found, options, disclosure, published)
    refused = [metric.name for metric in how.metrics if not metric.in_blocks]
    how = replace(how, metrics=[metric for metric in how.metrics if metric.in_blocks])
    losses, risks = ([one for one in how.metrics if one.family == family] for family in ("loss", "risk"))
    questions = Questions.of(losses, str(how.options["ties"]))
    variables = found.roles.variables
    comparing = Comparing(found.transport, variables, found.source.weights is not None, questions)
    compared = comparing.run()
    strata = enumerate(found.source.strata_names)
    groups = [("all", compared[None]), *((name, compared[i]) for i, name in strata if i in compared)]
    notes = dict.fromkeys(measure.unmasked_notes(disclosure, variables))
    if refused:
        notes[f"left out: {_not_offered(found.engine, refused)}"] = None
    scores = measure.score_groups(groups, replace(how, metrics=losses, sampling=None), notes)
    notes |= dict.fromkeys(measure.uninformed_notes(disclosure, risks))
    notes |= dict.fromkeys(measure.calibration_notes(disclosure, risks))
    unmasked = tuple(untouched_names(found.rows, published, disclosure.columns))
    scores |= score_risks(found, disclosure, replace(how, metrics=risks), unmasked, groups, notes)
    measured = measure.evaluation_of(groups, how, scores, notes)
    if not risks:
        return measured
    names = dict.fromkeys([*published, *variables])
    known = knowledge_of_columns(found.roles, names, disclosure.columns or variables)
    return replace(measured, knowledge=known)


def _measuring(
    found: Opened, options: Mapping[str, Any], disclosure: Disclosure, published: Sequence[str]
) -> measure.Measuring:
    """Return the metrics that the files have columns for, and how they are measured, as in memory."""
    size = options.get("sample_queries")
    sampling = sampling_of(size)
    how = measure.Measuring.of(
        options.get("metrics"),
        disclosure,
        ties=options.get("ties", "average"),
        missing=options.get("missing", "pairwise"),
        sampling=sampling,
        every=size is not None and sampling is None,
    )
    if how.named:
        return how
    return replace(
        how, metrics=measure.metrics_for_columns(how.metrics, found.rows, published, disclosure.columns)
    )


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
