"""The intruder who knows the law of the masking: what he concludes about every record of a pair of files.

`posterior_of(pair, law)` is his posterior, by the law that he learns from shadows ("shadows") or from the
release itself ("folds"), inside the facts. A law of shadows misses a secret that all rows share; one of folds
misses what one file cannot show: both are tried, and the larger figure counts. `LawAttack` turns the
posterior into links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.checks import as_number, warn
from sdckit.kernels.candidates import Side, take
from sdckit.masking import rounded
from sdckit.metrics.score import LOOKED_UP
from sdckit.risk import law, posterior, shadows, structure
from sdckit.risk.beside import read_beside, row_orders, with_more
from sdckit.risk.distances import Credits, Found, known_columns, last_value, once
from sdckit.risk.facts import TO_MASKED, TO_ORIGINAL, facts_of
from sdckit.risk.law import LARGE
from sdckit.risk.posterior import Search

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.metrics.pair import Pair
    from sdckit.risk.posterior import Pairs

CELL = 5_000  # records of such a file in which one-to-one links are compared with single ones
FEWEST = 10  # records of which folds can be made
SPREAD = (1e-8, 1e100)  # standard deviations of columns that are taken as they are
FARTHEST = 1e120  # published values, in such units, beyond which all are as far: their squares are numbers
MISFIT = 4.0  # standard deviations between shadows beyond which a release is none of them
MISFIT_OF_SPREAD = 10.0  # the same for the spread of its records, which varies more in small files
KNOWN_SEED = 6  # of the draw of the known persons: public, so that a file has one figure everywhere


# --- laws of a pair --------------------------------------------------------------------------------------


def units_of_columns(values: Floats) -> Floats:
    """Return 1 for each column of usual size, and else a power of two near its largest value."""
    largest = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)
    usual = (largest == 0) | ((largest > SPREAD[0]) & (largest < SPREAD[1]))
    return np.where(usual, 1.0, 2.0 ** np.floor(np.log2(np.where(usual, 1.0, largest))))


def laws_of(pair: Pair) -> list[str]:
    """Return how the release is read: by shadows and by folds, or by other columns alone; none by facts.

    Where the method draws nothing and can be run again, or no known variable was masked, the facts say all
    about the masked variables, and other columns may tell more.
    """
    whole = pair.whole or pair
    if not whole.disclosure.paired or not whole.known_variables or runs_again(whole):
        told = whole.original.n >= FEWEST and bool(read_beside(whole, order=False))
        return ["other_columns"] if told else []
    again = shadows.masks_again(whole)
    folds = whole.original.n >= FEWEST and not (whole.trial and again)
    return [by for by, does in (("shadows", again), ("folds", folds)) if does]


def reads_order(pair: Pair) -> bool:
    """Return True if the order of the rows tells about records, even if the method draws nothing."""
    whole = pair.whole or pair
    return whole.original.n >= FEWEST and not whole.trial and bool(row_orders(whole))


def looked_up_singly(pair: Pair) -> bool:
    """Return True for a large file that is read by a law: records are looked up one by one, and not all."""
    return pair.original.n > LARGE and bool(laws_of(pair))


def runs_again(pair: Pair) -> bool:
    """Return True if the method draws nothing and the intruder knows all it reads: the facts say it all."""
    return facts_of(pair.whole or pair).run_again


def reading_of(pair: Pair, by: str, *, order: bool = False, inferred: bool = True) -> Search:
    """Return the release as an intruder reads it: by a law of its masked variables, and by all else it shows.

    With `order`, by the order of the rows, too. Columns that are `inferred` tell the same in every release.
    """
    reading, more = _masked_reading(pair, by), read_beside(pair, order=order, inferred=inferred)
    return with_more(reading, more) if more else reading


@once
def _masked_reading(pair: Pair, by: str) -> Search:
    """Return the masked variables as read by the law of shadows, or by that of the release's own folds."""
    if by == "other_columns":
        return Search(lambda rows, _: np.zeros(len(rows)), list)
    ours = known_columns(pair, pair.original.values)
    unit = units_of_columns(ours)  # columns of extreme size in units of a power of two
    with np.errstate(over="ignore"):
        theirs = np.clip(shadows.release_as_shadow(pair) / unit, -FARTHEST, FARTHEST)
    ours, theirs = np.ascontiguousarray(ours / unit), np.ascontiguousarray(theirs)
    if by == "folds":
        return law.laws_of_folds(ours, theirs)
    return _of_setting(pair, "law", lambda: _law_of_shadows(pair, ours, unit)).read(theirs).search


def _of_setting(pair: Pair, name: str, compute: Callable[[], Found]) -> Found:
    """Return what shadows of a setting show; it is kept while a search draws other tables with it."""
    if not pair.trial:
        return compute()
    setting = f"{pair.disclosure.method} {pair.disclosure.parameters!r} {pair.known_variables}"
    return last_value(pair.original.cache, name, setting, compute)


def _law_of_shadows(pair: Pair, ours: Floats, unit: Floats) -> law.Law:
    """Return the law that shadows show; searches take the method's own where it states one."""
    stated = shadows.stated_law(pair) if (unit == 1).all() else None
    if pair.trial and stated is not None:
        return law.law_as_stated(ours, stated)
    large = pair.original.n > LARGE
    few = pair.trial or large
    count = shadows.OF_LARGE if large else shadows.FEW if few else shadows.USUAL
    found = law.law_of_shadows(ours, shadows.shadows_of(pair, count) / unit, stated)
    if found.effects and not few:
        found = law.law_of_shadows(ours, shadows.shadows_of(pair, shadows.MORE) / unit, stated)
    if not (few or pair.disclosure.calibrated):  # shadows are not calibrated
        _warn_of_misfit(pair, found, unit)
    if pair.remask is not None and not few:
        return law.law_of_shadows(ours, shadows.shadows_of(pair, shadows.MORE) / unit, any_form=True)
    return found


def _warn_of_misfit(pair: Pair, found: law.Law, unit: Floats) -> None:
    """Warn where records are far less or more likely, or less alike, than those of unseen shadows."""
    masked = shadows.shadows_of(pair, shadows.MORE if found.effects else shadows.USUAL)
    rows = np.arange(pair.original.n)
    files = [*law.unseen(masked), shadows.release_as_shadow(pair)]
    each = np.array([found.read(file / unit).likelihood(rows, rows) for file in files])
    own = float(np.std(each[0])) / np.sqrt(len(rows))  # few shadows tell the spread between them badly
    if _is_outside(each.mean(axis=1), own, MISFIT) or _is_outside(each.std(axis=1), own, MISFIT_OF_SPREAD):
        method = pair.disclosure.method
        what = f"masked by {method} with these parameters" if method else "made by the masking given"
        warn(f"the file does not look as if {what}; name what was done to it")


def _is_outside(of_files: Floats, least: float, most: float) -> bool:
    """Return True if the last value is farther outside the range of the others than `most` deviations."""
    *usual, ours = of_files
    spread = max(float(np.std(usual)), least, 1e-3 * abs(float(np.mean(usual))), 1e-9)
    return not min(usual) - most * spread <= ours <= max(usual) + most * spread


# --- the posterior of a pair ----------------------------------------------------------------------------


@once
def posterior_of(pair: Pair, by: str, *, order: bool) -> posterior.Posterior:
    """Return the intruder's posterior of a whole file, by one law, with or without the order of the rows.

    Swaps are undone where the shadows prove them.
    """
    search, sides = reading_of(pair, by, order=order), facts_of(pair).sides()
    return posterior.Posterior(_pairs_inside(search, sides, exchanged_codes(pair)))


def _pairs_inside(search: Search, sides: tuple[Side, Side], codes: Sequence[structure.Codes]) -> Pairs:
    """Return the likely pairs inside the facts, after the exchanges of these columns have been undone."""
    if not codes or len(sides[0].blocks) ** 2 > posterior.WHOLE:
        return posterior.likely_pairs(search, *sides)
    every = np.arange(len(sides[0].blocks))
    return pairs_after_swaps(posterior.matrix_of(search.likelihood, every, every, *sides), codes)


def whole_matrix(pair: Pair, by: str, *, order: bool = False) -> Floats:
    """Return the log-likelihood of every pair by one law, row x original; -inf outside the facts."""
    every, likelihood = np.arange(pair.original.n), reading_of(pair, by, order=order).likelihood
    return posterior.matrix_of(likelihood, every, every, *facts_of(pair).sides())


def pairs_after_swaps(matrix: Floats, codes: Sequence[structure.Codes]) -> Pairs:
    """Return the likely pairs of a file after swaps of these columns have been undone."""
    left = structure.propagate(np.isfinite(matrix), codes)
    left |= ~left.any(axis=1, keepdims=True) & np.isfinite(matrix)  # a contradiction tells nothing
    if int(left.sum()) > len(left):  # else each row has one original left
        matrix = structure.supported(np.where(left, matrix, -1e6), codes)
    matrix = np.where(left, matrix, -np.inf)
    return posterior.pairs_of_matrix(matrix)


@once
def exchanged_codes(pair: Pair) -> list[structure.Codes]:
    """Return the values of the known variables that the shadows prove to be exchanged in pairs."""
    if not shadows.masks_again(pair):
        return []
    steps = [shadows.published_steps(pair)[j] for j in pair.known_variables]
    ours = rounded(known_columns(pair, pair.original.values), steps)

    def proven() -> list[int]:
        """Return the columns that all shadows exchange; a few show it for most methods."""
        columns = structure.exchanged_columns(ours, shadows.shadows_of(pair, shadows.FEWEST))
        return structure.exchanged_columns(ours, shadows.shadows_of(pair, shadows.FEW)) if columns else []

    theirs, strata = shadows.release_as_shadow(pair), seen_strata(pair)
    columns = _of_setting(pair, "exchanged columns", proven)
    return [structure.codes_of(ours[:, j], theirs[:, j], strata) for j in columns]


def seen_strata(pair: Pair) -> Ints | None:
    """Return the stratum of each record that was masked apart, if published columns show it; else None."""
    blocks = facts_of(pair).blocks
    if not pair.strata or blocks is None:
        return None
    found = np.zeros(pair.original.n, np.int64)
    for number, (_, rows) in enumerate(pair.strata):
        found[rows] = number
    both = np.unique(np.stack([blocks, found]), axis=1)
    return found if both.shape[1] == len(np.unique(blocks)) else None


def proves_swaps(pair: Pair) -> bool:
    """Return True if at least two columns were swapped in a file too large to undo it here: all are found."""
    return pair.original.n**2 > posterior.WHOLE and len(exchanged_codes(pair)) > 1


def joint_posterior(pairs: Sequence[Pair], sides: tuple[Side, Side], by: str) -> posterior.Posterior:
    """Return the posterior of an intruder who aligns several releases: their log-likelihoods add up.

    A release that was not masked at random, or whose method is not known, is read by its folds.
    """
    readers = [
        reading_of(one, by if by in laws_of(one) else "folds", inferred=one is pairs[0]) for one in pairs
    ]
    spaces = [
        (np.hstack([theirs for theirs, _ in found]), np.hstack([ours for _, ours in found]))
        for found in zip(*(reader.spaces() for reader in readers), strict=False)
    ]

    def likelihood(rows: Ints, originals: Ints) -> Floats:
        """Return the sum of the log-likelihoods of all releases."""
        return np.asarray(sum(reader.likelihood(rows, originals) for reader in readers))

    codes = [code for one in pairs for code in exchanged_codes(one)]
    return posterior.Posterior(_pairs_inside(Search(likelihood, lambda: spaces), sides, codes))


# --- links -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LawAttack:
    """Links of a posterior: `credit` gives the success of some queries in finding their true partners.

    No other truth is asked for: what chance finds is the level of a plain guess.
    """

    credit: Callable[[Ints], Floats]

    def credits(self, truth: Ints, rows: Ints | None = None) -> Credits:
        """Return the success of each query, or of some rows of them."""
        mine = self.credit(truth if rows is None else rows)
        return Credits(mine, (mine == 1).astype(float), (mine > 0).astype(float))


def law_attack(pair: Pair, by: str, direction: str, *, one_to_one: bool, order: bool = False) -> LawAttack:
    """Return the attack by a law on a pair of files, or on a stratum of one.

    Rows of a large file are looked up each by itself, among the near originals.
    """
    whole = pair.whole or pair

    def credit(rows: Ints) -> Floats:
        """Return the success of some queries."""
        mine = rows if pair.rows is None else pair.rows[rows]
        if proves_swaps(whole):
            return np.ones(len(rows))
        if whole.original.n <= LARGE:
            return credit_of_links(posterior_of(whole, by, order=order), direction, one_to_one=one_to_one)[
                mine
            ]
        found = posterior_of_rows(whole, by, mine, order=order)
        alone = found.credit(found.plain)[mine]
        return alone + _gain(whole, by) * (1 - alone)

    return LawAttack(credit)


def credit_of_links(found: posterior.Posterior, direction: str, *, one_to_one: bool) -> Floats:
    """Return the success of each query linked to its most probable partner, one to one or by itself."""
    return found.credit(found.both if one_to_one else found.plain, forward=direction == TO_ORIGINAL)


def posterior_of_rows(pair: Pair, by: str, rows: Ints, *, order: bool) -> posterior.Posterior:
    """Return the posterior of some rows of a large file, each by itself; that of the last rows is kept."""

    def found() -> posterior.Posterior:
        """Return the posterior of these rows."""
        search = reading_of(pair, by, order=order)
        return posterior.Posterior(posterior.likely_pairs(search, *facts_of(pair).sides(), rows))

    return last_value(pair.cache, f"posterior of rows {by} {order}", rows, found)


@once
def _gain(pair: Pair, by: str) -> float:
    """Return the share of links that are found only one to one, measured on a part of a large file.

    Where no distance comes near the law and the file is too large to compare all pairs, with the share that
    only comparing all finds, measured on some rows.
    """
    search, facts, n = reading_of(pair, by), facts_of(pair), pair.original.n
    spaces = search.spaces()
    if not spaces:
        return 0.0
    rows = np.argsort(spaces[0][1][:, 0], kind="stable")
    middle = max((len(rows) - CELL) // 2, 0)
    cell = np.sort(rows[middle : middle + CELL])
    part = Search(
        lambda u, i: search.likelihood(cell[u], cell[i]), lambda: [(a[cell], b[cell]) for a, b in spaces]
    )
    found = posterior.Posterior(
        posterior.likely_pairs(part, take(facts.ours, cell), take(facts.theirs, cell))
    )
    alone, together = (found.credit(chance).mean() for chance in (found.plain, found.both))
    left = min((1 - together) / max(1 - alone, 1e-9), 1.0)
    if search.lists and n * LOOKED_UP > posterior.COMPARED:
        some = np.random.default_rng(4).permutation(n)[: posterior.COMPARED // n]
        for way in (search._replace(lists=None), search):
            found = posterior.Posterior(posterior.likely_pairs(way, *facts.sides(), some))
            share = float(found.credit(found.plain)[some].mean())
            left *= (1 - share) if way.lists else 1 / max(1 - share, 1e-9)
    return max(1 - left, 0.0)


# --- an intruder who holds the originals of some persons only --------------------------------------------
#
# A published record may then belong to somebody he does not know. For each unknown person the list of
# originals has a stranger, whose likelihood is the mean over the known ones. A value of a swapped column that
# strangers may have had proves nothing. The law is the one that somebody with the whole original learns, so
# that the figure is rather too large than too small.


def checked_known_share(share: object) -> float | None:
    """Return the share of known persons as a number above 0 and at most 1; None for None."""
    if share is None:
        return None
    number = as_number(share)
    if number is None or not 0 < number <= 1:
        raise ValueError(f"known_share is {share!r}; give a number above 0 and at most 1, such as 0.75")
    return number


def known_share_notes(pair: Pair, share: float | None) -> list[str]:
    """Return a note on how many of the persons that he holds an intruder finds, or why none can be given."""
    if share is None:
        return []
    whole = pair.whole or pair
    n, most, reason = whole.original.n, int(posterior.WHOLE**0.5), ""
    if not (whole.disclosure.paired and whole.known_variables):
        reason = "the intruder knows nothing that ties a row to a person"
    elif n > most:
        reason = f"it is measured up to {most:,} records, and there are {n:,}"
    elif not (laws_of(whole) or runs_again(whole)):
        reason = f"nobody said how the file was masked, and {n} records are too few to learn it from"
    if reason:
        return [f"known_share is left out: {reason}"]
    found = 100 * found_among_known(whole, share)
    return [f"someone who holds {100 * share:.4g} % of the persons finds {found:.3g} of 100 of them"]


def found_among_known(pair: Pair, share: float) -> float:
    """Return the share of the known persons whose published record is found; 0 if he finds nobody.

    He links each of them to the most probable record, by the law of shadows or by that of folds, one to one
    or each by itself, whichever finds more; by the facts alone where the masking draws nothing.
    """
    n = pair.original.n
    known = np.zeros(n, np.bool_)
    known[np.random.default_rng(KNOWN_SEED).permutation(n)[: max(round(share * n), 1)]] = True
    if not laws_of(pair):
        counts = facts_of(pair).candidates(TO_MASKED)[0]
        return float((1 / np.maximum(counts, 1))[known].mean())
    return max(_found_by_law(pair, by, known) for by in laws_of(pair))


def _found_by_law(pair: Pair, by: str, known: Bools) -> float:
    """Return the share of the known persons that are found by one law."""
    matrix = with_strangers(whole_matrix(pair, by), known)
    codes = [partial_codes(one, known) for one in exchanged_codes(pair)]
    pairs = pairs_after_swaps(matrix, codes) if codes else posterior.pairs_of_matrix(matrix)
    found = posterior.Posterior(pairs)
    found_by = [found.credit(chance, forward=False) for chance in (found.plain, found.both)]
    return max(float(credit[known].mean()) for credit in found_by)


def with_strangers(matrix: Floats, known: Bools) -> Floats:
    """Return log-likelihoods, row x original, with those of a stranger in place of each unknown person."""
    held = matrix[:, known]
    top = held.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)  # a row that fits nobody whom he knows
    mean = np.exp(held - top).mean(axis=1, keepdims=True)
    stranger = np.where(mean > 0, top + np.log(np.maximum(mean, 1e-300)), 0.0)
    return np.where(known, matrix, stranger)


def partial_codes(codes: structure.Codes, known: Bools) -> structure.Codes:
    """Return the values of a swapped column without those of unknown persons; marked where they had some."""
    original = np.where(known, codes.original, -1)
    published, held = (
        np.bincount(values[values >= 0], minlength=codes.size) for values in (codes.published, original)
    )
    return codes._replace(original=original, open=held < published)
