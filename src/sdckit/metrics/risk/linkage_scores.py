"""Scores of linkage attacks: run each attack once per pair, take the most successful, explain it.

Every attack runs inside the facts of the pair (see `facts`), in one direction or in both. Its credit is
shared on both sides: among targets that are equally good, and among queries that look the same to the attack.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.metrics.risk.attack_kinds import ATTACKS, BOTH, DEFAULTS, DIRECTIONS, TO_MASKED, TO_ORIGINAL
from sdckit.metrics.risk.chance_level import permutations
from sdckit.metrics.risk.distances import cached_value, known_columns, squared_lengths
from sdckit.metrics.risk.equal_records import RecordClasses, row_marks
from sdckit.metrics.risk.facts import CERTAIN, DOUBTFUL, Facts, facts_of
from sdckit.metrics.risk.linkage_attacks import TOLERANCE, Credits, PlainGuess
from sdckit.metrics.risk.one_to_one import MatchingAttack
from sdckit.metrics.risk.row_order import row_orders
from sdckit.metrics.score import Score, Values, WorstAttack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.metrics.pair import Pair
    from sdckit.metrics.risk.linkage_attacks import LinkageAttack

__all__ = ["ATTACKS", "BOTH", "DIRECTIONS", "TO_MASKED", "TO_ORIGINAL"]
OUTLIERS = 0.02  # share of the records, those farthest from the mean, whose risk is reported separately


class AttackResult:
    """Result of one attack on a pair: the success on each record, and what chance would give."""

    def __init__(self, pair: Pair, name: str, options: dict[str, Any]) -> None:
        self.pair, self.name, self.options = pair, name, options
        self.direction, self.run = options["direction"], options["run"]
        self.attack: LinkageAttack = ATTACKS[name].make(pair, options)
        self.credits = self.shared_credits(np.arange(pair.original.n))

    @property
    def facts(self) -> Facts:
        """The facts of the pair."""
        return facts_of(self.pair)

    @cached_property
    def classes(self) -> RecordClasses:
        """Classes of queries that look the same to the attack."""
        seen = ATTACKS[self.name].sees
        if seen == "facts":
            marks = self.facts.candidates(self.direction, self.run)[1]
            return cached_value(
                self.facts.cache, f"{self.direction} {self.run}", lambda: RecordClasses(marks)
            )
        if seen == "points":
            return self.classes_of(self.attack.queries)  # type: ignore[attr-defined]
        return cached_value(
            self.pair.cache, f"equal {self.direction} {self.run}", lambda: self.classes_of(self.cells)
        )

    @property
    def cells(self) -> Floats:
        """Cells of the queries in the variables that the intruder knows."""
        pair = self.pair
        return known_columns(pair, pair.masked if self.direction == TO_ORIGINAL else pair.original.values)

    def classes_of(self, points: Floats) -> RecordClasses:
        """Return classes of queries that are equal in these cells and have the same candidates."""
        marks = row_marks(points)
        classes = RecordClasses(marks)
        if classes.alone or not self.facts.ties(self.run):
            return classes
        return RecordClasses(row_marks(marks, self.facts.candidates(self.direction, self.run)[1]))

    def shared_credits(self, truth: Ints) -> Credits:
        """Return the success of each query, shared among queries that look the same."""
        alone = self.attack.credits(truth)
        return Credits(
            self.classes.means(alone.expected),
            self.classes.single(alone.strict),
            self.classes.means(alone.optimistic),
        )

    def mean(self, values: Floats, chosen: Bools) -> float:
        """Return the mean of the values over the chosen records; NaN where none is chosen."""
        return float(values[chosen].mean()) if chosen.any() else math.nan

    @cached_property
    def truths(self) -> list[Ints]:
        """Random assignments of true records inside the facts, where all facts are equalities."""
        inside = ATTACKS[self.name].inside_facts and self.facts.ties()
        return list(
            permutations(self.pair.original.n, self.facts.runs[CERTAIN][0].blocks if inside else None)
        )

    @cached_property
    def unrelated(self) -> list[Floats]:
        """Success of each guess, from 0 to 1, for several random assignments of the true records."""
        return [self.shared_credits(truth).expected for truth in self.truths]

    def chances(self, chosen: Bools) -> Floats:
        """Return the mean success on the chosen originals for each random assignment of true records.

        A true record that is drawn from all candidates is found by any attack with the probability of a plain
        guess, so that this is the level where facts are intervals and records cannot be permuted freely.
        """
        if ATTACKS[self.name].inside_facts and not self.facts.equalities(self.run):
            guess = PlainGuess(self.facts, self.direction, self.run).credits(np.arange(self.pair.original.n))
            places = self.options["places"]
            return np.array([self.mean(np.minimum(places * guess.expected, 1.0), chosen)])
        forward = self.direction == TO_ORIGINAL
        return np.array(
            [
                self.mean(expected, chosen[truth] if forward else chosen)
                for truth, expected in zip(self.truths, self.unrelated, strict=True)
            ]
        )


def attack_result(pair: Pair, name: str, options: dict[str, Any]) -> AttackResult:
    """Return the result of the named attack on a pair, computed once for each choice of options."""
    full = DEFAULTS | options
    return cached_value(pair.cache, f"{name} {sorted(full.items())}", lambda: AttackResult(pair, name, full))


def outliers(pair: Pair, share: float = OUTLIERS) -> Bools:
    """Return True for the share of records farthest from the original's mean; ties all count."""
    known = np.asarray((~pair.original.missing).any(axis=1))
    if not known.any():
        return ~known
    distances = squared_lengths(pair)
    count = max(round(share * int(known.sum())), 1)
    border = np.partition(distances[known], -count)[-count]
    return known & (distances >= border * (1 - TOLERANCE))


def score_attacks(
    attacks: list[AttackResult],
    chosen: Bools,
    *,
    parts: dict[str, float],
    detail: bool,
    per_record: bool,
    notes: tuple[str, ...] = (),
) -> Score:
    """Return a Score of the attack that links most of the chosen records; `parts` are stored in it."""
    pair = attacks[0].pair
    none = np.full(pair.p, np.nan)
    worst = worst_attack(attacks, chosen)
    extra: dict[str, Any] = {}
    if detail:
        levels = [attack.chances(chosen) for attack in attacks]
        size = max(level.size for level in levels)
        chances = np.max([np.broadcast_to(level, size) for level in levels], axis=0)
        extra["random"] = Values(float(chances.mean()), none)
        low, high = (
            worst.mean(values, chosen) for values in (worst.credits.strict, worst.credits.optimistic)
        )
        if low < high:
            extra |= {"tie_low": Values(low, none), "tie_high": Values(high, none)}
    if per_record:
        extra["records"] = np.where(chosen, worst.credits.expected, np.nan)
    return Score(
        Values(worst.mean(worst.credits.expected, chosen), none),
        pair.counts.both,
        np.zeros(pair.p, np.int64),
        parts=parts,
        attack=WorstAttack(worst.name, worst.direction),
        notes=notes,
        **extra,
    )


def worst_attack(attacks: list[AttackResult], chosen: Bools) -> AttackResult:
    """Return the attack that links most of the chosen records, the first of equals."""
    means = [attack.mean(attack.credits.expected, chosen) for attack in attacks]
    return attacks[int(np.nanargmax(means)) if not np.isnan(means).all() else 0]


def score_attack(
    name: str, pair: Pair, *, detail: bool = False, per_record: bool = False, **options: Any
) -> Score:
    """Return the score of the named attack on all records, inside the facts that leave most to find."""
    if ATTACKS[name].sees != "facts" and not pair.known_variables:
        raise checks.NotApplicable(f"{name} needs a variable that the intruder knows; use linkage")
    runs = facts_of(pair).runs if ATTACKS[name].inside_facts else (CERTAIN,)
    results = [attack_result(pair, name, options | {"run": run}) for run in runs]
    comparable = bool(pair.counts.both[pair.known_variables].any())  # else there is nothing to compare
    chosen = np.full(pair.original.n, comparable)
    attack = worst_attack(results, chosen)
    parts = {
        "strict": attack.mean(attack.credits.strict, chosen),
        "optimistic": attack.mean(attack.credits.optimistic, chosen),
        "outliers": attack.mean(attack.credits.expected, outliers(pair)),
    }
    if isinstance(attack.attack, MatchingAttack):
        parts["mean_distance"] = attack.attack.mean_distance
    return score_attacks([attack], chosen, parts=parts, detail=detail, per_record=per_record)


def applicable_attacks(pair: Pair, direction: str) -> Iterator[AttackResult]:
    """Yield the results of all attacks that apply to the pair, in one direction or in both."""
    directions = (TO_ORIGINAL, TO_MASKED) if direction == BOTH else (direction,)
    for kind in [kind for kind in ATTACKS.values() if kind.suits(pair)]:
        for way in directions[:1] if kind.symmetric else directions:
            for run in facts_of(pair).runs:
                for variant in kind.variants(pair):
                    yield attack_result(pair, kind.name, {"direction": way, "run": run, **variant})


def score_linkage(
    pair: Pair,
    *,
    direction: str = BOTH,
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
    attacks = list(applicable_attacks(pair, direction))
    chosen = np.ones(pair.original.n, np.bool_) if share is None else outliers(pair, share)
    parts: dict[str, float] = {}
    for attack in attacks:
        value = attack.mean(attack.credits.expected, chosen)
        parts[attack.name] = max(value, parts.get(attack.name, value))
    notes = () if share is not None else linkage_notes(pair, attacks, parts)
    return score_attacks(attacks, chosen, parts=parts, detail=detail, per_record=per_record, notes=notes)


def linkage_notes(pair: Pair, attacks: list[AttackResult], parts: dict[str, float]) -> tuple[str, ...]:
    """Return notes on what row order and doubtful columns add to linkage."""
    notes = []
    if "row_order" in parts:
        columns = ", ".join(dict.fromkeys(order.column for order in row_orders(pair)))
        shuffled = max(value for name, value in parts.items() if name != "row_order")
        notes.append(
            f"rows are sorted by {columns}: linkage is {max(parts.values()):.3g} with the order of the rows, "
            f"{shuffled:.3g} once they are shuffled"
        )
    facts = facts_of(pair)
    if DOUBTFUL in facts.runs:
        changed = ", ".join(name for name, case in facts.cases.items() if case == "d")
        run = worst_attack(attacks, np.ones(pair.original.n, np.bool_)).run
        counted = "with" if run == DOUBTFUL else "without"
        notes.append(
            f"unmasked columns that differ from the original in some records: {changed}; linkage is the "
            f"larger value, {counted} them"
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
        text += f"; chance alone would give {_percent_text(score.random.overall)}"
    return text


def _percent_text(share: float) -> str:
    """Return a share as a percentage with two digits, three near 100."""
    return f"{100 * share:.2g}" if share < 0.995 else f"{100 * share:.3g}"
