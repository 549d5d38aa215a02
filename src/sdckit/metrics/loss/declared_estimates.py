"""Loss in the estimates that users of a file compute: how far their confidence intervals moved apart."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks
from sdckit.core.registry import public_value
from sdckit.core.text import plural
from sdckit.estimation.compare import masked_rows
from sdckit.estimation.estimators import name_of_row
from sdckit.metrics.pair import metric
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sdckit.metrics.pair import Pair

KARR = "Karr, Kohnen, Oganian, Reiter & Sanil 2006, doi:10.1198/000313006X124640"


def _mean(overlaps: Collection[float]) -> float:
    """Return the mean of the overlaps."""
    return sum(overlaps) / len(overlaps)


def score_overlaps(name: str, of: Callable[[Collection[float]], float], pair: Pair, **_: bool) -> Score:
    """Return the score of 1 less the mean or the smallest overlap, `of` all, of the declared estimates."""
    declared, masked = masked_rows(pair, name)
    found = declared.overlaps(masked)
    if not found:
        raise checks.NotApplicable(
            f"{name} has no value: no declared estimate has a confidence interval in the original data; "
            "declare others"
        )
    return Score(
        Values(1 - of(found.values()), np.full(pair.p, np.nan)),
        np.full(pair.p, pair.n),
        np.zeros(pair.p, np.int64),
        parts={"estimates": len(found), "overlap below half": sum(x < 0.5 for x in found.values())},
        subject=name_of_row(*min(found, key=lambda key: found[key])),
    )


def _explain_estimates(score: Score) -> str:
    """Return a sentence on the mean overlap."""
    count, low = (int(score.parts[part]) for part in ("estimates", "overlap below half"))
    return (
        f"the 95 % intervals of {count} declared {plural(count, 'estimate')} before and after masking share "
        f"{100 * (1 - public_value('estimates', score.value.overall)):.0f} % on average, "
        f"{low} of them less than half"
    )


def _explain_worst(score: Score) -> str:
    """Return a sentence on the estimate that changed most."""
    shared = f"{100 * (1 - score.value.overall):.3g} %"
    return f"of {score.subject}, the 95 % intervals before and after masking share {shared}, the least of all"


PROPERTIES: dict[str, Any] = {
    "needs": "table",
    "role": "estimates",
    "by_variable": False,
    "paired": False,
    "shown": "overview",
    "reference": KARR,
}


@metric(
    title="loss in declared estimates",
    place=15,
    score=partial(score_overlaps, "estimates", _mean),
    explain=_explain_estimates,
    **PROPERTIES,
)
def estimates(original: Any, masked: Any) -> float:
    """Information loss in declared estimates: 1 less the mean overlap of their intervals; 0 if none is lost.

    0 means that every 95 % confidence interval is unchanged, 1 that none overlaps the one before.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy; `original` a `Microdata` with its `estimates`.

    Returns
    -------
    float

    Notes
    -----
    The mean is over all rows of the table that `sdckit.estimation` returns, one for each estimate and domain
    and for each coefficient of a model. An estimate that the masked file does not have overlaps by 0; one
    without an interval in the original is left out. Recoded columns count as they are published.

    References
    ----------
    Karr, Kohnen, Oganian, Reiter & Sanil 2006, doi:10.1198/000313006X124640.

    Examples
    --------
    >>> import sdckit as sdc
    >>> frame = sdc.load_sample()
    >>> data = sdc.Microdata(frame, key="firm", weights="weight", by="sector", estimates="mean(turnover)")
    >>> masked = data.mask("mdav", k=10)
    >>> 0 < sdc.loss.estimates(data, masked) < 0.4
    True
    """


@metric(
    title="largest loss in a declared estimate",
    place=15,
    score=partial(score_overlaps, "estimates_worst", min),
    explain=_explain_worst,
    **PROPERTIES,
)
def estimates_worst(original: Any, masked: Any) -> float:
    """Information loss in the declared estimate that changed most: 1 less its overlap; 0 if none changed.

    0 means that every 95 % confidence interval is unchanged, 1 that one has nothing in common with the one
    before.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy; `original` a `Microdata` with its `estimates`.

    Returns
    -------
    float

    References
    ----------
    Karr, Kohnen, Oganian, Reiter & Sanil 2006, doi:10.1198/000313006X124640.

    Examples
    --------
    >>> import sdckit as sdc
    >>> frame = sdc.load_sample()
    >>> wanted = ["mean(turnover)", "total(wages) by sector"]
    >>> data = sdc.Microdata(frame, key="firm", weights="weight", by="sector", estimates=wanted)
    >>> masked = data.mask("mdav", k=10)
    >>> sdc.estimates_worst(data, masked) >= sdc.loss.estimates(data, masked)
    True
    """
