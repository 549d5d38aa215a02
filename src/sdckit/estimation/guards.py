"""What may be told of the change of each estimate, so that no record and no small domain follows.

A class of change leaves the original estimate an interval around the masked one, which users compute
themselves. An intruder who knows all records but one subtracts them, and has an interval of that record from
each sum that includes it; it is told if the nearest ends on both sides lie within ten percent of its value.
A withheld domain could follow by subtraction, too. A combination of sums in which it remains has to contain,
for each of its records, a sum that includes this record, and is no more precise than that one: so the domain
is safe if the nearest ends around all sums with its largest record are farther than a tenth of the domain.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from sdckit.core.cells import number_values
from sdckit.core.checks import FEWEST_REPORTED
from sdckit.core.text import plural, shortened
from sdckit.estimation.estimators import ABSENT, name_of_row, sample_of
from sdckit.estimation.models import model_data
from sdckit.estimation.survey_file import WHOLE
from sdckit.metrics.blocks import Contributions
from sdckit.metrics.publishable import PERCENT, is_dominated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.estimation.compare import Estimates
    from sdckit.estimation.estimators import Row, Rows, Sample
    from sdckit.estimation.models import Levels, ModelData
    from sdckit.estimation.parse import Request
    from sdckit.estimation.survey_file import SurveyFile

FEW_RECORDS, FEW_UNITS = "fewer than ten records", "fewer than ten units"
FEW_CONTRIBUTE = "fewer than ten records contribute"
FEW_BEYOND = "fewer than ten records lie on one side of it"
ONE_DOMINATES = "one record or unit dominates"
NO_FIGURE = "no figure to compare"
TINY = 1e-9  # of the largest contribution: what rounding makes of none


class Amount(NamedTuple):
    """Contributions to a sum: size of the sum, sum of their sizes, the largest, and the record with it."""

    net: float
    gross: float
    largest: float
    record: int


@dataclass
class Share:
    """An estimate in one domain of the original, and what records contribute to it.

    `reason` says why nothing of it can be told, empty if something can. `amounts` are by what is summed, the
    name of a column or the text of a condition, in the same units for all estimates of it. `hidden` is what
    must not follow from the estimate, as a multiple of its value.
    """

    key: tuple[str, str]
    row: Row
    by: tuple[str, ...] = ()
    domain: int = 0
    reason: str = ""
    amounts: dict[str, Amount] = field(default_factory=dict)
    hidden: float = 0.0

    @property
    def sensitive(self) -> bool:
        """True if the sums themselves must not follow from others."""
        return bool(self.reason and self.amounts and self.reason != NO_FIGURE)

    def hide(self, size: float, net: float) -> None:
        """Let no contribution of the given size to a sum follow from the estimate."""
        if size > 0:
            self.hidden = max(self.hidden, size / net if net > 0 else math.inf)


class Members(NamedTuple):
    """Row numbers of the records that an estimate counts in one domain, and the units of all records."""

    records: Ints
    units: Ints | None

    def sizes(self, contributions: Floats) -> Floats:
        """Return the size of the contribution of each record or, with units, of each unit."""
        sizes = np.abs(contributions)
        if self.units is None:
            return sizes
        return np.asarray(np.bincount(number_values(self.units[self.records]), sizes), np.float64)

    def chosen(self, inside: Bools) -> Members:
        """Return the chosen ones of the records."""
        return Members(self.records[inside], self.units)

    @property
    def reason(self) -> str:
        """Why nothing can be told of so few records; empty if they are enough."""
        if self.records.size < FEWEST_REPORTED:
            return FEW_RECORDS
        few = self.units is not None and np.unique(self.units[self.records]).size < FEWEST_REPORTED
        return FEW_UNITS if few else ""


def members_of(file: SurveyFile, by: tuple[str, ...], counted: Bools) -> list[Members]:
    """Return the counted records of each domain."""
    grouping, unit = file.grouping(by), file.options.unit
    units = None if unit is None else file.domains([unit]).numbers
    domains = (grouping.by_domain[begin:end] for begin, end in grouping.slices())
    return [Members(rows[counted[rows]], units) for rows in domains]


def sum_reason(sizes: Floats) -> str:
    """Return why a sum of contributions of these sizes tells one of them; empty if it does not."""
    if np.count_nonzero(sizes > TINY * sizes.max(initial=0.0)) < FEWEST_REPORTED:
        return FEW_CONTRIBUTE
    return ONE_DOMINATES if is_dominated(Contributions.of(sizes)) else ""


def column_shares(file: SurveyFile, request: Request, rows: Rows) -> Iterator[Share]:
    """Yield what records contribute to a total, mean, quantile, share, ratio, correlation or Gini."""
    sample = sample_of(file, request)
    counted = np.ones(file.n, np.bool_) if sample.weights is None else sample.weights > 0
    parts = summed(request, sample)
    for domain, members in enumerate(members_of(file, request.by, counted)):
        key = request.text, file.grouping(request.by).labels[domain]
        share = Share(key, rows[key], request.by, domain, members.reason)
        if request.kind in {"median", "quantile"}:
            share.reason = share.reason or _quantile_reason(share.row.value, sample.columns[0], members)
        if request.kind == "share":  # few that fail a condition tell as much as few that meet it
            failed = sum_reason(members.sizes(1 - sample.columns[0][members.records]))
            share.reason = share.reason or failed
        for name, contributions in parts.items():
            _add_amount(share, name, contributions[members.records], members)
        if math.isnan(share.row.value):
            share.reason = share.reason or NO_FIGURE
        yield share


def _add_amount(share: Share, name: str, contributions: Floats, members: Members) -> None:
    """Add the contributions of a domain's records to one of the sums that an estimate is made of."""
    sizes = members.sizes(contributions)
    share.reason = share.reason or sum_reason(sizes)
    if contributions.size:
        first = int(members.records[np.argmax(np.abs(contributions))])
        net = abs(float(contributions.sum()))
        amount = Amount(net, float(sizes.sum()), float(sizes.max()), first)
        share.amounts[name] = amount
        share.hide(amount.largest, net)


def summed(request: Request, sample: Sample) -> dict[str, Floats]:
    """Return each record's weighted contribution to the sums that an estimate is made of, by their names."""
    weights = 1.0 if sample.weights is None else sample.weights
    if request.kind in {"median", "quantile"}:
        return {}
    if request.condition is not None:
        return {f"{request.columns[0]} {request.condition.written}": weights * sample.columns[0]}
    if request.kind == "correlation":
        a, b = (one - sample.grouping.at_records(sample.means(one)) for one in sample.columns)
        # A name that no column can have: these sums are of this estimate alone.
        parts = {"product": a * b, "first": a * a, "second": b * b}
        return {f"{request.text}: {name}": weights * part for name, part in parts.items()}
    return {name: weights * column for name, column in zip(request.columns, sample.columns, strict=True)}


def _quantile_reason(value: float, column: Floats, members: Members) -> str:
    """Return why a quantile cannot be told: few records or units have values up to it, or from it on."""
    values = column[members.records]
    sides = (members.chosen(values <= value), members.chosen(values >= value))
    return FEW_BEYOND if any(side.reason for side in sides) else ""


# --- what records contribute to the coefficients of a model: each is a weighted sum of the responses ---


FEW_DIFFER = "fewer than ten records differ in the term"
FEW_IN_CLASS = "fewer than ten records are in the class that others are compared with"
FEW_RESPOND = "fewer than ten records have one of both responses"


def model_shares(file: SurveyFile, request: Request, levels: Levels, rows: Rows) -> Iterator[Share]:
    """Yield what records contribute to each coefficient of a model in each domain."""
    data, seen = model_data(file, request, levels)
    compared = _in_first_class(file, request, levels)
    labels = file.grouping(request.by).labels
    for domain, members in enumerate(members_of(file, request.by, seen & (data.weights > 0))):
        own = data.take(members.records)
        reason = _model_reason(own, request, members, compared)
        keys = [(f"{request.text} [{name}]", labels[domain]) for name in data.names]
        fitted = np.array([not math.isnan(rows[key].value) for key in keys])
        influence = np.zeros_like(own.terms)
        if not reason and fitted.any():
            influence[:, fitted] = _influence(own.terms[:, fitted], own.weights)
        for place, key in enumerate(keys):
            share = Share(key, rows[key], request.by, domain, reason)
            if not reason and not fitted[place]:
                share.reason = NO_FIGURE
            if not share.reason:
                _add_term(share, own, place, influence[:, place], members, logistic=request.kind == "logit")
            yield share


def _in_first_class(file: SurveyFile, request: Request, levels: Levels) -> dict[str, Ints]:
    """Return, by class column of the model, 1 for the records in its first class and 0 for others."""
    found = {}
    for name in request.columns:
        if (request.text, name) not in levels:
            continue
        own, first = file.domains([name]), levels[request.text, name][0]
        places = np.array([*(int(label == first) for label in own.labels), 0], np.int64)
        found[name] = places[own.numbers]
    return found


def _model_reason(data: ModelData, request: Request, members: Members, compared: Mapping[str, Ints]) -> str:
    """Return why no coefficient of a model can be told; empty if some can."""
    if members.reason:
        return members.reason
    if any(members.chosen(first[members.records] == 1).reason for first in compared.values()):
        return FEW_IN_CLASS
    if request.kind == "logit":
        sides = (members.chosen(data.response == value) for value in (0.0, 1.0))
        return FEW_RESPOND if any(side.reason for side in sides) else ""
    return ""


def _influence(terms: Floats, weights: Floats) -> Floats:
    """Return by how much each coefficient moves with each response: records x coefficients."""
    roots = np.sqrt(weights)
    scales = np.sqrt((terms**2).mean(0))
    base, upper = np.linalg.qr(terms / scales * roots[:, None])
    return np.asarray((np.linalg.solve(upper, base.T) * roots).T / scales, np.float64)


def _add_term(
    share: Share, data: ModelData, place: int, influence: Floats, members: Members, *, logistic: bool
) -> None:
    """Enter what records contribute to one coefficient."""
    term, response = data.terms[:, place], data.response
    kinds, counts = np.unique(term, return_counts=True)
    usual = kinds[np.argmax(counts)]
    if kinds.size > 1 and members.chosen(term != usual).reason:
        share.reason = FEW_DIFFER
        return
    sizes = members.sizes(influence)
    moved = sizes if logistic else members.sizes(influence * response)
    share.reason = sum_reason(sizes) or (ONE_DOMINATES if is_dominated(Contributions.of(moved)) else "")
    mean = float(np.average(response, weights=data.weights))
    scale = mean * (1 - mean) if logistic else 1.0  # of the odds' derivative, roughly
    share.hide(float(moved.max()) / scale, abs(share.row.value))


# --- classes of change, in percent and in standard errors, and what they leave unknown of the original ---


PERCENTS = (1.0, 5.0, 10.0)  # ends of the classes of change, in percent of the original
ERRORS = (0.5, 1.0, 2.0)  # and in standard errors of the original
NOTHING = (math.inf, math.inf)


class Class(NamedTuple):
    """A class of change from `low` up to `high`, infinite where it has no end; both are ends of classes."""

    low: float
    high: float

    def text(self, unit: str) -> str:
        """Return the class in words, such as "1 to 5 %"."""
        if self.high == math.inf:
            return f"above {self.low:g} {unit}"
        return f"{self.low:g} to {self.high:g} {unit}" if self.low else f"below {self.high:g} {unit}"


def class_of(change: float | None, ends: Sequence[float], first: float | None) -> Class | None:
    """Return the class of a change, whatever its direction; the first class ends at `first`."""
    if change is None or first is None or math.isnan(change):
        return None
    kept = [0.0, *(end for end in ends if end >= first), math.inf]
    return next((Class(*one) for one in pairwise(kept) if abs(change) < one[1]), Class(*kept[-2:]))


def half_width(ends: Sequence[float], first: float) -> float:
    """Return half the length of the shortest interval that a class leaves, if the first one ends at `first`.

    The first class has both sides of the masked estimate, and the last one no end.
    """
    kept = [end for end in ends if end >= first]
    return min([first, *((high - low) / 2 for low, high in pairwise(kept))])


def percent_slack(row: Row, masked: float, first: float | None) -> tuple[float, float]:
    """Return how far above and below its value an original estimate may lie, given its class in percent.

    As multiples of the value. The direction of a change that is not in the first class counts as known.
    """
    if first is None or not row.value:
        return NOTHING
    share = masked / row.value
    found = class_of(100 * (share - 1), PERCENTS, first)
    if found is None:
        return NOTHING
    low, high = found.low / 100, found.high / 100
    above = share / (1 - high) - 1 if high < 1 else math.inf
    below = 1 - share / (1 + high)
    if low and share > 1:
        return share / (1 + low) - 1, below
    return (above, 1 - share / (1 - low)) if low else (above, below)


def error_slack(row: Row, masked: float, first: float | None) -> tuple[float, float]:
    """Return the same, given the class of the change in standard errors."""
    size = abs(row.value)
    if first is None or not size or not row.error > 0:
        return NOTHING
    gap = (masked - row.value) * (1 if row.value > 0 else -1) / size
    error = row.error / size
    found = class_of(gap / error, ERRORS, first)
    if found is None:
        return NOTHING
    low, high = found.low * error, found.high * error
    if not low:
        return high + gap, high - gap
    return (gap - low, high - gap) if gap > 0 else (high + gap, -gap - low)


# --- what may be told, so that no record and no small domain follows ---


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
        ends, first = (PERCENTS, self.percent) if percent else (ERRORS, self.errors)
        wider = next((end for end in ends if first is not None and end > first), None)
        return (self._replace(percent=wider) if percent else self._replace(errors=wider)).checked

    @property
    def checked(self) -> Guard:
        """The guard with a reason where no class is left to tell."""
        return Guard(self.reason or FOLLOWS, None, None) if self.percent is self.errors is None else self


Guards = dict[Key, Guard]


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
            share.key: Slack(
                percent_slack(share.row, own.value, guard.percent),
                error_slack(share.row, own.value, guard.errors),
            )
            for share in self.shares
            for guard, own in [(guards[share.key], masked.get(share.key, ABSENT))]
            if not guard.reason
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


# --- estimates as they may be published: those of the masked file, and classes of their change ---


KEPT = {"kept": "kept", "none": "kept", "changed": "changed", "lost": "changed", "gained": "changed"}
UNKNOWN = Guard(FEW_RECORDS, None, None)  # of a domain that the original does not have
SCHEMA: dict[str, Any] = {
    "estimate": pl.String,
    "domain": pl.String,
    "masked": pl.Float64,
    "se_masked": pl.Float64,
    "change": pl.String,
    "change_in_se": pl.String,
    "sign": pl.String,
    "significance": pl.String,
    "withheld": pl.String,
}


@dataclass(frozen=True)
class PublicRow:
    """One estimate in one domain as it may be published; classes are None where they are not told.

    `withheld` says why no change is told, and is empty otherwise.
    """

    estimate: str
    domain: str
    masked: float | None
    se_masked: float | None
    change: Class | None = None
    change_in_se: Class | None = None
    sign: str | None = None
    significance: str | None = None
    withheld: str = ""

    @property
    def name(self) -> str:
        """Estimate and domain as one text."""
        return name_of_row(self.estimate, self.domain)

    @property
    def order(self) -> tuple[float, float]:
        """Sorts rows by their classes, those that moved most last; what is withheld comes first."""
        found = [-1.0 if one is None else one.low for one in (self.change_in_se, self.change)]
        return found[0], found[1]

    def texts(self) -> tuple[str | None, str | None]:
        """Return both classes of change in words."""
        ours, theirs = self.change, self.change_in_se
        return (None if ours is None else ours.text("%")), (None if theirs is None else theirs.text("s.e."))


def public_rows(found: Estimates) -> list[PublicRow]:
    """Return the rows of a comparison as they may be published, in the order of the masked file.

    A domain or class that the masked file does not have is not named: of a masked column, its label is a
    value of the original.
    """
    return [
        _public_row(row, found.guards.get((row["estimate"], row["domain"]), UNKNOWN), found.computable)
        for row in found.table.iter_rows(named=True)
        if row["masked"] is not None or (row["domain"] == WHOLE and row["estimate"].count("[") < 2)
    ]


def _public_row(row: Mapping[str, Any], guard: Guard, computable: bool) -> PublicRow:  # noqa: FBT001 - private
    """Return one row as it may be published, without masked figures that users cannot compute."""
    figures = (row["masked"], row["se_masked"]) if computable else (None, None)
    own = PublicRow(row["estimate"], row["domain"], *figures)
    change = class_of(row["change"], PERCENTS, guard.percent)
    in_errors = class_of(row["change_in_se"], ERRORS, guard.errors)
    reason = guard.reason or ("" if change or in_errors else NO_FIGURE)
    if reason:
        return replace(own, withheld=reason)
    sign, significance = (KEPT.get(row[name]) for name in ("sign", "significance"))
    return replace(own, change=change, change_in_se=in_errors, sign=sign, significance=significance)


def public_table(rows: Sequence[PublicRow]) -> pl.DataFrame:
    """Return public rows as a table."""
    cells = [
        (
            *(row.estimate, row.domain, row.masked, row.se_masked, *row.texts()),
            *(row.sign, row.significance, row.withheld or None),
        )
        for row in rows
    ]
    return pl.DataFrame(cells, SCHEMA, orient="row")


def told_table(found: Estimates, *, private: bool) -> pl.DataFrame:
    """Return the table to print: exact if `private`, else what may be published."""
    return found.table if private else public_table(public_rows(found))


def summary_sentences(rows: Sequence[PublicRow], most: int = 3) -> list[str]:
    """Return sentences on how many estimates moved how far, with the names of those that moved most.

    What is not told is left out of the counts, and said: it may have moved furthest.
    """
    errors = [row for row in rows if _tells(row.change_in_se, ERRORS[1])]
    percents = [row for row in rows if _tells(row.change, PERCENTS[1])]
    count, gone = len(rows), sum(bool(row.withheld) for row in rows)
    if gone == count:
        return [f"How far the {count} declared {plural(count, 'estimate')} moved is withheld."]
    found = []
    if errors:
        classes = [row.change_in_se for row in errors if row.change_in_se is not None]
        far = [row for row in errors if row.change_in_se == Class(ERRORS[-1], math.inf)]
        near, above = classes.count(Class(0.0, ERRORS[0])), sum(one.low >= ERRORS[1] for one in classes)
        found.append(
            f"{near} of {_counted(errors, count, 'standard errors')} moved by less than half a standard "
            f"error, {above} by more than one and {len(far)} by more than two{_named(far, rows, most)}."
        )
    if percents:
        large = [row for row in percents if row.change is not None and row.change.low >= PERCENTS[1]]
        among = "" if len(percents) == count else f" of {_counted(percents, count, 'percent')}"
        found.append(f"{len(large)}{among} moved by more than {PERCENTS[1]:g} %{_named(large, rows, most)}.")
    if lost := sum("changed" in {row.sign, row.significance} for row in rows):
        found.append(f"{lost} changed sign or significance.")
    if unknown := count - len(errors) - gone:
        found.append(f"The change of {unknown} in standard errors is not told, or only roughly.")
    if gone:
        found.append(f"How far {gone} of {count} moved is withheld: it may be further than all others.")
    return found


def _tells(found: Class | None, end: float) -> bool:
    """Return True if a class of change tells whether the change is below `end`."""
    return found is not None and not found.low < end < found.high


def _counted(told: Sequence[PublicRow], count: int, unit: str) -> str:
    """Return in words how many of `count` estimates are counted, as their change is told in the unit."""
    words = f"declared {plural(len(told), 'estimate')}"
    if len(told) == count:
        return f"{count} {words}"
    return f"the {len(told)} {words} whose change in {unit} is told"


def _named(chosen: Sequence[PublicRow], rows: Sequence[PublicRow], most: int) -> str:
    """Return the chosen rows in words: by name, or how many domains of an estimate; empty without any."""
    counts = Counter(row.estimate for row in rows)
    names = []
    for estimate, here in Counter(row.estimate for row in chosen).items():
        first = next(row for row in chosen if row.estimate == estimate)
        names.append(first.name if here == 1 else f"{estimate} in {here} of {counts[estimate]} domains")
    return f": {shortened(names, most, '; ')}" if names else ""
