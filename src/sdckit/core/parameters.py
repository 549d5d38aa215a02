"""Parameters of methods and metrics: their types and ranges, and checks of the values that a user gives."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.checks import as_number, one_of

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Parameter:
    """One option of a method or metric: its type, default, range and the grid a sweep tries.

    A number or a word, as a rule. Of kind `tuple` it holds names of columns, of kind `dict` a number for
    some columns; the method's function gets the places of the former, and of the latter one number for each
    column, `fill` where nothing was said. `off` is the value, if any, of a parameter that is not in use.
    """

    name: str
    kind: type
    default: Any
    text: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    grid: Sequence[float] = ()
    fill: float = 1.0
    off: Any = None

    @property
    def numeric(self) -> bool:
        """True where the parameter is one number."""
        return self.kind in (int, float)


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
    number = as_number(value)
    if number is None or (kind is int and not float(number).is_integer()):
        wanted = "a whole number" if kind is int else "a number"
        raise ValueError(f"{name} is {value!r}; give {wanted}{range_of(parameter)}")
    below = parameter.low is not None and number < parameter.low
    above = parameter.high is not None and number > parameter.high
    if below or above:
        raise ValueError(f"{name} is {value}, out of range; give a number{range_of(parameter)}")
    return kind(number)


def _column_names(what: str, value: Any) -> tuple[str, ...]:
    """Return column names from a list or from comma-separated text; quotes protect a comma."""
    if isinstance(value, str) and (not value or value.strip(", ")):
        value = [n.strip() for n in next(csv.reader([value], skipinitialspace=True), []) if n.strip()]
    if isinstance(value, str) or not isinstance(value, Iterable) or isinstance(value, (dict, np.ndarray)):
        raise ValueError(f"{what} is {value!r}; give names of columns, such as ['a', 'b']")  # noqa: TRY004
    return tuple(dict.fromkeys(str(name) for name in value))


def by_name(what: str, value: Any) -> dict[str, Any]:
    """Return values by name, from a dictionary or from text such as a:2,b:0.5."""
    if isinstance(value, str):
        pairs = [p.rpartition(":") for p in next(csv.reader([value], skipinitialspace=True), []) if p.strip()]
        found = {name.strip(): number.strip() for name, _, number in pairs}
        value = found if len(found) == len(pairs) and "" not in found and (found or not value) else value
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is {value!r}; give a number for each name, such as a:2,b:0.5")  # noqa: TRY004
    return {str(name): number for name, number in value.items()}


def range_of(parameter: Parameter) -> str:
    """Return the range of a parameter as text."""
    if parameter.low is not None and parameter.high is not None:
        return f" from {parameter.low:g} to {parameter.high:g}"
    return f" of at least {parameter.low:g}" if parameter.low is not None else ""
