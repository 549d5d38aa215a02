"""Who left, joined or changed between two releases, and whether both files tell their cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl

from sdckit.core.converted_cells import as_polars
from sdckit.core.text import plural, shortened
from sdckit.core.warning_texts import warn
from sdckit.io import crosswalk, files
from sdckit.record.differencing import Differences, Partition, Side, subtract
from sdckit.record.entry import DamagedRecord
from sdckit.record.ledger import TogetherMissed, numbers_in
from sdckit.record.store import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.original import Original
    from sdckit.record.entry import Entry
    from sdckit.record.overlap import Overlap
    from sdckit.record.store import Store
    from sdckit.selection.release import Release
    from sdckit.selection.release_plan import ReleasePlan

SMALL_GROUP = 10  # records a group on average: sums of smaller ones tell of a record as one file alone does
MOST_GROUPS = 1000


class CellsFollow(TogetherMissed):
    """Error raised if cells of records that left or joined follow from a release and an earlier one.

    `in_public` says so without the number of records, which is secret.
    """

    in_public = "cells of single records would follow from this file and an earlier release"


@dataclass(frozen=True)
class Moved:
    """Records that left, joined or changed since an earlier release, and what both files tell of them."""

    release: str
    left: int
    joined: int
    changed: int
    told: Differences

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and figures as the private record has them."""
        counts = {name: getattr(self, name) for name in ("release", "left", "joined", "changed")}
        return counts | self.told.to_dict()

    def __str__(self) -> str:
        """Return why a release is refused."""
        counts = f"{self.left} {plural(self.left, 'record')} left, {self.joined} joined and {self.changed}"
        told = self.told
        guessed = f"{told.share:.2f} of their cells are guessed within 10 %"
        facts = [f"{guessed}, {told.constant:.2f} by one guess for all"]
        if told.exact:
            facts.append(f"{told.exact} {'follows' if told.exact == 1 else 'follow'} exactly")
        return (
            f"{counts} changed since release {self.release}; from both files {' and '.join(facts)}, so "
            "nothing is released; mask with a noise method (draw again if it is one), wait until more "
            "records change, or hand out the earlier file again"
        )


def judge_moves(
    store: Store, plan: ReleasePlan, original: Original, made: Release[Any], overlaps: Sequence[Overlap]
) -> list[Moved]:
    """Return who left, joined or changed since each earlier release, and what both files tell of them.

    Raise `CellsFollow` if they tell too much. Every kind of difference is tried, whatever the methods are
    said to keep.
    """
    found, unknown = [], []
    ours = None
    for overlap in overlaps:
        if not (len(overlap.left) or len(overlap.joined) or overlap.changed):
            continue
        ours = _NewFile.of(plan, original, made) if ours is None else ours
        try:
            theirs = _OldFile.read(store, overlap.entry)
        except (DamagedRecord, OSError) as error:
            fact = f"the new release cannot be compared with release {overlap.entry.id}"
            raise DamagedRecord(f"{fact}: {error}") from error
        if theirs.originals is None and (len(overlap.left) or overlap.changed):
            unknown.append(overlap.entry.id)
        sides, partitions = _sides(overlap, theirs, ours)
        told = subtract(*sides, partitions, alike=overlap.entry.method == plan.method)
        counts = len(overlap.left), len(overlap.joined), overlap.changed
        found.append(Moved(overlap.entry.id, *counts, told))
    if unknown:
        names = f"{plural(len(unknown), 'release')} {shortened(unknown)}"
        warn(
            f"the record of {names} is of version 0.1, without original values: what follows of records that "
            "left or changed since is judged by the published values alone"
        )
    for one in found:
        if one.told.tell:
            raise CellsFollow(str(one))
    return found


@dataclass(frozen=True)
class _OneFile:
    """A published file in the order of its original, and the original values of its masked columns."""

    frame: pl.DataFrame
    masked: tuple[str, ...]
    fresh: frozenset[str | None]  # columns with numbers of their own
    na: Sequence[float]
    originals: pl.DataFrame | None

    def values(self, name: str) -> Floats:
        """Return the published numbers of a column, NaN where one is missing."""
        return numbers_in(self.frame[name], self.na)


class _OldFile(_OneFile):
    """An earlier release, from the private record."""

    @classmethod
    def read(cls, store: Store, entry: Entry) -> Self:
        """Read an earlier release; records of version 0.1 have no original values."""
        frame = files.read(store.published(entry), entry.read_dialect()).frame
        rows = read_table(store.crosswalk(entry))[crosswalk.ORIGINAL].to_numpy() - 1
        path = store.originals(entry)
        originals = None if path is None else read_table(path)
        fresh = frozenset({entry.roles["unit"], entry.groups, entry.numbered})
        return cls(frame[np.argsort(rows)], entry.variables, fresh, entry.na, originals)


class _NewFile(_OneFile):
    """The release that is judged."""

    @classmethod
    def of(cls, plan: ReleasePlan, original: Original, made: Release[Any]) -> Self:
        """Return the file that is about to be named."""
        frame = as_polars(made.data)[np.argsort(made.rows)]
        fresh = frozenset({original.roles.unit, plan.groups, plan.numbered})
        return cls(frame, original.columns, fresh, original.roles.na, original_values(original))


def original_values(original: Original) -> pl.DataFrame:
    """Return the original values of the masked columns, NaN where one is missing."""
    return pl.DataFrame({name: original.values[:, j] for j, name in enumerate(original.columns)})


def _sides(overlap: Overlap, theirs: _OneFile, ours: _OneFile) -> tuple[tuple[Side, Side], list[Partition]]:
    """Return both files in the columns that one masked and both publish, and groups of their records."""
    either = [name for name in dict.fromkeys([*theirs.masked, *ours.masked]) if _shared(name, theirs, ours)]
    names = [name for name in either if ours.frame[name].dtype.is_numeric()]
    names = [name for name in names if theirs.frame[name].dtype.is_numeric()]
    sides = _side(theirs, names, overlap.left), _side(ours, names, overlap.joined)
    for j, name in enumerate(names):
        if theirs.originals is not None and {name} <= set(theirs.masked) & set(ours.masked):
            old, new = (side.original[rows, j] for side, rows in zip(sides, _changed(overlap), strict=True))
            other = (old != new) & ~(np.isnan(old) & np.isnan(new))
            for side, rows in zip(sides, _changed(overlap), strict=True):
                side.apart[rows[other], j] = ~np.isnan(side.original[rows[other], j])
    return sides, _partitions(theirs, ours)


def _changed(overlap: Overlap) -> tuple[Ints, Ints]:
    """Return the rows of changed records in the earlier and in the new original."""
    return overlap.changed_earlier, overlap.changed_rows


def _shared(name: str, theirs: _OneFile, ours: _OneFile) -> bool:
    """Return True if both files publish a column, and not with numbers of its own."""
    return all(name in one.frame.columns and name not in one.fresh for one in (theirs, ours))


def _side(file: _OneFile, names: Sequence[str], moved: Ints) -> Side:
    """Return one file in some columns; the masked cells of records that moved are apart."""
    shape = (file.frame.height, len(names))
    published, original, apart = np.empty(shape), np.full(shape, np.nan), np.zeros(shape, bool)
    for j, name in enumerate(names):
        published[:, j] = file.values(name)
        if name not in file.masked:
            continue
        if file.originals is not None:
            original[:, j] = file.originals[name].to_numpy()
        present = published if file.originals is None else original
        apart[moved, j] = ~np.isnan(present[moved, j])
    return Side(published, original, apart)


def _as_text(column: pl.Series) -> pl.Series:
    """Return the cells of a column as texts, equal for equal numbers of any type, empty where missing."""
    plain = column.cast(pl.Float64) if column.dtype.is_numeric() else column
    return plain.cast(pl.String).fill_null("")


def _partitions(theirs: _OneFile, ours: _OneFile) -> list[Partition]:
    """Return groups of records by each column that both files publish unmasked, and by all of them."""
    masked = {*theirs.masked, *ours.masked}
    names = [name for name in ours.frame.columns if name not in masked and _shared(name, theirs, ours)]
    names = [name for name in names if pl.Object not in {one.frame[name].dtype for one in (theirs, ours)}]
    both = pl.concat(
        [one.frame.select(_as_text(one.frame[name]) for name in names) for one in (theirs, ours)]
    )
    found = []
    for some in [*([name] for name in names), *([names] if len(names) > 1 else [])]:
        codes = both.select(pl.struct(some).rank("dense").cast(pl.Int64)).to_series().to_numpy()
        if 1 < codes.max(initial=0) <= min(len(codes) / (2 * SMALL_GROUP), MOST_GROUPS):
            found.append(Partition(*np.split(codes, [theirs.frame.height])))
    return found
