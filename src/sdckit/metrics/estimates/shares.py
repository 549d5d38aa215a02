"""What single records contribute to an estimate of the original, by domain.

Where units such as firms have several records, a unit counts as one: who looks for a firm looks for all of
its records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.core.checks import FEWEST_REPORTED
from sdckit.core.classes import number_values
from sdckit.metrics.blocks.contributions import Contributions
from sdckit.metrics.dominated import is_dominated
from sdckit.metrics.estimates.measuring import sample_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.metrics.estimates.measuring import Row, Rows
    from sdckit.metrics.estimates.parse import Request
    from sdckit.metrics.estimates.sample import Sample
    from sdckit.metrics.estimates.survey_file import SurveyFile

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
    rows = np.flatnonzero(counted & (grouping.numbers < grouping.count))
    numbers = grouping.numbers[rows]
    ends = np.cumsum(np.bincount(numbers, minlength=grouping.count))[:-1]
    parts = np.split(rows[np.argsort(numbers, kind="stable")], ends) if grouping.count else []
    return [Members(part, units) for part in parts]


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
