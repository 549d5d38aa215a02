"""A table read from a file, with the metadata of the file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from zlib import crc32

import polars as pl
from polars import selectors as cs

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from sdckit.io.dialect import Dialect
    from sdckit.io.statfiles.meta import Meta


@dataclass(frozen=True)
class Source:
    """A table as read from a file: typed columns, the text of their cells, and metadata.

    `frame` has typed columns; `text` has the cells of columns that the file holds as text, unchanged: all of
    a CSV, some of an Excel file, None for other files; `meta` has the labels, formats and missing codes of a
    Stata, SPSS or SAS file; `sha256` is the digest of the bytes that the table was read from, empty for a
    draft.
    """

    frame: pl.DataFrame
    text: pl.DataFrame | None
    path: Path
    dialect: Dialect
    meta: Meta | None = None
    sha256: str = ""

    @property
    def labelled(self) -> tuple[str, ...]:
        """Names of the numeric columns that are categories, since each of their values has a label."""
        return () if self.meta is None else self.meta.labelled

    def missing_marks(self) -> dict[str, NDArray[np.int64]]:
        """Return the mark of each cell of the numeric columns whose missing cells look different.

        A mark is the same number for the same text, such as NA or .a, in any file; 0 for an empty cell.
        """
        shown = {name: self._text_of_missing(name) for name in self.frame.columns}
        return {
            name: text.replace_strict(
                {word: 1 + crc32(word.encode()) for word in words}, default=0
            ).to_numpy()
            for name, text in shown.items()
            if text is not None and (words := text.drop_nulls().unique().to_list())
        }

    def _text_of_missing(self, name: str) -> pl.Series | None:
        """Return what stands in the missing cells of a numeric column, null elsewhere; None if unknown."""
        column = self.frame[name]
        absent = column.is_null() if not column.dtype.is_float() else column.is_null() | column.is_nan()
        if not column.dtype.is_numeric() or not absent.any():
            return None
        if self.text is not None and name in self.text.columns:
            return self.text[name].set(~absent, None)
        codes = None if self.meta is None else self.meta.codes.get(name)
        return None if codes is None else codes.cast(pl.String)

    def take(self, rows: NDArray[np.int64], columns: Collection[str]) -> Source:
        """Return some columns, with their text and metadata, and all rows in the given order."""
        names = [name for name in self.frame.columns if name in columns]
        text = pl.DataFrame() if self.text is None else self.text.select(cs.by_name(names, require_all=False))
        return replace(
            self,
            frame=self.frame.select(names)[rows],
            text=text[rows] if text.width else None,
            meta=None if self.meta is None else self.meta.take(rows, names),
        )


def cast_empty_columns(masked: pl.DataFrame, original: pl.DataFrame) -> pl.DataFrame:
    """Return the masked table with its empty columns as floats where the original has numbers."""
    empty = [
        column.name
        for column in masked
        if column.name in original.columns
        and original[column.name].dtype.is_numeric()
        and column.null_count() == masked.height
    ]
    return masked.with_columns(pl.col(empty).cast(pl.Float64))
