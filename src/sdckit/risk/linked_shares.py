"""Shares of an intruder's links that have a property: the right unit, or the right value of a variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.kernels.candidates import count_candidates, no_facts
from sdckit.kernels.nearest import count_nearest
from sdckit.risk.attack_kinds import ATTACKS, DEFAULTS
from sdckit.risk.linkage_attacks import TOLERANCE, NearestAttack
from sdckit.risk.posterior import EQUAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.pair import Pair
    from sdckit.risk.facts import Sides
    from sdckit.risk.posterior import Posterior

    Ends = tuple[Floats, Floats]  # of intervals, record x dimension


class Property(NamedTuple):
    """A property that targets have and queries ask for: where their intervals overlap in every dimension."""

    targets: Ends
    queries: Ends


def equality(targets: Ints, queries: Ints) -> Property:
    """Return the property of having the same number."""
    ours, theirs = (np.ascontiguousarray(numbers[:, None], float) for numbers in (targets, queries))
    return Property((ours, ours), (theirs, theirs))


def distance_attacks(pair: Pair, direction: str, run: str) -> Iterator[tuple[str, NearestAttack]]:
    """Yield name and attack of all kinds that link each query to its nearest candidates, inside the facts."""
    for kind in ATTACKS.values():
        for variant in kind.variants(pair) if kind.suits(pair) else ():
            attack = kind.make(pair, DEFAULTS | {"direction": direction, "run": run, **variant})
            if isinstance(attack, NearestAttack):
                yield kind.name, attack


def linked_shares(attack: NearestAttack, wanted: Property) -> Floats:
    """Return, for each query, the share of its nearest candidates that have the property; 0 without any."""
    sides = attack.sides or (no_facts(len(attack.targets)), no_facts(len(attack.queries)))
    counts = count_nearest(attack.targets, attack.queries, sides, wanted, TOLERANCE)
    return counts[1] / np.maximum(counts[0], 1)


def shares_of_links(found: Posterior, chance: Floats, wanted: Property, *, forward: bool) -> Floats:
    """Return, for each query, the share of its most probable partners that have the property.

    Queries are published rows and targets originals, or the other way round if not `forward`.
    """
    pairs = found.pairs
    queries, targets = (pairs.rows, pairs.originals) if forward else (pairs.originals, pairs.rows)
    best = np.zeros(pairs.n)
    np.maximum.at(best, queries, chance)
    equal = (chance >= best[queries] * (1 - EQUAL)) & (chance > 0)
    mine, theirs, weight = queries[equal], targets[equal], pairs.standing[equal]
    has = np.ones(len(mine), np.bool_)
    for low, high, first, last in zip(*(ends.T for ends in (*wanted.targets, *wanted.queries)), strict=True):
        has &= (low[theirs] <= last[mine]) & (first[mine] <= high[theirs])
    total = np.bincount(mine, weight, pairs.n)
    return np.asarray(np.bincount(mine, weight * has, pairs.n) / np.maximum(total, 1e-300))


def guessed_shares(sides: Sides, wanted: Property) -> Floats:
    """Return, for each query, the share of all its candidates that have the property."""
    ours, theirs = (
        side._replace(low=np.hstack([side.low, ends[0]]), high=np.hstack([side.high, ends[1]]))
        for side, ends in zip(sides, wanted, strict=True)
    )
    return np.asarray(count_candidates(ours, theirs)[0] / np.maximum(count_candidates(*sides)[0], 1))
