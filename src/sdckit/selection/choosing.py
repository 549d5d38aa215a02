"""Choose, among measured settings, the one with the least loss that meets the limits on risk."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sdckit.selection import wording
from sdckit.selection.choice import Choice
from sdckit.selection.limits import loss_limits, risk_limits
from sdckit.selection.points import Curve, Point, weakest_safe_position

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sdckit.selection.conditions import Conditions


def choose(
    curves: Iterable[Curve],
    limits: Mapping[str, float],
    minimise: str,
    *,
    maskings: int = 0,
    conditions: Conditions | None = None,
) -> Choice:
    """Return the weakest safe setting with the least loss of all methods, and the alternatives to it.

    A curve has the measured settings of one method that differ in one parameter, from weak to strong. A
    setting is safe if it and all stronger ones of its curve meet the limits on risk; of these, the weakest
    one that also meets the limits on loss is compared.
    """
    curves, limits = [curve for curve in curves if curve], dict(limits)
    safe = _weakest_safe_points(curves, limits, minimise)
    points = tuple(point for curve in curves for point in curve)
    for metric in (*limits, minimise):
        if all(math.isnan(point.values[metric]) for point in points):
            raise ValueError(f"{metric} has no value for any of these maskings; choose another metric")
    nearest = min(points, key=lambda point: (point.excess(limits), point.cost(minimise)))
    if not safe:
        return Choice(
            None, limits, minimise, nearest, points=points, maskings=maskings, conditions=conditions
        )
    best, curve, position = safe[0]
    weaker = curve[position - 1] if position else None
    binding = tuple(weaker.broken_limits(limits)) if weaker else ()
    others = [point for point, other, _ in safe[1:] if other[0].method != best.method]
    looser = {}
    for risk in binding:
        allowed = _weakest_safe_points(curves, limits | {risk: wording.loosened(limits[risk])}, minimise)
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


def _weakest_safe_points(
    curves: Sequence[Curve], limits: Mapping[str, float], minimise: str
) -> list[tuple[Point, Curve, int]]:
    """Return (setting, its curve, its position) of each curve's weakest safe setting, least loss first."""
    risks, losses = risk_limits(limits), loss_limits(limits)
    positions = [(curve, weakest_safe_position(curve, risks, losses)) for curve in curves]
    found = [(curve[position], curve, position) for curve, position in positions if position is not None]
    found = [entry for entry in found if entry[0].cost(minimise) < math.inf]
    return sorted(found, key=lambda entry: entry[0].cost(minimise))
