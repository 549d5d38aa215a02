"""Read tables from files, and write them completely or not at all, by the suffix of the file."""

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl

from sdckit.core.warning_texts import warn
from sdckit.io import csv_text
from sdckit.io.atomic import (
    CSV_SUFFIXES,
    PARQUET_SUFFIXES,
    POLARS_ERRORS,
    READABLE,
    STAT_SUFFIXES,
    AnyPath,
    atomic,
    check_target,
)
from sdckit.io.dialect import DEFAULT, Dialect
from sdckit.io.memory import BEYOND_MEMORY, require_memory
from sdckit.io.parquet_table import parse_parquet
from sdckit.io.source import Source

__all__ = [
    "as_numbers",
    "check_format",
    "read",
    "read_draft",
    "write",
    "write_draft",
]

_INTEGER = r"^(0|-?[1-9][0-9]*)$"
_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NOT_FINITE = r"^-?(?i:nan|inf|infinity)$"


def read(path: AnyPath, dialect: Dialect = DEFAULT) -> Source:
    r"""Read a file by its suffix: CSV, Parquet, Stata, SPSS or SAS.

    A CSV column becomes numeric only when every cell that is not empty is a plain number, so that
    codes such as 007 stay codes. Empty cells are null, and so are the missing codes of Stata, SPSS and SAS.

    Parameters
    ----------
    path
        A file ending in .csv, .txt, .tsv, .parquet, .pq, .dta, .sav, .zsav, .por, .xpt or .sas7bdat.
    dialect
        How a text file is written; of the others only old Stata, SPSS and SAS files may need its encoding.

    Returns
    -------
    Source
        The table; for a CSV also the text of its cells, for Stata, SPSS and SAS files their metadata.

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
    return _parse(path, _read_bytes(path), dialect)


def _parse(path: Path, data: bytes, dialect: Dialect) -> Source:
    """Return the table in a file's bytes, parsed by the suffix of `path`; ValueError if it has no records."""
    text = meta = None
    if path.suffix.lower() in PARQUET_SUFFIXES:
        frame = parse_parquet(path, data)
        check_column_names(path, frame.columns)
    elif path.suffix.lower() not in CSV_SUFFIXES:
        from sdckit.io import statfiles  # noqa: PLC0415 - only where such a file is named

        given_encoding = dialect.encoding != DEFAULT.encoding
        frame, meta = statfiles.read(path, data, dialect.encoding if given_encoding else None)
    else:
        text = _parse_csv(path, _decode(path, data, dialect.encoding), dialect)
        frame = pl.DataFrame([as_numbers(column, dialect) for column in text])
    if frame.height == 0:
        raise ValueError(f"'{path}' has column names but no records; give a file with at least one record")
    return Source(frame, text, path, dialect, meta)


def _read_bytes(path: Path) -> bytes:
    """Return the bytes of a file; raise an error if it is missing, empty or of unknown suffix."""
    with explain_read_errors(path):
        check_readable(path)
        require_memory(f"'{path}'", path.stat().st_size, BEYOND_MEMORY)
        if data := path.read_bytes():
            return data
    raise _empty_error(path)


def check_readable(path: Path) -> None:
    """Raise an error if a path is a folder, or ends in no suffix that `read` knows."""
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder; name a file in it")
    if path.suffix.lower() not in READABLE:
        raise ValueError(f"cannot read '{path}' by its suffix; use one of: {', '.join(READABLE)}")


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


def _empty_error(path: Path) -> ValueError:
    """Return the error for a file without content."""
    return ValueError(f"'{path}' is empty; give a file with column names and records")


def _decode(path: Path, data: bytes, encoding: str) -> bytes:
    """Return the text of a file as UTF-8 without byte-order mark, lines ending in a line feed."""
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeError as error:
        where = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        raise ValueError(
            f"'{path}' is not {encoding} text{where}; "
            "set its encoding, such as encoding='latin-1' or encoding='utf-16'"
        ) from error
    if "\0" in text:
        raise ValueError(f"'{path}' holds zero bytes: no {encoding} text; set encoding='utf-16' or another")
    if "\n" not in text:
        text = text.replace("\r", "\n")  # line ends of old Macs
    if not text.strip():
        raise _empty_error(path)
    return text.rstrip("\r\n").encode() + b"\n"


def _parse_csv(path: Path, data: bytes, dialect: Dialect) -> pl.DataFrame:
    """Return a CSV as a table of text; raise ValueError for unclear names or lines of unequal length."""
    separator = dialect.separator(path)
    names = next(_csv_rows(path, data, separator))[1]
    check_column_names(path, names)
    if len(names) == 1 and dialect.delimiter is None and (other := re.search("[;,\t|]", names[0])):
        raise ValueError(
            f"'{path}' has one column {names[0]!r} when split at {separator!r}; "
            f"set the delimiter, such as delimiter={other[0]!r}"
        )
    try:
        text = pl.read_csv(data, separator=separator, infer_schema=False)
    except POLARS_ERRORS as error:
        _check_rows(path, data, separator, len(names))
        reason = str(error).split("\n", 1)[0]
        raise ValueError(
            f"'{path}' is no CSV table ({reason}); check quotation marks and delimiter"
        ) from error
    if text.width != len(names):
        raise ValueError(f"the header of '{path}' is unclear; put its names in quotation marks")
    short = len(names) > 1 and text.height > 0 and text[:, -1].null_count() > 0
    if short and (b'"' in data or data.count(separator.encode()) != (len(names) - 1) * (text.height + 1)):
        _check_rows(path, data, separator, len(names))
    text.columns = names
    return text


def _csv_rows(path: Path, data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the last line number and the cells of each record of a CSV, the header first."""
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n")
    reader = csv.reader(lines, delimiter=separator, strict=True)
    started = False
    try:
        for row in reader:
            started = started or bool(row)
            if started:
                yield reader.line_num, row
    except csv.Error as error:
        where = f"line {reader.line_num} of '{path}'"
        raise ValueError(f"{where} cannot be read ({error}); check its quotation marks") from error


def _check_rows(path: Path, data: bytes, separator: str, width: int) -> None:
    """Raise ValueError naming the first line of a CSV with more or fewer than `width` cells."""
    for line, row in _csv_rows(path, data, separator):
        if len(row) != width and (row or width > 1):
            raise ValueError(
                f"line {line} of '{path}' has not as many cells as the header ({len(row)}, not {width}); "
                "correct that line or set the delimiter"
            )


def check_column_names(path: AnyPath, names: Sequence[str]) -> None:
    """Raise ValueError if a column of the file has no name or two columns share one."""
    for place, name in enumerate(names, 1):
        if not name.strip():
            raise ValueError(
                f"column {place} of '{path}' has no name; name it in the first line (in R: row.names = FALSE)"
            )
        if name in names[: place - 1]:
            raise ValueError(f"'{path}' has two columns named {name!r}; rename one of them")


def as_numbers(column: pl.Series, dialect: Dialect = DEFAULT) -> pl.Series:
    """Return a text column as integers or floats if every cell is a number or missing, else as text."""
    cells = column.str.strip_chars()
    cells = cells.set(cells.is_in(["", *_codes_that_are_words(dialect.missing)]), None)
    if cells.str.contains(_INTEGER).all():
        numbers = cells.cast(pl.Int64, strict=False)
        beyond = numbers.null_count() > cells.null_count()
        return column if beyond or numbers.null_count() == cells.len() else numbers
    if dialect.decimal_comma:
        if cells.str.contains(".", literal=True).any():  # it may group thousands
            return column
        cells = cells.str.replace(",", ".", literal=True)
    finite = cells.str.contains(_NUMBER)
    if not finite.any() or not (finite | cells.str.contains(_NOT_FINITE)).all():
        return column
    return cells.cast(pl.Float64)


def _codes_that_are_words(codes: Collection[str]) -> list[str]:
    """Return the missing codes that are not numbers; numeric codes are declared with `na`."""
    return [code for code in codes if not re.match(_NUMBER, code)]


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
    """Write a table to a file in one step, by its suffix: CSV, Parquet, Stata, SPSS or SAS.

    Floats take the shortest form that reads back bit for bit; null and NaN are empty cells in a
    CSV. A column whose values are those of `source` keeps the text it had there; so does a missing cell.
    Stata, SPSS and SAS files keep the labels, formats and missing codes of `source`; a warning names
    what the format cannot hold.

    Parameters
    ----------
    path
        A file ending in .csv, .txt, .tsv, .parquet, .pq, .dta, .sav, .zsav or .xpt.
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
    if path.suffix.lower() not in STAT_SUFFIXES:
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
    stat = path.suffix.lower() in STAT_SUFFIXES
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
    """Return the bytes of a Parquet or CSV file with this table."""
    if path.suffix.lower() in PARQUET_SUFFIXES:
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        return buffer.getvalue()
    return csv_text.csv_bytes(path, csv_text.text_cells(frame, source, whole, dialect), dialect)
