"""Exposed records of a masked file: how many there are, and the sentence that says so."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from sdckit.core.text import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

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
