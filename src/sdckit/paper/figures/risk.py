"""Figures of loss against risk: all records, outliers, and the linkage attacks by method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from sdckit.paper.design import COLOURS, HEADINGS, STUDY_METHODS
from sdckit.paper.figures import parts as panels
from sdckit.paper.figures.parts import (
    Figure,
    colour_encoding,
    dots_layer,
    name_of,
    panel_header,
    text_layer,
)
from sdckit.paper.risks import ATTACKS, FRONTIERS, RISKS, setting_label
from sdckit.paper.sweeps import KEYS
from sdckit.report.charts import (
    AMBER,
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    PINK,
    SMALL,
    Spec,
    grid,
    quantity,
)
from sdckit.risk import attacks as linkage_attacks

if TYPE_CHECKING:
    from sdckit.paper.results import Study
    from sdckit.paper.risks import Risks

NAMES = {"linkage": "the worst (linkage)"} | {name: linkage_attacks.ATTACKS[name].title for name in ATTACKS}
ATTACK_COLOURS = dict(zip(NAMES, (PALE, BLUE, ORANGE, GREEN, AMBER, PINK), strict=True))
WIDE = 6.0  # width of the grey line of linkage, which lies behind those of the attacks
SIDE = 400
WHOLE = (-0.01, 1.01)  # from 0 to 1, with a margin for the points at the ends
FOUND = {"linkage": "all records", "linkage_outliers": "the 2 % of records farthest from the centre"}


def risk_map_figure(study: Study, dataset: str, *, risk: str = "linkage", number: str, name: str) -> Figure:
    """Return a figure of the loss of every setting against the share of records that are linked."""
    risks = study.required_risks
    on = dict(zip(RISKS, FRONTIERS, strict=True))[risk]
    table = risks.points.filter(dataset=dataset).select(
        *KEYS, "brmae", risk, *(["worst"] if risk == "linkage" else []), pl.col(on).alias("frontier")
    )
    best = table.filter("frontier")["method"].value_counts(sort=True, name="count").rows()
    shares = ", ".join(f"{HEADINGS[method]} {count}" for method, count in sorted(best, key=_count_order))
    subset = "of the outliers " if risk != "linkage" else ""
    title = f"Ours: loss against risk {subset}under four methods, {name_of(dataset)}".replace("  ", " ")
    caption = (
        f"brMAE of {name_of(dataset)} against linkage: the share of {FOUND[risk]} that the worst of four "
        "attacks finds (of five for rank swapping, whose window of ranks is public). "
        f"Each point is one setting, the median of {_times(risks)}; lines join the settings "
        "of a method. 0 on both axes would be a file without loss and without risk, so lower left is better; "
        "1 is the largest loss, or all records found. Ringed points and the stepped line are the frontier: "
        f"no other setting is better in both ({shares}). The dashed level is the loss of unrelated order."
    )
    level = study.levels.filter(dataset=dataset, method="noise", ties="average")["brmae"].to_list()
    chart = grid(
        [_map_panel(table, risk, level[0] if level else None)],
        columns=1,
        name=name,
        description=title,
        datasets={"settings": _with_labels(table, risk)},
    )
    return Figure(name, number, title, caption, table, chart, ours=True, risk=True)


def _count_order(pair: tuple[str, int]) -> tuple[int, int]:
    """Return the sort key of a (method, count) pair: larger counts first, then the order of methods."""
    return -pair[1], list(HEADINGS).index(pair[0])


def _times(risks: Risks) -> str:
    """Return the number of replications as text."""
    times = risks.replications
    return "one replication" if times == 1 else f"{times} replications"


def _with_labels(table: pl.DataFrame, risk: str) -> pl.DataFrame:
    """Add each method's title, and the text of the settings labelled in the chart of loss against risk."""
    text = [
        setting_label(method, setting) if setting in STUDY_METHODS[method].labelled_settings[risk] else None
        for method, setting in table.select("method", "setting").iter_rows()
    ]
    kind = pl.col("method").replace(HEADINGS)
    return table.with_columns(pl.Series("text", text, dtype=pl.String), kind=kind)


def _map_panel(table: pl.DataFrame, risk: str, level: float | None) -> Spec:
    """Return the panel of the risk map: a line per method, the frontier, labels and an arrow."""
    share = "share of records found" if risk == "linkage" else "share of outliers found"
    x = quantity("brmae", domain=WHOLE, title="information loss (brMAE)", tickCount=6)
    y = quantity(risk, domain=WHOLE, title=f"disclosure risk ({share})", tickCount=6)
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
    left = " || ".join(
        f"datum.method == '{method}'"
        for method, study_method in STUDY_METHODS.items()
        if study_method.labels_left
    )
    found = []
    for test, style in (
        (left, {"align": "right", "dx": -6, "dy": 5}),
        (f"!({left})", {"align": "left", "dx": 6}),
    ):
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


def attacks_figure(study: Study, dataset: str, *, number: str, name: str) -> Figure:
    """Return a figure of the share of records that each attack links, by the parameter of each method."""
    risks = study.required_risks
    points = risks.points.filter(dataset=dataset)
    table = (
        points.unpivot(
            on=["linkage", *ATTACKS], index=[*KEYS, "worst"], variable_name="attack", value_name="value"
        )
        .drop_nulls("value")
        .with_columns(worst=pl.col("attack") == pl.col("worst"))
        .drop("parameters")
    )
    methods = points["method"].unique(maintain_order=True).to_list()
    labelled = table.with_columns(kind=pl.col("attack").replace(NAMES))
    title = f"Ours: which attack finds most, {name_of(dataset)}"
    caption = (
        f"Share of the records of {name_of(dataset)} that each attack finds, along the parameter of each "
        f"method; medians of {_times(risks)}. 0 means that an attack finds no record, 1 that it "
        "finds all. The wide grey line is linkage, the worst of the attacks on each file. "
        f"{_worst_attacks(points)} No single attack is enough to judge a file by."
    )
    chart = grid(
        [_attack_panel(place, method) for place, method in enumerate(methods)],
        columns=len(methods),
        name=name,
        description=title,
        datasets={method: labelled.filter(method=method) for method in methods},
        spacing=(12, 12),
    )
    return Figure(name, number, title, caption, table, chart, ours=True, risk=True)


def _worst_attacks(points: pl.DataFrame) -> str:
    """Return a sentence on which attack links most, and under how many settings of each method."""
    parts = []
    for method in points["method"].unique(maintain_order=True):
        own = points.filter(method=method)
        counts = own["worst"].value_counts(name="count").rows()
        ordered = sorted(counts, key=lambda pair: (-pair[1], ATTACKS.index(pair[0])))
        parts.append(f"{HEADINGS[method]}: " + ", ".join(f"{NAMES[attack]} {n}" for attack, n in ordered))
    return f"The worst attack, with the number of settings: {'; '.join(parts)}."


def _attack_panel(place: int, method: str) -> Spec:
    """Return the panel of one method: a line per attack along the parameter."""
    width, study_method = 128, STUDY_METHODS[method]
    x = quantity("setting", domain=study_method.axis_range, title=study_method.axis_title, tickCount=3)
    if study_method.ticks:
        x["scale"] |= {"type": "log", "domain": [0.9, 1.1 * study_method.axis_range[1]]}
        x["axis"] |= {"values": study_method.ticks, "tickCount": 9, "labelExpr": "datum.value"}
    y = quantity("value", domain=WHOLE, title="share of records found" if place == 0 else None)
    if place:
        y["axis"]["labels"] = False
    paint = colour_encoding("kind", NAMES, ATTACK_COLOURS, symbol="stroke")
    paint["legend"] |= {"columns": len(NAMES), "columnPadding": 8}
    lines = [("==", WIDE), ("!=", 1.3)]
    layers: list[Spec] = [
        {
            "data": {"name": method},
            "transform": [{"filter": f"datum.attack {sign} 'linkage'"}],
            "mark": {"type": "line", "strokeWidth": thick, "strokeCap": "round"},
            "encoding": {"x": x, "y": y, "color": paint},
        }
        for sign, thick in lines
    ]
    return {
        "width": width,
        "height": 190,
        "title": panels.column_title(study_method.heading),
        "layer": [*layers, *panel_header(place, "", width=width)],
    }
