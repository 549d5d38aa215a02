"""Check limits on risk before work starts, and check a measured table against its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit.core import checks, registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sdckit.metrics.evaluation import Evaluation


class LimitsMissed(ValueError):  # noqa: N818 - not a fault of the input
    """Error raised if no setting, or no masked table drawn with it, met the limits on risk."""

    exit_code = 1


def check_limits(max_risk: Any) -> dict[str, float]:
    """Return limits by metric name; raise an error for anything but risk metrics with limits from 0 to 1."""
    if not isinstance(max_risk, dict) or not max_risk:
        raise TypeError(f"max_risk is {max_risk!r}; give limits by metric, such as {{'linkage': 0.1}}")
    limits = {}
    for name, limit in max_risk.items():
        (metric,) = registry.metrics_named([name])
        if metric.family != "risk":
            raise ValueError(f"{name!r} is a loss; limit a risk, such as linkage, and minimise the loss")
        if name.partition(":")[0] == "window" and "within" not in metric.fixed_options:
            raise ValueError(f"{name} cannot be limited by itself; limit linkage, which includes it")
        limits[metric.name] = checks.checked_share(f"the limit of {name}", limit)
    return limits


def check_limits_and_loss(
    max_risk: Any, minimise: Any, known: Sequence[str] | None = None
) -> dict[str, float]:
    """Return checked limits on risk; raise ValueError unless `minimise` is a loss whose best value is 0."""
    limits = check_limits(max_risk)
    (loss,) = registry.metrics_named([minimise])
    if loss.family != "loss":
        raise ValueError(f"{minimise!r} is a risk; minimise a loss, such as brmae, and limit the risk")
    if loss.best != 0:
        raise ValueError(f"{minimise!r} is best at {loss.best:g}; minimise a loss whose best value is 0")
    for name in (*limits, loss.name):
        if known is not None and name not in known:
            raise ValueError(
                f"the sweep has not measured {name!r}, only {', '.join(known)}; add it to its metrics"
            )
    return limits


def unpaired_rows_fact(methods: Iterable[str]) -> str:
    """Return the fact that no risk can be limited for these methods, whose rows stand for no record."""
    names = ", ".join(dict.fromkeys(methods))
    return f"rows of {names} stand for no original record, so that no risk can be measured"


def unpaired_rows_error(methods: Iterable[str]) -> ValueError:
    """Return the error for limits on the risk of methods whose rows stand for no original record."""
    return ValueError(f"{unpaired_rows_fact(methods)}; name other methods, or mask without a limit")


def require_limits(limits: Mapping[str, float], result: Evaluation) -> None:
    """Raise `LimitsMissed` if a measured risk exceeds its limit or has no value."""
    for risk, limit in limits.items():
        if not result[risk] <= limit:
            raise LimitsMissed(f"{risk} is {result[risk]:.4f}, above {limit:g}; draw again")
