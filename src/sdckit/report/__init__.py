"""The report: one self-contained HTML page on what was done, what it cost and what it gives away."""

from sdckit.report.maps import Points
from sdckit.report.page import report

__all__ = ["Points", "report"]
