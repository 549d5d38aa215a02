"""What may be told of the change of each estimate, so that no record and no small domain follows.

A class of change leaves the original estimate an interval around the masked one, which users compute
themselves. An intruder who knows all records but one subtracts them, and has an interval of that record from
each sum that includes it; it is told if the nearest ends on both sides lie within ten percent of its value.
A withheld domain could follow by subtraction, too. A combination of sums in which it remains has to contain,
for each of its records, a sum that includes this record, and is no more precise than that one: so the domain
is safe if the nearest ends around all sums with its largest record are farther than a tenth of the domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.core.classes import number_values
from sdckit.metrics.dominated import PERCENT
from sdckit.metrics.estimates.classes import ERRORS, PERCENTS, error_slack, half_width, percent_slack
from sdckit.metrics.estimates.measuring import ABSENT, sample_of
from sdckit.metrics.estimates.model_shares import model_shares
from sdckit.metrics.estimates.shares import Share, column_shares, summed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.estimates.measuring import Rows
    from sdckit.metrics.estimates.models import Levels
    from sdckit.metrics.estimates.parse import Request
    from sdckit.metrics.estimates.survey_file import SurveyFile

FOLLOWS = "a record or a small domain would follow"
EXACT = "totals of its column hold exactly, and a small domain would follow"
LINEAR = ("total", "mean", "share", "ratio")
NEAR = PERCENT / 100  # as a share of a value: who is nearer knows it
AT_ONCE = 100  # records that follow and are protected before all are looked at again
PART = 0.1  # a column that is tied to another by a sum has at least this share of it where it matters

Key = tuple[str, str]  # the text of an estimate and the label of a domain


class Guard(NamedTuple):
    """What may be told of one estimate in one domain.

    `reason` says why nothing is told; empty if something is. `percent` and `errors` are the ends of the
    first class of change that is told apart, None where no class is told.
    """

    reason: str = ""
    percent: float | None = PERCENTS[0]
    errors: float | None = ERRORS[0]

    def coarser(self, *, percent: bool) -> Guard:
        """Return the guard that joins the first two classes of one kind, or tells none of them."""
        if percent:
            return self._replace(percent=_next(PERCENTS, self.percent)).checked
        return self._replace(errors=_next(ERRORS, self.errors)).checked

    @property
    def checked(self) -> Guard:
        """The guard with a reason where no class is left to tell."""
        return Guard(self.reason or FOLLOWS, None, None) if self.percent is self.errors is None else self


Guards = dict[Key, Guard]


def _next(ends: Sequence[float], first: float | None) -> float | None:
    """Return the end after the given one; None after the last."""
    return next((end for end in ends if first is not None and end > first), None)


class Slack(NamedTuple):
    """How far above and below an estimate may lie, as multiples of its value.

    By its class in percent, and by that in standard errors.
    """

    percent: tuple[float, float]
    errors: tuple[float, float]

    @property
    def ends(self) -> tuple[float, float]:
        """The nearer ones of both: above, below."""
        return min(self.percent[0], self.errors[0]), min(self.percent[1], self.errors[1])

    def by_percent(self, *, above: bool) -> bool:
        """Return True if the class in percent has the nearer end on one side."""
        side = 0 if above else 1
        return self.percent[side] <= self.errors[side]


class Sums(NamedTuple):
    """Estimates of one column in all domains; `numbers` has each record's domain, one more for none.

    `sizes` has the contribution of each record, or of all records of its unit in the domain.
    """

    name: str
    shares: Sequence[Share]
    numbers: Ints
    sizes: Floats

    def share_of(self, record: int) -> Share | None:
        """Return the estimate that includes a record; None where none does."""
        domain = int(self.numbers[record])
        return self.shares[domain] if domain < len(self.shares) else None

    def ends(self, slacks: Mapping[Key, Slack]) -> Floats:
        """Return how far above and below its value the sum of each domain may lie: two rows."""
        found = np.full((2, len(self.shares) + 1), np.inf)
        for share in self.shares:
            if share.key in slacks and self.name in share.amounts:
                found[:, share.domain] = np.array(slacks[share.key].ends) * share.amounts[self.name].net
        return found


class Protection:
    """All estimates of an original with what records contribute to them; guards those of a masked file.

    `sums` are columns that edit rules tie together, such as a total and its parts. `first` has what could be
    told of each estimate if it were the only one.
    """

    def __init__(
        self,
        file: SurveyFile,
        requests: Sequence[Request],
        levels: Levels,
        rows: Rows,
        sums: Iterable[Iterable[str]] = (),
    ) -> None:
        self.shares: list[Share] = []
        self.sums: list[Sums] = []
        self._columns: dict[Key, set[str]] = {}
        for one in requests:
            model = one.formula is not None
            found = list(model_shares(file, one, levels, rows) if model else column_shares(file, one, rows))
            self.shares += found
            self._columns |= {share.key: set(one.columns) for share in found}
            if one.kind in LINEAR:
                self.sums += _sums_of(file, one, found)
        self._tied = [set(group) for group in sums]
        self.first = {share.key: _first_guard(share) for share in self.shares}

    def guards(self, masked: Rows, exact: Sequence[Request] = ()) -> Guards:
        """Return what may be told of each estimate beside those of a masked file.

        `exact` are totals that are known exactly, as those to which the file was calibrated: no other
        estimate of their columns, or of columns tied to them, is told, since differences would tell more.
        """
        found = dict(self.first)
        known = set().union(*(_tied(one.columns[0], self._tied) for one in exact))
        for key, columns in self._columns.items():
            if columns & known and key[0] not in {one.text for one in exact}:
                found[key] = Guard(found[key].reason or EXACT, None, None)
        while offending := self._offending(found, masked):
            for key, percent in offending:
                found[key] = found[key].coarser(percent=percent)
        return found

    def _offending(self, guards: Guards, masked: Rows) -> set[tuple[Key, bool]]:
        """Return the estimates whose classes tell too much, with True where it is that in percent."""
        slacks = {
            share.key: _slack_of(share, guards[share.key], masked.get(share.key, ABSENT).value)
            for share in self.shares
            if not guards[share.key].reason
        }
        found: set[tuple[Key, bool]] = set()
        for share in self.shares:
            if share.key in slacks and max(slacks[share.key].ends) < NEAR * share.hidden:
                # Standard errors say more of a change than percents do, so these go first.
                found.add((share.key, guards[share.key].percent is not None))
        for name in dict.fromkeys(one.name for one in self.sums):
            found |= self._offending_sums(name, slacks)
        return found

    def _offending_sums(self, name: str, slacks: Mapping[Key, Slack]) -> set[tuple[Key, bool]]:
        """Return the estimates from which a record of a column, or a withheld domain, follows."""
        own = [one for one in self.sums if one.name == name]
        tied = _tied(name, self._tied) - {name}
        others = [one for one in self.sums if one.name in tied]
        sizes = own[0].sizes
        about = [(one, one.sizes) for one in own]
        about += [(one, np.where(one.sizes >= PART * sizes, sizes, 0.0)) for one in others]
        near = np.zeros((2, sizes.size), np.bool_)
        for one, here in about:
            near |= one.ends(slacks)[:, one.numbers] < NEAR * here
        found: set[tuple[Key, bool]] = set()
        for record in np.flatnonzero(near.all(axis=0))[:AT_ONCE].tolist():
            found |= _coarsened([(one, float(here[record])) for one, here in about], record, slacks)
        for share in (share for one in own for share in one.shares if share.sensitive):
            amount = share.amounts[name]
            inside = [(one, amount.gross if here[amount.record] else 0.0) for one, here in about]
            found |= _coarsened(inside, amount.record, slacks)
        return found


def _sums_of(file: SurveyFile, request: Request, shares: Sequence[Share]) -> Iterator[Sums]:
    """Yield the sums that an estimate is made of, with the size of each record's contribution."""
    grouping, unit = file.grouping(request.by), file.options.unit
    for name, contributions in summed(request, sample_of(file, request)).items():
        sizes = np.abs(contributions)
        if unit is not None:
            units = number_values(file.domains([unit]).numbers * (grouping.count + 1) + grouping.numbers)
            sizes = np.bincount(units, sizes)[units]
        yield Sums(name, shares, grouping.numbers, sizes)


def _first_guard(share: Share) -> Guard:
    """Return the first classes that are at least as wide as what must not follow from an estimate alone."""
    if share.reason:
        return Guard(share.reason, None, None)
    least = NEAR * share.hidden  # as a multiple of the value
    value, error = abs(share.row.value), share.row.error
    percent = next((end for end in PERCENTS if half_width(PERCENTS, end) / 100 >= least), None)
    wide = (end for end in ERRORS if error > 0 and half_width(ERRORS, end) * error >= least * value)
    return Guard("", percent, next(wide, None)).checked


def _slack_of(share: Share, guard: Guard, masked: float) -> Slack:
    """Return what the classes of an estimate leave unknown of it."""
    return Slack(
        percent_slack(share.row, masked, guard.percent), error_slack(share.row, masked, guard.errors)
    )


def _coarsened(
    about: Sequence[tuple[Sums, float]], record: int, slacks: Mapping[Key, Slack]
) -> set[tuple[Key, bool]]:
    """Return the estimates to coarsen, on the side with fewer of them, so that a size does not follow.

    `about` has sums with the size that must not follow from them, 0 where it is not inside.
    """
    sides: list[set[tuple[Key, bool]]] = []
    for above in (True, False):
        found = set()
        for one, size in about:
            share = one.share_of(record)
            if share is not None and share.key in slacks:
                slack = slacks[share.key]
                if slack.ends[not above] * share.amounts[one.name].net < NEAR * size:
                    found.add((share.key, slack.by_percent(above=above)))
        sides.append(found)
    return min(sides, key=len)


def _tied(name: str, sums: Sequence[set[str]]) -> set[str]:
    """Return the columns from which a column may follow by sums, and itself."""
    found = {name}
    while new := set().union(*(group for group in sums if group & found)) - found:
        found |= new
    return found
