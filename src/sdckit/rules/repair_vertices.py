"""Smallest repair of records whose rules overlap, by trying all vertices of the linear programme.

The cost of a repair is linear between the points where a cell keeps its value, meets a bound, or a sum just
holds. So the cheapest repair is a vertex: some sums are tight and solved for as many columns, and every
other column keeps its value or lies at a bound. All vertices are tried, for all records at once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Bools, Floats
    from sdckit.rules.blocks import Block, SumRule

MOST = 2_000  # most vertices that are tried; with more, a solver is quicker
LENIENT = 1e-3  # of a grid step: rounding error up to which a vertex still bounds the cost from below
EQUAL = 1e-12  # costs that differ by less, relatively, are equal


@dataclass(frozen=True)
class Vertices:
    """Candidate repairs (vertices of the linear programme) for records with the same cells missing."""

    block: Block
    moving: Bools  # the columns that are free and observed
    sums: list[SumRule]  # those without a missing cell

    def best(self, cells: Floats) -> tuple[Floats, Bools]:
        """Return the cheapest vertex of each record, and whether it is proved to be the smallest repair.

        Free cells are missing where there is no vertex: then no values satisfy the rules.
        """
        found = np.where(self.block.free, np.nan, cells)
        least, bound = np.full((2, len(cells)), np.inf)
        for vertex in self._each_vertex(cells):
            cost = np.zeros(len(cells))
            for j in np.flatnonzero(self.moving):
                cost += np.abs(vertex[:, j] - cells[:, j]) * self.block.costs[j]
            near, exact = self._satisfied(vertex)
            bound[near & (cost < bound)] = cost[near & (cost < bound)]
            better = exact & (cost < least)
            found[better], least[better] = vertex[better], cost[better]
        none = np.isinf(bound) & (self.block.digits is not None)  # without a grid, rounding may hide one
        return found, np.isfinite(bound) & (least <= bound * (1 + EQUAL)) | none

    def few(self) -> bool:
        """Return True if there are few enough vertices to try them all."""
        return len(list(itertools.islice(self._plans(), MOST + 1))) <= MOST

    def _satisfied(self, vertex: Floats) -> tuple[Bools, Bools]:
        """Return where a vertex satisfies all rules up to rounding, and where exactly on the grid."""
        low, high = self.block.bounds
        near = np.ones(len(vertex), np.bool_)
        for j in np.flatnonzero(self.moving):
            slack = LENIENT if self.block.digits is not None else EQUAL * np.abs(vertex[:, j])
            near &= (vertex[:, j] >= low[j] - slack) & (vertex[:, j] <= high[j] + slack)
        if self.block.digits is None:
            vertex[:, self.moving] = np.clip(vertex, low, high)[:, self.moving]
            for total in self.sums:
                near &= ~total.broken(vertex)
            return near, near
        exact = near.copy()
        for j in np.flatnonzero(self.moving):
            steps = vertex[:, j] / self.block.steps[j]
            exact &= (steps == np.rint(steps)) & (vertex[:, j] >= low[j]) & (vertex[:, j] <= high[j])
        for total in self.sums:
            rest = -np.full(len(vertex), total.constant)
            for j, factor in zip(total.column_numbers, total.factors, strict=True):
                rest += factor * vertex[:, j]
            rest = np.abs(rest) if total.rule.equality else rest
            near &= rest <= LENIENT
            exact &= rest <= 0
        return near, exact

    def _each_vertex(self, cells: Floats) -> Iterator[Floats]:
        """Yield each vertex as a matrix: the same candidate repair computed for every record."""
        low, high = self.block.bounds
        kept = np.clip(cells, low, high)
        for solved, tight, others, choice in self._plans():
            vertex = cells.copy()
            for j, option in zip(others, choice, strict=True):
                vertex[:, j] = kept[:, j] if option == 0 else (low, high)[option - 1][j]
            rests = []
            for total in tight:
                rest = np.full(len(cells), total.constant)
                for j, factor in zip(total.column_numbers, total.factors, strict=True):
                    rest -= factor * vertex[:, j] if j not in solved else 0.0
                rests.append(rest)
            matrix, determinant = _inverse(tight, solved)
            for j, row in zip(solved, matrix, strict=True):
                vertex[:, j] = sum(f * rest for f, rest in zip(row, rests, strict=True)) / determinant
            yield vertex

    def _plans(self) -> Iterator[tuple[tuple[int, ...], tuple[SumRule, ...], list[int], tuple[int, ...]]]:
        """Yield plans of vertices: columns to solve for, tight sums, other columns and each one's bound."""
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


def _inverse(tight: tuple[SumRule, ...], solved: tuple[int, ...]) -> tuple[list[list[float]], float]:
    """Return the inverse of the sums' factors as an integer matrix and its common divisor."""
    if not solved:
        return [], 1.0
    factors = np.array(
        [
            [dict(zip(total.column_numbers, total.factors, strict=True)).get(j, 0.0) for j in solved]
            for total in tight
        ]
    )
    determinant = float(np.rint(np.linalg.det(factors)))
    if determinant == 0:
        return [], 0.0
    return np.rint(np.linalg.inv(factors) * determinant).tolist(), determinant
