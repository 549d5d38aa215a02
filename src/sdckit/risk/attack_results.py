"""Results of linkage attacks: the credit of each record, or of those drawn, shared among equal queries.

A record's credit is the same whether all records are looked up or some: those that look the same to the
attack share, so all of them are looked up where one is drawn.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.risk.attack_kinds import ATTACKS, DEFAULTS, TO_ORIGINAL
from sdckit.risk.chance_level import permutations
from sdckit.risk.credits import Credits
from sdckit.risk.distances import cached_value, known_columns
from sdckit.risk.equal_records import RecordClasses, row_marks, rows_like
from sdckit.risk.facts import CERTAIN, Facts, facts_of
from sdckit.risk.linkage_attacks import PlainGuess

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats, Ints, UInt64s
    from sdckit.metrics.pair import Pair
    from sdckit.metrics.query_sample import Queries
    from sdckit.risk.linkage_attacks import LinkageAttack


class AttackResult:
    """Result of one attack on a pair: the success on each record, and what chance would give."""

    def __init__(self, pair: Pair, name: str, options: dict[str, Any]) -> None:
        self.pair = pair
        self.name = name
        self.options = options
        self.direction: Any = options["direction"]
        self.run: Any = options["run"]

    @cached_property
    def attack(self) -> LinkageAttack:
        """The attack, prepared from the pair."""
        return ATTACKS[self.name].make(self.pair, self.options)

    def forget(self) -> None:
        """Free the memory of what was prepared; it is prepared again if asked for."""
        self.__dict__.pop("attack", None)
        self.__dict__.pop("marks_of_points", None)

    @property
    def facts(self) -> Facts:
        """The facts of the pair."""
        return facts_of(self.pair)

    # --- all records ---

    @cached_property
    def credits(self) -> Credits:
        """The success on each record."""
        return self.shared_credits(np.arange(self.pair.original.n))

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
            return self.classes_of(self.marks)
        return cached_value(
            self.pair.cache, f"equal {self.direction} {self.run}", lambda: self.classes_of(self.marks)
        )

    @property
    def marks(self) -> UInt64s:
        """A number for each query, equal for queries that are equal in what the attack sees of them."""
        if ATTACKS[self.name].sees == "points":
            return self.marks_of_points
        return cached_value(self.pair.cache, f"marks {self.direction}", lambda: row_marks(self.cells))

    @cached_property
    def marks_of_points(self) -> UInt64s:
        """A number for each query, equal for equal points in the space that the attack compares in."""
        return row_marks(self.attack.queries)  # type: ignore[attr-defined]

    @property
    def cells(self) -> Floats:
        """Cells of the queries in the variables that the intruder knows."""
        pair = self.pair
        return known_columns(pair, pair.masked if self.direction == TO_ORIGINAL else pair.original.values)

    def classes_of(self, marks: UInt64s) -> RecordClasses:
        """Return classes of queries that have equal marks and the same candidates."""
        classes = RecordClasses(marks)
        if classes.alone or not self.facts.ties(self.run):
            return classes
        return RecordClasses(row_marks(marks, self.facts.candidates(self.direction, self.run)[1]))

    def shared_credits(self, truth: Ints) -> Credits:
        """Return the success of each query, shared among queries that look the same."""
        return self.classes.shared(self.attack.credits(truth))

    # --- records drawn at random ---

    def credits_of(self, queries: Queries) -> Credits:
        """Return the success on the records that are looked up."""
        n = self.pair.original.n
        if queries.sample is None and (self.pair.sample is None or queries.records == n):
            found = self.credits
        else:  # all outliers of a large file may be fewer than are drawn: nobody else is looked up for them
            done, found = self.known
            rows = np.arange(n)[queries.rows]
            self.look_up(rows[~done[rows]])
        return Credits(*(values[queries.rows] for values in found))

    @cached_property
    def known(self) -> tuple[Bools, Credits]:
        """True for each record that has been looked up, and its success."""
        n = self.pair.original.n
        return np.zeros(n, np.bool_), Credits(*np.empty((3, n)))

    def look_up(self, rows: Ints) -> None:
        """Write the success on some records, and on all that look the same, to `known`."""
        if not rows.size:
            return
        done, known = self.known
        members, classes = self.equal_records(rows)
        found = classes.shared(self.attack.credits(members, members))
        done[members] = True
        for values, new in zip(known, found, strict=True):
            values[members] = new

    def equal_records(self, rows: Ints) -> tuple[Ints, RecordClasses]:
        """Return all records that look like one of some records, those included, and their classes."""
        if ATTACKS[self.name].sees == "facts":
            if self.run == CERTAIN:  # true records are candidates: equal sets of them give equal credits
                return rows, RecordClasses(np.arange(rows.size))
            marks = self.facts.candidates(self.direction, self.run)[1]
            members = rows_like(marks, rows)
            return members, RecordClasses(marks[members])
        members = rows_like(self.marks, rows)
        marks = self.marks[members]
        if members.size > rows.size and self.facts.ties(self.run):
            marks = row_marks(marks, self.facts.candidates_of(self.direction, self.run, members)[1])
        return members, RecordClasses(marks)

    # --- chance ---

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

    def chances(self, queries: Queries) -> Floats:
        """Return the mean success on the originals looked up for each random assignment of true records.

        A true record that is drawn from all candidates is found by any attack with the probability of a plain
        guess, so that this is the level where facts are intervals and records cannot be permuted freely, and
        on a sample, which is too small to see such small levels.
        """
        inside = ATTACKS[self.name].inside_facts
        if queries.sample is not None and not inside:
            return np.array([self.options["places"] / self.pair.original.n])
        if (
            queries.sample is not None
            or (inside and not self.facts.equalities(self.run))
            or not ATTACKS[self.name].permuted
        ):
            return np.array([self.guess_level(queries)])
        forward, chosen = self.direction == TO_ORIGINAL, queries.rows
        if not queries.records:
            return np.array([np.nan])
        return np.array(
            [
                expected[chosen[truth] if forward else chosen].mean()
                for truth, expected in zip(self.truths, self.unrelated, strict=True)
            ]
        )

    def guess_level(self, queries: Queries) -> float:
        """Return the mean success of a plain guess on the records looked up; NaN without any."""
        rows = np.arange(self.pair.original.n)[queries.rows]
        if not rows.size:
            return np.nan
        guess = PlainGuess(self.facts, self.direction, self.run).credits(rows, rows)
        return float(np.minimum(self.options["places"] * guess.expected, 1.0).mean())


def attack_result(pair: Pair, name: str, options: dict[str, Any]) -> AttackResult:
    """Return the result of the named attack on a pair, computed once for each choice of options."""
    full = DEFAULTS | options
    return cached_value(pair.cache, f"{name} {sorted(full.items())}", lambda: AttackResult(pair, name, full))
