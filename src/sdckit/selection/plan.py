"""Plan of a sweep: methods, parameter grids and replications, given in Python, as text or as TOML."""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from sdckit.core import checks, registry
from sdckit.core.registry import method_text, parameter_named, parameter_value, parameters_of, parameters_text
from sdckit.core.roles import OPTIONS
from sdckit.masking import METHODS
from sdckit.masking.disclosure import Disclosure

if TYPE_CHECKING:
    from pathlib import Path

    from sdckit.core.registry import Method, Parameter

LARGEST_GRID = 1_000_000
TOML_OPTIONS = ("replications", "draws", "metrics", *OPTIONS)  # entries of a TOML file that are not methods


@dataclass(frozen=True)
class Setting:
    """One masking method with a value for each of its parameters.

    `options` has all of them by name, `given` the names of those that the plan gives values for, `varied` the
    name of the numeric one that varies along the grid, if there is exactly one.
    """

    method: Method
    options: dict[str, Any]
    given: tuple[str, ...]
    varied: str | None
    usual: bool = False  # True if it comes from the method's default grid, not from the plan

    def __str__(self) -> str:
        return method_text(self.method.name, self.parameters)

    @property
    def paired(self) -> bool:
        """True if each masked row stands for the original record in the same row."""
        return self.method.keeps_pairing(self.options)

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of the parameters that the plan names, by name."""
        return {name: self.options[name] for name in self.given}

    @property
    def text(self) -> str:
        """The parameters that the plan gives values for, as text such as "k=5"."""
        return parameters_text(self.parameters)

    @property
    def value(self) -> float | None:
        """Value of the numeric parameter that varies along the grid; None unless exactly one does."""
        return None if self.varied is None else float(self.options[self.varied])

    @cached_property
    def disclosure(self) -> Disclosure:
        """What the masking publishes about itself (method, parameters, window), without rules and strata."""
        return Disclosure.of(self.method.name, self.options)

    @cached_property
    def identity(self) -> str:
        """Text such as "mdav(k=5)" that is equal for equal maskings, whatever the rest of the plan."""
        idle = {p.name: p.off for p in self.method.parameters if p.off is not None}
        used = [(name, value) for name, value in sorted(self.options.items()) if value != idle.get(name)]
        return f"{self.method.name}({', '.join(f'{name}={value!r}' for name, value in used)})"


@dataclass(frozen=True)
class Run:
    """One masked table of a sweep: a setting and the number of its replication, from 1."""

    setting: Setting
    replication: int
    words: list[int] = field(init=False, repr=False, compare=False)  # digest of setting and replication

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", digest_words(f"{self.setting.identity} {self.replication}"))

    @property
    def key(self) -> int:
        """64-bit number that identifies the run in a checkpoint."""
        return self.words[0] << 32 | self.words[1]

    def stream(self, draws: str) -> list[int]:
        """Return four 32-bit numbers that identify the random stream of this run.

        With draws="common" all settings of a method share one stream, so that a curve along the grid shows
        the parameter's effect and not the chance of each draw; with "fresh" each setting has its own.
        """
        if draws == "fresh":
            return self.words
        return digest_words(f"{self.setting.method.name} {self.replication}")


def digest_words(text: str) -> list[int]:
    """Return four 32-bit numbers from the SHA-256 digest of a text."""
    digest = hashlib.sha256(text.encode()).digest()
    return [int.from_bytes(digest[i : i + 4], "big") for i in range(0, 16, 4)]


def runs_of(settings: Iterable[Setting], replications: int) -> list[Run]:
    """Return one run per setting and replication; a method without randomness has one replication only."""
    repeated = [(setting, replications if setting.method.random else 1) for setting in settings]
    total = sum(count for _, count in repeated)
    if total > LARGEST_GRID:
        raise ValueError(
            f"the plan has {total} masked files; give fewer settings or replications, at most {LARGEST_GRID}"
        )
    return [Run(setting, i) for setting, count in repeated for i in range(1, 1 + count)]


def settings_of(plan: Any) -> list[Setting]:
    """Check a plan, a dict from methods to parameter grids, and return its settings, each once.

    A plan maps methods to grids, as in {"mdav": {"k": range(2, 31)}}; a method's value may be a list
    of several such grids. A name alone, or a list of names, stands for the methods' default grids; None
    for all methods that are tried by default.
    """
    if plan is None:
        plan = [name for name, method in METHODS.items() if method.default]
    if isinstance(plan, str):
        plan = [plan]
    if not isinstance(plan, Iterable):
        raise TypeError(f"the plan is {plan!r}; give methods with grids, such as {{'mdav': {{'k': [3, 5]}}}}")
    if not isinstance(plan, Mapping):
        plan = dict.fromkeys(map(_hashable_name, plan), None)
    found: dict[str, Setting] = {}
    for name, grids in plan.items():
        method = registry.method_named(name)
        for grid in grids if isinstance(grids, (list, tuple)) else [grids]:
            found |= {setting.identity: setting for setting in _settings_of_method(method, grid)}
    if not found:
        raise ValueError("the plan is empty; name at least one method, such as mdav")
    return list(found.values())


def _hashable_name(name: Any) -> Any:
    """Return a method's name unchanged if it is hashable, else its text, which is refused later."""
    try:
        hash(name)
    except TypeError:
        return repr(name)
    return name


def _settings_of_method(method: Method, grid: Any) -> list[Setting]:
    """Return one setting for each combination of the values in a grid of one method."""
    usual = grid is None or grid == {}
    if usual:
        grid = {parameter.name: parameter.grid for parameter in method.parameters if parameter.grid}
    if not isinstance(grid, Mapping):
        raise TypeError(f"the grid of {method.name} is {grid!r}; give parameters, such as {{'k': [3, 5]}}")
    known = {name: parameter_named(method, name) for name in grid}
    values = {name: grid_values(known[name], value) for name, value in grid.items()}
    count = math.prod(len(found) for found in values.values())
    if count > LARGEST_GRID:
        raise ValueError(f"the grid of {method.name} has {count} points; give at most {LARGEST_GRID}")
    numbers = [name for name in values if known[name].numeric]
    varied = [name for name in numbers if len(values[name]) > 1] or numbers
    return [
        Setting(
            method,
            parameters_of(method, dict(zip(values, chosen, strict=True))),
            tuple(values),
            varied[0] if len(varied) == 1 else None,
            usual,
        )
        for chosen in product(*values.values())
    ]


def grid_values(parameter: Parameter, given: Any) -> list[Any]:
    """Return the checked values of one parameter, given as a value, a list, or text such as 2:30 or 3,5."""
    if not (parameter.numeric or parameter.choices):  # a list or dict is one value
        several = (
            isinstance(given, (list, tuple))
            and given
            and all(isinstance(v, (list, tuple, dict)) for v in given)
        )
        values = list(given) if several else [given]
    elif isinstance(given, str):
        parts = [part.strip() for part in given.split(",") if part.strip()]
        values = [
            value for part in parts for value in (_range_values(parameter, part) if ":" in part else [part])
        ]
    else:
        values = list(given) if isinstance(given, Iterable) else [given]
    if not values:
        raise ValueError(
            f"the grid of {parameter.name} is empty; give a value, a list or a range such as 2:30"
        )
    return [parameter_value(parameter, value) for value in values]


def _range_values(parameter: Parameter, text: str) -> list[str]:
    """Return the numbers of a text FROM:TO or FROM:TO:STEP, both ends included, in decimal arithmetic."""
    words = text.split(":")
    try:
        first, last, step = (Decimal(word) for word in [*words, "1"][:3])
        steps = (last - first) / step
        good = len(words) <= 3 and step.is_finite() and 0 <= steps <= LARGEST_GRID
    except ArithmeticError:  # not a number, a step of 0, or too many digits
        good = False
    if not good:
        raise ValueError(
            f"the grid {parameter.name}={text} is no range; write FROM:TO or FROM:TO:STEP, such as 2:30"
        )
    if len(words) == 2 and last - first < 1 and last != first:
        raise ValueError(
            f"the grid {parameter.name}={text} is narrower than its step of 1; add a step, as in {text}:0.01"
        )
    return [str(first + step * i) for i in range(int(steps) + 1)]


def plan_of_words(words: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return a plan from command-line words such as mdav.k=2:30; words of one method form one grid."""
    plan: dict[str, dict[str, str]] = {}
    for word in words:
        left, equals, values = (part.strip() for part in word.partition("="))
        method, _, parameter = left.partition(".")
        registry.method_named(method)
        grid = plan.setdefault(method, {})
        if not parameter and not equals:
            continue
        if not parameter or not values:
            raise ValueError(f"grid {word!r} is unclear; write METHOD.PARAMETER=VALUES, as in mdav.k=2:30")
        if parameter in grid:
            raise ValueError(f"the grid gives {left!r} twice; join its values with a comma")
        grid[parameter] = values
    return plan


def plan_of_file(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a TOML file; return its plan, and its other options such as replications."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"no file '{path}'; check its name and folder") from error
    except (OSError, UnicodeError) as error:
        raise ValueError(f"cannot read '{path}' as text: {error}; give a TOML file") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"'{path}' is no TOML file: {error}; see the reference for an example") from error
    options = {name: content.pop(name) for name in TOML_OPTIONS if name in content}
    metrics = options.get("metrics", "")
    if not isinstance(metrics, (str, list)):
        raise ValueError(f"metrics in '{path}' is {metrics!r}; give names in a list")  # noqa: TRY004 - a file
    if isinstance(metrics, list):
        options["metrics"] = ",".join(str(name) for name in metrics)
    for name in [name for name in OPTIONS if name in options]:
        _require_names(name, options[name], path)
    for name in content:
        checks.one_of(f"entry of '{path}'", name, [*METHODS, *TOML_OPTIONS])
    return content, options


def _require_names(option: str, given: Any, path: Path) -> None:
    """Raise ValueError unless an entry of a TOML file has names of columns, missing codes or recodings."""
    if option == "recode":
        if not isinstance(given, dict):
            raise ValueError(f"recode in '{path}' is {given!r}; give a table such as {{age = 5}}")
        return
    kinds = (str, int, float) if option == "na" else (str,)
    several = given if isinstance(given, list) else [given]
    if not all(isinstance(one, kinds) and not isinstance(one, bool) for one in several):
        what = {"na": "missing codes", "estimates": "texts"}.get(option, "names of columns")
        raise ValueError(f"{option} in '{path}' is {given!r}; give {what} in a list")
