"""Run a request: mask, evaluate, sweep or recommend files, and return what was found; nothing is printed."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit import progress
from sdckit.core import registry
from sdckit.core.registry import check_parameters
from sdckit.core.text import plural
from sdckit.evaluation.measure import privacy_notes
from sdckit.evaluation.result import knowledge_of_releases
from sdckit.io import atomic, files
from sdckit.io.files import cast_empty_columns
from sdckit.metrics.pair import pair_of
from sdckit.record.ledger import TogetherMissed
from sdckit.report import charts
from sdckit.request import engines, limits, made_by_command, release
from sdckit.request.checks import (
    FORMATS,
    check,
    check_evaluate,
    check_output,
    decimals_of,
    limits_of_request,
    search_options,
    sweep_options,
    warnings_named_after,
    with_plan,
)
from sdckit.request.release import Measured, Work
from sdckit.request.results import Listener, Result, file_facts
from sdckit.selection.calibration import calibration_task
from sdckit.selection.limits import LimitsMissed
from sdckit.selection.release import ReleasePlan
from sdckit.selection.runner import PLAN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from sdckit.io.files import Source
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.request.options import Request
    from sdckit.selection.sweep_result import Sweep

    Aligned = dict[str, tuple[Source, NDArray[np.int64] | None]]  # masked files, the original row of each row

SEARCHING = 0.9  # share of the progress of `recommend` at which the release begins
PRIVATE = "private"
EXACT = "estimates.csv"  # in the private folder of a sweep
SILENT = Listener()


def run(request: Request, listener: Listener = SILENT) -> Result:
    """Do what a request asks for; raise an error, on one line, for what it must not ask.

    Parameters
    ----------
    request
        Made by the command line, from a job file (`request_of_job`) or by the page.
    listener
        Is told when the input has passed all checks, and what is to be said at once.

    Returns
    -------
    Result
        What was measured and written. Where limits are not met, `missed` is the error to raise, and no file
        was released.
    """
    return COMMANDS[request.command](request, listener)


def mask(request: Request, listener: Listener) -> Result:
    """Mask a file, and unless told otherwise measure what was written."""
    checked = check(request)
    method = registry.method_named(request.method)
    parameters = request.settings or {}
    check_parameters(method, parameters)
    registry.metrics_for_rows(checked.metrics, paired=method.keeps_pairing(method.defaults() | parameters))
    decimals = decimals_of(request)
    release.check_unmeasured(request)
    release.check_job_target(request)
    release.check_seed(request)
    where = engines.engine_for(request, listener)
    if where.engine != "memory":
        return engines.mask(where, request, checked, listener)
    check_output(request.output, [request.data], overwrite=request.overwrite)
    release.check_release(request)
    release.check_reports(request)
    work = Work.of(request, checked, listener)
    original = work.prepare()
    work.keep_job()
    plan = ReleasePlan(
        method=method.name,
        parameters=parameters,
        rules=checked.rules,
        decimals=decimals,
        groups=request.groups and request.groups.strip(),
        metrics=checked.metrics,
        ties=request.ties,
        missing=checked.missing,
        per_record=bool(request.report or request.private_report),
        keep_order=request.keep_order,
        numbered=request.numbered,
        in_place=not request.release,
        calibrate=request.calibrate or (),
    )
    write = release.write_unmeasured if request.no_measure else release.publish
    return write(work, plan, original)


def evaluate(request: Request, listener: Listener) -> Result:
    """Compare one masked file, or several, with the original."""
    checked = check(request)
    check_evaluate(request, paired=checked.paired)
    command = made_by_command.checked_command(request)
    limited = limits_of_request(request)
    checked = limits.with_limited_metrics(checked, limited)
    if request.crosswalks and len(request.crosswalks) != len(request.masked):
        named = f"{len(request.masked)} masked {plural(len(request.masked), 'file')}"
        fact = f"--crosswalk is given for {len(request.crosswalks)} of {named}"
        raise ValueError(f"{fact}; give one for each, in order")
    release.check_job_target(request)
    where = engines.engine_for(request, listener)
    if where.engine != "memory":
        return engines.evaluate(where, request, checked, limited, listener)
    if request.records:
        check_output(request.records, [request.data, *request.masked], overwrite=request.overwrite)
    release.check_reports(request)
    work = Work.of(request, checked, listener)
    sources = {str(path): release.read_data(path, checked.dialect) for path in request.masked}
    original = work.checked.prepare(work.source, "measured", announce=False)
    orders, notes = release.read_crosswalks(work)
    limits.warn_of_order(limited, work.checked, orders)
    aligned = dict(zip(sources, zip(sources.values(), orders, strict=True), strict=True))
    work.keep_job()
    with made_by_command.masking_by_command(command, work.source) as masking:
        work.checked = replace(work.checked, masking=masking)
        measure = _together if request.together else _several if len(aligned) > 1 else _one
        found = measure(work, original, aligned, limited, notes)
    about = file_facts(original.n, request.data, *request.masked)
    return limits.judged(replace(found, about=about), limited, work.checked)


def _one(
    work: Work, original: Original, aligned: Aligned, limited: dict[str, float], notes: list[str]
) -> Result:
    """Compare one masked file with the original; write records and reports if asked for."""
    request, checked = work.request, work.checked
    ((name, (masked, rows)),) = aligned.items()
    per_record = bool(request.records or request.report or request.private_report)
    with progress.track("measuring", 1.0) as report:
        report(0.0, 1.0)
        pair = _read_pair(work, original, masked, rows)
        result = checked.measure(pair, per_record=per_record)
        limits.require_aligned(pair, limited, checked, rows)
        work.listener.ready()
    shown = result if request.records else replace(result, records=None)
    notes = [*privacy_notes(shown.table, per_record=shown.records is not None), *notes]
    if request.records:
        files.write(
            request.records,
            checked.record_table(result, work.source.frame),
            dialect=checked.dialect,
            overwrite=request.overwrite,
            private=True,
        )
        notes.append(f"wrote {request.records}")
    path = Path(name)
    found = Measured(pair, result, path.name, masked.sha256, work.source.sha256)

    def make_page(build: Any, summary: Any) -> Any:
        """Return the HTML report on the masked file."""
        facts = checked.facts(pair.columns)
        return build.report_on_evaluation(
            result, name=path.name, pair=pair, facts=facts, summary=summary, job=work.job
        )

    notes += release.write_reports(request, found, make_page)
    summary = found.summary(private=request.private_output).to_dict() if request.as_json else {}
    return Result(request, evaluations={name: shown}, notes=notes, summary=summary)


def _read_pair(work: Work, original: Original, masked: Source, rows: Any) -> Pair:
    """Return the pair of the original and a masked file, aligned by the file's rows where they are known."""
    pair = pair_of(original, cast_empty_columns(masked.frame, work.source.frame), rows=rows)
    return replace(pair, marks=masked.missing_marks())


def _together(
    work: Work, original: Original, aligned: Aligned, limited: dict[str, float], notes: list[str]
) -> Result:
    """Measure the linkage of several releases together, for an intruder who can align them."""
    pairs = []
    with progress.track("measuring", 2.0) as report:
        for name, (masked, rows) in progress.each("reading", list(aligned.items())):
            with warnings_named_after(name):
                pairs.append(work.checked.checked_pair(_read_pair(work, original, masked, rows)))
        report(1.0)
        result = work.checked.measure_together(pairs)
        for pair, (_, rows) in zip(pairs, aligned.values(), strict=True):
            limits.require_aligned(pair, limited, work.checked, rows)
    work.listener.ready()
    named = [f"release {number}: {name}" for number, name in enumerate(aligned, 1)]
    return Result(work.request, evaluations={"together": result}, notes=[*named, *notes])


def _several(
    work: Work, original: Original, aligned: Aligned, limited: dict[str, float], notes: list[str]
) -> Result:
    """Compare several masked files with one original; write a report on them if asked for."""
    results = {}
    for name, (masked, rows) in progress.each("measuring", list(aligned.items())):
        with warnings_named_after(name):
            pair = _read_pair(work, original, masked, rows)
            results[name] = work.checked.measure(pair)
            limits.require_aligned(pair, limited, work.checked, rows)
    work.listener.ready()
    notes = [f"{name}: {note}" for name, result in results.items() for note in result.notes] + notes
    short = {PurePath(name).name: result for name, result in results.items()}
    named = short if len(short) == len(results) else results  # with folders if two files have the same name

    def make_page(build: Any) -> Any:
        """Return the HTML report on the files."""
        return build.report_on_files(
            named, records=work.source.frame.height, facts=work.checked.facts(), job=work.job
        )

    notes += release.write_report(work.request.report, work.request, make_page)
    return Result(work.request, evaluations=results, notes=notes)


def sweep(request: Request, listener: Listener) -> Result:
    """Mask a file with many settings; write tables, a chart and perhaps a report."""
    request, plan = with_plan(request)
    more = sweep_options(request)
    checked = check(request)
    folder = request.output
    _check_folder(folder, request.data)
    release.check_job_target(request)
    release.check_reports(request)
    work = Work.of(request, checked, listener)
    original = work.checked.prepare(work.source, "measured")
    work.keep_job()
    listener.ready()
    with resumable(folder / PRIVATE):
        found = work.checked.microdata(original, request.data.stem).sweep(
            plan,
            metrics=checked.metrics,
            rng=request.seed,
            **more,
            folder=folder / PRIVATE,
            overwrite=request.overwrite,
        )
    written = _write_sweep(found, folder, request.form)
    known = knowledge_of_releases(original)

    def make_page(build: Any) -> Any:
        """Return the HTML report on the sweep."""
        facts = work.checked.facts(original.columns)
        return build.report_on_sweep(
            found, name=request.data.name, facts=facts, knowledge=known, job=work.job
        )

    if release.write_report(request.report, request, make_page):
        written.append(Path(str(request.report)))
    wrote = f"wrote {', '.join(str(file) for file in written)}"
    return Result(request, sweep=found, knowledge=known, notes=[*found.notes, wrote])


def _check_folder(folder: Path, data: Path) -> None:
    """Raise an error unless the folder is new, empty or of an earlier sweep, and holds no input."""
    atomic.sweep_drafts(folder)
    begun = folder.is_dir() and {file.name for file in folder.iterdir()} == {PRIVATE}
    if not begun:  # else a sweep was killed before it wrote a result
        atomic.check_folder(folder, f"{PRIVATE}/{PLAN}")
    for file in (path for form in FORMATS for path in _sweep_files(folder, form)):
        if file.exists() and data.exists() and file.samefile(data):
            raise ValueError(f"'{file}' is the input, which is never changed; choose another folder with -o")


def _sweep_files(folder: Path, form: str) -> list[Path]:
    """Return the paths of table, summary and chart in a folder; `form` is the table's suffix."""
    return [folder / f"sweep.{form}", folder / "summary.csv", folder / "sweep.svg"]


def _write_sweep(found: Sweep, folder: Path, form: str) -> list[Path]:
    """Write table, summary and chart of a sweep, all or none; delete an earlier table in another format.

    Exact losses over declared estimates go to the private folder.
    """
    table, summary, picture = _sweep_files(folder, form)
    public, private = found.public(), folder / PRIVATE / EXACT
    exact = found.table.filter(pl.col("metric").is_in(list(registry.estimate_losses())))
    with ExitStack() as drafted:  # which are renamed when all of them are whole
        drafted.enter_context(files.write_draft(table, public.table, overwrite=True))
        drafted.enter_context(files.write_draft(summary, public.summary, overwrite=True))
        draft = drafted.enter_context(atomic.atomic(picture, overwrite=True))
        draft.write_text(charts.svg(public.plot()), encoding="utf-8")
        if exact.height:
            drafted.enter_context(files.write_draft(private, exact, overwrite=True, private=True))
    if not exact.height:
        private.unlink(missing_ok=True)
    for other in FORMATS:
        if other != form:
            (folder / f"sweep.{other}").unlink(missing_ok=True)
    return [table, summary, picture]


def recommend(request: Request, listener: Listener) -> Result:
    """Find the least loss within limits on risk, write the file and measure it."""
    release.check_seed(request)
    checked = check(request)
    options = search_options(request)
    check_output(request.output, [request.data], overwrite=request.overwrite)
    release.check_release(request)
    release.check_reports(request)
    release.check_private_folder(request)
    release.check_job_target(request)
    work = Work.of(request, checked, listener)
    original = work.prepare()
    if request.calibrate:
        calibration_task(request.calibrate, checked.rules, original)  # raises an error for unsafe totals
    work.keep_job()
    choice = None
    try:
        with progress.track("searching", 1.0) as report:
            report(0.0, SEARCHING)
            with resumable(request.folder):
                choice = work.checked.microdata(original).recommend(**options, folder=request.folder)
            listener.ready()
            choice.require_met()
            report(SEARCHING, 1.0 - SEARCHING)
            plan = choice.release_plan(
                per_record=bool(request.report or request.private_report),
                keep_order=request.keep_order,
                numbered=request.numbered,
                calibrate=request.calibrate or (),
            )
            return release.publish(work, plan, original, choice)
    except (LimitsMissed, TogetherMissed) as missed:
        return Result(request, about=file_facts(original.n, request.data), choice=choice, missed=missed)


COMMANDS: dict[str, Callable[[Request, Listener], Result]] = {
    "mask": mask,
    "evaluate": evaluate,
    "sweep": sweep,
    "recommend": recommend,
}


@contextmanager
def resumable(folder: Path | None) -> Iterator[None]:
    """Let Ctrl-C or a signal inside the `with` say that finished runs are kept in a folder, if any."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as stop:
        if folder is not None:
            stop.add_note(f"finished runs are in '{folder}'; the same command resumes")
        raise
