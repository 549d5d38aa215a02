"""What the report's charts have in common: colours and sizes for a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sdckit import plots

if TYPE_CHECKING:
    from sdckit.plots import Spec

ORIGINAL, MASKED = "#C9CDD2", plots.BLUE
LIMIT, BEYOND = "#B3261E", "#FDF4F3"
GRID = "#EEF0F2"
CONFIG: Spec = plots.CONFIG | {  # a screen has more room than a printed column
    "background": None,
    "padding": {"left": 2, "right": 12, "top": 6, "bottom": 2},
    "axis": plots.CONFIG["axis"] | {"labelFontSize": 11, "titleFontSize": 12, "gridColor": GRID},
}
