"""What the screens load: styles, scripts, pages of the documentation, and the report of the last release."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sdckit.app.screen import render, session_of
from sdckit.report.page import shade_styles
from sdckit.report.vega_bundle import bundle

if TYPE_CHECKING:
    from starlette.requests import Request

DOCS = ("tutorial", "risk", "methods", "metrics", "releases", "reference", "app")
SCRIPT, STYLE = "text/javascript", "text/css"
# The report has scripts of its own, which its own policy allows; it gets no access to this page.
SANDBOX = "sandbox allow-scripts allow-modals; frame-ancestors 'none'"


@cache
def _own(name: str) -> str:
    """Return the text of a file in the folder of styles and scripts."""
    return resources.files("sdckit.app").joinpath("static", name).read_text(encoding="utf-8")


@cache
def report_style() -> str:
    """Return the style of the report, which the screens share."""
    return resources.files("sdckit.report").joinpath("page.css").read_text(encoding="utf-8") + shade_styles()


async def static(request: Request) -> Response:
    """Answer a style or a script."""
    name = request.path_params["name"]
    session = session_of(request)
    if name == "app.css":
        return Response(_own(name), media_type=STYLE)
    if name == "app.js":
        return Response(_own(name), media_type=SCRIPT)
    if name == "report.css":
        return Response(report_style(), media_type=STYLE)
    if name == "vega.js":
        return Response(await session.work(bundle), media_type=SCRIPT)
    return PlainTextResponse("not found", 404)


async def docs(request: Request) -> Response:
    """Show a page of the documentation."""
    name = request.path_params["name"]
    text = doc_text(name) if name in DOCS else None
    if text is None:
        return PlainTextResponse("not found", 404)
    return render(request, "", template="doc", title="Documentation", text=as_html(text))


def doc_text(name: str) -> str | None:
    """Return a page of the documentation, of the package or beside its source; None if neither is there."""
    shipped = resources.files("sdckit").joinpath("docs", f"{name}.md")
    beside = Path(__file__).parents[3] / "docs" / f"{name}.md"
    for place in (shipped, beside):
        if place.is_file():
            return place.read_text(encoding="utf-8")
    return None


def as_html(text: str) -> str:
    """Return Markdown as HTML; HTML inside it is shown as text, and pictures by their description."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - comes with rich

    return str(MarkdownIt("commonmark", {"html": False}).enable("table").disable("image").render(text))


async def report(request: Request) -> Response:
    """Answer the report of the last release that this page wrote, kept apart from the page itself."""
    session = session_of(request)
    path = session.release.report
    if path is None or not path.is_file():
        return PlainTextResponse("there is no report; write a release with one first", 404)
    content = await session.work(path.read_bytes)
    return Response(content, media_type="text/html", headers={"Content-Security-Policy": SANDBOX})


ROUTES = [
    Route("/static/{name}", static),
    Route("/docs/{name}", docs),
    Route("/report", report),
]
