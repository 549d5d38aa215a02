"""Pictures of charts: SVG without outside references, PNG and PDF."""

from __future__ import annotations

import re
import struct
import zlib
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sdckit.core.text import printable_content

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

    import altair as alt

Spec = dict[str, Any]  # a piece of a Vega-Lite specification
PNG_HEAD = b"\x89PNG\r\n\x1a\n"


def svg(chart: alt.TopLevelMixin) -> str:
    """Return a chart as SVG without outside references, with ids that are unique on a page.

    The chart's `name` starts all ids, its `description` becomes the label of the picture.
    """
    import vl_convert  # noqa: PLC0415 - slow to import

    spec = printable_content(chart.to_dict(validate=False))
    drawn = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    return compact_svg(drawn, name=spec.get("name"), description=spec.get("description", ""))


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
