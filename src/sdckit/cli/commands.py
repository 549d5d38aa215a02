"""Run the commands mask, evaluate, sweep and recommend on files, given their parsed options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from sdckit import progress
from sdckit.cli import (
    engine_commands,
    gate,
    json_output,
    made_by_command,
    parsing,
    release_output,
    request,
    terminal,
)
from sdckit.cli.describing import check_target, keep_job
from sdckit.cli.engine_commands import engine_for_evaluating, engine_for_masking, read_data
from sdckit.cli.release_output import Summaries, roles_facts, write_release, write_report, write_reports
from sdckit.cli.request import PRIVATE, check_folder, overview_table, write_files
from sdckit.cli.terminal import print_held_warnings, warnings_named_after
from sdckit.core import checks, registry
from sdckit.core.registry import check_parameters
from sdckit.core.roles import require_decided
from sdckit.io import files
from sdckit.io.files import cast_empty_columns
from sdckit.metrics.evaluation import privacy_notes
from sdckit.metrics.evaluation_result import knowledge_of_releases
from sdckit.metrics.pair import pair_of
from sdckit.selection.calibration import calibration_task
from sdckit.selection.points import draws_text

SEARCHING = 0.9  # share of the progress of `recommend` at which the release begins

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from sdckit.cli.request import CheckedOptions
    from sdckit.io.files import Source
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.selection.choice import Choice
    from sdckit.selection.release import Release, Summary

    AlignedFile = tuple[Source, NDArray[np.int64] | None]  # and the original row of each of its rows


def read_original(data: Path, checked: CheckedOptions, given: dict[str, Any]) -> Source:
    """Read the original file; raise ValueError if a report is asked for and it has too few records."""
    source = read_data(data, checked.dialect)
    if given["report"] or given.get("private_report"):
        checks.require_reportable_size(source.frame.height)
    return source


def mask(data: Path, output: Path, given: dict[str, Any]) -> None:
    """Run `sdckit mask`: mask a file, and unless told otherwise measure what was written; print measures."""
    progress.show_progress(not given["quiet"])
    checked = request.check_options(given)
    method = registry.method_named(given["method"])
    parameters = parsing.parse_settings(given["settings"])
    check_parameters(method, parameters)
    registry.metrics_for_rows(checked.metrics, paired=method.keeps_pairing(method.defaults() | parameters))
    decimals = request.check_decimals(given)
    release_output.check_unmeasured(given)
    check_target(given, [data])
    release_output.check_seed(given, handed_out=given["release"])
    where = engine_for_masking(given, data, output)
    if where.engine != "memory":
        engine_commands.mask(where, data, output, checked, given)
        return
    handed_out = given["release"]
    request.check_output(output, [data], overwrite=given["overwrite"])
    release_output.check_options(given, output, data, handed_out=handed_out)
    release_output.check_reports(given, [data])
    source = read_original(data, checked, given)
    checked = checked.with_columns_of(given, source.frame.columns)
    files.check_format(
        output, release_output.published_columns(source, checked, handed_out=handed_out), source
    )
    original = checked.prepare(source, "masked")
    if handed_out:
        require_decided(original.roles.undecided)
    job = keep_job(given, source.frame.columns)
    plan = release_output.mask_plan(method.name, parameters, decimals, checked, given)
    if given["no_measure"]:
        notes = release_output.write_unmeasured(plan, source, original, checked, given | {"output": output})
        print_held_warnings()
        terminal.print_notes(notes, given)
        return

    def make_page(build: Any, made: Release[Any], pair: Pair, summary: Summary) -> str:
        """Return the HTML report on the masked file."""
        facts = checked.facts | roles_facts(pair.columns)
        return str(
            build.report_on_evaluation(
                made.evaluation, name=output.name, pair=pair, facts=facts, summary=summary, job=job
            )
        )

    paths = {"data": data, "output": output}
    made, notes, more = write_release(plan, source, original, checked, given | paths, make_page)
    print_held_warnings()
    about = json_output.file_facts(original.n, data, output)
    terminal.show_result(replace(made.evaluation, records=None), given, notes=notes, more=more, about=about)


def evaluate(original: Path, masked: Sequence[Path], given: dict[str, Any]) -> None:
    """Run `sdckit evaluate`: compare one masked file, or several, with the original; print the measures."""
    progress.show_progress(not given["quiet"])
    checked = request.check_options(given)
    request.check_evaluate_options(given, masked, paired=checked.paired)
    command = made_by_command.checked_command(given)
    limits = gate.limits_from_options(given)
    checked = gate.with_limited_metrics(checked, limits)
    release_output.check_crosswalks(given["crosswalks"], masked)
    check_target(given, [original, *masked])
    where = engine_for_evaluating(given, original, masked)
    if where.engine != "memory":
        engine_commands.evaluate(where, original, masked, checked, given, limits)
        return
    if given["records"]:
        request.check_output(given["records"], [original, *masked], overwrite=given["overwrite"])
    release_output.check_reports(given, [original, *masked])
    source = read_original(original, checked, given)
    masked_files = {str(path): read_data(path, checked.dialect) for path in masked}
    checked = checked.with_columns_of(given, source.frame.columns)
    prepared = checked.prepare(source, "measured", announce=False)
    orders, notes = release_output.read_crosswalks(given["crosswalks"], masked, source, checked, given)
    gate.warn_of_order(limits, checked, orders)
    given |= {"notes": notes}
    aligned = dict(zip(masked_files, zip(masked_files.values(), orders, strict=True), strict=True))
    given |= {"limits": limits, "about": json_output.file_facts(prepared.n, original, *masked)}
    given["job"] = keep_job(given, source.frame.columns)
    with made_by_command.masking_by_command(command, source) as masking:
        checked = replace(checked, masking=masking)
        if given["together"]:
            _evaluate_together(source, prepared, aligned, checked, given)
        elif len(masked) > 1:
            _evaluate_several(source, prepared, aligned, checked, given)
        else:
            _evaluate_one(source, prepared, aligned.popitem(), checked, given)


def _evaluate_one(
    source: Source, original: Original, file: tuple[str, AlignedFile], checked: CheckedOptions, given: Any
) -> None:
    """Compare one masked file with the original; print measures, write records and report if asked for."""
    ours, (name, (masked, rows)) = source.frame, file
    per_record = given["records"] is not None or release_output.reported(given)
    with progress.track("measuring", 1.0) as report:
        report(0.0, 1.0)
        pair = _read_pair(source, original, (masked, rows))
        result = checked.measure(pair, per_record=per_record)
        gate.require_aligned(pair, given["limits"], checked, rows)
        print_held_warnings()
    shown = result if given["records"] else replace(result, records=None)
    notes = [*privacy_notes(shown.table, per_record=shown.records is not None), *given["notes"]]
    if given["records"]:
        files.write(
            given["records"],
            checked.record_table(result, ours),
            dialect=checked.dialect,
            overwrite=given["overwrite"],
            private=True,
        )
        notes.append(f"wrote {given['records']}")

    path = Path(name)
    summaries = Summaries(pair, result, path.name, masked.sha256, source.sha256)

    def make_page(build: Any, summary: Summary) -> str:
        """Return the HTML report on the masked file."""
        facts = checked.facts | roles_facts(pair.columns)
        return str(
            build.report_on_evaluation(
                result, name=path.name, pair=pair, facts=facts, summary=summary, job=given["job"]
            )
        )

    notes += write_reports(given, summaries, make_page)
    extra = terminal.detail_tables(result, given)
    verdicts = gate.verdicts_on(result, given["limits"], checked)
    terminal.show_result(
        shown,
        given,
        extra=extra,
        notes=notes,
        more=summaries.json(given),
        about=given["about"],
        verdicts=verdicts,
    )
    gate.require_met(verdicts)


def _read_pair(source: Source, original: Original, file: AlignedFile) -> Pair:
    """Return the pair of the original and a masked file, aligned by the file's rows where they are known."""
    masked, rows = file
    pair = pair_of(original, cast_empty_columns(masked.frame, source.frame), rows=rows)
    return replace(pair, marks=masked.missing_marks())


def _evaluate_together(
    source: Source,
    original: Original,
    masked_files: dict[str, AlignedFile],
    checked: CheckedOptions,
    given: dict[str, Any],
) -> None:
    """Print the linkage of several releases together, for an intruder who can align them."""
    pairs = []
    with progress.track("measuring", 2.0) as report:
        for name, file in progress.each("reading", list(masked_files.items())):
            with warnings_named_after(name):
                pairs.append(checked.checked_pair(_read_pair(source, original, file)))
        report(1.0)
        result = checked.measure_together(pairs)
        for pair, (_, rows) in zip(pairs, masked_files.values(), strict=True):
            gate.require_aligned(pair, given["limits"], checked, rows)
    print_held_warnings()
    notes = [f"release {number}: {name}" for number, name in enumerate(masked_files, 1)] + given["notes"]
    verdicts = gate.verdicts_on(result, given["limits"], checked)
    terminal.show_result(result, given, notes=notes, about=given["about"], verdicts=verdicts)
    gate.require_met(verdicts)


def _evaluate_several(
    source: Source,
    original: Original,
    masked_files: dict[str, AlignedFile],
    checked: CheckedOptions,
    given: dict[str, Any],
) -> None:
    """Compare several masked files with one original; print a column of measures for each file."""
    results = {}
    for name, file in progress.each("measuring", list(masked_files.items())):
        with warnings_named_after(name):
            pair = _read_pair(source, original, file)
            results[name] = checked.measure(pair)
            gate.require_aligned(pair, given["limits"], checked, file[1])
    print_held_warnings()
    notes = [f"{name}: {note}" for name, result in results.items() for note in result.notes]
    notes += given["notes"]
    short = {PurePath(name).name: result for name, result in results.items()}
    named = short if len(short) == len(results) else results  # with folders if two files have the same name
    height = source.frame.height
    notes += write_report(
        given,
        lambda build: build.report_on_files(named, records=height, facts=checked.facts, job=given["job"]),
    )
    verdicts = gate.verdicts_on_files(results, given["limits"], checked)
    terminal.show_results(results, given, notes=notes, about=given["about"], verdicts=verdicts)
    gate.require_met(verdicts)


def sweep(data: Path, output: Path, given: dict[str, Any]) -> None:
    """Run `sdckit sweep`: mask a file with many settings; write tables, a chart and perhaps a report."""
    progress.show_progress(not given["quiet"])
    checked, plan, more = request.check_sweep_options(given)
    check_folder(output, data)
    check_target(given, [data])
    request.check_report(given["report"], [data], overwrite=given["overwrite"], new=output)
    source = read_original(data, checked, given)
    checked = checked.with_columns_of(given, source.frame.columns)
    original = checked.prepare(source, "measured")
    job = keep_job(given, source.frame.columns)
    print_held_warnings()
    place = output / PRIVATE
    with terminal.resumable(place):
        found = checked.microdata(original, data.stem).sweep(
            plan,
            metrics=checked.metrics,
            rng=checked.seed,
            **more,
            folder=place,
            overwrite=given["overwrite"],
        )
    written = write_files(found, output, given["form"])
    known = knowledge_of_releases(original)

    def make_page(build: Any) -> str:
        """Return the HTML report on the sweep."""
        facts = checked.facts | roles_facts(original.columns)
        return str(build.report_on_sweep(found, name=data.name, facts=facts, knowledge=known, job=job))

    if write_report(given, make_page):
        written.append(given["report"])
    if not given["quiet"]:
        for line in terminal.knowledge_lines(known):
            terminal.print_note(line)
        terminal.print_tables([overview_table(found)])
    terminal.print_notes(found.notes, given)
    if not given["quiet"]:
        terminal.print_note(f"wrote {', '.join(str(file) for file in written)}")


def recommend(data: Path, output: Path, given: dict[str, Any]) -> None:
    """Run `sdckit recommend`: find the least loss within limits on risk, write the file, print measures."""
    progress.show_progress(not given["quiet"])
    release_output.check_seed(given, handed_out=True)
    checked = request.check_options(given | {"metrics": ()}, "penalise")
    search_options = request.check_search_options(given)
    search_options.pop("rules")  # they are the data's
    request.check_output(output, [data], overwrite=given["overwrite"])
    release_output.check_options(given, output, data, handed_out=True)
    release_output.check_reports(given, [data])
    release_output.check_private_folder(given["folder"], output, given["report"])
    check_target(given, [data])
    source = read_original(data, checked, given)
    checked = checked.with_columns_of(given, source.frame.columns)
    files.check_format(output, release_output.published_columns(source, checked, handed_out=True), source)
    original = checked.prepare(source, "masked")
    require_decided(original.roles.undecided)
    if given["calibrate"]:
        calibration_task(given["calibrate"], checked.rules, original)  # raises an error for unsafe totals
    job = keep_job(given, source.frame.columns)

    def make_page(build: Any, made: Release[Any], pair: Pair, summary: Summary) -> str:
        """Return the HTML report on the recommended release."""
        facts = checked.facts | roles_facts(original.columns)
        return str(
            build.report_on_choice(
                choice,
                made.evaluation,
                name=data.name,
                draws=made.draws,
                pair=pair,
                facts=facts,
                summary=summary,
                job=job,
            )
        )

    about = json_output.file_facts(original.n, data)
    with gate.misses_printed(given, about) as choices, progress.track("searching", 1.0) as report:
        report(0.0, SEARCHING)
        with terminal.resumable(given["folder"]):
            choice = checked.microdata(original).recommend(**search_options, folder=given["folder"])
        choices.append(choice)
        print_held_warnings()
        choice.require_met()
        report(SEARCHING, 1.0 - SEARCHING)
        plan = choice.release_plan(
            per_record=release_output.reported(given),
            keep_order=given["keep_order"],
            numbered=given["numbered"],
            calibrate=given["calibrate"],
        )
        paths = {"data": data, "output": output}
        made = write_release(plan, source, original, checked, given | paths, make_page)
    _show_recommended(choice, made, given, about | {"masked": [output.name]})


def _show_recommended(
    choice: Choice, written: release_output.Written, given: dict[str, Any], about: Mapping[str, Any]
) -> None:
    """Print a recommended release: why it was chosen, and what was measured on the file."""
    made, notes, more = written
    tried = f"{choice.maskings} maskings were measured; the release took {draws_text(made.draws)}."
    terminal.show_result(
        replace(made.evaluation, records=None),
        given,
        heads=[*choice.sentences, tried],
        notes=notes,
        more=more | {"choice": choice.public(made.evaluation).to_dict() | {"draws": made.draws}},
        about=about,
    )
