"""What files of Stata, SPSS and SAS say of their columns: labels, missing codes, formats."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from sdckit.core.checks import warn
from sdckit.core.text import plural, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from sdckit.io.statfiles.dates import Family


_HEADER = 176  # bytes before the first record
_VARIABLE, _LABELS, _LABELLED, _DOCUMENT, _EXTENSION, _END = 2, 3, 4, 6, 7, 999  # kinds of records
_MISSING = {-3, -2, 0, 1, 2, 3}  # how many missing values a variable declares; a range is negative


def is_sound(data: bytes) -> bool:
    """Return True if the header's records follow each other and refer to variables that exist."""
    if data[:4] not in {b"$FL2", b"$FL3"}:
        return False
    try:
        widths = _widths(data)
    except (struct.error, IndexError, ValueError):  # it ends within a record, or is none
        return False
    return bool(widths) and _long_texts_are_whole(widths)


def _order_of(data: bytes) -> str:
    """Return the order of the bytes of an SPSS file's numbers, as `struct` names it."""
    return "<" if data[64:68] in {b"\2\0\0\0", b"\3\0\0\0"} else ">"


def _widths(data: bytes) -> list[int]:  # noqa: C901 - a branch for each kind of record
    """Return the width of each variable record, -1 for those that continue a long text.

    Goes from record to record by their stated lengths; raises an error for a record that cannot be.
    """
    form, place = f"{_order_of(data)}i", _HEADER
    widths: list[int] = []

    def number() -> int:
        """Return the next 4-byte integer."""
        nonlocal place
        place += 4
        return int(struct.unpack_from(form, data, place - 4)[0])

    def count() -> int:
        """Return the next 4-byte integer; raise ValueError if it is larger than the file."""
        found = number()
        if not 0 <= found <= len(data):
            raise ValueError
        return found

    while (kind := number()) != _END:
        if kind == _VARIABLE:
            width, labelled, missing = number(), number(), number()
            if not (-1 <= width <= 255 and labelled in {0, 1} and missing in _MISSING):
                raise ValueError
            widths.append(width)
            place += 16  # two formats and a name
            letters = count() if labelled else 0
            place += -(-letters // 4) * 4 + 8 * abs(missing)
        elif kind == _LABELS:
            for _ in range(count()):
                place += 8 + (data[place + 8] + 8) // 8 * 8
        elif kind == _LABELLED:
            if any(
                not 1 <= one <= len(widths) or widths[one - 1] < 0
                for one in [number() for _ in range(count())]
            ):
                raise ValueError
        elif kind == _DOCUMENT:
            lines = count()
            place += 80 * lines
        elif kind == _EXTENSION:
            _, size, items = number(), count(), count()
            place += size * items
        else:
            raise ValueError
    return widths


def _long_texts_are_whole(widths: list[int]) -> bool:
    """Return True if each text wider than 8 bytes is followed by its entries of width -1, and only these."""
    due = 0
    for width in widths:
        if (width == -1) != (due > 0):
            return False
        due = due - 1 if width == -1 else max(-(-width // 8) - 1, 0)
    return due == 0


_XML = re.compile(
    rb"<stata_dta><header><release>(117|118|119)</release><byteorder>(MSF|LSF)</byteorder>"
    rb"<K>(.{2,4}?)</K><N>(.{4,8}?)</N>",
    re.DOTALL,
)
_OLD_STATA = range(102, 116)  # releases whose number is the first byte
_MOST_PACKED = 1100  # bytes that one byte of a zlib stream becomes at most, about
_XPT_COUNT = re.compile(rb"HEADER RECORD\*{7}OBSV8   HEADER RECORD!{7} *(\d+) *")


def claimed_records(suffix: str, data: bytes) -> int | None:
    """Return the number of records that a file claims to have; None where it does not say.

    Parameters
    ----------
    suffix
        That of the file's format, such as ".dta".
    data
        The bytes of the file.

    Returns
    -------
    int or None
        The number.

    Raises
    ------
    ValueError
        So many records have no place in so many bytes.
    """
    try:
        if suffix == ".dta":
            found, least = _claimed_by_stata(data)
        elif suffix in {".sav", ".zsav"}:
            found, least = _claimed_by_spss(data)
        else:
            stated = _XPT_COUNT.search(data) if suffix == ".xpt" else None
            found, least = (None, 0.0) if stated is None else (int(stated[1]), 1.0)
    except struct.error as error:
        raise ValueError("the file ends within its header") from error
    if found is not None and found * least > len(data):
        raise ValueError(f"a file of {len(data)} bytes claims {found} records")
    return found


def _claimed_by_stata(data: bytes) -> tuple[int | None, float]:
    """Return the number of records of a Stata file, and the fewest bytes that one takes."""
    if found := _XML.match(data):
        order = "little" if found[2] == b"LSF" else "big"
        columns, rows = (int.from_bytes(found[place], order) for place in (3, 4))  # type: ignore[arg-type]
        return rows, max(columns, 1)
    if data[:1] and data[0] in _OLD_STATA:
        columns, rows = struct.unpack_from("<HI" if data[1:2] == b"\2" else ">HI", data, 4)
        return rows, max(columns, 1)
    return None, 0.0


def _claimed_by_spss(data: bytes) -> tuple[int | None, float]:
    """Return the number of records of an SPSS file, and the fewest bytes that one takes."""
    packed, rows = (struct.unpack_from(f"{_order_of(data)}i", data, place)[0] for place in (72, 80))
    if rows < 0:  # written by a program that did not know it yet
        return None, 0.0
    parts = max(len(_widths(data)), 1)
    return rows, {0: 8.0 * parts, 1: float(parts)}.get(packed, parts / _MOST_PACKED)


FAMILIES: dict[str, Family] = {
    ".dta": "stata",
    ".sav": "spss",
    ".zsav": "spss",
    ".por": "spss",
    ".xpt": "sas",
    ".sas7bdat": "sas",
}
PROGRAMS = {"stata": "Stata", "spss": "SPSS", "sas": "SAS"}
SHOWN = 8  # names in one message
_LONG = 2**31 - 28  # beyond the whole numbers of Stata's type long


@dataclass(frozen=True)
class Meta:
    """Labels, formats and missing codes of the columns of a Stata, SPSS or SAS file.

    Parameters
    ----------
    family
        The program it comes from.
    labels, value_labels
        What a column means, and what its values mean; a letter stands for a missing code of Stata or SAS.
    formats, informats, measures, widths
        How the program shows a column: only for files of the same family.
    kinds, storage
        How a column is stored (int8 to int32, float, double or string), and in how many bytes.
    declared
        The values and ranges that SPSS takes for missing.
    codes
        The missing codes of a column, cell by cell: numbers in SPSS, letters in Stata and SAS.
    numbers
        The stored numbers of columns that are shown as dates or times.
    labelled
        The numeric columns of which every value has a label: categories.
    file_label, table_name, notes, response_sets
        Metadata of the file as a whole; of SPSS's multiple response sets, their names.
    """

    family: Family
    labels: dict[str, str] = field(default_factory=dict)
    value_labels: dict[str, dict[Any, str]] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    informats: dict[str, str] = field(default_factory=dict)
    measures: dict[str, str] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    storage: dict[str, int] = field(default_factory=dict)
    declared: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    codes: dict[str, pl.Series] = field(default_factory=dict)
    numbers: dict[str, pl.Series] = field(default_factory=dict)
    labelled: tuple[str, ...] = ()
    file_label: str | None = None
    table_name: str | None = None
    notes: tuple[str, ...] = ()
    response_sets: tuple[str, ...] = ()

    def take(self, rows: NDArray[np.int64], columns: Collection[str]) -> Meta:
        """Return the metadata of some columns, what they hold of single cells in the given order of rows."""
        chosen = self.of_columns(columns)
        codes, numbers = (
            {name: cells[rows] for name, cells in found.items()} for found in (chosen.codes, chosen.numbers)
        )
        return replace(chosen, codes=codes, numbers=numbers)

    def of_columns(self, columns: Collection[str]) -> Meta:
        """Return the metadata restricted to some columns."""
        labelled = tuple(name for name in self.labelled if name in columns)
        return replace(_restricted(self, lambda name: name in columns), labelled=labelled)


class Limits(NamedTuple):
    """Limits of a file format: allowed names, lengths of names and labels."""

    name: str
    bytes_of_name: int
    length: str
    reserved: frozenset[str]
    label: int
    value_label: int
    file_label: int
    bytes: bool  # labels are counted in bytes, not in letters
    one_case: bool  # A and a are one name


_STATA_WORDS = frozenset(
    re.findall(
        r"\w+",
        "_all _b byte _coef _cons double float if in int long _n _N _pi _pred _rc _skip strL using with",
    )
)
_LIMITS: dict[Family, Limits] = {
    "stata": Limits(
        r"[^\W\d]\w{0,31}",
        128,
        "at most 32 letters, digits and underscores, no digit first",
        _STATA_WORDS,
        80,
        32_000,
        80,
        bytes=False,
        one_case=False,
    ),
    "spss": Limits(
        r"[^\W\d_][\w.$#@]*",
        64,
        "at most 64 bytes of letters, digits and . _ $ # @, a letter first",
        frozenset(("ALL", "AND", "BY", "EQ", "GE", "GT", "LE", "LT", "NE", "NOT", "OR", "TO", "WITH")),
        255,
        120,
        64,
        bytes=True,
        one_case=True,
    ),
    "sas": Limits(
        r"[A-Za-z_]\w{0,31}",
        32,
        "at most 32 letters from A to Z, digits and underscores, no digit first",
        frozenset(("_N_", "_ERROR_", "_NUMERIC_", "_CHARACTER_", "_ALL_")),
        255,
        0,
        40,
        bytes=True,
        one_case=True,
    ),
}


def check_names(path: Path, names: Sequence[str]) -> None:
    """Raise ValueError for column names that the file format does not allow."""
    family = FAMILIES[path.suffix.lower()]
    limits = _LIMITS[family]
    flags = re.ASCII if family == "sas" else 0
    seen: dict[str, str] = {}
    for name in names:
        plain = name.upper() if limits.one_case else name
        reserved = plain in limits.reserved or (family == "stata" and re.fullmatch(r"str\d+", name))
        fine = re.fullmatch(limits.name, name, flags) and len(name.encode()) <= limits.bytes_of_name
        if reserved or not fine:
            reason = "a reserved word" if reserved else f"which takes {limits.length}"
            raise ValueError(
                f"column {name!r} has no name for {PROGRAMS[family]}, {reason}; "
                "rename it or write CSV or Parquet"
            )
        if plain in seen:
            raise ValueError(
                f"columns {seen[plain]!r} and {name!r} are one name in {PROGRAMS[family]}; "
                "rename one or write CSV or Parquet"
            )
        seen[plain] = name


def check_types(path: Path, frame: pl.DataFrame) -> None:
    """Raise ValueError for a column of a type that no such file holds, such as lists."""
    texts = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
    for name, kind in frame.schema.items():
        if not (isinstance(kind, texts) or kind.is_numeric() or kind.is_temporal()):
            raise ValueError(
                f"column {name!r} of type {kind} has no place in '{path}'; drop it or write Parquet"
            )


def warn_of_lost_codes(path: Path, frame: pl.DataFrame, meta: Meta) -> None:
    """Warn of columns whose missing codes cannot be stored in the file."""
    names = [name for name, codes in meta.codes.items() if name in frame.columns and codes.count()]
    if names:
        kept = {"spss": "a .sav file", "stata": "a .dta file", "sas": "an .xpt or .dta file"}[meta.family]
        warn(f"missing codes of {_columns_text(names)} become plain missing in '{path}'; {kept} keeps them")


def fit_metadata(path: Path, frame: pl.DataFrame, meta: Meta | None) -> Meta:
    """Return the metadata that the file format can hold; warn of what it cannot."""
    family = FAMILIES[path.suffix.lower()]
    if meta is None:
        return Meta(family)
    meta = meta.of_columns(set(frame.columns))
    if meta.family != family:
        meta = _translate_metadata(path, frame, meta, family)
    limits = _LIMITS[family]

    def cut(text: str, most: int) -> str:
        """Return the text cut to a length in bytes or letters, as the format counts."""
        return text.encode()[:most].decode(errors="ignore") if limits.bytes else text[:most]

    labels = {name: cut(label, limits.label) for name, label in meta.labels.items()}
    _warn_of_cut(path, "labels", [name for name in labels if labels[name] != meta.labels[name]])
    values = _storable_value_labels(path, frame, meta, family)
    short = {
        name: {value: cut(label, limits.value_label) for value, label in found.items()}
        for name, found in values.items()
    }
    _warn_of_cut(path, "value labels", [name for name in short if short[name] != values[name]])
    if meta.notes and family != "spss":
        warn(f"the notes in the file are not kept in '{path}'; copy them by hand")
    if meta.response_sets:
        found = ", ".join(map(repr, meta.response_sets))
        warn(f"multiple response sets are not kept in '{path}': {found}; define them again")
    title = meta.file_label and cut(meta.file_label, limits.file_label)
    return replace(meta, labels=labels, value_labels=short, file_label=title)


def without_columns(meta: Meta, names: Collection[str]) -> Meta:
    """Return the metadata without all that is known of some columns but their labels."""
    return replace(_restricted(meta, lambda name: name not in names), labels=meta.labels)


def _restricted(meta: Meta, keep: Callable[[str], bool]) -> Meta:
    """Return the metadata of the columns that are to be kept."""
    tables: dict[str, Any] = {
        table: {name: value for name, value in found.items() if keep(name)}
        for table, found in vars(meta).items()
        if isinstance(found, dict)
    }
    return replace(meta, **tables)


def _translate_metadata(path: Path, frame: pl.DataFrame, meta: Meta, family: Family) -> Meta:
    """Return the metadata that another program supports: labels, integers, shared missing codes."""
    labels, codes, letters = meta.value_labels, {}, {"stata", "sas"}
    if {meta.family, family} == letters:
        case: Callable[[Any], Any] = str.lower if family == "stata" else str.upper
        labels = {
            name: {case(v) if isinstance(v, str) else v: text for v, text in found.items() if v != "_"}
            for name, found in labels.items()
        }
        codes = {
            name: (tags.str.to_lowercase() if family == "stata" else tags.str.to_uppercase())
            for name, tags in meta.codes.items()
        }
        codes = {name: tags.set(tags == "_", None) for name, tags in codes.items()}
        lost = {name: meta.codes[name] for name in codes if codes[name].count() < meta.codes[name].count()}
        warn_of_lost_codes(path, frame, replace(meta, codes=lost))
    else:
        warn_of_lost_codes(path, frame, meta)
        labels = {
            name: {
                v: text
                for v, text in found.items()
                if frame[name].dtype == pl.String or not isinstance(v, str)
            }
            for name, found in labels.items()
        }
    whole = {name: kind for name, kind in meta.kinds.items() if kind.startswith("int")}
    return Meta(
        family,
        meta.labels,
        {name: found for name, found in labels.items() if found},
        kinds=whole,
        codes=codes,
        labelled=meta.labelled,
        file_label=meta.file_label,
        notes=meta.notes,
        response_sets=meta.response_sets,
    )


def _storable_value_labels(
    path: Path, frame: pl.DataFrame, meta: Meta, family: Family
) -> dict[str, dict[Any, str]]:
    """Return the value labels that the format can hold; warn of those it cannot."""
    if family == "spss":
        return meta.value_labels
    kept: dict[str, dict[Any, str]] = {}
    for name, found in meta.value_labels.items() if family == "stata" else ():
        fine = {
            v: text for v, text in found.items() if isinstance(v, str) or (v == int(v) and abs(v) < _LONG)
        }
        if fine and frame[name].dtype.is_numeric():
            kept[name] = fine
    lost = [name for name, found in meta.value_labels.items() if len(kept.get(name, ())) < len(found)]
    if lost:
        warn(f"value labels of {_columns_text(lost)} have no place in '{path}'; a .sav file keeps them")
    return kept


def _warn_of_cut(path: Path, what: str, names: list[str]) -> None:
    """Warn that labels of the named columns are too long for the file and are cut."""
    if names:
        warn(f"{what} of {_columns_text(names)} are too long for '{path}' and are cut; shorten them first")


def _columns_text(names: list[str]) -> str:
    """Return the names of columns as text, such as "columns 'a', 'b' and 3 more"."""
    return f"{plural(len(names), 'column')} {shortened([repr(name) for name in names], SHOWN)}"
