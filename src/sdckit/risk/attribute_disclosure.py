"""Attribute disclosure: how often an intruder learns a confidential value from the record he links to."""

from __future__ import annotations

import hashlib
import math
import pickle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.arrays import Floats, Ints
from sdckit.core import checks
from sdckit.core.cells import NUMBER, converted, polars_column
from sdckit.kernels.candidates import no_facts
from sdckit.kernels.jit import kernel
from sdckit.metrics.pair import metric
from sdckit.risk import facts, intruder
from sdckit.risk.beside import row_orders
from sdckit.risk.distances import OF_ROWS, OVERVIEW, kept, once, score_of_file, standardised
from sdckit.risk.facts import TO_MASKED, facts_of
from sdckit.risk.law import LARGE, law_of_shadows
from sdckit.risk.literature import nearest_attack
from sdckit.risk.units import Property, guessed_shares, linked_shares, reads_whole_units, rows_in_units

if TYPE_CHECKING:
    import narwhals as nw

    from sdckit.arrays import Bools
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair
    from sdckit.metrics.score import Score

WITHIN = 0.1  # a guess is right if it is at most this share of the true value away from it
MISSING = -1
ALL_VOTES = 4_000_000  # pairs up to which all vote, and not only the likely ones
WINDOW = math.log((1 + WITHIN) / (1 - WITHIN))  # logs of sizes for which one guess can be right
ROUNDING = 1e-9  # of sums and logs
KEPT = ("blocks", "units", "confidential", "unknown", "hidden")  # what is read of other columns
NOBODY = -9  # kind of a guess where nobody votes


# --- cells of confidential columns -----------------------------------------------------------------------


class Cells(NamedTuple):
    """Cells of a column: numbers, and codes: 0 for a number, -1 for a missing cell, else that of a text."""

    numbers: Floats
    codes: Ints

    @property
    def observed(self) -> Bools:
        """True for each cell that is not missing."""
        return np.asarray(self.codes != MISSING)

    def take(self, rows: Ints) -> Cells:
        """Return the cells of some rows."""
        return Cells(self.numbers[rows], self.codes[rows])


class Confidential(NamedTuple):
    """Cells of a confidential column in the original and in the published file, rows aligned."""

    original: Cells
    published: Cells


def number_cells(values: Floats) -> Cells:
    """Return the cells of a column of numbers, NaN where they are missing."""
    return Cells(np.where(np.isnan(values), 0.0, values), np.where(np.isnan(values), MISSING, 0))


def converted_cells(*columns: nw.Series[Any]) -> list[Cells]:
    """Return the cells of columns of any type, with the same codes for equal texts and dates."""
    codes: dict[Any, int] = {}  # new ones for texts and dates that were not seen before
    found = []
    for column in map(polars_column, columns):
        if column.dtype.is_numeric():
            found.append(number_cells(column.cast(float).fill_null(float("nan")).to_numpy()))
            continue
        keys = [converted(cell) for cell in column.to_list()]
        numbers, marks = np.zeros(len(keys)), np.full(len(keys), MISSING)
        for row, key in enumerate(keys):
            if key is not None and key[0] == NUMBER:
                numbers[row], marks[row] = float(key[1]), 0
            elif key is not None:
                marks[row] = codes.setdefault(key, len(codes) + 1)
        found.append(Cells(numbers, marks))
    return found


def right_guesses(targets: Cells, queries: Cells) -> Property:
    """Return the property of a published cell (target) to be a right guess of an original one (query).

    Numbers are right within 10 % of the true one, all else if equal; missing cells are never right.
    """
    values, text = queries.numbers, queries.codes != 0
    within = WITHIN * np.abs(values)
    low, high = values - within, values + within  # the smallest and the largest such number, to the last bit
    low = np.where(values - low > within, np.nextafter(low, np.inf), low)
    high = np.where(high - values > within, np.nextafter(high, -np.inf), high)
    low[text], high[text] = -np.inf, np.inf
    value = np.where(targets.codes != 0, 0.0, targets.numbers)
    codes = np.where(targets.codes == MISSING, MISSING - 1, targets.codes).astype(float)
    ours = np.column_stack([value, codes])
    asked = queries.codes.astype(float)
    return Property((ours, ours), (np.column_stack([low, asked]), np.column_stack([high, asked])))


@once
def confidential_of(pair: Pair) -> dict[str, Confidential]:
    """Return the cells of each confidential column that is published, by name; read once."""
    if pair.whole is not None and pair.rows is not None:
        whole = confidential_of(pair.whole).items()
        return {name: Confidential(*(cells.take(pair.rows) for cells in both)) for name, both in whole}
    original, found = pair.original, {}
    for name in original.roles.confidential:
        if name in pair.columns:
            j = pair.columns.index(name)
            found[name] = Confidential(number_cells(original.values[:, j]), number_cells(pair.masked[:, j]))
        elif pair.table is None:
            found[name] = confidential_of_original(original)[name]
        elif original.table is not None and name in pair.table.names:
            files = (original.table.column(name), facts.aligned_column(pair, name))
            found[name] = Confidential(*converted_cells(*files))
    return found


@kept
def confidential_of_original(original: Original) -> dict[str, Confidential]:
    """Return the cells of confidential columns that are not masked, as releases publish them; read once.

    For sweeps and searches; the cells are kept where the table is not (`Original.without_table`).
    """
    table, names = original.table, [n for n in original.roles.confidential if n not in original.columns]
    if table is None:
        return {}
    files = {name: (table.column(name), original.published_column(name)) for name in names}
    return {name: Confidential(*converted_cells(*both)) for name, both in files.items()}


def keep_columns(original: Original) -> None:
    """Read all that risks need of a table's other columns, to be kept without the table."""
    facts.blocks_of_original(original)
    confidential_of_original(original)
    if facts.unknown_of_original(original):
        facts.hidden_of_original(original)
    facts.units_of_original(original)


def digest_of_columns(original: Original) -> bytes:
    """Return a digest of what risks read of columns that are not masked."""
    keep_columns(original)
    read = (original.kept.get(f"risk: {what}_of_original") for what in KEPT)
    return hashlib.sha256(b"".join(map(pickle.dumps, read))).digest()


# --- what an intruder learns -----------------------------------------------------------------------------


class Learned(NamedTuple):
    """What an intruder learns of one confidential column: share of right guesses, and its baselines."""

    value: float
    random: float  # a random record of the whole release
    constant: float  # the best of median, mode and most frequent value within 10 %
    groups: float  # random links among the records that the facts leave
    attacks: dict[str, float]  # share of right guesses by each attack
    records: Floats  # share of right guesses for each original; NaN where it has no value


def learn(pair: Pair, cells: Confidential, name: str) -> Learned:
    """Return what an intruder who knows the originals learns of a confidential column with some values."""
    original, published = cells
    wanted, known, rows = right_guesses(published, original), original.observed, np.arange(pair.original.n)
    groups = guessed_shares(facts_of(pair).sides(TO_MASKED), wanted)
    anyone = guessed_shares((no_facts(known.size), no_facts(known.size)), wanted)
    shares: dict[str, Floats] = {}
    if pair.disclosure.paired and pair.known_variables:
        shares["dbrl"] = linked_shares(nearest_attack(pair, standardised, TO_MASKED), wanted)
    whole = pair.rows is None
    order = whole and bool(row_orders(pair))
    stands_for = _values_by_law(pair, name) if whole else None
    laws = intruder.laws_of(pair) or (["other_columns"] if order else [])
    for by in laws if whole and pair.original.n <= LARGE else ():
        links = intruder.posterior_of(pair, by, order=order)
        shares[by] = links.shares(links.both, wanted.of_links, forward=False)
        shares[f"{by} alone"] = links.shares(links.plain, wanted.of_links, forward=False)
        voters, voted, weights = _votes_by_law(pair, by, order=order)
        shares[f"{by}, votes"] = votes_right(cells, voters, voted, weights, rows)
        if stands_for is not None:
            votes = np.zeros(stands_for.shape)
            np.add.at(votes, (voters, voted), weights)
            voters, values = np.indices(votes.shape).reshape(2, -1)
            weights = (votes @ stands_for).ravel()
            shares[f"{by}, true values"] = votes_right(
                Confidential(original, original), voters, values, weights, rows
            )
    for by in intruder.laws_of(pair) if reads_whole_units(pair) else ():
        links, chance = rows_in_units(pair, by)
        shares[f"{by}, units"] = links.shares(chance, wanted.of_links, forward=False)
    if intruder.laws_of(pair) and intruder.proves_swaps(pair):  # each finds his own record
        shares["swaps"] = wanted.of_links(rows, rows).astype(float)
    blocks = facts_of(pair).ours.blocks
    if (blocks != blocks[0]).any():  # else a constant guess
        shares["votes in groups"] = votes_right(cells, blocks, rows, np.ones(known.size), blocks)
    shares = (shares or {"groups": groups}) | {"constant": _constant_guess(cells)}
    attacks = {name: float(found[known].mean()) for name, found in shares.items()}
    best = shares[max(attacks, key=attacks.__getitem__)]
    return Learned(
        float(best[known].mean()),
        float(anyone[known].mean()),
        attacks["constant"],
        float(groups[known].mean()),
        attacks,
        np.where(known, best, np.nan),
    )


def _votes_by_law(pair: Pair, by: str, *, order: bool) -> tuple[Ints, Ints, Floats]:
    """Return originals, published rows and their probabilities by a law: of all pairs, or of likely ones."""
    if pair.original.n**2 > ALL_VOTES:
        links = intruder.posterior_of(pair, by, order=order)
        return links.pairs.originals, links.pairs.rows, links.both * links.pairs.standing
    chance = _chances(intruder.whole_matrix(pair, by, order=order))
    rows, originals = np.nonzero(chance)
    return originals, rows, chance[rows, originals]


def _chances(likelihood: Floats) -> Floats:
    """Return the probabilities of each row's originals, from log-likelihoods, row x original."""
    chance = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    return np.asarray(chance / chance.sum(axis=1, keepdims=True))


def votes_right(cells: Confidential, voters: Ints, rows: Ints, weights: Floats, of_original: Ints) -> Floats:
    """Return 1 for each original whose value is guessed rightly by votes, else 0.

    Each pair of a voter and a published row votes with its weight for the row's value. `of_original` is the
    voter that an original follows. The guess is the number that is right for the largest weight of rows, or
    the text with the largest weight.
    """
    published, original = cells.published.take(rows), cells.original
    seen = published.observed
    voters, weights, published = voters[seen], weights[seen], published.take(np.flatnonzero(seen))
    kinds, sizes = _kinds_and_sizes(published)
    order = np.lexsort((sizes, kinds, voters))
    count = int(max(voters.max(initial=0), of_original.max(initial=0))) + 1
    kind, size = np.full(count, NOBODY), np.zeros(count)
    _best_windows(voters[order], kinds[order], sizes[order], weights[order], kind, size)
    mine, own = _kinds_and_sizes(original)
    inside = (own >= size[of_original] - ROUNDING) & (own <= size[of_original] + WINDOW + ROUNDING)
    return ((mine == kind[of_original]) & inside & original.observed).astype(float)


def _kinds_and_sizes(cells: Cells) -> tuple[Ints, Floats]:
    """Return a number for each sign or text, and the log of a number's size, 0 for texts.

    One guess can be right for two cells of a kind whose sizes differ by at most `WINDOW`.
    """
    signs = np.sign(cells.numbers).astype(np.int64)
    kinds = np.where(cells.codes == 0, signs, cells.codes + 1)
    some = (cells.codes == 0) & (cells.numbers != 0)
    return kinds, np.where(some, np.log(np.abs(np.where(some, cells.numbers, 1.0))), 0.0)


@kernel
def _best_windows(
    voters: Ints, kinds: Ints, sizes: Floats, weights: Floats, kind: Ints, size: Floats
) -> None:
    """Write kind and smallest size of each voter's heaviest window of sizes, the first one of equals."""
    best = np.zeros(len(kind))
    start, total = 0, 0.0
    for end in range(len(voters)):
        if voters[end] != voters[start] or kinds[end] != kinds[start]:
            start, total = end, 0.0
        total += weights[end]
        while sizes[end] - sizes[start] > WINDOW + ROUNDING:
            total -= weights[start]
            start += 1
        voter = voters[end]
        if total > best[voter] * (1 + ROUNDING):
            best[voter], kind[voter], size[voter] = total, kinds[end], sizes[start]


def _constant_guess(cells: Confidential) -> Floats:
    """Return 1 for each original for which the best constant is right: median, mode or votes of all cells.

    It is the best for the original's cells: how often a value occurs is known of many variables.
    """
    cells = Confidential(cells.original, cells.original)
    every, one = np.arange(cells.original.codes.size), np.zeros(cells.original.codes.size, np.int64)
    guesses = [votes_right(cells, one, every, np.ones(one.size), one)]
    seen = cells.original.take(np.flatnonzero(cells.original.observed))
    distinct, counts = np.unique(np.stack([seen.codes, seen.numbers]), axis=1, return_counts=True)
    mode = distinct[:, int(np.argmax(counts))]  # sorted: numbers, then texts
    constants = [Cells(mode[1:], mode[:1].astype(np.int64))]
    if (numbers := seen.numbers[seen.codes == 0]).size:
        constants.append(Cells(np.array([np.median(numbers)]), np.zeros(1, np.int64)))
    guesses += [
        right_guesses(guess, cells.original).of_links(one, every).astype(float) for guess in constants
    ]
    return max(guesses, key=lambda right: float(right[cells.original.observed].mean()))


def _values_by_law(pair: Pair, name: str) -> Floats | None:
    """Return how probably each published cell of a masked column is which original one, row x original.

    The intruder knows which values occur, and the law by which they are masked. None where the column was not
    masked, or nothing was drawn, or the file is large.
    """
    n = pair.original.n
    if name not in pair.columns or n**2 > ALL_VOTES or not intruder.masks_again(pair):
        return None
    column = pair.columns.index(name)
    ours, theirs = pair.original.values[:, [column]], pair.masked[:, [column]]
    law = law_of_shadows(ours, intruder.shadows_of_column(pair, column), any_form=True)
    rows, originals = np.indices((n, n)).reshape(2, -1)
    return _chances(law.read(theirs).likelihood(rows, originals).reshape(n, n))


def score_attribute(pair: Pair, *, detail: bool = False, per_record: bool = False) -> Score:
    """Return the score of the confidential column of which an intruder learns most."""
    if not pair.original.roles.confidential and pair.whole is None:
        raise checks.NotApplicable(
            "attribute needs a column that the intruder wants to learn; name it with confidential="
        )
    columns = {name: cells for name, cells in confidential_of(pair).items() if cells.original.observed.any()}
    if not columns:
        raise checks.NotApplicable(
            "attribute has no value where no confidential column is published or has cells; use linkage"
        )
    found = {name: learn(pair, cells, name) for name, cells in columns.items()}
    worst = max(found, key=lambda name: found[name].value)
    parts: dict[str, float] = {}
    for name, one in found.items():
        parts |= {name: one.value, f"{name} random": one.random, f"{name} constant": one.constant}
        excess = one.value - max(one.random, one.constant)
        parts |= {f"{name} excess": excess, f"{name} groups": one.groups}
    return score_of_file(
        pair,
        found[worst].value,
        used=np.full(pair.p, int(columns[worst].original.observed.sum())),
        random=found[worst].random if detail else None,
        records=found[worst].records if per_record else None,
        parts=parts,
        subject=worst,
    )


def explain_attribute(score: Score) -> str:
    """Return a sentence on how often the guess is right, the larger baseline, the excess, and groups."""
    name, parts = score.subject, score.parts
    random, constant = parts[f"{name} random"], parts[f"{name} constant"]
    how = "a random record" if random > constant else "the best constant guess"
    return (
        f"someone who links a person by what he knows learns {name}, within 10%, in "
        f"{100 * score.value.overall:.3g} of 100 cases; {how} would be right in "
        f"{100 * max(random, constant):.3g}, so that the release adds {100 * parts[f'{name} excess']:.3g} "
        f"(any record that fits what he knows: {100 * parts[f'{name} groups']:.3g})"
    )


@metric(
    title="attribute disclosure",
    limit_words="a confidential value may be guessed in at most # of 100 cases",
    role="confidential",
    informed=True,
    in_blocks=True,
    score=score_attribute,
    explain=explain_attribute,
    **OVERVIEW,
    **OF_ROWS,
)
def attribute(original: Any, masked: Any) -> float:
    """Share of records whose confidential value an intruder learns from the record he links to; 0 if none.

    0 means that no guess is right, 1 that all are. Beside the value stand two baselines that need no link:
    what a release says of everybody is no disclosure about one person.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` a `Microdata` with confidential
        columns.

    Returns
    -------
    float
        The largest over the confidential columns, which are no part of what the intruder links by.

    Notes
    -----
    Each original is linked to its most probable published record by the law of the masking, or to the
    nearest one, inside the facts, as for `linkage`; the record's published value is the guess. Or all records
    vote, each with its probability, for the value that is most probably right; among equally probable ones,
    such as a group of microaggregation, for the most frequent value. Of a column that is masked itself, he
    reads which true value each published one stands for, by the law of the masking. Or he guesses the value
    that is most often right for everybody. A guess is right within 10 % of the
    true value (0: a guess of 0; text: equal); equally good records share. The parts of `evaluate` have, for
    each confidential column, the value, its baselines (a random record of the release; the best single guess
    for everybody), the excess over the larger one, and "groups": the share for random links among all
    records that fit the facts.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import polars as pl
    >>> import sdckit as sdc
    >>> frame = pl.DataFrame({"size": [1.5, 30.5, 2.0, 31.0], "debt": [5.0, 50.0, 7.0, 70.0]})
    >>> data = sdc.Microdata(frame, columns="size", confidential="debt")
    >>> sdc.attribute(data, data.mask("mdav", k=2))
    0.5
    """
