"""Registry of metrics and methods: each function with a record of its properties.

`@metric` and `@method` file a record under the function's name and return the function unchanged.
`METRICS` and `METHODS` are the only lists: the packages `metrics` and `masking` import all their modules
(`import_modules`), so that a new module is found without being named anywhere. What the command line, the
sweeps, the report and the study treat differently for some metrics or methods is a property of the record.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sdckit.core.checks import NotApplicable, missing_rule, one_of
from sdckit.core.parameters import parameter_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sdckit.core.parameters import Parameter

METRICS: dict[str, Metric] = {}
METHODS: dict[str, Method] = {}

LAST = 1000  # the place of a record that names none
Shown = Literal["headline", "overview", "table"]
Function = TypeVar("Function", bound="Callable[..., object]")
Record = TypeVar("Record", "Metric", "Method")


@dataclass(frozen=True)
class Metric:
    """A measure of a pair (original, masked).

    `score` computes it from a prepared pair, `function` is the public call that returns a float,
    `explain` turns a score into a sentence for people who are not specialists. `needs` says what the
    metric looks at: "cells", "ranks", "rows" (records as a whole), "columns" (each variable's values,
    whatever their order), "moments" or "table" (both files stacked). A pair and its score are of types that
    the layer of metrics defines (`metrics.pair.Pair`, `metrics.score.Score`); nothing here looks into them.

    `shown` says where a value appears: "headline" everywhere, "overview" in every table that leaves some out,
    "table" in the full ones. `default` metrics are measured where none is named, `default_unpaired` ones
    beside them where rows are not paired. `any_data` marks a metric that no data are unsuited for,
    `bounded_by_method` a share of records that `Method.largest_linkage` bounds, `noted` one that the note
    compares. `untied_level(n)` is the value of n records without ties in unrelated order.
    """

    name: str
    title: str
    family: Literal["loss", "risk"]
    bounds: tuple[float, float]
    best: float
    needs: str
    score: Callable[..., Any]
    explain: Callable[[Any], str]
    function: Callable[..., float]
    reference: str
    parameters: tuple[Parameter, ...] = ()
    random: bool = False  # takes `rng`, for options that draw
    fixed_options: dict[str, Any] = field(default_factory=dict)  # options that the name fixes, see `fixed`
    by_variable: bool = True  # False where only the file as a whole has a value
    records: int = 2  # needed at least, and so are
    variables: int = 1
    paired: bool = True
    informed: bool = False  # makes use of what a masking publishes about itself
    default: bool = True
    default_unpaired: bool = False
    experimental: bool = False
    extra: str | None = None
    aliases: tuple[str, ...] = ()  # earlier names, which callers may still use
    place: int = LAST  # in lists, the smallest first
    shown: Shown = "table"
    colour: str | None = None  # a name of `report.charts`
    noted: bool = False
    any_data: bool = False
    bounded_by_method: bool = False
    untied_level: Callable[[int], float] | None = None

    @property
    def identical(self) -> float:
        """Value on unchanged data whose records all differ: no loss, or the full risk."""
        return self.best if self.family == "loss" else self.bounds[1]

    @property
    def bounded(self) -> bool:
        """True where the largest possible value is known."""
        return self.bounds[1] != float("inf")

    @property
    def standing(self) -> str:
        """State of the metric: "default", "on request" or "experimental"."""
        return "experimental" if self.experimental else "default" if self.default else "on request"

    @property
    def span(self) -> str:
        """Range of possible values, as text."""
        if not self.bounded:
            return "0 and up"
        return "0 to 1" if self.best == 0 else "0 to 1, 1 is best"

    @property
    def summary(self) -> str:
        """The first line of the function's documentation."""
        return first_line(self.function)

    @cached_property
    def open(self) -> frozenset[str]:
        """Names of the options that a caller may set."""
        return frozenset(parameter.name for parameter in self.parameters)

    def fixed(self, name: str, options: dict[str, Any]) -> Metric:
        """The same metric under another name, with some options settled; what holds for the defaults goes."""
        left = tuple(parameter for parameter in self.parameters if parameter.name not in options)
        score = partial(self.score, **options)
        return replace(
            self,
            name=name,
            score=score,
            parameters=left,
            fixed_options=options,
            bounded_by_method=False,
            untied_level=None,
        )

    def score_with(self, pair: object, options: Mapping[str, Any], **details: bool) -> Any:
        """Score a pair with those of the options that this metric knows and leaves open."""
        given = {name: value for name, value in options.items() if name in self.open}
        if "missing" in given and not self.bounded:
            given["missing"] = "pairwise"  # a penalty is defined for bounded losses only
        if self.random:
            given["rng"] = options["rng"]
        return self.score(pair, **given, **details)


@dataclass(frozen=True)
class Method:
    """A masking: `function(values, **parameters)` maps an n x p matrix to one of the same shape.

    NaN cells are missing. Random methods also take `rng`. `basis(values)` computes what depends on the
    values alone, for any parameters; who masks the same values often hands it in as `basis=`.
    `group_size` names the parameter that says how many records the method needs at least.
    `records(options, p)` is that number where it depends on more than one parameter. `groups` are the
    numbers of the groups of records that the method publishes together, `groups(values, **options)`; its
    function takes them as `groups=`. `window(options, values)` is the largest move in ranks, where the
    method publishes one, for all columns or for each: an intruder knows it. `largest_linkage(options)` bounds
    the share of records that any linkage finds in complete data. `release_notes(values, options)` are
    sentences that a release should come with. `groups`, `window` and `release_notes` get the options as the
    function takes them.
    `keeps` are promises that the tests read by their words, "column means (aggregate=mean, complete data)":
    in parentheses stands what they need.
    A method that is not `paired` makes rows that stand for no original record: measures that compare row
    by row have no meaning for it. `paired_by` names the parameter whose columns tie rows to records again.
    """

    name: str
    title: str
    function: Callable[..., Any]
    reference: str
    keeps: tuple[str, ...]
    parameters: tuple[Parameter, ...] = ()
    basis: Callable[[Any], Any] | None = None
    random: bool = False
    group_size: str | None = None
    records: Callable[[dict[str, Any], int], int] | None = None
    groups: Callable[..., Any] | None = None
    window: Callable[[dict[str, Any], Any], Any] | None = None
    largest_linkage: Callable[[dict[str, Any]], float] | None = None
    release_notes: Callable[[Any, dict[str, Any]], list[str]] | None = None
    paired: bool = True
    paired_by: str | None = None
    default: bool = False
    experimental: bool = False
    extra: str | None = None
    place: int = LAST  # in lists, the smallest first
    colour: str | None = None  # a name of `report.charts`

    @property
    def summary(self) -> str:
        """The first line of the function's documentation."""
        return first_line(self.function)

    @property
    def standing(self) -> str:
        """State of the method: "default", "on request" or "experimental"."""
        return "experimental" if self.experimental else "default" if self.default else "on request"

    def pairs(self, options: dict[str, Any]) -> bool:
        """Return True if, with these options, each masked row stands for the record in its place."""
        return self.paired or (self.paired_by is not None and bool(options[self.paired_by]))

    def defaults(self) -> dict[str, Any]:
        """The value of every parameter that the user did not set."""
        return {parameter.name: parameter.default for parameter in self.parameters}


def metric(
    *, score: Callable[..., Any], explain: Callable[[Any], str], **record: Any
) -> Callable[[Function], Function]:
    """Register the decorated public function as a metric under its own name."""

    def file(function: Function) -> Function:
        name = function.__name__
        _insert(METRICS, Metric(name=name, score=score, explain=explain, function=function, **record))  # type: ignore[arg-type]
        return function

    return file


def method(**record: Any) -> Callable[[Function], Function]:
    """Register the decorated function as a masking method under its own name."""

    def file(function: Function) -> Function:
        _insert(METHODS, Method(name=function.__name__, function=function, **record))
        return function

    return file


def _insert(records: dict[str, Record], record: Record) -> None:
    """Insert a record in order, independent of the order of imports."""
    records[record.name] = record
    ordered = sorted(records.values(), key=_order)
    records.clear()
    records.update((one.name, one) for one in ordered)


def _order(record: Metric | Method) -> tuple[bool, int, str, int]:
    """Return the sort key: losses before risks, then by place, module and line."""
    function: Any = record.function
    risk = isinstance(record, Metric) and record.family == "risk"
    return risk, record.place, function.__module__, function.__code__.co_firstlineno


def import_modules(package: str) -> None:
    """Import every module of a package, which registers the metrics or methods defined there."""
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        import_module(module.name)


def functions_of(family: str) -> dict[str, Callable[..., float]]:
    """Return the functions of all metrics of a family, by name and by alias."""
    own = [metric for metric in METRICS.values() if metric.family == family]
    return {name: metric.function for metric in own for name in (metric.name, *metric.aliases)}


def shown_metrics(*kinds: Shown, family: str | None = None) -> list[Metric]:
    """Return the metrics that are shown in one of these ways, of both families or of one."""
    return [m for m in METRICS.values() if m.shown in kinds and family in (None, m.family)]


def current_name(name: Any) -> Any:
    """Return the name that tables use: for an alias, options included, that of its metric."""
    if not isinstance(name, str):
        return name
    plain, colon, options = name.partition(":")
    known = {alias: metric.name for metric in METRICS.values() for alias in metric.aliases}
    return known.get(plain, plain) + colon + options


def short_title(name: str) -> str | None:
    """Return the title of a method or metric; None for other names."""
    if name in METRICS:
        return METRICS[name].title.split(",")[0]
    return METHODS[name].title if name in METHODS else None


def first_line(function: Callable[..., object]) -> str:
    """Return the first sentence of a docstring."""
    return (function.__doc__ or "").strip().split("\n", 1)[0].rstrip(".")


def method_named(name: object) -> Method:
    """Look up a masking method."""
    import_module("sdckit.masking")  # by name: importing it files all methods, and it lies above this layer
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
    return [_metric_named(name) for name in dict.fromkeys(map(current_name, names))]


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
    """Raise an error for data with fewer records or variables than this metric needs."""
    metric = METRICS[name]
    for what, needed, found in (
        ("records", metric.records, records),
        ("variables", metric.variables, variables),
    ):
        if found < needed:
            raise NotApplicable(
                f"{metric.name} needs at least {needed} {what} and the data have {found}; use another metric"
            )
