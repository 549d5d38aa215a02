"""Limits that files met or missed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sdckit.core import registry
from sdckit.core.checks import warn
from sdckit.core.registry import public_value
from sdckit.core.scenarios import checked_scenarios, limits_of, meets_limit, risk_of
from sdckit.core.text import number, shortened
from sdckit.risk.facts import facts_of
from sdckit.selection.limits import LimitsMissed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sdckit.evaluation.result import Evaluation
    from sdckit.metrics.pair import Pair
    from sdckit.request.checks import Checked
    from sdckit.request.results import Result

WHOLE = ("all", "all")  # stratum and variable of a figure on the whole file


@dataclass(frozen=True)
class Verdict:
    """A limit and the measured value that counts against it: of an estimate, the upper end of its interval.

    `value` is NaN where there is none, and the limit is then missed. `withheld` is True for a figure that one
    record dominates.
    """

    metric: str
    value: float
    limit: float
    estimated: bool = False
    withheld: bool = False
    file: str | None = None  # of several

    @property
    def met(self) -> bool:
        """True if the value is there and at most the limit."""
        return meets_limit(self.value, self.limit)

    @property
    def fact(self) -> str:
        """The comparison in words, such as "linkage is 0.0832, at most 0.1"."""
        start = f"{self.file}: " if self.file else ""
        if math.isnan(self.value):
            return f"{start}{self.metric} has no value, and its limit is {self.limit:g}"
        interval = " at the upper end of its interval" if self.estimated else ""
        compared = "at most" if self.met else "above"
        value = f"{number(public_value(self.metric, self.value))}{interval}"
        value = "withheld" if self.withheld else value
        return f"{start}{self.metric} is {value}, {compared} {self.limit:g}"

    @property
    def line(self) -> str:
        """The line to print: whether the limit is met, and the comparison."""
        return f"limit {'met' if self.met else 'missed'}: {self.fact}"

    def to_dict(self, *, private: bool) -> dict[str, Any]:
        """Return the verdict as a JSON-ready dict; without `private`, a withheld value is None."""
        value = self.value if private else None if self.withheld else public_value(self.metric, self.value)
        found = {"metric": self.metric, "value": value, "limit": self.limit, "met": self.met}
        return found | ({"file": self.file} if self.file else {})


def warn_of_order(limits: Mapping[str, float], checked: Checked, orders: Iterable[Any]) -> None:
    """Warn that limits on risks are judged on rows paired by their order, which a release does not keep.

    `orders` has the rows of each masked file in the original, None where no crosswalk tells them.
    """
    if limits_risks(limits, checked) and any(paired_by_order(checked, rows) for rows in orders):
        warn(
            "rows are paired by their order, and of a file with shuffled rows, as releases are, every risk "
            "seems small; give --key, --crosswalk or the --private record of the release"
        )


def limits_risks(limits: Mapping[str, float], checked: Checked) -> bool:
    """Return True if the command line or a scenario limits a risk."""
    named = {*limits, *limits_of(checked_scenarios(checked.scenarios))}
    return any(registry.metrics_named([risk_of(name)])[0].family == "risk" for name in named)


def paired_by_order(checked: Checked, rows: Any) -> bool:
    """Return True if rows are paired by their order; `rows` are those in the original, None if unknown."""
    return checked.paired and not checked.key and rows is None


def require_aligned(pair: Pair, limits: Mapping[str, float], checked: Checked, rows: Any) -> None:
    """Raise ValueError if risks are limited and unmasked columns show that rows do not correspond.

    Rows that are paired by their order then belong to other records, and every risk seems small.
    """
    if not (limits_risks(limits, checked) and paired_by_order(checked, rows)):
        return
    torn = [name for name, case in facts_of(pair).cases.items() if case == "e"]
    if torn:
        verb = "is" if len(torn) == 1 else "are"
        raise ValueError(
            f"most rows differ from the original in {shortened(torn)}, which {verb} not masked: "
            "the rows do not correspond, and no limit on risk can be judged; give --key, "
            "--crosswalk or the --private record of the release"
        )


def with_limited_metrics(checked: Checked, limits: Iterable[str]) -> Checked:
    """Return options that also measure the metrics with a limit."""
    chosen = [metric.name for metric in registry.metrics_named(checked.metrics)]
    more = [name for name in limits if name not in chosen]
    return replace(checked, metrics=[*chosen, *more]) if more else checked


def judged(result: Result, limits: Mapping[str, float], checked: Checked) -> Result:
    """Compare what was measured with the limits of the request and of its scenarios.

    Where one is missed, the result has the error that ends a command with exit code 1.
    """
    verdicts = []
    for file, one in result.evaluations.items():
        others = limits_of(checked_scenarios(checked.scenarios)) if one.scenarios is not None else {}
        shown = file if len(result.evaluations) > 1 else None
        verdicts += [_verdict(one, metric, limit, shown) for metric, limit in {**limits, **others}.items()]
    facts = ", ".join(one.fact for one in verdicts if not one.met)
    missed = LimitsMissed(f"{facts}; change the masking, or allow more") if facts else None
    return replace(result, verdicts=verdicts, missed=missed)


def _verdict(result: Evaluation, metric: str, limit: float, file: str | None) -> Verdict:
    """Compare one measure of a file with its limit; one that was left out has no value."""
    try:
        value, upper = result[metric], result.upper_end(metric)
    except ValueError:
        return Verdict(metric, math.nan, limit, file=file)
    return Verdict(metric, upper, limit, upper != value, (metric, *WHOLE) in result.dominated, file)
