"""Charts: colours, axes, grids of panels, and the scripts that draw them in the browser."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core.registry import short_title
from sdckit.io import atomic
from sdckit.io.atomic import sweep_drafts
from sdckit.io.datasets import cache_folder
from sdckit.masking import METHODS
from sdckit.metrics import METRICS
from sdckit.report.drawing import Spec, pdf, png, svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import altair as alt

    from sdckit.core.registry import Method, Metric

__all__ = ["Spec", "colour", "grid", "label", "pdf", "png", "svg", "sweep_chart"]

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, AMBER, BLACK = "#56B4E9", "#E69F00", "#000000"
INK, GREY, PALE = "#222222", "#666666", "#BBBBBB"
NAMED = {"blue": BLUE, "orange": ORANGE, "green": GREEN, "pink": PINK, "sky": SKY, "amber": AMBER}
SPARE = (BLACK, BLUE, ORANGE, GREEN, PINK, SKY, AMBER)

FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"
SMALL, NORMAL, LARGE = 9, 10, 11  # font sizes in px; a 700 px figure printed 180 mm wide has 10 px = 7.3 pt
CONFIG: Spec = {
    "aria": False,  # one label for the figure, none for each of its points
    "background": "white",
    "font": FONT,
    "padding": 6,
    "view": {"stroke": None},
    "axis": {
        "domainColor": INK,
        "domainWidth": 0.7,
        "grid": False,
        "labelColor": INK,
        "labelFlush": False,
        "labelFontSize": NORMAL,
        "labelPadding": 2,
        "tickColor": INK,
        "tickSize": 3,
        "tickWidth": 0.7,
        "titleColor": INK,
        "titleFontSize": LARGE,
        "titleFontWeight": "normal",
        "titlePadding": 4,
    },
    "title": {"color": INK, "fontSize": LARGE, "fontWeight": "bold"},
    "legend": {
        "labelFontSize": NORMAL,
        "symbolStrokeWidth": 2,
        "titleFontSize": NORMAL,
        "titleFontWeight": "normal",
    },
}
# Large numbers as 2e9, the shortest notation.
EXPONENT = "datum.value == 0 ? '0' : replace(format(datum.value, '~e'), 'e+', 'e')"
FROM_EXPONENT = 1e4
POINTS_UP_TO = 40  # a line through at most so many settings also has a point for each


def colour(name: str) -> str:
    """Return the colour of a method or metric as hexadecimal RGB, the same in every chart."""
    known: dict[str, Metric | Method] = {**METRICS, **METHODS}
    own = known[name].colour if name in known else None
    place = list(known).index(name) if name in known else sum(name.encode())
    return NAMED[own] if own else SPARE[place % len(SPARE)]


def label(name: str) -> str:
    """Return the title of a method or metric for charts; other names without underscores."""
    return short_title(name) or name.replace("_", " ")


def quantity(field: str, *, domain: Sequence[float] | None = None, **options: Any) -> Spec:
    """Return the Vega-Lite encoding of a numeric field; without a domain its scale ends near the data."""
    scale = {"zero": False} if domain is None else {"domain": list(domain), "nice": False}
    axis: Spec = {"title": None, "tickCount": 4, "labelOverlap": "parity", "labelSeparation": 4}
    if max(map(abs, domain or (0,))) >= FROM_EXPONENT:
        axis["labelExpr"] = EXPONENT
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis | options}


def finite_rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Return a table as a list of dicts for Vega, with None for numbers that are not finite."""
    finite = pl.col(pl.Float64, pl.Float32)
    return table.with_columns(pl.when(finite.is_finite()).then(finite).otherwise(None).name.keep()).to_dicts()


def grid(
    panels: Sequence[Spec],
    *,
    columns: int,
    description: str,
    name: str | None = None,
    datasets: Mapping[str, pl.DataFrame] | None = None,
    spacing: tuple[float, float] = (12, 12),
) -> alt.ConcatChart:
    """Return an altair chart of panels in rows of `columns`, aligned, in the theme of sdckit.

    Panels are Vega-Lite specifications whose data are named in `datasets` or lie inside; `name` starts
    the ids of the picture, `description` labels it for those who cannot see it; `spacing` is in pixels,
    between rows and between columns.
    """
    import altair as alt  # noqa: PLC0415 - slow to import

    from sdckit.report.offline_charts import OfflineConcat  # noqa: PLC0415 - it imports altair

    return OfflineConcat(
        concat=[altair_chart(panel) for panel in panels],
        columns=columns,
        description=description,
        spacing={"row": spacing[0], "column": spacing[1]},
        config=CONFIG,
        datasets={key: finite_rows(table) for key, table in (datasets or {}).items()},
        name=alt.Undefined if name is None else name,
    )


def altair_chart(spec: Spec) -> alt.Chart | alt.LayerChart:
    """Return an altair chart built from a Vega-Lite specification, faster than altair's from_dict."""
    import altair as alt  # noqa: PLC0415 - slow to import

    if "layer" in spec:
        return alt.LayerChart(**spec | {"layer": [altair_chart(layer) for layer in spec["layer"]]})
    return alt.Chart(**spec | {"encoding": alt.FacetedEncoding(**spec.get("encoding", {}))})


def sweep_chart(table: pl.DataFrame) -> alt.ConcatChart:
    """Return an altair chart of a sweep: each metric (rows) against each method's parameter (columns).

    Over the replications of a setting the line shows the median, the band the extremes. A row shares
    one scale, so that methods can be compared; its end of no loss is the bottom.

    Parameters
    ----------
    table : polars.DataFrame
        One row per masked file and metric: `method`, `parameters` (such as "k=5"), `setting` (a
        number), `replication`, `metric`, `value`.

    Returns
    -------
    altair.ConcatChart
    """
    value = pl.col("value").fill_nan(None)
    summary = (
        table.with_columns(pl.col("setting").cast(pl.Float64).fill_nan(None))
        .group_by("method", "metric", "parameters", "setting", maintain_order=True)
        .agg(value.median().alias("median"), value.min().alias("low"), value.max().alias("high"))
    )
    split = [_split_parameters(*row) for row in summary.select("parameters", "setting").rows()]
    # One line for each combination of the other parameters.
    summary = summary.with_columns(pl.DataFrame(split, schema=["varied", "others"], orient="row"))
    methods = table["method"].unique(maintain_order=True).to_list()
    metrics = table["metric"].unique(maintain_order=True).to_list()
    pairs = [(metric, method) for metric in metrics for method in methods]
    panels = [_sweep_panel(summary, metric, method) for metric, method in pairs]
    for panel, method in zip(panels, methods, strict=False):
        panel["title"] = {"text": label(method), "anchor": "middle", "frame": "group"}
    datasets = {
        f"{metric}-{method}": summary.filter(metric=metric, method=method) for metric, method in pairs
    }
    description = f"Sweep of {', '.join(map(label, methods))}: {', '.join(map(label, metrics))}"
    return grid(panels, columns=len(methods), description=description, datasets=datasets)


def _split_parameters(parameters: str, setting: float | None) -> tuple[str, str]:
    """Split text such as "k=5, a=b": the parameter with the setting's value, and the text of the others."""
    parts = parameters.split(", ")
    found = parts[0]
    for part in reversed(parts):
        with suppress(ValueError):  # the text after "=" may be no number
            found = part if float(part.rsplit("=", maxsplit=1)[-1]) == setting else found
    return found.split("=")[0], ", ".join(part for part in parts if part != found)


def _sweep_panel(summary: pl.DataFrame, metric: str, method: str) -> Spec:
    """Return the Vega-Lite specification of one metric against one method's parameter: line and band."""
    rows, own = summary.filter(metric=metric), summary.filter(method=method)
    ends = [0.0, *rows["low"].drop_nulls(), *rows["high"].drop_nulls()]
    title = label(metric) if method == summary["method"][0] else None
    y = quantity("median", domain=(min(ends), 1.05 * max(ends) or 1.0), title=title)
    x = quantity("setting", title=own["varied"][0])
    if own["setting"].null_count():  # no numeric parameter: one position per setting
        x = {"field": "parameters", "type": "nominal", "sort": None, "axis": {"title": None}}
    where, paint = {"x": x, "y": y, "detail": {"field": "others"}}, {"color": colour(method)}
    band = where | {"y": y | {"field": "low"}, "y2": {"field": "high"}}
    layers = [
        {"mark": {"type": "area", "opacity": 0.25} | paint, "encoding": band},
        {"mark": {"type": "line", "strokeWidth": 1.2} | paint, "encoding": where},
    ]
    if own["parameters"].n_unique() <= POINTS_UP_TO:
        point = {"type": "point", "filled": True, "size": 12, "opacity": 1}
        layers.append({"mark": point | paint, "encoding": where})
    return {"width": 150, "height": 110, "data": {"name": f"{metric}-{method}"}, "layer": layers}


ORIGINAL, MASKED = "#C9CDD2", BLUE
LIMIT, BEYOND = "#B3261E", "#FDF4F3"
GRID = "#EEF0F2"
SCREEN_CONFIG: Spec = CONFIG | {  # larger than in print
    "background": None,
    "padding": {"left": 2, "right": 12, "top": 6, "bottom": 2},
    "axis": CONFIG["axis"] | {"labelFontSize": 11, "titleFontSize": 12, "gridColor": GRID},
}


def layer(mark: Spec, encoding: Spec, **head: Any) -> Spec:
    """Return a layer of a chart as a Vega-Lite specification; `head` has its name, data or transform."""
    return {**head, "mark": mark, "encoding": encoding}


def screen_chart(rows: Sequence[Mapping[str, Any]], height: int, layers: Sequence[Spec], **more: Any) -> Spec:
    """Return the Vega-Lite specification of a chart for the page, as wide as its place."""
    look = {"config": SCREEN_CONFIG, "width": "container", "height": height}
    return {**look, "data": {"values": rows}, **more, "layer": layers}


# SHA-256 digest of the joined text, by version of vl-convert-python. A copy with another digest is not used,
# so that nobody who can write into the cache can put a script into reports.
DIGESTS = MappingProxyType(
    {
        "1.7.0": "b632ae0b65aa27fc22d8045458c2c0fe06694dc252b134fa415b52ef8a7a7220",
        "1.8.0": "b66996bb5822b536e6808945330c26223bf890967feb4a7e681b432d3563ea8a",
        "1.9.0": "373b1f84072b31010f15ceb787be6b415c53936411aae267c8c2b2b6ccde46e7",
        "1.9.0.post1": "373b1f84072b31010f15ceb787be6b415c53936411aae267c8c2b2b6ccde46e7",
    }
)


@cache
def bundle() -> str:
    """Return the joined JavaScript, as text, from vl-convert; a copy is cached on disk: joining takes 2 s.

    Versions whose digest is not known here are joined each time.
    """
    installed = version("vl-convert-python")
    cached, digest = cache_folder() / f"vega-{installed}.js", DIGESTS.get(installed)
    with suppress(OSError, UnicodeError):
        text = cached.read_bytes().decode()
        if _digest(text) == digest:
            return text
    text = _joined()
    if _digest(text) == digest:
        with suppress(OSError):  # the page does not need the cached copy
            cached.parent.mkdir(parents=True, exist_ok=True)
            sweep_drafts(cached.parent)
            with atomic.atomic(cached, overwrite=True) as draft:
                draft.write_bytes(text.encode())
    return text


def _joined() -> str:
    """Return the scripts of the installed vl-convert joined in one text; RuntimeError if they hold HTML."""
    import vl_convert  # noqa: PLC0415 - slow to import

    text = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).strip()
    text = text.replace("\r\n", "\n")  # browsers hash scripts with these line ends
    if "</script" in text.lower() or "<!--" in text:
        raise RuntimeError(
            "the scripts of the charts contain HTML tags; install another version of vl-convert-python"
        )
    return text


def _digest(text: str) -> str:
    """Return the SHA-256 digest of a text, as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()
