"""Records of a new release that were released before, found by their fingerprints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from sdckit.core.table import Table
from sdckit.core.text import plural
from sdckit.record.entry import DamagedRecord
from sdckit.record.fingerprints import KEY, VALUES, fingerprints
from sdckit.record.store import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Ints, UInt64s
    from sdckit.metrics.original import Original
    from sdckit.record.entry import Entry
    from sdckit.record.store import Store


@dataclass(frozen=True)
class Overlap:
    """Records that a new original shares with an earlier release.

    `rows` are the rows of the new original whose values are unchanged, `earlier` the rows of the earlier one
    that hold them; `changed_rows` and `changed_earlier` are those with the same key and other values. `n`
    counts all new records, `n_earlier` the earlier ones.
    """

    entry: Entry
    rows: Ints
    earlier: Ints
    changed_rows: Ints
    changed_earlier: Ints
    n: int
    n_earlier: int

    @property
    def changed(self) -> int:
        """Number of records with the same key and other values."""
        return len(self.changed_rows)

    @property
    def left(self) -> Ints:
        """Rows of the earlier original whose records are not in the new one."""
        return np.setdiff1d(np.arange(self.n_earlier), np.union1d(self.earlier, self.changed_earlier))

    @property
    def joined(self) -> Ints:
        """Rows of the new original whose records are not in the earlier one."""
        return np.setdiff1d(np.arange(self.n), np.union1d(self.rows, self.changed_rows))

    @property
    def complete(self) -> bool:
        """True if both originals hold the same records, all of them unchanged."""
        return len(self.rows) == self.n == self.entry.input["rows"]

    def __str__(self) -> str:
        kept = len(self.rows)
        text = f"{kept} of {self.n} {plural(self.n, 'record')} {'is' if kept == 1 else 'are'} unchanged"
        text += f" and {self.changed} changed since release {self.entry.id}"
        left, joined = len(self.left), len(self.joined)
        return f"{text}, {left} left and {joined} joined" if left or joined else text


def fingerprint_table(original: Original, secret: bytes) -> pl.DataFrame:
    """Return the fingerprints of each record, of its key (null without a key) and of its values."""
    if original.table is None:
        raise ValueError("the prepared data have no table to take fingerprints of; prepare the table anew")
    columns = {KEY: original.roles.key, VALUES: original.columns}
    found = {what: fingerprints(original.table, names, secret, what) for what, names in columns.items()}
    empty = pl.Series([None] * original.n, dtype=pl.UInt64)
    return pl.DataFrame({what: empty if marks is None else marks for what, marks in found.items()})


def find_overlaps(
    store: Store, original: Original, secret: bytes, entries: Sequence[Entry]
) -> tuple[list[Overlap], list[str]]:
    """Return the overlaps with earlier releases, and the IDs of those whose fingerprints are damaged."""
    table = original.table if original.table is not None else Table(original.values)
    made: dict[tuple[str, tuple[str, ...]], UInt64s | None] = {}

    def ours(what: str, columns: tuple[str, ...]) -> UInt64s | None:
        """Return the fingerprints of the new records by the columns of an earlier release."""
        if (what, columns) not in made:
            made[what, columns] = fingerprints(table, columns, secret, what)
        return made[what, columns]

    found, broken = [], []
    for entry in entries:
        try:
            theirs = read_table(store.fingerprints(entry))
        except (DamagedRecord, OSError):
            broken.append(entry.id)
            continue
        values = ours(VALUES, entry.variables)
        overlap = _overlap(entry, original.n, ours(KEY, entry.key), values, theirs)
        if len(overlap.rows) or overlap.changed:
            found.append(overlap)
    return found, broken


def _overlap(
    entry: Entry, n: int, keys: UInt64s | None, values: UInt64s | None, theirs: pl.DataFrame
) -> Overlap:
    """Return the records shared with an earlier release: by key and values, then the others by their values.

    A key may be given anew for each file, as a number of the row is: it is then that of another record.
    """
    their_values = theirs[VALUES].to_numpy()
    rows = earlier = np.empty(0, np.int64)
    if keys is not None:
        rows, earlier = matching_rows(keys, theirs[KEY].to_numpy())
    if values is None:
        return Overlap(entry, rows[:0], earlier[:0], rows, earlier, n, len(their_values))
    same = values[rows] == their_values[earlier]
    changed, of_changed = rows[~same], earlier[~same]
    rows, earlier = rows[same], earlier[same]
    ours_left = np.setdiff1d(np.arange(n), rows)
    theirs_left = np.setdiff1d(np.arange(len(their_values)), earlier)
    more, of_theirs = matching_rows(values[ours_left], their_values[theirs_left])
    found = np.concatenate([rows, ours_left[more]])
    order = np.argsort(found, kind="stable")
    earlier = np.concatenate([earlier, theirs_left[of_theirs]])[order]
    still = ~np.isin(changed, found) & ~np.isin(of_changed, earlier)
    changes = changed[still], of_changed[still]
    return Overlap(entry, found[order], earlier, *changes, n, len(their_values))


def matching_rows(ours: UInt64s, theirs: UInt64s) -> tuple[Ints, Ints]:
    """Return the rows of equal numbers in two lists; the k-th of several equal ones goes with the k-th."""
    left, right = (
        pl.DataFrame({"mark": marks})
        .with_row_index("row")
        .with_columns(count=pl.int_range(pl.len()).over("mark"))
        for marks in (ours, theirs)
    )
    both = left.join(right, on=["mark", "count"], how="inner").sort("row")
    return both["row"].cast(pl.Int64).to_numpy(), both["row_right"].cast(pl.Int64).to_numpy()
