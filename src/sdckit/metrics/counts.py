"""Numbers of cells that two files share, and facts about the values of a variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sdckit.kernels.jit import Ints


@dataclass(frozen=True)
class Counts:
    """Numbers of cells of each variable observed in both files, in one of them, or in neither."""

    both: Ints
    suppressed: Ints
    imputed: Ints
    neither: Ints


class ColumnFacts(NamedTuple):
    """Facts about a variable in the records with a value in both files.

    `original_constant` and `masked_constant` are True if all values are equal. `heaviest` is the largest
    weight of a record and `weight` the sum of all; without weights, every record has weight 1.
    """

    records: int
    original_constant: bool
    masked_constant: bool
    heaviest: float
    weight: float


class MeanAndSpread(NamedTuple):
    """Mean and standard deviation (ddof 1) of a column, without weights."""

    mean: float
    spread: float
