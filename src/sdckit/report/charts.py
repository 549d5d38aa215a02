"""Charts, drawn without a network."""

from __future__ import annotations

import base64
import hashlib
import re
import struct
import zlib
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from sdckit.core.checks import printable_content
from sdckit.core.registry import short_title
from sdckit.io import atomic
from sdckit.io.atomic import sweep_drafts
from sdckit.io.datasets import cache_folder
from sdckit.masking import METHODS
from sdckit.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from xml.etree.ElementTree import Element

    from sdckit.core.registry import Method, Metric


Piece = dict[str, Any]  # a piece of a Vega-Lite specification
PNG_HEAD = b"\x89PNG\r\n\x1a\n"


class PlainRows(dict[str, list[Piece]]):
    """Rows of named tables whose cells are numbers, texts and None alone."""


def svg(chart: alt.TopLevelMixin) -> str:
    """Return a chart as SVG without outside references, with ids that are unique on a page.

    The chart's `name` starts all ids, its `description` becomes the label of the picture.
    """
    import vl_convert  # noqa: PLC0415 - slow to import

    spec = printable_content(_specification(chart))
    drawn = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    return compact_svg(drawn, name=spec.get("name"), description=spec.get("description", ""))


def _specification(chart: alt.TopLevelMixin) -> Piece:
    """Return a chart as a Vega-Lite specification; rows of `grid` are taken as they are.

    They are plain numbers and texts already, and altair would look at each of them for a second in all.
    """
    rows = getattr(chart, "datasets", None)
    if not isinstance(rows, PlainRows):
        return chart.to_dict(validate=False)
    spec = chart.to_dict(validate=False, ignore=["datasets"])
    return spec | {"datasets": spec.get("datasets", {}) | rows}


def png(chart: alt.TopLevelMixin | str, scale: float = 2.0) -> bytes:
    """Return a chart, or its SVG text, as a PNG image with `scale` dots per pixel."""
    import vl_convert  # noqa: PLC0415 - slow to import

    return bytes(vl_convert.svg_to_png(chart if isinstance(chart, str) else svg(chart), scale=scale))


def compact_png(picture: bytes) -> bytes:
    """Return a PNG image with the same pixels, compressed as far as zlib can: to a third of vl-convert's."""
    chunks, place, pixels = [], len(PNG_HEAD), b""
    while place < len(picture):
        (size,) = struct.unpack_from(">I", picture, place)
        kind, content = picture[place + 4 : place + 8], picture[place + 8 : place + 8 + size]
        if kind == b"IDAT":
            pixels += content
        else:
            chunks.append((kind, content))
        place += size + 12
    chunks.insert(-1, (b"IDAT", zlib.compress(zlib.decompress(pixels), 9)))  # before the mark of the end
    written = (
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
    return PNG_HEAD + b"".join(written)


def pdf(chart: alt.TopLevelMixin | str) -> bytes:
    """Return a chart, or its SVG text, as a PDF page of the chart's size, as vector graphics."""
    import vl_convert  # noqa: PLC0415 - slow to import

    return bytes(vl_convert.svg_to_pdf(chart if isinstance(chart, str) else svg(chart)))


def compact_svg(source: str, *, name: str | None = None, description: str = "") -> str:
    """Return Vega's SVG without invisible elements: the same picture in a tenth of the bytes."""
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - only needed to draw

    # Without namespace declarations tags have short names; the one of SVG is added again below.
    root = ET.fromstring(re.sub(r' xmlns(:\w+)?="[^"]*"', "", source))  # noqa: S314 - written by Vega just now
    _tidy(root)
    prefix = name or f"chart-{zlib.crc32(source.encode()):08x}"
    title = ET.Element("title", id=f"{prefix}-title")
    title.text = description or prefix
    root.insert(0, title)
    _rename_ids(root, prefix)
    family = next((element.get("font-family", "") for element in root.iter("text")), "")
    for element in root.iter():
        if element.get("font-family") == family:
            del element.attrib["font-family"]
    root.attrib |= {
        "xmlns": "http://www.w3.org/2000/svg",
        "role": "img",
        "aria-labelledby": f"{prefix}-title",
    }
    root.attrib |= {"font-family": family} if family else {}
    return ET.tostring(root, encoding="unicode")


CIRCLE = re.compile(r"M([\d.]+),0A\1,\1,0,1,1,-\1,0A\1,\1,0,1,1,\1,0")
PLACE = re.compile(r"translate\(([^,]+),([^)]+)\)")
LONG_NUMBER = re.compile(r"-?\d+(\.\d+)?e-?\d+|-?\d+\.\d+")
CURVE_FROM = 100  # a path of more letters is a curve, for which a tenth of a pixel is enough
INVISIBLE = {"class", "role", "pointer-events", "version"}
NO_EFFECT = {"opacity": "1", "transform": "translate(0,0)"}
INHERITED = [
    "fill",
    "stroke",
    "stroke-width",
    "stroke-dasharray",
    "font-size",
    "font-weight",
    "font-style",
    "text-anchor",
]


def _tidy(element: Element) -> None:
    """Drop invisible parts of an SVG element in place, merge its discs, and move common styles up."""
    symbols = element.get("class", "").startswith("mark-symbol")
    for name, value in list(element.items()):
        if name in INVISIBLE or name.startswith("aria-") or NO_EFFECT.get(name) == value:
            del element.attrib[name]
        elif name in {"d", "transform"}:
            element.set(name, _round_numbers(value))
    visible: list[Element] = []
    for child in element:
        _tidy(child)
        if element.tag != "g" or _is_visible(child):
            visible += list(child) if child.tag == "g" and not child.attrib else [child]
    element[:] = list(_merge_discs(visible)) if symbols else visible
    for name in INHERITED if element.tag == "g" and len(element) > 1 else ():
        values = {child.attrib.get(name) for child in element}
        if None not in values and len(values) == 1:
            element.set(name, str(values.pop()))
            for child in element:
                del child.attrib[name]


def _is_visible(element: Element) -> bool:
    """Return True if an SVG element draws something: it has children, a fill, a stroke or text."""
    if element.tag == "g":
        return len(element) > 0
    painted = element.tag != "path" or "fill" in element.attrib or "stroke" in element.attrib
    return painted and element.get("d") != "" and element.get("display") != "none"


def _round_numbers(text: str) -> str:
    """Return SVG text with its decimal numbers rounded to a hundredth of a pixel; a tenth in long paths."""
    decimals = 1 if len(text) > CURVE_FROM else 2
    return LONG_NUMBER.sub(lambda number: f"{round(float(number[0]), decimals) + 0.0:g}", text)


def _merge_discs(symbols: list[Element]) -> Iterator[Element]:
    """Yield SVG symbols with neighbouring discs of one style merged into one path with round ends."""
    for style, group in groupby(symbols, key=_disc_style):
        if style is None:
            yield from group
            continue
        steps, x, y = [], 0, 0
        for symbol in group:
            # Tenths of a pixel, each step from the last: short numbers whose roundings do not add up.
            to_x, to_y = (round(10 * float(text)) for text in PLACE.findall(symbol.get("transform", ""))[0])
            steps.append(f"m{(to_x - x) / 10:g},{(to_y - y) / 10:g}h0")
            x, y = to_x, to_y
        yield symbol.makeelement("path", style | {"d": "".join(steps)})


def _disc_style(symbol: Element) -> dict[str, str] | None:
    """Return the style of a line whose round ends look like the symbol; None for all but opaque discs."""
    disc = CIRCLE.fullmatch(symbol.get("d", ""))
    if disc is None or {"stroke", "opacity", "fill-opacity"} & symbol.attrib.keys() or not symbol.get("fill"):
        return None
    return {
        "stroke": symbol.get("fill", ""),
        "stroke-width": f"{2 * float(disc[1]):g}",
        "stroke-linecap": "round",
    }


def _rename_ids(root: Element, prefix: str) -> None:
    """Start all ids of an SVG, and the references to them, with a prefix, in place."""
    names = {element.get("id", ""): f"{prefix}-{i}" for i, element in enumerate(root.iter("clipPath"), 1)}
    for element in root.iter():
        for key, value in element.attrib.items():
            old = value.removeprefix("url(#").removesuffix(")")
            if old in names and (key == "id" or value.startswith("url(#")):
                element.set(key, value.replace(old, names[old]))


__all__ = ["colour", "grid", "label", "pdf", "png", "svg", "sweep_chart"]

Spec = dict[str, Any]  # a piece of a Vega-Lite specification

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

    return OfflineConcat(
        concat=[altair_chart(panel) for panel in panels],
        columns=columns,
        description=description,
        spacing={"row": spacing[0], "column": spacing[1]},
        config=CONFIG,
        datasets=PlainRows({key: finite_rows(table) for key, table in (datasets or {}).items()}),
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
    found = next((part for part in parts if _number_in(part) == setting), parts[0])
    return found.split("=")[0], ", ".join(part for part in parts if part != found)


def _number_in(part: str) -> float | None:
    """Return the number after "=" in text such as "k=5"; None if it is no number."""
    try:
        return float(part.rsplit("=", maxsplit=1)[-1])
    except ValueError:
        return None


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


class OfflineChart(alt.TopLevelMixin):
    """What sdckit adds to an altair chart: a picture for notebooks, and pages with all scripts inside."""

    def _repr_mimebundle_(self, *_: Any, **__: Any) -> dict[str, str]:
        """Return the chart as SVG, as PNG for notebooks that are not trusted, and in words."""
        drawn = svg(self)
        picture = base64.b64encode(compact_png(png(drawn, 1.0))).decode()
        return {"image/svg+xml": drawn, "image/png": picture, "text/plain": repr(self)}

    def __repr__(self) -> str:
        words = getattr(self, "description", alt.Undefined)
        return f"<chart: {words}>" if isinstance(words, str) else "<chart>"

    def save(self, fp: Any, *args: Any, **options: Any) -> None:
        """Write the chart to a file as altair does; a page has all scripts inside, unless `inline=False`."""
        named = args[0] if args else options.get("format")
        if named == "html" or (named is None and Path(str(fp)).suffix == ".html"):
            options = {"inline": True} | options
        super().save(fp, *args, **options)

    def __or__(self, other: Any) -> Any:
        """Return two charts side by side."""
        return OfflineRow(hconcat=_parts(self, other), config=_config(self, other))

    def __and__(self, other: Any) -> Any:
        """Return two charts, one above the other."""
        return OfflineColumn(vconcat=_parts(self, other), config=_config(self, other))

    def __add__(self, other: Any) -> Any:
        """Return two charts on common axes."""
        return OfflineLayers(layer=_parts(self, other), config=_config(self, other))


def _config(first: Any, other: Any) -> Any:
    """Return the look that two charts get together: that of the first which has one."""
    return next((one.config for one in (first, other) if one.config is not alt.Undefined), alt.Undefined)


def _parts(*charts: Any) -> list[Any]:
    """Return copies of charts without what only a whole chart may have: a look, and tables by name."""
    parts = [one.copy() for one in charts]
    for part in parts:
        part.config = alt.Undefined
        if isinstance(part, OfflineConcat) and part.datasets:
            tables, part.datasets = part.datasets, alt.Undefined
            panels: list[Any] = part.concat
            for panel in panels:
                panel.data = alt.InlineData(values=list(tables[panel.data["name"]]))
    return parts


class OfflineConcat(OfflineChart, alt.ConcatChart):
    """Panels in rows."""


class OfflineLayers(OfflineChart, alt.LayerChart):
    """Layers on common axes."""


class OfflineRow(OfflineChart, alt.HConcatChart):
    """Charts side by side."""


class OfflineColumn(OfflineChart, alt.VConcatChart):
    """Charts one above the other."""


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
