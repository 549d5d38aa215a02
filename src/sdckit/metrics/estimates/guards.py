"""What may be told of the change of each estimate, so that no record and no small domain follows.

A class of change says how far the original estimate is at most from the masked one, which users compute
themselves. If that distance is at least a tenth of every record's contribution, then even who knows all other
records does not learn a value to within ten percent. A small domain whose estimate is withheld could follow
by subtraction: a combination of published sums in which it remains has to contain a sum that includes it, and
is at least as uncertain as that one. So the distance is also at least a tenth of each withheld domain inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sdckit.metrics.dominated import PERCENT
from sdckit.metrics.estimates.model_shares import model_shares
from sdckit.metrics.estimates.shares import NO_FIGURE, Share, column_shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.metrics.estimates.measuring import Rows
    from sdckit.metrics.estimates.models import Levels
    from sdckit.metrics.estimates.parse import Request
    from sdckit.metrics.estimates.survey_file import SurveyFile

PERCENTS = (1.0, 5.0, 10.0)  # ends of the classes of change, in percent of the original
ERRORS = (0.5, 1.0, 2.0)  # and in standard errors of the original
FOLLOWS = "a record or a small domain would follow"
LINEAR = ("total", "mean", "share", "ratio")


class Guard(NamedTuple):
    """What may be told of one estimate in one domain.

    `reason` says why nothing is told; empty if something is. `percent` and `errors` are the ends of the
    first class of change that is told apart, None where no class is told.
    """

    reason: str = ""
    percent: float | None = PERCENTS[0]
    errors: float | None = ERRORS[0]


Guards = dict[tuple[str, str], Guard]  # by the text of the estimate and the label of the domain


def withheld_rows(
    file: SurveyFile,
    requests: Sequence[Request],
    levels: Levels,
    rows: Rows,
    sums: Iterable[Iterable[str]] = (),
) -> Guards:
    """Return what may be told of each estimate of the original.

    Parameters
    ----------
    file : SurveyFile
        The original.
    requests : list of Request
        All estimates of which something is told; those of one column are guarded together.
    levels : dict of lists
        The classes of the columns in models.
    rows : dict of Row
        The estimates of the original.
    sums : list of lists of str
        Columns that edit rules tie together, such as a total and its parts.

    Returns
    -------
    dict of Guard
        By estimate and domain.
    """
    shares: list[Share] = []
    linear: list[Share] = []
    for one in requests:
        if one.formula is not None:
            shares += model_shares(file, one, levels, rows)
            continue
        found = list(column_shares(file, one, rows))
        shares += found
        linear += found if one.kind in LINEAR else []
    _guard_against_subtraction(file, linear, [set(group) for group in sums])
    return {share.key: _guard_of(share) for share in shares}


def _guard_against_subtraction(file: SurveyFile, shares: Sequence[Share], sums: list[set[str]]) -> None:
    """Let no withheld domain follow from sums of the same or a tied column that include it."""
    places: dict[str, dict[tuple[tuple[str, ...], int], list[Share]]] = {}
    for share in shares:
        for name in share.amounts:
            places.setdefault(name, {}).setdefault((share.by, share.domain), []).append(share)
    groupings = {share.by: file.grouping(share.by).numbers for share in shares}
    for share in shares:
        if not share.reason or share.reason == NO_FIGURE:
            continue
        for name, amount in share.amounts.items():
            for other in _tied(name, sums) & places.keys():
                for by, numbers in groupings.items():
                    for sum_ in places[other].get((by, int(numbers[amount.record])), ()):
                        sum_.hide(amount.gross, sum_.amounts[other].net)


def _tied(name: str, sums: Sequence[set[str]]) -> set[str]:
    """Return the columns from which a column may follow by sums, and itself."""
    found = {name}
    while new := set().union(*(group for group in sums if group & found)) - found:
        found |= new
    return found


def _guard_of(share: Share) -> Guard:
    """Return the first classes that are at least as wide as what must not follow."""
    if share.reason:
        return Guard(share.reason, None, None)
    least = PERCENT / 100 * share.hidden  # as a multiple of the value
    value, error = abs(share.row.value), share.row.error
    percent = next((end for end in PERCENTS if end / 100 >= least), None)
    errors = next((end for end in ERRORS if error > 0 and end * error >= least * value), None)
    return Guard("" if percent or errors else FOLLOWS, percent, errors)
