"""From measured loss and risk to a release: frontier, recommendation under limits, masked file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from sdckit.core import checks, randomness, registry, settings
from sdckit.core.registry import METHODS
from sdckit.masking import perform
from sdckit.metrics.evaluation import Evaluation, evaluate
from sdckit.selection import wording
from sdckit.selection.points import Line, Point, parameters_of, weakest_safe
from sdckit.selection.release import TRIES, LimitsMissed, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np

    from sdckit.core.registry import Method
    from sdckit.masking import Masking

Drawn = TypeVar("Drawn")
SHOWN = ("brmae", "brmse", "linkage", "linkage_outliers")  # beside what a choice rests on


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
        return settings.parameters_of(self.method, parameters_of((self.point or self.nearest).parameters))

    @property
    def sentences(self) -> list[str]:
        """The recommendation in words."""
        return self.described()

    def described(self, named: Callable[[str], str] = str) -> list[str]:
        """What is recommended, which limit binds, what is next best, and what a looser limit would buy.

        `named` turns the name of a method or metric into what people call it.
        """
        if self.point is None:
            return [f"{self.missed(named)}."]
        least = f"{named(self.minimise)} {self.point.values[self.minimise]:.4f}"
        risks = wording.risks(self.point, self.limits, named)
        told = [f"{wording.called(self.point, named)} loses least within the limits: {least}, {risks}."]
        told += [self._binds(named), *self._next_best(named)]
        for risk, point in self.looser.items():
            limit = f"{named(risk)} up to {wording.looser(self.limits[risk]):g}"
            told.append(f"A looser limit, {limit}, would allow at least {self._with_loss(point, named)}.")
        return told

    def _binds(self, named: Callable[[str], str]) -> str:
        if self.weaker is None:
            return "It is the weakest setting of its method that was tried."
        limits = {risk: self.limits[risk] for risk in self.binding}
        broken = wording.risks(self.weaker, limits, named)
        return f"What binds: one step weaker, {wording.called(self.weaker, named)}, has {broken}."

    def _next_best(self, named: Callable[[str], str]) -> list[str]:
        if self.runner_up is not None:
            return [f"Next best: {self._with_loss(self.runner_up, named)}."]
        several = len({point.method for point in self.points}) > 1
        return ["No other method meets the limits."] if several else []

    def _with_loss(self, point: Point, named: Callable[[str], str]) -> str:
        known = point.values.get(self.minimise)
        loss = "" if known is None else f", {named(self.minimise)} {known:.4f}"
        return wording.called(point, named) + loss

    def missed(self, named: Callable[[str], str] = str) -> str:
        """That nothing meets the limits, and what comes nearest."""
        risks = wording.risks(self.nearest, self.limits, named)
        return (
            f"no setting meets {wording.limits(self.limits, named)}; the nearest miss is "
            f"{wording.called(self.nearest, named)} with {risks}: "
            "allow more risk or try other methods and stronger settings"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the recommendation as a JSON-ready dict."""
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
        generator = randomness.generator(rng)
        decimals = self.roles.get("decimals") if decimals is None else decimals
        roles = {name: self.roles.get(name) for name in ("columns", "by", "na")}  # no more: columns are named
        more = ("weights", "ties", "missing")  # and no key: a masked table has the rows in the same order
        compared: dict[str, Any] = roles | {name: self.roles[name] for name in more if name in self.roles}

        def draw(_count: int) -> tuple[Any, Evaluation]:
            made = self.mask(data, roles, generator, decimals)
            known = None if made.edits is None else made.edits.known
            how: dict[str, Any] = {"window": made.window, "rules": known, "stratified": True} | compared
            result = evaluate(data, made.data, metrics=self.measured, **how)
            self.check(result)
            return made.data, result

        (masked, result), draws = self.draw_until_safe(draw, checks.count_of("tries", tries))
        return Release(masked, result, draws)

    def mask(
        self, data: Any, roles: Mapping[str, Any], rng: np.random.Generator, decimals: int | str | None
    ) -> Masking:
        """Data masked as recommended, whatever the limits say; `roles` says what columns are for."""
        return perform(
            data,
            self.method.name,
            {"columns": None, "key": None, "weights": None, "by": None, "na": None} | dict(roles),
            rng=rng,
            decimals=decimals,
            rules=self.roles.get("rules"),
            parameters=self.parameters,
        )

    def draw_until_safe(self, draw: Callable[[int], Drawn], tries: int = TRIES) -> tuple[Drawn, int]:
        """Draw until a draw meets the limits, and how often that took; one draw where nothing is random.

        `draw(count)` makes the count-th one.
        """
        self.require_met()
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
        default = {metric.name for metric in registry.metrics_named(None)}
        needed = [self.minimise, *self.limits]
        return None if default.issuperset(needed) else list(dict.fromkeys([*SHOWN, *needed]))

    def require_met(self) -> None:
        """Refuse to go on where no setting meets the limits."""
        if not self.met:
            raise LimitsMissed(self.missed())

    def given_up(self, draws: int) -> LimitsMissed:
        """What is said after the last draw."""
        often = f"in all of {draws} draws" if draws > 1 else "when measured afresh"
        return LimitsMissed(
            f"{self.point} missed {wording.limits(self.limits)} {often}, so no file is handed out; "
            "allow more risk or take a stronger setting"
        )


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
        allowed = _safe(lines, limits | {risk: wording.looser(limits[risk])}, minimise)
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
        (metric,) = registry.metrics_named([name])
        if metric.family != "risk":
            raise ValueError(f"{name!r} is a loss; limit a risk, such as linkage, and minimise the loss")
        if name.partition(":")[0] == "window" and "within" not in metric.fixed_options:
            raise ValueError(
                f"{name!r} means nothing for methods that publish no window; limit linkage, which includes it"
            )
        limits[metric.name] = checks.share_of(f"the limit of {name}", limit)
    (loss,) = registry.metrics_named([minimise])
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
