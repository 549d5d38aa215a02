"""Limits that files met or missed: checked, compared with what was measured, and printed."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sdckit.cli import json_output, parsing, request, terminal
from sdckit.cli.terminal import Verdict
from sdckit.core import registry
from sdckit.core.checks import shortened, warn
from sdckit.core.scenarios import (
    checked_risk_limits,
    checked_scenarios,
    default_limits,
    limits_of,
    risk_of,
    with_sure_limit,
)
from sdckit.metrics.evaluation import metrics_together
from sdckit.record.ledger import TogetherMissed
from sdckit.risk.facts import facts_of
from sdckit.selection.limits import LimitsMissed, check_loss_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sdckit.cli.request import CheckedOptions
    from sdckit.metrics.evaluation_result import Evaluation
    from sdckit.metrics.pair import Pair
    from sdckit.selection.choice import Choice

WHOLE = ("all", "all")  # stratum and variable of a figure on the whole file


def limits_from_options(given: Mapping[str, Any]) -> dict[str, float]:
    """Return the limits that --max-risk and --max-loss give, by metric; raise ValueError for wrong ones."""
    risks = request.parse_limits(given["limits"])
    losses = parsing.parse_settings(given["loss_limits"], "--max-loss", "brmae=0.3")
    limits = (checked_risk_limits(risks) if risks else {}) | check_loss_limits(losses)
    if given["together"]:
        metrics_together(list(limits) or None)
    return limits


def warn_of_order(limits: Mapping[str, float], checked: CheckedOptions, orders: Iterable[Any]) -> None:
    """Warn that limits on risks are judged on rows paired by their order, which a release does not keep.

    `orders` has the rows of each masked file in the original, None where no crosswalk tells them.
    """
    if limits_risks(limits, checked) and any(paired_by_order(checked, rows) for rows in orders):
        warn(
            "rows are paired by their order, and of a file with shuffled rows, as releases are, every risk "
            "seems small; give --key, --crosswalk or the --private record of the release"
        )


def limits_risks(limits: Mapping[str, float], checked: CheckedOptions) -> bool:
    """Return True if the command line or a scenario limits a risk."""
    named = {*limits, *limits_of(checked_scenarios(checked.scenarios))}
    return any(registry.metrics_named([risk_of(name)])[0].family == "risk" for name in named)


def paired_by_order(checked: CheckedOptions, rows: Any) -> bool:
    """Return True if rows are paired by their order; `rows` are those in the original, None if unknown."""
    return checked.paired and not checked.key and rows is None


def require_aligned(pair: Pair, limits: Mapping[str, float], checked: CheckedOptions, rows: Any) -> None:
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


def with_limited_metrics(checked: CheckedOptions, limits: Iterable[str]) -> CheckedOptions:
    """Return options that also measure the metrics with a limit."""
    chosen = [metric.name for metric in registry.metrics_named(checked.metrics)]
    more = [name for name in limits if name not in chosen]
    return replace(checked, metrics=[*chosen, *more]) if more else checked


def verdicts_on(
    result: Evaluation, limits: Mapping[str, float], checked: CheckedOptions, file: str | None = None
) -> list[Verdict]:
    """Compare the measures of a file with the limits of the command line and with those of scenarios."""
    others = limits_of(checked_scenarios(checked.scenarios)) if result.scenarios is not None else {}
    return [_verdict(result, metric, limit, file) for metric, limit in (dict(limits) | others).items()]


def verdicts_on_files(
    results: Mapping[str, Evaluation], limits: Mapping[str, float], checked: CheckedOptions
) -> list[Verdict]:
    """Compare the measures of several files, by name, with the limits of the command line."""
    return [one for file, result in results.items() for one in verdicts_on(result, limits, checked, file)]


def _verdict(result: Evaluation, metric: str, limit: float, file: str | None) -> Verdict:
    """Compare one measure of a file with its limit; one that was left out has no value."""
    try:
        value, upper = result[metric], result.upper_end(metric)
    except ValueError:
        return Verdict(metric, math.nan, limit, file=file)
    return Verdict(metric, upper, limit, upper != value, (metric, *WHOLE) in result.dominated, file)


def require_met(verdicts: Iterable[Verdict]) -> None:
    """Raise `LimitsMissed`, which ends a command with exit code 1, if a limit is missed."""
    missed = [one.fact for one in verdicts if not one.met]
    if missed:
        raise LimitsMissed(f"{', '.join(missed)}; change the masking, or allow more")


@contextmanager
def misses_printed(given: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[list[Choice]]:
    """Let a `with` block that misses its limits print the nearest miss as JSON, if JSON is asked for.

    The block appends the choice of its search to the yielded list. Without one, columns that are published
    unmasked already exceed a limit, and no masking was tried.
    """
    found: list[Choice] = []
    try:
        yield found
    except (LimitsMissed, TogetherMissed) as reason:
        if given["as_json"]:
            nearest = found[0].public().to_dict() if found else _nothing_tried(given)
            told = getattr(reason, "in_public", str(reason))
            choice = nearest | {"met": False, "reason": told}
            terminal.print_line(json_output.as_json(dict(about) | {"choice": choice}))
        raise


def _nothing_tried(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of `Choice.to_dict` for a search that ended before its first masking."""
    limits = with_sure_limit(limits_from_options(dict(given) | {"together": False}))
    start = {"method": None, "parameters": {}, "values": {}, "limits": limits}
    return start | {
        "default_limits": list(default_limits(limits)),
        "minimise": given["minimise"],
        "binding": [],
        "maskings": 0,
        "sentences": [],
        "points": [],
    }
