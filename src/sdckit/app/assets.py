"""Names by which headings of the documentation are linked to, as repositories on the web name them, too."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sdckit.app.screen import render, session_of
from sdckit.report.charts import bundle
from sdckit.report.page import shade_styles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markdown_it.token import Token
    from starlette.requests import Request


def anchors(headings: Iterable[str]) -> list[str]:
    """Return a name for each heading of a page: its words in lower case; a number tells equal ones apart."""
    seen: dict[str, int] = {}
    found = []
    for heading in headings:
        name = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        count = seen[name] = seen.get(name, -1) + 1
        found.append(f"{name}-{count}" if count else name)
    return found


BREAK = "<br>"  # the one tag that the documentation uses, in cells of tables
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
    if name not in doc_files():
        return PlainTextResponse("not found", 404)
    text = doc_files()[name].read_text(encoding="utf-8")
    return render(request, "", template="doc", title="Documentation", text=as_html(text))


@cache
def doc_files() -> dict[str, Path]:
    """Return the pages of the documentation by their names, of the package or beside its source."""
    package = Path(__file__).parents[1]
    shipped, beside = package / "docs", package.parents[1] / "docs"
    return {path.stem: path for path in sorted((shipped if shipped.is_dir() else beside).rglob("*.md"))}


def as_html(text: str) -> str:
    """Return Markdown as HTML; HTML inside it is shown as text, and pictures by their description.

    Links to other pages of the documentation lead there; links to other files become plain text.
    """
    from markdown_it import MarkdownIt  # noqa: PLC0415 - comes with rich

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    markdown.add_render_rule("image", _description)
    tokens = markdown.parse(text)
    places = [place for place, token in enumerate(tokens) if token.type == "heading_open"]
    for place, name in zip(places, anchors(tokens[place + 1].content for place in places), strict=True):
        tokens[place].attrSet("id", name)
    for token in tokens:
        token.children = token.children and _mended_links(token.children)
    html = str(markdown.renderer.render(tokens, markdown.options, {}))
    return html.replace(escape(BREAK), BREAK)


def _description(_renderer: Any, tokens: Sequence[Token], place: int, *_options: Any) -> str:
    """Return the description of a picture, which the page does not load."""
    return f"<em>Picture: {escape(tokens[place].content)}</em>"


def _mended_links(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens of a line with links that lead somewhere from this page, and without the others."""
    found: list[Token] = []
    kept = True
    for token in tokens:
        if token.type == "link_open":
            target = _target(str(token.attrs["href"]))
            kept = target is not None
            token.attrs |= {"href": target or "", "rel": "noreferrer"}
        if kept or token.type not in {"link_open", "link_close"}:
            found.append(token)
    return found


def _target(link: str) -> str | None:
    """Return the address for a link of the documentation; None if the page has nothing there."""
    file, mark, place = link.partition("#")
    if not file or file.startswith(("https://", "http://")):
        return link
    path = PurePosixPath(file)
    return path.stem + mark + place if path.suffix == ".md" and path.stem in doc_files() else None


async def report(request: Request) -> Response:
    """Answer the report of the last release that this page wrote, kept apart from the page itself."""
    session = session_of(request)
    path = session.release.report
    if path is None or not path.is_file():
        return PlainTextResponse("there is no report; write a release with one first", 404)
    content = await session.work(path.read_bytes)
    if hashlib.sha256(content).hexdigest() != session.release.report_digest:
        return PlainTextResponse("the report was changed after it was written; write the release again", 409)
    return Response(content, media_type="text/html", headers={"Content-Security-Policy": SANDBOX})


ROUTES = [
    Route("/static/{name}", static),
    Route("/docs/{name}", docs),
    Route("/report", report),
]
