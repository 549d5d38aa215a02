"""Figures beyond the paper: the effect of the rule for ties, and the range over all ways to break ties."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from sdckit.paper.correlations import BOUNDED, TIES, UNBOUNDED
from sdckit.paper.design import HEADINGS, STUDY_METHODS
from sdckit.paper.figures.parts import (
    Figure,
    colour_encoding,
    column_title,
    dots_layer,
    extremes,
    level_line,
    name_of,
    padded_correlation_range,
    padded_range,
    panel_header,
)
from sdckit.report.charts import BLUE, GREEN, INK, ORANGE, PALE, Spec, grid, label, quantity

if TYPE_CHECKING:
    from sdckit.paper.results import Study

RULES = {"first": "first (row order)", "average": "average (mid-rank)", "expected": "expected (random)"}
RULE_COLOURS = {"first": ORANGE, "average": BLUE, "expected": GREEN}
DASHES = {"first": [1, 0], "average": [1, 0], "expected": [4, 3]}
ABOUT_RULES = (
    "Rules: equal values are ranked by row order (`first`; the note does not say which rule its figures "
    "use), by their mid-rank (`average`), or by the mean over all ways to break ties at random (`expected`)."
)


def rule_differences_figure(study: Study, dataset: str, *, number: str, name: str) -> Figure:
    """Return a figure of losses under two rules for ties minus those under mid-ranks."""
    methods = study.methods_on(dataset)
    pairs = [(metric, method) for metric in BOUNDED for method in methods]
    table = pl.concat(_rule_differences(study, dataset, *pair, place) for place, pair in enumerate(pairs))
    panels = [_difference_panel(table, place, *pair) for place, pair in enumerate(pairs)]
    title = f"Ours: what the rule for ties changes, {name_of(dataset)}"
    caption = (
        "Difference, in thousandths, between brMAE (above) or brMSE (below) under two rules for ties and "
        f"under mid-ranks, for every masked version of {name_of(dataset)} in one run. {ABOUT_RULES} 0 means "
        "that the rule makes no difference, 1000 would be the whole range of the metric. Only `expected` "
        "charges a file for ties that no masking has touched."
    )
    datasets = {f"panel{i}": table.filter(panel=i) for i in range(len(pairs))}
    chart = grid(
        panels, columns=len(methods), name=name, description=title, datasets=datasets, spacing=(10, 12)
    )
    return Figure(name, number, title, caption, table, chart, ours=True)


def _rule_differences(study: Study, dataset: str, metric: str, method: str, place: int) -> pl.DataFrame:
    """Return the rows of one panel: losses under two rules for ties minus those under mid-ranks."""
    runs = {rule: study.first_replication(dataset, method, ties=rule) for rule in TIES}
    return pl.concat(
        runs[rule].select(
            panel=pl.lit(place, pl.Int64),
            dataset=pl.lit(dataset),
            method=pl.lit(method),
            metric=pl.lit(metric),
            rule=pl.lit(RULES[rule]),
            setting="setting",
            value=metric,
            difference=1000 * (runs[rule][metric] - runs["average"][metric]),
        )
        for rule in ("first", "expected")
    )


def _difference_panel(table: pl.DataFrame, place: int, metric: str, method: str) -> Spec:
    """Return a chart of a metric's difference between tie rules against the parameter of one method."""
    width, last = 130, metric == BOUNDED[-1]
    rows = table.filter(panel=place)
    x = quantity(
        "setting",
        domain=STUDY_METHODS[method].axis_range,
        title=STUDY_METHODS[method].axis_title if last else None,
        labels=last,
    )
    title = f"{label(metric)}: difference \u00d7 1000" if method == table["method"][0] else None
    y = quantity("difference", domain=padded_range(rows["difference"].extend_constant(0.0, 1)), title=title)
    rules = {rule: RULES[rule] for rule in ("first", "expected")}
    zero = {
        "data": {"values": [{"difference": 0}]},
        "mark": {"type": "rule", "color": PALE},
        "encoding": {"y": y},
    }
    layers = [zero, dots_layer(f"panel{place}", x, y, color=colour_encoding("rule", rules, RULE_COLOURS))]
    panel: Spec = {"width": width, "height": 120, "layer": [*layers, *panel_header(place, "", width=width)]}
    return panel | ({"title": column_title(HEADINGS[method])} if metric == BOUNDED[0] else {})


def rule_correlations_figure(study: Study, dataset: str, *, number: str, name: str) -> Figure:
    """Return a figure of the bounded metrics' correlation with the parameter under three tie rules."""
    methods = study.methods_on(dataset)
    table = (
        study.correlations.filter(pl.col("method").is_in(methods), pl.col("metric").is_in(BOUNDED))
        .filter(dataset=dataset, reference="parameter")
        .select("dataset", "method", "metric", "ties", "replication", "spearman")
    )
    panels = [_rule_panel(table, place, method) for place, method in enumerate(methods)]
    title = f"Ours: correlation with the amount of masking under three rules for ties, {name_of(dataset)}"
    caption = (
        "Spearman's correlation of brMAE and brMSE with a method's parameter: each point is one "
        f"replication (number: {study.replications(dataset)}; microaggregation has no random part), the bar "
        f"their median. {ABOUT_RULES} 1 means that more masking always gave more loss, 0 that the metric "
        "does not follow it. Where the three groups of points are alike, the rule does not matter for the "
        "order of the masked files; scales differ between panels."
    )
    labelled = table.with_columns(
        name=pl.col("metric").replace({metric: label(metric) for metric in BOUNDED}),
        rule=pl.col("ties").replace(RULES),
    )
    datasets = {method: labelled.filter(method=method) for method in methods}
    chart = grid(
        panels, columns=len(methods), name=name, description=title, datasets=datasets, spacing=(12, 10)
    )
    return Figure(name, number, title, caption, table, chart, ours=True)


def _rule_panel(table: pl.DataFrame, place: int, method: str) -> Spec:
    """Return the panel of one method: correlations of each replication, by metric and rule for ties."""
    width = 125
    names, order = [label(metric) for metric in BOUNDED], list(RULES.values())
    x: Spec = {"field": "name", "type": "nominal", "sort": names}
    x |= {"axis": {"title": None, "labelAngle": 0, "ticks": False}, "scale": {"paddingInner": 0.2}}
    values = table.filter(method=method)["spearman"]
    y = quantity(
        "spearman",
        domain=padded_correlation_range(values),
        title="Spearman's r" if place == 0 else None,
        tickCount=5,
    )
    where = {"x": x, "y": y, "xOffset": {"field": "rule", "type": "nominal", "sort": order}}
    paint = colour_encoding("rule", RULES, RULE_COLOURS)
    bar = {"type": "tick", "orient": "horizontal", "size": 13, "thickness": 1.2, "color": INK}
    data = {"data": {"name": method}}
    points = {"type": "point", "filled": True, "size": 14, "opacity": 1}
    layers = [
        data | {"mark": bar, "encoding": where | {"y": y | {"aggregate": "median"}}},
        data | {"mark": points, "encoding": where | {"color": paint}},
    ]
    return {
        "width": width,
        "height": 170,
        "title": column_title(HEADINGS[method]),
        "layer": [*layers, *panel_header(place, "", width=width)],
    }


def rule_associations_figure(study: Study, dataset: str, *, number: str, name: str) -> Figure:
    """Return a figure of the correlations of figures 7 to 10 under three rules for ties."""
    methods = study.methods_on(dataset)
    value = pl.col("spearman")
    table = (
        study.correlations.filter(pl.col("method").is_in(methods), pl.col("reference").is_in(BOUNDED))
        .filter(dataset=dataset)
        .group_by("dataset", "method", "metric", "reference", "ties", maintain_order=True)
        .agg(value.min().alias("low"), value.median().alias("median"), value.max().alias("high"))
    )
    pairs = [(bounded, method) for bounded in BOUNDED for method in methods]
    panels = [_association_panel(table, place, *pair) for place, pair in enumerate(pairs)]
    title = f"Ours: bounded against unbounded metrics under three rules for ties, {name_of(dataset)}"
    caption = (
        "Spearman's correlation of brMAE (above) and brMSE (below) with each unbounded metric over a "
        "method's grid: median (dot) and range (line) over the replications (number: "
        f"{study.replications(dataset)}), for three rules for ties. {ABOUT_RULES} 1 means that both metrics "
        "put the masked files in the same order, 0 that their orders have nothing in common."
    )
    labelled = table.with_columns(
        name=pl.col("metric").replace({metric: label(metric) for metric in UNBOUNDED}),
        rule=pl.col("ties").replace(RULES),
    )
    datasets = {f"panel{i}": labelled.filter(reference=b, method=m) for i, (b, m) in enumerate(pairs)}
    chart = grid(
        panels, columns=len(methods), name=name, description=title, datasets=datasets, spacing=(10, 12)
    )
    return Figure(name, number, title, caption, table, chart, ours=True)


def _association_panel(table: pl.DataFrame, place: int, bounded: str, method: str) -> Spec:
    """Return the panel of one bounded metric and method: correlations with each unbounded metric."""
    width, first, last = 140, method == table["method"][0], bounded == BOUNDED[-1]
    low = min(extremes(table["low"])[0], 0.95)
    x = quantity("median", domain=(low - 0.01, 1.005), title="Spearman's r" if last else None)
    names = [label(metric) for metric in UNBOUNDED]
    y: Spec = {"field": "name", "type": "nominal", "sort": names}
    y["axis"] = {"title": f"with {label(bounded)}" if first else None, "labels": first, "ticks": False}
    where = {"y": y, "yOffset": {"field": "rule", "type": "nominal", "sort": list(RULES.values())}}
    where["color"] = colour_encoding("rule", RULES, RULE_COLOURS)
    data = {"data": {"name": f"panel{place}"}}
    span = {"x": x | {"field": "low"}, "x2": {"field": "high"}}
    layers = [
        data | {"mark": {"type": "rule", "strokeWidth": 1}, "encoding": where | span},
        data
        | {"mark": {"type": "point", "filled": True, "size": 16, "opacity": 1}, "encoding": where | {"x": x}},
    ]
    panel: Spec = {"width": width, "height": 120, "layer": [*layers, *panel_header(place, "", width=width)]}
    return panel | ({"title": column_title(HEADINGS[method])} if bounded == BOUNDED[0] else {})


def tie_ranges_figure(study: Study, *, number: str, name: str) -> Figure:
    """Return a figure of the range of brMAE and brMSE over all ways to break ties after MDAV."""
    sets = [dataset for dataset in study.datasets if study.tie_range.filter(dataset=dataset).height]
    table = pl.concat(_tie_rows(study, dataset) for dataset in sets)
    pairs = [(dataset, metric) for dataset in sets for metric in BOUNDED]
    panels = [_tie_panel(study, table, place, *pair) for place, pair in enumerate(pairs)]
    title = "Ours: the range that ties leave open under microaggregation"
    caption = (
        "Microaggregation makes the values of a group equal, so that ranks depend on how ties are broken. "
        "The band reaches from the smallest to the largest loss over all ways to break them, lines show "
        f"three rules. {ABOUT_RULES} 0 means that the order is kept; the wider the band, the more the value "
        "depends on the rule. The dashed level of unrelated order lies above the scale."
    )
    datasets = {f"panel{i}": table.filter(dataset=d, metric=m) for i, (d, m) in enumerate(pairs)}
    chart = grid(panels, columns=2, name=name, description=title, datasets=datasets, spacing=(14, 20))
    return Figure(name, number, title, caption, table, chart, ours=True)


def _tie_rows(study: Study, dataset: str) -> pl.DataFrame:
    """Return the losses of one data set after MDAV under three rules for ties, and their range."""
    ranges = study.tie_range.filter(dataset=dataset).select(
        "dataset", "setting", "metric", "tie_low", "tie_high"
    )
    runs = pl.concat(
        study.first_replication(dataset, "mdav", ties=rule)
        .unpivot(on=BOUNDED, index="setting", variable_name="metric", value_name="value")
        .with_columns(rule=pl.lit(RULES[rule]))
        for rule in TIES
    )
    return runs.join(ranges, on=["setting", "metric"]).select(
        "dataset", "metric", "setting", "rule", "value", "tie_low", "tie_high"
    )


def _tie_panel(study: Study, table: pl.DataFrame, place: int, dataset: str, metric: str) -> Spec:
    """Return the panel of one data set and metric: a band over all ways to break ties, a line per rule."""
    width = 290
    highest = extremes(table.filter(metric=metric)["tie_high"])[1]
    x = quantity("setting", domain=STUDY_METHODS["mdav"].axis_range, title=STUDY_METHODS["mdav"].axis_title)
    y = quantity("value", domain=(0, 1.05 * highest), title=label(metric))
    data = {"data": {"name": f"panel{place}"}}
    band = {"x": x, "y": y | {"field": "tie_low"}, "y2": {"field": "tie_high"}}
    paint = colour_encoding("rule", RULES, RULE_COLOURS, symbol="stroke")
    dashes = {"domain": paint["scale"]["domain"], "range": list(DASHES.values())}
    lines = {"x": x, "y": y, "color": paint, "strokeDash": paint | {"scale": dashes}}
    layers = [
        data | {"mark": {"type": "area", "color": PALE, "opacity": 0.6}, "encoding": band},
        data | {"mark": {"type": "line", "strokeWidth": 1.3}, "encoding": lines},
        *level_line(study.unrelated_level(dataset, "mdav", metric), y, width=width),
    ]
    return {"width": width, "height": 180, "layer": [*layers, *panel_header(place, dataset, width=width)]}
