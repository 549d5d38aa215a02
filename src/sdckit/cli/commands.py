"""Run the commands mask, evaluate, sweep and recommend on files, given their parsed options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from sdckit import progress
from sdckit.cli import request, sweep_output, terminal
from sdckit.core import checks, registry, settings
from sdckit.io import files
from sdckit.io.source import cast_empty_columns
from sdckit.metrics.notes import privacy_notes
from sdckit.metrics.pair import pair_of
from sdckit.metrics.rank_summary import rank_table_of_pair
from sdckit.selection import bisection, sweeping, wording
from sdckit.selection.release import ReleasePlan, make_release
from sdckit.selection.release_file import ReleaseFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import polars as pl

    from sdckit.cli.request import Request
    from sdckit.io.source import Source
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.selection.release import Release


def show_warnings() -> None:
    """From here on the input is known to be good: warnings need not be held back."""
    click.get_current_context().obj.release()


def source_of(data: Path, asked: Request, given: dict[str, Any]) -> Source:
    """The original; refused where it is too short for the report that is asked for."""
    source = files.read(data, asked.dialect)
    if given["report"]:
        checks.require_reportable_size(source.frame.height)
    return source


def report(given: dict[str, Any], page: Callable[[Any], str]) -> list[str]:
    """Write a report where one is asked for, and say so; `page` makes it with the room that knows how."""
    if not given["report"]:
        return []
    from sdckit.report import build  # noqa: PLC0415 - slow to import, and only for reports

    build.write_page(given["report"], page(build), overwrite=given["overwrite"])
    return [f"wrote {given['report']}"]


def release(
    plan: ReleasePlan,
    source: Source,
    original: Original,
    asked: Request,
    given: dict[str, Any],
    page: Callable[[Any, Release, Pair], str],
) -> tuple[Release, list[str]]:
    """Write a release and, where one is asked for, its report; also return what should be said of them."""
    file = ReleaseFile(
        given["output"],
        source=source,
        columns=original.columns,
        whole=original.columns if plan.decimals == 0 else (),
        dialect=asked.dialect,
        overwrite=given["overwrite"],
    )
    notes: list[str] = []

    def write_report(made: Release, pair: Pair) -> None:
        notes.extend([*written_notes(made, pair, source, given), f"wrote {file.path}"])
        notes.extend(report(given, lambda build: page(build, made, pair)))

    made = make_release(plan, original, rng=asked.seed, store=file.store, report=write_report)
    return made, notes


def written_notes(made: Release, pair: Pair, source: Source, given: dict[str, Any]) -> list[str]:
    """Return which columns were masked and which not; long lists are shortened, except in JSON."""
    rows = [request.untouched(pair)] if made.disclosure.paired else []
    return [
        request.masked_columns(pair, source.frame.columns, whole=given["as_json"]),
        *rows,
        *privacy_notes(made.evaluation.table, per_record=False),  # losses of single records are not shown
    ]


def mask(data: Path, output: Path, given: dict[str, Any]) -> None:
    """Mask a file, measure what was written, print it."""
    progress.show_progress(not given["quiet"])
    asked = request.understood(given)
    method = registry.method_named(given["method"])
    parameters = request.settings(given["settings"])
    settings.check_parameters(method, parameters)
    registry.metrics_for_rows(asked.metrics, paired=method.keeps_pairing(method.defaults() | parameters))
    decimals = request.decimals(given)
    request.check_output(output, [data], overwrite=given["overwrite"])
    request.check_report(given["report"], [data], overwrite=given["overwrite"])
    source = source_of(data, asked, given)
    asked = asked.within(given, source)
    files.check_format(output, source.frame, source)
    original = asked.prepared(source, "masked")
    plan = ReleasePlan(
        method=method.name,
        parameters=parameters,
        rules=asked.rules,
        decimals=decimals,
        groups=given["groups"] and given["groups"].strip(),
        metrics=asked.metrics,
        ties=asked.ties,
        missing=asked.missing,
        per_record=given["report"] is not None,
    )

    def page(build: Any, made: Release, pair: Pair) -> str:
        facts = asked.facts | request.roles_told(pair.columns, source.frame.columns)
        return str(build.report_on_evaluation(made.evaluation, name=output.name, pair=pair, facts=facts))

    made, notes = release(plan, source, original, asked, given | {"output": output}, page)
    show_warnings()
    terminal.show_result(replace(made.evaluation, records=None), given, notes=notes)


def evaluate(original: Path, masked: Sequence[Path], given: dict[str, Any]) -> None:
    """Compare one masked file, or several, with their original."""
    progress.show_progress(not given["quiet"])
    asked = request.understood(given)
    request.check_evaluation(given, masked, paired=asked.paired)
    if given["records"]:
        request.check_output(given["records"], [original, *masked], overwrite=given["overwrite"])
    request.check_report(given["report"], [original, *masked], overwrite=given["overwrite"])
    source = source_of(original, asked, given)
    theirs = {str(path): files.read(path, asked.dialect).frame for path in masked}
    asked = asked.within(given, source)
    prepared = asked.prepared(source, "measured")
    if len(masked) > 1:
        _evaluate_several(source, prepared, theirs, asked, given)
    else:
        _evaluate_one(source, prepared, theirs.popitem(), asked, given)


def _evaluate_one(
    source: Source, original: Original, file: tuple[str, pl.DataFrame], asked: Request, given: Any
) -> None:
    ours, (name, theirs) = source.frame, file
    wanted = given["records"] is not None or given["report"] is not None
    pair = pair_of(original, cast_empty_columns(theirs, ours))
    result = asked.measure(pair, per_record=wanted)
    show_warnings()
    shown = result if given["records"] else replace(result, records=None)
    notes = privacy_notes(shown.table, per_record=shown.records is not None)
    if given["ranks"] and asked.weights:
        notes.append("weights play no part in the tables of ranks")
    if given["records"]:
        files.write(
            given["records"], asked.records(result, ours), dialect=asked.dialect, overwrite=given["overwrite"]
        )
        notes.append(f"wrote {given['records']}")

    def page(build: Any) -> str:
        facts = asked.facts | request.roles_told(pair.columns, ours.columns)
        return str(build.report_on_evaluation(result, name=PurePath(name).name, pair=pair, facts=facts))

    notes += report(given, page)
    ranks = rank_table_of_pair(pair) if given["ranks"] else None
    extra = []
    if given["variables"]:
        extra += terminal.crossed(result, "variable")
    if given["by"]:
        extra += terminal.crossed(result, "stratum")
    if ranks is not None:
        extra += terminal.rank_tables(ranks)
    more = {} if ranks is None else {"ranks": ranks.rows(named=True)}
    terminal.show_result(shown, given, extra=extra, notes=notes, more=more)


def _evaluate_several(
    source: Source,
    original: Original,
    theirs: dict[str, pl.DataFrame],
    asked: Request,
    given: dict[str, Any],
) -> None:
    results = {}
    for name, frame in theirs.items():
        try:
            pair = pair_of(original, cast_empty_columns(frame, source.frame))
            results[name] = asked.measure(pair, per_record=False)
        except (ValueError, TypeError) as error:
            raise ValueError(f"'{name}': {error}") from error
    show_warnings()
    notes = [f"{name}: {note}" for name, result in results.items() for note in result.notes]
    short = {PurePath(name).name: result for name, result in results.items()}
    named = short if len(short) == len(results) else results  # names alone, unless two are the same
    height = source.frame.height
    notes += report(given, lambda build: build.report_on_files(named, records=height, facts=asked.facts))
    terminal.show_results(results, given, notes=notes)


def sweep(data: Path, output: Path, given: dict[str, Any]) -> None:
    """Mask a file in many ways; leave tables, a picture and, on request, a report."""
    progress.show_progress(not given["quiet"])
    asked, plan, more = request.understood_sweep(given)
    sweep_output.check_folder(output, data)
    request.check_report(given["report"], [data], overwrite=given["overwrite"], new=output)
    source = source_of(data, asked, given)
    asked = asked.within(given, source)
    original = asked.prepared(source, "measured")
    show_warnings()
    place = output / sweep_output.PRIVATE
    try:
        found = sweeping.sweep(
            original,
            plan,
            **asked.how,
            **more,
            rules=asked.rules,
            folder=place,
            overwrite=given["overwrite"],
            name=data.stem,
        )
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(f"what is finished is kept in '{place}'; the same command goes on") from stop
    written = sweep_output.write(found, output, given["form"])
    if report(given, lambda build: build.report_on_sweep(found, name=data.name, facts=asked.facts)):
        written.append(given["report"])
    if not given["quiet"]:
        terminal.console().print(sweep_output.overview(found))
        for note in found.notes:
            terminal.say(f"note: {note}")
        terminal.say(f"wrote {', '.join(str(file) for file in written)}")


def recommend(data: Path, output: Path, given: dict[str, Any]) -> None:
    """Find the masking with the least loss within limits, mask, measure, write."""
    progress.show_progress(not given["quiet"])
    asked = request.understood(given | {"metrics": ()})
    how = request.understood_search(given)
    request.check_output(output, [data], overwrite=given["overwrite"])
    request.check_report(given["report"], [data], overwrite=given["overwrite"])
    source = source_of(data, asked, given)
    asked = asked.within(given, source)
    files.check_format(output, source.frame, source)
    original = asked.prepared(source, "masked")
    choice = bisection.recommend(original, **how, ties=asked.ties, missing=asked.missing, rng=asked.seed)
    show_warnings()
    choice.require_met()
    plan = choice.release_plan(per_record=given["report"] is not None)

    def page(build: Any, made: Release, pair: Pair) -> str:
        facts = asked.facts | request.roles_told(original.columns, source.frame.columns)
        return str(
            build.report_on_choice(
                choice,
                made.evaluation,
                name=data.name,
                draws=made.draws,
                pair=pair,
                facts=facts,
            )
        )

    made, notes = release(plan, source, original, asked, given | {"output": output}, page)
    tried = f"{choice.maskings} maskings were tried; the release took {wording.draws_text(made.draws)}."
    terminal.show_result(
        replace(made.evaluation, records=None),
        given,
        heads=[*choice.sentences, tried],
        notes=notes,
        more={"choice": choice.to_dict() | {"draws": made.draws}},
    )
