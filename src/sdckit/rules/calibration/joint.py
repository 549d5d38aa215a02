"""Columns that are calibrated together, as they share edit rules or have totals over several divisions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.rules.calibration import interior

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.rules.calibration.problem import Problem, Totals
    from sdckit.rules.parse import Rule


class Equations(NamedTuple):
    """Linear conditions `least <= rows @ x <= most` on the moving cells; those of totals come last."""

    rows: Any  # scipy.sparse.csr_array
    least: Floats
    most: Floats
    totals: int  # number of conditions that are totals


class _Entries:
    """Conditions collected one after another, for a sparse matrix."""

    def __init__(self) -> None:
        self.places: list[tuple[Ints, Ints, Floats]] = []  # rows, variables and factors
        self.least: list[Floats] = []
        self.most: list[Floats] = []
        self.count = 0

    def add(self, numbers: Ints, factors: Floats, least: Floats, most: Floats) -> None:
        """Add a condition for each row of `numbers`, the variables (-1: none) with factors of that shape."""
        rows = np.broadcast_to(np.arange(len(numbers))[:, None] + self.count, numbers.shape)
        moving = numbers >= 0
        self.places.append((rows[moving], numbers[moving], np.broadcast_to(factors, numbers.shape)[moving]))
        self.least.append(least)
        self.most.append(most)
        self.count += len(numbers)

    def equations(self, variables: int, totals: int) -> Equations:
        """Return all conditions on so many variables."""
        from scipy import sparse  # noqa: PLC0415 - slow to import, rarely needed

        rows, columns, factors = (np.concatenate(part) for part in zip(*self.places, strict=True))
        matrix = sparse.csr_array((factors, (rows, columns)), shape=(self.count, variables))
        return Equations(matrix, np.concatenate(self.least), np.concatenate(self.most), totals)


@dataclass(frozen=True)
class Joint:
    """A group of columns, given by their numbers, with their totals and the rules that connect them."""

    problem: Problem
    columns: tuple[int, ...]
    totals: tuple[Totals, ...]

    @cached_property
    def rules(self) -> list[Rule]:
        """The rules on several of the columns; a tolerance makes two inequalities of an equality."""
        known = {self.problem.columns[j] for j in self.columns}
        given = () if self.problem.rules is None else self.problem.rules.rules
        halves = [half for rule in given for half in rule.halves]
        return [half for half in halves if len(half.columns) > 1 and known.issuperset(half.columns)]

    @cached_property
    def moving(self) -> Bools:
        """Which cells of the whole matrix may change: in these columns, in a domain, between two limits."""
        low, high = self.problem.limits
        found = np.zeros(low.shape, np.bool_)
        inside = np.zeros(len(low), np.bool_)
        for one in self.totals:
            inside |= one.domains >= 0
        for j in self.columns:
            found[:, j] = inside & (low[:, j] < high[:, j])
        return found

    @cached_property
    def numbers(self) -> Ints:
        """Number of each cell among the moving ones; -1 for others."""
        found = np.full(self.moving.shape, -1)
        found[self.moving] = np.arange(int(self.moving.sum()))
        return found

    def equations(
        self, values: Floats, units: Floats, scale: Fraction, targets: Sequence[Floats]
    ) -> Equations:
        """Return rules and totals as conditions on the moving cells.

        Parameters
        ----------
        values
            All cells, those of column j in units of `units[j] * scale`.
        units, scale
            The units of the columns, and the common unit of the rules.
        targets
            The totals, each in units of its column.
        """
        entries = _Entries()
        place = {self.problem.columns[j]: j for j in self.columns}
        for rule in self.rules:
            inside = np.array([place[name] for name in rule.columns])
            factors = np.array([float(factor) for _, factor in rule.terms]) * units[inside]
            complete = ~np.isnan(values[:, inside]).any(axis=1)
            rows = np.flatnonzero(complete & self.moving[:, inside].any(axis=1))
            fixed = np.where(self.moving[np.ix_(rows, inside)], 0.0, values[np.ix_(rows, inside)])
            most = float(rule.constant / scale) - fixed @ factors
            least = most if rule.equality else np.full(len(rows), -np.inf)
            entries.add(self.numbers[np.ix_(rows, inside)], factors, least, most)
        count = entries.count
        for one, wanted in zip(self.totals, targets, strict=True):
            self._add_totals(entries, one, values[:, one.column], wanted)
        return entries.equations(int(self.moving.sum()), entries.count - count)

    def _add_totals(self, entries: _Entries, totals: Totals, column: Floats, wanted: Floats) -> None:
        """Add a condition for each domain with a moving cell."""
        for rows, target in zip(totals.rows_of_domains(), wanted, strict=True):
            moving = self.moving[rows, totals.column]
            parts = self.problem.weights[rows] * column[rows]
            rest = target - np.nansum(parts[~moving])
            if moving.any():
                weights, chosen = self.problem.weights[rows[moving]], rows[moving]
                side = np.array([rest])
                entries.add(self.numbers[chosen, totals.column][None], weights[None], side, side)

    def nearest(self, targets: Sequence[Floats]) -> Floats | None:
        """Return all cells with the least change that makes totals and rules hold; None if none was found."""
        from scipy import sparse  # noqa: PLC0415

        values, weights = self.problem.values, self.problem.weights
        found = self.equations(values, np.ones(values.shape[1]), Fraction(1), targets)
        open_rows = np.flatnonzero(found.least < found.most)
        slacks = sparse.csr_array(
            (np.ones(open_rows.size), (open_rows, np.arange(open_rows.size))),
            (len(found.most), open_rows.size),
        )
        sizes = np.abs(values) * np.nanmean(np.abs(values), axis=0)
        start = values[self.moving]
        costs = np.broadcast_to(weights[:, None], values.shape)[self.moving] / sizes[self.moving]
        usual = (abs(found.rows) @ np.abs(start))[open_rows]
        none, some = np.zeros(open_rows.size), np.full(open_rows.size, np.inf)
        system = interior.System(
            sparse.hstack([found.rows, slacks], format="csr"),
            found.most,
            np.concatenate([start, none]),
            np.concatenate([costs, none]),
            np.concatenate([np.ones(start.size), usual]),
            np.concatenate([self.problem.limits.low[self.moving], none]),
            np.concatenate([self.problem.limits.high[self.moving], some]),
        )
        cells = interior.nearest(system)
        if cells is None:
            return None
        result = values.copy(order="F")
        result[self.moving] = cells[: start.size]
        return result
