"""Write what a request asks for, one way for all: masked files with their record, reports and jobs."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sdckit.core import checks, randomness
from sdckit.core.checks import warn
from sdckit.core.roles import require_decided
from sdckit.core.text import plural, shortened
from sdckit.engines.files import read_folder
from sdckit.evaluation.measure import privacy_notes
from sdckit.io import atomic, crosswalk, files
from sdckit.metrics.doubts import unchanged_cells
from sdckit.record import publish as record
from sdckit.record.publish import Origin, ReleaseFile
from sdckit.record.replay import check_input
from sdckit.record.store import Store, digest_of_file, require_apart
from sdckit.report.signing import summary_of
from sdckit.request.checks import check_output
from sdckit.request.options import OPTIONS
from sdckit.request.results import Result, file_facts
from sdckit.request.toml import job_of_request, job_text, public_job_text, write_job
from sdckit.selection.release import make_release

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from sdckit.evaluation.result import Evaluation
    from sdckit.io.files import Source
    from sdckit.io.formats import Dialect
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.report.signing import Summary
    from sdckit.request.checks import Checked
    from sdckit.request.options import Request
    from sdckit.request.results import Listener
    from sdckit.selection.choice import Choice
    from sdckit.selection.release import Release, ReleasePlan

UNMEASURED = ("report", "private_report", "metrics", "missing", "as_json", "as_csv")  # need measures
ORDER = ("keep_order", "crosswalk", "numbered", "private")  # are about a file that is handed out
MANY = 10  # largest number of names that are listed in full


@dataclass
class Work:
    """A request at work: its checked options, the original file, and who is told what happens."""

    request: Request
    checked: Checked
    listener: Listener
    source: Source
    job: str = ""  # as reports show it

    @classmethod
    def of(cls, request: Request, checked: Checked, listener: Listener) -> Work:
        """Read the original file; raise ValueError if a report is asked for and it has too few records."""
        source = read_data(request.data, checked.dialect)
        if request.report or request.private_report:
            checks.require_reportable_size(source.frame.height)
        return cls(request, checked.with_columns_of(request, source.frame.columns), listener, source)

    def prepare(self) -> Original:
        """Return the original with its roles checked, for a file that is masked."""
        gone = {*self.checked.drop, *(self.checked.key if hands_out(self.request) else ())}
        columns = [name for name in self.source.frame.columns if name not in gone]
        files.check_format(self.request.output, self.source.frame.select(columns), self.source)
        original = self.checked.prepare(self.source, "masked")
        if hands_out(self.request):
            require_decided(original.roles.undecided)
        return original

    def keep_job(self) -> None:
        """Write the job if it is asked for, and keep its text for reports."""
        self.job = keep_job(self.request, self.source.frame.columns, self.listener)


def read_data(path: Path, dialect: Dialect) -> Source:
    """Return the table of a file, or of all Parquet files in a folder, in memory."""
    return read_folder(path, dialect) if path.is_dir() else files.read(path, dialect)


def hands_out(request: Request) -> bool:
    """Return True if the file that is written is to be handed out."""
    return request.release or request.command == "recommend"


def keep_job(request: Request, columns: Collection[str], listener: Listener) -> str:
    """Return a request as a report shows it; write it as a job if that is asked for.

    `columns` are those of the original file. Options that no job has are left out with a note.
    """
    shown, path = public_job_text(job_of_request(request, columns=columns)), request.save_job
    if path is not None:
        write_job(path, job_text(job_of_request(request, path.parent, columns)), overwrite=request.overwrite)
        listener.note(f"wrote {path}")
        for option in OPTIONS.values():
            if option.unjobbed and option.name != "save_job" and getattr(request, option.name):
                listener.note(f"{option.flag} is not part of the job: {option.unjobbed}")
    return shown


def check_job_target(request: Request) -> None:
    """Raise an error for a job file that could not be written, if one is to be saved."""
    if request.save_job:
        inputs = [request.data, *request.masked]
        check_output(request.save_job, inputs, overwrite=request.overwrite, suffixes=(".toml",))


def check_release(request: Request) -> None:
    """Raise an error for options on the order of a release that exclude each other or cannot be met."""
    path = request.crosswalk
    for option in (OPTIONS[name].flag for name in ORDER if getattr(request, name)):
        if not hands_out(request):
            raise ValueError(f"{option} is for a file that is handed out; add --release or drop {option}")
    if hands_out(request):  # an error, before any work, if the private record could not be written
        store = Store.at(request.private)
        require_apart(store, request.output, request.report)
        store.check()
    if path is None:
        return
    if request.keep_order:
        raise ValueError("--keep-order leaves nothing for --crosswalk to say; drop one of them")
    check_output(path, [request.data], overwrite=request.overwrite, suffixes=crosswalk.SUFFIXES)
    if path.resolve() == request.output.resolve():
        raise ValueError(f"'{path}' is the output, too; give the crosswalk another name")


def check_seed(request: Request) -> None:
    """Raise ValueError for the seed of a file that is handed out; warn of one in a working copy."""
    if request.seed is None:
        return
    if hands_out(request):
        fact = "--seed would let an intruder undo the release by trying seeds"
        raise ValueError(f"{fact}; drop it: the private record makes a release repeatable")
    warn(
        "the masking follows from --seed, which is found by trying: the file is not for publication; "
        "--release without --seed makes one that is"
    )


def check_reports(request: Request) -> None:
    """Raise an error for a report, to publish or private, that could not be written."""
    report, private, overwrite = request.report, request.private_report, request.overwrite
    for path in (path for path in (report, private) if path is not None):
        new = request.output if request.command == "sweep" else None  # a folder that need not exist yet
        place, free = path, overwrite
        if new is not None and not new.exists() and path.parent.resolve() == new.resolve():
            place, free = new.absolute().parent / path.name, True  # only its suffix can be checked
        inputs = [request.data, *request.masked]
        check_output(place, inputs, overwrite=free, suffixes=atomic.PAGE_SUFFIXES)
    if report is not None and private is not None and report.resolve() == private.resolve():
        raise ValueError(f"'{private}' is the report to publish, too; give the private one another name")


def check_unmeasured(request: Request) -> None:
    """Raise ValueError for options of `mask` that need measures, if it takes none."""
    if not request.no_measure:
        return
    if request.release:
        raise ValueError("--release is for a file that is handed out and must be measured; drop --no-measure")
    for option in (OPTIONS[name].flag for name in UNMEASURED if getattr(request, name)):
        raise ValueError(f"{option} is about measures, and --no-measure takes none; drop one of them")


def check_private_folder(request: Request) -> None:
    """Raise ValueError if a file to be handed out would lie in the folder of a search, which holds a seed."""
    folder = request.folder
    for path in (request.output, request.report):
        if folder is not None and path is not None and folder.resolve() in path.resolve().parents:
            raise ValueError(
                f"'{path}' would lie in '{folder}', which holds the seed; choose a --folder of its own"
            )


def columns_note(
    masked: Sequence[str],
    columns: Sequence[str],
    published: Sequence[str],
    *,
    idle: Collection[str] = (),
    numbered: Collection[str] = (),
    whole: bool = False,
) -> str:
    """Return a note on what happened to a table's columns; many masked ones are shortened unless `whole`.

    `published` are the columns that are left, `numbered` those of them that have fresh numbers, `idle` those
    that masking left as they were.
    """
    kept = [name for name in columns if name in published and name not in masked]
    lists = {
        "masked": [name for name in masked if name not in idle],
        "not changed by the method": [name for name in masked if name in idle],
        "not masked": [name for name in kept if name not in numbered],
        "numbered anew": [name for name in kept if name in numbered],
        "not published": [name for name in columns if name not in published],
    }
    said = []
    for what, found in lists.items():
        if found or what == "masked":
            short = what == "masked" and not whole and len(found) > MANY
            said.append(f"{what}: {shortened(found, MANY - 1) if short else ', '.join(found) or 'none'}")
    return "; ".join(said)


@dataclass(frozen=True)
class Measured:
    """A masked file that was measured, with what is needed to sign it."""

    pair: Pair
    evaluation: Evaluation
    file: str
    sha256: str
    original_sha256: str
    working_copy: bool = False

    def summary(self, *, private: bool) -> Summary:
        """Return what an office signs; a private one has exact statistics, and the hash of the original."""
        return summary_of(
            self.pair,
            self.evaluation,
            file=self.file,
            sha256=self.sha256,
            original_sha256=self.original_sha256 if private else None,
            working_copy=self.working_copy,
        )


def publish(work: Work, plan: ReleasePlan, original: Original, choice: Choice | None = None) -> Result:
    """Mask, write and measure a file, write its record and reports, and return what was measured.

    `choice` is what a search found, None where the user named the masking.
    """
    request, source = work.request, work.source
    file, notes, summary = _file(work, plan, original), list[str](), {}
    origin = _origin(work, plan)

    def add_notes_and_reports(made: Release[Any], digest: str, joint: list[str], drafts: ExitStack) -> None:
        """Collect notes on a release, `joint` ones with earlier releases, and its summary; draft reports."""
        assert made.made_from is not None  # noqa: S101 - it was just made
        pair = made.made_from.pair
        if origin is not None:
            work.listener.ready()  # warns of records released before: before the file is written
        notes.extend([*_release_notes(work, plan, made, pair), *joint, *_order_notes(plan, file)])
        notes.append(f"wrote {file.path}")
        told = replace(made.evaluation, notes=(*made.evaluation.notes, *joint))  # who signs must know
        found = Measured(pair, made.evaluation, file.path.name, digest, source.sha256, plan.in_place)

        def make_page(build: Any, one: Summary) -> Any:
            """Return the HTML report on the masked file, or on the choice of its masking."""
            about = {"pair": pair, "summary": one, "job": work.job}
            about |= {"facts": work.checked.facts(pair.columns)}
            if choice is None:
                return build.report_on_evaluation(told, name=file.path.name, **about)
            return build.report_on_choice(choice, told, name=request.data.name, draws=made.draws, **about)

        notes.extend(write_reports(request, found, make_page, drafts))
        if request.as_json:
            summary.update(found.summary(private=False).to_dict())

    write = partial(record.publish, file, origin=origin, report=add_notes_and_reports)
    made, one = make_release(plan, original, rng=request.seed, hand_out=write)
    if origin is not None:
        notes.append(f"recorded as release {one} in the private record '{origin.store.folder}'")
    if file.crosswalk is not None:
        fact = f"'{file.crosswalk}' says which original row each published row comes from"
        warn(f"{fact}; keep it secret, and never beside the release")
    work.listener.ready()
    return Result(
        request,
        about=file_facts(original.n, request.data, request.output),
        evaluations={str(request.output): replace(made.evaluation, records=None)},
        notes=notes,
        summary=summary,
        choice=choice,
        draws=made.draws,
    )


def write_unmeasured(work: Work, plan: ReleasePlan, original: Original) -> Result:
    """Mask and write a file without measuring it."""
    file = _file(work, plan, original)
    made = plan.mask(original, randomness.generator(work.request.seed))
    published = plan.publish(made, original)
    with file.draft(published):
        note = columns_note(original.columns, work.source.frame.columns, published.data.columns)
    work.listener.ready()
    unmeasured = "nothing was measured; sdckit evaluate measures the file"
    return Result(work.request, notes=[*made.notes, note, f"wrote {file.path}", unmeasured])


def _file(work: Work, plan: ReleasePlan, original: Original) -> ReleaseFile:
    """Return path and format of the file that is written."""
    return ReleaseFile(
        work.request.output,
        source=work.source,
        columns=original.columns,
        whole=original.columns if plan.decimals == 0 else (),
        dialect=work.checked.dialect,
        overwrite=work.request.overwrite,
        crosswalk=work.request.crosswalk,
        key=original.roles.key,
    )


def _origin(work: Work, plan: ReleasePlan) -> Origin | None:
    """Return where a file that is handed out comes from, for its record; None for a working copy."""
    if plan.in_place:
        return None
    source, store = work.source, Store.at(work.request.private)
    job = job_of_request(work.request, columns=source.frame.columns)
    return Origin(store, job.command, source.path.name, source.sha256, source.dialect, dict(job.content))


def _release_notes(work: Work, plan: ReleasePlan, made: Release[Any], pair: Pair) -> list[str]:
    """Return notes on masked and unmasked columns, unchanged cells, and losses that disclose records."""
    same, cells = unchanged_cells(pair)
    columns = f"{len(cells)} masked {plural(len(cells), 'column')}"
    return [
        columns_note(
            pair.columns,
            work.source.frame.columns,
            made.data.columns,
            idle=[name for name, s, n in zip(pair.columns, same, cells, strict=True) if s == n],
            numbered=() if plan.in_place else pair.original.roles.columns_with("unit"),
            whole=work.request.as_json,
        ),
        *(
            [f"{same.sum()} of {cells.sum()} cells in {columns} are equal to the original"]
            if made.disclosure.paired
            else []
        ),
        *privacy_notes(made.evaluation.table, per_record=False),  # losses of single records are not shown
    ]


def _order_notes(plan: ReleasePlan, file: ReleaseFile) -> list[str]:
    """Return a note on the order of the rows of a file that is handed out."""
    if plan.in_place:
        return []
    numbers = [] if plan.numbered is None else [f"the column {plan.numbered!r} numbers the records anew"]
    if plan.keep_order:
        fact = "the rows are in the order of the original, which the attacks use where it tells something"
        return [fact, *numbers]
    if file.crosswalk is None:
        return ["the rows are shuffled; the private record has their order", *numbers]
    return [f"the rows are shuffled; wrote their order to {file.crosswalk}", *numbers]


def write_report(
    path: Path | None,
    request: Request,
    make_page: Callable[[Any], Any],
    *,
    private: bool = False,
    drafts: ExitStack | None = None,
) -> list[str]:
    """Write an HTML report if one is asked for; return the lines to print about it.

    It gets its name at once, or with other `drafts`.
    """
    if path is None:
        return []
    from sdckit.report import build  # noqa: PLC0415 - slow to import, and only for reports

    with ExitStack() if drafts is None else nullcontext(drafts) as named:
        draft = named.enter_context(atomic.atomic(path, overwrite=request.overwrite, private=private))
        draft.write_text(str(make_page(build)), encoding="utf-8")
    return [f"wrote {path}"]


def write_reports(
    request: Request,
    found: Measured,
    make_page: Callable[[Any, Summary], Any],
    drafts: ExitStack | None = None,
) -> list[str]:
    """Write the report to publish and the private one, where they are asked for; return lines to print."""

    def page(build: Any, *, private: bool = False) -> Any:
        return make_page(build, found.summary(private=private))

    path = request.private_report
    lines = write_report(request.report, request, page, drafts=drafts)
    lines += write_report(path, request, partial(page, private=True), private=True, drafts=drafts)
    if path is not None:
        warn(f"'{path}' has exact statistics of the original; keep it secret, and never beside the release")
    return lines


def read_crosswalks(work: Work) -> tuple[list[NDArray[np.int64] | None], list[str]]:
    """Return, for each masked file, the original row of each of its rows, and notes on where that is from.

    Without given crosswalks, those of files that are in the private record are used; None for others.
    """
    request, source = work.request, work.source
    keys, n = source.frame.select(work.checked.key), source.frame.height
    if request.crosswalks:
        return [crosswalk.read(path, keys, n, work.checked.dialect) for path in request.crosswalks], []
    store = Store.at(request.private)
    known = bool(store.ids())
    orders: list[NDArray[np.int64] | None] = []
    notes = []
    for masked in request.masked:
        entry = store.find(digest_of_file(masked)) if known and not masked.is_dir() else None
        orders.append(None)
        if entry is None:
            continue
        try:
            check_input(entry, source.path, source)
        except ValueError:
            fact = f"'{masked}' is release {entry.id}, which was made from another file than '{source.path}'"
            notes.append(f"{fact}: its crosswalk is not used")
            continue
        orders[-1] = crosswalk.read(store.crosswalk(entry), keys, n)
        aligned = "its rows are aligned by the crosswalk in the private record"
        notes.append(f"'{masked}' is release {entry.id}: {aligned}")
    return orders, notes
