"""A masked table that is handed out, and the error where none meets its limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sdckit.metrics.evaluation import Evaluation

TRIES = 20  # draws of a random masking before a release is given up


class LimitsMissed(ValueError):  # noqa: N818 - not a fault of the input
    """No masking, or no draw of it, met the limits."""

    exit_code = 1


@dataclass(frozen=True)
class Release:
    """A masked table that meets its limits, as measured on itself; `draws` says how many it took."""

    data: Any
    evaluation: Evaluation
    draws: int
