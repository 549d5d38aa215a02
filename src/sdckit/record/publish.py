"""Publish a release with its private record."""

from __future__ import annotations

import io
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl

from sdckit.core.cells import as_polars, polars_column
from sdckit.core.checks import collect_warnings
from sdckit.core.version import INTRUDER_VERSION
from sdckit.io import crosswalk
from sdckit.io.atomic import AnyPath, check_target
from sdckit.io.files import read
from sdckit.io.formats import DEFAULT, Dialect, suffix_of
from sdckit.masking import Masking
from sdckit.metrics.pair import pair_by_row
from sdckit.record import entry as entries
from sdckit.record import ledger
from sdckit.record.entry import cpu_features, digest_of_table, kernels, versions
from sdckit.record.ledger import Moved, fingerprint_table, judge_moves, original_values
from sdckit.record.store import (
    CROSSWALK,
    FINGERPRINTS,
    ORIGINALS,
    PUBLISHED,
    Store,
    copy_private,
    digest_of_file,
    require_apart,
    utc_now,
    write_private,
)
from sdckit.selection.release import Published, ReleaseFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.selection.release import Release, ReleasePlan


@dataclass(frozen=True)
class Origin:
    """Where the data of a release come from: a file and its dialect, or a table; and what asked for it."""

    command: str
    name: str
    sha256: str | None = None  # None for a table that was no file
    dialect: Dialect = DEFAULT
    job: dict[str, Any] = field(default_factory=dict)


@dataclass
class Keeper:
    """Writes the record of one release between the check of its limits and the naming of its file.

    Use it in a `with` block: `judge` is called with the finished release, `keep` with its draft. Meanwhile
    no other process adds a release to the same folder.
    """

    store: Store
    plan: ReleasePlan
    original: Original
    origin: Origin
    output: Path
    id: str | None = None  # of the release, once its record is written
    joints: list[ledger.Joint] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    _made: Release[Any] | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def judge(self, made: Release[Any], pair: Pair) -> list[str]:
        """Judge a release together with earlier ones of the same records; return notes on that.

        Raise `TogetherMissed` if a limit is missed, or if cells of records that left or joined follow from
        two files. Warnings announce records that were released before; no note tells who left or joined.
        """
        self._stack.enter_context(self.store.lock())
        warned: list[str] = []
        with collect_warnings(warned):
            overlaps = ledger.earlier_releases(self.store, self.original, limited=bool(self.plan.limits))
        with collect_warnings(warned):
            self.moved = judge_moves(self.store, self.plan, self.original, made, overlaps)
        self.joints = ledger.judge_together(self.store, self.plan, pair, made.disclosure, overlaps)
        self._made = made
        return ledger.together_note(self.joints)

    def keep(self, draft: Path) -> Callable[[], None]:
        """Write the record of the release whose file is `draft`; return a function that removes it again."""
        made = self._made
        assert made is not None  # noqa: S101 - `judge` comes before
        digests = {"published": digest_of_file(draft)}
        tables = {
            CROSSWALK: _crosswalk(self.original, made),
            FINGERPRINTS: fingerprint_table(self.original, self.store.secret()),
            ORIGINALS: original_values(self.original),
        }

        def write_table(name: str) -> Callable[[Path], None]:
            """Return a function that writes one of the tables and keeps its digest."""

            def write(path: Path) -> None:
                """Write the table as Parquet."""
                buffer = io.BytesIO()
                tables[name].write_parquet(buffer)
                write_private(path, buffer.getvalue())
                digests[name] = digest_of_file(path)

            return write

        def copy(path: Path) -> None:
            """Copy the published file."""
            digests["published"] = copy_private(draft, path)

        writers = {PUBLISHED + suffix_of(self.output): copy} | {name: write_table(name) for name in tables}
        found = self.store.add(digests["published"], writers, lambda name: self._entry(name, made, digests))
        self.id = found.id
        return lambda: self.store.remove(found.id)

    def _entry(self, name: str, made: Release[Any], digests: dict[str, str]) -> entries.Entry:
        """Return the entry of the release under an ID, given the digests of the files of its record."""
        plan, roles, origin = self.plan, self.original.roles, self.origin
        table = self.original.table
        cells = digest_of_table(table) if origin.sha256 is None and table is not None else None
        return entries.Entry(
            id=name,
            time=utc_now(),
            command=origin.command,
            job=origin.job,
            input={"name": origin.name, "sha256": origin.sha256, "cells": cells, "rows": self.original.n},
            output={
                "name": self.output.name,
                "suffix": suffix_of(self.output),
                "sha256": digests["published"],
                "rows": len(made.rows),
            },
            **entries.plan_entries(plan),
            draws=made.draws,
            entropy=made.entropy.hex(),
            rules=entries.rule_texts(plan.rules),
            rules_in_full=entries.rule_texts(made.disclosure.rules),
            roles=entries.role_entries(roles),
            recode={one.column: str(one) for one in roles.recode},
            na=list(roles.na),
            dialect=entries.dialect_entries(origin.dialect),
            limits=dict(plan.limits),
            scenarios=entries.scenario_entries(plan.scenarios),
            measured=measured_figures(made.evaluation) + [joint.to_dict() for joint in self.joints],
            paired=made.disclosure.paired,
            versions=versions(),
            kernels=kernels(),
            cpu=cpu_features(),
            crosswalk={"sha256": digests[CROSSWALK]},
            fingerprints={"sha256": digests[FINGERPRINTS]},
            originals={"sha256": digests[ORIGINALS]},
            moved=[one.to_dict() for one in self.moved],
            intruder=INTRUDER_VERSION,
        )


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
    if release.made_from is None:
        raise ValueError("this release does not know the data it was made from; make it with release()")
    plan, original, pair = release.made_from
    _require_unchanged(release.data, pair)
    output = Path(path)
    check_target(output, overwrite)
    store = Store.at(None if private is None else Path(private))
    require_apart(store, output)
    store.check()
    frame = as_polars(release.data)
    origin = Origin("publish", "a table")
    with Keeper(store, plan, original, origin, output) as keeper:
        keeper.judge(release, pair)
        file = ReleaseFile(
            output,
            whole=original.columns if plan.decimals == 0 else (),
            overwrite=overwrite,
            before_naming=keeper.keep,
        )
        published = Published(Masking(frame, [], release.disclosure), release.rows)
        with file.store(published) as written:
            _require_same_values(output, written, frame, original.columns)
    assert keeper.id is not None  # noqa: S101 - the record was written before the file got its name
    return keeper.id


def _require_unchanged(data: Any, pair: Pair) -> None:
    """Raise ValueError if the masked values of a table are not those that were measured."""
    rows = None if pair.places is None else np.argsort(pair.places)
    if not np.array_equal(pair_by_row(pair.original, data, rows=rows).masked, pair.masked, equal_nan=True):
        raise ValueError("the table was changed since it was measured; make the release again")


def _require_same_values(path: Path, written: Any, frame: pl.DataFrame, columns: Any) -> None:
    """Raise ValueError if masked values are not read back as they were measured."""
    for name in columns:
        if not _same_values(written, frame, name):
            raise ValueError(
                f"'{path}' does not hold the values of {name!r} as they were measured; use another format"
            )


def _same_values(written: pl.DataFrame, frame: pl.DataFrame, name: str) -> bool:
    """Return True if two tables hold the same numbers in a column."""
    ours, theirs = (one[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for one in (frame, written))
    return np.array_equal(ours, theirs, equal_nan=True)


def require_file_of(release: Release[Any], path: AnyPath, columns: Sequence[str]) -> str:
    """Return the digest of a file; raise ValueError unless it holds the masked columns of a release."""
    source, frame = read(path), as_polars(release.data)
    written = source.frame
    if not set(columns) <= set(written.columns) or not all(
        written[name].dtype.is_numeric() and _same_values(written, frame, name) for name in columns
    ):
        raise ValueError(f"'{path}' does not hold this release; give the file that publish() wrote")
    return source.sha256
