"""Read and write files of every format that is known, as far as memory allows."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import polars as pl
from polars import selectors as cs

from sdckit.core.checks import warn
from sdckit.io import formats, packing
from sdckit.io.atomic import POLARS_ERRORS, AnyPath, atomic, check_target
from sdckit.io.cell_types import as_numbers
from sdckit.io.csv_table import check_column_names, csv_bytes, empty_error, parse_csv, text_cells
from sdckit.io.formats import DEFAULT, Dialect, suffix_of
from sdckit.io.memory import BEYOND_MEMORY, require_memory
from sdckit.io.parquet_table import arrow_bytes, parse_arrow, parse_parquet

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
        """Return what stands in the missing cells of numeric columns, a number for each text; else 0.

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


CSV_TIMES = 5  # bytes that reading takes for each byte of a CSV: its text, lines, cells and numbers

__all__ = [
    "check_format",
    "read",
    "read_draft",
    "write",
    "write_draft",
]


def read(path: AnyPath, dialect: Dialect = DEFAULT) -> Source:
    r"""Read a file by its suffix: CSV, Parquet, Arrow, Stata, SPSS, SAS, Excel or R.

    A column of text becomes numeric only when every cell that is not empty is a plain number, so that
    codes such as 007 stay codes. Empty cells are null, and so are the missing codes of Stata, SPSS and SAS.

    Parameters
    ----------
    path
        A file ending in .csv, .txt or .tsv (also compressed: .csv.gz, .csv.bz2, .csv.xz, .csv.zst), .parquet,
        .pq, .arrow, .feather, .ipc, .dta, .sav, .zsav, .por, .xpt, .sas7bdat, .xlsx, .xlsm, .xlsb, .xls,
        .ods, .rds, .rda or .rdata.
    dialect
        How a text file is written, and which sheet or data frame to read; of the other formats only old
        Stata, SPSS, SAS and R files may need its encoding.

    Returns
    -------
    Source
        The table; for a CSV also the text of its cells, for Excel that of columns of text, for Stata, SPSS
        and SAS files their metadata.

    Raises
    ------
    OSError
        The file is missing, a folder or out of reach.
    ValueError
        The file is not a table: empty, ragged, damaged, or with unclear column names.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "firms.csv")
    >>> _ = file.write_text("code,sales\n007,1.50\n008,\n")
    >>> read(file).frame.rows()
    [('007', 1.5), ('008', None)]
    >>> folder.cleanup()
    """
    path = Path(path)
    data = _read_bytes(path)
    return replace(_parse(path, data, dialect), sha256=hashlib.sha256(data).hexdigest())


def _parse(path: Path, data: bytes, dialect: Dialect) -> Source:
    """Return the table in a file's bytes, parsed by the suffix of `path`; ValueError if it has no records."""
    source = READERS.get(suffix_of(path), _read_statfile)(path, data, dialect)
    check_column_names(path, source.frame.columns)
    if source.frame.height == 0:
        raise ValueError(f"'{path}' has column names but no records; give a file with at least one record")
    return source


def _read_csv(path: Path, data: bytes, dialect: Dialect) -> Source:
    """Return the table in the bytes of a text file, compressed or not."""
    if packing.is_packed(path):
        data = packing.unpacked(path, data)
        require_memory(f"'{path}'", (CSV_TIMES - 1) * len(data), BEYOND_MEMORY)
    text = parse_csv(path, data, dialect)
    return Source(pl.DataFrame([as_numbers(column, dialect) for column in text]), text, path, dialect)


def _read_excel(path: Path, data: bytes, dialect: Dialect) -> Source:
    """Return the table in the bytes of a workbook."""
    from sdckit.io.excel_table import parse_excel  # noqa: PLC0415 - only where such a file is named

    return Source(*parse_excel(path, data, dialect), path, dialect)


def _read_r(path: Path, data: bytes, dialect: Dialect) -> Source:
    """Return the data frame in the bytes of a file of R."""
    from sdckit.io.r_table import parse_r  # noqa: PLC0415 - only where such a file is named

    return Source(parse_r(path, data, dialect), None, path, dialect)


def _read_statfile(path: Path, data: bytes, dialect: Dialect) -> Source:
    """Return the table in the bytes of a file of Stata, SPSS or SAS."""
    from sdckit.io import statfiles  # noqa: PLC0415 - only where such a file is named

    given = dialect.encoding if dialect.encoding != DEFAULT.encoding else None
    frame, meta = statfiles.read(path, data, given)
    return Source(frame, None, path, dialect, meta)


READERS = {
    **dict.fromkeys(formats.CSV_SUFFIXES, _read_csv),
    **dict.fromkeys(formats.PARQUET_SUFFIXES, lambda p, data, d: Source(parse_parquet(p, data), None, p, d)),
    **dict.fromkeys(formats.ARROW_SUFFIXES, lambda p, data, d: Source(parse_arrow(p, data), None, p, d)),
    **dict.fromkeys(formats.EXCEL_SUFFIXES, _read_excel),
    **dict.fromkeys(formats.R_SUFFIXES, _read_r),
}


def _read_bytes(path: Path) -> bytes:
    """Return the bytes of a file; raise an error if it is missing, empty or of unknown suffix."""
    with explain_read_errors(path):
        check_readable(path)
        times = CSV_TIMES if suffix_of(path) in formats.TEXT_SUFFIXES else 1
        require_memory(f"'{path}'", times * path.stat().st_size, BEYOND_MEMORY)
        if data := path.read_bytes():
            return data
    raise empty_error(path)


def check_readable(path: Path) -> None:
    """Raise an error if a path is a folder, or ends in no suffix that `read` knows."""
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder; name a file in it")
    if suffix_of(path) not in formats.READABLE:
        raise ValueError(
            f"cannot read '{path}' by its suffix; use one of: {formats.suffixes_text(formats.READABLE)}"
        )


@contextmanager
def explain_read_errors(path: AnyPath) -> Iterator[None]:
    """Turn an OSError of the system raised in a `with` block into one line with the path and a remedy."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"no file '{path}'; check its name and folder") from error
    except OSError as error:
        if error.errno is None:
            raise
        reason = (error.strerror or "unknown reason").lower()
        raise type(error)(f"cannot read '{path}': {reason}; check its name and your permissions") from error


def write(
    path: AnyPath,
    frame: pl.DataFrame,
    *,
    source: Source | None = None,
    whole: Collection[str] = (),
    dialect: Dialect = DEFAULT,
    overwrite: bool = False,
    private: bool = False,
) -> None:
    """Write a table to a file in one step, by its suffix: CSV, Parquet, Arrow, Stata, SPSS or SAS.

    Floats take the shortest form that reads back bit for bit; null and NaN are empty cells in a
    CSV. A column whose values are those of `source` keeps the text it had there; so does a missing cell.
    Stata, SPSS and SAS files keep the labels, formats and missing codes of `source`; a warning names
    what the format cannot hold.

    Parameters
    ----------
    path
        A file ending in .csv, .txt or .tsv (also compressed: .csv.gz, .csv.bz2, .csv.xz, .csv.zst), .parquet,
        .pq, .arrow, .feather, .ipc, .dta, .sav, .zsav or .xpt.
    frame
        The table.
    source
        What `frame` was made from.
    whole
        Columns whose floats a CSV is to show without decimals, as in 1234, where they have none.
    dialect
        How a text file is to be written.
    overwrite
        Replace a file that exists.
    private
        Let no other user read the file, at any time.

    Raises
    ------
    OSError
        The file exists, or the system refused to write it; nothing is left behind.
    ValueError
        The suffix is unknown, or a value has no place in the format or encoding.
    """
    with write_draft(
        path, frame, source=source, whole=whole, dialect=dialect, overwrite=overwrite, private=private
    ):
        pass


def without_missing_text(source: Source, masked: Collection[str]) -> Source:
    """Return the source without what stands in the cells of masked columns, such as NA, -9 or .a."""
    text = None if source.text is None else source.text.drop(masked, strict=False)
    meta = source.meta
    if meta is not None:
        meta = replace(meta, codes={name: one for name, one in meta.codes.items() if name not in masked})
    return replace(source, text=text, meta=meta)


def without_missing_codes(source: Source, masked: Collection[str]) -> Source:
    """Return the source without the cell-by-cell missing codes of masked columns; warn of the loss."""
    lost = [] if source.meta is None else [name for name in source.meta.codes if name in masked]
    if source.meta is None or not lost:
        return source
    names = ", ".join(map(repr, lost))
    warn(f"rows are new, so that missing codes of {names} become plain missing cells")
    left = {name: codes for name, codes in source.meta.codes.items() if name not in masked}
    return replace(source, meta=replace(source.meta, codes=left))


@contextmanager
def write_draft(
    path: AnyPath,
    frame: pl.DataFrame,
    *,
    source: Source | None = None,
    whole: Collection[str] = (),
    dialect: Dialect = DEFAULT,
    overwrite: bool = False,
    private: bool = False,
) -> Iterator[Path]:
    """Write a table under a temporary name; rename it to `path` if the `with` block raises no error.

    Parameters
    ----------
    path, frame, source, whole, dialect, overwrite
        As for `write`.
    private
        Let no other user read the file, at any time.

    Yields
    ------
    pathlib.Path
        The finished file under a temporary name; `read_draft` reads it.
    """
    path = Path(path)
    check_target(path, overwrite)
    check_format(path, frame, source)
    content = None
    if suffix_of(path) not in formats.STAT_SUFFIXES:
        try:
            content = _file_bytes(path, frame, source, whole, dialect)
        except POLARS_ERRORS as error:
            reason = str(error).split("\n", 1)[0]
            remedy = "change that column or the format"
            raise ValueError(f"could not write '{path}' ({reason}); {remedy}") from error
    with atomic(path, overwrite, private=private) as temporary:
        if content is None:
            from sdckit.io.statfiles import write as writing  # noqa: PLC0415 - only where such a file is named

            made_from = (None, None) if source is None else (source.frame, source.meta)
            writing.write(temporary, path, frame, *made_from)
        else:
            temporary.write_bytes(content)
        yield temporary


def check_format(path: AnyPath, frame: pl.DataFrame, source: Source | None = None) -> None:
    """Raise ValueError for names and types the file format cannot hold; warn of labels and codes it loses.

    Parameters
    ----------
    path
        The file to be written.
    frame
        The table, or what it is to be made from: the same columns.
    source
        What `frame` is made from, with its labels and missing codes.

    Raises
    ------
    ValueError
        The format does not allow such a name or type.
    """
    path, meta = Path(path), None if source is None else source.meta
    stat = suffix_of(path) in formats.STAT_SUFFIXES
    if not stat and meta is None:
        return
    from sdckit.io.statfiles import meta as about  # noqa: PLC0415 - only where such a file is named

    if stat:
        about.check_names(path, frame.columns)
        about.check_types(path, frame)
        about.fit_metadata(path, frame, meta)
    elif meta is not None:
        about.warn_of_lost_codes(path, frame, meta)


def read_draft(draft: Path, path: AnyPath, dialect: Dialect = DEFAULT) -> Source:
    """Read a temporary file by the suffix of `path`, the file that it will become."""
    return _parse(Path(path), draft.read_bytes(), dialect)


def _file_bytes(
    path: Path, frame: pl.DataFrame, source: Source | None, whole: Collection[str], dialect: Dialect
) -> bytes:
    """Return the bytes of a Parquet, Arrow or CSV file with this table."""
    suffix = suffix_of(path)
    if suffix in formats.ARROW_SUFFIXES:
        return arrow_bytes(frame)
    if suffix in formats.PARQUET_SUFFIXES:
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        return buffer.getvalue()
    content = csv_bytes(path, text_cells(frame, source, whole, dialect), dialect)
    return packing.packed(path, content) if packing.is_packed(path) else content
