"""Linkage of units: how often rows of a household, firm or person of a panel lead to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.core.registry import metric
from sdckit.kernels.candidates import count_candidates, take
from sdckit.metrics.pair import pair_of
from sdckit.metrics.score import Score, Values
from sdckit.risk.attack_kinds import has_cells
from sdckit.risk.facts import CERTAIN, DIRECTIONS, TO_ORIGINAL, facts_of
from sdckit.risk.intruder import posterior_of, reads_law
from sdckit.risk.law import LARGE
from sdckit.risk.linkage_attacks import TOLERANCE, NearestAttack, fits
from sdckit.risk.linked_shares import (
    distance_attacks,
    equality,
    guessed_shares,
    linked_shares,
    shares_of_links,
)
from sdckit.risk.unit_law import units_by_law
from sdckit.risk.unit_points import Units, publishes_units, unit_distances, units_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.metrics.pair import Pair
    from sdckit.risk.facts import Sides

HANDBOOK = "Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239"
DENSE = 400  # units up to which rows are matched inside intervals for every two of them


# --- (a) rows that lead to a unit ------------------------------------------------------------------------


def row_shares(pair: Pair, units: Ints) -> Iterator[tuple[str, Floats]]:
    """Yield the name of each attack and, for each row, the share of its links that lead to its own unit."""
    facts, wanted = facts_of(pair), equality(units, units)
    for direction in DIRECTIONS:
        yield "guess", guessed_shares(facts.sides(direction), wanted)
        for name, attack in distance_attacks(pair, direction, CERTAIN):
            yield name, linked_shares(attack, wanted)
        for by in ("shadows", "folds") if pair.rows is None and pair.n <= LARGE else ():
            if reads_law(pair, by):
                links = posterior_of(pair, by)
                yield by, shares_of_links(links, links.both, wanted, forward=direction == TO_ORIGINAL)


# --- (b) whole units -------------------------------------------------------------------------------------


def unit_credits(pair: Pair, units: Units) -> Iterator[tuple[str, Floats]]:
    """Yield the name of each attack on whole units and each unit's credit, in both directions."""
    sides = facts_of(pair).runs[CERTAIN]
    whole = units.side(sides[0]), units.side(sides[1])
    inside = _matched_units(sides, whole, units) if sides[0].low.shape[1] and units.count <= DENSE else None
    points = unit_distances(pair, units) if has_cells(pair) else {}
    truth = np.arange(units.count)
    for forward in (True, False):
        ours, theirs = whole if forward else whole[::-1]
        candidates = None if inside is None else inside if forward else inside.T
        counts = count_candidates(ours, theirs)[0] if candidates is None else candidates.sum(axis=1)
        yield "guess", 1 / counts
        for name, files in points.items():
            targets, queries = files if forward else files[::-1]
            if candidates is None:
                yield name, NearestAttack(targets, queries, (ours, theirs)).credits(truth).expected
            else:
                yield name, _credits_among(candidates, targets, queries)


def _matched_units(sides: Sides, whole: Sides, units: Units) -> Bools:
    """Return published x original units: True where their rows fit each other one to one."""
    found = np.zeros((units.count, units.count), np.bool_)
    for i in range(units.count):
        one = take(whole[1], np.full(units.count, i))
        for j in np.flatnonzero(fits(whole[0], one)):
            found[i, j] = i == j or _rows_match(sides, units, i, int(j))
    return found


def _rows_match(sides: Sides, units: Units, i: int, j: int) -> bool:
    """Return True if the rows of published unit i and of original unit j fit each other one to one."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and rarely needed
    from scipy.sparse.csgraph import maximum_bipartite_matching  # noqa: PLC0415

    theirs, ours = (units.rows[units.starts[u] : units.starts[u] + units.sizes[u]] for u in (i, j))
    size = len(ours)
    pairs = take(sides[0], np.tile(ours, size)), take(sides[1], np.repeat(theirs, size))
    graph = csr_array(fits(*pairs).reshape(size, size))
    return bool((maximum_bipartite_matching(graph) >= 0).all())


def _credits_among(candidates: Bools, targets: Floats, queries: Floats) -> Floats:
    """Return each query's credit among its candidates, by comparing all: 1/ties if the true one ties."""
    found = np.zeros(len(queries))
    for i, query in enumerate(queries):
        squares = (targets - query) ** 2
        shared = (~np.isnan(squares)).sum(axis=1)
        scale = queries.shape[1] / np.maximum(shared, 1)
        distances = np.where(shared > 0, np.nansum(squares, axis=1) * scale, np.inf)
        least = distances[candidates[i]].min()
        nearest = candidates[i] & (distances <= least * (1 + TOLERANCE))
        found[i] = nearest[i] / nearest.sum()
    return found


# --- the metric ------------------------------------------------------------------------------------------


def score_linkage_units(pair: Pair, *, detail: bool = False, per_record: bool = False) -> Score:
    """Return the larger score of rows that lead to a unit and of units that lead to themselves."""
    numbers = units_of(pair)
    if numbers is None:
        raise checks.NotApplicable(
            "linkage_units needs a column of households, firms or persons; name it with unit="
        )
    if not (pair.disclosure.paired or facts_of(pair).tie_rows):
        raise checks.NotApplicable(
            "linkage_units has no value where nothing ties published rows to original ones; "
            "use a metric such as ks"
        )
    shares = max((found for _, found in row_shares(pair, numbers)), key=np.mean)
    parts = {"row_to_unit": float(shares.mean()), "unit_to_unit": 0.0}
    if publishes_units(pair):
        every = [*unit_credits(pair, Units(numbers)), *units_by_law(pair)]
        parts["unit_to_unit"] = max(float(found.mean()) for _, found in every)
    none = np.full(pair.p, np.nan)
    sizes = np.bincount(numbers)
    chance = float((sizes**2).sum() / numbers.size**2)  # two random rows are of one unit
    return Score(
        Values(max(parts.values()), none),
        np.full(pair.p, pair.original.n),
        np.zeros(pair.p, np.int64),
        random=Values(chance, none) if detail else None,
        records=shares if per_record else None,
        parts=parts,
    )


def explain_linkage_units(score: Score) -> str:
    """Return a sentence on rows that lead to their unit, and on whole units that are found."""
    rows, units = (100 * score.parts[part] for part in ("row_to_unit", "unit_to_unit"))
    text = f"someone who looks up a row is led to its unit in {rows:.3g} of 100 cases"
    if not units:
        return f"{text}; the release does not show which rows belong together"
    return f"{text}, and someone who compares all rows of a unit at once finds it in {units:.3g}"


@metric(
    title="linkage of units",
    limit_words="an intruder may find at most # of 100 households, firms or persons",
    family="risk",
    bounds=(0.0, 1.0),
    best=0.0,
    needs="rows",
    role="unit",
    by_variable=False,
    informed=True,
    paired=False,
    place=11,
    shown="overview",
    score=score_linkage_units,
    explain=explain_linkage_units,
    reference=HANDBOOK,
)
def linkage_units(original: Any, masked: Any) -> float:
    """Share of records that lead an intruder to the right household, firm or person; 0 if none.

    0 means that no link leads to the right unit, 1 that all do. Where a unit has several rows, `linkage` says
    too little: a link to another row of the same unit has found it, too.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` prepared with its `unit`.

    Returns
    -------
    float
        The larger of "row_to_unit" and "unit_to_unit", which `evaluate` has among its parts.

    Notes
    -----
    Row to unit: the share of the nearest candidates of a row that belong to its unit, by the attacks and in
    the directions of `linkage`, one-to-one matching apart. Unit to unit, if the release shows which rows
    belong together: all rows of a unit are used at once, aligned by the columns that are published
    unmasked, such as the month, and their log-likelihoods by the law of the masking add up; the number of
    rows is a fact. Units are also compared by their means and, up to 20 rows, by their sorted rows. Where
    facts are intervals and there are more than 400 units, those count as candidates whose sorted rows fit.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import polars as pl
    >>> import sdckit as sdc
    >>> data = pl.DataFrame({"firm": [1, 2, 1, 2], "sales": [10.5, 50.5, 11.0, 51.0]})
    >>> masked = sdc.mask(data, "mdav", k=2, columns="sales", untouched="firm")
    >>> sdc.linkage(data.drop("firm"), masked.drop("firm"))
    0.5
    >>> sdc.linkage_units(sdc.prepare(data, columns="sales", unit="firm"), masked)
    1.0
    """
    return score_linkage_units(pair_of(original, masked)).value.overall
