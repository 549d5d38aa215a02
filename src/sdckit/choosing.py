"""From measured loss and risk to a release: frontier, recommendation under limits, masked file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

from sdckit import checks, telling
from sdckit.evaluation import Evaluation, evaluate
from sdckit.masking import mask
from sdckit.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sdckit.registry import Method

TRIES = 20  # draws of a random masking before a release is given up
KEYS = ["method", "parameters", "setting"]  # of a point
Drawn = TypeVar("Drawn")
SHOWN = ("brmae", "brmse", "linkage", "linkage_outliers")  # beside what a choice rests on


class LimitsMissed(ValueError):  # noqa: N818 - not a fault of the input
    """No masking, or no draw of it, met the limits."""

    exit_code = 1


@dataclass(frozen=True)
class Point:
    """One setting of a method with what was measured there: medians over its replications."""

    method: str
    parameters: str
    values: dict[str, float]

    def __str__(self) -> str:
        return f"{self.method} ({self.parameters})" if self.parameters else self.method

    def meets(self, limits: Mapping[str, float]) -> bool:
        """Whether every limit holds; a risk without a value holds none."""
        return all(self.values[risk] <= limit for risk, limit in limits.items())

    def excess(self, limits: Mapping[str, float]) -> float:
        """How far the worst risk lies above its limit; infinite where one has no value."""
        found = [self.values[risk] - limit for risk, limit in limits.items()]
        return float("inf") if any(map(math.isnan, found)) else max(found)

    def broken(self, limits: Mapping[str, float]) -> list[str]:
        """The limits that do not hold."""
        return [risk for risk, limit in limits.items() if not self.values[risk] <= limit]

    def cost(self, metric: str) -> float:
        """How far a loss lies from its best value; infinite where it has none."""
        distance = abs(self.values[metric] - best_of(metric))
        return float("inf") if math.isnan(distance) else distance


Line = list[Point]  # settings of one method, from the weakest to the strongest


def weakest_safe(line: Line, limits: Mapping[str, float]) -> int | None:
    """The place of the weakest setting from which on every stronger one meets the limits.

    Measured risk wavers, so a single setting that meets them proves little.
    """
    place = len(line)
    while place and line[place - 1].meets(limits):
        place -= 1
    return place if place < len(line) else None


@dataclass(frozen=True)
class Choice:
    """A recommended masking, why it is recommended, and what stands beside it.

    `point` is the weakest safe setting with the least loss; None where no setting meets the limits, and
    `nearest` is then the one that misses them least. `weaker` is the next weaker setting, `binding` names
    the limits that it breaks, `runner_up` is the best setting of the other methods, `looser` tells for each
    binding limit what twice that limit would allow. `safe` are the safe settings of all methods, `points`
    all that were measured, with so many `maskings`.
    """

    point: Point | None
    limits: dict[str, float]
    minimise: str
    nearest: Point
    weaker: Point | None = None
    binding: tuple[str, ...] = ()
    runner_up: Point | None = None
    looser: dict[str, Point] = field(default_factory=dict)
    safe: tuple[Point, ...] = ()
    points: tuple[Point, ...] = ()
    maskings: int = 0
    roles: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def met(self) -> bool:
        """Whether a setting meets the limits."""
        return self.point is not None

    @property
    def method(self) -> Method:
        """The recommended method, or the one that comes nearest."""
        return METHODS[(self.point or self.nearest).method]

    @property
    def parameters(self) -> dict[str, Any]:
        """Its parameters, as far as they were named."""
        return {name: self.options[name] for name in parameters_of((self.point or self.nearest).parameters)}

    @property
    def options(self) -> dict[str, Any]:
        """All its parameters."""
        return checks.parameters_of(self.method, parameters_of((self.point or self.nearest).parameters))

    @property
    def sentences(self) -> list[str]:
        """The recommendation in words."""
        return telling.sentences(self)

    @property
    def told(self) -> dict[str, Any]:
        """The same for machines."""
        point = self.point or self.nearest
        return {
            "met": self.met,
            "method": point.method,
            "parameters": self.parameters,
            "values": point.values,
            "limits": self.limits,
            "minimise": self.minimise,
            "binding": list(self.binding),
            "maskings": self.maskings,
            "sentences": self.sentences,
        }

    def __repr__(self) -> str:
        return "\n".join(self.sentences)

    @property
    def window(self) -> Callable[[Any], int] | None:
        """What the method publishes of its moves."""
        return self.method.published(self.options)

    def check(self, result: Evaluation) -> None:
        """Refuse a measured file that misses a limit."""
        for risk, limit in self.limits.items():
            if not result[risk] <= limit:
                raise LimitsMissed(f"{risk} is {result[risk]:.4f}, above {limit:g}; draw again")

    def apply(
        self, data: Any, *, rng: Any = None, decimals: int | str | None = None, tries: int = TRIES
    ) -> Release:
        """Mask data as recommended and measure the result; draw again where it misses a limit.

        Parameters
        ----------
        data : table
            The data that the recommendation is about.
        rng : None, int or numpy Generator
            None draws fresh entropy. Keep a seed secret: whoever has it can undo the masking.
        decimals : int or "original", optional
            As for `mask`; by default as in the search.
        tries : int
            How often to draw at most.

        Returns
        -------
        Release
            The masked table, its own evaluation and the number of draws. Nothing is handed out that
            misses a limit: after the last draw, `LimitsMissed` is raised.
        """
        generator = checks.generator(rng)
        decimals = self.roles.get("decimals") if decimals is None else decimals
        who = {name: self.roles.get(name) for name in ("columns", "by", "na")}  # no more: columns are named
        more = ("weights", "ties", "missing")  # and no key: a masked table has the rows in the same order
        how: dict[str, Any] = who | {name: self.roles[name] for name in more if name in self.roles}

        def draw(_count: int) -> tuple[Any, Evaluation]:
            masked = self.masked(data, **who, rng=generator, decimals=decimals)
            result = evaluate(data, masked, metrics=self.measured, window=self.window, stratified=True, **how)
            self.check(result)
            return masked, result

        (masked, result), draws = self.drawn(draw, checks.count_of("tries", tries))
        return Release(masked, result, draws)

    def masked(self, data: Any, **how: Any) -> Any:
        """Data masked as recommended, whatever the limits say."""
        return mask(data, self.method.name, **how, **self.parameters)

    def drawn(self, draw: Callable[[int], Drawn], tries: int = TRIES) -> tuple[Drawn, int]:
        """Draw until a draw meets the limits, and how often that took; one draw where nothing is random.

        `draw(count)` makes the count-th one.
        """
        self.ensure()
        tries = tries if self.method.random else 1
        for count in range(1, tries + 1):
            try:
                return draw(count), count
            except LimitsMissed:
                continue
        raise self.given_up(tries)

    @property
    def measured(self) -> list[str] | None:
        """The metrics of a release: the default ones, unless the choice rests on others."""
        default = {metric.name for metric in checks.metrics_named(None)}
        needed = [self.minimise, *self.limits]
        return None if default.issuperset(needed) else list(dict.fromkeys([*SHOWN, *needed]))

    def ensure(self) -> None:
        """Refuse to go on where no setting meets the limits."""
        if not self.met:
            raise LimitsMissed(telling.miss(self))

    def given_up(self, draws: int) -> LimitsMissed:
        """What is said after the last draw."""
        often = f"in all of {draws} draws" if draws > 1 else "when measured afresh"
        return LimitsMissed(
            f"{self.point} missed {telling.limits(self)} {often}, so no file is handed out; "
            "allow more risk or take a stronger setting"
        )


@dataclass(frozen=True)
class Release:
    """A masked table that meets its limits, as measured on itself; `draws` says how many it took."""

    data: Any
    evaluation: Evaluation
    draws: int


def choose(
    lines: Iterable[Line],
    limits: Mapping[str, float],
    minimise: str,
    *,
    maskings: int = 0,
    roles: dict[str, Any] | None = None,
) -> Choice:
    """The weakest safe setting of each line, and among them the one with the least loss."""
    lines, limits = [line for line in lines if line], dict(limits)
    safe = _safe(lines, limits, minimise)
    points = tuple(point for line in lines for point in line)
    for metric in (*limits, minimise):
        if all(math.isnan(point.values[metric]) for point in points):
            raise ValueError(f"{metric} has no value for any of these maskings; choose another metric")
    nearest = min(points, key=lambda point: (point.excess(limits), point.cost(minimise)))
    if not safe:
        return Choice(None, limits, minimise, nearest, points=points, maskings=maskings, roles=roles or {})
    best, line, place = safe[0]
    weaker = line[place - 1] if place else None
    binding = tuple(weaker.broken(limits)) if weaker else ()
    others = [point for point, other, _ in safe[1:] if other[0].method != best.method]
    looser = {}
    for risk in binding:
        allowed = _safe(lines, limits | {risk: telling.looser(limits[risk])}, minimise)
        if allowed and allowed[0][0].cost(minimise) < best.cost(minimise):
            looser[risk] = allowed[0][0]
    return Choice(
        best,
        limits,
        minimise,
        nearest,
        weaker,
        binding,
        others[0] if others else None,
        looser,
        tuple(point for point, _, _ in safe),
        points,
        maskings,
        roles or {},
    )


def _safe(lines: Sequence[Line], limits: Mapping[str, float], minimise: str) -> list[tuple[Point, Line, int]]:
    """The weakest safe setting of each line that has one, least loss first."""
    places = [(line, weakest_safe(line, limits)) for line in lines]
    found = [(line[place], line, place) for line, place in places if place is not None]
    found = [entry for entry in found if entry[0].cost(minimise) < math.inf]
    return sorted(found, key=lambda entry: entry[0].cost(minimise))


def checked_limits(max_risk: Any, minimise: Any, known: Sequence[str] | None = None) -> dict[str, float]:
    """Check limits and the loss to minimise: known metrics, shares from 0 to 1."""
    if not isinstance(max_risk, dict) or not max_risk:
        raise TypeError(f"max_risk is {max_risk!r}; give limits by metric, such as {{'linkage': 0.1}}")
    limits = {}
    for name, limit in max_risk.items():
        (metric,) = checks.metrics_named([name])
        if metric.family != "risk":
            raise ValueError(f"{name!r} is a loss; limit a risk, such as linkage, and minimise the loss")
        if name.partition(":")[0] == "window" and "within" not in metric.settled:
            raise ValueError(
                f"{name!r} means nothing for methods that publish no window; limit linkage, which includes it"
            )
        limits[metric.name] = checks.share_of(f"the limit of {name}", limit)
    (loss,) = checks.metrics_named([minimise])
    if loss.family != "loss":
        raise ValueError(f"{minimise!r} is a risk; minimise a loss, such as brmae, and limit the risk")
    if loss.best != 0:
        raise ValueError(f"{minimise!r} is best at {loss.best:g}; minimise a loss whose best value is 0")
    for name in (*limits, loss.name):
        if known is not None and name not in known:
            raise ValueError(
                f"the sweep has not measured {name!r}, only {', '.join(known)}; add it to its metrics"
            )
    return limits


def parameters_of(text: str) -> dict[str, str]:
    """The parameters behind text such as "p=0.1, tails=0.05"."""
    words = [word.partition("=") for word in text.split(", ") if word]
    return {name: value for name, _, value in words}


def lines_of(summary: pl.DataFrame) -> list[Line]:
    """The settings of a sweep, by method and fixed parameters, from the weakest to the strongest."""
    points = []
    for row in points_of(summary).iter_rows(named=True):
        method, text, _ = (row.pop(name) for name in KEYS)
        values = {name: math.nan if value is None else value for name, value in row.items()}
        points.append(Point(method, text, values))
    lines = grouped([(point.method, parameters_of(point.parameters)) for point in points])
    return [[points[place] for place in line] for line in lines]


def grouped(settings: Sequence[tuple[str, Mapping[str, Any]]]) -> list[list[int]]:
    """Places of settings by method and fixed parameters, each line from the weakest to the strongest."""
    by_method: dict[str, list[int]] = {}
    for place, (method, _) in enumerate(settings):
        by_method.setdefault(method, []).append(place)
    lines: dict[Any, list[int]] = {}
    strength = {}
    for name, places in by_method.items():
        varied = _runs_along(METHODS[name], [settings[place][1] for place in places])
        for place in places:
            options = settings[place][1]
            fixed = tuple((n, v) for n, v in options.items() if n != varied)
            lines.setdefault((name, fixed), []).append(place)
            strength[place] = float(options[varied]) * direction(METHODS[name], varied) if varied else 0.0
    return [sorted(line, key=strength.__getitem__) for line in lines.values()]


def _runs_along(method: Method, settings: Sequence[Mapping[str, Any]]) -> str | None:
    """The number along which the lines of a method run: of those that vary, one with a usual grid first."""
    varied = [
        parameter
        for parameter in method.parameters
        if not parameter.choices and all(parameter.name in options for options in settings)
        if len({str(options[parameter.name]) for options in settings}) > 1
    ]
    varied.sort(key=lambda parameter: not parameter.grid)
    return varied[0].name if varied else None


def direction(method: Method, name: str) -> int:
    """1 where larger values of a parameter mask more, -1 where they mask less: as its grid runs."""
    grid = checks.parameter_named(method, name).grid
    return -1 if len(grid) > 1 and grid[-1] < grid[0] else 1


def best_of(metric: str) -> float:
    """The best value of a metric."""
    return checks.metrics_named([metric])[0].best


def table_of(points: Iterable[Point]) -> pl.DataFrame:
    """One row per measured setting."""
    return pl.DataFrame(
        [{"method": point.method, "parameters": point.parameters, **point.values} for point in points]
    )


def points_of(summary: pl.DataFrame) -> pl.DataFrame:
    """One row per setting, one column per metric."""
    return summary.pivot("metric", index=KEYS, values="value", maintain_order=True)


def frontier(summary: pl.DataFrame, losses: Sequence[str], risks: Sequence[str]) -> pl.DataFrame:
    """The settings that no other beats in all of these losses and risks at once."""
    points = points_of(summary)
    metrics = checks.metrics_named([*losses, *risks])
    for metric in metrics:
        checks.one_of("metric of this sweep", metric.name, points.columns[3:])
    costs = points.select((pl.col(metric.name) - metric.best).abs() for metric in metrics)
    return points.filter(pareto(costs, costs.columns))


def pareto(table: pl.DataFrame, costs: Sequence[str]) -> pl.Series:
    """Which rows nobody beats: no other row is at least as low in every column and lower in one."""
    values = table.select(costs).to_numpy()
    kept = []
    for line in values:
        better = (values <= line).all(axis=1) & (values < line).any(axis=1)
        kept.append(not better.any() and not np.isnan(line).any())
    return pl.Series(kept, dtype=pl.Boolean)
