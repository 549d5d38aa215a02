"""A table read from a file, with the metadata of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from pathlib import Path

    from sdckit.io.dialect import Dialect
    from sdckit.io.statfiles.meta import Meta


@dataclass(frozen=True)
class Source:
    """A table as read from a file: typed columns, the text of a CSV's cells, and metadata.

    `frame` has typed columns; `text` has every cell of a CSV unchanged, None for other files; `meta` has the
    labels, formats and missing codes of a Stata, SPSS or SAS file.
    """

    frame: pl.DataFrame
    text: pl.DataFrame | None
    path: Path
    dialect: Dialect
    meta: Meta | None = None

    @property
    def labelled(self) -> tuple[str, ...]:
        """Names of the numeric columns that are categories, since each of their values has a label."""
        return () if self.meta is None else self.meta.labelled


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
