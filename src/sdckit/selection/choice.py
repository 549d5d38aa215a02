"""From measured loss and risk to a release: frontier, recommendation under limits, masked file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sdckit.core import checks
from sdckit.core.registry import Method  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection import wording
from sdckit.selection.conditions import Conditions  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.limits import LimitsMissed
from sdckit.selection.plan import Setting  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.selection.points import Line, Point, weakest_safe
from sdckit.selection.release import TRIES, Release, ReleasePlan, carry_out, metrics_with


@dataclass(frozen=True)
class Choice:
    """A recommended masking, its reasons, and the alternatives.

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
    conditions: Conditions | None = field(default=None, repr=False)

    @property
    def met(self) -> bool:
        """True where the setting meets the limits."""
        return self.point is not None

    @property
    def method(self) -> Method:
        """The recommended method, or the one that comes nearest."""
        return self.setting.method

    @property
    def setting(self) -> Setting:
        """The recommended setting, or the one that comes nearest."""
        return (self.point or self.nearest).setting

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the setting that the plan names."""
        return self.setting.parameters

    @property
    def options(self) -> dict[str, Any]:
        """All parameters of the setting."""
        return self.setting.options

    @property
    def sentences(self) -> list[str]:
        """Sentences on the recommendation."""
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

    def apply(
        self, data: Any, *, rng: Any = None, decimals: int | str | None = None, tries: int = TRIES
    ) -> Release:
        """Mask data as recommended and measure the result; draw again where it misses a limit.

        Parameters
        ----------
        data : table
            The data that the recommendation is about, prepared or not.
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
        self.require_met()
        plan = self.release_plan(decimals=decimals, tries=checks.checked_count("tries", tries))
        return carry_out(plan, self.required_conditions.prepared(data), rng=rng)

    @property
    def required_conditions(self) -> Conditions:
        """The conditions of the search, without which nothing can be released."""
        if self.conditions is None:
            raise ValueError("this choice does not know the data that it is about; use sweep or recommend")
        return self.conditions

    def release_plan(
        self, *, decimals: int | str | None = None, tries: int = TRIES, per_record: bool = False
    ) -> ReleasePlan:
        """Return what to release: the recommended setting under the limits and conditions of the search."""
        conditions = self.required_conditions
        return ReleasePlan(
            method=self.method.name,
            parameters=self.parameters,
            rules=conditions.rules,
            decimals=conditions.decimals if decimals is None else decimals,
            metrics=metrics_with(None, [self.minimise, *self.limits]),
            ties=conditions.ties,
            missing=conditions.missing,
            limits=self.limits,
            tries=tries,
            per_record=per_record,
        )

    def require_met(self) -> None:
        """Raise `LimitsMissed` where no setting meets the limits."""
        if not self.met:
            raise LimitsMissed(self.missed())


def choose(
    lines: Iterable[Line],
    limits: Mapping[str, float],
    minimise: str,
    *,
    maskings: int = 0,
    conditions: Conditions | None = None,
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
        return Choice(
            None, limits, minimise, nearest, points=points, maskings=maskings, conditions=conditions
        )
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
        conditions,
    )


def _safe(lines: Sequence[Line], limits: Mapping[str, float], minimise: str) -> list[tuple[Point, Line, int]]:
    """The weakest safe setting of each line that has one, least loss first."""
    places = [(line, weakest_safe(line, limits)) for line in lines]
    found = [(line[place], line, place) for line, place in places if place is not None]
    found = [entry for entry in found if entry[0].cost(minimise) < math.inf]
    return sorted(found, key=lambda entry: entry[0].cost(minimise))
