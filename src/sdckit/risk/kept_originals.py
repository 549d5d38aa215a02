"""Facts about originals that are the same for many masked files, with the searches that are built on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.risk.distances import cached_value

if TYPE_CHECKING:
    from sdckit.kernels.candidates import Side
    from sdckit.metrics.original import Original

# A search measures many masked files. Windows of ranks say the same about originals whatever their width, so
# that trees of originals need not be built again for every file. They are large: those of one side are kept.


def keep_side(original: Original, side: Side) -> tuple[Side, dict[str, Any]]:
    """Return facts about originals, equal ones of an earlier file if kept, and a cache for what they need."""
    kept: tuple[Side, dict[str, Any]]
    kept = cached_value(original.cache, "side of originals", lambda: (side, {}))
    if not equal_sides(kept[0], side):
        kept = original.cache["risk: side of originals"] = (side, {})
    return kept


def equal_sides(one: Side, other: Side) -> bool:
    """Return True if two files' facts are equal in all records."""
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
