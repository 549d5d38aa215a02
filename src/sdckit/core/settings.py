"""The parameters of a method as a user sets them: known, complete, and one set for each stratum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sdckit.core.checks import known_columns
from sdckit.core.parameters import by_name, parameter_value
from sdckit.core.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.parameters import Parameter
    from sdckit.core.registry import Method


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


def numbered(method: Method, name: str, known: Sequence[str]) -> None:
    """Refuse to number the groups of a method that forms none, or under a name that is taken."""
    if method.groups is None:
        able = ", ".join(other.name for other in METHODS.values() if other.groups is not None)
        raise ValueError(f"{method.name} forms no groups of records to number; take one of: {able}")
    if not isinstance(name, str) or not name.strip() or name in (*known, "all"):
        fact = f"cannot be named {name!r}, which " + ("is taken" if name in known else "tables do not take")
        raise ValueError(f"the column for group numbers {fact}; choose another name")
