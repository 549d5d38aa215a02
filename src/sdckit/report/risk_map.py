"""The map of loss and risk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import registry
from sdckit.core.text import number
from sdckit.masking import METHODS
from sdckit.report import charts
from sdckit.report.charts import BEYOND, GREY, INK, LIMIT, SCREEN_CONFIG, layer
from sdckit.report.measures import label, limit_text, zero_is_best

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import altair as alt

    from sdckit.report.charts import Spec
    from sdckit.selection.points import Point


UNRELATED = "rows unrelated"
MARGIN = 0.06  # free space around the marks, as a share of an axis
NARROWEST = 0.02  # length of an axis on which all marks have the same value
MANY = 40  # more marks than these are thinned
APART = 0.03  # distance of marks that are thinned, as a share of an axis
SHAPES = {  # drawn by Vega and by the legend alike, in a square from -1 to 1
    "circle": "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0Z",
    "square": "M-.9,-.9H.9V.9H-.9Z",
    "triangle": "M0,-1.1L1.05,.8H-1.05Z",
    "diamond": "M0,-1.25L1.05,0L0,1.25L-1.05,0Z",
    "cross": "M-.35,-1H.35V-.35H1V.35H.35V1H-.35V.35H-1V-.35H-.35Z",
    "down": "M0,1.1L1.05,-.8H-1.05Z",
}


KEYS = ["method", "parameters", "setting"]  # of a point


def table_of_points(points: Iterable[Point]) -> pl.DataFrame:
    """Return a table with one row per measured setting and one column per metric."""
    return pl.DataFrame(
        [{"method": point.method, "parameters": point.parameters, **point.values} for point in points]
    )


def metrics_by_setting(summary: pl.DataFrame) -> pl.DataFrame:
    """Return the summary of a sweep as a table with one row per setting and one column per metric."""
    return summary.pivot("metric", index=KEYS, values="value", maintain_order=True)


def nondominated_rows(table: pl.DataFrame, costs: Sequence[str]) -> pl.Series:
    """Return, per row, whether no other row is as low in every cost and lower in one (Pareto frontier)."""
    values = table.select(costs).to_numpy()
    kept = []
    for row in values:
        dominating = (values <= row).all(axis=1) & (values < row).any(axis=1)
        kept.append(not dominating.any() and not np.isnan(row).any())
    return pl.Series(kept, dtype=pl.Boolean)


@dataclass(frozen=True)
class Points:
    """Settings or files of a risk-utility map, with the loss and risk of each.

    `table` has one row per point: method, parameters, loss, risk, frontier, chosen, unpaired; `loss` and
    `risk` are the metrics of the axes, `limits` the largest risks allowed, `random` the loss of a file in
    random order. Methods whose rows stand for no original record are drawn at the loss of random order.
    """

    table: pl.DataFrame
    loss: str
    risk: str
    limits: dict[str, float]
    random: float | None = None

    @cached_property
    def drawn(self) -> pl.DataFrame:
        """The rows of `table` whose loss and risk are both finite: the points that the map shows."""
        return self.table.filter(pl.col("loss").is_finite() & pl.col("risk").is_finite())

    @property
    def unpaired(self) -> list[str]:
        """Titles of the shown methods whose masked rows stand for no original record."""
        methods = self.drawn.filter("unpaired")["method"].unique(maintain_order=True)
        return [METHODS[name].title for name in methods]

    @property
    def are_files(self) -> bool:
        """True if the points are files made elsewhere, which have no parameters."""
        return all(not parameters for parameters in self.table["parameters"])

    @property
    def better_side(self) -> str:
        """The side of the map, "left" or "right", on which files are closer to the original."""
        return "left" if zero_is_best(self.loss) else "right"

    @property
    def axes(self) -> dict[str, tuple[float, float]]:
        """The ends of both axes, close around the points and the limit on the risk."""
        found = {"loss": self.drawn["loss"].to_list(), "risk": self.drawn["risk"].to_list()}
        found["risk"] += [self.limits[self.risk]] if self.risk in self.limits else []
        return {name: _axis_ends(values) for name, values in found.items()}

    @property
    def marked(self) -> list[bool]:
        """True for each drawn row that has a mark of its own: of many close together, only the best ones."""
        rows = self.drawn.select("loss", "risk", kept=pl.col("frontier") | pl.col("chosen")).rows()
        if len(rows) <= MANY:
            return [True] * len(rows)
        (left, right), (low, high) = self.axes.values()
        places = [((loss - left) / (right - left), (risk - low) / (high - low)) for loss, risk, _ in rows]
        marked = [kept for *_, kept in rows]
        for at, (x, y) in enumerate(places):
            others = [place for place, is_marked in zip(places, marked, strict=True) if is_marked]
            marked[at] |= all(max(abs(x - a), abs(y - b)) >= APART for a, b in others)
        return marked

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The row of the chosen point as a dict; None if no point was chosen."""
        found = self.drawn.filter("chosen")
        return found.row(0, named=True) if found.height else None


def _axis_ends(values: list[float]) -> tuple[float, float]:
    """Return the ends of an axis that shows the values with a margin; never below 0 unless a value is."""
    low, high = min(values), max(values)
    margin = MARGIN * max(high - low, NARROWEST * max(abs(low), abs(high)), NARROWEST)
    return (low - margin if low < 0 else max(low - margin, 0.0)), high + margin


@dataclass(frozen=True)
class Group:
    """A method or file on the map, with the colour and shape of its points and their number."""

    place: int
    title: str
    colour: str
    shape: str
    points: int


def map_groups(points: Points) -> list[Group]:
    """Return one group per method of a map; files and other unknown names get the remaining colours."""
    names = points.drawn["method"].unique(maintain_order=True).to_list()
    counts = dict(points.drawn["method"].value_counts().rows())
    taken = {charts.colour(name) for name in names if name in METHODS}
    spare = [colour for colour in charts.SPARE if colour not in taken] or list(charts.SPARE)
    others = [name for name in names if name not in METHODS]
    colours = {name: spare[place % len(spare)] for place, name in enumerate(others)}
    colours |= {name: charts.colour(name) for name in names if name not in colours}
    looks = _distinct_looks([colours[name] for name in names])
    return [
        Group(
            place=place,
            title=METHODS[name].title if name in METHODS else name,
            colour=colour,
            shape=shape,
            points=counts[name],
        )
        for place, (name, (colour, shape)) in enumerate(zip(names, looks, strict=True))
    ]


def _distinct_looks(colours: list[str]) -> list[tuple[str, str]]:
    """Return a (colour, shape) pair for each given colour, all different as long as shapes last.

    If all shapes of a colour are taken, the colour that was used least replaces it.
    """
    shapes = list(SHAPES.values())
    found: list[tuple[str, str]] = []
    for place, wanted in enumerate(colours):
        rarest = sorted(charts.SPARE, key=lambda colour: sum(colour == used for used, _ in found))
        turned = shapes[place % len(shapes) :] + shapes[: place % len(shapes)]
        every = [(colour, shape) for colour in (wanted, *rarest) for shape in turned]
        found.append(next((look for look in every if look not in found), every[0]))
    return found


def point_rows(points: Points) -> list[dict[str, Any]]:
    """Return one dict per point of a map: its position, and the texts of its tooltip and table row."""
    names = points.drawn["method"].unique(maintain_order=True).to_list()
    titles = [group.title for group in map_groups(points)]
    apart = registry.metrics_named([points.loss])[0].paired  # a loss that unpaired rows have no value of
    return [
        {
            "group": names.index(row["method"]),
            "method": titles[names.index(row["method"])],
            "parameters": row["parameters"] or "",
            "loss": row["loss"],
            "risk": row["risk"],
            "unpaired": (lost := bool(row["unpaired"])),
            "loss_text": UNRELATED if apart and lost else number(row["loss"]),
            "risk_text": UNRELATED if row.get("no_risk", lost) else number(row["risk"]),
            "frontier": bool(row["frontier"]),
            "chosen": bool(row["chosen"]),
            "marked": marked,
        }
        for row, marked in zip(points.drawn.iter_rows(named=True), points.marked, strict=True)
    ]


def risk_map(points: Points) -> Spec:
    """Return the Vega-Lite specification of a map of risk (upwards) against loss (to the right)."""
    rows = point_rows(points)
    limit, ends = points.limits.get(points.risk), points.axes
    ring, halo, name = _chosen_layers()
    related = points.random is None or not ends["loss"][0] <= points.random <= ends["loss"][1]
    layers = [
        *(_limit_layers(limit, ends["risk"][1]) if limit is not None else ()),
        *(() if points.random is None or related else _random_layers(points.random)),
        _frontier_layer(points),
        ring,
        halo,
        _points_layer(points),  # on top, so that the mouse reaches them
        name,
    ]
    for encoding in (one["encoding"] for one in layers):
        for axis, field, domain in zip("xy", (points.loss, points.risk), ends.values(), strict=True):
            if axis in encoding and "value" not in encoding[axis]:
                encoding[axis] |= _axis(axis, field, domain)
    return charts.screen_chart(rows, 420, layers, params=[{"name": "shown", "value": -1}])


def _axis(axis: str, metric: str, domain: tuple[float, float]) -> Spec:
    """Return the Vega-Lite encoding of the loss axis ("x") or the risk axis ("y") between two ends."""
    title = f"information loss ({label(metric)})" if axis == "x" else f"disclosure risk ({label(metric)})"
    ticks = {"tickCount": 6, "grid": True, "titlePadding": 8, "format": "~g"}
    return {
        "type": "quantitative",
        "scale": {"domain": list(domain), "nice": False, "zero": False},
        "axis": {"title": title} | ticks,
    }


def _limit_layers(limit: float, end: float) -> list[Spec]:
    """Return the chart layers of a risk limit: the shade from it up to `end`, its line and its label."""
    one = {"values": [{"low": limit, "high": end, "text": f"limit {limit_text(limit)}"}]}
    write = {"type": "text", "align": "right", "baseline": "bottom", "dy": -4, "color": LIMIT, "fontSize": 11}
    rule = {"type": "rule", "color": LIMIT, "strokeWidth": 1.2, "strokeDash": [5, 3]}
    ends = {"y": {"field": "low"}, "y2": {"field": "high"}}
    place = {"y": {"field": "low"}, "x": {"value": "width"}, "text": {"field": "text"}}
    return [
        layer({"type": "rect", "color": BEYOND}, ends, data=one),
        layer(rule, {"y": {"field": "low"}}, name="limit", data=one),
        layer(write, place, data=one),
    ]


def _random_layers(level: float) -> list[Spec]:
    """Return the chart layers of the loss that an unrelated order has: a dotted line and its label."""
    one = {"values": [{"level": level, "text": f"unrelated order {number(level)}"}]}
    write = {"type": "text", "align": "right", "baseline": "top", "dx": -5, "dy": 4, "color": "#555555"}
    rule = {"type": "rule", "color": GREY, "strokeWidth": 1.2, "strokeDash": [2, 3]}
    place = {"x": {"field": "level"}, "y": {"value": 0}, "text": {"field": "text"}}
    return [
        layer(rule, {"x": {"field": "level"}}, name="random", data=one),
        layer(write | {"fontSize": 11}, place, data=one),
    ]


def _frontier_layer(points: Points) -> Spec:
    """Return the chart layer of the Pareto frontier: a step line of the lowest risk at each loss."""
    step = "step-after" if points.better_side == "left" else "step-before"
    return layer(
        {"type": "line", "interpolate": step, "color": INK, "strokeWidth": 1.2, "opacity": 0.65},
        {"x": {"field": "loss"}, "y": {"field": "risk"}, "order": {"field": "loss", "type": "quantitative"}},
        name="frontier",
        transform=[{"filter": "datum.frontier"}],
    )


def _points_layer(points: Points) -> Spec:
    """Return the chart layer of the points: colour and shape by method, dark outlines on the frontier."""
    looks = map_groups(points)
    positions = [group.place for group in looks]
    words = [("method", "file")] if points.are_files else [("method", "method"), ("parameters", "parameters")]
    words += [("loss_text", label(points.loss)), ("risk_text", label(points.risk))]

    def look(what: str) -> Spec:
        """Return the encoding of a visual property of points, such as "colour", by their group."""
        drawn = {"domain": positions, "range": [getattr(group, what) for group in looks]}
        return {"field": "group", "type": "nominal", "scale": drawn, "legend": None}

    encoding = {
        "x": {"field": "loss"},
        "y": {"field": "risk"},
        "fill": look("colour"),
        "shape": look("shape"),
        "stroke": {"value": INK},
        "strokeWidth": {"condition": {"test": "datum.frontier", "value": 1.4}, "value": 0},
        "size": {"condition": {"test": "datum.frontier", "value": 120}, "value": 80},
        "fillOpacity": {"condition": {"test": "datum.unpaired", "value": 0.25}, "value": 0.92},
        "tooltip": [{"field": field, "type": "nominal", "title": title} for field, title in words],
    }
    shown = [{"filter": "shown < 0 ? datum.marked : datum.group == shown"}]
    return layer({"type": "point", "filled": True, "opacity": 1}, encoding, name="points", transform=shown)


def _chosen_layers() -> list[Spec]:
    """Return three chart layers of the chosen point: a ring, a white halo and the label "chosen"."""
    where = {"x": {"field": "loss"}, "y": {"field": "risk"}}
    only = [{"filter": "datum.chosen && (shown < 0 || datum.group == shown)"}]
    ring = {"type": "point", "size": 420, "stroke": INK, "strokeWidth": 2.2, "fill": None, "tooltip": None}
    name = {"type": "text", "align": "left", "dx": 14, "dy": -8, "fontWeight": "bold", "fontSize": 12}
    name |= {"color": INK}
    halo = name | {"stroke": "white", "strokeWidth": 4, "strokeJoin": "round", "color": "white"}
    text = {"text": {"value": "chosen"}}
    return [
        layer(ring, dict(where), name="chosen", transform=only),
        layer(halo, where | text, transform=only),
        layer(name, where | text, name="label", transform=only),
    ]


WIDTH, HEIGHT = 560, 360


def map_chart(points: Points | None) -> alt.LayerChart:
    """Return a map as an altair chart; raise ValueError if there is nothing to draw."""
    if points is None or not points.drawn.height:
        raise ValueError(
            "a map needs a bounded loss and a risk; measure one of each, such as brmae and linkage"
        )
    axes = f"{label(points.risk)} against {label(points.loss)}"
    spec = risk_map(points)
    titles = [group.title for group in map_groups(points)]
    encoding = next(one["encoding"] for one in spec["layer"] if one.get("name") == "points")
    for look in ("fill", "shape"):  # name the methods beside the map; the page has a legend outside of it
        domain = {"scale": encoding[look]["scale"] | {"domain": titles}, "legend": {"title": None}}
        encoding[look] |= {"field": "method", **domain}
    import altair as alt  # noqa: PLC0415 - slow to import

    from sdckit.report.offline_charts import OfflineLayers  # noqa: PLC0415 - it imports altair

    return OfflineLayers(
        layer=[charts.altair_chart(one) for one in spec["layer"]],
        data=spec["data"],
        params=[alt.VariableParameter(**one) for one in spec["params"]],
        config=SCREEN_CONFIG | {"background": "white", "padding": charts.CONFIG["padding"]},
        width=WIDTH,
        height=HEIGHT,
        description=f"Map of {points.drawn.height} settings: {axes}",
    )
