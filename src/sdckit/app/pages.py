"""The page as an application: its addresses, and moves along the states of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sdckit.app import (
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
from sdckit.app.screen import (
    OLD,
    REFUSALS,
    STEPS,
    go_to,
    is_old,
    message_of,
    read_form,
    render,
    root_of,
    session_of,
)
from sdckit.app.session import Session
from sdckit.core.checks import printable

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["Session", "make_app"]


async def undo(request: Request) -> Response:
    """Go back to the state of the job before the last change."""
    return await _move(request, forward=False)


async def redo(request: Request) -> Response:
    """Go forward again to the state that was undone."""
    return await _move(request, forward=True)


async def _move(request: Request, *, forward: bool) -> Response:
    """Move along the states of the job; at their end nothing happens."""
    session, form = session_of(request), await read_form(request)
    if session.file is not None and is_old(session, form):
        session.tell(OLD, "error")
    elif session.file is not None:
        await session.work(lambda: session.move(forward=forward))
        session.announce()
    screen = form.text("screen")
    return go_to(request, screen if screen in STEPS else "open")


async def reread(request: Request) -> Response:
    """Read the open file again after it was changed on disk."""
    session = session_of(request)
    file = session.require_file()
    try:
        await session.work(session.open, file.name)
    except REFUSALS as error:
        session.tell(message_of(error).text, "error")
    else:
        session.tell("The file was read again; check the roles of its columns.")
    session.announce()
    return go_to(request, "open")


async def refuse(request: Request, error: Exception) -> Response:
    """Answer what cannot be done: a page to go on from if a form was sent, one line for a script."""
    message = message_of(error)
    if request.headers.get("sec-fetch-mode") != "navigate":
        return PlainTextResponse(printable(message.text), 422)
    screen = request.url.path.removeprefix(root_of(request)).split("/")[1]
    found = screen if screen in STEPS else "open"
    return render(
        request, found, 422, template="refused", title="This was not done", messages=[message], charts=False
    )


def make_app(session: Session) -> Starlette:
    """Return the application of the page; who may reach it is decided by `sdckit.app.guards`."""

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
