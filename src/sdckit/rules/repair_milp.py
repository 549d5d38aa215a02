"""Smallest repair of records whose rules overlap: by trying vertices or by a mixed-integer programme."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.progress import track
from sdckit.rules.repair_vertices import Vertices

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats
    from sdckit.rules.blocks import Block

ROUNDS = 3  # most calls of the solver: a solution that misses by its tolerance starts the next call


def solved(block: Block, cells: Floats) -> Floats:
    """Return records repaired to satisfy the rules of a block; free cells are NaN if that is impossible."""
    found = np.empty_like(cells)
    patterns, which = np.unique(np.isnan(cells), axis=0, return_inverse=True)
    for place, gaps in enumerate(patterns):
        rows = np.flatnonzero(which == place)
        sums = [total for total in block.sums if not gaps[total.column_numbers].any()]
        problem = Vertices(block, block.free & ~gaps, sums)
        if problem.few():
            found[rows], sure = problem.best(cells[rows])
            rows = rows[~sure]
        found[rows] = _repaired_one_by_one(problem, cells[rows])
    return found


def _repaired_one_by_one(problem: Vertices, cells: Floats) -> Floats:
    """Return the records, each repaired by the solver; equal records are solved once."""
    found = np.empty_like(cells)
    known: dict[bytes, Floats] = {}
    with track("repairing", len(cells)) as report:
        for i, record in enumerate(cells + 0.0):  # -0.0 becomes 0.0: equal records have equal bytes
            key = record.tobytes()
            if key not in known:
                report(i)
                known[key] = _repaired_record(problem, record)
            found[i] = known[key]
    return found


def _repaired_record(problem: Vertices, record: Floats) -> Floats:
    """Return one record with the cheapest changes that satisfy the rules; free cells NaN if none do."""
    block, found = problem.block, record
    for _ in range(ROUNDS):
        changes = _cheapest_changes(problem, found)
        if changes is None:
            break
        found = found.copy()
        found[problem.moving] += changes
        if block.digits is None:  # the solver keeps bounds to its tolerance only
            found[problem.moving] = np.clip(found, *block.bounds)[problem.moving]
        if not any(total.broken(found[None])[0] for total in problem.sums):
            return found
    return np.where(block.free, np.nan, record)


def _cheapest_changes(problem: Vertices, record: Floats) -> Floats | None:
    """Return the cheapest changes of the cells that may move; None if no change satisfies the rules."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - slow to import, rarely needed

    block, moving, active = problem.block, problem.moving, problem.sums
    cells, costs = record[moving], block.costs[moving]
    steps = np.where(block.steps > 0, block.steps, 1.0)[moving]
    low, high = block.bounds[0][moving], block.bounds[1][moving]
    rows = np.zeros((len(active), len(record)))
    limits = np.zeros((len(active), 2))
    for r, total in enumerate(active):
        rows[r, total.column_numbers] = total.factors
        rest = total.constant - (record[total.column_numbers] * total.factors).sum()
        limits[r] = rest if total.rule.equality else -np.inf, rest
    # Without a grid, the amounts missing are scaled to a size that suits the solver's tolerances.
    size = 1.0
    if block.digits is None:
        needs = [limits[:, 0], -limits[:, 1], low - cells, cells - high]
        size = max(float(max(part.max(initial=0.0) for part in needs)), float(np.finfo(float).tiny))
    rows = rows[:, moving] * steps
    up = (np.maximum(low - cells, 0.0), np.maximum(high - cells, 0.0))
    down = (np.maximum(cells - high, 0.0), np.maximum(cells - low, 0.0))
    edges = [np.concatenate([a / steps, b / steps]) / size for a, b in zip(up, down, strict=True)]
    prices = np.tile(costs * steps, 2)
    if (edges[0] > edges[1]).any():
        return None
    answer = milp(
        prices / prices.min(),
        constraints=LinearConstraint(np.hstack([rows, -rows]), limits[:, 0] / size, limits[:, 1] / size),
        bounds=Bounds(*edges),
        integrality=np.full(2 * cells.size, int(block.digits is not None)),
        options={"mip_rel_gap": 0.0},
    )
    if answer.x is None:
        return None
    half = cells.size
    moves = (answer.x[:half] - answer.x[half:]) * size
    return (np.rint(moves) if block.digits is not None else moves) * steps
