"""Figures 3 to 10: losses against the amount of masking, and against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from sdckit.paper.correlations import BOUNDED, UNBOUNDED
from sdckit.paper.design import DRAWN, HEADINGS, WAYS
from sdckit.paper.figures.parts import (
    ALL_METRICS,
    Figure,
    around,
    around_correlations,
    called,
    correlation_text,
    dots,
    ends,
    heading,
    lettered,
    level_line,
    metric_scale,
)
from sdckit.report.charts import INK, SMALL, Spec, grid, label, quantity

if TYPE_CHECKING:
    from sdckit.paper.results import Study

CONVENTIONS = (
    "Conventions: noise in percent of a variable's standard deviation, correlated noise in percent of its "
    "variance; rank swapping after the 5 % of values at each end are replaced by their mean, with moves of "
    "at most floor(NP) - 1 ranks; fresh draws at each grid point; ties ranked by row order (`first`); IL1 "
    "over the cells whose original value is not 0."
)
FEW = 4  # replications from which quartiles say more than the points
HEADROOM = 1.12  # of a scale that ends at the level of unrelated order: room for its label


def against_parameter(study: Study, dataset: str, number: int) -> Figure:
    """Draw figures 3 and 4: every metric against the grid of every method."""
    methods = study.methods(dataset)
    pairs = [(metric, method) for metric in ALL_METRICS for method in methods]
    table = pl.concat(_series(study, dataset, *pair, place) for place, pair in enumerate(pairs))
    panels = [_parameter_panel(table, place, *pair) for place, pair in enumerate(pairs)]
    name, title = f"figure-{number}", f"Information loss against the amount of masking, {called(dataset)}"
    caption = (
        f"Each point is one masked version of {called(dataset)}: its loss (rows) against the parameter of "
        "the method (columns), in one run over the grid; r is Spearman's correlation of the two. 0 means "
        "that nothing was lost; scales of unbounded metrics need not begin there. The dashed lines are "
        "ours: what brMAE and brMSE score when the masked order has nothing to do with the original one. "
        f"{CONVENTIONS}"
    )
    chart = grid(
        panels,
        columns=len(methods),
        name=name,
        description=title,
        datasets=_by_panel(table),
        spacing=(6, 8),
    )
    return Figure(name, str(number), title, caption, table, chart)


def _series(study: Study, dataset: str, metric: str, method: str, place: int) -> pl.DataFrame:
    run = study.one_run(dataset, method)
    return run.select(
        panel=pl.lit(place, pl.Int64),
        dataset=pl.lit(dataset),
        method=pl.lit(method),
        metric=pl.lit(metric),
        setting="setting",
        value=metric,
        spearman=pl.lit(study.spearman(dataset, method, metric), pl.Float64),
        unrelated=pl.lit(study.level(dataset, method, metric), pl.Float64),
    )


def _by_panel(table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {f"panel{place[0]}": rows for place, rows in table.partition_by("panel", as_dict=True).items()}


def _parameter_panel(table: pl.DataFrame, place: int, metric: str, method: str) -> Spec:
    width, height = 128, 102
    rows = table.filter(panel=place)
    first_column, last_row = method == table["method"][0], metric == ALL_METRICS[-1]
    x = quantity("setting", domain=WAYS[method].span, title=WAYS[method].axis if last_row else None)
    x["axis"]["labels"] = last_row
    unrelated = rows["unrelated"][0]
    domain = around(rows["value"])
    if metric in BOUNDED:
        highest = table.filter(metric=metric).select(pl.max_horizontal("value", "unrelated").max()).item()
        domain = (-0.02 * highest, HEADROOM * highest)
    y = quantity("value", domain=domain, title=label(metric) if first_column else None)
    layers = [dots(f"panel{place}", x, y, color=WAYS[method].colour, area=WAYS[method].dot)]
    layers += level_line(unrelated, y, width=width)
    layers += lettered(place, correlation_text(rows["spearman"][0]), width=width)
    panel: Spec = {"width": width, "height": height, "layer": layers}
    return panel | ({"title": heading(HEADINGS[method])} if metric == ALL_METRICS[0] else {})


def over_replications(study: Study, dataset: str, number: int) -> Figure:
    """Draw figures 5 and 6: the correlations with the grid over the replications."""
    methods = study.methods(dataset, DRAWN)
    table = (
        study.correlations.filter(pl.col("ties").is_in(["first", "-"]), pl.col("method").is_in(methods))
        .filter(dataset=dataset, reference="parameter")
        .select("dataset", "method", "metric", "replication", "spearman")
    )
    repeats = study.replications(dataset)
    panels = [_box_panel(table, place, method, repeats) for place, method in enumerate(methods)]
    shown = "median, quartiles and extremes, and every" if repeats >= FEW else "the median, and every"
    name = f"figure-{number}"
    title = f"Correlation of each metric with the amount of masking, {called(dataset)}"
    caption = (
        "Spearman's correlation of each metric with the grid of a method's parameter, over the "
        f"replications of the masking of {called(dataset)} (number: {repeats}): {shown} replication as a "
        "point. 1 means that more masking always gave more loss, 0 that the metric does not follow it. The "
        f"scales differ between panels and do not begin at 0. {CONVENTIONS}"
    )
    named = table.with_columns(
        name=pl.col("metric").replace({metric: label(metric) for metric in ALL_METRICS})
    )
    datasets = {method: named.filter(method=method) for method in methods}
    chart = grid(
        panels, columns=len(methods), name=name, description=title, datasets=datasets, spacing=(12, 14)
    )
    return Figure(name, str(number), title, caption, table, chart)


def _box_panel(table: pl.DataFrame, place: int, method: str, repeats: int) -> Spec:
    width = 192
    values = table.filter(method=method)["spearman"]
    names = [label(metric) for metric in ALL_METRICS]
    x = {
        "field": "name",
        "type": "nominal",
        "sort": names,
        "axis": {"title": None, "labelAngle": 0, "ticks": False, "labelFontSize": SMALL, "labelPadding": 5},
    }
    y = quantity(
        "spearman",
        domain=around_correlations(values),
        title="Spearman's r" if place == 0 else None,
        tickCount=5,
    )
    paint = {"field": "name", "type": "nominal", "scale": metric_scale(ALL_METRICS), "legend": None}
    if repeats >= FEW:
        layers = [_boxes(method, x, y, paint), dots(method, x, y, color=INK, area=3)]
    else:
        layers = [_medians(method, x, y), dots(method, x, y, color=paint, area=20)]
    layers += lettered(place, "", width=width)
    return {
        "width": width,
        "height": 190,
        "title": heading(HEADINGS[method]) | {"offset": 8},
        "layer": layers,
    }


def _boxes(data: str, x: Spec, y: Spec, paint: Spec) -> Spec:
    line = {"color": INK, "strokeWidth": 0.8}
    mark = {
        "type": "boxplot",
        "extent": "min-max",
        "outliers": False,
        "size": 18,
        "box": {"fillOpacity": 0.55, "stroke": INK, "strokeWidth": 0.8, "cornerRadius": 0},
        "median": line | {"strokeWidth": 1.6},
        "rule": line,
        "ticks": line | {"size": 8},
    }
    return {"data": {"name": data}, "mark": mark, "encoding": {"x": x, "y": y, "color": paint}}


def _medians(data: str, x: Spec, y: Spec) -> Spec:
    mark = {"type": "tick", "color": INK, "size": 18, "thickness": 1.2, "orient": "horizontal"}
    return {"data": {"name": data}, "mark": mark, "encoding": {"x": x, "y": y | {"aggregate": "median"}}}


def against_each_other(study: Study, dataset: str, bounded: str, number: int) -> Figure:
    """Draw figures 7 to 10: a bounded metric against the unbounded ones."""
    methods = study.methods(dataset)
    pairs = [(metric, method) for metric in UNBOUNDED for method in methods]
    table = pl.concat(_pairs(study, dataset, bounded, *pair, place) for place, pair in enumerate(pairs))
    panels = [_association_panel(table, place, *pair) for place, pair in enumerate(pairs)]
    name, short = f"figure-{number}", label(bounded)
    title = f"{short} against the unbounded metrics, {called(dataset)}"
    caption = (
        f"Each point is one masked version of {called(dataset)}: its {short} against its MAE, MSE, IL1 and "
        "IL1s (rows) under four methods (columns), in one run over the grid; r is Spearman's correlation. "
        "A cloud that only rises means that both metrics put the masked files in the same order; 0 means "
        "no loss on either axis. The level of unrelated order (dashed; with an arrow where it lies above "
        f"the scale) is ours. {CONVENTIONS}"
    )
    chart = grid(
        panels,
        columns=len(methods),
        name=name,
        description=title,
        datasets=_by_panel(table),
        spacing=(8, 14),
    )
    return Figure(name, str(number), title, caption, table, chart)


def _pairs(study: Study, dataset: str, bounded: str, metric: str, method: str, place: int) -> pl.DataFrame:
    return study.one_run(dataset, method).select(
        panel=pl.lit(place, pl.Int64),
        dataset=pl.lit(dataset),
        method=pl.lit(method),
        setting="setting",
        metric=pl.lit(metric),
        value=metric,
        bounded=pl.lit(bounded),
        bounded_value=bounded,
        spearman=pl.lit(study.spearman(dataset, method, metric, bounded), pl.Float64),
        unrelated=pl.lit(study.level(dataset, method, bounded), pl.Float64),
    )


def _association_panel(table: pl.DataFrame, place: int, metric: str, method: str) -> Spec:
    width, height = 132, 132
    rows = table.filter(panel=place)
    unrelated = rows["unrelated"][0]
    highest = ends(rows["bounded_value"])[1]
    # Where all losses are small, a scale up to the level would press the cloud to the floor.
    near = unrelated is not None and highest > unrelated / 2
    top = HEADROOM * max(highest, unrelated) if near else 1.15 * highest or 1.0
    x = quantity("value", domain=around(rows["value"]), title=label(metric))
    first_column = method == table["method"][0]
    y = quantity(
        "bounded_value", domain=(-0.02 * top, top), title=label(rows["bounded"][0]) if first_column else None
    )
    layers = [dots(f"panel{place}", x, y, color=WAYS[method].colour, area=WAYS[method].dot)]
    layers += level_line(unrelated, y, width=width)
    layers += lettered(place, correlation_text(rows["spearman"][0]), width=width)
    panel: Spec = {"width": width, "height": height, "layer": layers}
    return panel | ({"title": heading(HEADINGS[method])} if metric == UNBOUNDED[0] else {})
