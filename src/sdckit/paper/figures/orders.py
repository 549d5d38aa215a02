"""Figures 1 and 2 of the paper: distances between rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.paper.correlations import BOUNDED
from sdckit.paper.figures.parts import dots_layer, drawn, level_line, panel_header
from sdckit.paper.verdicts import all_distances, distance_counts, random_distances
from sdckit.report.charts import INK, Spec, colour, quantity

if TYPE_CHECKING:
    from sdckit.paper.figures.parts import Figure

LENGTHS = (5, 6, 7)
DISTANCES = {"brmae": "bounded absolute distance", "brmse": "bounded squared distance"}
LENGTH = 100


def small_rankings_figure() -> Figure:
    """Return figure 1: the distances of all rankings of 5, 6 and 7 records."""
    table = _distinct_distances(pl.concat(all_distances(n) for n in LENGTHS))
    pairs = [(metric, n) for metric in BOUNDED for n in LENGTHS]
    panels = [_step_panel(table, place, metric, n) for place, (metric, n) in enumerate(pairs)]
    datasets = {f"{metric}{n}": table.filter(metric=metric, n=n) for metric, n in pairs}
    title = "Bounded rank distances of all rankings of 5, 6 and 7 records"
    caption = (
        "Each step is one value that the distance from the ranking 1, 2, ..., n can take, as long as there "
        "are rankings with that value; rankings are sorted by distance. Above (a to c) the absolute, below "
        "(d to f) the squared distance, each divided by the largest one possible. 0 is the same order; 1 "
        "is reached by many rankings in the upper row, by the reversed order alone in the lower one, which "
        "also has more and finer steps. The dashed line is the mean, the score of an order that has "
        "nothing to do with the first."
    )
    return drawn(
        panels,
        table,
        number="1",
        title=title,
        caption=caption,
        columns=3,
        datasets=datasets,
        spacing=(16, 16),
    )


def random_rankings_figure(*, rng: Any = None, draws: int = 10_000) -> Figure:
    """Return figure 2: the distances of random rankings of 100 records, and of the reversed order."""
    same = pl.when(pl.col("value") == 0).then(pl.lit("same order"))
    kinds = same.when(pl.col("value") == 1).then(pl.lit("reversed order"))
    table = _distinct_distances(random_distances(LENGTH, draws, rng=rng)).with_columns(
        kind=kinds.otherwise(pl.lit("random"))
    )
    datasets = {metric: table.filter(metric=metric) for metric in BOUNDED}
    panels = [_cloud_panel(datasets[metric], place, metric, draws) for place, metric in enumerate(BOUNDED)]
    title = f"Bounded rank distances of {draws:,} random rankings of {LENGTH} records"
    caption = (
        f"Distances of {draws:,} rankings of {LENGTH} records drawn at random, and of the same and the "
        "reversed order, sorted. 0 is the same order, 1 the largest distance. Random orders gather round "
        "the dashed mean, far from both ends: a loss near that line says that nothing of the order is "
        "left. Both distances look continuous here; the absolute one still takes far fewer distinct "
        "values, they only lie too close to show."
    )
    return drawn(
        panels,
        table,
        number="2",
        title=title,
        caption=caption,
        columns=2,
        datasets=datasets,
        spacing=(12, 20),
    )


def _distinct_distances(distances: pl.DataFrame) -> pl.DataFrame:
    """Return every distinct distance, the positions of its rankings in sorted order, and the mean."""
    last = pl.col("count").cum_sum()
    mean = (pl.col("value") * pl.col("count")).sum() / pl.col("count").sum()
    groups = ["n", "metric"]
    return (
        distance_counts(distances)
        .sort("n", "metric", "distance")
        .with_columns(
            (last - pl.col("count") + 1).over(groups).alias("first"), last.over(groups).alias("last")
        )
        .with_columns(mean.over(groups).alias("mean"))
    )


def _step_panel(table: pl.DataFrame, place: int, metric: str, n: int) -> Spec:
    """Return the panel of figure 1 for one metric and n records: a step per distinct distance."""
    steps, width = table.filter(metric=metric, n=n), 175
    total = int(steps["count"].sum())
    x = quantity(
        "start", domain=(-0.01 * total, 1.01 * total), title="rankings, sorted" if metric == "brmse" else None
    )
    x["axis"]["values"] = [0, total // 2, total]
    y = quantity("value", domain=(-0.02, 1.02), title=DISTANCES[metric] if n == LENGTHS[0] else None)
    layer = {
        "data": {"name": f"{metric}{n}"},
        # A step of one ranking still has a length: it begins where the one before it ended.
        "transform": [{"calculate": "datum.first - 1", "as": "start"}],
        "mark": {"type": "rule", "strokeWidth": 2.2, "strokeCap": "round", "color": colour(metric)},
        "encoding": {"x": x, "x2": {"field": "last"}, "y": y},
    }
    text = f"n = {n}: {total:,} rankings, {steps.height} values"
    line = level_line(float(steps["mean"][0]), y, width=width, text="mean")
    return {"width": width, "height": 130, "layer": [*line, layer, *panel_header(place, text, width=width)]}


def _cloud_panel(steps: pl.DataFrame, place: int, metric: str, draws: int) -> Spec:
    """Return the panel of figure 2 for one metric: a point per distinct distance of random rankings."""
    width, total = 270, draws + 2
    x = quantity(
        "middle",
        domain=(-0.02 * total, 1.02 * total),
        title="rankings, sorted",
        labelExpr="format(datum.value, ',d')",
    )
    x["axis"]["values"] = [1, total // 2, total]
    y = quantity("value", domain=(-0.02, 1.06), title=DISTANCES[metric])
    y["axis"] |= {"values": [0, 0.2, 0.4, 0.6, 0.8, 1], "tickCount": 6}
    cloud = dots_layer(metric, x, y, color=colour(metric))
    cloud["transform"] = [{"calculate": "(datum.first + datum.last) / 2", "as": "middle"}]
    ends = dots_layer(metric, x, y, color=INK, area=36)
    ends["transform"] = [{"filter": "datum.kind != 'random'"}, *cloud["transform"]]
    names = [
        ends | {"transform": [{"filter": f"datum.kind == '{kind}'"}, *cloud["transform"]], "mark": mark}
        for kind, mark in {
            "same order": {"type": "text", "text": "same order", "align": "left", "dx": 7},
            "reversed order": {"type": "text", "text": "reversed order", "align": "right", "dx": -7},
        }.items()
    ]
    line = level_line(float(steps["mean"][0]), y, width=width, text="mean")
    text = f"{steps.height:,} distinct values"
    return {
        "width": width,
        "height": 210,
        "layer": [*line, cloud, ends, *names, *panel_header(place, text, width=width)],
    }
