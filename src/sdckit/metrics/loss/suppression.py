"""The share of cells that a masking suppressed: a loss that the means over the cells left do not see."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.registry import metric
from sdckit.metrics.averages import pooled_means, record_means
from sdckit.metrics.comparison import require_in_memory
from sdckit.metrics.pair import pair_of
from sdckit.metrics.score import Score

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Bools, Floats
    from sdckit.metrics.comparison import Comparison
    from sdckit.metrics.pair import Pair


def score_suppressed(comparison: Comparison, *, detail: bool = False, per_record: bool = False) -> Score:
    """Return the score of `suppressed`: shares of the original's cells that the masked file has not."""
    del detail  # there is no more to say
    counts = comparison.counts
    if counts.suppressed.any():
        gone, kept = comparison.suppressed_weight, comparison.kept_weight
    else:
        gone, kept = np.zeros(comparison.p), counts.both.astype(np.float64)
    records = None
    if per_record:
        records = record_means(comparison.n, _lost(require_in_memory(comparison, "a loss of each record")))
    none = np.zeros(comparison.p, np.int64)
    return Score(pooled_means(gone, kept + gone), counts.both, none, records=records)


def _lost(pair: Pair) -> Iterator[tuple[Bools, Floats]]:
    """Yield, for each variable, the rows with an original value, and 1 for each suppressed one."""
    for j in range(pair.p):
        observed = ~pair.original.missing[:, j]
        yield observed, pair.suppressed(j)[observed].astype(np.float64)


def _explain_suppressed(score: Score) -> str:
    """Return a sentence that explains the share of suppressed cells."""
    value = score.value.overall
    if math.isnan(value):
        return "the original has no values"
    if value == 0:
        return "no value of the original is missing in the masked file"
    if value == 1:
        return "no value of the original is left in the masked file"
    return f"{100 * value:.2g} of 100 values of the original are missing in the masked file"


@metric(
    title="suppressed cells, the share of values that are gone",
    place=10,
    family="loss",
    bounds=(0.0, 1.0),
    best=0.0,
    needs="places",
    in_blocks=True,
    score=score_suppressed,
    explain=_explain_suppressed,
    reference="a count; Hundepool et al. 2012, doi:10.1002/9781118348239, on local suppression",
    any_data=True,
    shown="headline",
)
def suppressed(original: Any, masked: Any, *, weights: Any = None) -> float:
    """Share of the original's values that are missing in the masked file.

    0 means that no value was suppressed, 1 that none is left. The other losses compare the cells that both
    files have and leave suppressed ones out, unless `missing="penalise"` counts them. Not for comparing the
    values that are left (see `brmae`), nor for files whose rows are not paired.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy; `original` may be prepared.
    weights : str or array, optional
        Survey weights: a cell counts with the weight of its record.

    Returns
    -------
    float
        Suppressed cells of all variables, divided by the cells of the original that have a value.

    Notes
    -----
    A cell is suppressed if it has a value in the original and none in the masked file. Cells that are
    missing in the original do not count, whatever the masked file has there.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, doi:10.1002/9781118348239, on local suppression.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.suppressed([[1, 5], [2, 6], [3, float("nan")]], [[1, 5], [float("nan")] * 2, [3, 7]])
    0.4
    """
    return score_suppressed(pair_of(original, masked, weights=weights)).value.overall
