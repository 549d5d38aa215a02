"""Disclosure risk: what a masked file still gives away. Importing this package files all metrics."""

from sdckit.core.registry import METRICS
from sdckit.metrics import loss

from sdckit.metrics.risk import linkage, interval, robust_interval  # isort: skip - the order of the tables

__all__ = ["METRICS", "interval", "linkage", "loss", "robust_interval"]
