"""Publish a release with its private record."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core.cells import as_polars, polars_column, same_values
from sdckit.core.version import INTRUDER_VERSION
from sdckit.io import crosswalk, files
from sdckit.io.atomic import AnyPath, check_target
from sdckit.io.csv_table import warn_of_formulas
from sdckit.io.files import cast_empty_columns
from sdckit.io.formats import CSV_SUFFIXES, DEFAULT, Dialect, suffix_of
from sdckit.kernels.jit import digest_of_kernels
from sdckit.masking import Masking
from sdckit.metrics.pair import pair_by_row
from sdckit.record import entry as entries
from sdckit.record import ledger
from sdckit.record.entry import cpu_features, digest_of_table, versions
from sdckit.record.ledger import fingerprint_table, original_values
from sdckit.record.store import (
    CROSSWALK,
    FINGERPRINTS,
    ORIGINALS,
    PUBLISHED,
    Store,
    digest_of_file,
    require_apart,
    utc_now,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sdckit.arrays import Ints
    from sdckit.evaluation.result import Evaluation
    from sdckit.io.files import Source
    from sdckit.metrics.original import Original
    from sdckit.selection.release import MadeFrom, Measure, Release


@dataclass(frozen=True)
class Published:
    """A masked table as it is handed out, before it is written.

    `rows` has the number, from 0, of the original row that each row comes from; `renumbered` names the
    columns whose cells are fresh numbers, of which nothing in the original file holds any more.
    """

    masking: Masking
    rows: Ints
    renumbered: tuple[str, ...] = ()

    @property
    def data(self) -> Any:
        """The table."""
        return self.masking.data


@dataclass(frozen=True)
class Origin:
    """Where the data of a release come from: a file and its dialect, or a table; and what asked for it.

    `store` is the private record that keeps the release.
    """

    store: Store
    command: str
    name: str
    sha256: str | None = None  # None for a table that was no file
    dialect: Dialect = DEFAULT
    job: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ReleaseFile:
    """Path and file format of a masked table that will be written.

    `source` is the file that the data come from, whose labels and missing codes are kept; `columns` are those
    that are masked, `whole` those that are written without decimals. The secret file `crosswalk` gets the
    original row of each published one, and the values of the columns of `key`.
    """

    path: Path
    source: Source | None = None
    columns: Collection[str] = ()
    whole: Collection[str] = ()
    dialect: Dialect = DEFAULT
    overwrite: bool = False
    crosswalk: Path | None = None
    key: Sequence[str] = ()

    def draft(self, published: Published) -> AbstractContextManager[Path]:
        """Write a table under a temporary name, and name it if the `with` block raises no error."""
        source, same = self.source, published.masking.disclosure
        if source is not None:
            names = [name for name in published.data.columns if name not in published.renumbered]
            source = source.take(published.rows, names)
            if same.alike:  # else NA, -9 or .a would tell the records of a group apart
                source = files.without_missing_text(source, self.columns)
            elif not same.paired:
                source = files.without_missing_codes(source, self.columns)
        return files.write_draft(
            self.path,
            published.data,
            source=source,
            whole=self.whole,
            dialect=self.dialect,
            overwrite=self.overwrite,
        )

    def read_back(self, draft: Path, published: Published) -> pl.DataFrame:
        """Return the table as its readers will read it."""
        return cast_empty_columns(files.read_draft(draft, self.path, self.dialect).frame, published.data)

    def crosswalk_draft(self, published: Published) -> AbstractContextManager[Any]:
        """Write the crosswalk, if one is asked for, under a temporary name."""
        if self.crosswalk is None:
            return nullcontext()
        keys = self.source.frame.select(self.key) if self.source is not None and self.key else None
        table = crosswalk.crosswalk_table(published.rows, keys)
        return crosswalk.write_draft(self.crosswalk, table, dialect=self.dialect, overwrite=self.overwrite)


def publish(
    file: ReleaseFile,
    published: Published,
    measure: Measure,
    *,
    origin: Origin | None = None,
    report: Callable[[Release[Any], str, list[str], ExitStack], object] | None = None,
) -> tuple[Release[Any], str]:
    """Hand a masked table out, whole or not at all; return the release and its ID in the private record.

    `measure` gets the table as it is read back, and raises `LimitsMissed` if it misses a limit.
    `report(release, digest, notes, drafts)` drafts what else is published; the notes tell of earlier
    releases. A working copy has no `origin`, no record and the ID "".

    Nothing gets its name before all that may fail is done, reports just before the file; a file whose record
    could not be written, or a record whose file could not be named, is removed again. No other process adds a
    release meanwhile.
    """
    if origin is not None and suffix_of(file.path) in CSV_SUFFIXES and not file.dialect.escape_formulas:
        warn_of_formulas(published.data)
    one = ""
    with ExitStack() as held, ExitStack() as undo:
        with file.draft(published) as draft, ExitStack() as pages:
            digest = digest_of_file(draft)

            def unless_named(remove: Callable[[], object]) -> None:
                """Remove what belongs to the file, unless a signal came after the file had got its name."""
                if not (file.path.is_file() and digest_of_file(file.path) == digest):
                    remove()

            with file.crosswalk_draft(published):
                release = measure(file.read_back(draft, published))
                earlier = None
                if origin is not None:
                    held.enter_context(origin.store.lock())
                    earlier = ledger.judge(origin.store, release)
                if report is not None:
                    notes = [] if earlier is None else ledger.together_note(earlier.joints)
                    report(release, digest, notes, pages)
            if file.crosswalk is not None:  # it has its name, and the release may not get its own
                undo.callback(unless_named, partial(file.crosswalk.unlink, missing_ok=True))
            if origin is not None and earlier is not None:
                one = _record(draft, file, release, origin, earlier)
                undo.callback(unless_named, partial(origin.store.remove, one))
        undo.pop_all()
    return release, one


def _record(
    draft: Path, file: ReleaseFile, release: Release[Any], origin: Origin, earlier: ledger.Earlier
) -> str:
    """Write the private record of the release whose file is `draft`; return its ID."""
    plan, original, _ = _known(release)
    roles, table, store = original.roles, original.table, origin.store
    suffix = suffix_of(file.path)

    def entry(name: str, digests: dict[str, str]) -> entries.Entry:
        """Return the entry of the release under an ID, once the other files of its record are written."""
        cells = digest_of_table(table) if origin.sha256 is None and table is not None else None
        output = {"name": file.path.name, "suffix": suffix, "sha256": digests[PUBLISHED + suffix]}
        return entries.Entry(
            id=name,
            time=utc_now(),
            command=origin.command,
            job=origin.job,
            input={"name": origin.name, "sha256": origin.sha256, "cells": cells, "rows": original.n},
            output=output | {"rows": len(release.rows)},
            **entries.plan_entries(plan),
            draws=release.draws,
            entropy=release.entropy.hex(),
            rules=entries.rule_texts(plan.rules),
            rules_in_full=entries.rule_texts(release.disclosure.rules),
            roles=entries.role_entries(roles),
            recode={one.column: str(one) for one in roles.recode},
            na=list(roles.na),
            dialect=entries.dialect_entries(origin.dialect),
            limits=dict(plan.limits),
            scenarios=entries.scenario_entries(plan.scenarios),
            measured=measured_figures(release.evaluation) + [joint.to_dict() for joint in earlier.joints],
            paired=release.disclosure.paired,
            versions=versions(),
            kernels=digest_of_kernels(),
            cpu=cpu_features(),
            crosswalk={"sha256": digests[CROSSWALK]},
            fingerprints={"sha256": digests[FINGERPRINTS]},
            originals={"sha256": digests[ORIGINALS]},
            moved=[one.to_dict() for one in earlier.moved],
            intruder=INTRUDER_VERSION,
        )

    tables = {
        CROSSWALK: _crosswalk(original, release),
        FINGERPRINTS: fingerprint_table(original, store.secret()),
        ORIGINALS: original_values(original),
    }
    contents: dict[str, bytes | Path] = {PUBLISHED + suffix: draft}
    for name, made in tables.items():
        buffer = io.BytesIO()
        made.write_parquet(buffer)
        contents[name] = buffer.getvalue()
    return store.add(digest_of_file(draft), contents, entry).id


def measured_figures(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return value and interval of each metric of the whole file, and of each risk in each scenario."""
    figures = ["metric", "value", "ci_low", "ci_high"]
    rows = evaluation.summary.select(figures).rows(named=True)
    if evaluation.scenarios is not None:
        label = pl.format("{} ({})", "metric", "scenario").alias("metric")
        rows += evaluation.scenarios.select(label, *figures[1:]).rows(named=True)
    found: list[dict[str, Any]] = entries.plain(rows, "a measured value")
    return found


def _crosswalk(original: Original, made: Release[Any]) -> pl.DataFrame:
    """Return the original row of each published one, and the keys of the records where names allow it."""
    taken = {crosswalk.PUBLISHED, crosswalk.ORIGINAL}
    names = [name for name in original.roles.key if name not in taken]
    if original.table is None or not names:
        return crosswalk.crosswalk_table(made.rows)
    columns = [polars_column(original.table.column(name)) for name in names]
    keys = [one.map_elements(str, pl.String) if one.dtype == pl.Object else one for one in columns]
    return crosswalk.crosswalk_table(made.rows, pl.DataFrame(keys))


def publish_release(
    release: Release[Any], path: AnyPath, private: AnyPath | None = None, *, overwrite: bool = False
) -> str:
    """Write a release and its private record; return the ID of the record. See `Release.publish`."""
    plan, original, pair = _known(release)
    rows = None if pair.places is None else np.argsort(pair.places)
    same = pair_by_row(original, release.data, rows=rows).masked
    if not np.array_equal(same, pair.masked, equal_nan=True):
        raise ValueError("the table was changed since it was measured; make the release again")
    output = Path(path)
    check_target(output, overwrite)
    store = Store.at(None if private is None else Path(private))
    require_apart(store, output)
    store.check()
    frame = as_polars(release.data)
    file = ReleaseFile(output, whole=original.columns if plan.decimals == 0 else (), overwrite=overwrite)

    def as_measured(written: pl.DataFrame) -> Release[Any]:
        """Return the release; raise ValueError if masked values are not read back as they were measured."""
        for name in original.columns:
            if not same_values(written, frame, name):
                fact = f"'{output}' does not hold the values of {name!r} as they were measured"
                raise ValueError(f"{fact}; use another format")
        return release

    published = Published(Masking(frame, [], release.disclosure), release.rows)
    return publish(file, published, as_measured, origin=Origin(store, "publish", "a table"))[1]


def _known(release: Release[Any]) -> MadeFrom:
    """Return what a release was made from; raise ValueError if it does not know."""
    if release.made_from is None:
        raise ValueError("this release does not know the data it was made from; make it with release()")
    return release.made_from
