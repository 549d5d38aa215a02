"""Disclosure risk: what a masked file still gives away. Importing this package files all metrics."""

from sdckit import loss
from sdckit.registry import METRICS

__all__ = ["METRICS", "loss"]
