"""Histograms of record counts: the distribution of each variable, and the records by their risk."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.report.charts import INK, MASKED, ORIGINAL, layer, screen_chart
from sdckit.report.privacy import THRESHOLD, count_by_bins, count_by_risk, lasting_edges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.arrays import Floats
    from sdckit.evaluation.result import Evaluation
    from sdckit.metrics.pair import Pair
    from sdckit.report.charts import Spec


@dataclass(frozen=True)
class Panel:
    """A chart of one variable, or the reason why there is none."""

    variable: str
    spec: Spec | None
    description: str


def distribution_panels(pair: Pair, edges: dict[str, Floats] | None = None) -> list[Panel]:
    """Return a histogram for each variable: shares of original and masked records in the same bins.

    `edges` has the edges that other files of the same original are shown with, by variable; it gets those
    that are chosen here.
    """
    found = []
    for j, name in enumerate(pair.columns):
        original, masked = pair.original.values[:, j], pair.masked[:, j]
        if edges is not None and name not in edges and (chosen := lasting_edges(original, masked)).size:
            edges[name] = chosen
        shared = None if edges is None else edges.get(name, np.empty(0))
        found.append(_distribution_panel(name, original, masked, shared))
    return found


def _distribution_panel(variable: str, original: Floats, masked: Floats, edges: Floats | None) -> Panel:
    """Return the histogram of one variable, or the reason why it is not shown."""
    bins = count_by_bins(original, masked, edges)
    if bins is None:
        why = f"Not shown: too few records or different values for bins of at least {THRESHOLD} records."
        return Panel(variable, None, why)
    words = [_edge_text(edge) for edge in bins.edges]
    ranges = [f"below {words[0]}"]
    ranges += [f"{low} to {high}" for low, high in pairwise(words)]
    ranges.append(f"{words[-1]} or more")
    shares = [np.array(counts) / sum(counts) for counts in (bins.original, bins.masked)]
    rows = [
        {
            "bin": place,
            "end": place + 1,
            "left": place + 0.22,
            "right": place + 0.78,
            "range": ranges[place],
            "original": bins.original[place],
            "masked": bins.masked[place],
            "original_share": round(float(shares[0][place]), 4),
            "masked_share": round(float(shares[1][place]), 4),
        }
        for place in range(len(ranges))
    ]
    largest = int(np.argmax(np.abs(shares[0] - shares[1])))
    description = (
        f"Shares of records in {len(rows)} bins; they differ most in the bin {ranges[largest]}: "
        f"{shares[0][largest]:.1%} of the original records, {shares[1][largest]:.1%} of the masked ones"
    )
    return Panel(variable, _distribution_spec(rows, words), description)


def _edge_text(value: float) -> str:
    """Return a bin edge as short text, such as "1,500" or "2e9"."""
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.1e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e").replace(".0e", "e")
    return f"{value:,.10g}"


def _distribution_spec(rows: list[dict[str, Any]], edges: Sequence[str]) -> Spec:
    """Return the Vega-Lite specification of a histogram: wide bars original, narrow bars masked."""
    axis: Spec = {"title": None, "values": list(range(1, len(rows))), "labelExpr": "edges[datum.value]"}
    axis |= {"labelOverlap": "parity", "labelSeparation": 6}
    x = {"type": "quantitative", "scale": {"domain": [0, len(rows)], "nice": False}, "axis": axis}
    share = {"title": None, "format": "~%", "tickCount": 3, "grid": True, "domain": False, "ticks": False}
    y = {"type": "quantitative", "axis": share, "scale": {"zero": True}}
    share_of = {"type": "quantitative", "format": ".1%"}
    hover: list[Spec] = [{"field": "range", "title": "range", "type": "nominal"}]
    hover += [{"field": f"{what}_share", "title": what, **share_of} for what in ("original", "masked")]

    def bars(start: str, end: str, height: str, colour: str) -> Spec:
        """Return the chart layer of bars between two fields on the x axis, from 0 to the field `height`."""
        where = {"x": x | {"field": start}, "x2": {"field": end}, "y": y | {"field": height}}
        mark = {"type": "rect", "color": colour, "stroke": "white", "strokeWidth": 0.5}
        return layer(mark, where | {"y2": {"datum": 0}, "tooltip": hover})

    layers = [bars("bin", "end", "original_share", ORIGINAL), bars("left", "right", "masked_share", MASKED)]
    return screen_chart(rows, 130, layers, params=[{"name": "edges", "value": ["", *edges]}])


def risk_panel_of(evaluation: Evaluation) -> Panel | None:
    """Return the histogram of records by their risk; None unless that of each record was measured."""
    if evaluation.records is None or "linkage" not in evaluation.records.columns:
        return None
    return risk_panel(evaluation.records["linkage"].to_numpy())


def risk_panel(risks: Floats) -> Panel:
    """Return the histogram of records by their re-identification risk, from 0 to 1."""
    bins = count_by_risk(risks)
    if bins is None:
        return Panel("", None, f"Not shown: fewer than {THRESHOLD} records.")
    rows = [
        {
            "low": bin_.low,
            "high": bin_.high,
            "records": bin_.records,
            "text": f"{bin_.records:,}",
            "range": f"{bin_.low:g} to {bin_.high:g}",
        }
        for bin_ in bins
    ]
    scale = {"domain": [0, 1], "nice": False}
    x = {"type": "quantitative", "scale": scale, "axis": {"title": "risk of the record", "tickCount": 10}}
    count = {"title": "records", "tickCount": 4, "grid": True, "domain": False, "ticks": False}
    y = {"field": "records", "type": "quantitative", "axis": count}
    hover = [{"field": "range", "title": "risk"}, {"field": "text", "title": "records"}]
    bars = {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y, "y2": {"datum": 0}, "tooltip": hover}
    names = {"x": x | {"field": "middle"}, "y": y, "text": {"field": "text"}}
    layers = [
        layer({"type": "rect", "color": MASKED, "stroke": "white"}, bars),
        layer({"type": "text", "dy": -7, "color": INK}, names),
    ]
    middle = [{"calculate": "(datum.low + datum.high) / 2", "as": "middle"}]
    spec = screen_chart(rows, 200, layers, transform=middle)
    described = "; ".join(f"{row['text']} records with a risk of {row['range']}" for row in rows)
    return Panel("", spec, described)
