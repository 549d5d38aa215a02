"""Linkage on files that are read in blocks: records drawn at random are looked up among all records.

Three passes over the blocks: one draws records and settles what holds for every true pair, one ranks values
and measures spreads along principal axes, and one searches for the true record of each drawn one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.checks import NotApplicable
from sdckit.core.registry import METRICS
from sdckit.engines.linkage_facts import Settled, settle_facts
from sdckit.engines.linkage_notes import LinkageNotes
from sdckit.engines.linkage_scan import Drawn, LinkageScan, PairTotals, merge_scans, share_for
from sdckit.engines.linkage_search import (
    GUESS,
    Attack,
    Knowledge,
    Search,
    find_credits,
    lookups_of,
)
from sdckit.engines.linkage_spaces import NODES, find_spaces
from sdckit.engines.linkage_stated import checked_facts, stated_facts
from sdckit.engines.transport import Reads
from sdckit.metrics.query_sample import Queries, QuerySample
from sdckit.risk.attacks import BOTH, mean_or_nan, score_attacks
from sdckit.risk.facts import DIRECTIONS, SORTED, rank_correlation

if TYPE_CHECKING:
    from sdckit.core.registry import Metric
    from sdckit.engines.comparison import EngineComparison
    from sdckit.engines.linkage_assumed import Assumed
    from sdckit.engines.transport import Transport
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.score import Score
    from sdckit.risk.distances import Credits

QUERIES = 20_000  # records that are drawn unless another number is asked for


def _distances() -> list[str]:
    """Return the names of the metrics that link the nearest records, of which `linkage` is the largest."""
    return [
        one.name
        for one in METRICS.values()
        if one.in_blocks and one.needs == "rows" and one.name != "linkage"
    ]


@dataclass(frozen=True)
class EngineAttack:
    """The success of one attack on the drawn records, as scores of linkage take it."""

    pair: EngineComparison
    attack: Attack
    found: Credits
    guess: Credits

    @property
    def name(self) -> str:
        """Name of the attack."""
        return self.attack.name

    @property
    def direction(self) -> str:
        """Whose records are looked up."""
        return self.attack.direction

    def credits_of(self, _queries: Queries) -> Credits:
        """Return the success on the drawn records."""
        return self.found

    def chances(self, _queries: Queries) -> Floats:
        """Return the mean success of a plain guess, which is what chance gives inside the facts."""
        return np.array([mean_or_nan(np.minimum(self.attack.places * self.guess.expected, 1.0))])


@dataclass(frozen=True)
class EngineLinkage:
    """Linkage of a pair of files that are read in blocks, for several metrics at once."""

    transport: Transport
    assumed: Assumed
    whole: EngineComparison
    metrics: Sequence[Metric]
    size: int = QUERIES  # records that are drawn

    def scores(self) -> dict[str, Score]:
        """Return the score of each metric; raise NotApplicable where rows are not paired."""
        if not self.assumed.disclosure.paired:
            raise NotApplicable("linkage on an engine needs paired rows; use engine memory")
        return {metric.name: self._score(metric) for metric in self.metrics}

    # --- passes over the blocks ---

    @cached_property
    def reads(self) -> Reads:
        """The columns of both files that the intruder knows."""
        return Reads(self.assumed.known, self.assumed.known, self.assumed.cells)

    @cached_property
    def drawn(self) -> tuple[PairTotals, Drawn]:
        """Totals of all true pairs, and drawn records in random order: those looked up come first."""
        size = max(self.size, NODES)
        task = LinkageScan(self.assumed.known, self.assumed.cells, share_for(size, self.transport.rows))
        blocks = self.transport.scan(task, self.reads, step="drawing records for linkage")
        return merge_scans(blocks, size)

    @cached_property
    def knowledge(self) -> Knowledge:
        """Facts that hold for every true pair, and the spaces in which records are compared."""
        (totals, drawn), assumed = self.drawn, self.assumed
        settled = settle_facts(totals, assumed.known, assumed.cells, assumed.disclosure, again=assumed.again)
        if not assumed.known:
            return Knowledge(settled)
        reads = self.reads._replace(cells=())
        spaces = find_spaces(self.transport, assumed.known, reads, totals, drawn.records)
        stated = stated_facts(assumed.disclosure, assumed.variables, assumed.known, totals, drawn.records)
        kept, failed = checked_facts(self.transport, reads, stated, spaces)
        return Knowledge(replace(settled, stated=kept, failed=(*settled.failed, *failed)), spaces)

    @cached_property
    def credits(self) -> dict[Attack, Credits]:
        """The success of each attack that some metric asks for, on the records that are looked up."""
        wanted = [attack for metric in self.metrics for attack in self._attacks(metric)]
        wanted += [one._replace(name=GUESS, places=1) for one in wanted]
        queries = self.drawn[1].records.take(slice(0, self.size))
        lookups = lookups_of(list(dict.fromkeys(wanted)), self.knowledge, queries)
        search = Search(self.assumed.known, self.assumed.cells, self.knowledge, lookups)
        return find_credits(self.transport, search, self.reads)

    # --- scores ---

    @property
    def settled(self) -> Settled:
        """Facts that hold for every true pair."""
        return self.knowledge.settled

    @cached_property
    def queries(self) -> Queries:
        """The records that are looked up."""
        n = self.transport.rows
        if self.size >= n:
            return Queries(np.ones(n, np.bool_), n)
        return Queries(np.arange(self.size), n, QuerySample(self.size))

    @cached_property
    def sorted_by(self) -> tuple[str, ...]:
        """Variables along which the rows are sorted or nearly so, by the drawn records; none with a key."""
        drawn = self.drawn[1]
        if not self.assumed.by_position:
            return ()
        cells = np.where(np.isnan(drawn.records.y), np.nan, drawn.records.x).T
        every, rows = np.zeros(len(drawn.rows), np.int64), drawn.rows.astype(np.float64)
        sizes = (abs(rank_correlation(rows, column, every)) for column in cells)
        return tuple(name for name, size in zip(self.assumed.known, sizes, strict=True) if size > SORTED)

    def _attacks(self, metric: Metric) -> list[Attack]:
        """Return the attacks of which a metric takes the most successful."""
        name = metric.name.partition(":")[0]
        options = _options(metric)
        names: Sequence[str] = (name,)
        if name == "linkage":
            distances = _distances() if self.assumed.known else []
            names = (*distances, GUESS)
        elif not self.assumed.known:
            raise NotApplicable(f"{name} needs a variable that the intruder knows; use linkage")
        ways = DIRECTIONS if options["direction"] == BOTH else (options["direction"],)
        places = int(options.get("places", 1))
        return [Attack(one, way, run, places) for one in names for way in ways for run in self.settled.runs]

    def _score(self, metric: Metric) -> Score:
        """Return the score of a metric on the drawn records."""
        attacks = [self._result(attack) for attack in self._attacks(metric)]
        parts: dict[str, float] = {}
        for one in attacks:
            mean = mean_or_nan(one.found.expected)
            parts[one.name] = max(mean, parts.get(one.name, mean))
        worst = max(attacks, key=lambda one: mean_or_nan(one.found.expected))
        notes = LinkageNotes(self.assumed, self.settled, self.drawn[0], self.sorted_by)
        if metric.name.partition(":")[0] != "linkage":
            found = worst.found
            parts = {"strict": mean_or_nan(found.strict), "optimistic": mean_or_nan(found.optimistic)}
        return score_attacks(
            attacks,
            self.queries,
            parts=parts,
            detail=True,
            per_record=False,
            notes=tuple(notes.of(parts, worst.attack)),
            tried=len(attacks),
        )

    def _result(self, attack: Attack) -> EngineAttack:
        """Return the success of an attack, beside that of a plain guess."""
        guess = self.credits[attack._replace(name=GUESS, places=1)]
        return EngineAttack(self.whole, attack, self.credits[attack], guess)


def _options(metric: Metric) -> dict[str, Any]:
    """Return the options of a metric: its default values, and those that its name fixes."""
    return {parameter.name: parameter.default for parameter in metric.parameters} | metric.fixed_options
