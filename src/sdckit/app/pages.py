"""The page as an application: its addresses, and what all screens have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from sdckit.app import copying
from sdckit.app.forms import Form, read_form
from sdckit.app.panel import FOLDERS
from sdckit.app.session import Session  # noqa: TC001 - launch.py finds it here
from sdckit.core.text import printable
from sdckit.core.version import VERSION
from sdckit.job.python_text import python_text
from sdckit.report.environment import page_environment

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request

    Handler = Callable[[Request], Awaitable[Response]]

STEPS = {
    "open": "Open",
    "roles": "Roles",
    "rules": "Rules",
    "goal": "Goal",
    "search": "Search",
    "map": "Map",
    "release": "Release",
}
CHARTS = ("search", "map")  # screens that load the scripts of the charts
OLD = "The job was changed in another tab; nothing of this form was kept. This is the job as it is now."
REFUSALS = (
    ValueError,
    TypeError,
    OSError,
    LookupError,
)  # wrong input, as the command line says it in one line


@dataclass(frozen=True)
class Message:
    """A line above a screen: of the kind "info" or "error"."""

    kind: str
    text: str


def session_of(request: Request) -> Session:
    """Return the session of the page that a request is for."""
    found: Session = request.app.state.session
    return found


def root_of(request: Request) -> str:
    """Return the beginning of all addresses of the page."""
    return str(request.scope.get("root_path", ""))


def render(request: Request, screen: str, status: int = 200, **content: Any) -> Response:
    """Return a screen with what all screens have: steps, history, messages and the texts to copy."""
    session = session_of(request)
    file = session.file
    notes, session.notes = session.notes, []
    messages = [*content.pop("messages", ()), *(Message(*note) for note in notes)]
    page = page_environment(*FOLDERS).get_template(f"{content.pop('template', screen)}.html")
    return HTMLResponse(
        page.render(
            root=root_of(request),
            screen=screen,
            title=content.pop("title", STEPS.get(screen, "")),
            steps=[
                {"name": name, "title": title, "reachable": name == "open" or file is not None}
                for name, title in STEPS.items()
            ],
            file="" if file is None else file.name,
            version=version_of(session),
            can_undo=file is not None and file.history.can_undo,
            can_redo=file is not None and file.history.can_redo,
            messages=messages,
            changed=session.changed(),
            copies=copies_of(session),
            charts=screen in CHARTS,
            sdckit_version=VERSION,
            **content,
        ),
        status,
    )


def version_of(session: Session) -> int:
    """Return the number of the job's state, which rises with every change; 0 without a file."""
    return 0 if session.file is None else session.file.history.version


def copies_of(session: Session) -> Sequence[Mapping[str, str]]:
    """Return the texts that repeat the work without the page: a command and a Python script."""
    if session.file is None:
        return ()
    job = session.job()
    return [
        {
            "name": "command",
            "title": "Copy as command",
            "about": f"Run it in the folder {session.start}.",
            "text": copying.command_text(job),
        },
        {
            "name": "python",
            "title": "Copy as Python",
            "about": "The same search and release from Python, in the same folder.",
            "text": python_text(job),
        },
    ]


def go_to(request: Request, screen: str) -> Response:
    """Return the answer that sends the browser to a screen."""
    return RedirectResponse(f"{root_of(request)}/{screen}", 303)


def is_old(session: Session, form: Form) -> bool:
    """Return True for a form that was made before the job was changed elsewhere."""
    return form.text("version") != str(version_of(session))


def message_of(error: BaseException) -> Message:
    """Return an error as the line that the page shows, the first letter in upper case."""
    text = str(error) or type(error).__name__
    return Message("error", text[:1].upper() + text[1:])


def needs_file(handler: Handler) -> Handler:
    """Return a handler that sends the browser to the first screen while no file is open."""

    async def checked(request: Request) -> Response:
        """Answer, or go to the first screen."""
        session = session_of(request)
        if session.file is None:
            session.tell("Open a file first.", "error")
            return go_to(request, "open")
        return await handler(request)

    return checked


async def undo(request: Request) -> Response:
    """Go back to the state of the job before the last change."""
    return await _move(request, forward=False)


async def redo(request: Request) -> Response:
    """Go forward again to the state that was undone."""
    return await _move(request, forward=True)


async def _move(request: Request, *, forward: bool) -> Response:
    """Move along the states of the job; at their end nothing happens."""
    session, form = session_of(request), await read_form(request)
    if session.file is not None:
        history = session.file.history
        await session.work(history.redo if forward else history.undo)
        session.announce()
    screen = form.text("screen")
    return go_to(request, screen if screen in STEPS else "open")


async def reread(request: Request) -> Response:
    """Read the open file again after it was changed on disk."""
    session = session_of(request)
    file = session.require_file()
    section = {name: value for name, value in file.state.job["input"].items() if name != "data"}
    try:
        await session.work(session.open, file.name, section)
    except REFUSALS as error:
        session.tell(message_of(error).text, "error")
    else:
        session.tell("The file was read again; check the roles of its columns.")
    session.announce()
    return go_to(request, "open")


async def refuse(_request: Request, error: Exception) -> Response:
    """Answer wrong input to an address without a screen of its own: one line."""
    return PlainTextResponse(printable(message_of(error).text), 422)


def make_app(session: Session) -> Starlette:
    """Return the application of the page; who may reach it is decided by `sdckit.app.guards`."""
    from sdckit.app import (  # noqa: PLC0415  # noqa: PLC0415 - they import this module
        assets,
        events,
        screen_goal,
        screen_map,
        screen_open,
        screen_release,
        screen_roles,
        screen_rules,
        screen_search,
    )

    async def first(request: Request) -> Response:
        """Send the browser to the screen to begin with."""
        return go_to(request, "open" if session.file is None else "roles")

    routes = [
        Route("/", first),
        *screen_open.ROUTES,
        *screen_roles.ROUTES,
        *screen_rules.ROUTES,
        *screen_goal.ROUTES,
        *screen_search.ROUTES,
        *screen_map.ROUTES,
        *screen_release.ROUTES,
        *events.ROUTES,
        *assets.ROUTES,
        Route("/undo", undo, methods=["POST"]),
        Route("/redo", redo, methods=["POST"]),
        Route("/reread", reread, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(REFUSALS, refuse))
    app.state.session = session
    return app
