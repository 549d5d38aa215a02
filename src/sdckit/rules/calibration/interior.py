"""Least squares under linear equations and limits, by an interior-point method on sparse matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.kernels.jit import Bools, Floats

ITERATIONS = 100
SMALL = 1e-11  # residuals at the solution, in units of the cells' scales
PRODUCT = 1e-18  # mean product of gaps and multipliers: both may go to 0, each as the root of it
DAMPING = 1e-11  # share of the diagonal that is added where equations depend on each other
CLOSE = 1e-20  # least distance to a limit, as a difference of floats can be 0
NEARLY = 1e-12  # mean product with which a point is taken if rounding errors allow no smaller one
SLOW = 0.9  # of the mean product before a step: where more is left, a plain step is taken
CENTRE = 0.3  # of the mean product, where a plain step goes to
BACK = 0.995  # share of the way to the nearest limit that a step takes at most


class System(NamedTuple):
    """Equations `rows @ x = sides` and limits of x; x is wanted near `start`, at cost ½ · costs · change².

    A variable of cost 0 (the slack of an inequality) has `scale` as its usual size.
    """

    rows: Any  # scipy.sparse.csr_array
    sides: Floats
    start: Floats
    costs: Floats
    scale: Floats
    low: Floats
    high: Floats


@dataclass
class _Point:
    """Variables, multipliers of the equations, and of the lower and upper limits (0 where there is none)."""

    x: Floats
    equations: Floats
    below: Floats
    above: Floats


def nearest(system: System) -> Floats | None:
    """Return the x that satisfies equations and limits at the least cost; None if no such x was found.

    Notes
    -----
    Mehrotra's predictor and corrector, in variables and equations scaled to size 1; the normal equations are
    factorised by SuperLU in the given order, so that equations of single records must come first.

    References
    ----------
    Mehrotra 1992, On the implementation of a primal-dual interior point method.
    """
    from scipy import sparse  # noqa: PLC0415 - slow to import, rarely needed

    unit = np.where(
        system.costs > 0, 1.0 / np.sqrt(np.where(system.costs > 0, system.costs, 1.0)), system.scale
    )
    rows = system.rows @ sparse.diags_array(unit)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    rows = (sparse.diags_array(1.0 / lengths) @ rows).tocsr()
    sides = (system.sides - system.rows @ system.start) / lengths
    low, high = (system.low - system.start) / unit, (system.high - system.start) / unit
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # without a solution, steps diverge
        found = _Iteration(rows, sides, (system.costs > 0).astype(float), low, high).solved()
    if found is None:
        return None
    return np.clip(system.start + unit * found, system.low, system.high)


class _Iteration:
    """Steps towards the least of ½ · curve · x² under `rows @ x = sides` and limits."""

    def __init__(self, rows: Any, sides: Floats, curve: Floats, low: Floats, high: Floats) -> None:
        self.rows, self.sides, self.curve = rows, sides, curve
        self.low, self.high = low, high
        self.has_low, self.has_high = np.isfinite(low), np.isfinite(high)
        self.limits = int(self.has_low.sum() + self.has_high.sum())

    def solved(self) -> Floats | None:
        """Return the solution as exactly as rounding errors allow; None where the steps do not reach it."""
        point, found = self._first(), None
        for _ in range(ITERATIONS):
            dual, primal = self._residuals(point)
            gap = self._mean_product(point)
            size = max(1.0, float(np.abs(point.x).max(initial=0.0)))
            missed = max(np.abs(dual).max(initial=0.0), np.abs(primal).max(initial=0.0))
            if missed <= SMALL * size and gap <= NEARLY * size:
                found = point.x
                if gap <= PRODUCT * size:
                    break
            try:
                solve = self._factorised(point)
            except RuntimeError:  # SuperLU: the matrix is singular
                break
            self._advance(point, solve, gap)
            if not np.isfinite(point.x).all():
                break
        return found

    def _first(self) -> _Point:
        """Return a point inside all limits, near 0."""
        width = np.minimum(self.high - self.low, 1.0)
        x = np.clip(0.0, self.low + 0.1 * width, self.high - 0.1 * width)
        return _Point(
            x, np.zeros(len(self.sides)), 0.1 * self.has_low.astype(float), 0.1 * self.has_high.astype(float)
        )

    def _gaps(self, point: _Point) -> tuple[Floats, Floats]:
        """Return the distances to the lower and upper limits; 1 where there is none."""
        below = np.where(self.has_low, point.x - self.low, 1.0)
        above = np.where(self.has_high, self.high - point.x, 1.0)
        return np.maximum(below, CLOSE), np.maximum(above, CLOSE)

    def _residuals(self, point: _Point) -> tuple[Floats, Floats]:
        """Return by how much the conditions of a least cost, and the equations, are missed."""
        dual = self.rows.T @ point.equations + point.below - point.above - self.curve * point.x
        return dual, self.sides - self.rows @ point.x

    def _mean_product(self, point: _Point) -> float:
        """Return the mean product of gaps and multipliers, 0 at the solution."""
        below, above = self._gaps(point)
        return float(below @ point.below + above @ point.above) / max(self.limits, 1)

    def _factorised(self, point: _Point) -> Callable[[Floats, Floats], tuple[Floats, Floats]]:
        """Return a function that solves for the steps of x and of the equations' multipliers."""
        from scipy import sparse  # noqa: PLC0415
        from scipy.sparse.linalg import splu  # noqa: PLC0415

        below, above = self._gaps(point)
        inverse = 1.0 / (self.curve + point.below / below + point.above / above)
        normal = (self.rows @ sparse.diags_array(inverse) @ self.rows.T).tocsc()
        normal = normal + sparse.diags_array(DAMPING * normal.diagonal(), format="csc")
        factors = splu(normal, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

        def solve(first: Floats, second: Floats) -> tuple[Floats, Floats]:
            equations = factors.solve(second - self.rows @ (inverse * first))
            rest = second - self.rows @ (inverse * (first + self.rows.T @ equations))
            equations += factors.solve(rest)
            return inverse * (first + self.rows.T @ equations), equations

        return solve

    def _advance(
        self, point: _Point, solve: Callable[[Floats, Floats], tuple[Floats, Floats]], gap: float
    ) -> None:
        """Move the point, in place, by a predictor step that is corrected and centred."""
        zero = np.zeros_like(point.x)
        guess = self._step(point, solve, zero, zero, 0.0)
        ahead = _moved(point, guess, self._longest(point, guess))
        centre = gap * (self._mean_product(ahead) / gap) ** 3 if gap > 0 else 0.0
        new = self._inside(
            point, self._step(point, solve, guess.x * guess.below, -guess.x * guess.above, centre)
        )
        if self._mean_product(new) > SLOW * gap:  # corrections can go round in circles
            new = self._inside(point, self._step(point, solve, zero, zero, CENTRE * gap))
        point.x, point.equations, point.below, point.above = new.x, new.equations, new.below, new.above

    def _inside(self, point: _Point, step: _Point) -> _Point:
        """Return the point moved by a step, or by as much as leaves gaps and multipliers above 0."""
        share = self._longest(point, step)
        return _moved(point, step, BACK * share if share < 1 else share)

    def _step(
        self,
        point: _Point,
        solve: Callable[[Floats, Floats], tuple[Floats, Floats]],
        product_below: Floats,
        product_above: Floats,
        centre: float,
    ) -> _Point:
        """Return Newton's step towards products of gaps and multipliers that are all equal to `centre`."""
        dual, primal = self._residuals(point)
        below, above = self._gaps(point)
        want_below = np.where(self.has_low, centre - product_below, 0.0) / below - point.below
        want_above = np.where(self.has_high, centre - product_above, 0.0) / above - point.above
        x, equations = solve(dual + want_below - want_above, primal)
        return _Point(
            x, equations, want_below - point.below / below * x, want_above + point.above / above * x
        )

    def _longest(self, point: _Point, step: _Point) -> float:
        """Return the longest share, up to 1, of a step that keeps gaps and multipliers above 0."""
        below, above = self._gaps(point)
        primal = min(_room(below, step.x, self.has_low), _room(above, -step.x, self.has_high))
        every = np.ones(point.x.size, np.bool_)
        dual = min(_room(point.below, step.below, every), _room(point.above, step.above, every))
        return min(primal, dual)  # a cost with squares needs one share for both


def _room(gaps: Floats, steps: Floats, chosen: Bools) -> float:
    """Return the largest share, up to 1, of the steps that leaves no chosen gap below 0."""
    shrinking = chosen & (steps < 0)
    return float(min(1.0, (gaps[shrinking] / -steps[shrinking]).min(initial=np.inf)))


def _moved(point: _Point, step: _Point, share: float) -> _Point:
    """Return the point moved by a share of a step."""
    return _Point(
        point.x + share * step.x,
        point.equations + share * step.equations,
        point.below + share * step.below,
        point.above + share * step.above,
    )
