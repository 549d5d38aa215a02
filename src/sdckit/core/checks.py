"""Every check of what a user hands in, and its wording: the fact, the value, the remedy, in one line."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.registry import METHODS, METRICS, Method, Metric, Parameter
from sdckit.kernels.jit import count_special

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sdckit.kernels.jit import Floats

MISSING = ("pairwise", "penalise")
TOGETHER = 10  # so many records at least stand behind a figure that is to be published


class Unsuited(ValueError):  # noqa: N818 - the data are no error, they only do not suit
    """Data on which a metric has no value; it is left out unless it was asked for by name."""


def one_of(what: str, value: object, choices: Collection[str]) -> str:
    """Return `value` if it is among the choices."""
    if isinstance(value, str) and value in choices:
        return value
    close = get_close_matches(str(value), list(choices), n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise ValueError(f"unknown {what} {value!r}{hint}; choose from: {', '.join(choices)}")


def method_named(name: object) -> Method:
    """Look up a masking method."""
    return METHODS[one_of("method", name, METHODS)]


def metrics_named(names: str | Iterable[str] | None) -> list[Metric]:
    """Look up metrics; None gives the default ones, in the order of the registry.

    A name may fix options of its metric, as in "il1:zeros=drop" or "brmae:ties=first".
    """
    if names is None:
        return [metric for metric in METRICS.values() if metric.default and not metric.experimental]
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise ValueError("the list of metrics is empty; name at least one or leave it out")
    return [_metric_named(name) for name in dict.fromkeys(names)]


def metrics_of_rows(names: str | Iterable[str] | None, *, paired: bool) -> tuple[list[Metric], list[str]]:
    """Look up metrics; where rows are not paired, those that make sense, and the names of the others."""
    chosen = metrics_named(names)
    if paired:
        return chosen, []
    left_out = [metric.name for metric in chosen if metric.paired]
    if names is None:
        chosen = [m for m in METRICS.values() if not m.experimental and m.extra is None]
    kept = [metric for metric in chosen if not metric.paired]
    if not kept:
        raise ValueError(
            f"rows that are not paired have no value of {', '.join(left_out)}; take other metrics, such as ks"
        )
    return kept, left_out


def _metric_named(name: object) -> Metric:
    plain, *options = name.split(":") if isinstance(name, str) else ("",)
    metric = METRICS[one_of("metric", plain if plain in METRICS else name, METRICS)]
    if not options:
        return metric
    known = {parameter.name: parameter for parameter in metric.parameters}
    fixed = {}
    for option in options:
        word, _, value = (part.strip() for part in option.partition("="))
        one_of(f"option of {metric.name}", word, known)
        if word in fixed:
            raise ValueError(f"metric {name!r} sets {word!r} twice; set it once")
        fixed[word] = parameter_value(known[word], value)
    missing_rule(fixed.get("missing", "pairwise"), bounded=metric.bounded, name=metric.name)
    return metric.fixed(str(name), fixed)


def suits(name: str, records: int, variables: int) -> None:
    """Refuse data with fewer records or variables than the metric of this name needs."""
    metric = METRICS[name]
    for what, needed, found in (
        ("records", metric.records, records),
        ("variables", metric.variables, variables),
    ):
        if found < needed:
            raise Unsuited(
                f"{metric.name} needs at least {needed} {what} and the data have {found}; use another metric"
            )


def parameters_known(method: Method, given: Mapping[str, Any]) -> None:
    """Refuse a parameter that the method does not have, and values that need no look at the strata."""
    for name, value in given.items():
        parameter = parameter_named(method, name)
        if not _differs(parameter, value):
            parameter_value(parameter, value)


def _differs(parameter: Parameter, value: Any) -> bool:
    """Whether a number is given for each stratum, as {"north": 3} or north:3."""
    several = isinstance(value, Mapping) or (isinstance(value, str) and ":" in value)
    return several and parameter.numeric


def parameters_of(method: Method, given: dict[str, Any]) -> dict[str, Any]:
    """Complete and check the parameters of a method."""
    for name in given:
        parameter_named(method, name)
    return {p.name: parameter_value(p, given.get(p.name, p.default)) for p in method.parameters}


def parameter_named(method: Method, name: str) -> Parameter:
    """Look up a parameter of a method."""
    for parameter in method.parameters:
        if parameter.name == name:
            return parameter
    choices = ", ".join(parameter.name for parameter in method.parameters) or "none"
    raise ValueError(f"method {method.name!r} has no parameter {name!r}; choose from: {choices}")


def parameter_value(parameter: Parameter, value: Any) -> Any:
    """Check one value against the parameter's type, range and choices; text is converted."""
    name, kind = parameter.name, parameter.kind
    if parameter.choices:
        return one_of(name, value, parameter.choices)
    if kind is tuple:
        return _column_names(name, value)
    if kind is dict:
        single = replace(parameter, kind=float)
        return {column: parameter_value(single, number) for column, number in by_name(name, value).items()}
    number = _as_number(value)
    if number is None or (kind is int and not float(number).is_integer()):
        wanted = "a whole number" if kind is int else "a number"
        raise ValueError(f"{name} is {value!r}; give {wanted}{range_of(parameter)}")
    below = parameter.low is not None and number < parameter.low
    above = parameter.high is not None and number > parameter.high
    if below or above:
        raise ValueError(f"{name} is {value}, out of range; give a number{range_of(parameter)}")
    return kind(number)


def _column_names(what: str, value: Any) -> tuple[str, ...]:
    """Names of columns, from a list or from text with commas between them; quotation marks keep a comma."""
    if isinstance(value, str) and (not value or value.strip(", ")):
        value = [n.strip() for n in next(csv.reader([value], skipinitialspace=True), []) if n.strip()]
    if isinstance(value, str) or not isinstance(value, Iterable) or isinstance(value, (dict, np.ndarray)):
        raise ValueError(f"{what} is {value!r}; give names of columns, such as ['a', 'b']")  # noqa: TRY004
    return tuple(dict.fromkeys(str(name) for name in value))


def by_name(what: str, value: Any) -> dict[str, Any]:
    """Values by name, from a dictionary or from text such as a:2,b:0.5."""
    if isinstance(value, str):
        pairs = [p.rpartition(":") for p in next(csv.reader([value], skipinitialspace=True), []) if p.strip()]
        found = {name.strip(): number.strip() for name, _, number in pairs}
        value = found if len(found) == len(pairs) and "" not in found and (found or not value) else value
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is {value!r}; give a number for each name, such as a:2,b:0.5")  # noqa: TRY004
    return {str(name): number for name, number in value.items()}


def parameters_by_stratum(
    method: Method, given: dict[str, Any], strata: Sequence[str], *, grouped: bool
) -> list[dict[str, Any]]:
    """The parameters of a method for each stratum; a number may differ from one to the next.

    Such a number comes as a dictionary, {"north": 3, "south": 5}, or as text, north:3,south:5.
    """
    apart: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        if _differs(parameter_named(method, name), value):
            apart[name] = by_name(name, value)
            if not grouped:
                raise ValueError(f"{name} is {value!r} and there are no strata; give one number, or strata")
            known_columns(apart[name], strata, "stratum")
            for stratum in strata:
                if stratum not in apart[name]:
                    raise ValueError(
                        f"{name} has no value for stratum {stratum!r}; give one for each stratum"
                    )
    return [
        parameters_of(method, given | {name: values[stratum] for name, values in apart.items()})
        for stratum in (strata if apart else strata[:1])
    ] * (1 if apart else len(strata))


def _as_number(value: Any) -> float | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def range_of(parameter: Parameter) -> str:
    """The numbers that a parameter may take, in words."""
    if parameter.low is not None and parameter.high is not None:
        return f" from {parameter.low:g} to {parameter.high:g}"
    return f" of at least {parameter.low:g}" if parameter.low is not None else ""


def generator(rng: object) -> np.random.Generator:
    """Return a generator: fresh entropy for None, a seed or a Generator otherwise."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, (bool, np.bool_)) or not (rng is None or isinstance(rng, (int, np.integer))):
        raise TypeError(
            f"rng is {type(rng).__name__} {rng!r}; give None, a whole number or a numpy Generator"
        )
    if rng is not None and rng < 0:
        raise ValueError(f"the seed is {rng}; give a whole number of at least 0")
    return np.random.default_rng(rng)


def entropy_of(rng: object) -> int:
    """Return the number behind a sweep's streams: fresh for None, a seed itself, drawn from a Generator."""
    if isinstance(rng, (int, np.integer)) and generator(rng):
        return int(rng)
    return int.from_bytes(generator(rng).bytes(16), "big")


def count_of(what: str, value: object) -> int:
    """Return a whole number of at least 1."""
    number = _as_number(value)
    if number is None or not float(number).is_integer() or number < 1:
        raise ValueError(f"{what} is {value!r}; give a whole number of at least 1")
    return int(number)


def share_of(what: str, value: object) -> float:
    """Return a number from 0 to 1."""
    number = _as_number(value)
    if number is None or not 0 <= number <= 1:
        raise ValueError(f"{what} is {value!r}; give a share from 0 to 1, such as 0.05")
    return number


def missing_rule(rule: str, *, bounded: bool, name: str) -> str:
    """Check the rule for missing cells; a penalty needs a largest value to be a share of."""
    one_of("rule for missing cells", rule, MISSING)
    if rule == "penalise" and not bounded:
        raise ValueError(f"{name} has no largest value, so missing='penalise' is undefined; use 'pairwise'")
    return rule


def no_weights_with(ties: str, weights: object) -> None:
    """Weighted ranks are defined for mid-ranks only."""
    if weights is not None and ties != "average":
        raise ValueError(f"weights go with ties='average' only, not {ties!r}; drop one of the two")


def finite(values: Floats, names: Sequence[str]) -> Floats:
    """Refuse infinities; NaN is a missing cell."""
    if count_special(values.T.ravel())[1]:
        for j, name in enumerate(names):
            bad = int(np.isinf(values[:, j]).sum())
            if bad:
                raise ValueError(
                    f"column {name!r} has {bad} infinite value{'s' * (bad > 1)}; "
                    "replace them or declare them missing"
                )
    return values


def weights_of(values: Floats, name: str) -> Floats:
    """Refuse weights that are missing, zero or negative."""
    bad = int((~(values > 0) | np.isinf(values)).sum())
    if bad:
        raise ValueError(
            f"weights {name!r} have {bad} value{'s' * (bad > 1)} missing or not above 0; correct or drop them"
        )
    return values


def apart(columns: Collection[str] | None, roles: Collection[str]) -> None:
    """Refuse a variable that also identifies, weights or groups records."""
    for name in columns or ():
        if name in roles:
            raise ValueError(
                f"column {name!r} is a variable but also key, weights or stratum; give it one role"
            )


def representable(masked: Floats, names: Sequence[str], method: str) -> None:
    """Refuse a masking whose arithmetic left the range of floating-point numbers."""
    for j, name in enumerate(names):
        if np.isinf(masked[:, j]).any():
            raise ValueError(
                f"column {name!r} holds numbers too large for {method}; divide them by a power of ten first"
            )


def same_length(what: str, length: int, n: int) -> None:
    """Refuse an option with another number of records than the data."""
    if length != n:
        raise ValueError(f"{what} has {length} values for {n} records; give one per record")


def unique_keys(found: int, total: int, name: str, file: str) -> None:
    """Refuse keys that name two records."""
    if found != total:
        again = total - found
        raise ValueError(
            f"key {name!r} repeats in {again} record{'s' * (again > 1)} of the {file} data; use a unique key"
        )


def enough_records(n: int, needed: int, *, what: str, method: str, parameter: str) -> None:
    """Refuse groups that are smaller than the method's group size."""
    if n < needed:
        remedy = f"lower {parameter}" + (" or merge strata" if what.startswith("stratum") else "")
        raise ValueError(
            f"{what} has {n} record{'s' * (n != 1)}, fewer than {parameter} = {needed} of {method}; {remedy}"
        )


def records_for(n: int, needed: int, *, what: str, method: str) -> None:
    """Refuse fewer records than a method's arithmetic needs."""
    if n < needed:
        remedy = "take fewer columns" + (" or merge strata" if what.startswith("stratum") else "")
        raise ValueError(
            f"{what} has {n} record{'s' * (n != 1)} and {method} needs {needed} for these columns; {remedy}"
        )


def numbered(method: Method, name: str, known: Sequence[str]) -> None:
    """Refuse to number the groups of a method that forms none, or under a name that is taken."""
    if method.groups is None:
        able = ", ".join(other.name for other in METHODS.values() if other.groups is not None)
        raise ValueError(f"{method.name} forms no groups of records to number; take one of: {able}")
    if not isinstance(name, str) or not name.strip() or name in (*known, "all"):
        fact = f"cannot be named {name!r}, which " + ("is taken" if name in known else "tables do not take")
        raise ValueError(f"the column for group numbers {fact}; choose another name")


def enough_to_report(n: int) -> None:
    """Refuse a report on so few records that any measure tells of single ones."""
    if n < TOGETHER:
        raise ValueError(
            f"a report needs at least {TOGETHER} records and the data have {n}; print the measures instead"
        )


def at_least_two(n: int) -> None:
    """Refuse data on which nothing can be masked or measured."""
    if n < 2:
        raise ValueError(f"the data have {n} record{'s' * (n != 1)}; give at least 2")


def declared_missing(na: object) -> list[float]:
    """Return the values that the user declared missing."""
    if na is None:
        return []
    values = list(na) if isinstance(na, (list, tuple, set, frozenset, np.ndarray)) else [na]
    numbers = [_as_number(value) for value in values]
    for value, number in zip(values, numbers, strict=True):
        if number is None:
            raise ValueError(f"na is {value!r}; give the number that stands for a missing cell, such as -999")
    return [number for number in numbers if number is not None]


def rounding(decimals: object) -> int | str | None:
    """Check the number of decimals: None, 'original' or 0 to 15."""
    if decimals is None or decimals == "original":
        return decimals
    number = _as_number(decimals)
    if number is None or not number.is_integer() or not 0 <= number <= 15:
        raise ValueError(f"decimals is {decimals!r}; give 'original', none or a whole number from 0 to 15")
    return int(number)


def some_columns(names: Sequence[str]) -> None:
    """Refuse data without a numeric column, or with one whose name the tables use for the whole file."""
    if "all" in names:
        raise ValueError("a column is named 'all', which stands for the whole file in tables; rename it")
    if not names:
        raise ValueError(
            "no numeric column left; name some with columns, or check decimal marks and missing codes"
        )


def known_columns(wanted: Iterable[str], known: Sequence[str], what: str = "column") -> None:
    """Refuse a column that the data do not have."""
    for name in wanted:
        if name not in known:
            one_of(what, name, known)
