"""Units by the law of the masking: all rows of a household, firm or person of a panel are read together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.candidates import count_candidates
from sdckit.risk.credits import Credits
from sdckit.risk.distances import cached_value, standardised
from sdckit.risk.facts import CERTAIN, facts_of
from sdckit.risk.intruder import reading_of, reads_law, runs_again
from sdckit.risk.law import LARGE
from sdckit.risk.posterior import LISTED, SURE, Pairs, Posterior
from sdckit.risk.unit_points import Units, publishes_units, units_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.pair import Pair
    from sdckit.risk.intruder import Reader

ALL_ROWS = 20_000_000  # pairs of rows up to which every two units are compared
FEW_ROWS = 4  # rows that no column tells apart, up to which all ways of pairing them are tried


def unit_posterior(pair: Pair, units: Units, by: str) -> Posterior:
    """Return the posterior of units: log-likelihoods add up over rows aligned by their unmasked columns.

    Rows of a unit that no unmasked column tells apart are paired as is best for each two units.
    """

    def compute() -> Posterior:
        """Return the posterior."""
        sides = facts_of(pair).runs[CERTAIN]
        rows = units.rows[np.lexsort((sides[1].blocks[units.rows], units.numbers[units.rows]))]
        classes = units.side(sides[0]._replace(low=np.empty((pair.n, 0)), high=np.empty((pair.n, 0)))).blocks
        lists = [
            _unit_pairs(pair, units, rows, members, reading_of(pair, by))
            for members in np.split(np.argsort(classes, kind="stable"), np.cumsum(np.bincount(classes))[:-1])
            if members.size
        ]
        g, h, values = (np.concatenate(part) for part in zip(*lists, strict=True))
        order = np.lexsort((h, g))
        return Posterior(Pairs(g[order], h[order], values[order], np.ones(len(g)), units.count))

    found: Posterior = cached_value(pair.cache, f"unit posterior {by}", compute)
    return found


def _unit_pairs(
    pair: Pair, units: Units, rows: Ints, members: Ints, reader: Reader
) -> tuple[Ints, Ints, Floats]:
    """Return all pairs of published and original units of a class, and their log-likelihoods.

    Of large classes, pairs of units whose means are near each other.
    """
    g, h = _near_units(pair, units, members)
    size = int(units.sizes[members[0]])
    blocks = facts_of(pair).runs[CERTAIN][1].blocks
    mine = blocks[rows[units.starts[members[0]] + np.arange(size)]]
    ends = np.flatnonzero(np.r_[np.diff(mine) != 0, True]) + 1
    total = np.zeros(len(g))
    for start, end in zip(np.r_[0, ends[:-1]], ends, strict=True):
        total += _best_pairing(
            reader, rows, units.starts[g] + start, units.starts[h] + start, int(end - start)
        )
    return g, h, total


def _near_units(pair: Pair, units: Units, members: Ints) -> tuple[Ints, Ints]:
    """Return pairs of published and original units of a class: all, or those with near means."""
    if members.size**2 * int(units.sizes[members[0]]) ** 2 <= ALL_ROWS:
        return np.repeat(members, members.size), np.tile(members, members.size)
    from scipy.spatial import cKDTree  # noqa: PLC0415 - slow to import

    ours, theirs = (np.nan_to_num(units.means(points)[members]) for points in standardised(pair))
    near = cKDTree(ours).query(theirs, min(LISTED, members.size))[1].reshape(members.size, -1)
    return np.repeat(members, near.shape[1]), members[near.ravel()]


def _best_pairing(reader: Reader, rows: Ints, first: Ints, other: Ints, size: int) -> Floats:
    """Return the log-likelihood of `size` rows of each two units, from these places on, paired at best."""
    if size == 1:
        return reader.likelihood(rows[first], rows[other])
    every = [[reader.likelihood(rows[first + a], rows[other + b]) for b in range(size)] for a in range(size)]
    if size <= FEW_ROWS:
        ways = permutations(range(size))
        return np.max([np.sum([every[a][b] for a, b in enumerate(way)], axis=0) for way in ways], axis=0)
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - slow to import

    costs = np.asarray(every).transpose(2, 0, 1)
    return np.array([cost[linear_sum_assignment(cost, maximize=True)].sum() for cost in costs])


def units_by_law(pair: Pair) -> Iterator[tuple[str, Floats]]:
    """Yield each law's name and every unit's credit, in both directions, one to one and not.

    Where the method draws nothing, the facts say it all: units whose rows are published alike are equal.
    """
    numbers = units_of(pair)
    if numbers is None or not shows_units(pair):
        return
    units = Units(numbers)
    truth = np.arange(units.count)
    if runs_again(pair):
        yield "facts", _credit_by_facts(pair, units)
    for by in ("shadows", "folds"):
        if reads_law(pair, by):
            found = unit_posterior(pair, units, by)
            for chance in (found.both, found.plain):
                for forward in (True, False):
                    yield by, found.credit(chance, truth, forward=forward)


def _credit_by_facts(pair: Pair, units: Units) -> Floats:
    """Return each unit's share of a guess among the published units whose rows fit the facts of its own."""
    ours, theirs = (units.side(side) for side in facts_of(pair).runs[CERTAIN])
    return np.asarray(1 / np.maximum(count_candidates(ours, theirs)[0], 1))


def shows_units(pair: Pair) -> bool:
    """Return True if the release shows which rows belong to a unit, and units can be compared as wholes."""
    numbers = units_of(pair)
    whole = pair.rows is None and numbers is not None and pair.n <= LARGE
    read = runs_again(pair) or any(reads_law(pair, by) for by in ("shadows", "folds"))
    return whole and publishes_units(pair) and read


@dataclass(frozen=True)
class UnitAttack:
    """Links of rows to rows of the unit that is found for all of them together."""

    pair: Pair

    def credits(self, truth: Ints, rows: Ints | None = None) -> Credits:  # noqa: ARG002 - units are aligned
        """Return for each row the credit of its unit, by the law that finds most rows."""
        numbers = units_of(self.pair)
        found = max((credit[numbers] for _, credit in units_by_law(self.pair)), key=np.mean)
        mine = found if rows is None else found[rows]
        return Credits(mine, (mine == 1).astype(float), (mine > 0).astype(float))


def chances_of_units(pair: Pair, by: str) -> tuple[Floats, Ints]:
    """Return the probability of each row's true unit, and the units that the intruder is sure of."""
    numbers = units_of(pair)
    assert numbers is not None  # noqa: S101 - the caller has asked `shows_units`
    units = Units(numbers)
    if by == "facts":
        credit = _credit_by_facts(pair, units)
        return credit[numbers], np.flatnonzero(credit > SURE)
    found = unit_posterior(pair, units, by)
    return found.of_truth(found.bethe, np.arange(units.count))[numbers], found.links_claimed
