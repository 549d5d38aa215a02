"""Guess from names and cells what a column is: an identifier, a code, a weight, a variable."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np

from sdckit.core import cells
from sdckit.core.cells import date_format, is_mostly_numbers
from sdckit.core.table import is_missing, is_number

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sdckit.arrays import Floats
    from sdckit.core.table import Table


WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|[0-9]+")  # "personID" has two words


def _words(text: str) -> frozenset[str]:
    """Return the set of the words of a text."""
    return frozenset(text.split())


IDENTIFIERS = _words(
    "id ids idn ident identifier key nr uuid guid pid hid hhid uid ssn nif "
    "nino iban caseid serial idhh idpers idind respid seqn passport phone email"
)
COUNTERS = _words("no number record row index")
UNITS = _words(
    "hh hhid hhold household dwelling family firm company enterprise establishment plant farm school "
    "hospital patient person panel pid hid idhh serial hogar vivienda empresa persona menage foyer "
    "entreprise haushalt betrieb unternehmen"
)
WEIGHTS = _words(
    "weight weights wgt wgts wt wts wght pweight aweight iweight fweight pwgt hwgt fnlwgt afnlwgt "
    "finalwt pond pondera ponderacion ponderation expansion fexp facexp gewicht gewichte "
    "hochrechnungsfaktor peso poids"
)
CODES = _words(
    "zip zipcode postcode postal plz isco isced nace isic naics sic nuts municipality muni town city "
    "commune canton region province district county country nationality occupation occ industry "
    "state fips statefip countyfip puma icd"
)
CODED = _words("code codes cod")
BODIES = _words("birth body baby kg lb lbs loss gain")  # beside which a weight is one of bodies
PERSONAL = _words(
    "name names surname firstname lastname forename nombre nom vorname nachname address street email mail "
    "phone telephone mobile iban comment comments remark remarks note notes text url"
)
HEIGHTS = _words("height bmi stature")
PEOPLE = UNITS | _words("case cps user cust customer client member resp ind obs student teacher worker")


def words_of(name: str) -> list[str]:
    """Return the words of a column name in small letters: firm and id for firm_id, firmId and "Firm ID"."""
    return [word.lower() for word in WORD.findall(name)]


def names_record(name: str) -> bool:
    """Return True for names that a unique number of a record may have: firm_id, record no, row."""
    return bool({*words_of(name)} & (IDENTIFIERS | COUNTERS)) or names_unit(name)


def names_unit(name: str) -> bool:
    """Return True for names of a household, firm or person, such as hhid or firm, but not firm_income."""
    words = words_of(name)
    ends = {*words[:1], *words[-1:]}
    joined = any(word.endswith("id") and (word[:-2] in PEOPLE or word[-4:] == "hhid") for word in ends)
    return bool(words) and (joined or bool(ends & IDENTIFIERS) or {*words} <= PEOPLE | COUNTERS)


def names_code(name: str) -> bool:
    """Return True for names of classifications and areas, such as nace, postcode or region_id."""
    words = [word for word in words_of(name) if not word.isdigit()]
    subject = [word for word in words if word not in IDENTIFIERS]
    return bool({*words[:1], *words[-1:]} & CODED or {*subject[-1:]} & CODES)


def names_weights(name: str) -> bool:
    """Return True for names such as weight, hh_wgt, perwt or fnlwgt, but not birth_weight."""
    words = [word for word in words_of(name) if not word.isdigit()]
    if {*words} & BODIES:
        return False
    return any(
        word in WEIGHTS or word.startswith(("wgt", "pond")) or word.endswith(("wgt", "weight", "wt"))
        for word in {*words[:1], *words[-1:]}
    )


Role = Literal["variable", "code", "key", "unit", "weights", "date", "text", "nested"]

MOST_CODES = 20  # distinct whole numbers of a code, at most
MOST_MISSING = 9  # distinct codes of missing answers in a column, at most
REPEATED = 5  # records that share a code on average, at least
NEAR_UNIQUE = 0.95  # share of distinct values from which a column singles records out
SAMPLE = 5_000  # rows that are looked at first: most columns are clear after them
LARGE_UNIT = 100  # rows of a unit on average, at most; larger groups are codes
SORTED_UNITS = 100  # distinct numbers from which unnamed sorted runs are taken for units
SAME_DIGITS = 7  # digits from which distinct whole numbers of the same length are taken for identifiers
FEWEST_STEPS = 100  # distinct rising numbers from which regular steps are taken for a numbering
LONGEST_RUN = 15  # rows of a household; longer runs must be even, as in a panel

LOOKS = {
    "variable": "a variable",
    "code": "a code",
    "key": "an identifier",
    "unit": "an identifier of households, firms or persons",
    "weights": "a survey weight",
    "date": "a date",
    "text": "text",
    "nested": "nested data",
}


@dataclass(frozen=True)
class Guess:
    """What a column looks like: its role, the reason, and whether somebody has to decide on it.

    `role` is variable (numbers to mask), code (categories, numbers or not), key (one value a record), unit
    (household, firm or person, whose records share the value), weights, date, text or nested. A column that
    is `undecided` is not to be released before its role is named. `reason` has no value of any cell.
    """

    role: Role
    reason: str
    undecided: bool = False
    near_unique: bool = False  # at least 95 % of the values are distinct

    @property
    def looks_like(self) -> str:
        """The role in words that follow "looks like", such as "an identifier"."""
        return LOOKS[self.role]


def guess_columns(
    table: Table,
    *,
    labelled: Collection[str] = (),
    na: Iterable[float] = (),
    columns: Collection[str] | None = None,
) -> dict[str, Guess]:
    """Return what each column of a table looks like, or each of `columns`; an array has variables only.

    `labelled` names columns of which every value has a label; numbers in `na` stand for missing cells.
    """
    names = [name for name in table.names if columns is None or name in columns]
    if table.frame is None:
        return dict.fromkeys(names, Guess("variable", "a column of an array"))
    body = any({*words_of(name)} & HEIGHTS for name in table.names)
    found = {}
    for name in names:
        guess = guess_column(table.column(name), name, labelled=name in labelled, na=na)
        if body and guess.role == "weights" and name.lower() == "weight":
            guess = Guess("variable", "numbers; beside a column of heights, no survey weight")
        found[name] = guess
    return found


def guess_column(
    column: nw.Series[Any], name: str | None = None, *, labelled: bool = False, na: Iterable[float] = ()
) -> Guess:
    """Return what one column looks like; arguments as for `guess_columns`."""
    name, kind = column.name if name is None else name, column.dtype
    if labelled:
        return Guess("code", "every value has a label", undecided=bool(kind.is_numeric()))
    if kind.is_numeric():
        return _guess_numbers(column, name, na)
    if kind.is_temporal():
        return _guess_date(column, "dates" if kind == nw.Date else "dates or times")
    if kind.is_nested() or kind == nw.Binary:
        return Guess("nested", "cells are lists, records or bytes", undecided=True)
    if kind in {nw.Object, nw.Unknown}:
        return _guess_objects(column)
    return Guess("code", "true or false") if kind == nw.Boolean else _guess_text(column, name)


def is_near_unique(column: nw.Series[Any]) -> bool:
    """Return True if at least 95 % of the observed values of a column are distinct, and it has 3 or more."""
    few = column if len(column) <= SAMPLE else column[cells.sample_rows(len(column), SAMPLE)]
    if len(few) < len(column) and _distinct_share(few) < NEAR_UNIQUE:  # a sample repeats less than the column
        return False
    return len(cells.observed(column)) > 2 and _distinct_share(column) >= NEAR_UNIQUE


def _distinct_share(column: nw.Series[Any]) -> float:
    """Return the share of the observed values that are distinct; 0 without any."""
    seen = cells.observed(column)
    return seen.n_unique() / len(seen) if len(seen) else 0.0


def _guess_date(column: nw.Series[Any], what: str) -> Guess:
    """Return the guess for a column of dates: undecided if they are nearly all different."""
    if is_near_unique(column):
        return Guess("date", f"{what}, at least 95 % of them distinct", undecided=True, near_unique=True)
    return Guess("date", what)


def _guess_objects(column: nw.Series[Any]) -> Guess:
    """Return the guess for a column of Python objects."""
    seen = [cell for cell in column.to_list() if not is_missing(cell)]
    if not seen:
        return Guess("text", "no cell has a value")
    if all(isinstance(cell, bool) for cell in seen):
        return Guess("code", "true or false")
    if all(is_number(cell) for cell in seen):
        reason = "numbers stored as Python objects; convert them, in pandas with .astype(float)"
        return Guess("text", reason, undecided=True)
    if all(isinstance(cell, date) for cell in seen):
        return _guess_date(column, "dates")
    if any(isinstance(cell, (list, tuple, dict, set, np.ndarray)) for cell in seen):
        return Guess("nested", "cells are lists or records", undecided=True)
    return Guess("text", "objects of several types", undecided=True)


# --- text ---


def _guess_text(column: nw.Series[Any], name: str) -> Guess:
    """Return the guess for a column of text or categories."""
    seen = cells.observed(column)
    if not len(seen):
        return Guess("text", "no cell has a value")
    few = cells.sample_text(seen, SAMPLE)
    if date_format(few) is not None:
        return _guess_date(column, "dates stored as text")
    if is_mostly_numbers(few):
        return Guess("text", "mostly numbers, but stored as text", undecided=True)
    distinct = seen.n_unique()
    if is_near_unique(column):
        if not {*words_of(name)} & PERSONAL and len(seen) == len(column) and distinct == len(seen):
            return Guess("key", "text, every value distinct", undecided=True)
        return Guess("text", "text, at least 95 % of the values distinct", undecided=True, near_unique=True)
    units = distinct > MOST_CODES and len(seen) <= LARGE_UNIT * distinct
    found = Guess("text", "text" if distinct > MOST_CODES else "text of few values")
    if units and names_unit(name) and not names_code(name):
        found = Guess("unit", "named like an identifier, and values repeat", undecided=True)
    return found


# --- numbers ---


@np.errstate(over="ignore", invalid="ignore")  # differences of the largest numbers: no identifier has them
def _guess_numbers(column: nw.Series[Any], name: str, na: Iterable[float]) -> Guess:
    """Return the guess for a column of numbers."""
    if cells.beyond_floats(column):
        unique = column.null_count() == 0 and column.n_unique() == len(column)
        return Guess("key" if unique else "unit", "whole numbers of 16 digits or more", undecided=True)
    values = cells.as_floats(column, na)
    seen = values[~np.isnan(values)]
    if not seen.size:
        return Guess("variable", "no cell has a value")
    few = seen if seen.size <= SAMPLE else seen[cells.sample_rows(seen.size, SAMPLE)]
    whole = all((part == np.floor(part)).all() for part in (few, seen))
    weight = _guess_weights(seen, name, complete=seen.size == values.size)
    coded = "; the negative ones look like missing codes" if _has_missing_codes(seen) else ""
    if not whole:
        return weight or Guess("variable", "numbers" + coded)
    return (
        _guess_code(few, seen)
        or weight
        or _guess_identifier(seen, name, complete=seen.size == values.size)
        or _guess_named_code(few, name)
        or Guess("variable", "whole numbers" + coded)
    )


def _has_missing_codes(seen: Floats) -> bool:
    """Return True if all negative numbers are a few whole ones such as -9, -99 or -998, and one repeats.

    Amounts that can be negative have many negative values; an answer that is missing has one of few codes.
    """
    negative = seen[seen < 0]
    if not 2 <= negative.size < seen.size / 2:
        return False
    codes = np.unique(negative)
    nines = 10.0 ** np.ceil(np.log10(1 - codes))  # the next power of ten
    usual = (codes == np.round(codes)) & (nines + codes <= 9)
    return bool(len(codes) <= MOST_MISSING and len(codes) < negative.size and usual.all())


def _guess_code(few: Floats, seen: Floats) -> Guess | None:
    """Return the guess that few whole numbers, each often repeated, are codes; else None."""
    if len(np.unique(few)) > MOST_CODES:
        return None
    distinct = len(np.unique(seen))
    if distinct > MOST_CODES or seen.size < REPEATED * distinct:
        return None
    return Guess("code", f"at most {MOST_CODES} distinct whole numbers", undecided=True)


def _guess_named_code(few: Floats, name: str) -> Guess | None:
    """Return the guess that repeated whole numbers named like a code, such as a postcode, are one."""
    if names_code(name) and (few >= 0).all() and few.size > 2:
        return Guess("code", "whole numbers named like a code", undecided=True)
    if cells.are_calendar_dates(few):
        return Guess("date", "whole numbers that are dates, year first", undecided=True)
    return None


def _guess_weights(seen: Floats, name: str, *, complete: bool) -> Guess | None:
    """Return the guess that positive numbers are survey weights, by name or by a mean of 1; else None."""
    if not complete or seen.min() <= 0:
        return None
    if names_weights(name):
        return Guess("weights", "named like a survey weight", undecided=True)
    if seen.size >= 30 and seen.min() < seen.max() and abs(seen.mean() - 1) < 1e-6:
        return Guess("weights", "positive numbers with a mean of 1", undecided=True)
    return None


def _guess_identifier(seen: Floats, name: str, *, complete: bool) -> Guess | None:
    """Return the guess that whole numbers identify records (distinct) or units (repeated); else None."""
    record, unit = (named(name) and not names_code(name) for named in (names_record, names_unit))
    spread = seen.max() - seen.min() + 1
    digits = cells.have_same_digits(seen, SAME_DIGITS)
    rising = bool((np.diff(seen) >= 0).all())
    if seen.size < 3 or not (record or unit or digits or rising or spread <= seen.size):
        return None  # checked before counting, which takes longer
    distinct = cells.count_distinct(seen)
    if distinct == seen.size:
        reason = _record_reason(seen, record=record, consecutive=spread == seen.size, digits=digits)
        found = Guess("key", f"distinct whole numbers, {reason}", undecided=True)
        return found if complete and reason else None
    if distinct <= MOST_CODES:
        return None
    if unit:
        role: Role = "code" if seen.size > LARGE_UNIT * distinct else "unit"
        return Guess(role, "named like an identifier, and values repeat", undecided=True)
    return _guess_sorted_units(seen, distinct)


def _record_reason(seen: Floats, *, record: bool, consecutive: bool, digits: bool) -> str | None:
    """Return why distinct whole numbers look like those of records; None if they do not."""
    if record:
        return "named like an identifier"
    if consecutive or digits:
        return "one after the other" if consecutive else "all of the same length"
    steps = np.diff(seen)
    regular = seen.size >= FEWEST_STEPS and (steps > 0).all() and len(np.unique(steps)) <= MOST_CODES
    return "rising in few steps" if regular else None


def _guess_sorted_units(seen: Floats, distinct: int) -> Guess | None:
    """Return the guess that numbers in runs, each larger than the last, number units; else None."""
    starts = np.flatnonzero(np.diff(seen, prepend=np.nan) != 0)
    mean = seen.size / distinct
    if len(starts) != distinct or distinct < SORTED_UNITS or not 1.2 <= mean <= LARGE_UNIT:
        return None  # a value in two runs, too few units, or units that hardly repeat
    longest = np.diff(starts, append=seen.size).max()
    steps = np.diff(seen[starts])
    steady = (steps == np.median(steps)).mean() >= 0.9 or (
        (steps > 0).all() and cells.have_same_digits(seen, SAME_DIGITS)
    )
    if not steady or longest > max(LONGEST_RUN, 3 * mean):
        return None
    return Guess("unit", "whole numbers in rising runs", undecided=True)
