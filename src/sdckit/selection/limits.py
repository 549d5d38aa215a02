"""Check limits on risk and loss before work starts, and check a measured table against its limits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sdckit.core import checks, registry
from sdckit.core.checks import warn
from sdckit.core.description import floor_of_data, floor_text, weights_text
from sdckit.core.scenarios import checked_risk_limits, meets_limit, risk_of, with_sure_limit
from sdckit.metrics.score import LOOKED_UP, Sampling, sampling_of
from sdckit.risk.facts import blocks_of_original
from sdckit.risk.law import LARGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sdckit.core.registry import Metric
    from sdckit.core.roles import Roles
    from sdckit.evaluation.result import Evaluation
    from sdckit.metrics.original import Original


SUPPRESSED = "suppressed"  # the loss that every search measures beside the one it minimises
UNITS = "linkage_units"
SAMPLED_FROM = 20_000  # records of a file from which on a search judges settings on samples
REPLICATIONS = 3  # tables that a search draws with each random setting, of shorter files
FIRST_QUERIES, MOST_QUERIES = 2_048, 65_536  # records that a search looks up, at first and at most
MEASURED_UP_TO = 10_000_000  # records of a release that are all looked up
RELEASE_QUERIES = 1_000_000  # records that are looked up at first in a longer one


class LimitsMissed(ValueError):  # noqa: N818 - not a fault of the input
    """Error raised if no setting, or no masked table drawn with it, met the limits."""

    exit_code = 1


def check_loss_limits(max_loss: Any) -> dict[str, float]:
    """Return limits by metric name; raise an error for anything but losses that are best at 0."""
    if max_loss is None:
        return {}
    if not isinstance(max_loss, dict):
        raise TypeError(f"max_loss is {max_loss!r}; give limits by metric, such as {{'suppressed': 0.01}}")
    limits = {}
    for name, limit in max_loss.items():
        metric = loss_named(name, "limit")
        number = checks.as_number(limit)
        if number is None or not 0 <= number <= metric.bounds[1]:
            span = "from 0 to 1" if metric.bounded else "of at least 0"
            raise ValueError(f"the limit of {name} is {limit!r}; give a number {span}")
        limits[metric.name] = number
    return limits


def loss_named(name: Any, verb: str) -> Metric:
    """Return the metric of a name; raise ValueError unless it is a loss whose best value is 0."""
    (loss,) = registry.metrics_named([name])
    if loss.family != "loss":
        raise ValueError(f"{name!r} is a risk; {verb} a loss, such as brmae, and limit the risk")
    if loss.best != 0:
        raise ValueError(f"{name!r} is best at {loss.best:g}; {verb} a loss whose best value is 0")
    return loss


def risk_limits(limits: Mapping[str, float]) -> dict[str, float]:
    """Return those of the limits that are on risks."""
    return {
        name: limits[name] for name in limits if registry.metrics_named([risk_of(name)])[0].family == "risk"
    }


def loss_limits(limits: Mapping[str, float]) -> dict[str, float]:
    """Return those of the limits that are on losses."""
    risks = risk_limits(limits)
    return {name: limit for name, limit in limits.items() if name not in risks}


def check_limits_and_loss(
    max_risk: Any, minimise: Any, known: Sequence[str] | None = None, max_loss: Any = None
) -> dict[str, float]:
    """Return checked limits, risks first; raise ValueError unless `minimise` is a loss that is best at 0."""
    limits = with_sure_limit(checked_risk_limits(max_risk), known) | check_loss_limits(max_loss)
    loss = loss_named(minimise, "minimise")
    for name in (*limits, loss.name):
        if known is not None and name not in known:
            raise ValueError(
                f"the sweep has not measured {name!r}, only {', '.join(known)}; add it to its metrics"
            )
    return limits


def require_reachable(limits: Mapping[str, float], original: Original, roles: Roles | None = None) -> None:
    """Raise `LimitsMissed` if columns that are published unmasked alone exceed a limit.

    Other `roles` than those of the data tell what the intruder of a scenario knows.
    """
    floor = floor_of_data(original, roles)
    least = {"linkage": floor.floor, "uniques": floor.share}
    for risk, limit in limits.items():
        if floor.columns and not meets_limit(least.get(risk, 0.0), limit):
            weights = (roles or original.roles).weights
            texts = [
                weights_text(floor, weights),
                floor_text(floor.raising(weights), floor.together, original.columns),
            ]
            why = ". ".join(text[0].upper() + text[1:] for text in texts if text)
            raise LimitsMissed(f"no masking meets {risk} of at most {limit:g}. {why}")


def search_sampling(size: int | None, n: int, limits: Mapping[str, float]) -> Sampling | None:
    """Return on which samples of n records a search judges settings; None for all records.

    Without a given size, files of some length are sampled.
    """
    found = sampling_of(FIRST_QUERIES if size is None and n > SAMPLED_FROM else size)
    return found and replace(found, limits=dict(limits), most=max(found.first, MOST_QUERIES))


def search_replications(given: int | None, n: int) -> int:
    """Return how many tables of n records a search draws with each random setting.

    The mean credit of n records varies between tables by 0.5 / sqrt(n) at most if each record has draws of
    its own: in files that are sampled, by less than the intervals of their samples, so that one is enough.
    """
    if given is not None:
        return checks.checked_count("replications", given)
    return 1 if n > SAMPLED_FROM else REPLICATIONS


def release_sampling(n: int, limits: Mapping[str, float], *, random: bool) -> Sampling | None:
    """Return on which samples of n records a release is measured, masked at `random` or not; None for all."""
    if random and n > LARGE:
        return Sampling(LOOKED_UP, limits=dict(limits))
    return Sampling(RELEASE_QUERIES, limits=dict(limits)) if n > MEASURED_UP_TO else None


def unpaired_rows_fact(methods: Iterable[str]) -> str:
    """Return the fact that no risk can be limited for these methods, whose rows stand for no record."""
    names = ", ".join(dict.fromkeys(methods))
    return f"rows of {names} stand for no original record, so that no risk can be measured"


def unpaired_rows_error(methods: Iterable[str]) -> ValueError:
    """Return the error for limits on the risk of methods whose rows stand for no original record."""
    return ValueError(f"{unpaired_rows_fact(methods)}; name other methods, or mask without a limit")


def require_tied_rows(method: str, original: Original) -> None:
    """Raise the error of `unpaired_rows_error` if neither columns nor missing cells tie rows to records."""
    if blocks_of_original(original) is None and original.complete:
        raise unpaired_rows_error([method])


def require_limits(limits: Mapping[str, float], result: Evaluation) -> None:
    """Raise `LimitsMissed` if a measured risk or loss exceeds its limit or has no value."""
    for name, limit in limits.items():
        if not meets_limit(result.upper_end(name), limit):
            raise LimitsMissed(f"{name} is {result.upper_end(name):.4f}, above {limit:g}; draw again")


def warn_of_units(limits: Mapping[str, float], result: Evaluation) -> None:
    """Warn where rows meet their limit and published units, on which there is none, are found more often."""
    limit = limits.get("linkage")
    measured = UNITS in result.summary["metric"].to_list()
    if limit is None or UNITS in limits or not measured or meets_limit(result[UNITS], limit):
        return
    warn(
        "the limit on linkage counts rows one by one; rows of a unit together lead to the right unit with "
        f"{UNITS} {result[UNITS]:.4f}; limit {UNITS}, too, or drop the units"
    )
