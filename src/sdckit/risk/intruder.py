"""The intruder who knows the law of the masking: what he concludes about every record of a pair of files.

`posterior_of(pair, law)` is his posterior, by the law that he learns from shadows ("shadows") or from the
release itself ("folds"), inside the facts. A law of shadows misses a secret that all rows share; one of folds
misses what one file cannot show: both are tried, and the larger figure counts. `LawAttack` turns the
posterior into links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.arrays import Bools, Floats, Ints
from sdckit.core import registry
from sdckit.core.checks import as_number, warn
from sdckit.core.randomness import stream_generator
from sdckit.core.registry import Stated, function_options, parameters_in_stratum
from sdckit.core.table import Step, decimals_of, decimals_of_steps, usual_step
from sdckit.kernels.candidates import Side, take
from sdckit.kernels.jit import kernel
from sdckit.masking import mask_rows, rounded
from sdckit.metrics.score import LOOKED_UP
from sdckit.progress import each
from sdckit.risk import distances, law, posterior
from sdckit.risk.beside import read_beside, row_orders, with_more
from sdckit.risk.facts import TO_MASKED, TO_ORIGINAL, facts_of, units_of_original
from sdckit.risk.law import LARGE
from sdckit.risk.posterior import Search
from sdckit.rules.rules import Edits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sdckit.metrics.pair import Pair
    from sdckit.risk.posterior import Pairs

USUAL, MORE = 40, 80  # shadows, and where single records have a law of their own
FEW = 10  # in searches
OF_LARGE = 3  # of files above 20,000 records, which show a law that all records share in each
SEED = 0x5DC  # of the intruder's own draws: public, and no stream of a release uses it
FEWEST = 2  # shadows that tell a random masking from one that draws nothing
RETURNS = 0.99  # share of exchanged cells whose partner got the other value, in every shadow
MOVED = 20  # cells that must have moved: a column that stays as it is proves nothing
ROUNDS = 30  # of propagation, at most
SOFT_ROUNDS = 3
FLOOR = -30.0  # log probability of a pair that nothing speaks for
CELL = 5_000  # records of such a file in which one-to-one links are compared with single ones
LEARNT_FROM = 10  # records of which folds can be made
SPREAD = (1e-8, 1e100)  # standard deviations of columns that are taken as they are
FARTHEST = 1e120  # published values, in such units, beyond which all are as far: their squares are numbers
MISFIT = 4.0  # standard deviations between shadows beyond which a release is none of them
MISFIT_OF_SPREAD = 10.0  # the same for the spread of its records, which varies more in small files
KNOWN_SEED = 6  # of the draw of the known persons: public, so that a file has one figure everywhere


# --- shadows ---------------------------------------------------------------------------------------------
#
# The original masked again and again by the intruder, with draws of his own. He knows the method, its
# parameters, the strata and the rules, and he sees how the release is rounded; only the draws are secret. His
# own seeds are the same at every run, so that a file has one figure everywhere.


def masks_again(pair: Pair) -> bool:
    """Return True if the intruder can mask the file himself and sees something random."""
    disclosure = pair.disclosure
    given = disclosure.method is not None or pair.remask is not None
    return given and disclosure.paired and not disclosure.deterministic


def shadows_of(pair: Pair, count: int) -> Floats:
    """Return the known variables of the file masked `count` times: shadow x record x variable."""
    found: list[Floats] = distances.cached_value(pair.cache, "shadows", list)
    remask, steps = pair.remask or _pipeline(pair), published_steps(pair) if pair.remask else None
    for number in each("masking again", range(len(found), count)):
        masked = remask(
            own_draws(number)
        )  # rounded as the release is, so that swapped values are found again
        found.append(distances.known_columns(pair, rounded(masked, steps) if steps else masked))
    return np.stack(found[:count])


def shadows_of_column(pair: Pair, column: int) -> Floats:
    """Return a variable that the intruder does not know, masked a few times: shadow x record x 1."""
    remask, steps = pair.remask or _pipeline(pair), published_steps(pair)
    masked = (rounded(remask(own_draws(number)), steps) for number in range(FEW))
    return np.stack([file[:, [column]] for file in masked])


def own_draws(number: int) -> np.random.Generator:
    """Return the intruder's own random numbers for one shadow: the same at every run, and public."""
    return stream_generator(SEED, (number,))


def _pipeline(pair: Pair) -> Callable[[np.random.Generator], Floats]:
    """Return a function that masks the file as its disclosure says, rounded and repaired as published."""
    record = registry.method_named(pair.disclosure.method)
    names, values = _masked_columns(pair)
    units = units_of_original(pair.original)
    strata: Sequence[tuple[str, Any]] = pair.strata or [("all", np.arange(pair.original.n))]
    steps, edits = published_steps(pair), _edits(pair)
    shared = [name for name in pair.columns if name in names]  # others are published as they are

    def mask(rng: np.random.Generator) -> Floats:
        """Return the file masked with the given draws."""
        masked = np.empty_like(values)
        for name, rows in strata:
            masked[rows] = mask_rows(
                record,
                np.asfortranarray(values[rows]),
                parameters_in_stratum(record, pair.disclosure.parameters, name),
                rng,
                names=names,
                units=None if units is None else units[rows],
            )
        found = pair.original.values.copy()
        for name in shared:
            found[:, pair.columns.index(name)] = masked[:, names.index(name)]
        found = rounded(found, steps)
        return found if edits is None else edits.repaired(found, decimals_of_steps(steps))

    return mask


def _masked_columns(pair: Pair) -> tuple[Sequence[str], Floats]:
    """Return names and original values of the columns that the method masked, measured or not."""
    names, original = pair.disclosure.columns, pair.original
    if not names or set(names) == set(pair.columns):
        return pair.columns, original.values
    if original.table is None or not set(names) <= set(original.table.names):
        names = tuple(name for name in pair.columns if name in names) or tuple(pair.columns)
        return names, original.values[:, [pair.columns.index(name) for name in names]]
    return names, original.matrix(names)


@distances.once
def published_steps(pair: Pair) -> list[Step]:
    """Return the step that all published values of each variable are multiples of, as everybody can see."""
    return [_step_of_all(column) for column in pair.masked.T]


def release_as_shadow(pair: Pair) -> Floats:
    """Return the known variables of the release, rounded as shadows are: long decimals change a bit."""
    return distances.known_columns(pair, rounded(pair.masked, published_steps(pair)))


def _step_of_all(column: Floats) -> Step:
    """Return the usual step of a column if all values are multiples of it, else its number of decimals."""
    step, seen = usual_step(column), column[~np.isnan(column)]
    return step if np.array_equal(step.rounded(seen), seen) else Step(decimals_of(column))


def _edits(pair: Pair) -> Edits | None:
    """Return the published rules as the repair takes them; None where the release breaks them."""
    if pair.rules is None or distances.breaks_rules(pair):
        return None
    places = [pair.columns.index(name) for name in pair.rules.columns]
    return Edits(pair.rules, tuple(pair.columns), np.asfortranarray(pair.original.values[:, places]))


def stated_law(pair: Pair) -> Stated | None:
    """Return the method's own law of the known variables; None where it states none for such a file."""
    disclosure = pair.disclosure
    record = None if disclosure.method is None else registry.METHODS[disclosure.method]
    if record is None or record.law is None or not pair.original.complete:
        return None
    if pair.strata or units_of_original(pair.original) is not None or pair.rules is not None:
        return None  # the formula is that of the file masked as a whole
    options = function_options(
        record, parameters_in_stratum(record, disclosure.parameters, "all"), pair.columns
    )
    law = None if record.changes_nothing(options) else record.law(options, pair.original.values)
    if law is None:
        return None
    known: Ints = np.asarray(pair.known_variables)
    mean, sd = (np.ascontiguousarray(part[:, known]) for part in (law.mean, law.sd))
    steps = np.array([published_steps(pair)[j].size for j in known])
    return _with_rounding(Stated(law.transform, mean, sd, law.correlation[np.ix_(known, known)]), steps)


def _with_rounding(law: Stated, steps: Floats) -> Stated:
    """Return the law of cells that are rounded to steps: each adds a variance of step^2 / 12 of its own."""
    if law.transform is not None:
        return law  # that of ranks, which rounding changes little
    sd = np.sqrt(law.sd**2 + steps**2 / 12)
    kept = np.sqrt((law.sd**2).mean(axis=0) / (sd**2).mean(axis=0))
    correlation = law.correlation * np.outer(kept, kept)
    np.fill_diagonal(correlation, 1.0)
    return Stated(None, law.mean, sd, correlation)


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
        told = whole.original.n >= LEARNT_FROM and bool(read_beside(whole, order=False))
        return ["other_columns"] if told else []
    again = masks_again(whole)
    folds = whole.original.n >= LEARNT_FROM and not (whole.trial and again)
    return [by for by, does in (("shadows", again), ("folds", folds)) if does]


def reads_order(pair: Pair) -> bool:
    """Return True if the order of the rows tells about records, even if the method draws nothing."""
    whole = pair.whole or pair
    return whole.original.n >= LEARNT_FROM and not whole.trial and bool(row_orders(whole))


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
    reading, more = _law_search(pair, by), read_beside(pair, order=order, inferred=inferred)
    return with_more(reading, more) if more else reading


@distances.once
def _law_search(pair: Pair, by: str) -> Search:
    """Return how likely pairs are by the law of shadows, or by that of the release's own folds."""
    if by == "other_columns":
        return Search(lambda rows, _: np.zeros(len(rows)), list)
    ours = distances.known_columns(pair, pair.original.values)
    unit = units_of_columns(ours)  # columns of extreme size in units of a power of two
    with np.errstate(over="ignore"):
        theirs = np.clip(release_as_shadow(pair) / unit, -FARTHEST, FARTHEST)
    ours, theirs = np.ascontiguousarray(ours / unit), np.ascontiguousarray(theirs)
    if by == "folds":
        return law.laws_of_folds(ours, theirs)
    return _of_setting(pair, "law", lambda: _law_of_shadows(pair, ours, unit)).read(theirs).search


def _of_setting(pair: Pair, name: str, compute: Callable[[], distances.Found]) -> distances.Found:
    """Return what shadows of a setting show; it is kept while a search draws other tables with it."""
    if not pair.trial:
        return compute()
    setting = f"{pair.disclosure.method} {pair.disclosure.parameters!r} {pair.known_variables}"
    return distances.last_value(pair.original.cache, name, setting, compute)


def _law_of_shadows(pair: Pair, ours: Floats, unit: Floats) -> law.Law:
    """Return the law that shadows show; searches take the method's own where it states one."""
    stated = stated_law(pair) if (unit == 1).all() else None
    if pair.trial and stated is not None:
        return law.law_as_stated(ours, stated)
    large = pair.original.n > LARGE
    few = pair.trial or large
    count = OF_LARGE if large else FEW if few else USUAL
    found = law.law_of_shadows(ours, shadows_of(pair, count) / unit, stated)
    if found.effects and not few:
        found = law.law_of_shadows(ours, shadows_of(pair, MORE) / unit, stated)
    if not (few or pair.disclosure.calibrated):  # shadows are not calibrated
        _warn_of_misfit(pair, found, unit)
    if pair.remask is not None and not few:
        return law.law_of_shadows(ours, shadows_of(pair, MORE) / unit, any_form=True)
    return found


def _warn_of_misfit(pair: Pair, found: law.Law, unit: Floats) -> None:
    """Warn where records are far less or more likely, or less alike, than those of unseen shadows."""
    masked = shadows_of(pair, MORE if found.effects else USUAL)
    rows = np.arange(pair.original.n)
    files = [*law.unseen(masked), release_as_shadow(pair)]
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


# --- swaps undone ----------------------------------------------------------------------------------------
#
# If published row u is original i, then the original that had the value which u shows was published with the
# value of i. So a pair (u, i) is possible only if, in every swapped column, some possible pair has both
# values exchanged. Wrong pairs lose their partners within a few rounds. Whether a column was swapped is not
# taken from the method's name: the shadows prove it.


class Codes(NamedTuple):
    """Values of a column as numbers, in both files; -1 for an original value that is not published.

    `open` marks values that somebody unknown may have had; None where all persons are known.
    """

    published: Ints
    original: Ints
    size: int
    open: Bools | None = None


def codes_of(original: Floats, published: Floats, strata: Ints | None = None) -> Codes:
    """Return the numbers of the published values, and of the original ones among them.

    Where values were exchanged within strata, equal values of two strata have different numbers.
    """
    values = np.unique(published[~np.isnan(published)])
    theirs, ours = distances.places_among(published, values), distances.places_among(original, values)
    if strata is None:
        return Codes(theirs, ours, len(values))
    theirs, ours = (np.where(found < 0, -1, found * len(strata) + strata) for found in (theirs, ours))
    values = np.unique(theirs[theirs >= 0])
    return Codes(distances.places_among(theirs, values), distances.places_among(ours, values), len(values))


def is_exchanged(original: Floats, published: Floats) -> bool:
    """Return True if almost every value that moved was exchanged with that of one other record."""
    codes = codes_of(original, published)
    both = (codes.published >= 0) & (codes.original >= 0)
    a, b = codes.original[both], codes.published[both]
    moved = a != b
    if moved.sum() < MOVED:
        return False
    pairs, counts = np.unique(a[moved] * codes.size + b[moved], return_counts=True)
    place = distances.places_among(pairs % codes.size * codes.size + pairs // codes.size, pairs)
    returned = np.where(place >= 0, np.minimum(counts, counts[place]), 0)
    return bool(returned.sum() >= RETURNS * moved.sum())


def exchanged_columns(original: Floats, shadows: Sequence[Floats] | Floats) -> list[int]:
    """Return the columns whose values every shadow exchanges in pairs."""
    return [
        j for j in range(original.shape[1]) if all(is_exchanged(original[:, j], one[:, j]) for one in shadows)
    ]


def pairs_left(possible: Bools, columns: Sequence[Codes]) -> Bools:
    """Return the pairs left after rounds that ask for exchanged partners and for one-to-one links."""
    found = possible.copy()
    left = int(found.sum())
    for _ in range(ROUNDS):
        for codes in columns:
            partners = np.zeros((codes.size, codes.size), np.bool_)
            if codes.open is not None:
                partners[:, codes.open] = True
            _keep_exchanged(codes.published, codes.original, partners, found)
        _keep_single(found)
        now = int(found.sum())
        if now == left:
            break
        left = now
    return found


@kernel
def _keep_exchanged(published: Ints, original: Ints, partners: Bools, found: Bools) -> None:
    """Remove pairs without a possible pair that has both values exchanged; unpublished values have none."""
    for u in range(len(found)):
        if published[u] >= 0:
            for i in range(len(original)):
                if found[u, i] and original[i] >= 0:
                    partners[published[u], original[i]] = True
    for u in range(len(found)):
        if published[u] >= 0:
            for i in range(len(original)):
                if found[u, i] and original[i] >= 0:
                    found[u, i] = partners[original[i], published[u]]


def _keep_single(found: Bools) -> None:
    """Where a row or an original has one possible pair left, remove the others of its partner."""
    for lines in (found, found.T):
        for number, line in enumerate(lines):
            places = np.flatnonzero(line)
            if len(places) == 1:
                lines[:, places] = False
                lines[number, places] = True


def supported(likelihood: Floats, columns: Sequence[Codes]) -> Floats:
    """Return log-likelihoods, row x original, to which each pair's exchanged partners have added theirs.

    Where several records have a value, the best of them counts; a value that is not published says nothing.
    """
    base = np.maximum(likelihood - likelihood.max(axis=1, keepdims=True), FLOOR)
    found: Floats = base
    for _ in range(SOFT_ROUNDS):
        total = np.log(np.exp(found - found.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True))
        chance = np.maximum(found - found.max(axis=1, keepdims=True) - total, FLOOR)
        odds = np.exp(chance)
        usual = float((odds * chance).sum() / odds.sum())
        found = base.copy()
        for codes in columns:
            best = np.full((codes.size, codes.size), FLOOR)
            if codes.open is not None:
                best[:, codes.open] = usual
            _add_partners(codes.published, codes.original, chance, usual, best, found)
    return found


@kernel
def _add_partners(
    published: Ints, original: Ints, chance: Floats, usual: float, best: Floats, found: Floats
) -> None:
    """Add to each pair the best log probability of a pair with both values exchanged."""
    for u in range(len(found)):
        if published[u] >= 0:
            for i in range(len(original)):
                if original[i] >= 0:
                    a, b = published[u], original[i]
                    best[a, b] = max(best[a, b], chance[u, i])
    for u in range(len(found)):
        for i in range(len(original)):
            if published[u] >= 0 and original[i] >= 0:
                found[u, i] += best[original[i], published[u]]
            else:
                found[u, i] += usual


# --- the posterior of a pair ----------------------------------------------------------------------------


@distances.once
def posterior_of(pair: Pair, by: str, *, order: bool) -> posterior.Posterior:
    """Return the intruder's posterior of a whole file, by one law, with or without the order of the rows.

    Swaps are undone where the shadows prove them.
    """
    search, sides = reading_of(pair, by, order=order), facts_of(pair).sides()
    return posterior.Posterior(_pairs_inside(search, sides, exchanged_codes(pair)))


def _pairs_inside(search: Search, sides: tuple[Side, Side], codes: Sequence[Codes]) -> Pairs:
    """Return the likely pairs inside the facts, after the exchanges of these columns have been undone."""
    if not codes or len(sides[0].blocks) ** 2 > posterior.WHOLE:
        return posterior.likely_pairs(search, *sides)
    every = np.arange(len(sides[0].blocks))
    return pairs_after_swaps(posterior.matrix_of(search.likelihood, every, every, *sides), codes)


def whole_matrix(pair: Pair, by: str, *, order: bool = False) -> Floats:
    """Return the log-likelihood of every pair by one law, row x original; -inf outside the facts."""
    every, likelihood = np.arange(pair.original.n), reading_of(pair, by, order=order).likelihood
    return posterior.matrix_of(likelihood, every, every, *facts_of(pair).sides())


def pairs_after_swaps(matrix: Floats, codes: Sequence[Codes]) -> Pairs:
    """Return the likely pairs of a file after swaps of these columns have been undone."""
    left = pairs_left(np.isfinite(matrix), codes)
    left |= ~left.any(axis=1, keepdims=True) & np.isfinite(matrix)  # a contradiction tells nothing
    if int(left.sum()) > len(left):  # else each row has one original left
        matrix = supported(np.where(left, matrix, -1e6), codes)
    matrix = np.where(left, matrix, -np.inf)
    return posterior.pairs_of_matrix(matrix)


@distances.once
def exchanged_codes(pair: Pair) -> list[Codes]:
    """Return the values of the known variables that the shadows prove to be exchanged in pairs."""
    if not masks_again(pair):
        return []
    steps = [published_steps(pair)[j] for j in pair.known_variables]
    ours = rounded(distances.known_columns(pair, pair.original.values), steps)

    def proven() -> list[int]:
        """Return the columns that all shadows exchange; a few show it for most methods."""
        columns = exchanged_columns(ours, shadows_of(pair, FEWEST))
        return exchanged_columns(ours, shadows_of(pair, FEW)) if columns else []

    theirs, strata = release_as_shadow(pair), seen_strata(pair)
    columns = _of_setting(pair, "exchanged columns", proven)
    return [codes_of(ours[:, j], theirs[:, j], strata) for j in columns]


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

    def credits(self, truth: Ints, rows: Ints | None = None) -> distances.Credits:
        """Return the success of each query, or of some rows of them."""
        mine = self.credit(truth if rows is None else rows)
        return distances.Credits(mine, (mine == 1).astype(float), (mine > 0).astype(float))


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

    return distances.last_value(pair.cache, f"posterior of rows {by} {order}", rows, found)


@distances.once
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


def partial_codes(codes: Codes, known: Bools) -> Codes:
    """Return the values of a swapped column without those of unknown persons; marked where they had some."""
    original = np.where(known, codes.original, -1)
    published, held = (
        np.bincount(values[values >= 0], minlength=codes.size) for values in (codes.published, original)
    )
    return codes._replace(original=original, open=held < published)
