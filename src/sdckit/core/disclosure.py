"""What is published about the masking of a file, method and parameters, and so known to an intruder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sdckit.core import checks, registry, settings
from sdckit.kernels.jit import Floats  # noqa: TC001 - typing.get_type_hints looks for it

Window = Callable[[str, "Floats", Sequence[str]], Any]


@dataclass(frozen=True)
class Disclosure:
    """Method, parameters, largest move in ranks, edit rules and strata known of a file's masking.

    `method` is a name of `sdc.METHODS`, None where it is not known; `parameters` has a value for each of its
    parameters, or values by stratum. `window(stratum, values, columns)` is the largest move in ranks among
    the original values of a stratum ("all" for the whole file), for all columns or for each of them; None
    where no such bound is published. `rules` are edit rules that records satisfy. `by` names the columns
    that form strata, if each stratum was masked separately. `paired` is False where masked rows stand for no
    original record. `keeps` lists properties that the method preserves; `deterministic` is True for a method
    that draws no random numbers.
    """

    method: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    window: Window | None = None
    rules: Any = None  # text, or a `Rules` object of the package `rules`
    by: tuple[str, ...] = ()
    paired: bool = True
    keeps: tuple[str, ...] = ()
    deterministic: bool = False

    @classmethod
    def of(
        cls, method: str, parameters: Mapping[str, Any], *, by: Sequence[str] = (), rules: Any = None
    ) -> Disclosure:
        """Return the disclosure of a file masked by a method of `sdc.METHODS` with these parameters."""
        record = registry.method_named(method)
        values = settings.parameters_with_strata(record, parameters, grouped=bool(by))
        return cls(
            method=record.name,
            parameters=values,
            window=None if record.window is None else MethodWindow(record.name, values),
            rules=rules,
            by=tuple(by),
            paired=record.keeps_pairing(values),
            keeps=record.keeps,
            deterministic=not record.random,
        )

    @property
    def uninformed(self) -> bool:
        """True where neither the masking method nor a bound on the move in ranks is known."""
        return self.method is None and self.window is None

    def width(self, stratum: str, values: Floats, columns: Sequence[str]) -> Any:
        """Return how many ranks a value may have moved at most in a stratum; None if not published."""
        return None if self.window is None else self.window(stratum, values, columns)


@dataclass(frozen=True)
class MethodWindow:
    """Largest move in ranks of a masking method, computed from its published parameters."""

    method: str
    parameters: Mapping[str, Any]

    def __call__(self, stratum: str, values: Floats, columns: Sequence[str]) -> Any:
        """Return the largest move in ranks among the original values of a stratum."""
        record = registry.METHODS[self.method]
        options = settings.options_of_columns(
            record, settings.parameters_in_stratum(record, self.parameters, stratum), columns
        )
        assert record.window is not None  # noqa: S101 - only made for methods that have one
        return record.window(settings.function_options(record, options, columns), values)


@dataclass(frozen=True)
class GivenWindow:
    """Largest move in ranks by a masking, as a user states it: a share of n or a function of the values.

    Either may also be given for each stratum by its name.
    """

    given: float | Callable[[Floats], Any] | Mapping[str, float | Callable[[Floats], Any]]

    def __call__(self, stratum: str, values: Floats, _columns: Sequence[str]) -> Any:
        """Return the largest move in ranks among the original values of a stratum."""
        window = self.given
        if isinstance(window, Mapping):
            checks.require_known([stratum], list(window), "stratum with a window")
            window = window[stratum]
        if callable(window):
            return window(values)
        return checks.whole_share(checks.checked_share("window", window), len(values))


def disclosure_of(
    disclosure: Disclosure | None,
    *,
    method: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    window: Any = None,
    stratified: bool = False,
    paired: bool = True,
    rules: Any = None,
    by: Sequence[str] = (),
) -> Disclosure:
    """Return the given disclosure, or build one from the options; raise ValueError where both are given."""
    if disclosure is not None:
        stated = {"method": method, "parameters": parameters, "window": window, "rules": rules}
        stated |= {"stratified": stratified or None, "paired": None if paired else False}
        for name in [name for name, value in stated.items() if value is not None]:
            raise ValueError(f"the disclosure says how the file was masked and {name} is given too; drop one")
        return disclosure
    strata = tuple(by) if stratified else ()
    if method is not None:
        if window is not None:
            raise ValueError(f"the method {method} determines the window and window is given too; drop one")
        found = Disclosure.of(method, parameters or {}, by=strata, rules=rules)
        return found if paired else replace(found, paired=False)
    if parameters:
        raise ValueError(f"parameters {', '.join(parameters)} are given without a method; name the method")
    given = None if window is None else GivenWindow(window)
    return Disclosure(window=given, rules=rules, by=strata, paired=paired)
