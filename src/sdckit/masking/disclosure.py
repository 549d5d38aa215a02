"""What a masking discloses of itself: method, parameters, strata, window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from sdckit.arrays import Floats
from sdckit.core import checks, registry
from sdckit.core.registry import frozen
from sdckit.core.table import names_of

Window = Callable[[str, "Floats", Sequence[str]], Any]
BY_METHOD: Any = None  # default of a field whose value follows from the method; any type, as it is replaced


@dataclass(frozen=True)
class Disclosure:
    """Method, parameters, largest move in ranks, edit rules, strata and columns known of a file's masking.

    `method` is a name of `sdc.METHODS`, None where it is not known; `parameters` has a value for each of its
    parameters, or values by stratum; those that are not given have their default. `rules` are edit rules that
    records satisfy. `by` names the columns that form strata, if each stratum was masked separately.
    `columns` names the masked columns; it is empty where they are not known. `calibrated` are totals of the
    original, such as "total(turnover) by sector", to which the masked file was calibrated: they hold exactly.

    The other fields follow from the method unless they are given. `window(stratum, values, columns)` is the
    largest move in ranks among the original values of a stratum ("all" for the whole file), for all columns
    or for each of them; None where no such bound is published. `paired` is False where masked rows stand for
    no original record. `keeps` lists properties that the method preserves; `deterministic` is True for a
    method that draws no random numbers with these parameters.

    Examples
    --------
    >>> import sdckit as sdc
    >>> known = sdc.Disclosure("rank_swap", {"p": 0.35})
    >>> data, masked = [5.0, 1.0, 4.0, 2.0, 6.0, 3.0], [6.0, 3.0, 2.0, 4.0, 5.0, 1.0]
    >>> round(sdc.evaluate(data, masked, metrics="linkage", made_by=known)["linkage"], 3)
    0.667
    """

    method: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    window: Window | None = None
    rules: Any = None  # text, or a `Rules` object of the package `rules`
    by: tuple[str, ...] = ()
    paired: bool = BY_METHOD
    keeps: tuple[str, ...] = BY_METHOD
    deterministic: bool = BY_METHOD
    columns: tuple[str, ...] = ()
    calibrated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        found: dict[str, Any] = {"rules": frozen(self.rules), "parameters": frozen(self.parameters)}
        found |= {name: tuple(names_of(getattr(self, name))) for name in ("by", "columns", "calibrated")}
        follows: dict[str, Any] = {"paired": True, "keeps": (), "deterministic": False}
        if self.method is not None:
            record = registry.method_named(self.method)
            values = registry.parameters_with_strata(record, self.parameters, grouped=bool(found["by"]))
            found["parameters"] = frozen(values)
            if self.window is None or isinstance(self.window, MethodWindow):  # the latter after `replace`
                window = MethodWindow(record.name, found["parameters"])
                found["window"] = None if record.window is None else window
            silent = not record.random or record.changes_nothing(values)
            follows = {"paired": record.keeps_pairing(values), "keeps": record.keeps, "deterministic": silent}
        elif self.parameters:
            names = ", ".join(self.parameters)
            raise ValueError(f"parameters are given without a method: {names}; name the method")
        given = {name: getattr(self, name) for name in follows}
        found |= follows | {name: value for name, value in given.items() if value is not BY_METHOD}
        found["keeps"] = tuple(found["keeps"])
        for name, value in found.items():  # later the fields are frozen
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls,
        method: str,
        parameters: Mapping[str, Any],
        *,
        by: Sequence[str] = (),
        rules: Any = None,
        columns: Sequence[str] = (),
    ) -> Disclosure:
        """Return the disclosure of a file masked by a method of `sdc.METHODS` with these parameters."""
        return cls(method, parameters, rules=rules, by=tuple(by), columns=tuple(columns))

    @property
    def uninformed(self) -> bool:
        """True where neither the masking method nor a bound on the move in ranks is known."""
        return self.method is None and self.window is None

    @property
    def keeps_zeros(self) -> bool:
        """True if the method publishes an original 0 as 0."""
        return "zeros" in self.keeps

    @property
    def one_by_one(self) -> bool:
        """True if the method masks each column by itself, whatever the other columns hold."""
        applies = None if self.method is None else registry.METHODS[self.method].one_by_one
        return applies is not None and applies(self.parameters)

    @property
    def alike(self) -> bool:
        """True if all records of a group are published alike, so that missing cells keep no place or code."""
        applies = None if self.method is None else registry.METHODS[self.method].alike
        return applies is not None and applies(self.parameters)

    def half_width(self, stratum: str, values: Floats, columns: Sequence[str]) -> Any:
        """Return how far a value of each column may have moved in a stratum; None if not published."""
        record = None if self.method is None else registry.METHODS[self.method]
        if record is None or record.half_width is None:
            return None
        options = _options_in_stratum(record, self.parameters, stratum, columns)
        return record.half_width(options, values)

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
        assert record.window is not None  # noqa: S101 - only made for methods that have one
        return record.window(_options_in_stratum(record, self.parameters, stratum, columns), values)


def _options_in_stratum(
    record: registry.Method, parameters: Mapping[str, Any], stratum: str, columns: Sequence[str]
) -> dict[str, Any]:
    """Return the options of a method in one stratum as its function takes them, for these columns."""
    options = registry.options_of_columns(
        record, registry.parameters_in_stratum(record, parameters, stratum), columns
    )
    return registry.function_options(record, options, columns)


@dataclass(frozen=True)
class GivenWindow:
    """Largest move in ranks by a masking, as a user states it: a share of n or a function of the values.

    Either may also be given for each stratum by its name.
    """

    given: float | Callable[[Floats], Any] | Mapping[str, float | Callable[[Floats], Any]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "given", frozen(self.given))

    def __call__(self, stratum: str, values: Floats, _columns: Sequence[str]) -> Any:
        """Return the largest move in ranks among the original values of a stratum."""
        window = self.given
        if isinstance(window, Mapping):
            checks.require_known_strata([stratum], list(window), "stratum with a window")
            window = window[stratum]
        if callable(window):
            return window(values)
        return checks.whole_share(checks.checked_share("window", window), len(values))


class HasDisclosure(Protocol):
    """An object that carries a disclosure, such as a `Release`."""

    @property
    def disclosure(self) -> Disclosure:
        """What is published about the masking."""


def checked_disclosure(given: Disclosure | HasDisclosure | None) -> Disclosure | None:
    """Return a disclosure, or that of a release; None for None, TypeError for anything else."""
    if given is None or isinstance(given, Disclosure):
        return given
    carried = getattr(given, "disclosure", None)
    if isinstance(carried, Disclosure):
        return carried
    kind = type(given).__name__
    raise TypeError(f"disclosure is a {kind}; give release.disclosure, or method and parameters")


class Method:
    """How a file was masked, for `Microdata.evaluate`: what its intruder knows of the masking.

    Parameters
    ----------
    masking : str or function, optional
        A name of `sdc.METHODS`. Or the masking itself: `masking(table, rng)` gets a copy of the original and
        a numpy Generator, and returns the masked table, all records in the order of the original; the
        intruder runs it up to 80 times with draws of his own, and so learns how masked records lie around
        originals. None where neither is known.
    window : float or function, optional
        The largest move in ranks where no method is named: a share of the records, or a function of the
        original values; either also by stratum, in a dictionary.
    stratified : bool, optional
        True if each stratum was masked separately, so that the window holds within strata; False if the file
        was masked as a whole and strata are only measured. By default True with a method and strata and with
        a window by stratum, False with one window.
    paired : bool
        False where the rows of the masked file stand for no original record, as in synthetic data: only
        metrics that do not compare row by row are given, and the others are named in a note.
    **parameters
        Parameters of the method, such as `k=5`; those that are not given have their default.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.Method("rank_swap", p=0.35)
    Method('rank_swap', p=0.35)
    """

    def __init__(
        self,
        masking: str | Callable[[Any, Any], Any] | None = None,
        /,
        *,
        window: float | Callable[[Floats], Any] | Mapping[str, Any] | None = None,
        stratified: bool | None = None,
        paired: bool = True,
        **parameters: Any,
    ) -> None:
        if not (masking is None or isinstance(masking, str) or callable(masking)):
            raise TypeError(
                f"the masking is a {type(masking).__name__}; give a name of sdc.METHODS, or a function of "
                "table and random generator"
            )
        self.name: str | None = masking if isinstance(masking, str) else None
        self.function: Callable[[Any, Any], Any] | None = masking if callable(masking) else None
        self.window = window
        self.stratified = stratified
        self.paired = paired
        self.parameters: Mapping[str, Any] = frozen(parameters)

    def __repr__(self) -> str:
        shown = [repr(self.name)] if self.name else []
        shown += [getattr(self.function, "__name__", "function")] if self.function else []
        given = {name: value for name, value in self.stated.items() if name not in {"method", "parameters"}}
        shown += [f"{name}={value!r}" for name, value in {**given, **self.parameters}.items()]
        return f"Method({', '.join(shown)})"

    @property
    def stated(self) -> dict[str, Any]:
        """What is said of the masking, the function apart, by name."""
        found = {"method": self.name, "parameters": self.parameters or None, "window": self.window}
        found |= {"stratified": self.stratified, "paired": None if self.paired else False}
        return {name: value for name, value in found.items() if value is not None}


def disclosure_of(
    disclosure: Disclosure | None, method: Method, *, rules: Any = None, by: Sequence[str] = ()
) -> Disclosure:
    """Return the given disclosure, or one that follows from a method; raise ValueError where both are given.

    `by` are the columns whose strata are measured. They are the strata of the masking, too, if the method is
    `stratified`, and by default where it is named or its window is given by stratum.
    """
    if disclosure is not None:
        for given in method.stated:
            raise ValueError(
                f"the disclosure says how the file was masked and {given} is given too; drop one"
            )
        return disclosure
    name, window, stratified = method.name, method.window, method.stratified
    if name is not None and window is not None:
        raise ValueError(f"the method {name} determines the window and window is given too; drop one")
    if name is not None and by and stratified is False:
        registry.require_one_value(registry.method_named(name), method.parameters)
    bound = None if window is None else GivenWindow(window)
    if isinstance(window, Mapping) and list(window) != ["all"]:
        if not by:
            raise ValueError("window is given by stratum and there are no strata; name their column with by")
        if stratified is False:
            fact = "window is given by stratum and stratified is False"
            raise ValueError(f"{fact}; give one window for the file")
        stratified = True
    if stratified and not by:
        raise ValueError("stratified is True and there are no strata; name their column with by")
    apart = name is not None if stratified is None else stratified
    found = Disclosure(name, method.parameters, bound, rules, tuple(by) if apart else ())
    return found if method.paired else replace(found, paired=False)
