"""Search for the true records of drawn queries among all records of a file that is read in blocks.

Each block of records is a set of targets; the numbers of closer and of equally close candidates in all blocks
add up. Equal queries share no credit here, unlike in memory: sharing leaves the mean over all records as it
is, so that the mean over a random sample is unbiased without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.engines.linkage_scan import records_of
from sdckit.engines.linkage_spaces import COUNTS, add_messages
from sdckit.engines.transport import Block, Message
from sdckit.kernels import candidates
from sdckit.kernels.candidates import Asked
from sdckit.risk.distances import Credits, credits_of_counts
from sdckit.risk.facts import TO_ORIGINAL, fits
from sdckit.risk.literature import TOLERANCE

if TYPE_CHECKING:
    from sdckit.engines.linkage_facts import MarkedSide, Settled
    from sdckit.engines.linkage_scan import Records
    from sdckit.engines.linkage_spaces import Spaces
    from sdckit.engines.transport import Reads, Transport
    from sdckit.kernels.jit import Bools, Floats, Ints, UInt64s

GUESS = "guess"


class Attack(NamedTuple):
    """An attack: its name, whose records are looked up, the run of facts, and how many may be named."""

    name: str
    direction: str
    run: str
    places: int = 1


@dataclass(frozen=True)
class Lookup:
    """The queries of an attack: marks of their blocks, ascending, their points and facts, and true distances.

    `inside` is True for each query whose true record is a candidate.
    """

    attack: Attack
    marks: UInt64s
    asked: Asked
    own: Floats
    inside: Bools

    @classmethod
    def of(cls, attack: Attack, knowledge: Knowledge, records: Records) -> Lookup:
        """Return the drawn records as queries of an attack."""
        targets, queries = knowledge.sides(attack, records)
        points, asked = knowledge.points(attack, records)
        marks = np.unique(queries.marks)
        every = np.unique(np.concatenate([queries.marks, targets.marks]))
        true, of_query = (side.side(every)[0] for side in (targets, queries))
        own = candidates.own_distances(Asked(asked, of_query), points, true)
        return cls(attack, marks, Asked(asked, queries.side(marks)[0]), own, fits(true, of_query))

    def counts(self, targets: MarkedSide, points: Floats) -> Ints:
        """Return what a block of targets adds to the counts of each query, in one row for each count.

        Numbers of closer and of equally close candidates; after them that of candidates, for a plain guess.
        """
        side, kept = targets.side(self.marks)
        found = np.zeros((3, len(self.own)), np.int64)
        if kept.any():
            if self.attack.name != GUESS:
                some = candidates.Targets(np.ascontiguousarray(points[kept]), side)
                found[:2] = some.count_within(self.asked, self.own, TOLERANCE, self.attack.places)
            else:
                found[2] = candidates.count_candidates(side, self.asked.facts)[0]
        elif self.attack.name != GUESS:
            found[0] = np.where(np.isnan(self.own), self.attack.places, 0)
        return found.astype(np.int32)

    def credits(self, counts: Ints) -> Credits:
        """Return the success of each query from the counts in all blocks."""
        if self.attack.name == GUESS:
            number = np.maximum(counts[2], 1)
            return Credits(self.inside / number, self.inside * (number == 1.0), self.inside.astype(float))
        closer, tied = candidates.add_counts([counts[:2]], self.attack.places)
        return credits_of_counts(closer, tied, self.attack.places)


@dataclass(frozen=True)
class Knowledge:
    """What the intruder knows of any records: the facts about them, and the spaces to compare them in."""

    settled: Settled
    spaces: Spaces | None = None  # None where he knows no variable

    def sides(self, attack: Attack, records: Records) -> tuple[MarkedSide, MarkedSide]:
        """Return the facts about targets and queries, given as true pairs."""
        ours, theirs = self.settled.sides(records, attack.run)
        return (ours, theirs) if attack.direction == TO_ORIGINAL else (theirs, ours)

    def points(self, attack: Attack, records: Records) -> tuple[Floats, Floats]:
        """Return the points of targets and queries, given as true pairs."""
        if attack.name == GUESS or self.spaces is None:
            none = np.zeros((len(records.x), 1))
            return none, none
        ours, theirs = self.spaces.points(attack.name, records)
        return (ours, theirs) if attack.direction == TO_ORIGINAL else (theirs, ours)


@dataclass(frozen=True)
class Search:
    """The first step of an exchange: each attack's counts in a block go to the bucket of its number."""

    variables: tuple[str, ...]
    cells: tuple[str, ...]
    knowledge: Knowledge
    lookups: tuple[Lookup, ...]

    def __call__(self, block: Block) -> Iterator[Message]:
        """Yield the counts of each attack."""
        records = records_of(block, self.variables, self.cells)
        for number, lookup in enumerate(self.lookups):
            targets, _ = self.knowledge.sides(lookup.attack, records)
            points, _ = self.knowledge.points(lookup.attack, records)
            yield Message(number, COUNTS, (lookup.counts(targets, points),))


def find_credits(transport: Transport, search: Search, reads: Reads) -> dict[Attack, Credits]:
    """Return the success of each attack on each query, from one pass over all blocks."""
    found = transport.exchange(search, reads, [], add_messages, step="searching for true records")
    numbers = {lookup.attack: number for number, lookup in enumerate(search.lookups)}
    success = {}
    for attack, number in numbers.items():
        success[attack] = search.lookups[number].credits(found[number])
    return success


def lookups_of(attacks: Sequence[Attack], knowledge: Knowledge, records: Records) -> tuple[Lookup, ...]:
    """Return the drawn records as queries of each attack."""
    return tuple(Lookup.of(attack, knowledge, records) for attack in attacks)
