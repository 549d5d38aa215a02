"""Suffixes of files: which format each of them names, and which formats are read or written."""

from __future__ import annotations

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
