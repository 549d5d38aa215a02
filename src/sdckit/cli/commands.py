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

    from sdckit.cli.request import CheckedOptions
    from sdckit.io.source import Source
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.selection.release import Release


def print_held_warnings() -> None:
    """Print all warnings held back so far, and let later ones be printed at once."""
    click.get_current_context().obj.show()


def read_original(data: Path, checked: CheckedOptions, given: dict[str, Any]) -> Source:
    """Read the original file; raise ValueError if a report is asked for and it has too few records."""
    source = files.read(data, checked.dialect)
    if given["report"]:
        checks.require_reportable_size(source.frame.height)
    return source


def write_report(given: dict[str, Any], make_page: Callable[[Any], str]) -> list[str]:
    """Write the HTML report if one is asked for; return the lines to print about it."""
    if not given["report"]:
        return []
    from sdckit.report import build  # noqa: PLC0415 - slow to import, and only for reports

    build.write_page(given["report"], make_page(build), overwrite=given["overwrite"])
    return [f"wrote {given['report']}"]


def write_release(
    plan: ReleasePlan,
    source: Source,
    original: Original,
    checked: CheckedOptions,
    given: dict[str, Any],
    make_page: Callable[[Any, Release[Any], Pair], str],
) -> tuple[Release[Any], list[str]]:
    """Mask, write and measure a file, and write its report; return the release and the notes to print."""
    file = ReleaseFile(
        given["output"],
        source=source,
        columns=original.columns,
        whole=original.columns if plan.decimals == 0 else (),
        dialect=checked.dialect,
        overwrite=given["overwrite"],
    )
    notes: list[str] = []

    def add_notes_and_report(made: Release[Any], pair: Pair) -> None:
        """Collect the notes on a release, and write its report if one is asked for."""
        notes.extend([*release_notes(made, pair, source, given), f"wrote {file.path}"])
        notes.extend(write_report(given, lambda build: make_page(build, made, pair)))

    made = make_release(plan, original, rng=checked.seed, store=file.store, report=add_notes_and_report)
    return made, notes


def release_notes(made: Release[Any], pair: Pair, source: Source, given: dict[str, Any]) -> list[str]:
    """Return notes on masked and unmasked columns, unchanged cells, and losses that disclose records."""
    rows = [request.unchanged_cells_note(pair)] if made.disclosure.paired else []
    return [
        request.columns_note(pair, source.frame.columns, whole=given["as_json"]),
        *rows,
        *privacy_notes(made.evaluation.table, per_record=False),  # losses of single records are not shown
    ]


def mask(data: Path, output: Path, given: dict[str, Any]) -> None:
    """Run `sdckit mask`: mask a file, measure the file that was written, and print the measures."""
    progress.show_progress(not given["quiet"])
    checked = request.check_options(given)
    method = registry.method_named(given["method"])
    parameters = request.parse_settings(given["settings"])
    settings.check_parameters(method, parameters)
    registry.metrics_for_rows(checked.metrics, paired=method.keeps_pairing(method.defaults() | parameters))
    decimals = request.check_decimals(given)
    request.check_output(output, [data], overwrite=given["overwrite"])
    request.check_report(given["report"], [data], overwrite=given["overwrite"])
    source = read_original(data, checked, given)
    checked = checked.with_columns_of(given, source)
    files.check_format(output, source.frame, source)
    original = checked.prepare(source, "masked")
    plan = ReleasePlan(
        method=method.name,
        parameters=parameters,
        rules=checked.rules,
        decimals=decimals,
        groups=given["groups"] and given["groups"].strip(),
        metrics=checked.metrics,
        ties=checked.ties,
        missing=checked.missing,
        per_record=given["report"] is not None,
    )

    def make_page(build: Any, made: Release[Any], pair: Pair) -> str:
        """Return the HTML report on the masked file."""
        facts = checked.facts | request.roles_facts(pair.columns, source.frame.columns)
        return str(build.report_on_evaluation(made.evaluation, name=output.name, pair=pair, facts=facts))

    made, notes = write_release(plan, source, original, checked, given | {"output": output}, make_page)
    print_held_warnings()
    terminal.show_result(replace(made.evaluation, records=None), given, notes=notes)


def evaluate(original: Path, masked: Sequence[Path], given: dict[str, Any]) -> None:
    """Run `sdckit evaluate`: compare one masked file, or several, with the original; print the measures."""
    progress.show_progress(not given["quiet"])
    checked = request.check_options(given)
    request.check_evaluate_options(given, masked, paired=checked.paired)
    if given["records"]:
        request.check_output(given["records"], [original, *masked], overwrite=given["overwrite"])
    request.check_report(given["report"], [original, *masked], overwrite=given["overwrite"])
    source = read_original(original, checked, given)
    masked_frames = {str(path): files.read(path, checked.dialect).frame for path in masked}
    checked = checked.with_columns_of(given, source)
    prepared = checked.prepare(source, "measured")
    if len(masked) > 1:
        _evaluate_several(source, prepared, masked_frames, checked, given)
    else:
        _evaluate_one(source, prepared, masked_frames.popitem(), checked, given)


def _evaluate_one(
    source: Source, original: Original, file: tuple[str, pl.DataFrame], checked: CheckedOptions, given: Any
) -> None:
    """Compare one masked file with the original; print measures, write records and report if asked for."""
    ours, (name, masked_frame) = source.frame, file
    per_record = given["records"] is not None or given["report"] is not None
    pair = pair_of(original, cast_empty_columns(masked_frame, ours))
    result = checked.measure(pair, per_record=per_record)
    print_held_warnings()
    shown = result if given["records"] else replace(result, records=None)
    notes = privacy_notes(shown.table, per_record=shown.records is not None)
    if given["ranks"] and checked.weights:
        notes.append("the tables of ranks do not use the weights")
    if given["records"]:
        files.write(
            given["records"],
            checked.record_table(result, ours),
            dialect=checked.dialect,
            overwrite=given["overwrite"],
        )
        notes.append(f"wrote {given['records']}")

    def make_page(build: Any) -> str:
        """Return the HTML report on the masked file."""
        facts = checked.facts | request.roles_facts(pair.columns, ours.columns)
        return str(build.report_on_evaluation(result, name=PurePath(name).name, pair=pair, facts=facts))

    notes += write_report(given, make_page)
    ranks = rank_table_of_pair(pair) if given["ranks"] else None
    extra = []
    if given["variables"]:
        extra += terminal.tables_by(result, "variable")
    if given["by"]:
        extra += terminal.tables_by(result, "stratum")
    if ranks is not None:
        extra += terminal.rank_tables(ranks)
    more = {} if ranks is None else {"ranks": ranks.rows(named=True)}
    terminal.show_result(shown, given, extra=extra, notes=notes, more=more)


def _evaluate_several(
    source: Source,
    original: Original,
    masked_frames: dict[str, pl.DataFrame],
    checked: CheckedOptions,
    given: dict[str, Any],
) -> None:
    """Compare several masked files with one original; print a column of measures for each file."""
    results = {}
    for name, frame in masked_frames.items():
        try:
            pair = pair_of(original, cast_empty_columns(frame, source.frame))
            results[name] = checked.measure(pair, per_record=False)
        except (ValueError, TypeError) as error:
            raise ValueError(f"'{name}': {error}") from error
    print_held_warnings()
    notes = [f"{name}: {note}" for name, result in results.items() for note in result.notes]
    short = {PurePath(name).name: result for name, result in results.items()}
    named = short if len(short) == len(results) else results  # with folders if two files have the same name
    height = source.frame.height
    notes += write_report(
        given, lambda build: build.report_on_files(named, records=height, facts=checked.facts)
    )
    terminal.show_results(results, given, notes=notes)


def sweep(data: Path, output: Path, given: dict[str, Any]) -> None:
    """Run `sdckit sweep`: mask a file with many settings; write tables, a chart and perhaps a report."""
    progress.show_progress(not given["quiet"])
    checked, plan, more = request.check_sweep_options(given)
    sweep_output.check_folder(output, data)
    request.check_report(given["report"], [data], overwrite=given["overwrite"], new=output)
    source = read_original(data, checked, given)
    checked = checked.with_columns_of(given, source)
    original = checked.prepare(source, "measured")
    print_held_warnings()
    place = output / sweep_output.PRIVATE
    try:
        found = sweeping.sweep(
            original,
            plan,
            **checked.measuring_options,
            **more,
            rules=checked.rules,
            folder=place,
            overwrite=given["overwrite"],
            name=data.stem,
        )
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(f"finished runs are in '{place}'; the same command resumes") from stop
    written = sweep_output.write_files(found, output, given["form"])
    if write_report(given, lambda build: build.report_on_sweep(found, name=data.name, facts=checked.facts)):
        written.append(given["report"])
    if not given["quiet"]:
        terminal.console().print(sweep_output.overview_table(found))
        for note in found.notes:
            terminal.print_line(f"note: {note}")
        terminal.print_line(f"wrote {', '.join(str(file) for file in written)}")


def recommend(data: Path, output: Path, given: dict[str, Any]) -> None:
    """Run `sdckit recommend`: find the least loss within limits on risk, write the file, print measures."""
    progress.show_progress(not given["quiet"])
    checked = request.check_options(given | {"metrics": ()}, "penalise")
    search_options = request.check_search_options(given)
    request.check_output(output, [data], overwrite=given["overwrite"])
    request.check_report(given["report"], [data], overwrite=given["overwrite"])
    source = read_original(data, checked, given)
    checked = checked.with_columns_of(given, source)
    files.check_format(output, source.frame, source)
    original = checked.prepare(source, "masked")
    choice = bisection.recommend(
        original, **search_options, ties=checked.ties, missing=checked.missing, rng=checked.seed
    )
    print_held_warnings()
    choice.require_met()
    plan = choice.release_plan(per_record=given["report"] is not None)

    def make_page(build: Any, made: Release[Any], pair: Pair) -> str:
        """Return the HTML report on the recommended release."""
        facts = checked.facts | request.roles_facts(original.columns, source.frame.columns)
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

    made, notes = write_release(plan, source, original, checked, given | {"output": output}, make_page)
    tried = f"{choice.maskings} maskings were measured; the release took {wording.draws_text(made.draws)}."
    terminal.show_result(
        replace(made.evaluation, records=None),
        given,
        heads=[*choice.sentences, tried],
        notes=notes,
        more={"choice": choice.to_dict() | {"draws": made.draws}},
    )
