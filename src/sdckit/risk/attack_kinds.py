"""Kinds of linkage attacks that `linkage` tries: how each is prepared, and texts that describe it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sdckit.core import checks
from sdckit.kernels import kd_tree
from sdckit.risk.distances import (
    cached_value,
    mid_ranks,
    standardised,
    tie_blocks_of_files,
    whitened,
)
from sdckit.risk.facts import CERTAIN, DIRECTIONS, TO_MASKED, TO_ORIGINAL, facts_of
from sdckit.risk.intruder import law_attack, reads_law, reads_order
from sdckit.risk.linkage_attacks import NearestAttack, PlainGuess, WindowAttack
from sdckit.risk.one_to_one import LARGEST, MatchingAttack
from sdckit.risk.unit_law import UnitAttack, shows_units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sdckit.kernels.jit import Floats
    from sdckit.metrics.pair import Pair
    from sdckit.risk.facts import Sides
    from sdckit.risk.linkage_attacks import LinkageAttack

__all__ = ["ATTACKS", "BOTH", "DEFAULTS", "DIRECTIONS", "TO_MASKED", "TO_ORIGINAL"]
KEPT_UP_TO = 4_000_000  # cells of a file; what searches in larger ones need takes gigabytes, and is not kept
BOTH = "both"
ALL, NEAREST = "all", "nearest"  # attacks that `linkage` tries: those that know the law, or the literature's
DEFAULTS: dict[str, Any] = {
    "direction": TO_ORIGINAL,
    "places": 1,
    "within": 0.0,
    "distance": "standardised",
    "run": CERTAIN,
    "one_to_one": False,
}
LINKS = ({"one_to_one": True}, {"one_to_one": False})  # all records at once, or each by itself


def has_cells(pair: Pair) -> bool:
    """Return True if masked cells belong to their records and the intruder knows a variable."""
    return pair.disclosure.paired and bool(pair.known_variables)


def on_request(pair: Pair) -> bool:  # noqa: ARG001 - as all
    """Return False: the attack is a metric of the literature, and none that `linkage` tries."""
    return False


def nearest_attacks(pair: Pair) -> tuple[str, ...]:
    """Return the names of the literature's attacks on a pair, which know facts but no law."""
    if not has_cells(pair):
        return ("guess",)
    small = pair.original.n <= LARGEST
    return tuple(kind.name for kind in ATTACKS.values() if kind.literature and (small or not kind.symmetric))


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
    literature: bool = False  # one of those that `linkage` with the attacks "nearest" tries
    permuted: bool = True  # chance is measured with permuted records; else it is that of a plain guess
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
    kept = facts_of(pair).kept
    if sides is None and pair.complete and len(pair.known_variables) == pair.p:
        store, name = pair.original.cache, f"tree {space.__name__}"
        return replace(attack, known_tree=cached_value(store, name, lambda: kd_tree.build(ours)))
    if keeps_searches(pair) and sides is not None and kept is not None and options["run"] == CERTAIN:
        name = f"targets {space.__name__} {pair.known_variables}"
        known = cached_value(kept, name, attack.make_targets)
        return replace(attack, known_targets=known)
    return attack


@linkage_attack("nearest record", "picks the nearest record{each}", literature=True)
def dbrl(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the nearest record in standard deviations."""
    return _nearest_attack(standardised, pair, options)


@linkage_attack(
    "nearest by Mahalanobis distance",
    "picks the nearest record{each}, by the Mahalanobis distance of the release,",
    suits=on_request,
    literature=True,
    sees="points",  # a direction without variance is not seen
)
def dbrl_mahalanobis(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the nearest record in the Mahalanobis distance of the release."""
    return _nearest_attack(whitened, pair, options)


@linkage_attack(
    "nearest ranks", "picks the record with the nearest ranks{each}", suits=on_request, literature=True
)
def dbrl_rank(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the record with the nearest mid-ranks."""
    return _nearest_attack(mid_ranks, pair, options)


@linkage_attack(
    "guess in the window",
    "guesses among the records within the published window of ranks{each}",
    suits=on_request,
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
    suits=on_request,
    literature=True,
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
    "plain guess",
    "guesses among all the records that the facts leave{each}",
    literature=True,
    suits=lambda pair: True,  # noqa: ARG005 - any pair
    sees="facts",
)
def guess(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack that picks any of the candidates that the facts leave."""
    return PlainGuess(facts_of(pair), options["direction"], options["run"])


@linkage_attack(
    "law learnt by masking again",
    "masks the file himself many times, learns how records differ from their originals and picks the most "
    "probable record{each}",
    suits=lambda pair: reads_law(pair, "shadows"),
    variants=lambda pair: LINKS,  # noqa: ARG005 - for all
    permuted=False,
)
def shadows(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the law of the masking, learnt from shadows."""
    return _law_attack(pair, "shadows", options)


@linkage_attack(
    "law learnt from the release",
    "learns from other records how published ones differ from their originals and picks the most probable "
    "record{each}",
    suits=lambda pair: reads_law(pair, "folds"),
    variants=lambda pair: LINKS,  # noqa: ARG005
    permuted=False,
)
def folds(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the law of the masking, learnt from other records of the release."""
    return _law_attack(pair, "folds", options)


@linkage_attack(
    "law and row order",
    "takes the place of a row in the sorted file for the rank of its value, too, and picks the most probable "
    "record{each}",
    suits=reads_order,
    variants=lambda pair: LINKS,  # noqa: ARG005
    permuted=False,
)
def row_order(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the law of the release and by the order of its rows."""
    return _law_attack(pair, "folds", options, order=True)


@linkage_attack(
    "units by the law",
    "reads all rows of a unit together, aligned by the unmasked columns, and picks the most probable "
    "unit{each}",
    suits=shows_units,
    symmetric=True,
    permuted=False,
)
def rows_of_units(pair: Pair, options: dict[str, Any]) -> LinkageAttack:  # noqa: ARG001 - as all
    """Return the attack that finds whole units, and with them their rows."""
    return UnitAttack(pair)


def _law_attack(pair: Pair, by: str, options: dict[str, Any], *, order: bool = False) -> LinkageAttack:
    """Return the attack by a law, prepared from the pair."""
    found: LinkageAttack = law_attack(
        pair, by, options["direction"], one_to_one=options["one_to_one"], order=order
    )
    return found
