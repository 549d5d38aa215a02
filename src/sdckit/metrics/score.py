"""Result types of metrics: value, value for unrelated records, range over ties, and counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints


@dataclass(frozen=True)
class Values:
    """One number for the whole file and one for each variable."""

    overall: float
    variables: Floats


@dataclass(frozen=True)
class WorstAttack:
    """Name and direction of the attack that links most records of a file."""

    name: str
    direction: str


class Estimate(NamedTuple):
    """An interval for a value of all records, and the numbers of records that it was estimated on."""

    low: float
    high: float
    drawn: int
    records: int

    @property
    def text(self) -> str:
        """The estimate in words, such as "estimated on 500 of 3000 records, 95% interval 0.08 to 0.12"."""
        ends = f"95% interval {self.low:.3g} to {self.high:.3g}"
        return f"estimated on {self.drawn} of {self.records} records, {ends}"


@dataclass(frozen=True)
class Score:
    """Result of a metric: value, value for unrelated records, range over ties, and counts of cells."""

    value: Values
    used: Ints
    left_out: Ints
    random: Values | None = None
    tie_low: Values | None = None
    tie_high: Values | None = None
    records: Floats | None = None
    notes: tuple[str, ...] = ()
    parts: dict[str, float] = field(default_factory=dict)  # components of the value, by name
    subject: str = ""  # names of the columns that the value is about, where these are not the variables
    attack: WorstAttack | None = None  # the attack that the value of a linkage risk is from
    estimate: Estimate | None = None  # where the value is that of a sample of records
