"""The nearest candidates of each query, and how many of them have a further property."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels import forest, forest_search
from sdckit.kernels.kd_tree import in_parts

if TYPE_CHECKING:
    from sdckit.kernels.candidates import Side
    from sdckit.kernels.jit import Floats, Ints

AT_ONCE = 2_000  # queries between two checks for Ctrl-C


def count_nearest(
    targets: Floats,
    queries: Floats,
    facts: tuple[Side, Side],
    property_of: tuple[tuple[Floats, Floats], tuple[Floats, Floats]],
    tolerance: float,
) -> Ints:
    """Return how many candidates are nearest to each query, and how many of these have a further property.

    Distances, candidates and ties are those of `candidates.count_closer`. A target has the property that a
    query asks for if their intervals overlap: `property_of` has the ends of the intervals (record x
    dimension) of targets and of queries. Both numbers are 0 where a query has no candidate.
    """
    (ours, theirs), ((low, high), (lower, upper)) = facts, property_of
    trees = forest.build(targets, ours.blocks, np.hstack([ours.low, low]), np.hstack([ours.high, high]))
    spans = np.stack([np.searchsorted(trees.blocks, theirs.blocks, side) for side in ("left", "right")], 1)
    anywhere = np.full(lower.shape, np.inf)
    wide = np.hstack([theirs.low, -anywhere]), np.hstack([theirs.high, anywhere])
    narrow = np.hstack([theirs.low, lower]), np.hstack([theirs.high, upper])
    found = np.zeros((2, len(queries)), np.int64)

    def work(begin: int, end: int) -> None:
        """Count for the queries begin..end-1."""
        part, scratch = slice(begin, end), forest_search.scratch_for(queries.shape[1])
        asked = np.ascontiguousarray(queries[part]), wide[0][part], wide[1][part]
        counts = np.zeros((2, len(asked[0])), np.int64)
        further = narrow[0][part], narrow[1][part]
        forest_search.count_nearest(trees, asked, further, spans[part], tolerance, counts, scratch)
        found[:, part] = counts

    in_parts(len(queries), work, AT_ONCE)
    return found
