"""What a metric, a method and a parameter are, and the two registries that modules fill with decorators."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from inspect import unwrap
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeVar

import numpy as np

from sdckit.core import checks
from sdckit.core.notebook import ShownRecords
from sdckit.kernels.sums import powers_of_two, spread_of_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.arrays import Bools, Floats, Ints


Options = Mapping[str, Any]


class FrozenDict(dict[str, Any]):
    """A dictionary that cannot be changed after it is made; dictionaries and lists in it cannot either.

    `dict(frozen)` is a copy that can be changed.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__({name: frozen(value) for name, value in given.items()})

    def __hash__(self) -> int:  # type: ignore[override]  # plain dictionaries have none
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make the dictionary again, for pickles and copies: not by setting its items."""
        return FrozenDict, (dict(self),)

    def refuse_change(self, *_given: Any, **_named: Any) -> NoReturn:
        """Raise TypeError; it takes the place of every method that changes a dictionary."""
        raise TypeError("these values cannot be changed; make a copy with dict()")

    __setitem__ = __delitem__ = __ior__ = refuse_change
    clear = pop = popitem = setdefault = update = refuse_change


def frozen(value: Any) -> Any:
    """Return a dictionary as `FrozenDict`, a list as tuple, both with all that they hold; else the value."""
    if isinstance(value, Mapping):
        return FrozenDict(value)
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True)
class WholeColumns:
    """Facts on the columns of all records of a file or stratum, added up from its blocks of rows.

    `records` is the number of records, `present` that of records with a value. Each column has `seen` values
    (other than 0 if `nonzero`), `zeros` zeros, the extremes `low` and `high` (NaN without a value), a mean.
    `products` are the sums of products of deviations, in units of `powers`, `pairs` the numbers of records
    that have both values, `codes` the codes of the tails; `few_coded` says that one or two values pass a
    limit.
    """

    records: int
    present: int
    seen: Ints
    zeros: Ints
    low: Floats
    high: Floats
    means: Floats
    products: Floats | None = None
    pairs: Floats | None = None
    codes: tuple[Any, ...] = ()
    few_coded: bool = False
    nonzero: bool = False

    @property
    def powers(self) -> Floats:
        """Unit of each column: the largest power of two up to its largest absolute value."""
        return powers_of_two(np.stack([self.low, self.high]))

    @property
    def constant(self) -> Bools:
        """True for each column whose values are all equal."""
        return self.low == self.high

    @property
    def centres(self) -> Floats:
        """Mean of each column in its unit; NaN for a constant column."""
        return np.where(self.constant, np.nan, self.means / self.powers)

    @property
    def spread(self) -> Floats:
        """Standard deviation (ddof 1) of each column."""
        assert self.products is not None  # noqa: S101 - methods say that they need it
        return self.powers * spread_of_sums(np.diag(self.products), self.seen)


@dataclass(frozen=True)
class InBlocks:
    """How a method masks a file in parts.

    `how` is "cells" if each block of rows is masked by the method's own function, with `basis(whole,
    options)` in place of what it would compute from all values; "ranks" if each column is sorted first, and
    "groups" if groups are formed within blocks of similar records. `needs` says which facts of the whole file
    the basis uses: "counts", "squares", "products" or "codes", without zeros if `nonzero`. `notes(whole,
    options)` are sentences to publish, as `Method.release_notes` gives them. `refused(options)` says in a
    phrase which parameters only work in memory; None if all given ones can be used.
    """

    how: Literal["cells", "ranks", "groups"] = "cells"
    needs: Literal["counts", "squares", "products", "codes"] = "counts"
    nonzero: bool = False
    basis: Callable[[WholeColumns, Options], Any] = lambda _whole, _options: None
    notes: Callable[[WholeColumns, Options], list[str]] = lambda _whole, _options: []
    refused: Callable[[Options], str | None] = lambda _options: None


class Stated(NamedTuple):
    """A method's own law: after `transform`, a published record is normal around each original.

    `mean` and `sd` have a value for each cell of the original; an `sd` of 0 says that the cell is published
    as it is. `correlation` is that of the standardised residuals. `transform` acts on each column of a
    published file by itself; None: cells are compared as published.
    """

    transform: Callable[[Floats], Floats] | None
    mean: Floats
    sd: Floats
    correlation: Floats


def independent(
    mean: Floats, sd: Floats | float, transform: Callable[[Floats], Floats] | None = None
) -> Stated:
    """Return the law of noise that is independent in each cell; `sd` for each cell or each column."""
    return Stated(transform, mean, np.broadcast_to(sd, mean.shape), np.eye(mean.shape[1]))


def correlated(mean: Floats, root: Floats, factors: Floats | float = 1.0) -> Stated:
    """Return the law of noise with the covariance root'root, times the factor of each record.

    The covariance may be singular. A column without noise has the correlation 0, also with itself.
    """
    size = np.sqrt((root**2).sum(axis=0))
    scaled = root / np.where(size > 0, size, 1.0)
    sd = np.broadcast_to(np.asarray(factors).reshape(-1, 1) * size, mean.shape)
    return Stated(None, mean, sd, scaled.T @ scaled)


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


MISSING_RULE = Parameter("missing", str, "pairwise", "what a missing cell counts", choices=checks.MISSING)


def parameter_value(parameter: Parameter, value: Any) -> Any:
    """Return `value` in the type of the parameter; raise ValueError for a wrong type, range or choice."""
    name, kind = parameter.name, parameter.kind
    if parameter.choices:
        return checks.one_of(name, value, parameter.choices)
    if kind is tuple:
        return _column_names(name, value)
    if kind is dict:
        single = replace(parameter, kind=float)
        return {
            column: parameter_value(single, number) for column, number in numbers_by_name(name, value).items()
        }
    number = checks.as_number(value)
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
        raise ValueError(f"{what} is {checks.quoted(value)}; give a number for each name, such as a:2,b:0.5")  # noqa: TRY004
    return {str(name): number for name, number in value.items()}


def range_text(parameter: Parameter) -> str:
    """Return the range of a parameter as text, such as " from 0 to 1"; empty without a lower bound."""
    if parameter.low is None:
        return ""
    high = parameter.high
    return f" of at least {parameter.low:g}" if high is None else f" from {parameter.low:g} to {high:g}"


METRICS: dict[str, Metric] = ShownRecords("name", "title", "range_text", "status", "summary")
METHODS: dict[str, Method] = ShownRecords("name", "title", "parameters", "status", "summary")

LAST = 1000  # position in lists of a record without a `place`
PUBLIC_DECIMALS = 2  # of losses over declared estimates
Shown = Literal["headline", "overview", "table"]
Function = TypeVar("Function", bound="Callable[..., object]")
Record = TypeVar("Record", "Metric", "Method")


@dataclass(frozen=True, kw_only=True)
class Registered:
    """What the records of metrics and of methods have in common."""

    name: str
    title: str
    function: Callable[..., Any]
    reference: str
    parameters: tuple[Parameter, ...] = ()
    random: bool = False  # takes `rng`; of metrics, for options that draw
    default: bool = False
    experimental: bool = False
    extra: str | None = None
    place: int = LAST  # position in lists, the smallest first
    colour: str | None = None  # a name of `report.charts`

    @property
    def status(self) -> str:
        """When it is computed or tried: "default", "on request" or "experimental"."""
        return "experimental" if self.experimental else "default" if self.default else "on request"

    @property
    def summary(self) -> str:
        """First line of the docstring of its function."""
        return first_line(self.function)


@dataclass(frozen=True, kw_only=True)
class Metric(Registered):
    """Properties of one metric, comparing an original with a masked file; filed by `@metric`.

    `score` computes the metric from a `metrics.pair.Pair` and returns a `metrics.score.Score`; `function` is
    the public function that returns a float; `explain` turns a score into a sentence for readers who are not
    specialists. `needs` says what the metric compares: "cells", "ranks", "rows" (whole records), "columns"
    (the values of each variable in any order), "places" (which cells are missing), "groups" (records
    published alike), "moments", "table" (both files stacked) or "untouched" (columns that are not masked).

    `shown` says where a value appears: "headline" everywhere, "overview" also in shortened tables, "table" in
    full tables only. `default` metrics are computed where the user names none, `default_unpaired` ones in
    addition where rows are not paired. `role` is that of the columns that a metric is about, if these are not
    the variables: by default it is computed only where some column has the role, and for "estimates" where
    some are declared. `any_data` marks a metric that has a value for any data, `bounded_by_method` one that
    `Method.largest_linkage` bounds, `in_paper` one that the paper on bounded rank losses compares.
    `untied_level(n)` is the value for n records without ties in unrelated order. `dominated(pair, j)` is True
    if one record dominates the value of variable j, which is then not published.
    """

    family: Literal["loss", "risk"]
    bounds: tuple[float, float]
    best: float
    needs: str
    score: Callable[..., Any]
    explain: Callable[[Any], str]
    fixed_options: dict[str, Any] = field(default_factory=dict)  # by the name, see `with_fixed_options`
    by_variable: bool = True  # False where only the file as a whole has a value
    records: int = 2  # fewest that the metric needs
    variables: int = 1  # fewest that the metric needs
    paired: bool = True
    informed: bool = False  # uses what is published about the masking
    default: bool = True
    default_unpaired: bool = False
    role: Literal["untouched", "confidential", "unit", "estimates"] | None = None
    aliases: tuple[str, ...] = ()  # earlier names, which callers may still use
    shown: Shown = "table"
    in_paper: bool = False
    any_data: bool = False
    in_blocks: bool = False  # engines have it: from blocks of rows, or, of a risk, from all rows in memory
    bounded_by_method: bool = False
    untied_level: Callable[[int], float] | None = None
    dominated: Callable[[Any, int], bool] | None = None
    limit_words: str = ""  # what a limit of # in 100 allows, of risks that the page offers to limit

    @property
    def identical(self) -> float:
        """Value of the metric on unchanged data without equal records: no loss, or the full risk."""
        return self.best if self.family == "loss" else self.bounds[1]

    @property
    def bounded(self) -> bool:
        """True for a metric whose largest possible value is finite."""
        return self.bounds[1] != float("inf")

    @property
    def range_text(self) -> str:
        """Range of possible values as text, such as "0 to 1" or "0 and up"."""
        if not self.bounded:
            return "0 and up"
        return "0 to 1" if self.best == 0 else "0 to 1, 1 is best"

    @cached_property
    def open_options(self) -> frozenset[str]:
        """Names of the options that a caller may set."""
        return frozenset(parameter.name for parameter in self.parameters)

    def with_fixed_options(self, name: str, options: dict[str, Any]) -> Metric:
        """Return the metric under another name with some of its options fixed to given values."""
        left = tuple(parameter for parameter in self.parameters if parameter.name not in options)
        score = partial(self.score, **options)
        found = replace(self, name=name, score=score, parameters=left, fixed_options=options)
        return replace(found, bounded_by_method=False, untied_level=None)

    def score_with(self, pair: object, options: Mapping[str, Any], **details: bool) -> Any:
        """Return the score of a pair of files, with those of the options that this metric takes."""
        given = {name: value for name, value in options.items() if name in self.open_options}
        if "missing" in given and not self.bounded:
            given["missing"] = "pairwise"  # a penalty is defined for bounded losses only
        if self.random:
            given["rng"] = options["rng"]
        return self.score(pair, **given, **details)


@dataclass(frozen=True, kw_only=True)
class Method(Registered):
    """Properties of one masking method; its function maps an n x p matrix to one of the same shape.

    NaN cells are missing. Random methods also take `rng`. `basis(values)` computes what depends on the
    values alone and not on parameters; a caller that masks the same values again passes it as `basis=`.
    `group_size` names the parameter that says how many records the method needs at least.
    `records(options, p)` is that number where it depends on more than one parameter.
    `groups(values, **options)` returns the group number of each record, for methods that publish groups of
    records together; the function takes them as `groups=`. `window(options, values)` is the largest move in
    ranks, for all columns or for each, where the method publishes one: an intruder knows it.
    `half_width(options, values)` is the largest change of a value in each column, where there is one.
    `one_by_one(options)` is True if each column is masked by itself, whatever the others hold; None: never.
    `law(options, values)` is the method's own law of complete values, where it has a closed form, for
    parameters that change something; None where the values allow none.
    `largest_linkage(options)` is an upper bound of the share of records that any linkage finds in complete
    data, if the intruder knows no other columns. `release_notes(values, options)` returns sentences to
    publish with a release. `groups`, `window`, `half_width` and `release_notes` get the options as the
    function takes them. `alike(options)` is True if all records of a group are published alike, so that
    missing cells keep neither their places nor their codes; None: never. `keeps` lists properties that the
    method preserves, such as "column means (aggregate=mean, complete data)", conditions in parentheses; the
    tests check each of them. A method that is not `paired` makes rows that stand for no original record, so
    that no metric can compare row by row. `paired_by` names the parameter whose columns pair rows with
    records again. `in_blocks` says how files that do not fit into memory are masked; None: they are not.
    """

    keeps: tuple[str, ...]
    basis: Callable[[Any], Any] | None = None
    group_size: str | None = None
    records: Callable[[dict[str, Any], int], int] | None = None
    groups: Callable[..., Any] | None = None
    window: Callable[[dict[str, Any], Any], Any] | None = None
    half_width: Callable[[dict[str, Any], Any], Any] | None = None
    one_by_one: Callable[[Mapping[str, Any]], bool] | None = None
    law: Callable[[dict[str, Any], Any], Stated | None] | None = None
    largest_linkage: Callable[[dict[str, Any]], float] | None = None
    alike: Callable[[Mapping[str, Any]], bool] | None = None
    release_notes: Callable[[Any, dict[str, Any]], list[str]] | None = None
    paired: bool = True
    paired_by: str | None = None
    in_blocks: InBlocks | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to find the method again, for pickles: by its function, whose module files it."""
        return _method_of, (self.function,)

    def keeps_pairing(self, options: dict[str, Any]) -> bool:
        """Return True if, with these options, each masked row stands for the original record in its place."""
        return self.paired or (self.paired_by is not None and bool(options[self.paired_by]))

    def changes_nothing(self, options: Mapping[str, Any]) -> bool:
        """Return True if the parameters leave the data unchanged by intent, such as k = 1 or percent = 0."""
        rising = [
            p for p in self.parameters if p.low is not None and len(p.grid) > 1 and p.grid[0] < p.grid[-1]
        ]
        return bool(rising) and all(options[parameter.name] == parameter.low for parameter in rising)

    def defaults(self) -> dict[str, Any]:
        """Return the default value of each parameter, by name."""
        return {parameter.name: parameter.default for parameter in self.parameters}


def _method_of(function: Callable[..., Any]) -> Method:
    """Return the method that a masking function was filed with."""
    return METHODS[function.__name__]


def file_metric(record: Metric) -> None:
    """Add a metric to `METRICS`; `metrics.pair.metric` makes it."""
    _insert(METRICS, record)


def method(**record: Any) -> Callable[[Function], Function]:
    """Return a decorator that files a masking function in `METHODS` with these properties."""

    def register(function: Function) -> Function:
        """File the function in `METHODS` under its own name and return it unchanged."""
        _insert(METHODS, Method(name=function.__name__, function=function, **record))
        return function

    return register


def _insert(records: dict[str, Record], record: Record) -> None:
    """Add a record to a registry and sort the registry, so that the order of imports does not matter."""
    records[record.name] = record
    ordered = sorted(records.values(), key=_sort_key)
    records.clear()
    records.update((one.name, one) for one in ordered)


def _sort_key(record: Metric | Method) -> tuple[bool, int, str, int]:
    """Return the sort key of a record: losses before risks, then its position number, module and line."""
    function: Any = unwrap(record.function)
    risk = isinstance(record, Metric) and record.family == "risk"
    return risk, record.place, function.__module__, function.__code__.co_firstlineno


def import_modules(package: str) -> None:
    """Import every module of a package, which registers the metrics or methods defined there."""
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        import_module(module.name)


def functions_of(family: str) -> dict[str, Callable[..., float]]:
    """Return the public function of each metric of a family ("loss" or "risk"), by name and by alias."""
    own = [metric for metric in METRICS.values() if metric.family == family]
    return {name: metric.function for metric in own for name in (metric.name, *metric.aliases)}


def shown_metrics(*kinds: Shown, family: str | None = None) -> list[Metric]:
    """Return the metrics whose `shown` is one of the kinds, of both families or of one."""
    return [m for m in METRICS.values() if m.shown in kinds and family in (None, m.family)]


def current_name(name: Any) -> Any:
    """Return a metric's name with an alias replaced by the present name; options after ":" are kept."""
    if not isinstance(name, str):
        return name
    plain, colon, options = name.partition(":")
    known = {alias: metric.name for metric in METRICS.values() for alias in metric.aliases}
    return known.get(plain, plain) + colon + options


def may_be_dominated(name: str) -> bool:
    """Return True for a metric, with or without options in its name, whose value one record may dominate."""
    metric = METRICS.get(name.partition(":")[0])
    return metric is not None and metric.dominated is not None


def may_be_withheld(name: str) -> bool:
    """Return True for a metric, with or without options in its name, whose value is not always published."""
    metric = METRICS.get(name.partition(":")[0])
    return metric is not None and (metric.dominated is not None or metric.role == "estimates")


def estimate_losses() -> frozenset[str]:
    """Return the names of the losses over declared estimates."""
    return frozenset(one.name for one in METRICS.values() if one.role == "estimates")


def public_value(name: str, value: float) -> float:
    """Return a measured value as it may be published: with two decimals over declared estimates.

    More would tell the overlap of one estimate by the difference of two reports that differ in it.
    """
    return round(value, PUBLIC_DECIMALS) if name in estimate_losses() else value


def short_title(name: str) -> str | None:
    """Return the title of a method, or of a metric up to its first comma; None for other names."""
    if name in METRICS:
        return METRICS[name].title.split(",")[0]
    return METHODS[name].title if name in METHODS else None


def title_of(name: str) -> str:
    """Return the title of a method or metric, such as "MDAV"; its name if it has none."""
    return short_title(name) or name


def first_line(function: Callable[..., object]) -> str:
    """Return the first line of a function's docstring without its full stop."""
    return (function.__doc__ or "").strip().split("\n", 1)[0].rstrip(".")


def method_named(name: object) -> Method:
    """Return the registered masking method of this name; raise ValueError for an unknown one.

    The package `masking` registers all of them.
    """
    return METHODS[checks.one_of("method", name, METHODS)]


def metrics_named(names: str | Iterable[str] | None) -> list[Metric]:
    """Return the registered metrics of these names, or the default ones for None.

    A name may fix options of its metric, as in "il1:zeros=drop" or "brmae:ties=first".
    """
    if names is None:
        return [metric for metric in METRICS.values() if metric.default and not metric.experimental]
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise ValueError("the list of metrics is empty; name at least one or leave it out")
    return [_metric_named(name) for name in dict.fromkeys(map(current_name, names))]


def metrics_for_rows(names: str | Iterable[str] | None, *, paired: bool) -> tuple[list[Metric], list[str]]:
    """Return the metrics to compute and the names left out because masked rows have no original record."""
    chosen = metrics_named(names)
    if paired:
        return chosen, []
    left_out = [metric.name for metric in chosen if metric.paired]
    if names is None:
        chosen = [m for m in METRICS.values() if not m.experimental and m.extra is None]
    kept = [metric for metric in chosen if not metric.paired]
    if not kept:
        verb = "needs" if len(left_out) == 1 else "need"
        raise ValueError(
            f"{', '.join(left_out)} {verb} paired rows and these are not; choose a metric such as ks"
        )
    return kept, left_out


def _metric_named(name: object) -> Metric:
    """Return the metric of a name such as "brmae" or "brmae:ties=first", its options checked and fixed."""
    plain, *options = name.split(":") if isinstance(name, str) else ("",)
    metric = METRICS[checks.one_of("metric", plain if plain in METRICS else name, METRICS)]
    if not options:
        return metric
    known = {parameter.name: parameter for parameter in metric.parameters}
    fixed = {}
    for option in options:
        word, _, value = (part.strip() for part in option.partition("="))
        checks.one_of(f"option of {metric.name}", word, known)
        if word in fixed:
            raise ValueError(f"metric {name!r} sets {word!r} twice; set it once")
        fixed[word] = parameter_value(known[word], value)
    checks.checked_missing_rule(fixed.get("missing", "pairwise"), bounded=metric.bounded, name=metric.name)
    return metric.with_fixed_options(str(name), fixed)


def require_size(name: str, records: int, variables: int) -> None:
    """Raise NotApplicable if there are fewer records or variables than the named metric needs."""
    for what, found in (("records", records), ("variables", variables)):
        needed = getattr(METRICS[name], what)
        if found < needed:
            fact = f"{name} needs at least {needed} {what} and the data have {found}"
            raise checks.NotApplicable(f"{fact}; use another metric")


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
    known = {parameter.name: parameter for parameter in method.parameters}
    if name not in known:
        choices = ", ".join(known) or "none"
        raise ValueError(f"method {method.name!r} has no parameter {name!r}; choose from: {choices}")
    return known[name]


def parameters_with_strata(method: Method, given: Mapping[str, Any], *, grouped: bool) -> dict[str, Any]:
    """Return a checked value, or a dictionary of values by stratum, of every parameter of a method.

    Parameters that are not given take their default. Where there are strata (`grouped`), a number may be
    given by stratum, as a dictionary {"north": 3, "south": 5} or as text "north:3,south:5"; it is returned as
    a dictionary.
    """
    for name in given:
        parameter_named(method, name)
    found = {}
    for p in method.parameters:
        value = given.get(p.name, p.default)
        if not _is_by_stratum(p, value):
            found[p.name] = parameter_value(p, value)
            continue
        if not grouped:
            fact = f"{p.name} is {checks.quoted(value)} and there are no strata"
            raise ValueError(f"{fact}; give one number, or strata")
        numbers = numbers_by_name(p.name, value)
        found[p.name] = {stratum: parameter_value(p, number) for stratum, number in numbers.items()}
    return found


def require_one_value(method: Method, given: Mapping[str, Any]) -> None:
    """Raise ValueError if a number is given by stratum, for a file that was masked as a whole."""
    for name, value in given.items():
        if _is_by_stratum(parameter_named(method, name), value):
            raise ValueError(
                f"{name} is {checks.quoted(value)} and the file was masked as a whole; give one number"
            )


def parameters_in_stratum(method: Method, parameters: Mapping[str, Any], stratum: str) -> dict[str, Any]:
    """Return the parameters of one stratum, where some values are dictionaries by stratum."""
    found = {p.name: parameters[p.name] for p in method.parameters}
    for p in [p for p in method.parameters if _is_by_stratum(p, found[p.name])]:
        if stratum not in found[p.name]:
            fact = f"{p.name} has no value for stratum {checks.quoted(stratum)}"
            raise ValueError(f"{fact}; give one for each stratum")
        found[p.name] = found[p.name][stratum]
    return found


def parameters_by_stratum(
    method: Method, given: Mapping[str, Any], strata: Sequence[str], *, grouped: bool
) -> list[dict[str, Any]]:
    """Return a dictionary of checked parameters for each stratum, in the order of `strata`."""
    values = parameters_with_strata(method, given, grouped=grouped)
    for parameter in method.parameters:
        if _is_by_stratum(parameter, values[parameter.name]):
            checks.require_known_strata(values[parameter.name], strata)
    return [parameters_in_stratum(method, values, stratum) for stratum in strata]


def function_options(method: Method, options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the options as the method's function takes them: column numbers instead of column names."""
    found = dict(options)
    for parameter in method.parameters:
        value = options[parameter.name]
        if parameter.kind in (tuple, dict):
            checks.require_known(value, names, f"column in {parameter.name}")
        if parameter.kind is tuple:
            found[parameter.name] = tuple(names.index(name) for name in value)
        elif parameter.kind is dict:
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
