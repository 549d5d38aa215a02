"""Write a masked table to a temporary file, read it back, and rename it once all checks have passed."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sdckit.io import files
from sdckit.io.dialect import DEFAULT
from sdckit.io.source import cast_empty_columns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    import polars as pl

    from sdckit.io.dialect import Dialect
    from sdckit.io.source import Source
    from sdckit.masking import Masking


@dataclass(frozen=True)
class ReleaseFile:
    """Path and file format of a masked table that will be written.

    `source` is the file that the data come from, whose labels and missing codes are kept; `columns` are those
    that are masked, `whole` those that are written without decimals.
    """

    path: Path
    source: Source | None = None
    columns: Collection[str] = ()
    whole: Collection[str] = ()
    dialect: Dialect = DEFAULT
    overwrite: bool = False

    @contextmanager
    def store(self, made: Masking) -> Iterator[pl.DataFrame]:
        """Write a masked table, yield it as read back; name the file only if the block raises no error."""
        source = self.source
        if source is not None and not made.disclosure.paired:
            source = files.without_missing_codes(source, self.columns)
        with files.write_draft(
            self.path,
            made.data,
            source=source,
            whole=self.whole,
            dialect=self.dialect,
            overwrite=self.overwrite,
        ) as draft:
            yield cast_empty_columns(files.read_draft(draft, self.path, self.dialect).frame, made.data)
