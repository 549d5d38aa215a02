"""Keep the record of a release: judge it with earlier ones, write the record, then let the file be named."""

from __future__ import annotations

import io
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from sdckit.core.converted_cells import polars_column
from sdckit.core.version import INTRUDER_VERSION
from sdckit.core.warning_texts import collect_warnings
from sdckit.io import crosswalk
from sdckit.io.dialect import DEFAULT, Dialect
from sdckit.io.suffixes import suffix_of
from sdckit.record import entry as entries
from sdckit.record import environment, ledger, moves
from sdckit.record.fingerprints import digest_of_table
from sdckit.record.overlap import fingerprint_table
from sdckit.record.private_files import copy_private, digest_of_file, write_private
from sdckit.record.store import CROSSWALK, FINGERPRINTS, ORIGINALS, PUBLISHED, Store, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.selection.release import Release
    from sdckit.selection.release_plan import ReleasePlan


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
    moved: list[moves.Moved] = field(default_factory=list)
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
            self.moved = moves.judge_moves(self.store, self.plan, self.original, made, overlaps)
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
            ORIGINALS: moves.original_values(self.original),
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
            versions=environment.versions(),
            kernels=environment.kernels(),
            cpu=environment.cpu_features(),
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
