"""The page as an application: its addresses, moves along the states of the job, and what screens load."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from sdckit.app import (
    screen_goal,
    screen_map,
    screen_open,
    screen_release,
    screen_roles,
    screen_rules,
    screen_search,
)
from sdckit.app.running import RELEASING
from sdckit.app.screen import OLD, REFUSALS, STEPS, Page, message_of, read_form, version_of
from sdckit.app.screen_search import progress_of
from sdckit.app.session import Session
from sdckit.core.text import printable, printable_content
from sdckit.report.charts import bundle
from sdckit.report.page import shade_styles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from markdown_it.token import Token
    from starlette.requests import Request

__all__ = ["Session", "make_app"]

BREAK = "<br>"  # the one tag that the documentation uses, in cells of tables
SCRIPT, STYLE = "text/javascript", "text/css"
# The report has scripts of its own, which its own policy allows; it gets no access to this page.
SANDBOX = "sandbox allow-scripts allow-modals; frame-ancestors 'none'"
HEARTBEAT = 15.0  # seconds after which a comment shows that the stream is alive
PAUSE = 0.5  # seconds between two messages at least


async def undo(request: Request) -> Response:
    """Go back to the state of the job before the last change."""
    return await _move(request, forward=False)


async def redo(request: Request) -> Response:
    """Go forward again to the state that was undone."""
    return await _move(request, forward=True)


async def _move(request: Request, *, forward: bool) -> Response:
    """Move along the states of the job; at their end nothing happens."""
    page = Page(request, await read_form(request))
    session, screen = page.session, page.form.text("screen")
    error = ""
    if session.file is not None and page.is_old:
        error = OLD
    elif session.file is not None:
        await page.work(lambda: session.move(forward=forward))
        session.announce()
    return page.go_to(screen if screen in STEPS else "open", error)


async def reread(request: Request) -> Response:
    """Read the open file again after it was changed on disk."""
    page = Page(request)
    session, name = page.session, page.file.name
    error = ""
    try:
        await page.work(session.open, name)
        session.tell("The file was read again; check the roles of its columns.")
    except REFUSALS as refused:
        error = message_of(refused).text
    session.announce()
    return page.go_to("open", error)


async def refuse(request: Request, error: Exception) -> Response:
    """Answer what cannot be done: a page to go on from if a form was sent, one line for a script."""
    page = Page(request)
    page.refused = message_of(error)
    if request.headers.get("sec-fetch-mode") != "navigate":
        return PlainTextResponse(printable(page.refused.text), 422)
    screen = request.url.path.removeprefix(page.root).split("/")[1]
    found = screen if screen in STEPS else "open"
    return page.render(found, template="refused", title="This was not done", charts=False)


def _now(session: Session) -> dict[str, dict[str, Any]]:
    """Return what the streams show, by the name of the event."""
    release = session.release
    text = RELEASING if release.running else release.state.error
    return {
        "state": {"version": version_of(session)},
        "search": progress_of(session),
        "release": {"running": release.running, "finished": release.runs, "text": text},
    }


async def _messages(request: Request, session: Session) -> AsyncIterator[str]:
    """Yield what has changed since the last message, until the browser goes away."""
    last: dict[str, dict[str, Any]] = {}
    yield "retry: 2000\n\n"
    while not await request.is_disconnected():
        seen, now = session.moment(), _now(session)
        for name, content in now.items():
            if last.get(name) != content:
                yield f"event: {name}\ndata: {json.dumps(printable_content(content))}\n\n"
        last = now
        try:
            async with asyncio.timeout(HEARTBEAT):
                await session.next_change(seen)
        except TimeoutError:
            yield ": alive\n\n"
        await asyncio.sleep(PAUSE)


async def stream(request: Request) -> Response:
    """Answer with the event stream."""
    return StreamingResponse(_messages(request, request.app.state.session), media_type="text/event-stream")


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
    if name in ("app.css", "app.js"):
        return Response(_own(name), media_type=STYLE if name == "app.css" else SCRIPT)
    if name == "report.css":
        return Response(report_style(), media_type=STYLE)
    if name == "vega.js":
        return Response(await Page(request).work(bundle), media_type=SCRIPT)
    return PlainTextResponse("not found", 404)


async def docs(request: Request) -> Response:
    """Show a page of the documentation."""
    name = request.path_params["name"]
    if name not in doc_files():
        return PlainTextResponse("not found", 404)
    text = doc_files()[name].read_text(encoding="utf-8")
    return Page(request).render("", template="doc", title="Documentation", text=as_html(text))


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
    for kind, rule in (("image", _description), ("link_open", _link_open), ("link_close", _link_close)):
        markdown.add_render_rule(kind, rule)
    tokens = markdown.parse(text)
    places = [place for place, token in enumerate(tokens) if token.type == "heading_open"]
    for place, name in zip(places, anchors(tokens[place + 1].content for place in places), strict=True):
        tokens[place].attrSet("id", name)
    html = str(markdown.renderer.render(tokens, markdown.options, {}))
    return html.replace(escape(BREAK), BREAK)


def _description(_renderer: Any, tokens: Sequence[Token], place: int, *_options: Any) -> str:
    """Return the description of a picture, which the page does not load."""
    return f"<em>Picture: {escape(tokens[place].content)}</em>"


def _link_open(_renderer: Any, tokens: Sequence[Token], place: int, _options: Any, seen: Any) -> str:
    """Return the begin of a link, nothing for one that leads nowhere from this page."""
    target = _target(str(tokens[place].attrs["href"]))
    seen["link"] = target is not None
    return "" if target is None else f'<a href="{escape(target)}" rel="noreferrer">'


def _link_close(_renderer: Any, _tokens: Any, _place: int, _options: Any, seen: Any) -> str:
    """Return the end of a link that leads somewhere."""
    return "</a>" if seen["link"] else ""


def _target(link: str) -> str | None:
    """Return the address for a link of the documentation; None if the page has nothing there."""
    file, mark, place = link.partition("#")
    if not file or file.startswith(("https://", "http://")):
        return link
    path = PurePosixPath(file)
    return path.stem + mark + place if path.suffix == ".md" and path.stem in doc_files() else None


def anchors(headings: Iterable[str]) -> list[str]:
    """Return a name for each heading of a page: its words in lower case; a number tells equal ones apart."""
    seen: dict[str, int] = {}
    found = []
    for heading in headings:
        name = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        count = seen[name] = seen.get(name, -1) + 1
        found.append(f"{name}-{count}" if count else name)
    return found


async def report(request: Request) -> Response:
    """Answer the report of the last release that this page wrote, kept apart from the page itself."""
    session: Session = request.app.state.session
    path = session.report()
    if path is None or not path.is_file():
        return PlainTextResponse("there is no report; write a release with one first", 404)
    content = await session.work(path.read_bytes)
    if hashlib.sha256(content).hexdigest() != session.release.state.report:
        return PlainTextResponse("the report was changed after it was written; write the release again", 409)
    return Response(content, media_type="text/html", headers={"Content-Security-Policy": SANDBOX})


def make_app(session: Session) -> Starlette:
    """Return the application of the page; who may reach it is decided by `sdckit.app.guards`."""

    async def first(request: Request) -> Response:
        """Send the browser to the screen to begin with."""
        return Page(request).go_to("open" if session.file is None else "roles")

    routes = [
        Route("/", first),
        *screen_open.ROUTES,
        *screen_roles.ROUTES,
        *screen_rules.ROUTES,
        *screen_goal.ROUTES,
        *screen_search.ROUTES,
        *screen_map.ROUTES,
        *screen_release.ROUTES,
        Route("/events", stream),
        Route("/static/{name}", static),
        Route("/docs/{name}", docs),
        Route("/report", report),
        Route("/undo", undo, methods=["POST"]),
        Route("/redo", redo, methods=["POST"]),
        Route("/reread", reread, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(REFUSALS, refuse))
    app.state.session = session
    return app
