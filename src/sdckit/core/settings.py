"""Checks of the parameters that a user gives a masking method, also by stratum, and their texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.checks import require_known, require_known_strata
from sdckit.core.parameters import numbers_by_name, parameter_value
from sdckit.core.quoting import quoted
from sdckit.core.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.parameters import Parameter
    from sdckit.core.registry import Method


def check_parameters(method: Method, given: Mapping[str, Any]) -> None:
    """Raise ValueError if a parameter of the method is unknown or its value is not allowed."""
    for name, value in given.items():
        parameter = parameter_named(method, name)
        if not _is_by_stratum(parameter, value):
            parameter_value(parameter, value)


def _is_by_stratum(parameter: Parameter, value: Any) -> bool:
    """Return True if a number is given by stratum, as {"north": 3} or "north:3"."""
    several = isinstance(value, Mapping) or (isinstance(value, str) and ":" in value)
    return several and parameter.numeric


def parameters_of(method: Method, given: dict[str, Any]) -> dict[str, Any]:
    """Return a checked value of every parameter of a method, the default where none is given."""
    for name in given:
        parameter_named(method, name)
    return {p.name: parameter_value(p, given.get(p.name, p.default)) for p in method.parameters}


def parameter_named(method: Method, name: str) -> Parameter:
    """Return the parameter of a method by name; raise ValueError if the method has none such."""
    for parameter in method.parameters:
        if parameter.name == name:
            return parameter
    choices = ", ".join(parameter.name for parameter in method.parameters) or "none"
    raise ValueError(f"method {method.name!r} has no parameter {name!r}; choose from: {choices}")


def parameters_with_strata(method: Method, given: Mapping[str, Any], *, grouped: bool) -> dict[str, Any]:
    """Return a checked value, or a dictionary of values by stratum, of every parameter of a method.

    Parameters that are not given take their default. Where there are strata (`grouped`), a number may be
    given by stratum, as a dictionary {"north": 3, "south": 5} or as text "north:3,south:5"; it is returned as
    a dictionary.
    """
    for name in given:
        parameter_named(method, name)
    return {
        p.name: _value_or_values_by_stratum(p, given.get(p.name, p.default), grouped=grouped)
        for p in method.parameters
    }


def _value_or_values_by_stratum(parameter: Parameter, value: Any, *, grouped: bool) -> Any:
    """Return the checked value of a parameter, or a dictionary of checked values by stratum."""
    if not _is_by_stratum(parameter, value):
        return parameter_value(parameter, value)
    if not grouped:
        raise ValueError(
            f"{parameter.name} is {quoted(value)} and there are no strata; give one number, or strata"
        )
    numbers = numbers_by_name(parameter.name, value)
    return {stratum: parameter_value(parameter, number) for stratum, number in numbers.items()}


def require_one_value(method: Method, given: Mapping[str, Any]) -> None:
    """Raise ValueError if a number is given by stratum, for a file that was masked as a whole."""
    for name, value in given.items():
        if _is_by_stratum(parameter_named(method, name), value):
            raise ValueError(f"{name} is {quoted(value)} and the file was masked as a whole; give one number")


def parameters_in_stratum(method: Method, parameters: Mapping[str, Any], stratum: str) -> dict[str, Any]:
    """Return the parameters of one stratum, where some values are dictionaries by stratum."""
    return {p.name: _value_in_stratum(p, parameters[p.name], stratum) for p in method.parameters}


def _value_in_stratum(parameter: Parameter, value: Any, stratum: str) -> Any:
    """Return the value of a parameter in one stratum; raise ValueError if that stratum has none."""
    if not _is_by_stratum(parameter, value):
        return value
    if stratum not in value:
        raise ValueError(
            f"{parameter.name} has no value for stratum {quoted(stratum)}; give one for each stratum"
        )
    return value[stratum]


def parameters_by_stratum(
    method: Method, given: Mapping[str, Any], strata: Sequence[str], *, grouped: bool
) -> list[dict[str, Any]]:
    """Return a dictionary of checked parameters for each stratum, in the order of `strata`."""
    values = parameters_with_strata(method, given, grouped=grouped)
    for parameter in method.parameters:
        if _is_by_stratum(parameter, values[parameter.name]):
            require_known_strata(values[parameter.name], strata)
    return [parameters_in_stratum(method, values, stratum) for stratum in strata]


def function_options(method: Method, options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the options as the method's function takes them: column numbers instead of column names."""
    found = dict(options)
    for parameter in method.parameters:
        value = options[parameter.name]
        if parameter.kind is tuple:
            require_known(value, names, f"column in {parameter.name}")
            found[parameter.name] = tuple(names.index(name) for name in value)
        elif parameter.kind is dict:
            require_known(value, names, f"column in {parameter.name}")
            numbers = [value.get(name, parameter.fill) for name in names]
            found[parameter.name] = np.array(numbers, np.float64) if value else None
    return found


def options_of_columns(method: Method, options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the options without the entries for columns other than `names`."""
    found = dict(options)
    for parameter in method.parameters:
        value = options[parameter.name]
        if parameter.kind is tuple:
            found[parameter.name] = tuple(name for name in value if name in names)
        elif parameter.kind is dict:
            found[parameter.name] = {name: number for name, number in value.items() if name in names}
    return found


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """Return parameters as text, as in "p=0.15, tails=0.05"."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in parameters.items())


def method_text(method: str, parameters: Mapping[str, Any]) -> str:
    """Return a method with its parameters as text, as in "rank_swap (p=0.15)"."""
    return f"{method} ({parameters_text(parameters)})" if parameters else method


def value_text(value: Any) -> str:
    """Return a parameter's value as text that `parameter_value` reads back."""
    if isinstance(value, tuple):
        return ",".join(_quote_name(name) for name in value)
    if isinstance(value, dict):
        return ",".join(f"{_quote_name(name)}:{value_text(number)}" for name, number in value.items())
    return format(value, ".15g") if isinstance(value, float) else str(value)


def _quote_name(name: str) -> str:
    """Return a name, in quotation marks if it has a comma or a quotation mark."""
    return '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name


def check_group_column(method: Method, name: str, known: Sequence[str]) -> None:
    """Raise ValueError if the method forms no groups, or if the new column's name cannot be used."""
    if method.groups is None:
        able = ", ".join(other.name for other in METHODS.values() if other.groups is not None)
        raise ValueError(f"{method.name} forms no groups of records to number; choose from: {able}")
    check_new_column("group numbers", name, known)


def check_new_column(what: str, name: object, known: Sequence[str]) -> None:
    """Raise ValueError if a column that is added to a table cannot have this name."""
    if not isinstance(name, str) or not name.strip() or name in (*known, "all"):
        fact = f"cannot be named {name!r}, which " + ("is taken" if name in known else "tables do not take")
        raise ValueError(f"the column for {what} {fact}; choose another name")
