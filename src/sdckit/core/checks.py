"""Check what users give, and say what is wrong with it: quoted cells, warnings and errors."""

from __future__ import annotations

import math
import os
import sys
import warnings
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.text import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from types import FrameType

    from sdckit.arrays import Floats, Ints


SWITCH = "SDCKIT_QUOTE_CELLS"  # of the environment, so that processes started later follow it, too
NEVER = "never"
HIDDEN = "(not shown)"


def cells_are_quoted() -> bool:
    """Return False where errors, warnings and notes must not hold a cell of the data."""
    return os.environ.get(SWITCH) != NEVER


@contextmanager
def hidden_cells() -> Iterator[None]:
    """Let no message quote a cell, in this process and in those that it starts inside of the block."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = NEVER
    try:
        yield
    finally:
        os.environ.pop(SWITCH)
        if before is not None:
            os.environ[SWITCH] = before


def quoted(cell: object) -> str:
    """Return a cell in quotation marks for a message, or a remark in its place.

    Parameters
    ----------
    cell
        A cell of the data, or a text made of cells, such as the name of a stratum.

    Returns
    -------
    str
        Such as "'north'", or "(not shown)".

    Examples
    --------
    >>> quoted("north")
    "'north'"
    """
    return shown(repr(cell))


def shown(text: object) -> str:
    """Return a text that holds cells, such as a number or a list of strata, or a remark in its place."""
    return str(text) if cells_are_quoted() else HIDDEN


def refuse_patterns(names: Iterable[str], where: str = "") -> None:
    """Raise ValueError for a name that polars takes for a pattern of names: *, or one from ^ to $.

    No way of asking for the exact name helps: functions of a single column look it up by its name, too.
    """
    for name in names:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise ValueError(f"a column{where} is named {name!r}, which stands for other names; rename it")


PACKAGE = str(Path(__file__).parent.parent)


def warn(text: str) -> None:
    """Issue a UserWarning that points at the line outside the package from which the package was called."""
    frame = _outside_caller()
    issued = frame.f_globals.setdefault("__warningregistry__", {})  # lets Python's filters skip repetitions
    warnings.warn_explicit(text, UserWarning, *_file_and_line(frame), registry=issued)


@contextmanager
def collect_warnings(texts: list[str]) -> Iterator[None]:
    """Add the texts of warnings raised in a `with` block to a list, and issue each once at its end.

    They point at the line that called the package, wherever in the package they were raised.
    """
    seen: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            yield
    finally:
        for entry in seen:
            if str(entry.message) not in texts:
                texts.append(str(entry.message))
                warnings.warn_explicit(entry.message, entry.category, *_file_and_line(_outside_caller()))


def _file_and_line(frame: FrameType) -> tuple[str, int]:
    """Return the file name and line number of a stack frame."""
    return frame.f_code.co_filename, frame.f_lineno


def _outside_caller() -> FrameType:
    """Return the stack frame outside the package from which the package was called."""
    found = frame = sys._getframe(1)  # noqa: SLF001 - the standard way to a caller's line
    while frame.f_back is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            found = frame.f_back
        frame = frame.f_back
    return found


MISSING = ("pairwise", "penalise")
FEWEST_REPORTED = 10  # records behind a published figure, at least


class NotApplicable(ValueError):  # noqa: N818 - public, and named after what it says about the metric
    """Error of a metric that has no value for the data; `evaluate` skips metrics not named by the user."""


def optional_package(module: str, needs: str, extra: str) -> Any:
    """Import a module of a package that is not always installed; ValueError with the command where it is not.

    `needs` is the beginning of the sentence, such as "R files need the package rdata".
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ValueError(f'{needs}; pip install "sdckit[{extra}]"') from error


def one_of(what: str, value: object, choices: Collection[str]) -> str:
    """Return `value` if it is one of the choices; else raise ValueError with the most similar choice."""
    if isinstance(value, str) and value in choices:
        return value
    close = get_close_matches(str(value), list(choices), n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise ValueError(f"unknown {what} {value!r}{hint}; choose from: {', '.join(choices)}")


def as_number(value: Any) -> float | None:
    """Return a finite number or numeric text as a float; None for anything else."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def checked_count(what: str, value: object) -> int:
    """Return `value` as a whole number of at least 1; else raise ValueError."""
    number = as_number(value)
    if number is None or not float(number).is_integer() or number < 1:
        raise ValueError(f"{what} is {value!r}; give a whole number of at least 1")
    return int(number)


def checked_share(what: str, value: object) -> float:
    """Return `value` as a number from 0 to 1; else raise ValueError."""
    number = as_number(value)
    if number is None or not 0 <= number <= 1:
        raise ValueError(f"{what} is {value!r}; give a share from 0 to 1, such as 0.05")
    return number


def checked_missing_rule(rule: str, *, bounded: bool, name: str) -> str:
    """Return the rule for missing cells; raise ValueError if unknown, or "penalise" without a bound."""
    one_of("rule for missing cells", rule, MISSING)
    if rule == "penalise" and not bounded:
        raise ValueError(f"{name} has no largest value, so missing='penalise' is undefined; use 'pairwise'")
    return rule


def whole_share(share: float, n: int) -> int:
    """Return how many whole records a share of n records is: 29 for 0.29 of 100, although 0.29 * 100 < 29."""
    return math.floor(share * n + 1e-9)


def whole_share_up(share: float, n: int) -> int:
    """Return how many records hold a share of n records: 7 for 0.07 of 100, although 0.07 * 100 > 7."""
    return math.ceil(share * n - 1e-9)


def require_midranks_for_weights(ties: str, weights: object) -> None:
    """Raise ValueError if weights are given with a tie rule other than "average" (mid-ranks)."""
    if weights is not None and ties != "average":
        raise ValueError(f"weights go with ties='average' only, not {ties!r}; drop one of the two")


def require_no_infinite(count: int, name: str) -> None:
    """Raise ValueError if a column has infinite values; `count` says how many."""
    if count:
        raise ValueError(
            f"column {name!r} has {count} infinite {plural(count, 'value')}; "
            "replace them or declare them missing"
        )


def checked_weights(values: Floats, name: str) -> Floats:
    """Return the survey weights unchanged; raise ValueError if one is missing, infinite or not above 0."""
    require_no_bad_weights(count_bad_weights(values), name)
    return values


def count_bad_weights(values: Floats) -> int:
    """Return how many survey weights are missing, infinite or not above 0."""
    return int((~(values > 0) | np.isinf(values)).sum())


def require_no_bad_weights(count: int, name: str) -> None:
    """Raise ValueError if survey weights are missing, infinite or not above 0; `count` says how many."""
    if count:
        raise ValueError(
            f"weights {name!r} have {count} {plural(count, 'value')} missing or not above 0; "
            "correct or drop them"
        )


def checked_unit(names: Sequence[str]) -> str | None:
    """Return the name of the one column of units, None without one; raise ValueError for several."""
    if len(names) > 1:
        raise ValueError(f"unit names {len(names)} columns, {', '.join(names)}; join them into one column")
    return names[0] if names else None


def require_representable(masked: Floats, names: Sequence[str], method: str) -> None:
    """Raise ValueError if a masked column has infinite values: the numbers are too large for the method."""
    for j, name in enumerate(names):
        if np.isinf(masked[:, j]).any():
            raise ValueError(
                f"column {name!r} holds numbers too large for {method}; divide them by a power of ten first"
            )


def require_length(what: str, length: int, n: int) -> None:
    """Raise ValueError if an option has another number of values (`length`) than there are records (`n`)."""
    if length != n:
        raise ValueError(f"{what} has {length} values for {n} records; give one per record")


def checked_order(rows: Any, n: int) -> Ints:
    """Return row numbers as integers; raise ValueError unless they are those from 0 to n - 1, each once."""
    numbers = np.asarray(rows)
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise TypeError("rows are no list of whole numbers; give the original row of each masked one, from 0")
    if not np.array_equal(np.sort(numbers), np.arange(n)):
        raise ValueError(
            f"rows are not the numbers from 0 to {n - 1}, each once; give the original row of each masked one"
        )
    return numbers.astype(np.int64)


def require_complete_keys(count: int, name: str, file: str) -> None:
    """Raise ValueError if the key is missing in records; `count` says in how many."""
    if count:
        raise ValueError(
            f"key {name!r} is missing in {count} {plural(count, 'record')} of the {file} data; "
            "complete it or drop these records"
        )


def require_unique_keys(found: int, total: int, name: str, file: str) -> None:
    """Raise ValueError if fewer keys are distinct (`found`) than there are records (`total`)."""
    if found != total:
        again = total - found
        raise ValueError(
            f"key {name!r} repeats in {again} {plural(again, 'record')} of the {file} data; use a unique key"
        )


def require_records(n: int, needed: int, *, what: str, method: str) -> None:
    """Raise ValueError if there are fewer records (`n`) than the method needs for its columns (`needed`)."""
    if n < needed:
        remedy = "take fewer columns" + (" or merge strata" if what.startswith("stratum") else "")
        raise ValueError(
            f"{what} has {n} {plural(n, 'record')} and {method} needs {needed} for these columns; {remedy}"
        )


def require_reportable_size(n: int) -> None:
    """Raise ValueError if a report on `n` records would disclose single records: 10 are needed."""
    if n < FEWEST_REPORTED:
        raise ValueError(
            f"a report needs at least {FEWEST_REPORTED} records and the data have {n}; "
            "print the measures instead"
        )


def require_two_records(n: int) -> None:
    """Raise ValueError if the data have fewer than two records."""
    if n < 2:
        raise ValueError(f"the data have {n} {plural(n, 'record')}; give at least 2")


def require_same_records(masked: int, original: int) -> None:
    """Raise ValueError if the masked and the original data differ in their number of records."""
    if masked != original:
        raise ValueError(
            f"the masked data have {masked} {plural(masked, 'record')}, the original {original}; "
            "give files with the same records"
        )


def require_masked_columns(names: Iterable[str], masked: Sequence[str]) -> None:
    """Raise ValueError if the masked data, with the columns `masked`, lack one of the names."""
    for name in names:
        if name not in masked:
            raise ValueError(f"the masked data have no column {name!r}; they have: {', '.join(masked)}")


def require_masked_key(key: Iterable[str], columns: Collection[str]) -> None:
    """Raise ValueError if the masked table has not all columns of the key."""
    lacking = [name for name in key if name not in columns]
    if lacking:
        raise ValueError(
            f"the masked table has no key {', '.join(map(repr, lacking))}; a release has none: give the "
            "release itself (disclosure=release) or its crosswalk, or leave out the key of rows in order"
        )


def require_matching_keys(absent: int, original: int, masked: int, name: str) -> None:
    """Raise ValueError if keys of original records (`absent`) are not among the masked ones."""
    if absent or original != masked:
        raise ValueError(
            f"key {name!r} does not match: {absent} of {original} original records "
            f"are not among the {masked} masked ones; compare files with the same records"
        )


def missing_codes(na: object) -> list[float]:
    """Return the numbers that stand for missing cells as floats; raise ValueError for other types."""
    if na is None:
        return []
    values = list(na) if isinstance(na, (list, tuple, set, frozenset, np.ndarray)) else [na]
    numbers = [as_number(value) for value in values]
    for value, number in zip(values, numbers, strict=True):
        if number is None:
            raise ValueError(f"na is {value!r}; give the number that stands for a missing cell, such as -999")
    return [number for number in numbers if number is not None]


def checked_decimals(decimals: object) -> int | str | None:
    """Return the number of decimals to round to: None, "original" or 0 to 15; else raise ValueError."""
    if decimals is None or decimals == "original":
        return decimals
    number = as_number(decimals)
    if number is None or not number.is_integer() or not 0 <= number <= 15:
        raise ValueError(f"decimals is {decimals!r}; give 'original', None or a whole number from 0 to 15")
    return int(number)


def require_usable_names(names: Sequence[str]) -> None:
    """Raise ValueError if there is no numeric column, or one named "all" as the row of the whole file."""
    if "all" in names:
        raise ValueError("a column is named 'all', which stands for the whole file in tables; rename it")
    if not names:
        raise ValueError(
            "no numeric column left; name some with columns, or check decimal marks and missing codes"
        )


def require_known(wanted: Iterable[str], known: Sequence[str], what: str = "column") -> None:
    """Raise ValueError if one of the names of columns is not among the known ones."""
    for name in wanted:
        if name not in known:
            one_of(what, name, known)


def require_known_strata(wanted: Iterable[str], known: Sequence[str], what: str = "stratum") -> None:
    """Raise ValueError if one of the strata, whose names are cells, is not among the known ones."""
    wanted = list(wanted)
    if not cells_are_quoted() and not set(wanted) <= set(known):
        raise ValueError(f"unknown {what} {HIDDEN}; choose from the {len(known)} that there are")
    require_known(wanted, known, what)
