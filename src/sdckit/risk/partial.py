"""An intruder who holds the originals of a share of the persons only: how many of these he finds.

A published record may then belong to somebody he does not know. For each unknown person the list of originals
has a stranger, whose likelihood is the mean over the known ones. A value of a swapped column that strangers
may have had proves nothing. The law is the one that somebody with the whole original learns, so that the
figure is rather too large than too small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.checks import as_number
from sdckit.risk import intruder, posterior
from sdckit.risk.facts import TO_MASKED, facts_of

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.metrics.pair import Pair
    from sdckit.risk.structure import Codes

SEED = 6  # of the draw of the known persons: public, so that a file has one figure everywhere


def checked_known_share(share: object) -> float | None:
    """Return the share of known persons as a number above 0 and at most 1; None for None."""
    if share is None:
        return None
    number = as_number(share)
    if number is None or not 0 < number <= 1:
        raise ValueError(f"known_share is {share!r}; give a number above 0 and at most 1, such as 0.75")
    return number


def known_share_notes(pair: Pair, share: float | None) -> list[str]:
    """Return a note on how many of the persons that he holds an intruder finds; nothing without a share."""
    if share is None:
        return []
    whole = pair.whole or pair
    reason = _why_not(whole)
    if reason:
        return [f"known_share is left out: {reason}"]
    found = 100 * found_among_known(whole, share)
    return [f"someone who holds {100 * share:.4g} % of the persons finds {found:.3g} of 100 of them"]


def _why_not(pair: Pair) -> str:
    """Return why no figure can be given for a file; an empty text where one can."""
    n, most = pair.original.n, int(posterior.WHOLE**0.5)
    if not (pair.disclosure.paired and pair.known_variables):
        return "the intruder knows nothing that ties a row to a person"
    if n > most:
        return f"it is measured up to {most:,} records, and there are {n:,}"
    if not (_laws(pair) or intruder.runs_again(pair)):
        return f"nobody said how the file was masked, and {n} records are too few to learn it from"
    return ""


def _laws(pair: Pair) -> list[str]:
    """Return which laws of the masking can be learnt."""
    return [by for by in ("shadows", "folds") if intruder.reads_law(pair, by)]


def found_among_known(pair: Pair, share: float) -> float:
    """Return the share of the known persons whose published record is found; 0 if he finds nobody.

    He links each of them to the most probable record, by the law of shadows or by that of folds, one to one
    or each by itself, whichever finds more; by the facts alone where the masking draws nothing.
    """
    n = pair.original.n
    known = np.zeros(n, np.bool_)
    known[np.random.default_rng(SEED).permutation(n)[: max(round(share * n), 1)]] = True
    if not _laws(pair):
        counts = facts_of(pair).candidates(TO_MASKED)[0]
        return float((1 / np.maximum(counts, 1))[known].mean())
    return max(_found_by_law(pair, by, known) for by in _laws(pair))


def _found_by_law(pair: Pair, by: str, known: Bools) -> float:
    """Return the share of the known persons that are found by one law."""
    matrix = with_strangers(intruder.whole_matrix(pair, by), known)
    codes = [partial_codes(one, known) for one in intruder.exchanged_codes(pair)]
    pairs = intruder.pairs_after_swaps(matrix, codes) if codes else posterior.pairs_of_matrix(matrix)
    found = posterior.Posterior(pairs)
    truth: Ints = np.arange(len(matrix))
    found_by = [found.credit(chance, truth, forward=False) for chance in (found.plain, found.both)]
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
