"""Compare an original and a masked file on an engine: two scans and the exchanges that metrics need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.checks import NotApplicable
from sdckit.engines.comparison import EngineComparison
from sdckit.engines.measure_ranks import measure_ranks
from sdckit.engines.plan import Wanted
from sdckit.engines.scan import Scan, ScanTotals, merge_scans
from sdckit.engines.second_scan import Basis, DetailTotals, SecondScan, merge_details, shared_power
from sdckit.engines.transport import Piece, Reads
from sdckit.kernels.scaling import powers_of_two
from sdckit.metrics.blocks.distributions import edge_positions, edges_between
from sdckit.progress import track

if TYPE_CHECKING:
    from sdckit.core.registry import Metric
    from sdckit.engines.scan import Group
    from sdckit.engines.totals import RankTotals
    from sdckit.engines.transport import Transport
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.blocks.cell_sums import Cost

SCANNING = 0.15  # share of the progress that each of the two scans takes
ROW_RULES = frozenset({"first", "last"})  # tie rules that depend on the order of rows
RANDOM = "ties='random' cannot be computed for data read in blocks; use expected, its mean"


@dataclass(frozen=True)
class Questions:
    """What the metrics of an evaluation ask: tie rules, sorted columns, bins, products of variables."""

    rules: frozenset[str] = frozenset()
    streams: bool = False
    bins: bool = False
    products: bool = False
    units: tuple[str, ...] = ()  # of changes bounded by the arctangent
    costs: tuple[Cost, ...] = ()  # losses that one record may dominate

    @classmethod
    def of(cls, metrics: Sequence[Metric], ties: str) -> Questions:
        """Return what these metrics ask; raise NotApplicable for a tie rule that no engine offers."""
        ranked = [metric for metric in metrics if metric.needs == "ranks"]
        rules = frozenset(str(metric.fixed_options.get("ties", ties)) for metric in ranked)
        if "random" in rules:
            raise NotApplicable(RANDOM)
        needs = {metric.needs for metric in metrics if metric.family == "loss"}
        names = {metric.name.partition(":")[0] for metric in metrics}
        scales = [m.fixed_options.get("scale", "spread") for m in metrics if "il_variables" in m.name]
        costs = [metric.dominated.args[0] for metric in metrics if isinstance(metric.dominated, partial)]
        return cls(
            rules,
            bool(needs & {"cells", "columns"}),
            "hellinger" in names,
            "moments" in needs,
            tuple(dict.fromkeys(scales)),
            tuple(dict.fromkeys(costs)),
        )

    @property
    def details(self) -> bool:
        """True if a second scan is needed."""
        return self.streams or self.bins or self.products


@dataclass(frozen=True)
class Comparing:
    """A comparison in progress: where it runs, which variables, and what is asked."""

    transport: Transport
    variables: tuple[str, ...]
    weighted: bool
    questions: Questions

    @property
    def reads(self) -> Reads:
        """The variables in both files."""
        return Reads(self.variables, self.variables)

    def run(self) -> dict[Group, EngineComparison]:
        """Return the comparison of the whole file (None) and of each stratum (its number)."""
        with track("reading", 1.0) as report:
            report(0.0, SCANNING)
            blocks = self.transport.scan(Scan(self.variables), self.reads, step="reading")
            totals = merge_scans(blocks)
            report(SCANNING, 1.0 - 2 * SCANNING, "ranking")
            ranks = self._rank_totals(totals)
            bases = {
                group: Basis.of(found, weighted=self.weighted, edges=self._edges(group, ranks))
                for group, found in totals.items()
            }
            report(1.0 - SCANNING, SCANNING, "measuring")
            details = self._details(bases) if self.questions.details else {}
        return {
            group: EngineComparison(
                self.variables,
                self.weighted,
                totals[group],
                details.get(group),
                [ranks.get(Piece(name, group)) for name in self.variables],
            )
            for group in totals
        }

    def _details(self, bases: Mapping[Group, Basis]) -> dict[Group, DetailTotals]:
        """Return what needs means, standard deviations or bin edges, from a second scan."""
        asked = self.questions
        second = SecondScan(self.variables, bases, asked.units, asked.costs, products=asked.products)
        return merge_details(self.transport.scan(second, self.reads, step="measuring"))

    def _rank_totals(self, totals: Mapping[Group, ScanTotals]) -> dict[Piece, RankTotals]:
        """Return the totals of each variable that need its values in order, where any metric asks for one."""
        if not (self.questions.rules or self.questions.streams):
            return {}
        sizes = {
            Piece(name, group): int(found.both[j])
            for group, found in totals.items()
            for j, name in enumerate(self.variables)
        }
        wanted = {
            Piece(name, group): self._wanted(found, j)
            for group, found in totals.items()
            for j, name in enumerate(self.variables)
        }
        ranks = measure_ranks(self.transport, sizes, wanted)
        if self.weighted or not self.questions.rules & ROW_RULES:
            return ranks
        by_row = measure_ranks(self.transport, sizes, dict.fromkeys(wanted, Wanted(ties="rows")))
        return {
            piece: replace(found, sums={**found.sums, **by_row[piece].sums}) for piece, found in ranks.items()
        }

    def _wanted(self, totals: ScanTotals, j: int) -> Wanted:
        """Return what is wanted of a variable."""
        asked = self.questions
        power = int(shared_power(totals)[j])
        if self.weighted:
            unit = float(powers_of_two(totals.heaviest[j : j + 1]))
            return Wanted("weights", streams=asked.streams, unit=unit, power=power)
        ranks: tuple[int, ...] = ()
        if asked.bins and totals.both[j]:
            low, high, _ = edge_positions(int(totals.both[j]))
            ranks = tuple(np.union1d(low, high).tolist())
        return Wanted(expected="expected" in asked.rules, streams=asked.streams, power=power, ranks=ranks)

    def _edges(self, group: Group, ranks: Mapping[Piece, RankTotals]) -> list[Floats | None]:
        """Return the bin edges of each variable; None where no bins are asked for."""
        return [_bin_edges(ranks.get(Piece(name, group))) for name in self.variables]


def _bin_edges(ranks: RankTotals | None) -> Floats | None:
    """Return bin edges from original values at their ranks; None where these were not asked for."""
    if ranks is None or not ranks.order_statistics:
        return None
    low, high, shares = edge_positions(ranks.n)
    values = ranks.order_statistics
    ours, theirs = (np.array([values[rank] for rank in at.tolist()]) for at in (low, high))
    return edges_between(ours, theirs, shares)
