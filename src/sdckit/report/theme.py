"""Theme of the report's charts: colours and font sizes for a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sdckit.report import charts

if TYPE_CHECKING:
    from sdckit.report.charts import Spec

ORIGINAL, MASKED = "#C9CDD2", charts.BLUE
LIMIT, BEYOND = "#B3261E", "#FDF4F3"
GRID = "#EEF0F2"
CONFIG: Spec = charts.CONFIG | {  # larger than in print
    "background": None,
    "padding": {"left": 2, "right": 12, "top": 6, "bottom": 2},
    "axis": charts.CONFIG["axis"] | {"labelFontSize": 11, "titleFontSize": 12, "gridColor": GRID},
}
