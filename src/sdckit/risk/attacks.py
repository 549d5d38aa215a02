"""Linkage attacks on a pair of files: which are tried, what each finds, and the score of the best.

Every attack runs inside the facts of the pair (see `facts`), in one direction or in both. Its credit is
shared on both sides: among targets that are equally good, and among queries that look the same to the attack.
A record's credit is the same whether all records are looked up or some: those that look the same share, so
all of them are looked up where one is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.core.cells import class_numbers
from sdckit.core.text import listed
from sdckit.kernels.candidates import Side
from sdckit.metrics.pair import Pair
from sdckit.metrics.score import Values, WorstAttack, estimate_of_largest
from sdckit.risk import distances, intruder, literature
from sdckit.risk.beside import row_orders
from sdckit.risk.distances import Credits, RecordClasses, mean_or_nan
from sdckit.risk.facts import DIRECTIONS, TO_ORIGINAL, Facts, facts_of, require_tied_rows
from sdckit.risk.law import LARGE
from sdckit.risk.shadows import OF_LARGE
from sdckit.risk.units import ROW_ORDER, read_units, row_credits_of_units, shows_units

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.arrays import Bools, Floats, Ints, UInt64s
    from sdckit.metrics.score import Queries, Score
    from sdckit.risk.literature import LinkageAttack

BOTH = "both"
ALL, NEAREST = "all", "nearest"  # attacks that `linkage` tries: those that know the law, or the literature's
OUTLIERS = 0.02  # share of the records, those farthest from the mean, whose risk is reported separately
LAWS = ("shadows", "folds", "other_columns", "row_order")  # they link all records at once, or each by itself
OF_LAWS = (*LAWS, "rows_of_units")  # what chance finds by them is what a plain guess finds
FILES = ("standardised", "blocks", "breaks_rules", "untouched_of")  # what is kept of a pair beside its facts
DEFAULTS: dict[str, Any] = {
    "direction": TO_ORIGINAL,
    "places": 1,
    "within": 0.0,
    "distance": "standardised",
    "one_to_one": False,
}


@dataclass(frozen=True)
class AttackKind:
    """A kind of linkage attack: a short name for legends and a sentence that describes it.

    `sees` says what of a query the attack sees, beside the facts: its cells, the points that it compares, or
    nothing. `symmetric` attacks are the same in both directions.
    """

    title: str
    does: str
    sees: Literal["cells", "points", "facts"] = "cells"
    symmetric: bool = False
    inside_facts: bool = True
    space: literature.Space | None = None  # of attacks by the nearest record


ATTACKS: dict[str, AttackKind] = {}  # each filed by itself, in the order in which they are tried
ATTACKS["dbrl"] = AttackKind("nearest record", "picks the nearest record{each}", space=distances.standardised)
ATTACKS["dbrl_mahalanobis"] = AttackKind(
    "nearest by Mahalanobis distance",
    "picks the nearest record{each}, by the Mahalanobis distance of the release,",
    sees="points",
    space=distances.whitened,
)
ATTACKS["dbrl_rank"] = AttackKind(
    "nearest ranks", "picks the record with the nearest ranks{each}", space=distances.mid_ranks
)
ATTACKS["window"] = AttackKind(
    "guess in the window",
    "guesses among the records within the published window of ranks{each}",
    inside_facts=False,
)
ATTACKS["matching"] = AttackKind(
    "one-to-one matching", "links all records at once, one to one,", symmetric=True
)
ATTACKS["guess"] = AttackKind(
    "plain guess", "guesses among all the records that the facts leave{each}", sees="facts"
)
ATTACKS["shadows"] = AttackKind(
    "law learnt by masking again",
    "masks the file himself many times, learns how records differ from their originals and picks the "
    "most probable record{each}",
)
ATTACKS["folds"] = AttackKind(
    "law learnt from the release",
    "learns from other records how published ones differ from their originals and picks the most "
    "probable record{each}",
)
ATTACKS["other_columns"] = AttackKind(
    "other columns",
    "learns from other records how columns that were not masked differ from their originals, or follow from "
    "what he knows, and picks the most probable record{each}",
)
ATTACKS["row_order"] = AttackKind(
    "law and row order",
    "takes the place of a row in the sorted file for the rank of its value, too, and picks the most "
    "probable record{each}",
)
ATTACKS["rows_of_units"] = AttackKind(
    "units by the law",
    "reads all rows of a unit together, aligned by the unmasked columns, and picks the most probable "
    "unit{each}",
    symmetric=True,
)


def prepared_attack(pair: Pair, name: str, options: dict[str, Any]) -> LinkageAttack:
    """Return an attack prepared from the pair; raise NotApplicable to match more than 2,000 records."""
    direction, space = options["direction"], ATTACKS[name].space
    if space is not None:
        return literature.nearest_attack(pair, space, direction, options["places"])
    if name == "window":
        return literature.window_attack(pair, direction, options["within"])
    if name == "guess":
        return literature.PlainGuess(facts_of(pair), direction)
    if name == "rows_of_units":
        return intruder.LawAttack(lambda rows: row_credits_of_units(pair)[rows])
    if name in LAWS:
        order = name == "row_order"
        by = next(iter(intruder.laws_of(pair)), "other_columns") if order else name
        return intruder.law_attack(pair, by, direction, one_to_one=options["one_to_one"], order=order)
    return literature.matching_attack(pair, direction, options["distance"])


def attacks_tried(pair: Pair, attacks: str) -> list[str]:
    """Return the names of all attacks that suit a pair, or of the literature's, which know no law."""
    cells = pair.disclosure.paired and bool(pair.known_variables)
    if attacks == NEAREST:
        near = [name for name, kind in ATTACKS.items() if cells and kind.space is not None]
        small = cells and pair.original.n <= literature.LARGEST
        return [*near, *(["matching"] if small else []), "guess"]
    found = ["dbrl"] if cells else []
    found += ["guess", *intruder.laws_of(pair)]
    found += ["row_order"] if intruder.reads_order(pair) else []
    return found + (["rows_of_units"] if shows_units(pair) else [])


def applicable_attacks(pair: Pair, direction: str, attacks: str = ALL) -> Iterator[AttackResult]:
    """Yield the results of all attacks on the pair, or of the literature's, in one direction or both."""
    directions = DIRECTIONS if direction == BOTH else (direction,)
    for name in attacks_tried(pair, attacks):
        for way in directions[:1] if ATTACKS[name].symmetric else directions:
            for one_to_one in (True, False) if name in LAWS else (False,):
                yield attack_result(pair, name, {"direction": way, "one_to_one": one_to_one})


def attack_result(pair: Pair, name: str, options: dict[str, Any]) -> AttackResult:
    """Return the result of the named attack on a pair, computed once for each choice of options."""
    full = DEFAULTS | options
    return distances.cached_value(
        pair.cache, f"{name} {sorted(full.items())}", lambda: AttackResult(pair, name, full)
    )


# --- the result of one attack ----------------------------------------------------------------------------


class AttackResult:
    """Result of one attack on a pair: the success on each record, and what chance would give."""

    def __init__(self, pair: Pair, name: str, options: dict[str, Any]) -> None:
        self.pair, self.name, self.options = pair, name, options
        self.direction: str = options["direction"]
        self.kind, self.facts = ATTACKS[name], facts_of(pair)

    @cached_property
    def attack(self) -> LinkageAttack:
        """The attack, prepared from the pair."""
        return prepared_attack(self.pair, self.name, self.options)

    def equal_records(self, rows: Ints) -> tuple[Ints, RecordClasses]:
        """Return all records that look like one of some records, those included, and their classes."""
        if self.kind.sees == "facts":  # true records are candidates: equal sets of them give equal credits
            return rows, RecordClasses(np.arange(rows.size))
        marks = marks_of_queries(self.pair, self.kind.sees, self.direction)
        members = distances.rows_like(marks, rows)
        marks = marks[members]
        if members.size > rows.size and self.facts.tie_rows:
            marks = distances.row_marks(marks, self.facts.candidates(self.direction, members)[1])
        return members, RecordClasses(marks)

    @cached_property
    def credits(self) -> Credits:
        """The success on each record."""
        return self.shared_credits(np.arange(self.pair.original.n))

    def shared_credits(self, truth: Ints) -> Credits:
        """Return the success on each record if these were the true ones, shared among equal queries."""
        classes = classes_of_queries(self.pair, self.kind.sees, self.direction)
        return classes.shared(self.attack.credits(truth))

    @cached_property
    def known(self) -> tuple[Bools, Credits]:
        """True for each record that was drawn and looked up, and its success."""
        n = self.pair.original.n
        return np.zeros(n, np.bool_), Credits(*np.empty((3, n)))

    def credits_of(self, queries: Queries) -> Credits:
        """Return the success on the records that are looked up."""
        n = self.pair.original.n
        if queries.sample is None and (self.pair.sample is None or queries.records == n):
            return Credits(*(values[queries.rows] for values in self.credits))
        # All outliers of a large file may be fewer than are drawn: nobody else is looked up for them.
        done, found = self.known
        rows = np.arange(n)[queries.rows]
        if not done[rows].all():
            members, classes = self.equal_records(rows[~done[rows]])
            done[members] = True
            shared = classes.shared(self.attack.credits(members, members))
            for values, new in zip(found, shared, strict=True):
                values[members] = new
        return Credits(*(values[rows] for values in found))

    @cached_property
    def unrelated(self) -> list[tuple[Ints, Floats]]:
        """Random assignments of true records, inside facts that are equalities, and the success on each."""
        inside = self.kind.inside_facts and self.facts.tie_rows
        truths = distances.permutations(self.pair.original.n, self.facts.ours.blocks if inside else None)
        return [(truth, self.shared_credits(truth).expected) for truth in truths]

    def chances(self, queries: Queries) -> Floats:
        """Return the mean success on the originals looked up for each random assignment of true records.

        A true record that is drawn from all candidates is found by any attack with the probability of a plain
        guess, so that this is the level where facts are intervals and records cannot be permuted freely, and
        on a sample, which is too small to see such small levels.
        """
        sampled, inside, places = queries.sample is not None, self.kind.inside_facts, self.options["places"]
        if sampled and not inside:
            return np.array([places / self.pair.original.n])
        rows = np.arange(self.pair.original.n)[queries.rows]
        if not rows.size:
            return np.array([np.nan])
        if sampled or (inside and not self.facts.equalities) or self.name in OF_LAWS:
            guess = literature.PlainGuess(self.facts, self.direction).credits(rows, rows)
            return np.array([np.minimum(places * guess.expected, 1.0).mean()])
        forward, chosen = self.direction == TO_ORIGINAL, queries.rows
        found = [expected[chosen[truth] if forward else chosen] for truth, expected in self.unrelated]
        return np.array([expected.mean() for expected in found])


@distances.once
def marks_of_queries(pair: Pair, sees: str, direction: str) -> UInt64s:
    """Return a number for each query, equal for equal cells, or for equal points that are compared."""
    ours, theirs = distances.whitened(pair) if sees == "points" else distances.known_files(pair)
    return distances.row_marks(theirs if direction == TO_ORIGINAL else ours)


@distances.once
def classes_of_queries(pair: Pair, sees: str, direction: str) -> RecordClasses:
    """Return classes of queries with the same candidates and, unless facts alone are seen, equal marks."""
    facts = facts_of(pair)
    if sees == "facts":
        return RecordClasses(facts.candidates(direction)[1])
    marks = marks_of_queries(pair, sees, direction)
    classes = RecordClasses(marks)
    if classes.alone or not facts.tie_rows:
        return classes
    return RecordClasses(distances.row_marks(marks, facts.candidates(direction)[1]))


# --- scores ----------------------------------------------------------------------------------------------


def score_attacks(
    attacks: Sequence[AttackResult],
    queries: Queries,
    *,
    parts: dict[str, float],
    detail: bool,
    per_record: bool,
    notes: tuple[str, ...] = (),
    tried: int = 1,
) -> Score:
    """Return a Score of the attack that links most of the queries, the first of equals.

    `parts` are stored in it; `tried` is the number of attacks of which it is the worst.
    """
    pair = attacks[0].pair
    means = [mean_or_nan(attack.credits_of(queries).expected) for attack in attacks]
    worst = attacks[int(np.nanargmax(means)) if not np.isnan(means).all() else 0]
    found = worst.credits_of(queries)
    extra: dict[str, Any] = {}
    if detail:
        levels = [attack.chances(queries) for attack in attacks]
        size = max(level.size for level in levels)
        chances = np.max([np.broadcast_to(level, size) for level in levels], axis=0)
        extra["random"] = float(chances.mean())
        low, high = mean_or_nan(found.strict), mean_or_nan(found.optimistic)
        if low < high:
            none = np.full(pair.p, np.nan)
            extra |= {"tie_low": Values(low, none), "tie_high": Values(high, none)}
    if per_record:
        extra["records"] = queries.scatter(found.expected, pair.original.n)
    return distances.score_of_file(
        pair,
        mean_or_nan(found.expected),
        parts=parts,
        attack=WorstAttack(worst.name, worst.direction),
        notes=notes,
        estimate=estimate_of_largest(float(found.expected.sum()), queries, tried),
        **extra,
    )


def outliers(pair: Pair, share: float = OUTLIERS) -> Bools:
    """Return True for the share of records farthest from the original's mean; ties all count."""
    known = np.asarray((~pair.original.missing).any(axis=1))
    if not known.any():
        return ~known
    lengths = distances.squared_lengths(pair)
    count = max(round(share * int(known.sum())), 1)
    border = np.partition(lengths[known], -count)[-count]
    return known & (lengths >= border * (1 - literature.TOLERANCE))


def score_attack(
    name: str, pair: Pair, *, detail: bool = False, per_record: bool = False, **options: Any
) -> Score:
    """Return the score of the named attack on all records."""
    if not pair.known_variables:
        raise checks.NotApplicable(f"{name} needs a variable that the intruder knows; use linkage")
    result = attack_result(pair, name, options)
    comparable = bool(pair.counts.both[pair.known_variables].any())  # else there is nothing to compare
    queries = pair.queries(np.full(pair.original.n, comparable))
    found = result.credits_of(queries)
    parts = {
        "strict": mean_or_nan(found.strict),
        "optimistic": mean_or_nan(found.optimistic),
        "outliers": mean_or_nan(result.credits_of(pair.queries(outliers(pair))).expected),
    }
    if isinstance(result.attack, literature.MatchingAttack):
        parts["mean_distance"] = result.attack.mean_distance
    return score_attacks([result], queries, parts=parts, detail=detail, per_record=per_record)


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
    require_tied_rows(
        pair,
        "linkage",
        "masked cells belong to no original record and neither an unmasked column nor a missing cell ties "
        "rows to records",
    )
    every = list(applicable_attacks(pair, direction, attacks))
    queries = pair.queries(np.ones(pair.original.n, np.bool_) if share is None else outliers(pair, share))
    weak: dict[AttackResult, float] = {}
    if queries.sample is not None:
        weak = distances.cached_value(pair.cache, f"weak {direction} {attacks} {share}", dict)
    strong = [attack for attack in every if attack not in weak]
    means = weak | {attack: mean_or_nan(attack.credits_of(queries).expected) for attack in strong}
    parts: dict[str, float] = {}
    for attack in every:
        parts[attack.name] = max(means[attack], parts.get(attack.name, means[attack]))
    notes = () if share is not None else linkage_notes(pair, parts)
    more: dict[str, Any] = {"parts": parts, "detail": detail, "per_record": per_record, "notes": notes}
    score = score_attacks(strong, queries, tried=len(every), **more)
    for attack in strong:
        own, largest = estimate_of_largest(means[attack] * queries.drawn, queries), score.estimate
        if own is not None and largest is not None and own.high < largest.low:  # no more is drawn for it
            weak[attack] = means[attack]
    return score


def linkage_notes(pair: Pair, parts: dict[str, float]) -> tuple[str, ...]:
    """Return notes on what row order and changed columns add to linkage."""
    notes, facts = [], facts_of(pair)
    if "row_order" in parts:
        columns = ", ".join(dict.fromkeys(order.column for order in row_orders(pair)))
        shuffled = max(value for name, value in parts.items() if name != "row_order")
        notes.append(
            f"rows are sorted by {columns}: linkage is {max(parts.values()):.3g} with the order of the rows, "
            f"{shuffled:.3g} once they are shuffled"
        )
    units = read_units(pair) if "rows_of_units" in parts else None
    if units is not None and units.shown_by:
        remedies = [
            "shuffle the rows" if name == ROW_ORDER else f"drop or mask {name}" for name in units.shown_by
        ]
        notes.append(
            f"rows of one {units.column}, which is not published, are shown by {listed(units.shown_by)}, and "
            f"linkage reads them together: {listed(remedies)}, or name {units.column} as unit"
        )
    if intruder.looked_up_singly(pair):
        notes.append(
            f"of a file above {LARGE:,} records the law is learnt from {OF_LARGE} shadows, and records are "
            "looked up one by one"
        )
    if changed := ", ".join(name for name, case in facts.cases.items() if case in "de"):
        notes.append(
            f"unmasked columns that differ from the original in some records: {changed}; the "
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
    each = " for each published one" if forward else " among the published ones"
    does = ATTACKS[name].does.format(each=each)
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


# --- several releases of one file ------------------------------------------------------------------------


class JointAttack(NamedTuple):
    """The result of an attack on releases that are known together, and what it attacks."""

    label: str  # such as "dbrl of release 2" or "dbrl of the mean"
    result: AttackResult


def attacks_together(pairs: Sequence[Pair]) -> Iterator[JointAttack]:
    """Yield the results of all attacks on several releases by an intruder who can align their records.

    What one release leaves open another may tell: the facts of all of them hold at once, and the
    log-likelihoods of their laws add up, so that noise which is drawn anew for each release averages out.
    """
    shared = common_facts([facts_of(pair) for pair in pairs])
    for number, pair in enumerate(pairs, 1):
        for result in applicable_attacks(_inside(pair, shared), BOTH):
            if result.name not in ("shadows", "folds"):
                guess = result.name == "guess"  # the same for all releases
                yield JointAttack("guess" if guess else f"{result.name} of release {number}", result)
    read = [pair for pair in pairs if "folds" in intruder.laws_of(pair)]  # of others, the facts say all
    for by in ("shadows", "folds") if read and len(pairs) > 1 else ():
        cells = np.mean([pair.masked for pair in read], axis=0)  # rows that are alike in all releases share
        joint = _inside(Pair(read[0].original, np.asfortranarray(cells), table=read[0].table), shared)
        found = intruder.joint_posterior(read, shared.sides(), by)
        for direction in DIRECTIONS:
            for one_to_one in (True, False):
                result = AttackResult(joint, by, DEFAULTS | {"direction": direction})
                credit = intruder.credit_of_links(found, direction, one_to_one=one_to_one)
                result.attack = intruder.LawAttack(credit.__getitem__)
                yield JointAttack(f"{by} of all releases", result)


def _inside(pair: Pair, shared: Facts) -> Pair:
    """Return a pair whose attacks run inside the shared facts; its own blocks are kept."""
    own = pair.cache.get("risk: facts_of")
    kept = {f"risk: {name}": pair.cache[f"risk: {name}"] for name in FILES if f"risk: {name}" in pair.cache}
    facts = shared if own is None else replace(shared, blocks=own.blocks)
    return replace(pair, cache={**kept, "risk: facts_of": facts})


def common_facts(found: Sequence[Facts]) -> Facts:
    """Return the facts that several releases give together; doubtful columns (case d) are left out."""
    blocks = class_numbers([facts.ours.blocks for facts in found], found[0].n)
    ours, theirs = (
        Side(
            blocks, *(np.ascontiguousarray(np.concatenate(ends, axis=1)) for ends in zip(*sides, strict=True))
        )
        for sides in ([side[1:] for side in each] for each in zip(*(f.sides() for f in found), strict=True))
    )
    return Facts(ours, theirs)
