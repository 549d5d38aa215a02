"""Kinds of linkage attacks that `linkage` tries: how each is prepared, and texts that describe it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sdckit.core import checks
from sdckit.kernels import kd_tree
from sdckit.metrics.risk.distances import (
    breaks_rules,
    cached_value,
    corrected,
    mid_ranks,
    standardised,
    tie_blocks_of_files,
    whitened,
)
from sdckit.metrics.risk.facts import CERTAIN, DIRECTIONS, TO_MASKED, TO_ORIGINAL, facts_of
from sdckit.metrics.risk.linkage_attacks import NearestAttack, PlainGuess, SamePlacesAttack, WindowAttack
from sdckit.metrics.risk.one_to_one import LARGEST, MatchingAttack
from sdckit.metrics.risk.row_order import row_orders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sdckit.kernels.jit import Floats
    from sdckit.metrics.pair import Pair
    from sdckit.metrics.risk.facts import Sides
    from sdckit.metrics.risk.linkage_attacks import LinkageAttack

__all__ = ["ATTACKS", "BOTH", "DEFAULTS", "DIRECTIONS", "TO_MASKED", "TO_ORIGINAL"]
KEPT_UP_TO = 4_000_000  # cells of a file; what searches in larger ones need takes gigabytes, and is not kept
BOTH = "both"
DEFAULTS: dict[str, Any] = {
    "direction": TO_ORIGINAL,
    "places": 1,
    "within": 0.0,
    "distance": "standardised",
    "run": CERTAIN,
    "order": 0,
}


def has_cells(pair: Pair) -> bool:
    """Return True if masked cells belong to their records and the intruder knows a variable."""
    return pair.disclosure.paired and bool(pair.known_variables)


def keeps_searches(pair: Pair) -> bool:
    """Return True if what searches among the records need is kept for the next ones."""
    return pair.original.values.size <= KEPT_UP_TO


@dataclass(frozen=True)
class AttackKind:
    """A kind of linkage attack: how to prepare it, texts that describe it, and which pairs it applies to.

    `name` is that of the metric, where the attack is also a metric; `title` is a short name for legends;
    `does` describes the attack in a sentence. `sees` says what of a query the attack sees, beside the facts:
    its cells, the points that it compares, or nothing. `symmetric` attacks are the same in both directions.
    `variants` are options with which an attack is tried.
    """

    name: str
    make: Callable[[Pair, dict[str, Any]], LinkageAttack]
    title: str
    does: str
    suits: Callable[[Pair], bool] = has_cells
    sees: Literal["cells", "points", "facts"] = "cells"
    symmetric: bool = False
    inside_facts: bool = True
    variants: Callable[[Pair], Iterable[dict[str, Any]]] = lambda pair: ({},)  # noqa: ARG005 - one for all


ATTACKS: dict[str, AttackKind] = {}  # filed by `@linkage_attack`, in the order of their definition
Make = TypeVar("Make", bound="Callable[[Pair, dict[str, Any]], LinkageAttack]")


def linkage_attack(title: str, does: str, **more: Any) -> Callable[[Make], Make]:
    """Return a decorator that files a function as the attack of its name, for `linkage` to try."""

    def register(make: Make) -> Make:
        """File the function in `ATTACKS` under its own name and return it unchanged."""
        ATTACKS[make.__name__] = AttackKind(make.__name__, make, title, does, **more)
        return make

    return register


def sides_of(pair: Pair, options: dict[str, Any]) -> Sides | None:
    """Return the facts about targets and queries; None where they exclude nothing."""
    facts = facts_of(pair)
    return facts.sides(options["direction"], options["run"]) if facts.ties(options["run"]) else None


def _nearest_attack(
    space: Callable[[Pair], tuple[Floats, Floats]], pair: Pair, options: dict[str, Any]
) -> NearestAttack:
    """Return the nearest-record attack on a pair, after transforming both files by `space`."""
    ours, theirs = space(pair)
    sides = sides_of(pair, options)
    if options["direction"] == TO_MASKED:
        return NearestAttack(theirs, ours, sides, options["places"])
    attack = NearestAttack(ours, theirs, sides, options["places"])
    if space is whitened:
        return attack
    ground = standardised if space is corrected else space  # edit rules do not move originals
    kept = facts_of(pair).kept
    if sides is None and pair.complete and len(pair.known_variables) == pair.p:
        store, name = pair.original.cache, f"tree {ground.__name__}"
        return replace(attack, known_tree=cached_value(store, name, lambda: kd_tree.build(ours)))
    if keeps_searches(pair) and sides is not None and kept is not None and options["run"] == CERTAIN:
        name = f"targets {ground.__name__} {pair.known_variables}"
        known = cached_value(kept, name, attack.make_targets)
        return replace(attack, known_targets=known)
    return attack


@linkage_attack("nearest record", "picks the nearest record{each}")
def dbrl(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the nearest record in standard deviations."""
    return _nearest_attack(standardised, pair, options)


@linkage_attack(
    "nearest by Mahalanobis distance",
    "picks the nearest record{each}, by the Mahalanobis distance of the release,",
    sees="points",  # a direction without variance is not seen
)
def dbrl_mahalanobis(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the nearest record in the Mahalanobis distance of the release."""
    return _nearest_attack(whitened, pair, options)


@linkage_attack("nearest ranks", "picks the record with the nearest ranks{each}")
def dbrl_rank(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the record with the nearest mid-ranks."""
    return _nearest_attack(mid_ranks, pair, options)


@linkage_attack(
    "guess in the window",
    "guesses among the records within the published window of ranks{each}",
    suits=lambda pair: False,  # noqa: ARG005 - the window is a fact of all attacks
    inside_facts=False,
)
def window(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack within the published move in ranks, or within the option `within` if set."""
    known = pair.window
    within = checks.whole_share(options["within"], pair.original.n)
    width = within if options["within"] or known is None else known
    ours, theirs = tie_blocks_of_files(pair)
    return WindowAttack(*((ours, theirs) if options["direction"] == TO_ORIGINAL else (theirs, ours)), width)


@linkage_attack(
    "one-to-one matching",
    "links all records at once, one to one,",
    suits=lambda pair: has_cells(pair) and pair.original.n <= LARGEST,
    symmetric=True,
)
def matching(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the one-to-one matching attack; raise NotApplicable for more than 2,000 records."""
    n = pair.original.n
    if n > LARGEST:
        raise checks.NotApplicable(
            f"matching links at most {LARGEST} records and the data have {n}; use dbrl"
        )
    files = (pair.original.values, pair.masked)
    ours, theirs = standardised(pair) if options["distance"] == "standardised" else files
    there = (ours, theirs) if options["direction"] == TO_ORIGINAL else (theirs, ours)
    return MatchingAttack(*there, options["distance"], sides_of(pair, options))


@linkage_attack(
    "nearest record within the rules",
    "projects each published record onto the known edit rules and picks the nearest record{each}",
    suits=lambda pair: has_cells(pair) and breaks_rules(pair),
    sees="points",
)
def rules(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the nearest record to each published one moved to where the rules hold."""
    return _nearest_attack(corrected, pair, options)


@linkage_attack(
    "same places of missing cells",
    "picks the nearest of the records with the same missing cells{each}",
    suits=lambda pair: has_cells(pair) and facts_of(pair).places is not None,
)
def same_places(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack that takes records with exactly the same places of missing cells first."""
    facts, (ours, theirs) = facts_of(pair), standardised(pair)
    sides = facts.sides(options["direction"], options["run"])
    assert facts.places is not None  # noqa: S101 - the attack suits no other pair
    patterns = facts.places
    if options["direction"] == TO_MASKED:
        ours, theirs, patterns = theirs, ours, patterns[::-1]
    return SamePlacesAttack(ours, theirs, sides, patterns, options["places"])


@linkage_attack(
    "plain guess",
    "guesses among all the records that the facts leave{each}",
    suits=lambda pair: True,  # noqa: ARG005 - any pair
    sees="facts",
)
def guess(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack that picks any of the candidates that the facts leave."""
    return PlainGuess(facts_of(pair), options["direction"], options["run"])


@linkage_attack(
    "row order",
    "takes the rank of each row in the sorted file for that of its value and picks the nearest record{each}",
    suits=lambda pair: bool(row_orders(pair)),
    sees="points",
    variants=lambda pair: [{"order": number} for number in range(len(row_orders(pair)))],
)
def row_order(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the order of the rows, along one of the columns by which they are sorted."""
    order = row_orders(pair)[options["order"]]
    points = order.by_value[:, None], order.by_row[:, None]
    ours, theirs = points if options["direction"] == TO_ORIGINAL else points[::-1]
    return NearestAttack(ours, theirs, sides_of(pair, options), options["places"])
