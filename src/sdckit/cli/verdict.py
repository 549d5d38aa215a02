"""A limit and what was measured against it: met or missed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sdckit.core.registry import public_value
from sdckit.core.scenarios import meets_limit
from sdckit.core.text import number


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
