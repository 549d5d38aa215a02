"""Rounding of calibrated cells to the grid so that totals hold: each cell goes to a neighbour on the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats

SNAP = 1e-7  # of a grid step: what is nearer to the grid counts as on it
ROUNDS = 50  # most exchanges of two cells


def rounded(
    cells: Floats, weights: Floats, low: Floats, high: Floats, target: float, rng: np.random.Generator
) -> Floats:
    """Return whole numbers, each next to its cell, whose weighted sum is the target or as near as found.

    Parameters
    ----------
    cells
        Calibrated cells of a domain, counted in grid steps.
    weights
        Their weights, as whole numbers where they have few decimals.
    low, high
        Limits of the cells, whole numbers.
    target
        The weighted sum of the result.
    rng
        Decides between cells that are as near to their neighbours, so that the order of rows does not.

    Returns
    -------
    numpy.ndarray
        Whole numbers. With equal weights the sum is the target, if the target is a multiple of the weight.

    Notes
    -----
    Cells with the largest fractions are rounded up, as many as the sum needs. What different weights leave is
    made smaller by changing the direction of one or two cells, as long as that helps.

    Examples
    --------
    >>> import numpy as np
    >>> cells, one = np.array([1.4, 2.4, 7.2]), np.ones(3)
    >>> print(rounded(cells, one, 0 * one, 9 * one, 11.0, np.random.default_rng(1)).sum())
    11.0
    """
    near = np.rint(cells)
    near = np.where(np.abs(cells - near) <= SNAP, near, cells)
    lower = np.clip(np.floor(near), low, high)
    fractions = near - lower
    movable = np.flatnonzero((fractions > 0) & (lower < high))
    order = movable[np.lexsort([rng.random(movable.size), -fractions[movable]])]
    needed = target - float(weights @ lower)
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    count = int(np.argmin(np.abs(sums - needed)))
    chosen = _exchanged(weights[order], count, needed)
    lower[order[chosen]] += 1.0
    return lower


def _exchanged(weights: Floats, count: int, needed: float) -> Bools:
    """Return which cells to round up: the first `count`, with changes towards the sum that is needed."""
    up = np.arange(weights.size) < count
    rest = needed - float(weights[up].sum())
    for _ in range(ROUNDS):
        rising, falling = np.flatnonzero(~up), np.flatnonzero(up)
        falling = falling[np.argsort(weights[falling], kind="stable")]
        # No cell at all takes part as one of weight 0 with the number -1.
        rises = np.append(rising, -1)
        falls = np.concatenate([[-1], falling])
        gains, losses = np.append(weights[rising], 0.0), np.concatenate([[0.0], weights[falling]])
        after = np.clip(np.searchsorted(losses, gains - rest), 1, max(losses.size - 1, 1))
        places = np.stack([after - 1, np.minimum(after, losses.size - 1)])
        lefts = np.abs(rest - gains + losses[places])
        side, i = np.unravel_index(int(np.argmin(lefts)), lefts.shape)
        if not lefts[side, i] < abs(rest):
            break
        j = places[side, i]
        rest += float(losses[j] - gains[i])
        for cell, rise in ((rises[i], True), (falls[j], False)):
            if cell >= 0:
                up[cell] = rise
    return up
