"""Information loss: what the masking cost. Importing this package files all its metrics."""

from sdckit.registry import METRICS

from sdckit.loss import rank, cells, rankmeans  # isort: skip - the order of the tables

__all__ = ["METRICS", "cells", "rank", "rankmeans"]
