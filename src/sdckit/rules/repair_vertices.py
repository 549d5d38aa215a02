"""Smallest repair of records whose rules overlap, by trying all vertices of the linear programme.

The cost of a repair is linear between the points where a cell keeps its value, meets a bound, or a sum is
just kept. So the cheapest repair is a corner: some sums are tight and solved for as many columns, and every
other column keeps its value or lies at a bound. All corners are tried, for all records at once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Bools, Floats
    from sdckit.rules.blocks import Block, Sum

MOST = 2_000  # corners that are tried; with more, a solver is quicker
LENIENT = 1e-3  # of a step: a corner between grid points may miss by rounding, and yet it is a bound
EQUAL = 1e-12  # costs that differ by less, relatively, are equal


@dataclass(frozen=True)
class Corners:
    """Candidate repairs (vertices) for records of one block that have the same cells missing."""

    block: Block
    moving: Bools  # the columns that are free and observed
    sums: list[Sum]  # those without a missing cell

    def best(self, cells: Floats) -> tuple[Floats, Bools]:
        """Return the cheapest vertex of each record, and whether it is proved to be the smallest repair.

        Missing cells where there is no corner: then no values satisfy the rules.
        """
        found = np.where(self.block.free, np.nan, cells)
        least, bound = np.full((2, len(cells)), np.inf)
        for corner in self._all(cells):
            cost = np.zeros(len(cells))
            for j in np.flatnonzero(self.moving):
                cost += np.abs(corner[:, j] - cells[:, j]) * self.block.costs[j]
            near, exact = self._kept(corner)
            bound[near & (cost < bound)] = cost[near & (cost < bound)]
            better = exact & (cost < least)
            found[better], least[better] = corner[better], cost[better]
        none = np.isinf(bound) & (self.block.digits is not None)  # without a grid, rounding may hide one
        return found, np.isfinite(bound) & (least <= bound * (1 + EQUAL)) | none

    def few(self) -> bool:
        """Return True if there are few enough vertices to try them all."""
        return len(list(itertools.islice(self._plans(), MOST + 1))) <= MOST

    def _kept(self, corner: Floats) -> tuple[Bools, Bools]:
        """Return where all rules hold up to rounding, and where they hold exactly on the grid."""
        low, high = self.block.bounds
        near = np.ones(len(corner), np.bool_)
        for j in np.flatnonzero(self.moving):
            slack = LENIENT if self.block.digits is not None else EQUAL * np.abs(corner[:, j])
            near &= (corner[:, j] >= low[j] - slack) & (corner[:, j] <= high[j] + slack)
        if self.block.digits is None:
            corner[:, self.moving] = np.clip(corner, low, high)[:, self.moving]
            for total in self.sums:
                near &= ~total.missed(corner)
            return near, near
        exact = near.copy()
        for j in np.flatnonzero(self.moving):
            steps = corner[:, j] / self.block.steps[j]
            exact &= (steps == np.rint(steps)) & (corner[:, j] >= low[j]) & (corner[:, j] <= high[j])
        for total in self.sums:
            rest = -np.full(len(corner), total.constant)
            for j, factor in zip(total.places, total.factors, strict=True):
                rest += factor * corner[:, j]
            rest = np.abs(rest) if total.rule.equality else rest
            near &= rest <= LENIENT
            exact &= rest <= 0
        return near, exact

    def _all(self, cells: Floats) -> Iterator[Floats]:
        low, high = self.block.bounds
        kept = np.clip(cells, low, high)
        for solved, tight, others, choice in self._plans():
            corner = cells.copy()
            for j, option in zip(others, choice, strict=True):
                corner[:, j] = kept[:, j] if option == 0 else (low, high)[option - 1][j]
            rests = []
            for total in tight:
                rest = np.full(len(cells), total.constant)
                for j, factor in zip(total.places, total.factors, strict=True):
                    rest -= factor * corner[:, j] if j not in solved else 0.0
                rests.append(rest)
            matrix, determinant = _inverse(tight, solved)
            for j, row in zip(solved, matrix, strict=True):
                corner[:, j] = sum(f * rest for f, rest in zip(row, rests, strict=True)) / determinant
            yield corner

    def _plans(self) -> Iterator[tuple[tuple[int, ...], tuple[Sum, ...], list[int], tuple[int, ...]]]:
        """Yield vertices: columns to solve for, tight sums, other columns and the bound each takes."""
        low, high = self.block.bounds
        columns = [int(j) for j in np.flatnonzero(self.moving)]
        options = {j: [0, *([1] * bool(low[j] > -np.inf)), *([2] * bool(high[j] < np.inf))] for j in columns}
        for count in range(min(len(self.sums), len(columns)) + 1):
            for tight in itertools.combinations(self.sums, count):
                for solved in itertools.combinations(columns, count):
                    if _inverse(tight, solved)[1] == 0:
                        continue
                    others = [j for j in columns if j not in solved]
                    for choice in itertools.product(*(options[j] for j in others)):
                        yield solved, tight, others, choice


def _inverse(tight: tuple[Sum, ...], solved: tuple[int, ...]) -> tuple[list[list[float]], float]:
    """Return the inverse of the sums' factors as an integer matrix and its common divisor."""
    if not solved:
        return [], 1.0
    factors = np.array(
        [[dict(zip(total.places, total.factors, strict=True)).get(j, 0.0) for j in solved] for total in tight]
    )
    determinant = float(np.rint(np.linalg.det(factors)))
    if determinant == 0:
        return [], 0.0
    return np.rint(np.linalg.inv(factors) * determinant).tolist(), determinant
