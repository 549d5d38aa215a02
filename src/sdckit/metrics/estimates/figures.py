"""Values of an estimate in each domain with standard errors, intervals, and reasons for what is absent."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats, Ints

CONFIDENCE = 0.95
FACTOR = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)  # standard errors on either side of an estimate
NO_VALUE = "no record has a value"
NO_WEIGHT = "all weights are 0"
ONE_RECORD = "one record, so no standard error"
ONE_UNIT = "a stratum has one unit, so no standard error"


@dataclass
class Figures:
    """An estimate in each domain: value, standard error, interval, records used; NaN without a value.

    `reasons` says for the number of a domain why its value or standard error is absent.
    """

    values: Floats
    errors: Floats
    records: Ints
    low: Floats = field(default_factory=lambda: np.empty(0))
    high: Floats = field(default_factory=lambda: np.empty(0))
    reasons: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.low.size:
            self.low, self.high = self.values - FACTOR * self.errors, self.values + FACTOR * self.errors

    def withhold(self, domains: Bools, reason: str, *, value: bool = True) -> None:
        """Remove the standard errors of some domains, and their values unless `value` is False."""
        if not domains.any():
            return
        for domain in np.flatnonzero(domains):
            self.reasons.setdefault(int(domain), reason)
        for part in (self.errors, self.low, self.high, *((self.values,) if value else ())):
            part[domains] = np.nan


def absent(count: int, records: Ints) -> Figures:
    """Return figures without a value, to be filled in where there is one."""
    nothing = [np.full(count, np.nan) for _ in range(4)]
    return Figures(nothing[0], nothing[1], records, nothing[2], nothing[3])
