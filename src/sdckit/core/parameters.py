"""Parameters of methods and metrics: types, ranges, and checks of the values that a user gives."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.checks import MISSING, as_number, one_of
from sdckit.core.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Parameter:
    """One option of a method or metric: its type, default, range and the grid a sweep tries.

    Most parameters are a number or a word. One of kind `tuple` holds names of columns, and the method's
    function gets the column numbers; one of kind `dict` holds a number for some columns, and the function
    gets one number for each column, `fill` where none was given. `off` is the value, if any, that switches
    the parameter off.
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
        """True for a parameter that is one number, False for words and for values by column."""
        return self.kind in (int, float)


MISSING_RULE = Parameter("missing", str, "pairwise", "what a missing cell counts", choices=MISSING)


def parameter_value(parameter: Parameter, value: Any) -> Any:
    """Return `value` in the type of the parameter; raise ValueError for a wrong type, range or choice."""
    name, kind = parameter.name, parameter.kind
    if parameter.choices:
        return one_of(name, value, parameter.choices)
    if kind is tuple:
        return _column_names(name, value)
    if kind is dict:
        single = replace(parameter, kind=float)
        return {
            column: parameter_value(single, number) for column, number in numbers_by_name(name, value).items()
        }
    number = as_number(value)
    if number is None or (kind is int and not float(number).is_integer()):
        wanted = "a whole number" if kind is int else "a number"
        raise ValueError(f"{name} is {value!r}; give {wanted}{range_text(parameter)}")
    below = parameter.low is not None and number < parameter.low
    above = parameter.high is not None and number > parameter.high
    if below or above:
        raise ValueError(f"{name} is {value}, out of range; give a number{range_text(parameter)}")
    return kind(number)


def _column_names(what: str, value: Any) -> tuple[str, ...]:
    """Return column names from a list or from comma-separated text; a name with a comma is quoted."""
    if isinstance(value, str) and (not value or value.strip(", ")):
        value = [n.strip() for n in next(csv.reader([value], skipinitialspace=True), []) if n.strip()]
    if isinstance(value, str) or not isinstance(value, Iterable) or isinstance(value, (dict, np.ndarray)):
        raise ValueError(f"{what} is {value!r}; give names of columns, such as ['a', 'b']")  # noqa: TRY004
    return tuple(dict.fromkeys(str(name) for name in value))


def numbers_by_name(what: str, value: Any) -> dict[str, Any]:
    """Return a dictionary of values by name, from a dictionary or from text such as a:2,b:0.5."""
    if isinstance(value, str):
        pairs = [p.rpartition(":") for p in next(csv.reader([value], skipinitialspace=True), []) if p.strip()]
        found = {name.strip(): number.strip() for name, _, number in pairs}
        value = found if len(found) == len(pairs) and "" not in found and (found or not value) else value
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is {quoted(value)}; give a number for each name, such as a:2,b:0.5")  # noqa: TRY004
    return {str(name): number for name, number in value.items()}


def range_text(parameter: Parameter) -> str:
    """Return the range of a parameter as text, such as " from 0 to 1"; empty without a lower bound."""
    if parameter.low is not None and parameter.high is not None:
        return f" from {parameter.low:g} to {parameter.high:g}"
    return f" of at least {parameter.low:g}" if parameter.low is not None else ""
