"""Information loss: what the masking cost. Importing this package files all its metrics."""

from sdckit.registry import METRICS

from sdckit.loss import rank, cells, rankmeans  # isort: skip - the order of the tables
from sdckit.loss import split, marginal, boundedcells, moments, probabilistic, propensity  # isort: skip

__all__ = [
    "METRICS",
    "boundedcells",
    "cells",
    "marginal",
    "moments",
    "probabilistic",
    "propensity",
    "rank",
    "rankmeans",
    "split",
]
