"""All checks of user input; each error is one line with the fact, the value and the remedy."""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.text import plural
from sdckit.kernels.jit import count_special

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from sdckit.kernels.jit import Bools, Floats

MISSING = ("pairwise", "penalise")
TOGETHER = 10  # so many records at least stand behind a figure that is to be published


class NotApplicable(ValueError):  # noqa: N818 - the data are no error, they only do not suit
    """Raised where a metric has no value for the data; `evaluate` skips metrics not asked for by name."""


def one_of(what: str, value: object, choices: Collection[str]) -> str:
    """Return `value` if it is among the choices; else raise an error."""
    if isinstance(value, str) and value in choices:
        return value
    close = get_close_matches(str(value), list(choices), n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise ValueError(f"unknown {what} {value!r}{hint}; choose from: {', '.join(choices)}")


def as_number(value: Any) -> float | None:
    """Return a finite number, also from text; None for anything else."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def count_of(what: str, value: object) -> int:
    """Return a whole number of at least 1; else raise an error."""
    number = as_number(value)
    if number is None or not float(number).is_integer() or number < 1:
        raise ValueError(f"{what} is {value!r}; give a whole number of at least 1")
    return int(number)


def share_of(what: str, value: object) -> float:
    """Return a number from 0 to 1; else raise an error."""
    number = as_number(value)
    if number is None or not 0 <= number <= 1:
        raise ValueError(f"{what} is {value!r}; give a share from 0 to 1, such as 0.05")
    return number


def missing_rule(rule: str, *, bounded: bool, name: str) -> str:
    """Check the rule for missing cells; "penalise" needs a metric with a largest value."""
    one_of("rule for missing cells", rule, MISSING)
    if rule == "penalise" and not bounded:
        raise ValueError(f"{name} has no largest value, so missing='penalise' is undefined; use 'pairwise'")
    return rule


def no_weights_with(ties: str, weights: object) -> None:
    """Raise an error for weights with a tie rule other than mid-ranks."""
    if weights is not None and ties != "average":
        raise ValueError(f"weights go with ties='average' only, not {ties!r}; drop one of the two")


def finite(values: Floats, names: Sequence[str]) -> Floats:
    """Return the values; raise an error for infinities (NaN is a missing cell)."""
    if count_special(values.T.ravel())[1]:
        for j, name in enumerate(names):
            bad = int(np.isinf(values[:, j]).sum())
            if bad:
                raise ValueError(
                    f"column {name!r} has {bad} infinite {plural(bad, 'value')}; "
                    "replace them or declare them missing"
                )
    return values


def weights_of(values: Floats, name: str) -> Floats:
    """Return the weights; raise an error for missing, zero or negative ones."""
    bad = int((~(values > 0) | np.isinf(values)).sum())
    if bad:
        raise ValueError(
            f"weights {name!r} have {bad} {plural(bad, 'value')} missing or not above 0; correct or drop them"
        )
    return values


def apart(columns: Collection[str] | None, roles: Collection[str]) -> None:
    """Raise an error for a variable that is also a key, weight or stratum column."""
    for name in columns or ():
        if name in roles:
            raise ValueError(
                f"column {name!r} is a variable but also key, weights or stratum; give it one role"
            )


def representable(masked: Floats, names: Sequence[str], method: str) -> None:
    """Raise an error for masked values beyond the range of floating-point numbers."""
    for j, name in enumerate(names):
        if np.isinf(masked[:, j]).any():
            raise ValueError(
                f"column {name!r} holds numbers too large for {method}; divide them by a power of ten first"
            )


def same_length(what: str, length: int, n: int) -> None:
    """Raise an error for an option with another number of records than the data."""
    if length != n:
        raise ValueError(f"{what} has {length} values for {n} records; give one per record")


def no_missing_keys(missing: Bools, name: str, file: str) -> None:
    """Raise an error for records without a key; `missing` marks them."""
    count = int(np.count_nonzero(missing))
    if count:
        raise ValueError(
            f"key {name!r} is missing in {count} {plural(count, 'record')} of the {file} data; "
            "complete it or drop these records"
        )


def unique_keys(found: int, total: int, name: str, file: str) -> None:
    """Raise an error for a key that two records share."""
    if found != total:
        again = total - found
        raise ValueError(
            f"key {name!r} repeats in {again} {plural(again, 'record')} of the {file} data; use a unique key"
        )


def enough_records(n: int, needed: int, *, what: str, method: str, parameter: str) -> None:
    """Raise an error for fewer records than the method's group size."""
    if n < needed:
        remedy = f"lower {parameter}" + (" or merge strata" if what.startswith("stratum") else "")
        raise ValueError(
            f"{what} has {n} {plural(n, 'record')}, fewer than {parameter} = {needed} of {method}; {remedy}"
        )


def records_for(n: int, needed: int, *, what: str, method: str) -> None:
    """Raise an error for fewer records than the method needs."""
    if n < needed:
        remedy = "take fewer columns" + (" or merge strata" if what.startswith("stratum") else "")
        raise ValueError(
            f"{what} has {n} {plural(n, 'record')} and {method} needs {needed} for these columns; {remedy}"
        )


def enough_to_report(n: int) -> None:
    """Raise an error for a report on so few records that measures disclose single records."""
    if n < TOGETHER:
        raise ValueError(
            f"a report needs at least {TOGETHER} records and the data have {n}; print the measures instead"
        )


def at_least_two(n: int) -> None:
    """Raise an error for data with fewer than two records."""
    if n < 2:
        raise ValueError(f"the data have {n} {plural(n, 'record')}; give at least 2")


def declared_missing(na: object) -> list[float]:
    """Return the values that the user declared missing."""
    if na is None:
        return []
    values = list(na) if isinstance(na, (list, tuple, set, frozenset, np.ndarray)) else [na]
    numbers = [as_number(value) for value in values]
    for value, number in zip(values, numbers, strict=True):
        if number is None:
            raise ValueError(f"na is {value!r}; give the number that stands for a missing cell, such as -999")
    return [number for number in numbers if number is not None]


def rounding(decimals: object) -> int | str | None:
    """Check the number of decimals: None, 'original' or 0 to 15."""
    if decimals is None or decimals == "original":
        return decimals
    number = as_number(decimals)
    if number is None or not number.is_integer() or not 0 <= number <= 15:
        raise ValueError(f"decimals is {decimals!r}; give 'original', none or a whole number from 0 to 15")
    return int(number)


def some_columns(names: Sequence[str]) -> None:
    """Raise an error for data without numeric columns, or with one named like the whole-file row."""
    if "all" in names:
        raise ValueError("a column is named 'all', which stands for the whole file in tables; rename it")
    if not names:
        raise ValueError(
            "no numeric column left; name some with columns, or check decimal marks and missing codes"
        )


def known_columns(wanted: Iterable[str], known: Sequence[str], what: str = "column") -> None:
    """Raise an error for a column that the data do not have."""
    for name in wanted:
        if name not in known:
            one_of(what, name, known)
