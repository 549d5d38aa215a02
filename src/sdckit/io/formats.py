"""Formats of files by their suffixes, and dialects of text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import PurePath

PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")  # after the suffix of a text file
TEXT_SUFFIXES = (".csv", ".txt", ".tsv")
CSV_SUFFIXES = TEXT_SUFFIXES + tuple(text + packed for packed in PACKED_SUFFIXES for text in TEXT_SUFFIXES)
PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
STAT_SUFFIXES = (".dta", ".sav", ".zsav", ".xpt")
LABELLED_SUFFIXES = (*STAT_SUFFIXES, ".sas7bdat", ".por")  # with labels and codes of missing cells
EXCEL_SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
R_SUFFIXES = (".rds", ".rda", ".rdata")
SUFFIXES = CSV_SUFFIXES + PARQUET_SUFFIXES + ARROW_SUFFIXES + STAT_SUFFIXES
READ_ONLY = {  # and what to write instead
    ".sas7bdat": ".xpt",
    ".por": ".sav",
    **dict.fromkeys(EXCEL_SUFFIXES, ".csv"),
    **dict.fromkeys(R_SUFFIXES, ".parquet"),
}
READABLE = (*SUFFIXES, *READ_ONLY)


def suffix_of(path: PurePath) -> str:
    """Return the suffix that names the format of a file, in lower case, such as ".csv" or ".csv.gz"."""
    return path.name[len(stem_of(path)) :].lower()


def stem_of(path: PurePath) -> str:
    """Return the name of a file without the suffix that names its format."""
    inner = path.with_suffix("") if path.suffix.lower() in PACKED_SUFFIXES else path
    return inner.stem if inner.suffix.lower() in TEXT_SUFFIXES else path.stem


def suffixes_text(suffixes: Sequence[str]) -> str:
    """Return suffixes as a list for errors, those of compressed text files in a few words."""
    plain = [suffix for suffix in suffixes if not suffix.endswith(PACKED_SUFFIXES)]
    text = ", ".join(plain)
    return text if len(plain) == len(suffixes) else f"{text}, or .csv{', .csv'.join(PACKED_SUFFIXES)}"


@dataclass(frozen=True)
class Dialect:
    r"""How a file is read: delimiter, decimal mark, encoding and missing codes; which table of several.

    Parameters
    ----------
    delimiter
        One character; `\t`, as typed in a shell, means a tab. Without one it is a comma, a
        semicolon where decimals have a comma, or a tab in a `.tsv` file.
    decimal_comma
        Numbers look like `1,5`.
    encoding
        Any text encoding that Python supports; a byte-order mark at the start is skipped.
    missing
        Texts that stand for a missing number, such as NA; an empty cell always does.
    table
        The sheet of an Excel file or the data frame of an R file that is read; other files hold one table.
        Without a name it is the only one there.
    escape_formulas
        In CSV files, texts that spreadsheet programs would run as formulas have ' before them.

    Examples
    --------
    >>> Dialect(delimiter="::")
    Traceback (most recent call last):
    ValueError: delimiter '::' cannot be used; give one character, such as ',' or '\t'
    """

    delimiter: str | None = None
    decimal_comma: bool = False
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()
    table: str | None = None
    escape_formulas: bool = False

    def __post_init__(self) -> None:
        try:
            "".encode(self.encoding)
            b"".decode(self.encoding)
        except (LookupError, ValueError) as error:
            remedy = "use one that Python supports, such as utf-8, latin-1 or cp1252"
            raise ValueError(f"unknown encoding {self.encoding!r}; {remedy}") from error
        mark = self.delimiter
        if mark is None:
            return
        mark = "\t" if mark == "\\t" else mark
        if len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in '"\r\n.+-\0':
            raise ValueError(f"delimiter {mark!r} cannot be used; give one character, such as ',' or '\\t'")
        if mark == "," and self.decimal_comma:
            raise ValueError("delimiter ',' cannot go with a decimal comma; give another, such as ';'")
        object.__setattr__(self, "delimiter", mark)

    def separator(self, path: Path) -> str:
        """Return the delimiter of the file at `path`: the given one, or that of its suffix."""
        if self.delimiter is not None:
            return self.delimiter
        if suffix_of(path).startswith(".tsv"):
            return "\t"
        return ";" if self.decimal_comma else ","


DEFAULT = Dialect()
