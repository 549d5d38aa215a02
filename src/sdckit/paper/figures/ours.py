"""Figures beyond the paper: the range that ties leave, disagreement of metrics, and loss against risk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.paper.correlations import BOUNDED, TIES, disagreement
from sdckit.paper.design import COLOURS, HEADINGS, KEYS, STUDY_METHODS, name_of, setting_label
from sdckit.paper.figures.parts import (
    ALL_METRICS,
    colour_encoding,
    dots_layer,
    drawn,
    extremes,
    level_line,
    panel_header,
    text_layer,
)
from sdckit.report.charts import BLUE, GREEN, GREY, INK, ORANGE, PALE, SMALL, Spec, label, quantity

if TYPE_CHECKING:
    from sdckit.paper.figures.parts import Figure
    from sdckit.paper.study import Study

RULES = {"first": "first (row order)", "average": "average (mid-rank)", "expected": "expected (random)"}
RULE_COLOURS = {"first": ORANGE, "average": BLUE, "expected": GREEN}
DASHES = {"first": [1, 0], "average": [1, 0], "expected": [4, 3]}
ABOUT_RULES = (
    "Rules: equal values are ranked by row order (`first`; the note does not say which rule its figures "
    "use), by their mid-rank (`average`), or by the mean over all ways to break ties at random (`expected`)."
)
SHADE = "#999999"
SIDE = 400
WHOLE = (-0.01, 1.01)  # from 0 to 1, with a margin for the points at the ends


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
    options: dict[str, Any] = {"columns": 2, "datasets": datasets, "spacing": (14, 20)}
    return drawn(panels, table, name=name, number=number, title=title, caption=caption, ours=True, **options)


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
    paint = colour_encoding("dataset", sets, dict(zip(sets, (INK, SHADE), strict=False)))
    cloud = dots_layer("pairs", x, y, color=paint, area=40)
    title = "Ours: how often two metrics disagree on which of two maskings lost more"
    caption = (
        "Share of pairs of masked files, the two by different methods, that two metrics put in different "
        "orders; one run over the grids, ties by row order. 0 means that the metrics always agree, 50 % is "
        "what unrelated metrics reach. The correlations of the note's figures are taken within a method "
        "and cannot show this."
    )
    panels: list[Spec] = [{"width": 330, "height": 260, "layer": [cloud]}]
    options: dict[str, Any] = {"columns": 1, "datasets": {"pairs": labelled}}
    return drawn(panels, table, name=name, number=number, title=title, caption=caption, ours=True, **options)


def risk_map_figure(study: Study, dataset: str, *, number: str, name: str) -> Figure:
    """Return a figure of the loss of every setting against the share of records that are linked."""
    risks = study.required_risks
    table = risks.points.filter(dataset=dataset).select(*KEYS, "brmae", "linkage", "worst", "frontier")
    best = table.filter("frontier")["method"].value_counts(sort=True, name="count").rows()
    shares = ", ".join(f"{HEADINGS[method]} {count}" for method, count in sorted(best, key=_count_order))
    times = "one replication" if risks.replications == 1 else f"{risks.replications} replications"
    title = f"Ours: loss against risk under four methods, {name_of(dataset)}"
    caption = (
        f"brMAE of {name_of(dataset)} against linkage: the share of all records that the worst of four "
        "attacks finds (of five for rank swapping, whose window of ranks is public). "
        f"Each point is one setting, the median of {times}; lines join the settings "
        "of a method. 0 on both axes would be a file without loss and without risk, so lower left is better; "
        "1 is the largest loss, or all records found. Ringed points and the stepped line are the frontier: "
        f"no other setting is better in both ({shares}). The dashed level is the loss of unrelated order."
    )
    level = study.levels.filter(dataset=dataset, method="noise", ties="average")["brmae"].to_list()
    panels = [_map_panel(table, level[0] if level else None)]
    options: dict[str, Any] = {"columns": 1, "datasets": {"settings": _with_labels(table)}, "risk": True}
    return drawn(panels, table, name=name, number=number, title=title, caption=caption, ours=True, **options)


def _count_order(pair: tuple[str, int]) -> tuple[int, int]:
    """Return the sort key of a (method, count) pair: larger counts first, then the order of methods."""
    return -pair[1], list(HEADINGS).index(pair[0])


def _with_labels(table: pl.DataFrame) -> pl.DataFrame:
    """Add each method's title, and the text of the settings labelled in the chart of loss against risk."""
    text = [
        setting_label(method, setting) if setting in STUDY_METHODS[method].labelled_settings else None
        for method, setting in table.select("method", "setting").iter_rows()
    ]
    kind = pl.col("method").replace(HEADINGS)
    return table.with_columns(pl.Series("text", text, dtype=pl.String), kind=kind)


def _map_panel(table: pl.DataFrame, level: float | None) -> Spec:
    """Return the panel of the risk map: a line per method, the frontier, labels and an arrow."""
    x = quantity("brmae", domain=WHOLE, title="information loss (brMAE)", tickCount=6)
    y = quantity("linkage", domain=WHOLE, title="disclosure risk (share of records found)", tickCount=6)
    names = {method: HEADINGS[method] for method in table["method"].unique(maintain_order=True)}
    paint = colour_encoding("kind", names, COLOURS)
    paint["legend"] |= {"columns": 3, "columnPadding": 14}
    where = {"x": x, "y": y}
    data: Spec = {"data": {"name": "settings"}}
    only = [{"filter": "datum.frontier"}]
    along = {"order": {"field": "setting", "type": "quantitative"}, "color": paint}
    step = {"type": "line", "interpolate": "step-after", "color": INK, "strokeWidth": 0.8}
    ring = {"type": "point", "size": 26, "filled": False, "stroke": INK, "strokeWidth": 0.8, "opacity": 1}
    layers = [
        *_vertical_level(level, x),
        data | {"transform": only, "mark": step, "encoding": where | {"order": {"field": "brmae"}}},
        data | {"mark": {"type": "line", "strokeWidth": 1.3}, "encoding": where | along},
        dots_layer("settings", x, y, color=paint, area=14),
        data | {"transform": only, "mark": ring, "encoding": where},
        *_label_layers(where | {"color": paint}),
        *_better_arrow(),
    ]
    return {"width": SIDE, "height": SIDE, "layer": layers}


def _label_layers(encoding: Spec) -> list[Spec]:
    """Return two chart layers with the labels of settings, left and right of their points."""
    left = " || ".join(f"datum.method == '{name}'" for name, one in STUDY_METHODS.items() if one.labels_left)
    to_left = {"align": "right", "dx": -6, "dy": 5}
    found = []
    for test, style in ((left, to_left), (f"!({left})", {"align": "left", "dx": 6})):
        mark = {"type": "text", "fontSize": SMALL, "baseline": "middle"} | style
        shown = [{"filter": f"datum.text != null && ({test})"}]
        place: Spec = {"data": {"name": "settings"}, "transform": shown, "mark": mark}
        found.append(place | {"encoding": encoding | {"text": {"field": "text"}}})
    return found


def _better_arrow() -> list[Spec]:
    """Return the chart layers of an arrow to the lower left corner, where loss and risk are low."""
    one: Spec = {"data": {"values": [{}]}}
    ends = {"x": {"value": 12}, "x2": {"value": 28}, "y": {"value": SIDE - 12}, "y2": {"value": SIDE - 28}}
    head = {"type": "point", "shape": "triangle-left", "angle": 315, "size": 40, "filled": True, "opacity": 1}
    tip = {"x": {"value": 12}, "y": {"value": SIDE - 12}}
    return [
        one | {"mark": {"type": "rule", "strokeWidth": 1.2, "color": GREY}, "encoding": ends},
        one | {"mark": head | {"color": GREY}, "encoding": tip},
        text_layer("better", x=24, y=SIDE - 8, color=GREY),
    ]


def _vertical_level(level: float | None, x: Spec) -> list[Spec]:
    """Return the chart layers of a vertical dashed line at a loss and its label; none for None."""
    if level is None:
        return []
    place = {"data": {"values": [{"level": level}]}, "encoding": {"x": x | {"field": "level"}}}
    line = {"type": "rule", "strokeDash": [3, 2], "strokeWidth": 0.8, "color": GREY}
    note = {"type": "text", "text": f"unrelated order {level:.3f}", "y": 10, "dx": 4, "align": "left"}
    return [place | {"mark": line}, place | {"mark": note | {"fontSize": SMALL, "color": GREY}}]
