"""The risk-utility map: a mark for each setting or file, as a Vega-Lite specification and as table rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core import registry
from sdckit.core.text import number
from sdckit.masking import METHODS
from sdckit.report import charts
from sdckit.report.charts import GREY, INK
from sdckit.report.measures import label, plain, zero_is_best
from sdckit.report.theme import BEYOND, CONFIG, LIMIT

if TYPE_CHECKING:
    from sdckit.report.charts import Spec

UNRELATED = "rows unrelated"
SHAPES = {  # drawn by Vega and by the legend alike, in a square from -1 to 1
    "circle": "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0Z",
    "square": "M-.9,-.9H.9V.9H-.9Z",
    "triangle": "M0,-1.1L1.05,.8H-1.05Z",
    "diamond": "M0,-1.25L1.05,0L0,1.25L-1.05,0Z",
    "cross": "M-.35,-1H.35V-.35H1V.35H.35V1H-.35V.35H-1V-.35H-.35Z",
    "down": "M0,1.1L1.05,-.8H-1.05Z",
}


@dataclass(frozen=True)
class Points:
    """Settings or files of a risk-utility map, with their loss and risk.

    `table` has one row per point: method, parameters, loss, risk, frontier, chosen, unpaired; `loss` and
    `risk` are the metrics of the axes, `limits` the largest risks allowed, `random` the loss of unrelated
    order. Methods whose rows stand for no original record are placed where unrelated rows lie.
    """

    table: pl.DataFrame
    loss: str
    risk: str
    limits: dict[str, float]
    random: float | None = None

    @property
    def drawn(self) -> pl.DataFrame:
        """Points with a position on the map."""
        return self.table.filter(pl.col("loss").is_finite() & pl.col("risk").is_finite())

    @property
    def unpaired(self) -> list[str]:
        """Titles of the methods whose rows stand for no original record."""
        methods = self.drawn.filter("unpaired")["method"].unique(maintain_order=True)
        return [METHODS[name].title for name in methods]

    @property
    def files(self) -> bool:
        """True where the points are files made elsewhere, without parameters."""
        return all(not parameters for parameters in self.table["parameters"])

    @property
    def better(self) -> str:
        """The side of the map on which files are closer to the original."""
        return "left" if zero_is_best(self.loss) else "right"

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The chosen point; None where none was chosen."""
        found = self.drawn.filter("chosen")
        return found.row(0, named=True) if found.height else None


@dataclass(frozen=True)
class Group:
    """A method on the map, with the colour and shape of its points."""

    place: int
    title: str
    colour: str
    shape: str
    points: int


def groups(points: Points) -> list[Group]:
    """Return the methods of a map; names that are no methods, such as files, get the remaining colours."""
    names = points.drawn["method"].unique(maintain_order=True).to_list()
    counts = dict(points.drawn["method"].value_counts().rows())
    taken = {charts.colour(name) for name in names if name in METHODS}
    spare = [colour for colour in charts.SPARE if colour not in taken] or list(charts.SPARE)
    others = [name for name in names if name not in METHODS]
    colours = {name: spare[place % len(spare)] for place, name in enumerate(others)}
    colours |= {name: charts.colour(name) for name in names if name not in colours}
    looks = _looks([colours[name] for name in names])
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


def _looks(colours: list[str]) -> list[tuple[str, str]]:
    """Return a shape for each colour, so that methods differ in look as long as shapes last.

    Where a colour has run out of shapes, the colour that was used least takes its place.
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
    """Return one row per point: its position, and the texts of its tooltip and table row."""
    names = points.drawn["method"].unique(maintain_order=True).to_list()
    titles = [group.title for group in groups(points)]
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
            "risk_text": UNRELATED if lost else number(row["risk"]),
            "frontier": bool(row["frontier"]),
            "chosen": bool(row["chosen"]),
        }
        for row in points.drawn.iter_rows(named=True)
    ]


def risk_map(points: Points) -> Spec:
    """Return the chart of risk against loss of every point, both from 0 to 1."""
    rows = point_rows(points)
    limit = points.limits.get(points.risk)
    ring, halo, name = _chosen_layers()
    layers = [
        *(_limit_layers(limit) if limit is not None else ()),
        *(_random_layers(points.random) if points.random is not None else ()),
        _frontier_layer(points),
        ring,
        halo,
        _points_layer(points),  # above the others, where the mouse finds them
        name,
    ]
    ends = [max([1.0, *points.drawn[axis]]) for axis in ("loss", "risk")]
    for layer in layers:
        for axis, field, end in zip("xy", (points.loss, points.risk), ends, strict=True):
            if axis in layer["encoding"] and "value" not in layer["encoding"][axis]:
                layer["encoding"][axis] |= _axis(axis, field, end)
    return {
        "config": CONFIG,
        "width": "container",
        "height": 420,
        "data": {"values": rows},
        "params": [{"name": "shown", "value": -1}],
        "layer": layers,
    }


def _axis(axis: str, metric: str, end: float) -> Spec:
    title = f"information loss ({label(metric)})" if axis == "x" else f"disclosure risk ({label(metric)})"
    ticks = {"tickCount": 6, "grid": True, "titlePadding": 8, "format": "~g"}
    return {
        "type": "quantitative",
        "scale": {"domain": [0, end], "nice": False},
        "axis": {"title": title} | ticks,
    }


def _limit_layers(limit: float) -> list[Spec]:
    one = {"values": [{"low": limit, "high": 1, "text": f"limit {plain(limit)}"}]}
    write = {"type": "text", "align": "right", "baseline": "bottom", "dy": -4, "color": LIMIT, "fontSize": 11}
    return [
        {
            "data": one,
            "mark": {"type": "rect", "color": BEYOND},
            "encoding": {"y": {"field": "low"}, "y2": {"field": "high"}},
        },
        {
            "name": "limit",
            "data": one,
            "mark": {"type": "rule", "color": LIMIT, "strokeWidth": 1.2, "strokeDash": [5, 3]},
            "encoding": {"y": {"field": "low"}},
        },
        {
            "data": one,
            "mark": write,
            "encoding": {"y": {"field": "low"}, "x": {"value": "width"}, "text": {"field": "text"}},
        },
    ]


def _random_layers(level: float) -> list[Spec]:
    one = {"values": [{"level": level, "text": f"unrelated order {number(level)}"}]}
    write = {
        "type": "text",
        "align": "right",
        "baseline": "top",
        "dx": -5,
        "dy": 4,
        "color": "#555555",
        "fontSize": 11,
    }
    return [
        {
            "name": "random",
            "data": one,
            "mark": {"type": "rule", "color": GREY, "strokeWidth": 1.2, "strokeDash": [2, 3]},
            "encoding": {"x": {"field": "level"}},
        },
        {
            "data": one,
            "mark": write,
            "encoding": {"x": {"field": "level"}, "y": {"value": 0}, "text": {"field": "text"}},
        },
    ]


def _frontier_layer(points: Points) -> Spec:
    """Return the step line of the frontier: the lowest risk found at each loss."""
    return {
        "name": "frontier",
        "transform": [{"filter": "datum.frontier"}],
        "mark": {
            "type": "line",
            "interpolate": "step-after" if points.better == "left" else "step-before",
            "color": INK,
            "strokeWidth": 1.2,
            "opacity": 0.65,
        },
        "encoding": {
            "x": {"field": "loss"},
            "y": {"field": "risk"},
            "order": {"field": "loss", "type": "quantitative"},
        },
    }


def _points_layer(points: Points) -> Spec:
    looks = groups(points)
    places = [group.place for group in looks]
    words = [("method", "file")] if points.files else [("method", "method"), ("parameters", "parameters")]
    words += [("loss_text", label(points.loss)), ("risk_text", label(points.risk))]
    ringed = {"condition": {"test": "datum.frontier", "value": INK}, "value": "white"}

    def look(what: str) -> Spec:
        drawn = {"domain": places, "range": [getattr(group, what) for group in looks]}
        return {"field": "group", "type": "nominal", "scale": drawn, "legend": None}

    return {
        "name": "points",
        "transform": [{"filter": "shown < 0 || datum.group == shown"}],
        "mark": {"type": "point", "filled": True, "size": 72, "strokeWidth": 0.9},
        "encoding": {
            "x": {"field": "loss"},
            "y": {"field": "risk"},
            "fill": look("colour"),
            "shape": look("shape"),
            "stroke": ringed,
            "fillOpacity": {"condition": {"test": "datum.unpaired", "value": 0.25}, "value": 0.92},
            "tooltip": [{"field": field, "type": "nominal", "title": title} for field, title in words],
        },
    }


def _chosen_layers() -> list[Spec]:
    where = {"x": {"field": "loss"}, "y": {"field": "risk"}}
    only = [{"filter": "datum.chosen && (shown < 0 || datum.group == shown)"}]
    ring = {"type": "point", "size": 420, "stroke": INK, "strokeWidth": 2.2, "fill": None, "tooltip": None}
    name = {
        "type": "text",
        "align": "left",
        "dx": 14,
        "dy": -8,
        "fontWeight": "bold",
        "fontSize": 12,
        "color": INK,
    }
    halo = name | {"stroke": "white", "strokeWidth": 4, "strokeJoin": "round", "color": "white"}
    text = {"text": {"value": "chosen"}}
    return [
        {"name": "chosen", "transform": only, "mark": ring, "encoding": dict(where)},
        {"transform": only, "mark": halo, "encoding": where | text},
        {"name": "label", "transform": only, "mark": name, "encoding": where | text},
    ]
