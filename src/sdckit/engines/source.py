"""Original and masked Parquet files with aligned rows, read in blocks of rows as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl

from sdckit.core import checks
from sdckit.core.cells import cell_marks
from sdckit.core.roles import strata_of, unique_names
from sdckit.core.table import Table
from sdckit.engines.files import ParquetFiles, find_files
from sdckit.engines.transport import Block, BlockRef, Reads
from sdckit.kernels.sums import powers_of_two
from sdckit.progress import each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.arrays import Floats, Ints, UInt64s

BLOCK_ROWS = 1_000_000
NUMBER = "stratum number"  # name of the column that numbers the strata


@dataclass(frozen=True)
class Source:
    """One table in Parquet files, and optionally its masked version, whose rows correspond in order.

    `na` are the numbers that stand for a missing cell, `weights` is the column of survey weights, and the
    values of the columns of `by` form strata, named `strata_names`. A source is small and can be pickled:
    it holds paths, numbers and types.
    """

    original: ParquetFiles
    masked: ParquetFiles | None = None
    block_rows: int = BLOCK_ROWS
    na: tuple[float, ...] = ()
    weights: str | None = None
    weight_unit: float = 1.0  # the power of two that weights are divided by, as in memory
    by: tuple[str, ...] = ()
    strata_names: tuple[str, ...] = ()
    levels: pl.DataFrame | None = field(default=None, compare=False)  # of `by`, with the stratum's number

    @classmethod
    def of(
        cls,
        original: Any,
        masked: Any = None,
        *,
        weights: str | None = None,
        by: Any = None,
        na: Any = None,
        block_rows: int = BLOCK_ROWS,
    ) -> Self:
        """Return the source of a file, a folder of Parquet files or a list of paths, checked.

        Raises
        ------
        OSError
            A file is missing or out of reach.
        ValueError
            A file is no Parquet file, files differ in their columns, or the masked data in their records.
        """
        ours = find_files(original)
        theirs = None if masked is None else find_files(masked)
        checks.require_two_records(ours.rows)
        if theirs is not None:
            checks.require_same_records(theirs.rows, ours.rows)
        return cls(ours, theirs, block_rows).with_roles(weights=weights, by=by, na=na)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.original.rows

    @property
    def blocks(self) -> list[BlockRef]:
        """The blocks of rows that the file is read in."""
        return self.blocks_of(self.block_rows)

    def blocks_of(self, rows: int) -> list[BlockRef]:
        """Return blocks of another number of rows each; the last one has what is left."""
        return [BlockRef(first, min(rows, self.rows - first)) for first in range(0, self.rows, rows)]

    def with_roles(self, *, weights: str | None = None, by: Any = None, na: Any = None) -> Self:
        """Return the source with survey weights, strata and missing codes; scans their columns once."""
        unit = 1.0 if weights is None else _weight_unit(self.original, self.blocks, weights)
        names = unique_names(by)
        strata, levels = _find_strata(self.original, self.blocks, names) if names else ((), None)
        return replace(
            self,
            na=tuple(checks.missing_codes(na)),
            weights=weights,
            weight_unit=unit,
            by=names,
            strata_names=strata,
            levels=levels,
        )

    def read(self, ref: BlockRef, reads: Reads) -> Block:
        """Return a block of rows with some columns as float64, NaN where a cell is missing.

        Raises
        ------
        TypeError
            A column is not numeric.
        ValueError
            A column is unknown, has infinite values or numbers that lose digits; or a file has changed.
        """
        self.require_columns(reads)
        more = (*self.by, *(() if self.weights is None else (self.weights,)))
        names = list(dict.fromkeys([*reads.original, *more]))
        frame = self.original.read(*ref, names) if names else None
        masked: dict[str, Floats] = {}
        if self.masked is not None and reads.masked:
            masked = _floats(self.masked, self.masked.read(*ref, reads.masked), reads.masked, self.na)
        return Block(
            ref.first,
            ref.rows,
            {} if frame is None else _floats(self.original, frame, reads.original, self.na),
            masked,
            None if frame is None else self._weights(frame),
            None if frame is None else self._strata(frame),
            self._cells(ref, reads.cells),
        )

    def _cells(self, ref: BlockRef, names: tuple[str, ...]) -> dict[str, tuple[UInt64s, UInt64s]]:
        """Return the marks of cells in both files, by the name of their column."""
        if not names or self.masked is None:
            return {}
        ours, theirs = (files.read(*ref, names) for files in (self.original, self.masked))
        return {name: (cell_marks(ours[name]), cell_marks(theirs[name])) for name in names}

    def require_columns(self, reads: Reads) -> None:
        """Raise an error if a column to be read is unknown or not numeric."""
        if reads.cells:
            checks.require_known(reads.cells, list(self.original.schema))
            checks.require_masked_columns(reads.cells, list(self.masked.schema) if self.masked else [])
        if reads.original:
            self.original.table.numeric_columns(reads.original)
        if reads.masked:
            if self.masked is None:
                raise ValueError("there are no masked data to read; give the masked file as well")
            checks.require_masked_columns(reads.masked, list(self.masked.schema))
            self.masked.table.numeric_columns(reads.masked)

    def require_unchanged(self) -> None:
        """Raise ValueError if a file has changed since the source was made; to be called at the end."""
        for files in (self.original, self.masked):
            if files is not None:
                files.require_unchanged()

    def _weights(self, frame: pl.DataFrame) -> Floats | None:
        """Return the survey weights of a block's rows, divided by their unit; None without weights."""
        if self.weights is None:
            return None
        values = _floats(self.original, frame, [self.weights])[self.weights]
        return checks.checked_weights(values, self.weights) / self.weight_unit

    def _strata(self, frame: pl.DataFrame) -> Ints | None:
        """Return the stratum number of each of a block's rows; None without strata."""
        if self.levels is None:
            return None
        cells = _plain_cells(frame.select(self.by))
        found = cells.join(self.levels, on=list(self.by), how="left", nulls_equal=True, maintain_order="left")
        return found[NUMBER].to_numpy()


def _weight_unit(files: ParquetFiles, blocks: Sequence[BlockRef], name: str) -> float:
    """Return the unit of a column of survey weights; raise an error if one of them is not above 0."""
    files.table.numeric_columns([name])
    largest, bad = 0.0, 0
    for ref in each("reading weights", blocks):
        values = _floats(files, files.read(*ref, [name]), [name])[name]
        bad += checks.count_bad_weights(values)
        largest = max(largest, float(np.fmax.reduce(values)))
    checks.require_no_bad_weights(bad, name)
    return float(powers_of_two(np.array([largest])))


def _find_strata(
    files: ParquetFiles, blocks: Sequence[BlockRef], by: Sequence[str]
) -> tuple[tuple[str, ...], pl.DataFrame]:
    """Return the names of the strata by first appearance, and the levels of `by` with their numbers."""
    checks.require_known(by, list(files.schema))
    for name in by:
        kind = files.schema[name]
        if kind.is_nested():
            raise TypeError(f"column {name!r} is {kind}, which forms no strata; name another with by=")
    levels = pl.DataFrame()
    for ref in each("reading strata", blocks):
        block = _plain_cells(files.read(*ref, by))
        levels = pl.concat([levels, block], how="diagonal").unique(maintain_order=True)
    strata = strata_of(Table(levels), by)
    numbers = np.empty(levels.height, np.int64)
    for number, (_, rows) in enumerate(strata):
        numbers[rows] = number
    return tuple(name for name, _ in strata), levels.with_columns(pl.Series(NUMBER, numbers))


def _plain_cells(frame: pl.DataFrame) -> pl.DataFrame:
    """Return columns of strata with categories as text, so that those of several files can be compared."""
    return frame.cast({pl.Categorical: pl.String, pl.Enum: pl.String})


def _floats(
    files: ParquetFiles, frame: pl.DataFrame, names: Sequence[str], na: Sequence[float] = ()
) -> dict[str, Floats]:
    """Return columns as float64 by name; raise ValueError for infinite values, counted in all rows."""
    try:
        values = Table(frame).floats(names, list(na))
    except ValueError:
        for name in names:
            if files.schema[name].is_float():
                count = files.scan().select(pl.col(name).is_infinite().sum()).collect(engine="streaming")
                checks.require_no_infinite(count.item(), name)
        raise
    return {name: values[:, j] for j, name in enumerate(names)}
