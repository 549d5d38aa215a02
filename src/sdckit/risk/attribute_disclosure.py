"""Attribute disclosure: how often an intruder learns a confidential value from the record he links to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.core.registry import metric
from sdckit.kernels.candidates import no_facts
from sdckit.kernels.jit import Floats, Ints, kernel
from sdckit.metrics.pair import pair_of
from sdckit.metrics.score import Score, Values
from sdckit.risk.confidential_cells import WITHIN, Cells, confidential_of, right_guesses
from sdckit.risk.facts import CERTAIN, TO_MASKED, facts_of
from sdckit.risk.intruder import posterior_of, reads_law
from sdckit.risk.law import LARGE
from sdckit.risk.linked_shares import distance_attacks, guessed_shares, linked_shares, shares_of_links

if TYPE_CHECKING:
    from sdckit.metrics.pair import Pair
    from sdckit.risk.confidential_cells import Confidential
    from sdckit.risk.linked_shares import Property

WINDOW = math.log((1 + WITHIN) / (1 - WITHIN))  # logs of sizes for which one guess can be right
ROUNDING = 1e-9  # of sums and logs
NOBODY = -9  # kind of a guess where nobody votes
HANDBOOK = "Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239"


class Learned(NamedTuple):
    """What an intruder learns of one confidential column: share of right guesses, and its baselines."""

    value: float
    random: float  # a random record of the whole release
    constant: float  # the best of median, mode and most frequent value within 10 %
    groups: float  # random links among the records that the facts leave
    attacks: dict[str, float]  # share of right guesses by each distance
    records: Floats  # share of right guesses for each original; NaN where it has no value

    @property
    def baseline(self) -> float:
        """The larger of both baselines."""
        return max(self.random, self.constant)

    @property
    def excess(self) -> float:
        """How much the intruder gains over the larger baseline."""
        return self.value - self.baseline


def learn(pair: Pair, cells: Confidential) -> Learned:
    """Return what an intruder who knows the originals learns of a confidential column with some values."""
    original, published = cells
    wanted = right_guesses(published, original)
    known = original.observed
    groups = guessed_shares(facts_of(pair).sides(TO_MASKED), wanted)
    anyone = guessed_shares((no_facts(known.size), no_facts(known.size)), wanted)
    shares: dict[str, Floats] = {}
    for name, attack in distance_attacks(pair, TO_MASKED, CERTAIN):
        found = linked_shares(attack, wanted)
        if name not in shares or found[known].mean() > shares[name][known].mean():
            shares[name] = found
    shares |= _shares_by_law(pair, wanted, cells) | _shares_of_votes_in_groups(pair, cells)
    attacks = {name: float(found[known].mean()) for name, found in shares.items()}
    best = shares[max(attacks, key=attacks.__getitem__)] if shares else groups
    return Learned(
        float(best[known].mean()),
        float(anyone[known].mean()),
        _constant_share(cells),
        float(groups[known].mean()),
        attacks,
        np.where(known, best, np.nan),
    )


def _shares_by_law(pair: Pair, wanted: Property, cells: Confidential) -> dict[str, Floats]:
    """Return the share of right guesses for each original linked by the law of the masking, by law.

    He takes the value of the most probable record, or the value that the probable records together make most
    probable.
    """
    whole, found = pair.whole or pair, {}
    if pair.rows is not None or whole.original.n > LARGE:
        return {}
    for by in ("shadows", "folds"):
        if reads_law(pair, by):
            links = posterior_of(whole, by)
            for name, chance in (("", links.both), (" alone", links.plain)):
                pairs, weights = links.pairs, chance * links.pairs.standing
                found[by + name] = shares_of_links(links, chance, wanted, forward=False)
                found[f"{by}{name}, votes"] = votes_right(
                    cells, pairs.originals, pairs.rows, weights, np.arange(pairs.n)
                )
    return found


def _shares_of_votes_in_groups(pair: Pair, cells: Confidential) -> dict[str, Floats]:
    """Return the right guesses by the most frequent value among the records of a block of facts."""
    ours, theirs = facts_of(pair).runs[CERTAIN]
    if not (ours.blocks != ours.blocks[0]).any():
        return {}  # one block: a constant guess
    rows = np.arange(len(theirs.blocks))
    return {"votes in groups": votes_right(cells, theirs.blocks, rows, np.ones(len(rows)), ours.blocks)}


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


def _constant_share(cells: Confidential) -> float:
    """Return the share of right guesses of the best constant: median, mode or votes of all cells."""
    known, published = np.flatnonzero(cells.original.observed), cells.published
    seen = published.take(np.flatnonzero(published.observed))
    if not seen.codes.size:
        return 0.0
    original = cells.original.take(known)
    kinds = np.stack([seen.codes, seen.numbers])
    distinct, counts = np.unique(kinds, axis=1, return_counts=True)  # sorted: numbers, then texts
    mode = distinct[:, int(np.argmax(counts))]
    guesses = [Cells(mode[1:], mode[:1].astype(np.int64))]
    if (numbers := seen.numbers[seen.codes == 0]).size:
        guesses.append(Cells(np.array([np.median(numbers)]), np.zeros(1, np.int64)))
    every, one = np.arange(published.codes.size), np.zeros(published.codes.size, np.int64)
    voted = float(votes_right(cells, one, every, np.ones(one.size), one)[known].mean())
    return max(voted, *(_share_right(guess, original) for guess in guesses))


def _share_right(guess: Cells, original: Cells) -> float:
    """Return the share of original cells for which one guess is right."""
    (low, _), (lower, upper) = right_guesses(guess, original)
    return float(((low <= upper) & (low >= lower)).all(axis=1).mean())


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
    found = {name: learn(pair, cells) for name, cells in columns.items()}
    worst = max(found, key=lambda name: found[name].value)
    parts: dict[str, float] = {}
    for name, one in found.items():
        parts |= {name: one.value, f"{name} random": one.random, f"{name} constant": one.constant}
        parts |= {f"{name} excess": one.excess, f"{name} groups": one.groups}
    none = np.full(pair.p, np.nan)
    return Score(
        Values(found[worst].value, none),
        np.full(pair.p, int(columns[worst].original.observed.sum())),
        np.zeros(pair.p, np.int64),
        random=Values(found[worst].random, none) if detail else None,
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
    family="risk",
    in_blocks=True,
    bounds=(0.0, 1.0),
    best=0.0,
    needs="rows",
    role="confidential",
    by_variable=False,
    informed=True,
    paired=False,
    place=11,
    shown="overview",
    score=score_attribute,
    explain=explain_attribute,
    reference=HANDBOOK,
)
def attribute(original: Any, masked: Any) -> float:
    """Share of records whose confidential value an intruder learns from the record he links to; 0 if none.

    0 means that no guess is right, 1 that all are. Beside the value stand two baselines that need no link:
    what a release says of everybody is no disclosure about one person.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` prepared with its confidential
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
    such as a group of microaggregation, for the most frequent value. A guess is right within 10 % of the
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
    >>> data = pl.DataFrame({"size": [1.5, 30.5, 2.0, 31.0], "debt": [5.0, 50.0, 7.0, 70.0]})
    >>> masked = sdc.mask(data, "mdav", k=2, columns="size", untouched="debt")
    >>> sdc.attribute(sdc.prepare(data, columns="size", confidential="debt"), masked)
    0.5
    """
    return score_attribute(pair_of(original, masked)).value.overall
