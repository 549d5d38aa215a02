"""Intruders and limits on what they may learn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sdckit.core import checks, registry
from sdckit.core.registry import frozen
from sdckit.core.roles import WORDS, unique_names
from sdckit.core.text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sdckit.core.registry import Metric
    from sdckit.core.roles import Roles

    Parts = Mapping[str, Mapping[str, Any]]  # of the values of metrics, by metric and name

SURE = "linkage_sure"
PARTS = ("exposed", "exposed above 0.9")  # of the metric, by name
KEYS = ("exposed", "exposed_above_90")  # of JSON


class Exposed(NamedTuple):
    """Number of records whose true original has a probability above 1/2, and of those above 0.9."""

    records: int
    above_90: int

    def sentence(self, n: int | None = None) -> str:
        """Return the numbers in words, without a full stop; `n` is the number of all records, if known."""
        if not self.records:
            return "no record is exposed: the intruder gives no true original a probability above one half"
        of = "" if n is None else f" of {n:,}"
        noun = plural(self.records if n is None else n, "record")
        verb = "is" if self.records == 1 else "are"
        fact = "the intruder gives the true original a probability above one half"
        return f"{self.records:,}{of} {noun} {verb} exposed: {fact} (above 0.9: {self.above_90:,})"


def exposed_of(parts: Parts) -> Exposed | None:
    """Return the numbers of exposed records from the parts of an evaluation; None if not measured."""
    found = [parts.get(SURE, {}).get(name) for name in PARTS]
    numbers = [float(one) for one in found if one is not None and math.isfinite(one)]
    return Exposed(*map(round, numbers)) if len(numbers) == len(PARTS) else None


def exposed_content(parts: Parts) -> dict[str, int | None]:
    """Return the numbers of exposed records as entries of JSON; null where they were not measured."""
    found = exposed_of(parts)
    return dict(zip(KEYS, (None, None) if found is None else found, strict=True))


ENTRIES = ("known", "max_risk")
DEFAULT_SURE = "default: a tenth of the limit on linkage"
FORBIDDEN = ("key", "unit", "drop")  # roles of columns that no intruder of a scenario knows
DIGITS = 12  # of a value that are judged: in the last ones a mean of tenths differs from a tenth
EXAMPLE = "{'press': {'known': ['sex', 'age'], 'max_risk': {'linkage': 0.05}}}"


@dataclass(frozen=True)
class Intruder:
    """What another intruder knows than the default one, and how much risk he may be.

    `known` are the columns whose original values he knows, in place of the `known` of the microdata;
    `max_risk` has limits by risk, which `recommend` and `release` meet for him, too; without any, his linkage
    is measured.

    Examples
    --------
    >>> import polars as pl
    >>> import sdckit as sdc
    >>> press = sdc.Intruder(known=["sex", "income"], max_risk={"linkage": 0.05})
    >>> amounts = {"income": [i**1.5 for i in range(60)], "wealth": [i * 2.5 % 31 for i in range(60)]}
    >>> frame = pl.DataFrame({"sex": [1, 2] * 30} | amounts)
    >>> data = sdc.Microdata(frame, untouched="sex", intruders={"press": press})
    >>> data.evaluate(data.mask("mdav", k=5), made_by=sdc.Method("mdav", k=5), metrics="linkage").keys()
    ['linkage', 'linkage (press)']
    """

    known: str | Sequence[str]
    max_risk: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """What an intruder knows, in place of `known` of the roles, and limits by risk for him, if any."""

    name: str
    known: tuple[str, ...]
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def metrics(self) -> list[Metric]:
        """The risks that are measured for this intruder: those that are limited, linkage without any."""
        return registry.metrics_named(list(self.limits) or ["linkage"])

    def label(self, risk: str) -> str:
        """Return the name of a risk in this scenario, such as "linkage (press)"."""
        return f"{risk} ({self.name})"

    def roles(self, roles: Roles) -> Roles:
        """Return the roles of columns for this intruder; what he knows is not unknown to him."""
        unknown, confidential = (
            tuple(name for name in names if name not in self.known)
            for names in (roles.unknown, roles.confidential)
        )
        return replace(roles, known=self.known, unknown=unknown, confidential=confidential)

    def require_columns(self, roles: Roles, columns: Sequence[str]) -> None:
        """Raise ValueError if the table lacks a column of the scenario, or if no intruder can know it."""
        checks.require_known(self.known, columns, f"column of scenario {self.name!r}")
        for role in FORBIDDEN:
            for name in [name for name in self.known if name in roles.columns_with(role)]:
                raise ValueError(
                    f"column {name!r} of scenario {self.name!r} is {WORDS[role]}, which is not published as "
                    "it is; leave it out of the scenario"
                )


def risk_of(label: str) -> str:
    """Return the name of the risk that a limit is on: that of a metric, or of one in a scenario."""
    return label.partition(" (")[0]


def limits_of(scenarios: Iterable[Scenario]) -> dict[str, float]:
    """Return the limits of all scenarios, such as {"linkage (press)": 0.05}."""
    return {one.label(risk): limit for one in scenarios for risk, limit in one.limits.items()}


def checked_risk_limits(max_risk: Any, where: str = "max_risk") -> dict[str, float]:
    """Return limits by metric name; raise an error for anything but risk metrics with limits from 0 to 1."""
    if not isinstance(max_risk, Mapping) or not max_risk:
        raise TypeError(f"{where} is {max_risk!r}; give limits by metric, such as {{'linkage': 0.1}}")
    limits = {}
    for name, limit in max_risk.items():
        (metric,) = registry.metrics_named([name])
        if metric.family != "risk":
            fact = f"{name!r} is a loss; limit a risk, such as linkage, and minimise the loss"
            raise ValueError(f"{fact} or limit it with max_loss=")
        if name.partition(":")[0] == "window" and "within" not in metric.fixed_options:
            raise ValueError(f"{name} cannot be limited by itself; limit linkage, which includes it")
        limits[metric.name] = checks.checked_share(f"the limit of {name}", limit)
    return limits


def with_sure_limit(limits: dict[str, float], measured: Sequence[str] | None = None) -> dict[str, float]:
    """Return the limits with one on sure links beside that on linkage, a tenth of it, unless one is given.

    `linkage` is a mean, and a few exposed records hardly change it. `measured` names the risks at hand.
    """
    if "linkage" not in limits or SURE in limits or (measured is not None and SURE not in measured):
        return limits
    return limits | {SURE: default_sure_limit(limits["linkage"])}


def meets_limit(value: float, limit: float) -> bool:
    """Return True if a risk or loss is at most its limit; one without a value (NaN) meets none."""
    return round(value - limit, DIGITS) <= 0


def default_sure_limit(linkage: float) -> float:
    """Return the default limit on sure links: a tenth of that on linkage."""
    return float(f"{linkage / 10:.6g}")


def default_limits(limits: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names of the limits that have their default value, given all limits."""
    both = "linkage" in limits and SURE in limits
    return (SURE,) if both and limits[SURE] == default_sure_limit(limits["linkage"]) else ()


def default_note(name: str, limits: Mapping[str, float]) -> str:
    """Return " (default: ...)" for a limit that has its default value, an empty text for others."""
    return f" ({DEFAULT_SURE})" if name in default_limits(limits) else ""


def checked_scenarios(given: Any, *, limited: bool = False) -> tuple[Scenario, ...]:
    """Return scenarios from a dict by name; with `limited`, each needs a limit. None gives none."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise TypeError(f"scenarios is {given!r}; give a dict such as {EXAMPLE}")
    return tuple(_checked_scenario(str(name), entry, limited=limited) for name, entry in given.items())


def _checked_scenario(name: str, entry: Any, *, limited: bool) -> Scenario:
    """Return one scenario; raise an error if it has no columns, or limits that are none."""
    if isinstance(entry, Intruder):
        entry = {"known": entry.known, "max_risk": entry.max_risk}
    if not isinstance(entry, Mapping):
        raise TypeError(f"scenario {name!r} is {entry!r}; give a dict such as {EXAMPLE}")
    for key in entry:
        checks.one_of(f"entry of scenario {name!r}", key, ENTRIES)
    known = unique_names(entry.get("known"))
    if not known:
        raise ValueError(f"scenario {name!r} has no columns; name those that its intruder knows")
    given = entry.get("max_risk") or {}
    if limited and not given:
        raise ValueError(f"scenario {name!r} has no limit; give it one, such as linkage of 0.1")
    try:
        limits = checked_risk_limits(given, "max_risk") if given else {}
    except (ValueError, TypeError) as error:
        raise type(error)(f"scenario {name!r}: {error}") from error
    return Scenario(name, known, frozen(limits))


def limits_text(allowed: Mapping[str, float], label: Callable[[str], str] = str) -> str:
    """Return limits as text such as "linkage of at most 0.1 and dbrl of at most 0.2"; a default is said."""
    return " and ".join(
        f"{label(risk)} of at most {limit:g}{default_note(risk, allowed)}" for risk, limit in allowed.items()
    )
