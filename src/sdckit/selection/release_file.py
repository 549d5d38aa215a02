"""Write a masked table to a temporary file, read it back, and rename it once all checks have passed."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sdckit.io import crosswalk, digest, files
from sdckit.io.csv_text import warn_of_formulas
from sdckit.io.dialect import DEFAULT
from sdckit.io.source import cast_empty_columns
from sdckit.io.suffixes import CSV_SUFFIXES, suffix_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import polars as pl

    from sdckit.io.dialect import Dialect
    from sdckit.io.source import Source
    from sdckit.selection.publishing import Published


@dataclass(frozen=True)
class ReleaseFile:
    """Path and file format of a masked table that will be written.

    `source` is the file that the data come from, whose labels and missing codes are kept; `columns` are those
    that are masked, `whole` those that are written without decimals. The secret file `crosswalk` gets the
    original row of each published one, and the values of the columns of `key`. `before_naming` is called with
    the finished draft before it gets its name; it returns a function that is called if that fails.
    """

    path: Path
    source: Source | None = None
    columns: Collection[str] = ()
    whole: Collection[str] = ()
    dialect: Dialect = DEFAULT
    overwrite: bool = False
    crosswalk: Path | None = None
    key: Sequence[str] = ()
    hashes: list[str] = field(default_factory=list)  # SHA-256 of each draft, the last one of which is named
    before_naming: Callable[[Path], Callable[[], object]] | None = None

    @contextmanager
    def store(self, published: Published) -> Iterator[pl.DataFrame]:
        """Write a table, yield it as read back; name the files only if the block raises no error."""
        data = published.data
        if self.before_naming is not None and suffix_of(self.path) in CSV_SUFFIXES:
            warn_of_formulas(data)
        with ExitStack() as undo:
            with files.write_draft(
                self.path,
                data,
                source=self._source_of(published),
                whole=self.whole,
                dialect=self.dialect,
                overwrite=self.overwrite,
            ) as draft:
                self.hashes.append(digest.sha256_of(draft))
                with self._crosswalk_draft(published):
                    yield cast_empty_columns(files.read_draft(draft, self.path, self.dialect).frame, data)
                if self.crosswalk is not None:  # it has its name, and the release may not get its own
                    undo.callback(self._unless_named, partial(self.crosswalk.unlink, missing_ok=True))
                if self.before_naming is not None:
                    undo.callback(self._unless_named, self.before_naming(draft))
            undo.pop_all()

    def _unless_named(self, remove: Callable[[], object]) -> None:
        """Call a function that removes what belongs to the file, unless the file has already got its name.

        A signal can arrive between the naming and the end of the block, and no file may lose its record.
        """
        if not (self.path.is_file() and digest.sha256_of(self.path) == self.hashes[-1]):
            remove()

    def _source_of(self, published: Published) -> Source | None:
        """Return what the source file holds of the published cells, row by row."""
        if self.source is None:
            return None
        same = [name for name in published.data.columns if name not in published.renumbered]
        source = self.source.take(published.rows, same)
        if published.masking.disclosure.alike:  # else NA, -9 or .a would tell the records of a group apart
            return files.without_missing_text(source, self.columns)
        if published.masking.disclosure.paired:
            return source
        return files.without_missing_codes(source, self.columns)

    def _crosswalk_draft(self, published: Published) -> AbstractContextManager[Any]:
        """Write the crosswalk, if one is asked for, under a temporary name."""
        if self.crosswalk is None:
            return nullcontext()
        keys = self.source.frame.select(self.key) if self.source is not None and self.key else None
        table = crosswalk.crosswalk_table(published.rows, keys)
        return crosswalk.write_draft(self.crosswalk, table, dialect=self.dialect, overwrite=self.overwrite)
