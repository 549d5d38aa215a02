"""The report: one self-contained HTML page on what was done, what it cost and what it gives away."""

from sdckit.report.page import report
from sdckit.report.risk_map import Points

__all__ = ["Points", "report"]
