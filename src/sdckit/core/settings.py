"""Checked parameters of a method: known names, defaults added, one set for each stratum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.checks import known_columns
from sdckit.core.parameters import by_name, parameter_value
from sdckit.core.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.parameters import Parameter
    from sdckit.core.registry import Method


def parameters_known(method: Method, given: Mapping[str, Any]) -> None:
    """Raise an error for unknown parameters, and for values that are wrong in any stratum."""
    for name, value in given.items():
        parameter = parameter_named(method, name)
        if not _differs(parameter, value):
            parameter_value(parameter, value)


def _differs(parameter: Parameter, value: Any) -> bool:
    """Return True if a number is given for each stratum, as {"north": 3} or north:3."""
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


def completed(method: Method, given: Mapping[str, Any], *, grouped: bool) -> dict[str, Any]:
    """Check the parameters of a method and add those that were not given.

    Where there are strata (`grouped`), a number may differ from one to the next: it comes as a dictionary,
    {"north": 3, "south": 5}, or as text, north:3,south:5, and is returned as a dictionary.
    """
    for name in given:
        parameter_named(method, name)
    return {p.name: _completed(p, given.get(p.name, p.default), grouped=grouped) for p in method.parameters}


def _completed(parameter: Parameter, value: Any, *, grouped: bool) -> Any:
    if not _differs(parameter, value):
        return parameter_value(parameter, value)
    if not grouped:
        raise ValueError(f"{parameter.name} is {value!r} and there are no strata; give one number, or strata")
    numbers = by_name(parameter.name, value)
    return {stratum: parameter_value(parameter, number) for stratum, number in numbers.items()}


def in_stratum(method: Method, parameters: Mapping[str, Any], stratum: str) -> dict[str, Any]:
    """Return the parameters of one stratum, from completed ones."""
    return {p.name: _in_stratum(p, parameters[p.name], stratum) for p in method.parameters}


def _in_stratum(parameter: Parameter, value: Any, stratum: str) -> Any:
    if not _differs(parameter, value):
        return value
    if stratum not in value:
        raise ValueError(f"{parameter.name} has no value for stratum {stratum!r}; give one for each stratum")
    return value[stratum]


def parameters_by_stratum(
    method: Method, given: Mapping[str, Any], strata: Sequence[str], *, grouped: bool
) -> list[dict[str, Any]]:
    """Return the parameters of a method for each stratum; a number may differ from one to the next."""
    values = completed(method, given, grouped=grouped)
    for parameter in method.parameters:
        if _differs(parameter, values[parameter.name]):
            known_columns(values[parameter.name], strata, "stratum")
    return [in_stratum(method, values, stratum) for stratum in strata]


def placed(method: Method, options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the options as the method's function takes them: column positions, a number per column."""
    found = dict(options)
    for parameter in method.parameters:
        value = options[parameter.name]
        if parameter.kind is tuple:
            known_columns(value, names, f"column in {parameter.name}")
            found[parameter.name] = tuple(names.index(name) for name in value)
        elif parameter.kind is dict:
            known_columns(value, names, f"column in {parameter.name}")
            numbers = [value.get(name, parameter.fill) for name in names]
            found[parameter.name] = np.array(numbers, np.float64) if value else None
    return found


def about(method: Method, options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the options restricted to some column names."""
    found = dict(options)
    for parameter in method.parameters:
        value = options[parameter.name]
        if parameter.kind is tuple:
            found[parameter.name] = tuple(name for name in value if name in names)
        elif parameter.kind is dict:
            found[parameter.name] = {name: number for name, number in value.items() if name in names}
    return found


def text_of(parameters: Mapping[str, Any]) -> str:
    """Return parameters as text, as in "p=0.15, tails=0.05"."""
    return ", ".join(f"{name}={_plain(value)}" for name, value in parameters.items())


def called(method: str, parameters: Mapping[str, Any]) -> str:
    """Return a method with its parameters as text, as in "rank_swap (p=0.15)"."""
    return f"{method} ({text_of(parameters)})" if parameters else method


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(_quoted(name) for name in value)
    if isinstance(value, dict):
        return ",".join(f"{_quoted(name)}:{_plain(number)}" for name, number in value.items())
    return format(value, ".15g") if isinstance(value, float) else str(value)


def _quoted(name: str) -> str:
    """Put a name in quotation marks where it could be read as several."""
    return '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name


def numbered(method: Method, name: str, known: Sequence[str]) -> None:
    """Raise an error for group numbers of a method without groups, or under a column name that exists."""
    if method.groups is None:
        able = ", ".join(other.name for other in METHODS.values() if other.groups is not None)
        raise ValueError(f"{method.name} forms no groups of records to number; take one of: {able}")
    if not isinstance(name, str) or not name.strip() or name in (*known, "all"):
        fact = f"cannot be named {name!r}, which " + ("is taken" if name in known else "tables do not take")
        raise ValueError(f"the column for group numbers {fact}; choose another name")
