"""Record linkage metrics: how often an intruder re-identifies a published record, by several attacks.

Values are shares of the records that are found; equally good guesses share the credit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core.registry import Parameter
from sdckit.core.text import plural
from sdckit.kernels.candidates import take
from sdckit.metrics.pair import metric
from sdckit.metrics.score import LOOKED_UP, QuerySample
from sdckit.risk import intruder
from sdckit.risk.attacks import ALL, BOTH, NEAREST, OUTLIERS, explain_linkage, score_attack, score_linkage
from sdckit.risk.beside import row_orders
from sdckit.risk.distances import HANDBOOK, OF_ROWS, known_files, once, score_of_file
from sdckit.risk.facts import DIRECTIONS, TO_ORIGINAL, facts_of, fits, require_tied_rows
from sdckit.risk.law import LARGE
from sdckit.risk.literature import DISTANCES
from sdckit.risk.posterior import SURE
from sdckit.risk.units import numbers_read, row_chances_by_facts, shows_units, unit_posterior

if TYPE_CHECKING:
    from sdckit.arrays import Floats
    from sdckit.metrics.pair import Pair
    from sdckit.metrics.score import Score

NEARLY_CERTAIN = 0.9
DIRECTION = Parameter("direction", str, TO_ORIGINAL, "whose records are looked up", choices=DIRECTIONS)
EITHER = Parameter(
    "direction", str, BOTH, "whose records are looked up, or both in turn", choices=(BOTH, *DIRECTIONS)
)
KNOWING = Parameter(
    "attacks",
    str,
    ALL,
    "all, or those of the literature, which look for the nearest record and know no law",
    choices=(ALL, NEAREST),
)
PLACES = Parameter("places", int, 1, "how many nearest records the intruder may name", low=1)
WITHIN = Parameter("within", float, 0.0, "largest move in ranks, as a share of the records", low=0, high=1)
DISTANCE = Parameter(
    "distance",
    str,
    "standardised",
    "in standard deviations, as shares of the pooled range, or raw",
    choices=DISTANCES,
)
SHARE = Parameter("share", float, OUTLIERS, "share of the records that count as outliers", low=0.0001, high=1)
LINKAGE: dict[str, Any] = {**OF_ROWS, "place": 10, "in_blocks": True}
HEADLINE: dict[str, Any] = {
    **LINKAGE,
    "shown": "headline",
    "any_data": True,
    "informed": True,
    "paired": False,
    "reference": HANDBOOK,
}
NEAREST_RECORD: dict[str, Any] = {
    **LINKAGE,
    "bounded_by_method": True,
    "explain": explain_linkage,
    "parameters": (DIRECTION, PLACES),
}


@metric(
    title="linkage, the worst of several attacks",
    limit_words="an intruder may find at most # of 100 records",
    bounded_by_method=True,
    score=score_linkage,
    explain=partial(explain_linkage, worst=True),
    parameters=(EITHER, KNOWING),
    **HEADLINE,
)
def linkage(original: Any, masked: Any, *, direction: str = BOTH, attacks: str = ALL) -> float:
    """Share of records that an intruder re-identifies with the best of several attacks; 0 if none.

    0 means that no attack finds a single record, 1 that one of them finds all. This is the risk to limit.

    Parameters
    ----------
    original, masked
        As for `dbrl`.
    direction : str
        "both", the larger of the two; or one of them, as for `dbrl`.
    attacks : str
        "all"; or "nearest", those of the literature, which know no law: `dbrl`, `dbrl_mahalanobis`,
        `dbrl_rank`, `matching` (up to 2,000 records) and a plain guess. They find too little.

    Returns
    -------
    float
        The largest of: links by the law of the masking, learnt by masking the file again and again, or from
        other records of the release, all at once (one to one) or each by itself; the same with the order of
        rows that are sorted by a column or by a sum, and with all rows of a unit together; `dbrl`; and a
        plain guess. Unmasked columns with wrong cells, and published ones that he does not know but that
        follow from known ones, are read with each of them.

    Notes
    -----
    All attacks choose among the records that the facts leave: known columns that were not masked, places of
    missing cells, and what the method says of itself (`evaluate(method=...)`): zeros kept, a window of ranks,
    a rounding base, or no randomness, so that it can be run again. Equal records share the credit, in the
    file that is looked up and in the file that is searched. Of files above 20,000 records, 5,000 are looked
    up, each by itself, and what one-to-one links would add is measured on a part of the file.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.linkage([2.0, 4.0, 1.0, 3.0], [1.5, 3.5, 1.5, 3.5])
    0.5
    """


@metric(
    title="linkage of outliers",
    limit_words="an intruder may find at most # of 100 outlying records",
    bounded_by_method=True,
    score=partial(score_linkage, share=OUTLIERS),
    explain=partial(explain_linkage, worst=True, whom=" among the records farthest from the centre"),
    parameters=(EITHER, KNOWING, SHARE),
    **HEADLINE,
)
def linkage_outliers(
    original: Any, masked: Any, *, direction: str = BOTH, attacks: str = ALL, share: float = OUTLIERS
) -> float:
    """Share of outlying records that an intruder re-identifies with the best of several attacks; 0 if none.

    0 means that no attack finds an outlier, 1 that one of them finds all. A mean over all records hides
    them: noise that protects most records can leave the few largest recognisable.

    Parameters
    ----------
    original, masked, direction, attacks
        As for `linkage`.
    share : float
        Share of the records that count: those with the largest sum of squared standardised values in the
        original, at least one, and all that tie with the last of them.

    Returns
    -------
    float
        As for `linkage`, over these records.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.linkage_outliers([1.0, 2.0, 3.0, 40.0], [2.0, 3.0, 1.0, 41.0])
    1.0
    """


# --- sure links ------------------------------------------------------------------------------------------


class SureLinks(NamedTuple):
    """Probability that the intruder gives to each record's true original, and what he claims to know.

    `claimed` is the number of rows that he names somebody for with a probability above one half.
    """

    truth: Floats
    claimed: int


@once
def sure_links(pair: Pair) -> SureLinks:
    """Return the sure links of a whole file, by the law that exposes more records; without one, by facts."""
    laws = intruder.laws_of(pair)
    found = [*(_sure_links_by(pair, by) for by in laws), _by_facts(pair)]
    found += [_sure_links_by(pair, "other_columns")] if not laws and intruder.reads_order(pair) else []
    if shows_units(pair) and intruder.runs_again(pair):
        chances = row_chances_by_facts(pair)
        found.append(SureLinks(chances, int((chances > SURE).sum())))
    for by in laws if shows_units(pair) else ():  # rows whose unit is found by all its rows together
        units, numbers = unit_posterior(pair, by), numbers_read(pair)
        truth = units.of_truth(units.bethe)[numbers]
        found.append(SureLinks(truth, int(np.isin(numbers, units.links_claimed).sum())))
    return max(found, key=lambda one: (int((one.truth > SURE).sum()), float(np.nanmean(one.truth))))


def _sure_links_by(pair: Pair, by: str) -> SureLinks:
    """Return the sure links by one law; of a large file, those of single rows of a sample stand for all."""
    n, order = pair.original.n, bool(row_orders(pair))
    if intruder.proves_swaps(pair):
        return SureLinks(np.ones(n), n)
    if n <= LARGE:
        found = intruder.posterior_of(pair, by, order=order)
        return SureLinks(found.of_truth(found.bethe), len(found.links_claimed))
    rows = QuerySample(LOOKED_UP).order(n, pair.original.cache)[:LOOKED_UP]
    some = intruder.posterior_of_rows(pair, by, rows, order=order)
    truth = np.full(n, np.nan)
    truth[rows] = some.of_truth(some.plain)[rows]
    claimed = len(np.unique(some.pairs.rows[some.plain > SURE]))
    return SureLinks(truth, round(claimed * n / len(rows)))


def _by_facts(pair: Pair) -> SureLinks:
    """Return the sure links of a plain guess: records that the facts, or equal cells, single out."""
    facts = facts_of(pair)
    counts = facts.candidates(TO_ORIGINAL)[0]
    truth, sure = 1 / np.maximum(counts, 1), counts == 1
    if (
        pair.disclosure.paired
        and pair.known_variables
        and not intruder.runs_again(pair)
        and pair.original.n < intruder.FEWEST
    ):
        ours, theirs = known_files(pair)
        neither = np.isnan(theirs)[:, None] & np.isnan(ours)[None]
        equal = ((theirs[:, None] == ours[None]) | neither).all(axis=2) & ~neither.all(axis=2)
        equal &= np.array(
            [fits(take(facts.ours, np.full(facts.n, i)), facts.theirs) for i in range(facts.n)]
        ).T
        named = equal.sum(axis=1) == 1
        truth[named] = equal.diagonal()[named]
        sure |= named
    return SureLinks(truth, int(sure.sum()))


def score_sure(pair: Pair, *, detail: bool = False, per_record: bool = False) -> Score:  # noqa: ARG001 - as all
    """Return the share of records that the intruder is sure about and right; their number among the parts."""
    require_tied_rows(pair, "linkage_sure")
    found = sure_links(pair.whole or pair)
    truth = found.truth if pair.rows is None else found.truth[pair.rows]
    judged = truth[~np.isnan(truth)]
    share = judged.size / truth.size
    exposed = int((judged > SURE).sum())
    return score_of_file(
        pair,
        exposed / judged.size if judged.size else np.nan,
        records=truth if per_record else None,
        parts={
            "exposed": round(exposed / share),
            "exposed above 0.9": round(int((judged > NEARLY_CERTAIN).sum()) / share),
            "claimed": float(found.claimed) if pair.rows is None else np.nan,
        },
    )


def explain_sure(score: Score) -> str:
    """Return a sentence on how many records the intruder is sure about and right."""
    exposed, certain, claimed = (score.parts[name] for name in ("exposed", "exposed above 0.9", "claimed"))
    if not exposed:
        return "the intruder gives no true original a probability above one half"
    records = f"{exposed:.0f} {plural(int(exposed), 'record')}"
    text = f"the intruder gives the true originals of {records} a probability above one half, "
    text += f"of {certain:.0f} above 0.9"
    if claimed > 0:
        right = f"{100 * min(exposed / claimed, 1):.0f} of 100"
        text += f"; he is sure of {claimed:.0f} links, and {right} of these are right"
    return text


@metric(
    title="sure links, records that an intruder names and is sure of",
    limit_words="an intruder may be sure, and right, about at most # of 100 records",
    score=score_sure,
    explain=explain_sure,
    **HEADLINE,
)
def linkage_sure(original: Any, masked: Any) -> float:
    """Share of records that an intruder links with a probability above one half, and rightly; 0 if none.

    0 means that he is sure of nobody, or wrong; 1 that he knows everybody. `linkage` is a mean: where it is
    small, a few records may still be exposed. Never above `linkage`.

    Parameters
    ----------
    original, masked
        As for `linkage`.

    Returns
    -------
    float
        Share of the records whose true original has a posterior probability above 1/2. `evaluate` has among
        its parts the number of these exposed records, of those above 0.9, and of all links that the intruder
        is sure of; `per_record=True` gives each record's probability.

    Notes
    -----
    The probability is that of a one-to-one matching by belief propagation (Bethe), whose claims are right as
    often as they say, from the law of the masking; see `linkage`.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.linkage_sure([2.0, 4.0, 1.0, 3.0], [2.0, 4.0, 1.0, 3.0])
    1.0
    """


# --- single attacks -------------------------------------------------------------------------------------


@metric(
    title="DBRL, distance-based record linkage",
    score=partial(score_attack, "dbrl"),
    reference="Pagliuca & Seri 1999; Domingo-Ferrer & Torra 2001",
    **NEAREST_RECORD,
)
def dbrl(original: Any, masked: Any, *, direction: str = TO_ORIGINAL, places: int = 1) -> float:
    """Share of records re-identified by linking each to its nearest record; 0 if none.

    0 means that the nearest record is never the true one, 1 that it always is; chance alone gives 1/n.
    Not the whole risk: see `linkage`, which tries other attacks as well. Weights play no part.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be a `Microdata`.
    direction : str
        "masked_to_original": each published record is looked up among the originals;
        "original_to_masked": each original among the published ones.
    places : int
        The intruder may name so many nearest records; 2 gives the variant "first or second nearest".

    Returns
    -------
    float
        Mean credit of the records. If c records are strictly closer than the true one and t, the true one
        included, are equally close, the credit is min(1, (places - c) / t), and 0 for c >= places.

    Notes
    -----
    Euclidean distance; both files divided by the standard deviations of the original. Squared distances that
    differ by less than 1e-9 of their size are equal. Where cells are missing, the mean over the variables
    that both records have; records without any in common are the farthest. Records that look the same to the
    intruder share their credit. The search is among the records that facts leave: see `linkage`.

    References
    ----------
    Pagliuca & Seri 1999, Some results of individual ranking method on the system of enterprise accounts
    annual survey. Domingo-Ferrer & Torra 2001, A quantitative comparison of disclosure control methods for
    microdata.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.dbrl([1.0, 2.0, 3.0, 4.0], [1.2, 2.2, 3.8, 4.1])
    0.75
    >>> sdc.dbrl([1.0, 2.0, 3.0, 4.0], [1.5, 1.5, 3.5, 3.5])
    0.5
    """


@metric(
    title="DBRL with the Mahalanobis distance of the release",
    score=partial(score_attack, "dbrl_mahalanobis"),
    reference="after Torra, Abowd & Domingo-Ferrer 2006, doi:10.1007/11930242_20",
    **NEAREST_RECORD,
)
def dbrl_mahalanobis(original: Any, masked: Any, *, direction: str = TO_ORIGINAL, places: int = 1) -> float:
    """Share of records re-identified by the nearest record in Mahalanobis distance; 0 if none.

    0 means that the nearest record is never the true one, 1 that it always is; chance alone gives 1/n.
    Stronger than `dbrl` where noise follows the correlations of the data.

    Parameters
    ----------
    original, masked, direction, places
        As for `dbrl`.

    Returns
    -------
    float
        Mean credit of the records, as for `dbrl`.

    Notes
    -----
    The metric is the inverse covariance matrix of the masked file, which every reader of it can compute.
    Directions without variance, such as that of a total and its parts, are left out. A missing cell stands
    at its variable's mean. The literature also uses the sum of both covariance matrices; this choice could
    not be checked against a primary source.

    References
    ----------
    Torra, Abowd & Domingo-Ferrer 2006, Using Mahalanobis distance-based record linkage for disclosure risk
    assessment, doi:10.1007/11930242_20

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.dbrl_mahalanobis([1.0, 2.0, 3.0, 4.0], [1.2, 2.2, 3.8, 4.1])
    0.75
    """


@metric(
    title="DBRL on ranks",
    score=partial(score_attack, "dbrl_rank"),
    reference=HANDBOOK,
    **NEAREST_RECORD,
)
def dbrl_rank(original: Any, masked: Any, *, direction: str = TO_ORIGINAL, places: int = 1) -> float:
    """Share of records re-identified by linking each to the record with the nearest ranks; 0 if none.

    0 means that the nearest record is never the true one, 1 that it always is; chance alone gives 1/n.
    Often the strongest attack where ranks move little, as in rank swapping, and where variables are skewed.

    Parameters
    ----------
    original, masked, direction, places
        As for `dbrl`.

    Returns
    -------
    float
        Mean credit of the records, as for `dbrl`.

    Notes
    -----
    Euclidean distance between mid-ranks, each file ranked by itself, as shares of the records.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.dbrl_rank([1.0, 2.0, 3.0, 4.0], [10.0, 200.0, 3000.0, 40000.0])
    1.0
    """


@metric(
    title="window intersection",
    score=partial(score_attack, "window"),
    explain=explain_linkage,
    reference="after Nin, Herranz & Torra 2008, doi:10.1016/j.datak.2007.07.006",
    parameters=(DIRECTION, WITHIN),
    informed=True,
    default=False,
    **LINKAGE,
)
def window(original: Any, masked: Any, *, direction: str = TO_ORIGINAL, within: float = 0.0) -> float:
    """Share of records re-identified by guessing among those within a published window of ranks; 0 if none.

    0 means that the true record is never within the window; 1 that it is, and alone. For methods that
    publish the largest move of a rank, as rank swapping does: `linkage` then makes use of it.

    Parameters
    ----------
    original, masked, direction
        As for `dbrl`.
    within : float
        The window, as a share of the records; 0 takes what the method publishes, or exact ranks.

    Returns
    -------
    float
        Mean of 1/c over the records, with c candidates whose every rank lies within the window; 0 where the
        true record is not one of them.

    Notes
    -----
    Equal values share an interval of ranks; a candidate's interval must come within the window of the
    record's own, in every variable. A missing cell fits everywhere.

    References
    ----------
    Nin, Herranz & Torra 2008, Rethinking rank swapping to decrease disclosure risk,
    doi:10.1016/j.datak.2007.07.006

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.window([1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 3.0], within=0.25)
    0.41666666666666663
    """


@metric(
    title="one-to-one matching",
    bounded_by_method=True,
    score=partial(score_attack, "matching"),
    explain=explain_linkage,
    reference="Herranz, Nin, Rodriguez & Tassa 2016, Data & Knowledge Engineering 100",
    parameters=(DIRECTION, DISTANCE),
    **LINKAGE,
)
def matching(
    original: Any, masked: Any, *, direction: str = TO_ORIGINAL, distance: str = "standardised"
) -> float:
    """Share of records re-identified by linking all records at once, one to one; 0 if none.

    0 means that no record is linked with the true one, 1 that all are; chance alone gives 1/n. For small
    files: the work grows with the cube of the records.

    Parameters
    ----------
    original, masked, direction
        As for `dbrl`; both directions give the same links.
    distance : str
        "standardised": Euclidean, in standard deviations of the original; "gower": mean absolute
        difference as a share of the range of both files; "raw": Euclidean, in the units of the data.

    Returns
    -------
    float
        Mean credit of the records; where several assignments are best, their links share it.

    Notes
    -----
    The assignment with the smallest sum of distances, by `scipy.optimize`. A solver breaks ties by row order,
    which would credit the intruder with knowledge that the files do not hold. So all links that occur in some
    best assignment get a share, those of each record in either file adding up to 1. Where ties come from
    equal records, this is the mean over all best assignments, and near it otherwise.

    References
    ----------
    Herranz, Nin, Rodriguez & Tassa 2016, Revisiting distance-based record linkage for privacy-preserving
    release of statistical datasets.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.matching([1.0, 2.0, 3.0, 4.0], [1.5, 1.5, 3.5, 3.5])
    0.5
    """
