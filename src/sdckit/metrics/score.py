"""What a metric found on a pair of files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints


@dataclass(frozen=True)
class Values:
    """A value of the whole file and one of each variable."""

    overall: float
    variables: Floats


@dataclass(frozen=True)
class WorstAttack:
    """The attack that finds most records of a file: its name, and who looks up whom."""

    name: str
    direction: str


@dataclass(frozen=True)
class Score:
    """What a metric found: its value, what random order and ties would make of it, and the counts."""

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
