"""Unique records: how many stand alone on the columns that are published unmasked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.classes import class_sizes, uniques_of
from sdckit.core.registry import metric
from sdckit.metrics.pair import pair_of
from sdckit.metrics.score import Score, Values
from sdckit.risk.untouched import known_unmasked, published_classes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.classes import Uniques
    from sdckit.metrics.pair import Pair

HANDBOOK = "Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239"


def score_uniques(pair: Pair, *, detail: bool = False, per_record: bool = False) -> Score:  # noqa: ARG001 - as all scores
    """Return the share of records alone on the known unmasked columns, and the floor among its parts."""
    classes = published_classes(pair)
    records = (class_sizes(classes) == 1).astype(float) if per_record else None
    score = score_of_uniques(uniques_of(classes), pair.original.n, pair.p, known_unmasked(pair))
    return replace(score, records=records)


def score_of_uniques(found: Uniques, n: int, p: int, columns: Sequence[str]) -> Score:
    """Return the score of n records with p variables, from their uniques on the columns of these names."""
    return Score(
        Values(found.share, np.full(p, np.nan)),
        np.full(p, n),
        np.zeros(p, np.int64),
        parts={"floor": found.floor},
        subject=", ".join(columns),
    )


def explain_uniques(score: Score) -> str:
    """Return a sentence on the unmasked columns, the records that they single out, and the floor."""
    if not score.subject:
        return "no known column is published unmasked, so that the masked columns alone decide the risk"
    return (
        f"{100 * score.value.overall:.3g} of 100 records stand alone on what is published unmasked, "
        f"{score.subject}; no masking of the others brings linkage below {score.parts['floor']:.3g}"
    )


@metric(
    title="uniques, records alone on untouched columns",
    limit_words="at most # of 100 records may share their unmasked values with nobody",
    family="risk",
    bounds=(0.0, 1.0),
    best=0.0,
    needs="untouched",
    role="untouched",
    by_variable=False,
    place=11,
    in_blocks=True,
    shown="overview",
    any_data=True,
    paired=False,
    score=score_uniques,
    explain=explain_uniques,
    reference=HANDBOOK,
)
def uniques(original: Any, masked: Any) -> float:
    """Share of records that stand alone on the known columns that are published unmasked; 0 if none.

    0 means that each record shares these cells with another one, or that every column is masked; 1 that the
    unmasked columns alone identify all records, whatever is done to the others.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be prepared, with the roles of
        its columns.

    Returns
    -------
    float
        Share of the records whose published cells in these columns no other record has. `evaluate` also
        gives the floor in `parts`, the mean of 1/class size: no masking of the other columns brings
        `linkage` below it.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239

    Examples
    --------
    >>> import polars as pl
    >>> import sdckit as sdc
    >>> data = pl.DataFrame({"income": [1.5, 2.5, 3.0, 4.5], "town": ["a", "a", "a", "b"]})
    >>> sdc.uniques(data, data)
    0.25
    """
    return score_uniques(pair_of(original, masked)).value.overall
