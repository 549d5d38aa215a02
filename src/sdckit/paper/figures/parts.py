"""Parts that the figures share: names, scales and chart layers of a panel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sdckit.paper.correlations import BOUNDED, UNBOUNDED
from sdckit.report.charts import GREY, INK, LARGE, NORMAL, SMALL, Spec, grid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import altair as alt
    import polars as pl

ALL_METRICS = BOUNDED + UNBOUNDED


@dataclass(frozen=True)
class Figure:
    """A figure of the study: the chart, the table that it draws, number, title and caption.

    `risk` marks those of ours that weigh loss against risk.
    `name` is fit for files and ids, `number` is how the text refers to it ("3", "A2").
    """

    name: str
    number: str
    title: str
    caption: str
    table: pl.DataFrame
    chart: alt.ConcatChart
    ours: bool = False
    risk: bool = False


def drawn(
    panels: Sequence[Spec],
    table: pl.DataFrame,
    *,
    number: str,
    title: str,
    caption: str,
    columns: int,
    datasets: Mapping[str, pl.DataFrame],
    spacing: tuple[float, float] = (12, 12),
    name: str = "",
    ours: bool = False,
    risk: bool = False,
) -> Figure:
    """Return a figure of panels in rows of `columns`; one of the note is named by its number."""
    name = name or f"figure-{number}"
    chart = grid(panels, columns=columns, name=name, description=title, datasets=datasets, spacing=spacing)
    return Figure(name, number, title, caption, table, chart, ours, risk)


def correlation_text(value: float | None) -> str:
    """Return Spearman's r as text with four decimals; never rounded up to 1."""
    if value is None or math.isnan(value):
        return "r undefined"
    if abs(value) < 1 and abs(round(value, 4)) == 1:
        return f"r {'>' if value > 0 else '<'} {math.copysign(0.9999, value)}"
    return f"r = {value:.4f}"


def text_layer(text: str, *, x: Any, y: float, size: int = NORMAL, **style: Any) -> Spec:
    """Return a chart layer with one piece of text at a position in the panel, in pixels."""
    look: Spec = {"fontSize": size, "baseline": "alphabetic", "align": "left", "color": INK}
    return {
        "data": {"values": [{}]},
        "mark": {"type": "text", "text": text} | look | {"x": x, "y": y} | style,
    }


def panel_header(place: int, text: str, *, width: float) -> list[Spec]:
    """Return the chart layers above a panel: a letter on the left ("a" for place 0), text on the right."""
    return [
        text_layer("abcdefghijklmnopqrstuvwxyz"[place], x=0, y=-5, size=LARGE, fontWeight="bold"),
        text_layer(text, x=width, y=-5, align="right"),
    ]


def column_title(text: str) -> Spec:
    """Return the Vega-Lite specification of a title above a column of panels."""
    return {"text": text, "anchor": "middle", "frame": "group", "offset": 18}


def level_line(level: float | None, y: Spec, *, width: float, text: str = "unrelated order") -> list[Spec]:
    """Return chart layers of a labelled dashed line at a level, or of an arrow if it lies above the scale."""
    if level is None:
        return []
    line: Spec = {"type": "rule", "strokeDash": [3, 2], "strokeWidth": 0.8, "color": GREY}
    style: Spec = {"fontSize": SMALL, "color": GREY}
    if level > y["scale"]["domain"][1]:
        across = {"x": {"value": 0}, "x2": {"value": width}, "y": {"value": 0}}
        edge = {"data": {"values": [{}]}, "mark": line, "encoding": across}
        return [edge, text_layer(f"\u2191 {text} {level:.3f}", x=4, y=10, **style)]
    # The same axis as the data: Vega-Lite would merge two different axes.
    place = {"data": {"values": [{"level": level}]}, "encoding": {"y": y | {"field": "level"}}}
    note = {"type": "text", "text": f"{text} {level:.3f}", "x": 4, "dy": -3, "align": "left"}
    return [place | {"mark": line}, place | {"mark": note | {"baseline": "alphabetic"} | style}]


def dots_layer(data: str, x: Spec, y: Spec, *, color: Any, area: float = 4.0) -> Spec:
    """Return a chart layer of points at the fields of x and y; `area` is in square pixels."""
    mark = {"type": "point", "filled": True, "size": area, "opacity": 1, "clip": False}
    paint = color if isinstance(color, dict) else {"value": color}
    return {"data": {"name": data}, "mark": mark, "encoding": {"x": x, "y": y, "color": paint}}


def colour_encoding(
    field: str, names: Mapping[str, str], colours: Mapping[str, str], *, symbol: str = "circle"
) -> Spec:
    """Return the encoding of a colour for each value of a field, with one legend above the figure."""
    scale = {"domain": list(names.values()), "range": [colours[name] for name in names]}
    size = 40 if symbol == "circle" else 200
    legend = {"title": None, "orient": "top", "symbolType": symbol, "symbolSize": size}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def extremes(values: pl.Series) -> tuple[float, float]:
    """Return the smallest and the largest number of a series; 0 and 1 if it has none."""
    known = values.drop_nulls().drop_nans().to_numpy()
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)


def padded_range(values: pl.Series, *, share: float = 0.05) -> tuple[float, float]:
    """Return the range of the data with a margin on both sides, a share of its width."""
    low, high = extremes(values)
    margin = (high - low) * share or abs(high) * share or 1.0
    return low - margin, high + margin


def padded_correlation_range(values: pl.Series) -> tuple[float, float]:
    """Return the range of correlations with a margin on both sides, at most up to 1."""
    low, high = extremes(values)
    margin = 0.05 * (high - low) or 0.001
    return low - margin, min(high + margin, 1.0)
