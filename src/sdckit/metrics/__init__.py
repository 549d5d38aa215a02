"""Metrics of information loss and of disclosure risk, which compare a masked file with its original.

Importing this package files all metrics: `METRICS` is complete afterwards.
"""

from sdckit.core.registry import METRICS
from sdckit.metrics import loss

from sdckit import risk  # isort: skip - by this name, as its modules import those of this package

__all__ = ["METRICS", "loss", "risk"]
