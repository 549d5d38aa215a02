"""Scores of linkage attacks: run each attack once per pair, take the most successful, explain it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sdckit.core import checks
from sdckit.kernels import kd_tree
from sdckit.metrics.risk.chance_level import permutations
from sdckit.metrics.risk.linkage_attacks import (
    TOLERANCE,
    LinkageAttack,
    NearestAttack,
    WindowAttack,
    breaks_rules,
    cached_value,
    corrected,
    squared_lengths,
    standardised,
    tie_blocks_of_files,
    whitened,
)
from sdckit.metrics.risk.one_to_one import LARGEST, MatchingAttack
from sdckit.metrics.score import Score, Values, WorstAttack

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.kernels.jit import Bools, Floats
    from sdckit.metrics.pair import Pair

TO_ORIGINAL, TO_MASKED = DIRECTIONS = ("masked_to_original", "original_to_masked")
OUTLIERS = 0.02  # share of the records, those farthest from the mean, whose risk is reported separately


@dataclass(frozen=True)
class AttackKind:
    """A kind of linkage attack: how to prepare it, texts that describe it, and which pairs it applies to.

    `name` is that of the metric, where the attack is also a metric; `title` is a short name for legends;
    `does` describes the attack in a sentence.
    """

    name: str
    make: Callable[[Pair, dict[str, Any]], LinkageAttack]
    title: str
    does: str
    suits: Callable[[Pair], bool] = lambda pair: True  # noqa: ARG005 - any pair


ATTACKS: dict[str, AttackKind] = {}  # filed by `@linkage_attack`, in the order of their definition
Make = TypeVar("Make", bound="Callable[[Pair, dict[str, Any]], LinkageAttack]")


def linkage_attack(title: str, does: str, **more: Any) -> Callable[[Make], Make]:
    """Return a decorator that files a function as the attack of its name, for `linkage` to try."""

    def register(make: Make) -> Make:
        """File the function in `ATTACKS` under its own name and return it unchanged."""
        ATTACKS[make.__name__] = AttackKind(make.__name__, make, title, does, **more)
        return make

    return register


def _nearest_attack(
    space: Callable[[Pair], tuple[Floats, Floats]], pair: Pair, options: dict[str, Any]
) -> NearestAttack:
    """Return the nearest-record attack on a pair, after transforming both files by `space`."""
    ours, theirs = space(pair)
    if options["direction"] == TO_MASKED:
        return NearestAttack(theirs, ours, options["places"])
    fixed = space is not whitened and pair.complete
    ground = standardised if space is corrected else space  # edit rules do not move originals
    store, name = pair.original.cache, f"tree {ground.__name__}"
    tree = cached_value(store, name, lambda: kd_tree.build(ours)) if fixed else None
    return NearestAttack(ours, theirs, options["places"], tree)


@linkage_attack("nearest record", "picks the nearest record{each}")
def dbrl(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the nearest record in standard deviations."""
    return _nearest_attack(standardised, pair, options)


@linkage_attack(
    "nearest by Mahalanobis distance",
    "picks the nearest record{each}, by the Mahalanobis distance of the release,",
)
def dbrl_mahalanobis(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the nearest record in the Mahalanobis distance of the release."""
    return _nearest_attack(whitened, pair, options)


def rank_files(pair: Pair) -> tuple[Floats, Floats]:
    """Return both files as mid-ranks."""
    ours, theirs = tie_blocks_of_files(pair)
    return ours.mid_ranks, theirs.mid_ranks


@linkage_attack("nearest ranks", "picks the record with the nearest ranks{each}")
def dbrl_rank(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the record with the nearest mid-ranks."""
    return _nearest_attack(rank_files, pair, options)


@linkage_attack(
    "guess in the window",
    "guesses among the records within the published window of ranks{each}",
    suits=lambda pair: pair.window is not None,
)
def window(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack within the published move in ranks, or within the option `within` if set."""
    known = pair.window
    within = checks.whole_share(options["within"], pair.original.n)
    width = within if options["within"] or known is None else known
    return _make_window_attack(pair, options, width)


def _make_window_attack(pair: Pair, options: dict[str, Any], width: Any) -> WindowAttack:
    """Return the attack that links each record to one at most `width` ranks away, in the given direction."""
    ours, theirs = tie_blocks_of_files(pair)
    return WindowAttack(*((ours, theirs) if options["direction"] == TO_ORIGINAL else (theirs, ours)), width)


@linkage_attack(
    "one-to-one matching",
    "links all records at once, one to one,",
    suits=lambda pair: pair.original.n <= LARGEST,
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
    return MatchingAttack(*there, options["distance"])


@linkage_attack(
    "nearest record within the rules",
    "projects each published record onto the known edit rules and picks the nearest record{each}",
    suits=breaks_rules,
)
def rules(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack by the nearest record to each published one moved to where the rules hold."""
    return _nearest_attack(corrected, pair, options)


@linkage_attack(
    "guess in the window, rules apart",
    "guesses among the records within the published window, rules apart,{each}",
    suits=lambda pair: pair.window is not None and pair.rules is not None,
)
def window_rules(pair: Pair, options: dict[str, Any]) -> LinkageAttack:
    """Return the attack within the published move, ignoring columns that edit rules name.

    Where a release obeys rules, they may have moved values beyond the window.
    """
    named = () if pair.rules is None else pair.rules.columns
    known = 0.0 if pair.window is None else pair.window
    width = np.where([name in named for name in pair.columns], float(pair.original.n), known)
    return _make_window_attack(pair, options, width)


DEFAULTS = {"direction": TO_ORIGINAL, "places": 1, "within": 0.0, "distance": "standardised"}


class AttackResult:
    """Result of one attack on a pair: the success on each record, and what chance would give."""

    def __init__(self, pair: Pair, name: str, options: dict[str, Any]) -> None:
        self.pair, self.name = pair, name
        self.direction = options["direction"]
        self.attack = ATTACKS[name].make(pair, options)
        self.credits = self.attack.credits(np.arange(pair.original.n))

    def mean(self, values: Floats, chosen: Bools) -> float:
        """Return the mean of the values over the chosen records; NaN where none is chosen."""
        return float(values[chosen].mean()) if chosen.any() else math.nan

    @cached_property
    def unrelated(self) -> list[Floats]:
        """Success of each guess, from 0 to 1, for several random assignments of the true records."""
        return [self.attack.credits(truth).expected for truth in permutations(self.pair.original.n)]

    def chances(self, chosen: Bools) -> Floats:
        """Return the mean success on the chosen originals for each random assignment of true records."""
        forward = self.direction == TO_ORIGINAL
        orders = permutations(self.pair.original.n)
        return np.array(
            [
                self.mean(expected, chosen[truth] if forward else chosen)
                for truth, expected in zip(orders, self.unrelated, strict=True)
            ]
        )


def attack_result(pair: Pair, name: str, options: dict[str, Any]) -> AttackResult:
    """Return the result of the named attack on a pair, computed once for each choice of options."""
    full = DEFAULTS | options
    return cached_value(pair.cache, f"{name} {sorted(full.items())}", lambda: AttackResult(pair, name, full))


def records_with_values(pair: Pair) -> Bools:
    """Return True for each record with an original value; False for all if no cell can be compared."""
    if not pair.counts.both.any():
        return np.zeros(pair.original.n, np.bool_)
    return np.asarray((~pair.original.missing).any(axis=1))


def outliers(pair: Pair, share: float = OUTLIERS) -> Bools:
    """Return True for the share of records farthest from the original's mean; ties all count."""
    distances = squared_lengths(pair)
    known = records_with_values(pair)
    if not known.any():
        return known
    count = max(round(share * int(known.sum())), 1)
    border = np.partition(distances[known], -count)[-count]
    return known & (distances >= border * (1 - TOLERANCE))


def score_attacks(
    attacks: list[AttackResult], chosen: Bools, *, parts: dict[str, float], detail: bool, per_record: bool
) -> Score:
    """Return a Score of the attack that links most of the chosen records; `parts` are stored in it."""
    pair = attacks[0].pair
    none = np.full(pair.p, np.nan)
    means = [attack.mean(attack.credits.expected, chosen) for attack in attacks]
    place = int(np.nanargmax(means)) if not np.isnan(means).all() else 0
    worst = attacks[place]
    extra: dict[str, Any] = {}
    if detail:
        chances = np.max([attack.chances(chosen) for attack in attacks], axis=0)
        extra["random"] = Values(float(chances.mean()), none)
        low, high = (
            worst.mean(values, chosen) for values in (worst.credits.strict, worst.credits.optimistic)
        )
        if low < high:
            extra |= {"tie_low": Values(low, none), "tie_high": Values(high, none)}
    if per_record:
        extra["records"] = np.where(chosen, worst.credits.expected, np.nan)
    return Score(
        Values(means[place], none),
        pair.counts.both,
        np.zeros(pair.p, np.int64),
        parts=parts,
        attack=WorstAttack(worst.name, worst.direction),
        **extra,
    )


def score_attack(
    name: str, pair: Pair, *, detail: bool = False, per_record: bool = False, **options: Any
) -> Score:
    """Return the score of the named attack on all records."""
    attack = attack_result(pair, name, options)
    chosen = records_with_values(pair)
    parts = {
        "strict": attack.mean(attack.credits.strict, chosen),
        "optimistic": attack.mean(attack.credits.optimistic, chosen),
        "outliers": attack.mean(attack.credits.expected, outliers(pair)),
    }
    if isinstance(attack.attack, MatchingAttack):
        parts["mean_distance"] = attack.attack.mean_distance
    return score_attacks([attack], chosen, parts=parts, detail=detail, per_record=per_record)


def applicable_attacks(pair: Pair, direction: str) -> list[AttackResult]:
    """Return the results of all attacks that apply to the pair, in one direction."""
    wanted = [name for name, kind in ATTACKS.items() if kind.suits(pair)]
    return [attack_result(pair, name, {"direction": direction}) for name in wanted]


def score_linkage(
    pair: Pair,
    *,
    direction: str = TO_ORIGINAL,
    share: float | None = None,
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """Return the score of the most successful attack on all records, or on a share of outliers."""
    attacks = applicable_attacks(pair, direction)
    chosen = records_with_values(pair) if share is None else outliers(pair, share)
    parts = {attack.name: attack.mean(attack.credits.expected, chosen) for attack in attacks}
    return score_attacks(attacks, chosen, parts=parts, detail=detail, per_record=per_record)


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
        text = f"the worst of {len(score.parts)} attacks ({name}): {text}"
    if score.random is not None:
        text += f"; chance alone would give {_percent_text(score.random.overall)}"
    return text


def _percent_text(share: float) -> str:
    """Return a share as a percentage with two digits, three near 100."""
    return f"{100 * share:.2g}" if share < 0.995 else f"{100 * share:.3g}"
