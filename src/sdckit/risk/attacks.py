"""Linkage attacks on a pair of files: which are tried, what each finds, and the score of the best.

Every attack runs inside the facts of the pair (see `facts`), in one direction or in both. Its credit is
shared on both sides: among targets that are equally good, and among queries that look the same to the attack.
A record's credit is the same whether all records are looked up or some: those that look the same share, so
all of them are looked up where one is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.core.cells import class_numbers
from sdckit.core.registry import Parameter
from sdckit.core.text import listed, plural
from sdckit.kernels.candidates import Side
from sdckit.metrics.pair import Pair, metric
from sdckit.metrics.score import LOOKED_UP, QuerySample, Score, Values, WorstAttack, estimate_of_largest
from sdckit.risk import distances, intruder, literature, units
from sdckit.risk.beside import row_orders
from sdckit.risk.distances import HANDBOOK, OF_ROWS, Credits, RecordClasses, mean_or_nan
from sdckit.risk.facts import DIRECTIONS, TO_ORIGINAL, Facts, facts_of, fits, require_tied_rows
from sdckit.risk.law import LARGE
from sdckit.risk.posterior import SURE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.arrays import Bools, Floats, Ints, UInt64s
    from sdckit.metrics.score import Queries
    from sdckit.risk.literature import LinkageAttack

BOTH = "both"
ALL, NEAREST = "all", "nearest"  # attacks that `linkage` tries: those that know the law, or the literature's
NEARLY_CERTAIN = 0.9
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
    return found + (["rows_of_units"] if units.reads_whole_units(pair) else [])


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
        """The attack, prepared from the pair; raise NotApplicable to match more than 2,000 records."""
        pair, name, options, direction = self.pair, self.name, self.options, self.direction
        if self.kind.space is not None:
            return literature.nearest_attack(pair, self.kind.space, direction, options["places"])
        if name == "window":
            return literature.window_attack(pair, direction, options["within"])
        if name == "guess":
            return literature.PlainGuess(self.facts, direction)
        if name == "matching":
            return literature.matching_attack(pair, direction, options["distance"])
        if name == "rows_of_units":
            return intruder.LawAttack(lambda rows: units.row_credits_of_units(pair)[rows])
        order = name == "row_order"
        by = next(iter(intruder.laws_of(pair)), "other_columns") if order else name
        return intruder.law_attack(pair, by, direction, one_to_one=options["one_to_one"], order=order)

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
        extra["random"] = float(reduce(np.maximum, levels).mean())
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
    read = units.read_units(pair) if "rows_of_units" in parts else None
    if read is not None and read.shown_by:
        remedies = [
            "shuffle the rows" if name == units.ROW_ORDER else f"drop or mask {name}"
            for name in read.shown_by
        ]
        notes.append(
            f"rows of one {read.column}, which is not published, are shown by {listed(read.shown_by)}, and "
            f"linkage reads them together: {listed(remedies)}, or name {read.column} as unit"
        )
    if intruder.looked_up_singly(pair):
        notes.append(
            f"of a file above {LARGE:,} records the law is learnt from {intruder.OF_LARGE} shadows, and "
            "records are looked up one by one"
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
    both = zip(*(facts.sides() for facts in found), strict=True)
    ends = (map(np.hstack, zip(*(side[1:] for side in sides), strict=True)) for sides in both)
    ours, theirs = (Side(blocks, *of_side) for of_side in ends)
    return Facts(ours, theirs)


# --- the metrics -----------------------------------------------------------------------------------------

DIRECTION = Parameter("direction", str, TO_ORIGINAL, "whose records are looked up", choices=DIRECTIONS)
EITHER = Parameter(
    "direction", str, BOTH, "whose records are looked up, or both in turn", choices=(BOTH, *DIRECTIONS)
)
KNOWING = Parameter(
    "attacks",
    str,
    ALL,
    "all, or those of the literature, which look for the nearest record and know no law",
    choices=(ALL, NEAREST),
)
PLACES = Parameter("places", int, 1, "how many nearest records the intruder may name", low=1)
WITHIN = Parameter("within", float, 0.0, "largest move in ranks, as a share of the records", low=0, high=1)
DISTANCE = Parameter(
    "distance",
    str,
    "standardised",
    "in standard deviations, as shares of the pooled range, or raw",
    choices=literature.DISTANCES,
)
SHARE = Parameter("share", float, OUTLIERS, "share of the records that count as outliers", low=0.0001, high=1)
LINKAGE: dict[str, Any] = {**OF_ROWS, "place": 10, "in_blocks": True}
HEADLINE: dict[str, Any] = {
    **LINKAGE,
    "shown": "headline",
    "any_data": True,
    "informed": True,
    "paired": False,
    "reference": HANDBOOK,
}
NEAREST_RECORD: dict[str, Any] = {
    **LINKAGE,
    "bounded_by_method": True,
    "explain": explain_linkage,
    "parameters": (DIRECTION, PLACES),
}


@metric(
    title="linkage, the worst of several attacks",
    limit_words="an intruder may find at most # of 100 records",
    bounded_by_method=True,
    score=score_linkage,
    explain=partial(explain_linkage, worst=True),
    parameters=(EITHER, KNOWING),
    **HEADLINE,
)
def linkage(original: Any, masked: Any, *, direction: str = BOTH, attacks: str = ALL) -> float:
    """Share of records that an intruder re-identifies with the best of several attacks; 0 if none.

    0 means that no attack finds a single record, 1 that one of them finds all. This is the risk to limit.

    Parameters
    ----------
    original, masked
        As for `dbrl`.
    direction : str
        "both", the larger of the two; or one of them, as for `dbrl`.
    attacks : str
        "all"; or "nearest", those of the literature, which know no law: `dbrl`, `dbrl_mahalanobis`,
        `dbrl_rank`, `matching` (up to 2,000 records) and a plain guess. They find too little.

    Returns
    -------
    float
        The largest of: links by the law of the masking, learnt by masking the file again and again, or from
        other records of the release, all at once (one to one) or each by itself; the same with the order of
        rows that are sorted by a column or by a sum, and with all rows of a unit together; `dbrl`; and a
        plain guess. Unmasked columns with wrong cells, and published ones that he does not know but that
        follow from known ones, are read with each of them.

    Notes
    -----
    All attacks choose among the records that the facts leave: known columns that were not masked, places of
    missing cells, and what the method says of itself (`evaluate(method=...)`): zeros kept, a window of ranks,
    a rounding base, or no randomness, so that it can be run again. Equal records share the credit, in the
    file that is looked up and in the file that is searched. Of files above 20,000 records, 5,000 are looked
    up, each by itself, and what one-to-one links would add is measured on a part of the file.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.linkage([2.0, 4.0, 1.0, 3.0], [1.5, 3.5, 1.5, 3.5])
    0.5
    """


@metric(
    title="linkage of outliers",
    limit_words="an intruder may find at most # of 100 outlying records",
    bounded_by_method=True,
    score=partial(score_linkage, share=OUTLIERS),
    explain=partial(explain_linkage, worst=True, whom=" among the records farthest from the centre"),
    parameters=(EITHER, KNOWING, SHARE),
    **HEADLINE,
)
def linkage_outliers(
    original: Any, masked: Any, *, direction: str = BOTH, attacks: str = ALL, share: float = OUTLIERS
) -> float:
    """Share of outlying records that an intruder re-identifies with the best of several attacks; 0 if none.

    0 means that no attack finds an outlier, 1 that one of them finds all. A mean over all records hides
    them: noise that protects most records can leave the few largest recognisable.

    Parameters
    ----------
    original, masked, direction, attacks
        As for `linkage`.
    share : float
        Share of the records that count: those with the largest sum of squared standardised values in the
        original, at least one, and all that tie with the last of them.

    Returns
    -------
    float
        As for `linkage`, over these records.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.linkage_outliers([1.0, 2.0, 3.0, 40.0], [2.0, 3.0, 1.0, 41.0])
    1.0
    """


# --- sure links ------------------------------------------------------------------------------------------


class SureLinks(NamedTuple):
    """Probability that the intruder gives to each record's true original, and what he claims to know.

    `claimed` is the number of rows that he names somebody for with a probability above one half.
    """

    truth: Floats
    claimed: int


@distances.once
def sure_links(pair: Pair) -> SureLinks:
    """Return the sure links of a whole file, by the law that exposes more records; without one, by facts."""
    laws = intruder.laws_of(pair)
    found = [*(_sure_links_by(pair, by) for by in laws), _by_facts(pair)]
    found += [_sure_links_by(pair, "other_columns")] if not laws and intruder.reads_order(pair) else []
    if units.reads_whole_units(pair) and intruder.runs_again(pair):
        chances = units.row_chances_by_facts(pair)
        found.append(SureLinks(chances, int((chances > SURE).sum())))
    for by in (
        laws if units.reads_whole_units(pair) else ()
    ):  # rows whose unit is found by all its rows together
        links, numbers = units.unit_posterior(pair, by), units.numbers_read(pair)
        truth = links.of_truth(links.bethe)[numbers]
        found.append(SureLinks(truth, int(np.isin(numbers, links.links_claimed).sum())))
    return max(found, key=lambda one: (int((one.truth > SURE).sum()), float(np.nanmean(one.truth))))


def _sure_links_by(pair: Pair, by: str) -> SureLinks:
    """Return the sure links by one law; of a large file, those of single rows of a sample stand for all."""
    n, order = pair.original.n, bool(row_orders(pair))
    if intruder.proves_swaps(pair):
        return SureLinks(np.ones(n), n)
    if n <= LARGE:
        found = intruder.posterior_of(pair, by, order=order)
        return SureLinks(found.of_truth(found.bethe), len(found.links_claimed))
    rows = QuerySample(LOOKED_UP).order(n, pair.original.cache)[:LOOKED_UP]
    some = intruder.posterior_of_rows(pair, by, rows, order=order)
    truth = np.full(n, np.nan)
    truth[rows] = some.of_truth(some.plain)[rows]
    claimed = len(np.unique(some.pairs.rows[some.plain > SURE]))
    return SureLinks(truth, round(claimed * n / len(rows)))


def _by_facts(pair: Pair) -> SureLinks:
    """Return the sure links of a plain guess: records that the facts, or equal cells, single out."""
    facts = facts_of(pair)
    counts = facts.candidates(TO_ORIGINAL)[0]
    truth, sure = 1 / np.maximum(counts, 1), counts == 1
    small = pair.original.n < intruder.LEARNT_FROM and not intruder.runs_again(pair)
    if small and pair.disclosure.paired and pair.known_variables:
        ours, theirs = distances.known_files(pair)
        neither = np.isnan(theirs)[:, None] & np.isnan(ours)[None]
        equal = ((theirs[:, None] == ours[None]) | neither).all(axis=2) & ~neither.all(axis=2)
        every = np.arange(facts.n)
        equal &= fits(facts.ours, facts.theirs, every, every[:, None])
        named = equal.sum(axis=1) == 1
        truth[named] = equal.diagonal()[named]
        sure |= named
    return SureLinks(truth, int(sure.sum()))


def score_sure(pair: Pair, *, detail: bool = False, per_record: bool = False) -> Score:  # noqa: ARG001 - as all
    """Return the share of records that the intruder is sure about and right; their number among the parts."""
    require_tied_rows(pair, "linkage_sure")
    found = sure_links(pair.whole or pair)
    truth = found.truth if pair.rows is None else found.truth[pair.rows]
    judged = truth[~np.isnan(truth)]
    share = judged.size / truth.size
    exposed = int((judged > SURE).sum())
    return distances.score_of_file(
        pair,
        exposed / judged.size if judged.size else np.nan,
        records=truth if per_record else None,
        parts={
            "exposed": round(exposed / share),
            "exposed above 0.9": round(int((judged > NEARLY_CERTAIN).sum()) / share),
            "claimed": float(found.claimed) if pair.rows is None else np.nan,
        },
    )


def explain_sure(score: Score) -> str:
    """Return a sentence on how many records the intruder is sure about and right."""
    exposed, certain, claimed = (score.parts[name] for name in ("exposed", "exposed above 0.9", "claimed"))
    if not exposed:
        return "the intruder gives no true original a probability above one half"
    records = f"{exposed:.0f} {plural(int(exposed), 'record')}"
    text = f"the intruder gives the true originals of {records} a probability above one half, "
    text += f"of {certain:.0f} above 0.9"
    if claimed > 0:
        right = f"{100 * min(exposed / claimed, 1):.0f} of 100"
        text += f"; he is sure of {claimed:.0f} links, and {right} of these are right"
    return text


@metric(
    title="sure links, records that an intruder names and is sure of",
    limit_words="an intruder may be sure, and right, about at most # of 100 records",
    score=score_sure,
    explain=explain_sure,
    **HEADLINE,
)
def linkage_sure(original: Any, masked: Any) -> float:
    """Share of records that an intruder links with a probability above one half, and rightly; 0 if none.

    0 means that he is sure of nobody, or wrong; 1 that he knows everybody. `linkage` is a mean: where it is
    small, a few records may still be exposed. Never above `linkage`.

    Parameters
    ----------
    original, masked
        As for `linkage`.

    Returns
    -------
    float
        Share of the records whose true original has a posterior probability above 1/2. `evaluate` has among
        its parts the number of these exposed records, of those above 0.9, and of all links that the intruder
        is sure of; `per_record=True` gives each record's probability.

    Notes
    -----
    The probability is that of a one-to-one matching by belief propagation (Bethe), whose claims are right as
    often as they say, from the law of the masking; see `linkage`.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.linkage_sure([2.0, 4.0, 1.0, 3.0], [2.0, 4.0, 1.0, 3.0])
    1.0
    """


# --- single attacks -------------------------------------------------------------------------------------


@metric(
    title="DBRL, distance-based record linkage",
    score=partial(score_attack, "dbrl"),
    reference="Pagliuca & Seri 1999; Domingo-Ferrer & Torra 2001",
    **NEAREST_RECORD,
)
def dbrl(original: Any, masked: Any, *, direction: str = TO_ORIGINAL, places: int = 1) -> float:
    """Share of records re-identified by linking each to its nearest record; 0 if none.

    0 means that the nearest record is never the true one, 1 that it always is; chance alone gives 1/n.
    Not the whole risk: see `linkage`, which tries other attacks as well. Weights play no part.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be a `Microdata`.
    direction : str
        "masked_to_original": each published record is looked up among the originals;
        "original_to_masked": each original among the published ones.
    places : int
        The intruder may name so many nearest records; 2 gives the variant "first or second nearest".

    Returns
    -------
    float
        Mean credit of the records. If c records are strictly closer than the true one and t, the true one
        included, are equally close, the credit is min(1, (places - c) / t), and 0 for c >= places.

    Notes
    -----
    Euclidean distance; both files divided by the standard deviations of the original. Squared distances that
    differ by less than 1e-9 of their size are equal. Where cells are missing, the mean over the variables
    that both records have; records without any in common are the farthest. Records that look the same to the
    intruder share their credit. The search is among the records that facts leave: see `linkage`.

    References
    ----------
    Pagliuca & Seri 1999, Some results of individual ranking method on the system of enterprise accounts
    annual survey. Domingo-Ferrer & Torra 2001, A quantitative comparison of disclosure control methods for
    microdata.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.dbrl([1.0, 2.0, 3.0, 4.0], [1.2, 2.2, 3.8, 4.1])
    0.75
    >>> sdc.dbrl([1.0, 2.0, 3.0, 4.0], [1.5, 1.5, 3.5, 3.5])
    0.5
    """


@metric(
    title="DBRL with the Mahalanobis distance of the release",
    score=partial(score_attack, "dbrl_mahalanobis"),
    reference="after Torra, Abowd & Domingo-Ferrer 2006, doi:10.1007/11930242_20",
    **NEAREST_RECORD,
)
def dbrl_mahalanobis(original: Any, masked: Any, *, direction: str = TO_ORIGINAL, places: int = 1) -> float:
    """Share of records re-identified by the nearest record in Mahalanobis distance; 0 if none.

    0 means that the nearest record is never the true one, 1 that it always is; chance alone gives 1/n.
    Stronger than `dbrl` where noise follows the correlations of the data.

    Parameters
    ----------
    original, masked, direction, places
        As for `dbrl`.

    Returns
    -------
    float
        Mean credit of the records, as for `dbrl`.

    Notes
    -----
    The metric is the inverse covariance matrix of the masked file, which every reader of it can compute.
    Directions without variance, such as that of a total and its parts, are left out. A missing cell stands
    at its variable's mean. The literature also uses the sum of both covariance matrices; this choice could
    not be checked against a primary source.

    References
    ----------
    Torra, Abowd & Domingo-Ferrer 2006, Using Mahalanobis distance-based record linkage for disclosure risk
    assessment, doi:10.1007/11930242_20

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.dbrl_mahalanobis([1.0, 2.0, 3.0, 4.0], [1.2, 2.2, 3.8, 4.1])
    0.75
    """


@metric(title="DBRL on ranks", score=partial(score_attack, "dbrl_rank"), reference=HANDBOOK, **NEAREST_RECORD)
def dbrl_rank(original: Any, masked: Any, *, direction: str = TO_ORIGINAL, places: int = 1) -> float:
    """Share of records re-identified by linking each to the record with the nearest ranks; 0 if none.

    0 means that the nearest record is never the true one, 1 that it always is; chance alone gives 1/n.
    Often the strongest attack where ranks move little, as in rank swapping, and where variables are skewed.

    Parameters
    ----------
    original, masked, direction, places
        As for `dbrl`.

    Returns
    -------
    float
        Mean credit of the records, as for `dbrl`.

    Notes
    -----
    Euclidean distance between mid-ranks, each file ranked by itself, as shares of the records.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.dbrl_rank([1.0, 2.0, 3.0, 4.0], [10.0, 200.0, 3000.0, 40000.0])
    1.0
    """


@metric(
    title="window intersection",
    score=partial(score_attack, "window"),
    explain=explain_linkage,
    reference="after Nin, Herranz & Torra 2008, doi:10.1016/j.datak.2007.07.006",
    parameters=(DIRECTION, WITHIN),
    informed=True,
    default=False,
    **LINKAGE,
)
def window(original: Any, masked: Any, *, direction: str = TO_ORIGINAL, within: float = 0.0) -> float:
    """Share of records re-identified by guessing among those within a published window of ranks; 0 if none.

    0 means that the true record is never within the window; 1 that it is, and alone. For methods that
    publish the largest move of a rank, as rank swapping does: `linkage` then makes use of it.

    Parameters
    ----------
    original, masked, direction
        As for `dbrl`.
    within : float
        The window, as a share of the records; 0 takes what the method publishes, or exact ranks.

    Returns
    -------
    float
        Mean of 1/c over the records, with c candidates whose every rank lies within the window; 0 where the
        true record is not one of them.

    Notes
    -----
    Equal values share an interval of ranks; a candidate's interval must come within the window of the
    record's own, in every variable. A missing cell fits everywhere.

    References
    ----------
    Nin, Herranz & Torra 2008, Rethinking rank swapping to decrease disclosure risk,
    doi:10.1016/j.datak.2007.07.006

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.window([1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 3.0], within=0.25)
    0.41666666666666663
    """


@metric(
    title="one-to-one matching",
    bounded_by_method=True,
    score=partial(score_attack, "matching"),
    explain=explain_linkage,
    reference="Herranz, Nin, Rodriguez & Tassa 2016, Data & Knowledge Engineering 100",
    parameters=(DIRECTION, DISTANCE),
    **LINKAGE,
)
def matching(
    original: Any, masked: Any, *, direction: str = TO_ORIGINAL, distance: str = "standardised"
) -> float:
    """Share of records re-identified by linking all records at once, one to one; 0 if none.

    0 means that no record is linked with the true one, 1 that all are; chance alone gives 1/n. For small
    files: the work grows with the cube of the records.

    Parameters
    ----------
    original, masked, direction
        As for `dbrl`; both directions give the same links.
    distance : str
        "standardised": Euclidean, in standard deviations of the original; "gower": mean absolute
        difference as a share of the range of both files; "raw": Euclidean, in the units of the data.

    Returns
    -------
    float
        Mean credit of the records; where several assignments are best, their links share it.

    Notes
    -----
    The assignment with the smallest sum of distances, by `scipy.optimize`. A solver breaks ties by row order,
    which would credit the intruder with knowledge that the files do not hold. So all links that occur in some
    best assignment get a share, those of each record in either file adding up to 1. Where ties come from
    equal records, this is the mean over all best assignments, and near it otherwise.

    References
    ----------
    Herranz, Nin, Rodriguez & Tassa 2016, Revisiting distance-based record linkage for privacy-preserving
    release of statistical datasets.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.matching([1.0, 2.0, 3.0, 4.0], [1.5, 1.5, 3.5, 3.5])
    0.5
    """
