"""Scores of linkage attacks: run each attack once per pair, take the most successful, explain it.

Every attack runs inside the facts of the pair (see `facts`), in one direction or in both. Its credit is
shared on both sides: among targets that are equally good, and among queries that look the same to the attack.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from sdckit.core import checks
from sdckit.metrics.query_sample import estimate_of_largest
from sdckit.metrics.score import Score, Values, WorstAttack
from sdckit.risk.attack_kinds import (
    ALL,
    ATTACKS,
    BOTH,
    DIRECTIONS,
    TO_MASKED,
    TO_ORIGINAL,
    keeps_searches,
    nearest_attacks,
)
from sdckit.risk.attack_results import AttackResult, attack_result
from sdckit.risk.distances import cached_value, squared_lengths
from sdckit.risk.facts import facts_of
from sdckit.risk.intruder import looked_up_singly
from sdckit.risk.law import LARGE
from sdckit.risk.linkage_attacks import TOLERANCE
from sdckit.risk.one_to_one import MatchingAttack
from sdckit.risk.row_order import row_orders
from sdckit.risk.shadows import OF_LARGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.kernels.jit import Bools, Floats
    from sdckit.metrics.pair import Pair
    from sdckit.metrics.query_sample import Queries
    from sdckit.metrics.score import Estimate
    from sdckit.risk.credits import Credits

__all__ = ["ATTACKS", "BOTH", "DIRECTIONS", "TO_MASKED", "TO_ORIGINAL"]
Linked = TypeVar("Linked", bound="Success")
OUTLIERS = 0.02  # share of the records, those farthest from the mean, whose risk is reported separately


def outliers(pair: Pair, share: float = OUTLIERS) -> Bools:
    """Return True for the share of records farthest from the original's mean; ties all count."""
    known = np.asarray((~pair.original.missing).any(axis=1))
    if not known.any():
        return ~known
    distances = squared_lengths(pair)
    count = max(round(share * int(known.sum())), 1)
    border = np.partition(distances[known], -count)[-count]
    return known & (distances >= border * (1 - TOLERANCE))


class Success(Protocol):
    """The success of one attack on the records of a pair of files."""

    @property
    def pair(self) -> Any:
        """The pair of files."""

    @property
    def name(self) -> str:
        """Name of the attack."""

    @property
    def direction(self) -> str:
        """Whose records are looked up."""

    def credits_of(self, queries: Queries) -> Credits:
        """Return the success on the records that are looked up."""

    def chances(self, queries: Queries) -> Floats:
        """Return the mean success for several random assignments of true records."""


def score_attacks(
    attacks: Sequence[Success],
    queries: Queries,
    *,
    parts: dict[str, float],
    detail: bool,
    per_record: bool,
    notes: tuple[str, ...] = (),
    tried: int = 1,
) -> Score:
    """Return a Score of the attack that links most of the queries; `parts` are stored in it.

    `tried` is the number of attacks of which it is the worst.
    """
    pair = attacks[0].pair
    none = np.full(pair.p, np.nan)
    worst = worst_attack(attacks, queries)
    found = worst.credits_of(queries)
    extra: dict[str, Any] = {}
    if detail:
        levels = [attack.chances(queries) for attack in attacks]
        size = max(level.size for level in levels)
        chances = np.max([np.broadcast_to(level, size) for level in levels], axis=0)
        extra["random"] = Values(float(chances.mean()), none)
        low, high = mean_or_nan(found.strict), mean_or_nan(found.optimistic)
        if low < high:
            extra |= {"tie_low": Values(low, none), "tie_high": Values(high, none)}
    if per_record:
        extra["records"] = queries.scatter(found.expected, pair.original.n)
    return Score(
        Values(mean_or_nan(found.expected), none),
        pair.counts.both,
        np.zeros(pair.p, np.int64),
        parts=parts,
        attack=WorstAttack(worst.name, worst.direction),
        notes=notes,
        estimate=estimate_of_largest(float(found.expected.sum()), queries, tried),
        **extra,
    )


def mean_or_nan(values: Floats) -> float:
    """Return the mean of the values; NaN without any."""
    return float(values.mean()) if values.size else math.nan


def worst_attack(attacks: Sequence[Linked], queries: Queries) -> Linked:
    """Return the attack that links most of the queries, the first of equals."""
    means = [mean_or_nan(attack.credits_of(queries).expected) for attack in attacks]
    return attacks[int(np.nanargmax(means)) if not np.isnan(means).all() else 0]


def score_attack(
    name: str, pair: Pair, *, detail: bool = False, per_record: bool = False, **options: Any
) -> Score:
    """Return the score of the named attack on all records, inside the facts that leave most to find."""
    if ATTACKS[name].sees != "facts" and not pair.known_variables:
        raise checks.NotApplicable(f"{name} needs a variable that the intruder knows; use linkage")
    results = [attack_result(pair, name, options)]
    comparable = bool(pair.counts.both[pair.known_variables].any())  # else there is nothing to compare
    queries = pair.queries(np.full(pair.original.n, comparable))
    attack = worst_attack(results, queries)
    found = attack.credits_of(queries)
    parts = {
        "strict": mean_or_nan(found.strict),
        "optimistic": mean_or_nan(found.optimistic),
        "outliers": mean_or_nan(attack.credits_of(pair.queries(outliers(pair))).expected),
    }
    if isinstance(attack.attack, MatchingAttack):
        parts["mean_distance"] = attack.attack.mean_distance
    more: dict[str, Any] = {"parts": parts, "detail": detail, "per_record": per_record}
    return score_attacks([attack], queries, tried=len(results), **more)


def applicable_attacks(pair: Pair, direction: str, attacks: str = ALL) -> Iterator[AttackResult]:
    """Yield the results of all attacks on the pair, or of the literature's, in one direction or both."""
    directions = (TO_ORIGINAL, TO_MASKED) if direction == BOTH else (direction,)
    for kind in ATTACKS.values():
        if kind.suits(pair) if attacks == ALL else kind.name in nearest_attacks(pair):
            for way in directions[:1] if kind.symmetric else directions:
                for variant in kind.variants(pair):
                    yield attack_result(pair, kind.name, {"direction": way, **variant})


def score_linkage(
    pair: Pair,
    *,
    direction: str = BOTH,
    attacks: str = ALL,
    share: float | None = None,
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """Return the score of the most successful attack on all records, or on a share of outliers."""
    if not (pair.disclosure.paired or facts_of(pair).tie_rows):
        raise checks.NotApplicable(
            "linkage has no value where masked cells belong to no original record and neither an unmasked "
            "column nor a missing cell ties rows to records; use a metric such as ks"
        )
    every = list(applicable_attacks(pair, direction, attacks))
    queries = pair.queries(np.ones(pair.original.n, np.bool_) if share is None else outliers(pair, share))
    weak: dict[AttackResult, float] = {}
    if queries.sample is not None:
        weak = cached_value(pair.cache, f"weak {direction} {attacks} {share}", dict)
    strong = [attack for attack in every if attack not in weak]
    means = weak | _means_of(strong, queries, len(every))
    parts: dict[str, float] = {}
    for attack in every:
        parts[attack.name] = max(means[attack], parts.get(attack.name, means[attack]))
    notes = () if share is not None else linkage_notes(pair, parts)
    more: dict[str, Any] = {"parts": parts, "detail": detail, "per_record": per_record, "notes": notes}
    score = score_attacks(strong, queries, tried=len(every), **more)
    for attack in strong:
        if _is_weak(means[attack], queries, score.estimate):
            weak[attack] = means[attack]
            attack.forget()
    return score


def _means_of(attacks: list[AttackResult], queries: Queries, tried: int) -> dict[AttackResult, float]:
    """Return the mean success of each attack; free their memory once no larger sample will be drawn.

    Of a large file the memory of each attack is freed at once, and prepared again for a larger sample.
    """
    means: dict[AttackResult, float] = {}
    limit = None if queries.sample is None else queries.sample.limit
    last = False
    for attack in attacks:
        means[attack] = mean_or_nan(attack.credits_of(queries).expected)
        estimate = estimate_of_largest(means[attack] * queries.drawn, queries, tried)
        last = last or (limit is not None and estimate is not None and estimate.low > limit)
        large = queries.sample is not None and not keeps_searches(attack.pair)
        for done in means if last else [attack] if large else ():
            done.forget()
    return means


def _is_weak(mean: float, queries: Queries, largest: Estimate | None) -> bool:
    """Return True if an attack's interval lies below that of the largest, so that no more is drawn for it."""
    own = None if largest is None else estimate_of_largest(mean * queries.drawn, queries)
    return own is not None and largest is not None and own.high < largest.low


def linkage_notes(pair: Pair, parts: dict[str, float]) -> tuple[str, ...]:
    """Return notes on what row order and changed columns add to linkage."""
    notes = []
    if "row_order" in parts:
        columns = ", ".join(dict.fromkeys(order.column for order in row_orders(pair)))
        shuffled = max(value for name, value in parts.items() if name != "row_order")
        notes.append(
            f"rows are sorted by {columns}: linkage is {max(parts.values()):.3g} with the order of the rows, "
            f"{shuffled:.3g} once they are shuffled"
        )
    if looked_up_singly(pair):
        notes.append(
            f"of a file above {LARGE:,} records the law is learnt from {OF_LARGE} shadows, and records are "
            "looked up one by one"
        )
    facts = facts_of(pair)
    changed = [name for name, case in facts.cases.items() if case in "de"]
    if changed:
        notes.append(
            f"unmasked columns that differ from the original in some records: {', '.join(changed)}; the "
            "intruder learns from other records how they differ"
        )
    if facts.failed:
        notes.append(
            f"stated by the method but broken by some record, so not used: {', '.join(facts.failed)}"
        )
    return tuple(notes)


def explain_linkage(score: Score, *, whom: str = "", worst: bool = False) -> str:
    """Return a sentence on what the intruder does and how often that succeeds."""
    value = score.value.overall
    if math.isnan(value):
        return "there are no records to compare"
    assert score.attack is not None  # noqa: S101 - every score of linkage has one
    name, forward = score.attack.name, score.attack.direction == TO_ORIGINAL
    who = "someone who holds the original file" if forward else "someone who knows a record's original values"
    does = ATTACKS[name].does.format(
        each=" for each published one" if forward else " among the published ones"
    )
    text = f"{who} and {does} is right in {_percent_text(value)} of 100 cases{whom}"
    if worst:
        tried = sum(part in ATTACKS for part in score.parts)
        text = f"the worst of {tried} {'attacks' if tried > 1 else 'attack'} ({name}): {text}"
    if score.random is not None:
        text += f"; guessing among the records that fit would give {_percent_text(score.random.overall)}"
    return text if score.estimate is None else f"{text} ({score.estimate.text})"


def _percent_text(share: float) -> str:
    """Return a share as a percentage with two digits, three near 100."""
    return f"{100 * share:.2g}" if share < 0.995 else f"{100 * share:.3g}"
