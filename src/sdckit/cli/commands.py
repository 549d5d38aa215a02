"""What the commands on files do, once their words are understood: mask, evaluate, sweep, recommend."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from sdckit import masking, progress
from sdckit.cli import request, sweep_output, terminal
from sdckit.core import checks, randomness, registry, settings
from sdckit.core.table import Table
from sdckit.io import files
from sdckit.metrics.notes import privacy_notes
from sdckit.metrics.pair import pair_of
from sdckit.selection import bisection, sweeping, wording

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import polars as pl

    from sdckit.cli.request import Request
    from sdckit.io.source import Source
    from sdckit.masking import Masking
    from sdckit.metrics.evaluation import Evaluation
    from sdckit.metrics.original import Original


def show_warnings() -> None:
    """From here on the input is known to be good: warnings need not be held back."""
    click.get_current_context().obj.release()


def source_of(data: Path, asked: Request, given: dict[str, Any]) -> Source:
    """The original; refused where it is too short for the report that is asked for."""
    source = files.read(data, asked.dialect)
    if given["report"]:
        checks.enough_to_report(source.frame.height)
    return source


def report(given: dict[str, Any], page: Callable[[Any], str]) -> list[str]:
    """Write a report where one is asked for, and say so; `page` makes it with the room that knows how."""
    if not given["report"]:
        return []
    from sdckit.report import build  # noqa: PLC0415 - slow to import, and only for reports

    build.write(given["report"], page(build), overwrite=given["overwrite"])
    return [f"wrote {given['report']}"]


class Writing:
    """A masked table on its way into a file: written, read back, measured, and only then named."""

    def __init__(self, source: Source, asked: Request, original: Original, output: Path, given: Any) -> None:
        self.source, self.asked, self.original, self.output = source, asked, original, output
        self.decimals = request.decimals(given)
        self.overwrite = given["overwrite"]
        self.per_record = given.get("report") is not None
        self.written: pl.DataFrame = source.frame

    def write(
        self,
        made: Masking,
        check: Callable[[Evaluation], None] | None = None,
        then: Callable[[Evaluation], None] | None = None,
    ) -> Evaluation:
        """Measure the file as written; it is not kept where the check refuses it, or what follows fails."""
        whole = self.original.columns if self.decimals == 0 else ()
        dialect = self.asked.dialect
        with files.drafted(
            self.output,
            made.data,
            source=self.source,
            whole=whole,
            dialect=dialect,
            overwrite=self.overwrite,
        ) as draft:
            written = files.read_draft(draft, self.output, dialect).frame
            self.written = request.like(written, self.source.frame)
            result = self.asked.measure_release(self.original, self.written, made, per_record=self.per_record)
            if check is not None:
                check(result)
            if then is not None:
                then(result)
        return result

    def notes(self, result: Evaluation, *, whole: bool) -> list[str]:
        """What was masked and what was not."""
        values = Table(self.written).floats(self.original.columns, self.asked.na)
        rows = [request.untouched(self.original, values)] if self.asked.paired else []
        return [
            request.masked_columns(self.original, values, self.source.frame.columns, whole=whole),
            *rows,
            *privacy_notes(result.table, per_record=False),  # losses of single records are not shown
            f"wrote {self.output}",
        ]


def mask(data: Path, output: Path, given: dict[str, Any]) -> None:
    """Mask a file, measure what was written, print it."""
    progress.show_progress(not given["quiet"])
    asked = request.understood(given)
    method = registry.method_named(given["method"])
    parameters = request.settings(given["settings"])
    settings.parameters_known(method, parameters)
    asked = replace(asked, paired=method.pairs(method.defaults() | parameters))
    registry.metrics_of_rows(asked.metrics, paired=asked.paired)
    request.decimals(given)
    request.check_output(output, [data], overwrite=given["overwrite"])
    request.check_report(given["report"], [data], overwrite=given["overwrite"])
    source = source_of(data, asked, given)
    asked = asked.within(given, source)
    files.check_fit(output, source.frame, source)
    writing = Writing(source, asked, asked.prepared(source), output, given)
    made = masking.perform(
        source.frame,
        method.name,
        asked.roles,
        rng=asked.seed,
        decimals=writing.decimals,
        rules=asked.rules,
        groups=given["groups"] and given["groups"].strip(),
        parameters=parameters,
    )
    if not made.paired:
        writing.source = files.for_new_rows(source, writing.original.columns)
    show_warnings()
    wrote: list[str] = []

    def page(build: Any, result: Evaluation) -> str:
        pair = pair_of(writing.original, writing.written)
        facts = asked.facts | request.roles_told(pair.columns, source.frame.columns)
        told = replace(result, notes=(*result.notes, *made.notes))
        return str(build.of_evaluation(told, name=output.name, pair=pair, facts=facts))

    def then(result: Evaluation) -> None:
        wrote.extend(report(given, lambda room: page(room, result)))

    result = writing.write(made, then=then)
    notes = [*made.notes, *writing.notes(result, whole=given["as_json"]), *wrote]
    terminal.show_result(replace(result, records=None), given, notes=notes)


def evaluate(original: Path, masked: Sequence[Path], given: dict[str, Any]) -> None:
    """Compare one masked file, or several, with their original."""
    progress.show_progress(not given["quiet"])
    asked = request.understood(given)
    request.check_evaluation(given, masked)
    if given["records"]:
        request.check_output(given["records"], [original, *masked], overwrite=given["overwrite"])
    request.check_report(given["report"], [original, *masked], overwrite=given["overwrite"])
    source = source_of(original, asked, given)
    theirs = {str(path): files.read(path, asked.dialect).frame for path in masked}
    asked = asked.within(given, source)
    asked.warn_of_text(source, "measured")
    if len(masked) > 1:
        _evaluate_several(source, theirs, asked, given)
    else:
        _evaluate_one(source, theirs.popitem(), asked, given)


def _evaluate_one(source: Source, file: tuple[str, pl.DataFrame], asked: Request, given: Any) -> None:
    ours, (name, theirs) = source.frame, file
    wanted = given["records"] is not None or given["report"] is not None
    result = asked.measure(ours, theirs, per_record=wanted)
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
        pair = pair_of(ours, request.like(theirs, ours), **asked.compared(ours))
        facts = asked.facts | request.roles_told(pair.columns, ours.columns)
        return str(build.of_evaluation(result, name=PurePath(name).name, pair=pair, facts=facts))

    notes += report(given, page)
    ranks = asked.ranks(ours, theirs) if given["ranks"] else None
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
    source: Source, theirs: dict[str, pl.DataFrame], asked: Request, given: dict[str, Any]
) -> None:
    results = {}
    for name, frame in theirs.items():
        try:
            results[name] = asked.measure(source.frame, frame, per_record=False)
        except (ValueError, TypeError) as error:
            raise ValueError(f"'{name}': {error}") from error
    show_warnings()
    notes = [f"{name}: {note}" for name, result in results.items() for note in result.notes]
    short = {PurePath(name).name: result for name, result in results.items()}
    named = short if len(short) == len(results) else results  # names alone, unless two are the same
    height = source.frame.height
    notes += report(given, lambda room: room.of_several(named, records=height, facts=asked.facts))
    terminal.show_results(results, given, notes=notes)


def sweep(data: Path, output: Path, given: dict[str, Any]) -> None:
    """Mask a file in many ways; leave tables, a picture and, on request, a report."""
    progress.show_progress(not given["quiet"])
    asked, plan, more = request.understood_sweep(given)
    sweep_output.check_folder(output, data)
    request.check_report(given["report"], [data], overwrite=given["overwrite"], new=output)
    source = source_of(data, asked, given)
    asked = asked.within(given, source)
    asked.warn_of_text(source, "measured")
    show_warnings()
    place = output / sweep_output.PRIVATE
    try:
        found = sweeping.sweep(
            source.frame,
            plan,
            **asked.how,
            **asked.roles,
            **more,
            rules=asked.rules,
            folder=place,
            overwrite=given["overwrite"],
            name=data.stem,
        )
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(f"what is finished is kept in '{place}'; the same command goes on") from stop
    written = sweep_output.write(found, output, given["form"])
    if report(given, lambda room: room.of_sweep(found, name=data.name, facts=asked.facts)):
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
    files.check_fit(output, source.frame, source)
    original = asked.prepared(source)
    choice = bisection.recommend(
        source.frame, **how, ties=asked.ties, missing=asked.missing, rng=asked.seed, **asked.roles
    )
    show_warnings()
    choice.require_met()
    asked = replace(asked, metrics=choice.measured)
    writing = Writing(source, asked, original, output, given)
    generator = randomness.generator(asked.seed)

    def page(build: Any, result: Evaluation, draws: int) -> str:
        facts = asked.facts | request.roles_told(original.columns, source.frame.columns)
        pair = pair_of(original, writing.written)
        return str(build.of_choice(choice, result, name=data.name, draws=draws, pair=pair, facts=facts))

    def draw(count: int) -> tuple[Evaluation, list[str]]:
        """The report is written before the masked file gets its name: where one fails, neither is there."""
        made = choice.mask(source.frame, asked.roles, generator, writing.decimals)
        notes = list(made.notes)

        def then(result: Evaluation) -> None:
            told = replace(result, notes=(*result.notes, *made.notes))
            notes.extend(report(given, lambda room: page(room, told, count)))

        return writing.write(made, choice.check, then), notes

    (result, notes), draws = choice.draw_until_safe(draw)
    tried = f"{choice.maskings} maskings were tried; the release took {wording.draws(draws)}."
    terminal.show_result(
        replace(result, records=None),
        given,
        heads=[*choice.sentences, tried],
        notes=[*writing.notes(result, whole=given["as_json"]), *notes],
        more={"choice": choice.to_dict() | {"draws": draws}},
    )
