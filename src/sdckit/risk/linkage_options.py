"""Options of the linkage metrics, and what their records in the registry share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sdckit.core import parameters
from sdckit.core.parameters import Parameter
from sdckit.risk.attack_kinds import ALL, BOTH, DIRECTIONS, NEAREST, TO_ORIGINAL
from sdckit.risk.linkage_scores import OUTLIERS
from sdckit.risk.one_to_one import DISTANCES

if TYPE_CHECKING:
    from sdckit.metrics.score import Score

HANDBOOK = "Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239"
DIRECTION = Parameter("direction", str, TO_ORIGINAL, "whose records are looked up", choices=DIRECTIONS)
EITHER = Parameter(
    "direction", str, BOTH, "whose records are looked up, or both in turn", choices=(BOTH, *DIRECTIONS)
)
KNOWING = Parameter(
    "attacks",
    str,
    ALL,
    "all, or those of the literature, which look for the nearest record and know no law",
    choices=(ALL, NEAREST),
)
PLACES = Parameter("places", int, 1, "how many nearest records the intruder may name", low=1)
WITHIN = Parameter("within", float, 0.0, "largest move in ranks, as a share of the records", low=0, high=1)
DISTANCE = Parameter(
    "distance",
    str,
    "standardised",
    "in standard deviations, as shares of the pooled range, or raw",
    choices=DISTANCES,
)
SHARE = Parameter("share", float, OUTLIERS, "share of the records that count as outliers", low=0.0001, high=1)
RISK: dict[str, Any] = {
    "family": "risk",
    "bounds": (0.0, 1.0),
    "best": 0.0,
    "needs": "rows",
    "by_variable": False,
    "in_blocks": True,
}


def overall_value(score: Score) -> float:
    """Return the whole-file value of a score."""
    return score.value.overall


def checked_options(**options: Any) -> dict[str, Any]:
    """Return the options of a linkage metric, each checked against its type and range."""
    known = {
        "attacks": KNOWING,
        "direction": EITHER,
        "places": PLACES,
        "within": WITHIN,
        "distance": DISTANCE,
        "share": SHARE,
    }
    return {name: parameters.parameter_value(known[name], value) for name, value in options.items()}
