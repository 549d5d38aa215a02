"""Information loss: what the masking cost. Importing this package files all its metrics."""

from sdckit.core.registry import METRICS

from sdckit.metrics.loss import rank, cells, rank_means  # isort: skip - the order of the tables
from sdckit.metrics.loss import mse_split, distributions, bounded_cells, moments, probabilistic, propensity  # isort: skip

__all__ = [
    "METRICS",
    "bounded_cells",
    "cells",
    "distributions",
    "moments",
    "mse_split",
    "probabilistic",
    "propensity",
    "rank",
    "rank_means",
]
