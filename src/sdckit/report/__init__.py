"""Reports: one self-contained HTML page on a masking, its information loss and its disclosure risk."""

from sdckit.report.page import report
from sdckit.report.risk_map import Points

__all__ = ["Points", "report"]
