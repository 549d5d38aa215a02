"""Files and words of releases and sweeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sdckit.cli import request, terminal
from sdckit.cli.request import job_of_options
from sdckit.cli.terminal import print_held_warnings
from sdckit.core import randomness
from sdckit.core.checks import plural, warn
from sdckit.io import crosswalk
from sdckit.metrics.doubts import unchanged_cells
from sdckit.metrics.evaluation import privacy_notes
from sdckit.record.publish import Origin, ReleaseFile, publish
from sdckit.record.replay import check_input
from sdckit.record.store import Store, digest_of_file, require_apart
from sdckit.selection.release import ReleasePlan, make_release, summary_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from sdckit.cli.request import CheckedOptions
    from sdckit.io.files import Source
    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.selection.release import Release, Summary


def check_record(given: dict[str, Any], *published: Path | None) -> None:
    """Raise an error, before any work, if the private record could not be written; create its folder."""
    store = Store.at(given["private"])
    require_apart(store, *published)
    store.check()


def origin_of(plan: ReleasePlan, source: Source, given: dict[str, Any]) -> Origin | None:
    """Return where the file that a command hands out comes from, for its record; None for a working copy."""
    if plan.in_place:
        return None
    context = click.get_current_context()
    job = job_of_options(context.command, context.params, columns=source.frame.columns)
    store, content = Store.at(given["private"]), dict(job.content)
    return Origin(store, job.command, source.path.name, source.sha256, source.dialect, content)


class Found(NamedTuple):
    """The crosswalk of a masked file in the private record, None if there is none, and a note on it."""

    crosswalk: Path | None = None
    note: str | None = None


def find_crosswalks(data: Path, source: Source, masked: Sequence[Path], given: dict[str, Any]) -> list[Found]:
    """Return, for each masked file, its crosswalk in the private record, found by the file's digest."""
    store = Store.at(given["private"])
    if not store.ids():
        return [Found()] * len(masked)
    return [_find_crosswalk(store, data, source, one) for one in masked]


def _find_crosswalk(store: Store, data: Path, source: Source, masked: Path) -> Found:
    """Return the crosswalk of one masked file, if its record is of this original."""
    entry = None if masked.is_dir() else store.find(digest_of_file(masked))
    if entry is None:
        return Found()
    try:
        check_input(entry, data, source)
    except ValueError:
        fact = f"'{masked}' is release {entry.id}, which was made from another file than '{data}'"
        return Found(None, f"{fact}: its crosswalk is not used")
    note = f"'{masked}' is release {entry.id}: its rows are aligned by the crosswalk in the private record"
    return Found(store.crosswalk(entry), note)


def idle_columns(pair: Pair) -> list[str]:
    """Return the names of the masked columns in which every cell is equal to the original."""
    same, cells = unchanged_cells(pair)
    return [name for name, s, n in zip(pair.columns, same, cells, strict=True) if s == n]


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
    return "; ".join(
        f"{what}: {terminal.join_names(found, whole=whole or what != 'masked')}"
        for what, found in lists.items()
        if found or what == "masked"
    )


def unchanged_cells_note(pair: Pair) -> str:
    """Return a note on how many cells of the masked columns are equal to the original."""
    same, cells = unchanged_cells(pair)
    columns = f"{len(cells)} masked {plural(len(cells), 'column')}"
    return f"{same.sum()} of {cells.sum()} cells in {columns} are equal to the original"


def roles_facts(masked: Iterable[str]) -> dict[str, str]:
    """Return, for a report, the names of the masked variables; the others stand beside its headline."""
    return {"variables": ", ".join(masked)}


if TYPE_CHECKING:
    MakePage = Callable[[Any, Release[Any], Pair, Summary], str]  # the first is the module report.build

UNMEASURED = (
    "report",
    "private_report",
    "metrics",
    "missing",
    "as_json",
    "as_csv",
)  # options that need measures


def check_options(given: dict[str, Any], output: Path, data: Path, *, handed_out: bool) -> None:
    """Raise an error for options on the order of a release that exclude each other or cannot be met."""
    path = given["crosswalk"]
    for option in ("--keep-order", "--crosswalk", "--numbered", "--private"):
        if given[option[2:].replace("-", "_")] and not handed_out:
            raise ValueError(f"{option} is for a file that is handed out; add --release or drop {option}")
    if handed_out:
        check_record(given, output, given["report"])
    if path is None:
        return
    if given["keep_order"]:
        raise ValueError("--keep-order leaves nothing for --crosswalk to say; drop one of them")
    request.check_output(path, [data], overwrite=given["overwrite"], suffixes=crosswalk.SUFFIXES)
    if path.resolve() == output.resolve():
        raise ValueError(f"'{path}' is the output, too; give the crosswalk another name")


def check_seed(given: dict[str, Any], *, handed_out: bool) -> None:
    """Raise ValueError for the seed of a file that is handed out; warn of one in a working copy."""
    if given["seed"] is None:
        return
    if handed_out:
        fact = "--seed would let an intruder undo the release by trying seeds"
        raise ValueError(f"{fact}; drop it: the private record makes a release repeatable")
    warn(
        "the masking follows from --seed, which is found by trying: the file is not for publication; "
        "--release without --seed makes one that is"
    )


def reported(given: dict[str, Any]) -> bool:
    """Return True if a report is asked for, to publish or private."""
    return given["report"] is not None or given["private_report"] is not None


def check_reports(given: dict[str, Any], inputs: Sequence[Path]) -> None:
    """Raise an error for a report, to publish or private, that could not be written."""
    report, private = given["report"], given["private_report"]
    for path in (report, private):
        request.check_report(path, inputs, overwrite=given["overwrite"])
    if report is not None and private is not None and report.resolve() == private.resolve():
        raise ValueError(f"'{private}' is the report to publish, too; give the private one another name")


def check_unmeasured(given: dict[str, Any]) -> None:
    """Raise ValueError for options of `mask` that need measures, if --no-measure is given."""
    if not given["no_measure"]:
        return
    if given["release"]:
        raise ValueError("--release is for a file that is handed out and must be measured; drop --no-measure")
    for option in UNMEASURED:
        if given[option]:
            name = option.removeprefix("as_").replace("_", "-")
            raise ValueError(f"--{name} is about measures, and --no-measure takes none; drop one of them")


def check_private_folder(folder: Path | None, *published: Path | None) -> None:
    """Raise ValueError if a file to be handed out would lie in the folder of a search, which holds a seed."""
    if folder is None:
        return
    for path in (path for path in published if path is not None):
        if folder.resolve() in path.resolve().parents:
            raise ValueError(
                f"'{path}' would lie in '{folder}', which holds the seed; choose a --folder of its own"
            )


def published_columns(source: Source, checked: CheckedOptions, *, handed_out: bool) -> pl.DataFrame:
    """Return the columns of the source that a masked file has: none that is dropped, and no key."""
    gone = {*checked.drop, *(checked.key if handed_out else ())}
    return source.frame.select([name for name in source.frame.columns if name not in gone])


class Written(NamedTuple):
    """A release that was written, the notes to print, and the further content of its JSON."""

    release: Release[Any]
    notes: list[str]
    more: dict[str, Any]


def write_release(
    plan: ReleasePlan,
    source: Source,
    original: Original,
    checked: CheckedOptions,
    given: dict[str, Any],
    make_page: MakePage,
) -> Written:
    """Mask, write and measure a file, and write its reports; `given` has the paths of data and output."""
    file = _release_file(plan, source, original, checked, given)
    notes: list[str] = []
    more: dict[str, Any] = {}
    numbered = () if plan.in_place else original.roles.columns_with("unit")

    origin = origin_of(plan, source, given)

    def add_notes_and_reports(made: Release[Any], digest: str, joint: list[str]) -> None:
        """Collect notes on a release, `joint` ones with earlier releases, and its JSON; write its reports."""
        assert made.made_from is not None  # noqa: S101 - it was just made
        pair = made.made_from.pair
        if origin is not None:
            print_held_warnings()  # of records released before: before the file is written
        notes.extend([*release_notes(made, pair, source, given, numbered), *joint])
        notes.extend([*order_notes(plan, file), f"wrote {file.path}"])
        told = replace(made.evaluation, notes=(*made.evaluation.notes, *joint))  # who signs must know
        signed = replace(made, evaluation=told)
        summaries = Summaries(pair, made.evaluation, file.path.name, digest, source.sha256, plan.in_place)
        notes.extend(write_reports(given, summaries, lambda build, one: make_page(build, signed, pair, one)))
        more.update(summaries.json(given))

    write = partial(publish, file, origin=origin, report=add_notes_and_reports)
    made, one = make_release(plan, original, rng=checked.seed, hand_out=write)
    if origin is not None:
        notes.append(f"recorded as release {one} in the private record '{origin.store.folder}'")
    if file.crosswalk is not None:
        fact = f"'{file.crosswalk}' says which original row each published row comes from"
        warn(f"{fact}; keep it secret, and never beside the release")
    return Written(made, notes, more)


@dataclass(frozen=True)
class Summaries:
    """What an office signs of a masked file, to publish and private; each is made when it is asked for."""

    pair: Pair
    evaluation: Evaluation
    file: str
    sha256: str
    original_sha256: str
    working_copy: bool = False

    @cached_property
    def public(self) -> Summary:
        """The summary that is published."""
        return self._summary()

    @cached_property
    def private(self) -> Summary:
        """The summary with exact statistics, and with the hash of the original."""
        return self._summary(self.original_sha256)

    def _summary(self, original_sha256: str | None = None) -> Summary:
        """Return the summary, a private one if the hash of the original is given."""
        return summary_of(
            self.pair,
            self.evaluation,
            file=self.file,
            sha256=self.sha256,
            original_sha256=original_sha256,
            working_copy=self.working_copy,
        )

    def json(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the content of --json, exact with --private-output; nothing unless it is asked for."""
        if not given["as_json"]:
            return {}
        return (self.private if given.get("private_output") else self.public).to_dict()


def mask_plan(
    method: str,
    parameters: Mapping[str, Any],
    decimals: int | str | None,
    checked: CheckedOptions,
    given: dict[str, Any],
) -> ReleasePlan:
    """Return how `sdckit mask` masks and measures a file."""
    return ReleasePlan(
        method=method,
        parameters=parameters,
        rules=checked.rules,
        decimals=decimals,
        groups=given["groups"] and given["groups"].strip(),
        metrics=checked.metrics,
        ties=checked.ties,
        missing=checked.missing,
        per_record=reported(given),
        keep_order=given["keep_order"],
        numbered=given["numbered"],
        in_place=not given["release"],
        calibrate=given["calibrate"],
    )


def write_unmeasured(
    plan: ReleasePlan, source: Source, original: Original, checked: CheckedOptions, given: dict[str, Any]
) -> list[str]:
    """Mask and write a file without measuring it; return the notes to print."""
    file = _release_file(plan, source, original, checked, given)
    made = plan.mask(original, randomness.generator(checked.seed))
    published = plan.publish(made, original)
    with file.draft(published):
        note = columns_note(original.columns, source.frame.columns, published.data.columns)
    return [
        *made.notes,
        note,
        f"wrote {file.path}",
        "nothing was measured; sdckit evaluate measures the file",
    ]


def _release_file(
    plan: ReleasePlan, source: Source, original: Original, checked: CheckedOptions, given: dict[str, Any]
) -> ReleaseFile:
    """Return path and format of the file that a command writes."""
    return ReleaseFile(
        given["output"],
        source=source,
        columns=original.columns,
        whole=original.columns if plan.decimals == 0 else (),
        dialect=checked.dialect,
        overwrite=given["overwrite"],
        crosswalk=given["crosswalk"],
        key=original.roles.key,
    )


def release_notes(
    made: Release[Any], pair: Pair, source: Source, given: dict[str, Any], numbered: Sequence[str]
) -> list[str]:
    """Return notes on masked and unmasked columns, unchanged cells, and losses that disclose records."""
    rows = [unchanged_cells_note(pair)] if made.disclosure.paired else []
    return [
        columns_note(
            pair.columns,
            source.frame.columns,
            made.data.columns,
            idle=idle_columns(pair),
            numbered=numbered,
            whole=given["as_json"],
        ),
        *rows,
        *privacy_notes(made.evaluation.table, per_record=False),  # losses of single records are not shown
    ]


def order_notes(plan: ReleasePlan, file: ReleaseFile) -> list[str]:
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


def write_report(given: dict[str, Any], make_page: Callable[[Any], str]) -> list[str]:
    """Write the HTML report if one is asked for; return the lines to print about it."""
    if not given["report"]:
        return []
    from sdckit.report import build  # noqa: PLC0415 - slow to import, and only for reports

    build.write_page(given["report"], make_page(build), overwrite=given["overwrite"])
    return [f"wrote {given['report']}"]


def write_reports(
    given: dict[str, Any], summaries: Summaries, make_page: Callable[[Any, Summary], str]
) -> list[str]:
    """Write the report to publish and the private one, where they are asked for; return lines to print."""
    lines = write_report(given, lambda build: make_page(build, summaries.public))
    path = given["private_report"]
    if path is None:
        return lines
    from sdckit.report import build  # noqa: PLC0415 - slow to import, and only for reports

    page = make_page(build, summaries.private)
    build.write_page(path, page, overwrite=given["overwrite"], private=True)
    warn(f"'{path}' has exact statistics of the original; keep it secret, and never beside the release")
    return [*lines, f"wrote {path}"]


def check_crosswalks(paths: Sequence[Path], masked: Sequence[Path]) -> None:
    """Raise ValueError unless there is a crosswalk for each masked file, or none."""
    if paths and len(paths) != len(masked):
        files = f"{len(masked)} masked {plural(len(masked), 'file')}"
        raise ValueError(f"--crosswalk is given for {len(paths)} of {files}; give one for each, in order")


def read_crosswalks(
    paths: Sequence[Path],
    masked: Sequence[Path],
    source: Source,
    checked: CheckedOptions,
    given: dict[str, Any],
) -> tuple[list[NDArray[np.int64] | None], list[str]]:
    """Return, for each masked file, the original row of each of its rows, and notes on where that is from.

    Without given crosswalks, those of files that are in the private record are used; None for others.
    """
    keys, n = source.frame.select(checked.key), source.frame.height
    if paths:
        return [crosswalk.read(path, keys, n, checked.dialect) for path in paths], []
    found = find_crosswalks(source.path, source, masked, given)
    orders = [None if one.crosswalk is None else crosswalk.read(one.crosswalk, keys, n) for one in found]
    return orders, [one.note for one in found if one.note]
