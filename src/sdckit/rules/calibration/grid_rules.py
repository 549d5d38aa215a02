"""Rounding of cells that were calibrated together: whole grid steps for which totals and rules hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats
    from sdckit.rules.calibration.joint import Equations

SNAP = 1e-6  # of a grid step: what is nearer to the grid counts as on it
ENOUGH = 0.2  # share of the least sum of distances that may be missed: any neighbour is near enough
TOLERANCE = 1e-3  # share of the slack of a total that the solver may miss
TIES = 1e-3  # of a grid step: random costs that decide between cells that are as near


def rounded(
    cells: Floats, low: Floats, high: Floats, equations: Equations, slack: Floats, rng: np.random.Generator
) -> Floats | None:
    """Return whole numbers within 1 of the cells that satisfy all equations; None if there are none.

    Parameters
    ----------
    cells
        Calibrated cells, counted in grid steps.
    low, high
        Limits of the cells, whole numbers.
    equations
        Conditions on the cells, in whole numbers.
    slack
        By how much each condition may be missed: 0 apart from totals with weights.
    rng
        Decides between cells that are as near.

    Returns
    -------
    numpy.ndarray or None
        Whole numbers with a small sum of distances to the cells.

    Notes
    -----
    Cells that no condition connects are rounded separately. First each cell goes up or down to its neighbour,
    and cells on the grid stay; only where that is impossible, those may move by one step, too.
    """
    near = np.rint(cells)
    near = np.where(np.abs(cells - near) <= SNAP, near, cells)
    lower = np.floor(near)
    result = np.clip(np.rint(near), low, high)
    for rows, chosen in _parts(equations):
        part = _Part(near[chosen], lower[chosen], low[chosen], high[chosen])
        matrix = equations.rows[rows][:, chosen]
        least, most = equations.least[rows] - slack[rows], equations.most[rows] + slack[rows]
        ties = TIES * rng.random(chosen.size)
        found = part.solved(matrix, least, most, ties, wide=False)
        if found is None:
            found = part.solved(matrix, least, most, ties, wide=True)
        if found is None:
            return None
        result[chosen] = found
    return result


def _parts(equations: Equations) -> list[tuple[Any, Any]]:
    """Return the row numbers and the variables of each set of conditions without a variable of another."""
    from scipy import sparse  # noqa: PLC0415 - slow to import, rarely needed
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    rows = len(equations.most)
    graph = sparse.block_array([[None, equations.rows], [equations.rows.T, None]], format="csr")
    count, labels = connected_components(graph, directed=False)
    found = []
    for places in np.split(
        np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=count))[:-1]
    ):
        inside = places[places < rows], places[places >= rows] - rows
        if all(part.size for part in inside):
            found.append(inside)
    return found


class _Part:
    """Cells that are rounded together, their neighbours below on the grid, and their limits."""

    def __init__(self, cells: Floats, lower: Floats, low: Floats, high: Floats) -> None:
        self.cells, self.lower, self.low, self.high = cells, lower, low, high

    def solved(self, matrix: Any, least: Floats, most: Floats, ties: Floats, *, wide: bool) -> Floats | None:
        """Return whole numbers that satisfy the conditions; None if integer programming finds none."""
        from scipy import sparse  # noqa: PLC0415
        from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415

        fractions = self.cells - self.lower
        rises: Bools = ((fractions > 0) | wide) & (self.lower < self.high)
        falls: Bools = (fractions == 0) & wide & (self.lower > self.low)
        up, down = np.flatnonzero(rises), np.flatnonzero(falls)
        if not up.size + down.size:
            fits = (least <= matrix @ self.lower) & (matrix @ self.lower <= most)
            return self.lower if fits.all() else None
        prices = np.concatenate([(1.0 - 2.0 * fractions + ties)[up], (1.0 + ties)[down]])
        moved = matrix @ self.lower
        answer = milp(
            prices,
            constraints=LinearConstraint(
                sparse.hstack([matrix[:, up], -matrix[:, down]], format="csc"), least - moved, most - moved
            ),
            bounds=Bounds(0.0, 1.0),
            integrality=np.ones(prices.size),
            options={"mip_rel_gap": ENOUGH},
        )
        if answer.x is None:
            return None
        result = self.lower.copy()
        result[up] += np.rint(answer.x[: up.size])
        result[down] -= np.rint(answer.x[up.size :])
        reached = matrix @ result  # the solver keeps conditions to its tolerance only
        margin = np.where(np.isfinite(least), TOLERANCE * (most - least), 0.0)
        return result if ((least - margin <= reached) & (reached <= most + margin)).all() else None
