"""Units: how often rows of a household, firm or person of a panel lead to it, row by row and all together."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.core.cells import class_sizes, converted_numbers, number_values, polars_column
from sdckit.kernels.candidates import Side, Targets, count_candidates, count_nearest, no_facts
from sdckit.metrics.pair import metric
from sdckit.risk import facts
from sdckit.risk.distances import OF_ROWS, OVERVIEW, once, row_marks, score_of_file, standardised
from sdckit.risk.intruder import laws_of, posterior_of, reading_of, runs_again
from sdckit.risk.law import LARGE
from sdckit.risk.literature import TOLERANCE, NearestAttack, nearest_attack
from sdckit.risk.posterior import AT_ONCE, WHOLE, Pairs, Posterior, Search, likely_pairs, sorted_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.metrics.pair import Pair
    from sdckit.metrics.score import Score
    from sdckit.risk.facts import Sides

    Ends = tuple[Floats, Floats]  # of intervals, record x dimension

DENSE = 400  # units up to which rows are matched inside intervals for every two of them
SMALL = 20  # units of at most this many rows are also compared by their sorted rows
ALL_ROWS = 100_000_000  # pairs of rows up to which every two units are compared; above it, near ones
LEAST = 1e-3  # probability below which a pair of units is not looked at row by row
ROW_ORDER = "the order of the rows"
FEW_ROWS = 4  # rows that no column tells apart, up to which all ways of pairing them are tried


def units_of(pair: Pair) -> Ints | None:
    """Return the number of each original record's unit; None without units."""
    if pair.whole is None or pair.rows is None:
        return facts.units_of_original(pair.original)
    units = units_of(pair.whole)
    return None if units is None else number_values(units[pair.rows])


@once
def publishes_units(pair: Pair) -> bool:
    """Return True if the published file shows which records belong together: unit numbers form the same."""
    whole = pair.whole or pair
    name = whole.original.roles.unit
    if whole.table is None:
        return name in whole.original.roles.published(whole.original.table_names)
    ours = units_of(whole)
    if name is None or name not in whole.table.names or ours is None:
        return False
    theirs = converted_numbers(polars_column(facts.aligned_column(whole, name)))[0]
    both = number_values(row_marks(ours, theirs))
    return int(both.max()) == int(ours.max()) == int(number_values(theirs).max())


class ReadUnits(NamedTuple):
    """Units whose rows are read together, and what shows it where their own column is not published."""

    numbers: Ints
    column: str = ""  # that is not published
    shown_by: tuple[str, ...] = ()


@once
def read_units(pair: Pair) -> ReadUnits | None:
    """Return the units whose rows the release shows to belong together; None without any.

    Those that are declared and published. Else those of a column that is not published, but that the intruder
    has in the original: if rows with equal cells there are for the most part those with equal cells in a
    published column that he does not know, or those beside each other in a file kept in place. Other rows are
    read alone. Rows that nothing tells apart are no unit if there are many: those of a region.
    """
    declared = units_of(pair)
    if declared is not None and publishes_units(pair):
        return ReadUnits(declared)
    blocks, in_place = facts.facts_of(pair).blocks, pair.by_position and pair.disclosure.paired
    blocks = np.zeros(pair.n, np.int64) if blocks is None else blocks
    shown = {name: number_values(row_marks(cells)) for name, cells in facts.unmasked_unknown(pair).items()}
    best, rows = None, pair.n / 2
    for column, hidden in facts.hidden_columns(pair).items() if shown or in_place else ():
        runs = {ROW_ORDER: np.cumsum(np.diff(hidden, prepend=hidden[0]) != 0)} if in_place else {}
        told = {name: _told_together(hidden, blocks, marks) for name, marks in (shown | runs).items()}
        most = max((int(one.sum()) for one in told.values()), default=0)
        if most > rows:
            names = tuple(name for name, one in told.items() if int(one.sum()) == most)
            alone = np.where(told[names[0]], -1, np.arange(pair.n))
            best, rows = ReadUnits(number_values(row_marks(hidden, alone)), column, names), most
    return best


def _told_together(hidden: Ints, blocks: Ints, shown: Ints) -> Bools:
    """Return True for each row of a unit of several rows that are those, and all those, shown together.

    For none where blocks of facts tell units apart already, or where a unit has many rows of one block.
    """
    sizes, equal, both = (
        class_sizes(number_values(one)) for one in (hidden, shown, row_marks(hidden, shown))
    )
    found = (sizes == both) & (equal == both) & (both > 1)
    alike = number_values(row_marks(hidden, blocks))
    useless = alike.max() == blocks.max() or class_sizes(alike)[found].max(initial=0) > SMALL
    return found & (not useless and np.unique(hidden[found]).size > 1)


class Units:
    """Rows of each unit: those of unit u are rows[starts[u] : starts[u] + sizes[u]]."""

    def __init__(self, numbers: Ints) -> None:
        self.numbers = numbers
        self.sizes: Ints = np.bincount(numbers)
        self.count = len(self.sizes)
        self.rows: Ints = np.argsort(numbers, kind="stable")
        self.starts: Ints = np.cumsum(self.sizes) - self.sizes

    def means(self, points: Floats) -> Floats:
        """Return the mean of each unit's observed cells, NaN where it has none.

        Cells are summed in their order of size, so that equal cells in another order have equal means.
        """
        found = np.empty((self.count, points.shape[1]))
        for j in range(points.shape[1]):
            order = np.lexsort((points[:, j], self.numbers))
            order = order[~np.isnan(points[order, j])]
            counts = np.bincount(self.numbers[order], minlength=self.count)
            sums = np.bincount(self.numbers[order], points[order, j], self.count)
            found[:, j] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return found

    def sorted_rows(self, points: Floats) -> Floats:
        """Return each unit's cells as one record, each variable sorted by itself; NaN fills up."""
        found = np.full((self.count, int(self.sizes.max()), points.shape[1]), np.nan)
        position = np.arange(self.rows.size) - np.repeat(self.starts, self.sizes)
        for j in range(points.shape[1]):
            order = np.lexsort((points[:, j], self.numbers))  # NaN last
            found[self.numbers[order], position, j] = points[order, j]
        return np.ascontiguousarray(found.reshape(self.count, -1))

    def side(self, side: Side) -> Side:
        """Return the facts about units: the same number of rows, and a row that fits each row.

        Blocks of units are equal if their rows have the same blocks. Of intervals, the sorted ends are
        compared: rows that fit each other one to one need sorted ends that fit, so the true unit is inside.
        """
        marks = np.zeros(self.count, np.uint64)
        np.add.at(marks, self.numbers, row_marks(side.blocks))  # the same sum for the same blocks
        blocks = number_values(row_marks(marks, self.sizes))
        ends = (self.sorted_rows(ends) for ends in side[1:])  # units of one size only are compared
        return Side(blocks, *(np.where(np.isnan(found), 0.0, found) for found in ends))


# --- rows that lead to a unit, or to a value -------------------------------------------------------------


class Property(NamedTuple):
    """A property that targets have and queries ask for: where their intervals overlap in every dimension."""

    targets: Ends
    queries: Ends

    def of_links(self, targets: Ints, queries: Ints) -> Bools:
        """Return True for each link whose target has what its query asks for."""
        (low, high), (first, last) = self
        return np.asarray(((low[targets] <= last[queries]) & (first[queries] <= high[targets])).all(axis=1))


def equality(targets: Ints, queries: Ints) -> Property:
    """Return the property of having the same number."""
    ours, theirs = (np.ascontiguousarray(numbers[:, None], float) for numbers in (targets, queries))
    return Property((ours, ours), (theirs, theirs))


def guessed_shares(sides: Sides, wanted: Property) -> Floats:
    """Return, for each query, the share of all its candidates that have the property."""
    ours, theirs = (
        side._replace(low=np.hstack([side.low, ends[0]]), high=np.hstack([side.high, ends[1]]))
        for side, ends in zip(sides, wanted, strict=True)
    )
    return np.asarray(count_candidates(ours, theirs)[0] / np.maximum(count_candidates(*sides)[0], 1))


def linked_shares(attack: NearestAttack, wanted: Property) -> Floats:
    """Return, for each query, the share of its nearest candidates that have the property; 0 without any."""
    targets, sides = attack.targets.points, (attack.targets.facts, attack.facts)
    counts = count_nearest(targets, attack.queries, sides, wanted, TOLERANCE)
    return counts[1] / np.maximum(counts[0], 1)


def row_shares(pair: Pair, units: Ints) -> Iterator[tuple[str, Floats]]:
    """Yield the name of each attack and, for each row, the share of its links that lead to its own unit."""
    wanted = equality(units, units)
    for direction in facts.DIRECTIONS:
        yield "guess", guessed_shares(facts.facts_of(pair).sides(direction), wanted)
        if pair.disclosure.paired and pair.known_variables:
            yield "dbrl", linked_shares(nearest_attack(pair, standardised, direction), wanted)
        for by in laws_of(pair) if pair.rows is None and pair.n <= LARGE else ():
            links = posterior_of(pair, by, order=False)
            yield by, links.shares(links.both, wanted.of_links, forward=direction == facts.TO_ORIGINAL)


# --- whole units, by their means and sorted rows ---------------------------------------------------------


def unit_credits(pair: Pair, units: Units) -> Iterator[tuple[str, Floats]]:
    """Yield the name of each attack on whole units and each unit's credit, in both directions."""
    sides = facts.facts_of(pair).sides()
    whole = units.side(sides[0]), units.side(sides[1])
    inside = _matched_units(sides, whole, units) if sides[0].low.shape[1] and units.count <= DENSE else None
    points: dict[str, list[Floats]] = {}
    if pair.disclosure.paired and pair.known_variables:
        points["unit_means"] = [units.means(file) for file in standardised(pair)]
        if units.sizes.max() <= SMALL:
            points["sorted_rows"] = [units.sorted_rows(file) for file in standardised(pair)]
    for forward in (True, False):
        ours, theirs = whole if forward else whole[::-1]
        candidates = None if inside is None else inside if forward else inside.T
        counts = count_candidates(ours, theirs)[0] if candidates is None else candidates.sum(axis=1)
        yield "guess", 1 / counts
        for name, files in points.items():
            targets, queries = files if forward else files[::-1]
            if candidates is None:
                attack = NearestAttack(Targets(targets, ours), queries, theirs)
                yield name, attack.credits(np.arange(units.count)).expected
            else:
                yield name, _credits_among(candidates, targets, queries)


def _matched_units(sides: Sides, whole: Sides, units: Units) -> Bools:
    """Return published x original units: True where their rows fit each other one to one."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and rarely needed
    from scipy.sparse.csgraph import maximum_bipartite_matching  # noqa: PLC0415

    found = np.eye(units.count, dtype=np.bool_)
    rows = np.split(units.rows, units.starts[1:])
    for i, theirs in enumerate(rows):
        for j in np.flatnonzero(facts.fits(*whole, np.arange(units.count), i)):
            graph = csr_array(facts.fits(*sides, rows[j], theirs[:, None]))
            found[i, j] |= bool((maximum_bipartite_matching(graph) >= 0).all())
    return found


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


# --- whole units, by the law of the masking --------------------------------------------------------------


def reads_whole_units(pair: Pair) -> bool:
    """Return True if rows of a unit can be told to belong together, and a law or facts compare units."""
    whole = pair.rows is None and read_units(pair) is not None
    return whole and bool(runs_again(pair) or laws_of(pair))


def numbers_read(pair: Pair) -> Ints:
    """Return the number of each row's unit where the release shows units."""
    found = read_units(pair)
    assert found is not None  # noqa: S101 - callers have looked
    return found.numbers


def _aligned_rows(pair: Pair, units: Units) -> Ints:
    """Return the rows of all units, those of each in the order of what their unmasked columns show."""
    blocks = facts.facts_of(pair).theirs.blocks
    return units.rows[np.lexsort((blocks[units.rows], units.numbers[units.rows]))]


def rows_in_units(pair: Pair, by: str) -> tuple[Posterior, Floats]:
    """Return pairs of rows that are aligned in likely pairs of units, and their probability of being linked.

    Rows of a unit that no unmasked column tells apart share it.
    """
    units, found, blocks = (
        Units(numbers_read(pair)),
        unit_posterior(pair, by),
        facts.facts_of(pair).ours.blocks,
    )
    rows, (g, h) = _aligned_rows(pair, units), found.pairs[:2]
    best = np.flatnonzero(found.both >= min(LEAST, found.both.max()))
    g, h, chance = g[best], h[best], found.both[best]
    parts = []
    for size in np.unique(units.sizes[g]):
        some = np.flatnonzero(units.sizes[g] == size)
        theirs, ours = (rows[units.starts[one[some]] + np.arange(size)[:, None]] for one in (g, h))
        a, b, k = np.nonzero(blocks[theirs][:, None] == blocks[ours])
        parts.append((theirs[a, k], ours[b, k], chance[some[k]]))
    theirs, ours, chances = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Posterior(Pairs(theirs, ours, np.log(chances), np.ones(len(theirs)), pair.n)), chances


@once
def unit_posterior(pair: Pair, by: str) -> Posterior:
    """Return the posterior of units: log-likelihoods add up over rows aligned by their unmasked columns.

    Rows of a unit that no unmasked column tells apart are paired as is best for each two units.
    """
    units, ties, reader = Units(numbers_read(pair)), facts.facts_of(pair), reading_of(pair, by)
    rows = _aligned_rows(pair, units)
    classes = units.side(ties.ours._replace(low=np.empty((pair.n, 0)), high=np.empty((pair.n, 0)))).blocks
    lists = []
    for members in np.split(np.argsort(classes, kind="stable"), np.cumsum(np.bincount(classes))[:-1]):
        if not members.size:
            continue
        mine = rows[units.starts[members][:, None] + np.arange(units.sizes[members[0]])]
        alike = np.split(mine, np.flatnonzero(np.diff(ties.theirs.blocks[mine[0]])) + 1, axis=1)
        none = no_facts(members.size)
        g, h, *values, _ = likely_pairs(_search_of_units(reader, alike), none, none)
        lists.append((members[g], members[h], *values))
    return Posterior(sorted_pairs([np.concatenate(part) for part in zip(*lists, strict=True)], units.count))


def _search_of_units(reader: Search, alike: list[Ints]) -> Search:
    """Return how likely pairs of units are found; parts of `alike` have rows to be paired, unit x row."""
    cost = sum(part.shape[1] ** 2 for part in alike)  # pairs of rows in one of units

    def likelihood(g: Ints, h: Ints) -> Floats:
        """Return the log-likelihood of each pair of units, in batches, so that memory stays low."""
        found, step = np.zeros(len(g)), max(AT_ONCE // cost, 1)
        for k in range(0, len(g), step):
            for part in alike:
                found[k : k + step] += _best_pairing(reader, part[g[k : k + step]], part[h[k : k + step]])
        return found

    def points(of_rows: Floats) -> Floats:
        """Return the points of all rows of a unit as one, sorted where the rows may be paired."""
        return np.hstack([np.sort(of_rows[part], axis=1).reshape(len(part), -1) for part in alike])

    return Search(
        likelihood,
        lambda: [(points(theirs), points(ours)) for theirs, ours in reader.spaces()],
        whole=min(WHOLE, max(ALL_ROWS // cost, 1)),
    )


def _best_pairing(reader: Search, theirs: Ints, ours: Ints) -> Floats:
    """Return the log-likelihood of the rows of each two units, pair x row, paired at best."""
    size = theirs.shape[1]
    every = reader.likelihood(np.repeat(theirs, size, axis=1).ravel(), np.tile(ours, size).ravel())
    every = every.reshape(-1, size, size)
    if size <= FEW_ROWS:
        return np.max([every[:, range(size), way].sum(axis=1) for way in permutations(range(size))], axis=0)
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - slow to import

    return np.array([cost[linear_sum_assignment(cost, maximize=True)].sum() for cost in every])


def units_by_law(pair: Pair) -> Iterator[Floats]:
    """Yield every unit's credit by each law, in both directions, one to one and not.

    Where the method draws nothing, the facts say it all: units whose rows are published alike are equal.
    """
    if reads_whole_units(pair) and runs_again(pair):
        yield chances_by_facts(pair)
    for found in [unit_posterior(pair, by) for by in laws_of(pair)] if reads_whole_units(pair) else ():
        for chance in (found.both, found.plain):
            for forward in (True, False):
                yield found.credit(chance, forward=forward)


def chances_by_facts(pair: Pair) -> Floats:
    """Return the chance of each unit in a guess among the published units that fit the facts of its rows."""
    units, ties = Units(numbers_read(pair)), facts.facts_of(pair)
    candidates = count_candidates(units.side(ties.ours), units.side(ties.theirs))[0]
    return np.asarray(1 / np.maximum(candidates, 1))


def row_credits_of_units(pair: Pair) -> Floats:
    """Return for each row the credit of its unit, by the law that finds most rows.

    By the facts, rows of a unit that they do not tell apart share it.
    """
    by_facts, by_units = runs_again(pair), list(units_by_law(pair))
    found = [row_chances_by_facts(pair)] if by_facts else []
    return max([*found, *(credit[numbers_read(pair)] for credit in by_units[by_facts:])], key=np.mean)


def row_chances_by_facts(pair: Pair) -> Floats:
    """Return the chance of each row in a guess among the units, then their rows, that fit its own facts."""
    numbers = numbers_read(pair)
    alike = number_values(row_marks(numbers, facts.facts_of(pair).ours.blocks))
    return np.asarray(chances_by_facts(pair)[numbers] / np.bincount(alike)[alike])


# --- the metric ------------------------------------------------------------------------------------------


def score_linkage_units(pair: Pair, *, detail: bool = False, per_record: bool = False) -> Score:
    """Return the larger score of rows that lead to a unit and of units that lead to themselves."""
    numbers = units_of(pair)
    if numbers is None:
        raise checks.NotApplicable(
            "linkage_units needs a column of households, firms or persons; name it with unit="
        )
    facts.require_tied_rows(pair, "linkage_units")
    shares = max((found for _, found in row_shares(pair, numbers)), key=np.mean)
    parts = {"row_to_unit": float(shares.mean()), "unit_to_unit": 0.0}
    if publishes_units(pair):
        every = [*(found for _, found in unit_credits(pair, Units(numbers))), *units_by_law(pair)]
        parts["unit_to_unit"] = max(float(found.mean()) for found in every)
    chance = float((np.bincount(numbers) ** 2).sum() / numbers.size**2)  # two random rows are of one unit
    return score_of_file(
        pair,
        max(parts.values()),
        used=np.full(pair.p, pair.original.n),
        random=chance if detail else None,
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
    role="unit",
    informed=True,
    score=score_linkage_units,
    explain=explain_linkage_units,
    **OVERVIEW,
    **OF_ROWS,
)
def linkage_units(original: Any, masked: Any) -> float:
    """Share of records that lead an intruder to the right household, firm or person; 0 if none.

    0 means that no link leads to the right unit, 1 that all do. Where a unit has several rows, `linkage` says
    too little: a link to another row of the same unit has found it, too.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` a `Microdata` with its `unit`.

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
    >>> frame = pl.DataFrame({"firm": [1, 2, 1, 2], "sales": [10.5, 50.5, 11.0, 51.0]})
    >>> masked = sdc.Microdata(frame, columns="sales", untouched="firm").mask("mdav", k=2)
    >>> sdc.linkage(frame.drop("firm"), masked.drop("firm"))
    0.5
    >>> sdc.linkage_units(sdc.Microdata(frame, columns="sales", unit="firm"), masked)
    1.0
    """
