"""The risk-utility map as a chart of its own, with a legend inside, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sdckit.report import charts, risk_map, theme
from sdckit.report.measures import label

if TYPE_CHECKING:
    import altair as alt

    from sdckit.report.charts import Spec
    from sdckit.report.risk_map import Points

WIDTH, HEIGHT = 560, 360


def map_chart(points: Points | None) -> alt.LayerChart:
    """Return a map as an altair chart; raise ValueError if there is nothing to draw."""
    if points is None or not points.drawn.height:
        raise ValueError(
            "a map needs a bounded loss and a risk; measure one of each, such as brmae and linkage"
        )
    axes = f"{label(points.risk)} against {label(points.loss)}"
    import altair as alt  # noqa: PLC0415 - slow to import

    from sdckit.report.offline_charts import OfflineLayers  # noqa: PLC0415 - it imports altair

    spec = risk_map.risk_map(points)
    for layer in spec["layer"]:
        if layer.get("name") == "points":
            _add_legend(layer["encoding"], points)
    return OfflineLayers(
        layer=[charts.altair_chart(layer) for layer in spec["layer"]],
        data=spec["data"],
        params=[alt.VariableParameter(**one) for one in spec["params"]],
        config=theme.CONFIG | {"background": "white", "padding": charts.CONFIG["padding"]},
        width=WIDTH,
        height=HEIGHT,
        description=f"Map of {points.drawn.height} settings: {axes}",
    )


def _add_legend(encoding: Spec, points: Points) -> None:
    """Name the methods in a legend beside the map, in place; the page has one outside of it."""
    titles = [group.title for group in risk_map.map_groups(points)]
    for look in ("fill", "shape"):
        encoding[look] = encoding[look] | {
            "field": "method",
            "scale": encoding[look]["scale"] | {"domain": titles},
            "legend": {"title": None},
        }
