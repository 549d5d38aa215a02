"""Write the table of a release made in Python to a file, and keep its record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core.converted_cells import as_polars
from sdckit.io.atomic import AnyPath, check_target
from sdckit.io.files import read
from sdckit.masking import Masking
from sdckit.metrics.pair import pair_by_row
from sdckit.record.keeping import Keeper, Origin
from sdckit.record.store import Store, require_apart
from sdckit.selection.publishing import Published
from sdckit.selection.release_file import ReleaseFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.metrics.pair import Pair
    from sdckit.selection.release import Release


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
