"""Results of a metric on a pair of files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints


@dataclass(frozen=True)
class Values:
    """A value for the whole file and one for each variable."""

    overall: float
    variables: Floats


@dataclass(frozen=True)
class WorstAttack:
    """The attack that links most records of a file: its name and direction."""

    name: str
    direction: str


@dataclass(frozen=True)
class Score:
    """Result of a metric: its value, random level, tie range and counts."""

    value: Values
    used: Ints
    left_out: Ints
    random: Values | None = None
    tie_low: Values | None = None
    tie_high: Values | None = None
    records: Floats | None = None
    notes: tuple[str, ...] = ()
    parts: dict[str, float] = field(default_factory=dict)  # what the value is made of, by name
    attack: WorstAttack | None = None  # the attack behind a risk, where that depends on the data
