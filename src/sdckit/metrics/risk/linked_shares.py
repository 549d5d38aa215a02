"""Shares of an intruder's links that have a property: the right unit, or the right value of a variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.kernels.candidates import count_candidates, no_facts, take
from sdckit.kernels.nearest import count_nearest
from sdckit.metrics.risk.attack_kinds import ATTACKS, DEFAULTS
from sdckit.metrics.risk.linkage_attacks import TOLERANCE, NearestAttack, SamePlacesAttack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.pair import Pair
    from sdckit.metrics.risk.facts import Sides

    Distance = NearestAttack | SamePlacesAttack
    Ends = tuple[Floats, Floats]  # of intervals, record x dimension


class Property(NamedTuple):
    """A property that targets have and queries ask for: where their intervals overlap in every dimension."""

    targets: Ends
    queries: Ends


def equality(targets: Ints, queries: Ints) -> Property:
    """Return the property of having the same number."""
    ours, theirs = (np.ascontiguousarray(numbers[:, None], float) for numbers in (targets, queries))
    return Property((ours, ours), (theirs, theirs))


def distance_attacks(pair: Pair, direction: str, run: str) -> Iterator[tuple[str, Distance]]:
    """Yield name and attack of all kinds that link each query to its nearest candidates, inside the facts."""
    for kind in ATTACKS.values():
        for variant in kind.variants(pair) if kind.suits(pair) else ():
            attack = kind.make(pair, DEFAULTS | {"direction": direction, "run": run, **variant})
            if isinstance(attack, (NearestAttack, SamePlacesAttack)):
                yield kind.name, attack


def linked_shares(attack: Distance, wanted: Property) -> Floats:
    """Return, for each query, the share of its nearest candidates that have the property; 0 without any."""
    n = len(attack.targets), len(attack.queries)
    sides = attack.sides or (no_facts(n[0]), no_facts(n[1]))
    preferred = attack.refined if isinstance(attack, SamePlacesAttack) else sides
    counts = count_nearest(attack.targets, attack.queries, preferred, wanted, TOLERANCE)
    if isinstance(attack, SamePlacesAttack) and attack.without.size:
        rest = attack.without
        asked = wanted._replace(queries=(wanted.queries[0][rest], wanted.queries[1][rest]))
        some = sides[0], take(sides[1], rest)
        counts[:, rest] = count_nearest(attack.targets, attack.queries[rest], some, asked, TOLERANCE)
    return counts[1] / np.maximum(counts[0], 1)


def guessed_shares(sides: Sides, wanted: Property) -> Floats:
    """Return, for each query, the share of all its candidates that have the property."""
    ours, theirs = (
        side._replace(low=np.hstack([side.low, ends[0]]), high=np.hstack([side.high, ends[1]]))
        for side, ends in zip(sides, wanted, strict=True)
    )
    return np.asarray(count_candidates(ours, theirs)[0] / np.maximum(count_candidates(*sides)[0], 1))
