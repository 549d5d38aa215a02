"""Figures 3 to 10 of the paper: losses against the amount of masking, and against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.paper.correlations import BOUNDED, UNBOUNDED
from sdckit.paper.design import HEADINGS, RANDOM_METHODS, STUDY_METHODS, name_of
from sdckit.paper.figures.parts import (
    ALL_METRICS,
    column_title,
    correlation_text,
    dots_layer,
    drawn,
    extremes,
    level_line,
    padded_correlation_range,
    padded_range,
    panel_header,
)
from sdckit.report.charts import INK, SMALL, Spec, colour, label, quantity

if TYPE_CHECKING:
    from sdckit.paper.figures.parts import Figure
    from sdckit.paper.study import Study

CONVENTIONS = (
    "Conventions: noise in percent of a variable's standard deviation, correlated noise in percent of its "
    "variance; rank swapping after the 5 % of values at each end are replaced by their mean, with moves of "
    "at most floor(NP) - 1 ranks; fresh draws at each grid point; ties ranked by row order (`first`); IL1 "
    "over the cells whose original value is not 0."
)
FEW = 4  # smallest number of replications that are drawn as boxes
HEADROOM = 1.12  # factor by which a scale exceeds the level of unrelated order, for its label


def loss_by_parameter_figure(study: Study, dataset: str, number: int) -> Figure:
    """Return figure 3 or 4: every metric against the parameter of every method, for one data set."""
    methods = study.methods_on(dataset)
    pairs = [(metric, method) for metric in ALL_METRICS for method in methods]
    table = pl.concat(_parameter_rows(study, dataset, *pair, place) for place, pair in enumerate(pairs))
    panels = [_parameter_panel(table, place, *pair) for place, pair in enumerate(pairs)]
    title = f"Information loss against the amount of masking, {name_of(dataset)}"
    caption = (
        f"Each point is one masked version of {name_of(dataset)}: its loss (rows) against the parameter of "
        "the method (columns), in one run over the grid; r is Spearman's correlation of the two. 0 means "
        "that nothing was lost; scales of unbounded metrics need not begin there. The dashed lines are "
        "ours: what brMAE and brMSE score when the masked order has nothing to do with the original one. "
        f"{CONVENTIONS}"
    )
    options: dict[str, Any] = {"columns": len(methods), "datasets": _split_by_panel(table), "spacing": (6, 8)}
    return drawn(panels, table, number=str(number), title=title, caption=caption, **options)


def _parameter_rows(study: Study, dataset: str, metric: str, method: str, place: int) -> pl.DataFrame:
    """Return the rows of one panel: setting, loss, its correlation and the level of unrelated order."""
    run = study.first_replication(dataset, method)
    return run.select(
        panel=pl.lit(place, pl.Int64),
        dataset=pl.lit(dataset),
        method=pl.lit(method),
        metric=pl.lit(metric),
        setting="setting",
        value=metric,
        spearman=pl.lit(study.spearman(dataset, method, metric), pl.Float64),
        unrelated=pl.lit(study.unrelated_level(dataset, method, metric), pl.Float64),
    )


def _split_by_panel(table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the rows of each panel of a figure by panel name."""
    return {f"panel{place[0]}": rows for place, rows in table.partition_by("panel", as_dict=True).items()}


def _parameter_panel(table: pl.DataFrame, place: int, metric: str, method: str) -> Spec:
    """Return the panel of one metric against the parameter of one method."""
    rows = table.filter(panel=place)
    first_column, last_row = method == table["method"][0], metric == ALL_METRICS[-1]
    known = STUDY_METHODS[method]
    x = quantity("setting", domain=known.axis_range, title=known.axis_title if last_row else None)
    x["axis"]["labels"] = last_row
    domain = padded_range(rows["value"])
    if metric in BOUNDED:
        highest = table.filter(metric=metric).select(pl.max_horizontal("value", "unrelated").max()).item()
        domain = (-0.02 * highest, HEADROOM * highest)
    y = quantity("value", domain=domain, title=label(metric) if first_column else None)
    return _scatterplot(rows, x, y, size=(128, 102), titled=metric == ALL_METRICS[0])


def _scatterplot(rows: pl.DataFrame, x: Spec, y: Spec, *, size: tuple[int, int], titled: bool) -> Spec:
    """Return a panel of points, one for each row, with the level of unrelated order and the correlation."""
    place, method = rows["panel"][0], rows["method"][0]
    width, height = size
    known = STUDY_METHODS[method]
    layers = [
        dots_layer(f"panel{place}", x, y, color=known.colour, area=known.point_area),
        *level_line(rows["unrelated"][0], y, width=width),
        *panel_header(place, correlation_text(rows["spearman"][0]), width=width),
    ]
    panel: Spec = {"width": width, "height": height, "layer": layers}
    return panel | ({"title": column_title(HEADINGS[method])} if titled else {})


def correlations_figure(study: Study, dataset: str, number: int) -> Figure:
    """Return figure 5 or 6: correlations of the metrics with the grid, over the replications."""
    methods = study.methods_on(dataset, RANDOM_METHODS)
    table = (
        study.correlations.filter(pl.col("ties").is_in(["first", "-"]), pl.col("method").is_in(methods))
        .filter(dataset=dataset, reference="parameter")
        .select("dataset", "method", "metric", "replication", "spearman")
    )
    repeats = study.replications(dataset)
    panels = [_box_panel(table, place, method, repeats) for place, method in enumerate(methods)]
    shown = "median, quartiles and extremes, and every" if repeats >= FEW else "the median, and every"
    title = f"Correlation of each metric with the amount of masking, {name_of(dataset)}"
    caption = (
        "Spearman's correlation of each metric with the grid of a method's parameter, over the "
        f"replications of the masking of {name_of(dataset)} (number: {repeats}): {shown} replication as a "
        "point. 1 means that more masking always gave more loss, 0 that the metric does not follow it. The "
        f"scales differ between panels and do not begin at 0. {CONVENTIONS}"
    )
    named = table.with_columns(
        name=pl.col("metric").replace({metric: label(metric) for metric in ALL_METRICS})
    )
    datasets = {method: named.filter(method=method) for method in methods}
    options: dict[str, Any] = {"columns": len(methods), "datasets": datasets, "spacing": (12, 14)}
    return drawn(panels, table, number=str(number), title=title, caption=caption, **options)


def _box_panel(table: pl.DataFrame, place: int, method: str, repeats: int) -> Spec:
    """Return the panel of one method: boxes of correlations by metric, or points if there are few."""
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
        domain=padded_correlation_range(values),
        title="Spearman's r" if place == 0 else None,
        tickCount=5,
    )
    scale = {"domain": names, "range": [colour(name) for name in ALL_METRICS]}
    paint = {"field": "name", "type": "nominal", "scale": scale, "legend": None}
    if repeats >= FEW:
        layers = [_box_layer(method, x, y, paint), dots_layer(method, x, y, color=INK, area=3)]
    else:
        layers = [_median_layer(method, x, y), dots_layer(method, x, y, color=paint, area=20)]
    layers += panel_header(place, "", width=width)
    return {
        "width": width,
        "height": 190,
        "title": column_title(HEADINGS[method]) | {"offset": 8},
        "layer": layers,
    }


def _box_layer(data: str, x: Spec, y: Spec, paint: Spec) -> Spec:
    """Return a chart layer of box plots: median, quartiles and extremes."""
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


def _median_layer(data: str, x: Spec, y: Spec) -> Spec:
    """Return a chart layer with a short line at each median."""
    mark = {"type": "tick", "color": INK, "size": 18, "thickness": 1.2, "orient": "horizontal"}
    return {"data": {"name": data}, "mark": mark, "encoding": {"x": x, "y": y | {"aggregate": "median"}}}


def bounded_by_unbounded_figure(study: Study, dataset: str, bounded: str, number: int) -> Figure:
    """Return figure 7, 8, 9 or 10: one bounded metric against each unbounded one, by method."""
    methods = study.methods_on(dataset)
    pairs = [(metric, method) for metric in UNBOUNDED for method in methods]
    table = pl.concat(
        _association_rows(study, dataset, bounded, *pair, place) for place, pair in enumerate(pairs)
    )
    panels = [_association_panel(table, place, *pair) for place, pair in enumerate(pairs)]
    short = label(bounded)
    title = f"{short} against the unbounded metrics, {name_of(dataset)}"
    caption = (
        f"Each point is one masked version of {name_of(dataset)}: its {short} against its MAE, MSE, IL1 and "
        "IL1s (rows) under four methods (columns), in one run over the grid; r is Spearman's correlation. "
        "A cloud that only rises means that both metrics put the masked files in the same order; 0 means "
        "no loss on either axis. The level of unrelated order (dashed; with an arrow where it lies above "
        f"the scale) is ours. {CONVENTIONS}"
    )
    options: dict[str, Any] = {
        "columns": len(methods),
        "datasets": _split_by_panel(table),
        "spacing": (8, 14),
    }
    return drawn(panels, table, number=str(number), title=title, caption=caption, **options)


def _association_rows(
    study: Study, dataset: str, bounded: str, metric: str, method: str, place: int
) -> pl.DataFrame:
    """Return the rows of one panel: values of a bounded and an unbounded metric, and their correlation."""
    return study.first_replication(dataset, method).select(
        panel=pl.lit(place, pl.Int64),
        dataset=pl.lit(dataset),
        method=pl.lit(method),
        setting="setting",
        metric=pl.lit(metric),
        value=metric,
        bounded=pl.lit(bounded),
        bounded_value=bounded,
        spearman=pl.lit(study.spearman(dataset, method, metric, bounded), pl.Float64),
        unrelated=pl.lit(study.unrelated_level(dataset, method, bounded), pl.Float64),
    )


def _association_panel(table: pl.DataFrame, place: int, metric: str, method: str) -> Spec:
    """Return the panel of a bounded against an unbounded metric under one method."""
    rows = table.filter(panel=place)
    unrelated = rows["unrelated"][0]
    highest = extremes(rows["bounded_value"])[1]
    # If all losses are small, a scale up to the level would hide their differences.
    near = unrelated is not None and highest > unrelated / 2
    top = HEADROOM * max(highest, unrelated) if near else 1.15 * highest or 1.0
    x = quantity("value", domain=padded_range(rows["value"]), title=label(metric))
    first_column = method == table["method"][0]
    y = quantity(
        "bounded_value", domain=(-0.02 * top, top), title=label(rows["bounded"][0]) if first_column else None
    )
    return _scatterplot(rows, x, y, size=(132, 132), titled=metric == UNBOUNDED[0])
