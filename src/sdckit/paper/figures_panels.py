"""What the figures have in common: the study's numbers and the parts of a panel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.paper.correlations import BOUNDED, METHODS, UNBOUNDED, correlations
from sdckit.plots import GREY, INK, LARGE, NORMAL, SMALL, Spec, colour, label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import altair as alt

ALL_METRICS = BOUNDED + UNBOUNDED
RANDOM_METHODS = METHODS[1:]
HEADINGS = {
    "mdav": "MDAV microaggregation",
    "noise": "additive noise",
    "correlated_noise": "correlated noise",
    "rank_swap": "rank swapping",
}
PARAMETERS = {
    "mdav": "aggregation parameter k",
    "noise": "noise (% of the s.d.)",
    "correlated_noise": "noise (% of the variance)",
    "rank_swap": "P (share of records)",
}
GRIDS = {
    "mdav": (0.0, 31.0),
    "noise": (0.0, 305.0),
    "correlated_noise": (0.0, 305.0),
    "rank_swap": (0.0, 0.305),
}


@dataclass(frozen=True)
class Figure:
    """A figure: `chart` draws `table` and nothing else; `ours` marks those that the note does not have.

    `name` is fit for files and ids, `number` is how the text refers to it ("3", "A2").
    """

    name: str
    number: str
    title: str
    caption: str
    table: pl.DataFrame
    chart: alt.ConcatChart
    ours: bool = False


@dataclass(frozen=True)
class Study:
    """The measured losses of all masked files, and what belongs to them."""

    measured: pl.DataFrame
    levels: pl.DataFrame
    tie_range: pl.DataFrame

    @cached_property
    def correlations(self) -> pl.DataFrame:
        """Spearman's correlation of every series."""
        return correlations(self.measured)

    @property
    def datasets(self) -> list[str]:
        """The files that were masked, in the note's order."""
        present = self.measured["dataset"].unique(maintain_order=True).to_list()
        return sorted(present, key=lambda name: (name == "Census", name != "Tarragona"))

    def methods(self, dataset: str, wanted: Sequence[str] = METHODS) -> list[str]:
        """Those of the wanted methods that masked a dataset."""
        present = set(self.measured.filter(dataset=dataset)["method"])
        return [method for method in wanted if method in present]

    def replications(self, dataset: str) -> int:
        """How often the random methods were repeated."""
        return int(self.measured.filter(dataset=dataset)["replication"].n_unique())

    def one_run(self, dataset: str, method: str, *, ties: str = "first") -> pl.DataFrame:
        """The first replication of a method: `setting` and one column per metric."""
        rows = self.measured.filter(dataset=dataset, method=method, replication=1).sort("setting")
        bounded = [pl.col(f"{metric}_{ties}").alias(metric) for metric in BOUNDED]
        return rows.select("setting", *bounded, *UNBOUNDED)

    def spearman(self, dataset: str, method: str, metric: str, reference: str = "parameter") -> float | None:
        """The correlation in the first replication, ties by row order."""
        found = self.correlations.filter(
            pl.col("ties").is_in(["first", "-"]),
            dataset=dataset,
            method=method,
            metric=metric,
            reference=reference,
            replication=1,
        )["spearman"]
        return found[0] if len(found) else None

    def level(self, dataset: str, method: str, metric: str) -> float | None:
        """What an unrelated order scores.

        Breaking ties by row order has no level of its own; in an unrelated order it does what random
        breaking does, so that the level of `expected` stands for it.
        """
        chosen = self.levels.filter(dataset=dataset, method=method, ties="expected")
        found = chosen[metric].drop_nulls().drop_nans().to_list() if metric in BOUNDED else []
        return float(found[0]) if found else None


def called(dataset: str) -> str:
    """How text names a dataset."""
    return "the bundled sample" if dataset == "sample" else dataset


def correlation_text(value: float | None) -> str:
    """Spearman's r as the panels print it; never a 1 that is none."""
    if value is None or math.isnan(value):
        return "r undefined"
    if abs(value) < 1 and abs(round(value, 4)) == 1:
        return f"r {'>' if value > 0 else '<'} {math.copysign(0.9999, value)}"
    return f"r = {value:.4f}"


def written(text: str, *, x: Any, y: float, size: int = NORMAL, **style: Any) -> Spec:
    """Return a layer with one piece of text at a place in the panel, in pixels."""
    mark = {
        "type": "text",
        "text": text,
        "fontSize": size,
        "baseline": "alphabetic",
        "align": "left",
        "color": INK,
    }
    return {"data": {"values": [{}]}, "mark": mark | {"x": x, "y": y} | style}


def letter(place: int) -> str:
    """The name of a panel."""
    return "abcdefghijklmnopqrstuvwxyz"[place]


def lettered(place: int, text: str, *, width: float) -> list[Spec]:
    """The line above a panel: its letter on the left, a remark on the right."""
    return [
        written(letter(place), x=0, y=-5, size=LARGE, fontWeight="bold"),
        written(text, x=width, y=-5, align="right"),
    ]


def heading(text: str) -> Spec:
    """The title above a column of panels, clear of the line with the letter."""
    return {"text": text, "anchor": "middle", "frame": "group", "offset": 18}


def level_line(level: float, y: Spec, *, text: str = "unrelated order") -> list[Spec]:
    """A dashed line at a level with its label; where the scale ends below it, an arrow that points to it."""
    style: Spec = {"fontSize": SMALL, "color": GREY}
    if level > y["scale"]["domain"][1]:
        return [written(f"\u2191 {text} {level:.3f}", x=4, y=8, **style)]
    # The same axis as the data: Vega-Lite would merge two different ones into something else.
    place = {"data": {"values": [{"level": level}]}, "encoding": {"y": y | {"field": "level"}}}
    line = {"type": "rule", "strokeDash": [3, 2], "strokeWidth": 0.8, "color": GREY}
    note = {
        "type": "text",
        "text": f"{text} {level:.3f}",
        "x": 4,
        "dy": -3,
        "align": "left",
        "baseline": "alphabetic",
    }
    return [place | {"mark": line}, place | {"mark": note | style}]


def dots(data: str, x: Spec, y: Spec, *, color: Any, area: float = 4.0) -> Spec:
    """A cloud of points."""
    mark = {"type": "point", "filled": True, "size": area, "opacity": 1, "clip": False}
    paint = color if isinstance(color, dict) else {"value": color}
    return {"data": {"name": data}, "mark": mark, "encoding": {"x": x, "y": y, "color": paint}}


def painted(
    field: str, names: Mapping[str, str], colours: Mapping[str, str], *, symbol: str = "circle"
) -> Spec:
    """A colour for each value of a field, explained once above the figure."""
    scale = {"domain": list(names.values()), "range": [colours[name] for name in names]}
    legend = {
        "title": None,
        "orient": "top",
        "symbolType": symbol,
        "symbolSize": 40 if symbol == "circle" else 200,
    }
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def ends(values: pl.Series) -> tuple[float, float]:
    """The smallest and the largest number there is; 0 and 1 where there is none."""
    known = values.drop_nulls().drop_nans().to_numpy()
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)


def around(values: pl.Series, *, share: float = 0.05) -> tuple[float, float]:
    """A scale that leaves a little room on both sides of the data."""
    low, high = ends(values)
    room = (high - low) * share or abs(high) * share or 1.0
    return low - room, high + room


def around_correlations(values: pl.Series) -> tuple[float, float]:
    """A scale round correlations, which never ends above 1."""
    low, high = ends(values)
    room = 0.05 * (high - low) or 0.001
    return low - room, min(high + room, 1.0)


def metric_scale(names: Sequence[str]) -> Spec:
    """Colours of the metrics, by the labels they carry in tables."""
    return {"domain": [label(name) for name in names], "range": [colour(name) for name in names]}
