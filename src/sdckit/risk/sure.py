"""Sure links: the records that an intruder names with a probability above one half."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.query_sample import LOOKED_UP, QuerySample
from sdckit.risk import posterior
from sdckit.risk.distances import cached_value, known_columns
from sdckit.risk.facts import CERTAIN, TO_ORIGINAL, facts_of
from sdckit.risk.intruder import (
    FEWEST,
    posterior_of,
    posterior_of_rows,
    proves_swaps,
    reads_law,
    reads_order,
    runs_again,
)
from sdckit.risk.law import LARGE
from sdckit.risk.row_order import row_orders
from sdckit.risk.unit_law import chances_of_units, shows_units
from sdckit.risk.unit_points import units_of

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats
    from sdckit.metrics.pair import Pair


@dataclass(frozen=True)
class SureLinks:
    """Probability that the intruder gives to each record's true original, and what he claims to know.

    `claimed` is the number of rows that he names somebody for with a probability above one half.
    """

    truth: Floats
    claimed: int

    @property
    def exposed(self) -> Bools:
        """True for each record whose true original has a probability above one half."""
        return self.truth > posterior.SURE


def sure_links(pair: Pair) -> SureLinks:
    """Return the sure links of a whole file, by the law that exposes more records; without one, by facts."""

    def compute() -> SureLinks:
        """Return the sure links."""
        laws = [by for by in ("shadows", "folds") if reads_law(pair, by)]
        found = [_sure_links_by(pair, by) for by in laws] or [_by_facts(pair)]
        found += [_sure_links_by(pair, "folds")] if not laws and reads_order(pair) else []
        found += [_of_units(pair, by) for by in laws or ["facts"]] if shows_units(pair) else []
        return max(found, key=lambda one: (int(one.exposed.sum()), float(np.nanmean(one.truth))))

    found: SureLinks = cached_value(pair.cache, "sure links", compute)
    return found


def _sure_links_by(pair: Pair, by: str) -> SureLinks:
    """Return the sure links by one law; of a large file, those of single rows of a sample stand for all."""
    n = pair.original.n
    if n <= LARGE:
        found = posterior_of(pair, by, order=bool(row_orders(pair)))
        return SureLinks(found.of_truth(found.bethe, np.arange(n)), len(found.links_claimed))
    if proves_swaps(pair):
        return SureLinks(np.ones(n), n)
    rows = QuerySample(LOOKED_UP).order(n, pair.original.cache)[:LOOKED_UP]
    some = posterior_of_rows(pair, by, rows)
    truth = np.full(n, np.nan)
    truth[rows] = some.of_truth(some.plain, np.arange(n))[rows]
    claimed = len(np.unique(some.pairs.rows[some.plain > posterior.SURE]))
    return SureLinks(truth, round(claimed * n / len(rows)))


def _by_facts(pair: Pair) -> SureLinks:
    """Return the sure links of a plain guess: records that the facts, or equal cells, single out."""
    counts = facts_of(pair).candidates(TO_ORIGINAL)[0]
    truth, sure = 1 / np.maximum(counts, 1), counts == 1
    if pair.disclosure.paired and pair.known_variables and not runs_again(pair) and pair.original.n < FEWEST:
        equal = _equal_cells(pair)
        named = equal.sum(axis=1) == 1
        truth[named] = equal.diagonal()[named]
        sure |= named
    return SureLinks(truth, int(sure.sum()))


def _equal_cells(pair: Pair) -> Bools:
    """Return True, row x original, for candidates whose known cells are the published ones; of a few rows."""
    ours, theirs = (known_columns(pair, values) for values in (pair.original.values, pair.masked))
    both_missing = np.isnan(theirs)[:, None] & np.isnan(ours)[None]
    alike = ((theirs[:, None] == ours[None]) | both_missing).all(axis=2)
    candidates = [facts_of(pair).contain_truth(CERTAIN, np.full(len(ours), i)) for i in range(len(ours))]
    found: Bools = alike & np.array(candidates).T & ~both_missing.all(axis=2)
    return found


def _of_units(pair: Pair, by: str) -> SureLinks:
    """Return the sure links of rows whose unit is found by all its rows together."""
    truth, claimed = chances_of_units(pair, by)
    return SureLinks(truth, int(np.isin(np.asarray(units_of(pair)), claimed).sum()))
