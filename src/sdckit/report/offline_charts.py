"""Altair charts that need no network, with a picture for notebooks; importing this imports altair."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import altair as alt

from sdckit.report.drawing import compact_png, png, svg


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
