"""Disclosure risk: what a masked file still gives away. Importing this package files all metrics."""

from sdckit import loss
from sdckit.registry import METRICS

from sdckit.risk import linkage, interval, outlier  # isort: skip - the order of the tables

__all__ = ["METRICS", "interval", "linkage", "loss", "outlier"]
