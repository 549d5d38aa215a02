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
    """A table as read: `frame` with typed columns, `text` with every cell of a CSV unchanged.

    `meta` has the labels, formats and missing codes of a Stata, SPSS or SAS file.
    """

    frame: pl.DataFrame
    text: pl.DataFrame | None
    path: Path
    dialect: Dialect
    meta: Meta | None = None

    @property
    def labelled(self) -> tuple[str, ...]:
        """Numeric columns that are categories: each of their values has a label."""
        return () if self.meta is None else self.meta.labelled


def like(theirs: pl.DataFrame, ours: pl.DataFrame) -> pl.DataFrame:
    """Cast columns without any value to numbers where the original has numbers."""
    empty = [
        column.name
        for column in theirs
        if column.name in ours.columns
        and ours[column.name].dtype.is_numeric()
        and column.null_count() == theirs.height
    ]
    return theirs.with_columns(pl.col(empty).cast(pl.Float64))
