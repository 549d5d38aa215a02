"""Figures beyond the paper: the tails of rank swapping, and agreement of metrics across methods."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from sdckit.paper.correlations import BOUNDED, UNBOUNDED, disagreement
from sdckit.paper.design import COLOURS, HEADINGS, STUDY_METHODS, UNTAILED
from sdckit.paper.figures.parts import (
    ALL_METRICS,
    Figure,
    colour_encoding,
    dots_layer,
    extremes,
    level_line,
    name_of,
    padded_range,
    panel_header,
)
from sdckit.report.charts import INK, PALE, Spec, grid, label, quantity

if TYPE_CHECKING:
    from sdckit.paper.results import Study

SHADE = "#999999"
SWAPS = {"rank_swap": "tails replaced by their means", UNTAILED: "no tails"}


def tails_figure(study: Study, dataset: str, *, number: str, name: str) -> Figure:
    """Return a figure of the losses of rank swapping, with and without tails replaced by their means."""
    table = pl.concat(
        study.first_replication(dataset, method)
        .unpivot(on=ALL_METRICS, index="setting", variable_name="metric", value_name="value")
        .select(
            pl.lit(dataset).alias("dataset"), pl.lit(method).alias("method"), "metric", "setting", "value"
        )
        for method in SWAPS
    )
    levels = [study.unrelated_level(dataset, "rank_swap", metric) for metric in ALL_METRICS]
    panels = [_tail_panel(table, place, levels[place]) for place in range(len(ALL_METRICS))]
    title = f"Ours: rank swapping with and without tails, {name_of(dataset)}"
    caption = (
        f"Loss of {name_of(dataset)} against P, one run each: with the 5 % of values at each end replaced by "
        "their mean before swapping, the default of the R package, and with swapping alone. "
        "0 means that nothing was lost. Swapping alone keeps every value; replaced tails cost the extreme "
        "values at once, whatever P, but keep them from being swapped. The level of unrelated order, with "
        "tails, lies above the scale of a and b."
    )
    labelled = table.with_columns(kind=pl.col("method").replace(SWAPS))
    datasets = {metric: labelled.filter(metric=metric) for metric in ALL_METRICS}
    chart = grid(panels, columns=3, name=name, description=title, datasets=datasets, spacing=(12, 14))
    return Figure(name, number, title, caption, table, chart, ours=True)


def _tail_panel(table: pl.DataFrame, place: int, level: float | None) -> Spec:
    """Return the panel of one metric against P: rank swapping with and without replaced tails."""
    width, last, metric = 180, place >= 3, ALL_METRICS[place]
    values = table.filter(metric=metric)["value"]
    x = quantity(
        "setting",
        domain=STUDY_METHODS["rank_swap"].axis_range,
        title="P (share of records)" if last else None,
        labels=last,
    )
    y = quantity("value", domain=padded_range(values), title=label(metric))
    cloud = dots_layer(metric, x, y, color=colour_encoding("kind", SWAPS, COLOURS))
    layers = [cloud, *level_line(level, y, width=width), *panel_header(place, "", width=width)]
    return {"width": width, "height": 130, "layer": layers}


def across_methods_figure(study: Study, dataset: str, *, number: str, name: str) -> Figure:
    """Return a figure of bounded against unbounded metrics with all methods in each panel."""
    methods = study.methods_on(dataset)
    pairs = [(bounded, metric) for bounded in BOUNDED for metric in UNBOUNDED]
    shares = disagreement(study.measured.filter(dataset=dataset)).filter(method="all")
    table = pl.concat(
        study.first_replication(dataset, method).select(
            pl.lit(dataset).alias("dataset"), pl.lit(method).alias("method"), pl.all()
        )
        for method in methods
    )
    levels = {bounded: study.unrelated_level(dataset, "noise", bounded) for bounded in BOUNDED}
    panels = [_across_panel(table, shares, place, *pair, levels[pair[0]]) for place, pair in enumerate(pairs)]
    title = f"Ours: four methods on one scale, {name_of(dataset)}"
    caption = (
        f"Each point is one masked version of {name_of(dataset)}, in one run over the grids of all methods: "
        "a bounded metric (rows) against an unbounded one (columns, logarithmic; files without loss are "
        "left out). The percentage is the share of pairs of files, masked by different methods, that the "
        "two metrics put in different orders: 0 means that they always agree on which file lost more, 50 % "
        "is what unrelated metrics reach. Curves that lie apart show that correlations within a method do "
        "not carry over to comparisons between methods. The dashed level of unrelated order is that of "
        "additive noise; ties lower it a little under the others."
    )
    labelled = table.with_columns(kind=pl.col("method").replace(HEADINGS))
    chart = grid(
        panels, columns=4, name=name, description=title, datasets={"files": labelled}, spacing=(12, 12)
    )
    return Figure(name, number, title, caption, table, chart, ours=True)


def _across_panel(
    table: pl.DataFrame, shares: pl.DataFrame, place: int, bounded: str, metric: str, level: float | None
) -> Spec:
    """Return the panel of one bounded against one unbounded metric, a colour per method."""
    width, last = 132, bounded == BOUNDED[-1]
    used = table.filter(pl.col(metric) > 0)
    low, high = extremes(used[metric])
    x = quantity(metric, domain=(low / 1.3, high * 1.3), title=label(metric) if last else None, labels=last)
    x["scale"] |= {"type": "log"}
    x["axis"]["values"] = [
        10.0**power for power in range(math.ceil(math.log10(low)), 1 + int(math.log10(high)))
    ]
    values = table[bounded] if level is None else table[bounded].append(pl.Series([1.08 * level]))
    y = quantity(
        bounded, domain=padded_range(values), title=label(bounded) if metric == UNBOUNDED[0] else None
    )
    names = {method: HEADINGS[method] for method in table["method"].unique(maintain_order=True)}
    cloud = dots_layer("files", x, y, color=colour_encoding("kind", names, COLOURS))
    cloud["transform"] = [{"filter": f"datum.{metric} > 0"}]
    share = shares.filter(metric=bounded, other_metric=metric)["share"][0]
    remark = f"{100 * share:.1f} % of pairs differ"
    layers = [cloud, *level_line(level, y, width=width), *panel_header(place, remark, width=width)]
    return {"width": width, "height": 135, "layer": layers}


def disagreements_figure(study: Study, *, number: str, name: str) -> Figure:
    """Return a figure of how often two metrics order files of different methods differently."""
    found = disagreement(study.measured).filter(method="all")
    table = found.select("dataset", "metric", "other_metric", "pairs", "share")
    names = {metric: label(metric) for metric in ALL_METRICS}
    pair = pl.concat_str(
        pl.col("metric").replace(names), pl.lit(" and "), pl.col("other_metric").replace(names)
    )
    labelled = table.with_columns(pair=pair, percent=100 * pl.col("share"))
    order = labelled.group_by("pair").agg(pl.col("share").mean()).sort("share", "pair")["pair"].to_list()
    sets = {dataset: name_of(dataset) for dataset in study.datasets}
    labelled = labelled.with_columns(pl.col("dataset").replace(sets))
    highest = extremes(labelled["percent"])[1] or 1.0
    x = quantity("percent", domain=(0, 1.05 * highest), title="pairs of files ordered differently (%)")
    lines = {"title": None, "grid": True, "gridColor": PALE, "gridWidth": 0.4, "ticks": False}
    y: Spec = {"field": "pair", "type": "nominal", "sort": order, "axis": lines}
    cloud = dots_layer(
        "pairs",
        x,
        y,
        color=colour_encoding("dataset", sets, dict(zip(sets, (INK, SHADE), strict=False))),
        area=40,
    )
    title = "Ours: how often two metrics disagree on which of two maskings lost more"
    caption = (
        "Share of pairs of masked files, the two by different methods, that two metrics put in different "
        "orders; one run over the grids, ties by row order. 0 means that the metrics always agree, 50 % is "
        "what unrelated metrics reach. The correlations of the note's figures are taken within a method "
        "and cannot show this."
    )
    chart = grid(
        [{"width": 330, "height": 260, "layer": [cloud]}],
        columns=1,
        name=name,
        description=title,
        datasets={"pairs": labelled},
    )
    return Figure(name, number, title, caption, table, chart, ours=True)
