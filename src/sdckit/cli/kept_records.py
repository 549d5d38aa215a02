"""The private record of the commands that make releases, and crosswalks that `evaluate` finds in it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sdckit.cli.job_options import job_of_options
from sdckit.record.keeping import Keeper, Origin
from sdckit.record.private_files import digest_of_file
from sdckit.record.replay import check_input
from sdckit.record.store import Store, require_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.io.source import Source
    from sdckit.metrics.original import Original
    from sdckit.selection.release_plan import ReleasePlan


def check_record(given: dict[str, Any], *published: Path | None) -> None:
    """Raise an error, before any work, if the private record could not be written; create its folder."""
    store = Store.at(given["private"])
    require_apart(store, *published)
    store.check()


def keeper_of(
    plan: ReleasePlan, source: Source, original: Original, given: dict[str, Any]
) -> AbstractContextManager[Keeper | None]:
    """Return what keeps the record of the file that a command hands out; of None for a working copy."""
    if plan.in_place:
        return nullcontext()
    context = click.get_current_context()
    job = job_of_options(context.command, context.params, columns=source.frame.columns)
    origin = Origin(job.command, source.path.name, source.sha256, source.dialect, dict(job.content))
    return Keeper(Store.at(given["private"]), plan, original, origin, given["output"])


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
